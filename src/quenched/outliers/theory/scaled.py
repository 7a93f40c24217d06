r"""The search for a state: three saddle-point equations, free of units, in three unknowns of order one.

Every student here has a free energy $f(R, Q, z)$, where $z = \lim \beta (Q - q)$ is the susceptibility. The unknowns
are the angle $\theta$ with $R = \sqrt Q \cos\theta$, $\ln Q$ and $\ln z$, the equations

$$\frac{z}{\sqrt Q} \frac{\partial f}{\partial R} = 0, \qquad 2z \frac{\partial f}{\partial Q} = 0, \qquad
  \frac{2z^2}{Q} \frac{\partial f}{\partial z} = 0 ,$$

so that states with $Q \to 0$ are as easy as others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenched.core.fixed_point import Solution, implicit, three
from quenched.core.types import Array, Outcome, Real
from quenched.outliers.model import Contaminated, Rule, gamma_of

ACCURACY = 1e-9
"""A state is one whose equations hold to this; most hold to 1e-13."""
RELAXED = 40
"""Steps of plain iteration with which a search begins: they stay in the valley in which they start."""
STEPS = 120
"""Steps of the search at most, those included."""


class Setting(NamedTuple):
    r"""Law, rule and sample size in numbers."""

    gamma: Any
    gt: Any  # the student's
    eta: Any
    alpha: Any

    @property
    def weights(self) -> Array:
        """Shares of outliers and of informative examples."""
        return jnp.stack([jax.nn.sigmoid(self.eta), jax.nn.sigmoid(-self.eta)])


class Readings(NamedTuple):
    """What is read off at a state."""

    free_energy: Array
    stability: Array
    selected: Array


Equations = Callable[[Array, Any], tuple[Array, Readings]]


def setting(law: Contaminated, rule: Rule, alpha: Real) -> Setting:
    """The numbers of a law, a rule and a sample size."""
    return Setting(*(jnp.asarray(v, float) for v in (law.gamma, gamma_of(law, rule), law.eta, alpha)))


def order_parameters(x: Array) -> tuple[Array, Array, Array]:
    """R, Q and z from the angle, ln Q and ln z."""
    Q, z = jnp.exp(x[1]), jnp.exp(x[2])
    return jnp.cos(x[0]) * jnp.sqrt(Q), Q, z


def unknowns(R: Real, Q: Real, z: Real) -> Array:
    """The angle, ln Q and ln z."""
    R, Q, z = (jnp.asarray(v, float) for v in (R, Q, z))
    return jnp.stack([jnp.arccos(R / jnp.sqrt(Q)), jnp.log(Q), jnp.log(z)])


def free_of_units(slopes: tuple[Array, Array, Array], Q: Array, z: Array) -> Array:
    """The equations from the slopes of the free energy by R, Q and z."""
    f_R, f_Q, f_z = slopes
    return jnp.stack([z / jnp.sqrt(Q) * f_R, 2 * z * f_Q, 2 * z * z / Q * f_z])


def relaxed(x: Array, r: Array) -> Array:
    """A step of plain iteration: each equation is solved for its own order parameter, and half the way is gone."""
    R, noise = jnp.cos(x[0]) - r[0], jnp.maximum(jnp.square(jnp.sin(x[0])) - r[2], 1e-6)  # new R/sqrt Q, (Q - R^2)/Q
    theta, ln_Q = jnp.arctan2(jnp.sqrt(noise), R), jnp.log(R * R + noise)
    return 0.5 * jnp.stack([theta - x[0], ln_Q, -jnp.log(jnp.maximum(1 + r[1], 0.1))])


def search(equations: Equations, start: Array, at: Any, *, plain_steps: Any = RELAXED) -> Solution:
    """The state near a start; not differentiable."""
    start, at = jax.lax.stop_gradient((start, at))

    def both(x: Array) -> tuple[Array, Array]:
        r, readings = equations(x, at)
        return r, jnp.stack(readings)

    return three(both, start, plain=relaxed, plain_steps=plain_steps, max_steps=STEPS)


def differentiable(equations: Equations, found: Solution, at: Any) -> tuple[Array, Readings]:
    """Unknowns and readings of a state that was found, with their derivatives by the setting."""

    def both(x: Array, at: Any) -> tuple[Array, Array]:
        r, readings = equations(x, at)
        return r, jnp.stack(readings)

    x = implicit(both, found.value, at)
    return x[:3], Readings(*x[3:])


def outcome(found: Solution) -> Array:
    """Whether the search came to a state."""
    return jnp.where(found.residual < ACCURACY, Outcome.converged, found.outcome)
