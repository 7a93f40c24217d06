"""All views, what the page has to know of them, and what is computed first."""

from __future__ import annotations

from typing import Any

from quenched.core.results import version
from quenched.explorer import energies, phases, plane, priors, tables, trial
from quenched.explorer.answers import State, View, turn
from quenched.explorer.claims import Papers
from quenched.explorer.shelf import BUNDLED, MOST_BYTES, Shelf
from quenched.explorer.systems import OWN, PRESETS, SYSTEMS
from quenched.papers import reproduction

GROWING = ("claims", "decide")
"""Views whose answer changes by itself: it is not kept."""


def views(shelf: Shelf, papers: Papers) -> dict[str, View]:
    """All views, by their names in questions."""
    return {
        "cut": phases.cut, "lines": phases.lines, "flow": phases.flow, "rest": phases.rest,
        "theory": trial.theory, "trial": lambda state: trial.trial(state, shelf.runs),
        "table": lambda state: tables.describe(state, shelf), "density": lambda state: tables.density(state, shelf),
        "forecast": lambda state: tables.forecast(state, shelf),
        "doubtful": lambda state: tables.doubtful(state, shelf),
        "clusters": lambda state: tables.clusters(state, shelf), "field": priors.field, "well": priors.well,
        "energy": energies.energy,
        "claims": papers.claims, "decide": papers.decide,
    }  # fmt: skip


def describe() -> dict[str, Any]:
    """What the page has to know before it asks."""
    return {
        "version": version(),
        "systems": {name: system.describe() for name, system in SYSTEMS.items()} | {OWN: plane.describe()},
        "presets": PRESETS, "sizes": trial.SIZES, "steps": trial.STEPS, "tables": BUNDLED, "bytes": MOST_BYTES,
        "learners": tables.LEARNERS, "priors": priors.describe(), "energies": energies.describe(),
        "papers": reproduction.papers(),
    }  # fmt: skip


def warm_up() -> list[tuple[str, str, State]]:
    """What is computed while nobody asks: words, view and state."""
    known = {name: system.words for name, system in SYSTEMS.items()} | {OWN: "Your energy: maps"}
    maps = [(known[str(state["system"])], view, state) for view, state in phases.warm()]
    drawn = {"points": [[2.0, 1.0], [5.0, -0.5], [7.0, 0.5]]}
    return [
        *maps, ("Priors: fields", "field", drawn),
        ("Priors: densities", "field", {"kind": "density", "points": [[2.0], [5.0], [7.0]]}),
        ("Priors: potentials", "well", {"example": "double well"}),
        ("Tables: densities", "density", {"table": "iris", "column": "petal length (cm)"}),
        ("Tables: forecasts", "forecast", {"table": "diabetes", "target": "target"}),
        ("Tables: clusters", "clusters", {"table": "iris"}),
        ("Your energy", "energy", {"formula": energies.ENERGIES["logistic"], "knobs": turn(energies.KNOBS, {})}),
    ]  # fmt: skip
