"""The prior covariance of a table, as a matrix or as a factor of it: training on any of its rows, again and again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quenched.core import linear
from quenched.processes import kernels
from quenched.processes.learner.fit import train
from quenched.processes.model import Empirical, GaussianProcess

LARGEST_DENSE, LARGEST_FALLBACK = 500, 2000
"""Rows up to which the kernel is a matrix in any case, and up to which it is one if no factor describes it."""
RANK = 1024
"""Columns of a factor, at most."""
NEGLECTED = 1e-3
r"""Prior variance that the factor may leave out, in units of the noise. The degrees of freedom $\mathrm{tr}\, K
(K + \sigma^2)^{-1}$ then lack at most this share of the rows, since $\lambda/(\lambda + \sigma^2) \le
\lambda/\sigma^2$."""


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

    def residuals(self, rows: np.ndarray, test: np.ndarray) -> np.ndarray:
        """Targets of some rows minus their predictions from others."""
        y = self.y[rows]
        if self.K is not None:
            trained = train(self.K[np.ix_(rows, rows)], y, 1 / self.s2)
            return self.y[test] - self.K[np.ix_(test, rows)] @ trained.alpha
        assert self.F is not None
        F = self.F[rows]
        if len(rows) < F.shape[1]:
            return self.y[test] - self.F[test] @ (F.T @ train(F @ F.T, y, 1 / self.s2).alpha)
        L = linear.cholesky(F.T @ F + self.s2 * np.eye(F.shape[1]))  # the same with the smaller matrix
        return self.y[test] - self.F[test] @ linear.solve_factored(L, F.T @ y)


def prior_of(law: Empirical, rule: GaussianProcess) -> Prior:
    """The prior covariance: a matrix for small tables, a factor that neglects next to nothing for others."""
    y, s2 = np.asarray(law.standard(), float), float(rule.noise)
    scales, X = kernels.recognise(law, rule), np.asarray(law.inputs)
    if law.rows > LARGEST_DENSE:
        few = law.rows <= LARGEST_FALLBACK
        columns = kernels.columns_of(rule, X if callable(rule.kernel) else np.arange(law.rows), scales)
        most = min(law.rows // 2 if few else law.rows, RANK)
        found = kernels.choose_pivots(columns, most, enough=NEGLECTED * s2 * law.rows)
        neglected = float(found.left.mean())
        if neglected <= NEGLECTED * s2 or not few:
            return Prior(None, found.F, y, s2, 0.0, neglected)
    if scales is not None:
        return Prior(scales.evaluate(X, X), None, y, s2, 0.0, 0.0)
    n, jitter = kernels.numbers_of(law, rule)
    return Prior(np.asarray(n.K), None, y, s2, jitter, 0.0)
