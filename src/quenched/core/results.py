"""Results are plain `xarray.Dataset`s: how they are named, compared, saved and loaded.

A theory has its order parameters as variables over the controls, and `outcome`. A simulation has the mean over
runs `X`, its standard error `X_stderr`, every run's own value `X_run` (dimension `run`), `runs` and `failed`.
`attrs` say law, rule, version and seed. Files are netCDF, written in one go, with a format number and a checksum.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import jax
import numpy as np
import xarray as xr

from quenched.core import checks, controls, files
from quenched.core.ensemble import Ensemble
from quenched.core.types import InputError, Key, Outcome, outcome_names

FORMAT = 1
"""Number of the file format."""
SEAL = b"\nquenched: sha256 of all before this line: "
"""What stands before the checksum of a file."""
LONGEST = 1000
"""Numbers of an array that are spelled out in a description; a longer one is known by its shape and digest."""


class OutputError(OSError):
    """The wanted place cannot be written; the sentence says where the result was put instead."""


def version() -> str:
    """The version of the package."""
    return importlib.metadata.version("quenched")


def describe(declared: Any) -> str:
    """A law, rule, start or schedule as JSON: its name and its fields, enough to declare it again.

    A table of data is named by its shape and digest: who has it knows it again.
    """

    def plain(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {"name": type(value).__name__, **{k: plain(v) for k, v in controls.fields(value).items()}}
        if isinstance(value, (np.ndarray, jax.Array)) and value.size > LONGEST:
            array = np.ascontiguousarray(value)
            return {"shape": list(array.shape), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}
        if isinstance(value, (np.ndarray, jax.Array)):
            return np.asarray(value).tolist()
        return list(value) if isinstance(value, tuple) else value

    return json.dumps(plain(declared), default=lambda value: getattr(value, "__name__", type(value).__name__))


def assemble(
    values: Mapping[str, Any],
    plan: controls.Plan,
    axes: Mapping[str, np.ndarray],
    dims: Mapping[str, tuple[str, ...]],
    coords: Mapping[str, Any],
    **attrs: Any,
) -> xr.Dataset:
    """Name the axes of arrays `[points, *axes, *dims of the variable]` and describe where they come from.

    Args:
        values: variable to array; points in the order of `plan`.
        plan: the sweep.
        axes: further controls, common to all points, in the order of the array axes.
        dims: the dimensions each order parameter has by itself.
        coords: coordinates of those dimensions.
        **attrs: what else to say.
    """
    law, rule = plan.laws[0], plan.rules[0]
    named = {}
    for name, value in values.items():
        array = np.asarray(value).reshape((*plan.shape, *np.shape(value)[1:]))
        array = outcome_names(array) if name == "outcome" else array
        named[name] = ((*plan.dims, *axes, *dims.get(name, ())), array)
    every = {**plan.coords, **{name: (name, axis) for name, axis in axes.items()}, **coords}
    about = {"law": describe(law), "rule": describe(rule), "version": version(), "format": FORMAT}
    return xr.Dataset(named, every, {**about, "sweep": " ".join(plan.dims), **attrs})


def assemble_runs(
    done: Ensemble,
    plan: controls.Plan,
    axes: Mapping[str, np.ndarray],
    dims: Mapping[str, tuple[str, ...]],
    coords: Mapping[str, Any],
    **attrs: Any,
) -> xr.Dataset:
    """Like `assemble` for the runs of an experiment: mean, standard error, and the runs themselves.

    Args:
        done: arrays `[points, runs, ...]`. Runs that failed are kept but take no part in the averages; what they
            said stands in the attribute `messages`. An array `stalled` says which runs did not come to their end; it
            becomes part of `outcome`.
        plan: the sweep.
        axes: further controls, common to all points.
        dims: the dimensions each order parameter has by itself.
        coords: coordinates of those dimensions.
        **attrs: what else to say.
    """
    every, every_dims = {}, dict(dims)
    for name, value in ((name, value) for name, value in done.values.items() if name != "stalled"):
        every |= {name: done.mean(name), f"{name}_stderr": done.stderr(name), f"{name}_run": np.moveaxis(value, 1, -1)}
        every_dims |= {f"{name}_stderr": dims[name], f"{name}_run": (*dims[name], "run")}
    if done.messages:
        attrs["messages"] = "; ".join(done.messages)
    result = assemble(every, plan, axes, every_dims, coords, **attrs)
    result["runs"] = (plan.dims, (~done.failed).sum(axis=1).reshape(plan.shape))
    result["failed"] = (plan.dims, done.failed.sum(axis=1).reshape(plan.shape))
    stalled = np.any(np.asarray(done.values.get("stalled", np.zeros(done.failed.shape))) > 0, axis=1)
    lost = done.failed.all(axis=1).reshape(-1, *(1,) * (stalled.ndim - 1))
    codes = np.where(lost, Outcome.failed, np.where(stalled, Outcome.stalled, Outcome.converged))
    along = tuple(axes)[: stalled.ndim - 1]
    result["outcome"] = ((*plan.dims, *along), outcome_names(codes).reshape((*plan.shape, *stalled.shape[1:])))
    return result


def stack(parts: Sequence[xr.Dataset], name: str, given: Any) -> xr.Dataset:
    """Results at successive values of a control as one; the dimension goes if a single number was given."""
    values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    result: Any = xr.concat(parts, xr.Variable(name, values), data_vars="all", combine_attrs="override")
    return result.isel({name: 0}) if np.ndim(given) == 0 else result


def seed(key: Key) -> str:
    """A key as text."""
    return f"{jax.random.key_impl(key)}:{np.asarray(jax.random.key_data(key)).tolist()}"


def class_coords(dim: str, labels: Any) -> dict[str, Any]:
    """Coordinates of a dimension of labelled things: the labels where they are distinct, otherwise their place."""
    labels = np.asarray(labels)
    distinct = len(set(labels.tolist())) == len(labels)
    return {dim: (dim, labels if distinct else np.arange(len(labels))), f"{dim}_label": (dim, labels)}


def save(result: xr.Dataset, path: str | os.PathLike[str]) -> Path:
    """Save a result as netCDF; the file appears whole or not at all.

    Args:
        result: from `curve`, `measure` or any other verb.
        path: where. Missing folders are made.

    Returns:
        The path.

    Raises:
        OutputError: if that place cannot be written; the result then lies in a temporary folder the sentence names.
    """
    checks.kind("result", result, xr.Dataset, "a dataset")
    target = checks.path("path", path)
    marked = result.assign_attrs(format=FORMAT)
    marked = marked.assign_attrs(checksum=_checksum(marked))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with files.whole(target) as part:
            marked.to_netcdf(part, engine="h5netcdf")
            _seal(part)
    except OSError as error:
        refuge = Path(tempfile.mkdtemp(prefix="quenched-")) / (target.name or "result.nc")
        marked.to_netcdf(refuge, engine="h5netcdf")
        _seal(refuge)
        raise OutputError(f"{target} could not be written ({error.strerror or error}); "
                          f"the result was put in {refuge}.") from None  # fmt: skip
    except (TypeError, ValueError) as error:
        raise InputError(f"Argument `result` must hold what netCDF can, numbers and text, but: {error}.") from None
    return target


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Load a result that `save` wrote, and check that it is whole.

    Raises:
        InputError: if there is no such file, it is damaged, or it is not a result of this package.
    """
    source = checks.path("path", path)
    if not os.path.isfile(source):
        raise InputError(f"Argument `path` must be a result file, but {source} is not there.")
    try:
        if _is_broken(source):
            raise OSError("another checksum of the whole file")
        with h5py.File(source, "r"):  # h5netcdf leaves a file that it cannot open half made
            pass
        with xr.open_dataset(source, engine="h5netcdf") as stored:
            result = stored.load()
    except Exception as error:  # h5py and xarray raise many kinds for a file cut short
        raise InputError(f"{source} must be a whole netCDF file, but it cannot be read: it is damaged or of "
                         f"another kind ({type(error).__name__}).") from None  # fmt: skip
    number = result.attrs.get("format")
    if not isinstance(number, (int, np.integer)) or number < 1:
        raise InputError(f"{source} must be a result of quenched (format {FORMAT}), but it is not.")
    if number > FORMAT:
        raise InputError(f"{source} must be of format {FORMAT} or older, but it is of format {number}, which a newer "
                         "quenched wrote.")  # fmt: skip
    for name, variable in result.variables.items():
        if variable.dtype == object:  # text comes back as objects
            result[name] = variable.astype(str)
    if result.attrs.pop("checksum", None) != _checksum(result):
        raise InputError(f"{source} must be unchanged since it was saved, but its checksum differs.")
    return result


def _seal(path: Path) -> None:
    """Write the checksum of the whole file at its end, which readers of netCDF do not look at."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    with path.open("ab") as file:
        file.write(SEAL + digest.encode())


def _is_broken(path: Path) -> bool:
    """Whether a file is not as it was sealed, before anything in it is believed. One without a seal may be whole."""
    content = path.read_bytes()
    body, seal, digest = content[:-64], content[-64 - len(SEAL) : -64], content[-64:]
    return seal == SEAL and hashlib.sha256(body.removesuffix(SEAL)).hexdigest().encode() != digest


def _checksum(result: xr.Dataset) -> str:
    """Digest of all variables, in order of their names, and of all that is said about them."""
    digest = hashlib.sha256(_facts(result.attrs).encode())
    for name in sorted(map(str, result.variables)):
        values = np.ascontiguousarray(result[name].values)
        text = values.dtype.kind in "UO"
        kind = "text" if text else values.dtype.str
        digest.update(f"{name} {kind} {result[name].dims} {values.shape} {_facts(result[name].attrs)}".encode())
        digest.update("\n".join(values.ravel()).encode() if text else values.tobytes())
    return digest.hexdigest()


def _facts(attrs: Mapping[Any, Any]) -> str:
    """Attributes as text that is the same before a file and after it."""
    plain = {str(k): np.asarray(v).tolist() for k, v in attrs.items() if k != "checksum"}
    return json.dumps(plain, sort_keys=True, default=str)
