"""Fit a field to data, in the way that its link allows."""

from __future__ import annotations

from typing import Any

from quenched.core.types import InputError, Key
from quenched.fields.learner.fitted import Fitted
from quenched.fields.learner.regression import regress
from quenched.fields.learner.solving import solve
from quenched.fields.model.laws import MaximumPosterior
from quenched.fields.model.likelihoods import DensityData, GaussianData, Likelihood
from quenched.fields.model.links import Direct
from quenched.fields.model.priors import Gaussian, combined
from quenched.fields.model.problem import Problem


def fit(rule: MaximumPosterior, data: Any, *, key: Key | None = None) -> Fitted:
    """Find the field of largest posterior probability.

    Args:
        rule: link, prior and its strength.
        data: points `[n, dimensions]` of a density; a pair of points and values for `Direct`, with noise of variance 1;
            or a likelihood, `DensityData` or `GaussianData`.
        key: not used: nothing is random.

    Returns:
        A `FittedDensity`, or for `Direct` the whole posterior, a `FittedFunction`.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 9, points=10)])
        >>> rule = fields.MaximumPosterior(fields.LogDensity(grid), fields.Gaussian(fields.Laplacian(grid)))
        >>> fields.fit(rule, [3.0, 4.0, 4.0]).converged
        True
    """
    del key
    if not isinstance(rule, MaximumPosterior):
        raise InputError(f"Argument `rule` must be MaximumPosterior(link, prior), but {rule!r} was given.")
    direct = isinstance(rule.link, Direct)
    if not isinstance(data, Likelihood):
        data = GaussianData(*data) if direct else DensityData(data)
    prior = combined(rule.prior)
    strong = Gaussian(float(rule.strength) * prior.operator, mean=prior.mean)
    problem = Problem(data, rule.link, strong)
    return regress(problem) if direct else solve(problem)
