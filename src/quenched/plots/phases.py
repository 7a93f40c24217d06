"""The panel of a phase diagram: lines over the sample size, and the names of the regions between them."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import xarray as xr

from quenched.core.figures import Kind, Panel, Series

SPINODALS = ("_start", "_end")
"""Endings of lines at which a state appears or disappears; others separate the states of least free energy."""
BROKEN = "replica_symmetry"
"""The line beyond which the theory is an approximation."""
LEAST_ROOM, ROOM = 0.07, 0.15
"""Height of a region, as a share of the panel, below which it has no name, and from which on all places are as good."""
JUMP, USUAL = 0.1, 5.0
"""A line is broken where it jumps by this share of the panel and by so many times its median step."""


def is_phase_diagram(data: xr.Dataset) -> bool:
    """Whether a dataset has lines over the sample size and nothing else, as those of `transitions` have."""
    return data.attrs.get("source") == "lines" and bool(_lines(data)) and data["alpha"].ndim == 1


def show_lines(data: xr.Dataset) -> Panel:
    """All lines: solid where the state of least free energy changes, dashed where some other state does.

    Args:
        data: from `outliers.transitions`, `mixtures.transitions` or `mixtures.phase_lines`.
    """
    alpha, along = data["alpha"].values, str(data.attrs.get("along_name", data.attrs["along"]))
    across = str(data["alpha"].attrs.get("long_name", "examples per dimension, alpha"))
    bounds = json.loads(data.attrs.get("boundaries", "[]"))
    parted = {name: f"{above} | {below}" for name, above, below in bounds}
    walls = [read_column(data, bounds, i) for i in range(len(alpha))]
    series = []
    for name in _lines(data):
        y = data[name].values
        if not np.any(np.isfinite(y)):
            continue
        real = np.array([any(wall[1] == name for wall in column) for column in walls])
        other = ~real & np.isfinite(y)
        unstable = other if name in parted else None
        kind = Kind.reference if name.endswith(SPINODALS) or name == BROKEN else Kind.theory
        empty = np.full(len(alpha), "")
        word = parted.get(name, _label(name))
        series.append(Series(word, kind, alpha, y, unstable=unstable, dashes="between other states", outcome=empty))
    values = np.concatenate([one.y[np.isfinite(one.y)] for one in series])
    low, high = float(values.min()), float(values.max())
    room = (high - low) or 1.0
    frame = (max(0.0, low - 0.25 * room) if low >= 0 else low - 0.25 * room, high + 0.2 * room)
    series = [dataclasses.replace(one, state=_pieces(one, JUMP * (frame[1] - frame[0]))) for one in series]
    names, places = _place_names(alpha, walls, frame)
    if names:
        x, y = np.array(places).T
        series.append(Series("regions", Kind.word, x, y, names=np.array(names)))
    log = "x" if np.all(alpha > 0) and alpha[-1] > 10 * alpha[0] else ""
    note = "Thick solid lines: where the state of least free energy changes."
    return Panel(across, along, tuple(series), ylim=frame, log=log, key=False, note=note)


def _lines(data: xr.Dataset) -> list[str]:
    """Names of the lines: what has an outcome."""
    return [str(n) for n in data.data_vars if f"{n}_outcome" in data and data[n].dims == ("alpha",)]


def _label(name: str) -> str:
    """A line in words."""
    if name == BROKEN:
        return "replica symmetry breaks"
    first, last = name.rsplit("_", 1)
    if name.endswith(SPINODALS):
        return f"{first} state {'appears' if last == 'start' else 'disappears'}"
    return f"{first} | {last}"


def _pieces(series: Series, most: float) -> np.ndarray:
    """The number of the piece that each point of a line belongs to: another where it jumps to another state."""
    step = np.abs(np.diff(series.y))
    known = step[np.isfinite(step)]
    jumps = step > max(most, USUAL * float(np.median(known))) if len(known) else np.zeros(len(step), bool)
    return np.concatenate([[0], np.cumsum(jumps)])


def read_column(data: xr.Dataset, bounds: list[list[str]], i: int) -> list[tuple[float, str, str, str]]:
    """The lines that separate states of least free energy at one sample size, from the top: each with what it parts."""
    known = [(float(data[name].values[i]), name, above, below) for name, above, below in bounds if name in data]
    column: list[tuple[float, str, str, str]] = []
    for line in sorted((one for one in known if np.isfinite(one[0])), reverse=True):
        if not column or column[-1][3] == line[2]:  # above it is what was below the one before
            column.append(line)
    return column


def _place_names(
    alpha: np.ndarray, walls: list[list[tuple[float, str, str, str]]], frame: tuple[float, float]
) -> tuple[list[str], list[tuple[float, float]]]:
    """Where each region has most room for its name."""
    found: dict[str, list[tuple[float, int, float]]] = {}
    inner = range(len(alpha)) if len(alpha) < 5 else range(1, len(alpha) - 1)
    for i in inner:
        edges = [frame[1], *(wall[0] for wall in walls[i]), frame[0]]
        states = [wall[2] for wall in walls[i][:1]] + [wall[3] for wall in walls[i]]
        for top, bottom, state in zip(edges, edges[1:], states, strict=False):
            found.setdefault(state, []).append((top - bottom, i, (top + bottom) / 2))
    names, places = [], []
    for state, room in found.items():
        height, whole = max(room)[0], frame[1] - frame[0]
        if height < LEAST_ROOM * whole:
            continue
        wide = [one for one in room if one[0] >= min(0.7 * height, ROOM * whole)]
        _, i, y = wide[len(wide) // 2]
        names.append(state)
        places.append((float(alpha[i]), y))
    return names, places
