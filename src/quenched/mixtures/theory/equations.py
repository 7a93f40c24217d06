r"""The saddle-point equations, in a form that is regular from the splitting lines down to width 0.

With the centre of all examples taken away, the likelihood of the splitting vector is, per example,
$\epsilon = q/2\sigma - \langle \ln\cosh(y/\sigma) \rangle$, where $y$ is the field of an example. In the
zero-temperature replica-symmetric theory (that of `core.replica` for the energy $q/2\sigma - \ln\cosh(y/\sigma)$ of a
field, $\rho^2 = 1/2$) put $l = u_0^2/2$, $c = \cos\theta = \sqrt{2 r^2/q}$, $s = \sqrt q/\sigma$, $n = \sqrt{1 + s^2}$,
$a = x/\sigma^2$ with the susceptibility $x$, and

$$k = \frac sn \in [0, 1), \qquad b = \frac an, \qquad T(w) = \frac{\tanh(s w)}{k}, \qquad
  w = \zeta + b\, T(w), \qquad \zeta = \sqrt l\, c + z, \quad z \sim \mathcal N(0, 1).$$

Then, for a split phase,

$$\text{(A)}\ \ 1 - c^2 = \alpha b^2 \langle T^2 \rangle, \qquad
  \text{(B)}\ \ 1 = \sqrt l\, \alpha b\, \langle T \rangle / c,$$
$$\text{(W)}\ \ \sigma = S/n, \qquad \sqrt q = k\, S, \qquad S = \frac{1}{\alpha b} + \langle z T \rangle .$$

At $s = 0$, where $T(w) = w$, these are the splitting lines themselves; at $s \to \infty$, $T = \mathrm{sign}$, they are
two-means clustering. (B) divided by $c$ holds at $c = 0$, too: there it is the line between ordered and random phase.
Averages are integrals over $w$, $dz = (1 - b\,T'(w))\, dw$, without the gap $|w| < w^*$, $w^* = b\,T(w^*)$, that opens
for $b > 1/n$: so they are smooth for every $b$. Replica symmetry is stable where
(C) $\alpha \langle (dw/d\zeta - 1)^2 \rangle < 1$.

Unknowns are $(u, \ln b, v)$ with $s = \sinh u$ and $c = \tanh v$: these keep their digits near width 0 and the truth,
and the equations are even in $u$ and in $v$, so that branches pass smoothly through $u = 0$ and $v = 0$.

[barkai1994, eqs. (6), (9), (10); errata B1, B3, B4, B10]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from quenched.core.gaussian import TAIL, legendre
from quenched.core.saddle import Kernel, Theory, iterate, namespace
from quenched.core.types import Array

PANELS, NODES = 8, 24
"""Gauss-Legendre panels on each half line, and nodes on each."""
A, B, W, C, U, V = range(6)
"""Conditions: (A), (B), (W), (C) with a stability of 1, u = 0 and v = 0."""
ORDERED, RANDOM = (A, B, W), (A, V, W)
"""Conditions of a state."""


class Setting(NamedTuple):
    """Logarithms of $l = u_0^2/2$, $\\alpha$ and the width, and which conditions hold."""

    log_l: Any
    log_alpha: Any
    log_width: Any
    conditions: Any  # [3] places among the conditions


class Readings(NamedTuple):
    """Numbers that are read off at any unknowns."""

    r: Any
    q: Any
    energy: Any  # of an example
    stability: Any  # replica symmetry is stable below 1
    width: Any  # at which (W) holds
    gain: Any  # (B), the logarithm of the ratio of its sides: positive where turning towards the truth pays


class Nodes(NamedTuple):
    """The integrals over $w$ on a half line."""

    first: Any  # where they begin
    further: Any  # distances of the nodes from there
    weight: Any


class Averages(NamedTuple):
    """Averages over an example."""

    T: Any  # <T>/c
    T2: Any  # <T^2>
    zT: Any  # <z T>
    log_cosh: Any  # <ln cosh(s w)>
    response: Any  # <(dw/dzeta - 1)^2>, where there is no gap


class Mixture(Theory):
    """The theory of two centres of a given width."""

    def landmarks(self, x: Any, theta: Setting) -> Nodes:
        """Nodes from the edge of the gap on, dense where tanh is steep."""
        xp = namespace(x)
        m = xp.exp(theta.log_l / 2) * xp.abs(xp.tanh(x[2]))
        return find_nodes(xp.abs(xp.sinh(x[0])), xp.cosh(x[0]), xp.exp(x[1]), m)

    def kernel(self, x: Array, theta: Setting, marks: Nodes) -> Kernel:
        """The conditions as logarithms of ratios, which vanish."""
        u, log_b, v = x
        b, alpha, root_l = jnp.exp(log_b), jnp.exp(theta.log_alpha), jnp.exp(theta.log_l / 2)
        s, n, c = jnp.abs(jnp.sinh(u)), jnp.cosh(u), jnp.abs(jnp.tanh(v))
        mean = averages(s, n, b, root_l * c, marks)
        scale = 1 / (alpha * b) + mean.zT
        width, length = scale / n, scale * jnp.abs(jnp.tanh(u))
        q, stability = jnp.square(length), jnp.where(b * n < 1, alpha * mean.response, jnp.inf)
        gain = jnp.log(alpha * b * root_l * root_l * mean.T)
        norm = jnp.log(alpha * b * b * mean.T2) + 2 * jnp.log(jnp.cosh(v))
        every = jnp.stack([norm, gain, jnp.log(width) - theta.log_width, 1 - 1 / stability, u, v])
        energy = length * s / 2 - mean.log_cosh  # q/2 width = length s/2
        readings = Readings(c * length / np.sqrt(2), q, energy, stability, width, gain)
        return Kernel(every[theta.conditions], alpha * energy, readings)


MIXTURE = Mixture()


def averages(s: Any, n: Any, b: Any, m: Any, at: Nodes) -> Averages:
    r"""Averages at given $s$, $n$, $b$ and mean $m = \sqrt l\, c \ge 0$ of $\zeta$; $T$ over $m$ instead of $c$."""
    w = _insert(at.first, s, n, b, m) + at.further
    T, slope, e = _field(w, s, n, b)
    zeta = w - b * T
    x = 2 * zeta * m
    less = jnp.expm1(-x)  # p(-w)/p(w) - 1
    rises = jnp.where(x < 1e-5, 1 - x / 2, -less / jnp.where(x < 1e-5, 1.0, x))
    p = jnp.exp(-jnp.square(zeta - m) / 2) * at.weight / np.sqrt(2 * np.pi)
    both, dz = p * (2 + less), 1 - slope
    each = jnp.stack([
        2 * zeta * rises * p * T * dz,
        both * T * T * dz,
        (2 * zeta + less * (zeta + m)) * p * T * dz,
        (s * w + jnp.log1p(e) - np.log(2.0)) * both * dz,
        both * jnp.square(slope) / _positive(dz),
    ])  # fmt: skip
    return Averages(*jnp.sum(each, axis=1))


def find_nodes(s: Any, n: Any, b: Any, m: Any) -> Nodes:
    """Dense near 0, where tanh is steep; where the Gaussian is far from the gap the nodes begin with it."""
    xp = namespace(b)
    first, last = _edge(s, n, b, xp.maximum(m - TAIL, 0.0)), _edge(s, n, b, TAIL + m)
    unit = 1 / n + first
    reach = xp.arcsinh((last - first) / unit)
    x, weight = legendre(NODES)
    x = ((np.arange(PANELS)[:, None] + x) / PANELS).ravel()
    weight = np.tile(weight / PANELS, PANELS)
    return Nodes(first, unit * xp.sinh(reach * x), unit * weight * reach * xp.cosh(reach * x))


def _field(w: Any, s: Any, n: Any, b: Any) -> tuple[Any, Any, Any]:
    """$T(w)$, $b T'(w)$ and $e^{-2 s w}$, for $w \\ge 0$."""
    xp = namespace(w)
    h = s * w
    e, small = xp.exp(-2 * h), h < 1e-2
    series = 1 + h * h * (-1 / 3 + h * h * (2 / 15 - 17 / 315 * h * h))
    tanhc = xp.where(small, series, (1 - e) / ((1 + e) * xp.where(small, 1.0, h)))
    return w * n * tanhc, 4 * b * n * e / xp.square(1 + e), e


def _step(w: Any, s: Any, n: Any, b: Any, zeta: Any) -> Any:
    r"""A step of Newton's method for $w = \zeta + b\,T(w)$."""
    T, slope, _ = _field(w, s, n, b)
    return w - (w - b * T - zeta) / _positive(1 - slope)


def _edge(s: Any, n: Any, b: Any, zeta: Any) -> Any:
    r"""The largest $w$ with $w = \zeta + b\,T(w)$, for $\zeta \ge 0$; 0 where there is neither a gap nor a $\zeta$.

    $w - b\,T(w)$ is convex for $w > 0$, so Newton's method from above comes down to it monotonically.
    """
    xp = namespace(b)
    gap = b * n > 1
    straight = xp.where(gap, np.inf, zeta / _positive(1 - b * n))  # T as steep everywhere as at 0
    begin = xp.minimum(zeta + b * n / xp.maximum(s, 1e-12), straight)
    w = iterate(lambda w: _step(w, s, n, b, zeta), begin, lambda new, old: new < old, most=60)
    return xp.where(gap | (zeta > 0), xp.maximum(w, 0.0), 0.0)


def _insert(first: Any, s: Any, n: Any, b: Any, m: Any) -> Any:
    """The first node with its derivatives: two steps along the chord at the solution have the first two."""
    zeta = jnp.maximum(m - TAIL, 0.0)
    exists = (b * n > 1) | (zeta > 0)
    w, s = jnp.where(exists, first, 1.0), jnp.maximum(s, 1e-8)
    steep = jax.lax.stop_gradient(_positive(1 - b * n * (1 - jnp.square(jnp.tanh(s * w)))))
    for _ in range(2):
        w = w - (w - zeta - b * n / s * jnp.tanh(s * w)) / steep
    return jnp.where(exists, w, 0.0)


def _positive(x: Any) -> Any:
    return namespace(x).maximum(x, 1e-12)


def guess_ordered(log_l: Any, alpha: Any, width: Any) -> Any:
    """Unknowns between those at the splitting line and those at width 0, of two-means clustering."""
    xp = namespace(width)
    l = xp.exp(log_l)
    top = (1 + l) * (1 + 1 / (alpha * l))
    y = xp.minimum(width / top, 1 - 1e-12)
    t1 = xp.sqrt(xp.maximum(alpha * l * l - 1, 1e-4) / (1 + l))  # cot of the angle, at the splitting

    erf = special.erf if xp is np else jax.scipy.special.erf

    def cluster(t: Any) -> Any:
        return xp.sqrt(l * alpha) * erf(xp.sqrt(l / 2) * t / xp.sqrt(1 + t * t))

    t0 = xp.maximum(iterate(cluster, 2.0 + 0 * width, lambda new, old: new != old, most=30), 0.05)
    c1, c0 = (t * t / (1 + t * t) for t in (t1, t0))
    field = np.sqrt(2 / np.pi) * xp.exp(-l * c0 / 2)
    root0 = field + xp.sqrt((1 + t0 * t0) / alpha)
    b = l * alpha / (1 + l * alpha)
    K = (l - 1 / (l * alpha)) * (3 + l * c1) / (3 * b**3) + (1 + l * c1) / b**4
    root1 = xp.sqrt(top**3 / xp.maximum(K, 0.1))
    length = xp.sqrt(1 - y) * (y * root1 + (1 - y) * root0)
    chi = y * (1 + 1 / l) + (1 - y) / (1 - field / root0)
    return _unknowns(length / width, chi / (alpha * width), xp.exp(y * xp.log(t1) + (1 - y) * xp.log(t0)))


def guess_random(alpha: Any, width: Any) -> Any:
    """The same without a direction."""
    xp = namespace(width)
    y = xp.minimum(width / xp.square(1 + 1 / xp.sqrt(alpha)), 1 - 1e-12)
    length = xp.sqrt(1 - y) * (1 / xp.sqrt(alpha) + np.sqrt(2 / np.pi))
    chi = 1 + xp.sqrt(alpha) * (y + (1 - y) * np.sqrt(2 / np.pi))
    return _unknowns(length / width, chi / (alpha * width), 0 * width)


def _unknowns(s: Any, a: Any, cot: Any) -> Any:
    xp = namespace(s)
    return xp.stack([xp.arcsinh(s), xp.log(a / xp.sqrt(1 + s * s)), xp.arcsinh(cot)])
