r"""Linear filters: what a potential looks at, $\omega = W(\phi - t)$.

A filter has one or several components at each of its places: a gradient has one for each axis. `Derivative`, `Gradient`
and `Convolution` make filters of a grid, `FilterBank` takes any matrices, dense or sparse.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import equinox as eqx
import jax
import numpy as np
from scipy import sparse

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.model.grid import Axis, Dirichlet, Grid, Periodic


class FilterBank(eqx.Module):
    r"""One matrix $W$ `[places, points]` that acts on flattened fields, or several with the same number of rows.

    Attributes:
        grid: where the fields live.
        entries: the numbers in the matrices that are not zero.
        rows: in which row of the matrices, one below the other, each of them stands.
        columns: in which column.
        shape: how many matrices there are, and how many rows each has.

    Examples:
        >>> import numpy as np
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(0, 2, points=3)])
        >>> fields.FilterBank(grid, [[-1, 1, 0], [0, -1, 1]]).respond(np.array([1.0, 4.0, 9.0])).tolist()
        [[3.0, 5.0]]
    """

    grid: Grid = eqx.field(static=True)
    entries: Any
    rows: Any
    columns: Any
    shape: tuple[int, int] = eqx.field(static=True)

    def __init__(self, grid: Grid, matrices: Any):
        checks.kind("grid", grid, Grid, "a Grid")
        several = isinstance(matrices, (list, tuple)) and all(sparse.issparse(W) or np.ndim(W) == 2 for W in matrices)
        every = [_matrix(grid, one) for one in (matrices if several and matrices else [matrices])]
        rows = [len(W.indptr) - 1 for W in every]
        if len(set(rows)) != 1:
            raise InputError("Argument `matrices` must be one or several matrices with the same number of rows, but "
                             f"they have {rows}.")  # fmt: skip
        whole = sparse.coo_array(sparse.vstack(every))
        self.grid, self.entries = grid, np.asarray(whole.data, dtype=np.float64)
        self.rows, self.columns = (np.asarray(index, dtype=np.int32) for index in whole.coords)
        self.shape = (len(every), rows[0])

    @property
    def entire(self) -> int:
        """Rows of all matrices together."""
        return self.shape[0] * self.shape[1]

    @functools.cached_property
    def matrix(self) -> sparse.csr_array:
        """All matrices, one below the other."""
        at = (np.asarray(self.rows), np.asarray(self.columns))
        return sparse.csr_array((np.asarray(self.entries), at), shape=(self.entire, self.grid.size))

    def respond(self, field: Any) -> Any:
        r"""$W\phi$ `[components, places]`, of NumPy or JAX."""
        if isinstance(field, np.ndarray):
            return (self.matrix @ field.ravel()).reshape(self.shape)
        seen = self.entries * field.reshape(-1)[self.columns]
        return jax.ops.segment_sum(seen, self.rows, self.entire).reshape(self.shape)


def _matrix(grid: Grid, W: Any) -> sparse.csr_array:
    """A matrix that acts on flattened fields, sparse."""
    if not sparse.issparse(W):
        W = checks.numbers("matrices", W)
    if W.ndim != 2 or W.shape[1] != grid.size or W.shape[0] == 0:
        raise InputError(f"Argument `matrices` must have {grid.size} columns, one for each point of the grid, but the "
                         f"shape is {W.shape}.")  # fmt: skip
    found = sparse.csr_array(W, dtype=np.float64)
    if not np.all(np.isfinite(found.data)):
        raise InputError("Argument `matrices` must be finite, but they are not.")
    return found


def _difference(axis: Axis, order: int) -> sparse.csr_array:
    """Repeated forward differences along an axis, zero where points are missing at a free end."""
    if isinstance(axis.ends, Dirichlet) or axis.bend is not None:
        raise InputError("Argument `axis` must have free or periodic ends and points at equal distances here, but it "
                         "has not.")  # fmt: skip
    n, shift = axis.points, np.eye(axis.points, k=1)
    if order >= n:
        raise InputError(f"Argument `axis` must have more than {order} points, but it has {n}.")
    if isinstance(axis.ends, Periodic):
        shift[-1, 0] = 1.0
    once = (sparse.csr_array(shift) - sparse.eye_array(n)) / axis.spacing
    D = sparse.csr_array(functools.reduce(lambda a, b: a @ b, [once] * order))
    if isinstance(axis.ends, Periodic):
        return D
    return sparse.csr_array(sparse.diags_array((np.arange(n) < n - order).astype(float)) @ D)


def _everywhere(grid: Grid, place: int, along: sparse.csr_array) -> sparse.csr_array:
    """A matrix along one axis, at all points of the others."""
    parts = [along if i == place else sparse.eye_array(axis.points) for i, axis in enumerate(grid.axes)]
    return sparse.csr_array(functools.reduce(lambda a, b: sparse.kron(a, b, format="csr"), parts))


def _bank(grid: Grid, matrices: list[sparse.csr_array]) -> FilterBank:
    """Without places at which all components are zero."""
    there = np.flatnonzero(sum(abs(W).sum(axis=1) for W in matrices))
    return FilterBank(grid, [W[there] for W in matrices])


def Derivative(grid: Grid, axis: Axis, order: int = 1) -> FilterBank:
    r"""The derivative of some order along an axis, by differences: $\partial^k \phi$.

    Args:
        grid: where the fields live.
        axis: along which, with free or periodic ends.
        order: of the derivative.
    """
    checks.kind("grid", grid, Grid, "a Grid")
    place = grid.place(axis)
    return _bank(grid, [_everywhere(grid, place, _difference(axis, checks.whole("order", order, least=1)))])


def Gradient(grid: Grid, *axes: Axis) -> FilterBank:
    r"""Forward differences along some axes, by default all, as components at each point: $\nabla\phi$.

    Args:
        grid: where the fields live.
        *axes: along which, with free or periodic ends.

    Examples:
        >>> from quenched import fields
        >>> side = fields.Axis(0, 2, points=3)
        >>> fields.Gradient(fields.Grid(given=[side, side])).shape
        (2, 8)
    """
    checks.kind("grid", grid, Grid, "a Grid")
    places = [grid.place(axis) for axis in axes] or list(range(len(grid.axes)))
    return _bank(grid, [_everywhere(grid, i, _difference(grid.axes[i], 1)) for i in places])


def Convolution(grid: Grid, kernel: Any) -> FilterBank:
    r"""A kernel at every place where it lies within the grid: $\omega(x) = \sum_s k(s)\, \phi(x + s)$.

    Along periodic axes it goes around.

    Args:
        grid: where the fields live.
        kernel: numbers, with as many dimensions as the grid has axes.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(0, 4, points=5)])
        >>> fields.Convolution(grid, [1, -2, 1]).shape
        (1, 3)
    """
    checks.kind("grid", grid, Grid, "a Grid")
    k = checks.numbers("kernel", kernel)
    if k.ndim != len(grid.axes) or 0 in k.shape or any(a > b for a, b in zip(k.shape, grid.shape, strict=True)):
        raise InputError(f"Argument `kernel` must have {len(grid.axes)} dimensions and be no larger than the grid, of "
                         f"shape {grid.shape}, but its shape is {k.shape}.")  # fmt: skip
    if not np.all(np.isfinite(k)) or not k.any():
        raise InputError("Argument `kernel` must be finite and not zero everywhere, but it is not.")
    around = [isinstance(axis.ends, Periodic) for axis in grid.axes]
    counts = [n if wraps else n - width + 1 for n, width, wraps in zip(grid.shape, k.shape, around, strict=True)]
    at = np.indices(counts).reshape(len(counts), -1)
    places = np.arange(at.shape[1])
    total: Any = sparse.csr_array((at.shape[1], grid.size))
    for shift in itertools.product(*(range(width) for width in k.shape)):
        if k[shift]:
            there = np.ravel_multi_index(tuple((at + np.reshape(shift, (-1, 1))).tolist()), grid.shape, mode="wrap")
            total = total + sparse.csr_array((np.full(len(places), k[shift]), (places, there)), shape=total.shape)
    return FilterBank(grid, total)
