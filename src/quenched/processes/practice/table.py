"""The table of a forecast: checked, with standardised columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from quenched.core.columns import FEWEST, Column, check, power_of_two, read_column
from quenched.core.types import InputError, printable

if TYPE_CHECKING:
    import xarray as xr

USUAL = 1e100
"""Size of targets, and of one over them, within which they are taken as they are."""
OWN_UNITS = ("rmse", "rmse_low", "rmse_high", "leave_one_out", "target_scale", "target_centre")
"""What a forecast gives in the units of the targets."""


class Table(NamedTuple):
    """A table with standardised inputs.

    Attributes:
        X: `[N, d]`, of mean 0 and variance 1.
        y: `[N]`, in units of `unit`.
        unit: of the targets: 1, or a power of two where their squares would overflow or vanish.
        remarks: sentences about what was done.
    """

    X: np.ndarray
    y: np.ndarray
    unit: float
    remarks: tuple[str, ...]

    def in_own_units(self, result: xr.Dataset) -> xr.Dataset:
        """A forecast that was made in units of `unit`, in those of the targets."""
        if self.unit == 1:
            return result
        there = {name: result[name] * self.unit for name in OWN_UNITS if name in result}
        attrs = {n: result.attrs[n] * self.unit for n in OWN_UNITS if n in result.attrs and n not in there}
        return result.assign(there).assign_attrs(attrs)


def read(X: Any, y: Any, names: Sequence[str] | None, *, keep: bool) -> Table:
    """Check the arguments of `forecast` and standardise the columns.

    Constant columns are dropped, unless `keep` has them as zeros for a kernel that expects them.

    Raises:
        InputError: if these are not numbers, not finite, too few or all the same.
    """
    inputs, (target,) = _columns("X", X, names), _column("y", y)
    rows = {len(column.values) for column in (*inputs, target)}
    if len(rows) > 1:
        raise _misshapen(X, y)
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


def _columns(argument: str, value: Any, names: Sequence[str] | None) -> list[Column]:
    """The columns of a table or of a vector."""
    given = getattr(value, "columns", None) if names is None else names
    if hasattr(value, "iloc") and getattr(value, "ndim", 0) == 2:  # a data frame: each column has its own type
        cells = [value.iloc[:, k] for k in range(value.shape[1])]
    else:
        array = _array(argument, value)
        if array.ndim not in (1, 2):
            raise InputError(f"Argument `{argument}` must have shape [N, d] or [N], but it is {array.shape}.")
        cells = [array] if array.ndim == 1 else [array[:, k] for k in range(array.shape[1])]
    if not cells:
        raise InputError(f"Argument `{argument}` must have columns, but it has none.")
    called = [str(k) for k in range(len(cells))] if given is None else [printable(str(name)) for name in given]
    if len(called) != len(cells):
        raise InputError(f"Argument `names` must name each of the {len(cells)} columns of `{argument}`, but it has "
                         f"{len(called)} names.")  # fmt: skip
    return [read_column(name, column) for name, column in zip(called, cells, strict=True)]


def _column(argument: str, value: Any) -> list[Column]:
    """A single column, without a name."""
    array = value if hasattr(value, "iloc") else _array(argument, value)
    if np.ndim(array) != 1:
        raise InputError(f"Arguments `X` and `y` must have shapes [N, d] and [N], but `{argument}` is "
                         f"{np.shape(array)}.")  # fmt: skip
    return [read_column("", array)]


def _array(argument: str, value: Any) -> np.ndarray:
    """Whatever was given, as an array that keeps its mask."""
    try:
        return value if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
    except ValueError:  # rows of different lengths
        raise InputError(f"Argument `{argument}` must have rows of one length, but it has not.") from None


def _misshapen(X: Any, y: Any) -> InputError:
    return InputError(f"Arguments `X` and `y` must have shapes [N, d] and [N], but they are {np.shape(X)} and "
                      f"{np.shape(y)}.")  # fmt: skip


def _standardised(values: np.ndarray) -> np.ndarray | None:
    """A column of mean 0 and variance 1; None where it does not vary."""
    scaled = values / power_of_two(values)
    centred = scaled - scaled.mean()
    spread = centred.std()
    return centred / spread if spread > 1e-12 * np.abs(scaled).max() else None
