"""What `quenched forecast` reads and says, to somebody with a table and a question and no statistical mechanics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from quenched import io
from quenched.cli import digits, options, wording
from quenched.core.columns import power_of_two
from quenched.core.types import InputError, printable

FEWEST = 5
"""Rows below which there is nothing to say."""
SHARES = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 10)
"""Sizes, in shares of the rows, that are always computed: the curve to draw and to answer from."""
SURE = 3
"""Standard errors by which a check may miss the interval of the forecast."""
ERRORS = ("Errors are mean squared errors as shares of the target's variance: 0 is perfect, 1 is no better than always "
          "answering the mean.")  # fmt: skip


def read(data: Path | None, target: str | None, columns: str | None, **how: Any) -> tuple[io.Table, str]:
    """The table, and what it is called.

    Args:
        data: the file; without it, data that come with scikit-learn.
        target: the column to be predicted.
        columns: those that predict.
        **how: further keywords of `io.read_table`.

    Raises:
        InputError: in one sentence, for options that do not fit together or a file that is no such table.
    """
    if data is None:
        if target is not None or columns is not None or any(how.values()):
            raise InputError("Options that choose what to read must come with a file, but none was given: "
                             "quenched forecast DATA.csv --target COLUMN.")  # fmt: skip
        table = io.bundled("diabetes")
        return table._replace(target="disease progression"), "scikit-learn's diabetes data, because no file was given"
    if target is None:
        there = ", ".join(io.column_names(data, how.get("encoding")))
        raise InputError(f"Option --target must name the column to be predicted, but none was given; {data} has the "
                         f"columns: {there}.")  # fmt: skip
    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    table = io.read_table(data, target, chosen, categories=True, least=FEWEST, **how)
    if table.targets is not None and np.all(table.targets == table.targets[0]):
        raise InputError(f"Column {target!r} of {data} must vary to be predicted, but all its values are "
                         f"{table.targets[0]:g}.")  # fmt: skip
    return table, printable(str(data))


def sizes(text: str | None, rows: int) -> tuple[list[int], list[int]]:
    """The sizes to show, and all that are computed.

    Raises:
        InputError: if they are not whole positive numbers.
    """
    usual = {max(round(share * rows), 1) for share in SHARES}
    if text is None:
        return sorted(usual), sorted(usual)
    asked = values("--examples", [text])
    if any(m < 1 or m % 1 for m in asked):
        raise InputError(f"Option --examples must be whole numbers from 1, but {text} was given.")
    shown = {int(m) for m in asked}
    return sorted(shown), sorted(shown | usual)


def draws(check: int) -> int:
    """How many random subsets the check makes.

    Raises:
        InputError: for a negative number, or a single draw.
    """
    if check < 0 or check == 1:
        raise InputError(f"Option --check must be 0 or at least 2, to have an error bar, but {check} was given.")
    return check


def values(option: str, texts: Sequence[str] | None) -> list[float]:
    """Finite numbers of an option that may be repeated.

    Raises:
        InputError: for anything else.
    """
    found = [x for text in texts or () for x in np.ravel(options.numbers(option, text)).tolist()]
    if not np.all(np.isfinite(found)):
        raise InputError(f"Option {option} must be finite, but {', '.join(texts or ())} was given.")
    return found


def aims(errors: Sequence[str] | None, rmses: Sequence[str] | None, targets: Any) -> list[float]:
    """The errors to reach, in units of the target's variance.

    Raises:
        InputError: if one is not positive.
    """
    given = {"--error": values("--error", errors), "--rmse": values("--rmse", rmses)}
    for option, numbers in given.items():
        if any(x <= 0 for x in numbers):
            raise InputError(f"Option {option} must be positive, but {min(numbers):g} was given.")
    unit = power_of_two(targets)
    with np.errstate(over="ignore"):
        shares = np.square(np.array(given["--rmse"]) / unit / np.std(np.asarray(targets) / unit))
    return [*given["--error"], *shares.tolist()]


def refused(result: xr.Dataset, shown: Sequence[int]) -> str:
    """Why there is no forecast at some of the sizes that were asked for, in a line; empty where there is one at all."""
    words = result["refused"].sel(examples=list(shown)).values.astype(str)
    why = next((word for word in words if word), "")
    if not why:
        return ""
    sizes = [wording.count(m) for m, word in zip(shown, words, strict=True) if word]
    which = "" if all(words) else f" for {', '.join(sizes)} examples"
    return f"No forecast{which}: {why}"


def needed(
    result: xr.Dataset, wanted: Sequence[float], answer: Callable[[xr.Dataset, float], Any]
) -> list[dict[str, Any]]:
    """How many examples each wanted error takes, for other programs: a range, or a sentence where there is none."""
    found: list[dict[str, Any]] = []
    for error in wanted:
        try:
            low, high = answer(result, error)
            found.append({"error": error, "examples_low": low, "examples_high": high})
        except InputError as reason:
            found.append({"error": error, "sentence": str(reason)})
    return found


def show(
    result: xr.Dataset,
    console: Console,
    *,
    table: io.Table,
    shown: Sequence[int],
    wanted: Sequence[float],
    answer: Callable[[xr.Dataset, float], Any],
) -> None:
    """Print everything that a forecast says.

    Args:
        result: from `processes.forecast`, with the name of the table as attribute `data`.
        console: where.
        table: what it was made from.
        shown: the sizes that were asked for.
        wanted: the errors to reach.
        answer: `processes.examples_for`.
    """
    speaks = bool(np.any(result["refused"].values.astype(str) == ""))
    _print(console, *_about_table(result, table))
    if speaks and not wanted:
        _print(console, wording.headline(result, str(table.target)), style="bold")
    if speaks:
        title = "Forecast: tuned and trained on so many different rows, on a row it has not seen"
        grids, free = [_ahead(result, shown, own) for own in (2, 1, 0)], console.options.update(width=10**4)
        fitting = [grid for grid in grids if console.measure(grid, options=free).maximum <= console.width]
        _print_grid(console, title, [*fitting, grids[-1]][0])
        _print(console, *_refusals(result, shown))
    else:
        _print_grid(console, "Measured within the data: random subsets of the rows predict the others", _within(result))
    _print(console, *_meaning(result, table, speaks), style="dim")
    if "check_error" in result and speaks:
        _print_grid(console, "Check: tuned anew and trained on random subsets of the rows", _checked(result))
        _print(console, *_check(result))
    if speaks and wanted:
        _print(console, "", *wording.answers(result, wanted, answer))
    _print(console, "", *_grade(result))
    title = "The rows that hurt most (counted from 1): wrong values, or cases that the columns do not explain"
    _print_grid(console, title, _worst(result, table))


def _print(console: Console, *lines: str, style: str = "") -> None:
    for line in lines:
        console.print(escape(line), style=style, highlight=False)


def _print_grid(console: Console, title: str, grid: Table) -> None:
    _print(console, "")
    _print(console, title, style="bold")
    console.print(grid, highlight=False)


def _grid(*columns: str) -> Table:
    """A table of numbers."""
    grid = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in columns:
        grid.add_column(escape(name), justify="right", no_wrap=True)
    return grid


def _about_table(result: xr.Dataset, table: io.Table) -> list[str]:
    """What was looked at, and what came of it in short."""
    a = result.attrs
    rows, columns = f"{int(a['rows']):,} rows", f"{len(table.names)} column{'s' if len(table.names) > 1 else ''}"
    noise = "less than 1%" if a["noise"] < 0.01 else f"{a['noise']:.0%}" if a["noise"] < 0.985 else f"{a['noise']:.1%}"
    return [
        f"{a['data']}: {rows}, {columns} to predict {table.target} "
        f"(mean {digits.number(a['target_centre'], zeros=False)}, standard deviation "
        f"{digits.number(a['target_scale'], zeros=False)})",
        f"The fitted model takes {noise} of the target's variance for noise. Grade of the forecast: {a['grade']}.",
    ]


def _within(result: xr.Dataset) -> Table:
    """What was measured on the rows at hand, where there is no forecast."""
    grid, scale = _grid("examples", "error", "± s.e.", "RMSE"), float(result.attrs["target_scale"])
    for m in result["examples"].values[np.isfinite(result["measured"].values)]:
        one = result.sel(examples=m)
        error, bar = float(one["measured"]), float(one["measured_stderr"])
        grid.add_row(
            wording.count(m),
            digits.number(error),
            digits.number(bar, 2) if bar else "",
            digits.number(scale * np.sqrt(error)),
        )
    return grid


def _checked(result: xr.Dataset) -> Table:
    """The error of processes tuned anew, beside the forecast."""
    grid = _grid("examples", "forecast", "tuned anew", "± s.e.", "")
    for m, alike in zip(result["examples"].values, _agree(result), strict=True):
        one = result.sel(examples=m)
        if np.isfinite(one["check_error"]):
            grid.add_row(wording.count(m), digits.number(one["error"]), digits.number(one["check_error"]),
                         digits.number(one["check_error_stderr"], 2),
                         "[green]agrees[/]" if alike else "[bold red]DIFFERS[/]")  # fmt: skip
    return grid


def _agree(result: xr.Dataset) -> np.ndarray:
    """Where the check is within the interval of the forecast, but for its own standard errors; or where there is none.

    The subsets are of the rows that the forecast knows, so that this is a check of its shape more than of its level.
    """
    check, bars = result["check_error"].values, SURE * result["check_error_stderr"].values
    low, high = result["error_low"].values, result["error_high"].values
    return ~np.isfinite(check) | ((check + bars >= low) & (check - bars <= high))


def _check(result: xr.Dataset) -> list[str]:
    """One sentence on the check."""
    alike = _agree(result)
    if alike.all():
        return ["The check agrees with the forecast at every size."]
    where = ", ".join(wording.count(m) for m in result["examples"].values[~alike])
    return [f"The check DIFFERS from the forecast at {where} examples: do not trust the forecast."]


def _meaning(result: xr.Dataset, table: io.Table, speaks: bool) -> list[str]:
    """What the numbers mean and whence they are."""
    a, rows = result.attrs, f"{int(result.attrs['rows']):,}"
    whence = [f"Below {rows} rows: random subsets, judged by the other rows; at {rows}: leave-one-out; beyond: the "
              "curve continued. All with what tuning on so few rows costs."] if speaks else []  # fmt: skip
    lines = [f"{ERRORS} RMSE is their square root in units of {table.target}.", *whence]
    left, own = digits.number(a["leave_one_out"]), digits.number(a["training_error"])
    return [*lines, f"With all rows, tuned on them: leave-one-out {left}, on the rows themselves {own}."]


def _ahead(result: xr.Dataset, shown: Sequence[int], own: int) -> Table:
    """The forecast at the sizes that were asked for, and at the rows at hand.

    Args:
        result: the forecast.
        shown: the sizes.
        own: whether errors are given in own units, too: 0 not, 1 without and 2 with their interval.
    """
    grid = _grid("examples", "error", "80% interval", *("RMSE", "80% interval")[:own], "change", "80% interval")
    rows = int(result.attrs["rows"])
    for m in sorted({*shown, rows}):
        one = result.sel(examples=m)
        if str(one["refused"].values):
            continue
        x = {
            str(name): float(one[name]) for name in one.data_vars if one[name].dtype.kind == "f" and not one[name].dims
        }
        now = m == rows
        grid.add_row(
            wording.count(m) + (" (now)" if now else "") + (" *" if bool(one["extended"]) else ""),
            digits.number(x["error"]), f"{digits.number(x['error_low'])} to {digits.number(x['error_high'])}",
            *(digits.number(x["rmse"]), f"{digits.number(x['rmse_low'])} to {digits.number(x['rmse_high'])}")[:own],
            "" if now else f"{x['gain'] - 1:+.1%}",
            "" if now else f"{x['gain_low'] - 1:+.1%} to {x['gain_high'] - 1:+.1%}",
        )  # fmt: skip
    return grid


def _refusals(result: xr.Dataset, shown: Sequence[int]) -> list[str]:
    """The sizes of which nothing is said, and why; and what a star means."""
    why: dict[str, list[str]] = {}
    for m in shown:
        if reason := str(result["refused"].sel(examples=m).values):
            why.setdefault(reason, []).append(wording.count(m))
    lines = [f"No forecast for {', '.join(sizes)} examples: {reason}" for reason, sizes in why.items()]
    starred = result.sel(examples=list(shown))
    if np.any(starred["extended"].values.astype(bool) & (starred["refused"].values.astype(str) == "")):
        lines.append("* beyond what the rows themselves show, by a power law: less sure.")
    return lines


def _grade(result: xr.Dataset) -> list[str]:
    """The grade in words, and the reasons."""
    words = {
        "A": "Grade A: all checks that a forecast makes of itself were passed.",
        "rough": "Grade rough: take the forecast for a rough guide, because not all checks were passed.",
        "refused": "Grade refused: these data do not allow a forecast.",
    }
    grade = str(result.attrs["grade"])
    reasons = [line for line in str(result.attrs.get("reasons", "")).splitlines() if line.strip()]
    return [words.get(grade, f"Grade {grade}."), *(f"  {line}" for line in reasons)]


def _worst(result: xr.Dataset, table: io.Table) -> Table:
    """The rows that hurt most."""
    grid = _grid("row", str(table.target), "predicted without it", "miss", "share of all squared misses")
    assert table.targets is not None
    miss = result["leave_one_out"].values
    largest = float(np.abs(miss).max()) or 1.0
    squares = (miss / largest) ** 2
    share = squares / (squares.sum() or 1.0)
    write = digits.alike(max(largest * float(np.sqrt(squares.mean())), 1e-6 * result.attrs["target_scale"]))
    for i in result["worst"].values.astype(int):
        y = float(table.targets[i])
        cells = [write(y), write(y - miss[i]), write(miss[i], "+"), f"{share[i]:.1%}"]
        grid.add_row(str(table.place(i)), *cells)
    return grid
