r"""The lines of the phase diagram in $\eta$ over $\alpha$: first-order transitions, spinodals, and replica symmetry."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from quenched.core import checks, controls, results, saddle
from quenched.core.progress import track
from quenched.core.types import InputError, Outcome, double, outcome_names
from quenched.outliers.model import Contaminated, Rule, check_pair
from quenched.outliers.theory.branches import FORMS, Branches, numbers, states, trace

PAIRS = (("informed", "overfit"), ("overfit", "trivial"), ("informed", "trivial"))
"""Branches between which there may be a first-order transition."""


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
    if type(rule) not in FORMS:
        raise InputError("Argument `rule` must be SoftSelection or HardSelection, "
                         f"but {type(rule).__name__} has one branch.")  # fmt: skip
    if "eta" in sweep:
        raise InputError("Argument `eta` must not be given, but is what is sought.")
    alphas = checks.increasing("alpha", alpha)
    checks.positive("alpha", alphas)
    plan = controls.expand(law, rule, sweep)
    every = [(law, rule, a) for law, rule in zip(plan.laws, plan.rules, strict=True) for a in alphas]
    found = [_lines(trace(rule, numbers(law, rule, a))) for law, rule, a in track(every, "theory")]
    values: dict[str, np.ndarray] = {}
    for name in found[0]:
        value = np.array([one[name] for one in found]).reshape(len(plan.laws), len(alphas))
        values[name] = outcome_names(value) if name.endswith("_outcome") else value
    result = results.assemble(values, plan, {"alpha": alphas}, {}, {}, science="outliers", source="lines")
    return result.isel(alpha=0) if np.ndim(alpha) == 0 else result


def _lines(branches: Branches) -> dict[str, Any]:
    """All lines at one sample size."""
    unknown = Outcome.absent if branches.outcome is Outcome.converged else branches.outcome
    found: dict[str, Any] = {}
    for a, b in PAIRS:
        eta = _crossing(branches, a, b)
        both = [states(branches, name, np.array([eta]))["stability"][0] for name in (a, b)] if eta is not None else []
        found |= _line(f"{a}_{b}", eta, unknown) | {f"{a}_{b}_stability": max(both, default=np.nan)}
    for name, end in (("informed", -1), ("overfit", 0), ("overfit", -1), ("trivial", 0)):
        found |= _line(f"{name}_{'end' if end else 'start'}", _spinodal(branches, name, end), unknown)
    at = saddle.locate(branches.form.stability, branches.arms["informed"], 1.0)
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


def _crossing(branches: Branches, a: str, b: str) -> float | None:
    """The first eta at which two branches have the same free energy."""
    arms = branches.arms
    if b == "trivial" and np.isfinite(branches.threshold):  # of no energy
        marks = saddle.locate(branches.form.landscape.free_energy, arms[a]) if a in arms else ()  # pyright: ignore[reportArgumentType]
    else:
        marks = saddle.crossings(arms[a], arms[b]) if a in arms and b in arms else ()
    return next((mark.control for mark in marks), None)
