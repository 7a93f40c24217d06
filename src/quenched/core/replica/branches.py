"""Branches: states followed on the host in one control, `alpha` or a parameter of the problem, through folds.

A branch is a family of local minima of the free energy over $R$ and $Q$ ($z$ taken out): states in which training may
end. Between two folds lies a family of saddles that separate them; it is followed, but is not a branch. States that
differ by the sign of the cosine only are one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from quenched.core import checks, saddle
from quenched.core.replica.problem import Problem
from quenched.core.replica.state import RELAXED
from quenched.core.replica.theory import REPLICA, Setting
from quenched.core.types import InputError, Outcome

STARTS = np.array([(c, np.log(Q), np.log(z)) for c in (0.2, -0.9) for Q in (0.01, 1.0, 10.0) for z in (0.01, 1.0)])
"""Where states are sought: cosine, $\\ln Q/\\rho^2$, $\\ln z$."""
LOW, HIGH = np.array([-1.01, -16.0, -16.0]), np.array([1.01, 12.0, 12.0])
"""The box in which branches are followed."""
STEP = 0.03
"""Longest step along a branch, as a share of box and range."""
SAME = 1e-6
"""Unknowns that differ by less are those of one state."""
EDGE = 1e-9
"""A value that is outside a branch by a smaller share of it is at its end."""


def resolve(problem: Problem, name: str) -> str:
    """The place of a control among the parameters of the theory: `alpha`, or a number of the problem."""
    if name == "alpha":
        return name
    places = {"": problem, "energy.": problem.energy, "norm.": problem.norm, "classes.": problem.classes}
    known = [
        place + field.name
        for place, home in places.items()
        for field in dataclasses.fields(home)
        if not callable(value := getattr(home, field.name)) and np.ndim(value) == 0 and np.isreal(value)
    ]
    found = [path for path in known if name in (path, path.rpartition(".")[2])]
    if len(found) != 1:
        raise InputError(f"A control must be alpha or one of {', '.join(known)}, but {name!r} was given.")
    return f"problem.{found[0]}"


def check_start(start: Any) -> np.ndarray | None:
    """A start (R, Q, z) as numbers."""
    if start is None:
        return None
    given = checks.numbers("start", start)
    if given.shape != (3,) or not np.all(np.isfinite(given)) or given[1] <= 0 or given[2] <= 0:
        raise InputError(f"Argument `start` must be (R, Q, z) with positive Q and z, but {start} was given.")
    return given


def unknowns(problem: Problem, start: np.ndarray) -> np.ndarray:
    """The cosine, ln Q and ln z."""
    R, Q, z = start
    return np.array([R / np.sqrt(problem.rho2 * Q), np.log(Q), np.log(z)])


def solve(theta: Setting, along: str, starts: np.ndarray, relaxed: int = RELAXED) -> list[saddle.Point]:
    """The points that are reached from unknowns `[n, 3]`."""
    return [saddle.solve(REPLICA, theta, start, relaxations=relaxed, along=along) for start in starts]


def default_starts(problem: Problem, starts: np.ndarray = STARTS) -> np.ndarray:
    """Unknowns at which a search begins."""
    return starts + np.array([0.0, np.log(problem.rho2), 0.0])


def trace(theta: Setting, along: str, limits: tuple[float, float], start: np.ndarray | None) -> list[saddle.Branch]:
    """All branches within limits of a control, in the order in which they begin.

    States are sought at both limits and in the middle, from a start too, if one is given, and followed from there.
    """
    arms: list[saddle.Branch] = []
    starts = default_starts(theta.problem)
    if start is not None:
        starts = np.vstack([unknowns(theta.problem, start), starts])
    for control in (limits[0], limits[1], 0.5 * (limits[0] + limits[1])):
        there = saddle.move(theta, along, np.float64(control))
        for point in solve(there, along, starts):
            inside = np.all((point.x > LOW) & (point.x < HIGH))
            if point.outcome is Outcome.converged and inside and not _is_known(point, arms):
                new = [arm for arm in _follow(there, point, along, limits).arms if len(arm.control) > 1]
                arms += [arm for arm in new if not _is_known(_middle(arm), arms)]
    minima = [arm for arm in arms if _is_minimum(theta, along, _middle(arm))]
    return sorted(minima, key=lambda arm: (arm.control[0], arm.free_energy[0]))


def _follow(theta: Setting, point: saddle.Point, along: str, limits: tuple[float, float]) -> saddle.Branch:
    """The whole curve through a state: from the state to one end, and back from there."""

    def follow(x: np.ndarray, control: float, upwards: bool) -> saddle.Branch:
        at = saddle.move(theta, along, np.float64(control))
        return saddle.follow(REPLICA, x, at, along, limits, upwards=upwards, low=LOW, high=HIGH, step=STEP)

    curve = follow(point.x, point.control, point.control < limits[1])
    if curve.end is saddle.End.closed or point.control in limits or len(curve.control) < 2:
        return curve
    return follow(curve.x[-1], float(curve.control[-1]), bool(curve.control[-1] < curve.control[-2]))


def _middle(arm: saddle.Branch) -> saddle.Point:
    k = len(arm.control) // 2
    return saddle.Point(arm.x[k], float(arm.free_energy[k]), (), -1, 0.0, Outcome.converged, float(arm.control[k]))


def _is_known(point: saddle.Point, arms: list[saddle.Branch]) -> bool:
    """Whether a state, or its mirror image, lies on an arm."""
    found = [other for arm in arms if (other := find(arm, point.control)) is not None]
    sign = np.array([np.sign(point.x[0]), 1.0, 1.0])
    return any(np.all(np.abs(np.sign([other.x[0], 1, 1]) * other.x - sign * point.x) < SAME) for other in found)


def find(arm: saddle.Branch, value: float) -> saddle.Point | None:
    """The state of an arm at a value of the control, rounding errors of its ends included."""
    inside = float(np.clip(value, arm.control[0], arm.control[-1]))
    return arm.find(inside) if abs(inside - value) <= EDGE * abs(value) else None


def _is_minimum(theta: Setting, along: str, point: saddle.Point) -> bool:
    """Whether the free energy, with z taken out, has a minimum over R and Q.

    By the cosine and ln Q its curvatures are those by R and Q times a triangular matrix of positive diagonal.
    """
    J = saddle.evaluate(REPLICA, point.x, theta, along, point.control).slopes
    reduced = J[:2, :2] - np.outer(J[:2, 2], J[2, :2]) / J[2, 2]
    return bool(reduced[0, 0] > 0 and np.linalg.det(reduced) > 0)


def ends(arm: saddle.Branch) -> Iterator[saddle.Point | None]:
    """The folds at which an arm begins and ends; None where it reaches a limit."""
    for control in arm.control[[0, -1]]:
        yield next((fold for fold in arm.folds if fold.control == control), None)
