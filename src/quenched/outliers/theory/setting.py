r"""The parameters of the theory, and three unknowns of order one with equations free of units.

Every student here has a free energy $f(R, Q, z)$, where $z = \lim \beta (Q - q)$ is the susceptibility. The unknowns
are $u = \tan(\theta/2)$, where $R = \sqrt Q \cos\theta$, $\ln Q$ and $\ln z$, the equations

$$\frac{z}{\sqrt Q} \frac{\partial f}{\partial R} = 0, \qquad 2z \frac{\partial f}{\partial Q} = 0, \qquad
  \frac{2z^2}{Q} \frac{\partial f}{\partial z} = 0 ,$$

so that states with $Q \to 0$ are as easy as others. In $u$ no angle is needed: $\cos\theta = (1 - u^2)/(1 + u^2)$,
$\sin\theta = 2u/(1 + u^2)$. For Gibbs learning $q$ stands in the place of $Q$.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.saddle import Theory, namespace
from quenched.core.types import Array, Real
from quenched.outliers.model import Contaminated, Gibbs, Rule, gamma_of


class Setting(NamedTuple):
    """Law, rule and sample size in numbers."""

    gamma: Any
    gt: Any  # the student's
    eta: Any
    alpha: Any
    temperature: Any = 0.0

    @property
    def weights(self) -> Any:
        """Shares of outliers and of informative examples."""
        if namespace(self.eta) is np:
            return np.exp(-np.logaddexp(0.0, np.stack([-self.eta, self.eta])))
        return jnp.stack([jax.nn.sigmoid(self.eta), jax.nn.sigmoid(-self.eta)])


class Readings(NamedTuple):
    """Further values at a state."""

    stability: Array
    selected: Array
    energy: Array  # of the vector: the free energy, but for Gibbs learning


def numbers(law: Contaminated, rule: Rule, alpha: Real) -> Setting:
    """The parameters of a law, a rule and a sample size; NumPy numbers where they are known."""
    T = rule.temperature if isinstance(rule, Gibbs) else 0.0
    values = (law.gamma, gamma_of(law, rule), law.eta, alpha, T)
    return Setting(*(v if isinstance(v, jax.Array) else np.float64(v) for v in values))


def direction(x: Array) -> tuple[Array, Array]:
    """Cosine and sine of the angle to the teacher."""
    u2 = x[0] * x[0]
    return (1 - u2) / (1 + u2), 2 * x[0] / (1 + u2)


def order_parameters(x: Array) -> tuple[Array, Array, Array]:
    """R, Q and z from the unknowns."""
    xp = namespace(x)
    Q, z = xp.exp(x[1]), xp.exp(x[2])
    return direction(x)[0] * xp.sqrt(Q), Q, z


def unknowns(R: Any, Q: Any, z: Any) -> Any:
    """The unknowns from R, Q and z."""
    xp = namespace(R)
    return xp.stack([xp.sqrt(Q - R * R) / (xp.sqrt(Q) + R), xp.log(Q), xp.log(z)])


def scales(R: Any, Q: Any, q: Any, z: Any, theta: Setting) -> tuple[Any, Any, Any]:
    r"""Mean of the field $a$ for outliers and informative examples, its standard deviation, and $b$."""
    gamma, gt, eta, _, _ = theta
    m = -gt * Q / 2 - eta + np.array([0.0, 1.0]) * gt * R
    return m, gt * namespace(q).sqrt(q / gamma), gt * gt * z / gamma


def free_of_units(slopes: tuple[Array, Array, Array], Q: Array, z: Array) -> Array:
    """The equations from the slopes of the free energy by R, Q and z."""
    f_R, f_Q, f_z = slopes
    return jnp.stack([z / jnp.sqrt(Q) * f_R, 2 * z * f_Q, 2 * z * z / Q * f_z])


class Student(Theory):
    """A theory in these unknowns, with `Setting` as its parameters and `Readings` beside its free energy."""

    def relax(self, x: Array, equations: Array) -> Array:
        """Each equation is solved for its own order parameter, and half the way is gone."""
        cosine, sine = direction(x)
        R, noise = cosine - equations[0], jnp.maximum(sine * sine - equations[2], 1e-6)  # R/sqrt Q, (Q - R^2)/Q
        Q = R * R + noise
        u = jnp.sqrt(noise) / (jnp.sqrt(Q) + R)
        return 0.5 * jnp.stack([u - x[0], jnp.log(Q), -jnp.log(jnp.maximum(1 + equations[1], 0.1))])
