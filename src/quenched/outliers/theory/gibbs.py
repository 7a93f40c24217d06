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

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.gaussian import legendre
from quenched.core.saddle import Kernel, namespace
from quenched.core.types import Array
from quenched.outliers.theory.setting import Readings, Setting, Student, direction, order_parameters, scales

REACH = 8.0
"""Standard deviations after which a Gaussian is cut: the mass beyond is 1e-15."""
OUTER = 64
"""Gauss-Legendre nodes over $x$ on either side of the steep place of $p(a)$, $a = -\\beta b/2$, about which it is odd.
At a low temperature $p$ rises there within $\\Delta a = T$, so that the nodes come as close as that."""
INNER = 320
"""Points of the trapezoidal rule over $y$: for smooth functions it converges exponentially."""
FEW, FINE = 112, (0.5, 0.6)
"""Fewer points, a third of the work, are enough on the host where their steps in $y$ and $h$ are below these: the
rule is then exact to rounding."""
COARSEST = 0.6, 0.8
"""The longest step in $y$, whose Gaussian has width 1, and in $h$, whose sigmoid has its poles at distance
$\\pi$, at which that rule has nine digits."""


class Nodes(NamedTuple):
    """Quadrature over both Gaussians."""

    x: Any  # [class, node]
    weight: Any  # with the density of x
    y: Any  # evenly spaced


class Drawn(Student):
    """The theory of a vector drawn at a temperature; the unknowns hold $q$ in the place of $Q$."""

    def landmarks(self, x: Any, theta: Setting) -> Nodes:
        """Outer nodes dense where $p(a)$ is steep, inner ones as far as the weight moves $y$."""
        xp, (R, q, z), beta = namespace(x), order_parameters(x), 1 / theta.temperature
        m, s, b = scales(R, q + z / beta, q, z / beta, theta)
        steep = xp.clip((-beta * b / 2 - m[:, None]) / s, -REACH, REACH)
        finest = xp.minimum(xp.minimum(1 / beta, 1.0) / s, 1.0)
        t, w = legendre(OUTER)
        parts = []
        for side in (-1.0, 1.0):  # sinh: the distance from the steep place grows exponentially
            reach = xp.arcsinh((REACH - side * steep) / finest)
            parts.append((steep + side * finest * xp.sinh(reach * t), w * finest * reach * xp.cosh(reach * t)))
        nodes, dx = (xp.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        enough = xp is np and _step(b, beta, FEW) < FINE[0] and _step(b, beta, FEW) * b**0.5 < FINE[1]
        points = FEW if enough else INNER
        y = -REACH + _step(b, beta, points) * np.arange(points)
        return Nodes(nodes, dx * xp.exp(-nodes * nodes / 2) / np.sqrt(2 * np.pi), y)

    def kernel(self, x: Array, theta: Setting, marks: Nodes) -> Kernel:
        """The saddle-point equations free of units; the energy is that of the vector drawn."""
        R, q, z = order_parameters(x)
        gamma, gt, _, alpha, T = theta
        Q = q + T * z
        m, s, b = scales(R, Q, q, Q - q, theta)
        each, weight = fields(m[:, None] + s * marks.x, b, 1 / T, marks.y), theta.weights[:, None] * marks.weight
        p, slope = T * each.first, T * each.second
        mean, (cosine, sine) = jnp.sum(weight * p), direction(x)
        by_R = cosine - z * alpha * gt * jnp.sum(weight[1] * p[1]) * jnp.exp(-x[1] / 2)
        by_z = z * (1 + alpha * gt * mean - alpha * gt * gt / gamma * jnp.sum(weight * slope)) - 1
        by_q = sine * sine - alpha * jnp.square(gt * z) / gamma * jnp.sum(weight * p * p) * jnp.exp(-x[1])
        stability = alpha * jnp.square(gt * gt * z / gamma) * jnp.sum(weight * slope * slope)
        energy = Q / 2 - alpha * jnp.sum(weight * each.energy)
        f = Q / 2 - T / 2 * ((Q - R * R) / (Q - q) + jnp.log(2 * jnp.pi * (Q - q)))
        f -= alpha * T * jnp.sum(weight * each.phi)
        return Kernel(jnp.stack([by_R, by_z, by_q]), f, Readings(stability, mean, energy))


DRAWN = Drawn()


class Fields(NamedTuple):
    """Averages over $y$ at every $a$."""

    phi: Array
    first: Array  # phi'
    second: Array  # phi''
    energy: Array  # of ln(1 + e^h)


def fields(a: Array, b: Array, beta: Array, y: Array) -> Fields:
    r"""$\phi$ and its slopes: mean and variance of $\sigma(h)$, $h = a + \sqrt b y$, with weight $(1 + e^h)^\beta$."""
    h = a[..., None] + jnp.sqrt(b) * y
    energy, sigma = jax.nn.softplus(h), jax.nn.sigmoid(h)
    log_weight = beta * energy - jnp.square(y) / 2
    phi = jax.nn.logsumexp(log_weight, axis=-1) + jnp.log(y[1] - y[0]) - np.log(2 * np.pi) / 2
    weight = jax.nn.softmax(log_weight, axis=-1)
    mean = jnp.sum(weight * sigma, axis=-1)
    spread = jnp.sum(weight * jnp.square(sigma - mean[..., None]), axis=-1)
    bend = jnp.sum(weight * sigma * (1 - sigma), axis=-1)
    return Fields(phi, beta * mean, beta * bend + beta**2 * spread, jnp.sum(weight * energy, axis=-1))


def _step(b: Any, beta: Any, points: int = INNER) -> Any:
    r"""Of $y$: the weight moves it up by at most $\beta \sqrt b$."""
    return (2 * REACH + beta * b**0.5) / (points - 1)


def is_resolved(q: Any, Q: Any, theta: Setting) -> Any:
    """Whether the points over $y$ are dense enough."""
    b = theta.gt**2 * (Q - q) / theta.gamma
    step = _step(b, 1 / theta.temperature)
    return (step < COARSEST[0]) & (step * b**0.5 < COARSEST[1])
