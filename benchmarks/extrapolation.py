"""Learning curves continued: `quenched.extrapolate` beside what is in use, on LCDB 1.1.

All curves of 27 learners on 162 tables with at least 20 anchors: what is seen ends at 1/2, 1/4, 1/8 or 1/16 of the
last anchor (at least 10 anchors and 60 rows), the truth is the error at the last anchor (at least 0.005). Once the
curves as they are in the data base (8 anchors an octave, means over 25 splits), once with two points an octave and the noise
of a user who has five splits with 500 test rows. The prior is learned anew for each of 18 folds of the tables and has
never seen the table it is judged on; so is the widening of its intervals.

Peers: the last value, and the families pow3, pow4, mmf4 and wbl4 with weights 1/se^2, each at the global minimum over a
grid of its exponents, refined twice (the other two numbers are closed); and one power law, averaged over its exponent with weights
n^2/se^2. The truth is a mean over splits, too: the last row of each table is what its standard error alone would cost
who knew the rest.

    python -m benchmarks.extrapolation --curves PATH [--held-out FILE] [--every N]

`--held-out` names what `benchmarks.learn_prior --held-out` has written; without it the folds are learned here.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy import special

from benchmarks import curves, learn_prior
from benchmarks.page import table
from quenched.forecasting import features, prior

GRID, FINER, ZOOMS = 30, 9, 2
"""Scales and exponents of the first grid, of the finer ones, and how many of these."""
SCALES, EXPONENTS = (1e-3, 30.0), (0.02, 8.0)
"""Their ranges; scales are in units of the last number of examples."""
FAMILIES = ("last value", "pow3", "pow4", "mmf4", "wbl4")
KINDS = ("dense and clean", "two points an octave, a user's noise")


def shapes(family: str, u: np.ndarray, s: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The part of a family that its scale `s` and its exponent `c` determine, `[K, P]`; the rest is linear."""
    s, c = s[:, None], c[:, None]
    if family == "pow3":
        return u**-c
    if family == "pow4":
        return (u + s) ** -c
    return 1 / (1 + (u / s) ** c) if family == "mmf4" else np.exp(-np.minimum((u / s) ** c, 60.0))


def fit(family: str, seen: curves.Curve, at: float) -> float:
    """The error at a number of examples by a family fitted to a curve: a grid, and twice a finer one about the best."""
    if family == "last value":
        return float(seen.error[-1])
    assert seen.stderr is not None
    se = np.maximum(seen.stderr, 0.01 * seen.error + 1e-4)  # no point may count for all others
    w, u, e = se**-2 / np.sum(se**-2), np.append(seen.n, at) / seen.n[-1], seen.error
    s, c = (np.linspace(*np.log(ends), GRID) for ends in (SCALES, EXPONENTS))
    for _ in range(ZOOMS + 1):
        both = np.stack(np.meshgrid(s[:1] if family == "pow3" else s, c)).reshape(2, -1)
        f = shapes(family, u, *np.exp(both))
        ahead, f = f[:, -1], f[:, :-1]
        mean = f @ w
        spread = (f * f) @ w - mean**2
        b = ((f * e) @ w - mean * float(w @ e)) / np.maximum(spread, 1e-14)
        rss = float(w @ (e - w @ e) ** 2) - b**2 * spread
        rss[spread < 1e-13] = np.inf
        k = int(np.argmin(rss))
        found = float(w @ e) + b[k] * (ahead[k] - mean[k])
        s, c = (
            middle + np.linspace(-1, 1, FINER) * (v[1] - v[0]) for middle, v in zip(both[:, k], (s, c), strict=True)
        )
    return float(np.clip(found, 0.0, 2 * e.max()))


def peers(known: list[curves.Curve]) -> np.ndarray:
    """Relative errors of the peers at every question, in its order, `[questions, families]`."""
    found = []
    for curve in known:
        for horizon in curves.HORIZONS:
            if (part := curves.parts(curve, horizon)) is None:
                continue
            seen, truth = part
            rng = np.random.default_rng([curve.table, curve.learner, horizon])
            for shown in (seen, curves.thin(seen, rng)):
                found.append([abs(fit(name, shown, curve.n[-1]) / truth - 1) for name in FAMILIES])
    return np.array(found)


def noise(known: list[curves.Curve]) -> np.ndarray:
    """Relative errors of who knows the truth but for its own standard error: median and 90th percentile, `[4, 2]`."""
    z = special.ndtri((np.arange(100) + 0.5) / 100)
    found = []
    for horizon in curves.HORIZONS:
        asked = [c for c in known if curves.parts(c, horizon) is not None]
        relative = np.array([c.stderr[-1] / c.error[-1] for c in asked if c.stderr is not None])
        found.append(np.quantile(np.abs(relative[:, None] * z), (0.5, 0.9)))
    return np.array(found)


def judge(asked: curves.Samples, found: np.ndarray, folds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Relative errors of the forecasts, whether intervals contain the truth, and their widths in the log."""
    fold, widths, inside = learn_prior.fold_of(asked.table, folds), np.empty(len(found)), np.empty(len(found), bool)
    point = prior.read_outputs(found, asked.rows, np.ones(4), 0.8).point
    for k in range(folds):
        mine, rest = fold == k, fold != k
        part = curves.Samples(*(v[rest] for v in asked))
        q = prior.read_outputs(found[mine], asked.rows[mine], learn_prior.widening(part, found[rest]), 0.8)
        inside[mine] = (q.low <= asked.truth[mine]) & (asked.truth[mine] <= q.high)
        widths[mine] = q.high - q.low
    return np.abs(np.expm1(point - asked.truth)), inside, widths


def report(
    asked: curves.Samples, ours: np.ndarray, inside: np.ndarray, widths: np.ndarray, theirs: np.ndarray,
    floor: np.ndarray,
) -> str:  # fmt: skip
    """The tables of the page."""
    averaged = np.abs(np.expm1(features.baseline(asked.rows) - asked.truth))
    methods = {name: theirs[:, i] for i, name in enumerate(FAMILIES)}
    methods |= {"power law, averaged": averaged, "`quenched.extrapolate`": ours}
    said = []
    for kind, words in enumerate(KINDS):
        cuts = [(asked.kind == kind) & (asked.horizon == h) for h in curves.HORIZONS]
        rows = [(name, *(f"{np.median(e[c]):.3f} ({np.quantile(e[c], 0.9):.2f})" for c in cuts))
                for name, e in methods.items()]  # fmt: skip
        rows.append(("the truth's own noise", *(f"{m:.3f} ({t:.2f})" for m, t in floor)))
        head = ("", *(f"{h} times the rows" for h in curves.HORIZONS))
        said += [f"### Curves {words}", "Median relative error (90th percentile).", table(head, rows)]
        learners = [[inside[c & (asked.learner == k)].mean() for k in np.unique(asked.learner[c])] for c in cuts]
        lines = [("curves", *(str(int(c.sum())) for c in cuts)),
                 ("coverage of the 80% interval", *(f"{inside[c].mean():.3f}" for c in cuts)),
                 ("of the learner with the least", *(f"{min(each):.2f}" for each in learners)),
                 ("median width, log", *(f"{np.median(widths[c]):.3f}" for c in cuts))]  # fmt: skip
        said.append(table(head, lines))
    return "\n\n".join(said)


def main() -> None:
    """Judge all methods and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=Path, required=True)
    parser.add_argument("--held-out", type=Path)
    parser.add_argument("--every", type=int, default=1, help="only each so many tables")
    parser.add_argument("--folds", type=int, default=learn_prior.FOLDS)
    parser.add_argument("--members", type=int, default=learn_prior.MEMBERS)
    a = parser.parse_args()
    known = curves.read(a.curves, a.every)
    asked = curves.sample(known, learn=False)
    if a.held_out is not None and a.held_out.exists():
        found = np.load(a.held_out)["outputs"].astype(float)
    else:
        lessons = learn_prior.Lessons(curves.sample(known, learn=True))
        found = learn_prior.hold_out(lessons, asked, a.folds, a.members).astype(float)
    print(report(asked, *judge(asked, found, a.folds), peers(known), noise(known)))


if __name__ == "__main__":
    main()
