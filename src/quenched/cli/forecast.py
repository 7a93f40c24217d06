"""What `quenched forecast` reads and prints, for a reader with a table and a question and no statistical mechanics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.table import Table

from quenched import io, processes
from quenched.cli import digits, options, screen, tables
from quenched.cli.digits import count, number, total
from quenched.core.columns import power_of_two
from quenched.core.types import InputError
from quenched.processes.practice.examples_for import reach_gain
from quenched.processes.practice.forecast import default_sizes
from quenched.processes.practice.judgement import explains_nothing

SURE = 3
"""Standard errors by which a check may miss the interval of the forecast."""
BETTER = 0.9
"""The share of today's error to aim at when no other aim is given."""
ERRORS = ("Errors are mean squared errors as shares of the target's variance: 0 is perfect, 1 is no better than always "
          "answering the mean.")  # fmt: skip
GRADES = {
    "A": "Grade A: all checks that a forecast makes of itself were passed.",
    "rough": "Grade rough: take the forecast for a rough guide, because not all checks were passed.",
    "refused": "Grade refused: these data do not allow a forecast.",
}


# Options --------------------------------------------------------------------------------------------------------------


def read(data: Path | None, target: str | None, columns: str | None, **how: Any) -> tuple[io.Table, str]:
    """The table, and its name."""
    if not tables.is_given(data, "forecast", "--target", target, "the column to be predicted", columns=columns, **how):
        table = io.bundled("diabetes")
        return table._replace(target="disease progression"), "scikit-learn's diabetes data, because no file was given"
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    table, called = tables.read(data, target, names, categories=True, **how)
    tables.require_spread(called, str(target), table.targets, " to be predicted")
    return table, called


def sizes(text: str | None, rows: int) -> tuple[list[int], list[int]]:
    """The sizes to show, and all that are computed."""
    usual = default_sizes(rows)  # always computed: the curve to draw and to answer from
    if text is None:
        return usual, usual
    asked = _values("--examples", [text])
    if any(m < 1 or m % 1 for m in asked):
        raise InputError(f"Option --examples must be whole numbers from 1, but {text} was given.")
    shown = {int(m) for m in asked}
    return sorted(shown), sorted({*shown, *usual})


def draws(check: int) -> int:
    """The number of random subsets of a check."""
    if check < 0 or check == 1:
        raise InputError(f"Option --check must be 0 or at least 2, to have an error bar, but {check} was given.")
    return check


def aims(errors: Sequence[str] | None, rmses: Sequence[str] | None, targets: Any) -> list[float]:
    """The errors to reach, in units of the target's variance."""
    given = {option: _values(option, texts) for option, texts in (("--error", errors), ("--rmse", rmses))}
    for option, numbers in given.items():
        if any(x <= 0 for x in numbers):
            raise InputError(f"Option {option} must be positive, but {min(numbers):g} was given.")
    unit = power_of_two(targets)
    with np.errstate(over="ignore"):
        shares = np.square(np.array(given["--rmse"]) / unit / np.std(np.asarray(targets) / unit))
    return [*given["--error"], *shares.tolist()]


def _values(option: str, texts: Sequence[str] | None) -> list[float]:
    """Finite numbers of an option that may be repeated."""
    found = [x for text in texts or () for x in np.ravel(options.numbers(option, text)).tolist()]
    if not np.all(np.isfinite(found)):
        raise InputError(f"Option {option} must be finite, but {', '.join(texts or ())} was given.")
    return found


# The result, printed --------------------------------------------------------------------------------------------------


def show(
    result: xr.Dataset, console: Console, *, table: io.Table, shown: Sequence[int], wanted: Sequence[float]
) -> None:
    """Print a forecast."""
    known = bool(_is_known(result).any())
    screen.say(console, *_about(result, table))
    if known:
        if not wanted:
            screen.say(console, headline(result, str(table.target)), style="bold")
        grids, free = [_ahead(result, shown, own) for own in (2, 1, 0)], console.options.update(width=10**4)
        fitting = [grid for grid in grids if console.measure(grid, options=free).maximum <= console.width]
        title = "Forecast: the error on a new row of a model tuned and trained on this many rows"
        screen.titled(console, title, [*fitting, grids[-1]][0])
        screen.say(console, *(f"No forecast for {sizes} examples: {why}" for why, sizes in _refusals(result, shown)))
        if np.any(result["extended"].values.astype(bool) & _is_known(result) & result["examples"].isin(shown).values):
            screen.say(console, "* beyond what the rows themselves show, by a power law: less sure.")
    else:
        screen.titled(
            console, "Measured within the data: random subsets of the rows predict the others", _within(result)
        )
    screen.say(console, *_meaning(result, table, known), style="dim")
    if known and "check_error" in result:
        screen.titled(console, "Check: tuned anew and trained on random subsets of the rows", _checked(result))
        where = ", ".join(count(m) for m in result["examples"].values[~_agree(result)])
        differs = f"The check DIFFERS from the forecast at {where} examples: do not trust the forecast."
        screen.say(console, differs if where else "The check agrees with the forecast at every size.")
    if known and wanted:
        screen.say(console, "", *_answers(result, wanted))
    grade, reasons = str(result.attrs["grade"]), str(result.attrs.get("reasons", "")).splitlines()
    screen.say(console, "", GRADES.get(grade, f"Grade {grade}."), *(f"  {line}" for line in reasons if line.strip()))
    title = "The rows that hurt most (counted from 1): wrong values, or cases that the columns do not explain"
    screen.titled(console, title, _worst(result, table))


def refused(result: xr.Dataset, shown: Sequence[int]) -> str:
    """The reason why some of the sizes that were asked for have no forecast, in a line; empty if all have one."""
    reasons = _refusals(result, shown)
    if not reasons:
        return ""
    lost = [m for m, known in zip(shown, _is_known(result.sel(examples=list(shown))), strict=True) if not known]
    which = "" if len(lost) == len(shown) else f" for {', '.join(map(count, lost))} examples"
    return f"No forecast{which}: {reasons[0][0]}"


def _is_known(result: xr.Dataset) -> np.ndarray:
    """Where there is a forecast."""
    return result["refused"].values.astype(str) == ""


def _refusals(result: xr.Dataset, shown: Sequence[int]) -> list[tuple[str, str]]:
    """Reasons why there is no forecast, and the sizes they hold for."""
    why: dict[str, list[str]] = {}
    for m in shown:
        if reason := str(result["refused"].sel(examples=m).values):
            why.setdefault(reason, []).append(count(m))
    return [(reason, ", ".join(sizes)) for reason, sizes in why.items()]


def _about(result: xr.Dataset, table: io.Table) -> list[str]:
    """The table, and what came of it in short."""
    a, columns = result.attrs, f"{len(table.names)} column{'s' if len(table.names) > 1 else ''}"
    noise = "less than 1%" if a["noise"] < 0.01 else f"{a['noise']:.0%}" if a["noise"] < 0.985 else f"{a['noise']:.1%}"
    centre, scale = (number(a[name], zeros=False) for name in ("target_centre", "target_scale"))
    return [
        f"{a['data']}: {int(a['rows']):,} rows, {columns} to predict {table.target} (mean {centre}, standard deviation "
        f"{scale})",
        f"The fitted model takes {noise} of the target's variance for noise. Grade of the forecast: {a['grade']}.",
    ]


def _meaning(result: xr.Dataset, table: io.Table, known: bool) -> list[str]:
    """The meaning of the numbers and where they come from."""
    a, rows = result.attrs, f"{int(result.attrs['rows']):,}"
    whence = [f"Below {rows} rows: random subsets, judged by the other rows; at {rows}: leave-one-out; beyond: the "
              "curve extrapolated. The cost of tuning on few rows is included."] if known else []  # fmt: skip
    left, own = number(a["leave_one_out"]), number(a["training_error"])
    return [f"{ERRORS} RMSE is their square root in units of {table.target}.", *whence,
            f"With all rows, tuned on them: leave-one-out {left}, on the rows themselves {own}."]  # fmt: skip


def _within(result: xr.Dataset) -> Table:
    """The errors measured on the rows at hand, for a table without a forecast."""
    grid, scale = screen.grid("examples", "error", "± s.e.", "RMSE"), float(result.attrs["target_scale"])
    for m in result["examples"].values[np.isfinite(result["measured"].values)]:
        error, bar = (float(result[name].sel(examples=m)) for name in ("measured", "measured_stderr"))
        grid.add_row(count(m), number(error), number(bar, 2) if bar else "", number(scale * np.sqrt(error)))
    return grid


def _ahead(result: xr.Dataset, shown: Sequence[int], own: int) -> Table:
    """The forecast at the sizes that were asked for, and at the rows at hand."""
    grid = screen.grid("examples", "error", "80% interval", *("RMSE", "80% interval")[:own], "change", "80% interval")
    rows = int(result.attrs["rows"])
    for m in sorted({*shown, rows}):
        one = result.sel(examples=m)
        if not _is_known(one):
            continue
        x = {
            name: float(one[name])
            for stem in ("error", "rmse", "gain")
            for name in (stem, f"{stem}_low", f"{stem}_high")
        }
        now = " (now)" if m == rows else ""
        cells = [
            (number(x[name]), f"{number(x[f'{name}_low'])} to {number(x[f'{name}_high'])}")
            for name in ("error", "rmse")
        ]
        change = f"{x['gain'] - 1:+.1%}", f"{x['gain_low'] - 1:+.1%} to {x['gain_high'] - 1:+.1%}"
        star = " *" if bool(one["extended"]) else ""
        grid.add_row(f"{count(m)}{now}{star}", *cells[0], *cells[1][:own], *(("", "") if now else change))
    return grid


def _checked(result: xr.Dataset) -> Table:
    """The error of processes tuned anew, beside the forecast."""
    grid = screen.grid("examples", "forecast", "tuned anew", "± s.e.", "")
    for m, alike in zip(result["examples"].values, _agree(result), strict=True):
        one = result.sel(examples=m)
        if np.isfinite(one["check_error"]):
            grid.add_row(count(m), number(one["error"]), number(one["check_error"]),
                         number(one["check_error_stderr"], 2),
                         "[green]agrees[/]" if alike else "[bold red]DIFFERS[/]")  # fmt: skip
    return grid


def _agree(result: xr.Dataset) -> np.ndarray:
    """Where the check lies within the interval of the forecast, up to its own standard errors, or was not made.

    The subsets are of rows that the forecast has seen, so this checks its shape more than its level.
    """
    check, bars = result["check_error"].values, SURE * result["check_error_stderr"].values
    low, high = result["error_low"].values, result["error_high"].values
    return ~np.isfinite(check) | ((check + bars >= low) & (check - bars <= high))


def _worst(result: xr.Dataset, table: io.Table) -> Table:
    """The rows that hurt most."""
    grid = screen.grid("row", str(table.target), "predicted without it", "miss", "share of all squared misses")
    assert table.targets is not None
    miss = result["leave_one_out"].values
    largest = float(np.abs(miss).max()) or 1.0
    squares = (miss / largest) ** 2
    share = squares / (squares.sum() or 1.0)
    write = digits.alike(max(largest * float(np.sqrt(squares.mean())), 1e-6 * result.attrs["target_scale"]))
    for i in result["worst"].values.astype(int):
        y = float(table.targets[i])
        grid.add_row(str(table.place(i)), write(y), write(y - miss[i]), write(miss[i], "+"), f"{share[i]:.1%}")
    return grid


# Answers in sentences -------------------------------------------------------------------------------------------------


def headline(result: xr.Dataset, target: str, gain: float = BETTER) -> str:
    """How many examples make the error smaller by a tenth, or why more do not: the answer in one sentence."""
    a, rows = result.attrs, int(result.attrs["rows"])
    found = reach_gain(result, gain)
    known = result.isel(examples=_is_known(result))
    now = float((known["error"] / known["gain"]).values[0])
    if explains_nothing(a["explained"], a["explained_stderr"], rows):
        return (f"The inputs explain nothing of {target} that {rows:,} rows could show: the error is {number(now)}, "
                "where always answering the mean has 1. More rows with the same columns are not known to "
                "help.")  # fmt: skip
    less = "A tenth" if gain == BETTER else f"{1 - gain:.0%}"
    aim = f"{less} less error than now ({number(gain * now)} instead of {number(now)})"
    if np.isfinite(found.best):
        width = found.high - found.low
        low, best, last = (total(m, rows, min(width, found.farthest - m)) if np.isfinite(m) else "" for m in found[:3])
        high = last or f"more than {count(found.farthest)}"
        return f"{aim} takes about {best} examples (80% interval {low} to {high}); {rows:,} are at hand."
    last = known.sel(examples=found.farthest)
    change, low, high = (f"{float(last[name]) - 1:+.1%}" for name in ("gain", "gain_low", "gain_high"))
    likely = "not likely" if np.isfinite(found.low) else "not"
    return (f"{aim} is {likely} within {found.farthest / rows:.3g} times the rows: {count(found.farthest)} examples "
            f"change it by {change} ({low} to {high}).")  # fmt: skip


def needed(result: xr.Dataset, wanted: Sequence[float]) -> list[dict[str, Any]]:
    """How many examples each wanted error takes, for other programs: a range, or a sentence where there is none."""
    found: list[dict[str, Any]] = []
    for error in wanted:
        try:
            low, high = processes.examples_for(result, error)  # pyright: ignore[reportGeneralTypeIssues]
            found.append({"error": error, "examples_low": low, "examples_high": high})
        except InputError as reason:
            found.append({"error": error, "sentence": str(reason)})
    return found


def _answers(result: xr.Dataset, wanted: Sequence[float]) -> list[str]:
    """How many examples each wanted error takes, in words."""
    known = result.isel(examples=_is_known(result))
    scale, lines = float(result.attrs["target_scale"]), []
    for found in needed(result, wanted):
        error = found["error"]
        aim = f"error {error:.3g} (RMSE {number(scale * np.sqrt(error), zeros=False)})"
        if "sentence" in found:
            lines.append(_beyond(known, error, aim) or f"To reach {aim}: {found['sentence']}")
        else:
            lines.append(f"To reach {aim} {_range(known, found['examples_low'], found['examples_high'])}.")
    return lines


def _range(known: xr.Dataset, low: float, high: float) -> str:
    """Between how many and how many examples; fewer than the rows at hand only where those are enough."""
    last, rows = float(known["examples"][-1]), float(known.attrs["rows"])
    open_end = f"whether {count(last)}, as far as the forecast goes, are enough is open"
    if high <= rows:
        return f"you need at most {digits.about(high)} examples: the {count(rows)} rows at hand are enough"
    if low <= rows:
        rest = f"{total(high, rows)} examples are" if np.isfinite(high) else open_end
        return f"the {count(rows)} rows at hand may be enough; {rest}"
    if not np.isfinite(high):
        return f"you need at least {total(low, rows)} examples; {open_end}"
    return f"you need between {total(low, rows)} and {total(high, rows)} examples"


def _beyond(known: xr.Dataset, error: float, aim: str) -> str:
    """A sentence on an error that no size of the forecast reaches, or every one; otherwise empty."""
    first, last = known.isel(examples=0), known.isel(examples=-1)
    aim = f"{aim[:1].upper()}{aim[1:]}"
    if error < known["error_low"].min():
        there, low, high = (f"{float(last[name]):.3g}" for name in ("error", "error_low", "error_high"))
        return (f"{aim} is out of reach: with {count(last['examples'])} examples, as far as the forecast goes, it is "
                f"{there}, {low} to {high} with 80% probability.")  # fmt: skip
    return f"{aim} is reached with {count(first['examples'])} examples already." if error >= first["error_high"] else ""
