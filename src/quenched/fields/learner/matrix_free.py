r"""Fields of least energy on large grids, without any matrix of all pairs of points: `NewtonCG` and `LBFGS`.

Both see the energy through its slope and products with its Hessian (`model/products`), in JAX, on CPUs and
accelerators, and both use the preconditioner of `model/preconditioner`. An iteration has arrived when the norm of the
slope is a small share of that of the data's slope at an even field: its relative gradient.

`NewtonCG` solves Newton's equation by conjugate gradients, the better the smaller the slope is, and stops them where
the curvature is negative. (Those of lineax assume that it is positive, and with most links it need not be.)
`LBFGS` of optimistix runs in coordinates in which the preconditioner is the identity, and starts again with a new one.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, Outcome
from quenched.fields.learner.coarse import carry, coarsen
from quenched.fields.learner.fitted import Fitted, FittedDensity, Level
from quenched.fields.learner.on_host import HostTask
from quenched.fields.learner.sparse import Solver
from quenched.fields.learner.starts import Start, Uniform, begin, usual
from quenched.fields.model.links import Density, Direct
from quenched.fields.model.preconditioner import Ground, ground_of, precondition
from quenched.fields.model.problem import Problem
from quenched.fields.model.products import compiled, data_slope, hessian_product, look, on_device

FORCING, PRODUCTS = 0.1, 400
"""Newton's equation is solved to this share of its right side, or better; with so many products at most."""
ARMIJO, SHORTEST, NOISE = 1e-4, 2.0**-30, 1e-14
"""A step must lower the energy by this share of what its slope promises; the shortest that is tried; and the rounding
of an energy."""
ROUND = 50
"""Steps of L-BFGS with one preconditioner."""


class MatrixFree(Solver):
    """A method that needs no matrix of all pairs of points.

    Attributes:
        coarsest: solutions on coarser grids are where the iteration begins, down to so many points along an axis; None
            for no coarser grid.
    """

    coarsest: int | None = eqx.field(static=True, default=32)

    def __check_init__(self):
        if self.coarsest is not None:
            checks.whole("coarsest", self.coarsest, least=2)

    def descend(self, problem: Problem, starts: Any, tolerance: float, max_steps: int) -> list[Any]:
        """Where it arrives from each of some starts, fits or fields; by default from the usual ones."""
        return [_arrive(problem, self, one, tolerance, max_steps) for one in starts or usual(problem)]

    @abc.abstractmethod
    def minimise(self, task: Task | HostTask, field: Any, enough: float, max_steps: int) -> Descent:
        """Where the iteration arrives from a field.

        Args:
            task: the energy.
            field: where it begins.
            enough: the norm of the slope at which it has arrived.
            max_steps: steps at most.
        """


@dataclasses.dataclass
class Task:
    """A problem where JAX computes, and what its preconditioner is made of."""

    problem: Problem
    ground: Ground

    @classmethod
    def on_device(cls, problem: Problem) -> Task:
        """That of a problem on the host."""
        device = on_device(problem)
        return cls(device, ground_of(device))

    def scale(self) -> float:
        """The norm of the slope of the data at an even field."""
        return _norm(_data_slope(self.problem, jnp.asarray(_even(self.problem))))

    def place(self, field: np.ndarray) -> Any:
        """The field where JAX computes."""
        return jnp.asarray(field)

    def look(self, field: Any) -> tuple[Any, tuple[float, float, Any]]:
        """The projected field; energy, the part of the data, slope."""
        field, (energy, loss), slope = _look(self.problem, field)
        return field, (float(energy), float(loss), slope)

    def direction(self, field: Array, slope: Array, share: float) -> tuple[Array, Array]:
        """Newton's step, to a share of its right side, and how many products it took."""
        return _direction(self.problem, self.ground, field, slope, share)


@dataclasses.dataclass
class Descent:
    """Where an iteration ended."""

    field: Array
    steps: list[tuple[float, float, float, float]]
    products: int
    norm: float


class NewtonCG(MatrixFree):
    """Newton's method, its equation solved by preconditioned conjugate gradients.

    Time and memory grow like the number of points. Where the energy is not convex the iteration goes down to a
    stationary field, which is not looked at for directions in which the energy still falls.

    Attributes:
        coarsest: solutions on coarser grids are where the iteration begins, down to so many points along an axis; None
            for no coarser grid.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 1, points=20, ends=fields.Periodic())])
        >>> smooth = fields.Gaussian(0.01 * fields.Laplacian(grid))
        >>> problem = fields.Problem(fields.DensityData([0.3, 0.4]), fields.LogDensity(grid), smooth)
        >>> fields.solve(problem, fields.NewtonCG()).converged
        True
    """

    def minimise(self, task: Task | HostTask, field: Any, enough: float, max_steps: int) -> Descent:
        """By steps that are halved until the energy falls."""
        field, (energy, loss, slope) = task.look(field)
        norm, products, steps = _norm(slope), 0, []
        first, cell = max(norm, enough), task.problem.grid.cell
        for iteration in range(max_steps + 1):
            steps.append((energy, loss, 0.0, float(jnp.max(jnp.abs(slope))) / cell))
            if norm <= enough or iteration == max_steps or not np.isfinite(energy + norm):
                break
            share = min(FORCING, float(np.sqrt(norm / first)))
            step, count = task.direction(field, slope, share)
            products += int(count)
            found = _shorten(task, field, step, energy, norm, float(jnp.vdot(slope, step)))
            if found is None:
                break
            field, (energy, loss, slope), length = found
            norm = _norm(slope)
            steps[-1] = (*steps[-1][:2], length, steps[-1][3])
        return Descent(field, steps, products, norm)


class LBFGS(MatrixFree):
    """The quasi-Newton method with limited memory, in coordinates of the preconditioner.

    It needs slopes only: an energy with kinks in its slope, whose curvature jumps, does it no harm.

    Attributes:
        coarsest: solutions on coarser grids are where the iteration begins, down to so many points along an axis; None
            for no coarser grid.
        history: slopes that it remembers.
    """

    history: int = eqx.field(static=True, default=10)

    def __check_init__(self):
        checks.whole("history", self.history, least=1)

    def minimise(self, task: Task | HostTask, field: Any, enough: float, max_steps: int) -> Descent:
        """In rounds, each with its own preconditioner; when energies are only rounding, steps are taken whole."""
        if isinstance(task, HostTask):
            raise InputError("Argument `method` must be NewtonCG() or Newton() for a quantum system, but LBFGS() was "
                             "given.")  # fmt: skip
        from quenched.fields.learner.quasi_newton import advance  # the package that it needs takes long to import

        field, (energy, loss, slope) = task.look(field)
        norm, products, steps = _norm(slope), 0, []
        cell, whole, stuck = task.problem.grid.cell, False, False
        while True:
            steps.append((energy, loss, 0.0, float(jnp.max(jnp.abs(slope))) / cell))
            if norm <= enough or products >= max_steps or stuck or not np.isfinite(energy + norm):
                break
            moved, count = advance(task.problem, task.ground, field, enough, self.history, ROUND, whole)
            products += int(count)
            moved, there = task.look(moved)
            if _norm(there[2]) < norm or (not whole and there[0] < energy - NOISE * abs(energy)):
                field, (energy, loss, slope) = moved, there
                norm = _norm(slope)
                steps[-1] = (*steps[-1][:2], 1.0, steps[-1][3])
            else:
                whole, stuck = True, whole
        return Descent(field, steps, products, norm)


def _arrive(problem: Problem, method: MatrixFree, start: Any, tolerance: float, max_steps: int) -> Fitted:
    """Where a method arrives from one start, over coarser grids where there are some."""
    if isinstance(problem.link, Density):
        raise InputError("Argument `method` must be Newton() for the link Density, whose fields must not be negative, "
                         f"but {method!r} was given.")  # fmt: skip
    levels = [problem]
    fixed = not isinstance(start, Start) or hasattr(start, "given")
    while method.coarsest is not None and not fixed:
        coarse = coarsen(levels[-1], method.coarsest)
        if coarse is None:
            break
        levels.append(coarse)
    field = _first(start, levels[-1])
    found, done = None, []
    for level in reversed(levels):
        if found is not None:
            field = carry(np.asarray(found.field), levels[len(levels) - len(done)].grid, level.grid)
        task = HostTask(level) if level.likelihood.on_host else Task.on_device(level)
        enough = tolerance * max(task.scale(), np.finfo(float).tiny)
        found = method.minimise(task, task.place(field), enough, max_steps)
        done.append(Level(level.grid.shape, len(found.steps) - 1, found.products, tolerance * found.norm / enough))
    assert found is not None
    kind = Fitted if isinstance(problem.link, Direct) else FittedDensity
    outcome = Outcome.converged if done[-1].gradient <= tolerance else Outcome.stalled
    last = found.steps[-1]
    return kind(
        np.asarray(found.field), outcome, problem, last[0], last[3], steps=tuple(found.steps), levels=tuple(done)
    )


def _even(problem: Problem) -> np.ndarray:
    """An even density, or a function that is zero."""
    if isinstance(problem.link, Direct):
        return np.zeros(problem.grid.shape)
    return begin(Uniform(), problem)


def _first(start: Any, problem: Problem) -> np.ndarray:
    """The field at which a start begins."""
    if isinstance(start, Fitted):
        return carry(start.field, start.problem.grid, problem.grid)
    if isinstance(start, np.ndarray):
        return start
    if isinstance(start, Start) and (not isinstance(start, Uniform) or problem.likelihood.on_host):
        return begin(start, problem)
    if isinstance(problem.link, Direct) and problem.parts and isinstance(start, Uniform):
        return np.asarray(problem.parts[0].mean)
    return begin(start, problem)


def _norm(field: Any) -> float:
    return float(jnp.linalg.norm(field))


def _shorten(
    task: Task | HostTask, field: Any, step: Any, energy: float, norm: float, slope: float
) -> tuple[Any, tuple[float, float, Any], float] | None:
    """Where a step leads that lowers the energy; below the rounding of energies, one that lowers the slope."""
    length = 1.0
    while length >= SHORTEST:
        moved, there = task.look(field + length * step)
        lower = there[0] <= energy + ARMIJO * length * slope
        if lower or (abs(there[0] - energy) <= NOISE * (1 + abs(energy)) * 100 and _norm(there[2]) < norm):
            return moved, there, length
        length /= 2
    return None


@compiled
def _look(problem: Problem, field: Array) -> tuple[Array, tuple[Array, Array], Array]:
    field = problem.link.project(field)
    return field, *look(problem, field)


@compiled
def _data_slope(problem: Problem, field: Array) -> Array:
    return data_slope(problem, field)


@compiled
def _direction(problem: Problem, ground: Ground, field: Array, slope: Array, share: float) -> tuple[Array, Array]:
    """Newton's step as well as it must be known, and how many products it took."""
    M = precondition(problem, ground, field)
    return conjugate(hessian_product(problem, field), M.solve, -slope, share, PRODUCTS)


def conjugate(
    product: Callable[[Array], Array], solve: Callable[[Array], Array], right: Array, share: Any, most: int
) -> tuple[Array, Array]:
    """Conjugate gradients, which stop where the curvature is negative; the solution and the number of products."""
    enough = share * jnp.linalg.norm(right)
    z = solve(right)

    def goes_on(state: Any) -> Array:
        _, r, _, _, count, negative = state
        return (jnp.linalg.norm(r) > enough) & (count < most) & ~negative

    def step(state: Any) -> Any:
        x, r, p, rz, count, _ = state
        Hp = product(p)
        bend = jnp.vdot(p, Hp)
        negative = ~(bend > 0)
        length = jnp.where(negative, jnp.where(count == 0, 1.0, 0.0), rz / jnp.where(negative, 1.0, bend))
        x, r = x + length * p, r - length * Hp
        z = solve(r)
        new = jnp.vdot(r, z)
        return x, r, z + new / rz * p, new, count + 1, negative

    start = (jnp.zeros_like(right), right, z, jnp.vdot(right, z), jnp.array(0), jnp.array(False))
    x, *_, count, _ = jax.lax.while_loop(goes_on, step, start)
    return x, count
