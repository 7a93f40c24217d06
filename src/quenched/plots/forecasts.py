"""The panel of a forecast: the learning curve with its interval, within the data and beyond."""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr

from quenched.core.figures import Kind, Panel, Scale, Series
from quenched.plots.choice import plain

WITHIN = "measured on subsets of the rows"
CHECK = "check: subsets, tuned anew"
AHEAD = "forecast (80% band)"
LONGEST_REASON = 400
"""Longest sentence in the note."""


def panel(data: xr.Dataset) -> Panel:
    """The picture of a forecast: the curve, its interval, the check if there is one, and where the data end.

    If there is no forecast, it shows what was measured.
    """
    series = [*(_ahead(data) if _is_known(data).any() else _measured(data, WITHIN, "measured")),
              *_measured(data, CHECK, "check_error", group="check")]  # fmt: skip
    heights = [np.ravel(edge) for one in series for edge in (one.y, one.low, one.high) if edge is not None]
    seen = np.concatenate([np.zeros(0), *heights])
    if np.isfinite(seen).any():
        rows = int(data.attrs["rows"])
        ends = np.array([np.nanmin(seen), np.nanmax(seen)])
        series.append(Series(f"all {rows:,} rows", Kind.reference, np.full(2, rows), ends))
    target = plain(data.attrs.get("target", "")) or "the target"
    right = Scale(f"root mean squared error (units of {target})", float(data.attrs["target_scale"]), 0.5)
    log = "xy" if np.all(seen[np.isfinite(seen)] > 0) else "x"
    words = "expected squared error (share of the target's variance)"
    words_x = "training examples, $m$"
    return Panel(words_x, words, tuple(series), log=log, right=right, note=_note(data), key=False)


def _measured(data: xr.Dataset, label: str, name: str, group: str = "") -> list[Series]:
    """An error measured on the rows at hand, if there is one."""
    if name not in data:
        return []
    cut = data.isel(examples=np.isfinite(data[name].values))
    x, y, bars = (cut[one].values for one in ("examples", name, f"{name}_stderr"))
    return [Series(label, Kind.simulation, x, y, bars, group=group)] if len(x) else []


def _ahead(data: xr.Dataset) -> list[Series]:
    """The forecast and its interval, where it is known."""
    known = data.sel(examples=_is_known(data))
    x, y, low, high = (known[name].values for name in ("examples", "error", "error_low", "error_high"))
    extended = known["extended"].values.astype(bool)
    line = Series(AHEAD, Kind.theory, x, y, unstable=extended, dashes="extended: less sure")
    band = Series(AHEAD, Kind.band, x, y, low=low, high=high)
    if len(x) == 1:  # an area needs two edges
        x, low, high, y = x * np.array([0.97, 1.03]), *(np.repeat(edge, 2) for edge in (low, high, y))
        band, line = (dataclasses.replace(one, x=x, y=y, unstable=None) for one in (band, line))
        band = dataclasses.replace(band, low=low, high=high)
    return [band, line]


def _note(data: xr.Dataset) -> str:
    """The meaning of bars, the sizes without a forecast, and the reasons."""
    why: dict[str, list[str]] = {}
    for size, reason in zip(data["examples"].values, data["refused"].values.astype(str), strict=True):
        if reason:
            why.setdefault(plain(reason, LONGEST_REASON), []).append(f"{float(size):,.0f}")
    known = bool(_is_known(data).any())
    bars = ["Bars are one standard error."] if "check_error" in data or not known else []
    if not known:
        return " ".join([*bars, "No forecast:", *why])
    said = [f"Up to {int(data.attrs['rows']):,} examples measured on the rows at hand, beyond continued.", *bars]
    return " ".join(said + [f"Not forecast: {', '.join(sizes)} examples. {reason}" for reason, sizes in why.items()])


def _is_known(data: xr.Dataset) -> np.ndarray:
    """Where there is a forecast."""
    return data["refused"].values.astype(str) == ""
