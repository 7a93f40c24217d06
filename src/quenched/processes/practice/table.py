"""The table of a forecast: checked, with standardised columns, and with its copies found.

A row whose copy is among the rows it is predicted from is not unseen: leave-one-out then finds an error that no new row
will have, and the evidence takes for noiseless what was only written twice. Rows with equal inputs are not copies by
themselves. Where all columns are words or grades, independent rows agree in them by chance, and to leave out only those
that agree in the target, too, would choose them by the target. So:

* where the target has practically no ties, rows that agree in all inputs and in the target are copies;
* where it has few values, rows that agree in all inputs are copies if nearly all of them agree in the target, far more
  than rows with other inputs do; otherwise they are repeated measurements, and stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from quenched.core.columns import FEWEST, Column, check, power_of_two, read_column
from quenched.core.types import InputError, printable

USUAL = 1e100
"""Size of targets, and of one over them, within which they are taken as they are."""
TIES = 0.01
"""Share of pairs of rows with equal targets up to which a target has practically no ties."""
CERTAIN = 0.9
"""Rows with equal inputs are copies where they agree in the target so much of the way from chance to certainty."""


class Table(NamedTuple):
    """A table with standardised inputs."""

    X: np.ndarray  # [N, d], of mean 0 and variance 1
    y: np.ndarray  # [N], in units of `unit`
    unit: float  # of the targets: 1, or a power of two where their squares would overflow or vanish
    remarks: tuple[str, ...]  # sentences about what was done


def read(X: Any, y: Any, names: Sequence[str] | None, *, keep: bool) -> Table:
    """Check the arguments of `forecast` and standardise the columns.

    Constant columns are dropped, unless `keep` has them as zeros for a kernel that expects them.

    Raises:
        InputError: if these are not numbers, not finite, too few or all the same.
    """
    inputs, cells = _columns(X, names), y if hasattr(y, "iloc") else _array("y", y)
    if np.ndim(cells) != 1 or any(len(column.values) != len(cells) for column in inputs):
        raise InputError(f"Arguments `X` and `y` must have shapes [N, d] and [N], but they are {np.shape(X)} and "
                         f"{np.shape(y)}.")  # fmt: skip
    target = read_column("", cells)
    if len(target.values) < FEWEST:
        raise InputError(f"Argument `y` must have at least {FEWEST} rows, but there are {len(target.values)}.")
    check("Argument `X`", inputs, first=0)
    check("Argument `y`", [target], first=0)
    remarks = [column.note for column in (*inputs, target) if column.note]
    standard = [_standardised(column.values) for column in inputs]
    if all(one is None for one in standard):
        raise InputError("Argument `X` must have a column that varies, but all are constant.")
    constant = [column.name for column, one in zip(inputs, standard, strict=True) if one is None]
    if constant:
        remarks.append(f"Constant columns were left out: {', '.join(constant)}.")
    kept = [np.zeros_like(target.values) if one is None else one for one in standard if keep or one is not None]
    largest = float(np.abs(target.values).max())
    unit = 1.0 if largest == 0 or 1 / USUAL < largest < USUAL else float(power_of_two(largest))
    return Table(np.column_stack(kept), target.values / unit, unit, tuple(remarks))


def _columns(X: Any, names: Sequence[str] | None) -> list[Column]:
    """The columns of the inputs, a table or a vector."""
    given = getattr(X, "columns", None) if names is None else names
    if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
        raise InputError(f"Argument `names` must be a list of names, but {names!r} was given.")
    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:  # a data frame: each column has its own type
        cells = [X.iloc[:, k] for k in range(X.shape[1])]
    else:
        array = _array("X", X)
        if array.ndim not in (1, 2):
            raise InputError(f"Argument `X` must have shape [N, d] or [N], but it is {array.shape}.")
        cells = [array] if array.ndim == 1 else [array[:, k] for k in range(array.shape[1])]
    if not cells:
        raise InputError("Argument `X` must have columns, but it has none.")
    called = [str(k) for k in range(len(cells))] if given is None else [printable(str(name)) for name in given]
    if len(called) != len(cells):
        raise InputError(f"Argument `names` must name each of the {len(cells)} columns of `X`, but it has "
                         f"{len(called)} names.")  # fmt: skip
    return [read_column(name, column) for name, column in zip(called, cells, strict=True)]


def _array(argument: str, value: Any) -> np.ndarray:
    """Whatever was given, as an array that keeps its mask."""
    try:
        return value if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
    except ValueError:  # rows of different lengths
        raise InputError(f"Argument `{argument}` must have rows of one length, but it has not.") from None


def _standardised(values: np.ndarray) -> np.ndarray | None:
    """A column of mean 0 and variance 1; None where it does not vary."""
    scaled = values / power_of_two(values)
    centred = scaled - scaled.mean()
    spread = centred.std()
    return centred / spread if spread > 1e-12 * np.abs(scaled).max() else None


def find_copies(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The first row of which each row is a copy, `[N]`, and its own place where it is not a copy."""
    both, own = _first(np.column_stack([X, y])), np.arange(len(y))
    chance = _count(_first(y[:, None])) / (len(y) * (len(y) - 1) / 2)
    if np.all(both == own) or chance <= TIES:
        return both
    alike = _first(X)
    return alike if _count(both) >= (chance + CERTAIN * (1 - chance)) * _count(alike) else own


def _first(rows: np.ndarray) -> np.ndarray:
    """For each row the place of the first that is equal to it."""
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


def _count(first: np.ndarray) -> float:
    """How many pairs of rows are equal."""
    sizes = np.bincount(first).astype(float)
    return float(np.sum(sizes * (sizes - 1) / 2))
