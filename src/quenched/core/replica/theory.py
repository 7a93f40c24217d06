r"""The theory: a free energy of three order parameters, made stationary.

$$f(R, Q, z) = \frac{R^2/\rho^2 - Q}{2z} + \text{norm}(R, Q)
  + \alpha \sum_V w_V \Big\langle \min_y \Big[ \frac{(y - u)^2}{2 z v_V} + \ell(y, Q) \Big] \Big\rangle_u ,$$

where $z$ is the susceptibility, $\lim \beta (Q - q)$ as the temperature $1/\beta$ goes to zero. Limit taken:
$N \to \infty$ at $\alpha N$ examples, then zero temperature, in replica symmetry. That is exact for convex energies;
for others it holds while the `stability` is below 1. Not covered: two vectors, energies of two fields, finite
temperature.

With $y(u)$ the field after training (see `landmarks`), averages over examples are integrals over $y$,

$$\langle F \rangle = \int dy\; u'(y)\, p(u(y))\, F(y, u(y)), \qquad u(y) = y + s\,\ell'(y).$$

A convex kink of $\ell$ holds the map: there $y$ stays while $u$ moves, and the integral goes over $u$. The nodes $y$
are constants, but ends of intervals move with the parameters: the field $u_c$ at which the map jumps, and the fields
beside a kink. What they pass is one more node each, of weight zero, whose derivatives are exact to second order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import saddle
from quenched.core.gaussian import legendre, pdf
from quenched.core.replica.landmarks import GAPS, Landmarks, Law, chord, landmarks, laws, near
from quenched.core.replica.problem import Problem
from quenched.core.types import QUICK, Array, Real

HELD, NODES = 4, 16
"""Panels of a kink that holds the map, and Gauss-Legendre nodes on each."""


class Setting(NamedTuple):
    """The parameters of the theory."""

    problem: Problem
    alpha: Any


class Readings(NamedTuple):
    """Further values at a state."""

    example_energy: Array  # mean energy of an example after training
    stability: Array  # replica symmetry is stable below 1


class Replica(saddle.Theory):
    r"""The saddle-point equations free of units, for the cosine $R/(\rho \sqrt Q)$, $\ln Q$ and $\ln z$:

    $$\frac{\rho z}{\sqrt Q} \frac{\partial f}{\partial R} = 0, \qquad 2z \frac{\partial f}{\partial Q} = 0, \qquad
      \frac{2z^2}{Q} \frac{\partial f}{\partial z} = 0 .$$
    """

    furthest = 1.5

    def landmarks(self, x: Any, theta: Setting) -> Landmarks:
        """Gaps and panels."""
        return (_landmarks if isinstance(x, jax.Array) else _landmarks_on_host)(x, theta)

    def kernel(self, x: Array, theta: Setting, marks: Landmarks) -> saddle.Kernel:
        """The equations, the free energy and the readings."""
        problem, alpha = theta
        R, Q, z = order_parameters(problem, x)
        at = nodes(problem, R, Q, z, marks)
        f, (f_R, f_Q, f_z), readings = differentiate(problem, alpha, R, Q, z, at)
        G = jnp.stack([z * jnp.sqrt(problem.rho2 / Q) * f_R, 2 * z * f_Q, 2 * z * z / Q * f_z])
        return saddle.Kernel(G, f, readings)

    def relax(self, x: Array, equations: Array) -> Array:
        """Each equation is solved for its own order parameter, and half the way is gone."""
        r = equations
        ln_Q, ln_z = jnp.log(jnp.maximum(1 - r[2], 0.1)), -jnp.log(jnp.maximum(1 + r[1], 0.1))
        return 0.5 * jnp.stack([(x[0] - r[0]) * jnp.exp(-0.5 * ln_Q) - x[0], ln_Q, ln_z])


REPLICA = Replica()


def _landmarks(x: Array, theta: Setting) -> Landmarks:
    return landmarks(theta.problem, *order_parameters(theta.problem, x))


_landmarks_on_host = jax.jit(_landmarks, compiler_options=QUICK)


def order_parameters(problem: Problem, x: Array) -> tuple[Array, Array, Array]:
    """R, Q and z from the unknowns: the cosine, ln Q and ln z."""
    Q, z = jnp.exp(x[1]), jnp.exp(x[2])
    return x[0] * jnp.sqrt(problem.rho2 * Q), Q, z


def differentiate(
    problem: Problem, alpha: Real, R: Array, Q: Array, z: Array, at: Nodes
) -> tuple[Array, tuple[Array, Array, Array], Readings]:
    r"""The free energy, its derivatives by $R$, $Q$ and $z$, and the readings.

    The minimum over $y$ needs no derivative of its own (envelope theorem), so these are averages of the explicit
    derivatives, while every example keeps its `y` and its place in the Gaussian.
    """
    _, m, v, n = problem.classes.table()
    pull, place = at.u - at.y, at.u - (m * R)[:, None]
    moments = jnp.stack([pull, pull * pull, pull * place, at.energy, at.by_Q, jnp.square(at.slope - 1)])
    pull, square, spread, energy, by_Q, response = jnp.sum(at.weight * moments, axis=-1)  # [classes]
    norm, (norm_R, norm_Q) = jax.value_and_grad(problem.norm, (0, 1))(R, Q)
    example_energy, half_square = jnp.sum(energy), 0.5 * jnp.sum(square / v) / (z * z)
    f_R = R / (problem.rho2 * z) + norm_R + alpha * jnp.sum(m * pull / v) / z
    f_Q = norm_Q - 0.5 / z + alpha * jnp.sum(by_Q + 0.5 * spread / (v * Q + n) / z)
    ratio = (R * R / problem.rho2 - Q) / (2 * z)
    f_z = -ratio / z - alpha * half_square
    stability = jnp.where(jnp.any(at.jumps), jnp.inf, alpha * jnp.sum(response))
    f = ratio + norm + alpha * (z * half_square + example_energy)
    return f, (f_R, f_Q, f_z), Readings(example_energy, stability)


class Nodes(NamedTuple):
    """Nodes of an average over all classes, each `[classes, nodes]`."""

    y: Array  # field after training
    u: Array  # field before
    slope: Array  # dy/du
    weight: Array  # its sum is 1
    energy: Array
    by_Q: Array  # derivative of the energy
    jumps: Array  # whether the map jumps, [classes]


class _Jet(NamedTuple):
    """The energy with its derivatives, at fields `[...]`."""

    energy: Array
    first: Array
    second: Array
    by_Q: Array
    mixed: Array


def nodes(problem: Problem, R: Array, Q: Array, z: Array, marks: Landmarks) -> Nodes:
    """Nodes and weights of `sum_V w_V < . >`: differentiable in everything but `marks`."""
    kinks, jet = jnp.asarray(problem.kinks, float).reshape(-1), _jet(problem, Q)
    count = 2 * (GAPS + kinks.size)  # of ends
    is_end = np.arange(marks.y.shape[1]) >= marks.y.shape[1] - count

    def of_class(law: Law, marks: Landmarks, share: Array) -> Nodes:
        at = jet(marks.y)
        u, stretch = marks.y + law.s * at.first, 1 + law.s * at.second  # u(y) and u'(y)
        edges = _Jet(*(part[-count:][: 2 * GAPS].reshape(2, GAPS) for part in at))
        jump, end, held = _jump(law, jnp.stack([marks.a, marks.b]), edges), kinks, ()
        if kinks.size:
            jump, end, held = _kinks(jet, law, marks, kinks, edges)
        end = jnp.concatenate([jump, jump, end])
        passed = jnp.where(marks.dy[-count:] == 0, 0.0, end - u[-count:])
        passed = jnp.append(jnp.zeros(u.size - count), passed)
        move, du = 0.5 * passed / stretch, marks.dy * jnp.where(is_end, passed, stretch)
        found = (
            marks.y + move, u + 0.5 * passed, 1 / stretch, du, at.energy + at.first * move, at.by_Q + at.mixed * move
        )  # fmt: skip
        if held:
            found = [jnp.concatenate(pair) for pair in zip(found, held, strict=True)]
        y, u, slope, du, energy, by_Q = found
        weight = share * du * pdf((u - law.mean) / law.sd) / law.sd
        jumps = jnp.any(marks.b > marks.a) | jnp.any(stretch < 0)
        return Nodes(y, u, slope, jnp.where(marks.valid, weight, jnp.nan), energy, by_Q, jumps)

    return jax.vmap(of_class)(laws(problem, R, Q, z), marks, problem.classes.table()[0])


def _jet(problem: Problem, Q: Array) -> Callable[[Array], _Jet]:
    """The energy with its derivatives as a function of fields `[n]`."""
    slopes = jax.value_and_grad(problem.energy, (0, 1))

    def one(y: Array) -> _Jet:
        (energy, (first, by_Q)), (_, (second, mixed)) = jax.jvp(lambda y: slopes(y, Q), (y,), (jnp.ones_like(y),))
        return _Jet(energy, first, second, by_Q, mixed)

    return jax.vmap(one)


def _jump(law: Law, edges: Array, at: _Jet, free: Any = True) -> Array:
    """The fields at which the map jumps, with two derivatives: the chord between edges moved to first order."""
    move = (chord(law, *edges, *at.energy) - edges - law.s * at.first) / (1 + law.s * at.second)
    move = jnp.where(free, move, 0.0)
    return chord(law, *(edges + move), *(at.energy + at.first * move + 0.5 * at.second * jnp.square(move)))


def _kinks(
    jet: Callable[[Array], _Jet], law: Law, marks: Landmarks, kinks: Array, at_edges: _Jet
) -> tuple[Array, Array, tuple[Array, ...]]:
    """The fields where the map jumps, those just below and just above kinks, and nodes where a kink holds the map."""
    side = near(marks.kinks)
    at = jax.tree.map(lambda part: part.reshape(2, -1), jet(jnp.append(kinks - side, kinks + side)))
    kink_energy, by_Q = (jnp.mean(part, axis=0) for part in (at.energy, at.by_Q))
    edges = jnp.stack([marks.a, marks.b])
    match = (edges[..., None] == marks.kinks) & (marks.b > marks.a)[:, None]  # an edge on a kink moves with it
    on_kink = jnp.any(match, axis=-1)
    edges = jnp.where(on_kink, jnp.sum(jnp.where(match, kinks, 0.0), axis=-1), edges)
    energy = jnp.where(on_kink, jnp.sum(jnp.where(match, kink_energy, 0.0), axis=-1), at_edges.energy)
    jump = _jump(law, edges, at_edges._replace(energy=energy), ~on_kink)
    ends = kinks + law.s * at.first
    is_a, is_b = jnp.moveaxis(match, -1, 1)  # [kinks, GAPS]: there the field ends where the map jumps
    below = jnp.where(jnp.any(is_b, axis=1), jnp.sum(jnp.where(is_b, jump, 0.0), axis=1), ends[0])
    above = jnp.where(jnp.any(is_a, axis=1), jnp.sum(jnp.where(is_a, jump, 0.0), axis=1), ends[1])
    below, above = jnp.clip(below, *law.ends), jnp.clip(above, *law.ends)
    passed = jnp.any((marks.kinks[:, None] > marks.a) & (marks.kinks[:, None] < marks.b), axis=1)
    width = jnp.where(passed, 0.0, jnp.maximum(above - below, 0.0))
    x, gauss = legendre(NODES)
    x = (np.arange(HELD)[:, None] + x).reshape(-1, 1) / HELD
    du = width * np.tile(gauss, HELD)[:, None] / HELD
    held = (kinks, below + width * x, 0.0 * kinks, du, kink_energy, by_Q)
    return jump, ends.reshape(-1), tuple(jnp.broadcast_to(part, du.shape).reshape(-1) for part in held)
