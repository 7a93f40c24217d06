r"""Maps of fields: translations, mirrors, rotations, permutations, and any map of coordinates. [lemm1999, section 3.4]

A map takes a field to another one, $\phi \to S \phi$. A map of coordinates is $S \phi(x) = \phi(\sigma(x))$. Where
$\sigma(x)$ lies between grid points $\phi$ is interpolated linearly, and the map's `interpolated` is True. Where it
lies outside a grid with ends nothing is compared: that row of $I - S$ is zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.model.grid import Axis, Free, Grid, Periodic
from quenched.fields.model.operators import Waves
from quenched.fields.model.smoothness import line_waves

ON_POINT = 1e-9
"""A coordinate within this share of a spacing of a point is on it."""
ROUNDED = 1e-14
"""Eigenvalues below this share of the largest are zero."""


class Map(eqx.Module):
    r"""A linear map of fields, $(S\phi)_i = \sum_m w_{im}\, \phi_{j_{im}}$, to compare a field with.

    Attributes:
        grid: where the fields live.
        places: flat places $j$ `[points, terms]`.
        shares: $w$ `[points, terms]`.
        inside: whether the image of a point lies on the grid `[points]`; elsewhere nothing is compared.
        name: what the map does.
        interpolated: whether some images lie between grid points and are interpolated linearly.
        waves: $(I - S)^T (I - S)$ if it is diagonal in the modes of the axes, else None.
    """

    grid: Grid = eqx.field(static=True)
    places: Any
    shares: Any
    inside: Any
    name: str = eqx.field(static=True, default="map")
    interpolated: bool = eqx.field(static=True, default=False)
    waves: Waves | None = None

    def __init__(
        self,
        grid: Grid,
        places: Any,
        shares: Any,
        inside: Any,
        name: str = "map",
        interpolated: bool = False,
        waves: Waves | None = None,
    ):
        checks.kind("grid", grid, Grid, "a Grid")
        checks.kind("name", name, str, "text")
        checks.kind("waves", waves, (Waves, type(None)), "an operator in modes, or None")
        self.grid, self.name, self.interpolated = grid, name, checks.flag("interpolated", interpolated)
        self.places, self.waves = _places(grid, places), waves
        self.shares, self.inside = checks.numbers("shares", shares), checks.numbers("inside", inside)
        checks.finite("shares", self.shares)
        if self.places.ndim != 2 or len(self.places) != grid.size or self.shares.shape != self.places.shape:
            raise InputError(f"Arguments `places` and `shares` must have {grid.size} rows of equal length, one "
                             f"of each point, but they have {self.places.shape} and {self.shares.shape}.")  # fmt: skip
        if self.inside.shape != (grid.size,) or not np.all((self.inside == 0) | (self.inside == 1)):
            raise InputError(f"Argument `inside` must be True or False for each of the {grid.size} points, but it is "
                             "not.")  # fmt: skip

    def __repr__(self) -> str:
        between = ", linear between grid points" if self.interpolated else ""
        return f"<{self.name} on a grid of shape {self.grid.shape}{between}>"

    def apply(self, field: Any) -> Any:
        r"""$S \phi$; fields may have further dimensions in front. Points with images outside keep their value."""
        flat = _flat(self.grid, field)
        return _there(self.inside, (flat[..., self.places] * self.shares).sum(axis=-1), flat).reshape(np.shape(field))

    def difference(self, field: Any) -> Any:
        r"""$(I - S) \phi$, zero where the image lies outside."""
        flat = _flat(self.grid, field)
        image = (flat[..., self.places] * self.shares).sum(axis=-1)
        return ((flat - image) * self.inside).reshape(np.shape(field))

    def transpose(self, field: Any) -> Any:
        r"""$(I - S)^T \phi$."""
        flat = _flat(self.grid, field) * self.inside
        moved = flat[..., None] * self.shares
        if isinstance(field, np.ndarray) and isinstance(self.places, np.ndarray):
            return (flat - flat @ self.sparse()).reshape(np.shape(field))
        return flat.at[..., self.places].add(-moved).reshape(np.shape(field))  # pyright: ignore[reportAttributeAccessIssue]

    def sparse(self) -> scipy.sparse.csr_array:
        """$S$ as a sparse matrix `[points, points]`."""
        n, terms = np.shape(self.places)
        entries = (np.ravel(self.shares), np.ravel(self.places), np.arange(n + 1) * terms)
        return scipy.sparse.csr_array(entries, shape=(n, n))


def _places(grid: Grid, places: Any) -> np.ndarray:
    """Flat places of a grid."""
    whole = checks.numbers("places", places)
    if not np.all((whole == np.rint(whole)) & (whole >= 0) & (whole < grid.size)):
        raise InputError(f"Argument `places` must be whole numbers from 0 to {grid.size - 1}, but it is not.")
    return whole.astype(int)


def _flat(grid: Grid, field: Any) -> Any:
    return field.reshape(*np.shape(field)[: np.ndim(field) - len(grid.axes)], grid.size)


def _there(inside: Any, image: Any, flat: Any) -> Any:
    library: Any = np if isinstance(flat, np.ndarray) else jnp
    return library.where(inside, image, flat)


def Coordinates(grid: Grid, function: Callable[..., Any], name: str = "map of coordinates") -> Map:
    r"""$S\phi(x) = \phi(\sigma(x))$ of any function of the coordinates.

    Args:
        grid: where the fields live.
        function: $\sigma$: takes the coordinates along each axis, arrays of the grid's shape, and returns as many
            arrays of that shape. Images between grid points are interpolated linearly; images outside are not compared.
        name: for `repr`.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(-1, 1, points=5), fields.Axis(-1, 1, points=5)])
        >>> fields.Coordinates(grid, lambda x, y: (y, x), name="exchange of x and y")
        <exchange of x and y on a grid of shape (5, 5)>
    """
    check_even(grid)
    checks.kind("name", name, str, "text")
    images = call("function", function, grid, "coordinates")
    shapes = [image.shape for image in images]
    if shapes != [grid.shape] * len(grid.axes):
        raise InputError(f"Argument `function` must map the grid to itself, with {len(grid.axes)} arrays of shape "
                         f"{grid.shape}, but it returned the shapes {shapes}.")  # fmt: skip
    return _interpolated(grid, [image.ravel() for image in images], name)


def check_even(grid: Any) -> None:
    """Points must be at equal distances."""
    checks.kind("grid", grid, Grid, "a Grid")
    if any(axis.bend is not None for axis in grid.axes):
        raise InputError("Argument `grid` must have points at equal distances, but an axis is bent.")


def call(name: str, function: Any, grid: Grid, what: str) -> list[np.ndarray]:
    """What a function of the coordinates returns, as arrays."""
    if not callable(function):
        raise InputError(f"Argument `{name}` must be a function of the coordinates, but {function!r} was given.")
    mesh = np.meshgrid(*(axis.coordinates for axis in grid.axes), indexing="ij")
    try:
        found: Any = function(*mesh)
    except (TypeError, ValueError) as error:
        raise InputError(f"Argument `{name}` must take {len(mesh)} arrays of coordinates, but calling it fails: "
                         f"{error}") from error  # fmt: skip
    several = isinstance(found, (tuple, list)) or (len(mesh) > 1 and np.ndim(found) > 0)
    values = [checks.numbers(name, part) for part in (found if several else [found])]
    if not all(np.all(np.abs(value) <= checks.LARGEST) for value in values):
        raise InputError(f"Argument `{name}` must return finite {what} of at most {checks.LARGEST:g}, but it does not.")
    return values


def _interpolated(grid: Grid, images: list[np.ndarray], name: str, waves: Waves | None = None) -> Map:
    """The map to given images, linear between grid points."""
    inside, between = np.full(grid.size, True), False
    corners: list[list[tuple[np.ndarray, np.ndarray]]] = []
    for axis, image in zip(grid.axes, images, strict=True):
        z = (image - axis.low) / axis.spacing
        z = np.where(np.abs(z - np.rint(z)) < ON_POINT, np.rint(z), z)
        if isinstance(axis.ends, Periodic):
            z = np.mod(z, axis.points)
            below = np.floor(z).astype(int)
            share = z - below
            pair = (below % axis.points, (below + 1) % axis.points)
        else:
            inside &= (z >= 0) & (z <= axis.points - 1)
            z = np.clip(z, 0, axis.points - 1)
            below = np.minimum(z.astype(int), axis.points - 2)
            share = z - below
            pair = (below, below + 1)
        between |= bool(np.any((share > 0) & (share < 1)))
        corners.append([(pair[0], 1 - share), (pair[1], share)])
    places, shares = [], []
    for corner in itertools.product(*corners):
        places.append(np.ravel_multi_index(tuple(place for place, _ in corner), grid.shape))
        shares.append(np.prod([share for _, share in corner], axis=0))
    used = [i for i, share in enumerate(shares) if np.any(share > 0)]
    if not np.any(inside):
        raise InputError(f"The {name} must map some point onto the grid, but all images lie outside.")
    return Map(
        grid,
        np.stack([places[i] for i in used], axis=1),
        np.stack([shares[i] for i in used], axis=1),
        inside.astype(float),
        name,
        between,
        waves,
    )


def Translation(grid: Grid, axis: Axis, by: float) -> Map:
    r"""$S\phi(x) = \phi(x + \theta)$ along an axis: its invariance is periodicity with the period $\theta$.

    On a periodic axis the translation goes around; on others only points that stay on the grid are compared. A period
    that is no multiple of the spacing is interpolated linearly (`interpolated`), which favours smoother fields a
    little. [lemm1999, eqs. (219) to (222), errata F218, F221]

    Args:
        grid: where the fields live.
        axis: along which.
        by: $\theta$, in units of the axis.

    Examples:
        >>> from quenched import fields
        >>> day = fields.Axis(0, 240, points=241)
        >>> fields.Translation(fields.Grid(given=[day]), day, 24.5)
        <translation by 24.5 on a grid of shape (241,), linear between grid points>
    """
    check_even(grid)
    place = grid.place(axis)
    by = checks.number("by", by)
    checks.finite("by", by)
    steps, around = by / axis.spacing, isinstance(axis.ends, Periodic)
    steps = float(np.mod(steps, axis.points)) if around else steps
    if min(abs(steps), abs(steps - axis.points) if around else np.inf) < ON_POINT:
        raise InputError("Argument `by` must not be zero, nor a whole number of periods, because every field is the "
                         "same after no translation.")  # fmt: skip
    if not around and abs(by) > axis.high - axis.low:
        raise InputError(f"Argument `by` must be shorter than the axis, {axis.high - axis.low:g}, but {by:g} was "
                         "given.")  # fmt: skip
    waves = None
    if around:
        whole = np.floor(steps + ON_POINT)
        share = max(0.0, steps - whole) if abs(steps - np.rint(steps)) >= ON_POINT else 0.0
        angle = 2 * np.pi * ((np.arange(axis.points) + 1) // 2) / axis.points
        image = np.exp(1j * angle * whole) * (1 - share + share * np.exp(1j * angle))
        values = np.abs(1 - image) ** 2
        waves = line_waves(grid, place, np.where(values < ROUNDED * values.max(), 0.0, values), 0)
    images = _mesh(grid)
    images[place] = images[place] + steps * axis.spacing
    return _interpolated(grid, images, f"translation by {by:g}", waves)


def _mesh(grid: Grid) -> list[np.ndarray]:
    return [x.ravel() for x in np.meshgrid(*(axis.coordinates for axis in grid.axes), indexing="ij")]


def Mirror(grid: Grid, axis: Axis, about: float | None = None) -> Map:
    r"""$S\phi(x) = \phi(2c - x)$ along an axis: its invariance is mirror symmetry.

    Args:
        grid: where the fields live.
        axis: along which.
        about: $c$; by default the middle of the axis.
    """
    check_even(grid)
    place, middle = grid.place(axis), (axis.low + axis.high) / 2
    centre = middle if about is None else checks.number("about", about)
    checks.finite("about", centre)
    waves = None
    if isinstance(axis.ends, Free) and abs(centre - middle) < ON_POINT * axis.spacing:
        waves = line_waves(grid, place, 4.0 * (np.arange(axis.points) % 2), 0)
    images = _mesh(grid)
    images[place] = 2 * centre - images[place]
    return _interpolated(grid, images, f"mirror about {centre:g}", waves)


def Rotation(grid: Grid, angle: float, axes: tuple[Axis, Axis] | None = None, about: Any = None) -> Map:
    r"""$S\phi(x) = \phi(R x)$ with a rotation in the plane of two axes.

    Quarter turns of a square grid go from point to point, others are interpolated. Points that leave the grid are not
    compared.

    Args:
        grid: where the fields live.
        angle: in degrees, from the first axis to the second.
        axes: the plane; by default the two axes of a grid that has two.
        about: the centre, two numbers; by default the middle of the axes.
    """
    check_even(grid)
    if axes is not None and not (isinstance(axes, (tuple, list)) and len(axes) == 2):
        raise InputError(f"Argument `axes` must be two axes of the grid, but {axes!r} was given.")
    if axes is None and len(grid.axes) != 2:
        raise InputError(f"Argument `axes` must name two axes of the grid, because it has {len(grid.axes)}.")
    first, second = (0, 1) if axes is None else (grid.place(axes[0]), grid.place(axes[1]))
    if first == second:
        raise InputError("Argument `axes` must name two different axes, but they are the same.")
    centre = [(grid.axes[i].low + grid.axes[i].high) / 2 for i in (first, second)] if about is None else about
    centre = checks.numbers("about", centre)
    if centre.shape != (2,):
        raise InputError(f"Argument `about` must be two numbers, but its shape is {centre.shape}.")
    checks.finite("about", centre)
    angle = checks.number("angle", angle)
    checks.finite("angle", angle)
    turn = np.deg2rad(np.fmod(angle, 360.0))
    images = _mesh(grid)
    x, y = images[first] - centre[0], images[second] - centre[1]
    images[first] = centre[0] + np.cos(turn) * x - np.sin(turn) * y
    images[second] = centre[1] + np.sin(turn) * x + np.cos(turn) * y
    return _interpolated(grid, images, f"rotation by {angle:g} degrees")


def Permutation(grid: Grid, places: Any) -> Map:
    r"""$S\phi_i = \phi_{\sigma(i)}$ of a map of indices.

    Args:
        grid: where the fields live.
        places: $\sigma$: the flat place of the image of each point, of the grid's shape or flat. It need not be one to
            one.

    Raises:
        InputError: unless there is one place of the grid for each point.
    """
    checks.kind("grid", grid, Grid, "a Grid")
    table = _places(grid, places)
    if table.size != grid.size or table.ndim not in (1, len(grid.axes)):
        raise InputError(f"Argument `places` must map the {grid.size} points of the grid to themselves, but it has "
                         f"{table.size} entries.")  # fmt: skip
    flat = table.reshape(-1, 1)
    return Map(grid, flat, np.ones(flat.shape), np.ones(grid.size), "permutation")


class LinearMap(Map):
    """Any linear map of fields, given as a square matrix; dense or sparse.

    Attributes:
        matrix: `[points, points]`, on flattened fields.
    """

    matrix: Any = None

    def __init__(self, grid: Grid, matrix: Any):
        checks.kind("grid", grid, Grid, "a Grid")
        table = checks.numbers("matrix", matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)
        if table.shape != (grid.size, grid.size):
            raise InputError(f"Argument `matrix` must be square, {grid.size} x {grid.size} for this grid, but its "
                             f"shape is {table.shape}.")  # fmt: skip
        checks.finite("matrix", table)
        self.grid, self.places, self.shares, self.inside = grid, None, None, np.ones(grid.size)
        self.name, self.interpolated, self.waves, self.matrix = "linear map", False, None, table

    def apply(self, field: Any) -> Any:
        r"""$S \phi$."""
        return (_flat(self.grid, field) @ self.matrix.T).reshape(np.shape(field))

    def difference(self, field: Any) -> Any:
        r"""$(I - S) \phi$."""
        return field - self.apply(field)

    def transpose(self, field: Any) -> Any:
        r"""$(I - S)^T \phi$."""
        return field - (_flat(self.grid, field) @ self.matrix).reshape(np.shape(field))

    def sparse(self) -> scipy.sparse.csr_array:
        """$S$ as a sparse matrix."""
        return scipy.sparse.csr_array(np.asarray(self.matrix))
