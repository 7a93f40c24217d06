"""What every room agrees on: array aliases, double precision, outcomes, and the one error of bad input.

Double precision is entered, never switched on: a public verb is decorated with `double`, which runs it
inside `jax.enable_x64(True)` and leaves the caller's own JAX as it was. A pure function that must already
stand inside such a context says so with `require_double`.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

Array = jax.Array
Key = jax.Array
Real = float | np.ndarray | jax.Array

_P = ParamSpec("_P")
_T = TypeVar("_T")


class InputError(ValueError):
    """Bad input, said in one sentence: "Argument `x` must ..., but ..."."""


class Outcome(enum.IntEnum):
    """What became of a point. Points are kept and marked, whatever their outcome."""

    converged = 0
    """The asked accuracy was reached."""
    diverged = 1
    """The state left every bound; it has no finite value."""
    stalled = 2
    """The allowed number of steps ran out first."""
    failed = 3
    """The computation broke down (a value that is not a number, a singular system)."""
    absent = 4
    """There is no such state."""


def outcome_names(codes: np.ndarray) -> np.ndarray:
    """Turn an array of outcome codes into the words users read."""
    names = np.array([o.name for o in Outcome])
    return names[np.asarray(codes, dtype=int)]


def double(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Run `function` in double precision without touching the caller's settings."""

    @functools.wraps(function)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped


def require_double(name: str) -> None:
    """Raise one sentence when the caller is not inside `jax.enable_x64(True)`.

    Raises:
        InputError: in single precision.
    """
    if not jax.config.read("jax_enable_x64"):
        raise InputError(f"`{name}` must run in double precision, but JAX is in single precision: "
                         "call it inside `with jax.enable_x64(True):`.")  # fmt: skip


def is_traced(value: Any) -> bool:
    """Say whether a value is being traced by JAX, so that its number cannot be looked at."""
    return isinstance(value, jax.core.Tracer)  # pyright: ignore[reportAttributeAccessIssue]


def real(value: Any) -> Any:
    """Converter of a scalar field: a Python float, or a JAX scalar left as it is."""
    if isinstance(value, jax.Array) or value is None or callable(value):
        return value
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"A parameter must be a number, but {value!r} was given.") from error


def reals(value: Any) -> Any:
    """Converter of an array field: NumPy float64, or a JAX array left as it is."""
    if isinstance(value, jax.Array) or value is None:
        return value
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"A parameter must be an array of numbers, but {value!r} was given.") from error


def real_tuple(value: Any) -> tuple[Any, ...]:
    """Converter of a short tuple of scalars."""
    return tuple(real(v) for v in value)
