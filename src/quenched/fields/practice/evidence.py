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
from quenched.fields.learner.solving import solve
from quenched.fields.model.operators import Modes
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

    @property
    def evidence(self) -> float:
        """The logarithm of the probability of the data."""
        return self.posterior.log_evidence


def attempt(problem: Problem, modes: Modes, *, order: int, strength: Any, prior: float, start: Any = None) -> Trial:
    """Solve a problem in modes, and weigh it."""
    fit = solve(problem, modes=modes, start=start)
    return Trial(order, strength, prior, fit, laplace(problem, fit, unit_information=True))


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

    trials: list[Trial]
    shares: np.ndarray
    log_evidence: float

    @property
    def best(self) -> Trial:
        """The most probable."""
        return self.trials[int(np.argmax(self.shares))]

    @property
    def outcome(self) -> Outcome:
        """Whether all minima were found."""
        return Outcome.converged if all(trial.fit.converged for trial in self.trials) else Outcome.stalled

    def path(self, names: Sequence[str] = ("strength",)) -> np.ndarray:
        """What was tried: order, strengths, logarithm of the evidence and share."""
        rows = [(t.order, *np.atleast_1d(t.strength), t.evidence, share)
                for t, share in zip(self.trials, self.shares, strict=True)]  # fmt: skip
        return np.array(rows, dtype=[("order", int), *((name, float) for name in (*names, "log_evidence", "share"))])


def weigh(trials: list[Trial]) -> Mixture:
    """Shares by evidence and by what was probable beforehand."""
    logs = np.array([trial.evidence + np.log(trial.prior) for trial in trials])
    evidence = np.logaddexp.reduce(logs)
    shares = np.exp(logs - evidence)
    return Mixture(trials, shares / shares.sum(), float(evidence))
