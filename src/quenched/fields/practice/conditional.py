r"""Conditional densities $p(y|x)$ from data alone: how they vary with $x$ and with $y$ is chosen by evidence.

First the mean and the width: $y = h(x) + e^{w(x)} r$, with $h$ and $w$ from `quenched.fields.practice.regression`. The
mean, of posterior variance $v$ and noise $\sigma^2$, has seen the rows: what it leaves of them is too small by
$\sqrt{1 - v(x_i)/\sigma^2}$, and what it misses of new ones is larger by $\sqrt{1 + v(x)/\sigma^2}$; both are put
right. The width is that of the logarithms of the sizes of what is left, whose variance is $\pi^2/8$ for Gaussians; a
constant one is tried, too, and the more probable of both is kept.

Then the density of what remains, $p(r|x) = e^{g(x, r)} / \int dr\, e^{g}$, on a grid of $x$ and $r$. A priori $g$ is
smooth along both,
$$p(g) \propto \exp\Bigl(-\tfrac{\lambda_x}2 \int |\partial_x^k g|^2
- \tfrac{\lambda_y}2 \int |\partial_r^3 g|^2\Bigr),$$
so that Gaussians are free, which for $k = 1$ do not depend on $x$; for $k = 2$ their natural parameters may be linear.
The prior is about $g$ itself, up to a function of $x$ (`Logits`): so it is diagonal in products of the modes of both
axes, and the energy is convex. Strengths and orders are weighed by their evidence (see
`quenched.fields.practice.evidence`); the predictive density is the mean over all.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.parametrisations import Logits
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import ThinPlate
from quenched.fields.practice.density import MARGIN, TAIL
from quenched.fields.practice.evidence import Mixture, Trial, attempt, follow, weigh
from quenched.fields.practice.regression import Function, merged
from quenched.fields.practice.regression import learn as regress
from quenched.fields.practice.rounding import FINE, step_of
from quenched.fields.theory.decisions import SquaredLoss

POINTS = (24, 160)
"""Along x and along y."""
MODES = (12, 33)
"""The smoothest of each axis, of which log-densities are made; the first along y is constant and drops out."""
ORDERS = (1, 2)
"""Along x."""
ORDER = 3
"""Along y: Gaussians are free."""
SURE = 100.0
"""At the first strengths the prior is so many times as sure as the data of the smoothest mode that is not free."""
ROUGH = 0.1
"""At the last strengths the roughest mode is so large a priori, as an inverse variance."""
STEP = 16.0
"""From one strength to the next."""
LOST = 7.0
"""A path ends when the logarithm of the evidence is so much below its best."""
CONSTANT, WORTH = 1e9, 2.0
"""A strength of order 1 that leaves only constants; and the logarithm of the evidence that a width which is none must
gain, because it was itself learned from the rows."""
NARROW = 1e-6
"""The least width of a density, as a share of the range of y."""
SMALL = 1e-4
"""What is added to squares before their logarithm is taken, as a share of their mean."""
NEGLIGIBLE = 1e-4
"""Shares of the posterior that are left out of its uncertainty."""
FAR = 1e-6
"""The least share of a row that the mean leaves; below it there is only rounding."""


@dataclasses.dataclass(frozen=True)
class Conditional:
    r"""The predictive density $p(y|x)$.

    Attributes:
        centre: the mean $h(x)$.
        width: $w(x)$.
        grid: points of $x$ and of the remainder $r$.
        density: $p(r|x)$ at the points.
        mixture: what was tried.
        log_evidence: logarithm of the probability of what the mean leaves, of all orders and strengths together.
    """

    centre: Function
    width: Function
    grid: Grid
    density: np.ndarray
    mixture: Mixture
    log_evidence: float

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Points along x, and along y from the least to the largest that the grid holds."""
        x, r = (axis.coordinates for axis in self.grid.axes)
        h, s = self.centre.at(x[:, None]), self._spread(x)
        return x, np.linspace(np.min(h + s * r[0]), np.max(h + s * r[-1]), len(r))

    @functools.cached_property
    def uncertainty(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of the logarithm of the density at the points, over all that was weighed."""
        likely = [(t, p) for t, p in zip(self.mixture.trials, self.mixture.shares, strict=True) if p > NEGLIGIBLE]
        shares = np.array([p for _, p in likely]) / sum(p for _, p in likely)
        means = np.array([np.log(trial.fit.density) for trial, _ in likely])
        mean = np.tensordot(shares, means, axes=1)
        inner = np.array([trial.variance() for trial, _ in likely])
        return mean, np.sqrt(np.tensordot(shares, inner + (means - mean) ** 2, axes=1))

    def log_density(self, x: np.ndarray, y: np.ndarray, logs: np.ndarray | None = None) -> np.ndarray:
        """The logarithm of the density of each y given its x; of another density of the remainder, if one is given."""
        s = self._spread(x)
        rows = np.stack([self._near(x), (y - self.centre.at(x[:, None])) / s], axis=1)
        with np.errstate(divide="ignore"):  # less than the least number
            return self.grid.log_values(np.log(self.density) if logs is None else logs, rows) - np.log(s)

    def mean(self, x: np.ndarray) -> np.ndarray:
        """The best answer under squared loss."""
        r = self._between(x) @ SquaredLoss().action(self.grid, self.density)
        return self.centre.at(x[:, None]) + self._spread(x) * r

    def quantiles(self, x: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """The y below which a share of the density lies, for each x and level `[n, levels]`."""
        r = quantiles(self.grid.over[0], self._between(x) @ self.density, levels)
        return self.centre.at(x[:, None])[:, None] + self._spread(x)[:, None] * r

    def _spread(self, x: np.ndarray) -> np.ndarray:
        r"""$e^{w(x)} \sqrt{1 + v(x)/\sigma^2}$."""
        v = np.maximum(
            self.centre.grid.interpolation(x[:, None]) @ self.centre.variance, 0.0
        )  # between points from above
        return np.exp(self.width.at(self._near(x)[:, None])) * np.sqrt(1 + v / self.centre.noise)

    def _near(self, x: np.ndarray) -> np.ndarray:
        """The nearest x in the range of the data."""
        return np.clip(x, self.grid.given[0].low, self.grid.given[0].high)

    def _between(self, x: np.ndarray) -> Any:
        """The matrix that takes what is known at the points of x to any x."""
        return Grid(given=self.grid.given).interpolation(self._near(x)[:, None])


def quantiles(axis: Axis, density: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Where the integrals of densities `[n, points]`, linear between points and with tails, reach some levels."""
    h, (low, high) = axis.spacing, axis.tails or (0.0, 0.0)
    inside = np.cumsum((density[:, 1:] + density[:, :-1]) * h / 2, axis=1)
    below = low * density[:, :1] + np.concatenate([np.zeros((len(density), 1)), inside], axis=1)
    found = np.empty((len(density), len(levels)))
    for k, level in enumerate(levels):
        j = np.clip(np.sum(below <= level, axis=1) - 1, 0, axis.points - 2)[:, None]
        F, P, after = (np.take_along_axis(a, i, axis=1)[:, 0] for a, i in ((below, j), (density, j), (density, j + 1)))
        rest = np.maximum(level - F, 0.0)
        root = np.sqrt(np.maximum(P**2 + 2 * rest * (after - P) / h, 0.0))
        step = np.divide(2 * rest, P + root, out=np.zeros_like(rest), where=P + root > 0)
        found[:, k] = axis.low + j[:, 0] * h + np.minimum(step, h)
        with np.errstate(
            divide="ignore", invalid="ignore", over="ignore"
        ):  # beyond the ends, where there is no tail to speak of
            under = axis.low + low * np.log(level / below[:, 0])
            over = axis.high - high * np.log((1 - level) / (1 - below[:, -1]))
        found[:, k] = np.where(level < below[:, 0], under, np.where(level > below[:, -1], over, found[:, k]))
    return found


def learn(
    centre: Function,
    x: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    *,
    points: tuple[int, int] = POINTS,
    order: int | None = None,
    strength: tuple[float, float] | None = None,
    step: float = STEP,
    quick: bool = False,
) -> Conditional:
    """The density of values given inputs, about a mean.

    Args:
        centre: the mean, learned from the same rows.
        x: inputs `[n]`, not all the same.
        y: values `[n]`.
        weights: how many equal rows each stands for, all positive.
        points: of the grid, along x and along y.
        order: of the derivative along x that is small; by default all of `ORDERS`.
        strength: along x and along y; by default all.
        step: from one strength to the next.
        quick: whether only one width is tried, that of order 2.

    Returns:
        The predictive density.
    """
    rows, y, weights = merged(x[:, None], y, weights)
    x = rows[:, 0]
    left = (y - centre.at(rows)) / np.sqrt(np.maximum(1 - centre.variance_at(rows) / centre.noise, FAR))
    least = NARROW * (float(np.ptp(y)) or 1.0)
    sizes = np.sqrt(left**2 + SMALL * (weights @ left**2) / weights.sum() + least**2)
    varied = regress(centre.grid, rows, np.log(sizes), weights, noise=np.pi**2 / 8, order=2 if quick else None)
    if quick:
        return _about(centre, varied, x, left, weights, points, order, strength, step)
    same = regress(centre.grid, rows, np.log(sizes), weights, noise=np.pi**2 / 8, order=1, strength=CONSTANT)
    one, two = (_about(centre, width, x, left, weights, points, order, strength, step) for width in (varied, same))
    return one if one.log_evidence > two.log_evidence + WORTH else two


def _grid_for(x: np.ndarray, r: np.ndarray, weights: np.ndarray, points: tuple[int, int]) -> Grid:
    """A grid for inputs and remainders."""
    low, high = min(float(r.min()), -1.0), max(float(r.max()), 1.0)
    wide = (high - low) * (MARGIN + 2 / np.sqrt(weights.sum()))
    tail = TAIL * (high - low + 2 * wide)
    along = Axis(float(x.min()), float(x.max()), points[0], tails=(0.0, 0.0))
    return Grid(given=[along], over=[Axis(low - wide, high + wide, points[1], tails=(tail, tail))])


def step_that_matters(centre: Function, y: np.ndarray, weights: np.ndarray, points: tuple[int, int]) -> float:
    """To what values were rounded; zero if they were not, or if the mean explains them better than that."""
    step = step_of(y, weights)
    seen = step > FINE * float(np.ptp(y)) / points[1] and centre.noise > step**2 / 24  # half of what rounding adds
    return step if seen else 0.0


def _about(
    centre: Function,
    width: Function,
    x: np.ndarray,
    left: np.ndarray,
    weights: np.ndarray,
    points: tuple[int, int],
    order: int | None,
    strength: tuple[float, float] | None,
    step: float,
) -> Conditional:
    """The density about a mean, in units of a width."""
    w = width.at(x[:, None])
    r = left / np.exp(w)
    grid = _grid_for(x, r, weights, points)
    data = DensityData(None, None, grid.counts(np.stack([x, r], axis=1), weights))
    orders = ORDERS if order is None else [order]
    mixture = weigh([trial for k in orders for trial in _paths(grid, data, k, 1 / len(orders), strength, step)])
    density = sum(share * trial.fit.density for share, trial in zip(mixture.shares, mixture.trials, strict=True))  # pyright: ignore[reportAttributeAccessIssue]
    return Conditional(centre, width, grid, np.asarray(density), mixture, float(mixture.log_evidence - weights @ w))


def _paths(
    grid: Grid, data: DensityData, order: int, prior: float, strength: tuple[float, float] | None, step: float
) -> list[Trial]:
    """Trials at falling strengths along y, for falling strengths along x, as long as the evidence is not lost."""
    plates = ThinPlate(grid, order, grid.given[0]), ThinPlate(grid, ORDER, grid.over[0])
    volume = grid.given[0].length * grid.over[0].length
    rough = [np.ravel(plate.values)[:most] * volume for plate, most in zip(plates, MODES, strict=True)]  # pyright: ignore[reportAttributeAccessIssue]
    xs, ys = (_strengths(s, data.total, step) for s in rough) if strength is None else ([strength[0]], [strength[1]])
    problem = Problem(data, Logits(grid), Gaussian(plates[0] + plates[1]))
    modes = problem.operator.modes(MODES).without_constant()

    def ask(pair: tuple[float, float], start: Any) -> Trial:
        x, y = pair
        values = (x * rough[0][:, None] + y * rough[1][1:]) / volume
        scaled = dataclasses.replace(modes, values=values)
        share = prior / len(xs) / len(ys)
        return attempt(problem, scaled, order=order, strength=pair, prior=share, start=start)

    trials, most, start = [], -np.inf, None
    for x in xs:
        row = follow(ask, [(x, y) for y in ys], LOST, start)
        start, best = row[0].fit, max(trial.evidence for trial in row)
        trials += row
        if best < most - LOST:
            break
        most = max(most, best)
    return trials


def _strengths(roughness: np.ndarray, n: float, step: float) -> list[float]:
    """Falling strengths, from one at which only free modes are left."""
    top, bottom = SURE * n / roughness[roughness > 0][0], ROUGH / roughness[-1]
    return np.geomspace(top, bottom, int(np.log(top / bottom) / np.log(step)) + 2).tolist()
