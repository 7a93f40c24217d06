"""What to draw of a forecast: the learning curve with its interval, within the data and beyond."""

from __future__ import annotations

import dataclasses

import numpy as np
import xarray as xr

from quenched.core.figures import Kind, Panel, Scale, Series
from quenched.plots.choice import EMPIRICAL, SHARE, Item, plain

WITHIN = "measured on subsets of the rows"
CHECK = "check: subsets, tuned anew"
AHEAD = "forecast (80% band)"
LONGEST_REASON = 400
"""Letters of a sentence in the note."""


def is_one(data: xr.Dataset) -> bool:
    """Whether a dataset is a forecast."""
    return data.attrs.get("source") == "forecast"


def panel(data: xr.Dataset) -> tuple[Panel, list[Item]]:
    """The picture of a forecast: the curve, its interval, the check if there is one, and where the data end.

    Where there is no forecast it is what was measured.
    """
    items = [*(_ahead(data) if _spoken(data).any() else _within(data)), *_check(data)]
    heights = [np.ravel(edge) for i in items for edge in (i.series.y, i.series.low, i.series.high) if edge is not None]
    seen = np.concatenate([np.zeros(0), *heights])
    if np.isfinite(seen).any():
        rows = int(data.attrs["rows"])
        ends = Series(
            f"all {rows:,} rows", Kind.reference, np.full(2, rows), np.array([np.nanmin(seen), np.nanmax(seen)])
        )
        items.append(_item(ends))
    target = plain(data.attrs.get("target", "")) or "the target"
    right = Scale(f"root mean squared error (units of {target})", float(data.attrs["target_scale"]), 0.5)
    log = "xy" if np.all(seen[np.isfinite(seen)] > 0) else "x"
    words = f"expected squared error ({SHARE})"
    series = tuple(item.series for item in items)
    return Panel(EMPIRICAL["examples"], words, series, log=log, right=right, note=_note(data), key=False), items


def _item(series: Series, group: str = "") -> Item:
    return Item(series, group or series.label, np.full(np.shape(series.y), ""))


def _within(data: xr.Dataset) -> list[Item]:
    """What was measured on the rows at hand."""
    cut = data.isel(examples=np.flatnonzero(np.isfinite(data["measured"].values)))
    x, y, bars = (cut[name].values for name in ("examples", "measured", "measured_stderr"))
    return [_item(Series(WITHIN, Kind.simulation, x, y, bars))] if len(x) else []


def _check(data: xr.Dataset) -> list[Item]:
    """Processes tuned anew, if there are any."""
    if "check_error" not in data:
        return []
    cut = data.isel(examples=np.flatnonzero(np.isfinite(data["check_error"].values)))
    x, y, bars = (cut[name].values for name in ("examples", "check_error", "check_error_stderr"))
    return [_item(Series(CHECK, Kind.simulation, x, y, bars), "check")] if len(x) else []


def _ahead(data: xr.Dataset) -> list[Item]:
    """The forecast and its interval, where it speaks."""
    spoken = data.sel(examples=_spoken(data))
    x, y = spoken["examples"].values, spoken["error"].values
    extended = spoken["extended"].values.astype(bool)
    line = Series(AHEAD, Kind.theory, x, y, unstable=extended, dashes="extended: less sure")
    low, high = spoken["error_low"].values, spoken["error_high"].values
    band = Series(AHEAD, Kind.band, x, y, low=low, high=high)
    if len(x) == 1:  # an area needs two edges
        x, low, high, y = x * np.array([0.97, 1.03]), *(np.repeat(edge, 2) for edge in (low, high, y))
        band, line = (dataclasses.replace(one, x=x, y=y, unstable=None) for one in (band, line))
        band = dataclasses.replace(band, low=low, high=high)
    return [_item(band), _item(line)]


def _note(data: xr.Dataset) -> str:
    """What bars are, the sizes that were refused, and why."""
    why: dict[str, list[str]] = {}
    for size, reason in zip(data["examples"].values, data["refused"].values.astype(str), strict=True):
        if reason:
            why.setdefault(plain(reason, LONGEST_REASON), []).append(f"{float(size):,.0f}")
    speaks = bool(_spoken(data).any())
    bars = ["Bars are one standard error."] if "check_error" in data or not speaks else []
    if not speaks:
        return " ".join([*bars, "No forecast:", *why])
    said = [f"Up to {int(data.attrs['rows']):,} examples measured on the rows at hand, beyond continued.", *bars]
    return " ".join(said + [f"Not forecast: {', '.join(sizes)} examples. {reason}" for reason, sizes in why.items()])


def _spoken(data: xr.Dataset) -> np.ndarray:
    """Where the forecast speaks."""
    return data["refused"].values.astype(str) == ""
