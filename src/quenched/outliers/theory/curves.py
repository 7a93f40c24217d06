r"""Order parameters over the controls, branch by branch."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched.core import checks, controls, results
from quenched.core.progress import track
from quenched.core.types import InputError, double
from quenched.outliers.model import ORDER_PARAMETERS, Contaminated, Rule, check_pair
from quenched.outliers.theory.branches import FORMS, check_eta, numbers, states, trace
from quenched.outliers.theory.states import BRANCHES, Branch, State, state


@double
def curve(law: Contaminated, rule: Rule, *, alpha: Any, branch: Branch | str | None = None, **sweep: Any) -> xr.Dataset:
    r"""Order parameters and errors in theory, branch by branch.

    Args:
        law: the world.
        rule: the student.
        alpha: increasing sample sizes (examples per dimension), or one.
        branch: `Branch.informed`, `overfit` or `trivial`; by default all three, along a dimension `branch`. `Hebb` has
            one state, and of `Gibbs` the informed one is sought, which need not have the least free energy: for both
            there is no such dimension.
        **sweep: any field of the law or the rule, above all `eta`; a sequence becomes a dimension of the result.

    Returns:
        A dataset with `R`, `Q`, `Delta`, `Phi`, `free_energy`, `stability` (replica symmetry holds below 1; where it
        does not the numbers are approximations), `selected` (share of the examples that is selected), `z`, `lowest`
        (with all branches: whether this one has the least free energy there), `outcome` and `residual`. A branch that
        does not exist has the outcome `absent` and no values. Informed and overfit branch are one where one leads to
        the other without a fold (below $\alpha = 5.48$ for soft selection at $\gamma = 10$): then it is called
        informed, and the overfit one is absent; likewise the trivial one.

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
    several = type(rule) in FORMS
    if not several and branch not in (None, "informed"):
        raise InputError(f"Argument `branch` must be informed for {type(rule).__name__}, but {branch!r} was given.")
    axes: dict[str, np.ndarray] = {"alpha": alphas, "branch": np.array(BRANCHES if several else BRANCHES[:1])}
    found = _branches(plan, alphas, branch == Branch.informed) if several else _single(plan, alphas)
    result = results.assemble(found, plan, axes, ORDER_PARAMETERS, {}, science="outliers", source="theory")
    result = result.isel(alpha=0) if np.ndim(alpha) == 0 else result
    if several and branch is None:
        return result
    return result.drop_vars("lowest").sel(branch=str(branch or Branch.informed))


def _branches(plan: controls.Plan, alphas: np.ndarray, informed: bool) -> dict[str, np.ndarray]:
    """All states `[points, sample sizes, branches]`: one curve for all etas that share the rest."""
    groups: dict[Any, list[tuple[int, int]]] = {}
    for i, (law, rule) in enumerate(zip(plan.laws, plan.rules, strict=True)):
        for j, alpha in enumerate(alphas):
            groups.setdefault(numbers(law, rule, alpha)._replace(eta=None), []).append((i, j))
    shape = (len(plan.laws), len(alphas), len(BRANCHES))
    found: dict[str, np.ndarray] = {}
    for members in track(list(groups.values()), "theory"):
        points, sizes = np.array(members).T
        etas = np.array([float(plan.laws[i].eta) for i in points])
        law, rule = plan.laws[points[0]], plan.rules[points[0]]
        branches = trace(rule, numbers(law, rule, float(alphas[sizes[0]])), etas, informed=informed)
        for k, name in enumerate(BRANCHES):
            for key, value in states(branches, name, etas).items():
                found.setdefault(key, np.empty(shape, value.dtype))[points, sizes, k] = value
    f = np.where(np.isnan(found["free_energy"]), np.inf, found["free_energy"])
    return found | {"lowest": np.isfinite(f) & (f == np.min(f, axis=-1, keepdims=True))}


_state = jax.jit(state)


def _single(plan: controls.Plan, alphas: np.ndarray) -> dict[str, np.ndarray]:
    """The only states `[points, sample sizes, 1]`."""
    every = [(law, rule, alpha) for law, rule in zip(plan.laws, plan.rules, strict=True) for alpha in alphas]
    found = [_state(*one) for one in track(every, "theory")]
    joined = {name: np.array([getattr(one, name) for one in found]) for name in State._fields}
    shaped = {name: value.reshape(len(plan.laws), len(alphas), 1) for name, value in joined.items()}
    return shaped | {"lowest": np.ones_like(shaped["R"], dtype=bool)}
