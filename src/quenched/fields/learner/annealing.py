r"""Annealing: alternatives followed from a high temperature, where they are averaged, down to their own."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from quenched.core import checks
from quenched.core.types import InputError, Real, real
from quenched.fields.learner.solving import MOST, NEWTON, arrive
from quenched.fields.learner.starts import Start, Uniform, begin
from quenched.fields.model.either import resolve, temper, uncertain
from quenched.fields.model.problem import Problem

COLD = 1e3
"""Where annealing to an infinite inverse temperature ends."""


class Annealed(Start):
    r"""Where the minimum at $\beta = 0$, which is the only one for convex data, leads when $\beta$ grows.

    Attributes:
        first: the inverse temperature after 0.
        steps: the number of inverse temperatures from there to that of the prior, in equal ratios.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(0, 1, points=3)])
        >>> up, down = (fields.Gaussian(4 * fields.Mass(grid), mean=t) for t in (1.0, -1.0))
        >>> data = fields.GaussianData([0.5], [0.1], 0.1)
        >>> fit = fields.solve(fields.Problem(data, fields.Direct(grid), up | down), start=fields.Annealed())
        >>> bool(fit.field[0] > 0)
        True
    """

    first: Real = eqx.field(converter=real, default=0.01)
    steps: int = eqx.field(static=True, default=12)

    def __check_init__(self):
        checks.positive("first", self.first)
        checks.whole("steps", self.steps, least=1)

    def field(self, problem: Problem) -> Any:
        """The end of the way."""
        if not uncertain(problem.prior):
            raise InputError("Argument `start` must not be Annealed() here, because the prior has no alternatives.")
        last = min(resolve(problem.prior).beta, COLD)
        schedule = np.geomspace(min(float(self.first), last), last, self.steps) if last > 0 else []
        field = begin(Uniform(), problem)
        for beta in (0.0, *schedule):
            warm = Problem(problem.likelihood, problem.link, temper(problem.prior, float(beta)))
            field = arrive(warm, NEWTON, field, 1e-10, MOST).field
        return field
