"""The learning curve of any energy in theory: one state at each point, or every branch.

A branch is a family of local minima of the free energy over $R$ and $Q$ ($z$ taken out), states in which training may
end, followed in one control through folds. The family of saddles between two folds is followed, but is not a branch.
States that differ by the sign of the cosine only are one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core import checks, results, saddle
from quenched.core.replica.problem import Problem, check
from quenched.core.replica.state import RELAXED, State
from quenched.core.replica.state import STARTS as FEW
from quenched.core.replica.theory import REPLICA, Setting
from quenched.core.types import InputError, Outcome, double, outcome_names

if TYPE_CHECKING:
    import xarray as xr

STARTS = np.array([(c, np.log(Q), np.log(z)) for c in (0.2, -0.9) for Q in (0.01, 1.0, 10.0) for z in (0.01, 1.0)])
"""Where branches are sought: cosine, $\\ln Q/\\rho^2$, $\\ln z$."""
LOW, HIGH = np.array([-1.01, -16.0, -16.0]), np.array([1.01, 12.0, 12.0])
"""The box in which branches are followed."""
STEP = 0.03
"""Longest step along a branch, as a share of box and range."""
SAME = 1e-6
"""Unknowns that differ by less are those of one state."""
EDGE = 1e-9
"""A value that is outside a branch by a smaller share of it is at its end."""


@double
def curve(problem: Problem, *, alpha: Any, branches: bool = False, start: Any = None, **control: Any) -> xr.Dataset:
    r"""The learning curve in theory.

    Args:
        problem: what is trained.
        alpha: increasing numbers of examples per dimension, or one. Each point is sought from the last one; where
            that fails, from several starts.
        branches: whether all branches are wanted, along a dimension `branch`. They are followed through folds.
        start: $(R, Q, z)$ near the first point; by default several starts, and the lowest free energy. With
            `branches`, one more place where states are sought.
        **control: increasing values of one more parameter: the name of a number among the fields of the problem, its
            energy, its norm or its classes (`scale=...`, or `**{"energy.scale": ...}` where several have that name).
            Each point is then sought from the last one along it.

    Returns:
        A dataset over `alpha` (and the other control) with `R`, `Q`, `z`, `cosine` $= R/(\rho \sqrt Q)$,
        `free_energy`, `example_energy`, `stability` (replica symmetry holds below 1), `outcome` and `residual`. With
        `branches`, also `lowest`, whether this branch has the least free energy there; a branch that does not exist
        has the outcome `absent` and NaN. Branches are numbered in the order in which they begin.

    Raises:
        InputError: for an energy that `check` rejects, or numbers of examples that are not positive.

    Examples:
        >>> from quenched.core import replica
        >>> squares = replica.Problem(lambda y, Q: 0.5 * y**2, replica.Classes(noise=1.0), lambda R, Q: Q / 2 + R)
        >>> curve = replica.curve(squares, alpha=[0.5, 1.0, 2.0])
        >>> curve.Q.values.round(4)
        array([0.7808, 0.618 , 0.4142])
    """
    import xarray as xr

    check(problem)
    axes = {"alpha": checks.increasing("alpha", alpha)}
    checks.positive("alpha", alpha)
    if len(control) > 1:
        raise InputError(f"One control besides alpha must be given, but {', '.join(control)} were.")
    axes |= {name: checks.increasing(name, values, least=-np.inf) for name, values in control.items()}
    name, values = list(axes.items())[-1]
    along, begin = resolve(problem, name), check_start(start)
    rows = [Setting(problem, np.float64(a)) for a in (axes["alpha"] if control else axes["alpha"][:1])]
    states = _branches if branches else _single
    found = [states(saddle.move(theta, along, values[0]), along, values, begin) for theta in rows]
    count = max(len(row[0]) for row in found)
    table = np.array([[[*point, *[_missing(Outcome.absent)] * (count - len(point))] for point in row] for row in found])
    shape = [*(len(v) for v in axes.values()), count]
    many = dict(zip(State._fields, np.moveaxis(table.reshape(*shape, len(State._fields)), -1, 0), strict=True))
    many["cosine"] = many["R"] / np.sqrt(np.asarray(problem.rho2) * many["Q"])
    if branches:
        f = np.where(np.isnan(many["free_energy"]), np.inf, many["free_energy"])
        many["lowest"] = np.isfinite(f) & (f == np.min(f, axis=-1, keepdims=True, initial=np.inf))
    result = xr.Dataset(
        {key: ([*axes, "branch"], outcome_names(v) if key == "outcome" else v) for key, v in many.items()},
        axes | {"branch": np.arange(count)},
        results.provenance("replica", problem=results.describe(problem), source="theory"),
    )
    result = result.isel({key: 0 for key, given in {"alpha": alpha, **control}.items() if np.ndim(given) == 0})
    return result if branches else result.isel(branch=0, drop=True)


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


def _unknowns(problem: Problem, start: np.ndarray) -> np.ndarray:
    R, Q, z = start
    return np.array([R / np.sqrt(problem.rho2 * Q), np.log(Q), np.log(z)])


def _solve(theta: Setting, along: str, starts: np.ndarray, relaxed: int = RELAXED) -> list[saddle.Point]:
    """The points that are reached from unknowns `[n, 3]`."""
    return [saddle.solve(REPLICA, theta, start, relaxations=relaxed, along=along) for start in starts]


def _missing(outcome: Outcome) -> State:
    return State._make([*[np.nan] * 6, outcome, np.nan])


def _read(problem: Problem, point: saddle.Point) -> State:
    """A point as order parameters."""
    c, Q, z = point.x[0], np.exp(point.x[1]), np.exp(point.x[2])
    R, (energy, stability) = c * np.sqrt(problem.rho2 * Q), map(float, point.readings)
    return State(R, Q, z, point.free_energy, energy, stability, point.outcome, point.residual)


def _single(theta: Setting, along: str, values: np.ndarray, start: np.ndarray | None) -> list[list[State]]:
    """One state at each value of a control."""
    several = FEW + np.array([0.0, np.log(theta.problem.rho2), 0.0])
    here, found = None if start is None else _unknowns(theta.problem, start), []
    for value in values:
        there = saddle.move(theta, along, np.float64(value))
        points = [] if here is None else _solve(there, along, here[None], relaxed=0)
        if not points or points[0].outcome is not Outcome.converged:
            points = _solve(there, along, several)
        good = [point for point in points if point.outcome is Outcome.converged]
        best = min(good, key=lambda point: point.free_energy) if good else min(points, key=lambda p: p.residual)
        found.append([_read(there.problem, best)])
        here = best.x if good else None
    return found


def _branches(theta: Setting, along: str, values: np.ndarray, start: np.ndarray | None) -> list[list[State]]:
    """The states of all branches at each value of a control."""
    low, high = float(values[0]), float(values[-1])
    if low == high:  # a branch needs a range
        low, high = (1 - 1e-3) * low, (1 + 1e-3) * high
    arms = trace(theta, along, (low, high), start)

    def state(arm: saddle.Branch, value: float) -> State:
        point = _find(arm, value)
        if point is not None:
            return _read(saddle.move(theta, along, np.float64(value)).problem, point)
        lost = arm.outcome is not Outcome.converged and ends(arm)[int(value > arm.control[0])] is None
        return _missing(arm.outcome if lost else Outcome.absent)

    return [[state(arm, float(value)) for arm in arms] for value in values]


def trace(theta: Setting, along: str, limits: tuple[float, float], start: np.ndarray | None) -> list[saddle.Branch]:
    """All branches within limits of a control, in the order in which they begin.

    States are sought at both limits and in the middle, from a start too, if one is given, and followed from there.
    """
    arms: list[saddle.Branch] = []
    starts = STARTS + np.array([0.0, np.log(theta.problem.rho2), 0.0])
    if start is not None:
        starts = np.vstack([_unknowns(theta.problem, start), starts])
    for control in (limits[0], limits[1], 0.5 * (limits[0] + limits[1])):
        there = saddle.move(theta, along, np.float64(control))
        for point in _solve(there, along, starts):
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
    return arm.states[len(arm.states) // 2].point


def _is_known(point: saddle.Point, arms: list[saddle.Branch]) -> bool:
    """Whether a state, or its mirror image, lies on an arm."""
    found = [other for arm in arms if (other := _find(arm, point.control)) is not None]
    sign = np.array([np.sign(point.x[0]), 1.0, 1.0])
    return any(np.all(np.abs(np.sign([other.x[0], 1, 1]) * other.x - sign * point.x) < SAME) for other in found)


def _find(arm: saddle.Branch, value: float) -> saddle.Point | None:
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


def ends(arm: saddle.Branch) -> list[saddle.Point | None]:
    """The folds at which an arm begins and ends; None where it reaches a limit."""
    return [next((fold for fold in arm.folds if fold.control == end), None) for end in arm.control[[0, -1]]]
