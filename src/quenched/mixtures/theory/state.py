r"""The state of maximum likelihood as $N \to \infty$, as a pure JAX function.

Three phases: unsplit ($q = 0$), ordered ($r > 0$) and random ($q > 0$, $r = 0$). Below the splitting lines the random
state exists, and with it an ordered one exactly where the random state would gain by turning towards the truth; then
that is the state. Where the stability value exceeds 1, as in all of the random phase, replica symmetry is broken and
the numbers are approximations.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenched.core import gaussian, saddle
from quenched.core.types import Array, Outcome, Real, require_double
from quenched.mixtures.model import MaximumLikelihood, TwoGaussians
from quenched.mixtures.theory.equations import MIXTURE, ORDERED, RANDOM, Setting, guess_ordered, guess_random

DIRECTION = 1e-5
"""Cosines below this are treated as zero."""


class Phase(enum.IntEnum):
    """How the two centres lie."""

    unsplit = 0
    """They coincide."""
    ordered = 1
    """They are apart, in a direction that is correlated with the true one."""
    random = 2
    """They are apart, in a direction that only the accidents of the sample determine."""


class State(NamedTuple):
    """The state at one sample size and width."""

    r: Array
    q: Array
    error: Array
    energy: Array  # of an example
    free_energy: Array  # over N
    stability: Array
    phase: Array  # a `Phase` code
    outcome: Array  # an `Outcome` code
    residual: Array


def error(law: TwoGaussians, r: Real, q: Real) -> Array:
    r"""The probability of assigning a new example to the wrong centre.

    $$\epsilon_C = \Phi(-u_0 \cos\theta/\sqrt2), \qquad \cos\theta = \sqrt{2 r^2/q}$$

    and 1/2 at $q = 0$, where there is no direction. [barkai1994, eq. (9), erratum B3]
    """
    split = jnp.asarray(q) > 0
    cosine = jnp.where(split, jnp.sqrt(2.0) * r / jnp.sqrt(jnp.where(split, q, 1.0)), 0.0)
    return gaussian.cdf(-law.separation * cosine / jnp.sqrt(2.0))


def splitting(law: TwoGaussians, alpha: Real) -> Any:
    r"""The width below which one centre becomes two.

    $$\sigma_1 = (1 + l)\Big(1 + \frac{1}{\alpha l}\Big) \ \text{above}\ \alpha_c = l^{-2}, \qquad
      \sigma_2 = (1 + \alpha^{-1/2})^2 \ \text{below}, \qquad l = u_0^2/2$$

    the outlier and the edge of the spectrum of the examples' covariance.
    """
    xp = saddle.namespace(alpha)
    l = law.separation * law.separation / 2
    return xp.where(alpha * l * l > 1, (1 + l) * (1 + 1 / (alpha * l)), edge(alpha))


def edge(alpha: Real) -> Any:
    r"""$\sigma_2 = (1 + \alpha^{-1/2})^2$, below which there is a random state."""
    return (1 + alpha**-0.5) ** 2


def unsplit_stability(rule: MaximumLikelihood, alpha: Any) -> Any:
    r"""$\alpha a^2/(1-a)^2$, where $a$ is the smaller root of $\sigma = 1/\alpha a + 1/(1-a)$."""
    xp = saddle.namespace(alpha)
    s = alpha * rule.width
    half = (s + 1 - alpha) / 2
    a = (half - xp.sqrt(xp.maximum(half * half - s, 0.0))) / s
    return alpha * (a / (1 - a)) ** 2


def state(law: TwoGaussians, rule: MaximumLikelihood, alpha: Real) -> State:
    r"""The state after $\alpha$ examples per dimension: a pure JAX function of law, rule and $\alpha$.

    Args:
        law: the world.
        rule: the student.
        alpha: examples per dimension.

    Raises:
        InputError: in single precision.

    Examples:
        >>> import jax
        >>> from quenched import mixtures
        >>> law, rule = mixtures.TwoGaussians(2.0), mixtures.MaximumLikelihood
        >>> with jax.enable_x64(True):
        ...     error = jax.jit(jax.value_and_grad(lambda width: mixtures.theory.state(law, rule(width), 1.0).error))
        ...     value, slope = error(3.0)
        >>> round(float(value), 4), round(float(slope), 4)
        (0.1511, 0.0012)
    """
    require_double("mixtures.theory.state")
    alpha, width, separation = (jnp.asarray(x, float) for x in (alpha, rule.width, law.separation))
    log_l = jnp.log(jnp.square(separation) / 2)
    setting = Setting(log_l, jnp.log(alpha), jnp.log(width), jnp.zeros(3, int))
    starts = jnp.stack([guess_ordered(log_l, alpha, width), guess_random(alpha, width)])
    both = jax.vmap(lambda start, conditions: saddle.state(MIXTURE, setting._replace(conditions=conditions), start))(
        jax.lax.stop_gradient(starts), jnp.array([ORDERED, RANDOM])
    )
    split = width < splitting(law, alpha)
    order = (width >= edge(alpha)) | (both.readings.gain[1] > 0)
    found = jax.tree.map(lambda leaf: jnp.where(order, leaf[0], leaf[1]), both)
    r, q, energy, stability, _, _ = found.readings
    phase = jnp.where(r > DIRECTION * jnp.sqrt(q / 2), Phase.ordered, Phase.random)
    r, q, energy = (jnp.where(split, value, 0.0) for value in (jnp.where(order, r, 0.0), q, energy))
    return State(
        r=r,
        q=q,
        error=error(law, r, q),
        energy=energy,
        free_energy=alpha * energy,
        stability=jnp.where(split, stability, unsplit_stability(rule, alpha)),
        phase=jnp.where(split, phase, Phase.unsplit),
        outcome=jnp.where(split, found.outcome, Outcome.converged),
        residual=jnp.where(split, found.residual, 0.0),
    )
