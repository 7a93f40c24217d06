r"""The lines of the phase diagram over $\alpha$: first-order transitions, spinodals, and replica symmetry."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core import checks, saddle, verbs
from quenched.core.progress import track
from quenched.core.types import InputError, Outcome, double
from quenched.outliers.model import SCIENCE, Contaminated, Rule
from quenched.outliers.theory.branches import Branches, sort_names, trace, trace_along
from quenched.outliers.theory.setting import numbers
from quenched.outliers.theory.state import THEORIES

if TYPE_CHECKING:
    import xarray as xr

NEAR = 1e-3
"""How far inside an arm, as a share of it, a state has the name of its end."""
RANGE = 10.0
"""Factor by which a control other than eta is varied to either side of its value, where no limits are given."""


@double
def transitions(
    law: Contaminated,
    rule: Rule,
    *,
    along: str = "eta",
    alpha: Any,
    limits: tuple[float, float] | None = None,
    **sweep: Any,
) -> xr.Dataset:
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
    path, question = _path(law, rule, along), SCIENCE.ask(law, rule, sweep, alpha=alpha)
    alphas = question.axes["alpha"]
    checks.positive("alpha", alphas)
    every = [(*pair, a) for pair in question.plan.pairs for a in alphas]
    between = None if limits is None else _check_limits(path, limits)
    found = [_lines(_trace(*one, path, between)) for one in track(every, "theory")]
    names = dict.fromkeys(name for one in found for name in one)
    missing = {name: Outcome.absent if name.endswith("_outcome") else np.nan for name in names}
    values = {name: np.array([(missing | one)[name] for one in found]).reshape(-1, len(alphas)) for name in names}
    return question.answer(values, source="lines", along=along)


def _path(law: Contaminated, rule: Rule, along: str) -> str:
    """The fields of `Setting` that a control moves."""
    owner, field = verbs.find_owner(law, rule, "law_gamma" if along == "gamma" and rule.gamma is None else along)
    if field != "gamma":
        return field
    return "gt" if owner == "rule" else "gamma" if rule.gamma is not None else "gamma,gt"


def _trace(law: Contaminated, rule: Rule, alpha: float, path: str, limits: tuple[float, float] | None) -> Branches:
    """The branches along a control."""
    theory, theta = THEORIES[type(rule)], numbers(law, rule, alpha)
    if path == "eta" and limits is None:
        return trace(theory, theta)
    own = saddle.control_of(theta, path)
    return trace_along(theory, theta, path, (own / RANGE, own * RANGE) if limits is None else limits)


def _check_limits(path: str, limits: Any) -> tuple[float, float]:
    """The lowest and the highest value of a control."""
    given = checks.increasing("limits", limits, least=-np.inf)
    if given.shape != (2,) or (path != "eta" and given[0] <= 0):
        raise InputError(f"Argument `limits` must be a low and a high value of the control, but {limits} was given.")
    return float(given[0]), float(given[1])


def _lines(branches: Branches) -> dict[str, Any]:
    """All lines at one sample size."""
    marks = [*_cross(branches), *_find_ends(branches), *_find_broken(branches)]
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


_Mark = tuple[str, float, float]  # the line, the control, the stability


def _cross(branches: Branches) -> Iterator[_Mark]:
    """Where two branches have the same free energy."""
    for (a, one), (b, other) in itertools.combinations(branches.arms, 2):
        for mark in saddle.crossings(one, other):
            both = [name or branches.name(x, mark.control) for name, x in zip((a, b), mark.x, strict=True)]
            stability = max((float(readings.stability) for readings in mark.readings), default=np.nan)
            if all(both):
                yield "-".join(sorted(both, key=sort_names(both).index)), mark.control, stability
    if branches.empty is not None:  # of no energy, and stable
        low, high = branches.empty
        for name, arm in branches.arms:
            for mark in saddle.locate(arm, "free_energy"):
                name = (name or branches.name(mark.x, mark.control)) if low <= mark.control <= high else ""
                if name:
                    yield f"{name}-trivial", mark.control, float(mark.readings.stability)


def _find_ends(branches: Branches) -> Iterator[_Mark]:
    """Where branches begin and end."""
    for name, arm in branches.arms:
        for end, word in ((0, "start"), (-1, "end")):
            control = float(arm.control[end])
            # the trivial branch may be lost next to its fold, to five digits, where a Gaussian is too narrow
            if any(mark.control == control for mark in arm.folds) or (name, end) == ("trivial", 0):
                yield f"{name or _name_end(branches, arm, end)}-{word}", control, np.nan
    for control, word in zip(branches.empty or (), ("start", "end"), strict=False):
        if np.isfinite(control):
            yield f"trivial-{word}", control, np.nan


def _name_end(branches: Branches, arm: saddle.Branch, end: int) -> str:
    """The name of an arm next to one of its ends."""
    inside = float(arm.control[end] + (NEAR if end == 0 else -NEAR) * np.ptp(arm.control))
    point = arm.find(inside)
    return "" if point is None else branches.name(point.x, inside)


def _find_broken(branches: Branches) -> Iterator[_Mark]:
    """Where the stability of the informed branch is 1."""
    for name, arm in branches.arms:
        if name in ("", "informed"):
            for mark in saddle.locate(arm, "stability", 1.0):
                if (name or branches.name(mark.x, mark.control)) == "informed":
                    yield "replica-symmetry", mark.control, 1.0
