"""What `quenched forecast` reads and prints, for a reader with a table and a question and no statistical mechanics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def read(data: Path | None, target: str | None, columns: str | None, **how: Any) -> tuple[io.Table, str]:
    """The table, and its name."""
    if not tables.is_given(data, "forecast", "--target", target, "the column to be predicted", columns=columns, **how):
        table = io.bundled("diabetes")
        return table._replace(target="disease progression"), "scikit-learn's diabetes data, because no file was given"
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    table, called = tables.read(data, target, names, categories=True, **how)
    io.require_spread(called, str(target), table.targets, " to be predicted")
    return table, called


def sizes(text: str | None, rows: int) -> tuple[list[int], list[int]]:
    """The sizes to show, and all that are computed."""
    usual = default_sizes(rows)  # always computed: the curve to draw and to answer from
    asked = usual if text is None else _values("--examples", [text])
    if any(m < 1 or m % 1 for m in asked):
        raise InputError(f"Option --examples must be whole numbers from 1, but {text} was given.")
    shown = sorted({int(m) for m in asked})
    return shown, sorted({*shown, *usual})


def aims(errors: Sequence[str] | None, rmses: Sequence[str] | None, targets: Any) -> list[float]:
    """The errors to reach, in units of the target's variance."""
    given = {option: _values(option, texts) for option, texts in (("--error", errors), ("--rmse", rmses))}
    for option, numbers in given.items():
        if min(numbers, default=1.0) <= 0:
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


def show(
    result: xr.Dataset, console: Console, *, table: io.Table, shown: Sequence[int], wanted: Sequence[float]
) -> None:
    """Print a forecast."""
    known, there = bool(_is_known(result).any()), result.sel(examples=list(shown))
    screen.say(console, *_about(result, table))
    if known and not wanted:
        screen.say(console, headline(result, str(table.target)), style="bold")
    if known:
        grids, free = [_ahead(result, shown, own) for own in (2, 1, 0)], console.options.update(width=10**4)
        fitting = [grid for grid in grids if console.measure(grid, options=free).maximum <= console.width]
        title = "Forecast: the error on a new row of a model tuned and trained on this many rows"
        screen.titled(console, title, [*fitting, grids[-1]][0])
        screen.say(console, *(f"No forecast for {sizes} examples: {why}" for why, sizes in _refusals(result, shown)))
        if np.any(there["extended"].values.astype(bool) & _is_known(there)):
            screen.say(console, "* beyond what the rows themselves show, by a power law: less sure.")
    else:
        title = "Measured within the data: random subsets of the rows predict the others"
        screen.titled(console, title, _within(result))
    screen.say(console, *_meaning(result, table, known), style="dim")
    if known and "check_error" in result:
        agree = _agree(result)
        screen.titled(console, "Check: tuned anew and trained on random subsets of the rows", _checked(result, agree))
        where = ", ".join(count(m) for m in result["examples"].values[~agree])
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
    lost = [m for m in shown if not _is_known(result.sel(examples=m))]
    which = "" if len(lost) == len(shown) else f" for {', '.join(map(count, lost))} examples"
    return f"No forecast{which}: {reasons[0][0]}" if reasons else ""


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
    measured = result.isel(examples=np.isfinite(result["measured"].values))
    m, E, bars = (measured[name].values for name in ("examples", "measured", "measured_stderr"))
    return screen.grid(
        ("examples", map(count, m)), ("error", map(number, E)), ("± s.e.", (number(x, 2) if x else "" for x in bars)),
        ("RMSE", map(number, result.attrs["target_scale"] * np.sqrt(E))),
    )  # fmt: skip


def _ahead(result: xr.Dataset, shown: Sequence[int], own: int) -> Table:
    """The forecast at the sizes that were asked for, and at the rows at hand."""
    there = result.sel(examples=sorted({*shown, int(result.attrs["rows"])}))
    there = there.isel(examples=_is_known(there))
    now = there["examples"].values == result.attrs["rows"]

    def columns(
        title: str, name: str, write: Callable[[float], str], hidden: np.ndarray
    ) -> list[tuple[str, list[str]]]:
        every = zip(*(there[f"{name}{end}"].values for end in ("", "_low", "_high")), hidden, strict=True)
        cells = [("", "") if gone else (write(x), f"{write(low)} to {write(high)}") for x, low, high, gone in every]
        return [(title, [x for x, _ in cells]), ("80% interval", [x for _, x in cells])]

    marks = zip(there["examples"].values, now, there["extended"].values, strict=True)
    sizes = [f"{count(m)}{' (now)' if here else ''}{' *' if far else ''}" for m, here, far in marks]
    return screen.grid(
        ("examples", sizes), *columns("error", "error", number, ~_is_known(there)),
        *columns("RMSE", "rmse", number, ~_is_known(there))[:own],
        *columns("change", "gain", lambda x: f"{x - 1:+.1%}", now),
    )  # fmt: skip


def _checked(result: xr.Dataset, agree: np.ndarray) -> Table:
    """The error of processes tuned anew, beside the forecast."""
    made = np.isfinite(result["check_error"].values)
    m, E, again, bars = (result[k].values[made] for k in ("examples", "error", "check_error", "check_error_stderr"))
    return screen.grid(
        ("examples", map(count, m)), ("forecast", map(number, E)), ("tuned anew", map(number, again)),
        ("± s.e.", (number(x, 2) for x in bars)),
        ("", np.where(agree[made], "[green]agrees[/]", "[bold red]DIFFERS[/]")),
    )  # fmt: skip


def _agree(result: xr.Dataset) -> np.ndarray:
    """Where the check lies within the interval of the forecast, up to its own standard errors, or was not made."""
    check, bars = result["check_error"].values, SURE * result["check_error_stderr"].values
    low, high = result["error_low"].values, result["error_high"].values
    return ~np.isfinite(check) | ((check + bars >= low) & (check - bars <= high))


def _worst(result: xr.Dataset, table: io.Table) -> Table:
    """The rows that hurt most."""
    y: Any = table.targets
    miss = result["leave_one_out"].values
    largest = float(np.abs(miss).max()) or 1.0
    squares = (miss / largest) ** 2
    share = squares / (squares.sum() or 1.0)
    write = digits.alike(max(largest * float(np.sqrt(squares.mean())), 1e-6 * result.attrs["target_scale"]))
    worst = result["worst"].values.astype(int)
    return screen.grid(
        ("row", (str(table.place(i)) for i in worst)), (str(table.target), map(write, y[worst])),
        ("predicted without it", map(write, (y - miss)[worst])), ("miss", (write(x, "+") for x in miss[worst])),
        ("share of all squared misses", (f"{x:.1%}" for x in share[worst])),
    )  # fmt: skip


def headline(result: xr.Dataset, target: str) -> str:
    """How many examples make the error smaller by a tenth, or why more do not: the answer in one sentence."""
    a, rows = result.attrs, int(result.attrs["rows"])
    found = reach_gain(result, BETTER)
    known = result.isel(examples=_is_known(result))
    now = float((known["error"] / known["gain"]).values[0])
    if explains_nothing(a["explained"], a["explained_stderr"], rows):
        constant = f"{a.get('constant_error', 1.0):.3g}"
        return (f"The inputs explain nothing of {target} that {rows:,} rows could show: the error is {number(now)}, "
                f"where a constant answer has {constant}. More rows with the same columns are not known to "
                "help.")  # fmt: skip
    aim = f"A tenth less error than now ({number(BETTER * now)} instead of {number(now)})"
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
    lines = []
    for found in needed(result, wanted):
        error, rmse = found["error"], result.attrs["target_scale"] * np.sqrt(found["error"])
        aim = f"error {error:.3g} (RMSE {number(rmse, zeros=False)})"
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
        return f"you need at most {total(high)} examples: the {count(rows)} rows at hand are enough"
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
