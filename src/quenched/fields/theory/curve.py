r"""Learning curves where they are exact: Gaussian regression at given inputs.

With $n_x$ examples at the point $x$ of the grid, $A = \lambda v K + \mathrm{diag}(n_x/\sigma^2)$ and the truth $h^*$,
the estimate $h = A^{-1}(\lambda v K t + \sum_i y_i/\sigma^2)$ has the bias $b = A^{-1} \lambda v K (t - h^*)$ and the
covariance $C = A^{-1} \mathrm{diag}(n_x/\sigma^2) A^{-1}$ over data sets, so that

$$\langle (h - h^*)^2 \rangle = b^2 + \mathrm{diag}\, C, \qquad
  \langle (y_i - h(x_i))^2 \rangle = \sigma^2 + b^2 + \mathrm{diag}\, C - 2\, \mathrm{diag}\, A^{-1} .$$

Errors are minus mean log-likelihoods, as in the simulation. Densities have no such closed form: measure them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError, Outcome, double
from quenched.fields.model.laws import SCIENCE, Law, MaximumPosterior, TrueFunction
from quenched.fields.model.priors import combined

if TYPE_CHECKING:
    import xarray as xr


def _errors(law: TrueFunction, rule: MaximumPosterior, examples: float) -> dict[str, Any]:
    """Training and test error."""
    examples = checks.whole("examples", int(examples), least=1)
    prior, grid, v = combined(rule.prior), law.grid, float(law.variance)
    K = float(rule.strength) * grid.cell * prior.operator.matrix
    n = np.bincount(np.arange(examples) % grid.size, minlength=grid.size).astype(float)
    A = K + np.diag(n / v)
    if np.linalg.cond(A) > 1e14:
        raise InputError("The examples must decide what the prior leaves open, but these are too few: give more.")
    inverse = np.linalg.inv(A)
    b = inverse @ K @ (np.asarray(prior.mean) - np.asarray(law.values)).ravel()
    square = b**2 + np.einsum("ij,j,ij->i", inverse, n / v, inverse)
    seen = v + square - 2 * np.diag(inverse)
    constant = 0.5 * np.log(2 * np.pi * v)
    training, test = n @ seen / (2 * v * examples), 0.5 + np.mean(square) / (2 * v)
    return {"training_error": constant + training, "test_error": constant + test, "outcome": Outcome.converged}


@double
def curve(law: Law, rule: MaximumPosterior, *, examples: Any, **sweep: Any) -> xr.Dataset:
    """Training and test error of a regression, averaged over all data sets exactly.

    Args:
        law: `TrueFunction`.
        rule: `MaximumPosterior` with the link `Direct` and Gaussian priors.
        examples: increasing numbers of examples, or one.
        **sweep: any number of the law or the rule, above all `strength`; a sequence becomes a dimension.

    Returns:
        `training_error`, `test_error` and `outcome` over the controls.

    Raises:
        InputError: for densities, whose average over data sets has no closed form.
    """
    SCIENCE.check_pair(law, rule)
    if not isinstance(law, TrueFunction):
        raise InputError("Argument `law` must be a TrueFunction, because only regression has an exact average over "
                         "data sets: use `measure` for densities.")  # fmt: skip
    question = SCIENCE.ask(law, rule, sweep, examples=examples, least=1)
    return question.answer(question.map(_errors))
