"""The closure at one size as a pure JAX function, and the measures that follow from a solution."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from quenched.core.linear import namespace, special
from quenched.core.types import Array, Real, require_double
from quenched.processes.model import LEVEL, MULTIPLICITIES, Empirical, GaussianProcess, numbers
from quenched.processes.theory.closures import Closure, closure_of, counts_of
from quenched.processes.theory.equations import Solution, solve
from quenched.processes.theory.responses import Exact


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
