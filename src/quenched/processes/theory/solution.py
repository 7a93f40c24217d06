r"""The fixed point at one size, and what follows from it at every row.

$$u_i = u(g_i), \qquad g = \mathrm{diag}\, G(u) \qquad (\text{unique; Newton with Jacobian } M = (G \circ G)\,w)$$
$$R = G (u \circ y), \qquad b = R - y, \qquad \varepsilon = (1 - M)^{-1} b^2, \qquad V = \varepsilon - b^2$$
$$g^{oob} = g/(1-q), \qquad b^{oob} = b/(1-q), \qquad \varepsilon^{oob} = \varepsilon\,(1 - c)/(1-q)^2,
  \qquad q = u g,\ c = w g^2$$

Everything is an average over data sets; "oob" means over those without the row. The spectral radius of $M$ is below 1,
so $V \ge 0$ exists. [malzahn2002, eqs. (10) to (19); out-of-bag and cavity beyond the paper]
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from quenched.core.types import Array, Outcome
from quenched.processes.theory.algebra import Algebra, Response
from quenched.processes.theory.closures import Closure, Site

NEWTON_STEP = 1e-5
"""A Newton step below this, relative, leaves an error of its square."""
FORCING = 1e-2
"""Relative accuracy of the linear system of a Newton step, where it is solved by iteration."""
MAX_STEPS = 60


class Solution(NamedTuple):
    """What one size gives at each row; every array is `[N]` but the last three."""

    g: Array  # posterior variance
    mean: Array  # R, mean prediction
    spread: Array  # V, variance of the prediction over data sets
    error: Array  # eps
    oob_variance: Array  # g_oob
    oob_mean: Array  # mean prediction out of bag
    oob_error: Array  # eps_oob
    u: Array  # effective precision
    kappa: Array  # w eps, so that V = G diag(kappa) G
    outcome: Array  # an `Outcome` code
    residual: Array  # largest relative change that one more plain iteration would make
    steps: Array


def solve(
    algebra: Algebra, y: Array, s2: Array, mu: Array, closure: Closure, start: Array, *, terms: int,
    implicit: bool = True,
) -> tuple[Solution, Response]:  # fmt: skip
    r"""Solve the equations at one size.

    Args:
        algebra: the prior covariance.
        y: standardised targets.
        s2: noise variance.
        mu: $m/N$.
        closure: `Cavity()` or `Variational()`.
        start: posterior variances to begin with, not below the solution: those of a smaller size, or the prior's.
        terms: multiplicities to sum over.
        implicit: whether derivatives are wanted; they cost one more Newton step.

    Returns:
        The solution and the response that belongs to it.
    """
    frozen = jax.lax.stop_gradient((algebra, y, s2, mu, closure, start))
    g, steps = _newton(frozen[0], *frozen[2:], terms=terms)
    if implicit:  # one differentiable Newton step at the solution has the derivatives of the solution
        g = jax.lax.stop_gradient(g)
        site = closure.site(g, mu, s2, terms)
        response = algebra.response(site.u)
        g = g + response.solve(jax.lax.stop_gradient(site.w), response.diagonal() - g, jnp.zeros_like(g), 1e-7)
    site = closure.site(g, mu, s2, terms)
    response = algebra.response(site.u)
    residual = jnp.max(jnp.abs(response.diagonal() - g) / jnp.where(g > 0, g, 1.0))
    outcome = jnp.where(residual < 1e-6, Outcome.converged, Outcome.stalled)
    outcome = jnp.where(jnp.isfinite(residual), outcome, Outcome.failed)
    return _rows(site, response, y, g, outcome, residual, steps), response


def _rows(
    site: Site, response: Response, y: Array, g: Array, outcome: Array, residual: Array, steps: Array
) -> Solution:
    """Everything that follows from the response."""
    R = response.apply(site.u * y)
    b = R - y
    eps = response.solve(site.w, jnp.square(b), jnp.square(b), 1e-7)
    V = response.square(site.w * eps)  # not eps - b^2, which loses digits
    oob_error = eps * (1 - site.w * jnp.square(g)) / jnp.square(site.keep)
    return Solution(
        g, R, V, eps, g / site.keep, y + b / site.keep, oob_error, site.u, site.w * eps, outcome, residual, steps
    )


def _newton(
    algebra: Algebra, s2: Array, mu: Array, closure: Closure, start: Array, *, terms: int
) -> tuple[Array, Array]:
    """Newton's method for $g = diag G(u(g))$, and the number of its steps.

    From above the solution the steps go down monotonically. A step is never let below a tenth of what it began with,
    so that a start on the wrong side cannot leave the positive numbers.
    """

    def body(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        g, _, count = state
        site = closure.site(g, mu, s2, terms)
        response = algebra.response(site.u)
        gap = response.diagonal() - g
        new = jnp.maximum(g + response.solve(site.w, gap, gap, FORCING), 0.1 * (g + jnp.minimum(gap, 0.0)))
        change = jnp.max(jnp.abs(new - g) / jnp.where(g > 0, g, 1.0))
        return new, change, count + 1

    def going(state: tuple[Array, Array, Array]) -> Array:
        return (state[1] > NEWTON_STEP) & (state[2] < MAX_STEPS)  # a value that is not a number ends it, too

    g, _, steps = jax.lax.while_loop(going, body, (start, jnp.asarray(jnp.inf), jnp.asarray(0)))
    return g, steps


@functools.partial(jax.jit, static_argnames=("terms", "implicit"))
def solved(
    algebra: Algebra, y: Array, s2: Array, mu: Array, closure: Closure, start: Array, *, terms: int, implicit: bool
) -> tuple[Solution, Response]:
    """`solve`, compiled."""
    return solve(algebra, y, s2, mu, closure, start, terms=terms, implicit=implicit)
