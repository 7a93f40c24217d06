r"""The theory: a free energy of three order parameters, made stationary.

$$f(R, Q, z) = \frac{R^2/\rho^2 - Q}{2z} + \text{norm}(R, Q)
  + \alpha \sum_V w_V \Big\langle \min_y \Big[ \frac{(y - u)^2}{2 z v_V} + \ell(y, Q) \Big] \Big\rangle_u ,$$

where $z$ is the susceptibility, $\lim \beta (Q - q)$ as the temperature $1/\beta$ goes to zero. Limit taken:
$N \to \infty$ at $\alpha N$ examples, then zero temperature, in replica symmetry. That is exact for convex energies;
for others it holds while the `stability` is below 1. Not covered: two vectors, energies of two fields, finite
temperature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core import checks, results
from quenched.core.fixed_point import Solution, implicit, three
from quenched.core.replica.fields import Nodes, nodes
from quenched.core.replica.problem import Problem, check
from quenched.core.types import Array, InputError, Outcome, Real, double, outcome_names, require_double

ACCURACY = 1e-9
"""A state is one whose saddle equations, free of units, hold to this; most hold to 1e-13."""
ENOUGH = 1e-13
"""Where the search stops."""
STEPS = 60
"""Steps of the search at most."""
STARTS = np.array([(c, Q, 1.0) for c in (0.2, 0.9) for Q in (0.1, 1.0, 10.0)])
"""Where the search begins by default: cosine, $Q/\\rho^2$, $z$."""
RELAXED = 20
"""Steps of plain iteration with which it then begins."""
FURTHEST = 1.5
"""Longest step in the cosine and the logarithms of $Q$ and $z$."""


class State(NamedTuple):
    """A stationary point of the free energy."""

    R: Array
    Q: Array
    z: Array
    free_energy: Array
    example_energy: Array  # mean energy of an example after training
    stability: Array  # replica symmetry is stable below 1
    outcome: Array
    residual: Array  # of the saddle equations, free of units


def _each(problem: Problem) -> Callable[[Array, Array], Array]:
    """The energy of every node."""
    return jax.vmap(jax.vmap(problem.energy, (0, None)), (0, None))


def _given(problem: Problem, alpha: Real, at: Nodes, R: Real, Q: Real, z: Real) -> Callable[..., Array]:
    """The free energy as a function of (R, Q, z) while every example keeps its `y` and its place in the Gaussian."""
    _, m, v, n = (column[:, None] for column in problem.classes.table())
    place = (at.u - m * R) / jnp.sqrt(v * Q + n)
    energy = _each(problem)

    def total(R: Array, Q: Array, z: Array) -> Array:
        u = m * R + jnp.sqrt(v * Q + n) * place
        least = jnp.sum(at.weight * (jnp.square(at.y - u) / (2 * z * v) + energy(at.y, Q)))
        return (R * R / problem.rho2 - Q) / (2 * z) + problem.norm(R, Q) + alpha * least

    return total


@jax.jit
def free_energy(problem: Problem, alpha: Real, R: Real, Q: Real, z: Real) -> Array:
    r"""$f(R, Q, z)$ at `alpha` examples per dimension; its derivatives are the saddle equations.

    Args:
        problem: what is trained.
        alpha: examples per dimension.
        R: overlap with the teacher.
        Q: norm.
        z: susceptibility.
    """
    require_double("free_energy")
    R, Q, z = _numbers(R, Q, z)
    return _given(problem, alpha, nodes(problem, R, Q, z), R, Q, z)(R, Q, z)


@jax.jit
def equations(problem: Problem, alpha: Real, R: Real, Q: Real, z: Real) -> tuple[Array, Array, Array]:
    r"""$\partial f/\partial R$, $\partial f/\partial Q$ and $\partial f/\partial z$ as averages.

    The minimum over $y$ needs no derivative of its own (envelope theorem), so these are averages of the explicit
    derivatives.
    """
    require_double("equations")
    R, Q, z = _numbers(R, Q, z)
    return jax.grad(_given(problem, alpha, nodes(problem, R, Q, z), R, Q, z), argnums=(0, 1, 2))(R, Q, z)


def averages(problem: Problem, R: Real, Q: Real, z: Real, function: Callable[[Array, Array, Array], Any]) -> Any:
    r"""$\sum_V w_V \langle F(y, u, dy/du) \rangle_u$ over examples before ($u$) and after ($y$) training.

    Args:
        problem: what is trained.
        R: overlap with the teacher.
        Q: norm.
        z: susceptibility.
        function: of three arrays of one shape, number by number; it may return several.
    """
    require_double("averages")
    at = _nodes(problem, *_numbers(R, Q, z))
    return jax.tree.map(lambda value: jnp.sum(at.weight * value), function(at.y, at.u, at.slope))


@jax.jit
def stability(problem: Problem, alpha: Real, R: Real, Q: Real, z: Real) -> Array:
    r"""$\alpha \sum_V w_V \langle (dy/du - 1)^2 \rangle$: replica symmetry is stable where this is below 1.

    It is infinite where $y(u)$ jumps.
    """
    require_double("stability")
    return _stability(alpha, nodes(problem, *_numbers(R, Q, z)))


_nodes = jax.jit(nodes)


def _stability(alpha: Real, at: Nodes) -> Array:
    value = alpha * jnp.sum(at.weight * jnp.square(at.slope - 1))
    return jnp.where(jnp.any(at.jumps), jnp.inf, value)


def _numbers(*values: Real) -> tuple[Array, ...]:
    return tuple(jnp.asarray(value, float) for value in values)


def state(problem: Problem, alpha: Real, start: Any = None) -> State:
    r"""The stationary point of the free energy, as a pure JAX function: `jit`, `vmap` and `grad` work.

    Args:
        problem: what is trained.
        alpha: examples per dimension.
        start: $(R, Q, z)$ near the wanted point. By default several starts are tried and the point of lowest free
            energy is taken.

    Returns:
        A `State`. Nothing is raised on failure: see its `outcome` and `residual`.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from quenched.core import replica
        >>> squares = replica.Problem(lambda y, Q: 0.5 * y**2, replica.Classes(noise=1.0), lambda R, Q: Q / 2 + R)
        >>> with jax.enable_x64(True):
        ...     found = replica.state(squares, 1.0, start=(-0.5, 0.5, 0.5))
        >>> round(float(found.z), 4)  # of Marchenko and Pastur: z + z^2 = 1
        0.618
    """
    require_double("state")
    return _from(problem, jnp.asarray(alpha, float), None if start is None else _numbers(*start))


def _from(problem: Problem, alpha: Array, start: tuple[Array, ...] | None) -> State:
    """One program for one start and for many: compiling it is what takes time."""
    if start is None:
        return _state(problem, alpha, jnp.asarray(STARTS).at[:, 1].multiply(problem.rho2), len(STARTS), RELAXED)
    R, Q, z = start
    one = jnp.stack([R / jnp.sqrt(problem.rho2 * Q), Q, z])
    return _state(problem, alpha, jnp.broadcast_to(one, STARTS.shape), 1, 0)


@jax.jit
def _state(problem: Problem, alpha: Array, starts: Array, count: Array, relaxed: Array) -> State:
    """The best of the first `count` starts (cosine, Q, z)."""
    frozen = jax.lax.stop_gradient((problem, alpha))
    begin = jax.lax.stop_gradient(jnp.concatenate([starts[:, :1], jnp.log(starts[:, 1:])], axis=1))

    def attempt(i: Array, best: Solution) -> Solution:
        found = three(
            lambda x: _scaled(x, frozen), begin[i], plain=_relaxed, plain_steps=relaxed,
            tolerance=ENOUGH, max_steps=STEPS, furthest=FURTHEST,
        )  # fmt: skip
        good, was_good = found.residual < ACCURACY, best.residual < ACCURACY
        lower = found.value[1][0] < best.value[1][0]  # the free energy
        better = jnp.where(was_good, good & lower, found.residual < best.residual)
        return jax.tree.map(lambda new, old: jnp.where(better, new, old), found, best)

    lost = (jnp.full(3, jnp.nan), jnp.full(3, jnp.nan))
    nothing = Solution(lost, jnp.asarray(Outcome.failed), jnp.asarray(jnp.inf), jnp.asarray(0))
    found = jax.lax.fori_loop(0, count, attempt, nothing)
    x = implicit(_scaled, found.value, (problem, alpha))
    outcome = jnp.where(found.residual < ACCURACY, Outcome.converged, found.outcome)
    R, Q, z = _order_parameters(problem, x)
    return State(R, Q, z, x[3], x[4], x[5], outcome, found.residual)


def _order_parameters(problem: Problem, x: Array) -> tuple[Array, Array, Array]:
    """R, Q and z from the unknowns of the search: the cosine, ln Q and ln z."""
    Q, z = jnp.exp(x[1]), jnp.exp(x[2])
    return x[0] * jnp.sqrt(problem.rho2 * Q), Q, z


def _scaled(x: Array, asked: tuple[Problem, Array]) -> tuple[Array, Array]:
    """The saddle equations free of units; and the free energy, the energy of an example and the stability."""
    problem, alpha = asked
    R, Q, z = _order_parameters(problem, x)
    at = nodes(problem, R, Q, z)
    f, (f_R, f_Q, f_z) = jax.value_and_grad(_given(problem, alpha, at, R, Q, z), argnums=(0, 1, 2))(R, Q, z)
    energy = jnp.sum(at.weight * _each(problem)(at.y, Q))
    equations = jnp.stack([z * jnp.sqrt(problem.rho2 / Q) * f_R, 2 * z * f_Q, 2 * z * z / Q * f_z])
    return equations, jnp.stack([f, energy, _stability(alpha, at)])


def _relaxed(x: Array, r: Array) -> Array:
    """A step of plain iteration: each equation is solved for its own order parameter, and half the way is gone."""
    ln_Q, ln_z = jnp.log(jnp.maximum(1 - r[2], 0.1)), -jnp.log(jnp.maximum(1 + r[1], 0.1))
    return 0.5 * jnp.stack([(x[0] - r[0]) * jnp.exp(-0.5 * ln_Q) - x[0], ln_Q, ln_z])


@double
def curve(problem: Problem, *, alpha: Any, start: Any = None) -> xr.Dataset:
    r"""The learning curve in theory.

    Args:
        problem: what is trained.
        alpha: increasing numbers of examples per dimension, or one. Each point is sought from the last one; where
            that fails, from several starts.
        start: $(R, Q, z)$ near the first point; by default several starts, and the lowest free energy.

    Returns:
        A dataset over `alpha` with `R`, `Q`, `z`, `cosine` $= R/(\rho \sqrt Q)$, `free_energy`, `example_energy`,
        `stability`, `outcome` and `residual`.

    Raises:
        InputError: for an energy that `check` refuses, or numbers of examples that are not positive.

    Examples:
        >>> from quenched.core import replica
        >>> squares = replica.Problem(lambda y, Q: 0.5 * y**2, replica.Classes(noise=1.0), lambda R, Q: Q / 2 + R)
        >>> curve = replica.curve(squares, alpha=[0.5, 1.0, 2.0])
        >>> curve.Q.values.round(4)
        array([0.7808, 0.618 , 0.4142])
    """
    check(problem)
    alphas = checks.increasing("alpha", alpha)
    checks.positive("alpha", alpha)
    points, here = [], _begin(start)
    for a in alphas:
        point = _from(problem, jnp.asarray(a), here)
        if here is not None and int(point.outcome) != Outcome.converged:
            point = _from(problem, jnp.asarray(a), None)
        points.append(jax.tree.map(np.asarray, point))
        here = (point.R, point.Q, point.z) if int(point.outcome) == Outcome.converged else None
    many = {name: np.stack([getattr(point, name) for point in points]) for name in State._fields}
    many["cosine"] = many["R"] / np.sqrt(np.asarray(problem.rho2) * many["Q"])
    many["outcome"] = outcome_names(many["outcome"])
    result = xr.Dataset(
        {name: ("alpha", value) for name, value in many.items()},
        {"alpha": alphas},
        {"problem": results.describe(problem), "version": results.version(), "format": results.FORMAT,
         "science": "replica", "source": "theory"},
    )  # fmt: skip
    return result.isel(alpha=0) if np.ndim(alpha) == 0 else result


def _begin(start: Any) -> tuple[Array, ...] | None:
    """A checked start."""
    if start is None:
        return None
    given = checks.numbers("start", start)
    if given.shape != (3,) or not np.all(np.isfinite(given)) or given[1] <= 0 or given[2] <= 0:
        raise InputError(f"Argument `start` must be (R, Q, z) with positive Q and z, but {start} was given.")
    return _numbers(*given)
