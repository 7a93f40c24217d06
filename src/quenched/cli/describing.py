"""What `quenched density` reads and says, to somebody with a table and no theory of fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from quenched import io
from quenched.cli import digits
from quenched.core.types import InputError, printable

FEWEST = 5
"""Rows below which there is nothing to say."""
LEVEL = 0.9
"""Of bands and intervals."""
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
SHOWN = 5
"""Values of the other column at which the density is printed."""
FIGURES = {"mean": "mean", "deviation": "standard deviation", "median": "median", "low": "5% quantile",
           "high": "95% quantile", "mode": "mode"}  # fmt: skip
"""What is said of a density."""


Ends = tuple[float | None, float | None]


def read(data: Path | None, column: str | None, given: str | None, **how: Any) -> tuple[io.Table, str]:
    """The table, with the asked column as target, and what it is called.

    Args:
        data: the file; without it, data that come with scikit-learn.
        column: whose density is asked for.
        given: what it shall hang on.
        **how: further keywords of `io.read_table`.

    Raises:
        InputError: in one sentence, for options that do not fit together or a file that is no such table.
    """
    if data is None:
        if column is not None or given is not None or any(how.values()):
            raise InputError("Options that choose what to read must come with a file, but none was given: "
                             "quenched density DATA.csv --column COLUMN.")  # fmt: skip
        iris = io.bundled("iris")
        table = io.Table(np.zeros((len(iris.inputs), 0)), iris.inputs[:, 2], (), "petal length (cm)")
        return table, "scikit-learn's iris data, because no file was given"
    if column is None:
        there = ", ".join(io.column_names(data, how.get("encoding")))
        raise InputError(f"Option --column must name the column whose density is asked for, but none was given; {data} "
                         f"has the columns: {there}.")  # fmt: skip
    if column == given:
        raise InputError(f"Options --column and --given must name different columns, but both are {column!r}.")
    found = io.read_table(data, columns=[column] if given is None else [column, given], least=FEWEST, **how)
    for name, values in zip(found.names, found.inputs.T, strict=True):
        if np.all(values == values[0]):
            raise InputError(f"Column {name!r} of {data} must vary, but all its values are {values[0]:g}.")
    table = found._replace(inputs=found.inputs[:, 1:], targets=found.inputs[:, 0])
    return table._replace(names=found.names[1:], target=found.names[0]), printable(str(data))


def ends(text: str | None, given: str | None) -> Ends:
    """The ends of the support: numbers, or None for one that is not known.

    Raises:
        InputError: for another text, or for a density that hangs on another column.
    """
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


def describe(table: io.Table, bounds: Ends = (None, None)) -> xr.Dataset:
    """The density of a table's target, or that given its one column, as a dataset."""
    assert table.targets is not None
    if not table.names:
        return _density(table.targets, bounds).assign_attrs(column=str(table.target))
    from quenched.estimators import FieldConditional

    found = FieldConditional().fit(table.inputs, table.targets).describe(LEVEL)
    return found.assign_attrs(column=str(table.target), given=table.names[0])


def _check_inside(y: np.ndarray, bounds: Ends) -> None:
    """Refuse bounds that do not hold all values."""
    low, high = bounds
    beyond = [f"down to {digits.number(y.min())}"] if low is not None and y.min() < low else []
    beyond += [f"up to {digits.number(y.max())}"] if high is not None and y.max() > high else []
    if beyond:
        raise InputError(f"Option --bounds must hold all values of the column, but they reach {' and '.join(beyond)}.")


def _density(y: np.ndarray, bounds: Ends) -> xr.Dataset:
    """The density of a column with its band, a histogram beside it, and its figures as attributes."""
    from quenched.estimators import FieldDensity

    _check_inside(y, bounds)
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
    return found.assign_attrs(about)


def show(result: xr.Dataset, console: Console) -> None:
    """Print the figures of a density, and how smooth it is."""
    a = result.attrs
    hangs = f" given {a['given']}" if "given" in a else ""
    _say(console, f"{a['data']}: {int(a['rows']):,} rows, density of {a['column']}{hangs}", "")
    console.print(_over_given(result) if hangs else _figures(result), highlight=False)
    _say(console, "", *_smoothness(result))


def _say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(escape(line), highlight=False)


def _grid(*columns: str) -> Table:
    """A table of numbers."""
    grid = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in columns:
        grid.add_column(escape(name), justify="right", no_wrap=True)
    return grid


def _figures(result: xr.Dataset) -> Table:
    """Figures of the density, and those of the rows beside them."""
    grid = _grid("", "of the density", "of the rows")
    for name, words in FIGURES.items():
        own = result.attrs.get(f"sample_{name}")
        grid.add_row(words, digits.number(result.attrs[name]), "" if own is None else digits.number(own))
    return grid


def _over_given(result: xr.Dataset) -> Table:
    """Figures of the density at a few values of the other column."""
    names = ("mean", "median", "low", "high")
    grid = _grid(str(result.attrs["given"]), *(FIGURES[name] for name in names))
    for i in np.linspace(0, result.sizes["given"] - 1, SHOWN).astype(int):
        one = result.isel(given=i)
        grid.add_row(*(digits.number(one[name]) for name in ("given", *names)))
    return grid


def _smoothness(result: xr.Dataset) -> list[str]:
    """What was chosen by evidence, in words."""
    a = result.attrs
    if "given" in a:
        x, y = a["strength"]
        chosen = (f"Smoothness of the log-density, chosen by evidence: derivative {a['order']} along {a['given']} with "
                  f"strength {x:.2g}, derivative 3 along {a['column']} with strength {y:.2g}")  # fmt: skip
    else:
        chosen = (f"Smoothness of the log-density, chosen by evidence: derivative {a['order']} with strength "
                  f"{a['strength']:.2g}")  # fmt: skip
    ends = {"lower_bound": "not below", "upper_bound": "not above"}
    bounds = " and ".join(f"{word} {digits.number(a[name], zeros=False)}" for name, word in ends.items() if name in a)
    kept = [f"Values are taken to lie {bounds}."] if bounds else []
    return [*kept, f"{chosen}, on a grid of unit length. Log-evidence {a['log_evidence']:.1f}."]
