"""The panels of forecasts, doubtful rows, densities, potentials, annealings and calibrations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from quenched.core.figures import Kind, Panel, Scale, Series
from quenched.core.proof import SMALLEST_P
from quenched.plots.choice import plain

WITHIN = "measured on subsets of the rows"
CURVE = "measured on parts of the rows"
CHECK = "check: subsets, tuned anew"
TRUTH = "truth: rows the forecast did not see"
AHEAD = "forecast (80% band)"
LONGEST_REASON = 400
"""Longest sentence in the note."""
STEM, ROOT = 1.6, 1.4
"""How far, as a factor of the width, branches go on below the last split and above the first one."""
INK = "#4d4d4d"
MOST_COLUMNS, FEW_COLUMNS = 24, 8
"""Columns of a metric that are shown, and those whose entries are written out."""
LONGEST_NAME = 20
"""Of a column, in characters."""
THIN, THICK = 1.2, 6.0
"""Thickness of a branch without rows, and of one with all of them."""


def show_forecast(data: xr.Dataset) -> Panel:
    """The curve, its interval, the check if there is one, and where the data end; or else what was measured."""
    series = [*_measured(data, CURVE, "curve_error", over="size"),
              *(_ahead(data) if _is_known(data).any() else _measured(data, WITHIN, "measured")),
              *_measured(data, CHECK, "check_error", group="check"),
              *_measured(data, TRUTH, "unseen_error", group="unseen")]  # fmt: skip
    heights = [np.ravel(edge) for one in series for edge in (one.y, one.low, one.high) if edge is not None]
    seen = np.concatenate([np.zeros(0), *heights])
    if np.isfinite(seen).any():
        rows = int(data.attrs["rows"])
        ends = np.array([np.nanmin(seen), np.nanmax(seen)])
        series.append(Series(f"all {rows:,} rows", Kind.reference, np.full(2, rows), ends))
    log = "xy" if np.all(seen[np.isfinite(seen)] > 0) else "x"
    return Panel(*_words(data), tuple(series), log=log, right=_own_units(data), note=_note(data), key=False)


def show_forecasts(data: xr.Dataset) -> Panel:
    """The forecasts of several estimators, each with its interval."""
    series, lost = [], []
    for name in data["model"].values.astype(str):
        one = data.sel(model=name)
        known = one.isel(examples=_is_known(one))
        if known.sizes["examples"] < 2:
            lost.append(name)
            continue
        x, y, low, high = (known[key].values for key in ("examples", "error", "error_low", "error_high"))
        series += [Series(name, Kind.band, x, y, low=low, high=high), Series(name, Kind.theory, x, y)]
    without = f" No forecast for {', '.join(lost)}." if lost else ""
    note = f"Bands contain the error with 80% probability.{without}"
    return Panel(*_words(data), tuple(series), log="xy", right=_own_units(data), note=note, key=False)


def _words(data: xr.Dataset) -> tuple[str, str]:
    """The names of both axes."""
    words = plain(data.attrs.get("measure", "")) or "squared error (share of the target's variance)"
    return "training examples, $m$", f"expected {words}"


def _own_units(data: xr.Dataset) -> Scale | None:
    """A second scale in units of the target, where the error is a squared one."""
    if "target_scale" not in data.attrs:
        return None
    target = plain(data.attrs.get("target", "")) or "the target"
    return Scale(f"root mean squared error (units of {target})", float(data.attrs["target_scale"]), 0.5)


def _measured(data: xr.Dataset, label: str, name: str, group: str = "", over: str = "examples") -> list[Series]:
    """An error measured on the rows at hand, if there is one."""
    if name not in data:
        return []
    cut = data.isel({over: np.isfinite(data[name].values)})
    about = f"{name.removesuffix('_error') if over == 'size' else name}_stderr"
    x, y, bars = (cut[one].values for one in (over, name, about))
    return [Series(label, Kind.simulation, x, y, bars, group=group)] if len(x) else []


def _ahead(data: xr.Dataset) -> list[Series]:
    """The forecast and its interval, where it is known."""
    known = data.sel(examples=_is_known(data))
    x, y, low, high = (known[name].values for name in ("examples", "error", "error_low", "error_high"))
    extended = known["extended"].values.astype(bool)
    if len(x) == 1:  # an area needs two edges
        x, y, low, high = x * np.array([0.97, 1.03]), *(np.repeat(edge, 2) for edge in (y, low, high))
        extended = None
    line = Series(AHEAD, Kind.theory, x, y, unstable=extended, dashes="extended: less sure")
    return [Series(AHEAD, Kind.band, x, y, low=low, high=high), line]


def _note(data: xr.Dataset) -> str:
    """The meaning of bars, the sizes without a forecast, and the reasons."""
    why: dict[str, list[str]] = {}
    for size, reason in zip(data["examples"].values, data["refused"].values.astype(str), strict=True):
        if reason:
            why.setdefault(plain(reason, LONGEST_REASON), []).append(f"{float(size):,.0f}")
    known = bool(_is_known(data).any())
    shown = any(f"{name}_error" in data for name in ("check", "curve", "unseen")) or not known
    bars = ["Bars are one standard error."] if shown else []
    if not known:
        return " ".join([*bars, "No forecast:", *why])
    said = [f"Up to {int(data.attrs['rows']):,} examples measured on the rows at hand, beyond continued.", *bars]
    return " ".join(said + [f"Not forecast: {', '.join(sizes)} examples. {reason}" for reason, sizes in why.items()])


def _is_known(data: xr.Dataset) -> np.ndarray:
    """Where there is a forecast."""
    return data["refused"].values.astype(str) == ""


def show_doubtful(data: xr.Dataset) -> Panel:
    """Probabilities of rows to be outliers in falling order, the share of outliers and its interval."""
    a, n = data.attrs, data.sizes["rank"]
    low, high, share = (n * float(a[f"outlier_fraction{end}"]) for end in ("_low", "_high", ""))
    ends, note = np.array([0.0, 1.0]), plain(a.get("sentence", ""), LONGEST_REASON)
    told = a.get("told")
    rows = data["rank"].values, data["outlier_probability"].values
    series = [Series("rows" if told else "", Kind.theory, *rows)]  # a line alone needs no name
    if told:
        band = Series("estimated number of outliers (80% interval)", Kind.band, np.array([low, high]), ends)
        edges = {"low": np.zeros(2), "high": np.ones(2)}
        series.insert(0, dataclasses.replace(band, **edges))
        series.append(Series(band.label, Kind.reference, np.full(2, share), ends, group=band.label))
    words = "rows, the most doubtful first", "probability that the row is an outlier"
    return Panel(*words, tuple(series), ylim=(-0.02, 1.02), note=note, key=False)


def show_density(data: xr.Dataset) -> Panel:
    """The picture of a density."""
    column = plain(data.attrs["column"])
    if "given" in data.attrs:
        return Panel(plain(data.attrs["given"]), column, _given(data), key=False)
    note = "The band is drawn from the first row to the last."
    return Panel(column, "probability density", _alone(data), xlim=_ends_of_axis(data), key=False, note=note)


def _ends_of_axis(data: xr.Dataset) -> tuple[float, float]:
    """Where the axis ends: with the grid, as at a bound, or at zero where no row is on its other side."""
    x, edges = data["value"].values, data["edge"].values
    low, high = float(x[0]), float(x[-1])
    return 0.0 if low < 0 <= edges[0] else low, 0.0 if edges[-1] <= 0 < high else high


def show_potential(data: xr.Dataset) -> list[Panel]:
    """The potential with its levels, and the density of positions with a histogram."""
    x, V, E = data["value"].values, data["potential"].values, data["energy"].values
    column, edges = plain(data.attrs["column"]), data["edge"].values
    seen = (x >= edges[0]) & (x <= edges[-1])
    low, high = (np.where(seen, data[f"potential_{end}"].values, np.nan) for end in ("low", "high"))
    ends = float(np.nanmin(low)), float(np.nanmax(high))
    label = f"potential ({_share(data)} band)"
    series = [Series(label, Kind.band, x, V, low=low, high=high), Series(label, Kind.theory, x, V)]
    for energy in E[ends[1] > E]:
        inside = V <= energy
        series.append(
            Series("levels", Kind.reference, x, np.where(inside, energy, np.nan), outcome=np.full(len(x), ""))
        )
    room, side = 0.05 * (ends[1] - ends[0]), 0.2 * float(edges[-1] - edges[0])
    sides = max(float(x[0]), float(edges[0]) - side), min(float(x[-1]), float(edges[-1]) + side)
    title = f"{int(data.attrs['rows']):,} positions in {plain(data.attrs['measured'])}"
    over = Panel(column, "potential, less its mean", tuple(series), title, sides, (ends[0] - room, ends[1] + room),
                 key=False)  # fmt: skip
    return [over, Panel(column, "probability density", _alone(data), "where they are found", sides, key=False)]


def _share(data: xr.Dataset) -> str:
    return f"{float(data.attrs['level']):.0%}"


def _alone(data: xr.Dataset) -> tuple[Series, ...]:
    """The density, its band, and the outline of a histogram."""
    x, P, bars = data["value"].values, data["density"].values, data["histogram"].values
    label = f"density ({_share(data)} band)"
    edges = data["edge"].values
    seen = (x >= edges[0]) & (x <= edges[-1])
    low, high = (np.where(seen, data[f"density_{end}"].values, np.nan) for end in ("low", "high"))
    band = Series(label, Kind.band, x, P, low=low, high=high)
    outline = np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(bars, 2), [0.0]])
    rows = f"histogram of {int(data.attrs['rows']):,} rows"
    return band, Series(label, Kind.theory, x, P), Series(rows, Kind.reference, *outline)


def _given(data: xr.Dataset) -> tuple[Series, ...]:
    """The density over the other column as an image, for its branches; mean and interval, and the rows."""
    x, mean = data["given"].values, data["mean"].values
    image = Series("density", Kind.image, x, data["value"].values, values=data["density"].values)
    label = f"mean ({_share(data)} interval)"
    band = Series(label, Kind.band, x, mean, low=data["low"].values, high=data["high"].values)
    rows = Series(f"{int(data.attrs['rows']):,} rows", Kind.row, data["row_given"].values, data["row_value"].values)
    return image, band, Series(label, Kind.theory, x, mean), rows


def show_calibration(data: xr.Dataset) -> Panel:
    """The distribution of ranks less the uniform one, a line for each quantity, and the band of uniform ranks."""
    z = data["share"].values
    label = f"uniform ranks ({_share(data)}, simultaneous)"
    middle = np.zeros(len(z))
    series = [Series(label, Kind.band, z, middle, low=data["low"].values, high=data["high"].values, group=label)]
    for name, line in zip(data["quantity"].values, data["difference"].values, strict=True):
        series.append(Series(plain(name), Kind.theory, z, line))
    note = plain(data.attrs["verdict"], LONGEST_REASON)
    return Panel("share of ranks, $z$", "share of ranks below $z$, less $z$", tuple(series), key=False, note=note)


def show_edges(data: xr.Dataset) -> Panel:
    """Mutual information of the columns of a tree of fields, and its edges."""
    names, shares = [plain(str(name)) for name in data["column"].values], data["share"].values
    bits = np.tensordot(shares, data["information"].values, axes=1) / np.log(2)
    parents = data["parent"].values[int(np.argmax(shares))]
    edges = [(i, list(data["column"].values).index(parent)) for i, parent in enumerate(parents) if parent]
    x, y = np.array(edges, dtype=float).reshape(-1, 2).T
    places = np.arange(len(names), dtype=float)
    image = Series("mutual information (bits)", Kind.image, places, places, values=bits.T)
    words = ", ".join(f"{i}: {name}" for i, name in enumerate(names))
    return Panel("column", "other column", (image, Series("edges of the tree", Kind.cell, x, y)), note=words)


def show_metric(data: xr.Dataset) -> Panel:
    """The axes of a learned metric; see `paint_metric`."""
    shown, every = min(data.sizes["column"], MOST_COLUMNS), data.sizes["column"]
    left_out = f" The {shown} most relevant of {every} columns." if shown < every else ""
    note = "In brackets: share of the trace. Orange adds to a distance, blue takes from it."
    return Panel("column, by number", "", (), key=False, note=note + left_out)


def paint_metric(ax: Axes, data: xr.Dataset, palette: Sequence[str]) -> None:
    """Draw the matrix of a metric as squares, the most relevant columns first."""
    order = np.argsort(-data["relevance"].values, kind="stable")[:MOST_COLUMNS]
    matrix, share = data["matrix"].values[np.ix_(order, order)], data["relevance"].values[order]
    names = [plain(str(name)) for name in data["column"].values[order]]
    colours = LinearSegmentedColormap.from_list("metric", (palette[0], "#ffffff", palette[1]))
    largest = float(np.abs(matrix).max()) or 1.0
    ax.imshow(matrix, cmap=colours, vmin=-largest, vmax=largest, zorder=1, aspect="auto")
    ax.grid(False)
    if len(order) <= FEW_COLUMNS:
        for (i, j), value in np.ndenumerate(matrix):
            ink = "#ffffff" if abs(value) > 0.6 * largest else INK
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=9, color=ink)
    size = 9.5 if len(order) <= FEW_COLUMNS else 7.5
    numbered = [f"{cut(name)} ({part:.0%})  {i}" for i, (name, part) in enumerate(zip(names, share, strict=True), 1)]
    ax.set_xticks(range(len(order)), [str(i) for i in range(1, len(order) + 1)], fontsize=size)
    ax.set_yticks(range(len(order)), numbered, fontsize=size)


def cut(name: str) -> str:
    """A name of a column that is short enough to stand beside the axes."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def show_tree(data: xr.Dataset) -> Panel:
    """The axes of an annealing: clusters as branches that split while the width falls; see `paint_tree`."""
    if data.attrs["source"] == "clusters":
        words, note = "splits", "p: of no valley between the two. Percentages and thickness: share of the rows."
        if not data.sizes["split"]:
            words, note = "", f"One cluster: {data.attrs['left_out'] or 'one Gaussian describes the rows.'}"
        return Panel("cluster", words, (), ylim=(0.0, data.sizes["split"] + 1.0), note=note)
    unit = "share of each feature's variance" if data.attrs.get("relative") else "a variance"
    words, note = f"width at which a cluster splits ({unit})", "Percentages and thickness: share of the rows."
    if "p" in data:
        note = f"p: that one Gaussian would split so early. {note}"
    return Panel("component", words, (), ylim=_ends(data), log="y", note=note)


def seen_splits(data: xr.Dataset) -> xr.Dataset:
    """A tree of clusters without the splits that are none, each split at a height of its own."""
    tried, least = data.sizes["split"], float(data["p"].values.min(initial=1.0))
    words = f"of {tried} splits that were tried none is" if tried > 1 else "the one split that was tried is not"
    left_out = f"{words} certain (least p {least:.2g})." if tried else ""
    data = data.isel(split=data["seen"].values).assign_attrs(left_out=left_out)
    return data.assign(width=("split", data.sizes["split"] - np.arange(data.sizes["split"], dtype=float)))


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


def paint_tree(ax: Axes, data: xr.Dataset, palette: Sequence[str]) -> None:
    """Draw the tree: a branch falls from the split it came from to the one it ends in; final clusters have colours."""
    place, leaves = _places(data)
    ranked = data.attrs["source"] == "clusters"  # heights are ranks there, and widths in an annealing
    low, high = (0.0, data.sizes["split"] + 1.0) if ranked else _ends(data)
    share, top = data["share"].values, {0: high}
    end = dict(zip(data["cluster"].values.tolist(), data["width"].values.tolist(), strict=True))
    for width, into in zip(data["width"].values, data["into"].values, strict=True):
        ax.plot([place[int(h)] for h in into], [width, width], color=INK, lw=1.4, solid_capstyle="projecting", zorder=1)
        top |= {int(h): float(width) for h in into}
    beside: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 9.5}
    names = []
    for split in range(data.sizes["split"] if "p" in data else 0):
        p, middle = float(data["p"][split]), place[int(data["cluster"][split])]
        words = f"p = {p:.2g}" if p >= SMALLEST_P else f"p < {SMALLEST_P:g}"
        ax.annotate(words, (middle, float(data["width"][split])), (7, 8), **beside)
    for node, x in place.items():
        colour = palette[leaves.index(node) % len(palette)] if node in leaves else INK
        bottom, thickness = end.get(node, low), THIN + (THICK - THIN) * float(share[node])
        ax.plot([x, x], [top[node], bottom], color=colour, lw=thickness, solid_capstyle="butt", zorder=2)
        if node in leaves:
            mine = np.flatnonzero(data["leaf"].values == node)  # the components that a leaf is
            names.append(f"{mine[0]}{f'-{mine[-1]}' if len(mine) > 1 else ''}\n{share[node]:.0%}")
        else:
            ax.annotate(
                f"{share[node]:.0%}",
                (x, (top[node] + bottom) / 2 if ranked else float(np.sqrt(top[node] * bottom))),
                (-7, 0),
                ha="right",  # on the other side than the p of its split
                **beside,
            )
    ax.set_xticks(range(len(leaves)), names)
    if ranked:
        ax.set_yticks([])
    ax.set_xlim(-0.6, len(leaves) - 0.4)
    ax.grid(False, axis="x")
