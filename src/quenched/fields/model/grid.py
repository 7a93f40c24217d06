r"""The mesh: named axes with ends, and the integrals over them.

A field is an array of the grid's shape, axes that are conditioned on (`given`) before axes that are normalised over
(`over`). Integrals are sums times spacings. At the ends of an axis a field is periodic, free (no flux: the discrete
Laplacian has corner entries 1, and constants are its null space) or has given values one spacing outside (Dirichlet).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError


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

    Examples:
        >>> from quenched import fields
        >>> fields.Axis(0, 1, points=5).coordinates.tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    low: float
    high: float
    points: int
    ends: Ends = Free()
    name: str = ""

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

    @property
    def spacing(self) -> float:
        """Distance of neighbouring points."""
        return (self.high - self.low) / (self.points - 1)

    @property
    def coordinates(self) -> np.ndarray:
        """Where the points are."""
        return np.linspace(self.low, self.high, self.points)

    @functools.cached_property
    def modes(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Eigenvalues of $-\Delta$ and its orthonormal eigenvectors `[points, modes]`, both in closed form.

        $\lambda_k = (2 - 2\cos\theta_k)/h^2$ with $\theta_k = 2\pi k/n$ (periodic), $\pi k/n$ (free) or
        $\pi (k+1)/(n+1)$ (Dirichlet).
        """
        n, i = self.points, np.arange(self.points)[:, None]
        k = np.arange(n)
        if isinstance(self.ends, Periodic):
            k = (k + 1) // 2  # cosine and sine of each wave
            theta = 2 * np.pi * k / n
            wave = np.arange(n)
            U = np.where((wave % 2 == 1) | (wave == 0), np.cos(theta * i), np.sin(theta * i))
        elif isinstance(self.ends, Free):
            theta = np.pi * k / n
            U = np.cos(theta * (i + 0.5))
        else:
            theta = np.pi * (k + 1) / (n + 1)
            U = np.sin(theta * (i + 1))
        return (2 - 2 * np.cos(theta)) / self.spacing**2, U / np.linalg.norm(U, axis=0)

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

    @property
    def axes(self) -> tuple[Axis, ...]:
        """All axes, in the order of the dimensions of a field."""
        return self.given + self.over

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a field."""
        return tuple(axis.points for axis in self.axes)

    @property
    def size(self) -> int:
        """How many points there are."""
        return int(np.prod(self.shape))

    @property
    def cell(self) -> float:
        """The volume around each point."""
        return float(np.prod([axis.spacing for axis in self.axes]))

    @property
    def spacing(self) -> float:
        """The volume around each point in the axes that are normalised over."""
        return float(np.prod([axis.spacing for axis in self.over]))

    @property
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

    def integrate(self, field: Array) -> Array:
        r"""$\int dy$ of a field, kept as dimensions of length 1."""
        return jnp.sum(field, axis=self.dims, keepdims=True) * self.spacing

    def normalised(self, L: Array) -> Array:
        r"""$L - \ln \int dy\, e^L$."""
        return L - jax.nn.logsumexp(L, axis=self.dims, keepdims=True) - jnp.log(self.spacing)

    def indices(self, points: Any) -> np.ndarray:
        """The place of the grid point nearest to each of some points `[n, dimensions]`."""
        table = checks.numbers("points", points)
        table = table[:, None] if table.ndim == 1 and len(self.axes) == 1 else table
        if table.ndim != 2 or table.shape[1] != len(self.axes) or len(table) == 0:
            raise InputError(f"Argument `points` must be rows of {len(self.axes)} numbers, but its shape is "
                             f"{table.shape}.")  # fmt: skip
        if not np.all(np.isfinite(table)):
            raise InputError("Argument `points` must be finite, but it is not.")
        return np.stack([axis.nearest(column) for axis, column in zip(self.axes, table.T, strict=True)], axis=1)

    def counts(self, points: Any, weights: Any = None) -> np.ndarray:
        """How many of some points fall to each point of the grid."""
        N, places = np.zeros(self.shape), self.indices(points)
        if weights is not None and np.shape(weights) != (len(places),):
            raise InputError(f"Argument `weights` must have one number for each of the {len(places)} points, but its "
                             f"shape is {np.shape(weights)}.")  # fmt: skip
        np.add.at(N, tuple(places.T), 1.0 if weights is None else np.asarray(weights, float))
        return N

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
