r"""Operators that keep fields smooth or small: `Laplacian`, `Difference`, `Mass` and `ThinPlate`.

Along one axis they are `Waves`. A `Plate` is a thin plate over several axes.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.model.grid import Axis, Free, Grid, Periodic
from quenched.fields.model.modes import (
    ALONG,
    Modes,
    PlateModes,
    difference_modes,
    find_bends,
    plate_modes,
    plate_vectors,
)
from quenched.fields.model.operators import Operator, Waves, read_factor


def line_waves(grid: Grid, i: int, values: np.ndarray, order: int) -> Waves:
    """Eigenvalues along one axis."""
    shape = [-1 if j == i else 1 for j in range(len(grid.axes))]
    return Waves(grid, values.reshape(shape), tuple(order if j == i else None for j in range(len(grid.axes))))


def Laplacian(grid: Grid, *axes: Axis) -> Waves:
    r"""$-\Delta$ along some axes, by default all: positive.

    Args:
        grid: where the fields live.
        *axes: along which.

    Examples:
        >>> from quenched import fields
        >>> line = fields.Axis(0, 3, points=4)
        >>> fields.Laplacian(fields.Grid(over=[line])).matrix.diagonal().round(12).tolist()
        [1.0, 2.0, 2.0, 1.0]
    """
    checks.kind("grid", grid, Grid, "a Grid")
    total: Any = Mass(grid, 0.0)
    for i in [grid.place(axis) for axis in axes] or range(len(grid.axes)):
        total = total + line_waves(grid, i, _even(grid.axes[i]).eigenvalues, 0)
    return total


def _even(axis: Axis) -> Axis:
    """An axis, if its points are at equal distances."""
    if axis.bend is not None:
        raise InputError("Argument `axis` must have points at equal distances here, but it is bent: use ThinPlate.")
    return axis


def Mass(grid: Grid, value: float = 1.0) -> Waves:
    """The identity times a number: fields are small."""
    checks.kind("grid", grid, Grid, "a Grid")
    checks.not_negative("value", value)
    return Waves(grid, np.full((1,) * len(grid.axes), checks.number("value", value)), (None,) * len(grid.axes))


def Difference(grid: Grid, axis: Axis, order: int) -> Waves:
    r"""The square of the derivative of some order along an axis: $\int (\partial^k \phi)^2$.

    At free ends no derivative is asked for across the end, so polynomials below the order are the null space: with
    `order=3` log-densities may be any parabola, densities any Gaussian. (Powers of `Laplacian` have only constants.)

    Args:
        grid: where the fields live.
        axis: along which.
        order: of the derivative.
    """
    checks.kind("grid", grid, Grid, "a Grid")
    place, order = grid.place(axis), checks.whole("order", order, least=1)
    if isinstance(axis.ends, Periodic):
        return Laplacian(grid, axis) ** order  # pyright: ignore[reportReturnType]
    _check_free(axis, order)
    return line_waves(grid, place, difference_modes(axis.points, order)[0] / _even(axis).spacing ** (2 * order), order)


def _check_free(axis: Axis, order: int) -> None:
    if not isinstance(axis.ends, Free) or order >= axis.points:
        raise InputError(f"Argument `axis` must have free ends and more than {order} points, but it has not.")


def ThinPlate(grid: Grid, order: int, *axes: Axis) -> Operator:
    r"""Roughness in units of the axes: the sum of the squares of all derivatives of an order along some axes.

    In coordinates $u$ in which every axis has unit length (and the points equal distances, also of an axis that is
    bent) the energy is $\tfrac12 \sum_\alpha \binom{k}{\alpha} \int du\, (\partial^\alpha \phi)^2$, so that
    a strength means the same on every grid. Polynomials below the order are the null space.

    Args:
        grid: where the fields live.
        order: of the derivatives.
        *axes: along which, all with free ends; by default all.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 30, points=16), fields.Axis(0, 1, points=12)])
        >>> len(fields.ThinPlate(grid, 2).modes().values[0])
        192
    """
    checks.kind("grid", grid, Grid, "a Grid")
    places = [grid.place(axis) for axis in axes] or list(range(len(grid.axes)))
    for i in places:
        _check_free(grid.axes[i], checks.whole("order", order, least=1))
    volume = math.prod(axis.length for axis in grid.axes)
    if len(places) == 1:
        axis = grid.axes[places[0]]
        values = difference_modes(axis.points, order)[0] * (axis.points - 1) ** (2 * order) / volume
        return line_waves(grid, places[0], values, order)
    if len(places) not in ALONG or len(places) != len(grid.axes):
        raise InputError(f"Argument `axes` must be one axis of the grid, or all, two or three, but {len(places)} of "
                         f"{len(grid.axes)} were given.")  # fmt: skip
    return Plate(grid, order, 1 / volume)


class Plate(Operator):
    """A thin plate over all axes of a grid, see `ThinPlate`.

    Attributes:
        order: of the derivatives.
        factor: of the sum of their squares.
    """

    order: int = eqx.field(static=True)
    factor: float

    def apply(self, field: Any) -> Any:
        """Derivative by derivative."""
        first, total = np.ndim(field) - len(self.grid.axes), 0.0 * field
        for often, powers in find_bends(self.order, len(self.grid.axes)):
            part = field
            for i, (axis, a) in enumerate(zip(self.grid.axes, powers, strict=True)):
                part = part if a == 0 else (axis.points - 1) ** (2 * a) * _squared_difference(part, a, first + i)
            total = total + self.factor * often * part
        return total

    def modes(self, count: int | tuple[int, ...] | None = None) -> Modes:
        """The smoothest modes, among products of those of the axes."""
        if self.grid.given or count is not None:
            return super().modes(count)
        values, sides, mixed = plate_modes(self.grid.shape, self.order)
        return PlateModes(self.grid, self.factor * values[None], sides, mixed)

    def _smoothest(self) -> tuple[np.ndarray, np.ndarray]:
        """Among products of the smoothest modes of the axes."""
        return self.factor * plate_modes(self.grid.shape, self.order)[0], plate_vectors(self.grid.shape, self.order)

    def __mul__(self, factor: float) -> Operator:
        return Plate(self.grid, self.order, read_factor(factor) * self.factor)

    __rmul__ = __mul__


def _squared_difference(field: Any, order: int, dim: int) -> Any:
    """The square of differences of some order along one dimension, without a matrix."""
    library: Any = np if isinstance(field, np.ndarray) else jnp
    pad = [(order, order) if d == dim else (0, 0) for d in range(np.ndim(field))]
    return (-1) ** order * library.diff(library.pad(library.diff(field, n=order, axis=dim), pad), n=order, axis=dim)
