r"""Symmetries as priors: a field that hardly changes under a map $S$. [lemm1999, section 3.4]

Approximate invariance is the operator
$$K = (I - S)^T K_S (I - S), \qquad \tfrac12 (\phi, K \phi) = \tfrac12 (\phi - S\phi,\, K_S (\phi - S \phi)) .$$
Fields that the map leaves alone are its null space, so smoothness is usually added: `Laplacian(grid) + 3.0 *
Invariance(Translation(grid, axis, 24.0))`, or as priors by `&`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.model.grid import Grid, Periodic
from quenched.fields.model.maps import Map, call, check_even
from quenched.fields.model.operators import Operator, Waves


class Invariant(Operator):
    r"""$(I - S)^T K_S (I - S)$, applied without a matrix.

    Attributes:
        map: $S$.
        within: $K_S$, or None for the identity.
    """

    map: Map
    within: Operator | None = None

    def apply(self, field: Any) -> Any:
        """Compare, weigh, and compare back."""
        off = self.map.difference(field)
        return self.map.transpose(off if self.within is None else self.within.apply(off))


def Invariance(map: Map, within: Operator | None = None) -> Operator:
    r"""Approximate invariance under a map, $(I - S)^T K_S (I - S)$. [lemm1999, eq. (209)]

    Where the map is diagonal in the modes of the axes, as translations of a periodic axis are, the operator is, too,
    and its determinant costs next to nothing.

    Args:
        map: $S$: `Translation`, `Mirror`, `Rotation`, `Permutation`, `Coordinates` or `LinearMap`.
        within: $K_S$, which deviations are weighed by; by default all alike.

    Examples:
        >>> from quenched import fields
        >>> axis = fields.Axis(0, 99, points=100)
        >>> grid = fields.Grid(given=[axis])
        >>> periodic = fields.Laplacian(grid) + 10.0 * fields.Invariance(fields.Translation(grid, axis, 20.0))
        >>> len(periodic.null_space())  # constants
        1
    """
    checks.kind("map", map, Map, "a map such as Translation(grid, axis, by)")
    checks.kind("within", within, (Operator, type(None)), "an operator such as Laplacian(grid), or None")
    if within is not None and within.grid != map.grid:
        raise InputError("Map and operator must live on one grid, but they have different ones.")
    if map.waves is not None and within is None:
        return map.waves
    if map.waves is not None and isinstance(within, Waves) and not any(within.orders):
        return map.waves @ within
    return Invariant(map.grid, map, within)


def Infinitesimal(grid: Grid, velocity: Callable[..., Any], within: Operator | None = None) -> Operator:
    r"""Invariance under the maps $e^{\theta A}$ for small $\theta$: $A^T K_S A$ with $A = \sum_i v_i(x) \nabla_i$.

    A constant velocity along an axis gives `Laplacian(grid, axis)`, the velocity $(-y, x)$ invariance under rotations.
    $\nabla$ is the mean of differences forwards and backwards; differences across an end are not taken. A
    generator that is a matrix is `Invariance(LinearMap(grid, 1 - A))`. [lemm1999, eqs. (212) to (218), erratum F218]

    Args:
        grid: where the fields live.
        velocity: takes the coordinates along each axis, arrays of the grid's shape, and returns as many arrays or
            numbers: how fast each coordinate changes with $\theta$.
        within: $K_S$, which changes are weighed by; by default all alike.

    Examples:
        >>> from quenched import fields
        >>> x, y = fields.Axis(-1, 1, points=9), fields.Axis(-1, 1, points=9)
        >>> turn = fields.Infinitesimal(fields.Grid(given=[x, y]), lambda x, y: (-y, x))
    """
    check_even(grid)
    speeds = call("velocity", velocity, grid, "velocities")
    if len(speeds) != len(grid.axes) or any(v.shape not in ((), grid.shape) for v in speeds):
        raise InputError(f"Argument `velocity` must return {len(grid.axes)} numbers or arrays of shape {grid.shape}, "
                         f"but it returned the shapes {[v.shape for v in speeds]}.")  # fmt: skip
    flat = [np.broadcast_to(v, grid.shape).ravel() for v in speeds]
    moving = [i for i, v in enumerate(flat) if np.any(v != 0)]
    if not moving:
        raise InputError("Argument `velocity` must move some coordinate, but it is zero.")
    sides = list(itertools.product((1, -1), repeat=len(moving)))
    first, *rest = (Invariance(_generator(grid, flat, dict(zip(moving, side, strict=True))), within) for side in sides)
    total = first
    for one in rest:
        total = total + one
    return (1 / len(sides)) * total


def _generator(grid: Grid, speeds: list[np.ndarray], side: dict[int, int]) -> Map:
    """The map $1 - A$, with differences to one side along each axis that moves."""
    here, index = np.arange(grid.size), np.unravel_index(np.arange(grid.size), grid.shape)
    places, shares, inside = [here], [np.ones(grid.size)], np.ones(grid.size)
    for i, forward in side.items():
        axis, moved = grid.axes[i], list(index)
        there = index[i] + forward
        if not isinstance(axis.ends, Periodic):
            inside = inside * ((there >= 0) & (there < axis.points) | (speeds[i] == 0))
        moved[i] = there % axis.points
        rate = forward * speeds[i] / axis.spacing
        shares[0] = shares[0] + rate
        places.append(np.ravel_multi_index(tuple(moved), grid.shape))
        shares.append(-rate)
    return Map(grid, np.stack(places, axis=1), np.stack(shares, axis=1), inside.astype(float), "generator")
