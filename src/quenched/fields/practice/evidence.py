r"""How strong a prior is, by evidence: the one mixture over orders and strengths.

Along a path strengths fall, from one at which only the free polynomials of the prior are left to one at which the
evidence is lost; every minimum is begun at the one before. Free polynomials have the prior of unit information, so
that orders can be compared (see `quenched.fields.theory.laplace`). What is asked for is the mean over all trials, each
with its share of the posterior probability.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from quenched.core.types import Outcome
from quenched.fields.learner.fitted import Fitted
from quenched.fields.learner.matrices import solve_factored
from quenched.fields.learner.newton import SHARP
from quenched.fields.learner.solving import moved_by_data, solve_in_modes
from quenched.fields.model.modes import Modes
from quenched.fields.model.problem import Problem
from quenched.fields.theory.laplace import Laplace, laplace


@dataclasses.dataclass(frozen=True)
class Trial:
    """One order and strength, how probable it is beforehand, and what the data say."""

    order: int
    strength: Any
    prior: float
    fit: Fitted
    posterior: Laplace
    components: int = 0

    @property
    def evidence(self) -> float:
        """The logarithm of the probability of the data."""
        return self.posterior.log_evidence

    @property
    def field(self) -> np.ndarray:
        """The mean of the posterior."""
        return self.fit.field

    @property
    def converged(self) -> bool:
        """Whether the minimum was found."""
        return self.fit.converged

    def variance(self) -> np.ndarray:
        r"""Of $\ln P$ at each point of the grid."""
        return self.posterior.log_density_variance()


def attempt(
    problem: Problem,
    modes: Modes,
    *,
    order: int,
    strength: Any,
    prior: float,
    start: Any = None,
    sharp: float = SHARP,
    coefficients: np.ndarray | None = None,
) -> Trial:
    """Solve a problem in modes, which carry the strength of its prior, and weigh it."""
    used = moved_by_data(problem, modes) if problem.link.exponential else modes
    fit = solve_in_modes(problem, used, start, sharp=sharp, coefficients=coefficients)
    return Trial(order, strength, prior, fit, laplace(problem, fit, unit_information=True))


def tangent(fit: Fitted, factor: float) -> np.ndarray:
    """Coefficients of the minimum with a prior so many times as strong, to first order in the logarithm."""
    modes: Any = fit.modes
    c = modes.coefficients(fit.field)
    pull = fit.problem.grid.cell * modes.values.ravel() * c
    return c - np.log(factor) * solve_factored(fit.factor, pull)  # pyright: ignore[reportArgumentType]


def follow(ask: Callable[[Any, Any], Trial], strengths: Sequence[Any], lost: float, start: Any = None) -> list[Trial]:
    """Trials at falling strengths, each begun at the one before, until the evidence is `lost` below its best."""
    trials: list[Trial] = []
    for strength in strengths:
        trials.append(ask(strength, trials[-1].fit if trials else start))
        if trials[-1].evidence < max(trial.evidence for trial in trials) - lost:
            break
    return trials


@dataclasses.dataclass(frozen=True)
class Mixture:
    """Trials and their shares of the posterior probability."""

    trials: list[Any]
    shares: np.ndarray
    log_evidence: float

    @property
    def best(self) -> Trial:
        """The most probable."""
        return self.trials[int(np.argmax(self.shares))]

    @property
    def outcome(self) -> Outcome:
        """Whether all minima were found."""
        return Outcome.converged if all(trial.converged for trial in self.trials) else Outcome.stalled

    def path(self, names: Sequence[str] = ("strength",)) -> np.ndarray:
        """What was tried: order, components of a template, strengths, logarithm of the evidence and share."""
        rows = [(t.order, t.components, *np.atleast_1d(t.strength), t.evidence, share)
                for t, share in zip(self.trials, self.shares, strict=True)]  # fmt: skip
        numbers = [(name, float) for name in (*names, "log_evidence", "share")]
        return np.array(rows, dtype=[("order", int), ("components", int), *numbers])


def weigh(trials: Sequence[Any]) -> Mixture:
    """Shares by evidence and by what was probable beforehand."""
    logs = np.array([trial.evidence + np.log(trial.prior) for trial in trials])
    evidence = np.logaddexp.reduce(logs)
    shares = np.exp(logs - evidence)
    return Mixture(list(trials), shares / shares.sum(), float(evidence))
