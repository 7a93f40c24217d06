"""Rows of Dask arrays and data frames: two passes over the chunks, each where it lies; only counts are gathered.

The first pass finds the range, the middle half and, if they are few, the different rows; the second counts on a
refinement of the grid. A chunk at a time is in the memory of a worker.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.practice import counting
from quenched.fields.practice.counting import MOST, Seen

FINER = {1: 16, 2: 2, 3: 1}
"""By dimension: cells of the refinement to one of the grid."""
SOME = 4_000
"""Rows at equal distances, of a chunk or of several, from which the middle half of all is known."""
TOGETHER = 8
"""Results of chunks that are added up at once."""


def is_chunked(value: Any) -> bool:
    """Whether this is a Dask array, data frame or series; Dask is not imported for it."""
    return "dask" in sys.modules and hasattr(value, "__dask_graph__") and hasattr(value, "to_delayed")


@dataclasses.dataclass(frozen=True)
class Summary:
    """What the first pass knows of some chunks: like `Seen`, with some rows in place of many.

    Attributes:
        ends: the least and the largest value of each column.
        size: rows with weight.
        total: their weight.
        some: rows at equal distances, and what each stands for.
        kept: different rows and their weights; None if there are too many.
    """

    ends: np.ndarray
    size: int
    total: float
    some: tuple[np.ndarray, np.ndarray]
    kept: tuple[np.ndarray, np.ndarray] | None


def names_of(X: Any) -> list[Any]:
    """The columns of a data frame; none of an array or a series."""
    return list(X.columns) if hasattr(X, "columns") else []


def columns_of(X: Any) -> int:
    """How many columns there are."""
    columns = 1 if X.ndim == 1 else X.shape[1]
    counting.check_columns(columns)
    return int(columns)


def gather(X: Any, sample_weight: Any, lay: Callable[[Seen], Grid]) -> Seen:
    """What is kept of a Dask collection of rows.

    Args:
        X: array, data frame or series.
        sample_weight: a weight for each row: an array, a Dask array in the same chunks, or None.
        lay: from the range and some rows to the grid.

    Returns:
        Different rows, if they are few, or points of a refinement of the grid.
    """
    columns, parts = columns_of(X), _parts(X, sample_weight)
    first = _fold(_summarise, parts, _join, columns)
    if first is None:
        raise InputError("Argument `X` must have at least one row with weight, but there is none.")
    if first.kept is not None:
        return Seen(first.kept[0], first.kept[1], first.ends, first.size)
    rows, weights = first.some
    grid = lay(Seen(rows, weights * (first.total / weights.sum()), first.ends, first.size, exact=False))
    lattice = refined(grid)
    counts = _fold(_count, parts, _add, lattice)
    rows, weights = counting.points_of(lattice, counts)
    return Seen(rows, weights, first.ends, first.size, exact=False, grid=grid)


def refined(grid: Grid) -> Grid:
    """A grid with more points between those of another; of an axis that is bent, the same points."""
    finer = FINER[len(grid.axes)]
    axes = [axis if axis.bend else Axis(axis.low, axis.high, (axis.points - 1) * finer + 1, tails=axis.tails)
            for axis in grid.axes]  # fmt: skip
    return Grid(over=axes)


def _parts(X: Any, sample_weight: Any) -> list[tuple[Any, Any]]:
    """Chunks of rows with their weights, not computed."""
    if X.ndim == 2 and hasattr(X, "rechunk"):
        X = X.rechunk({1: -1})
    rows = np.ravel(X.to_delayed()).tolist()
    if sample_weight is None:
        return [(part, None) for part in rows]
    if not is_chunked(sample_weight):
        sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan]
        if np.any(np.isnan(sizes)):
            raise InputError("Argument `sample_weight` must be a Dask array or series in the chunks of `X`, but it is "
                             "not, and their sizes are not known.")  # fmt: skip
        weights = counting_weights(sample_weight, int(sum(sizes)))
        return list(zip(rows, np.split(weights, np.cumsum(sizes)[:-1]), strict=True))
    shares = np.ravel(sample_weight.to_delayed()).tolist()
    if len(shares) != len(rows):
        raise InputError(f"Argument `sample_weight` must be in the chunks of `X`, {len(rows)}, but it has "
                         f"{len(shares)}.")  # fmt: skip
    return list(zip(rows, shares, strict=True))


def counting_weights(sample_weight: Any, rows: int) -> np.ndarray:
    """Weights that are no Dask collection."""
    weights = checks.numbers("sample_weight", sample_weight)
    if weights.shape != (rows,):
        raise InputError(f"Argument `sample_weight` must have one number for each of the {rows} rows, but its shape is "
                         f"{weights.shape}.")  # fmt: skip
    return weights


def _fold(each: Callable[..., Any], parts: list[Any], both: Callable[[list[Any]], Any], argument: Any) -> Any:
    """The results of all chunks, put together as they come."""
    import dask

    level = [dask.delayed(each, pure=False)(*part, argument) for part in parts]  # pyright: ignore[reportPrivateImportUsage]
    while len(level) > 1:
        level = [dask.delayed(both)(level[i : i + TOGETHER]) for i in range(0, len(level), TOGETHER)]  # pyright: ignore[reportPrivateImportUsage]
    return dask.compute(level[0])[0]  # pyright: ignore[reportPrivateImportUsage]


def _read(rows: Any, weights: Any, columns: int) -> tuple[np.ndarray, np.ndarray | None]:
    """A chunk as rows and weights, of those that have one; None if all have weight 1."""
    try:
        table = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("Argument `X` must be numbers, but some chunk holds others.") from None
    table = table.reshape(len(table), columns)
    if weights is None:
        return table, None
    shares = counting_weights(np.asarray(weights), len(table))
    checks.not_negative("sample_weight", shares)
    there = shares > 0
    return (table, shares) if there.all() else (table[there], shares[there])


def _summarise(rows: Any, weights: Any, columns: int) -> Summary | None:
    """The first pass over a chunk."""
    table, shares = _read(rows, weights, columns)
    if len(table) == 0:
        return None
    ends = counting.ends_of(table)  # NaN, if some value is
    checks.finite("X", ends)
    step = max(len(table) // SOME, 1)
    shares = np.broadcast_to(1.0, len(table)) if shares is None else shares
    some = table[::step].copy(), shares[::step].copy()  # no views, which would keep the chunk
    kept = counting.distinct(table, shares) if counting.may_be_few(table) else None
    return Summary(ends, len(table), float(shares.sum()), some, kept if kept and len(kept[0]) <= MOST else None)


def _join(found: list[Summary | None]) -> Summary | None:
    """Several summaries as one."""
    there = [one for one in found if one is not None]
    if not there:
        return None
    ends = np.stack([np.min([one.ends[:, 0] for one in there], axis=0),
                     np.max([one.ends[:, 1] for one in there], axis=0)], axis=1)  # fmt: skip
    # What the rows of a chunk stand for is the chunk's weight.
    rows, shares = zip(*(one.some for one in there), strict=True)
    scaled = [w * (one.total / w.sum()) for one, w in zip(there, shares, strict=True)]
    table, weights = np.concatenate(rows), np.concatenate(scaled)
    step = max(len(table) // SOME, 1)
    kept = None
    if all(one.kept is not None for one in there):
        all_kept = [one.kept for one in there if one.kept is not None]
        kept = counting.distinct(*(np.concatenate(part) for part in zip(*all_kept, strict=True)))
    total = sum(one.total for one in there)
    return Summary(ends, sum(one.size for one in there), total, (table[::step].copy(), weights[::step].copy()),
                   kept if kept is not None and len(kept[0]) <= MOST else None)  # fmt: skip


def _count(rows: Any, weights: Any, lattice: Grid) -> np.ndarray:
    """The second pass over a chunk."""
    return counting.count(lattice, *_read(rows, weights, len(lattice.axes)))


def _add(found: list[np.ndarray]) -> np.ndarray:
    """Counts of several chunks."""
    return np.sum(found, axis=0)
