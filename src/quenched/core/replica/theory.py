r"""The theory: a free energy of three order parameters, made stationary.

$$f(R, Q, z) = \frac{R^2/\rho^2 - Q}{2z} + \text{norm}(R, Q)
  + \alpha \sum_V w_V \Big\langle \min_y \Big[ \frac{(y - u)^2}{2 z v_V} + \ell(y, Q) \Big] \Big\rangle_u ,$$

where $z$ is the susceptibility, $\lim \beta (Q - q)$ as the temperature $1/\beta$ goes to zero. Limit taken:
$N \to \infty$ at $\alpha N$ examples, then zero temperature, in replica symmetry. That is exact for convex energies;
for others it holds while the `stability` is below 1. Not covered: two vectors, energies of two fields, finite
temperature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenched.core import saddle
from quenched.core.replica.averages import Nodes, nodes
from quenched.core.replica.landmarks import Landmarks, landmarks
from quenched.core.replica.problem import Problem
from quenched.core.types import QUICK, Array, Real


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
