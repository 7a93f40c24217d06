"""Drawing panels with matplotlib, without pyplot: nothing global changes and no screen is needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from quenched.core import checks, figures
from quenched.core.figures import Kind, Panel, Series
from quenched.core.types import InputError
from quenched.plots import animation, choice, frame, legends, panels, phases, words
from quenched.plots.animation import Animation
from quenched.plots.series import (
    DASHES,
    GREY,
    MARKERS,
    PALETTE,
    draw_image,
    draw_series,
    mark_unsettled,
    write_words,
)

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

ABSCISSAE = {"forecast": "examples", "forecasts": "examples", "lines": "alpha"}
"""What is on the abscissa of these."""

_Inks = dict[str, tuple[Any, str]]
"""The colour and the marker of each group."""


@overload
def plot(
    *results: xr.Dataset | figures.Figure,
    ax: Axes | Sequence[Axes] | None = None,
    variables: Sequence[str] | str | None = None,
    x: str | None = None,
    animate: None = None,
) -> Figure: ...


@overload
def plot(
    *results: xr.Dataset | figures.Figure,
    variables: Sequence[str] | str | None = None,
    x: str | None = None,
    animate: str,
) -> Animation: ...


def plot(
    *results: xr.Dataset | figures.Figure,
    ax: Axes | Sequence[Axes] | None = None,
    variables: Sequence[str] | str | None = None,
    x: str | None = None,
    animate: str | None = None,
) -> Figure | Animation:
    """Draw theories as lines and simulations as points, one pair of axes for each variable; or draw a forecast.

    Args:
        *results: datasets from `curve`, `measure` or `asymptote`, in any number; or one from `forecast`; or the
            `splits_` of an annealed mixture or the `splits` of clusters, drawn as a tree; or what `describe` of a
            fitted density or potential, or `metric` of learned prototypes gives; or one figure of a paper; or one from
            `transitions` or `phase_lines`, drawn as one phase diagram with the names of its regions.
        ax: axes to draw on, one for each variable; by default a new figure.
        variables: what to draw; by default every order parameter.
        x: the control on the abscissa; by default `alpha` or `examples`, or else the first swept control.
        animate: a control that moves: lines grow along it if it is on the abscissa, and change with it if it is another
            swept control; a tree grows as its `width` falls.

    Returns:
        The matplotlib figure; `.savefig("x.png")` writes it. With `animate` an `Animation`; `.save("x.gif")` writes it.

    Raises:
        InputError: if there is nothing to draw, or not on these axes.

    Examples:
        >>> import quenched, numpy as np
        >>> from quenched import prototypes
        >>> curve = prototypes.curve(prototypes.TwoClusters(0.8), prototypes.LVQ1(0.2), alpha=np.linspace(0, 50, 51))
        >>> picture = quenched.plot(curve, variables="error")
    """
    if len(results) == 1 and isinstance(results[0], figures.Figure) and animate is None:
        return draw(results[0])
    datasets = [r for r in results if isinstance(r, xr.Dataset)]
    if not datasets or len(datasets) < len(results):
        raise InputError("Argument `results` must be datasets, or one figure of a paper, "
                         f"but {[type(r).__name__ for r in results]} was given.")  # fmt: skip
    if animate is not None:
        if not isinstance(animate, str):
            raise InputError(f"Argument `animate` must be the name of a control, but {animate!r} was given.")
        if ax is not None:
            raise InputError("Argument `ax` must not be given with `animate`, but it is.")
        return _animate(datasets, checks.names("variables", variables), x, animate)
    painted = PAINTED.get(str(datasets[0].attrs.get("source"))) if len(datasets) == 1 else None
    if painted and "seen" in datasets[0]:
        datasets = [panels.seen_splits(datasets[0])]
    if painted:
        whom, advice, chosen = "such a picture", "", [painted[0](datasets[0])]
    else:
        names, chosen = _choose_panels(datasets, checks.names("variables", variables), x)
        whom, advice = f"each of {', '.join(names)}", ": choose with `variables`"
    axes = _new_axes(chosen) if ax is None else _list_axes(ax)
    if not all(isinstance(one, Axes) for one in axes):
        raise InputError(f"Argument `ax` must be axes of matplotlib, but {ax!r} was given.")
    if len(axes) != len(chosen):
        raise InputError(f"Argument `ax` must be one axes for {whom}, but {len(axes)} was given{advice}.")
    figure = _render("", chosen, axes, own=ax is None)
    if painted:
        painted[1](axes[0], datasets[0], PALETTE)
    return figure


def _list_axes(ax: Any) -> list[Any]:
    """One axes, or the axes of a list or an array, row by row."""
    return [*np.ravel(np.asarray(ax, dtype=object))] if isinstance(ax, (list, tuple, np.ndarray)) else [ax]


def _animate(datasets: list[xr.Dataset], variables: Sequence[str] | None, x: str | None, control: str) -> Animation:
    """A picture that grows along its abscissa, or along the width of a tree, or that changes with another control."""
    source = str(datasets[0].attrs.get("source"))
    upright = PAINTED.get(source, (None,))[0] is panels.show_tree
    axis = "width" if upright else ABSCISSAE.get(source) or x or choice.abscissa(datasets)
    if control == axis:
        figure = plot(*datasets, variables=variables, x=x)
        label = {"alpha": r"$\alpha$", "examples": "$m$"}.get(control, control)
        return animation.grow(figure, figure.axes, control, label, upright=upright)
    if upright or source in OWN_PANELS or any(control not in data.dims for data in datasets):
        raise InputError(f"Argument `animate` must be a control that takes several values, such as {axis}, "
                         f"but {control!r} was given.")  # fmt: skip
    values = datasets[0][control].values
    frames = [
        _choose_panels([data.isel({control: i}) for data in datasets], variables, x or axis)[1]
        for i in range(len(values))
    ]
    axes, inks = _new_axes(frames[0]), {}
    figure = _render("", [_with_limits(every) for every in zip(*frames, strict=True)], axes, own=True)

    def redraw(i: int) -> None:
        for panel, ax in zip(frames[i], axes, strict=True):
            _choose_inks(inks, panel.series)
            _paint(ax, dataclasses.replace(panel, xlim=ax.get_xlim(), ylim=ax.get_ylim(), note=""), inks, {})

    return animation.change(figure, axes, values, control, redraw)


def _with_limits(frames: Sequence[Panel]) -> Panel:
    """The first of several panels, with room for what all of them show."""
    ends = {}
    for name in ("x", "y"):
        every = np.concatenate(
            [np.ravel(np.asarray(getattr(one, name), float)) for frame in frames for one in frame.series]
        )
        low, high = np.nanmin(every[np.isfinite(every)]), np.nanmax(every[np.isfinite(every)])
        room = 0.05 * (high - low)
        wide = (
            (low * (low / high) ** 0.05, high * (high / low) ** 0.05)
            if name in frames[0].log
            else (low - room, high + room)
        )
        ends[f"{name}lim"] = getattr(frames[0], f"{name}lim") or wide
    return dataclasses.replace(frames[0], **ends)


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


def describe(figure: figures.Figure) -> str:
    """What a figure of a paper shows, in words, for readers who do not see it."""
    return words.describe(figure.panels or _choose_panels(list(figure.data.values()), None, None)[1])


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
    found: list[legends.Entries] = []
    key: legends.Entries = {}
    scales = _image_limits(panels)
    solid = any(legends.is_solid(series) for panel in panels for series in panel.series if series.kind is Kind.theory)
    for panel, ax in zip(panels, axes, strict=True):
        _choose_inks(inks, panel.series)
        found.append(_paint(ax, panel, inks, scales))
        key |= legends.make_key(panel, solid=solid)
    if not own:
        for ax, legend in zip(axes, found, strict=True):
            legends.write(ax, legend | key, "best", columns=1)
        return figure
    if title and len(axes) == 1 and not panels[0].title:
        axes[0].set_title(title, fontsize=13, pad=10)
    elif title:
        figure.suptitle(title, fontsize=13)
    legends.place(figure, axes, found, key, beside=all(panel.right is None for panel in panels))
    return figure


def _choose_inks(inks: _Inks, every: Sequence[Series]) -> None:
    """Give every new group a colour that no other group of its panel has."""
    plain = (Kind.reference, Kind.mark, Kind.row, Kind.cell, Kind.image, Kind.arrow, Kind.word)
    groups = list(dict.fromkeys(series.colour_of for series in every if series.kind not in plain))
    taken = {inks[g][0] for g in groups if g in inks}
    fresh = [g for g in groups if g not in inks]
    image = any(series.kind is Kind.image for series in every)  # the first colour is that of images
    free = [colour for colour in PALETTE[image:] if colour not in taken]
    if len(fresh) > len(free):  # too many for distinct colours: a scale, in the order they come
        free = [tuple(c) for c in colormaps["viridis"](np.linspace(0, 0.92, len(fresh)))]
    for i, (group, colour) in enumerate(zip(fresh, free, strict=False)):
        inks[group] = colour, MARKERS[(i + len(taken)) % len(MARKERS)]


def _image_limits(panels: Sequence[Panel]) -> dict[str, tuple[float, float]]:
    """The ends of the colour scale of each quantity: its images share them, so that they can be compared."""
    ends: dict[str, tuple[float, float]] = {}
    for series in (series for panel in panels for series in panel.series if series.kind is Kind.image):
        values = np.asarray(series.values, float)
        low, high = ends.get(series.label, (np.inf, -np.inf))
        ends[series.label] = min(low, float(np.nanmin(values))), max(high, float(np.nanmax(values)))
    return ends


def _paint(ax: Axes, panel: Panel, inks: _Inks, scales: dict[str, tuple[float, float]]) -> legends.Entries:
    """Draw one panel and return the entries of its legend."""
    entries: legends.Entries = {}
    later: legends.Entries = {}
    labels = list(dict.fromkeys(series.label for series in panel.series))
    references = [series.label for series in panel.series if series.kind is Kind.reference]
    theories = [series for series in panel.series if series.kind is Kind.theory]
    lines = list(dict.fromkeys(series.label for series in theories))
    crowded = len({series.colour_of for series in theories}) > len(PALETTE)
    marked = legends.spread(lines, legends.MOST_LINES) if crowded else []
    for series in panel.series:
        colour, marker = inks.get(series.colour_of, (GREY, "o"))
        if series.kind is Kind.image:
            draw_image(ax, series, scales[series.label])
            continue
        if series.kind is Kind.word:
            write_words(ax, series)
            continue
        if series.colour_of != series.label:  # several sizes of one colour: a marker each
            marker = MARKERS[labels.index(series.label) % len(MARKERS)]
        dashes = DASHES[references.index(series.label) % len(DASHES)] if series.label in references else "-"
        if series.kind is Kind.theory:
            marker = marker if series.label in marked else ""
        faint = bool(marked) and series.kind is Kind.theory and series.label not in marked
        handle = draw_series(ax, series, colour, marker, dashes, faint=faint)
        chosen = later if series.kind in (Kind.reference, Kind.mark, Kind.row, Kind.cell, Kind.arrow) else entries
        if series.label:
            chosen[series.label] = (*chosen.get(series.label, ()), handle)
        mark_unsettled(ax, series, colour)
    frame.dress(ax, panel)
    return legends.thin(entries, marked, lines) | later
