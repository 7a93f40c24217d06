"""What the terminal shows: tables and lines, a few numbers of a result, agreement, and the fields of a science."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from quenched.cli import digits, options
from quenched.core.figures import Section

ROWS = 12
"""Quantities shown."""
COLUMNS = 5
"""Points shown."""
WORDS = ("phase", "state")
"""Quantities that are words."""
ABSENT = {"absent": "no such state"}
"""The outcome of a point at which a state was not lost but does not exist."""


VERDICTS = {
    r"\bagrees?\b|\bGrade A\b": "green", r"\bDISAGREE\b|\bDIFFERS\b|\bGrade refused\b": "bold red",
    r"\bGrade rough\b": "yellow",
}  # fmt: skip
"""Words that are verdicts, and their colours on a terminal."""
MOST_DIFFERENT, DIFFERENT = 3, "where it differs most, in standard deviations"
"""Columns named for one of several groups of rows, and the head of such a list."""


def say(console: Console, *lines: str, style: str = "") -> None:
    """Print lines; nothing in them is markup, and verdicts have colours."""
    for line in lines:
        console.print(coloured(line), style=style, highlight=False)


def coloured(line: str) -> Text:
    """A line with its verdicts in colour."""
    text = Text(line)
    for words, style in VERDICTS.items():
        text.highlight_regex(words, style)
    return text


def grid(*columns: tuple[str, Iterable[str]]) -> Table:
    """A table of numbers, from the names of columns and their cells."""
    heads = (Column(escape(name), justify="right", no_wrap=True) for name, _ in columns)
    table = Table(*heads, box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*row)
    return table


def most_different(off: np.ndarray, names: Sequence[str]) -> str:
    """The columns in which a group differs most from all rows, and by how many standard deviations."""
    most = np.argsort(-np.abs(off))[:MOST_DIFFERENT]
    return ", ".join(f"{names[i]} {off[i]:+.1f}" for i in most)


def titled(console: Console, title: str, table: Table) -> None:
    """Print a table below its title."""
    say(console, "")
    say(console, title, style="bold")
    console.print(table, highlight=False)


def show(result: xr.Dataset, console: Console) -> None:
    """Print some of a result: quantities down, points of the sweep across; of several states the lowest."""
    every, states = result, result.sizes.get("branch", 1)
    if states > 1 and "lowest" in result:
        result = _lowest(result)
    names = _quantities(result)
    spots, dims = _spots(result, names)
    table = Table("", box=None, pad_edge=False, header_style="bold")
    for spot in spots:
        there = {d: result[d].values[i] for d, i in spot.items()}
        words = (f"{d} = {x:.4g}" if isinstance(x, (float, np.floating)) else f"{d} = {x}" for d, x in there.items())
        table.add_column("\n".join(words), justify="right")
    rows = [(label, name, place) for name in names for label, place in _components(result, name, dims)]
    for label, name, place in rows[:ROWS]:
        table.add_row(label, *(_value(result, name, {**place, **spot}) for spot in spots))
    console.print(table)
    if result is not every:
        said = f"at each point the state of least free energy, of up to {states}: --branch NAME shows one of them"
        say(console, said, style="dim")
    say(console, *_remarks(result, len(rows), len(spots), dims), style="dim")


def _lowest(result: xr.Dataset) -> xr.Dataset:
    """The state of least free energy at each point, by its name."""
    return (
        result.isel(branch=result["lowest"].argmax("branch"))
        .drop_vars("lowest")
        .reset_coords("branch")
        .rename(branch="state")
    )


def _quantities(result: xr.Dataset) -> list[str]:
    """Order parameters, single numbers first; words (but for a phase or state) and truths are no quantities."""
    aside = ("runs", "failed", "outcome", "residual")
    names = [str(n) for n, x in result.data_vars.items() if n not in aside and (x.dtype.kind in "fiu" or n in WORDS)]
    names = [n for n in names if not n.endswith(("_stderr", "_run"))]
    return sorted(names, key=lambda n: result[n].ndim)


def _spots(result: xr.Dataset, names: list[str]) -> tuple[list[dict[str, int]], list[str]]:
    """A few points spread over the sweep, and the dimensions of the sweep: those of the plainest quantity."""
    dims = [str(d) for d in result[names[0]].dims]
    shape = [result.sizes[d] for d in dims]
    chosen = np.unique(np.linspace(0, int(np.prod(shape)) - 1, COLUMNS).astype(int))
    return [{d: int(i) for d, i in zip(dims, np.unravel_index(k, shape), strict=True)} for k in chosen], dims


def _components(result: xr.Dataset, name: str, dims: list[str]) -> list[tuple[str, dict[str, int]]]:
    """Labels and places of the components of a quantity; half of a symmetric one."""
    inner = [str(d) for d in result[name].dims if d not in dims]
    found = []
    for index in np.ndindex(*(result.sizes[d] for d in inner)):
        place = dict(zip(inner, index, strict=True))
        if any(f"{d}2" in place and place[d] > place[f"{d}2"] for d in place):
            continue
        values = [str(result[d].values[i]) for d, i in place.items()]
        signs = {"1": "+", "-1": "-"}
        short = "".join(signs[v] for v in values) if set(values) <= set(signs) else f"[{', '.join(values)}]"
        found.append((name + short, place))
    return found


def _value(result: xr.Dataset, name: str, place: dict[str, int]) -> str:
    """One number, with its standard error if it has one."""
    there = result.isel(place, missing_dims="ignore")
    value = there[name]
    if value.dtype.kind != "U" and np.isnan(value) and "outcome" in there:
        value = there["outcome"]
    if value.dtype.kind == "U":
        return ABSENT.get(str(value.values), str(value.values))
    return digits.with_error(value, there[f"{name}_stderr"]) if f"{name}_stderr" in there else digits.number(value)


def _remarks(result: xr.Dataset, rows: int, spots: int, dims: list[str]) -> list[str]:
    """What the table leaves out, and what went wrong."""
    points = int(np.prod([result.sizes[d] for d in dims]))
    lines = []
    if points > spots or rows > ROWS:
        lines.append(f"{spots} of {points} points and {min(rows, ROWS)} of {rows} quantities shown")
    outcomes = result["outcome"].values if "outcome" in result else np.empty(0, str)
    for outcome, said in ABSENT.items():
        if none := int((outcomes == outcome).sum()):
            lines.append(f"{said} at {none} of {outcomes.size} points")
    lost = outcomes[~np.isin(outcomes, ["converged", *ABSENT])]
    if lost.size:
        lines.append(f"{lost.size} of {outcomes.size} points are not converged: {', '.join(sorted({*map(str, lost)}))}")
    if "stability" in result and (broken := int((result["stability"] > 1).sum())):
        lines.append(f"stability above 1 at {broken} of {result['stability'].size} points: replica symmetry is broken "
                     "there, and the theory an approximation")  # fmt: skip
    if "failed" in result:
        failed, runs = int(result["failed"].sum()), int(result["runs"].min())
        lines.append(f"{runs} runs, {failed} failed" if failed else f"mean ± standard error over {runs} runs")
    return lines


def agreement_table(sections: Sequence[Section], console: Console) -> None:
    """Print every comparison of theory and simulation."""
    columns = "figure", "comparison", Column("p", justify="right"), "largest deviation", "verdict"
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for figure in (figure for section in sections for figure in section.figures):
        name = figure.key if len(sections) > 1 else figure.key.rpartition("/")[2]
        for comparison, one in figure.agreement.items():
            verdict = "[green]agree[/]" if one.passed else "[bold red]DISAGREE[/]"
            table.add_row(
                name, comparison, one.chance.removeprefix("= "), f"{one.largest:.2f} standard errors", verdict
            )
        if not figure.agreement:
            table.add_row(name, "[dim]nothing to compare[/]")
    console.print(table)


def explain(found: options.Science, verb: Callable[..., Any], console: Console) -> None:
    """Print the controls, laws and rules of a science and their fields."""
    console.print(f"\n[bold]Controls of {found.name}[/] (a value 0.8, a list 1,2,5 or a range 0:50:501)")
    words = _documented(verb)
    _print_fields(console, {name: (p.default, words.get(name, "")) for name, p in options.verb_keywords(verb).items()})
    for title, table in (("Laws, --law", found.laws), ("Rules, --rule", found.rules)):
        console.print(f"\n[bold]{title}[/]")
        before: dict[str, Any] = {}
        for name, cls in table.items():
            console.print(f"[cyan]{name}[/]  {_plain((cls.__doc__ or '').strip().splitlines()[0])}", highlight=False)
            words = {name: text for base in reversed(cls.__mro__) for name, text in _documented(base).items()}
            fields = {f.name: (f.default, words.get(f.name, "")) for f in dataclasses.fields(cls)}
            if fields != before:  # rules often have the same fields, which are then printed once
                _print_fields(console, fields)
            before = fields
    if found.starts:
        forms = ", ".join(f"{name} ({form})" for name, form in found.start_forms.items())
        console.print(f"\n[bold]Starts, --start[/]\n{forms}", highlight=False)
    console.print(f"\n[bold]Simulators, --simulator[/]\n{', '.join(found.simulators)}", highlight=False)


def _print_fields(console: Console, fields: dict[str, tuple[Any, str]]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 2))
    for name, (default, words) in fields.items():
        none = any(default is nothing for nothing in (dataclasses.MISSING, inspect.Parameter.empty, None))
        table.add_row(f"--{name.replace('_', '-')}", "" if none else f"{default}", words)
    console.print(table, highlight=False)


def _documented(thing: Any) -> dict[str, str]:
    """The entries below `Args:` or `Attributes:` of a docstring: lines "    name: words", continued further in."""
    parts = re.findall(r"^(?:Args|Attributes):\n((?: +.*\n?|\n)+)", inspect.cleandoc(thing.__doc__ or ""), re.MULTILINE)
    entries = re.findall(r"^ {4}(\S.*?): (.*(?:\n {5,}.*)*)", "\n".join(parts), re.MULTILINE)
    return {name: _plain(words) for name, words in entries}


def _plain(text: str) -> str:
    """Text without the signs of mathematics, which a terminal cannot set, and of markup."""
    for sign, plain in (("$", ""), (r"\cdot", "·"), ("\\", " ")):
        text = text.replace(sign, plain)
    return escape(" ".join(text.split()).replace("( ", "("))
