r"""The one iteration loop of the package: roots and fixed points, with an outcome.

optimistix does the iterating and the implicit differentiation ($dx/d\theta$ of a solution costs one linear solve); this
module adds what users see: an `Outcome` and the residual beside every value, instead of an exception in the middle
of a sweep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jax.flatten_util import ravel_pytree

from quenched.core.types import Array, Outcome, Real


class Solution(NamedTuple):
    """A root or fixed point, and how it was reached."""

    value: Any
    outcome: Array  # an `Outcome` code
    residual: Array  # largest absolute component of the equation that should vanish
    steps: Array


def root(
    function: Callable[[Any, Any], Any],
    start: Any,
    args: Any = None,
    *,
    tolerance: float = 1e-12,
    max_steps: int = 200,
    newton: bool = False,
) -> Solution:
    """Solve `function(x, args) = 0`.

    Args:
        function: of the unknown and of arguments with respect to which one may differentiate.
        start: where to begin, of the shape of the unknown.
        args: passed on.
        tolerance: relative and absolute accuracy of the unknown.
        max_steps: at most.
        newton: plain Newton from a start known to be close; otherwise the dogleg method, which survives bad starts.
    """
    solver = optx.Newton(tolerance, tolerance) if newton else optx.Dogleg(tolerance, tolerance)
    found = optx.root_find(function, solver, start, args, max_steps=max_steps, throw=False)
    return _solution(found, function(found.value, args))


def fixed_point(
    update: Callable[[Any, Any], Any],
    start: Any,
    args: Any = None,
    *,
    damping: Real = 0.0,
    tolerance: float = 1e-12,
    max_steps: int = 10_000,
) -> Solution:
    """Iterate `x <- (1 - damping) update(x, args) + damping x` until it stands still.

    Args:
        update: the map whose fixed point is sought.
        start: where to begin.
        args: passed on.
        damping: the share of the old value that is kept, in [0, 1).
        tolerance: relative and absolute accuracy of the fixed point.
        max_steps: at most.
    """

    def damped(x: Any, args: Any) -> Any:
        return jax.tree.map(lambda new, old: (1 - damping) * new + damping * old, update(x, args), x)

    solver = optx.FixedPointIteration(tolerance, tolerance)
    found = optx.fixed_point(damped, solver, start, args, max_steps=max_steps, throw=False)
    return _solution(found, jax.tree.map(jnp.subtract, update(found.value, args), found.value))


def three(
    function: Callable[[Array], tuple[Array, Array]],
    start: Array,
    *,
    plain: Callable[[Array, Array], Array] | None = None,
    plain_steps: Any = 0,
    tolerance: float = 1e-13,
    max_steps: int = 80,
    furthest: float = 1.0,
) -> Solution:
    """Solve three equations in three unknowns, many systems side by side.

    Newton's steps, those of Levenberg and Marquardt where Newton's are long. No LAPACK is called: in many threads at
    once, as in a vectorised program, that may wait for ever. Not differentiable: see `implicit`.

    Args:
        function: of the unknowns `[3]`; gives the equations `[3]` and other values there.
        start: where to begin.
        plain: a step from the unknowns and the equations there, which comes first; it may go uphill.
        plain_steps: how many of those.
        tolerance: what the equations may leave over.
        max_steps: at most.
        furthest: the longest step in any unknown.

    Returns:
        As `value` the unknowns and the other values there.
    """

    def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        old, trial, damping, count = carry
        J, (r, values) = jax.jacfwd(lambda x: (function(x)[0], function(x)), has_aux=True)(trial)
        better = jnp.sum(jnp.square(r)) < jnp.sum(jnp.square(old[1]))  # False for what is not a number
        better = (better | (count < plain_steps)) & jnp.all(jnp.isfinite(J))
        x, r, J, _ = best = jax.tree.map(lambda a, b: jnp.where(better, a, b), (trial, r, J, values), old)
        damping = jnp.where(count <= plain_steps, 0.01, jnp.where(better, damping / 6, damping * 4))
        newton, normal = -cramer(J, r), J.T @ J
        damped = -cramer(normal + damping * jnp.diag(jnp.diagonal(normal) + 1e-12), J.T @ r)
        short = jnp.all(jnp.abs(newton) * jnp.maximum(damping, 1.0) < 0.5)
        step = jnp.where(short, newton, damped)
        step = step if plain is None else jnp.where(count < plain_steps, plain(x, r), step)
        return best, x + step * jnp.minimum(1.0, furthest / jnp.max(jnp.abs(step))), damping, count + 1

    def unfinished(carry: tuple[Any, ...]) -> Array:
        (_, r, _, _), trial, damping, count = carry
        possible = jnp.all(jnp.isfinite(trial)) & (damping < 1e8)
        return (count < max_steps) & possible & (jnp.max(jnp.abs(r)) > tolerance)

    unknown = jax.tree.map(lambda v: jnp.full(v.shape, jnp.nan), jax.eval_shape(function, start)[1])
    begin = ((start, jnp.full(3, jnp.inf), jnp.eye(3), unknown), start, jnp.asarray(0.01), jnp.asarray(0))
    (x, r, _, values), _, _, count = jax.lax.while_loop(unfinished, body, begin)
    left = jnp.max(jnp.abs(r))
    stopped = jnp.where(count < max_steps, Outcome.failed, Outcome.stalled)
    return Solution((x, values), jnp.where(left <= tolerance, Outcome.converged, stopped), left, count)


def implicit(function: Callable[[Array, Any], tuple[Array, Array]], found: tuple[Array, Array], args: Any) -> Array:
    """A root of three equations and other values there, with their derivatives by the implicit-function theorem.

    $dx = -J^{-1} F_\\theta\\, d\\theta$ with both matrices by forward differentiation: the parameters are few, and
    the same program serves forward and reverse derivatives. The rule takes its unknowns from the root itself, so that
    it can be differentiated again: second derivatives know that the root moves.

    Args:
        function: of the unknowns and `args`; gives the equations `[3]` and other values.
        found: the unknowns and the values, as `three` gives them.
        args: a pytree; derivatives are with respect to its real arrays.

    Returns:
        Unknowns and values, one after the other.
    """
    moving, fixed = eqx.partition(args, eqx.is_inexact_array)
    theta, restore = ravel_pytree(moving)

    @jax.custom_jvp
    def root(theta: Array, x: Array, values: Array) -> Array:
        return jnp.concatenate([x, values])

    @root.defjvp
    def _(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
        theta, _, _ = primals
        here = root(*primals)

        def all_of(x: Array, theta: Array) -> Array:
            return jnp.concatenate(function(x, eqx.combine(restore(theta), fixed)))

        J, F = jax.jacfwd(all_of, (0, 1))(here[:3], theta)
        right = F @ tangents[0]
        dx = -cramer(J[:3], right[:3])
        return here, jnp.concatenate([dx, right[3:] + J[3:] @ dx])

    return root(theta, *jax.lax.stop_gradient(found))


def cramer(matrix: Array, right: Array) -> Array:
    """The solution of three linear equations by Cramer's rule."""
    a, b, c = matrix.T
    bc = jnp.cross(b, c)
    return jnp.stack([right @ bc, right @ jnp.cross(c, a), right @ jnp.cross(a, b)]) / (a @ bc)


def _solution(found: optx.Solution, residual: Any) -> Solution:
    """Translate optimistix's result into value, outcome, residual and steps."""
    largest = jnp.max(jnp.array([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(residual)]))
    stopped = jnp.where(found.result == optx.RESULTS.nonlinear_max_steps_reached, Outcome.stalled, Outcome.failed)
    outcome = jnp.where(found.result == optx.RESULTS.successful, Outcome.converged, stopped)
    outcome = jnp.where(jnp.isfinite(largest), outcome, Outcome.failed)
    return Solution(found.value, outcome, largest, found.stats["num_steps"])
