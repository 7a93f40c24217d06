r"""The E-step for values: a residual among residuals, or a target among targets.

The residual $r$ of an informative row has a t-distribution of scale $s$ and four degrees of freedom; the target of an
outlier has nothing to do with its inputs, $y \sim \mathcal N(m, v)$ with $v$ not below the variance of the middle of
all targets:

$$h = \ln \frac{(1 - f)\, t_4(r / s) / s}{f\, \mathcal N(y; m, v)} .$$

That the background is one of targets rather than of residuals keeps rows in the tails of the noise, and rows of a part
of the table where the noise is larger, from being taken for outliers. Where the inputs of outliers are unusual, too, a
residual that is small by chance does not make a row informative: with $u$, how far out the inputs are,

$$\ln \frac{f}{1 - f} = a + b u, \qquad b \ge 0 .$$

$a$, $b$, $s$, $m$ and $v$ are found by EM.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln, log_expit, logit

from quenched.outliers.learner.around import Fit, Verdict
from quenched.outliers.learner.labels import SHARES

STEPS, ACCURACY = 300, 1e-4
"""Of EM for five numbers."""
STARTS, CONCENTRATIONS, KEPT = 4, 4, 0.55
"""Subsets to which the model is fitted for a start, steps to the rows nearest to it, and the share of these."""
FREEDOM, TURNS = 4.0, 3
"""Degrees of freedom of the noise, and rounds in which its scale is found: rows in long tails are no outliers, and
tails as long as these cost nearly nothing where the noise is Gaussian."""
STEEP = 1.0
"""Precision of the prior of b, about 0."""


class Scales(NamedTuple):
    """What the E-step found besides the rows."""

    noise: float  # s
    middle: float  # m
    spread: float  # square root of v
    support: np.ndarray  # log-likelihood of each of `SHARES`, its maximum 0


def student(r: np.ndarray, s2: float) -> np.ndarray:
    """The logarithm of the density of a t-distribution about 0."""
    half = 0.5 * (FREEDOM + 1)
    constant = gammaln(half) - gammaln(0.5 * FREEDOM) - 0.5 * np.log(np.pi * FREEDOM * s2)
    return constant - half * np.log1p(r**2 / (FREEDOM * s2))


def normal(x: np.ndarray, mean: float, variance: float) -> np.ndarray:
    """The logarithm of a Gaussian's density."""
    return -0.5 * np.square(x - mean) / variance - 0.5 * np.log(2 * np.pi * variance)


@dataclasses.dataclass(frozen=True, eq=False)
class Values:
    """The targets of a table, and how they are judged."""

    targets: np.ndarray  # [n]
    omega: np.ndarray  # [n] weights
    known: tuple[float, float] | None = None  # s, and the log-odds of an example with residual 0; None: estimated
    far: np.ndarray | None = None  # [n] u, with mean 0; None: the share is the same everywhere

    def judge(self, predicted: np.ndarray) -> Verdict:
        """Rows by the model's predictions `[n]`."""
        r = self.targets - predicted
        if self.known is not None:
            s, h0 = self.known
            h = h0 - 0.5 * np.square(r / s)
            return Verdict(h, expit(-h), float("nan"), float(np.mean(np.logaddexp(0, h))))
        y, omega, total = self.targets, self.omega, self.omega.sum()
        low = max(float(1.4826 * np.median(np.abs(y - np.median(y)))) ** 2, 0.25 * float(np.var(y)), 1e-300)
        p = np.where(np.abs(r) <= np.quantile(np.abs(r), 0.7), 0.95, 0.05)
        odds, (s2, m, v) = self._place(np.zeros(2), p), self._scale(p, r, low)
        for _ in range(STEPS):
            last, p = p, expit(student(r, s2) - normal(y, m, v) - self._log_odds(odds))
            odds, (s2, m, v) = self._place(odds, p), self._scale(p, r, low)
            if np.max(np.abs(p - last)) < ACCURACY:
                break
        inside, outside, each = student(r, s2), normal(y, m, v), self._log_odds(odds)
        a, b = inside + log_expit(-each), outside + log_expit(each)
        share = float(omega @ expit(each) / total)
        level = float(omega @ np.logaddexp(a, b) / total)
        tilt = each - np.log(max(share, 1e-9)) + np.log1p(-min(share, 1 - 1e-9))
        with np.errstate(divide="ignore"):
            logs = tilt + logit(SHARES)[:, None]
            support = np.logaddexp(inside + log_expit(-logs), outside + log_expit(logs)) @ omega
        about = Scales(float(np.sqrt(s2)), m, float(np.sqrt(v)), support - support.max())
        return Verdict(a - b, expit(b - a), share, level, about)

    def _log_odds(self, odds: np.ndarray) -> np.ndarray:
        """Of each row, before its target is seen, that it is an outlier."""
        far = np.zeros(len(self.targets)) if self.far is None else self.far
        return odds[0] + odds[1] * far

    def _place(self, odds: np.ndarray, p: np.ndarray) -> np.ndarray:
        """The M-step of the share, with one row more of each kind: a and b, by a step of Newton if there is a b."""
        omega, left = self.omega, self.omega * (1 - p)
        if self.far is None:
            return np.array([np.log((left.sum() + 1) / (omega.sum() - left.sum() + 1)), 0.0])
        u, f = self.far, expit(self._log_odds(odds))
        t = omega * f * (1 - f)
        slope = left - omega * f
        middle = expit(odds[0])
        g = np.array([slope.sum() + 1 - 2 * middle, slope @ u - STEEP * odds[1]])
        H = np.array([[t.sum() + 2 * middle * (1 - middle), t @ u], [t @ u, t @ u**2 + STEEP]])
        a, b = odds + np.clip(np.linalg.solve(H, g), -2, 2)
        return np.array([a, max(b, 0.0)])

    def _scale(self, p: np.ndarray, r: np.ndarray, low: float) -> tuple[float, float, float]:
        """The M-step of s, m and v; an outlier more in the middle."""
        omega, y, s2 = self.omega, self.targets, max(float(np.median(r**2)), 1e-9 * low)
        inside, outside = omega * p, omega * (1 - p)
        for _ in range(TURNS):  # of the M-step of a t-distribution
            near = (FREEDOM + 1) * r**2 / (FREEDOM + r**2 / s2)
            s2 = max(float(inside @ near / max(inside.sum(), 1e-300)), 1e-9 * low)
        m = float((outside @ y + np.median(y)) / (outside.sum() + 1))
        v = max(float(outside @ (y - m) ** 2 / max(outside.sum(), 1e-300)), low)
        return s2, m, v


def find_starts(
    fit: Fit, X: np.ndarray, targets: np.ndarray, omega: np.ndarray, generator: np.random.Generator
) -> list[np.ndarray]:
    """Weights to begin with: all rows; those in the middle of the table; and the rows near models fitted to subsets."""
    n, d = X.shape
    distance = np.linalg.norm(X - np.median(X, axis=0), axis=1)
    found = [np.ones(n), (distance <= np.median(distance)).astype(float)]
    for _ in range(STARTS):
        near, rows = np.ones(n, bool), generator.permutation(n)[: max(2 * d + 2, n // 10)]
        for _ in range(CONCENTRATIONS):
            r = np.abs(targets - fit(rows, omega[rows])(np.arange(n)))
            near = r <= np.quantile(r, KEPT)
            rows = np.flatnonzero(near)
        found.append(near.astype(float))
    return found
