"""The steps of a reproduction: figures of papers, and their claims."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from quenched import papers as shelf
from quenched.core.figures import Figure, Section
from quenched.core.types import InputError

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
        raise InputError(f"Argument PAPER must be one of: {', '.join(papers())}; but {name!r} was given.")


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
