"""Results for other programs: JSON, with everything, and CSV, a row for each point of the sweep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from quenched.core import store


def as_json(result: xr.Dataset, **more: Any) -> str:
    """A result as JSON: `coords`, `data_vars` and `attrs` as xarray's `to_dict` gives them, and what else is given.

    Numbers that are not finite are null.
    """
    text = json.dumps({**result.to_dict(), **more}, default=_plain)
    return json.dumps(json.loads(text, parse_constant=lambda _: None), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """What JSON does not have, as something that it has."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else str(value)


def write_json(result: xr.Dataset, path: Path, **more: Any) -> Path:
    """Write a result as JSON; the file appears complete or not at all."""
    store.write(path, as_json(result, **more) + "\n")
    return path


def write_csv(result: xr.Dataset, path: Path) -> Path:
    """Write the quantities of a result as CSV; the file appears complete or not at all.

    There is a row for each point of the sweep and a column for each component of a quantity. Single runs and quantities
    with other dimensions, such as the rows of a table, are left out.
    """
    store.write(path, _flat(result).to_csv(index=False))
    return path


def _flat(result: xr.Dataset) -> Any:
    """A frame with a row for each point of the sweep."""
    dims, parts = main_dims(result), {}
    for name, array in result.data_vars.items():
        if str(name).endswith("_run") or (array.dims and not set(dims) <= set(array.dims)):
            continue
        inner = [d for d in array.dims if d not in dims]
        for places in np.ndindex(*(array.sizes[d] for d in inner)):
            words = [str(result[d].values[i]) for d, i in zip(inner, places, strict=True)]
            component = array.isel(dict(zip(inner, places, strict=True)), drop=True)
            parts[f"{name}[{','.join(words)}]" if words else str(name)] = component.reset_coords(drop=True)
    table = xr.Dataset(parts, {d: result[d] for d in dims})
    return table.to_dataframe(dim_order=dims).reset_index() if dims else table.expand_dims("point").to_dataframe()


def main_dims(result: xr.Dataset) -> list[str]:
    """The dimensions of the sweep: those of the first quantity with the fewest, single runs and counts aside."""
    aside = ("runs", "failed", "outcome", "residual")
    names = [str(n) for n, x in result.data_vars.items() if n not in aside and (x.dtype.kind in "fiu" or n == "phase")]
    names = [n for n in names if not n.endswith(("_stderr", "_run"))]
    first = min(names, key=lambda n: result[n].ndim, default="")
    return [str(d) for d in result[first].dims] if first else []
