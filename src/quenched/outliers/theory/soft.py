r"""Soft selection: a replica theory declared in one energy, and its saddle-point equations in a light form.

The energy of a field is $\ell(u, Q) = -\ln(1 + e^{h})$, $h = \tilde\gamma u - \tilde\gamma Q/2 - \eta$; `problem`
declares it for `core.replica`, which any energy can be given to. Here its equations are written out, as they are
solved many times along a branch. With
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

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import replica
from quenched.core.gaussian import TAIL, legendre, pdf
from quenched.core.types import Array
from quenched.outliers.model import Contaminated, SoftSelection
from quenched.outliers.theory.scaled import Readings, Setting, order_parameters, setting

NODES = 56
"""Gauss-Legendre nodes on either side of the jump: the integrands are analytic, so that no panels are needed."""

NARROW = 1e-8
"""A Gaussian narrower than this sees a straight map."""


class Energy(eqx.Module):
    r"""$\ell(u, Q) = -\ln(1 + e^{\tilde\gamma u - \tilde\gamma Q/2 - \eta})$."""

    gt: Array
    eta: Array

    def __call__(self, u: Array, Q: Array) -> Array:
        """The energy of a field."""
        return -jax.nn.softplus(self.gt * u - self.gt * Q / 2 - self.eta)


def _half_norm(R: Array, Q: Array) -> Array:
    return Q / 2


def problem(law: Contaminated, rule: SoftSelection) -> replica.Problem:
    """The same theory as the replica core is told it: `replica.curve(problem(law, rule), alpha=...)`."""
    at = setting(law, rule, 0.0)
    fields = replica.Classes(at.weights, np.array([0.0, 1.0]), 1 / at.gamma)
    return replica.Problem(Energy(at.gt, at.eta), fields, _half_norm)


class Averages(NamedTuple):
    """Averages over an example of each class, `[2]`."""

    p: Array
    p2: Array
    xp: Array  # <x p>/s
    M: Array  # of the Moreau envelope max_t [ln(1 + e^(a+t)) - t^2/2b]
    response: Array  # <(dp/da)^2>
    jumps: Array  # whether the map jumps within the Gaussian


def averages(m: Array, s: Array, b: Array) -> Averages:
    r"""Averages over $a \sim \mathcal N(m, s^2)$."""
    w, x, dw = _nodes(m, s, b)
    p = jax.nn.sigmoid(w)
    bend = p * (1 - p)
    density = dw * pdf(x) / s
    weight = density * (1 - b * bend)
    jump = jnp.clip((-b / 2 - m) / s, -40.0, 40.0)  # where the Gaussian is 0
    step = jnp.tanh(_edge(b, jnp.zeros(())) / 2)  # of p at the jump; by parts, <x p> = <dp/dx>
    stretch = jnp.maximum(1 - b * bend, 1e-12)
    return Averages(
        p=jnp.sum(weight * p),
        p2=jnp.sum(weight * p * p),
        xp=jnp.sum(density * bend) + step * pdf(jump) / s,
        M=jnp.sum(weight * (jax.nn.softplus(w) - b * p * p / 2)),
        response=jnp.sum(density * bend * bend / stretch),
        jumps=(b > 4) & (jnp.abs(jump) < TAIL),
    )


def equations(x: Array, at: Setting) -> tuple[Array, Readings]:
    """The saddle-point equations free of units, and what is read off."""
    R, Q, z = order_parameters(x)
    gamma, gt, eta, alpha = at
    s, b = gt * jnp.sqrt(Q / gamma), gt * gt * z / gamma
    m = -gt * Q / 2 - eta + jnp.array([0.0, 1.0]) * gt * R
    each = jax.vmap(averages, (0, None, None))(m, s, b)
    w = at.weights
    p, p2, xp, M, response = (w @ v for v in each[:5])
    by_R = jnp.cos(x[0]) - z * alpha * gt * w[1] * each.p[1] * jnp.exp(-x[1] / 2)  # not / Q, which may underflow
    by_Q = z * (1 + alpha * gt * (p - gt / gamma * xp)) - 1
    by_z = jnp.square(jnp.sin(x[0])) - alpha * jnp.square(gt * z) / gamma * p2 * jnp.exp(-x[1])
    f = (R * R - Q) / (2 * z) + Q / 2 - alpha * M
    stability = jnp.where(jnp.any(each.jumps), jnp.inf, alpha * b * b * response)
    return jnp.stack([by_R, by_Q, by_z]), Readings(f, stability, p)


def _nodes(m: Array, s: Array, b: Array) -> tuple[Array, Array, Array]:
    """Nodes $w$ on both sides of the jump, dense where the sigmoid is steep, the $x$ there, and $dw$."""
    at_jump = (-b / 2 - m) / s
    inside = jnp.abs(at_jump) < TAIL
    cut = jnp.clip(at_jump, -TAIL, TAIL)
    ends = jnp.stack([jnp.stack([-TAIL + 0 * cut, cut]), jnp.stack([cut, TAIL + 0 * cut])])  # [side, end] in x
    y = m + b / 2 + s * ends  # w - (b/2) tanh(w/2), odd in w
    y = jnp.where(inside & (ends == cut), 0.0, y)
    edges = jnp.array([[-1.0], [1.0]]) * _edge(b, jnp.abs(y))
    low, reach = jnp.arcsinh(edges[:, :1]), jnp.diff(jnp.arcsinh(edges))
    straight = jnp.diff(ends) * s / (1 - b * jax.nn.sigmoid(edges[:, :1]) * jax.nn.sigmoid(-edges[:, :1]))
    reach = jnp.where(s < NARROW, straight / jnp.cosh(low), reach)
    t, weight = legendre(NODES)
    # from the edge on, in a form that keeps its digits where the Gaussian is narrow
    shift = 2 * jnp.cosh(low + reach * t / 2) * jnp.sinh(reach * t / 2)
    w = edges[:, :1] + shift
    rise = jnp.tanh(shift / 2) * (1 - jnp.tanh(w / 2) * jnp.tanh(edges[:, :1] / 2)) / 2  # of the sigmoid
    x = ends[:, :1] + (shift - b * rise) / s
    return w.ravel(), x.ravel(), (jnp.asarray(weight) * reach * jnp.cosh(low + reach * t)).ravel()


def _edge(b: Array, y: Array) -> Array:
    r"""The largest $w$ with $w - (b/2) \tanh(w/2) = y$ for $y \ge 0$; at $y = 0$ the edge $w^*$ of the jump.

    The left side is convex for $w > 0$, so Newton's method from above comes down to it monotonically. The last two
    steps are taken outside `stop_gradient`: they have the first three derivatives of the solution.
    """

    def step(w: Array, b: Array, y: Array) -> Array:
        tanh = jnp.tanh(w / 2)
        return w - (w - b / 2 * tanh - y) / jnp.maximum(1 - b / 4 * (1 - tanh * tanh), 1e-12)

    b0, y0 = jax.lax.stop_gradient((b, y))
    straight = jnp.where(b0 < 4, y0 / jnp.maximum(1 - b0 / 4, 1e-12), jnp.inf)  # as steep everywhere as at 0
    start = jnp.minimum(y0 + b0 / 2, straight)

    def falls(state: tuple[Array, Array, Array]) -> Array:
        before, w, count = state
        return jnp.any(w < before) & (count < 40)  # a double root, of b = 4, needs that many

    begin = (jnp.full_like(start, jnp.inf), start, jnp.asarray(0))
    _, w, _ = jax.lax.while_loop(falls, lambda s: (s[1], step(s[1], b0, y0), s[2] + 1), begin)
    exists = (y0 > 0) | (b0 > 4)
    w = jnp.where(exists, w, 1.0)
    for _ in range(2):
        w = step(w, b, y)
    return jnp.where(exists, w, 0.0)
