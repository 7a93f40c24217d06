"""The grammar of an error: "Argument `x` must ..., but ...". Traced values pass: they have no number yet."""

from __future__ import annotations

import operator
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from quenched.core.types import InputError, is_traced

LARGEST = 1e140
"""Size of the numbers of a table: the square of a distance, a million times as large, must still be a number."""


def _number(value: Any) -> np.ndarray | None:
    """The value as an array of numbers, or None while JAX traces it."""
    leaves = value if isinstance(value, (tuple, list)) else [value]
    return None if any(is_traced(v) for v in leaves) else np.asarray(value, dtype=float)


def finite(name: str, value: Any) -> None:
    """Refuse NaN and infinity."""
    number = _number(value)
    if number is not None and not np.all(np.isfinite(number)):
        raise InputError(f"Argument `{name}` must be finite, but {value} was given.")


def positive(name: str, value: Any) -> None:
    """Refuse zero, negative numbers, NaN and infinity."""
    number = _number(value)
    if number is not None and not np.all(np.isfinite(number) & (number > 0)):
        raise InputError(f"Argument `{name}` must be positive and finite, but {value} was given.")


def not_negative(name: str, value: Any) -> None:
    """Refuse negative numbers, NaN and infinity."""
    number = _number(value)
    if number is not None and not np.all(np.isfinite(number) & (number >= 0)):
        raise InputError(f"Argument `{name}` must be finite and not negative, but {value} was given.")


def inside(name: str, value: Any, low: float, high: float) -> None:
    """Refuse what is not strictly between `low` and `high`."""
    number = _number(value)
    if number is not None and not np.all((number > low) & (number < high)):
        raise InputError(f"Argument `{name}` must lie strictly between {low:g} and {high:g}, but {value} was given.")


def whole(name: str, value: Any, *, least: int) -> int:
    """Return `value` as an int of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"Argument `{name}` must be a whole number, but {value!r} was given.") from None
    if number < least:
        raise InputError(f"Argument `{name}` must be at least {least}, but {number} was given.")
    return number


def examples(alpha: Any, size: int, *, least: int) -> int:
    r"""Return the whole number of examples $P = \alpha N$ of a simulation, of at least `least`."""
    if is_traced(alpha):
        raise InputError("Argument `alpha` must be a number in a simulation, but JAX is tracing it.")
    positive("alpha", alpha)
    P = round(float(alpha) * size)
    if P < least:
        raise InputError(f"Argument `alpha` must give at least {least} example{'s' if least > 1 else ''}, "
                         f"but {alpha:g} x {size} gives {P}.")  # fmt: skip
    return P


def increasing(name: str, value: Any, *, least: float = 0.0) -> np.ndarray:
    """Return `value` as a 1-d array that starts at `least` or above and increases."""
    try:
        array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(f"Argument `{name}` must be numbers, but {value!r} was given.") from None
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"Argument `{name}` must be a number or a non-empty list, but it has shape {array.shape}.")
    if not np.all(np.isfinite(array)) or np.any(np.diff(array) <= 0) or array[0] < least:
        raise InputError(f"Argument `{name}` must increase from {least:g} or above, but it is {_short(array)}.")
    return array


def table(data: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return `data` as a table of numbers and a weight for each of its rows, by default 1."""
    try:
        X = np.asarray(data, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("Argument `data` must be a table of numbers, but it is not.") from None
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"Argument `data` must have rows and columns, but its shape is {X.shape}.")
    if not np.all(np.abs(X) < LARGEST):
        raise InputError(f"Argument `data` must be finite and below {LARGEST:g} in size, but it is not.")
    omega = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    if omega.shape != X.shape[:1]:
        raise InputError(f"Argument `sample_weight` must have one number for each of the {len(X)} rows, "
                         f"but its shape is {omega.shape}.")  # fmt: skip
    if not np.all(np.isfinite(omega) & (omega >= 0)) or not np.any(omega > 0):
        raise InputError("Argument `sample_weight` must be finite, not negative and positive for some row, "
                         f"but it lies between {omega.min():g} and {omega.max():g}.")  # fmt: skip
    return X, omega


def try_folder(folder: Path) -> None:
    """Make a folder, if it is not there, and write into it once.

    Raises:
        OSError: if that cannot be done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as trial:
        trial.write(b"x")


def _short(array: np.ndarray) -> str:
    """An array in at most one line."""
    return np.array2string(array, threshold=6, edgeitems=2, precision=4).replace("\n", " ")
