"""The views of the map for an energy of one's own: the cut through the dot, and the phase diagram column by column."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from quenched import replica
from quenched.explorer.answers import Answer, Knob, Spaced, State, evaluate, plain, turn, write
from quenched.explorer.energies import Energy, Ridge, asked, declare

KNOBS = (
    Knob("alpha", "examples per dimension", "α", 0.1, 50.0, 5.0, log=True),
    Knob("separation", "distance of the classes from the middle", "m", 0.2, 4.0, 1.5),
    Knob("ridge", "strength of the ridge", "λ", 0.01, 10.0, 1.0, log=True),
)
READINGS = {"cosine": "cosine of the angle with the truth", "R": "overlap with the truth, R",
            "Q": "squared length, Q", "free_energy": "free energy, f"}  # fmt: skip
COLUMNS, POINTS = 17, 41
"""Sample sizes of the diagram, and distances of the classes at each of them."""
BLIND = 1e-6
"""A state whose cosine is nowhere larger does not see the truth."""
SAME = 1e-7
"""States of mirror images differ by less."""
CONTROL = "means"
"""The name of the distance among the parameters of the theory."""


def describe() -> dict[str, Any]:
    """What the page has to know."""
    return {
        "words": "Your energy: a linear learner", "readings": READINGS, "columns": (COLUMNS, 1), "formula": True,
        "about": "A linear learner minimises an energy of your own. Where a region is informed it points towards the "
                 "truth, where it is misled, away from it.",
        "knobs": [vars(knob) for knob in KNOBS],
    }  # fmt: skip


def cut(state: State) -> Answer:
    """All states along the distance of the classes, at the sample size of the dot."""
    found, at = asked(state), turn(KNOBS, state.get("knobs", {}))
    known = _follow(found, at, at["alpha"])
    return Answer({"x": at["alpha"], "at": at["separation"]} | known.numbers, known.script, known.result)


def lines(state: State, columns: list[int] | None) -> Answer:
    """The phase diagram at some sample sizes."""
    found, at = asked(state), turn(KNOBS, state.get("knobs", {}))
    alphas = evaluate(Spaced(KNOBS[0].low, KNOBS[0].high, COLUMNS, log=True))
    at = at | {"separation": KNOBS[1].value}
    every = [_column(found, at, float(alphas[i])) for i in columns or range(COLUMNS)]
    script = (f"{declare(found, at)}\nlines = replica.transitions(problem, along={CONTROL!r}, "
              f"limits=({KNOBS[1].low!r}, {KNOBS[1].high!r}), alpha={write([one['x'] for one in every])})\n"
              "print(lines)")  # fmt: skip
    result: Any = xr.concat([one.pop("result") for one in every], "alpha", join="outer")
    return Answer({"columns": every}, script, result)


def _follow(found: Energy, at: dict[str, float], alpha: float) -> Answer:
    """Every state over the distance of the classes."""
    y = KNOBS[1]
    along = Spaced(y.low, y.high, POINTS, also=(at["separation"],))
    problem = replica.Problem(found.function, replica.Classes(means=at["separation"]), Ridge(at["ridge"]),
                              kinks=found.kinks)  # fmt: skip
    curve = replica.curve(problem, alpha=alpha, branches=True, **{CONTROL: evaluate(along)})
    spinodals: dict[str, list[float]] = {}
    names, outcome = _names(curve), curve["outcome"].values.astype(str)
    if np.any(outcome == "absent") or len(names) > 1:
        lines = replica.transitions(problem, along=CONTROL, limits=(y.low, y.high), alpha=alpha)
        for k, name in names.items():
            ends = [float(lines[end].values[k]) for end in ("start", "end")]
            spinodals[name] = [value for value in ends if np.isfinite(value)]
    there = outcome == "converged"
    best = np.array(_lowest({
        name: np.where(there[:, k], curve["free_energy"].values[:, k], np.nan) for k, name in names.items()
    }, len(there)))  # fmt: skip
    branches = {
        name: {one: plain(np.where(there[:, k], curve[one].values[:, k], np.nan)) for one in (*READINGS, "stability")}
        | {"level": plain(np.where(there[:, k], curve["free_energy"].values[:, k], np.nan)),
           "lowest": plain(best == name)}
        for k, name in names.items() if there[:, k].any()
    }  # fmt: skip
    script = (f"{declare(found, at)}\ncurve = replica.curve(problem, alpha={alpha!r}, branches=True, "
              f"{CONTROL}={along})\nprint(curve.sel({CONTROL}={at['separation']!r}))")  # fmt: skip
    lost = sorted(set(outcome.ravel()) - {"converged", "absent"})
    return Answer({"y": plain(curve[CONTROL].values), "branches": branches, "ends": spinodals, "lost": lost},
                  script, curve)  # fmt: skip


def _names(curve: xr.Dataset) -> dict[int, str]:
    """Branches by what they know of the truth; of two mirror images the second is left out."""
    names: dict[int, str] = {}
    for k in range(curve.sizes["branch"]):
        cosine, level = curve["cosine"].values[:, k], curve["free_energy"].values[:, k]
        kept = [(curve["cosine"].values[:, j], curve["free_energy"].values[:, j]) for j in names]
        if any(np.allclose([-cosine, level], other, rtol=0, atol=SAME, equal_nan=True) for other in kept):
            continue
        largest = cosine[np.nanargmax(np.abs(cosine))] if np.isfinite(cosine).any() else 0.0
        name = "blind" if abs(largest) < BLIND else "informed" if largest > 0 else "misled"
        count = sum(other.split("_")[0] == name for other in names.values())
        names[k] = f"{name}_{count + 1}" if count else name
    return names


def _column(found: Energy, at: dict[str, float], alpha: float) -> dict[str, Any]:
    """Walls between states of least free energy, spinodals, and where replica symmetry is broken."""
    known = _follow(found, at, alpha)
    cut, y = known.numbers, np.array(known.numbers["y"])
    level = {name: np.array(one["level"], float) for name, one in cut["branches"].items()}
    best = _lowest(level, len(y))
    stability = {name: np.array(one["stability"], float) for name, one in cut["branches"].items()}
    broken = np.array([name is not None and not stability[name][i] <= 1 for i, name in enumerate(best)])
    walls = [[_meet(level, cut["ends"], y, i, best), best[i + 1], best[i]]
             for i in range(len(y) - 1) if best[i] != best[i + 1]]  # fmt: skip
    spinodals = {f"{name}_{k}": value for name, values in cut["ends"].items() for k, value in enumerate(values)}
    return {"x": alpha, "walls": walls[::-1], "spinodals": spinodals, "symmetry": None, "broken": runs(y, broken),
            "only": None if walls else best[0], "cut": {"x": alpha, "at": at["separation"]} | cut,
            "result": known.result}  # fmt: skip


def _lowest(level: dict[str, np.ndarray], count: int) -> list[str | None]:
    """The state of least free energy at each point."""
    found: list[str | None] = []
    for i in range(count):
        there = {name: values[i] for name, values in level.items() if np.isfinite(values[i])}
        found.append(min(there, key=lambda name: there[name]) if there else None)
    return found


def _meet(level: dict[str, np.ndarray], ends: dict[str, list[float]], y: np.ndarray, i: int, best: list[Any]) -> float:
    """Where one state follows the other: free energies cross, or one of them ends."""
    low, high = best[i], best[i + 1]
    if low is not None and high is not None:
        gap = level[low][i : i + 2] - level[high][i : i + 2]
        if np.all(np.isfinite(gap)) and gap[0] < 0 < gap[1]:
            return float(y[i] + (y[i + 1] - y[i]) * gap[0] / (gap[0] - gap[1]))
    between = [value for name in (low, high) for value in ends.get(str(name), []) if y[i] <= value <= y[i + 1]]
    return between[0] if between else float((y[i] + y[i + 1]) / 2)


def runs(y: np.ndarray, true: np.ndarray) -> list[list[float]]:
    """The intervals in which something is true at the points, each as far as halfway to the next point."""
    middles = np.concatenate([y[:1], (y[1:] + y[:-1]) / 2, y[-1:]])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], true, [False]]).astype(int)))
    return [[float(middles[a]), float(middles[b])] for a, b in edges.reshape(-1, 2)]
