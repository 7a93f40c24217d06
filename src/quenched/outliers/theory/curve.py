r"""Order parameters over the controls, branch by branch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.progress import track
from quenched.core.types import InputError, Outcome, double
from quenched.outliers.model import SCIENCE, Contaminated, Gibbs, ModelLaw, ModelRule, Rule
from quenched.outliers.theory import models
from quenched.outliers.theory.branches import LARGEST, sort_names, trace
from quenched.outliers.theory.setting import numbers
from quenched.outliers.theory.state import THEORIES, Branch, State, check_branch, compute_hebb


@double
def curve(
    law: Contaminated | ModelLaw, rule: Rule | ModelRule, *, alpha: Any, branch: Branch | str | None = None,
    **sweep: Any,
) -> xr.Dataset:  # fmt: skip
    r"""Order parameters and errors in theory, branch by branch.

    Args:
        law: the world: `Contaminated()`, or for selection around a model `WrongLabels()` or `WrongTargets()`.
        rule: the student, for the latter `SelectedLogistic()` or `SelectedSquares()`; of their states the one that is
            nearest to the state without selection, from where the learner begins, and there are no branches.
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
    if isinstance(law, ModelLaw):
        around: Any = rule
        return models.curve(law, around, alpha=alpha, branch=branch, **sweep)
    if branch is not None:
        check_branch(branch)
    question = SCIENCE.ask(law, rule, sweep, through="eta", alpha=alpha)
    alphas, etas = question.axes.values()
    checks.positive("alpha", alphas)
    if np.any(np.abs(etas) > LARGEST):
        raise InputError(f"Argument `eta` must lie between {-LARGEST:g} and {LARGEST:g}, but {etas} was given.")
    student: Any = type(rule)
    theory = THEORIES.get(student)
    if theory is None:
        if branch not in (None, "informed"):
            raise InputError(f"Argument `branch` must be informed for {type(rule).__name__}, but {branch!r} was given.")
        return question.answer(question.map(lambda *one: compute_hebb(numbers(*one)._replace(eta=etas))))
    every = list(itertools.product(question.plan.pairs, alphas))
    curves = [trace(theory, numbers(*pair, a), etas, informed=branch == "informed")
              for pair, a in track(every, "theory")]  # fmt: skip
    names = sort_names(name for one in curves for name, _ in one.arms) if branch is None else [str(branch)]
    states, potentials = zip(
        *(one.find(name, eta) for one in curves for eta in etas for name in names), strict=True
    )  # fmt: skip
    shape = (len(question.plan.pairs), len(alphas), len(etas), len(names))
    values: dict[str, np.ndarray] = {
        key: np.array(column).reshape(shape)
        for key, column in zip(State._fields, zip(*states, strict=True), strict=True)
    }
    potential = np.array(potentials).reshape(shape)
    if isinstance(rule, Gibbs):
        values["potential"] = potential
    else:
        del values["q"]  # it is Q
    if branch is not None:
        return question.answer(values, axes={"branch": names}).isel(branch=0)
    # some state exists everywhere: where none was found the curve was lost
    nowhere = np.all(values["outcome"] == Outcome.absent, axis=-1)
    values["outcome"][..., 0] = np.where(nowhere, Outcome.failed, values["outcome"][..., 0])
    values["lowest"] = potential == np.nanmin(np.where(np.isnan(potential), np.inf, potential), axis=-1, keepdims=True)
    return question.answer(values, axes={"branch": names})
