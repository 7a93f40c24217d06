r"""The covariance of the rows before and after measurements: exact, or of low rank.

Measurements of precision $u$ turn the prior covariance $K$ into the response $G = (K^{-1} + \mathrm{diag}\,u)^{-1}$,
which is a covariance like any other; so one class serves for both. Either kind has the diagonal $g$, products $G v$ and
$(G \circ G) v$, the solution of $(1 - (G \circ G)\,\mathrm{diag}\,w)\, x = b$, rows, and small blocks.

* `Exact` is a matrix: one Cholesky factorisation of $B = 1 + \sqrt u G \sqrt u$ for each response, $O(N^3)$; nothing is
  inverted, and $u = 0$ needs no case of its own.
* `LowRank` is $F F^T + \mathrm{diag}\,E$ with $F$ of $r$ columns: $O(N r^2)$ for a response and for a product with
  $G \circ G$, whose matrix is never formed; memory $O(N r)$. Long sums run over chunks of rows.

**The factor.** Pivots are chosen greedily, each the row that is worst described by those before it (pivoted Cholesky),
among at most `CANDIDATES` rows; one pass over the table in chunks of rows then gives $F = K_{\cdot p} L^{-T}$, $L L^T =
K_{pp}$ (Nyström). The rest $K - F F^T$ is positive semi-definite and its diagonal is known exactly. Left out, it makes
the posterior variances too small; kept as if it were independent from row to row, about as much too large, since rows
close by tell something of it: so half of it is kept, as $E$. The response grows with $K$: both that and the truth lie
between the response to $F F^T$ and what the whole rest can add to it. So at given precisions $u$ a posterior variance
changes, with the whole diagonal $\bar E = 2E$, by at most

$$|\Delta G_{ii}| \le \Big(\sqrt{\bar E_i} + \sqrt{\textstyle g_i \sum_j u_j \bar E_j}\Big)^2 .$$

Matrices are NumPy arrays, or JAX arrays for derivatives and on an accelerator. [malzahn2002, eq. (19)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import numpy as np

from quenched.core import linear
from quenched.core.linear import namespace
from quenched.core.types import Array, InputError
from quenched.processes import kernels
from quenched.processes.model import Empirical, GaussianProcess

SMALLEST = 1e-4
"""Precision times variance below which dividing by the precision would lose digits."""
ROUGH = 1e-4
"""A linear system that is solved no better than this is solved in single precision."""
MOST_STEPS = 500
"""Steps of conjugate gradients."""
CHUNK = 4096
"""Rows of a long sum that are worked on at a time."""
CANDIDATES = 8192
"""Rows among which pivots are chosen; of a larger table, this many evenly spaced ones."""
KEPT = 0.5
"""Share of the variance the factor leaves out that is kept as independent from row to row."""
LAST_PIVOT = 1e-12
"""A pivot whose neglected variance is below this share of the largest prior variance ends the choice."""


class Exact(eqx.Module):
    """A covariance as a matrix `[N, N]`."""

    G: Array

    def diagonal(self) -> Array:
        """$g_i = G_{ii}$."""
        return namespace(self.G).diagonal(self.G)

    def respond(self, u: Array) -> Exact:
        r"""With $B = 1 + \sqrt u G \sqrt u$: $(1 - B^{-1})/\sqrt{u u^T}$ or, for $u$ near 0, $G - W^T W$.

        The first way costs half as much but divides by $u$; in the second $W = L^{-1} \sqrt u G$, $L L^T = B$.
        """
        xp = namespace(u)
        r, one = xp.sqrt(u), xp.eye(u.shape[0])
        L = linear.cholesky(one + r[:, None] * self.G * r)

        def divide(L: Array) -> Array:
            safe = xp.where(r > 0, r, 1.0)
            return (one - linear.invert_factored(L)) / safe[:, None] / safe

        def subtract(L: Array) -> Array:
            W = linear.solve_lower(L, r[:, None] * self.G)
            return self.G - W.T @ W

        return Exact(linear.choose(xp.min(u * self.diagonal()) > SMALLEST, divide, subtract, L))

    def apply(self, v: Array) -> Array:
        r"""$G v$."""
        return self.G @ v

    def square(self, v: Array) -> Array:
        r"""$(G \circ G) v$."""
        return self.G**2 @ v

    def solve(self, w: Array, b: Array, start: Array, accuracy: float) -> Array:
        r"""Solve $(1 - (G \circ G)\,\mathrm{diag}\,w)\, x = b$ for $w \ge 0$; no guess is needed."""
        del start, accuracy
        xp = namespace(self.G)
        return xp.linalg.solve(xp.eye(b.shape[0]) - self.G**2 * w, b)

    def rows(self, i: Array) -> Array:
        """Rows `i` of $G$."""
        return self.G[i]

    def weigh(self, kappa: Array) -> Array:
        """What `blocks` needs of the weights `kappa`, computed once for all blocks."""
        return kappa

    def blocks(self, C: Array, weighed: Array) -> tuple[Array, Array]:
        r"""$G_{CC}$ and $(G\,\mathrm{diag}(\kappa)\,G)_{CC}$ for few rows at a time, `C` of shape `[n, k]`."""
        rows = self.G[C]
        return namespace(rows).take_along_axis(rows, C[:, None], axis=2), (rows * weighed) @ rows.mT


class LowRank(eqx.Module):
    r"""A covariance $F F^T + \mathrm{diag}\,E$; a prior has in `E` what the factor leaves out, see the module."""

    F: Array  # [N, r]
    E: Array  # [N]

    def diagonal(self) -> Array:
        """$|f_i|^2 + E_i$."""
        return self._norms() + self.E

    def respond(self, u: Array) -> LowRank:
        r"""$a F L^{-T}$ with $a = 1/(1 + uE)$, $L L^T = 1 + F^T \mathrm{diag}(a u) F$, and $a E$."""
        a, one = 1 / (1 + u * self.E), namespace(u).eye(self.F.shape[1])
        inverse = linear.solve_lower(linear.cholesky(one + _weighted_gram(self.F, a * u)), one)
        return LowRank((self.F @ inverse.T) * a[:, None], a * self.E)  # N triangular solutions are slower

    def apply(self, v: Array) -> Array:
        r"""$F (F^T v) + E v$."""
        return self.F @ (self.F.T @ v) + self.E * v

    def square(self, v: Array) -> Array:
        r"""$\sum_j (f_i \cdot f_j)^2 v_j = f_i^T \big(\sum_j f_j v_j f_j^T\big) f_i$, and the diagonal."""
        inner = _weighted_gram(self.F, v)
        low = _over_chunks(lambda rows: ((self.F[rows] @ inner) * self.F[rows]).sum(axis=1), self.F)
        return low + (2 * self._norms() + self.E) * self.E * v

    def solve(self, w: Array, b: Array, start: Array, accuracy: float) -> Array:
        r"""By conjugate gradients on the symmetric form: $x = b + (G \circ G) \sqrt w z$, $(1 - S) z = \sqrt w b$.

        The iteration runs in single precision, which is half the work; further ones repair what it left over, as seen
        in double precision.
        """
        xp = namespace(b)
        root, rough = xp.sqrt(w), LowRank(self.F.astype(xp.float32), self.E)

        def symmetric(response: LowRank, z: Array) -> Array:
            return z - root * response.square(root * z)

        z, largest = root * start, float(xp.max(root * b))
        rest = root * b - symmetric(self, z)
        for _ in range(8):
            if not float(xp.max(xp.abs(rest))) > accuracy * largest:  # or not a number
                break
            z = z + _conjugate_gradients(lambda z: symmetric(rough, z), rest, max(accuracy, ROUGH))
            rest = root * b - symmetric(self, z)
        return b + self.square(root * z)

    def rows(self, i: Array) -> Array:
        r"""$F f_i$, and the diagonal."""
        low, xp = self.F[i] @ self.F.T, namespace(self.F)
        return low + xp.where(xp.arange(low.shape[1]) == i[:, None], self.E, 0.0)

    def weigh(self, kappa: Array) -> tuple[Array, Array]:
        r"""$F^T \mathrm{diag}(\kappa) F$, and the weights."""
        return _weighted_gram(self.F, kappa), kappa

    def blocks(self, C: Array, weighed: tuple[Array, Array]) -> tuple[Array, Array]:
        r"""$F_C F_C^T + E$, and with $X = E \kappa F_C F_C^T$: $F_C (F^T \kappa F) F_C^T + X + X^T + E^2 \kappa$."""
        F, E, (inner, kappa) = self.F[C], self.E[C], weighed
        low, one = F @ F.mT, namespace(F).eye(C.shape[1])
        cross = (E * kappa[C])[..., None] * low
        return low + E[..., None] * one, F @ inner @ F.mT + cross + cross.mT + (E**2 * kappa[C])[..., None] * one

    def _norms(self) -> Array:
        return _over_chunks(lambda rows: (self.F[rows] ** 2).sum(axis=1), self.F)


Covariance = Exact | LowRank


def _conjugate_gradients(product: Callable[[Array], Array], b: Array, accuracy: float) -> Array:
    """Solve a positive definite system until no component of what is left exceeds a share of the largest of `b`."""
    xp = namespace(b)
    x, rest, step = xp.zeros_like(b), b, b
    enough, square = accuracy * xp.max(xp.abs(b)), b @ b
    for _ in range(MOST_STEPS):
        there = product(step)
        length = square / (step @ there)
        x, rest, before = x + length * step, rest - length * there, square
        if not xp.max(xp.abs(rest)) > enough:  # or not a number
            break
        square = rest @ rest
        step = rest + square / before * step
    return x


def _chunks(rows: int) -> Iterator[slice]:
    return (slice(first, first + CHUNK) for first in range(0, rows, CHUNK))


def _over_chunks(function: Callable[[slice], Array], F: Array) -> Array:
    """A value for each row of a matrix, chunk after chunk."""
    return namespace(F).concatenate([function(rows) for rows in _chunks(F.shape[0])])


def _weighted_gram(F: Array, v: Array) -> Array:
    r"""$F^T \mathrm{diag}(v) F$, chunk after chunk."""
    v = v.astype(F.dtype)
    return sum(F[rows].T @ (v[rows, None] * F[rows]) for rows in _chunks(F.shape[0]))  # pyright: ignore[reportReturnType]


def factorise(law: Empirical, rule: GaussianProcess, rank: int) -> LowRank:
    """The prior covariance with a factor of `rank` columns, or of fewer if these describe everything."""
    N, X = law.rows, kernels.places_of(law, rule)
    candidates = np.rint(np.linspace(0, N - 1, min(N, CANDIDATES))).astype(int)
    order, *_ = kernels.choose_pivots(rule.kernel, X[candidates], min(rank, N, CANDIDATES), least=LAST_PIVOT)
    P = X[candidates[order]]
    A, F = kernels.evaluate(rule.kernel, P, P), np.empty((N, len(P)))
    L = linear.cholesky((A + A.T) / 2 + 1e-13 * np.trace(A) / len(P) * np.eye(len(P)))
    for rows in _chunks(N):
        F[rows] = linear.solve_lower(L, kernels.evaluate(rule.kernel, X[rows], P).T).T
    prior = kernels.evaluate(rule.kernel, X)
    neglected = prior - np.sum(F**2, axis=1)
    if not neglected.min() >= -kernels.NOT_POSITIVE * prior.max():
        raise InputError("The kernel must be positive definite at these rows, but it is not.")
    kept: Any = KEPT * np.maximum(neglected, 0.0)
    return LowRank(F, kept)  # pyright: ignore[reportArgumentType]


def variance_bound(prior: LowRank, g: Array, u: Array) -> Array:
    """By how much, at given precisions, the mean posterior variance may be off, at most."""
    E, xp = prior.E / KEPT, namespace(g)
    return ((xp.sqrt(E) + xp.sqrt(g * (u * E).sum())) ** 2).mean()
