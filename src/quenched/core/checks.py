"""Checks of arguments, with errors of one form: "Argument `x` must ..., but ...".

Values that JAX traces pass: they have no number yet.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import NOT_NUMBERS, InputError, Key, as_numbers, is_traced, real

HEAVIEST = 1e15
"""The largest weight of a row: adding 1 to it still changes it."""
MOST = 2**31 - 1
"""The largest whole number: no axis of an array is longer."""
LARGEST = 1e140
"""The largest number, also in a table: the square of a distance a million times as large must not overflow."""
SHOWN = 6
"""Entries of an array up to which an error shows them all."""
SMALLEST = 1e-150
"""The largest entry of a table must reach this: below it, all squares underflow."""


def numbers(name: str, value: Any) -> np.ndarray:
    """Return `value` as real numbers in float64."""
    try:
        return as_numbers(value)
    except NOT_NUMBERS:
        raise InputError(f"Argument `{name}` must be real numbers, but {value!r} was given.") from None


def number(name: str, value: Any) -> float:
    """Return `value` as a finite number."""
    array = numbers(name, value)
    if array.ndim:
        raise InputError(f"Argument `{name}` must be one number, but {value!r} was given.")
    if not np.isfinite(array):
        raise InputError(f"Argument `{name}` must be finite, but {value!r} was given.")
    return float(array)


def finite(name: str, value: Any) -> None:
    """Check that `value` is finite, and small enough to be squared."""
    _require(name, value, np.isfinite, "finite")


def positive(name: str, value: Any) -> None:
    """Check that `value` is positive and finite, and of a size that can be squared and inverted."""
    _require(name, value, lambda x: np.isfinite(x) & (x > 0), "positive and finite", least=1 / LARGEST)


def not_negative(name: str, value: Any) -> None:
    """Check that `value` is finite and not negative."""
    _require(name, value, lambda x: np.isfinite(x) & (x >= 0), "finite and not negative")


def inside(name: str, value: Any, low: float, high: float) -> None:
    """Check that `value` lies strictly between `low` and `high`."""
    _require(name, value, lambda x: (x > low) & (x < high), f"strictly between {low:g} and {high:g}", verb="lie")


def _require(
    name: str, value: Any, good: Callable[[np.ndarray], Any], expected: str, *, verb: str = "be", least: float = 0.0
) -> None:
    """Check numbers, each of which must be `good` and between `least` and `LARGEST` in size; traced ones pass."""
    if any(is_traced(v) for v in (value if isinstance(value, (tuple, list)) else [value])):
        return
    x = numbers(name, value)
    if not np.all(good(x)):
        raise InputError(f"Argument `{name}` must {verb} {expected}, but {value} was given.")
    if not np.all((np.abs(x) <= LARGEST) & (np.abs(x) >= least)):
        limits = f"between {least:g} and {LARGEST:g}" if least else f"at most {LARGEST:g}"
        raise InputError(f"Argument `{name}` must be {limits} in size, but it is {_short(x)}.")


class Declared(eqx.Module):
    """A law, a rule or another choice, whose fields say by `declare` what they must be."""

    def __check_init__(self):
        for field in dataclasses.fields(self):
            value, check = getattr(self, field.name), field.metadata.get("check")
            if check is not None and (value is not None or field.default is not None):
                check(field.name, value)


def declare(default: Any, check: Callable[[str, Any], None] = positive) -> Any:
    """A field of a `Declared` class: a number that passes a check; None only where that is the default."""
    return eqx.field(converter=real, default=default, metadata={"check": check})


def whole(name: str, value: Any, *, least: int) -> int:
    """Return `value` as an int of at least `least`."""
    try:
        count = operator.index(value)
    except TypeError:
        raise InputError(f"Argument `{name}` must be a whole number, but {value!r} was given.") from None
    if count < least:
        raise InputError(f"Argument `{name}` must be at least {least}, but {count} was given.")
    if count > MOST:
        raise InputError(f"Argument `{name}` must be at most {MOST}, but {count} was given.")
    return count


def examples(alpha: Any, size: int, *, least: int) -> int:
    r"""Return the whole number of examples $P = \alpha N$ of a simulation, of at least `least`."""
    if is_traced(alpha):
        raise InputError("Argument `alpha` must be a number in a simulation, but JAX is tracing it.")
    positive("alpha", alpha)
    alpha = number("alpha", alpha)
    P = round(alpha * size)
    if P < least:
        raise InputError(f"Argument `alpha` must give at least {least} example{'s' if least > 1 else ''}, "
                         f"but {alpha:g} x {size} gives {P}.")  # fmt: skip
    if P > MOST:
        raise InputError(f"Argument `alpha` must give at most {MOST} examples, but {alpha:g} x {size} are more.")
    return P


def increasing(name: str, value: Any, *, least: float = 0.0, most: float = np.inf) -> np.ndarray:
    """Return `value` as a 1-d array that starts at `least` or above, increases, and ends at `most` or below."""
    array = np.atleast_1d(numbers(name, value))
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"Argument `{name}` must be a number or a non-empty list, but it has shape {array.shape}.")
    if not np.all(np.isfinite(array)) or np.any(np.diff(array) <= 0) or array[0] < least:
        raise InputError(f"Argument `{name}` must increase from {least:g} or above, but it is {_short(array)}"
                         f"{_fall(array)}.")  # fmt: skip
    if array[-1] > most:
        raise InputError(f"Argument `{name}` must not exceed {most:g}, but it is {_short(array)}.")
    return array


def kind(name: str, value: Any, kinds: Any, expected: str) -> None:
    """Check that `value` is an instance of `kinds`; `expected` names one, as "a law such as TwoClusters()"."""
    if not isinstance(value, kinds):
        raise InputError(f"Argument `{name}` must be {expected}, but {value!r} was given.")


def key(value: Any) -> Key:
    """Return a JAX key in its typed form."""
    if isinstance(value, jax.Array) and value.ndim == 1 and value.dtype == np.uint32:  # the older form, PRNGKey
        with contextlib.suppress(TypeError, ValueError):
            value = jax.random.wrap_key_data(value)
    if not isinstance(value, jax.Array) or not jnp.issubdtype(value.dtype, jax.dtypes.prng_key) or value.ndim:
        raise InputError(f"Argument `key` must be one JAX key, as `jax.random.key(0)`, but it is {value!r}.")
    return value


def flag(name: str, value: Any) -> bool:
    """Return `value` as True or False."""
    if not isinstance(value, (bool, np.bool_)) and not (isinstance(value, int) and value in (0, 1)):
        raise InputError(f"Argument `{name}` must be True or False, but {value!r} was given.")
    return bool(value)


def names(name: str, value: Any) -> list[str] | None:
    """Return `value`, a name or several, as a list; None stays None."""
    members = [value] if isinstance(value, str) else value
    if members is not None and not (isinstance(members, (list, tuple)) and all(isinstance(n, str) for n in members)):
        raise InputError(f"Argument `{name}` must be a name or a list of names, but {value!r} was given.")
    return None if members is None else list(members)


def table(data: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return `data` as a table of numbers and a weight for each of its rows, by default 1."""
    try:
        X = as_numbers(data)
    except NOT_NUMBERS:
        raise InputError("Argument `data` must be a table of numbers, but it is not.") from None
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"Argument `data` must have rows and columns, but its shape is {X.shape}.")
    if not np.all(np.abs(X) < LARGEST):
        raise InputError(f"Argument `data` must be finite and below {LARGEST:g} in size, but it is not.")
    if 0 < np.abs(X).max() < SMALLEST:
        raise InputError(f"Argument `data` must reach {SMALLEST:g} in size, or squares vanish, but it does not.")
    omega = np.ones(len(X)) if weights is None else numbers("sample_weight", weights)
    if omega.shape != X.shape[:1]:
        raise InputError(f"Argument `sample_weight` must have one number for each of the {len(X)} rows, "
                         f"but its shape is {omega.shape}.")  # fmt: skip
    weights_of_rows(omega)
    return X, omega


def weights_of_rows(omega: np.ndarray) -> None:
    """Check that weights can stand for numbers of equal rows."""
    if not np.all(np.isfinite(omega) & (omega >= 0)) or not np.any(omega > 0):
        raise InputError("Argument `sample_weight` must be finite, not negative and positive for some row, "
                         f"but it lies between {omega.min():g} and {omega.max():g}.")  # fmt: skip
    if omega.max() > HEAVIEST:
        raise InputError(f"Argument `sample_weight` must be at most {HEAVIEST:g}, but it reaches {omega.max():g}.")


def path(name: str, value: Any) -> Path:
    """Return `value` as a path."""
    try:
        place = os.fspath(value)
    except TypeError:
        place = None
    if not isinstance(place, str) or "\0" in place:
        raise InputError(f"Argument `{name}` must be a path, but {value!r} was given.")
    return Path(place)


def _fall(array: np.ndarray) -> str:
    """Where an array that is too long to be shown does not increase; empty for a short one."""
    if len(array) <= SHOWN or not (where := np.flatnonzero(~(np.diff(array) > 0))).size:
        return ""
    return f", where {array[where[0] + 1]:g} follows {array[where[0]]:g}"


def _short(array: np.ndarray) -> str:
    """An array in at most one line."""
    return np.array2string(array, threshold=SHOWN, edgeitems=2, precision=4).replace("\n", " ")
