r"""The field of least energy of any problem: `solve`.

There may be several minima, and where an iteration arrives depends on its start: unless the energy is convex, several
starts are tried. An iteration that keeps a symmetry of its start can arrive where the energy still falls to the sides,
at a saddle: it leaves along the direction of most negative curvature, and goes on.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError, double
from quenched.fields.learner.fitted import Fitted, FittedDensity
from quenched.fields.learner.matrices import LearningMatrix, Method, Newton
from quenched.fields.learner.matrix_free import MatrixFree, NewtonCG
from quenched.fields.learner.newton import SHARP, InModes, OnPoints, descend
from quenched.fields.learner.parameters import solve_parameters
from quenched.fields.learner.reweighting import Reweighting, has_potentials, splits
from quenched.fields.learner.sparse import Solver
from quenched.fields.learner.splitting import Splitting
from quenched.fields.learner.starts import begin, blind, convex, projected, usual
from quenched.fields.model.links import Direct
from quenched.fields.model.modes import Modes
from quenched.fields.model.parameters import Parametrised
from quenched.fields.model.problem import Problem

ROUNDING = 1e-13
"""Two energies are the same if they differ by no more than this share."""
APART = 1e-5
"""Minima are different if their densities are by this share of the largest density."""
STIFF = 1e3
"""Modes of a log-density on which the prior is this many times as sure as the data are left out: they stay zero."""


RESIDUAL, GRADIENT = 1e-10, 1e-6
"""Tolerances of methods with matrices and without, unless one is given."""
MATRICES = 100
"""Points up to which potentials of quantum systems are found with matrices."""
NEWTON, MOST = Newton(), 500
"""The method and the number of steps, unless others are given."""
WIDTH = 0.2
"""Least width of the Gaussian at which an iteration in modes begins, as a share of half the grid."""


@double
def solve(
    problem: Problem | Parametrised,
    method: Method | None = None,
    *,
    modes: Any = None,
    start: Any = None,
    tolerance: float | None = None,
    max_steps: int = MOST,
) -> Fitted:
    """Find a field of least energy.

    Args:
        problem: likelihood x link x prior; or `Parametrised`, a function in front of it, with Newton's method and
            parameters as starts.
        method: a learning matrix, `Reweighting()` or `Splitting()`; by default `Newton()`, and for regressions with
            potentials one of the latter. On large grids `NewtonCG()` or `LBFGS()`, which need no matrix of all pairs
            of points.
        modes: None for all fields on the points of the grid. Otherwise fields are sums of the smoothest modes of the
            prior, which must be Gaussian: a number of them (for each axis, where modes are products of those of the
            axes), True for all, or `Modes` themselves. Modes of a log-density that the data cannot move are left out.
        start: a start, or several, of which that with the least energy in the end is taken; or a fit of the same data
            with a similar prior, in modes and without matrices (there also on a coarser grid). By default `Uniform()`;
            where the energy is not known to be convex kernel estimates, too.
        tolerance: of the stationarity residual, relative to the size of its terms, by default 1e-10; without matrices
            of the norm of the slope, by default 1e-6. In modes the iteration goes on until only rounding is left.
        max_steps: iterations at most.

    Returns:
        The field, with the `outcome` of the iteration and the energies of all `minima` that the starts led to; a
        `FittedDensity` unless the link is `Direct`.

    Raises:
        InputError: for a start or method that is none, or modes of a prior that has none.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 1, points=20, ends=fields.Periodic())])
        >>> smooth = fields.Gaussian(0.01 * fields.Laplacian(grid))
        >>> fit = fields.solve(fields.Problem(fields.DensityData([0.3, 0.4]), fields.LogDensity(grid), smooth))
        >>> fit.converged, round(float(fit.density.sum() * grid.spacing), 12)
        (True, 1.0)
    """
    if isinstance(problem, Parametrised):
        if modes is not None or not isinstance(method, (Newton, type(None))):
            raise InputError("Argument `method` must be Newton() and `modes` None for parameterised fields, but others "
                             "were given.")  # fmt: skip
        tolerance = RESIDUAL if tolerance is None else checks.number("tolerance", tolerance)
        checks.positive("tolerance", tolerance)
        return solve_parameters(problem, start, tolerance, checks.whole("max_steps", max_steps, least=1))
    checks.kind("problem", problem, Problem, "a Problem")
    chosen: Any = _usual_method(problem) if method is None else method
    free = isinstance(chosen, MatrixFree)
    if not isinstance(chosen, Method):
        raise InputError(f"Argument `method` must be a method, such as Newton(), but {chosen!r} was given.")
    if modes is not None and not isinstance(chosen, Newton):
        raise InputError(f"Argument `method` must be Newton() in modes, but {chosen!r} was given.")
    tolerance = (GRADIENT if free else RESIDUAL) if tolerance is None else checks.number("tolerance", tolerance)
    checks.positive("tolerance", tolerance)
    max_steps = checks.whole("max_steps", max_steps, least=1)
    learning: Any = chosen
    several = isinstance(start, (list, tuple)) and len(start) > 0
    starts = list(start) if several else [start] if start is not None else None
    if modes is not None:
        return solve_in_modes(problem, modes_of(problem, modes), starts[0] if starts else None, learning, max_steps)
    if isinstance(chosen, Solver):
        begins: Any = starts if free or starts is None else [begin(one, problem) for one in starts]
        fits = chosen.descend(problem, begins, tolerance, max_steps)
    else:
        fits = [
            arrive(problem, learning, begin(one, problem), tolerance, max_steps) for one in starts or usual(problem)
        ]
    if starts is None and problem.link.even:  # a sign that changes somewhere is a kink for the prior, not for the data
        mixed = [np.abs(fit.field) for fit in fits if fit.field.min() < 0 < fit.field.max()]
        if isinstance(chosen, Solver):
            fits += chosen.descend(problem, mixed, tolerance, max_steps) if mixed else []
        else:
            fits += [arrive(problem, learning, field, tolerance, max_steps) for field in mixed]
    found = [fit for fit in fits if fit.converged] or fits
    least = min(fit.energy for fit in found)
    best = next(fit for fit in found if fit.energy <= least + ROUNDING * (1 + abs(least)))  # the first, not by rounding
    met = sorted(_different([best, *fits]), key=lambda fit: fit.energy)
    return dataclasses.replace(best, minima=tuple(fit.energy for fit in met), starts=len(fits), met=tuple(met))


def _usual_method(problem: Problem) -> Method:
    """Newton's method, unless potentials ask for another."""
    if not has_potentials(problem):
        return NewtonCG() if problem.likelihood.on_host and problem.grid.size > MATRICES else NEWTON
    if splits(problem):
        return Splitting()
    return Reweighting() if isinstance(problem.link, Direct) else NEWTON


def modes_of(problem: Problem, modes: Any) -> Modes:
    """The modes that take part.

    Raises:
        InputError: if the prior is not diagonal in modes.
    """
    if isinstance(modes, Modes):
        if modes.grid != problem.grid:
            raise InputError("Argument `modes` must live on the grid of the problem, but they live on another one.")
        return moved_by_data(problem, modes) if problem.link.exponential else modes
    if problem.parts is None:
        raise InputError("Argument `modes` must be None here, because the prior is not Gaussian.")
    found = problem.operator.modes(None if modes is True else modes)
    if isinstance(problem.link, Direct):
        return found
    if not problem.link.exponential:
        raise InputError(
            "Argument `modes` must be None for this link, because only log-densities and regressions are solved in "
            "modes."
        )
    if not (problem.link.linear or blind(problem)):
        raise InputError("Argument `modes` must be None here, because the prior pulls at functions of x alone: use "
                         "the link Logits, or Difference and ThinPlate over the axes y.")  # fmt: skip
    return moved_by_data(problem, found.without_constant())


def moved_by_data(problem: Problem, modes: Modes) -> Modes:
    """Without modes that are stiff beside the data."""
    grid, values = modes.grid, modes.values
    steps = math.prod(axis.points - 1 for axis in grid.axes)
    limit = STIFF * problem.likelihood.total / (steps * grid.cell)
    counts = []
    for edge in (values[:, 0], values[0]):
        counts.append(max(int((edge < limit).sum()), min(len(edge), int((edge == 0).sum()) + 1)))
    return modes.first(*counts)


def solve_in_modes(
    problem: Problem,
    modes: Modes,
    start: Any = None,
    method: LearningMatrix = NEWTON,
    max_steps: int = MOST,
    sharp: float = SHARP,
    coefficients: np.ndarray | None = None,
) -> Fitted:
    """The minimum among sums of modes, whose values are those of the prior's operator.

    Args:
        problem: what is asked.
        modes: those that take part.
        start: as for `solve`.
        method: Newton's.
        max_steps: iterations at most.
        sharp: the gain of the last step, in nats.
        coefficients: of the first modes, where the iteration begins if the energy is less there than at the start.
    """
    known, c = None, np.zeros(modes.values.size)
    if isinstance(start, Fitted):
        same = start.modes is not None and start.modes.given is modes.given and start.modes.over is modes.over
        known = start.data_hessian if same and start.problem.likelihood is problem.likelihood else None
        c = modes.coefficients(start.field)
    elif start is not None:
        c = modes.coefficients(begin(start, problem))
    elif problem.link.exponential and hasattr(problem.likelihood, "counts"):
        c = modes.coefficients(_bump(problem))
    land = InModes(problem, modes, known)
    if coefficients is not None:
        other = np.zeros(len(c))
        other[: len(coefficients)] = coefficients[: len(c)]
        c = other if land.look(other).energy < land.look(c).energy else c
    one = problem.likelihood.convex
    end = descend(land, method, c, enough=0.0, max_steps=max_steps, convex=one, sharp=sharp)
    field, link = modes.field(end.c), problem.link
    if link.exponential and not link.linear:
        field = field - Problem.log_integral(problem, field)
    kind = Fitted if isinstance(link, Direct) else FittedDensity
    return kind(field, end.outcome, problem, end.point.energy, end.trace[-1][3], (end.point.energy,), 1, modes,
                end.factor, end.hessian, land.known, tuple(end.trace))  # fmt: skip


def _bump(problem: Problem) -> np.ndarray:
    """A Gaussian among the points where the data are, as a logarithm: mean and width of all rows along each axis."""
    grid, counts = problem.grid, np.asarray(problem.likelihood.counts)  # pyright: ignore[reportAttributeAccessIssue]
    field = -np.log(grid.weights)
    for dim in grid.dims:
        along = counts.sum(axis=tuple(d for d in range(counts.ndim) if d != dim))
        u = np.linspace(-1, 1, len(along))
        mean = along @ u / along.sum()
        z = (u - mean) ** 2 / max(along @ (u - mean) ** 2 / along.sum(), WIDTH**2)
        field = field - 0.5 * z.reshape([-1 if d == dim else 1 for d in range(counts.ndim)])
    return np.broadcast_to(field, grid.shape)


def arrive(problem: Problem, method: LearningMatrix, field: np.ndarray, tolerance: float, max_steps: int) -> Fitted:
    """Where the iteration arrives from one field."""
    land = OnPoints(problem)
    data: Any = problem.likelihood
    size = np.max(data.counts) if hasattr(data, "counts") else np.max(np.abs(problem.expand_data(field)[1]))
    enough = tolerance * max(1.0, float(size) / problem.grid.cell)
    end = descend(land, method, field.ravel(), enough=enough, max_steps=max_steps, convex=convex(problem))
    found = projected(problem, end.c.reshape(problem.grid.shape))
    kind = Fitted if isinstance(problem.link, Direct) else FittedDensity
    return kind(found, end.outcome, problem, end.trace[-1][0], end.trace[-1][3], steps=tuple(end.trace))


def _different(fits: list[Any]) -> list[Any]:
    """Minima that are not the same, of those that were found."""
    found: list[Any] = []
    for fit in fits:
        here, *others = (one.field if isinstance(one.problem.link, Direct) else one.density for one in (fit, *found))
        near = APART * float(np.max(np.abs(here)))
        if fit.converged and all(np.max(np.abs(here - other)) > near for other in others):
            found.append(fit)
    return found
