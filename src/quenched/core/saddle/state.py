r"""The state near a start, by one search in two forms: `state` in JAX, and `solve` on the host without its compilation.

The search of `state` is compiled around one trace of the kernel. Its derivatives are those of the implicit-function
theorem, $dx = -(\partial G/\partial x)^{-1}\, \partial G/\partial\theta\, d\theta$, taken at the state as a function of
$\theta$ (the rule calls itself), so that second derivatives include the motion of the state.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.saddle.path import count_unstable
from quenched.core.saddle.theory import Evaluation, Kernel, Point, Theory, control_of, evaluate
from quenched.core.types import Array, Outcome, double, require_double

TOLERANCE, ACCURACY = 1e-13, 1e-9
"""The search ends where equations leave less than the first; a state is one where they leave less than the second."""
STEPS = 120
"""Steps of a search at most."""


class Found(NamedTuple):
    """A state, and how it was reached."""

    x: Array
    free_energy: Array
    readings: Any
    outcome: Array  # an `Outcome` code
    residual: Array  # largest absolute component of the equations
    steps: Array


class _Trial(NamedTuple):
    """A point of the search with all that is known there."""

    x: Array
    kernel: Kernel
    slopes: Array
    marks: Any


def state(theory: Theory, theta: Any, start: Any, *, relaxations: Any = 0) -> Found:
    r"""The state near a start; of several starts, the one of least free energy.

    Args:
        theory: what is solved.
        theta: parameters; derivatives are with respect to its real arrays.
        start: unknowns `[d]` to begin with, or `[n, d]` for several starts.
        relaxations: steps of `theory.relax` that come first, one number or one for each start: far from a state they
            stay in the valley in which they begin.

    Returns:
        The state. Nothing is raised on failure: see its `outcome` and `residual`.
    """
    require_double("saddle.state")
    start = jnp.asarray(start, float)
    theta = jax.tree.map(lambda leaf: jnp.asarray(leaf, float) if isinstance(leaf, float) else leaf, theta)
    best, steps = _search(theory, *jax.lax.stop_gradient((theta, start)), jnp.asarray(relaxations))
    residual = jnp.max(jnp.abs(best.kernel.equations))
    stopped = jnp.where(steps < STEPS, Outcome.failed, Outcome.stalled)
    outcome = jnp.where(residual < ACCURACY, Outcome.converged, stopped)
    x, f, readings = _differentiable(theory, theta, best.x, best.kernel[1:], best.marks)
    return Found(x, f, readings, outcome, residual, steps)


@functools.partial(jax.jit, static_argnums=0)
def _search(theory: Theory, theta: Any, starts: Array, relaxations: Array) -> tuple[_Trial, Array]:
    """The best point that the search reached, and its steps."""
    if starts.ndim == 1:
        return _descend(theory, theta, starts, relaxations)
    each = jnp.broadcast_to(relaxations, starts.shape[:1])

    def attempt(i: Array, best: tuple[_Trial, Array]) -> tuple[_Trial, Array]:
        new = _descend(theory, theta, starts[i], each[i])
        left, left_before = (jnp.max(jnp.abs(one.kernel.equations)) for one in (new[0], best[0]))
        lower = new[0].kernel.free_energy < best[0].kernel.free_energy
        better = jnp.where(left_before < ACCURACY, (left < ACCURACY) & lower, left < left_before)
        return jax.tree.map(lambda a, b: jnp.where(better, a, b), new, best)

    return jax.lax.fori_loop(0, len(starts), attempt, (_nothing(theory, theta, starts[0]), jnp.asarray(0)))


def _nothing(theory: Theory, theta: Any, start: Array) -> _Trial:
    """What is known before the first evaluation."""
    shape = jax.eval_shape(lambda: _evaluate(theory, theta, start))
    empty = jax.tree.map(lambda leaf: jnp.full(leaf.shape, jnp.nan).astype(leaf.dtype), shape)
    kernel = empty.kernel._replace(equations=jnp.full_like(start, jnp.inf))
    return _Trial(start, kernel, jnp.eye(start.size), empty.marks)


def _evaluate(theory: Theory, theta: Any, x: Array) -> _Trial:
    """The kernel and its derivatives by the unknowns."""
    marks = theory.landmarks(x, theta)

    def equations(x: Array) -> tuple[Array, Kernel]:
        kernel = Kernel(*theory.kernel(x, theta, marks))
        return kernel.equations, kernel

    slopes, kernel = jax.jacfwd(equations, has_aux=True)(x)
    return _Trial(x, kernel, slopes, marks)


def _descend(theory: Theory, theta: Any, start: Array, relaxations: Array) -> tuple[_Trial, Array]:
    """Newton's steps, those of Levenberg and Marquardt where Newton's are long."""

    def body(carry: tuple[_Trial, Array, Array, Array]) -> tuple[_Trial, Array, Array, Array]:
        best, x, damping, count = carry
        trial = _evaluate(theory, theta, x)
        shorter = jnp.sum(jnp.square(trial.kernel.equations)) < jnp.sum(jnp.square(best.kernel.equations))  # not if NaN
        better = (shorter | (count < relaxations)) & jnp.all(jnp.isfinite(trial.slopes))
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), trial, best)
        damping = jnp.where(count <= relaxations, 0.01, jnp.where(better, damping / 6, damping * 4))
        G, J = best.kernel.equations, best.slopes
        newton, normal = -solve_linear(J, G), J.T @ J
        damped = -solve_linear(normal + damping * jnp.diag(jnp.diagonal(normal) + 1e-12), J.T @ G)
        step = jnp.where(jnp.all(jnp.abs(newton) * jnp.maximum(damping, 1.0) < 0.5), newton, damped)
        step = jnp.where(count < relaxations, theory.relax(best.x, G), step)
        step = step * jnp.minimum(1.0, theory.furthest / jnp.max(jnp.abs(step)))
        return best, best.x + step, damping, count + 1

    def unfinished(carry: tuple[_Trial, Array, Array, Array]) -> Array:
        best, x, damping, count = carry
        possible = jnp.all(jnp.isfinite(x)) & (damping < 1e8) & (count < STEPS)
        return possible & (jnp.max(jnp.abs(best.kernel.equations)) > TOLERANCE)

    begin = (_nothing(theory, theta, start), start, jnp.asarray(0.01), jnp.asarray(0))
    best, _, _, count = jax.lax.while_loop(unfinished, body, begin)
    return best, count


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _differentiable(theory: Theory, theta: Any, x: Array, values: Any, marks: Any) -> tuple[Array, Array, Any]:
    """Unknowns, free energy and readings of a state that was found, with their derivatives by the parameters."""
    return x, *values


@_differentiable.defjvp
def _(theory: Theory, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    theta, _, _, marks = primals
    here = _differentiable(theory, *primals)

    def kernel(x: Array, theta: Any) -> Kernel:
        return Kernel(*theory.kernel(x, theta, marks))

    _, push = jax.linearize(kernel, here[0], theta)
    still = jax.tree.map(lambda t: t if t.dtype == jax.dtypes.float0 else jnp.zeros_like(t), tangents[0])
    by_x = jax.vmap(lambda dx: push(dx, still), out_axes=-1)(jnp.eye(here[0].size))
    by_theta = push(jnp.zeros_like(here[0]), tangents[0])
    dx = -solve_linear(by_x.equations, by_theta.equations)
    values = jax.tree.map(lambda J, F: F + J @ dx, by_x[1:], by_theta[1:])
    return here, (dx, *values)


def solve_linear(matrix: Array, right: Array) -> Array:
    """The solution of a few linear equations, without LAPACK: its calls inside `vmap` can deadlock XLA's threads."""
    if right.size == 1:
        return right / matrix[0]
    if right.size == 3:  # Cramer's rule
        a, b, c = matrix.T
        bc = jnp.cross(b, c)
        return jnp.stack([right @ bc, right @ jnp.cross(c, a), right @ jnp.cross(a, b)]) / (a @ bc)
    table = jnp.column_stack([matrix, right])
    for k in range(right.size):  # Gauss and Jordan, with pivots
        rest = jnp.where(jnp.arange(right.size) < k, -1.0, jnp.abs(table[:, k]))
        pivot = jnp.argmax(rest)
        row, other = table[pivot], table[k]
        table = table.at[pivot].set(other).at[k].set(row / row[k])
        table = table - jnp.where(jnp.arange(right.size) == k, 0.0, table[:, k])[:, None] * table[k]
    return table[:, -1]


@double
@np.errstate(all="ignore")  # a trial may lie far from any state
def solve(theory: Theory, theta: Any, start: Any, *, relaxations: int = 0, along: str = "") -> Point:
    """The state near a start, on the host.

    Args:
        theory: as in `state`.
        theta: as in `state`.
        start: one start.
        relaxations: as in `state`.
        along: a control in which the state will be followed: both then use one compiled program.

    Returns:
        The state; where none was found, the best point that was reached: see its `outcome` and `residual`.
    """
    x = np.atleast_1d(np.asarray(start, dtype=np.float64))
    control = control_of(theta, along) if along else np.nan
    best = evaluate(theory, x, theta, along, control)
    trial, at, damping, left, count = best, x, 0.01, np.inf, 0
    for count in range(STEPS):
        better = (np.linalg.norm(trial.equations) < left or count < relaxations) and np.isfinite(trial.slopes).all()
        if better:
            best, at, left = trial, x, np.linalg.norm(trial.equations)
        damping = 0.01 if count <= relaxations else damping / 6 if better else damping * 4
        if left == np.inf or np.abs(best.equations).max() <= TOLERANCE or damping > 1e8:
            break
        step = best.relaxed if count < relaxations else _damp(best, damping)
        x = at + step * min(1.0, theory.furthest / max(np.abs(step).max(), 1e-300))
        trial = evaluate(theory, x, theta, along, control)
    residual = float(np.abs(best.equations).max())
    outcome = Outcome.converged if residual < ACCURACY else Outcome.failed if count < STEPS - 1 else Outcome.stalled
    unstable = count_unstable(best.slopes[:, : x.size])
    return Point(at, best.free_energy, best.readings, unstable, residual, outcome, control)


def _damp(at: Evaluation, damping: float) -> np.ndarray:
    """Newton's step where it is short, else that of Levenberg and Marquardt."""
    G, J = at.equations, at.slopes[:, : at.equations.size]
    newton, normal = -np.linalg.lstsq(J, G, rcond=None)[0], J.T @ J
    if np.all(np.abs(newton) * max(damping, 1.0) < 0.5):
        return newton
    matrix, right = normal + damping * np.diag(np.diagonal(normal) + 1e-12), J.T @ G
    try:
        return -np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:  # slopes of very different sizes
        return -np.linalg.lstsq(matrix, right, rcond=None)[0]
