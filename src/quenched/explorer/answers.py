"""What a view of the explorer gives: numbers for the page, the lines of Python that give the same, and a dataset."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core.types import InputError

if TYPE_CHECKING:
    import xarray as xr


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a view.

    Attributes:
        numbers: what the page draws, ready for JSON.
        script: lines of Python that give the same numbers; empty where there are none.
        result: the dataset behind them, to be saved.
        warned: what was warned of on the way.
    """

    numbers: dict[str, Any]
    script: str = ""
    result: xr.Dataset | None = None
    warned: tuple[str, ...] = ()

    @property
    def told(self) -> dict[str, Any]:
        """What the page is told."""
        return self.numbers | {"script": self.script, "warned": list(self.warned)}


LARGEST = 10**300
"""Whole numbers beyond have no value in floating point."""
State = Mapping[str, Any]
"""What the page asks about: names of choices and values of knobs."""
View = Callable[[State], Answer]


@dataclasses.dataclass(frozen=True)
class Knob:
    """A number that can be turned.

    Attributes:
        name: of the control, as the verbs have it.
        words: what it is, in words.
        symbol: in the papers.
        low, high: its ends.
        value: where it stands at first.
        log: whether its scale is logarithmic.
    """

    name: str
    words: str
    symbol: str
    low: float
    high: float
    value: float
    log: bool = False


def turn(knobs: Sequence[Knob], given: Any) -> dict[str, float]:
    """The values of knobs, each checked against its ends; those that are not given stand where they stood at first."""
    if not isinstance(given, Mapping):
        raise InputError(f"Argument `knobs` must be values by name, but {given!r} was given.")
    found = {}
    for knob in knobs:
        value = given.get(knob.name, knob.value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
            raise InputError(f"Knob {knob.name} must be a number, but {value!r} was given.")
        if not knob.low <= value <= knob.high:
            shown = f"{value:g}" if isinstance(value, float) or abs(value) < LARGEST else "a far larger number"
            raise InputError(f"Knob {knob.name} must lie between {knob.low:g} and {knob.high:g}, but {shown} was "
                             "given.")  # fmt: skip
        found[knob.name] = float(value)
    return found


def choose(state: State, name: str, among: Sequence[str]) -> str:
    """One of a few words; the first if none is given."""
    value = state.get(name, among[0])
    if value not in among:
        raise InputError(f"Choice `{name}` must be one of {', '.join(among)}, but {value!r} was given.")
    return str(value)


def plain(values: Any) -> Any:
    """Numbers, words and arrays for JSON; null where a number is not finite."""
    if isinstance(values, np.ndarray):
        return plain(values.tolist())
    if isinstance(values, (list, tuple)):
        return [plain(value) for value in values]
    if isinstance(values, np.generic):
        return plain(values.item())
    if isinstance(values, float) and not math.isfinite(values):
        return None
    return values


# Python that gives the same numbers


@dataclasses.dataclass(frozen=True)
class Spaced:
    """Values of a control at regular distances, and some between them."""

    low: float
    high: float
    count: int
    log: bool = False
    also: tuple[float, ...] = ()

    def values(self) -> np.ndarray:
        """The values, increasing."""
        even = (np.geomspace if self.log else np.linspace)(self.low, self.high, self.count)
        return np.union1d(even, self.also) if self.also else even

    def __str__(self) -> str:
        even = f"np.{'geomspace' if self.log else 'linspace'}({self.low!r}, {self.high!r}, {self.count})"
        return f"np.union1d({even}, {write(list(self.also))})" if self.also else even


def write(value: Any) -> str:
    """A value as Python that makes it again."""
    if isinstance(value, Spaced):
        return str(value)
    if isinstance(value, np.ndarray):
        return write(value.tolist())
    if isinstance(value, np.generic):
        return write(value.item())
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(write, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        science = type(value).__module__.split(".")[1]
        fields = {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.init}
        inner = ", ".join(f"{name}={write(one)}" for name, one in fields.items() if one is not None)
        return f"{science}.{type(value).__name__}({inner})"
    return repr(value)


def evaluate(value: Any) -> Any:
    """A value as the verbs take it."""
    return value.values() if isinstance(value, Spaced) else value
