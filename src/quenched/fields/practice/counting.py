r"""Rows that come in batches, or do not fit in memory: they are counted, and forgotten.

An estimate needs counts on a grid of hats (see `quenched.fields.model.grid`). A hat is linear between the points of a
finer lattice that has all points of the grid. So counts on the lattice give those on the grid exactly, if its points
are counted as rows with weights: $\varphi_j(x) = \sum_l \varphi_j(x_l)\, \varphi^{\mathrm{fine}}_l(x)$.

Few different rows are kept as they are, with their weights: values that were rounded are then seen to be. Many are
counted on a lattice. Between bounds it is a refinement of the grid, and counts are those of all rows at once, but for
rounding. At an end without a bound it grows with the rows, by cells of the same size; when there are too many, every
second point goes and its counts go to its neighbours, without an error. The grid is laid over the range of all rows,
and the lattice is so much finer that the density is nearly the same.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from quenched.core.types import InputError
from quenched.fields.model.grid import Axis, Grid

MOST = 10_000
"""Different rows that are kept."""
CELLS = {1: 8192, 2: 512, 3: 96}
"""By dimension: cells of each axis of a lattice, when it is laid; it grows to twice as many."""
BLOCK = 1 << 15
"""Rows, at least, that are counted at once: what is computed of them stays in the processor's cache."""
LOOK = 20_000
"""Rows at equal distances in which equal values are looked for."""

Ends = Sequence[tuple[float | None, float | None]]


@dataclasses.dataclass(frozen=True)
class Seen:
    """What is kept of rows.

    Attributes:
        rows: themselves, those that differ, or points of a lattice that stand for them `[m, columns]`.
        weights: how many rows each stands for, all positive.
        ends: the least and the largest value of each column `[columns, 2]`.
        size: how many rows there were.
        exact: whether these are values of rows, and no points of a lattice.
        grid: on which they were counted, if there is one already.
    """

    rows: np.ndarray
    weights: np.ndarray
    ends: np.ndarray
    size: int
    exact: bool = True
    grid: Grid | None = None

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray) -> Seen:
        """Rows that fit in memory, without those of no weight."""
        there = weights > 0
        rows, weights = (rows, weights) if there.all() else (rows[there], weights[there])
        return cls(rows, weights, ends_of(rows), len(rows))


def ends_of(rows: np.ndarray) -> np.ndarray:
    """The least and the largest value of each column `[columns, 2]`."""
    return np.array([(x.min(), x.max()) for x in rows.T])


def count(grid: Grid, rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Counts of rows on a grid with tails, as `Grid.counts`, block by block."""
    total, block = np.zeros(grid.size), max(BLOCK, grid.size)
    for i in range(0, len(rows), block):
        part = None if weights is None else weights[i : i + block]
        places = [_place(axis, x) for axis, x in zip(grid.axes, rows[i : i + block].T, strict=True)]
        for corner in itertools.product((0, 1), repeat=len(places)):
            at, share = np.zeros((), int), part
            for axis, side, (below, above) in zip(grid.axes, corner, places, strict=True):
                at = at * axis.points + below + side
                left = above if side else 1 - above
                share = left if share is None else share * left
            total += np.bincount(at, share, grid.size)
    return total.reshape(grid.shape)


def _place(axis: Axis, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The point below each value, and the share of the next one."""
    if axis.bend is not None:
        at, shares, _ = axis.hats(x)
        return at[:, 0], shares[:, 1]
    z = (x - axis.low) * ((axis.points - 1) / axis.length)
    np.clip(z, 0, axis.points - 1, out=z)
    below = np.minimum(z.astype(np.intp), axis.points - 2)
    z -= below
    return below, z


def distinct(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows that differ, in a fixed order, and their weights."""
    if rows.shape[1] == 1:
        values, where = np.unique(rows[:, 0], return_inverse=True)
        return values[:, None], np.bincount(where, weights)
    values, where = np.unique(rows, axis=0, return_inverse=True)
    return values, np.bincount(where.ravel(), weights)


def may_be_few(rows: np.ndarray) -> bool:
    """Whether there may be few different rows, from some of them at equal distances."""
    some = rows[:: max(len(rows) // LOOK, 1)]
    return max(len(np.unique(x)) for x in some.T) <= MOST


@dataclasses.dataclass
class Tally:
    """Rows added up batch by batch.

    Attributes:
        bounds: of each column, None where there is none.
        points: of the grid along each column.
        kept: different rows and their weights, as long as there are few.
        lattice: where they are counted, once there are many.
        counts: on it.
        ends: the least and the largest value of each column.
        size: how many rows there were.
    """

    bounds: Ends
    points: Sequence[int]
    kept: tuple[np.ndarray, np.ndarray] | None = None
    lattice: Grid | None = None
    counts: Any = None
    ends: Any = None
    size: int = 0

    def add(self, rows: np.ndarray, weights: np.ndarray) -> None:
        """Add a batch, of which at least one row has weight."""
        seen = Seen.of(rows, weights)
        rows, weights, ends = seen.rows, seen.weights, seen.ends
        before = self.ends
        self.ends = ends if before is None else np.stack(
            [np.minimum(before[:, 0], ends[:, 0]), np.maximum(before[:, 1], ends[:, 1])], axis=1
        )  # fmt: skip
        self.size += len(rows)
        if self.lattice is None:
            kept = self.kept or (np.zeros((0, rows.shape[1])), np.zeros(0))
            rows, weights = np.concatenate([kept[0], rows]), np.concatenate([kept[1], weights])
            if may_be_few(rows):
                rows, weights = distinct(rows, weights)
            if len(rows) <= MOST or not np.all(self.ends[:, 0] < self.ends[:, 1]):
                self.kept = rows, weights
                return
            self.kept, self.lattice = None, self._lay()
            self.counts = np.zeros(self.lattice.shape)
        self._widen()
        self.counts += count(self.lattice, rows, weights)

    def _lay(self) -> Grid:
        """A lattice over the range of all rows; between bounds, a refinement of the grid."""
        axes = []
        for (low, high), (least, largest), points in zip(self.bounds, self.ends.tolist(), self.points, strict=True):
            cells = CELLS[len(self.points)]
            if low is not None and high is not None:
                cells = (points - 1) * max(cells // (points - 1), 1)
            axes.append(Axis(least if low is None else low, largest if high is None else high, cells + 1, tails=(1, 1)))
        return Grid(over=axes)

    def _widen(self) -> None:
        """Add cells at ends that rows have left, and merge cells by twos where there are too many."""
        axes, counts = list(self.lattice.axes), self.counts  # pyright: ignore[reportOptionalMemberAccess]
        for i, (axis, (low, high)) in enumerate(zip(axes, self.ends.tolist(), strict=True)):
            if low >= axis.low and high <= axis.high:
                continue
            # Half as many again as needed: the next batch goes a little further.
            h = axis.spacing
            more = [math.ceil(1.5 * max(off, 0.0) / h) for off in (axis.low - low, high - axis.high)]
            first, cells = axis.low - more[0] * h, axis.points - 1 + sum(more)
            counts = np.pad(counts, [more if j == i else [0, 0] for j in range(counts.ndim)])
            while cells > 2 * CELLS[counts.ndim]:
                counts, h, cells = _halved(counts, i), 2 * h, (cells + 1) // 2
            axes[i] = Axis(first, first + cells * h, cells + 1, tails=(1, 1))
        self.lattice, self.counts = Grid(over=axes), counts

    @property
    def seen(self) -> Seen:
        """What is kept of all rows."""
        if self.lattice is None:
            rows, weights = self.kept  # pyright: ignore[reportGeneralTypeIssues]
            return Seen(rows, weights, self.ends, self.size)
        rows, weights = points_of(self.lattice, self.counts)
        return Seen(rows, weights, self.ends, self.size, exact=False)


def points_of(lattice: Grid, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of a lattice that have counts, as rows, and these."""
    at = np.nonzero(counts > 0)
    return np.stack([axis.coordinates[i] for axis, i in zip(lattice.axes, at, strict=True)], axis=1), counts[at]


def _halved(counts: np.ndarray, i: int) -> np.ndarray:
    """Counts on every second point along an axis: what is between goes to both neighbours in halves."""
    c = np.moveaxis(counts, i, 0)
    if len(c) % 2 == 0:
        c = np.concatenate([c, np.zeros_like(c[:1])])
    kept, between = c[::2].copy(), c[1::2] / 2
    kept[:-1] += between
    kept[1:] += between
    return np.moveaxis(kept, 0, i)


def check_columns(columns: int) -> None:
    """As many columns as a lattice may have."""
    if columns not in CELLS:
        raise InputError(f"Argument `X` must have one, two or three columns, but it has {columns}: a grid of more "
                         "dimensions would hold too many points.")  # fmt: skip
