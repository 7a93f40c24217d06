r"""The E-step for labels: right, wrong, or of a row that does not belong.

A row whose features belong has the right label with probability $1 - f$, and then the model's $p_y(x)$; otherwise any
of the others. The model's log-probabilities are multiplied by $T$, since a model fitted to wrong labels is too cautious
and one fitted to the rows it agrees with too sure:

$$P(y \mid x) = (1 - q) \Big[ (1 - f)\, p_y + f\, \frac{1 - p_y}{K - 1} \Big] + q\, \omega_y ,$$

$q$ the probability that the features do not belong (`density`), $\omega_y$ the share of class $y$. $f$ and $T$ are the
most probable ones, on grids; the support of each $f$ is kept for the interval of the share.

A model that cannot follow the classes takes rows for wrong ones that their neighbours vouch for. The last judgement
therefore multiplies the model's probabilities by a power of the shares of the labels around a row, that power which
makes all labels most probable; and since a cautious model with few wrong labels often explains a table as well as a
sharp one with many, it averages over $f$ by its support.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax, logit

from quenched.outliers.learner.around import Verdict, threshold
from quenched.outliers.learner.density import Strangeness
from quenched.outliers.model import HardSelection, Rule

SHARPER = np.geomspace(0.25, 4.0, 13)
"""Values of T that are tried."""
SHARES = np.linspace(0.0, 0.7, 71)
"""Shares of wrong labels that are tried."""
POWERS = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Powers of the neighbours' shares that are tried."""


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
    near: np.ndarray | None = None  # [n, K] logarithms of the shares of labels around each row; None: not asked

    def judge(self, log_p: np.ndarray) -> Verdict:
        """Rows by the model's log-probabilities of all classes `[n, K]`."""
        n, rows = len(log_p), np.arange(len(log_p))
        q = np.zeros(n) if self.strange is None else self.strange.outlier
        base = (np.bincount(self.codes, self.omega, self.K) / self.omega.sum())[self.codes]
        if self.share is not None:
            f, T, support, sharper = self.share, 1.0, np.zeros(0), np.zeros(0)
            p = np.exp(log_p[rows, self.codes])
        else:
            log_p = self._pool(log_p, q, base)
            f, T, support, sharper = self._estimate(log_p, q, base)
            p = np.exp(log_softmax(T * log_p, axis=1)[rows, self.codes])
        right, wrong = (1 - q) * (1 - f) * p, (1 - q) * f * (1 - p) / (self.K - 1)
        total = right + wrong + q * base
        h = self._log_odds(p, q, base, f)
        share = float(self.omega @ (q + (1 - q) * f) / self.omega.sum())
        level = float(self.omega @ np.log(np.maximum(total, 1e-300)) / self.omega.sum())
        outlier = 1 - right / np.maximum(total, 1e-300)
        if self.near is not None and self.share is None:
            outlier = self._average(log_p, q, base, support, sharper)
            h = logit(1 - outlier) if isinstance(self.rule, HardSelection) else h
        return Verdict(h, outlier, share, level, Estimated(f, T, support))

    def explain(self, log_p: np.ndarray) -> np.ndarray:
        """The log-likelihood of each label `[n]`, at the f and T that make all of them most probable."""
        n = len(log_p)
        q = np.zeros(n) if self.strange is None else self.strange.outlier
        base = (np.bincount(self.codes, self.omega, self.K) / self.omega.sum())[self.codes]
        f, T = (self.share, 1.0) if self.share is not None else self._estimate(log_p, q, base)[:2]
        p = np.exp(log_softmax(T * log_p, axis=1)[np.arange(n), self.codes])
        mixed = p + f * ((1 - p) / (self.K - 1) - p)
        return np.log(np.maximum((1 - q) * mixed + q * base, 1e-300))

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

    def _pool(self, log_p: np.ndarray, q: np.ndarray, base: np.ndarray) -> np.ndarray:
        """The log-probabilities with those of the neighbours, by a search on coarse grids."""
        if self.near is None:
            return log_p
        tried = [log_p + power * self.near for power in POWERS]
        levels = [self._levels(each, q, base, SHARPER[::2], SHARES[::5]).max() for each in tried]
        return tried[int(np.argmax(levels))]

    def _levels(
        self, log_p: np.ndarray, q: np.ndarray, base: np.ndarray, sharper: np.ndarray, shares: np.ndarray
    ) -> np.ndarray:
        """The log-likelihood of the labels for each T and f."""
        level = np.empty((len(sharper), len(shares)))
        for i, T in enumerate(sharper):
            p = np.exp(log_softmax(T * log_p, axis=1)[np.arange(len(log_p)), self.codes])
            mixed = p + shares[:, None] * ((1 - p) / (self.K - 1) - p)
            level[i] = np.log(np.maximum((1 - q) * mixed + q * base, 1e-300)) @ self.omega
        return level

    def _estimate(
        self, log_p: np.ndarray, q: np.ndarray, base: np.ndarray
    ) -> tuple[float, float, np.ndarray, np.ndarray]:
        """The most probable f and T, the support of each f, and the T that goes with it."""
        level = self._levels(log_p, q, base, SHARPER, SHARES)
        support, sharper = level.max(axis=0), SHARPER[level.argmax(axis=0)]
        j = int(np.argmax(support))
        return float(SHARES[j]), float(sharper[j]), support - support[j], sharper

    def _average(
        self, log_p: np.ndarray, q: np.ndarray, base: np.ndarray, support: np.ndarray, sharper: np.ndarray
    ) -> np.ndarray:
        """The probability that each row is an outlier, whatever f."""
        weights, outlier = np.exp(support) / np.exp(support).sum(), np.zeros(len(log_p))
        for T in np.unique(sharper):
            p, j = np.exp(log_softmax(T * log_p, axis=1)[np.arange(len(log_p)), self.codes]), sharper == T
            f = SHARES[j, None]
            right = (1 - q) * (1 - f) * p
            total = right + (1 - q) * f * (1 - p) / (self.K - 1) + q * base
            outlier += weights[j] @ (1 - right / np.maximum(total, 1e-300))
        return np.clip(outlier, 0.0, 1.0)
