r"""Realistic measurements of a density: rows that are blurred, rounded or counted in bins, $p_i = \int \vartheta_i P$.

No instrument sees a point. A row says that its value came from about there, $E = -\sum_i w_i \ln (A P)_i$, with the
kernel $\vartheta_i$ as a row of the matrix $A$ that contains the integral. Given axes are conditioned on: a kernel
that is wide along $x$ averages the conditional density over $x$. [lemm1999, eq. (26)]
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, reals
from quenched.fields.model.grid import Axis, Grid, Periodic
from quenched.fields.model.likelihoods import Likelihood
from quenched.fields.model.links import Density, Link, LogDensity, Shifted, SquareRoot
from quenched.fields.model.parametrisations import Bounded, Logits
from quenched.fields.model.rows import check_rows, check_weights

SEEN = 1e-12
"""A row must have at least this probability under a uniform density."""
NEGLIGIBLE = 1e-15
"""Entries of a kernel below this share of its largest are zero."""


class KernelData(Likelihood):
    r"""Rows that each see an integral of the density, $p_i = \sum_j A_{ij} P_j$.

    Attributes:
        kernel: $A$ `[n, points]` on flattened densities, with the volumes of the integral in it.
        weights: how often each row counts.
    """

    links: ClassVar[tuple[type[Link], ...]] = (LogDensity, Shifted, Density, SquareRoot, Bounded, Logits)
    convex_in_density: ClassVar[bool] = True

    kernel: Any = eqx.field(converter=reals)
    weights: Any = eqx.field(converter=reals, default=None)

    def __check_init__(self):
        checks.not_negative("kernel", self.kernel)
        if np.ndim(self.kernel) != 2:
            raise InputError(f"Argument `kernel` must be a matrix `[rows, points]`, but its shape is "
                             f"{np.shape(self.kernel)}.")  # fmt: skip
        check_weights(np.shape(self.kernel)[0], self.weights)

    @property
    def total(self) -> float:
        """How many rows there are, each counted with its weight."""
        return float(len(self.kernel) if self.weights is None else np.sum(self.weights))

    def prepared(self, grid: Grid) -> KernelData:
        """Equal rows as one, so that many rounded values cost what their different ones do."""
        if np.shape(self.kernel)[1] != grid.size:
            raise InputError(f"Argument `kernel` must have {grid.size} columns, one for each point, but its "
                             f"shape is {np.shape(self.kernel)}.")  # fmt: skip
        A = np.asarray(self.kernel)
        w = np.ones(len(A)) if self.weights is None else np.asarray(self.weights)
        if np.any(A.sum(axis=1)[w > 0] <= SEEN * np.min(grid.weights)):
            raise InputError("Every row must see some of the grid, but one lies outside: widen the axes.")
        return KernelData(A[w > 0], w[w > 0])

    def expected_counts(self, grid: Grid) -> np.ndarray:
        r"""By Bayes' theorem from a uniform density: $\sum_i w_i A_{ij} / \sum_j A_{ij}$."""
        A = np.asarray(self.kernel)
        return (np.asarray(self.weights) / A.sum(axis=1) @ A).reshape(grid.shape)

    def energy(self, link: Link, field: Array) -> Array:
        r"""$-\sum_i w_i \ln (A P)_i$."""
        seen = self.kernel @ link.probability(field).reshape(-1)
        return -jnp.sum(self.weights * jnp.log(jnp.where(seen > 0, seen, 1e-300)))


class BlurredData(Likelihood):
    r"""Rows that were seen through a kernel: $y_i$ is a draw from the density plus an error of known width.

    The estimate is that of the density before the blur: deconvolution.

    Attributes:
        points: rows `[n, dimensions]`, coordinates of the given axes first.
        width: standard deviation of a Gaussian error, one number, or one for each axis; zero along an axis means that
            the nearest point was seen. One number is for the axes that are normalised over.
        weights: how often each counts; by default once.

    Examples:
        >>> from quenched import fields
        >>> data = fields.BlurredData([0.3, 0.42, 0.5], width=0.1)
    """

    links: ClassVar[tuple[type[Link], ...]] = KernelData.links

    points: Any = eqx.field(converter=reals)
    width: Any = eqx.field(converter=reals)
    weights: Any = eqx.field(converter=reals, default=None)

    def __check_init__(self):
        check_rows(self.points, self.weights)
        checks.not_negative("width", self.width)

    @property
    def total(self) -> float:
        """How many rows there are, each counted with its weight."""
        return float(np.shape(self.points)[0] if self.weights is None else np.sum(self.weights))

    def prepared(self, grid: Grid) -> KernelData:
        """As the matrix of kernels on a grid."""
        rows = _table("points", self.points, grid)
        wide = np.zeros(len(grid.axes))
        wide[grid.dims if np.ndim(self.width) == 0 else slice(None)] = _widths(self.width, grid)
        every, where = np.unique(rows, axis=0, return_inverse=True)
        weights = np.bincount(where.ravel(), None if self.weights is None else np.asarray(self.weights))
        parts = [_gaussian(axis, y, s) for axis, y, s in zip(grid.axes, every.T, wide, strict=True)]
        return KernelData(_product(grid, parts), weights).prepared(grid)

    def energy(self, link: Link, field: Array) -> Array:
        """That of the kernels on a grid."""
        return self.prepared(link.grid).energy(link, field)


class BinnedData(Likelihood):
    r"""Rows of which only an interval is known: rounded values, histograms, values below a limit.

    A row with the interval from `low` to `high` has the probability of that interval; on a grid each point stands for a
    cell of its spacing, and cells that an interval cuts count in part.

    Attributes:
        low: lower ends `[n, dimensions]`, or `[n]` on a grid of one axis; minus infinity is allowed, and kept as
            -1e140. Along given axes low and high are equal.
        high: upper ends, the same; infinity is allowed, and kept as 1e140.
        weights: how many rows each interval stands for, such as the counts of a histogram; by default one.

    Examples:
        >>> from quenched import fields
        >>> histogram = fields.BinnedData(low=[0, 1, 2], high=[1, 2, 4], weights=[10, 30, 5])
        >>> whole = fields.BinnedData.rounded([3, 4, 4, 5])
        >>> whole.low.tolist()
        [2.5, 3.5, 3.5, 4.5]
    """

    links: ClassVar[tuple[type[Link], ...]] = KernelData.links

    low: Any = eqx.field(converter=lambda value: _ends(value))
    high: Any = eqx.field(converter=lambda value: _ends(value))
    weights: Any = eqx.field(converter=reals, default=None)

    def __check_init__(self):
        low, high = checks.numbers("low", self.low), checks.numbers("high", self.high)
        if low.shape != high.shape or low.ndim == 0 or low.size == 0:
            raise InputError(f"Arguments `low` and `high` must have one shape `[n]` or `[n, dimensions]`, but they "
                             f"have {low.shape} and {high.shape}.")  # fmt: skip
        if not np.all(low <= high):
            raise InputError("Argument `low` must not lie above `high`, but it does somewhere, or is NaN.")
        check_weights(len(low), self.weights)

    @classmethod
    def rounded(cls, values: Any, unit: Any = 1.0, weights: Any = None) -> BinnedData:
        """Values that were rounded to multiples of a unit.

        Args:
            values: rows `[n]` or `[n, dimensions]`, as they were written down.
            unit: one number, or one for each dimension; zero for values that were not rounded.
            weights: how often each counts.
        """
        table = checks.numbers("values", values)
        checks.not_negative("unit", unit)
        half = np.asarray(unit, float) / 2
        return cls(table - half, table + half, weights)

    @property
    def total(self) -> float:
        """How many rows there are, each counted with its weight."""
        return float(np.shape(self.low)[0] if self.weights is None else np.sum(self.weights))

    def prepared(self, grid: Grid) -> KernelData:
        """As the matrix of intervals on a grid."""
        low, high = _table("low", self.low, grid, infinite=True), _table("high", self.high, grid, infinite=True)
        every, where = np.unique(np.concatenate([low, high], axis=1), axis=0, return_inverse=True)
        weights = np.bincount(where.ravel(), None if self.weights is None else np.asarray(self.weights))
        d = len(grid.axes)
        parts = [_interval(axis, every[:, i], every[:, d + i]) for i, axis in enumerate(grid.axes)]
        return KernelData(_product(grid, parts), weights).prepared(grid)

    def energy(self, link: Link, field: Array) -> Array:
        """That of the intervals on a grid."""
        return self.prepared(link.grid).energy(link, field)


def _ends(value: Any) -> Any:
    """Converter of ends of intervals: infinite ones become the largest numbers."""
    ends = reals(value)
    return np.clip(ends, -checks.LARGEST, checks.LARGEST) if isinstance(ends, np.ndarray) else ends


def _table(name: str, values: Any, grid: Grid, *, infinite: bool = False) -> np.ndarray:
    table = checks.numbers(name, values)
    table = table[:, None] if table.ndim == 1 and len(grid.axes) == 1 else table
    if table.ndim != 2 or table.shape[1] != len(grid.axes):
        raise InputError(f"Argument `{name}` must be rows of {len(grid.axes)} numbers, but its shape is {table.shape}.")
    if np.any(np.isnan(table)) or not (infinite or np.all(np.isfinite(table))):
        raise InputError(f"Argument `{name}` must be finite, but it is not.")
    return table


def _widths(width: Any, grid: Grid) -> np.ndarray:
    wide = np.asarray(width, float)
    if wide.ndim and wide.shape != (len(grid.axes),):
        raise InputError(f"Argument `width` must be one number or one for each of the {len(grid.axes)} axes, but its "
                         f"shape is {wide.shape}.")  # fmt: skip
    return wide


def _gaussian(axis: Axis, values: np.ndarray, wide: float) -> np.ndarray:
    """The probability density of each value, if the truth is at each point `[n, points]`."""
    if wide == 0:
        return np.eye(axis.points)[axis.nearest(values)] / axis.weights
    off = values[:, None] - axis.coordinates
    if isinstance(axis.ends, Periodic):
        period = axis.points * axis.spacing
        turns = np.arange(-int(np.ceil(6 * wide / period)) - 1, int(np.ceil(6 * wide / period)) + 2)
        part = np.sum(np.exp(-0.5 * ((off[..., None] + period * turns) / wide) ** 2), axis=-1)
    else:
        part = np.exp(-0.5 * (off / wide) ** 2)
    part = part / (np.sqrt(2 * np.pi) * wide)
    return np.where(part < NEGLIGIBLE * part.max(axis=1, keepdims=True), 0.0, part)


def _interval(axis: Axis, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The share of each point's cell that lies in each interval `[n, points]`; an interval of no width is a point."""
    point = low == high
    half = axis.spacing / 2
    ends = axis.coordinates - half, axis.coordinates + half
    share = np.clip(np.minimum(high[:, None], ends[1]) - np.maximum(low[:, None], ends[0]), 0, None) / axis.spacing
    if np.any(point):
        share[point] = np.eye(axis.points)[axis.nearest(low[point])] / axis.weights
    return share


def _product(grid: Grid, parts: list[np.ndarray]) -> np.ndarray:
    """Kernels of several axes as one matrix; along given axes they sum to one, along others they are integrated."""
    A = np.ones((len(parts[0]), 1))
    for i, part in enumerate(parts):
        if i not in grid.dims:
            total = part.sum(axis=1, keepdims=True)
            part = np.divide(part, total, out=np.zeros_like(part), where=total > 0)
        A = (A[:, :, None] * part[:, None, :]).reshape(len(A), -1)
    return A * np.broadcast_to(grid.weights, grid.shape).ravel()
