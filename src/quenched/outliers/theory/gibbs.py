r"""Gibbs learning: a vector drawn at temperature $T = 1/\beta$, in replica symmetry.

With the overlap $q$ of two such vectors and $z = \beta(Q - q)$ put $s = \tilde\gamma \sqrt{q/\gamma}$,
$b = \tilde\gamma^2 (Q - q)/\gamma$, $a = -\tilde\gamma Q/2 - \eta + V \tilde\gamma R + s x$ and

$$\phi(a) = \ln \int Dy\, \big(1 + e^{a + \sqrt b\, y}\big)^\beta, \qquad
  f = T\,\frac{R^2 - Q}{2(Q - q)} - \frac T2 \ln 2\pi(Q - q) + \frac Q2 - \alpha T \langle \phi \rangle .$$

With $p = T\phi'$, the mean weight of an example, its stationary points are those of soft selection with one change:

$$R = z \alpha \tilde\gamma w_1 \langle p \rangle_1, \qquad
  q = R^2 + z^2 \alpha \frac{\tilde\gamma^2}{\gamma} \langle p^2 \rangle, \qquad
  \frac1z = 1 + \alpha \tilde\gamma \langle p \rangle - \alpha \frac{\tilde\gamma^2}\gamma \langle T \phi'' \rangle .$$

At $T = 1$ and $\tilde\gamma = \gamma$ the vector is one more guess like the teacher: $R = q$, $Q = 1$.

[dietrich1998, eqs. (16), (A1), erratum E4]
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.gaussian import legendre, pdf
from quenched.core.types import Array
from quenched.outliers.theory.scaled import Readings, Setting, order_parameters

REACH = 8.0
"""Standard deviations after which a Gaussian is cut: the mass beyond is 1e-15."""
OUTER = 64
"""Gauss-Legendre nodes over $x$ on either side of the steep place of $p(a)$, $a = -\\beta b/2$, about which it is odd.
At a low temperature $p$ rises there within $\\Delta a = T$, so that the nodes come as close as that."""
INNER = 320
"""Points of the trapezoidal rule over $y$: for smooth functions it converges exponentially."""
COARSEST = 0.6, 0.8
"""The longest step in $y$, whose Gaussian has width 1, and in $h$, whose sigmoid has its poles at distance
$\\pi$, at which that rule has nine digits."""


class Fields(NamedTuple):
    """Averages over $y$ at every $a$."""

    phi: Array
    first: Array  # phi'
    second: Array  # phi''
    energy: Array  # of ln(1 + e^h)


def fields(a: Array, b: Array, beta: Array) -> Fields:
    r"""$\phi$ and its slopes: mean and variance of $\sigma(h)$, $h = a + \sqrt b y$, with weight $(1 + e^h)^\beta$."""
    step = _step(b, beta)
    y = -REACH + step * np.arange(INNER)
    h = a[..., None] + jnp.sqrt(b) * y
    energy, sigma = jax.nn.softplus(h), jax.nn.sigmoid(h)
    log_weight = beta * energy - jnp.square(y) / 2
    phi = jax.nn.logsumexp(log_weight, axis=-1) + jnp.log(step) - jnp.log(2 * jnp.pi) / 2
    weight = jax.nn.softmax(log_weight, axis=-1)
    mean = jnp.sum(weight * sigma, axis=-1)
    spread = jnp.sum(weight * jnp.square(sigma - mean[..., None]), axis=-1)
    bend = jnp.sum(weight * sigma * (1 - sigma), axis=-1)
    return Fields(phi, beta * mean, beta * bend + beta**2 * spread, jnp.sum(weight * energy, axis=-1))


def _step(b: Array, beta: Array) -> Array:
    r"""Of $y$: the weight moves it up by at most $\beta \sqrt b$."""
    return (2 * REACH + beta * jnp.sqrt(b)) / (INNER - 1)


def resolved(q: Array, Q: Array, at: Setting, beta: Array) -> Array:
    """Whether the points over $y$ are dense enough."""
    b = jnp.square(at.gt) * (Q - q) / at.gamma
    step = _step(b, beta)
    return (step < COARSEST[0]) & (step * jnp.sqrt(b) < COARSEST[1])


def averages(R: Array, q: Array, Q: Array, at: Setting, beta: Array) -> tuple[Fields, Array]:
    """Fields at every node, and the weights of the nodes, both `[class, node]`."""
    gamma, gt, eta, _ = at
    b, s = gt * gt * (Q - q) / gamma, gt * jnp.sqrt(q / gamma)
    m = -gt * Q / 2 - eta + np.array([[0.0], [1.0]]) * gt * R
    steep = jnp.clip((-beta * b / 2 - m) / s, -REACH, REACH)
    finest = jnp.minimum(jnp.minimum(1 / beta, 1.0) / s, 1.0)
    t, w = legendre(OUTER)
    parts = []
    for side in (-1.0, 1.0):  # sinh: the distance from the steep place grows exponentially
        reach = jnp.arcsinh((REACH - side * steep) / finest)
        parts.append((steep + side * finest * jnp.sinh(reach * t), w * finest * reach * jnp.cosh(reach * t)))
    x, dx = (jnp.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return fields(m + s * x, b, beta), at.weights[:, None] * pdf(x) * dx


def free_energy(R: Array, q: Array, Q: Array, at: Setting, temperature: Array) -> Array:
    r"""$-\frac TN \ln \int dJ\, e^{-\mathcal H/T}$ as a function of the order parameters."""
    T = temperature
    each, weight = averages(R, q, Q, at, 1 / T)
    entropy = (Q - R * R) / (Q - q) + jnp.log(2 * jnp.pi * (Q - q))
    return -T * entropy / 2 + Q / 2 - at.alpha * T * jnp.sum(weight * each.phi)


def equations(x: Array, both: tuple[Setting, Array]) -> tuple[Array, Readings]:
    """The saddle-point equations at a setting and a temperature; the energy read off is that of the vector drawn."""
    R, q, z = order_parameters(x)
    at, T = both
    gamma, gt, _, alpha = at
    Q = q + T * z
    each, weight = averages(R, q, Q, at, 1 / T)
    p, slope = T * each.first, T * each.second
    mean = jnp.sum(weight * p)
    by_R = jnp.cos(x[0]) - z * alpha * gt * jnp.sum(weight[1] * p[1]) / jnp.sqrt(q)
    by_z = z * (1 + alpha * gt * mean - alpha * gt * gt / gamma * jnp.sum(weight * slope)) - 1
    by_q = jnp.square(jnp.sin(x[0])) - alpha * jnp.square(gt * z) / gamma * jnp.sum(weight * p * p) / q
    stability = alpha * jnp.square(gt * gt * z / gamma) * jnp.sum(weight * slope * slope)
    energy = Q / 2 - alpha * jnp.sum(weight * each.energy)
    return jnp.stack([by_R, by_z, by_q]), Readings(energy, stability, mean)
