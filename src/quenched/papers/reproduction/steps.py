"""The steps of a reproduction, figures of papers and their claims: which there are, and how they are kept on disk."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import importlib
import importlib.metadata
import json
import pkgutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from quenched import papers as shelf
from quenched.core.claims import Check, Claim, Comparison
from quenched.core.errors import InputError, meant
from quenched.core.figures import Figure, Kind, Panel, Scale, Section, Series
from quenched.core.proof import Agreement
from quenched.core.store import Damaged, Store, code_digest

if TYPE_CHECKING:
    from quenched.papers.reproduction.run import Done

CLAIMS = "claims"
"""The last step of a paper."""

DEMO = "demo"
"""The name of the demonstration, beside those of papers."""

SHOWN = {DEMO: ("forecast", "density"), "biehl2006": ("figure_3_left",), "malzahn2002": ("figure_1",),
         "barkai1994": ("figure_1",), "dietrich1998": ("figure_1",), "lemm1999": ("figure_14",)}  # fmt: skip
"""What `quenched demo` computes: two answers on data, and a figure of each paper."""


class Step(NamedTuple):
    """A figure of a paper, or its claims.

    Attributes:
        paper: such as "biehl2006".
        name: such as "figure_3_left", or "claims".
    """

    paper: str
    name: str

    def __str__(self) -> str:
        return f"{self.paper}/{self.name}"


def papers() -> list[str]:
    """The names of all papers, by year."""
    names = [module.name for module in pkgutil.iter_modules(shelf.__path__) if module.name[-4:].isdigit()]
    return sorted(names, key=lambda name: (name[-4:], name))


def paper(name: str) -> ModuleType:
    """The module of a paper.

    Raises:
        InputError: if there is none of that name.
    """
    if name == DEMO:
        return importlib.import_module("quenched.papers.reproduction.demonstration")
    _check(name)
    return importlib.import_module(f"quenched.papers.{name}")


def _check(name: str) -> None:
    """Check that there is a paper of this name."""
    if name not in papers():
        raise InputError(
            f"Argument PAPER must be one of: {', '.join(papers())}; but {name!r} was given{meant(name, papers())}."
        )


def steps(names: Sequence[str], figures: Sequence[str] = ()) -> list[Step]:
    """The steps of papers: all figures and the claims, or some figures without the claims.

    Args:
        names: the papers.
        figures: figures wanted; "3" stands for all parts of figure 3.

    Raises:
        InputError: if there is no such paper or figure.
    """
    found = []
    for name in names:
        _check(name)
        there = list(paper(name).FIGURES)
        chosen = [part for word in figures for part in _parts(word, there)] if figures else [*there, CLAIMS]
        found += [Step(name, part) for part in dict.fromkeys(chosen)]
    return found


def _parts(word: str, there: Sequence[str]) -> list[str]:
    """The figures that a word stands for."""
    name = word if word.startswith("figure_") else f"figure_{word.replace(' ', '_')}"
    parts = [key for key in there if key == name or key.startswith(f"{name}_")]
    if not parts:
        raise InputError(f"Option --figure must be one of: {', '.join(there)}; but {word!r} was given.")
    return parts


def demo() -> list[Step]:
    """The steps of the demonstration."""
    return [Step(paper, name) for paper, names in SHOWN.items() for name in names]


def sections(done: Mapping[Step, Done], *, complete: bool = True) -> list[Section]:
    """The results of the steps, paper by paper.

    Args:
        done: the steps, in order, with their results.
        complete: whether to list the figures that are not built as well.
    """
    found = []
    for name in dict.fromkeys(step.paper for step in done):
        module, own = paper(name), {step.name: one for step, one in done.items() if step.paper == name}
        found.append(
            Section(
                name,
                module.TITLE,
                module.REFERENCE,
                tuple(one.value for one in own.values() if isinstance(one.value, Figure)),
                tuple(claim for one in own.values() if isinstance(one.value, tuple) for claim in one.value),
                dict(getattr(module, "NOT_BUILT", {})) if complete else {},
                {part: one.sentence for part, one in own.items() if one.value is None},
            )
        )
    return found


# Steps on disk: JSON, without pickles

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


def _file(step: Step) -> str:
    return f"{step.paper}-{step.name}.json"


def _identity(step: Step, *, quick: bool) -> str:
    """A digest of the code that computes a step, and whether it is the quick form."""
    own = Path(paper(step.paper).__file__ or "").read_bytes()
    versions = [importlib.metadata.version(name) for name in ("jax", "numpy", "scipy")]
    return hashlib.sha256(f"{code_digest('quenched')} {versions} {quick}".encode() + own).hexdigest()


def write(store: Store, step: Step, kept: dict[str, Any], *, quick: bool) -> str:
    """Keep the value of a step, and its processor seconds; return why that failed, if it did."""
    return store.write(_file(step), encode(kept).encode(), _identity(step, quick=quick))


def read(store: Store, step: Step, *, quick: bool) -> dict[str, Any] | None:
    """A step that was kept, and its processor seconds; None if it is absent, damaged, or made by other code."""
    try:
        body = store.read(_file(step), _identity(step, quick=quick))
        kept = {} if body is None else decode(body.decode())
        return kept if isinstance(kept["value"], (Figure, tuple)) else None
    except (Damaged, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
