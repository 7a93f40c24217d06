r"""Densities from data alone: the smoothness of the log-density is chosen by evidence.

The log-density is a field on a grid of hats and tails with the prior that its $k$-th derivative is small; in two and
three dimensions that of a thin plate. The posterior of $\ln P$ is the mixture over orders and strengths (see
`quenched.fields.practice.evidence`), equally probable on a logarithmic scale of lengths; its mean is the estimate, and
its mean and variance make the band.

One strength for all places is too little for a density of one column with narrow parts and wide ones. So two more ideas
are weighed beside it, by their evidence too: the log-density is a smooth field *plus* an independent rough one, small
and without memory beyond a sixtieth of the grid, as long as rows are too few to decide fine structure; or the density
is a mixture of few Gaussians (see `quenched.fields.learner.templates`). What the rows do not decide widens the band.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.learner.templates import Template, templates
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import LogDensity
from quenched.fields.model.modes import Modes
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import ThinPlate
from quenched.fields.practice.evidence import Mixture, Trial, attempt, tangent, weigh

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
SHARP = 1e-14
"""The gain of the last step to a minimum, in nats: what is left is a millionth of the band."""
LOST, STRIDE, FAR = 12.0, 3, 100.0
"""A path ends when the logarithm of the evidence is so much below its best; of how many strengths one is tried, before
the others about the best; and how far below the best of all those of an order are not looked at any more."""
NEGLIGIBLE = 1e-4
"""Shares of the posterior that are left out."""
TEMPLATES, MOST = 0.2, 8
"""How probable mixtures of Gaussians are beforehand, and their components at most."""
ROUGH, DEVIATIONS, SCALES, FEW = 0.5, (0.3, 0.7), 60, 3000
"""How probable an additional rough field is beforehand; its standard deviations; how many modes it has; and the number
of rows from which on it is not asked for."""
POINTS = {1: (200, 400), 2: (128, 192), 3: (48, 96)}
"""Of each axis, by dimension: few sizes, so that the modes of one fit serve the next."""
BACK, HOPELESS = (2, 0, 4, 6), 15.0
"""Strengths above the best smooth field's at which a rough one is added, the likeliest first; and the logarithm of the
evidence by which it must not be below the best of all, or the others are not tried."""
ENOUGH, MANY = 500, 2000
"""Rows from which on they may show finer structure than that of their middle half: the finest grid is used, of several
columns from the second on: hats widen a density by a third of their squared distance, which must be less than what rows
leave open."""
COARSE, WIDE = 0.4, 40.0
"""A grid whose spacing is a larger share of the deviation of the data's middle half does not resolve it; and a range of
so many of these deviations is that of heavy tails: the axis is bent about the middle."""
MARGIN = 0.15
"""Share of the range of the data by which a grid goes beyond them on both sides; more for few rows."""
TAIL = 0.02
"""Share of the grid's length in which the density beyond its ends falls by a factor of e."""
FINEST = 1000
"""Distances of neighbouring floating-point numbers that a column must span: points of a grid must differ."""

Bounds = tuple[float | None, float | None]


@dataclasses.dataclass(frozen=True)
class Estimate:
    r"""The posterior of a log-density.

    Attributes:
        grid: where.
        log_density: mean of $\ln P$ at the points, normalised.
        deviation: standard deviation of $\ln P$ at the points.
        mixture: what was tried.
        smooth: logarithm of the evidence of smooth fields alone.
    """

    grid: Grid
    log_density: np.ndarray
    deviation: np.ndarray
    mixture: Mixture
    smooth: float


@dataclasses.dataclass(frozen=True)
class Parametric:
    """A mixture of Gaussians as a trial: how probable it is beforehand, and what the data say."""

    template: Template
    rows: float
    prior: float
    order: int = 0
    strength: float = np.inf
    converged: bool = True

    @property
    def components(self) -> int:
        """How many Gaussians."""
        return len(self.template.shares)

    @property
    def evidence(self) -> float:
        """The logarithm of the probability of the data, with the prior of unit information."""
        return self.template.likelihood - self.template.freedom / 2 * math.log(self.rows)

    @property
    def field(self) -> np.ndarray:
        """The log-density."""
        return self.template.log_density

    def variance(self) -> np.ndarray:
        r"""Of $\ln P$ at each point of the grid."""
        return self.template.variance(self.rows)


def estimate(
    grid: Grid, counts: np.ndarray, *, order: int | None = None, strength: float | None = None, smooth: bool = False
) -> Estimate:
    """The posterior of the log-density of rows that were counted on a grid.

    Args:
        grid: where.
        counts: rows at its points, as `Grid.counts` gives them.
        order: of the derivative that is small; by default all of `ORDERS`.
        strength: of the prior; by default all.
        smooth: whether smooth fields alone are tried, as they are where an order is given.

    Raises:
        InputError: if the strength is too small for so many rows on so many points.
    """
    data = DensityData(None, None, counts)
    modes = {k: ThinPlate(grid, k).modes().without_constant() for k in (ORDERS if order is None else [order])}
    tried = {k: m for k, m in modes.items() if k == min(modes) or data.total >= ROWS * np.sum(m.values == 0)}
    several = order is None and len(grid.axes) == 1 and not smooth
    parametric = _parametric(grid, counts, data.total) if several else []
    total = sum(ORDERS.get(k, 1.0) for k in tried) / (1 - sum(trial.prior for trial in parametric))
    paths = {k: _Path(grid, data, k, m, ORDERS.get(k, 1.0) / total, strength) for k, m in tried.items()}
    best = max(trial.evidence for path in [parametric, *(path.scan() for path in paths.values())] for trial in path)
    for path in paths.values():
        if path.best.evidence > best - FAR:
            path.climb()
    best = max(trial.evidence for path in [parametric, *(path.trials for path in paths.values())] for trial in path)
    for path in paths.values():
        path.fill(best - LOST)
    trials: list[Any] = [trial for path in paths.values() for trial in path.trials]
    smooth = weigh(trials).log_evidence - np.log(1 - sum(trial.prior for trial in parametric))
    trials = parametric + trials
    if several and data.total < FEW:
        best = max(trial.evidence for trial in trials)
        promising = {k: path for k, path in paths.items() if path.best.evidence > best - LOST / 2}
        trials = [
            dataclasses.replace(trial, prior=(1 - ROUGH) * trial.prior) if trial.order in promising else trial
            for trial in trials
        ]
        trials += [trial for path in promising.values() for trial in path.roughen(best - HOPELESS)]
    mixture = weigh(trials)
    kept = np.flatnonzero(mixture.shares > NEGLIGIBLE)
    p = mixture.shares[kept] / mixture.shares[kept].sum()
    means = np.stack([mixture.trials[i].field for i in kept])
    variances = np.stack([mixture.trials[i].variance() for i in kept])
    mean = np.tensordot(p, means, axes=1)
    deviation = np.sqrt(np.tensordot(p, variances + (means - mean) ** 2, axes=1))
    return Estimate(grid, mean - np.log(np.sum(grid.weights * np.exp(mean))), deviation, mixture, float(smooth))


def _parametric(grid: Grid, counts: np.ndarray, rows: float) -> list[Parametric]:
    """Mixtures of two and more Gaussians, as long as rows decide them and the evidence is not lost."""
    found: list[Parametric] = []
    for template in templates(grid.axes[0].coordinates, grid.weights.ravel(), counts.ravel(), MOST):
        if rows < ROWS * template.freedom or template.shares.min() < 2 / rows:
            break
        found.append(Parametric(template, rows, 1 / len(template.shares)))
        if found[-1].evidence < max(trial.evidence for trial in found) - LOST / 2:
            break
    found = found[1:]  # one Gaussian is the smooth field of order 3 at infinite strength
    total = sum(trial.prior for trial in found)
    return [dataclasses.replace(trial, prior=TEMPLATES * trial.prior / total) for trial in found]


class _Path:
    """Trials of one order at falling strengths, or at one."""

    def __init__(
        self, grid: Grid, data: DensityData, order: int, modes: Modes, prior: float, strength: float | None
    ) -> None:
        self.grid, self.data, self.order, self.modes, self.prior = grid, data, order, modes, prior
        self.problem = Problem(data, LogDensity(grid), Gaussian(ThinPlate(grid, order)))
        self.trials: list[Trial] = []
        n, s = data.total, modes.values[0] * math.prod(axis.length for axis in grid.axes)  # of a grid of unit length
        # Down to where half of all modes are free: finer ones are shorter than four spacings.
        top, bottom = SURE * n / s[np.sum(s == 0)], n / s[(len(s) + 1) // 2 - 1]
        if strength is not None and strength < bottom:
            raise InputError(f"Argument `strength` must be at least {bottom:.3g} for {n:g} rows on this grid, or the "
                             f"prior says nothing, but {strength:g} was given.")  # fmt: skip
        count = int(np.log(top / bottom) / np.log(RATIO[len(grid.axes)])) + 1
        self.strengths = np.geomspace(top, bottom, count).tolist() if strength is None else [strength]

    def ask(self, strength: float, start: Trial | None) -> Trial:
        """A trial, begun at the one before."""
        begin = (
            {} if start is None else {"start": start.fit, "coefficients": tangent(start.fit, strength / start.strength)}
        )
        return attempt(self.problem, self.modes.times(strength), order=self.order, strength=strength,
                       prior=self.prior / len(self.strengths), sharp=SHARP, **begin)  # fmt: skip

    def scan(self) -> list[Trial]:
        """Some strengths, until the evidence is lost."""
        last = len(self.strengths) - 1
        for i in [*range(0, last, STRIDE), last]:
            self.trials.append(self.ask(self.strengths[i], self.trials[-1] if self.trials else None))
            if self.trials[-1].evidence < self.best.evidence - LOST:
                break
        return self.trials

    def climb(self) -> None:
        """The strengths next to the best, until it is the best of all."""
        while True:
            found = {self.strengths.index(trial.strength): trial for trial in self.trials}
            i = self.strengths.index(self.best.strength)
            beside = [j for j in (i - 1, i + 1) if 0 <= j < len(self.strengths) and j not in found]
            if not beside:
                return
            found |= {j: self.ask(self.strengths[j], found[i]) for j in beside}
            self.trials = [found[j] for j in sorted(found)]

    def fill(self, least: float) -> None:
        """The strengths between, from both sides, as long as the evidence is at least so much."""
        found = {self.strengths.index(trial.strength): trial for trial in self.trials}
        places = list(found)
        for i, j in itertools.pairwise(places):
            for begin, end, step in ((i, j, 1), (j, i, -1)):
                while found[begin].evidence >= least and begin + step != end and begin + step not in found:
                    found[begin + step] = self.ask(self.strengths[begin + step], found[begin])
                    begin += step
        self.trials = [found[i] for i in sorted(found)]

    @property
    def best(self) -> Trial:
        """The most probable."""
        return max(self.trials, key=lambda trial: trial.evidence)

    def roughen(self, least: float) -> list[Trial]:
        """Trials with a rough field added, about the best; of each deviation one, and others if it is not hopeless."""
        places = [self.strengths.index(trial.strength) for trial in self.trials]
        best, prior, found = self.strengths.index(self.best.strength), ROUGH / len(DEVIATIONS), []
        for deviation in DEVIATIONS:
            for back in BACK:  # each stands for two strengths
                if best < back:
                    continue
                near = self.trials[int(np.argmin(np.abs(np.array(places) - (best - back))))]
                strength = self.strengths[best - back]
                operator: Any = (strength * ThinPlate(self.grid, self.order)).roughen(deviation, SCALES)  # pyright: ignore[reportAttributeAccessIssue]
                problem = Problem(self.data, LogDensity(self.grid), Gaussian(operator))
                rough = dataclasses.replace(self.modes, values=operator.values[None, 1:])
                found.append(attempt(problem, rough, order=self.order, strength=strength, sharp=SHARP, start=near.fit,
                                     prior=2 * prior * self.prior / len(self.strengths)))  # fmt: skip
                if found[-1].evidence < least:
                    break
        return found


def grid_for(
    rows: np.ndarray,
    weights: np.ndarray,
    *,
    bounds: list[Bounds],
    points: list[int | None],
    extend: bool,
    ends: np.ndarray | None = None,
) -> Grid:
    """A grid for these rows.

    Args:
        rows: `[n, d]`.
        weights: of the rows, all positive.
        bounds: of each column, None where the grid shall find its own end.
        points: of each axis, None for as many as the data can tell apart.
        extend: whether an end that leaves out data becomes its own.
        ends: the least and the largest value of each column, if these are not those of the rows.

    Raises:
        InputError: if there is nothing to lay a grid over, or data outside the bounds.
    """
    usual = POINTS[rows.shape[1]]
    if rows.shape[1] > 1:
        usual = usual[-1:] if weights.sum() >= MANY else usual[:1]
    choices = [usual if count is None else (count,) for count in points]
    if ends is None:
        ends = np.array([check_range("X", i, x) for i, x in enumerate(rows.T)])
    if not extend:
        check_inside(ends, bounds)
    columns = zip(rows.T, ends.tolist(), bounds, choices, strict=True)
    return Grid(over=[_axis(x, weights, between, pair, count) for x, between, pair, count in columns])


def check_inside(ends: np.ndarray, bounds: Sequence[Bounds]) -> None:
    """Check that the least and the largest value of each column are inside the bounds."""
    for column, (pair, given) in enumerate(zip(ends.tolist(), bounds, strict=True)):
        for end, bound, sign in zip(pair, given, (-1, 1), strict=True):
            if bound is not None and sign * (end - bound) > 0:
                raise InputError(f"Argument `X` must lie inside `bounds`, but column {column} holds {end:g}, beyond "
                                 f"{bound:g}: widen the bounds, or set `extend=True`.")  # fmt: skip


def check_range(name: str, column: int, x: np.ndarray, size: int | None = None) -> tuple[float, float]:
    """The least and the largest value of a column of some size, which must differ by more than rounding."""
    low, high = float(x.min()), float(x.max())
    if not low < high:
        raise InputError(f"Argument `{name}` must hold at least two different values in each column, but all n_samples="
                         f"{size or len(x)} values of column {column} are {low:g}.")  # fmt: skip
    checks.inside(name, np.array([low, high, high - low]), -checks.LARGEST, checks.LARGEST)
    if high - low < checks.SMALLEST:
        raise InputError(f"Argument `{name}` must hold values that differ by {checks.SMALLEST:g} at least in each "
                         f"column, but those of column {column} do not: squares underflow.")  # fmt: skip
    if high - low < FINEST * np.spacing(max(abs(low), abs(high))):
        raise InputError(f"Argument `{name}` must hold values that differ by more than rounding in each column, but "
                         f"those of column {column} lie within {high - low:g} of {low:g}.")  # fmt: skip
    return low, high


def _axis(x: np.ndarray, weights: np.ndarray, between: list[float], bounds: Bounds, choices: tuple[int, ...]) -> Axis:
    """One axis; of several numbers of points the smallest that will do."""
    ends, tails, n = list(between), [0.0, 0.0], weights.sum()
    width = ends[1] - ends[0]
    for side, (bound, sign) in enumerate(zip(bounds, (-1, 1), strict=True)):
        if bound is not None and sign * (ends[side] - bound) <= 0:
            ends[side] = float(bound)
        else:
            # The range of few rows says little about where a density ends.
            ends[side] += sign * width * (MARGIN + 2 / np.sqrt(n))
            tails[side] = TAIL
    length, (middle, deviation) = ends[1] - ends[0], _middle(x, weights)
    bend = (middle, deviation) if length > WIDE * deviation > 0 else None
    needed = 10 * length / deviation * (n / 1e3) ** (1 / 7) if deviation > 0 and n < ENOUGH else np.inf
    count = next((count for count in choices if count >= needed), choices[-1])
    if length > COARSE * deviation * choices[-1] and len(choices) > 1 and bend is None:
        warnings.warn("The range of the data is so wide that the grid cannot resolve their middle half: give `bounds`, "
                      "more `points`, or transform the data.", stacklevel=6)  # fmt: skip
    return Axis(ends[0], ends[1], count, tails=(tails[0] * length, tails[1] * length), bend=bend)


def _middle(x: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The median, and the deviation of a Gaussian with the quartiles of the data."""
    if np.ptp(weights) == 0:
        at = np.ceil(len(x) * np.array([0.25, 0.5, 0.75])).astype(int) - 1
        low, middle, high = np.partition(x, at)[at]
    else:
        order = np.argsort(x)
        low, middle, high = x[order][np.searchsorted(np.cumsum(weights[order]) / weights.sum(), [0.25, 0.5, 0.75])]
    return float(middle), float(high - low) / 1.35
