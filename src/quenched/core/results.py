"""Results are plain `xarray.Dataset`s: how they are named, saved and loaded.

A theory has its order parameters as variables over the controls, and `outcome`. A simulation has the mean over runs
`X`, its standard error `X_stderr`, every run's own value `X_run` (dimension `run`), `runs` and `failed`. `attrs` hold
law, rule, version and seed. Files are netCDF with a checksum at the end (see `store`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from quenched.core import checks, store
from quenched.core.store import OutputError as OutputError
from quenched.core.system import require_memory
from quenched.core.types import InputError, Key

if TYPE_CHECKING:
    import h5py
    import xarray as xr

FORMAT = 2
"""Number of the file format."""
SMALL = 2**26
"""Bytes that the arrays of a file may take even if it is smaller."""
BARE = "b'This is a netCDF dimension but not a netCDF variable"
"""The beginning of the name of a dimension without values, which takes no space."""
LONGEST = 1000
"""Numbers of an array that are listed in a description."""


def version() -> str:
    """The version of the package."""
    return importlib.metadata.version("quenched")


def provenance(science: str, **facts: Any) -> dict[str, Any]:
    """Attributes of a result: facts about it, the science, and the versions of package and file format."""
    return {**facts, "science": science, "version": version(), "format": FORMAT}


def describe(declared: Any) -> str:
    """A law, rule, start or schedule as JSON: its name and its fields; a large array by its shape and digest."""

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
            return {"name": type(value).__name__, **fields}
        if isinstance(value, (np.ndarray, jax.Array)) and value.size > LONGEST:
            array = np.ascontiguousarray(value)
            return {"shape": list(array.shape), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}
        if isinstance(value, (np.ndarray, jax.Array)):
            return np.asarray(value).tolist()
        return list(value) if isinstance(value, tuple) else value

    return json.dumps(plain(declared), default=lambda value: getattr(value, "__name__", type(value).__name__))


def seed(key: Key) -> str:
    """A key as text."""
    return f"{jax.random.key_impl(key)}:{np.asarray(jax.random.key_data(key)).tolist()}"


def save(result: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Save a result as netCDF; the file appears complete or not at all.

    Whatever `load` could not return unchanged is an error before anything is written. A list of one number, as an
    attribute, comes back as the number. Missing folders are created.

    Raises:
        InputError: if the result holds what a netCDF file cannot.
        OutputError: if that place cannot be written; the result then lies in a temporary folder that is named.
    """
    import xarray as xr  # takes half a second: here, as in all functions that need it

    checks.kind("result", result, xr.Dataset, "a dataset")
    target = checks.path("path", path)
    content = store.seal(_pack(result))

    def write(folder: Path) -> Path:
        place = target if folder == target.parent else folder / f"{target.stem[:40] or 'result'}.nc"
        store.remove_parts(folder)
        store.write(place, content)
        return place

    return store.write_into(target.parent, write, target)


def _pack(result: xr.Dataset) -> bytes:
    """A result as a file in memory, verified by reading it back: on disk, a lack of space could end the process."""
    marked = result.drop_encoding().assign_attrs(format=FORMAT)
    try:
        before = _content(marked)
        body = bytes(marked.to_netcdf(engine="h5netcdf"))
        back = _content(_unpack(body))
    except Exception as error:  # whatever libraries raise for what they cannot write
        raise InputError(f"Argument `result` must hold what netCDF can, numbers and text, but: "
                         f"{str(error).rstrip('.')}.") from None  # fmt: skip
    if changed := [name or "its attributes" for name in before if before[name] != back.get(name)]:
        raise InputError(f"Argument `result` must hold what a netCDF file returns unchanged, but "
                         f"{' and '.join(changed)} would not come back as saved: some names of attributes, such as "
                         "`scale_factor` and `units`, have a meaning there.")  # fmt: skip
    return body


def _content(result: xr.Dataset) -> dict[str, Any]:
    """All that a result holds, by name, in a form that is the same before a file and after it."""
    found: dict[str, Any] = {"": _facts(result.attrs)}
    for name, variable in result.variables.items():
        values = np.ascontiguousarray(variable.values)
        text = values.dtype.kind in "UO"
        if text and not all(isinstance(word, str) for word in values.flat):
            raise TypeError(f"variable `{name}` holds objects that are not text")
        kept = values.ravel().tolist() if text else (values.dtype.str, values.tobytes())
        found[f"variable `{name}`"] = (variable.dims, values.shape, kept, _facts(variable.attrs))
    return found


def _facts(attrs: Mapping[Any, Any]) -> str:
    """Attributes as text."""
    plain = {str(k): np.asarray(v) for k, v in attrs.items()}
    if truths := [k for k, v in plain.items() if v.dtype.kind == "b"]:
        raise TypeError(f"attribute `{truths[0]}` is a truth value, for which there is 1 or 0")
    plain = {k: v.item() if v.size == 1 else v.tolist() for k, v in plain.items()}  # netCDF has no lists of one
    return json.dumps(plain, sort_keys=True, default=str)


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Load a result that `save` wrote.

    The checksum at the end of the file is verified before anything in it is used, and its arrays must not be larger
    than the file: a damaged file can keep its reader busy for ever, and a small one can unpack to gigabytes.

    Raises:
        InputError: if the file does not exist, is damaged, or is not a result of this package.
    """
    source = checks.path("path", path)
    if not os.path.isfile(source):
        raise InputError(f"Argument `path` must be a result file, but {source} is not there.")
    try:
        result = _unpack(store.read(source))
    except InputError:
        raise
    except store.Damaged as error:
        raise InputError(f"{source} must be a result of quenched as `save` wrote it, but it is damaged or of another "
                         f"kind: {error}.") from None  # fmt: skip
    except Exception as error:  # h5py and xarray raise many kinds for what is not netCDF
        raise InputError(f"{source} must be a complete netCDF file, but it cannot be read: it is damaged or of "
                         f"another kind ({type(error).__name__}).") from None  # fmt: skip
    number = result.attrs.get("format")
    if not isinstance(number, (int, np.integer)) or number < 1:
        raise InputError(f"{source} must be a result of quenched (format {FORMAT}), but it is not.")
    if number > FORMAT:
        raise InputError(f"{source} must be of format {FORMAT} or older, but it is of format {number}, which a newer "
                         "quenched wrote.")  # fmt: skip
    result.attrs.pop("checksum", None)  # format 1 had another one inside
    return result


def _unpack(body: bytes) -> xr.Dataset:
    """The dataset in the bytes of a netCDF file."""
    import h5py
    import xarray as xr

    with h5py.File(io.BytesIO(body), "r") as file:  # h5netcdf leaves a file that it cannot open half made
        _check_sizes(file, body)
    with xr.open_dataset(io.BytesIO(body), engine="h5netcdf") as stored:
        result = stored.load()
    for name, variable in result.variables.items():
        if variable.dtype == object:  # text comes back as objects
            result[name] = variable.astype(str)
    return result


def _check_sizes(file: h5py.File, body: bytes) -> None:
    """Check that all arrays together are not larger than the file, as compressed or overlapping ones would be."""
    import h5py

    left = max(len(body), SMALL)

    def look(_: str, item: Any) -> None:
        nonlocal left
        if not isinstance(item, h5py.Dataset) or str(item.attrs.get("NAME", "")).startswith(BARE):
            return
        size, kind = item.nbytes, item.dtype
        if kind.kind == "O" and item.size:  # each element has the length of its text, and where that is
            start = item.id.get_offset()
            if start is None or h5py.check_string_dtype(kind) is None:
                raise ValueError("its text is not as it was saved")
            length = np.frombuffer(body, "<u4", 4 * item.size, start)[::4]
            require_memory("Text", 4.0 * item.size * int(length.max()))  # as NumPy holds it
            size += int(length.sum(dtype=np.int64))
        left -= size
        if left < 0:
            raise ValueError("its arrays are larger than the file")

    file.visititems(look)
