r"""Densities from data alone: the smoothness of the log-density is chosen by evidence.

The log-density is a field on a grid of hats and tails with the prior that its $k$-th derivative is small; in two and
three dimensions that of a thin plate. The posterior of $\ln P$ is the mixture over orders and strengths (see
`quenched.fields.practice.evidence`), equally probable on a logarithmic scale of lengths; its mean is the estimate, and
its mean and variance make the band.
"""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import LogDensity
from quenched.fields.model.operators import Modes, ThinPlate
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.practice.evidence import Mixture, Trial, attempt, follow, weigh

ORDERS = {2: 0.25, 3: 0.5, 4: 0.25}
"""Orders tried, and how probable they are beforehand: the middle one, for which Gaussians are free, is as probable as
its neighbours together. Order 1 allows kinks."""
ROWS = 5
"""Rows for each free polynomial, but the constant, without which an order is not tried; the lowest always is."""
RATIO = {1: 3.0, 2: 5.0, 3: 8.0}
"""By dimension: strengths fall by this factor. Finer steps change the mean error of many data sets by less than one
part in a hundred."""
SURE = 100.0
"""At the first strength the prior is so many times as sure as the data of the smoothest mode that is not free."""
LOST = 12.0
"""A path ends when the logarithm of the evidence is so much below its best."""
NEGLIGIBLE = 1e-4
"""Shares of the posterior that are left out."""
POINTS = {1: (100, 200, 400), 2: (64,), 3: (24,)}
"""Of each axis, by dimension: few sizes, so that the modes of one fit serve the next."""
COARSE, WIDE = 0.4, 40.0
"""A grid whose spacing is a larger share of the deviation of the data's middle half does not resolve it; and a range of
so many of these deviations is that of heavy tails: the axis is bent about the middle."""
MARGIN = 0.15
"""Share of the range of the data by which a grid goes beyond them on both sides; more for few rows."""
TAIL = 0.02
"""Share of the grid's length in which the density beyond its ends falls by a factor of e."""

Bounds = tuple[float | None, float | None]


@dataclasses.dataclass(frozen=True)
class Estimate:
    r"""The posterior of a log-density.

    Attributes:
        grid: where.
        log_density: mean of $\ln P$ at the points, normalised.
        deviation: standard deviation of $\ln P$ at the points.
        mixture: what was tried.
    """

    grid: Grid
    log_density: np.ndarray
    deviation: np.ndarray
    mixture: Mixture


def estimate(grid: Grid, counts: np.ndarray, *, order: int | None = None, strength: float | None = None) -> Estimate:
    """The posterior of the log-density of rows that were counted on a grid.

    Args:
        grid: where.
        counts: rows at its points, as `Grid.counts` gives them.
        order: of the derivative that is small; by default all of `ORDERS`.
        strength: of the prior; by default all.

    Raises:
        InputError: if the strength is too small for so many rows on so many points.
    """
    data = DensityData(None, None, counts)
    modes = {k: ThinPlate(grid, k).modes().without_constant() for k in (ORDERS if order is None else [order])}
    tried = {k: m for k, m in modes.items() if k == min(modes) or data.total >= ROWS * np.sum(m.values == 0)}
    total = sum(ORDERS.get(k, 1.0) for k in tried)
    paths = [_path(grid, data, k, m, ORDERS.get(k, 1.0) / total, strength) for k, m in tried.items()]
    mixture = weigh([trial for path in paths for trial in path])
    kept = np.flatnonzero(mixture.shares > NEGLIGIBLE)
    p = mixture.shares[kept] / mixture.shares[kept].sum()
    means = np.stack([mixture.trials[i].fit.field for i in kept])
    variances = np.stack([mixture.trials[i].posterior.log_density_variance() for i in kept])
    mean = np.tensordot(p, means, axes=1)
    deviation = np.sqrt(np.tensordot(p, variances + (means - mean) ** 2, axes=1))
    return Estimate(grid, mean - np.log(np.sum(grid.weights * np.exp(mean))), deviation, mixture)


def _path(grid: Grid, data: DensityData, order: int, modes: Modes, prior: float, strength: float | None) -> list[Trial]:
    """Trials at falling strengths, or at one."""
    n, plate, link = data.total, ThinPlate(grid, order), LogDensity(grid)
    s = modes.values[0] * math.prod(
        axis.length for axis in grid.axes
    )  # in coordinates in which the grid has unit length
    # Down to where half of all modes are free: finer ones are shorter than four spacings.
    top, bottom = SURE * n / s[np.sum(s == 0)], n / s[(len(s) + 1) // 2 - 1]
    if strength is not None and strength < bottom:
        raise InputError(f"Argument `strength` must be at least {bottom:.3g} for {n:g} rows on this grid, or the prior "
                         f"says nothing, but {strength:g} was given.")  # fmt: skip
    count = int(np.log(top / bottom) / np.log(RATIO[len(grid.axes)])) + 1
    strengths = np.geomspace(top, bottom, count).tolist() if strength is None else [strength]

    def ask(lam: float, start: object) -> Trial:
        problem = Problem(data, link, Gaussian(lam * plate))
        return attempt(problem, modes.times(lam), order=order, strength=lam, prior=prior / len(strengths), start=start)

    return follow(ask, strengths, LOST)


def grid_for(
    rows: np.ndarray, weights: np.ndarray, *, bounds: list[Bounds], points: list[int | None], extend: bool
) -> Grid:
    """A grid for these rows.

    Args:
        rows: `[n, d]`.
        weights: of the rows, all positive.
        bounds: of each column, None where the grid shall find its own end.
        points: of each axis, None for as many as the data can tell apart.
        extend: whether an end that leaves out data becomes its own.

    Raises:
        InputError: if there is nothing to lay a grid over, or data outside the bounds.
    """
    choices = [POINTS[rows.shape[1]] if count is None else (count,) for count in points]
    columns = enumerate(zip(rows.T, bounds, choices, strict=True))
    return Grid(over=[_axis(i, x, weights, ends, count, extend=extend) for i, (x, ends, count) in columns])


def check_range(name: str, column: int, x: np.ndarray) -> tuple[float, float]:
    """The least and the largest value of a column, which must differ."""
    low, high = float(x.min()), float(x.max())
    if not low < high:
        raise InputError(f"Argument `{name}` must hold at least two different values in each column, but all n_samples="
                         f"{len(x)} values of column {column} are {low:g}.")  # fmt: skip
    checks.inside(name, np.array([low, high, high - low]), -checks.LARGEST, checks.LARGEST)
    return low, high


def _axis(
    column: int, x: np.ndarray, weights: np.ndarray, bounds: Bounds, choices: tuple[int, ...], *, extend: bool
) -> Axis:
    """One axis; of several numbers of points the smallest that will do."""
    ends, tails, n = list(check_range("X", column, x)), [0.0, 0.0], weights.sum()
    width = ends[1] - ends[0]
    for side, (bound, sign) in enumerate(zip(bounds, (-1, 1), strict=True)):
        if bound is not None and sign * (ends[side] - bound) > 0 and not extend:
            raise InputError(f"Argument `X` must lie inside `bounds`, but column {column} holds {ends[side]:g}, beyond "
                             f"{bound:g}: widen the bounds, or set `extend=True`.")  # fmt: skip
        if bound is not None and sign * (ends[side] - bound) <= 0:
            ends[side] = float(bound)
        else:
            # The range of few rows says little about where a density ends.
            ends[side] += sign * width * (MARGIN + 2 / np.sqrt(n))
            tails[side] = TAIL
    length, (middle, deviation) = ends[1] - ends[0], _middle(x, weights)
    bend = (middle, deviation) if length > WIDE * deviation > 0 else None
    needed = 10 * length / deviation * (n / 1e3) ** (1 / 7) if deviation > 0 else np.inf
    count = next((count for count in choices if count >= needed), choices[-1])
    if length > COARSE * deviation * choices[-1] and len(choices) > 1 and bend is None:
        warnings.warn("The range of the data is so wide that the grid cannot resolve their middle half: give `bounds`, "
                      "more `points`, or transform the data.", stacklevel=6)  # fmt: skip
    return Axis(ends[0], ends[1], count, tails=(tails[0] * length, tails[1] * length), bend=bend)


def _middle(x: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The median, and the deviation of a Gaussian with the quartiles of the data."""
    order = np.argsort(x)
    low, middle, high = x[order][np.searchsorted(np.cumsum(weights[order]) / weights.sum(), [0.25, 0.5, 0.75])]
    return float(middle), float(high - low) / 1.35
