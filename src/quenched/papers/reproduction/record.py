"""Figures and claims as JSON, without pickles."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any

import numpy as np
import xarray as xr

from quenched.core.claims import Check, Claim, Comparison
from quenched.core.figures import Figure, Kind, Panel, Scale, Series
from quenched.core.proof import Agreement

_KINDS: dict[str, Any] = {
    c.__name__: c for c in (Agreement, Check, Claim, Comparison, Figure, Kind, Panel, Scale, Series)
}


def encode(value: Any) -> str:
    """A figure, claims or a part of them as text.

    Raises:
        TypeError: for an object of another class.
    """
    return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, xr.Dataset):
        return {"dataset": value.to_dict()}
    if isinstance(value, enum.Enum) and type(value).__name__ in _KINDS:
        return {"kind": type(value).__name__, "member": value.name}
    if dataclasses.is_dataclass(value) and type(value).__name__ in _KINDS:
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"kind": type(value).__name__, "fields": fields}
    raise TypeError(f"a {type(value).__name__} cannot be kept")


def decode(text: str) -> Any:
    """The inverse of `encode`: lists become tuples.

    Raises:
        ValueError: for other text; also LookupError, TypeError, AttributeError or RecursionError.
    """
    return _object(json.loads(text))


def _object(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_object, value))
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.asarray(value["array"])
    if "dataset" in value:
        return xr.Dataset.from_dict(value["dataset"])
    if "member" in value:
        return _KINDS[value["kind"]][value["member"]]
    if "kind" in value:
        return _KINDS[value["kind"]](**{name: _object(field) for name, field in value["fields"].items()})
    return {name: _object(one) for name, one in value.items()}
