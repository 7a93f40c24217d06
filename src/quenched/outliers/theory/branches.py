r"""Branches: the states at one sample size form a curve in $\eta$, and it is followed through its folds.

It begins at small $\eta$, where one state exists, and turns back and forth; a branch lies wherever it runs towards
growing $\eta$. The first is the informed one, the last (for soft selection and Gibbs learning) the trivial one, the
one before it the overfit one. Where there are more, for a $\gamma$ of some hundreds, those after the informed one are
called `partial`, `partial_2`, and so on. The trivial state of hard selection is no part of the curve: it selects
nothing, exactly, for $\eta > \eta_0$.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from quenched.core import saddle
from quenched.core.types import InputError, Outcome
from quenched.outliers.theory.hard import HARD, threshold
from quenched.outliers.theory.setting import Setting, Student
from quenched.outliers.theory.state import State, guess, read

STEP = 0.03
"""Longest step along the curve, as a share of box and range."""
SHORTEST = -12.0
"""The $\\ln Q$ down to which the curve is followed from small $\\eta$: beyond, it is on its way to nothing."""
LARGEST = 300.0
"""Largest size of $\\eta$: a share of informative examples whose square is still a number."""
NOTHING = State(0.0, 0.0, 0.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0, Outcome.converged, 0.0)
"""The state of hard selection that selects nothing. [dietrich1998, erratum E8]"""


class Branches(NamedTuple):
    """The curve of states at one sample size, cut into branches."""

    theory: Student
    theta: Setting  # its eta means nothing
    arms: dict[str, saddle.Branch]  # those that exist and are parts of the curve, in its order
    outcome: Outcome  # of the whole curve
    threshold: float  # eta above which nothing is selected, exactly; infinite but for hard selection


def trace(theory: Student, theta: Setting, etas: Any = 0.0, *, informed: bool = False) -> Branches:
    """Follow the curve of states at one sample size, over all its folds and over `etas`.

    If only the `informed` branch is wanted, no further than to the last of them, where it reaches so far.
    """
    gt, b = float(theta.gt), float(theta.gt**2 / theta.gamma)
    low = min(float(np.min(etas)), -gt / 2) - 5.0
    high = min(max(float(np.max(etas)), gt / 2 + b + max(float(np.log(theta.alpha)), 0.0)) + 5.0, LARGEST)
    if informed:
        curve = follow(theory, theta, (low, float(np.max(etas)) + 1e-6))
        if curve.end is saddle.End.range and not curve.folds:
            return Branches(theory, theta, {"informed": curve}, curve.outcome, np.inf)
    if theory is HARD:
        curve = follow(theory, theta, (low, high))
        return Branches(theory, theta, _name(curve.arms[::2]), curve.outcome, float(threshold(theta)))
    back = follow(theory, theta, (low, high), upwards=False)  # from where only the trivial state is left
    if back.end is saddle.End.range:
        *arms, last = back.arms[::2][::-1]
        named = _name(arms) | {"trivial": last} if arms else {"informed": last}
        return Branches(theory, theta, named, back.outcome, np.inf)
    # where b is large the Gaussian at the trivial branch's fold is too narrow for its jump: so from the other side
    curve = follow(theory, theta, (low, high))
    ends = [mark.control for mark in curve.folds]
    named = _name([arm for arm in curve.arms[::2] if arm.control[-1] in ends or not back.arms])
    trivial = {"trivial": back.arms[0]} if back.arms else {}
    return Branches(theory, theta, named | trivial, curve.outcome, np.inf)


def _name(arms: Sequence[saddle.Branch]) -> dict[str, saddle.Branch]:
    """Names for arms in the order of the curve, without the trivial one."""
    between = ["partial", *(f"partial_{k}" for k in range(2, len(arms)))]
    names = ["informed", *between[: len(arms) - 2], "overfit"] if len(arms) > 1 else ["informed"]
    return dict(zip(names, arms, strict=False))


def follow(theory: Student, theta: Setting, limits: tuple[float, float], *, upwards: bool = True) -> saddle.Branch:
    """The curve of states from small eta upwards, or from large eta downwards."""
    theta = theta._replace(eta=np.float64(limits[0] if upwards else limits[1]))
    start = guess(theta, "informed" if upwards else "trivial")
    deepest = SHORTEST if upwards else start[1] - 5.0
    low, high = [0.0, deepest, -np.log1p(theta.alpha * theta.gt) - 5.0], [np.tan(0.3 * np.pi), 5.0, 5.0]
    return saddle.follow(theory, start, theta, "eta", limits, upwards=upwards, low=low, high=high, step=STEP)


def find(branches: Branches, name: str, eta: float) -> tuple[State, float]:
    """The state of one branch at an eta, and its free energy; `absent` where it does not exist."""
    theta, arm = branches.theta._replace(eta=np.float64(eta)), branches.arms.get(name)
    if name == "trivial" and np.isfinite(branches.threshold) and eta > branches.threshold:
        return NOTHING, 0.0
    if arm is not None and arm.control[0] <= eta <= arm.control[-1]:
        point = arm.find(eta)
        if point is None:
            return _missing(Outcome.failed), np.nan
        return read(branches.theory, point, theta), point.free_energy
    lost = branches.outcome is not Outcome.converged and (arm is None or name == "informed")
    return _missing(branches.outcome if lost else Outcome.absent), np.nan


def _missing(outcome: Outcome) -> State:
    return NOTHING._replace(**dict.fromkeys(State._fields[:9], np.nan), outcome=outcome)


def sort_names(found: Iterable[str]) -> list[str]:
    """All names of branches, the usual three and those found, in the order of the curve."""
    partial = sorted({name for name in found if name.startswith("partial")}, key=lambda name: (len(name), name))
    return ["informed", *partial, "overfit", "trivial"]


def check_eta(etas: Any) -> None:
    """Check that the share of informative examples is a number."""
    if np.any(np.abs(etas) > LARGEST):
        raise InputError(f"Argument `eta` must lie between {-LARGEST:g} and {LARGEST:g}, but {etas} was given.")
