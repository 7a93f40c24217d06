r"""How many outliers a fit to classes can bear, by the phase diagram of its own parameters.

In units in which the centres have the length 1 a fit has the paper's $\gamma$ and, with $n$ rows for $(K - 1) N$
numbers (two classes lie opposite to each other about the mean of all rows), $\alpha = n/((K - 1) N)$. Beyond the
$\eta$ at which the informed state is lost, or no longer has the least free energy, the student selects rows that
agree by chance: centres and share are then made up. $\eta$ is that of rows out of fold, since such a selection looks
well on its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from quenched.core.types import Outcome
from quenched.outliers.learner import Fitted
from quenched.outliers.model import Contaminated, Rule
from quenched.outliers.theory import transitions

LINES = ("informed_end", "informed_overfit", "informed_trivial")
"""Where the informed state is lost or no longer the lowest."""
GAMMAS, ALPHAS = (0.05, 30.0), (0.1, 1000.0)
"""The theory is asked between these: of sharper classes the transition lies further out, and is slower to find."""


class Limit(NamedTuple):
    """A place in the phase diagram."""

    alpha: float
    gamma: float  # in units in which the centres have the length 1
    eta: float  # of the share of outliers that is likeliest on rows out of fold
    lost: float  # the eta beyond which the informed state is not the student's; infinity if there is none

    @property
    def passed(self) -> bool:
        """Whether the transition is passed."""
        return self.eta >= self.lost

    @property
    def share(self) -> float:
        """The share of outliers at the transition."""
        return float(expit(self.lost))


def find_limit(rule: Rule, fitted: Fitted, rows: float, share: float) -> Limit:
    """The place of a fit in the phase diagram, and the transition there.

    Args:
        rule: `SoftSelection()` or `HardSelection()`.
        fitted: the fit.
        rows: how many there are, by weight.
        share: of outliers, as rows out of fold tell it.
    """
    K, N = fitted.centres.shape
    alpha = float(np.clip(rows / ((K - 1) * N), *ALPHAS))
    gamma = float(np.clip(fitted.gamma * fitted.length**2, *GAMMAS))
    lines = transitions(Contaminated(gamma=gamma), type(rule)(), alpha=alpha)
    found = [float(lines[name]) for name in LINES if str(lines[f"{name}_outcome"].item()) == Outcome.converged.name]
    eta = float(logit(np.clip(share, 1e-9, 1 - 1e-9)))
    return Limit(alpha, gamma, eta, min(found, default=float("inf")))
