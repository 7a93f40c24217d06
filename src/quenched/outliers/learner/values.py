r"""The E-step for values: a residual among residuals, or a target among targets.

An informative row has the residual $r \sim \mathcal N(0, s^2)$; the target of an outlier has nothing to do with its
inputs, $y \sim \mathcal N(m, v)$ with $v$ not below the variance of the middle of all targets:

$$h = \ln \frac{(1 - f)\, \mathcal N(r; 0, s^2)}{f\, \mathcal N(y; m, v)} .$$

That the background is one of targets rather than of residuals keeps rows in the tails of the noise, and rows of a part
of the table where the noise is larger, from being taken for outliers. $f$, $s$, $m$ and $v$ are found by EM.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import median_abs_deviation

from quenched.outliers.learner.around import Verdict

STEPS, ACCURACY = 300, 1e-4
"""Of EM for four numbers."""
SHARES = np.linspace(0.0, 0.7, 71)
"""Shares of outliers whose support is computed."""


class Scales(NamedTuple):
    """What the E-step found besides the rows."""

    noise: float  # s
    middle: float  # m
    spread: float  # square root of v
    support: np.ndarray  # log-likelihood of each of `SHARES`, its maximum 0


def normal(x: np.ndarray, mean: float, variance: float) -> np.ndarray:
    """The logarithm of a Gaussian's density."""
    return -0.5 * np.square(x - mean) / variance - 0.5 * np.log(2 * np.pi * variance)


@dataclasses.dataclass(frozen=True, eq=False)
class Values:
    """The targets of a table, and how they are judged."""

    targets: np.ndarray  # [n]
    omega: np.ndarray  # [n] weights
    known: tuple[float, float] | None = None  # s, and the log-odds of an example with residual 0; None: estimated

    def judge(self, predicted: np.ndarray) -> Verdict:
        """Rows by the model's predictions `[n]`."""
        r = self.targets - predicted
        if self.known is not None:
            s, h0 = self.known
            h = h0 - 0.5 * np.square(r / s)
            return Verdict(h, expit(-h), float("nan"), float(np.mean(np.logaddexp(0, h))))
        y, omega, total = self.targets, self.omega, self.omega.sum()
        low = max(float(1.4826 * median_abs_deviation(y)) ** 2, 0.25 * float(np.var(y)), 1e-300)
        p = np.where(np.abs(r) <= np.quantile(np.abs(r), 0.7), 0.95, 0.05)
        f, s2, m, v = self._maximize(p, r, low)
        for _ in range(STEPS):
            last, p = p, expit(np.log1p(-f) + normal(r, 0.0, s2) - np.log(f) - normal(y, m, v))
            f, s2, m, v = self._maximize(p, r, low)
            if np.max(np.abs(p - last)) < ACCURACY:
                break
        a, b = np.log1p(-f) + normal(r, 0.0, s2), np.log(f) + normal(y, m, v)
        level = float(omega @ np.logaddexp(a, b) / total)
        inside, outside = normal(r, 0.0, s2), normal(y, m, v)
        with np.errstate(divide="ignore"):
            logs = np.log1p(-SHARES)[:, None] + inside, np.log(SHARES)[:, None] + outside
        support = np.logaddexp(*logs) @ omega
        about = Scales(float(np.sqrt(s2)), m, float(np.sqrt(v)), support - support.max())
        return Verdict(a - b, expit(b - a), f, level, about)

    def _maximize(self, p: np.ndarray, r: np.ndarray, low: float) -> tuple[float, float, float, float]:
        """The M-step of the four numbers; one row more of each kind, and an outlier more in the middle."""
        omega, y = self.omega, self.targets
        inside, outside = omega * p, omega * (1 - p)
        f = (outside.sum() + 1) / (omega.sum() + 2)
        s2 = max(float(inside @ r**2 / max(inside.sum(), 1e-300)), 1e-9 * low)
        m = float((outside @ y + np.median(y)) / (outside.sum() + 1))
        v = max(float(outside @ (y - m) ** 2 / max(outside.sum(), 1e-300)), low)
        return float(f), s2, m, v
