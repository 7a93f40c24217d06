"""The lines of a phase diagram of any energy: first-order transitions, spinodals, and the end of replica symmetry."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core import checks, results, saddle
from quenched.core.replica.curve import check_start, ends, resolve, trace
from quenched.core.replica.problem import Problem, check
from quenched.core.replica.theory import Setting
from quenched.core.types import InputError, Outcome, double

if TYPE_CHECKING:
    import xarray as xr


@double
def transitions(
    problem: Problem, *, along: str = "alpha", limits: tuple[float, float], alpha: Any = None, start: Any = None
) -> xr.Dataset:
    r"""Where the state changes: values of a control, between limits.

    Args:
        problem: what is trained.
        along: the control in which transitions are sought: `alpha`, or the name of a number among the fields of the
            problem, its energy, its norm or its classes.
        limits: its lowest and highest value.
        alpha: increasing numbers of examples per dimension, or one; not given where the control is `alpha`.
        start: $(R, Q, z)$, one more place where states are sought.

    Returns:
        Over `alpha`, and `branch` as `curve` numbers them at its limits: the spinodals `start` and `end` at which a
        branch begins and ends in a fold, and `replica_symmetry`, the first value at which its stability is 1. Over
        `pair`, such as `"0-1"`: `crossing`, the first value at which two branches have the same free energy. Each
        has its `_outcome`, `absent` where there is none, and its `_stability` (of a crossing, the larger of the two):
        where it exceeds 1 replica symmetry is broken and the number is an approximation.

    Raises:
        InputError: for an energy that `check` rejects, or a control that does not exist.
    """
    import xarray as xr

    check(problem)
    begin, path = check_start(start), resolve(problem, along)
    given = checks.increasing("limits", limits, least=-np.inf)
    if given.size != 2:
        raise InputError(f"Argument `limits` must be a low and a high value, but {limits} was given.")
    low, high = (float(limit) for limit in given)
    if (alpha is None) != (path == "alpha"):
        raise InputError("Argument `alpha` must be given, unless it is the control, but it was "
                         f"{'not given' if alpha is None else 'given'} along {along}.")  # fmt: skip
    alphas = np.array([low]) if alpha is None else checks.increasing("alpha", alpha)
    checks.positive("alpha", alphas)
    rows = [_lines(trace(Setting(problem, np.float64(a)), path, (low, high), begin)) for a in alphas]
    result = xr.concat(rows, "alpha", join="outer", fill_value=np.nan).assign_coords(alpha=alphas)
    for name in result.data_vars:
        if str(name).endswith("_outcome"):
            result[name] = result[name].where(result[name].notnull(), Outcome.absent.name).astype(str)
    result.attrs = results.provenance("replica", problem=results.describe(problem), source="lines", along=along)
    if alpha is None:
        return result.isel(alpha=0, drop=True)
    return result.isel(alpha=0) if np.ndim(alpha) == 0 else result


def _lines(arms: list[saddle.Branch]) -> xr.Dataset:
    """All lines between some branches."""
    import xarray as xr

    pairs = list(itertools.combinations(range(len(arms)), 2))
    folds = [ends(arm) for arm in arms]
    lines = {
        "start": ("branch", [fold[0] for fold in folds]),
        "end": ("branch", [fold[1] for fold in folds]),
        "replica_symmetry": ("branch", [_first(saddle.locate(arm, "stability", 1.0)) for arm in arms]),
        "crossing": ("pair", [_first(saddle.crossings(arms[i], arms[j])) for i, j in pairs]),
    }
    values: dict[str, Any] = {}
    for name, (dimension, points) in lines.items():
        control = [np.nan if point is None else point.control for point in points]
        outcome = [(Outcome.absent if point is None else point.outcome).name for point in points]
        values |= {name: (dimension, control), f"{name}_outcome": (dimension, np.array(outcome, dtype=object))}
        values[f"{name}_stability"] = (dimension, [_stability(point) for point in points])
    return xr.Dataset(values, {"branch": np.arange(len(arms)), "pair": [f"{i}-{j}" for i, j in pairs]})


def _first(points: tuple[saddle.Point, ...]) -> saddle.Point | None:
    return min(points, key=lambda point: point.control, default=None)


def _stability(point: saddle.Point | None) -> float:
    """The stability at a point; at a crossing the larger of the two."""
    if point is None or not point.readings:
        return np.nan
    both = point.readings if point.x.ndim == 2 else [point.readings]
    return max(float(readings.stability) for readings in both)
