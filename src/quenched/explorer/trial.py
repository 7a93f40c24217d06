"""The view of a simulation that grows: more and more runs of the learner, beside the line of the theory."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

import quenched
from quenched.core.types import InputError
from quenched.explorer.answers import Answer, Spaced, State, evaluate, plain, write
from quenched.explorer.phases import cut
from quenched.explorer.systems import System, find

SIZES = (50, 200, 800)
"""Dimensions N that are offered."""
STEPS = (10, 20, 40, 80, 160, 320)
"""Numbers of runs that a simulation grows through; ten are the fewest that a comparison takes."""
LINE = 97
"""Points of the line between them."""
MEASURED = 6
"""Points at which is simulated."""
COMPARED = {"mixtures": ("r", "q", "error"), "outliers": ("R", "Q"), "prototypes": ("error", "R")}
"""What theory and simulation are compared by."""
LOWEST, HIGHEST = 0.4, 1.12
"""Between which shares of the width at which they split mixtures are simulated."""


def trial(state: State, folder: Path) -> Answer:
    """A simulation with some runs, and how well it agrees with the theory.

    Args:
        state: the system, its knobs, the size and the number of runs.
        folder: where runs are kept, so that more of them go on from there.
    """
    system, at = find(state)
    size, runs = (_one_of(state, name, among) for name, among in (("size", SIZES), ("runs", STEPS)))
    name, points, theory_only, note = _points(system, at, state)
    law, rule = system.ask(at)
    controls: dict[str, Any] = {name: points} if name == "alpha" else {"alpha": at["alpha"], name: points}
    curve = system.science.curve(law, rule, **controls, **theory_only)
    begin = {} if system.start is None else {"start": system.start}
    found = system.science.measure(law, rule, **controls, size=size, runs=runs, batch=STEPS[0], key=jax.random.key(0),
                                   folder=folder, **begin)  # fmt: skip
    variables = list(COMPARED[system.package])
    said = {
        word: _agreement(curve, found, variables, share / size) for word, share in (("exact", 0.0), ("rounded", 1.0))
    }
    given = ", ".join(f"{key}={write(value)}" for key, value in controls.items())
    branch, start = ("".join(f", {key}={write(value)}" for key, value in one.items()) for one in (theory_only, begin))
    package = system.package
    script = (f"import jax, quenched\nfrom quenched import {package}\nlaw, rule = {write(law)}, {write(rule)}\n"
              f"curve = {package}.curve(law, rule, {given}{branch})\n"
              f"points = {package}.measure(law, rule, {given}, size={size}, runs={runs}, "
              f"key=jax.random.key(0){start})\n"
              f"print(quenched.agreement(curve, points, variables={variables!r}, allowance=1 / {size}))")  # fmt: skip
    shown = {
        variable: {"theory": _flat(curve, variable), "mean": _flat(found, variable),
                   "error": _flat(found, f"{variable}_stderr")}
        for variable in variables
    }  # fmt: skip
    return Answer({"along": name, "points": points, "size": size, "runs": runs, "failed": plain(_failed(found)),
                   "shown": shown, "note": note} | said, script, found)  # fmt: skip


def theory(state: State) -> Answer:
    """The line of the theory on which the simulation of the same state should land."""
    system, at = find(state)
    name, points, theory_only, note = _points(system, at, state)
    low = 0.0 if name == "alpha" else points[0]
    fine = Spaced(low, points[-1], LINE, also=tuple(points))
    law, rule = system.ask(at)
    fixed = {} if name == "alpha" else {"alpha": at["alpha"]}
    curve = system.science.curve(law, rule, **fixed, **{name: evaluate(fine)}, **theory_only)
    given = ", ".join(f"{key}={write(value)}" for key, value in [*fixed.items(), (name, fine), *theory_only.items()])
    variables = COMPARED[system.package]
    script = (f"import numpy as np\nfrom quenched import {system.package}\nlaw, rule = {write(law)}, {write(rule)}\n"
              f"curve = {system.package}.curve(law, rule, {given})\nprint(curve)")  # fmt: skip
    return Answer({"along": name, "x": plain(curve[name].values), "note": note,
                   "names": {variable: _names(curve, variable, name) for variable in variables},
                   "shown": {variable: _flat(curve, variable) for variable in variables}}, script, curve)  # fmt: skip


def _one_of(state: State, name: str, among: tuple[int, ...]) -> int:
    value = state.get(name, among[0])
    if value not in among or isinstance(value, bool):
        raise InputError(f"Choice `{name}` must be one of {', '.join(map(str, among))}, but {value!r} was given.")
    return int(value)


def _points(system: System, at: dict[str, float], state: State) -> tuple[str, list[float], dict[str, Any], str]:
    """The control, its values, what only the theory is told, and a sentence on where the theory is approximate."""
    if system.package == "prototypes":
        return "alpha", np.linspace(at["alpha"] / MEASURED, at["alpha"], MEASURED).round(6).tolist(), {}, ""
    y = system.knobs[1]
    if system.package == "mixtures":
        law, rule = system.ask(at)
        lines = system.science.transitions(law, rule, alpha=at["alpha"])
        split = np.nanmax([float(lines["splitting_ordered"]), float(lines["splitting_random"])])
        widths = np.linspace(LOWEST * split, min(HIGHEST * split, y.high), MEASURED)
        return y.name, widths.round(6).tolist(), {}, ""
    found = cut({"system": state["system"], "knobs": at}).result
    assert found is not None
    informed = found.sel(branch="informed")
    there = informed["outcome"].values == "converged"
    stable = there & (informed["stability"].values < 1)
    etas, note = found[y.name].values, ""
    if stable.sum() >= MEASURED:
        there = stable
    else:
        note = "Replica symmetry is broken at these points: the theory is an approximation there."
    if there.sum() < MEASURED:
        raise InputError("The informed state must exist at several values of η to be simulated, but it does not here.")
    places = etas[there]
    return y.name, np.linspace(places[0], places[-1], MEASURED).round(6).tolist(), {"branch": "informed"}, note


def _agreement(curve: xr.Dataset, found: xr.Dataset, variables: list[str], allowance: float) -> dict[str, Any]:
    """The test of theory against simulation, or why there is none."""
    try:
        one = quenched.agreement(curve, found, variables=variables, allowance=allowance)
    except InputError as error:
        return {"refused": str(error)}
    return {"p": one.p, "largest": plain(float(one.largest)), "where": one.where, "passed": one.passed,
            "allowance": allowance}  # fmt: skip


def _flat(data: xr.Dataset, name: str) -> list[Any]:
    """A variable by point: a list, or a list for each of its components."""
    values = data[name].values
    return plain(np.moveaxis(values, 0, -1).reshape(-1, len(values)) if values.ndim > 1 else values[None])


def _names(data: xr.Dataset, name: str, along: str) -> list[str]:
    """The components of a variable, as the papers index them: by signs of prototype and cluster."""
    axes = [data[dim].values for dim in data[name].dims if dim != along]
    return [name + "".join("+" if one > 0 else "−" for one in signs) for signs in itertools.product(*axes)]


def _failed(found: xr.Dataset) -> int:
    return int(np.sum(found["failed"].values))
