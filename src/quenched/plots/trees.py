"""The panel of an annealing: clusters as branches that split while the width falls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from quenched.core.figures import Panel

STEM, ROOT = 1.6, 1.4
"""How far, as a factor of the width, branches go on below the last split and above the first one."""
INK = "#4d4d4d"
THIN, THICK = 1.2, 6.0
"""Thickness of a branch without rows, and of one with all of them."""


def panel(data: xr.Dataset) -> Panel:
    """Axes and words of the picture."""
    unit = "share of each feature's variance" if data.attrs.get("relative") else "a variance"
    words, note = f"width at which a cluster splits ({unit})", "Percentages and thickness: share of the rows."
    return Panel("component", words, (), ylim=_ends(data), log="y", note=note)


def _ends(data: xr.Dataset) -> tuple[float, float]:
    """The lowest and the highest width that is drawn."""
    widths = data["width"].values if data.sizes["split"] else np.ones(1)
    return float(widths.min()) / STEM, float(widths.max()) * ROOT


def _places(data: xr.Dataset) -> tuple[dict[int, float], list[int]]:
    """The abscissa of every node, a parent in the middle of its halves, and the leaves from left to right."""
    halves = {
        int(c): [int(h) for h in into] for c, into in zip(data["cluster"].values, data["into"].values, strict=True)
    }
    leaves: list[int] = []

    def visit(node: int) -> None:
        for half in halves.get(node, ()):
            visit(half)
        if node not in halves:
            leaves.append(node)

    visit(0)
    place = {node: float(i) for i, node in enumerate(leaves)}
    for node in sorted(halves, reverse=True):  # halves have larger numbers than what they come from
        place[node] = float(np.mean([place[half] for half in halves[node]]))
    return place, leaves


def paint(ax: Axes, data: xr.Dataset, palette: Sequence[str]) -> None:
    """Draw the tree: a branch falls from the split it came from to the one it ends in; final clusters have colours."""
    place, leaves = _places(data)
    low, high = _ends(data)
    share, top = data["share"].values, {0: high}
    end = dict(zip(data["cluster"].values.tolist(), data["width"].values.tolist(), strict=True))
    for width, into in zip(data["width"].values, data["into"].values, strict=True):
        ax.plot([place[int(h)] for h in into], [width, width], color=INK, lw=1.4, solid_capstyle="projecting", zorder=1)
        top |= {int(h): float(width) for h in into}
    beside: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 9.5}
    names = []
    for node, x in place.items():
        colour = palette[leaves.index(node) % len(palette)] if node in leaves else INK
        bottom, thickness = end.get(node, low), THIN + (THICK - THIN) * float(share[node])
        ax.plot([x, x], [top[node], bottom], color=colour, lw=thickness, solid_capstyle="butt", zorder=2)
        if node in leaves:
            mine = np.flatnonzero(data["leaf"].values == node)  # the components that a leaf is
            names.append(f"{mine[0]}{f'-{mine[-1]}' if len(mine) > 1 else ''}\n{share[node]:.0%}")
        else:
            ax.annotate(f"{share[node]:.0%}", (x, float(np.sqrt(top[node] * bottom))), (7, 0), **beside)
    ax.set_xticks(range(len(leaves)), names)
    ax.set_xlim(-0.6, len(leaves) - 0.4)
    ax.grid(False, axis="x")
