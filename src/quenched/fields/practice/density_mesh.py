r"""Where a density lives: a grid laid over data, hat functions between its points, tails beyond its ends.

A density is $P(x) = \sum_j P_j\, \varphi_j(x)$ with the hat functions $\varphi_j$ of the points, those of the ends
continued by exponential tails. So $\int P = \sum_j \mu_j P_j$ with $\mu_j = \int \varphi_j$, without any error; $P$ is
positive where the $P_j$ are; rows are drawn by choosing a hat and a place under it; and the same weights
$\varphi_j(x_i)$ share a row out to the points next to it, so that counts are continuous functions of the data.
In two dimensions hats and measures are products.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError

POINTS = {1: (100, 200, 400), 2: (64,)}
"""Of each axis, by dimension: few sizes, so that the modes of one fit serve the next."""
COARSE = 0.4
"""A grid whose spacing is a larger share of the deviation of the data's middle half does not resolve it."""
MARGIN = 0.15
"""Share of the range of the data by which a grid goes beyond them on both sides; more for few rows."""
TAIL = 0.02
"""Share of the grid's length in which the density beyond its ends falls by a factor of e."""

Bounds = tuple[float | None, float | None]


@dataclasses.dataclass(frozen=True)
class Line:
    """One axis of a mesh.

    Attributes:
        low: first point.
        high: last point.
        points: how many.
        tails: length in which the density falls by a factor of e below and above; zero where the support ends.
    """

    low: float
    high: float
    points: int
    tails: tuple[float, float]

    @property
    def length(self) -> float:
        """From the first point to the last."""
        return self.high - self.low

    @functools.cached_property
    def coordinates(self) -> np.ndarray:
        """Where the points are."""
        return np.linspace(self.low, self.high, self.points)

    @functools.cached_property
    def measure(self) -> np.ndarray:
        """Integrals of the hats, in units of the length."""
        measure = np.full(self.points, 1.0 / (self.points - 1))
        measure[[0, -1]] = measure[[0, -1]] / 2 + np.array(self.tails) / self.length
        return measure

    def hats(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The point below, the weight of the point above it, and the logarithm of what the tail leaves."""
        z = (x - self.low) / self.length * (self.points - 1)
        below = np.clip(z, 0, self.points - 2).astype(int)
        distance = np.stack([self.low - x, x - self.high])
        tails = np.array(self.tails)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):  # no tail: nothing is left
            fall = np.where(distance > 0, distance / tails, 0.0).max(axis=0)
        return below, np.clip(z - below, 0.0, 1.0), -fall

    def place(self, at: np.ndarray, draw: np.random.RandomState) -> np.ndarray:
        """A random place under the hat of each of these points."""
        h = 1.0 / (self.points - 1)
        shift = h * (draw.random_sample(len(at)) + draw.random_sample(len(at)) - 1)
        beyond = draw.exponential(size=len(at))
        for end, sign, tail in ((0, -1, self.tails[0]), (self.points - 1, 1, self.tails[1])):
            mine, share = at == end, tail / self.length
            outside = draw.random_sample(len(at)) < share / (share + h / 2)
            shift[mine] = np.where(outside, sign * share * beyond, -sign * np.abs(shift))[mine]
        return self.low + self.length * (at * h + shift)


@dataclasses.dataclass(frozen=True)
class Mesh:
    """One or two axes.

    Attributes:
        lines: the axes.
    """

    lines: tuple[Line, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Points of each axis."""
        return tuple(line.points for line in self.lines)

    @property
    def volume(self) -> float:
        """Product of the lengths."""
        return float(np.prod([line.length for line in self.lines]))

    @functools.cached_property
    def measure(self) -> np.ndarray:
        """Integrals of the hats, flat, in units of the volume."""
        return functools.reduce(np.multiply.outer, [line.measure for line in self.lines]).ravel()

    def corners(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The points around each row `[n, 2^d]`, flat; logarithms of their weights, and of what tails leave `[n]`."""
        at, weights, fall = np.zeros((len(rows), 1), int), np.zeros((len(rows), 1)), np.zeros(len(rows))
        for line, x in zip(self.lines, rows.T, strict=True):
            below, above, left = line.hats(x)
            with np.errstate(divide="ignore"):  # a row on a point
                both = np.log(np.stack([1 - above, above], axis=1))
            at = (at[:, :, None] * line.points + np.stack([below, below + 1], axis=1)[:, None]).reshape(len(rows), -1)
            weights = (weights[:, :, None] + both[:, None]).reshape(len(rows), -1)
            fall = fall + left
        return at, weights, fall

    def counts(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Rows at each point, every row shared out to the points around it."""
        at, share, _ = self.corners(rows)
        return np.bincount(at.ravel(), (weights[:, None] * np.exp(share)).ravel(), len(self.measure))

    def log_values(self, log_values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """A function given by its logarithm at the points, continued to rows, as a logarithm again."""
        at, weights, fall = self.corners(rows)
        return np.logaddexp.reduce(log_values.ravel()[at] + weights, axis=1) + fall

    def sample(self, density: np.ndarray, count: int, draw: np.random.RandomState) -> np.ndarray:
        """Rows drawn from the density with these values at the points."""
        mass = self.measure * density.ravel()
        flat = draw.choice(len(mass), count, p=mass / mass.sum())
        places = np.unravel_index(flat, self.shape)
        return np.stack([line.place(at, draw) for line, at in zip(self.lines, places, strict=True)], axis=1)


def mesh_for(
    rows: np.ndarray,
    weights: np.ndarray,
    *,
    bounds: list[Bounds],
    points: list[int | None],
    extend: bool,
) -> Mesh:
    """A grid for these rows.

    Args:
        rows: `[n, d]`.
        weights: of the rows, all positive.
        bounds: of each column, None where the grid shall find its own end.
        points: of each axis, None for as many as the data can tell apart.
        extend: whether an end that leaves out data becomes its own.

    Returns:
        The grid.

    Raises:
        InputError: if there is nothing to lay a grid over, or data outside the bounds.
    """
    choices = [POINTS[rows.shape[1]] if count is None else count for count in points]
    columns = enumerate(zip(rows.T, bounds, choices, strict=True))
    return Mesh(tuple(_line(i, x, weights, ends, count, extend=extend) for i, (x, ends, count) in columns))


def _line(
    column: int, x: np.ndarray, weights: np.ndarray, bounds: Bounds, points: int | tuple[int, ...], *, extend: bool
) -> Line:
    """One axis; of several numbers of points the smallest that will do."""
    ends, n = [float(x.min()), float(x.max())], weights.sum()
    if not ends[0] < ends[1]:
        raise InputError(f"Argument `X` must hold at least two different values in each column, but all n_samples="
                         f"{len(x)} values of column {column} are {ends[0]:g}.")  # fmt: skip
    width = ends[1] - ends[0]
    checks.inside("X", np.array([*ends, width]), -checks.LARGEST, checks.LARGEST)
    tails = [0.0, 0.0]
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
    length = ends[1] - ends[0]
    count = points if isinstance(points, int) else _points(x, weights, length, points)
    return Line(ends[0], ends[1], count, (tails[0] * length, tails[1] * length))


def _points(x: np.ndarray, weights: np.ndarray, length: float, choices: tuple[int, ...]) -> int:
    """As many as resolve the middle half of the data, the finer the more data there are."""
    order, n = np.argsort(x), weights.sum()
    low, high = x[order][np.searchsorted(np.cumsum(weights[order]) / n, [0.25, 0.75])]
    deviation = (high - low) / 1.35  # of a Gaussian with these quartiles
    if length > COARSE * deviation * choices[-1]:
        warnings.warn("The range of the data is so wide that the grid cannot resolve their middle half: give `bounds`, "
                      "more `points`, or transform the data.", stacklevel=6)  # fmt: skip
        return choices[-1]
    needed = 10 * length / deviation * (n / 1e3) ** (1 / 7)
    return next((count for count in choices if count >= needed), choices[-1])
