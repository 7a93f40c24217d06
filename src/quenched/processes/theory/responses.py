r"""The response $G = (K^{-1} + \mathrm{diag}\,u)^{-1}$ of a process to measurements of precision $u$: dense or thin.

Both kinds answer the same questions, so that nothing above depends on which it is: the diagonal $g$, products $G v$ and
$(G \circ G) v$, the solution of $(1 - (G \circ G)\,\mathrm{diag}\,w)\, x = b$, rows, and small blocks of $G$.

* `Exact` has $K$ as a matrix: one Cholesky factorisation of $B = 1 + \sqrt u K \sqrt u$ for each response, $O(N^3)$;
  $K$ is never inverted, and $u = 0$ needs no case of its own.
* `LowRank` has $K = F F^T + \mathrm{diag}\,E$ with $F$ of $r$ columns: $O(N r^2)$ for a response and for a product with
  $G \circ G$, whose matrix is never formed; memory $O(N r)$. Long sums run over chunks of rows.

Matrices are NumPy arrays, or JAX arrays for derivatives and on an accelerator. [malzahn2002, eq. (19)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import equinox as eqx

from quenched.core import linear
from quenched.core.linear import namespace
from quenched.core.types import Array

SMALLEST = 1e-4
"""Precision times prior variance below which dividing by the precision would lose digits."""
ROUGH = 1e-4
"""A linear system that is solved no better than this is solved in single precision."""
MOST_STEPS = 500
"""Steps of conjugate gradients."""
CHUNK = 4096
"""Rows of a long sum that are worked on at a time."""


class Dense(eqx.Module):
    """A response as a matrix."""

    G: Array

    def diagonal(self) -> Array:
        """$g_i = G_{ii}$."""
        return namespace(self.G).diagonal(self.G)

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


class Exact(eqx.Module):
    """The prior covariance as a matrix.

    Attributes:
        K: `[N, N]`.
    """

    K: Array

    def diagonal(self) -> Array:
        """$K_{ii}$."""
        return namespace(self.K).diagonal(self.K)

    def respond(self, u: Array) -> Dense:
        r"""With $B = 1 + \sqrt u K \sqrt u$: $G = (1 - B^{-1})/\sqrt{u u^T}$ or, for $u$ near 0, $K - W^T W$.

        The first way costs half as much but divides by $u$; in the second $W = L^{-1} \sqrt u K$, $L L^T = B$.
        """
        xp = namespace(u)
        r, one = xp.sqrt(u), xp.eye(u.shape[0])
        L = linear.cholesky(one + r[:, None] * self.K * r)

        def divide(L: Array) -> Array:
            safe = xp.where(r > 0, r, 1.0)
            return (one - linear.invert_factored(L)) / safe[:, None] / safe

        def subtract(L: Array) -> Array:
            W = linear.solve_lower(L, r[:, None] * self.K)
            return self.K - W.T @ W

        return Dense(linear.choose(xp.min(u * self.diagonal()) > SMALLEST, divide, subtract, L))


class Thin(eqx.Module):
    r"""A response as $G = H H^T + \mathrm{diag}\,d$, with $H$ `[N, r]`."""

    H: Array
    d: Array

    def diagonal(self) -> Array:
        """$g_i = |h_i|^2 + d_i$."""
        return self._norms() + self.d

    def apply(self, v: Array) -> Array:
        r"""$H (H^T v) + d v$."""
        return self.H @ (self.H.T @ v) + self.d * v

    def square(self, v: Array) -> Array:
        r"""$\sum_j (h_i \cdot h_j)^2 v_j = h_i^T \big(\sum_j h_j v_j h_j^T\big) h_i$, and the diagonal."""
        inner = weighted_gram(self.H, v)
        low = over_chunks(lambda rows: ((self.H[rows] @ inner) * self.H[rows]).sum(axis=1), self.H)
        return low + (2 * self._norms() + self.d) * self.d * v

    def solve(self, w: Array, b: Array, start: Array, accuracy: float) -> Array:
        r"""By conjugate gradients on the symmetric form: $x = b + (G \circ G) \sqrt w z$, $(1 - S) z = \sqrt w b$.

        The iteration runs in single precision, which is half the work; further ones repair what it left over, as seen
        in double precision.
        """
        xp = namespace(b)
        root, rough = xp.sqrt(w), Thin(self.H.astype(xp.float32), self.d)

        def symmetric(response: Thin, z: Array) -> Array:
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
        r"""$H h_i$, and the diagonal."""
        low, xp = self.H[i] @ self.H.T, namespace(self.H)
        return low + xp.where(xp.arange(low.shape[1]) == i[:, None], self.d, 0.0)

    def weigh(self, kappa: Array) -> tuple[Array, Array]:
        r"""$H^T \mathrm{diag}(\kappa) H$, and the weights."""
        return weighted_gram(self.H, kappa), kappa

    def blocks(self, C: Array, weighed: tuple[Array, Array]) -> tuple[Array, Array]:
        r"""$H_C H_C^T + d$, and with $X = d \kappa H_C H_C^T$: $H_C (H^T \kappa H) H_C^T + X + X^T + d^2 \kappa$."""
        H, d, (inner, kappa) = self.H[C], self.d[C], weighed
        low, one = H @ H.mT, namespace(H).eye(C.shape[1])
        cross = (d * kappa[C])[..., None] * low
        return low + d[..., None] * one, H @ inner @ H.mT + cross + cross.mT + (d**2 * kappa[C])[..., None] * one

    def _norms(self) -> Array:
        return over_chunks(lambda rows: (self.H[rows] ** 2).sum(axis=1), self.H)


class LowRank(eqx.Module):
    r"""The prior covariance as $F F^T + \mathrm{diag}\,E$.

    Attributes:
        F: the factor `[N, r]`.
        E: variances that the factor leaves out, as if they were independent from row to row.
    """

    F: Array
    E: Array

    def diagonal(self) -> Array:
        """$|f_i|^2 + E_i$."""
        return over_chunks(lambda rows: (self.F[rows] ** 2).sum(axis=1), self.F) + self.E

    def respond(self, u: Array) -> Thin:
        r"""$H = a F L^{-T}$ with $a = 1/(1 + uE)$, $L L^T = 1 + F^T \mathrm{diag}(a u) F$, and $d = a E$."""
        a, one = 1 / (1 + u * self.E), namespace(u).eye(self.F.shape[1])
        inverse = linear.solve_lower(linear.cholesky(one + weighted_gram(self.F, a * u)), one)
        return Thin((self.F @ inverse.T) * a[:, None], a * self.E)  # N triangular solutions are slower


Response = Dense | Thin
"""The response at given precisions $u$."""
Prior = Exact | LowRank
"""The prior covariance of the rows, in a form that gives responses."""


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


def chunks(rows: int) -> Iterator[slice]:
    """Slices of rows, at most `CHUNK` of them each."""
    return (slice(first, first + CHUNK) for first in range(0, rows, CHUNK))


def over_chunks(function: Callable[[slice], Array], F: Array) -> Array:
    """A value for each row of a matrix, chunk after chunk."""
    return namespace(F).concatenate([function(rows) for rows in chunks(F.shape[0])])


def weighted_gram(F: Array, v: Array) -> Array:
    r"""$F^T \mathrm{diag}(v) F$, chunk after chunk."""
    v = v.astype(F.dtype)
    return sum(F[rows].T @ (v[rows, None] * F[rows]) for rows in chunks(F.shape[0]))  # pyright: ignore[reportReturnType]
