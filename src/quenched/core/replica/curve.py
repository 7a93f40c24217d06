"""The learning curve of any energy in theory: one state at each point, or every branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core import checks, results, saddle
from quenched.core.replica.branches import check_start, default_starts, ends, find, resolve, solve, trace, unknowns
from quenched.core.replica.problem import Problem, check
from quenched.core.replica.state import STARTS, State
from quenched.core.replica.theory import Setting
from quenched.core.types import InputError, Outcome, double, outcome_names

if TYPE_CHECKING:
    import xarray as xr


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
    count = max((len(row[0]) for row in found), default=0)
    absent = _missing(Outcome.absent)
    table = [[[*point, *[absent] * (count - len(point))] for point in row] for row in found]
    shape, dims = [len(row) for row in ([table, table[0], table[0][0]])], [*axes, "branch"]
    many = {
        key: np.array([[[getattr(one, key) for one in point] for point in row] for row in table]).reshape(shape)
        for key in State._fields
    }
    many["cosine"] = many["R"] / np.sqrt(np.asarray(problem.rho2) * many["Q"])
    many["outcome"] = outcome_names(many["outcome"])
    if branches:
        f = np.where(np.isnan(many["free_energy"]), np.inf, many["free_energy"])
        many["lowest"] = np.isfinite(f) & (f == np.min(f, axis=-1, keepdims=True, initial=np.inf))
    shape = [*(len(v) for v in axes.values()), count]
    result = xr.Dataset(
        {key: (dims, value.reshape(shape)) for key, value in many.items()},
        axes | {"branch": np.arange(count)},
        results.provenance("replica", problem=results.describe(problem), source="theory"),
    )
    single = {key: 0 for key, given in {"alpha": alpha, **control}.items() if np.ndim(given) == 0}
    result = result.isel(single)
    return result if branches else result.isel(branch=0, drop=True)


def read(problem: Problem, point: saddle.Point) -> State:
    """A point as order parameters."""
    c, Q, z = point.x[0], np.exp(point.x[1]), np.exp(point.x[2])
    R = c * np.sqrt(problem.rho2 * Q)
    energy, stability = map(float, point.readings)
    return State(R, Q, z, point.free_energy, energy, stability, point.outcome, point.residual)


def _missing(outcome: Outcome) -> State:
    nan = np.nan
    return State(nan, nan, nan, nan, nan, nan, outcome, nan)


def _single(theta: Setting, along: str, values: np.ndarray, start: np.ndarray | None) -> list[list[State]]:
    """One state at each value of a control."""
    several = default_starts(theta.problem, np.column_stack([STARTS[:, 0], np.log(STARTS[:, 1:])]))
    here, found = None if start is None else unknowns(theta.problem, start), []
    for value in values:
        there = saddle.move(theta, along, np.float64(value))
        points = [] if here is None else solve(there, along, here[None], relaxed=0)
        if not points or points[0].outcome is not Outcome.converged:
            points = solve(there, along, several)
        good = [point for point in points if point.outcome is Outcome.converged]
        best = min(good, key=lambda point: point.free_energy) if good else min(points, key=lambda p: p.residual)
        found.append([read(there.problem, best)])
        here = best.x if good else None
    return found


def _branches(theta: Setting, along: str, values: np.ndarray, start: np.ndarray | None) -> list[list[State]]:
    """The states of all branches at each value of a control."""
    low, high = float(values[0]), float(values[-1])
    if low == high:  # a branch needs a range
        low, high = (1 - 1e-3) * low, (1 + 1e-3) * high
    arms = trace(theta, along, (low, high), start)

    def state(arm: saddle.Branch, value: float) -> State:
        point = find(arm, value)
        if point is not None:
            return read(saddle.move(theta, along, np.float64(value)).problem, point)
        lost = arm.outcome is not Outcome.converged and list(ends(arm))[int(value > arm.control[0])] is None
        return _missing(arm.outcome if lost else Outcome.absent)

    return [[state(arm, float(value)) for arm in arms] for value in values]
