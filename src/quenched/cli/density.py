"""What `quenched density` reads and prints, for a reader with a table and no theory of fields."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

from quenched import io
from quenched.cli import digits, screen, tables
from quenched.core.types import InputError

LEVEL = 0.9
"""Of bands and intervals."""
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
SHOWN = 5
"""Values of the other column at which the density is printed."""
FIGURES = {"mean": "mean", "deviation": "standard deviation", "median": "median", "low": "5% quantile",
           "high": "95% quantile", "mode": "mode"}  # fmt: skip
"""Summary of a density, and the words for it."""


PROPOSED = re.compile(r"`bounds=\((.*?), (.*?)\)`")
"""Bounds that an estimator proposes in a warning."""
Ends = tuple[float | None, float | None]


def read(data: Path | None, column: str | None, given: str | None, **how: Any) -> tuple[io.Table, str]:
    """The table, with the asked column as target, and its name."""
    role = "the column whose density is asked for"
    if not tables.is_given(data, "density", "--column", column, role, given=given, **how):
        iris = io.bundled("iris")
        table = io.Table(np.zeros((len(iris.inputs), 0)), iris.inputs[:, 2], (), "petal length (cm)")
        return table, "scikit-learn's iris data, because no file was given"
    if column == given:
        raise InputError(f"Options --column and --given must name different columns, but both are {column!r}.")
    found, called = tables.read(data, None, [name for name in (column, given) if name is not None], **how)
    for name, values in zip(found.names, found.inputs.T, strict=True):
        io.require_spread(called, name, values)
    table = found._replace(inputs=found.inputs[:, 1:], targets=found.inputs[:, 0])
    return table._replace(names=found.names[1:], target=found.names[0]), called


def ends(text: str | None, given: str | None) -> Ends:
    """The ends of the support: numbers, or None for an unknown end."""
    if text is None:
        return None, None
    if given is not None:
        raise InputError("Option --bounds must be given without --given, but it comes with it.")
    parts = [part.strip() for part in text.split(",")]
    try:
        low, high = (float(part) if part else None for part in parts)
    except ValueError:
        low = high = np.nan
    if not all(end is None or np.isfinite(end) for end in (low, high)):
        raise InputError("Option --bounds must be two numbers with a comma between them, either of which may be left "
                         f"out, such as '0,100' or '0,', but {text!r} was given.")  # fmt: skip
    if low is not None and high is not None and not low < high:
        raise InputError(f"Option --bounds must rise, but {text!r} was given.")
    return low, high


@contextlib.contextmanager
def _in_words_of_the_command(column: str, given: Ends) -> Iterator[None]:
    """Warn of a column by its name, and propose an option where the estimator proposes an argument."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
    for one in said:
        words = str(one.message).replace("values of column 0 ", f"values of {column} ")
        if proposed := PROPOSED.search(words):
            ends = [end if end is not None else new for end, new in zip(given, proposed.groups(), strict=True)]
            option = ",".join("" if end in (None, "None") else f"{float(end):g}" for end in ends)
            words = words.replace(proposed[0], f"`--bounds {option}`")
        warnings.warn(words, one.category, stacklevel=3)


def describe(table: io.Table, bounds: Ends = (None, None)) -> xr.Dataset:
    """The density of a table's target, with its figures as attributes, or that given its one column, as a dataset."""
    from quenched.estimators import FieldConditional, FieldDensity

    y: Any = table.targets
    if table.names:
        found = FieldConditional().fit(table.inputs, y).describe(LEVEL)
        return found.assign_attrs(column=str(table.target), given=table.names[0])
    low, high = bounds
    beyond = [f"down to {digits.number(y.min())}"] if low is not None and y.min() < low else []
    beyond += [f"up to {digits.number(y.max())}"] if high is not None and y.max() > high else []
    if beyond:
        raise InputError(f"Option --bounds must hold all values of the column, but they reach {' and '.join(beyond)}.")
    with _in_words_of_the_command(str(table.target), bounds):
        found = FieldDensity(bounds=bounds).fit(y).describe(LEVEL)
    x, P = found["value"].values, found["density"].values
    below = np.concatenate([[0.0], np.cumsum((P[1:] + P[:-1]) / 2 * np.diff(x))])
    mass = P / P.sum()
    mean, quantiles = mass @ x, np.interp([0.5, *TAILS], below / below[-1], x)
    own = [y.mean(), y.std(), *np.quantile(y, [0.5, *TAILS])]
    figures = [mean, np.sqrt(mass @ (x - mean) ** 2), *quantiles, x[np.argmax(P)]]
    about = dict(zip(FIGURES, figures, strict=True))
    about |= {f"sample_{name}": value for name, value in zip(list(FIGURES)[:-1], own, strict=True)}
    about |= {name: end for name, end in zip(("lower_bound", "upper_bound"), bounds, strict=True) if end is not None}
    return found.assign_attrs(about, column=str(table.target))


def show(result: xr.Dataset, console: Console) -> None:
    """Print the figures of a density, and how smooth it is."""
    a = result.attrs
    given = f" given {a['given']}" if "given" in a else ""
    screen.say(console, f"{a['data']}: {int(a['rows']):,} rows, density of {a['column']}{given}", "")
    console.print(_over_given(result) if given else _figures(result), highlight=False)
    screen.say(console, "", *_smoothness(result))


def _figures(result: xr.Dataset) -> Table:
    """Figures of the density, and those of the rows beside them."""
    own = [result.attrs.get(f"sample_{name}") for name in FIGURES]
    return screen.grid(
        ("", FIGURES.values()), ("of the density", (digits.number(result.attrs[name]) for name in FIGURES)),
        ("of the rows", ("" if x is None else digits.number(x) for x in own)),
    )  # fmt: skip


def _over_given(result: xr.Dataset) -> Table:
    """Figures of the density at a few values of the other column."""
    few = result.isel(given=np.linspace(0, result.sizes["given"] - 1, SHOWN).astype(int))
    heads = {"given": str(result.attrs["given"])} | {name: FIGURES[name] for name in ("mean", "median", "low", "high")}
    return screen.grid(*((words, map(digits.number, few[name].values)) for name, words in heads.items()))


def _smoothness(result: xr.Dataset) -> list[str]:
    """The smoothness, or the mixture of Gaussians, that was chosen by evidence, in words."""
    a = result.attrs
    along = (f" along {a['given']}", f" along {a['column']}") if "given" in a else ("",)
    chosen = ", ".join(
        f"derivative {order}{where} with strength {strength:.2g}"
        for order, where, strength in zip((a["order"], 3), along, np.atleast_1d(a["strength"]), strict=False)
    )
    ends = {"lower_bound": "not below", "upper_bound": "not above"}
    bounds = " and ".join(f"{word} {digits.number(a[name], zeros=False)}" for name, word in ends.items() if name in a)
    kept = [f"Values are taken to lie {bounds}."] if bounds else []
    if count := a.get("components", 0):
        mixture = f"a mixture of {count} Gaussians" if count > 1 else "one Gaussian"
        return [*kept, f"Chosen by evidence: {mixture}. Log-evidence {a['log_evidence']:.1f}."]
    return [*kept, f"Smoothness of the log-density, chosen by evidence: {chosen}, on a grid of unit length. "
                   f"Log-evidence {a['log_evidence']:.1f}."]  # fmt: skip
