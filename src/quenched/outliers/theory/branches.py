r"""Branches: the states at one sample size form a curve in $\eta$, and it is followed through its folds.

It begins at small $\eta$, where one state exists, and turns back and forth; a branch lies wherever it runs towards
growing $\eta$. The first is the informed one, the last (for soft selection and Gibbs learning) the trivial one, the
one before it the overfit one. Where there are more, for a $\gamma$ of some hundreds, those after the informed one are
called `partial`, `partial_2`, and so on. The trivial state of hard selection is no part of the curve: it selects
nothing, exactly, for $\eta > \eta_0$.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from quenched.core import saddle
from quenched.core.types import Outcome
from quenched.outliers.theory.hard import HARD, threshold
from quenched.outliers.theory.setting import Setting, Student
from quenched.outliers.theory.state import NOTHING, State, guess, read

STEP = 0.03
"""Longest step along the curve, as a share of box and range."""
SHORTEST = -12.0
"""The $\\ln Q$ down to which the curve is followed from small $\\eta$: beyond, it is on its way to nothing."""
LARGEST = 300.0
"""Largest size of $\\eta$: a share of informative examples whose square is still a number."""
RANGE = 10.0
"""Factor by which a control other than eta is varied to either side of its value, where no limits are given."""
SAME = 1e-6
"""Two states whose unknowns differ by less are one."""

Limits = tuple[float, float]


class Branches(NamedTuple):
    """The curve of states at one sample size, cut into branches."""

    theory: Student
    theta: Setting  # its control means nothing
    along: str
    arms: list[tuple[str, saddle.Branch]]  # with their names, in the order of the curve; along others than eta unnamed
    outcome: Outcome  # of the whole curve
    empty: Limits | None = None  # of hard selection: controls between which selecting nothing is a state

    def find(self, name: str, eta: float) -> tuple[State, float]:
        """The state of one branch at an eta, and its free energy; `absent` where it does not exist."""
        arms = [arm for other, arm in self.arms if other == name]
        if name == "trivial" and self.empty is not None and eta > self.empty[0]:
            return NOTHING, 0.0
        lost = self.outcome is not Outcome.converged and (not arms or name == "informed")
        outcome = self.outcome if lost else Outcome.absent
        for arm in arms:
            if arm.control[0] <= eta <= arm.control[-1]:
                point, outcome = arm.find(eta), Outcome.failed
                if point is not None:
                    return read(self.theory, point, self.theta._replace(eta=np.float64(eta))), point.free_energy
        missing = dict.fromkeys(State._fields[:9], np.nan)
        return NOTHING._replace(**missing, outcome=outcome), np.nan

    def name(self, x: np.ndarray, control: float) -> str:
        """The name of a state: that of the branch in eta on which it lies; empty if it is unstable."""
        states = _find_states(self.theory, saddle.move(self.theta, self.along, np.float64(control)))
        return next((name for name, other in states.items() if np.allclose(x, other, rtol=0, atol=SAME)), "")


def trace(theory: Student, theta: Setting, etas: Any = 0.0, *, informed: bool = False) -> Branches:
    """Follow the curve of states at one sample size in eta, over all its folds and over `etas`.

    If only the `informed` branch is wanted, no further than to the last of them, where it reaches so far.
    """
    gt, b = float(theta.gt), float(theta.gt**2 / theta.gamma)
    low = min(float(np.min(etas)), -gt / 2) - 5.0
    high = min(max(float(np.max(etas)), gt / 2 + b + max(float(np.log(theta.alpha)), 0.0)) + 5.0, LARGEST)
    found = functools.partial(Branches, theory, theta, "eta")
    if informed:
        curve = follow(theory, theta, (low, float(np.max(etas)) + 1e-6))
        if curve.end is saddle.End.range and not curve.folds:
            return found([("informed", curve)], curve.outcome)
    if theory is HARD:
        curve = follow(theory, theta, (low, high))
        return found(_name(curve.arms[::2]), curve.outcome, (float(threshold(theta)), np.inf))
    back = follow(theory, theta, (low, high), upwards=False)  # from where only the trivial state is left
    if back.end is saddle.End.range:
        *arms, last = back.arms[::2][::-1]
        return found([*_name(arms), ("trivial", last)] if arms else [("informed", last)], back.outcome)
    # where b is large the Gaussian at the trivial branch's fold is too narrow for its jump: so from the other side
    curve = follow(theory, theta, (low, high))
    ends = [mark.control for mark in curve.folds]
    arms = [arm for arm in curve.arms[::2] if arm.control[-1] in ends or not back.arms]
    return found([*_name(arms), *(("trivial", arm) for arm in back.arms[:1])], curve.outcome)


def trace_along(theory: Student, theta: Setting, along: str, limits: Any = None) -> Branches:
    """Follow the states along any control, from both of its limits and from its own value."""
    own = float(saddle.control_of(theta, along))
    if limits is None and along == "eta":
        return trace(theory, theta)
    limits = (own / RANGE, own * RANGE) if limits is None else (float(limits[0]), float(limits[1]))
    curves = []
    for control in sorted({*limits, float(np.clip(own, *limits))}):
        here = saddle.move(theta, along, np.float64(control))
        for x in _find_states(theory, here).values():
            low, high = _box(saddle.move(theta, along, np.float64(limits[1])), min(SHORTEST, x[1] - 5.0))
            for upwards in {control < limits[1], control == limits[0]}:
                curves.append(saddle.follow(
                    theory, x, here, along, limits, upwards=upwards, low=low, high=high, step=STEP
                ))  # fmt: skip
    arms: list[saddle.Branch] = []
    for arm in sorted((arm for curve in curves for arm in curve.arms), key=lambda arm: -np.ptp(arm.control)):
        middle = arm.find(float(arm.control[[0, -1]].mean()))
        others = [] if middle is None else [other.find(middle.control) for other in arms]
        if middle is not None and not any(o is not None and np.allclose(o.x, middle.x, 0, SAME) for o in others):
            arms.append(arm)
    worst = max((curve.outcome for curve in curves), default=Outcome.failed)
    empty = _find_empty(theory, theta, along, limits)
    return Branches(theory, theta, along, [("", arm) for arm in arms], worst, empty)


def _find_states(theory: Student, theta: Setting) -> dict[str, np.ndarray]:
    """The unknowns of all states in their branches."""
    found = {name: arm.find(float(theta.eta)) for name, arm in trace(theory, theta, theta.eta).arms}
    return {name: point.x for name, point in found.items() if point is not None}


def _find_empty(theory: Student, theta: Setting, along: str, limits: Limits) -> Limits | None:
    """Between which controls selecting nothing is a state of hard selection; infinite where it does not end."""
    if theory is not HARD:
        return None
    if along == "eta":
        return float(threshold(theta)), np.inf

    def above(control: float) -> float:
        return float(theta.eta - threshold(saddle.move(theta, along, control)))

    low, high = (above(limit) > 0 for limit in limits)
    edge = saddle.find_root(above, *limits) if low != high else np.nan
    return (-np.inf, np.inf if high else edge) if low else (edge, np.inf) if high else (np.inf, -np.inf)


def _name(arms: Sequence[saddle.Branch]) -> list[tuple[str, saddle.Branch]]:
    """Names for arms in the order of the curve, without the trivial one."""
    between = ["partial", *(f"partial_{k}" for k in range(2, len(arms)))]
    names = ["informed", *between[: len(arms) - 2], "overfit"] if len(arms) > 1 else ["informed"]
    return list(zip(names, arms, strict=False))


def _box(theta: Setting, deepest: float) -> tuple[list[float], list[float]]:
    """Bounds of the unknowns."""
    return [0.0, deepest, -np.log1p(theta.alpha * theta.gt) - 5.0], [np.tan(0.3 * np.pi), 5.0, 5.0]


def follow(theory: Student, theta: Setting, limits: Limits, *, upwards: bool = True) -> saddle.Branch:
    """The curve of states from small eta upwards, or from large eta downwards."""
    theta = theta._replace(eta=np.float64(limits[0] if upwards else limits[1]))
    start = guess(theta, "informed" if upwards else "trivial")
    low, high = _box(theta, SHORTEST if upwards else start[1] - 5.0)
    return saddle.follow(theory, start, theta, "eta", limits, upwards=upwards, low=low, high=high, step=STEP)


def sort_names(found: Iterable[str]) -> list[str]:
    """All names of branches, the usual three and those found, in the order of the curve."""
    partial = sorted({name for name in found if name.startswith("partial")}, key=lambda name: (len(name), name))
    return ["informed", *partial, "overfit", "trivial"]
