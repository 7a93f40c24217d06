"""Legends: what stands in them, and where they hide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from quenched.core.figures import Kind, Panel, Series
from quenched.plots.choice import ABSENT
from quenched.plots.series import GREY, SHAKY

MOST_LABELS = 14
"""Entries of a legend before it is thinned."""
MOST_LINES = 8
"""Lines of a panel that are told apart by more than their shade; of more the rest is faint."""
SHORT_LABEL = 26
"""Longest entry of a legend beside the axes; longer ones go below."""
BELOW = 0.55
"""Inches from the axes down to a legend of their own: below ticks and label."""
MOST_ROWS, ROW = 4, 0.21
"""Rows of a legend below the axes for which a figure has room, and the inches that each further one adds."""

Entries = dict[str, tuple[Any, ...]]
"""What is drawn beside each name."""


def place(figure: Figure, axes: list[Axes], legends: list[Entries], key: Entries, *, beside: bool) -> None:
    """Beside one panel, if there is room; below several: together if they share entries, or each below its own."""
    every = {name: entry for legend in legends for name, entry in legend.items()}
    shared = sum(map(len, legends)) > len(every) and len(every) <= MOST_LABELS
    wide = float(figure.get_size_inches()[0])
    if beside and len(axes) == 1 and max(map(len, every | key), default=0) <= SHORT_LABEL:
        write(figure, every | key, "outside right upper", columns=1)
    elif len(axes) == 1 or shared:
        write(figure, every | key, "outside lower center", columns=count_columns(every | key, wide))
    else:
        narrow = wide / len({ax.get_position().x0 for ax in axes})
        rows = -(-len(key) // count_columns(key, wide)) + max(
            -(-len(one) // count_columns(one, narrow)) for one in legends
        )
        figure.set_figheight(figure.get_figheight() + ROW * max(0, rows - MOST_ROWS))
        write(figure, key, "outside lower center", columns=count_columns(key, wide))
        for ax, legend in zip(axes, legends, strict=True):
            columns = count_columns(legend, narrow)
            below = ax.transAxes + ScaledTranslation(0, -BELOW, figure.dpi_scale_trans)
            anchor = {"bbox_to_anchor": (0.5, 0.0), "bbox_transform": below}
            write(ax, legend if len(legend) > 1 else {}, "upper center", columns=columns, **anchor)


def count_columns(entries: Entries, inches: float) -> int:
    """How many columns of a legend fit."""
    longest = max((len(name.replace("$", "").replace("_{", "")) for name in entries), default=0)
    return max(1, min(len(entries), int(inches * 11 / (longest + 7))))


def spread(names: Sequence[str], most: int) -> list[str]:
    """Some of many names, evenly spread."""
    return [names[int(i)] for i in np.unique(np.linspace(0, len(names) - 1, most).astype(int))]


def thin(entries: Entries, marked: Sequence[str], lines: Sequence[str]) -> Entries:
    """The entries without some where they are many, and a word that says so.

    Args:
        entries: of a panel.
        marked: lines that have a marker, if lines are too many for colours of their own.
        lines: the names of all lines.
    """
    if not marked and len(entries) <= MOST_LABELS:
        return entries
    kept = marked or spread(list(entries), MOST_LINES)
    left = len([name for name in entries if name in lines]) - len(kept) if marked else len(entries) - len(kept)
    rest = {f"and {left} between": (Line2D([], [], color=GREY, lw=0.8, alpha=0.6, ls="-" if marked else "none"),)}
    others = {name: entry for name, entry in entries.items() if marked and name not in lines}
    return {name: entries[name] for name in kept} | (rest if left else {}) | others


def is_solid(series: Series) -> bool:
    """Whether some of a theory's line is drawn solid."""
    shaky = np.zeros(np.shape(series.y), bool) if series.unstable is None else np.asarray(series.unstable, bool)
    return bool(np.any(np.isfinite(np.asarray(series.y, float)) & ~shaky))


def make_key(panel: Panel, *, solid: bool) -> Entries:
    """Legend entries, in grey, for the meaning of lines, points and crosses."""
    key: Entries = {}
    if panel.key and {Kind.theory, Kind.simulation} <= {series.kind for series in panel.series}:
        if solid:
            key["theory"] = (Line2D([], [], color=GREY, lw=1.8),)
        key["simulation ± 1 s.e."] = (Line2D([], [], color=GREY, marker="o", mfc="white", mew=1.3, ms=5.5, ls="none"),)
    for series in panel.series:
        if series.unstable is not None and np.any(series.unstable):
            key[series.dashes if solid else f"theory, {series.dashes}"] = (
                Line2D([], [], color=GREY, lw=1.8, ls=SHAKY),
            )
    words = dict.fromkeys(str(word) for series in panel.series for word in series.marks if word)
    if words.pop(ABSENT, "") is None:
        key["no line: no such state"] = (Line2D([], [], ls="none"),)
    if words:
        key[" or ".join(words)] = (Line2D([], [], color=GREY, marker="x", ms=7, mew=1.6, ls="none"),)
    return key


def write(where: Axes | Figure, entries: Entries, loc: str, *, columns: int, **options: Any) -> None:
    """A legend in which line and points of one quantity are one entry."""
    if not entries:
        return
    handles: list[Any] = [  # of an error bar its points: whole bars look crowded in a legend
        tuple(one.lines[0] if isinstance(one, ErrorbarContainer) else one for one in handles)
        for handles in entries.values()
    ]
    look: dict[str, Any] = {"loc": loc, "frameon": False, "fontsize": 10, "handlelength": 2.2, "columnspacing": 1.6}
    where.legend(handles, list(entries), ncols=columns, **look, **options)
