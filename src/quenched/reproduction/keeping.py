"""Steps on disk: figures and claims as JSON, without pickles, known by the code that made them.

A file holds one step. It names the code (a digest of every source file of the package and of the paper), so that a
step computed by other code is not taken for this one's; it carries a checksum, and is written whole or not at all.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import hashlib
import importlib.metadata
import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import xarray as xr

import quenched
from quenched.core import files
from quenched.core.claims import Check, Claim, Comparison
from quenched.core.figures import Figure, Kind, Panel, Scale, Series
from quenched.core.proof import Agreement

FORMAT = 1
"""Number of the file format."""

_KINDS: dict[str, type] = {
    c.__name__: c for c in (Agreement, Check, Claim, Comparison, Figure, Kind, Panel, Scale, Series)
}
_MACHINERY = ("jax", "numpy", "scipy")


class Unknown(Exception):
    """A file that is not there, is damaged, or was made by other code."""


@functools.lru_cache(maxsize=1)
def _package() -> str:
    """The digest of this package, and the versions of what it stands on."""
    total = hashlib.sha256()
    for path in sorted(Path(quenched.__path__[0]).rglob("*.py")):
        total.update(path.read_bytes())
    versions = [importlib.metadata.version(name) for name in _MACHINERY]
    return f"{total.hexdigest()} {' '.join(versions)}"


def code(module: ModuleType, *, quick: bool) -> str:
    """What determines a step besides its name: the code, and whether it is the quick form."""
    own = hashlib.sha256(Path(module.__file__ or "").read_bytes()).hexdigest()
    return hashlib.sha256(f"{_package()} {own} {quick}".encode()).hexdigest()


def write(path: Path, value: Any, identity: str, **about: float) -> None:
    """Keep a step, and what else is to be said about it.

    Raises:
        OSError: if it cannot be written.
    """
    content = {"format": FORMAT, "code": identity, **about, "value": encode(value)}
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}\n")


def read(path: Path, identity: str) -> Any:
    """A step that was kept.

    Raises:
        Unknown: if it is not there, not whole, or made by other code.
    """
    try:
        content = contents(path)
        if content["format"] != FORMAT or content["code"] != identity:
            raise Unknown(f"{path} was made by other code")
        return decode(content["value"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Unknown(f"{path} cannot be read ({type(error).__name__})") from error


def contents(path: Path) -> dict[str, Any]:
    """All that a file says.

    Raises:
        Unknown: if it is not whole.
    """
    checksum, _, text = path.read_text(encoding="utf-8").rstrip("\n").partition("\n")
    if hashlib.sha256(text.encode()).hexdigest() != checksum:
        raise Unknown(f"{path} is damaged")
    return json.loads(text)


def encode(value: Any) -> Any:
    """A figure, claims or a part of them as plain data."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, (np.bool_, np.integer)):
        return value.item()
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, xr.Dataset):
        variables = {str(k): [list(v.dims), _array(v.values), encode(v.attrs)] for k, v in value.variables.items()}
        return {"dataset": variables, "coords": [str(k) for k in value.coords], "attrs": encode(value.attrs)}
    if isinstance(value, enum.Enum):
        return {"enum": type(value).__name__, "name": value.name}
    if dataclasses.is_dataclass(value) and type(value).__name__ in _KINDS:
        fields = {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"kind": type(value).__name__, "fields": fields}
    if isinstance(value, Mapping):
        return {"map": [[encode(k), encode(v)] for k, v in value.items()]}
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [encode(v) for v in value]}
    raise TypeError(f"a {type(value).__name__} cannot be kept")


def decode(value: Any) -> Any:
    """What `encode` made of it."""
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "array" in value:
        raw = np.frombuffer(base64.b64decode(value["array"]), np.dtype(value["dtype"]))
        return raw.reshape(value["shape"]).copy()
    if "dataset" in value:
        variables = {k: (dims, decode(v), decode(attrs)) for k, (dims, v, attrs) in value["dataset"].items()}
        coords = {k: variables.pop(k) for k in value["coords"]}
        return xr.Dataset(variables, coords, decode(value["attrs"]))
    if "enum" in value:
        return _KINDS[value["enum"]][value["name"]]  # pyright: ignore[reportIndexIssue]
    if "kind" in value:
        return _KINDS[value["kind"]](**{k: decode(v) for k, v in value["fields"].items()})
    if "map" in value:
        return {decode(k): decode(v) for k, v in value["map"]}
    ((kind, items),) = value.items()
    return {"tuple": tuple, "list": list}[kind](decode(v) for v in items)


def _array(array: np.ndarray) -> dict[str, Any]:
    """An array of numbers or text."""
    plain = np.ascontiguousarray(array.astype(str) if array.dtype == object else array)
    content = base64.b64encode(plain.tobytes()).decode("ascii")
    return {"array": content, "dtype": plain.dtype.str, "shape": list(array.shape)}
