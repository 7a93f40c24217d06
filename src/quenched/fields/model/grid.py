r"""The grid: named axes with ends, and the integrals over them.

A field is an array of the grid's shape, axes that are conditioned on (`given`) before axes that are normalised over
(`over`). At the ends of an axis a field is periodic, free (no flux: the discrete Laplacian has corner entries 1, and
constants are its null space) or has given values one spacing outside (Dirichlet).

An axis is a lattice or carries functions. On a lattice (`tails=None`) integrals are sums times the spacing, and a row
counts for the point nearest to it. With `tails`, what is known at the points is linear between them: a density is
$P(x) = \sum_j P_j\, \varphi_j(x)$ with the hat functions $\varphi_j$ of the points, those of the ends continued by
exponential tails. So $\int P = \sum_j w_j P_j$ with $w_j = \int \varphi_j$ without any error, $P$ is positive where the
$P_j$ are, and the weights $\varphi_j(x_i)$ share a row out to the points next to it, so that counts are continuous
functions of the data. In several dimensions hats and weights are products.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from quenched.core import checks
from quenched.core.linear import namespace, special
from quenched.core.system import require_memory
from quenched.core.types import InputError

LARGE, FEWEST = 1_000_000, 10
"""Points above which a grid is asked whether so many fields of it fit in memory: no problem is solved with fewer."""


class Ends:
    """What a field does at both ends of an axis."""


@dataclasses.dataclass(frozen=True)
class Periodic(Ends):
    """The point after the last is the first."""


@dataclasses.dataclass(frozen=True)
class Free(Ends):
    """Nothing is known outside: no flux through the ends."""


@dataclasses.dataclass(frozen=True)
class Dirichlet(Ends):
    """Given values one spacing outside the first and the last point.

    Attributes:
        value: at the lower end.
        upper: at the upper end; by default the same.
    """

    value: float = 0.0
    upper: float | None = None

    def __post_init__(self) -> None:
        checks.finite("value", checks.number("value", self.value))
        if self.upper is not None:
            checks.finite("upper", checks.number("upper", self.upper))


@dataclasses.dataclass(frozen=True)
class Axis:
    r"""Points at equal spacing, the first at `low` and the last at `high`.

    Attributes:
        low: where it begins.
        high: where it ends. A periodic axis has the period `high - low + spacing`.
        points: how many.
        ends: `Free()`, `Periodic()` or `Dirichlet(value)`.
        name: by which plots and errors know it.
        tails: None for a lattice. Otherwise functions are linear between points, and a density falls by a factor of e
            in these lengths below the first point and above the last; 0 where its support ends.
        bend: None, or a centre $c$ and a width $w$: the points are at equal distances of $\sinh^{-1}((x - c)/w)$,
            dense about the centre and ever sparser far from it. It needs `tails`.

    Examples:
        >>> from quenched import fields
        >>> fields.Axis(0, 1, points=5).coordinates.tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        >>> fields.Axis(0, 1, points=5, tails=(0.0, 0.5)).weights.tolist()
        [0.125, 0.25, 0.25, 0.25, 0.625]
    """

    low: float
    high: float
    points: int
    ends: Ends = Free()
    name: str = ""
    tails: tuple[float, float] | None = None
    bend: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        checks.finite("low", checks.number("low", self.low))
        checks.finite("high", checks.number("high", self.high))
        checks.whole("points", self.points, least=2)
        if not self.low < self.high:
            raise InputError(f"Argument `low` must lie below `high`, but {self.low:g} and {self.high:g} were given.")
        checks.kind("name", self.name, str, "text")
        if not isinstance(self.ends, Ends):
            raise InputError(f"Argument `ends` must be Free(), Periodic() or Dirichlet(value), but {self.ends!r} "
                             "was given.")  # fmt: skip
        for name, pair in (("tails", self.tails), ("bend", self.bend)):
            if pair is None:
                continue
            if self.tails is None:
                raise InputError("Argument `bend` must be None on a lattice, because it needs `tails`.")
            numbers = checks.numbers(name, pair)
            if numbers.shape != (2,) or not isinstance(self.ends, Free):
                raise InputError(f"Argument `{name}` must be two numbers on an axis with free ends, but {pair!r} was "
                                 "given.")  # fmt: skip
            checks.finite(name, numbers)
            object.__setattr__(self, name, tuple(numbers.tolist()))
        checks.not_negative("tails", self.tails or 0.0)
        checks.positive("bend", self.bend[1] if self.bend else 1.0)
        if self.bend and not np.all(np.diff(self.coordinates) > 0):
            raise InputError(f"Argument `bend` must keep the points apart, but {self.bend} moves some together.")

    @property
    def length(self) -> float:
        """From the first point to the last."""
        return self.high - self.low

    @functools.cached_property
    def spacing(self) -> float:
        """Distance of neighbouring points; the mean distance on an axis that is bent."""
        return self.length / (self.points - 1)

    @functools.cached_property
    def coordinates(self) -> np.ndarray:
        """Where the points are."""
        if self.bend is None:
            return np.linspace(self.low, self.high, self.points)
        centre, width = self.bend
        low, high = np.arcsinh((np.array([self.low, self.high]) - centre) / width)
        inside = centre + width * np.sinh(np.linspace(low, high, self.points)[1:-1])
        return np.concatenate([[self.low], inside, [self.high]])

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """The volume of each point: the spacing, or the integral of its hat."""
        if self.tails is None:
            return np.full(self.points, self.spacing)
        gaps = np.diff(self.coordinates) / 2
        return np.append(self.tails[0], gaps) + np.append(gaps, self.tails[1])

    @functools.cached_property
    def eigenvalues(self) -> np.ndarray:
        r"""Those of $-\Delta$ in closed form, in the order of the modes: $\lambda_k = (2 - 2\cos\theta_k)/h^2$.

        $\theta_k = 2\pi k/n$ (periodic, twice for each wave), $\pi k/n$ (free) or $\pi (k+1)/(n+1)$ (Dirichlet).
        """
        return (2 - 2 * np.cos(self._angles(self.points))) / self.spacing**2

    @functools.cached_property
    def modes(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Eigenvalues of $-\Delta$ and its orthonormal eigenvectors `[points, modes]`, both in closed form."""
        return self.eigenvalues, self.smoothest(self.points)

    def smoothest(self, count: int) -> np.ndarray:
        r"""The first eigenvectors of $-\Delta$, as columns."""
        theta, i, k = self._angles(count), np.arange(self.points)[:, None], np.arange(len(self._angles(count)))
        if isinstance(self.ends, Periodic):
            U = np.where((k % 2 == 1) | (k == 0), np.cos(theta * i), np.sin(theta * i))
        elif isinstance(self.ends, Free):
            U = np.cos(theta * (i + 0.5))
        else:
            U = np.sin(theta * (i + 1))
        return U / np.linalg.norm(U, axis=0)

    def _angles(self, count: int) -> np.ndarray:
        """By how much each of the first modes turns from point to point."""
        k = np.arange(min(count, self.points))
        if isinstance(self.ends, Periodic):
            return 2 * np.pi * ((k + 1) // 2) / self.points
        return np.pi * k / self.points if isinstance(self.ends, Free) else np.pi * (k + 1) / (self.points + 1)

    def nearest(self, values: np.ndarray) -> np.ndarray:
        """The place of the point nearest to each value.

        More than half a spacing outside is refused; a periodic axis goes around.
        """
        place = (np.asarray(values, float) - self.low) / self.spacing
        if isinstance(self.ends, Periodic):
            return np.rint(place).astype(int) % self.points
        outside = ~((place >= -0.5 - 1e-9) & (place <= self.points - 0.5 + 1e-9))
        if np.any(outside):
            called = f" of axis {self.name}" if self.name else ""
            raise InputError(f"Argument `points` must lie on the grid{called}, from {self.low:g} to {self.high:g}, but "
                             f"{np.asarray(values)[outside].ravel()[0]:g} is outside.")  # fmt: skip
        return np.clip(np.rint(place).astype(int), 0, self.points - 1)

    def hats(self, x: np.ndarray, *, straight: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points next to each place and their weights, both `[n, 1 or 2]`, and what the tail leaves, as a logarithm.

        Beyond the ends the last point has all the weight, or functions go on `straight`.
        """
        if self.tails is None:
            return self.nearest(x)[:, None], np.ones((len(x), 1)), np.zeros(len(x))
        if self.bend is None:
            z = (x - self.low) / self.length * (self.points - 1)
            below = np.clip(z, 0, self.points - 2).astype(int)
            above = z - below
        else:
            X = self.coordinates
            below = np.clip(np.searchsorted(X, x, side="right") - 1, 0, self.points - 2)
            above = (x - X[below]) / (X[below + 1] - X[below])
        above = above if straight else np.clip(above, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):  # no tail: nothing is left
            outside = zip((self.low - x, x - self.high), self.tails, strict=True)
            fall = np.maximum(*(np.where(far > 0, far / tail, 0.0) for far, tail in outside))
        return np.stack([below, below + 1], axis=1), np.stack([1 - above, above], axis=1), -fall

    def draw(self, at: np.ndarray, random: np.random.RandomState) -> np.ndarray:
        """A random place under the hat of each of these points; the point itself on a lattice."""
        X = self.coordinates
        if self.tails is None:
            return X[at]
        gaps = np.diff(X)
        sides = np.append(2 * self.tails[0], gaps), np.append(gaps, 2 * self.tails[1])
        down = random.random_sample(len(at)) * (sides[0] + sides[1])[at] < sides[0][at]
        shift = np.abs(random.random_sample(len(at)) + random.random_sample(len(at)) - 1)  # under a triangle
        beyond = random.exponential(size=len(at)) / 2
        shift = np.where(np.where(down, at == 0, at == self.points - 1), beyond, shift)
        return X[at] + np.where(down, -sides[0][at], sides[1][at]) * shift


@dataclasses.dataclass(frozen=True)
class Grid:
    """All combinations of the points of some axes.

    Attributes:
        given: axes that are conditioned on, $x$.
        over: axes that densities are normalised over, $y$.

    Examples:
        >>> from quenched import fields
        >>> x, y = fields.Axis(1, 10, points=10), fields.Axis(1, 15, points=15, ends=fields.Periodic())
        >>> fields.Grid(given=[x], over=[y]).shape
        (10, 15)
    """

    given: tuple[Axis, ...] = ()
    over: tuple[Axis, ...] = ()

    def __init__(self, given: Sequence[Axis] = (), over: Sequence[Axis] = ()):
        for name, axes in (("given", given), ("over", over)):
            several = (axes,) if isinstance(axes, Axis) else axes
            if not isinstance(several, (list, tuple)) or not all(isinstance(axis, Axis) for axis in several):
                raise InputError(f"Argument `{name}` must be a list of axes, but {axes!r} was given.")
            object.__setattr__(self, name, tuple(several))
        if not self.axes:
            raise InputError("A grid must have at least one axis, but none was given.")
        if self.size > LARGE:  # asking the system takes longer than making a small grid
            require_memory(f"Fields on a grid of {' x '.join(map(str, self.shape))} points", FEWEST * 8.0 * self.size)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, in the order of the dimensions of a field."""
        return self.given + self.over

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        """Of a field."""
        return tuple(axis.points for axis in self.axes)

    @functools.cached_property
    def size(self) -> int:
        """How many points there are."""
        return math.prod(self.shape)

    @functools.cached_property
    def cell(self) -> float:
        """The volume around each point."""
        return math.prod(axis.spacing for axis in self.axes)

    @functools.cached_property
    def spacing(self) -> float:
        """The volume around each point in the axes that are normalised over."""
        return float(math.prod(axis.spacing for axis in self.over))

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """The volume of each point in the axes that are normalised over; the given axes have length 1."""
        over = functools.reduce(np.multiply.outer, [axis.weights for axis in self.over], np.ones(()))
        return over.reshape((1,) * len(self.given) + over.shape)

    @functools.cached_property
    def _spread_weights(self) -> tuple[Any, Any]:
        """The weights and their logarithms; one number on a lattice, so that programs hold no array of the grid."""
        if all(axis.tails is None for axis in self.over):
            return self.spacing, math.log(self.spacing)
        return self.weights, np.log(self.weights)

    @functools.cached_property
    def blocks(self) -> tuple[int, int]:
        """Points of the given axes, and of those that are normalised over."""
        given = math.prod(axis.points for axis in self.given)
        return given, self.size // given

    @functools.cached_property
    def dims(self) -> tuple[int, ...]:
        """The dimensions of a field that are normalised over."""
        return tuple(range(len(self.given), len(self.axes)))

    def place(self, axis: Axis) -> int:
        """The dimension of a field that an axis is."""
        checks.kind("axis", axis, Axis, "an Axis")
        same = [i for i, one in enumerate(self.axes) if one is axis] or [
            i for i, one in enumerate(self.axes) if one == axis
        ]
        if len(same) != 1:
            raise InputError(f"Argument `axis` must be one axis of the grid, but {len(same)} of its axes are this one.")
        return same[0]

    def integrate(self, field: Any) -> Any:
        r"""$\int dy$ of a field, kept as dimensions of length 1."""
        return namespace(field).sum(field * self._spread_weights[0], axis=self.dims, keepdims=True)

    def normalised(self, L: Any) -> Any:
        r"""$L - \ln \int dy\, e^L$."""
        return L - special(L).logsumexp(L + self._spread_weights[1], axis=self.dims, keepdims=True)

    def rows(self, points: Any) -> np.ndarray:
        """Some points as a table `[n, dimensions]`."""
        table = checks.numbers("points", points)
        table = table[:, None] if table.ndim == 1 and len(self.axes) == 1 else table
        if table.ndim != 2 or table.shape[1] != len(self.axes) or len(table) == 0:
            raise InputError(f"Argument `points` must be rows of {len(self.axes)} numbers, but its shape is "
                             f"{table.shape}.")  # fmt: skip
        if not np.all(np.isfinite(table)):
            raise InputError("Argument `points` must be finite, but it is not.")
        return table

    def indices(self, points: Any) -> np.ndarray:
        """The place of the grid point nearest to each of some points `[n, dimensions]`."""
        table = self.rows(points)
        return np.stack([axis.nearest(column) for axis, column in zip(self.axes, table.T, strict=True)], axis=1)

    def corners(self, rows: np.ndarray, *, straight: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Flat places of the points around each row and their weights, both `[n, corners]`; and what tails leave."""
        at, weights, fall = np.zeros((len(rows), 1), int), np.ones((len(rows), 1)), np.zeros(len(rows))
        for axis, x in zip(self.axes, rows.T, strict=True):
            places, shares, left = axis.hats(x, straight=straight)
            at = (at[:, :, None] * axis.points + places[:, None]).reshape(len(rows), -1)
            weights = (weights[:, :, None] * shares[:, None]).reshape(len(rows), -1)
            fall = fall + left
        return at, weights, fall

    def counts(self, points: Any, weights: Any = None) -> np.ndarray:
        """How many of some points fall to each point of the grid."""
        at, shares, _ = self.corners(self.rows(points))
        if weights is not None and np.shape(weights) != (len(at),):
            raise InputError(f"Argument `weights` must have one number for each of the {len(at)} points, but its "
                             f"shape is {np.shape(weights)}.")  # fmt: skip
        total = shares if weights is None else np.asarray(weights, float)[:, None] * shares
        return np.bincount(at.ravel(), total.ravel(), self.size).reshape(self.shape)

    def interpolation(self, points: Any) -> sparse.csr_array:
        """The matrix `[n, size]` from functions at the points to rows: linear, also beyond ends that have `tails`."""
        at, weights, _ = self.corners(self.rows(points), straight=True)
        return sparse.csr_array((weights.ravel(), at.ravel(), np.arange(len(at) + 1) * at.shape[1]),
                                shape=(len(at), self.size))  # fmt: skip

    def log_values(self, log_values: np.ndarray, points: Any) -> np.ndarray:
        """A density given by its logarithm at the points, continued to rows, as a logarithm again."""
        at, weights, fall = self.corners(self.rows(points))
        with np.errstate(divide="ignore"):  # a row on a point
            return np.logaddexp.reduce(np.ravel(log_values)[at] + np.log(weights), axis=1) + fall

    def sample(self, density: np.ndarray, count: int, random: np.random.RandomState) -> np.ndarray:
        """Rows drawn from a density over all axes."""
        mass = np.ravel(self.weights * density)
        places = np.unravel_index(random.choice(len(mass), count, p=mass / mass.sum()), self.shape)
        return np.stack([axis.draw(at, random) for axis, at in zip(self.axes, places, strict=True)], axis=1)

    def boundary(self) -> np.ndarray:
        """The field that has the given values outside the Dirichlet axes and is straight in between."""
        found = {i: axis for i, axis in enumerate(self.axes) if isinstance(axis.ends, Dirichlet)}
        values = {v for axis in found.values() for v in (axis.ends.value, axis.ends.upper) if v is not None}  # pyright: ignore[reportAttributeAccessIssue]
        if len(values) <= 1:
            return np.full(self.shape, next(iter(values), 0.0))
        if len(found) > 1:
            raise InputError("Only one axis may have different values at its ends, but several Dirichlet axes have "
                             f"the values {sorted(values)}.")  # fmt: skip
        ((i, axis),) = found.items()
        line = np.linspace(axis.ends.value, axis.ends.upper, axis.points + 2)[1:-1]  # pyright: ignore[reportAttributeAccessIssue]
        return np.broadcast_to(line.reshape([-1 if j == i else 1 for j in range(len(self.axes))]), self.shape)

    def check(self, name: str, field: Any) -> np.ndarray:
        """A field as an array of the right shape."""
        array = checks.numbers(name, field)
        if array.shape not in ((), self.shape):
            raise InputError(
                f"Argument `{name}` must have the shape {self.shape} of the grid, but it has {array.shape}."
            )
        if not np.all(np.isfinite(array)):
            raise InputError(f"Argument `{name}` must be finite, but it is not.")
        return np.broadcast_to(array, self.shape)
