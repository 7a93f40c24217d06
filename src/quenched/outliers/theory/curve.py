r"""Order parameters over the controls, branch by branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core import checks, controls, results
from quenched.core.progress import track
from quenched.core.types import InputError, Outcome, double
from quenched.outliers.model import ORDER_PARAMETERS, Contaminated, Gibbs, Rule, check_pair
from quenched.outliers.theory.branches import Branches, check_eta, find, sort_names, trace
from quenched.outliers.theory.setting import numbers
from quenched.outliers.theory.state import BRANCHES, THEORIES, Branch, State, compute_hebb

if TYPE_CHECKING:
    import xarray as xr


@double
def curve(law: Contaminated, rule: Rule, *, alpha: Any, branch: Branch | str | None = None, **sweep: Any) -> xr.Dataset:
    r"""Order parameters and errors in theory, branch by branch.

    Args:
        law: the world.
        rule: the student.
        alpha: increasing sample sizes (examples per dimension), or one.
        branch: `Branch.informed`, `overfit` or `trivial`; by default all of them, along a dimension `branch`. `Hebb`
            has one state and no such dimension.
        **sweep: any field of the law or the rule, above all `eta`; a sequence becomes a dimension of the result.

    Returns:
        A dataset with `R`, `Q`, `Delta`, `Phi`, `free_energy`, `stability` (replica symmetry holds below 1; where it
        does not the numbers are approximations), `selected` (share of the examples that is selected), `z`, `lowest`
        (with all branches: whether this one has the least free energy there), `outcome` and `residual`. A branch that
        does not exist has the outcome `absent` and no values. Informed and overfit branch are one where one leads to
        the other without a fold (below $\alpha = 5.48$ for soft selection at $\gamma = 10$): then it is called
        informed, and the overfit one is absent; likewise the trivial one. Where the curve of states has more than
        these, for a $\gamma$ of some hundreds, those between the informed and the overfit one are called `partial`,
        `partial_2`, ... in its order, and the dimension is longer. `Gibbs` has `q` besides, its `free_energy` is the
        mean energy of the vector drawn, and `lowest` is decided by `potential`,
        $-\frac TN \ln \int dJ\, e^{-\mathcal H/T}$.

    Examples:
        >>> from quenched import outliers
        >>> law, rule = outliers.Contaminated(gamma=10.0), outliers.HardSelection()
        >>> curve = outliers.curve(law, rule, alpha=20.0, eta=[2.0, 3.5])
        >>> curve.R.sel(branch="informed").values.round(4)
        array([1.031 , 0.8806])
        >>> [str(outcome) for outcome in curve.outcome.sel(branch="overfit").values]
        ['absent', 'converged']
    """
    check_pair(law, rule)
    if branch is not None and not (isinstance(branch, str) and branch in BRANCHES):
        raise InputError(f"Argument `branch` must be one of {', '.join(BRANCHES)}, but {branch!r} was given.")
    alphas = checks.increasing("alpha", alpha)
    checks.positive("alpha", alphas)
    plan = controls.expand(law, rule, sweep)
    check_eta([float(one.eta) for one in plan.laws])
    theory = THEORIES.get(type(rule))
    if theory is None:
        if branch not in (None, "informed"):
            raise InputError(f"Argument `branch` must be informed for {type(rule).__name__}, but {branch!r} was given.")
        found, names = _single(plan, alphas), ["informed"]
    else:
        found, names = _branches(plan, alphas, branch)
    axes = {"alpha": alphas, "branch": np.array(names)}
    result = results.assemble(found, plan, axes, ORDER_PARAMETERS, {}, science="outliers", source="theory")
    result = result.isel(alpha=0) if np.ndim(alpha) == 0 else result
    if theory is not None and branch is None:
        return result
    return result.drop_vars("lowest").sel(branch=str(branch or Branch.informed))


def _branches(plan: controls.Plan, alphas: np.ndarray, branch: str | None) -> tuple[dict[str, np.ndarray], list[str]]:
    """All states `[points, sample sizes, branches]`, and the names of the branches."""
    curves: dict[tuple[int, int], Branches] = {}
    groups: dict[Any, list[tuple[int, int]]] = {}  # one curve for all etas that share the rest
    for i, (law, rule) in enumerate(zip(plan.laws, plan.rules, strict=True)):
        for j, alpha in enumerate(alphas):
            groups.setdefault(numbers(law, rule, alpha)._replace(eta=None), []).append((i, j))
    for theta, members in track(list(groups.items()), "theory"):
        etas = [float(plan.laws[i].eta) for i, _ in members]
        traced = trace(THEORIES[type(plan.rules[0])], theta, etas, informed=branch == Branch.informed)
        curves |= dict.fromkeys(members, traced)
    names = sort_names(name for one in curves.values() for name, _ in one.arms)
    shape, wanted = (len(plan.laws), len(alphas), len(names)), names if branch is None else [branch]
    table: dict[str, np.ndarray] = {name: np.full(shape, np.nan) for name in State._fields}
    table["outcome"], potential = np.full(shape, Outcome.absent), np.full(shape, np.inf)
    for (i, j), traced in curves.items():
        for k, name in enumerate(names):
            if name in wanted:
                one, f = find(traced, name, float(plan.laws[i].eta))
                potential[i, j, k] = np.inf if np.isnan(f) else f
                for key, value in one._asdict().items():
                    table[key][i, j, k] = value
    if branch is None:  # some state exists everywhere: where none was found the curve was lost
        nowhere = np.all(table["outcome"] == Outcome.absent, axis=-1)
        table["outcome"][..., 0] = np.where(nowhere, Outcome.failed, table["outcome"][..., 0])
    table["lowest"] = np.isfinite(potential) & (potential == np.min(potential, axis=-1, keepdims=True))
    if isinstance(plan.rules[0], Gibbs):
        return table | {"potential": np.where(np.isfinite(potential), potential, np.nan)}, names
    del table["q"]  # it is Q
    return table, names


def _single(plan: controls.Plan, alphas: np.ndarray) -> dict[str, np.ndarray]:
    """The only states `[points, sample sizes, 1]`."""
    pairs = zip(plan.laws, plan.rules, strict=True)
    found = [[compute_hebb(numbers(law, rule, alpha)) for alpha in alphas] for law, rule in pairs]
    table = {name: np.array([[[getattr(one, name)] for one in row] for row in found]) for name in State._fields}
    return table | {"lowest": np.ones_like(table["R"], dtype=bool)}
