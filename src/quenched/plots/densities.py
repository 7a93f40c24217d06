"""The panel of a density: with its band, or conditional on another column as an image with mean and interval."""

from __future__ import annotations

import numpy as np
import xarray as xr

from quenched.core.figures import Kind, Panel, Series
from quenched.plots.choice import plain


def panel(data: xr.Dataset) -> Panel:
    """The picture of a density."""
    column = plain(data.attrs["column"])
    if "given" in data.attrs:
        return Panel(plain(data.attrs["given"]), column, _given(data), key=False)
    note = "The band is drawn from the first row to the last."
    return Panel(column, "probability density", _alone(data), key=False, note=note)


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
    rows = Series(f"{int(data.attrs['rows']):,} rows", Kind.cloud, data["row_given"].values, data["row_value"].values)
    return image, band, Series(label, Kind.theory, x, mean), rows
