r"""What a closure leaves out: rows that are met again and again, in turn.

A data set differs from the average one by $\delta_i = s_i/\sigma^2 - u_i$ at each row. Everything that happens at one
row is summed up in $\tau_i = \delta_i/(1 + \delta_i g_i)$, and the cavity closure is the choice of $u$ with
$\langle \tau_i \rangle = 0$. The posterior covariance of a data set is then the sum over all walks

$$\Gamma = G - G \tau G + G \tau G \tau G - \ldots, \qquad \text{no row twice in succession.}$$

In the average every row of a walk must be met at least twice. The closure sums up the walks in which the returns to a
row are nested in each other; left out are those in which they cross, as in $j\,k\,j\,k$. To leading order these are two
passes along the same rows in the same order, $j_1 \ldots j_n\,j_1 \ldots j_n$, where the rows in between make up a
ladder, and a third meeting at the first or the last row. With $v = \langle \tau^2 \rangle$,
$c = \langle \tau^3 \rangle/v$, $w = v/(1 + v g^2)$ and $M = (G \circ G)\,w$ they change the response by
$\Delta G = G (Y + w\,\Delta g) G$, where

$$L = w\,(1 - M)^{-1} (G \circ G)\, w, \qquad Y_{jk} = L_{jk} G_{jk} (1 + c_j c_k G_{jk}^2), \qquad
  Y_{jj} = -c_j \sum_{k \ne j} L_{jk} G_{jk}^2, \qquad (1 - M)\,\Delta g = \mathrm{diag}(G Y G) .$$

This gives the errors as well. With $z = K^{-1} y$ the residuals of a data set are $\Gamma z$, and their squares the
slopes $-\partial (z^T \Gamma z)/\partial \epsilon_i$ in a precision $\epsilon_i$ added to row $i$. So the change of all
mean squares is the gradient of one number, $-\partial/\partial \epsilon_i$ of $r^T (Y + w\,\Delta g)\, r$, $r = G z$,
to which $G$, $g$ and $r$ all respond. What is out of bag follows from what is in it as in the closure.

Where this is little it is added, elsewhere the closure is left alone. It is little where many rows matter a little, and
much where the number of examples, in all or in some part of the table, decides. For identical rows it decides alone:
the posterior variance is the average of $\sigma^2/m'$ over a Poisson total, $\sigma^2 (1/m + 1/m^2 + 2/m^3 + \ldots)$.
The closure gives $\sigma^2/(m - 1)$, right to second order, and $\Delta g$ adds the missing $\sigma^2/m^3$.

**The total.** Independent Poisson counts have a Poisson total: the above is for `PoissonTotal`. A curve of this kind is
the average of the curve at a fixed total, $P(m) = \langle F(m') \rangle$, so that to second order in the fluctuation of
the total $F = P - (m/2)\, P''$, which is the answer for `FixedTotal`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from quenched.core.linear import namespace
from quenched.core.types import Array
from quenched.processes.theory.closures import Cavity, Counts, cavity_variance
from quenched.processes.theory.state import Solution, leave_out

LARGEST = 2048
"""Rows up to which the walks are summed."""
MATRICES = 24
"""Matrices of all pairs of rows that this takes."""
ROWS = 7
"""The first entries of a solution, `g` to `oob_error`, are averages over data sets at every row."""


class Shift(NamedTuple):
    """By how much something changes the mean out-of-bag error and variance, as shares of them."""

    oob_error: Array
    oob_variance: Array


def add_walks(found: Solution, G: Array, y: Array, s2: Array, counts: Counts) -> Solution:
    """The solution of the cavity closure with what crossing walks add; `G` is its response as a matrix."""
    g, b = found.g, found.mean - y
    walks = _walks(G, g, s2, counts)
    slope_G, slope_g, slope_b = _slopes(walks, G, g, b)
    direct = ((G @ slope_G) * G).sum(axis=1) + (G @ slope_b) * b
    worse = direct + G**2 @ (walks.Z.T @ (direct * walks.w + slope_g))
    g, error = _add(g, walks.change), _add(found.error, worse)
    b = b + G @ (walks.Y @ b + walks.w * walks.change * b)
    spread = found.spread + (error - found.error) - (b**2 - (found.mean - y) ** 2)
    oob = leave_out(Cavity().site(g, counts, s2), y, g, b, error)  # follows as in the closure
    return Solution(g, y + b, namespace(g).maximum(spread, 0.0), error, *oob, *found[ROWS:])


class Walks(NamedTuple):
    """What the walks are made of, see the module; arrays `[N]` and matrices `[N, N]`."""

    v: Array
    c: Array
    dv: Array  # slopes in g
    dc: Array
    w: Array
    Z: Array  # (1 - M)^-1
    ladder: Array  # Z (G o G)
    L: Array
    Y: Array
    around: Array  # diag(G Y G)
    change: Array  # Z diag(G Y G), the change of g


def _walks(G: Array, g: Array, s2: Array, counts: Counts) -> Walks:
    xp, square = namespace(G), G**2
    v, c, dv, dc = _scatter(g, s2, counts)
    w, one = v / (1 + v * g**2), xp.eye(g.shape[0])
    Z = xp.linalg.inv(one - square * w)
    ladder = Z @ square
    L = (1 - one) * (w[:, None] * ladder * w)
    Y = L * G * (1 + c[:, None] * c * square) - xp.diag(c * (L * square).sum(axis=1))
    around = ((G @ Y) * G).sum(axis=1)
    return Walks(v, c, dv, dc, w, Z, ladder, L, Y, around, Z @ around)


def _slopes(walks: Walks, G: Array, g: Array, b: Array) -> tuple[Array, Array, Array]:
    r"""The gradient of $b^T (Y + w\,\Delta g)\, b$ in $G$, $g$ and $b$: the steps of `_walks` backwards."""
    v, c, dv, dc, w, Z, ladder, L, Y, around, change = walks
    xp, square, d = namespace(G), G**2, 1 + v * g**2
    pair = 1 + c[:, None] * c * square
    of_b = (Y + Y.T) @ b + 2 * b * w * change
    of_around = Z.T @ (w * b**2)
    weighed = of_around[:, None] * G
    of_Y = xp.outer(b, b) + G.T @ weighed
    of_G = of_around[:, None] * (G @ Y) + weighed @ Y.T + of_Y * L * pair
    own = xp.diagonal(of_Y) * c
    of_L = of_Y * G * pair - own[:, None] * square
    of_L = of_L - xp.diag(xp.diagonal(of_L))
    of_ladder, triple = of_L * w[:, None] * w, of_Y * L * G
    of_c = (triple * square) @ c + (triple * square).T @ c - xp.diagonal(of_Y) * (L * square).sum(axis=1)
    of_inverse = Z.T @ (xp.outer(w * b**2, around) + of_ladder @ square.T) @ Z.T
    of_square = triple * (c[:, None] * c) - own[:, None] * L + Z.T @ of_ladder + of_inverse * w
    both = of_L * ladder
    of_w = b**2 * change + both @ w + both.T @ w + (square * of_inverse).sum(axis=0)
    of_g = of_w / d**2 * (dv - 2 * v**2 * g) + of_c * dc
    return of_G + 2 * G * of_square, of_g, of_b


def _scatter(g: Array, s2: Array, counts: Counts) -> tuple[Array, Array, Array, Array]:
    r"""How much data sets differ at a row with posterior variance $g$: $v$, $c$ and their slopes in $g$.

    $1 - \tau g = h/a_1$ with $h = 1/(1 + s x)$, and $d\,g^{oob}/dg = 1/a_2$, $a_k = \langle h^k \rangle$.
    """
    xp, (_, s, p) = namespace(g), counts
    h = 1 / (1 + cavity_variance(g, counts, s2)[:, None] * (s / s2))
    a1, a2 = (h @ p)[:, None], (h**2 @ p)[:, None]
    tau = (1 - h / a1) / g[:, None]
    dh = -(s / s2) * h**2 / a2
    dtau = -(tau + dh / a1 - h * (dh @ p)[:, None] / a1**2) / g[:, None]
    v, third, dv, dthird = tau**2 @ p, tau**3 @ p, 2 * (tau * dtau) @ p, 3 * (tau**2 * dtau) @ p
    safe = xp.where(v > 0, v, 1.0)
    return v, third / safe, dv, dthird / safe - xp.where(v > 0, third * dv / safe**2, 0.0)


def _add(value: Array, change: Array) -> Array:
    """A positive number with a small change; it stays positive where the change is not small."""
    xp = namespace(value)
    share = change / xp.where(value > 0, value, 1.0)
    return value * (1 + share / xp.sqrt(1 + share**2))


def shift(before: Solution, after: Solution) -> Shift:
    """How far one solution is from another, in what is averaged over rows."""
    error, variance = (getattr(after, x).mean() / getattr(before, x).mean() - 1 for x in Shift._fields)
    return Shift(error, variance)


def nodes(m: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Two sizes beside $m$ and their weights; with $m$ itself they average over a Poisson total of mean $m$.

    The rule is exact for polynomials of degree 4 (3 for $m < 2$): with nodes $m + x_\pm$, $x_+ + x_- = 1$ and
    $x_+ x_- = -3m$, unless the lower one would be negative.
    """
    low = max(-m, 0.5 - np.sqrt(0.25 + 3 * m))
    x = np.array([low, 1 - low])
    weights = m / (x[1] - x[0]) / np.abs(x)
    return m + x, weights


def average_total(found: Solution, beside: list[Solution], weights: np.ndarray) -> Solution:
    """The average over a fluctuating total, from the solutions at `nodes`."""
    both = list(zip(weights, beside, strict=True))
    rows = [middle + sum(w * (one[k] - middle) for w, one in both) for k, middle in enumerate(found[:ROWS])]
    return found._replace(**dict(zip(found._fields[:ROWS], rows, strict=True)))


def fix_total(found: Solution, before: Solution, after: Solution, y: Array) -> Solution:
    """A solution for a Poisson total, taken back to a fixed one by what a fluctuating total does to the closure."""
    less = {}
    for name in ("g", "error", "oob_variance", "oob_error"):  # a share is taken away: what is left is positive
        value = getattr(found, name)
        less[name] = _add(value, value * (1 - getattr(after, name) / getattr(before, name)))
    mean, oob_mean = (getattr(found, n) + getattr(before, n) - getattr(after, n) for n in ("mean", "oob_mean"))
    spread = namespace(y).maximum(less["error"] - (mean - y) ** 2, 0.0)
    return found._replace(mean=mean, oob_mean=oob_mean, spread=spread, **less)
