r"""What a forecast tries on the data itself before it speaks of more.

*Tuning*: first on few rows, from there on more. *Refitting*: hyperparameters that were tuned on all rows make
leave-one-out look better than it is, the more of them there are and the fewer the rows; cross-validation with
hyperparameters tuned anew on each training part says by how much. *Halving*: from each half of the rows the error at
all of them is forecast, which is known. *Subsets*: below the rows at hand nothing needs to be forecast; processes
trained on random subsets of them, without repeats, are judged by the other rows. *Tuning anew* does the same with
hyperparameters of the subset's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from quenched.core.types import InputError
from quenched.processes import learner, squared_exponential
from quenched.processes.model import Empirical, GaussianProcess, declared
from quenched.processes.theory import continuation

FOLDS = 5
"""Parts of the cross-validation."""
STEPS = 40
"""Steps of each tuning anew, after which the evidence is within 0.1 of its maximum on the sets that were looked at."""
SHARP = 1e-6
"""A step of tuning that changes the evidence by less than this share is the last."""
HALVINGS = 3
"""Random halvings of the rows; each gives two forecasts."""
FIRST_TUNED, LARGEST_TUNED = 400, 1000
"""Rows on which tuning begins and on which refitting is tried, and on which tuning ends, at most."""
LARGEST_DENSE, LARGEST_FALLBACK = 500, 2000
"""Rows up to which the kernel is a matrix in any case, and up to which it is one if no factor describes it."""
RANK = 1024
"""Columns of a factor, at most."""
NEGLECTED = 1e-3
r"""Prior variance that the factor may leave out, in units of the noise. The degrees of freedom $\mathrm{tr}\, K
(K + \sigma^2)^{-1}$ then lack at most this share of the rows, since $\lambda/(\lambda + \sigma^2) \le
\lambda/\sigma^2$."""
NOT_POSITIVE = 1e-6
"""Share of the largest prior variance by which rounding may make another one negative."""
PARTS = 4
"""Disjoint subsets of one order of the rows, at most; their mean is one independent number."""
FEWEST_ORDERS, MOST_ORDERS = 8, 512
"""Random orders of the rows on which the error of subsets rests."""
PATIENCE = 3e10
"""Operations, about, after which there are enough orders, however noisy their mean: some seconds."""


class Prior(NamedTuple):
    """The prior covariance of the rows, as a matrix or as a factor of it, and the targets.

    Attributes:
        K: `[N, N]`, or None.
        F: `[N, r]` with $K = F F^T$, or None.
        y: `[N]`, standardised.
        s2: noise variance.
        jitter: what was added to the diagonal of the matrix.
        neglected: mean prior variance that the factor leaves out.
    """

    K: np.ndarray | None
    F: np.ndarray | None
    y: np.ndarray
    s2: float
    jitter: float
    neglected: float

    def modes(self, rows: np.ndarray | None = None) -> continuation.Modes:
        """Eigenvalues and eigenvectors for all rows or for some."""
        y = self.y if rows is None else self.y[rows]
        if self.K is not None:
            return continuation.modes(self.K if rows is None else self.K[np.ix_(rows, rows)], y)
        assert self.F is not None
        return continuation.modes_of_factor(self.F if rows is None else self.F[rows], y)

    def residuals(self, train: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Targets of some rows minus their predictions from others."""
        from scipy.linalg import solve

        def solved(A: np.ndarray, b: np.ndarray) -> np.ndarray:
            A.flat[:: len(A) + 1] += self.s2
            return solve(A, b, assume_a="pos", overwrite_a=True, check_finite=False)

        y = self.y[train]
        if self.K is not None:
            return self.y[test] - self.K[np.ix_(test, train)] @ solved(self.K[np.ix_(train, train)], y)
        assert self.F is not None
        F = self.F[train]
        weights = F.T @ solved(F @ F.T, y) if len(train) < F.shape[1] else solved(F.T @ F, F.T @ y)
        return self.y[test] - self.F[test] @ weights


def prior(law: Empirical, rule: GaussianProcess) -> Prior:
    """The prior covariance: a matrix for small tables, a factor that neglects next to nothing for others."""
    y, s2 = np.asarray(law.standard(), float), float(rule.noise)
    if law.rows > LARGEST_DENSE:
        few = law.rows <= LARGEST_FALLBACK
        F, neglected = _factorise(law, rule, min(law.rows // 2 if few else law.rows, RANK))
        if neglected <= NEGLECTED * s2 or not few:
            return Prior(None, F, y, s2, 0.0, neglected)
    scales = squared_exponential.recognise(law, rule)
    if scales is not None:
        X = np.asarray(law.inputs)
        return Prior(scales.of(X, X), None, y, s2, 0.0, 0.0)
    n, jitter = declared(law, rule)
    return Prior(np.asarray(n.K), None, y, s2, jitter, 0.0)


def _factorise(law: Empirical, rule: GaussianProcess, most: int) -> tuple[np.ndarray, float]:
    """Pivoted Cholesky factorisation until what it neglects is small: the factor `[N, r]`, and the rest's mean.

    Raises:
        InputError: if the kernel is not positive definite or not finite.
    """
    column, left = _columns(law, rule)
    F, largest, rank = np.empty((most, law.rows)), float(left.max()), 0
    while rank < most and left.sum() > NEGLECTED * float(rule.noise) * law.rows:
        p = int(np.argmax(left))
        F[rank] = (column(p) - F[:rank, p] @ F[:rank]) / np.sqrt(left[p])
        left = left - F[rank] ** 2
        left[p], rank = 0.0, rank + 1
        if not left.min() >= -NOT_POSITIVE * largest:
            hint = " (tinygp's Matern kernels need distance=L2Distance() for several inputs)" * callable(rule.kernel)
            raise InputError(f"The kernel must be finite and positive definite at these rows, but it is not{hint}.")
        left = np.maximum(left, 0.0)
    return F[:rank].T, float(left.mean())


def _columns(law: Empirical, rule: GaussianProcess) -> tuple[Callable[[int], np.ndarray], np.ndarray]:
    """A function that gives one column of the prior covariance, and its diagonal."""
    X, kernel = np.asarray(law.inputs), rule.kernel
    if not callable(kernel):
        K = np.asarray(kernel)
        return (lambda p: K[p]), np.diagonal(K).copy()
    scales = squared_exponential.recognise(law, rule)
    if scales is not None:
        return (lambda p: scales.of(X[p : p + 1], X)[0]), np.full(law.rows, scales.amplitude)
    diagonal = learner.covariances(kernel, X, X[:1])[0].copy()
    return (lambda p: learner.covariances(kernel, X[p : p + 1], X)[1][0]), diagonal


# Tuning ---------------------------------------------------------------------------------------------------------------


def subset(law: Empirical, draw: np.random.Generator, most: int) -> Empirical:
    """Random rows of a table, in its units and order; all of them if there are no more."""
    return law if law.rows <= most else rows_of(law, np.sort(draw.permutation(law.rows)[:most]))


def rows_of(law: Empirical, rows: np.ndarray) -> Empirical:
    """Some rows of a table, in its units."""
    return Empirical(np.asarray(law.inputs)[rows], np.asarray(law.targets)[rows], *law.units())


def refit_ratio(
    law: Empirical,
    start: GaussianProcess,
    rule: GaussianProcess,
    draw: np.random.Generator,
    advance: Callable[[int], None],
) -> float:
    """The cross-validated error with hyperparameters tuned on each training part, over that with those of all rows.

    Each tuning begins where that of all rows began. From the optimum of all rows it would stay near it: the part left
    out had a say in which of several optima that is, and the ratio would be too low (1.11 instead of 1.17 on Abalone
    with 250 rows, where the test error is 1.15 of leave-one-out).

    Args:
        law: the world.
        start: where tuning begins.
        rule: tuned on all rows.
        draw: chooses the parts.
        advance: is told of each part done.
    """
    part = draw.permutation(law.rows) % FOLDS
    anew = same = 0.0
    for k in range(FOLDS):
        refitted = learner.most_likely(law, start, weights=(part != k).astype(float), steps=STEPS, tolerance=SHARP)
        anew += _held_out(law, refitted, part == k)
        same += _held_out(law, rule, part == k)
        advance(1)
    return anew / same


def _held_out(law: Empirical, rule: GaussianProcess, test: np.ndarray) -> float:
    """The summed squared error on some rows of what was learned from the others."""
    return float(np.sum(prior(law, rule).residuals(np.flatnonzero(~test), np.flatnonzero(test)) ** 2))


# Errors that can be looked at -----------------------------------------------------------------------------------------


def backtest(known: Prior, error: float, draw: np.random.Generator, advance: Callable[[int], None]) -> float:
    """Forecast the error at all rows from each half of them, and compare with what it is.

    Args:
        known: the prior covariance and targets.
        error: the leave-one-out error of all rows.
        draw: chooses the halves.
        advance: is told of each halving done.

    Returns:
        The mean of log(forecast / error); positive where forecasts were too high.
    """
    N, logs = len(known.y), []
    for _ in range(HALVINGS):
        order = draw.permutation(N)
        for half in (order[: N // 2], order[N // 2 :]):
            modes = known.modes(half)
            at = continuation.curve(modes.spectrum, known.s2, np.array([N, len(half)]))
            here = continuation.left_out(modes, known.s2).error
            logs.append(np.log(here * at.gcv[0] / at.gcv[1] / error))
        advance(1)
    return float(np.mean(logs))


class Measured(NamedTuple):
    """The error of processes trained on random subsets of the rows, at one size or at many."""

    error: Any
    stderr: Any  # with Student's factor, so that it can be read as a normal one
    draws: Any


def subsets(known: Prior, left_out: np.ndarray, m: int, accuracy: float, draw: np.random.Generator) -> Measured:
    r"""The error of `m` random rows, judged by the rows outside them, up to a relative accuracy.

    What is averaged is by how much the squared residual of a row exceeds its leave-one-out residual, squared: the rows
    to judge by then matter little, and $m = N - 1$ is exact.

    Args:
        known: the prior covariance and targets.
        left_out: leave-one-out residuals `[N]`.
        m: how many rows, from 1 to $N - 1$.
        accuracy: the relative standard error at which there are enough.
        draw: chooses the rows.
    """
    N, base, seen = len(left_out), left_out**2, []
    parts, rank = min(PARTS, N // m), min(m, N if known.F is None else known.F.shape[1])
    most = int(np.clip(PATIENCE / (parts * rank * (m * rank + N)), FEWEST_ORDERS, MOST_ORDERS))
    error, stderr = np.nan, np.inf
    while len(seen) < most and not (len(seen) >= FEWEST_ORDERS and stderr <= accuracy * error):
        order, more = draw.permutation(N), []
        for k in range(parts):
            test = np.delete(order, slice(k * m, (k + 1) * m))
            more.append(np.mean(known.residuals(order[k * m : (k + 1) * m], test) ** 2 - base[test]))
        seen.append(np.mean(more))
        if len(seen) >= FEWEST_ORDERS:
            error, stderr = float(np.mean(base) + np.mean(seen)), _stderr(seen)
    return Measured(max(error, float(np.min(base[base > 0], initial=1e-300))), stderr, parts * len(seen))


def _stderr(values: Any) -> float:
    """The standard error of a mean, widened as Student says, at the ends of an 80% interval."""
    from scipy import stats

    n = len(values)
    return float(np.std(values, ddof=1) / np.sqrt(n) * stats.t.ppf(0.9, n - 1) / stats.norm.ppf(0.9))


def anew(
    law: Empirical, start: GaussianProcess, tune: bool, m: int, count: int, draw: np.random.Generator
) -> tuple[float, float]:
    """The error of processes tuned and trained on `m` random rows, judged by the others, and its standard error."""
    errors = []
    for _ in range(count):
        order, rule = draw.permutation(law.rows), start
        if tune:
            weights = np.isin(np.arange(law.rows), order[: min(m, LARGEST_TUNED)]).astype(float)
            rule = learner.most_likely(law, start, weights=weights, tolerance=SHARP)
        errors.append(float(np.mean(prior(law, rule).residuals(order[:m], order[m:]) ** 2)))
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / np.sqrt(count)) if count > 1 else np.inf
