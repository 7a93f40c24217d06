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
from quenched.cli import digits, options
from quenched.core.columns import power_of_two
from quenched.core.types import InputError, printable

FEWEST = 5
"""Rows below which there is nothing to say."""
SHARES = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 10)
"""Sizes, in shares of the rows, that are always computed: the curve to draw and to answer from."""
BETTER = 0.9
"""The share of today's error to aim at when no other aim is given."""
ALIKE = 0.015
"""Relative difference up to which a theory without error bars counts as confirmed by the bootstrap."""
WIDE = 96
"""Columns of a terminal in which the interval of the RMSE fits, too."""
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
    """How many draws the bootstrap makes.

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
    sizes = [_count(m) for m, word in zip(shown, words, strict=True) if word]
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
    _print(console, *_headline(result, table))
    _print_grid(console, "Within the data: random samples, with repeats, predict the rows they lack", _within(result))
    _print(console, *_check(result))
    _print(console, *_estimates(result, table), style="dim")
    speaks = np.any(result["refused"].values.astype(str) == "")
    if speaks:
        title = "Forecast: tuned and trained on so many different rows, on a row it has not seen"
        _print_grid(console, title, _ahead(result, shown, wide=console.width >= WIDE))
        _print(console, *_refusals(result, shown), "", *_answers(result, wanted, answer))
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


def _headline(result: xr.Dataset, table: io.Table) -> list[str]:
    """What was looked at, and what came of it in short."""
    a = result.attrs
    rows, columns = f"{int(a['rows']):,} rows", f"{len(table.names)} column{'s' if len(table.names) > 1 else ''}"
    return [
        f"{a['data']}: {rows}, {columns} to predict {table.target} "
        f"(mean {_own(a['target_centre'], zeros='')}, standard deviation {_own(a['target_scale'], zeros='')})",
        f"The fitted model takes {a['noise']:.0%} of the target's variance for noise. Grade of the forecast: "
        f"{a['grade']}.",
    ]


def _within(result: xr.Dataset) -> Table:
    """The learning curve of samples of the data."""
    checked = "check_oob_error" in result
    more = ("real bootstrap", "") if checked else ()
    names = ("examples", "error", "± s.e.", "RMSE", "found by")
    grid = _grid(*names, *more)
    for i, m in enumerate(result["bootstrap"].values):
        one = result.isel(bootstrap=i)
        source = str(one["source"].values)
        bars = "" if source != "draws" else digits.number(one["oob_error_stderr"], 2)
        cells = [_count(m), digits.number(one["oob_error"]), bars, _own(one["oob_rmse"])]
        cells.append(source)
        if checked:
            cells.append(digits.with_error(one["check_oob_error"], one["check_oob_error_stderr"]))
            cells.append("[green]agrees[/]" if _agree(result)[i] else "[bold red]DIFFERS[/]")
        grid.add_row(*cells)
    return grid


def _agree(result: xr.Dataset) -> np.ndarray:
    """Where theory or draws and the real bootstrap agree: within three standard errors of both, or nearly equal."""
    ours, theirs = result["oob_error"].values, result["check_oob_error"].values
    bars = np.hypot(result["oob_error_stderr"].values, result["check_oob_error_stderr"].values)
    return np.abs(ours - theirs) <= np.maximum(3 * bars, ALIKE * np.abs(theirs))


def _check(result: xr.Dataset) -> list[str]:
    """One sentence on the real bootstrap, if there is one."""
    if "check_oob_error" not in result:
        return []
    alike = _agree(result)
    if alike.all():
        return ["The real bootstrap agrees with this at every size."]
    where = ", ".join(_count(m) for m in result["bootstrap"].values[~alike])
    return [f"The real bootstrap DIFFERS from this at {where} examples: trust the bootstrap there."]


def _estimates(result: xr.Dataset, table: io.Table) -> list[str]:
    """What the numbers mean, and other estimates of the error with all rows."""
    a = result.attrs
    names = {"leave_one_out": "leave-one-out", "error_632": ".632", "error_632plus": ".632+"}
    others = ", ".join(
        f"{word} {digits.number(a[name])}" for name, word in names.items() if np.isfinite(a.get(name, np.nan))
    )
    lines = [f"{ERRORS} RMSE is their square root in units of {table.target}."]
    return [*lines, f"With all rows, by other estimates: {others}."] if others else lines


def _ahead(result: xr.Dataset, shown: Sequence[int], *, wide: bool) -> Table:
    """The forecast at the sizes that were asked for, and at the rows at hand."""
    own = ("RMSE", "80% interval") if wide else ("RMSE",)
    grid = _grid("examples", "error", "80% interval", *own, "change", "80% interval")
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
            _count(m) + (" (now)" if now else "") + (" *" if bool(one["extended"]) else ""),
            digits.number(x["error"]), f"{digits.number(x['error_low'])} to {digits.number(x['error_high'])}",
            _own(x["rmse"]), *([f"{_own(x['rmse_low'])} to {_own(x['rmse_high'])}"] if wide else []),
            "" if now else f"{x['gain'] - 1:+.1%}",
            "" if now else f"{x['gain_low'] - 1:+.1%} to {x['gain_high'] - 1:+.1%}",
        )  # fmt: skip
    return grid


def _refusals(result: xr.Dataset, shown: Sequence[int]) -> list[str]:
    """The sizes of which nothing is said, and why; and what a star means."""
    why: dict[str, list[str]] = {}
    for m in shown:
        if reason := str(result["refused"].sel(examples=m).values):
            why.setdefault(reason, []).append(_count(m))
    lines = [f"No forecast for {', '.join(sizes)} examples: {reason}" for reason, sizes in why.items()]
    starred = result.sel(examples=list(shown))
    if np.any(starred["extended"].values.astype(bool) & (starred["refused"].values.astype(str) == "")):
        lines.append("* beyond what the rows themselves show, by a power law: less sure.")
    return lines


def _answers(result: xr.Dataset, wanted: Sequence[float], answer: Callable[[xr.Dataset, float], Any]) -> list[str]:
    """How many examples each wanted error takes; without one, a tenth less than now."""
    spoken = result.isel(examples=np.flatnonzero(result["refused"].values.astype(str) == ""))
    now = float((spoken["error"] / spoken["gain"]).values[0])
    scale, lines = float(result.attrs["target_scale"]), []
    for error in wanted or [BETTER * now]:
        aim = f"error {error:.3g} (RMSE {_own(scale * np.sqrt(error), zeros='')})"
        aim += "" if wanted else ", a tenth less than now,"
        try:
            lines.append(f"To reach {aim} you need {_range(spoken, *answer(result, error))}.")
        except InputError as reason:
            lines.append(_beyond(spoken, error, aim) or f"To reach {aim}: {reason}")
    return lines


def _range(spoken: xr.Dataset, low: float, high: float) -> str:
    """Between how many and how many examples, and what that means for the rows at hand."""
    first, last, rows = (float(x) for x in (spoken["examples"][0], spoken["examples"][-1], spoken.attrs["rows"]))
    if not np.isfinite(high):
        return (
            f"at least {_about(low)} examples; whether {_count(last)}, as far as the forecast goes, are enough is open"
        )
    words = f"at most {_about(high)} examples" if low <= first else f"between {_about(low)} and {_about(high)} examples"
    if low <= rows:
        words += f": the {_count(rows)} rows at hand {'are' if high <= rows else 'may be'} enough"
    return words


def _beyond(spoken: xr.Dataset, error: float, aim: str) -> str:
    """What to say of an error that no size of the forecast reaches, or every one; otherwise nothing."""
    first, last = spoken.isel(examples=0), spoken.isel(examples=-1)
    if error < spoken["error_low"].min():
        there = f"{float(last['error']):.3g}, {float(last['error_low']):.3g} to {float(last['error_high']):.3g}"
        return (f"{aim[:1].upper()}{aim[1:]} is out of reach: with {_count(last['examples'])} examples, as far as the "
                f"forecast goes, it is {there} with 80% probability.")  # fmt: skip
    if error >= first["error_high"]:
        return f"{aim[:1].upper()}{aim[1:]} is reached with {_count(first['examples'])} examples already."
    return ""


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
    grid = _grid("row", str(table.target), "predicted without it", "miss", "share of all error")
    assert table.targets is not None
    miss, share = result["leave_one_out"].values, result["point_oob_error"].values
    write = digits.alike(float(result.attrs["target_scale"]))  # three digits of a usual deviation
    for i in result["worst"].values.astype(int):
        y = float(table.targets[i])
        cells = [write(y), write(y - miss[i]), write(miss[i], "+")]
        cells.append(f"{share[i] / share.sum():.1%}")
        grid.add_row(str(table.place(i)), *cells)
    return grid


def _own(value: Any, zeros: str = "#") -> str:
    """A number in the target's own units: four digits, and no powers of ten where people do not use them."""
    return digits.number(value, zeros=bool(zeros))


def _count(m: Any) -> str:
    """A number of examples."""
    return f"{float(m):,.0f}"


def _about(m: float) -> str:
    """A number of examples that is known to a factor of two at best: two digits of it."""
    digits = max(int(np.floor(np.log10(max(m, 1)))) - 1, 0)
    return f"{round(m / 10**digits) * 10**digits:,}"
