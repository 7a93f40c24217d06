"""Learning curves of the data base LCDB 1.1, and the questions that are asked of them.

The file is what `learning-curve-research/LCDB-1.1` (CC BY 4.0) publishes, as means and standard errors over splits:
`mean`, `stderr` `[table, learner, anchor, (train, test)]` and `anchor`, the numbers of training rows. A curve of at least
20 anchors is seen up to a part of its rows (at least 10 anchors and 60 rows there); the truth is its error further on.
A user has fewer points and more noise: `thin` leaves two points an octave and adds the noise of five splits with 500
test rows each.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from quenched.forecasting import features

HORIZONS = (2, 4, 8, 16)
FEWEST, SEEN, ROWS, SMALLEST = 20, 10, 60, 0.005
"""Anchors of a curve and of its seen part, rows at its end, and the truth below which relative errors mean nothing."""
SPLITS, TEST_ROWS, LCDB_SPLITS = 5, 500, 25


class Curve(NamedTuple):
    """One learner on one table."""

    table: int
    learner: int
    n: np.ndarray
    error: np.ndarray
    stderr: np.ndarray | None
    training: np.ndarray | None

    def part(self, chosen: np.ndarray) -> Curve:
        """Some of the anchors."""
        cut = (None if v is None else v[chosen] for v in self[2:])
        return Curve(self.table, self.learner, *cut)  # pyright: ignore[reportArgumentType]


class Samples(NamedTuple):
    """Features of seen parts with the truth behind them."""

    table: np.ndarray
    learner: np.ndarray
    horizon: np.ndarray
    kind: np.ndarray  # 0 dense and clean, 1 with a user's noise, 2 in between (for learning only)
    rows: np.ndarray  # [S, d] features
    truth: np.ndarray  # log of the error over the level of the curve
    weight: np.ndarray


def read(path: Path | str, every: int = 1) -> list[Curve]:
    """All curves, of each `every`-th table."""
    data = np.load(path, allow_pickle=False)
    mean, stderr, anchor = (data[k].astype(float) for k in ("mean", "stderr", "anchor"))
    curves = []
    for t in range(0, len(mean), every):
        for k in range(mean.shape[1]):
            known = np.isfinite(mean[t, k, :, 1])
            if known.sum() >= FEWEST:
                train, test = mean[t, k, known].T
                curves.append(Curve(t, k, anchor[known], test, stderr[t, k, known, 1], train))
    return curves


def parts(curve: Curve, horizon: float) -> tuple[Curve, float] | None:
    """What is seen of a curve, and the truth at its last anchor; None where there is too little."""
    seen = curve.part(curve.n <= curve.n[-1] / horizon)
    known = len(seen.n) >= SEEN and seen.n[-1] >= ROWS and curve.error[-1] >= SMALLEST
    return (seen, float(curve.error[-1])) if known else None


def thin(curve: Curve, rng: np.random.Generator, each: float = 2.0, noise: float = 1.0, octaves: float = 99.0) -> Curve:
    """Some points an octave back from the last, with the noise of a user's splits and standard errors as known as his."""
    back = np.log2(curve.n[-1] / curve.n)
    steps = np.arange(0.0, min(back[0], octaves) + 1e-9, 1 / each)
    seen = curve.part(np.unique(np.abs(back - steps[:, None]).argmin(axis=1)))
    assert seen.stderr is not None
    assert seen.training is not None
    e = np.clip(seen.error, 0, 1)
    more = SPLITS * (LCDB_SPLITS / SPLITS - 1) / SPLITS
    extra = noise**2 * (e * (1 - e) / (SPLITS * TEST_ROWS) + more * seen.stderr**2)
    error = np.abs(seen.error + np.sqrt(extra) * rng.standard_normal(len(e)))
    scale = np.sqrt(rng.chisquare(SPLITS - 1, len(e)) / (SPLITS - 1)) if noise > 0 else 1.0
    shaken = seen.training + noise * np.sqrt(more) * seen.stderr * rng.standard_normal(len(e)) * (seen.training > 0)
    return seen._replace(error=error, stderr=np.sqrt(extra + seen.stderr**2) * scale, training=np.abs(shaken))


def questions(curve: Curve) -> Iterator[tuple[int, float, np.ndarray, float, float]]:
    """The questions of the benchmark: kind, horizon, features, truth and weight."""
    for horizon in HORIZONS:
        if (found := parts(curve, horizon)) is None:
            continue
        seen, truth = found
        rng = np.random.default_rng([curve.table, curve.learner, horizon])
        for kind, shown in ((0, seen), (1, thin(seen, rng))):
            rows, level = describe(shown, curve.n[-1:])
            yield kind, horizon, rows[0], np.log(truth / level), 1.0


def lessons(curve: Curve) -> Iterator[tuple[int, float, np.ndarray, float, float]]:
    """Questions to learn from: curves seen up to many places, at many horizons, clean and with noise."""
    rng = np.random.default_rng([7, curve.table, curve.learner])
    ends = [i for i in range(SEEN - 1, len(curve.n) - 1) if curve.n[i] >= ROWS]
    chosen = ends[::-4] if len(ends) > 8 else ends[::-2]
    count = max(len(chosen), 1)
    for i in chosen:
        seen, n = curve.part(np.arange(i + 1)), curve.n[i]
        ratios = 2.0 ** (np.arange(1, 10) / 2 + rng.uniform(-0.25, 0.25))
        places = np.unique(np.abs(np.log(curve.n[:, None] / (n * ratios))).argmin(axis=0))
        places = places[(curve.n[places] > 1.3 * n) & (curve.error[places] >= SMALLEST)]
        if not len(places):
            continue
        for kind, shown in ((0, seen), (2, _noisy(seen, rng)), (2, _noisy(seen, rng))):
            rows, level = describe(shown, curve.n[places])
            for row, j in zip(rows, places, strict=True):
                yield kind, curve.n[j] / n, row, np.log(curve.error[j] / level), count**-0.5


def _noisy(seen: Curve, rng: np.random.Generator) -> Curve:
    """A curve as a user might measure it: any density and noise, at times without standard or training errors."""
    some = thin(seen, rng, each=float(rng.choice([2, 2, 3, 4, 8])), noise=float(rng.choice([1.0, rng.uniform(0, 1.5)])),
                octaves=float(rng.choice([4.0, 99.0])))  # fmt: skip
    if rng.random() < 0.15:
        some = some._replace(stderr=None)
    return some._replace(training=None) if rng.random() < 0.15 else some


def describe(seen: Curve, at: np.ndarray) -> tuple[np.ndarray, float]:
    """Features at some numbers of examples, and the level they are relative to."""
    known = features.read(seen.n, seen.error, seen.stderr, seen.training)
    return features.ahead(known, at), known.level


def _asked(curve: Curve) -> list:
    return [(curve.table, curve.learner, *q) for q in questions(curve)]


def _taught(curve: Curve) -> list:
    return [(curve.table, curve.learner, *q) for q in lessons(curve)]


def sample(curves: list[Curve], *, learn: bool, workers: int = 1) -> Samples:
    """Features and truths of all curves."""
    work = _taught if learn else _asked
    if workers == 1:
        found = [q for curve in curves for q in work(curve)]
    else:
        with ProcessPoolExecutor(workers) as pool:
            found = [q for some in pool.map(work, curves, chunksize=16) for q in some]
    table, learner, kind, horizon, rows, truth, weight = zip(*found, strict=True)
    return Samples(*(np.array(v) for v in (table, learner, horizon, kind)), np.array(rows, np.float32),
                   np.array(truth), np.array(weight))  # fmt: skip
