r"""Low-rank factors of the prior covariance, $K \approx F F^T + \mathrm{diag}\,E$, and what they leave out.

Pivots are chosen greedily, each the row that is worst described by those before it (pivoted Cholesky), among at most
`CANDIDATES` rows; one pass over the table in chunks of rows then gives $F = K_{\cdot p} L^{-T}$, $L L^T = K_{pp}$
(Nyström). The rest $K - F F^T$ is positive semi-definite and its diagonal is known exactly. Left out, it makes the
posterior variances too small; kept as if it were independent from row to row, about as much too large, since rows close
by know something of it: so half of it is kept, as $E$. The response grows with $K$: both that and the truth lie between
the response to $F F^T$ and what the whole rest can add to it. So at given precisions $u$ a posterior variance changes,
with the whole diagonal $\bar E = 2E$, by at most

$$|\Delta G_{ii}| \le \Big(\sqrt{\bar E_i} + \sqrt{\textstyle g_i \sum_j u_j \bar E_j}\Big)^2 .$$
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import Array, InputError
from quenched.processes.model import Empirical, GaussianProcess
from quenched.processes.theory.algebra import LowRank

CANDIDATES = 8192
"""Rows among which pivots are chosen; of a larger table, so many evenly spaced ones."""
CHUNK = 4096
"""Rows that are worked on at a time."""
KEPT = 0.5
"""Share of the variance the factor leaves out that is kept as independent from row to row."""
SMALLEST = 1e-12
"""A pivot whose neglected variance is below this share of the largest prior variance ends the choice."""


class Factor(NamedTuple):
    """A factor and what it leaves out."""

    algebra: LowRank
    neglected: np.ndarray  # [N] variance that the factor leaves out, never negative

    @property
    def rank(self) -> int:
        """Columns of the factor."""
        return self.algebra.F.shape[2]


def factorise(law: Empirical, rule: GaussianProcess, rank: int) -> Factor:
    """Choose pivots and compute the factor.

    Args:
        law: the world.
        rule: the student.
        rank: columns at most; fewer if they describe everything.

    Raises:
        InputError: if the kernel is not positive definite or not finite.
    """
    N = law.rows
    matrix = None if callable(rule.kernel) else jnp.asarray(rule.kernel)
    X = jnp.arange(N) if matrix is not None else jnp.asarray(law.inputs)
    rank = min(rank, N, CANDIDATES)
    candidates = np.rint(np.linspace(0, N - 1, min(N, CANDIDATES))).astype(int)
    order, left = _pivots(rule.kernel if matrix is None else matrix, X[candidates], rank)
    left = np.asarray(left)
    if not np.all(np.isfinite(left)):
        raise InputError("The kernel must give finite numbers at these rows, but it does not.")
    good = int(np.sum(np.cumprod(left > SMALLEST * left[0]))) if left[0] > 0 else 0
    if good == 0:
        raise InputError("The kernel must give positive variances at these rows, but it does not.")
    rows = -(-N // -(-N // CHUNK))  # chunks of equal length, none of them mostly empty
    padded = np.concatenate([np.arange(N), np.zeros(-N % rows, int)]).reshape(-1, rows)
    F, neglected = _factor(
        rule.kernel if matrix is None else matrix, X, X[candidates[np.asarray(order)[:good]]],
        padded, np.arange(padded.size).reshape(padded.shape) < N,
    )  # fmt: skip
    neglected = np.asarray(neglected).reshape(-1)[:N]
    if neglected.min() < -1e-6 * left[0]:
        raise InputError("The kernel must be positive definite at these rows, but it is not.")
    neglected = np.maximum(neglected, 0.0)
    return Factor(LowRank(F, jnp.asarray(KEPT * np.append(neglected, np.zeros(padded.size - N)))), neglected)


def variance_bound(factor: Factor, g: np.ndarray, u: np.ndarray) -> float:
    """By how much, at given precisions, the mean posterior variance may be off, at most."""
    E = factor.neglected
    return float(np.mean(np.square(np.sqrt(E) + np.sqrt(g * np.sum(u * E)))))


def _columns(kernel: Any, X1: Array, X2: Array) -> Array:
    """Entries of the prior covariance."""
    return kernel[X1][:, X2] if eqx.is_array(kernel) else kernel(X1, X2)


def _diagonal(kernel: Any, X: Array) -> Array:
    return kernel[X, X] if eqx.is_array(kernel) else kernel(X)


@functools.partial(jax.jit, static_argnames="rank")
def _pivots(kernel: Any, X: Array, rank: int) -> tuple[Array, Array]:
    """The first `rank` pivots of the pivoted Cholesky factorisation, and the variance each had left."""
    prior = _diagonal(kernel, X)

    def choose(j: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        F, left, order, pivot_left = state
        p = jnp.argmax(left)
        column = _columns(kernel, X, X[p][None])[:, 0] - F @ F[p]
        column = column / jnp.sqrt(jnp.maximum(left[p], 1e-300))
        column = jnp.where(left[p] > SMALLEST * prior.max(), column, 0.0)
        after = jnp.maximum(left - jnp.square(column), 0.0).at[p].set(0.0)
        return F.at[:, j].set(column), after, order.at[j].set(p), pivot_left.at[j].set(left[p])

    start = jnp.zeros((X.shape[0], rank)), prior, jnp.zeros(rank, int), jnp.zeros(rank)
    _, _, order, left = jax.lax.fori_loop(0, rank, choose, start)
    return order, left


@jax.jit
def _factor(kernel: Any, X: Array, pivots: Array, padded: Array, real: Array) -> tuple[Array, Array]:
    """The factor in chunks `[chunks, rows, r]`, and the neglected variances."""
    P = _columns(kernel, pivots, pivots)
    L = jnp.linalg.cholesky((P + P.T) / 2 + 1e-13 * jnp.trace(P) / P.shape[0] * jnp.eye(P.shape[0]))

    def chunk(arguments: tuple[Array, Array]) -> tuple[Array, Array]:
        index, is_row = arguments
        rows = X[index]
        F = jax.scipy.linalg.solve_triangular(L, _columns(kernel, pivots, rows), lower=True).T
        F = F * is_row[:, None]
        return F, _diagonal(kernel, rows) * is_row - jnp.sum(jnp.square(F), axis=1)

    return jax.lax.map(chunk, (padded, real))
