"""The views of the map: phase diagram, cut through the dot, and learning curves."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from quenched.core.types import InputError
from quenched.explorer import plane
from quenched.explorer.answers import Answer, Spaced, State, evaluate, plain, turn, write
from quenched.explorer.energies import ENERGIES
from quenched.explorer.plane import runs
from quenched.explorer.systems import OWN, POINTS, SYSTEMS, System, find, require_map

TIMES = 200
"""Steps of a learning curve."""


def cut(state: State) -> Answer:
    """All states along the vertical knob, at the sample size of the dot, and at the dot itself.

    Where states change, begin and end takes as long again: it is told to whoever asks for `fine` numbers.
    """
    if state.get("system") == OWN:
        return plane.cut(state)
    system, at = find(state)
    require_map(system)
    if state.get("fine") is not True:
        return _cut(system, at, None)
    law, rule = system.ask(at)
    return _cut(system, at, system.science.transitions(law, rule, alpha=at[system.knobs[0].name]))


def _cut(system: System, at: dict[str, float], lines: xr.Dataset | None) -> Answer:
    """A cut, with points where states change, begin and end, if these are known."""
    from quenched.plots.phases import SPINODALS, read_column  # late: it brings matplotlib

    x, y = system.knobs[:2]
    walls, ends = [], {}
    if lines is not None:
        column = read_column(lines.expand_dims("alpha"), json.loads(lines.attrs["boundaries"]), 0)
        walls = [value for value, *_ in column]
        ends = {name: value for name, value in _spinodals(lines).items() if y.low < value < y.high}
    places = sorted({at[y.name], *(value for value in walls if y.low < value < y.high), *ends.values()})
    (law, rule), along = system.ask(at), system.spaced(y, POINTS + 1, tuple(places))
    controls: dict[str, Any] = {"alpha": at[x.name], y.name: along}
    found = system.science.curve(law, rule, **{name: evaluate(value) for name, value in controls.items()})
    given = ", ".join(f"{name}={write(value)}" for name, value in controls.items())
    script = (f"import numpy as np\nfrom quenched import {system.package}\n"
              f"law, rule = {write(law)}, {write(rule)}\n"
              f"curve = {system.package}.curve(law, rule, {given})\n"
              f"print(curve.sel({y.name}={at[y.name]!r}))")  # fmt: skip
    by_state: dict[str, list[float]] = {}
    for name, value in ends.items():
        by_state.setdefault(next(name.removesuffix(end) for end in SPINODALS if name.endswith(end)), []).append(value)
    return Answer({"x": at[x.name], "y": plain(found[y.name].values), "at": at[y.name], "ends": by_state,
                   "coarse": lines is None}
                  | _branches(system, found), script, found)  # fmt: skip


def _spinodals(lines: xr.Dataset) -> dict[str, float]:
    """Where states begin and end, at one sample size."""
    from quenched.plots.phases import SPINODALS

    found = {str(name): float(lines[name]) for name in lines.data_vars
             if str(name).endswith(SPINODALS) and f"{name}_outcome" in lines}  # fmt: skip
    return {name: value for name, value in found.items() if np.isfinite(value)}


def _branches(system: System, found: xr.Dataset) -> dict[str, Any]:
    """The states of a cut by branch; where a theory has one state, by phase."""
    names = [name for name in system.readings if name in found]
    values = {name: found[name].values for name in [*names, "stability"]}
    outcome = found["outcome"].values.astype(str)
    if "branch" in found.dims:
        each = {str(b): (slice(None), k) for k, b in enumerate(found["branch"].values)}
        lowest = {b: found["lowest"].values[at] for b, at in each.items()}
        level = found["potential" if "potential" in found else "free_energy"].values
        there = {b: outcome[at] == "converged" for b, at in each.items()}
    else:
        phases = found["phase"].values.astype(str)
        each = {b: (slice(None),) for b in dict.fromkeys(phases)}
        level = found["free_energy"].values
        there = lowest = {b: _join(phases == b) & (outcome == "converged") for b in each}
    lost = sorted(set(outcome.ravel()) - {"converged", "absent"})
    branches = {
        b: {name: plain(np.where(there[b], value[at], np.nan)) for name, value in values.items()}
        | {"level": plain(np.where(there[b], level[at], np.nan)), "lowest": plain(lowest[b])}
        for b, at in each.items() if there[b].any()
    }  # fmt: skip
    return {"branches": branches, "lost": lost}


def _join(there: np.ndarray) -> np.ndarray:
    """Also the point at which the next state begins: it is the same there, because states change continuously."""
    return there | np.concatenate([[False], there[:-1]])


def lines(state: State) -> Answer:
    """The phase diagram at some sample sizes: what separates the states of least free energy there, and spinodals."""
    if state.get("system") == OWN:
        return plane.lines(state, _columns(state, plane.COLUMNS))
    system, at = find(state)
    require_map(system)
    asked = system.spaced(system.knobs[0], system.columns[0])
    alphas = evaluate(asked)
    if (columns := _columns(state, len(alphas))) is not None:
        asked = alphas[columns].tolist()
        alphas = np.array(asked)
    law, rule = system.ask(at)
    found = system.science.transitions(law, rule, alpha=alphas)
    script = (f"import numpy as np\nfrom quenched import {system.package}\n"
              f"law, rule = {write(law)}, {write(rule)}\n"
              f"lines = {system.package}.transitions(law, rule, alpha={write(asked)})\n"
              "print(lines)")  # fmt: skip
    from quenched.plots.phases import read_column  # late: it brings matplotlib

    bounds = json.loads(found.attrs["boundaries"])
    columns = [_column(system, state, found.isel(alpha=i), read_column(found, bounds, i)) for i in range(len(alphas))]
    return Answer({"columns": columns}, script, found)


def _columns(state: State, count: int) -> list[int] | None:
    """The columns that are asked for, None for all."""
    columns = state.get("columns")
    if columns is None:
        return None
    if not isinstance(columns, list) or not columns or not all(
        isinstance(i, int) and not isinstance(i, bool) and 0 <= i < count for i in columns
    ):  # fmt: skip
        raise InputError(f"Argument `columns` must be numbers from 0 to {count - 1}, but {columns!r} was given.")
    return sorted(set(columns))


def _column(system: System, state: State, found: xr.Dataset, walls: list[Any]) -> dict[str, Any]:
    """Walls between states, spinodals, and where replica symmetry is broken, at one sample size."""
    from quenched.plots.phases import BROKEN

    x, y = system.knobs[:2]
    alpha = float(found["alpha"])
    known: dict[str, Any] = {
        "x": alpha, "walls": [[value, above, below] for value, _, above, below in walls],
        "spinodals": _spinodals(found), "symmetry": plain(float(found[BROKEN])),
    }  # fmt: skip
    if system.package == "mixtures":  # the random state always breaks it, the ordered one below a line
        only = None if known["walls"] else "unsplit"
        return known | {"broken": _broken_below(known, y.low), "only": only}
    through = _cut(system, turn(system.knobs, state.get("knobs", {})) | {x.name: alpha, y.name: y.value}, found)
    beside = through.result
    assert beside is not None
    lowest, broken = beside["lowest"].values, beside["stability"].values > 1
    names = beside["branch"].values.astype(str)
    best = names[np.argmax(lowest, axis=1)]
    return known | {"broken": runs(beside[y.name].values, np.any(lowest & broken, axis=1)),
                    "only": None if known["walls"] else str(best[0]), "cut": through.numbers}  # fmt: skip


def _broken_below(known: dict[str, Any], low: float) -> list[list[float]]:
    """Where replica symmetry is broken in the states of mixtures of least free energy."""
    found = []
    for k, (top, _, state) in enumerate(known["walls"]):
        bottom = known["walls"][k + 1][0] if k + 1 < len(known["walls"]) else low
        if state == "random":
            found.append([bottom, top])
        elif state == "ordered" and known["symmetry"] is not None and known["symmetry"] > bottom:
            found.append([bottom, min(known["symmetry"], top)])
    return found


def flow(state: State) -> Answer:
    """The learning curve of prototypes."""
    system, at = _prototypes(state)
    law, rule = system.ask(at)
    times = Spaced(0.0, at["alpha"], TIMES + 1)
    found = system.science.curve(law, rule, alpha=evaluate(times))
    script = (f"import numpy as np\nfrom quenched import prototypes\nlaw, rule = {write(law)}, {write(rule)}\n"
              f"curve = prototypes.curve(law, rule, alpha={write(times)})\n"
              "print(curve.error.values)")  # fmt: skip
    labels = [str(int(v)).replace("1", "") or "+" for v in found["prototype"].values]
    names = [name if name in "+-" else "+" for name in labels]
    overlaps = {
        "R": {f"R{a}{b}": plain(found["R"].values[:, i, j]) for i, a in enumerate(names) for j, b in enumerate(names)},
        "Q": {f"Q{names[i]}{names[j]}": plain(found["Q"].values[:, i, j]) for i, j in ((0, 0), (0, 1), (1, 1))},
    }
    outcome = found["outcome"].values.astype(str)
    best = float(system.science.optimum(law).error)
    return Answer({"x": plain(found["alpha"].values), "error": plain(found["error"].values), "best": best,
                   "lost": sorted(set(outcome.ravel()) - {"converged"})} | overlaps,
                  script, found)  # fmt: skip


def rest(state: State) -> Answer:
    """Where a learning curve ends: it may take longer than the curve itself."""
    system, at = _prototypes(state)
    law, rule = system.ask(at)
    found = system.science.asymptote(law, rule)
    outcome = str(found["outcome"].values)
    script = (f"from quenched import prototypes\nlaw, rule = {write(law)}, {write(rule)}\n"
              "end = prototypes.asymptote(law, rule)\nprint(end.error.values)")  # fmt: skip
    why = "" if outcome == "converged" else f"There is no rest state: {outcome}."
    return Answer({"end": plain(float(found["error"])), "why": why}, script, found)


def _prototypes(state: State) -> tuple[System, dict[str, float]]:
    """A system with learning curves, and the values of its knobs."""
    system, at = find(state)
    if system.package != "prototypes":
        raise InputError(f"{system.words} must have learning curves here, but it has a phase diagram.")
    return system, at


def warm() -> list[tuple[str, State]]:
    """What is computed while nobody asks, so that the first question need not wait for programs to compile."""
    asked = {name: {"system": name, "knobs": turn(one.knobs, {})} for name, one in SYSTEMS.items()}
    maps = [name for name, one in SYSTEMS.items() if one.columns[0]]
    lines: list[tuple[str, State]] = []
    for name in maps:  # as the page asks: all columns at once, or the first of them
        count, chunk = SYSTEMS[name].columns
        lines.append(("lines", asked[name] | {"columns": list(range(count)) if chunk >= count else [0]}))
    cuts = [("cut", asked[name]) for name in maps]
    flows = [(view, one) for name, one in asked.items() if name not in maps for view in ("flow", "rest")]
    own: State = {"system": OWN, "knobs": turn(plane.KNOBS, {}), "formula": ENERGIES["logistic"]}
    return [cuts[0], lines[0], *cuts[1:], *flows, *lines[1:], ("cut", own)]
