"""What property tests share: what a good answer is, wrong arguments, and a watch on time."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import math
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import xarray as xr
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from quenched.core.store import OutputError
from quenched.core.types import InputError, Outcome

EXAMPLES = int(os.environ.get("QUENCHED_EXAMPLES", "0"))
"""Examples of every property; 0 is what each of them says itself."""
LONGEST = 300.0
"""Seconds after which a call hangs: the process then says where, and ends."""
SENTENCE = re.compile(r"[^\n]{10,400}")
KEY = jax.random.key(0)


def property_settings(examples: int) -> settings:
    """The same examples in every run; more of them by the environment variable QUENCHED_EXAMPLES."""
    return settings(
        max_examples=EXAMPLES or examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


WRONG: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    -1,
    0,
    -2.5,
    0.5,
    1e300,
    -1e300,
    1e-300,
    10**30,
    10**400,
    True,
    1j,
    "words",
    "",
    b"bytes",
    None,
    object,
    object(),
    len,
    KEY,
    jax.random.split(KEY, 2),
    slice(1),
    [],
    {},
    [math.nan],
    [1.0, "x"],
    ["a", "b"],
    [None, 1.0],
    [3.0, 2.0, 1.0],
    [1.0, 1.0],
    [1j, 2.0],
    [[1.0, 2.0], [3.0]],
    np.zeros((2, 3, 1)),
    np.array([]),
    np.array("x"),
    np.array([1.0, math.inf]),
    np.datetime64("2020-01-01"),
]
"""Arguments that are hardly ever right."""


def _may_do(value: Any) -> bool:
    """Whether an argument is right in some places: a positive number, or several."""
    numbers = value if isinstance(value, list) else [value]
    return bool(numbers) and all(isinstance(number, (int, float)) and 0 < number < 1e301 for number in numbers)


wrong = st.sampled_from(WRONG)
hopeless = st.sampled_from([value for value in WRONG if not _may_do(value)])
"""Those that are right nowhere: they cost no computation."""


@contextlib.contextmanager
def in_time():
    """End the process, with a traceback, where a call hangs; nothing gentler stops a compiled program."""
    faulthandler.dump_traceback_later(LONGEST, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def said(error: Exception) -> str:
    """The sentence of an error, if it is one: it says what must be, and what is."""
    text = str(error)
    assert SENTENCE.fullmatch(text), text
    assert isinstance(error, OutputError) or (" must " in text or " can " in text or " may " in text), text
    assert isinstance(error, OutputError) or ("but" in text or "because" in text), text
    return text


def answer(call: Callable[[], Any]) -> Any:
    """A result that was looked at, or the sentence with which it was refused."""
    with in_time(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A JAX array is being set as static")  # equinox, before we look
        try:
            result = call()
        except (InputError, OutputError) as error:
            return said(error)
    look(result)
    return result


def look(result: Any) -> None:
    """Refuse a result with a number that is none and does not say so."""
    if isinstance(result, xr.Dataset):
        return look_at_dataset(result)
    if isinstance(result, (tuple, list)) and not hasattr(result, "_fields"):
        for part in result:
            look(part)
        return None
    if isinstance(result, jax.Array) and jax.numpy.issubdtype(result.dtype, jax.dtypes.prng_key):
        return None
    if isinstance(result, (float, np.floating, np.ndarray, jax.Array)):
        array = np.asarray(result)
        assert array.dtype.kind not in "fc" or np.all(np.isfinite(array)), result
        return None
    fields = dataclasses.fields(result) if dataclasses.is_dataclass(result) else ()
    names = getattr(result, "_fields", None) or [field.name for field in fields]
    for name in names:
        value = getattr(result, name)
        if name == "eta" and value == -math.inf:  # no outliers at all
            continue
        if name == "beta" and value == math.inf:  # only the best alternative counts
            continue
        if isinstance(value, (float, np.ndarray, jax.Array, xr.Dataset)) or hasattr(value, "_fields"):
            look(value)
    return None


def look_at_dataset(result: xr.Dataset) -> None:
    """Every number of a result is finite, or the result says why not."""
    for name, variable in result.data_vars.items():
        if variable.dtype.kind != "f":
            continue
        bad = ~np.isfinite(variable)
        for reason in _reasons(result, str(name)):
            bad = bad & ~reason
        assert not bool(bad.any()), f"{name} of\n{result}\nis not finite and does not say why"


def _reasons(result: xr.Dataset, name: str) -> list[xr.DataArray]:
    """Where a variable may lack a number, as the documentation says."""
    stem = name.removesuffix("_stderr").removesuffix("_run").removesuffix("_stability")
    reasons = [result[word] != Outcome.converged.name for word in ("outcome", f"{stem}_outcome") if word in result]
    if "failed" in result:
        reasons.append(result["failed"] > 0)
    if "refused" in result:
        reasons.append(result["refused"] != "")
    if name.startswith("self_check") and "source" in result:
        reasons.append(result["source"] == "draws")
    if name.endswith("_stderr"):  # of fewer than two runs
        reasons.append(np.isposinf(result[name]))
    if stem in ("multiplicity_error", "oob_error_counted", "spread") and f"{stem}_stderr" in result:  # none came
        reasons.append(np.isposinf(result[f"{stem}_stderr"]))
    if name == "rows_needed":  # where two groups together have one peak
        reasons.append(np.isposinf(result[name]))
    if name.endswith("stability"):  # where the field of an example jumps
        reasons.append(np.isposinf(result[name]))
    return reasons
