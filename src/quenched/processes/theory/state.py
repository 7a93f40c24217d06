r"""The closure at one size: its fixed point, what follows from it at every row, and the measures that are reported.

$$u_i = u(g_i), \qquad g = \mathrm{diag}\, G(u) \qquad (\text{unique; Newton with Jacobian } M = (G \circ G)\,w)$$
$$R = G (u \circ y), \qquad b = R - y, \qquad \varepsilon = (1 - M)^{-1} b^2, \qquad V = \varepsilon - b^2$$
$$g^{oob} = g/(1-q), \qquad b^{oob} = b/(1-q), \qquad \varepsilon^{oob} = \varepsilon\,(1 - c)/(1-q)^2,
  \qquad q = u g,\ c = w g^2$$

Everything is an average over data sets; "oob" means over those without the row. The spectral radius of $M$ is below 1,
so $V \ge 0$ exists. Arrays are NumPy's where the curve is computed, and JAX's where derivatives are wanted.
Other measures than the squared error come from the Gaussian approximation: over data sets the prediction at a row is
normal with this mean and spread. [malzahn2002, eqs. (10) to (19); out-of-bag and cavity beyond the paper]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.linear import namespace, repeat_while, special
from quenched.core.types import Array, Outcome, Real, is_traced, require_double
from quenched.processes.model import LEVEL, MULTIPLICITIES, Empirical, GaussianProcess, numbers
from quenched.processes.theory.closures import Closure, Counts, Site, closure_of, counts_of
from quenched.processes.theory.responses import Covariance, Exact

NEWTON_STEP = 1e-5
"""A Newton step below this, relative, leaves an error of its square."""
FORCING = 1e-2
"""Relative accuracy of the linear system of a Newton step, at least, where it is solved by iteration."""
ACCURATE = 1e-9
"""Relative accuracy of a linear system whose solution is reported."""
MAX_STEPS = 60


class Solution(NamedTuple):
    """What one size gives at each row; every array is `[N]` but the last two."""

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


def solve(
    prior: Covariance, y: Array, s2: Array, counts: Counts, closure: Closure, start: Array
) -> tuple[Solution, Covariance]:
    """Solve the equations at one size; the solution, and the response that belongs to it.

    The posterior variances to start from must not be below the solution: those of a smaller size, or the prior's. JAX
    arrays get the derivatives of the solution: those of one more Newton step there.
    """
    xp, stop = namespace(y), jax.lax.stop_gradient
    equations: Equations = prior, s2, counts, closure
    if xp is np:
        g = _newton(equations, start)
    else:
        g = stop(_newton(*stop((equations, start))))
        site, response, gap = _evaluate(equations, g)
        g = g + response.solve(stop(site.w), gap, xp.zeros_like(g), ACCURATE)
    site, response, gap = _evaluate(equations, g)
    residual = xp.max(xp.abs(gap) / xp.where(g > 0, g, 1.0))
    outcome = xp.where(residual < 1e-6, Outcome.converged, Outcome.stalled)
    outcome = xp.where(xp.isfinite(residual), outcome, Outcome.failed)
    R = response.apply(site.u * y)
    b = R - y
    eps = response.solve(site.w, b**2, b**2, ACCURATE)
    V = response.square(site.w * eps)  # not eps - b^2, which loses digits
    oob = leave_out(site, y, g, b, eps)
    return Solution(g, R, V, eps, *oob, site.u, site.w * eps, outcome, residual), response


def leave_out(site: Site, y: Array, g: Array, b: Array, eps: Array) -> tuple[Array, Array, Array]:
    """Variance, mean and error at every row, averaged over the data sets without it."""
    return g / site.keep, y + b / site.keep, eps * (1 - site.w * g**2) / site.keep**2


Equations = tuple[Covariance, Array, Counts, Closure]
"""Prior covariance, noise variance, multiplicities and closure."""


def _evaluate(equations: Equations, g: Array) -> tuple[Site, Covariance, Array]:
    """The closure and the response at given variances, and by how much those of the response differ from them."""
    prior, s2, counts, closure = equations
    site = closure.site(g, counts, s2)
    response = prior.respond(site.u)
    return site, response, response.diagonal() - g


def _newton(equations: Equations, start: Array) -> Array:
    """Newton's method for $g = diag G(u(g))$; from above the solution the steps go down monotonically."""
    xp = namespace(start)

    def body(state: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
        g, change, count = state
        site, response, gap = _evaluate(equations, g)
        accuracy = FORCING if is_traced(change) else min(FORCING, float(change) ** 2)
        least = 0.1 * (g + xp.minimum(gap, 0.0))  # so that a start on the wrong side cannot make it negative
        new = xp.maximum(g + response.solve(site.w, gap, gap, accuracy), least)
        return new, xp.max(xp.abs(new - g) / xp.where(g > 0, g, 1.0)), count + 1

    def going(state: tuple[Array, Any, Any]) -> Any:
        return (state[1] > NEWTON_STEP) & (state[2] < MAX_STEPS)  # NaN ends it, too

    return repeat_while(going, body, (start, xp.asarray(np.inf), xp.asarray(0)))[0]


class State(NamedTuple):
    """A learning curve at one size: averages over rows, and rows. Errors are shares of the target's variance."""

    posterior_variance: Array
    oob_variance: Array
    error: Array
    oob_error: Array
    absolute_error: Array
    oob_absolute_error: Array
    coverage: Array
    oob_coverage: Array
    mean: Array  # [N]
    spread: Array  # [N]
    point_variance: Array  # [N]
    point_error: Array  # [N]
    point_oob_error: Array  # [N]
    multiplicity_error: Array  # [4]
    outcome: Array
    residual: Array


def state(law: Empirical, rule: GaussianProcess, examples: Real, closure: Closure | None = None) -> State:
    r"""The closure at one size: a pure JAX function of law, rule and size, to be compiled and differentiated.

    `curve` adds what the closure leaves out, at trusted sizes a few percent at most; here is the closure alone. The
    equations are exact in the kernel ($O(N^3)$). Derivatives with respect to kernel parameters, noise, targets, inputs
    and `examples` are those of the solution, by one implicit step.

    Args:
        law: the world.
        rule: the student.
        examples: $m$, the mean number of rows in a data set.
        closure: `Cavity()` by default.

    Raises:
        InputError: in single precision.

    Examples:
        >>> import jax
        >>> from sklearn.datasets import load_diabetes
        >>> from tinygp import kernels
        >>> from quenched import processes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> law = processes.Empirical(X[:60], y[:60])
        >>> rule = processes.GaussianProcess(kernels.ExpSquared(0.3), noise=0.1)
        >>> with jax.enable_x64(True):
        ...     slope = jax.jit(jax.grad(lambda rule: processes.theory.state(law, rule, 60.0).oob_error))(rule)
        >>> float(slope.noise) < 0
        True
    """
    require_double("processes.theory.state")
    n = numbers(law, rule)
    counts, prior = counts_of(jnp.asarray(examples, float) / law.rows), Exact(n.K)
    found, _ = solve(prior, n.y, n.s2, counts, closure_of(closure), prior.diagonal())
    return measures_of(found, n.y, n.s2)


def measures_of(found: Solution, y: Array, s2: Array) -> State:
    """Averages over rows, and other measures than the squared error."""
    xp = namespace(y)
    b, b_oob = found.mean - y, found.oob_mean - y
    V_oob = xp.maximum(found.oob_error - b_oob**2, 0.0)
    k = xp.arange(MULTIPLICITIES)[:, None]
    given = found.oob_error / (1 + k * found.oob_variance / s2) ** 2
    inside, outside = found.g + s2, found.oob_variance + s2
    return State(
        found.g.mean(), found.oob_variance.mean(), found.error.mean(), found.oob_error.mean(),
        _absolute(b, found.spread).mean(), _absolute(b_oob, V_oob).mean(),
        _coverage(b, found.spread, inside).mean(), _coverage(b_oob, V_oob, outside).mean(),
        found.mean, found.spread, found.g, found.error, found.oob_error, given.mean(axis=1),
        found.outcome, found.residual,
    )  # fmt: skip


def _absolute(b: Array, V: Array) -> Array:
    r"""$\langle |b + \sqrt V z| \rangle$ over a standard normal $z$."""
    xp = namespace(b)
    sd = xp.sqrt(xp.where(V > 0, V, 1.0))
    x = b / sd
    folded = sd * xp.sqrt(2 / xp.pi) * xp.exp(-(x**2) / 2) + b * (1 - 2 * special(b).ndtr(-x))
    return xp.where(V > 0, folded, xp.abs(b))


def _coverage(b: Array, V: Array, variance: Array) -> Array:
    r"""The probability that $|b + \sqrt V z|$ is inside the predictive interval of the given variance."""
    xp, normal = namespace(b), special(b)
    half = normal.ndtri((1 + LEVEL) / 2) * xp.sqrt(variance)
    sd = xp.sqrt(xp.where(V > 0, V, 1.0))
    return xp.where(V > 0, normal.ndtr((half - b) / sd) - normal.ndtr((-half - b) / sd), xp.abs(b) < half)
