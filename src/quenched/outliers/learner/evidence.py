r"""What a table tells of the share of outliers among classes, and whether another selection explains it as well.

The share is judged on rows that the centres were not fitted to: few rows in many columns can always be selected so that
they agree, and such centres explain no other row. With $r$ the logarithm of how much denser informative rows are there
than outliers, the support of a share $f$ is

$$\sum_\mu \ln\big[ (1 - f)\, e^{r_\mu} + f \big] .$$
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from quenched.core.types import Outcome
from quenched.outliers.learner.doubts import find_clump
from quenched.outliers.learner.fit import Fitted
from quenched.outliers.learner.goodness import JUDGED, Goodness, Places, find_change, find_places, judge
from quenched.outliers.learner.select import APART, CLOSE, TEMPER, shortest, split

FOLDS = 5
"""By which the share is judged."""
SHARES = np.linspace(0.0, 1.0, 101)
"""Shares that are tried."""
MIDDLE = 0.5
"""The share of each class's rows, those nearest to its median, from which the other selection begins."""

FitSome = Callable[[np.ndarray, Any], Fitted]
"""From which rows, and where to begin (None: as always), to a fit."""


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What is to be said of a fit to classes.

    Attributes:
        interval: of the share, 80% of the probability.
        likely: the share of the largest support, rows judged out of fold.
        clump: rows in a tight ball of one label, apart from all others `[n]`.
        alternative: the probabilities by another selection that explains the table about as well `[n]`, or None.
        weight: the probability of the alternative, one half at most.
        goodness: how well the model describes the rows.
    """

    interval: tuple[float, float]
    likely: float
    clump: np.ndarray
    alternative: np.ndarray | None
    weight: float
    goodness: Goodness = dataclasses.field(default_factory=Goodness)

    def mix(self, outlier: np.ndarray) -> np.ndarray:
        """The probabilities of a fit with those of the alternative; in a ball nothing tells."""
        other = outlier if self.alternative is None else self.alternative
        return np.where(self.clump, 0.5, (1 - self.weight) * outlier + self.weight * other)


def weigh_evidence(
    fit: FitSome, X: np.ndarray, y: np.ndarray, omega: np.ndarray, fitted: Fitted, *, share: float | None,
    generator: np.random.Generator,
) -> Evidence:  # fmt: skip
    """Judge a fit.

    Args:
        fit: the learner, as it was used.
        X: rows `[n, N]`.
        y: labels `[n]`.
        omega: positive weights `[n]`.
        fitted: the fit to all rows.
        share: of outliers if it is given, None if it was estimated.
        generator: of the folds.
    """
    codes = np.searchsorted(fitted.classes, y)
    deviation = X.std(axis=0)
    Z = ((X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))[:, deviation > 0]
    clump = find_clump(Z, codes)
    enough = np.bincount(codes[~clump], minlength=len(fitted.classes)).min() >= 2 and np.ptp(Z[~clump], axis=0).any()
    if clump.any() and enough:
        outlier = np.ones(len(X))
        rest = np.flatnonzero(~clump)
        outlier[rest] = fit(rest, None).outlier_probability(X[rest], y[rest])
        alternative, weight = outlier, 0.5
    else:
        clump &= enough
        alternative, weight = _find_other(fit, Z, X, y, codes, omega, fitted)
    if share is not None:
        return Evidence((share, share), share, clump, alternative, weight)
    interval, likely, goodness = _find_share(fit, X, y, codes, omega, generator)
    some = generator.permutation(len(X))[:JUDGED]
    goodness = goodness._replace(change=find_change(fitted, X[some], codes[some], omega[some], generator))
    low, high = (min(interval[0], fitted.outlier_fraction), max(interval[1], fitted.outlier_fraction))
    if clump.any():
        high = min(1.0, high + float(omega[clump].sum() / omega.sum()))
    return Evidence((low, high), likely, clump, alternative, weight, goodness)


def _level(fitted: Fitted, X: np.ndarray, y: np.ndarray, codes: np.ndarray, omega: np.ndarray) -> float:
    """The log-likelihood of all rows, up to a constant that two fits share."""
    N, scale = X.shape[1], fitted.gamma / fitted.spread
    outer = fitted.lengths(X)
    outside = 0.5 * N * np.log(scale) - 0.5 * scale * outer - fitted.volume
    r = fitted.log_ratios(X)[np.arange(len(X)), codes]
    return float(omega @ (outside + np.logaddexp(r, fitted.eta) - np.logaddexp(0.0, fitted.eta)))


def _find_other(
    fit: FitSome, Z: np.ndarray, X: np.ndarray, y: np.ndarray, codes: np.ndarray, omega: np.ndarray, fitted: Fitted
) -> tuple[np.ndarray | None, float]:
    """The end of a search from the rows in the middle of each class, if it is another and about as likely."""
    middle = []
    for k in range(len(fitted.classes)):
        own = np.flatnonzero(codes == k)
        distance = np.square(Z[own] - np.median(Z[own], axis=0)).sum(axis=1)
        middle.append(own[np.argsort(distance, kind="stable")[: max(2, round(MIDDLE * len(own)))]])
    rows = np.sort(np.concatenate(middle))
    if np.all(X[rows] == X[rows[0]]):
        return None, 0.0
    other = fit(np.arange(len(X)), fit(rows, None))
    if any(one.outcome != Outcome.converged for one in (fitted, other)):
        return None, 0.0
    mine, theirs = fitted.outlier_probability(X, y), other.outlier_probability(X, y)
    behind = TEMPER * (_level(fitted, X, y, codes, omega) - _level(other, X, y, codes, omega))
    apart = float(omega @ np.abs(mine - theirs) / omega.sum())
    if apart < APART or behind >= CLOSE:
        return None, 0.0
    return theirs, min(0.5, float(expit(-behind)))


def _find_share(
    fit: FitSome, X: np.ndarray, y: np.ndarray, codes: np.ndarray, omega: np.ndarray, generator: np.random.Generator
) -> tuple[tuple[float, float], float, Goodness]:
    """Interval of the share, the likeliest one, and whether the model fits, by rows out of fold; anything if few."""
    if np.bincount(codes).min() < 4:
        return (0.0, 1.0), float("nan"), Goodness()
    r, places = np.empty(len(X)), Places(*np.zeros((4, len(X))))
    folds, asked = split(codes, len(X), FOLDS, generator), generator.permutation(len(X)) < JUDGED
    for rows, judged in folds:
        if np.all(X[rows] == X[rows[0]]):
            return (0.0, 1.0), float("nan"), Goodness()
        found, some = fit(rows, None), judged[asked[judged]]
        r[judged] = found.log_ratios(X[judged])[np.arange(len(judged)), codes[judged]]
        for mine, theirs in zip(places, find_places(found, X[some], codes[some], generator), strict=True):
            mine[some] = theirs
    with np.errstate(divide="ignore"):
        support = np.logaddexp(np.log1p(-SHARES)[:, None] + r, np.log(SHARES)[:, None]) @ omega
    interval = shortest(SHARES, np.exp(TEMPER * (support - support.max())))
    return (
        interval,
        float(SHARES[int(np.argmax(support))]),
        judge(Places(*(one[asked] for one in places)), omega[asked]),
    )
