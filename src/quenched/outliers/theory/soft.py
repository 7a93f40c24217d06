r"""Soft selection: its saddle-point equations, written out.

The energy of a field is $\ell(u, Q) = -\ln(1 + e^{h})$, $h = \tilde\gamma u - \tilde\gamma Q/2 - \eta$. With
$a = -\tilde\gamma Q/2 - \eta + V \tilde\gamma R + s x$, $s = \tilde\gamma \sqrt{Q/\gamma}$, $x \sim \mathcal N(0, 1)$
and $b = \tilde\gamma^2 z/\gamma$, an example ends at $w = a + b\,\sigma(w)$ and counts as $p = \sigma(w)$, and

$$R = z \alpha \tilde\gamma w_1 \langle p \rangle_1, \qquad
  Q = R^2 + z^2 \alpha \frac{\tilde\gamma^2}{\gamma} \langle p^2 \rangle, \qquad
  \frac1z = 1 + \alpha \tilde\gamma \Big( \langle p \rangle - \frac{\langle x p \rangle}{\sqrt{\gamma Q}} \Big) .$$

Averages are integrals over $w$, $s\,dx = (1 - b\,p(1-p))\,dw$, smooth for every $b$. For $b > 4$ the map jumps at
$a = -b/2$ from $-w^*$ to $w^*$, $w^* = (b/2) \tanh(w^*/2)$, and $|w| < w^*$ is left out.

[dietrich1998, eq. (A2), errata E1, E2, E10]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.gaussian import TAIL, legendre, pdf
from quenched.core.saddle import Kernel, iterate, namespace
from quenched.core.types import Array
from quenched.outliers.theory.setting import Readings, Setting, Student, direction, order_parameters, scales

NODES = 56
"""Gauss-Legendre nodes on either side of the jump: the integrands are analytic, so that no panels are needed."""

NARROW = 1e-8
"""A Gaussian narrower than this sees a straight map."""


class Nodes(NamedTuple):
    """Quadrature over the Gaussian on both sides of the jump, `[class, node]`, and the jump `[class]`."""

    x: Any  # places of an example in the Gaussian
    weight: Any
    w: Any  # where an example ends
    jump: Any  # x at the jump
    edge: Any  # w* at the jump; 0 where there is none
    inside: Any  # whether it lies within the Gaussian


class Soft(Student):
    """The theory of soft selection."""

    def landmarks(self, x: Any, theta: Setting) -> Nodes:
        """Nodes dense where the sigmoid is steep."""
        R, Q, z = order_parameters(x)
        return find_nodes(*scales(R, Q, Q, z, theta))

    def kernel(self, x: Array, theta: Setting, marks: Nodes) -> Kernel:
        """The saddle-point equations free of units."""
        R, Q, z = order_parameters(x)
        gamma, gt, _, alpha, _ = theta
        m, s, b = scales(R, Q, Q, z, theta)
        each, w = averages(m, s, b, marks), theta.weights
        p, p2, xp, M, response = (w @ v for v in each)
        cosine, sine = direction(x)
        by_R = cosine - z * alpha * gt * w[1] * each.p[1] * jnp.exp(-x[1] / 2)  # not / Q, which may underflow
        by_Q = z * (1 + alpha * gt * (p - gt / gamma * xp)) - 1
        by_z = sine * sine - alpha * jnp.square(gt * z) / gamma * p2 * jnp.exp(-x[1])
        f = (R * R - Q) / (2 * z) + Q / 2 - alpha * M
        stability = jnp.where(jnp.any(marks.inside), jnp.inf, alpha * b * b * response)
        return Kernel(jnp.stack([by_R, by_Q, by_z]), f, Readings(stability, p, f))


SOFT = Soft()


class Averages(NamedTuple):
    """Averages over an example of each class, `[2]`."""

    p: Array
    p2: Array
    xp: Array  # <x p>/s
    M: Array  # of the Moreau envelope max_t [ln(1 + e^(a+t)) - t^2/2b]
    response: Array  # <(dp/da)^2>


def averages(m: Array, s: Array, b: Array, at: Nodes) -> Averages:
    r"""Averages over $a \sim \mathcal N(m, s^2)$ for each class.

    Nodes keep their $x$ and weight, examples move: $w$ is inserted again. What the jump passes over by moving from
    $x_0$ to $x_0 + \Delta$ is an integral by the midpoint rule, whose first two derivatives at $\Delta = 0$ are exact.
    """
    moved = jnp.where(at.inside, (-b / 2 - m) / s - at.jump, 0.0)
    middle = at.jump + moved / 2
    strip = pdf(middle) * moved
    x = jnp.concatenate([at.x, middle[:, None], middle[:, None]], axis=1)
    weight = jnp.concatenate([at.weight, strip[:, None], -strip[:, None]], axis=1)
    edge = jnp.broadcast_to(at.edge, (2, 1))
    a = m[:, None] + s * x
    w = jnp.concatenate([at.w, -edge, edge], axis=1)
    for _ in range(2):  # two steps of Newton's method at the solution have its first three derivatives
        p = jax.nn.sigmoid(w)
        w = w - (w - a - b * p) / jnp.maximum(1 - b * p * (1 - p), 1e-12)
    p = jax.nn.sigmoid(w)
    slope = p * (1 - p) / jnp.maximum(1 - b * p * (1 - p), 1e-12)
    reference = jnp.sum(weight * p, axis=1, keepdims=True)
    return Averages(
        p=reference[:, 0],
        p2=jnp.sum(weight * p * p, axis=1),
        xp=jnp.sum(weight * x * (p - reference), axis=1) / s,
        M=jnp.sum(weight * (jax.nn.softplus(w) - b * p * p / 2), axis=1),
        response=jnp.sum(weight * slope * slope, axis=1),
    )


def find_nodes(m: Any, s: Any, b: Any) -> Nodes:
    r"""Gauss-Legendre nodes in $\operatorname{arsinh} w$ on both sides of the jump."""
    xp = namespace(m)
    at_jump = (-b / 2 - m) / s
    inside, cut = xp.abs(at_jump) < TAIL, xp.clip(at_jump, -TAIL, TAIL)
    low, high = 0 * cut - TAIL, 0 * cut + TAIL
    ends = xp.stack([xp.stack([low, cut], -1), xp.stack([cut, high], -1)], -2)  # [class, side, end] in x
    y = m[:, None, None] + b / 2 + s * ends  # w - (b/2) tanh(w/2), odd in w
    y = xp.where(inside[:, None, None] & (ends == cut[:, None, None]), 0.0, y)
    every = find_edge(b, xp.concatenate([xp.ravel(xp.abs(y)), 0 * at_jump[:1]]))  # the last one is the edge w*
    edge, edges = every[-1], np.array([[-1.0], [1.0]]) * xp.reshape(every[:-1], y.shape)
    first = edges[..., :1]
    low, reach = xp.arcsinh(first), xp.diff(xp.arcsinh(edges))
    tanh = xp.tanh(first / 2)
    straight = xp.diff(ends) * s / (1 - b / 4 * (1 - tanh * tanh))
    reach = xp.where(s < NARROW, straight / xp.cosh(low), reach)
    t, weight = legendre(NODES)
    # from the edge on, in a form that keeps its digits where the Gaussian is narrow
    shift = 2 * xp.cosh(low + reach * t / 2) * xp.sinh(reach * t / 2)
    w = first + shift
    rise = xp.tanh(shift / 2) * (1 - xp.tanh(w / 2) * tanh) / 2  # of the sigmoid
    x = ends[..., :1] + (shift - b * rise) / s
    bend = (1 - xp.square(xp.tanh(w / 2))) / 4
    dx = weight * reach * xp.cosh(low + reach * t) * (1 - b * bend) / s
    density = dx * xp.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    x, density, w = (v.reshape(2, -1) for v in (x, density, w))
    return Nodes(x, density, w, at_jump, edge, inside & (b > 4))


def find_edge(b: Any, y: Any) -> Any:
    r"""The largest $w$ with $w - (b/2) \tanh(w/2) = y$ for $y \ge 0$; at $y = 0$ the edge $w^*$ of the jump.

    The left side is convex for $w > 0$, so Newton's method from above comes down to it monotonically.
    """
    xp = namespace(y)
    straight = xp.where(b < 4, y / xp.maximum(1 - b / 4, 1e-12), xp.inf)  # as steep everywhere as at 0
    w = xp.minimum(y + b / 2, straight)

    def step(w: Any) -> Any:
        tanh = xp.tanh(w / 2)
        return w - (w - b / 2 * tanh - y) / xp.maximum(1 - b / 4 * (1 - tanh * tanh), 1e-12)

    w = iterate(step, w, lambda new, old: xp.any(new < old), most=40)  # a double root, of b = 4, needs that many
    return xp.where((y > 0) | (b > 4), w, 0.0)
