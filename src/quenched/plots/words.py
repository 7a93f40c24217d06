"""What a picture shows, in words, for readers who do not see it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from quenched.core.figures import Kind, Panel, Series

FLAT = 0.02
"""A line that changes by less than this share of its panel is flat."""
MOST_TOLD = 8
"""Series of a panel that are described one by one."""
NOUNS = {Kind.theory: "line", Kind.simulation: "points with error bars", Kind.reference: "thin grey line",
         Kind.cloud: "single points", Kind.row: "data points", Kind.mark: "crosses", Kind.node: "nodes"}  # fmt: skip


def describe(panels: Sequence[Panel]) -> str:
    """Panels in words: axes, and how each line or set of points runs."""
    many = f"{len(panels)} panels. " if len(panels) > 1 else ""
    return many + " ".join(_describe(panel) for panel in panels)


def _describe(panel: Panel) -> str:
    """One panel."""
    title = f"{_plain(panel.title)}: " if panel.title else ""
    if not panel.frame:
        return f"{title}{_tell_graph(panel.series)}."
    every = [np.asarray(s.y, float)[np.isfinite(np.asarray(s.y, float))] for s in panel.series]
    height = float(np.ptp(np.concatenate(every))) if any(len(y) for y in every) else 0.0
    told: dict[tuple[str, Kind], list[Series]] = {}
    for series in panel.series:
        told.setdefault((series.label, series.kind), []).append(series)
    said = [words for some in list(told.values())[:MOST_TOLD] if (words := _tell(some, height))]
    said += [f"{len(told) - MOST_TOLD} more"] if len(told) > MOST_TOLD else []
    scales = " (logarithmic)" if panel.log else ""
    axes = f"{_plain(panel.y) or 'values'} over {_plain(panel.x) or 'places'}{scales}"
    return f"{title}{axes}: {'; '.join(said)}." if said else f"{title}{axes}."


def _tell_graph(every: Sequence[Series]) -> str:
    """Nodes with their names, and what lies between them."""
    named = [(_plain(s.label), [_plain(str(name)) for name in s.names if str(name)])
             for s in every if s.kind is Kind.node and s.names is not None]  # fmt: skip
    nodes = [f"{label} ({', '.join(names)})" if names else label for label, names in named]
    others = dict.fromkeys(_plain(s.label) for s in every if s.kind is not Kind.node and s.label)
    return f"a graph with the nodes {', '.join(nodes)}" + (f"; and {', '.join(others)}" if others else "")


def _tell(some: Sequence[Series], height: float) -> str:
    """Series of one label and kind."""
    first, label = some[0], _plain(some[0].label)
    if first.kind is Kind.image:
        values = np.asarray(first.values, float)
        i, j = np.unravel_index(int(np.nanargmax(values)), values.shape)
        return f"an image of {label} from {_short(np.nanmin(values))} to {_short(np.nanmax(values))}, greatest at " \
               f"({_short(first.x[i])}, {_short(first.y[j])})"  # fmt: skip
    if first.kind in (Kind.band, Kind.arrow, Kind.cell):
        return f"{ {Kind.band: 'a band', Kind.arrow: 'arrows', Kind.cell: 'frames'}[first.kind] }, {label}"
    if first.kind is Kind.word:
        return "regions " + ", ".join(map(str, () if first.names is None else first.names))
    noun, name = NOUNS[first.kind], f" {label}" if label else ""
    if first.kind is Kind.theory and all(s.unstable is not None and np.all(s.unstable) for s in some):
        noun = f"dashed line ({first.dashes})"
    if len(some) > 1 and first.kind is not Kind.simulation:
        return f"{len(some)} of {noun}{name}"
    return f"{noun}{name} {_run(first, height)}" if first.kind is not Kind.node else f"{noun}{name}"


def _run(series: Series, height: float) -> str:
    """How a series runs from left to right."""
    x, y = np.asarray(series.x, float), np.asarray(series.y, float)
    there = np.isfinite(y)
    if not there.any():
        return "without values"
    if series.kind in (Kind.cloud, Kind.row, Kind.mark):
        return f"({there.sum()})" if there.sum() > 1 else f"at ({_short(x[there][0])}, {_short(y[there][0])})"
    order = np.argsort(x[there], kind="stable")
    x, y = x[there][order], y[there][order]
    if np.ptp(y) <= FLAT * height:
        return f"about {_short(y.mean())}"
    if series.kind is Kind.reference and np.ptp(x) == 0:
        return f"upright at {_short(x[0])}"
    way = "rises" if y[-1] > y[0] else "falls"
    words = f"{way} from {_short(y[0])} to {_short(y[-1])}"
    for name, i, beyond in (("least", int(np.argmin(y)), min(y[0], y[-1]) - y.min()),
                            ("greatest", int(np.argmax(y)), y.max() - max(y[0], y[-1]))):  # fmt: skip
        if beyond > 0.1 * height:
            words += f", {name} {_short(y[i])} at {_short(x[i])}"
    return words


def _short(value: float) -> str:
    return f"{float(value):.3g}"


def _plain(text: str) -> str:
    """A label without the signs of mathematics."""
    text = re.sub(r"\\(?:mathrm|mathit)", "", text.replace("$", "")).replace("_{", " ").replace("\\", "")
    return text.translate(str.maketrans("", "", "{}")).replace("_", " ").strip()
