r"""The iteration $\phi \leftarrow \phi + \eta A^{-1} G$, normalised, with $\eta$ by a line search.

[lemm1999, section 7]

$G$ is minus the derivative of the energy along the constraint, per volume. The energy of the projected field falls in
every step. A density that must not become negative has components at zero: these do not move while $G$ pushes them
down (active set). The iteration has arrived when the stationarity (KKT) residual vanishes: the largest $|G|$ among
components that may move, and of $G > 0$ among those at zero.

There may be several minima, and where an iteration arrives depends on its start: unless the energy is convex, several
starts are tried. An iteration that keeps a symmetry of its start can arrive where the energy still falls to the sides,
at a saddle: it leaves along the direction of most negative curvature, and goes on.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.types import Array, InputError, Outcome, double
from quenched.fields.learner import positive
from quenched.fields.learner.fitted import FittedDensity
from quenched.fields.learner.matrices import LearningMatrix, Newton, curvatures
from quenched.fields.learner.starts import begin, convex, usual
from quenched.fields.model.links import Density, Direct, Link
from quenched.fields.model.problem import Problem

FURTHEST, GROWTH = 30, 2.0
"""The line search doubles or halves the step so often at most."""
LENGTHS, REFINED = 64, 5
"""Lengths it tries at once, and how often."""
ROUNDING = 1e-13
"""An energy has not risen if it seems to by no more than this share."""
FLAT, SHORTEST = 1e-9, 20
"""A curvature is negative if it is below minus this share of the largest; and how often the step that leaves a saddle
is halved."""
APART = 1e-5
"""Minima are different if their densities are by this share of the largest density."""


@jax.jit
def _search(problem: Problem, field: Array, step: Array, most: float) -> Array:
    """The length of a step, at most `most`, up to which the energy falls; 0 if it does not.

    By the sign of the slope, which is known to more digits than the energy; but never over a hill.
    """
    looks = jax.vmap(jax.value_and_grad(lambda eta: problem.energy(field + eta * step)))
    begun = problem.energy(field)

    def closer(tried: Array, _: None) -> tuple[Array, None]:
        energies, slopes = looks(tried)
        rising = ~((slopes < 0) & (energies <= begun + ROUNDING * (1 + jnp.abs(begun))))  # also where there are none
        k = jnp.where(rising.any(), jnp.argmax(rising), LENGTHS)
        below, above = tried[jnp.clip(k - 1, 0)], tried[jnp.clip(k, 0, LENGTHS - 1)]
        return jnp.linspace(below, above, LENGTHS), None

    powers = GROWTH ** jnp.linspace(-FURTHEST, FURTHEST, LENGTHS - 1)
    tried = jnp.append(0.0, jnp.minimum(powers, most))
    return jax.lax.scan(closer, tried, length=REFINED)[0][0]


@jax.jit
def _look(problem: Problem, field: Array) -> tuple[Array, Array, Array]:
    """Energy, descent field, and minus the mean log-likelihood of the data."""
    energy, slope = jax.value_and_grad(problem.energy)(field)
    likelihood: Any = problem.likelihood
    error = likelihood.energy(problem.link, problem.link.project(field)) / jnp.sum(likelihood.counts)
    return energy, -slope / problem.grid.cell, error


@double
def solve(
    problem: Problem,
    method: LearningMatrix | None = None,
    *,
    start: Any = None,
    tolerance: float = 1e-10,
    max_steps: int = 500,
) -> FittedDensity:
    """Find a field of least energy.

    Args:
        problem: likelihood x link x prior. Regression (`Direct`) is solved exactly by `regress`, never here.
        method: a learning matrix; by default `Newton()`.
        start: a start, or several, of which that with the least energy in the end is taken. By default `Uniform()`;
            where the energy is not known to be convex kernel estimates, too.
        tolerance: of the stationarity residual, relative to the size of its terms.
        max_steps: iterations at most.

    Returns:
        The density, with the `outcome` of the iteration and the energies of all `minima` that the starts led to.

    Raises:
        InputError: for a regression, or a start or method that is none.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 1, points=20, ends=fields.Periodic())])
        >>> smooth = fields.Gaussian(0.01 * fields.Laplacian(grid))
        >>> fit = fields.solve(fields.Problem(fields.DensityData([0.3, 0.4]), fields.LogDensity(grid), smooth))
        >>> fit.converged, round(float(fit.density.sum() * grid.spacing), 12)
        (True, 1.0)
    """
    method = Newton() if method is None else method
    if not isinstance(problem, Problem) or isinstance(problem.link, Direct):
        raise InputError("Argument `problem` must be one of density estimation, but it is not: regression is solved "
                         "exactly by `regress`.")  # fmt: skip
    if not isinstance(method, LearningMatrix):
        raise InputError(f"Argument `method` must be a learning matrix, such as Newton(), but {method!r} was given.")
    checks.positive("tolerance", checks.number("tolerance", tolerance))
    max_steps = checks.whole("max_steps", max_steps, least=1)
    starts = usual(problem) if start is None else start if isinstance(start, (list, tuple)) and start else (start,)
    fits = [_descended(problem, method, begin(one, problem), tolerance, max_steps) for one in starts]
    found = [fit for fit in fits if fit.converged] or fits
    least = min(fit.energy for fit in found)
    best = next(fit for fit in found if fit.energy <= least + ROUNDING * (1 + abs(least)))  # the first, not by rounding
    minima = sorted(fit.energy for fit in _different([best, *fits]))
    return dataclasses.replace(best, minima=tuple(minima), starts=len(starts))


def _descended(
    problem: Problem, method: LearningMatrix, field: np.ndarray, tolerance: float, max_steps: int
) -> FittedDensity:
    """Where the iteration arrives from one field."""
    counts: Any = problem.likelihood.counts  # pyright: ignore[reportAttributeAccessIssue]
    enough = tolerance * max(1.0, float(np.max(counts)) / problem.grid.cell)
    one, trace = convex(problem), []
    for iteration in range(max_steps + 1):
        energy, G, error = (np.asarray(part) for part in _look(problem, field))
        free = positive.free(field, G) if isinstance(problem.link, Density) else np.full(field.shape, True)
        kkt = float(np.max(np.abs(np.where(free, G, 0.0))))
        trace.append([float(energy), float(error), 0.0, kkt])
        if iteration == max_steps:
            break
        if kkt <= enough:
            moved, length = (None, 0.0) if one else _aside(problem, field)
        else:
            moved, length = _moved(problem, method, field, G, free, iteration)
        trace[-1][2] = length
        if moved is None or length == 0.0 or np.array_equal(moved, field):
            break
        field = moved
    return _fit(problem, field, trace, Outcome.converged if trace[-1][3] <= enough else Outcome.stalled)


def _aside(problem: Problem, field: np.ndarray) -> tuple[np.ndarray | None, float]:
    """A field of less energy to the side of a saddle and the length of the step; none at a minimum."""
    values, vectors = curvatures(problem, field)
    if values[0] >= -FLAT * values[-1]:
        return None, 0.0
    step = vectors[:, 0].reshape(field.shape) / vectors[np.argmax(np.abs(vectors[:, 0])), 0]
    here = problem.value(field)
    noise = ROUNDING * (1 + abs(here))
    for length in 2.0 ** -np.arange(SHORTEST):
        tried = [np.asarray(_projected(problem.link, field + side * length * step)) for side in (1, -1)]
        energies = [problem.value(one) for one in tried]
        if min(energies) < here - noise:
            return tried[int(energies[1] < energies[0] - noise)], float(length)
    return None, 0.0


def _different(fits: list[FittedDensity]) -> list[FittedDensity]:
    """Minima that are not the same, of those that were found."""
    found: list[FittedDensity] = []
    for fit in fits:
        near = APART * float(np.max(fit.density))
        if fit.converged and all(np.max(np.abs(fit.density - other.density)) > near for other in found):
            found.append(fit)
    return found


def _moved(
    problem: Problem, method: LearningMatrix, field: np.ndarray, G: np.ndarray, free: np.ndarray, iteration: int
) -> tuple[np.ndarray, float]:
    """The field after one step, and its length."""
    if isinstance(problem.link, Density):
        step, most = positive.step(problem, method, field, G, free, iteration)
    else:
        step, most = method.step(problem, field, G, iteration), np.inf
    length = float(_search(problem, field, step, most))
    moved = np.asarray(_projected(problem.link, field + length * step))
    return (positive.landed(moved, field, step, length, most) if np.isfinite(most) else moved), length


@jax.jit
def _projected(link: Link, field: Array) -> Array:
    return link.project(field)


def _fit(problem: Problem, field: np.ndarray, trace: list[list[float]], outcome: Outcome) -> FittedDensity:
    columns = np.array(trace).T
    names = ("energy", "training_error", "step", "kkt")
    data = {name: ("iteration", column) for name, column in zip(names, columns, strict=True)}
    density = np.asarray(problem.link.density(jnp.asarray(field)))
    return FittedDensity(field, outcome, problem, density, trace[-1][0], trace[-1][3], xr.Dataset(data))
