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

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import Array
from quenched.processes.theory.closures import Cavity
from quenched.processes.theory.solution import Solution

LARGEST = 2048
"""Rows up to which the walks are summed."""
MATRICES = 24
"""Matrices of all pairs of rows that this takes."""


class Shift(NamedTuple):
    """By how much the mean out-of-bag error and variance change, relative."""

    oob_error: Array
    oob_variance: Array


@functools.partial(jax.jit, static_argnames="terms")
def corrected(found: Solution, G: Array, y: Array, s2: Array, mu: Array, *, terms: int) -> Solution:
    """The solution of the cavity closure with what crossing walks add.

    Args:
        found: the solution at this size.
        G: its response as a matrix `[N, N]`.
        y: standardised targets.
        s2: noise variance.
        mu: mean multiplicity.
        terms: multiplicities to sum over.
    """
    g, b = found.g, found.mean - y
    slopes = jax.grad(lambda G, g, b: _walks(G, g, b, s2, mu, terms)[0], (0, 1, 2))(G, g, b)
    _, (Y, change, w, Z) = _walks(G, g, b, s2, mu, terms)
    direct = jnp.sum((G @ slopes[0]) * G, axis=1) + (G @ slopes[2]) * b
    worse = direct + jnp.square(G) @ (Z.T @ (direct * w + slopes[1]))
    moved = b + G @ (Y @ b + w * change * b)
    return _with(found, y, s2, mu, terms, _added(g, change), moved, _added(found.error, worse))


def _walks(
    G: Array, g: Array, b: Array, s2: Array, mu: Array, terms: int
) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    r"""$r^T (Y + w\,\Delta g)\, r$, and $Y$, $\Delta g$, $w$ and $(1 - M)^{-1}$."""
    v, c = Cavity().scattering(g, mu, s2, terms)
    w, square, one = v / (1 + v * jnp.square(g)), jnp.square(G), jnp.eye(g.shape[0])
    Z = jnp.linalg.inv(one - square * w)
    L = (1 - one) * (w[:, None] * (Z @ square) * w)
    Y = L * G * (1 + c[:, None] * c * square) - jnp.diag(c * jnp.sum(L * square, axis=1))
    change = Z @ jnp.sum((G @ Y) * G, axis=1)
    return b @ (Y @ b) + b @ (w * change * b), (Y, change, w, Z)


def _added(value: Array, change: Array) -> Array:
    """A positive number with a small change; it stays positive where the change is not small."""
    share = change / jnp.where(value > 0, value, 1.0)
    return value * (1 + share / jnp.sqrt(1 + jnp.square(share)))


def _with(found: Solution, y: Array, s2: Array, mu: Array, terms: int, g: Array, b: Array, error: Array) -> Solution:
    """Another variance, mean deviation and error at every row; what is out of bag follows as from the closure."""
    site = Cavity().site(g, mu, s2, terms)
    spread = found.spread + (error - found.error) - (jnp.square(b) - jnp.square(found.mean - y))
    oob_error = error * (1 - site.w * jnp.square(g)) / jnp.square(site.keep)
    return found._replace(
        g=g, mean=y + b, spread=jnp.maximum(spread, 0.0), error=error, oob_variance=g / site.keep,
        oob_mean=y + b / site.keep, oob_error=oob_error,
    )  # fmt: skip


def shift(before: Solution, after: Solution) -> Shift:
    """How far one solution is from another, in what is averaged over rows."""
    return Shift(
        jnp.mean(after.oob_error) / jnp.mean(before.oob_error) - 1,
        jnp.mean(after.oob_variance) / jnp.mean(before.oob_variance) - 1,
    )


def larger(one: Shift, other: Shift) -> Shift:
    """Of each the one that is larger in size."""
    return Shift(*(jnp.where(jnp.abs(a) > jnp.abs(b), a, b) for a, b in zip(one, other, strict=True)))


# ---- the total


def nodes(m: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Two sizes beside $m$ and their weights; with $m$ itself they average over a Poisson total of mean $m$.

    The rule is exact for polynomials of degree 4 (3 for $m < 2$): with nodes $m + x_\pm$, $x_+ + x_- = 1$ and
    $x_+ x_- = -3m$, unless the lower one would be negative.
    """
    low = max(-m, 0.5 - np.sqrt(0.25 + 3 * m))
    x = np.array([low, 1 - low])
    weights = m / (x[1] - x[0]) / np.abs(x)
    return m + x, weights


ROWS = ("g", "mean", "spread", "error", "oob_variance", "oob_mean", "oob_error")
"""What a solution has at every row that is averaged over data sets."""


def averaged(found: Solution, beside: list[Solution], weights: np.ndarray) -> Solution:
    """The average over a fluctuating total, from the solutions at `nodes`."""
    values = {}
    for name in ROWS:
        middle = getattr(found, name)
        values[name] = middle + sum(w * (getattr(one, name) - middle) for w, one in zip(weights, beside, strict=True))
    return found._replace(**values)


def at_fixed_total(found: Solution, before: Solution, after: Solution, y: Array) -> Solution:
    """A solution for a Poisson total, taken back to a fixed one.

    Args:
        found: the solution for a Poisson total.
        before: the closure alone.
        after: the closure averaged over a fluctuating total.
        y: standardised targets.
    """
    less = {}
    for name in ("g", "error", "oob_variance", "oob_error"):  # a share is taken away: what is left is positive
        value = getattr(found, name)
        less[name] = _added(value, value * (1 - getattr(after, name) / getattr(before, name)))
    mean, oob_mean = (getattr(found, n) + getattr(before, n) - getattr(after, n) for n in ("mean", "oob_mean"))
    spread = jnp.maximum(less["error"] - jnp.square(mean - y), 0.0)
    return found._replace(mean=mean, oob_mean=oob_mean, spread=spread, **less)
