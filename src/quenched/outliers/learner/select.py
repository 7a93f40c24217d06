"""Selection around any model, from a table to weights: what the estimators for any model are made of.

`select_labels` is for classes, `select_values` for numbers. Both judge rows out of fold (`around`), look for signs that
selection is misled (`doubts`), and return weights of one where it does not help.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from quenched.core.types import Outcome
from quenched.outliers.learner import density, labels, values
from quenched.outliers.learner.around import Fit, Fold, Predict, Selected, Verdict, iterate, predict
from quenched.outliers.learner.classes import weigh
from quenched.outliers.learner.doubts import find_clump, measure_crowding
from quenched.outliers.model import Rule

FEWEST = 5
"""Rows of a class, or of a table, that are kept whatever they look like."""
INNER = 3
"""M-steps inside the check of classes: the selection has mostly settled by then."""
STARTS, CONCENTRATIONS, KEPT = 6, 4, 0.55
"""Of values: subsets from which the model is also fitted, steps to the rows nearest to it, and the share of these."""
BETTER = 0.03
"""The gain in log-likelihood of a row at which another start than all rows is taken."""
LOSS = 1.0
"""Classes: selection is given up where its accuracy out of fold falls by more than this many standard errors."""
CROWDED = 0.68
"""Values: selection is given up where neighbours tell outliers with a larger area under the curve."""
MANY, SIMILAR = 0.3, 5.0
"""... unless the outliers are at least this share of the rows, and their targets spread less than this many times the
noise: a few rows far out in a tail are a model's fault more often than so many."""
FEWER = 0.9
"""... or where the median residual does not fall below this share of the plain model's."""
MOST = 0.6
"""... or where more than this share of the rows would be outliers: it is the others that are a subset then."""
LEVEL = 0.8
"""Probability in the interval of the share."""
TEMPER = 0.25
"""Power of the likelihood in the interval: models are wrong, and folds share rows."""
WIDEST = 0.35
"""An interval of the share that is wider does not tell it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Selection:
    """Which rows count, and why.

    Attributes:
        weights: how much each row counts, between 0 and 1 `[n]`.
        outlier: the probability that each row is an outlier `[n]`.
        share: of outliers.
        interval: of the share, 80% of the probability.
        told: whether the data tell the share.
        used: whether selection is used; otherwise weights are one.
        gain: of the check out of fold: change of accuracy, or 1 minus the ratio of median residuals.
        gain_stderr: its standard error; 0 for values.
        clump: rows in a tight ball `[n]`.
        sentence: what to say about all this; empty if selection is used without a doubt.
        passes: M-steps.
        outcome: `converged`, or `stalled` when the passes ran out.
        signs: numbers on which the choices rest, by name.
    """

    weights: np.ndarray
    outlier: np.ndarray
    share: float
    interval: tuple[float, float]
    told: bool
    used: bool
    gain: float
    gain_stderr: float
    clump: np.ndarray
    sentence: str
    passes: int
    outcome: Outcome
    signs: dict[str, float]


def split(codes: np.ndarray | None, n: int, folds: int, generator: np.random.Generator) -> list[Fold]:
    """Folds, with every class in each where there are enough rows."""
    seed, plain = int(generator.integers(2**31)), np.zeros((n, 1))
    if codes is None:
        return list(KFold(min(folds, n), shuffle=True, random_state=seed).split(plain))
    count = min(folds, max(2, int(np.bincount(codes).min())))
    return list(StratifiedKFold(count, shuffle=True, random_state=seed).split(plain, codes))


def keep_some(codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights with which every class still has some rows: where it would not, all of its rows count."""
    counts = np.bincount(codes, weights)
    all_rows = np.bincount(codes)
    few = counts < np.minimum(np.maximum(FEWEST, 0.1 * all_rows), all_rows)
    return np.where(few[codes], 1.0, weights)


def select_labels(
    rule: Rule, fit: Fit, X: np.ndarray, codes: np.ndarray, omega: np.ndarray, *, folds: int, passes: int,
    generator: np.random.Generator, share: float | None = None, check: bool = True,
) -> Selection:  # fmt: skip
    """Which rows of a table with classes count.

    Args:
        rule: `SoftSelection()` or `HardSelection()`.
        fit: the model, with log-probabilities of the classes.
        X: rows in comparable units `[n, d]`, for densities and distances.
        codes: classes from 0 `[n]`.
        omega: positive weights `[n]`.
        folds: by which rows are judged.
        passes: M-steps at most.
        generator: of the folds and the permuted rows.
        share: of wrong labels; None: estimated.
        check: whether selection is given up where it does not help.
    """
    n, K = len(codes), int(codes.max()) + 1
    parts = split(codes, n, folds, generator)
    strange = density.compare(X, codes, omega, parts, generator)
    clump = find_clump(X, codes)
    judge = labels.Labels(rule, codes, K, omega, share, strange)
    plain = predict(fit, parts, omega)

    def keep(w: np.ndarray) -> np.ndarray:
        return keep_some(codes, w)

    starts = np.ones(n), keep((plain.argmax(axis=1) == codes).astype(float))
    tried = [iterate(rule, fit, judge.judge, parts, omega, start=w, passes=passes, keep=keep) for w in starts]
    best = int(np.argmax([one.verdict.level for one in tried]))
    found = tried[best]
    gain, stderr = (0.0, 0.0)
    if check:
        held = _predict_held_out(rule, fit, judge, parts, starts[best], min(passes, INNER), generator)
        gain, stderr = _compare_accuracy(held, plain, codes, omega)
    used = not check or gain >= -LOSS * stderr
    verdict = found.verdict if used else judge.judge(plain)
    last = keep(weigh(rule, verdict.h)[0])
    low, high = _interval(verdict, strange)
    told = high - low <= WIDEST
    outlier = np.where(clump, np.maximum(verdict.outlier, 0.5), verdict.outlier)
    signs = {
        "strange": strange.share, "wrong": verdict.about.wrong, "sharper": verdict.about.sharper,
        "level": verdict.level, "width": high - low, "start": float(best), "first": tried[0].verdict.level,
    }  # fmt: skip
    sentence = _say(used, told, clump, "the accuracy out of fold falls", low, high)
    return Selection(
        last if used else np.ones(n), outlier, verdict.share, (low, high), told, used, gain, stderr, clump, sentence,
        found.passes, found.outcome, signs,
    )  # fmt: skip


def _predict_held_out(
    rule: Rule, fit: Fit, judge: labels.Labels, parts: Sequence[Fold], start: np.ndarray, passes: int,
    generator: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Each row predicted by a model whose whole selection, folds of its own included, never saw the row."""
    codes, omega, strange = judge.codes, judge.omega, judge.strange
    found: Any = None
    for rows, judged in parts:
        own = None if strange is None else strange._replace(outlier=strange.outlier[rows])
        inner = labels.Labels(rule, codes[rows], judge.K, omega[rows], judge.share, own)
        selected = iterate(
            rule, _within(fit, rows), inner.judge, split(codes[rows], len(rows), len(parts), generator), omega[rows],
            start=keep_some(codes[rows], start[rows]), passes=passes, keep=lambda w, c=codes[rows]: keep_some(c, w),
        )  # fmt: skip
        w = keep_some(codes[rows], weigh(rule, selected.verdict.h)[0])
        part = fit(rows[w > 0], (omega[rows] * w)[w > 0])(judged)
        found = np.empty((len(codes), *part.shape[1:])) if found is None else found
        found[judged] = part
    return found


def _within(fit: Fit, rows: np.ndarray) -> Fit:
    """The model on some rows, which are counted from 0."""

    def fit_some(some: np.ndarray, weights: np.ndarray) -> Predict:
        inner = fit(rows[some], weights)
        return lambda judged: inner(rows[judged])

    return fit_some


def _compare_accuracy(held: np.ndarray, plain: np.ndarray, codes: np.ndarray, omega: np.ndarray) -> tuple[float, float]:
    """The change of accuracy from plain to selected models, and its standard error."""
    change = (held.argmax(axis=1) == codes).astype(float) - (plain.argmax(axis=1) == codes)
    mean = float(omega @ change / omega.sum())
    return mean, float(np.sqrt(omega**2 @ (change - mean) ** 2) / omega.sum())


def _interval(verdict: Verdict, strange: density.Strangeness | None) -> tuple[float, float]:
    """The shortest set of shares with enough probability, from the first to the last of it."""
    support = verdict.about.support
    if not support.size:
        return verdict.share, verdict.share
    f, pf = labels.SHARES, np.exp(TEMPER * support)
    g, pg = np.zeros(1), np.ones(1)
    if strange is not None and strange.told:
        g, pg = density.SHARES, np.exp(TEMPER * strange.support)
    total = (g[:, None] + (1 - g[:, None]) * f).ravel()
    p, edges = np.histogram(total, bins=np.linspace(-0.005, 1.005, 102), weights=np.outer(pg, pf).ravel())
    order = np.argsort(-p)
    inside = order[: int(np.searchsorted(np.cumsum(p[order]), LEVEL * p.sum())) + 1]
    middle = 0.5 * (edges[1:] + edges[:-1])
    low, high = float(middle[inside.min()]), float(middle[inside.max()])
    return max(0.0, min(low, verdict.share)), min(1.0, max(high, verdict.share))


def _say(used: bool, told: bool, clump: np.ndarray, reason: str, low: float, high: float) -> str:
    """The sentences of a selection."""
    said = []
    if not used:
        said.append(f"Selection does not help here ({reason}): all rows count alike.")
    if clump.any():
        said.append(
            f"{clump.sum()} rows lie in a tight ball apart from the others: they may be a group of their own, or "
            "outliers that agree with each other. They are kept; `clump_` marks them, and a fit without them shows the "
            "alternative."
        )
    if not told:
        said.append(f"The share of outliers cannot be told: anything from {low:.0%} to {high:.0%} fits.")
    return " ".join(said)


def select_values(
    rule: Rule, fit: Fit, X: np.ndarray, targets: np.ndarray, omega: np.ndarray, *, folds: int, passes: int,
    generator: np.random.Generator, check: bool = True,
) -> Selection:  # fmt: skip
    """Which rows of a table with numbers as targets count; the arguments are those of `select_labels`."""
    n, judge = len(targets), values.Values(targets, omega)
    parts, clump = split(None, n, folds, generator), find_clump(np.column_stack([X, _scaled(targets)]), None)

    def keep(w: np.ndarray) -> np.ndarray:
        return w if w.sum() >= max(FEWEST, 0.3 * n) else np.ones(n)

    plain = predict(fit, parts, omega)
    tried = [
        iterate(rule, fit, judge.judge, parts, omega, start=start, passes=passes, keep=keep)
        for start in _starts(fit, X, targets, omega, generator)
    ]
    best = max(tried, key=lambda one: one.verdict.level)
    if best.verdict.level < tried[0].verdict.level + BETTER:
        best = tried[0]
    scale = float(np.median(np.abs(targets - plain)))
    ratio = float(np.median(np.abs(targets - best.predicted))) / max(scale, 1e-300)
    crowding = measure_crowding(X, best.verdict.outlier)
    signs = {
        "crowding": crowding, "ratio": ratio, "level": best.verdict.level, "first": tried[0].verdict.level,
        "noise": best.verdict.about.noise, "spread": best.verdict.about.spread,
    }  # fmt: skip
    used, reason = _judge_values(best, crowding, ratio, check)
    verdict = best.verdict if used else judge.judge(plain)
    low, high = _interval(verdict, None)
    told = used and high - low <= WIDEST
    outlier = np.where(clump, np.maximum(verdict.outlier, 0.5), verdict.outlier)
    sentence = _say(used, told, clump, reason, low, high)
    last = keep(weigh(rule, verdict.h)[0]) if used else np.ones(n)
    return Selection(
        last, outlier, verdict.share, (low, high), told, used, 1 - ratio, 0.0, clump, sentence, best.passes,
        best.outcome, signs,
    )  # fmt: skip


def _judge_values(best: Selected, crowding: float, ratio: float, check: bool) -> tuple[bool, str]:
    """Whether a selection of values is used, and why not."""
    if not check:
        return True, ""
    many = best.verdict.share >= MANY and best.verdict.about.spread < SIMILAR * best.verdict.about.noise
    if crowding > CROWDED and not many:
        return False, "the rows that do not fit lie next to each other, so that the model may be at fault"
    if ratio > FEWER:
        return False, "the other rows are predicted no better without the doubtful ones"
    if best.verdict.share > MOST:
        return False, "most rows would be outliers"
    return True, ""


def _scaled(y: np.ndarray) -> np.ndarray:
    return (y - np.median(y)) / max(float(np.std(y)), 1e-300)


def _starts(
    fit: Fit, X: np.ndarray, targets: np.ndarray, omega: np.ndarray, generator: np.random.Generator
) -> list[np.ndarray]:
    """All rows; those in the middle of the table; and the rows near models that were fitted to subsets."""
    n, d = X.shape
    distance = np.linalg.norm(X - np.median(X, axis=0), axis=1)
    found = [np.ones(n), (distance <= np.median(distance)).astype(float)]
    for _ in range(STARTS):
        near, rows = np.ones(n, bool), generator.permutation(n)[: max(2 * d + 2, n // 10)]
        for _ in range(CONCENTRATIONS):
            r = np.abs(targets - fit(rows, omega[rows])(np.arange(n)))
            near = r <= np.quantile(r, KEPT)
            rows = np.flatnonzero(near)
        found.append(near.astype(float))
    return found
