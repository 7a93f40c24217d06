r"""The saddle-point equations in a form that is regular from the splitting line down to width 0.

With $l = u_0^2/2$, $c = \cos\theta = \sqrt{2 r^2/q}$, $s = \sqrt q/\sigma$ and $a = x/\sigma^2$ put

$$k = \frac{s}{1+s} \in [0, 1), \qquad b = \frac{a}{1+s}, \qquad T(w) = \frac{\tanh(s w)}{k}, \qquad
  w = \zeta + b\, T(w), \qquad \zeta = \sqrt l\, c + z, \quad z \sim \mathcal N(0, 1).$$

Then, for a split phase,

$$\text{(A)}\ \ 1 - c^2 = \alpha b^2 \langle T^2 \rangle, \qquad
  \text{(B)}\ \ 1 = \sqrt l\, \alpha b\, \langle T \rangle / c,$$
$$\sigma = (1-k)\, S, \qquad \sqrt q = k\, S, \qquad S = \frac{1}{\alpha b} + \langle z T \rangle .$$

At $k = 0$, where $T(w) = w$, these are the splitting lines themselves; at $k \to 1$, $T = \mathrm{sign}$, they are
two-means clustering. (B) divided by $c$ holds at $c = 0$, too: there it is the line between ordered and random phase.
Averages are integrals over $w$, $dz = (1 - b\,T'(w))\, dw$, without the gap $|w| < w^*$, $w^* = b\,T(w^*)$, that opens
for $b > 1 - k$: so they are smooth for every $b$. Replica symmetry is stable where
$\alpha \langle (dw/d\zeta - 1)^2 \rangle < 1$.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from quenched.core.gaussian import TAIL, legendre, pdf
from quenched.core.types import Array, Real

PANELS, NODES = 8, 24
"""Gauss-Legendre panels on each half line, and nodes on each."""


class Averages(NamedTuple):
    """Averages over an example."""

    T: Array  # <T>/c
    T2: Array  # <T^2>
    zT: Array  # <z T>
    response: Array  # <(dw/dzeta - 1)^2>, infinite if there is a gap


def tanhc(x: Array) -> Array:
    r"""$\tanh(x)/x$, also at 0."""
    small = jnp.abs(x) < 1e-3
    safe = jnp.where(small, 1.0, x)
    return jnp.where(small, 1 - x**2 / 3 + 2 * x**4 / 15, jnp.tanh(safe) / safe)


def falling(x: Array) -> Array:
    r"""$(1 - e^{-x})/x$ for $x \ge 0$, also at 0."""
    small = x < 1e-5
    safe = jnp.where(small, 1.0, x)
    return jnp.where(small, 1 - x / 2 + x**2 / 6, -jnp.expm1(-safe) / safe)


def averages(k: Array, b: Array, c: Array, l: Real, *, rest: Array | None = None) -> Averages:
    """Averages over an example at given $k$, $b$ and $c$; `rest` is $1 - k$, where that has more digits."""
    m, rest = jnp.sqrt(l) * c, 1 - k if rest is None else rest
    w, weight = _nodes(k, rest, b, m)
    T, slope = _field(w, k, rest, b)
    zeta = w - b * T
    p, p_other = weight * pdf(zeta - m), weight * pdf(zeta + m)  # of w and of -w
    both, dz = p + p_other, 1 - slope
    return Averages(
        T=jnp.sum(T * dz * p * 2 * zeta * falling(2 * zeta * m)) * jnp.sqrt(l),
        T2=jnp.sum(jnp.square(T) * dz * both),
        zT=jnp.sum(T * dz * ((zeta - m) * p + (zeta + m) * p_other)),
        response=jnp.where(b < rest, jnp.sum(jnp.square(slope) / _positive(dz) * both), jnp.inf),
    )


def _field(w: Array, k: Array, rest: Array, b: Array) -> tuple[Array, Array]:
    """$T(w)$ and $b T'(w)$; `rest` is $1 - k$."""
    s = k / rest
    return w / rest * tanhc(s * w), b / rest / jnp.square(jnp.cosh(jnp.minimum(s * w, 300.0)))


class Equations(NamedTuple):
    """What vanishes at a state, and what is read off there."""

    length: Array  # (A), as the log of the ratio of its sides
    direction: Array  # (B), likewise
    scale: Array  # S, the sum of the width and the length of the splitting vector
    stability: Array  # replica symmetry is stable below 1


def equations(
    k: Array, b: Array, c: Array, l: Array, alpha: Array, *, rest: Array | None = None, noise: Array | None = None
) -> Equations:
    """The equations at given $k$, $b$ and $c$.

    Near width 0 and near the truth `rest`, $1 - k$, and `noise`, $1 - c^2$, have digits that $k$ and $c$ have lost.
    """
    average = averages(k, b, c, l, rest=rest)
    noise = 1 - jnp.square(c) if noise is None else noise
    return Equations(
        length=jnp.log(alpha * jnp.square(b) * average.T2) - jnp.log(noise),
        direction=jnp.log(jnp.sqrt(l) * alpha * b * average.T),
        scale=1 / (alpha * b) + average.zT,
        stability=alpha * average.response,
    )


def _nodes(k: Array, rest: Array, b: Array, m: Array) -> tuple[Array, Array]:
    """Nodes on the half line from the edge of the gap, dense where tanh is steep, and their weights.

    Where the Gaussian is far from the gap the nodes begin with it.
    """
    low = _edge(k, rest, b, jnp.maximum(m - TAIL, 0.0))
    high = jax.lax.stop_gradient(_edge(k, rest, b, TAIL + m))
    unit = rest  # 1/(1 + s)
    reach = jnp.arcsinh((high - low) / unit)
    x, weight = legendre(NODES)
    x = ((jnp.arange(PANELS)[:, None] + x) / PANELS).ravel()
    weight = jnp.tile(weight / PANELS, PANELS)
    return low + unit * jnp.sinh(reach * x), weight * unit * reach * jnp.cosh(reach * x)


def _edge(k: Array, rest: Array, b: Array, zeta: Array) -> Array:
    r"""The largest $w$ with $w = \zeta + b\,T(w)$, for $\zeta \ge 0$; `rest` is $1 - k$.

    $w - b\,T(w)$ is convex for $w > 0$, so Newton's method from above comes down to it monotonically. The last two
    steps are taken outside `stop_gradient`: they have the first three derivatives of the solution.
    """

    def step(w: Array, k: Array, rest: Array, b: Array, zeta: Array) -> Array:
        T, slope = _field(w, k, rest, b)
        return w - (w - b * T - zeta) / _positive(1 - slope)

    gap = b > rest
    k0, rest0, b0, zeta0 = frozen = jax.lax.stop_gradient((k, rest, b, zeta))
    straight = jnp.where(gap, jnp.inf, zeta0 / _positive(1 - b0 / rest0))  # T as steep everywhere as at 0
    begin = jnp.minimum(zeta0 + b0 / jnp.maximum(k0, 1e-12), straight)
    w = jax.lax.fori_loop(0, 60, lambda _, w: step(w, *frozen), begin)
    exists = gap | (zeta > 0)
    w = jnp.where(exists, jnp.maximum(w, 0.0), 1.0)
    for _ in range(2):
        w = step(w, k, rest, b, zeta)
    return jnp.where(exists, w, 0.0)


def _positive(x: Array) -> Array:
    return jnp.maximum(x, 1e-12)
