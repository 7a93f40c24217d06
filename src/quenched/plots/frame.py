"""What stands around a panel: labels, ticks, notes and a second scale."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from quenched.core.figures import Panel, Scale
from quenched.plots.series import GREY

LONGEST_LABEL = 40
"""Longest label of an ordinate in one line."""
NOTE_WIDTH = 98
"""Characters in a line of a note."""
TICKS = {4: (1,), 2: (1, 3), 1: (1, 2, 5), 0.5: (1, 1.5, 2, 3, 5, 7), 0: ()}
"""Decades of a logarithmic axis, and its ticks within a decade; an axis below half a decade is like a linear one."""
LOWEST_PLAIN, HIGHEST_PLAIN = 1e-3, 1e7
"""Numbers between these are written without powers of ten."""


def dress(ax: Axes, panel: Panel) -> None:
    """Labels, limits and a light frame."""
    ax.set_xlabel(panel.x, fontsize=11)
    ax.set_ylabel(_broken(panel.y), fontsize=11)
    if panel.title:
        ax.set_title(panel.title, fontsize=11.5)
    ax.set(**{f"{name}scale": "log" for name in panel.log})
    ax.set(**{name: limits for name in ("xlim", "ylim") if (limits := getattr(panel, name))})
    for name in panel.log:
        _plain_ticks(ax.xaxis if name == "x" else ax.yaxis)
    if panel.equal:
        ax.set_aspect("equal", adjustable="box")
    ax.tick_params(labelsize=10, direction="out")
    ax.grid(True, color="#e6e6e6", lw=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if not panel.frame:
        ax.set_axis_off()
        ax.margins(0.14)
    if panel.note:
        below = {"textcoords": "offset points", "va": "top", "fontsize": 9, "color": GREY}
        under: Any = ("axes fraction", ax.xaxis.label)  # however many lines the ticks have
        ax.annotate("\n".join(textwrap.wrap(panel.note, NOTE_WIDTH)), (0, 0), (0, -8), under, **below)
    if panel.right is not None:
        _second_scale(ax, panel.right, log="y" in panel.log)


def _broken(label: str) -> str:
    """A long label in two lines, the unit below."""
    return label.replace(" (", "\n(", 1) if len(label) > LONGEST_LABEL else label


def _plain_ticks(axis: Axis) -> None:
    """Ticks of a logarithmic axis in plain numbers: 200 and 0.45 rather than powers of ten."""
    low, high = axis.get_view_interval()
    if not LOWEST_PLAIN <= low < high <= HIGHEST_PLAIN:
        return
    decades = np.log10(high / low)
    few = next(ticks for least, ticks in TICKS.items() if decades > least)
    axis.set_major_locator(LogLocator(subs=few) if few else MaxNLocator(6, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"))
    axis.set_minor_formatter(NullFormatter())
    if decades <= 1:
        axis.set_minor_locator(NullLocator())


def _second_scale(ax: Axes, scale: Scale, *, log: bool) -> None:
    """A scale on the right that shows another measure of the same quantity."""

    def there(y: Any) -> Any:
        return scale.factor * np.maximum(y, 0) ** scale.power

    def back(value: Any) -> Any:
        return (np.maximum(value, 0) / scale.factor) ** (1 / scale.power)

    right = ax.secondary_yaxis("right", functions=(there, back))
    right.set_ylabel(_broken(scale.label), fontsize=11)
    right.tick_params(labelsize=10, direction="out")
    if log:
        right.yaxis.set_view_interval(*(there(edge) for edge in ax.get_ylim()), ignore=True)
        _plain_ticks(right.yaxis)
