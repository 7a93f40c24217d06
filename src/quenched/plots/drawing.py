"""Drawing panels with matplotlib, without pyplot: nothing global changes and no screen is needed."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from quenched.core import checks, figures
from quenched.core.figures import Kind, Panel, Scale, Series
from quenched.core.types import InputError
from quenched.plots import choice, panels, phases
from quenched.plots.choice import ABSENT

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind readers can distinguish; without yellow, which is faint on white."""

MARKERS = "osD^vPX"
GREY = "#767676"
DASHES: tuple[Any, ...] = ("--", "-.", ":", (0, (8, 2, 1, 2, 1, 2)), (0, (1, 4)))
"""Of reference lines, in their order; none is solid, as theory is."""
MOST_LABELS = 14
"""Entries of a legend before it is thinned."""
SHORT_LABEL = 26
"""Longest entry of a legend beside the axes; longer ones go below."""
LONGEST_LABEL = 40
"""Longest label of an ordinate in one line."""
NODE = 30.0
"""Width of a node in points."""
BELOW = 0.55
"""Inches from the axes down to a legend of their own: below ticks and label."""
NOTE_WIDTH = 98
"""Characters in a line of a note."""
TICKS = {4: (1,), 2: (1, 3), 1: (1, 2, 5), 0.5: (1, 1.5, 2, 3, 5, 7), 0: ()}
"""Decades of a logarithmic axis, and its ticks within a decade; an axis below half a decade is like a linear one."""
LOWEST_PLAIN, HIGHEST_PLAIN = 1e-3, 1e7
"""Numbers between these are written without powers of ten."""


OWN_PANELS: dict[str, Callable[[xr.Dataset], Panel | list[Panel]]] = {
    "calibration": panels.show_calibration,
    "forecast": panels.show_forecast,
    "forecasts": panels.show_forecasts,
    "selection": panels.show_doubtful,
    "density": panels.show_density,
    "conditional density": panels.show_density,
    "potential": panels.show_potential,
    "tree of fields": panels.show_edges,
}
"""Results that have a panel of their own, by their source."""
PAINTED = {
    "annealing": (panels.show_tree, panels.paint_tree),
    "clusters": (panels.show_tree, panels.paint_tree),
    "metric": (panels.show_metric, panels.paint_metric),
}
"""Results that are painted on axes of their own: the panel, and what paints it."""

_Entries = dict[str, tuple[Any, ...]]
_Inks = dict[str, tuple[Any, str]]
"""The colour and the marker of each group."""


def plot(
    *results: xr.Dataset | figures.Figure,
    ax: Axes | Sequence[Axes] | None = None,
    variables: Sequence[str] | str | None = None,
    x: str | None = None,
) -> Figure:
    """Draw theories as lines and simulations as points, one pair of axes for each variable; or draw a forecast.

    Args:
        *results: datasets from `curve`, `measure` or `asymptote`, in any number; or one from `forecast`; or the
            `splits_` of an annealed mixture or the `splits` of clusters, drawn as a tree; or what `describe` of a
            fitted density or potential, or `metric` of learned prototypes gives; or one figure of a paper; or one from
            `transitions` or `phase_lines`, drawn as one phase diagram with the names of its regions.
        ax: axes to draw on, one for each variable; by default a new figure.
        variables: what to draw; by default every order parameter.
        x: the control on the abscissa; by default `alpha` or `examples`, or else the first swept control.

    Returns:
        The matplotlib figure; `.savefig("x.png")` writes it.

    Raises:
        InputError: if there is nothing to draw, or not on these axes.

    Examples:
        >>> import quenched, numpy as np
        >>> from quenched import prototypes
        >>> curve = prototypes.curve(prototypes.TwoClusters(0.8), prototypes.LVQ1(0.2), alpha=np.linspace(0, 50, 51))
        >>> picture = quenched.plot(curve, variables="error")
    """
    if len(results) == 1 and isinstance(results[0], figures.Figure):
        return draw(results[0])
    datasets = [r for r in results if isinstance(r, xr.Dataset)]
    if not datasets or len(datasets) < len(results):
        raise InputError("Argument `results` must be datasets, or one figure of a paper, "
                         f"but {[type(r).__name__ for r in results]} was given.")  # fmt: skip
    painted = PAINTED.get(str(datasets[0].attrs.get("source"))) if len(datasets) == 1 else None
    if painted and "seen" in datasets[0]:
        datasets = [panels.seen_splits(datasets[0])]
    if painted:
        whom, advice, chosen = "such a picture", "", [painted[0](datasets[0])]
    else:
        names, chosen = _choose_panels(datasets, checks.names("variables", variables), x)
        whom, advice = f"each of {', '.join(names)}", ": choose with `variables`"
    axes = _new_axes(chosen) if ax is None else [*np.ravel(np.asarray(ax, dtype=object))]
    if not all(isinstance(one, Axes) for one in axes):
        raise InputError(f"Argument `ax` must be axes of matplotlib, but {ax!r} was given.")
    if len(axes) != len(chosen):
        raise InputError(f"Argument `ax` must be one axes for {whom}, but {len(axes)} was given{advice}.")
    figure = _render("", chosen, axes, own=ax is None)
    if painted:
        painted[1](axes[0], datasets[0], PALETTE)
    return figure


def _choose_panels(
    datasets: list[xr.Dataset], variables: Sequence[str] | None, x: str | None
) -> tuple[list[str], list[Panel]]:
    """Names and panels; a forecast or a density is one panel, unless `variables` or `x` is given."""
    if x is not None and not (isinstance(x, str) and any(x in data.dims for data in datasets)):
        raise InputError(f"Argument `x` must be a control that takes several values, but {x!r} is not one.")
    source = str(datasets[0].attrs.get("source"))
    if len(datasets) == 1 and not variables and not x and phases.is_phase_diagram(datasets[0]):
        return ["the phase diagram"], [phases.show_lines(datasets[0])]
    if len(datasets) == 1 and source in OWN_PANELS and not variables and not x:
        own = OWN_PANELS[source](datasets[0])
        own = own if isinstance(own, list) else [own]
        return [source] * len(own), own
    axis = x or choice.abscissa(datasets)
    names = list(variables or choice.variables(datasets, axis))
    if not names:
        raise InputError(f"Argument `results` must have numbers over {axis}, but they have none.")
    return names, [choice.panel(datasets, name, axis) for name in names]


def draw(figure: figures.Figure, *, title: bool = True) -> Figure:
    """Draw a figure of a paper with all its panels.

    Args:
        figure: what `papers.*.figure_*()` returns.
        title: whether to print its title above it.

    Returns:
        The matplotlib figure.
    """
    if not figure.panels:
        return plot(*figure.data.values())
    return _render(figure.title if title else "", figure.panels, _new_axes(figure.panels), own=True)


def _new_axes(panels: Sequence[Panel]) -> list[Axes]:
    """A new figure with room for the panels, side by side up to three."""
    columns = 2 if len(panels) in (2, 4) else min(len(panels), 3)
    rows = -(-len(panels) // columns)
    width = {1: 7.4, 2: 9.6, 3: 12.0}[columns]
    height = 4.4 if all(panel.right is None for panel in panels) else 5.4  # labels on both sides, legend below
    figure = Figure(figsize=(width, height * rows), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08, wspace=0.04)  # pyright: ignore[reportOptionalMemberAccess, reportCallIssue]
    return [figure.add_subplot(rows, columns, i + 1) for i in range(len(panels))]


def _render(title: str, panels: Sequence[Panel], axes: list[Axes], *, own: bool) -> Figure:
    """Paint every panel; on a figure of our own, put the legends where they hide nothing."""
    figure = axes[0].get_figure(root=True)
    assert figure is not None
    inks: _Inks = {}
    legends: list[_Entries] = []
    key: _Entries = {}
    for panel, ax in zip(panels, axes, strict=True):
        _choose_inks(inks, panel.series)
        legends.append(_paint(ax, panel, inks))
        key |= _key(panel)
    if not own:
        for ax, legend in zip(axes, legends, strict=True):
            _legend(ax, legend | key, "best", columns=1)
        return figure
    if title and len(axes) == 1 and not panels[0].title:
        axes[0].set_title(title, fontsize=13, pad=10)
    elif title:
        figure.suptitle(title, fontsize=13)
    _place_legends(figure, axes, legends, key, beside=all(panel.right is None for panel in panels))
    return figure


def _place_legends(figure: Figure, axes: list[Axes], legends: list[_Entries], key: _Entries, *, beside: bool) -> None:
    """Beside one panel, if there is room; below several: together if they share entries, or each below its own."""
    every = {name: entry for legend in legends for name, entry in legend.items()}
    shared = sum(map(len, legends)) > len(every) and len(every) <= MOST_LABELS
    wide = float(figure.get_size_inches()[0])
    if beside and len(axes) == 1 and max(map(len, every | key), default=0) <= SHORT_LABEL:
        _legend(figure, every | key, "outside right upper", columns=1)
    elif len(axes) == 1 or shared:
        _legend(figure, every | key, "outside lower center", columns=_columns(every | key, wide))
    else:
        _legend(figure, key, "outside lower center", columns=_columns(key, wide))
        for ax, legend in zip(axes, legends, strict=True):
            columns = _columns(legend, wide / len({ax.get_position().x0 for ax in axes}))
            below = ax.transAxes + ScaledTranslation(0, -BELOW, figure.dpi_scale_trans)
            anchor = {"bbox_to_anchor": (0.5, 0.0), "bbox_transform": below}
            _legend(ax, legend if len(legend) > 1 else {}, "upper center", columns=columns, **anchor)


def _columns(entries: _Entries, inches: float) -> int:
    """How many columns of a legend fit."""
    longest = max((len(name.replace("$", "").replace("_{", "")) for name in entries), default=0)
    return max(1, min(len(entries), int(inches * 11 / (longest + 7))))


def _choose_inks(inks: _Inks, every: Iterable[Series]) -> None:
    """Give every new group a colour that no other group of its panel has."""
    plain = (Kind.reference, Kind.mark, Kind.image, Kind.arrow, Kind.word)
    groups = list(dict.fromkeys(series.colour_of for series in every if series.kind not in plain))
    taken = {inks[g][0] for g in groups if g in inks}
    fresh = [g for g in groups if g not in inks]
    free = [colour for colour in PALETTE if colour not in taken]
    if len(fresh) > len(free):  # too many for distinct colours: a scale, in the order they come
        free = [tuple(c) for c in colormaps["viridis"](np.linspace(0, 0.92, len(fresh)))]
    for i, (group, colour) in enumerate(zip(fresh, free, strict=False)):
        inks[group] = colour, MARKERS[(i + len(taken)) % len(MARKERS)]


def _paint(ax: Axes, panel: Panel, inks: _Inks) -> _Entries:
    """Draw one panel and return the entries of its legend."""
    entries: _Entries = {}
    later: _Entries = {}
    labels = list(dict.fromkeys(series.label for series in panel.series))
    references = [series.label for series in panel.series if series.kind is Kind.reference]
    for series in panel.series:
        colour, marker = inks.get(series.colour_of, (GREY, "o"))
        if series.kind is Kind.image:
            _draw_image(ax, series)
            continue
        if series.kind is Kind.word:
            _write_words(ax, series)
            continue
        if series.colour_of != series.label:  # several sizes of one colour: a marker each
            marker = MARKERS[labels.index(series.label) % len(MARKERS)]
        dashes = DASHES[references.index(series.label) % len(DASHES)] if series.label in references else "-"
        handle = _draw_series(ax, series, colour, marker, dashes)
        chosen = later if series.kind in (Kind.reference, Kind.mark, Kind.arrow) else entries
        chosen[series.label] = (*chosen.get(series.label, ()), handle)
        _mark_unsettled(ax, series, colour)
    _dress(ax, panel)
    if len(entries) > MOST_LABELS:  # thin the legend, and say so
        kept = [list(entries)[i] for i in np.unique(np.linspace(0, len(entries) - 1, 8).astype(int))]
        rest = {f"and {len(entries) - len(kept)} between": (Line2D([], [], ls="none"),)}
        entries = {name: entries[name] for name in kept} | rest
    return entries | later


def _draw_series(ax: Axes, series: Series, colour: Any, marker: str, dashes: str) -> Any:
    """Draw one series by its kind and return its handle for the legend."""
    x, y = np.asarray(series.x), np.asarray(series.y, float)
    if series.kind is Kind.simulation:
        bars = None if series.yerr is None else np.where(np.isfinite(series.yerr), series.yerr, np.nan)
        look = {"ms": 5.5, "mfc": "white", "mew": 1.3, "elinewidth": 1.3, "capsize": 2.5}
        return ax.errorbar(x, y, bars, fmt=marker, color=colour, zorder=3, **look)
    if series.kind is Kind.cloud:
        return ax.plot(x, y, marker, color=colour, ms=3.6, alpha=0.55, mew=0, rasterized=True)[0]
    if series.kind is Kind.mark:
        return ax.plot(x, y, "P", color="black", ms=11, mec="white", mew=1.2, ls="none", zorder=4)[0]
    if series.kind is Kind.node:
        return _draw_nodes(ax, series, colour)
    if series.kind is Kind.arrow:
        return _draw_arrows(ax, series)
    if series.kind is Kind.reference:
        return ax.plot(x, y, color=GREY, lw=1.2, ls=dashes, zorder=1)[0]
    if series.kind is Kind.band:
        low, high = (np.asarray(edge, float) for edge in (series.low, series.high))
        return ax.fill_between(x.astype(float), low, high, color=colour, alpha=0.18, lw=0, zorder=1)
    shaky = np.zeros(y.shape, bool) if series.unstable is None else np.asarray(series.unstable, bool)
    touching = shaky | np.append(shaky[1:], False) | np.append(False, shaky[:-1])
    ax.plot(x, np.where(touching, y, np.nan), color=colour, lw=1.8, ls=(0, (4, 2)), zorder=2)
    alone = np.isfinite(y) & np.isnan(np.append(np.nan, y[:-1])) & np.isnan(np.append(y[1:], np.nan))
    ax.plot(x[alone], y[alone], ".", color=colour, ms=7, zorder=2)  # a line of one point would not be seen
    return ax.plot(x, np.where(shaky, np.nan, y), color=colour, lw=1.8, zorder=2)[0]


def _draw_nodes(ax: Axes, series: Series, colour: Any) -> Line2D:
    """Circles with names in them."""
    look: dict[str, Any] = {"marker": "o", "mec": colour, "mew": 1.6, "ls": "none", "mfc": "white"}
    ax.plot(series.x, series.y, ms=NODE, zorder=3, **look)
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 11, "zorder": 4}
    for x, y, name in zip(series.x, series.y, () if series.names is None else series.names, strict=True):
        ax.text(float(x), float(y), str(name), **middle)
    return Line2D([], [], ms=9, **look)


def _write_words(ax: Axes, series: Series) -> None:
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


def _draw_image(ax: Axes, series: Series) -> None:
    """Draw a function of two variables as colours, with their scale beside it."""
    shown = ax.pcolormesh(series.x, series.y, np.asarray(series.values).T, cmap="cividis", shading="nearest", zorder=1)
    bar = ax.figure.colorbar(shown, ax=ax)
    bar.set_label(series.label, fontsize=11)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def _mark_unsettled(ax: Axes, series: Series, colour: Any) -> None:
    """Put a cross on each point that did not converge: at its value, or on the lower edge if it has none."""
    x, y = np.asarray(series.x), np.asarray(series.y, float)
    lost = ~np.isin(series.marks, ("", ABSENT))
    there, gone = np.flatnonzero(lost & np.isfinite(y)), np.flatnonzero(lost & ~np.isfinite(y))
    gone = gone[:: max(1, len(gone) // 24)]  # a row of crosses, not a bar of ink
    look = {"color": colour, "ms": 7, "mew": 1.6, "ls": "none", "zorder": 5}
    ax.plot(x[there], y[there], "x", **look)
    ax.plot(x[gone], np.full(len(gone), 0.025), "x", transform=ax.get_xaxis_transform(), **look)


def _key(panel: Panel) -> _Entries:
    """Legend entries, in grey, for the meaning of lines, points and crosses."""
    key: _Entries = {}
    if panel.key and {Kind.theory, Kind.simulation} <= {series.kind for series in panel.series}:
        key["theory"] = (Line2D([], [], color=GREY, lw=1.8),)
        key["simulation ± 1 s.e."] = (Line2D([], [], color=GREY, marker="o", mfc="white", mew=1.3, ms=5.5, ls="none"),)
    for series in panel.series:
        if series.unstable is not None and np.any(series.unstable):
            key[series.dashes] = (Line2D([], [], color=GREY, lw=1.8, ls=(0, (4, 2))),)
    words = dict.fromkeys(str(word) for series in panel.series for word in series.marks if word)
    if words.pop(ABSENT, "") is None:
        key["no line: no such state"] = (Line2D([], [], ls="none"),)
    if words:
        key[" or ".join(words)] = (Line2D([], [], color=GREY, marker="x", ms=7, mew=1.6, ls="none"),)
    return key


def _legend(where: Axes | Figure, entries: _Entries, loc: str, *, columns: int, **options: Any) -> None:
    """A legend in which line and points of one quantity are one entry."""
    if not entries:
        return
    handles: list[Any] = [  # of an error bar its points: whole bars look crowded in a legend
        tuple(one.lines[0] if isinstance(one, ErrorbarContainer) else one for one in handles)
        for handles in entries.values()
    ]
    look: dict[str, Any] = {"loc": loc, "frameon": False, "fontsize": 10, "handlelength": 2.2, "columnspacing": 1.6}
    where.legend(handles, list(entries), ncols=columns, **look, **options)


def _dress(ax: Axes, panel: Panel) -> None:
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
        ax.annotate("\n".join(textwrap.wrap(panel.note, NOTE_WIDTH)), (0, 0), (0, -44), "axes fraction", **below)
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
