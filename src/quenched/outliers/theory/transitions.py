r"""The lines of the phase diagram in $\eta$ over $\alpha$: first-order transitions, spinodals, and replica symmetry."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core import checks, controls, results, saddle
from quenched.core.progress import track
from quenched.core.types import InputError, Outcome, double, outcome_names
from quenched.outliers.model import Contaminated, Rule, check_pair
from quenched.outliers.theory.branches import Branches, sort_names, trace
from quenched.outliers.theory.setting import numbers
from quenched.outliers.theory.state import THEORIES

if TYPE_CHECKING:
    import xarray as xr


@double
def transitions(law: Contaminated, rule: Rule, *, alpha: Any, **sweep: Any) -> xr.Dataset:
    r"""Where the state changes: values of $\eta$ over the sample size.

    Args:
        law: the world; its `eta` is not used.
        rule: `SoftSelection` or `HardSelection`.
        alpha: increasing sample sizes (examples per dimension), or one.
        **sweep: any field of the law or the rule but `eta`; a sequence becomes a dimension of the result.

    Returns:
        Over `alpha`, first-order transitions `informed_overfit`, `overfit_trivial` and `informed_trivial`, where two
        branches have the same free energy, each with the larger `_stability` of the two: where it exceeds 1 replica
        symmetry is broken and the number is an approximation. Spinodals, where branches begin and end:
        `informed_end`, `overfit_start`, `overfit_end`, `trivial_start`. `replica_symmetry`, above which the informed
        branch of soft selection is an approximation (that of hard selection always is). Each with its `_outcome`:
        `absent` where there is none.

    Examples:
        >>> from quenched import outliers
        >>> found = outliers.transitions(outliers.Contaminated(), outliers.HardSelection(), alpha=20.0)
        >>> round(float(found.informed_overfit), 3), round(float(found.overfit_trivial), 2)
        (3.742, 5.71)
    """
    check_pair(law, rule)
    if type(rule) not in THEORIES:
        raise InputError("Argument `rule` must be SoftSelection, HardSelection or Gibbs, "
                         f"but {type(rule).__name__} has one branch.")  # fmt: skip
    if "eta" in sweep:
        raise InputError("Argument `eta` must not be given, but is what is sought.")
    alphas = checks.increasing("alpha", alpha)
    checks.positive("alpha", alphas)
    plan = controls.expand(law, rule, sweep)
    every = [(law, rule, a) for law, rule in zip(plan.laws, plan.rules, strict=True) for a in alphas]
    theory = THEORIES[type(rule)]
    found = [_lines(trace(theory, numbers(law, rule, a))) for law, rule, a in track(every, "theory")]
    values: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(name for one in found for name in one):
        missing = Outcome.absent if name.endswith("_outcome") else np.nan
        value = np.array([one.get(name, missing) for one in found]).reshape(len(plan.laws), len(alphas))
        values[name] = outcome_names(value) if name.endswith("_outcome") else value
    result = results.assemble(values, plan, {"alpha": alphas}, {}, {}, science="outliers", source="lines")
    return result.isel(alpha=0) if np.ndim(alpha) == 0 else result


def _lines(branches: Branches) -> dict[str, Any]:
    """All lines at one sample size."""
    unknown = Outcome.absent if branches.outcome is Outcome.converged else branches.outcome
    names, arms = sort_names(branches.arms), branches.arms
    found: dict[str, Any] = {}
    for a, b in itertools.combinations(names, 2):
        eta, stability = _crossing(branches, a, b)
        found |= _line(f"{a}_{b}", eta, unknown) | {f"{a}_{b}_stability": stability}
    for name, end in itertools.product(names, (0, -1)):
        if (name, end) not in (("informed", 0), ("trivial", -1)):
            found |= _line(f"{name}_{'end' if end else 'start'}", _spinodal(branches, name, end), unknown)
    at = saddle.locate(arms["informed"], "stability", 1.0) if "informed" in arms else ()
    return found | _line("replica_symmetry", at[0].control if at else None, unknown)


def _line(name: str, eta: float | None, unknown: Outcome) -> dict[str, Any]:
    there = eta is not None
    return {name: eta if there else np.nan, f"{name}_outcome": Outcome.converged if there else unknown}


def _spinodal(branches: Branches, name: str, end: int) -> float | None:
    """The eta at which a branch begins or ends, if it does."""
    if name == "trivial" and np.isfinite(branches.threshold):
        return branches.threshold
    arm = branches.arms.get(name)
    if arm is None:
        return None
    eta = float(arm.control[end])
    # the trivial branch may be lost next to its fold, to five digits, where a Gaussian is too narrow for its jump
    return eta if name == "trivial" or any(mark.control == eta for mark in arm.folds) else None


def _crossing(branches: Branches, a: str, b: str) -> tuple[float | None, float]:
    """The first eta at which two branches have the same free energy, and the larger stability of the two."""
    one, other = branches.arms.get(a), branches.arms.get(b)
    if one is not None and b == "trivial" and np.isfinite(branches.threshold):  # of no energy
        marks = saddle.locate(one, "free_energy")
        return (marks[0].control, float(marks[0].readings.stability)) if marks else (None, np.nan)
    marks = saddle.crossings(one, other) if one is not None and other is not None else ()
    if not marks:
        return None, np.nan
    return marks[0].control, max((float(r.stability) for r in marks[0].readings), default=np.nan)
