"""A table that was looked at: everything a forecast cannot work with is said in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from quenched.core.types import InputError
from quenched.processes.model import FEWEST


class Table(NamedTuple):
    """A table with standardised inputs.

    Attributes:
        X: `[N, d]`, of mean 0 and variance 1.
        y: `[N]`, in their own units.
        remarks: sentences about what was done.
    """

    X: np.ndarray
    y: np.ndarray
    remarks: tuple[str, ...]


def read(X: Any, y: Any, names: Sequence[str] | None, *, keep: bool) -> Table:
    """Look at a table and standardise its columns.

    Args:
        X: the inputs, `[N, d]` or `[N]`; a data frame gives the names of its columns.
        y: the targets `[N]`.
        names: of the columns, for sentences.
        keep: whether constant columns are kept, as zeros, for a kernel that expects them; otherwise they are dropped.

    Raises:
        InputError: in one sentence, if these are not numbers, not finite, too few or all the same.
    """
    names = [str(name) for name in (getattr(X, "columns", ()) if names is None else names)]
    inputs = _numbers("X", X, names)
    inputs = inputs[:, None] if inputs.ndim == 1 else inputs
    targets = _numbers("y", y, [])
    if inputs.ndim != 2 or targets.ndim != 1 or len(inputs) != len(targets):
        raise InputError(f"Arguments `X` and `y` must have shapes [N, d] and [N], but they are {inputs.shape} and "
                         f"{targets.shape}.")  # fmt: skip
    if len(targets) < FEWEST:
        raise InputError(f"Argument `y` must have at least {FEWEST} rows, but there are {len(targets)}.")
    names = names or [str(k) for k in range(inputs.shape[1])]
    if len(names) != inputs.shape[1]:
        raise InputError(f"Argument `names` must name each of the {inputs.shape[1]} columns of `X`, but it has "
                         f"{len(names)} names.")  # fmt: skip
    for name, column in [*zip(names, inputs.T, strict=True), (None, targets)]:
        if bad := int(np.sum(~np.isfinite(column))):
            where = "Argument `y`" if name is None else f"Column `{name}` of `X`"
            raise InputError(f"{where} must be finite, but {bad} of its values are missing or infinite.")
    centred = inputs - inputs.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > 1e-12 * np.maximum(np.abs(inputs).max(axis=0), 1e-300)
    if not varies.any():
        raise InputError("Argument `X` must have a column that varies, but all are constant.")
    constant = [name for name, moves in zip(names, varies, strict=True) if not moves]
    remarks = (f"Constant columns were left out: {', '.join(constant)}.",) if constant else ()
    centred[:, ~varies] = 0.0
    standard = centred / np.where(varies, spread, 1.0)
    return Table(standard if keep else standard[:, varies], targets, remarks)


def _numbers(argument: str, value: Any, names: Sequence[str]) -> np.ndarray:
    """The value as float64, or a sentence that says where it is not numbers."""
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    array = np.asarray(value, dtype=object)
    for k, column in enumerate(array.T if array.ndim == 2 else []):
        try:
            column.astype(np.float64)
        except (TypeError, ValueError):
            name = names[k] if k < len(names) else str(k)
            raise InputError(f"Column `{name}` of `{argument}` must be numbers, but it is not.") from None
    raise InputError(f"Argument `{argument}` must be numbers, but it is not.")
