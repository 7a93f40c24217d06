r"""The lines of the phase diagram over $\alpha$: first-order transitions, spinodals, and replica symmetry."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from quenched.core import checks, saddle, verbs
from quenched.core.progress import track
from quenched.core.types import InputError, Outcome, double
from quenched.outliers.model import SCIENCE, Contaminated, Rule
from quenched.outliers.theory.branches import Branches, sort_names, trace_along
from quenched.outliers.theory.setting import numbers
from quenched.outliers.theory.state import THEORIES

NEAR = 1e-3
"""How far inside an arm, as a share of it, a state has the name of its end."""


@double
def transitions(
    law: Contaminated, rule: Rule, *, along: str = "eta", alpha: Any, limits: tuple[float, float] | None = None,
    **sweep: Any,
) -> xr.Dataset:  # fmt: skip
    r"""Where the state changes as one control is varied, over the sample size.

    Args:
        law: the world.
        rule: `SoftSelection`, `HardSelection` or `Gibbs`.
        along: the control in which the lines are sought: `eta`, `gamma` (of the law and of a matched student),
            `law_gamma`, `rule_gamma` or `temperature`. Its value in the law or rule is not used for `eta`.
        alpha: increasing sample sizes (examples per dimension), or one.
        limits: the lowest and highest value of the control; by default all of `eta`, and for others a factor of ten to
            either side of the law's or rule's own value. A branch that exists at neither end nor at that value is not
            found.
        **sweep: any field of the law or the rule but that control; a sequence becomes a dimension of the result.

    Returns:
        Over `alpha`, values of the control: first-order transitions `informed_overfit`, `overfit_trivial` and
        `informed_trivial`, where two branches have the same free energy, each with the larger `_stability` of the two:
        where it exceeds 1 replica symmetry is broken and the number is an approximation. Spinodals, where branches
        begin and end: `informed_end`, `overfit_start`, `overfit_end`, `trivial_start`, and along other controls than
        `eta` `informed_start` and `trivial_end`. `replica_symmetry`, where the stability of the informed branch is 1
        (that of hard selection always exceeds it). Each with its `_outcome`: `absent` where there is none. Branches
        between the informed and the overfit one have lines of their own, see `curve`.

    Examples:
        >>> from quenched import outliers
        >>> found = outliers.transitions(outliers.Contaminated(), outliers.HardSelection(), alpha=20.0)
        >>> round(float(found.informed_overfit), 3), round(float(found.overfit_trivial), 2)
        (3.742, 5.71)
    """
    SCIENCE.check_pair(law, rule)
    if type(rule) not in THEORIES:
        raise InputError("Argument `rule` must be SoftSelection, HardSelection or Gibbs, "
                         f"but {type(rule).__name__} has one branch.")  # fmt: skip
    checks.kind("along", along, str, "the name of a control")
    if along in sweep:
        raise InputError(f"Argument `{along}` must not be given where it is sought, but it is {sweep[along]!r}.")
    question = SCIENCE.ask(law, rule, sweep, alpha=alpha)
    alphas = question.axes["alpha"]
    checks.positive("alpha", alphas)
    path = _find_path(law, rule, along)
    between = None if limits is None else checks.increasing("limits", limits, least=-np.inf)
    if between is not None and (between.shape != (2,) or (path != "eta" and between[0] <= 0)):
        raise InputError(f"Argument `limits` must be a low and a high value of the control, but {limits} was given.")
    every = [(*pair, a) for pair in question.plan.pairs for a in alphas]
    found = [_find_lines(trace_along(THEORIES[type(rule)], numbers(*one), path, between))
             for one in track(every, "theory")]  # fmt: skip
    names = dict.fromkeys(name for one in found for name in one)
    missing = {name: Outcome.absent if name.endswith("_outcome") else np.nan for name in names}
    values = {name: np.array([(missing | one)[name] for one in found]).reshape(-1, len(alphas)) for name in names}
    bounds = [(name, *reversed(name.split("_"))) for name in values if f"{name}_stability" in values]
    about = json.dumps(bounds if along == "eta" else [])  # along other controls either state may be above
    return question.answer(values, source="lines", along=along, boundaries=about)


def _find_path(law: Contaminated, rule: Rule, along: str) -> str:
    """The fields of `Setting` that a control moves."""
    owner, field = verbs.find_owner(law, rule, "law_gamma" if along == "gamma" and rule.gamma is None else along)
    if field != "gamma":
        return field
    return "gt" if owner == "rule" else "gamma" if rule.gamma is not None else "gamma,gt"


def _find_lines(branches: Branches) -> dict[str, Any]:
    """All lines at one sample size."""
    marks = list(_mark(branches))
    names = sort_names(part for name, *_ in marks for part in name.split("-"))
    pairs = [f"{a}-{b}" for a, b in itertools.combinations(names, 2)]
    ends = [f"{name}-{end}" for name in names for end in ("start", "end")]
    if branches.along == "eta":
        ends = [name for name in ends if name not in ("informed-start", "trivial-end")]
    unknown = Outcome.absent if branches.outcome is Outcome.converged else branches.outcome
    found: dict[str, Any] = {}
    for name in (*pairs, *ends, "replica-symmetry"):
        control, stability = min((mark[1:] for mark in marks if mark[0] == name), default=(np.nan, np.nan))
        line = name.replace("-", "_")
        found |= {line: control, f"{line}_outcome": unknown if np.isnan(control) else Outcome.converged}
        found |= {f"{line}_stability": stability} if name in pairs else {}
    return found


def _mark(branches: Branches) -> Iterator[tuple[str, float, float]]:
    """All points of lines: the names of both branches, or of one and its end, the control, and the stability."""
    for (a, one), (b, other) in itertools.combinations(branches.arms, 2):
        for mark in saddle.crossings(one, other):
            both = [name or branches.name(x, mark.control) for name, x in zip((a, b), mark.x, strict=True)]
            stability = max((float(readings.stability) for readings in mark.readings), default=np.nan)
            if all(both):
                yield "-".join(sorted(both, key=sort_names(both).index)), mark.control, stability
    low, high = branches.empty or (np.nan, np.nan)  # between them, selecting nothing has no energy and is stable
    for name, arm in branches.arms:
        for mark in saddle.locate(arm, "free_energy") if branches.empty else ():
            if low <= mark.control <= high and (found := name or branches.name(mark.x, mark.control)):
                yield f"{found}-trivial", mark.control, float(mark.readings.stability)
        for mark in saddle.locate(arm, "stability", 1.0) if name in ("", "informed") else ():
            if (name or branches.name(mark.x, mark.control)) == "informed":
                yield "replica-symmetry", mark.control, 1.0
        for end, word in ((0, "start"), (-1, "end")):
            control = float(arm.control[end])
            # the trivial branch may be lost next to its fold, to five digits, where a Gaussian is too narrow
            if any(mark.control == control for mark in arm.folds) or (name, end) == ("trivial", 0):
                inside = float(control + (NEAR if end == 0 else -NEAR) * np.ptp(arm.control))
                point = None if name else arm.find(inside)
                yield f"{name if point is None else branches.name(point.x, inside)}-{word}", control, np.nan
    for control, word in ((low, "start"), (high, "end")):
        if np.isfinite(control):
            yield f"trivial-{word}", control, np.nan
