"""One series on axes, by its kind: lines that break where the state changes, points with bars, areas and images."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from quenched.core.figures import Kind, Series
from quenched.plots.choice import ABSENT

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can distinguish; without yellow, which is faint on white."""

MARKERS = "osD^vPX"
GREY = "#767676"
FRAME = "#D55E00"
DASHES: tuple[Any, ...] = ("--", "-.", ":", (0, (8, 2, 1, 2, 1, 2)), (0, (1, 4)))
"""Of reference lines, in their order; none is solid, as theory is."""
SHAKY = (0, (4, 2))
"""Dashes of a theory where it is unstable or an approximation."""
NODE = 30.0
"""Width of a node in points."""
LEAP = 1.5
"""A step of a line to another state is a jump if it is so many times as long as those beside it."""
SIGNS = 6
"""Markers along a line that needs them to be told from others."""
SHADES = LinearSegmentedColormap.from_list("shades", ("#ffffff", "#dbe7f1", "#9fc3de", "#5798c4", "#1d6a9f", "#08304f"))
"""Of images: the least value is as white as the page, so that lines and rows are seen on it."""


def draw_series(ax: Axes, series: Series, colour: Any, marker: str, dashes: Any, *, faint: bool = False) -> Any:
    """Draw one series by its kind and return its handle for the legend."""
    x, y = np.asarray(series.x), np.asarray(series.y, float)
    if series.kind is Kind.simulation:
        bars = None if series.yerr is None else np.where(np.isfinite(series.yerr), series.yerr, np.nan)
        look = {"ms": 5.5, "mfc": "white", "mew": 1.3, "elinewidth": 1.3, "capsize": 2.5}
        return ax.errorbar(x, y, bars, fmt=marker, color=colour, zorder=3, **look)
    if series.kind is Kind.cloud:
        return ax.plot(x, y, marker, color=colour, ms=3.6, alpha=0.55, mew=0, rasterized=True)[0]
    if series.kind is Kind.row:
        return ax.plot(x, y, "o", color="black", ms=4.2, mec="white", mew=0.9, ls="none", zorder=4, clip_on=False)[0]
    if series.kind is Kind.cell:
        return _frame_cells(ax, series)
    if series.kind is Kind.mark:
        return ax.plot(x, y, "P", color="black", ms=11, mec="white", mew=1.2, ls="none", zorder=4)[0]
    if series.kind is Kind.node:
        return _draw_nodes(ax, series, colour)
    if series.kind is Kind.arrow:
        return _draw_arrows(ax, series)
    if series.kind is Kind.band:
        low, high = (np.asarray(edge, float) for edge in (series.low, series.high))
        return ax.fill_between(x.astype(float), low, high, color=colour, alpha=0.18, lw=0, zorder=1)
    if series.kind is Kind.reference:
        x, y, _ = _broken_at_jumps(series)
        return ax.plot(x, y, color=GREY, lw=1.2, ls=dashes, zorder=1)[0]
    return _draw_theory(ax, series, colour, marker, faint=faint)


def _draw_theory(ax: Axes, series: Series, colour: Any, marker: str, *, faint: bool) -> Line2D:
    """A line: solid where it can be trusted, dashed elsewhere; its handle is solid only if some of it is."""
    x, y, shaky = _broken_at_jumps(series)
    touching = shaky | np.append(shaky[1:], False) | np.append(False, shaky[:-1])
    look: dict[str, Any] = {"color": colour, "lw": 0.8 if faint else 1.8, "alpha": 0.45 if faint else 1.0, "zorder": 2}
    (dashed,) = ax.plot(x, np.where(touching, y, np.nan), ls=SHAKY, **look)
    alone = np.isfinite(y) & np.isnan(np.append(np.nan, y[:-1])) & np.isnan(np.append(y[1:], np.nan))
    ax.plot(x[alone], y[alone], ".", color=colour, ms=7, zorder=2)  # a line of one point would not be seen
    (solid,) = ax.plot(x, np.where(shaky, np.nan, y), **look)
    handle = dashed if np.any(shaky & np.isfinite(y)) and not np.any(~shaky & np.isfinite(y)) else solid
    if not marker:
        return handle
    there = np.flatnonzero(np.isfinite(y))
    signs = there[np.unique(np.linspace(0, len(there) - 1, SIGNS).astype(int))] if len(there) else there
    sign: dict[str, Any] = {"marker": marker, "ms": 5.5, "mfc": "white", "mew": 1.3, "color": colour}
    ax.plot(x[signs], y[signs], ls="none", zorder=3, **sign)
    return Line2D([], [], lw=1.8, ls=handle.get_linestyle(), **sign)


def _broken_at_jumps(series: Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Abscissa, ordinate and where it is shaky, with a gap wherever a state takes over from another one elsewhere."""
    x, y = np.asarray(series.x), np.asarray(series.y, float)
    shaky = np.zeros(y.shape, bool) if series.unstable is None else np.asarray(series.unstable, bool)
    if series.state is None:
        return x, y, shaky
    state = np.asarray(series.state)
    step = np.abs(np.diff(y))
    usual = np.fmax(
        np.append(0.0, step[:-1]), np.append(step[1:], 0.0)
    )  # a branch may change its name where it goes on
    cuts = np.flatnonzero((state[1:] != state[:-1]) & ~(step <= LEAP * usual)) + 1
    middle = (x[cuts - 1].astype(float) + x[cuts]) / 2
    return np.insert(x.astype(float), cuts, middle), np.insert(y, cuts, np.nan), np.insert(shaky, cuts, shaky[cuts])


def _frame_cells(ax: Axes, series: Series) -> Line2D:
    """Frames around the cells of an image whose middles are given, one apart from each other."""
    look: dict[str, Any] = {"color": FRAME, "lw": 2.2}
    for x, y in zip(series.x, series.y, strict=True):
        ax.add_patch(Rectangle((float(x) - 0.5, float(y) - 0.5), 1, 1, fill=False, zorder=4, **look))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    return Line2D([], [], marker="s", ms=9, mfc="none", mec=FRAME, mew=2.0, ls="none")


def _draw_nodes(ax: Axes, series: Series, colour: Any) -> Line2D:
    """Circles with names in them."""
    look: dict[str, Any] = {"marker": "o", "mec": colour, "mew": 1.6, "ls": "none", "mfc": "white"}
    ax.plot(series.x, series.y, ms=NODE, zorder=3, **look)
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 11, "zorder": 4}
    for x, y, name in zip(series.x, series.y, () if series.names is None else series.names, strict=True):
        ax.text(float(x), float(y), str(name), **middle)
    return Line2D([], [], ms=9, **look)


def write_words(ax: Axes, series: Series) -> None:
    """Words at their places, on white so that a line behind them does not cross them."""
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 12, "style": "italic", "zorder": 4}
    for x, y, name in zip(series.x, series.y, () if series.names is None else series.names, strict=True):
        ax.text(float(x), float(y), str(name), **look, bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 1.5})


def _draw_arrows(ax: Axes, series: Series) -> Line2D:
    """Arrows that end where a node would begin."""
    look = {"arrowstyle": "-|>", "color": GREY, "lw": 1.3, "shrinkA": NODE / 2, "shrinkB": NODE / 2 + 1}
    for x, y, end in zip(series.x, series.y, np.asarray(series.ends, float), strict=True):
        ax.annotate("", tuple(end), (float(x), float(y)), arrowprops=look, zorder=2)
    return Line2D([], [], color=GREY, lw=1.3, marker=">", ms=5)


def draw_image(ax: Axes, series: Series, limits: tuple[float, float]) -> None:
    """Draw a function of two variables as colours from `limits`, with their scale beside it."""
    values = np.asarray(series.values, float)
    look: dict[str, Any] = {"cmap": SHADES, "norm": Normalize(*limits), "shading": "nearest", "zorder": 1}
    shown = ax.pcolormesh(series.x, series.y, values.T, **look)
    bar = ax.figure.colorbar(shown, ax=ax)
    bar.set_label(series.label, fontsize=11)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def mark_unsettled(ax: Axes, series: Series, colour: Any) -> None:
    """Put a cross on each point that did not converge: at its value, or on the lower edge if it has none."""
    x, y = np.asarray(series.x), np.asarray(series.y, float)
    lost = ~np.isin(series.marks, ("", ABSENT))
    there, gone = np.flatnonzero(lost & np.isfinite(y)), np.flatnonzero(lost & ~np.isfinite(y))
    gone = gone[:: max(1, len(gone) // 24)]  # a row of crosses, not a bar of ink
    look = {"color": colour, "ms": 7, "mew": 1.6, "ls": "none", "zorder": 5}
    ax.plot(x[there], y[there], "x", **look)
    ax.plot(x[gone], np.full(len(gone), 0.025), "x", transform=ax.get_xaxis_transform(), **look)
