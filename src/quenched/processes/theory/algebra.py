r"""Kernel algebra: the response $G = (K^{-1} + \mathrm{diag}\,u)^{-1}$, dense or of low rank.

Both ways answer the same questions, so that everything above does not know which it is: the diagonal $g$, products
$G v$ and $(G \circ G) v$, the solution of $(1 - (G \circ G)\,\mathrm{diag}\,w)\, x = b$, and small blocks of $G$.

* `Exact` holds $K$ as a matrix: one Cholesky factorisation of $B = 1 + \sqrt u K \sqrt u$ for each response, $O(N^3)$;
  $K$ is never inverted, and $u = 0$ needs no case of its own.
* `LowRank` holds $K = F F^T + \mathrm{diag}\,E$ with $F$ of $r$ columns, in chunks of rows: $O(N r^2)$ for a response
  and for a product with $G \circ G$, whose matrix is never formed; memory $O(N r)$.

[malzahn2002, eq. (19)]
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx

from quenched.core import linear
from quenched.core.types import Array

SMALLEST = 1e-4
"""Precision times prior variance below which dividing by the precision would lose digits."""
ROUGH = 1e-4
"""A linear system that is solved no better than this is solved in single precision."""


class Response(eqx.Module):
    """The response at given precisions $u$."""

    @abc.abstractmethod
    def diagonal(self) -> Array:
        """$g_i = G_{ii}$."""

    @abc.abstractmethod
    def apply(self, v: Array) -> Array:
        r"""$G v$."""

    @abc.abstractmethod
    def square(self, v: Array) -> Array:
        r"""$(G \circ G) v$."""

    @abc.abstractmethod
    def solve(self, w: Array, b: Array, start: Array, accuracy: float) -> Array:
        r"""Solve $(1 - (G \circ G)\,\mathrm{diag}\,w)\, x = b$ for $w \ge 0$, from a guess."""

    @abc.abstractmethod
    def row(self, i: Array) -> Array:
        """Row `i` of $G$."""

    @abc.abstractmethod
    def matrix(self) -> Array:
        """All of $G$."""

    @abc.abstractmethod
    def weigh(self, kappa: Array) -> Any:
        """What `block` needs to know of the weights `kappa`, computed once for all blocks."""

    @abc.abstractmethod
    def block(self, C: Array, weighed: Any) -> tuple[Array, Array]:
        r"""$G_{CC}$ and $(G\,\mathrm{diag}(\kappa)\,G)_{CC}$ for a few rows `C`."""


class Algebra(eqx.Module):
    """The prior covariance of the rows, in a form that gives responses."""

    @abc.abstractmethod
    def prior(self) -> Array:
        """$K_{ii}$."""

    @abc.abstractmethod
    def response(self, u: Array) -> Response:
        """The response at precisions `u`."""


class Dense(Response):
    """A response as a matrix."""

    G: Array

    def diagonal(self) -> Array:
        """$g_i = G_{ii}$."""
        return jnp.diagonal(self.G)

    def apply(self, v: Array) -> Array:
        r"""$G v$."""
        return self.G @ v

    def square(self, v: Array) -> Array:
        r"""$(G \circ G) v$."""
        return jnp.square(self.G) @ v

    def solve(self, w: Array, b: Array, start: Array, accuracy: float) -> Array:
        """By LU factorisation."""
        del start, accuracy
        return jnp.linalg.solve(jnp.eye(b.shape[0]) - jnp.square(self.G) * w, b)

    def row(self, i: Array) -> Array:
        """Row `i` of $G$."""
        return self.G[i]

    def matrix(self) -> Array:
        """All of $G$."""
        return self.G

    def weigh(self, kappa: Array) -> Array:
        """The weights themselves."""
        return kappa

    def block(self, C: Array, weighed: Array) -> tuple[Array, Array]:
        """From the rows `C` of the matrix."""
        rows = self.G[C]
        return rows[:, C], (rows * weighed) @ rows.T


class Exact(Algebra):
    """The prior covariance as a matrix.

    Attributes:
        K: `[N, N]`.
    """

    K: Array

    def prior(self) -> Array:
        """$K_{ii}$."""
        return jnp.diagonal(self.K)

    def response(self, u: Array) -> Dense:
        r"""With $B = 1 + \sqrt u K \sqrt u$: $G = (1 - B^{-1})/\sqrt{u u^T}$ or, for $u$ near 0, $K - W^T W$.

        The first way costs half as much but divides by $u$; in the second $W = L^{-1} \sqrt u K$, $L L^T = B$.
        """
        r, one = jnp.sqrt(u), jnp.eye(u.shape[0])
        L = jnp.linalg.cholesky(one + r[:, None] * self.K * r, symmetrize_input=False)

        def fast(L: Array) -> Array:
            safe = jnp.where(r > 0, r, 1.0)
            return (one - linear.gram_of_lower(linear.inverse_factor(L))) / safe[:, None] / safe

        def careful(L: Array) -> Array:
            W = jax.scipy.linalg.solve_triangular(L, r[:, None] * self.K, lower=True)
            return self.K - W.T @ W

        return Dense(jax.lax.cond(jnp.min(u * jnp.diagonal(self.K)) > SMALLEST, fast, careful, L))


class Thin(Response):
    r"""A response as $G = H H^T + \mathrm{diag}\,d$, with $H$ in chunks `[chunks, rows, r]`."""

    H: Array
    d: Array

    def diagonal(self) -> Array:
        """$g_i = |h_i|^2 + d_i$."""
        return self._norms() + self.d

    def apply(self, v: Array) -> Array:
        r"""$H (H^T v) + d v$."""
        inner = _sum_chunks(lambda H, v: H.T @ v, self.H, v)
        return _over_chunks(lambda H, inner: H @ inner, self.H, inner) + self.d * v

    def square(self, v: Array) -> Array:
        r"""$\sum_j (h_i \cdot h_j)^2 v_j = h_i^T \big(\sum_j h_j v_j h_j^T\big) h_i$, and the diagonal."""
        low = _over_chunks(lambda H, inner: jnp.sum((H @ inner) * H, axis=1), self.H, self._gram(v))
        return low + (2 * self._norms() + self.d) * self.d * v

    def solve(self, w: Array, b: Array, start: Array, accuracy: float) -> Array:
        r"""By conjugate gradients on the symmetric form: $x = b + (G \circ G) \sqrt w z$, $(1 - S) z = \sqrt w b$.

        The iteration runs in single precision, which is half the work; a second one repairs what the first left over,
        as seen in double precision.
        """
        root = jnp.sqrt(w)
        rough = Thin(self.H.astype(jnp.float32), self.d)

        def symmetric(response: Thin, z: Array) -> Array:
            return z - root * response.square(root * z)

        operator = lx.FunctionLinearOperator(
            lambda z: symmetric(rough, z), jax.ShapeDtypeStruct(b.shape, b.dtype), lx.positive_semidefinite_tag
        )
        once = accuracy > ROUGH
        left = accuracy if once else float(accuracy**0.5)
        solver = lx.CG(left, left, max_steps=500)

        def approach(z: Array, rest: Array) -> Array:
            unit = jnp.max(jnp.abs(rest))  # the accuracy is meant relative to the largest component
            unit = jnp.where(unit > 0, unit, 1.0)
            found = lx.linear_solve(operator, rest / unit, solver, options={"y0": z / unit}, throw=False)
            return found.value * unit

        z = approach(root * start, root * b)
        if not once:
            z = z + approach(jnp.zeros_like(z), root * b - symmetric(self, z))
        return b + self.square(root * z)

    def row(self, i: Array) -> Array:
        r"""$H h_i$, and the diagonal."""
        low = _over_chunks(lambda H, h: H @ h, self.H, self._rows(i))
        return low.at[i].add(self.d[i])

    def matrix(self) -> Array:
        r"""$H H^T + \mathrm{diag}\,d$."""
        H = self.H.reshape(-1, self.H.shape[2])
        return H @ H.T + jnp.diag(self.d)

    def weigh(self, kappa: Array) -> tuple[Array, Array]:
        r"""$H^T \mathrm{diag}(\kappa) H$, and the weights."""
        return self._gram(kappa), kappa

    def block(self, C: Array, weighed: tuple[Array, Array]) -> tuple[Array, Array]:
        r"""$H_C H_C^T + d$, and with $X = d \kappa H_C H_C^T$: $H_C (H^T \kappa H) H_C^T + X + X^T + d^2 \kappa$."""
        H, d, (inner, kappa) = self._rows(C), self.d[C], weighed
        low = H @ H.T
        cross = (d * kappa[C])[:, None] * low
        return low + jnp.diag(d), H @ inner @ H.T + cross + cross.T + jnp.diag(jnp.square(d) * kappa[C])

    def _gram(self, v: Array) -> Array:
        return _sum_chunks(lambda H, v: H.T @ (v.astype(H.dtype)[:, None] * H), self.H, v)

    def _norms(self) -> Array:
        return _over_chunks(lambda H: jnp.sum(jnp.square(H), axis=1), self.H)

    def _rows(self, C: Array) -> Array:
        rows = self.H.shape[1]
        return self.H[C // rows, C % rows]


class LowRank(Algebra):
    r"""The prior covariance as $F F^T + \mathrm{diag}\,E$.

    Attributes:
        F: the factor in chunks of rows, `[chunks, rows, r]`; rows that fill up the last chunk are zero.
        E: variances that the factor leaves out, as if they were independent from row to row.
    """

    F: Array
    E: Array

    def prior(self) -> Array:
        """$|f_i|^2 + E_i$."""
        return _over_chunks(lambda F: jnp.sum(jnp.square(F), axis=1), self.F) + self.E

    def response(self, u: Array) -> Thin:
        r"""$H = a F L^{-T}$ with $a = 1/(1 + uE)$, $L L^T = 1 + F^T \mathrm{diag}(a u) F$, and $d = a E$."""
        a = 1 / (1 + u * self.E)
        inner = _sum_chunks(lambda F, u: F.T @ (u[:, None] * F), self.F, a * u)
        one = jnp.eye(self.F.shape[2])
        inverse = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(one + inner), one, lower=True)

        def whiten(chunk: tuple[Array, Array]) -> Array:  # by a product: N triangular solutions are slower
            F, a = chunk
            return (F @ inverse.T) * a[:, None]

        return Thin(jax.lax.map(whiten, (self.F, a.reshape(self.F.shape[:2]))), a * self.E)


def _over_chunks(function: Any, chunks: Array, *common: Array) -> Array:
    """A value for each row, chunk after chunk."""
    return jax.lax.map(lambda chunk: function(chunk, *common), chunks).reshape(-1)


def _sum_chunks(function: Any, chunks: Array, v: Array) -> Array:
    """A sum over all rows, chunk after chunk."""
    pairs = (chunks, v.reshape(chunks.shape[:2]))
    zero = jax.tree.map(jnp.zeros_like, jax.eval_shape(lambda p: function(p[0][0], p[1][0]), pairs))
    return jax.lax.scan(lambda total, pair: (total + function(*pair), None), zero, pairs)[0]
