r"""What a forecast tries on the data themselves: training on some of the rows, again and again.

*Subsets*: the error of random rows without repeats, judged by the others. *Refitting*: hyperparameters that were tuned
on all rows make leave-one-out look better than it is, the more of them there are and the fewer the rows;
cross-validation with hyperparameters tuned anew on each training part shows by how much. *Halving*: from each half of
the rows the error at all of them is forecast, which is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from quenched.core import linear
from quenched.processes import kernels, learner
from quenched.processes.learner.fit import train
from quenched.processes.model import Empirical, GaussianProcess
from quenched.processes.theory import continuation

LARGEST_DENSE, LARGEST_FALLBACK = 500, 2000
"""Rows up to which the kernel is a matrix in any case, and up to which it is one if no factor describes it."""
RANK = 1024
"""Columns of a factor, at most."""
NEGLECTED = 1e-3
r"""Prior variance that the factor may leave out, in units of the noise. The degrees of freedom $\mathrm{tr}\, K
(K + \sigma^2)^{-1}$ then lack at most this share of the rows, since $\lambda/(\lambda + \sigma^2) \le
\lambda/\sigma^2$."""
SHARP = 1e-6
"""A step of tuning that changes the evidence by less than this share is the last."""
LARGEST_TUNED = 1000
"""Rows on which hyperparameters are tuned, at most."""
PARTS = 4
"""Disjoint subsets of one order of the rows, at most; their mean is one independent number."""
FEWEST_ORDERS, MOST_ORDERS = 8, 512
"""Random orders of the rows on which the error of subsets rests."""
PATIENCE = 3e10
"""Operations, about, after which there are enough orders, however noisy their mean: some seconds."""
FOLDS = 5
"""Parts of the cross-validation."""
STEPS = 40
"""Steps of each tuning anew, after which the evidence is within 0.1 of its maximum on the sets that were looked at."""
HALVINGS = 3
"""Random halvings of the rows; each gives two forecasts."""

Advance = Callable[[int], None]
"""Told of the steps that were made."""


class Prior(NamedTuple):
    """The prior covariance of the rows, as a matrix or as a factor of it, and the targets."""

    K: Any  # [N, N], or None
    F: Any  # [N, r] with K = F F^T, or None
    y: np.ndarray  # [N], standardised
    s2: float  # noise variance
    jitter: float  # what was added to the diagonal of the matrix
    neglected: float  # mean prior variance that the factor leaves out

    def residuals(self, rows: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Targets of some rows minus their predictions from others."""
        y = self.y[rows]
        if self.K is not None:
            trained = train(self.K[np.ix_(rows, rows)], y, 1 / self.s2)
            return self.y[test] - self.K[np.ix_(test, rows)] @ trained.alpha
        F = self.F[rows]
        if len(rows) < F.shape[1]:
            return self.y[test] - self.F[test] @ (F.T @ train(F @ F.T, y, 1 / self.s2).alpha)
        L = linear.cholesky(F.T @ F + self.s2 * np.eye(F.shape[1]))  # the same with the smaller matrix
        return self.y[test] - self.F[test] @ linear.solve_factored(L, F.T @ y)

    def modes(self, rows: np.ndarray | slice = slice(None)) -> continuation.Modes:
        """Eigenvalues and eigenvectors for all rows or for some."""
        if self.K is not None:
            return continuation.modes_of_matrix(self.K[rows][:, rows], self.y[rows])
        return continuation.modes_of_factor(self.F[rows], self.y[rows])


def prior_of(law: Empirical, rule: GaussianProcess) -> Prior:
    """The prior covariance: a matrix for small tables, a factor that neglects next to nothing for others."""
    y, s2, N = np.asarray(law.standard(), float), float(rule.noise), law.rows
    X = kernels.places_of(law, rule)
    if N > LARGEST_DENSE:
        few = N <= LARGEST_FALLBACK
        _, F, left = kernels.choose_pivots(rule.kernel, X, min(N // 2 if few else N, RANK), enough=NEGLECTED * s2 * N)
        if left.mean() <= NEGLECTED * s2 or not few:
            return Prior(None, F, y, s2, 0.0, float(left.mean()))
    if kernels.recognise(rule.kernel, X) is not None:  # positive definite but for rounding
        return Prior(kernels.evaluate(rule.kernel, X, X), None, y, s2, 0.0, 0.0)
    n, jitter = kernels.numbers_of(law, rule)
    return Prior(n.K, None, y, s2, jitter, 0.0)


class Measured(NamedTuple):
    """The error of processes trained on random subsets of the rows."""

    error: float
    stderr: float  # with Student's factor, so that it can be read as a normal one
    draws: int


def measure_subsets(known: Prior, left_out: np.ndarray, m: int, accuracy: float, draw: Generator) -> Measured:
    """The error of `m` random rows, judged by the rows outside them, up to a relative accuracy."""
    from scipy.special import ndtri, stdtrit

    # What is averaged is by how much the squared residual of a row exceeds its leave-one-out residual, squared: the
    # rows to judge by then matter little, and m = N - 1 is exact.
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
        if (n := len(seen)) >= FEWEST_ORDERS:  # Student's factor is that at the ends of an 80% interval
            error, factor = float(np.mean(base) + np.mean(seen)), stdtrit(n - 1, 0.9) / ndtri(0.9)
            stderr = float(np.std(seen, ddof=1) / np.sqrt(n) * factor)
    return Measured(max(error, float(np.min(base[base > 0], initial=1e-300))), stderr, parts * len(seen))


def measure_anew(
    law: Empirical, start: GaussianProcess, tune: bool, m: int, count: int, draw: Generator
) -> tuple[float, float]:
    """The error of processes tuned and trained on `m` random rows, judged by the others, and its standard error."""
    errors = []
    for _ in range(count):
        order, rule = draw.permutation(law.rows), start
        if tune:
            weights = np.isin(np.arange(law.rows), order[: min(m, LARGEST_TUNED)]).astype(float)
            rule = learner.most_likely(law, start, weights=weights, tolerance=SHARP)
        errors.append(float(np.mean(prior_of(law, rule).residuals(order[:m], order[m:]) ** 2)))
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / np.sqrt(count)) if count > 1 else np.inf


def refit_ratio(
    law: Empirical, start: GaussianProcess, rule: GaussianProcess, draw: Generator, advance: Advance
) -> float:
    """The cross-validated error with hyperparameters tuned on each training part, over that with those of all rows.

    Each tuning begins where that of all rows began. From the optimum of all rows it would stay near it: the part left
    out had a say in which of several optima that is, and the ratio would be too low (1.11 instead of 1.17 on Abalone
    with 250 rows, where the test error is 1.15 of leave-one-out).
    """
    part, known = draw.permutation(law.rows) % FOLDS, prior_of(law, rule)
    anew = same = 0.0
    for k in range(FOLDS):
        rows, test = np.flatnonzero(part != k), np.flatnonzero(part == k)
        refitted = learner.most_likely(law, start, weights=(part != k).astype(float), steps=STEPS, tolerance=SHARP)
        anew += float(np.sum(prior_of(law, refitted).residuals(rows, test) ** 2))
        same += float(np.sum(known.residuals(rows, test) ** 2))
        advance(1)
    return anew / same


def backtest(known: Prior, error: float, draw: Generator, advance: Advance) -> float:
    """Forecast the error at all rows from each half of them: the mean of log(forecast / error)."""
    N, logs = len(known.y), []
    for _ in range(HALVINGS):
        order = draw.permutation(N)
        for half in (order[: N // 2], order[N // 2 :]):
            modes = known.modes(half)
            at = continuation.continue_curve(modes.spectrum, known.s2, np.array([N, len(half)]))
            here = continuation.leave_out(modes, known.s2).error
            logs.append(np.log(here * at.gcv[0] / at.gcv[1] / error))
        advance(1)
    return float(np.mean(logs))
