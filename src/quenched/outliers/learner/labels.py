r"""The E-step for labels: right, wrong, or of a row that does not belong.

A row whose features belong has the right label with probability $1 - f$, and then the model's $p_y(x)$; otherwise any
of the others. The model's log-probabilities are multiplied by $T$, since a model fitted to wrong labels is too cautious
and one fitted to the rows it agrees with too sure:

$$P(y \mid x) = (1 - q) \Big[ (1 - f)\, p_y + f\, \frac{1 - p_y}{K - 1} \Big] + q\, \omega_y ,$$

$q$ the probability that the features do not belong (`density`), $\omega_y$ the share of class $y$. $f$ and $T$ are the
most probable ones, on grids; the support of each $f$ is kept for the interval of the share.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from quenched.outliers.learner.around import Verdict, threshold
from quenched.outliers.learner.density import Strangeness
from quenched.outliers.model import HardSelection, Rule

SHARPER = np.geomspace(0.25, 4.0, 13)
"""Values of T that are tried."""
SHARES = np.linspace(0.0, 0.7, 71)
"""Shares of wrong labels that are tried."""


class Estimated(NamedTuple):
    """What the E-step found besides the rows."""

    wrong: float  # f
    sharper: float  # T
    support: np.ndarray  # log-likelihood of each of `SHARES`, its maximum 0


@dataclasses.dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a table, and how they are judged."""

    rule: Rule
    codes: np.ndarray  # [n] from 0
    K: int
    omega: np.ndarray  # [n] weights
    share: float | None = None  # f, None: estimated with T; given, T is 1
    strange: Strangeness | None = None

    def judge(self, log_p: np.ndarray) -> Verdict:
        """Rows by the model's log-probabilities of all classes `[n, K]`."""
        n, rows = len(log_p), np.arange(len(log_p))
        q = np.zeros(n) if self.strange is None else self.strange.outlier
        base = (np.bincount(self.codes, self.omega, self.K) / self.omega.sum())[self.codes]
        if self.share is not None:
            f, T, support = self.share, 1.0, np.zeros(0)
            p = np.exp(log_p[rows, self.codes])
        else:
            f, T, support = self._estimate(log_p, q, base)
            p = np.exp(log_softmax(T * log_p, axis=1)[rows, self.codes])
        right, wrong = (1 - q) * (1 - f) * p, (1 - q) * f * (1 - p) / (self.K - 1)
        total = right + wrong + q * base
        h = self._log_odds(p, q, base, f)
        share = float(self.omega @ (q + (1 - q) * f) / self.omega.sum())
        level = float(self.omega @ np.log(np.maximum(total, 1e-300)) / self.omega.sum())
        return Verdict(h, 1 - right / np.maximum(total, 1e-300), share, level, Estimated(f, T, support))

    def _log_odds(self, p: np.ndarray, q: np.ndarray, base: np.ndarray, f: float) -> np.ndarray:
        """As selection uses them: of a soft E-step the label of an outlier is a coin toss."""
        tiny = 1e-300
        if np.any(q > 0) and isinstance(self.rule, HardSelection):
            rest = (1 - q) * f * (1 - p) / (self.K - 1) + q * base
            return np.log(np.maximum((1 - q) * (1 - f) * p, tiny)) - np.log(np.maximum(rest, tiny))
        h = np.log(np.maximum(p, tiny)) - np.log(np.maximum(threshold(self.rule, f, self.K), tiny))
        if np.any(q > 0):
            g = min(f * self.K / (self.K - 1), 1 - 1e-9)
            rest = (1 - q) * g / self.K + q * base
            return np.log(np.maximum((1 - q) * (1 - g) * p, tiny)) - np.log(np.maximum(rest, tiny))
        return h

    def _estimate(self, log_p: np.ndarray, q: np.ndarray, base: np.ndarray) -> tuple[float, float, np.ndarray]:
        """The most probable f and T, and the support of each f."""
        level = np.empty((len(SHARPER), len(SHARES)))
        for i, T in enumerate(SHARPER):
            p = np.exp(log_softmax(T * log_p, axis=1)[np.arange(len(log_p)), self.codes])
            mixed = p + SHARES[:, None] * ((1 - p) / (self.K - 1) - p)
            level[i] = np.log(np.maximum((1 - q) * mixed + q * base, 1e-300)) @ self.omega
        support = level.max(axis=0)
        j = int(np.argmax(support))
        return float(SHARES[j]), float(SHARPER[np.argmax(level[:, j])]), support - support[j]
