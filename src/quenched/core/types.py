"""Types that all modules share: array aliases, double precision, outcomes; the error of bad input is in `errors`.

Double precision is entered, never switched on: a public verb is decorated with `double`, which runs it
inside `jax.enable_x64(True)` and leaves the caller's own JAX as it was. A pure function that must already
stand inside such a context calls `require_double`.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.errors import LONGEST as LONGEST
from quenched.core.errors import InputError as InputError
from quenched.core.errors import printable as printable

Array = jax.Array
Key = jax.Array
Real = float | np.ndarray | jax.Array

_P = ParamSpec("_P")
_T = TypeVar("_T")


QUICK = (
    {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}
    if jax.__version__.startswith("0.10.")  # a version that does not have an option raises
    else None
)
"""Options of the compiler that halve the time of compilation and cost nothing in a program of milliseconds. They may
stand on programs that are called from the host only."""

LIGHT = QUICK and {"xla_backend_optimization_level": 1}
"""The one of these options that leaves long runs as fast as they are, to the same bits: a fifth to a third of the time
of compilation less, on CPUs."""


class Outcome(enum.IntEnum):
    """The outcome of a point. Points are kept and marked, whatever their outcome.

    `converged`: the requested accuracy was reached. `diverged`: the state left every bound; it has no finite value.
    `stalled`: the allowed number of steps ran out first. `failed`: the computation broke down (NaN, or a singular
    system). `absent`: there is no such state.
    """

    converged = 0
    diverged = 1
    stalled = 2
    failed = 3
    absent = 4


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
    """Raise an `InputError` when the caller is not inside `jax.enable_x64(True)`."""
    if not jax.config.read("jax_enable_x64"):
        raise InputError(f"`{name}` must run in double precision, but JAX is in single precision: "
                         "call it inside `with jax.enable_x64(True):`.")  # fmt: skip


def is_traced(value: Any) -> bool:
    """Whether a value is being traced by JAX and so has no number yet."""
    return isinstance(value, jax.core.Tracer)  # pyright: ignore[reportAttributeAccessIssue]


def as_numbers(value: Any) -> np.ndarray:
    """Return `value` as real numbers in float64; raises one of `NOT_NUMBERS`."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError("masked values")
    array = np.asarray(value)
    if array.dtype.kind not in "biufO":  # complex numbers would lose a part
        raise TypeError(f"not real numbers: {array.dtype}")
    return array.astype(np.float64)


NOT_NUMBERS = (TypeError, ValueError, OverflowError)
"""What is raised for what is not numeric, for rows of different lengths, and for a number too large for a float."""


def real(value: Any) -> Any:
    """Converter of a scalar field: a Python float, or a JAX scalar left as it is."""
    if _is_real(value) or value is None or callable(value):
        return value
    try:
        number = as_numbers(value)
        if number.ndim:
            raise TypeError("not a single number")
    except NOT_NUMBERS:
        raise InputError(f"A parameter must be a number, but {value!r} was given.") from None
    return float(number)


def reals(value: Any) -> Any:
    """Converter of an array field: NumPy float64, or a JAX array left as it is."""
    if _is_real(value) or value is None:
        return value
    try:
        return as_numbers(value)
    except NOT_NUMBERS:
        raise InputError(f"A parameter must be an array of numbers, but {value!r} was given.") from None


def _is_real(value: Any) -> bool:
    """Whether this is a JAX array of numbers; a random key is not."""
    return isinstance(value, jax.Array) and not jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def real_tuple(value: Any) -> tuple[Any, ...]:
    """Converter of a short tuple of scalars."""
    try:
        members = tuple(value)
    except TypeError:
        raise InputError(f"A parameter must be several numbers, but {value!r} was given.") from None
    return tuple(real(v) for v in members)


def label_tuple(value: Any) -> tuple[int, ...] | None:
    """Converter of a tuple of labels, which are whole numbers; None stays None."""
    if value is None:
        return None
    try:
        array = as_numbers(tuple(value))
        good = array.ndim == 1 and np.all(array == np.rint(array)) and np.all(np.abs(array) < 2**31)
    except NOT_NUMBERS:
        good, array = False, np.zeros(0)
    if not good:
        raise InputError(f"Argument `labels` must be whole numbers, but {value!r} was given.")
    return tuple(int(s) for s in array)
