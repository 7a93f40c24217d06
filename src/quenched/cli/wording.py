"""Answers of a forecast in plain sentences, with no more digits than are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from quenched.cli import digits
from quenched.core.types import InputError

BETTER = 0.9
"""The share of today's error to aim at when no other aim is given."""


def headline(result: xr.Dataset, target: str, gain: float = BETTER) -> str:
    """How many examples make the error smaller by a tenth, or why more do not: the answer in one sentence.

    Args:
        result: a forecast that speaks.
        target: what is predicted.
        gain: the wanted error as a share of the present one.
    """
    from quenched.processes.practice.judgement import explains_nothing
    from quenched.processes.practice.wanted import sooner

    a, rows = result.attrs, int(result.attrs["rows"])
    found = sooner(result, gain)
    spoken = result.isel(examples=np.flatnonzero(result["refused"].values.astype(str) == ""))
    now = float((spoken["error"] / spoken["gain"]).values[0])
    if explains_nothing(a["explained"], a["explained_stderr"], rows):
        return (f"The inputs explain nothing of {target} that {rows:,} rows could show: the error is "
                f"{digits.number(now)}, where always answering the mean has 1. More rows with the same columns are "
                "not known to help.")  # fmt: skip
    less = "A tenth" if gain == BETTER else f"{1 - gain:.0%}"
    aim = f"{less} less error than now ({digits.number(gain * now)} instead of {digits.number(now)})"
    if np.isfinite(found.best):
        width = found.high - found.low
        low, best, last = (total(m, rows, min(width, found.farthest - m)) if np.isfinite(m) else "" for m in found[:3])
        high = last or f"more than {count(found.farthest)}"
        return f"{aim} takes about {best} examples (80% interval {low} to {high}); {rows:,} are at hand."
    last = spoken.sel(examples=found.farthest)
    there = (
        f"{float(last['gain']) - 1:+.1%} ({float(last['gain_low']) - 1:+.1%} to {float(last['gain_high']) - 1:+.1%})"
    )
    likely = "not likely" if np.isfinite(found.low) else "not"
    return (f"{aim} is {likely} within {found.farthest / rows:.3g} times the rows: {count(found.farthest)} examples "
            f"change it by {there}.")  # fmt: skip


def answers(result: xr.Dataset, wanted: Sequence[float], answer: Callable[[xr.Dataset, float], Any]) -> list[str]:
    """How many examples each wanted error takes."""
    spoken = result.isel(examples=np.flatnonzero(result["refused"].values.astype(str) == ""))
    scale, lines = float(result.attrs["target_scale"]), []
    for error in wanted:
        aim = f"error {error:.3g} (RMSE {digits.number(scale * np.sqrt(error), zeros=False)})"
        try:
            lines.append(_range(spoken, aim, *answer(result, error)))
        except InputError as reason:
            lines.append(_beyond(spoken, error, aim) or f"To reach {aim}: {reason}")
    return lines


def _range(spoken: xr.Dataset, aim: str, low: float, high: float) -> str:
    """Between how many and how many examples; of fewer than the rows at hand only where those are enough."""
    last, rows = float(spoken["examples"][-1]), float(spoken.attrs["rows"])
    open_end = f"whether {count(last)}, as far as the forecast goes, are enough is open"
    if high <= rows:
        return f"To reach {aim} you need at most {about(high)} examples: the {count(rows)} rows at hand are enough."
    if low <= rows:
        rest = f"{total(high, rows)} examples are" if np.isfinite(high) else open_end
        return f"To reach {aim} the {count(rows)} rows at hand may be enough; {rest}."
    if not np.isfinite(high):
        return f"To reach {aim} you need at least {total(low, rows)} examples; {open_end}."
    return f"To reach {aim} you need between {total(low, rows)} and {total(high, rows)} examples."


def _beyond(spoken: xr.Dataset, error: float, aim: str) -> str:
    """What to say of an error that no size of the forecast reaches, or every one; otherwise nothing."""
    first, last = spoken.isel(examples=0), spoken.isel(examples=-1)
    if error < spoken["error_low"].min():
        there = f"{float(last['error']):.3g}, {float(last['error_low']):.3g} to {float(last['error_high']):.3g}"
        return (f"{aim[:1].upper()}{aim[1:]} is out of reach: with {count(last['examples'])} examples, as far as the "
                f"forecast goes, it is {there} with 80% probability.")  # fmt: skip
    if error >= first["error_high"]:
        return f"{aim[:1].upper()}{aim[1:]} is reached with {count(first['examples'])} examples already."
    return ""


# Numbers --------------------------------------------------------------------------------------------------------------


def total(m: float, rows: float, width: float = np.inf) -> str:
    """A number of examples beyond the rows at hand: two digits of how many more, and so never below these.

    Args:
        m: the number.
        rows: at hand.
        width: how far it may move: rounding changes it by a twentieth of this at most.
    """
    place = 10 ** max(int(np.floor(np.log10(max(min(m - rows, width), 1.0)))) - 1, 0)
    return count(round(m / place) * place)


def count(m: Any) -> str:
    """A number of examples."""
    return f"{float(m):,.0f}"


def about(m: float) -> str:
    """A number of examples that is known to a factor of two at best: two digits of it."""
    place = 10 ** max(int(np.floor(np.log10(max(m, 1)))) - 1, 0)
    return f"{round(m / place) * place:,}"
