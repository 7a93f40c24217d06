r"""Low-rank factors of the prior covariance, $K \approx F F^T + \mathrm{diag}\,E$, and what they leave out.

Pivots are chosen greedily, each the row that is worst described by those before it (pivoted Cholesky), among at most
`CANDIDATES` rows; one pass over the table in chunks of rows then gives $F = K_{\cdot p} L^{-T}$, $L L^T = K_{pp}$
(Nyström). The rest $K - F F^T$ is positive semi-definite and its diagonal is known exactly. Left out, it makes the
posterior variances too small; kept as if it were independent from row to row, about as much too large, since rows close
by tell something of it: so half of it is kept, as $E$. The response grows with $K$: both that and the truth lie between
the response to $F F^T$ and what the whole rest can add to it. So at given precisions $u$ a posterior variance changes,
with the whole diagonal $\bar E = 2E$, by at most

$$|\Delta G_{ii}| \le \Big(\sqrt{\bar E_i} + \sqrt{\textstyle g_i \sum_j u_j \bar E_j}\Big)^2 .$$
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from quenched.core import linear
from quenched.core.types import InputError
from quenched.processes import kernels
from quenched.processes.model import Empirical, GaussianProcess
from quenched.processes.theory.responses import LowRank, chunks

CANDIDATES = 8192
"""Rows among which pivots are chosen; of a larger table, this many evenly spaced ones."""
KEPT = 0.5
"""Share of the variance the factor leaves out that is kept as independent from row to row."""
SMALLEST = 1e-12
"""A pivot whose neglected variance is below this share of the largest prior variance ends the choice."""


class Factor(NamedTuple):
    """A factor and what it leaves out."""

    prior: LowRank
    neglected: np.ndarray  # [N] variance that the factor leaves out, never negative


def factorise(law: Empirical, rule: GaussianProcess, rank: int) -> Factor:
    """Choose pivots and compute the factor, of fewer than `rank` columns if these describe everything."""
    N, kernel = law.rows, rule.kernel
    candidates = np.rint(np.linspace(0, N - 1, min(N, CANDIDATES))).astype(int)
    X: Any = np.asarray(law.inputs) if callable(kernel) else np.arange(N)
    pivots = kernels.choose_pivots(kernels.columns_of(rule, X[candidates]), min(rank, N, CANDIDATES), least=SMALLEST)
    P = X[candidates[pivots.order]]

    def covariance(X1: Any) -> np.ndarray:
        return kernels.evaluate(kernel, X1, P) if callable(kernel) else np.asarray(kernel)[np.ix_(X1, P)]

    A, F = covariance(P), np.empty((N, len(P)))
    L = linear.cholesky((A + A.T) / 2 + 1e-13 * np.trace(A) / len(P) * np.eye(len(P)))
    for rows in chunks(N):
        F[rows] = linear.solve_lower(L, covariance(X[rows]).T).T
    prior = kernels.evaluate_diagonal(kernel, X) if callable(kernel) else np.diagonal(np.asarray(kernel))
    neglected = prior - np.sum(F**2, axis=1)
    if not neglected.min() >= -kernels.NOT_POSITIVE * prior.max():
        raise InputError("The kernel must be positive definite at these rows, but it is not.")
    neglected = np.maximum(neglected, 0.0)
    return Factor(LowRank(F, KEPT * neglected), neglected)  # pyright: ignore[reportArgumentType]


def variance_bound(factor: Factor, g: np.ndarray, u: np.ndarray) -> float:
    """By how much, at given precisions, the mean posterior variance may be off, at most."""
    E = factor.neglected
    return float(np.mean((np.sqrt(E) + np.sqrt(g * np.sum(u * E))) ** 2))
