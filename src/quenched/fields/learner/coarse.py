r"""The same problem on a coarser grid, and fields carried from one grid to the other.

A coarse grid covers the same interval, and its modes are the smoothest modes of the fine one: the operator of the prior
keeps their eigenvalues, and a field keeps its amplitudes. Rows move to the coarse points next to them. A coarse
solution is only where the iteration on the fine grid begins.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import equinox as eqx
import numpy as np

from quenched.fields.model.grid import Axis, Dirichlet, Free, Grid, Periodic
from quenched.fields.model.likelihoods import DensityData, GaussianData, Likelihood
from quenched.fields.model.operators import Operator, Sum, Waves
from quenched.fields.model.outcomes import QuantumData
from quenched.fields.model.priors import And, Gaussian, Prior
from quenched.fields.model.problem import Problem
from quenched.fields.model.rows import RowData
from quenched.fields.model.smoothness import Plate

RATIO = 4
"""Points of an axis for each of the coarser one: a solution is smooth, and each grid has programs of its own."""


def coarsen(problem: Problem, least: int) -> Problem | None:
    """The problem on a grid with a quarter of the points along all long axes; None if it has no coarse form.

    Args:
        problem: likelihood x link x prior.
        least: axes with less than four times as many points stay as they are.
    """
    grid = problem.grid
    axes = [_thinned(axis) if axis.points >= RATIO * least else axis for axis in grid.axes]
    if all(new is old for new, old in zip(axes, grid.axes, strict=True)):
        return None
    coarse = Grid(given=axes[: len(grid.given)], over=axes[len(grid.given) :])
    arrays = any(eqx.is_array(leaf) for leaf in eqx.tree_flatten_one_level(problem.link)[0])
    likelihood, prior = _data(problem.likelihood, grid, coarse), _prior(problem.prior, coarse)
    if arrays or likelihood is None or prior is None:
        return None
    return Problem(likelihood, dataclasses.replace(problem.link, grid=coarse), prior)


def carry(field: np.ndarray, old: Grid, new: Grid) -> np.ndarray:
    """A field on another grid of the same intervals: with the same amplitudes of the modes that both have."""
    a = Waves(old, np.ones(()), (0,) * len(old.axes)).to_modes(np.asarray(field, dtype=np.float64))
    kept = tuple(slice(min(m, n)) for m, n in zip(old.shape, new.shape, strict=True))
    b = np.zeros(new.shape)
    b[kept] = a[kept]
    volumes = [math.prod(axis.points + isinstance(axis.ends, Dirichlet) for axis in grid.axes) for grid in (new, old)]
    return np.sqrt(volumes[0] / volumes[1]) * Waves(new, np.ones(()), (0,) * len(new.axes)).from_modes(b)


def _thinned(axis: Axis) -> Axis:
    n, m, h = axis.points, axis.points // RATIO, axis.spacing
    if axis.tails is not None:
        return dataclasses.replace(axis, points=m)
    if isinstance(axis.ends, Periodic):
        low, step = axis.low, h * n / m
    elif isinstance(axis.ends, Free):
        step = h * n / m
        low = axis.low + (step - h) / 2
    else:
        step = h * (n + 1) / (m + 1)
        low = axis.low + step - h
    return dataclasses.replace(axis, low=low, high=low + step * (m - 1), points=m)


def _places(old: Axis, new: Axis) -> np.ndarray:
    """Where the points of an axis lie on the coarse one, in units of its spacing."""
    i, n, m = np.arange(old.points), old.points, new.points
    if old.tails is not None:
        return i * (m - 1) / (n - 1)
    if isinstance(old.ends, Periodic):
        return i * m / n
    return np.clip((i + 0.5) * m / n - 0.5 if isinstance(old.ends, Free) else (i + 1) * (m + 1) / (n + 1) - 1, 0, m - 1)


def _counted(counts: np.ndarray, old: Grid, new: Grid) -> np.ndarray:
    """Counts shared out to the coarse points on both sides."""
    for i, (a, b) in enumerate(zip(old.axes, new.axes, strict=True)):
        if a is b:
            continue
        at = _places(a, b)
        below = np.floor(at).astype(int)
        lines = np.moveaxis(counts, i, 0)
        total = np.zeros((b.points, *lines.shape[1:]))
        for step, share in ((0, 1 - at + below), (1, at - below)):
            np.add.at(total, (below + step) % b.points, share.reshape(-1, *[1] * (lines.ndim - 1)) * lines)
        counts = np.moveaxis(total, 0, i)
    return counts


def _data(data: Likelihood, old: Grid, new: Grid) -> Likelihood | None:
    """Rows at the nearest coarse points, counts shared out."""
    if type(data) is DensityData:
        return DensityData(None, None, _counted(np.asarray(data.counts), old, new))
    if isinstance(data, QuantumData):
        return data.carried(new, lambda counts: _counted(counts, old, new))
    if not isinstance(data, (GaussianData, RowData)) or data.places is None:
        return None
    axes = len(old.axes) - int(getattr(data, "components", False))
    at = np.unravel_index(np.asarray(data.places), old.shape[:axes])
    moved = [np.rint(_places(a, b)).astype(int)[i] % b.points for a, b, i in zip(old.axes, new.axes, at, strict=False)]
    places: Any = np.ravel_multi_index(moved, new.shape[:axes])
    if isinstance(data, GaussianData):
        return dataclasses.replace(data, places=places, size=new.size)
    return dataclasses.replace(data, places=places)


def _prior(prior: Prior, grid: Grid) -> Prior | None:
    if type(prior) is Gaussian:
        operator = _operator(prior.operator, grid)
        return None if operator is None else Gaussian(operator, carry(np.asarray(prior.mean), prior.grid, grid))
    if type(prior) is And:
        parts = [_prior(part, grid) for part in prior.parts]
        return None if any(part is None for part in parts) else And(tuple(part for part in parts if part is not None))
    return None


def _operator(operator: Operator, grid: Grid) -> Operator | None:
    """Of waves the smoothest ones."""
    if isinstance(operator, Waves):
        values = np.asarray(operator.values)
        return Waves(grid, values[tuple(slice(m) for m in grid.shape)], operator.orders)
    if isinstance(operator, Plate):
        return Plate(grid, operator.order, operator.factor)
    if isinstance(operator, Sum):
        terms = [(factor, _operator(part, grid)) for factor, part in operator.terms]
        if all(part is not None for _, part in terms):
            return Sum(grid, tuple((factor, part) for factor, part in terms if part is not None))
    return None
