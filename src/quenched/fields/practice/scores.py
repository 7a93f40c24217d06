r"""Scores of numbers, and linear functions of them: what nodes of a tree begin with.

The score of a number is $z = \Phi^{-1}(F(x))$ with the distribution $F$ of its density. A linear function of scores
has a Gaussian prior of most evidence. It has seen the rows: what it leaves of them is too small by $\sqrt{1 - h}$ with
the leverage $h$, and what it misses of new rows is larger by $\sqrt{1 + h}$; both are put right.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import special

from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import LogDensity
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import ThinPlate
from quenched.fields.practice import density
from quenched.fields.practice.evidence import Trial, attempt

RIDGES = 10.0 ** np.arange(-3.0, 4.1, 0.5)
"""Inverse variances of linear coefficients that are tried, in units of the noise."""
FAR, TINY = 1e6, 1e-300
"""The largest score: beyond a bound it is infinite; and the least length of a tail."""
RATIO, STEPS, LOST, NEGLIGIBLE = 10.0, 9, 5.0, 1e-2
"""Of simple lines: how strengths fall, and how many there are; what the logarithm of the evidence may lose; and the
share of a strength that is left out."""
WIDE, TAIL = 1.5, 0.5
"""Of what is unlike the rest, in deviations: the scale of its density, and the least length in which tails fall by a
factor of e."""
SAME = 0.02
"""The least deviation of what is left."""
POINTS = 120
"""Of simple lines."""


@dataclasses.dataclass(frozen=True)
class Line:
    """A density of one number on a grid, with the variance of its logarithm."""

    axis: Axis
    log_values: np.ndarray
    deviation: np.ndarray
    log_evidence: float

    @classmethod
    def learn(cls, x: np.ndarray, weights: np.ndarray, *, simple: bool, bounds: density.Bounds = (None, None)) -> Line:
        """From rows; a simple one is a field of order 3 alone, for which Gaussians are free."""
        grid = density.grid_for(x[:, None], weights, bounds=[bounds], points=[POINTS if simple else None], extend=False)
        counts = grid.counts(x[:, None], weights)
        if not simple:
            found = density.estimate(grid, counts, smooth=True)
            return cls._widen(grid.axes[0], found.log_density, found.deviation, found.mixture.log_evidence, x, weights)
        logs, deviations, evidence = smooth(grid, [counts])
        return cls._widen(grid.axes[0], logs[0], deviations[0], evidence, x, weights)

    @classmethod
    def _widen(
        cls, axis: Axis, logs: np.ndarray, deviation: np.ndarray, evidence: float, x: np.ndarray, weights: np.ndarray
    ) -> Line:
        """With a share of one row in n + 1 that is unlike the others, and tails to match."""
        n = weights.sum()
        mean = weights @ x / n
        wide = float(np.sqrt(weights @ (x - mean) ** 2 / n))
        low, high = (max(tail, TAIL * wide) if tail else 0.0 for tail in axis.tails or (0.0, 0.0))
        axis = dataclasses.replace(axis, tails=(low, high))
        other = wider((axis.coordinates - mean) / wide) - np.log(wide)
        logs = np.logaddexp(logs + np.log(n / (n + 1)), other - np.log(n + 1))
        return cls(axis, logs - np.log(axis.weights @ np.exp(logs)), deviation, evidence)

    @property
    def grid(self) -> Grid:
        """Of its axis."""
        return Grid(over=[self.axis])

    def log_density(self, x: np.ndarray) -> np.ndarray:
        """At some places."""
        return self.grid.log_values(self.log_values, x[:, None])

    def variance(self, x: np.ndarray) -> np.ndarray:
        """Of the log-density at some places."""
        return np.interp(x, self.axis.coordinates, self.deviation) ** 2

    def score(self, x: np.ndarray) -> np.ndarray:
        """Where a standard Gaussian has as much below it."""
        below, above = self._logs(x)
        lower = below < above
        z = np.empty(len(x))
        z[lower], z[~lower] = special.ndtri_exp(below[lower]), -special.ndtri_exp(above[~lower])
        return np.clip(z, -FAR, FAR)

    def value(self, z: np.ndarray) -> np.ndarray:
        """The place of a score."""
        P = np.exp(self.log_values)[None]
        return invert(self.axis, np.broadcast_to(P, (len(z), P.shape[1])), special.log_ndtr(z), special.log_ndtr(-z))

    def _logs(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of the shares below and above."""
        X, P = self.axis.coordinates, np.exp(self.log_values)
        low, high = self.axis.tails or (0.0, 0.0)
        pieces = (P[1:] + P[:-1]) * np.diff(X) / 2
        below = np.cumsum(np.append(low * P[0], pieces))
        above = np.cumsum(np.append(high * P[-1], pieces[::-1]))[::-1]
        j = np.clip(np.searchsorted(X, x, side="right") - 1, 0, len(X) - 2)
        t = np.clip(x, X[0], X[-1]) - X[j]
        slope = (P[j + 1] - P[j]) / (X[j + 1] - X[j])
        inside = t * (P[j] + slope * t / 2)
        with np.errstate(divide="ignore"):
            logs = np.log(below[j] + inside), np.log(np.maximum(above[j] - inside, above[j + 1]))
            under = np.log(below[0]) - (X[0] - x) / max(low, TINY)
            over = np.log(above[-1]) - (x - X[-1]) / max(high, TINY)
        return np.where(x < X[0], under, logs[0]), np.where(x > X[-1], over, logs[1])


def wider(e: np.ndarray) -> np.ndarray:
    """The logarithm of the logistic density, for what is unlike the rest."""
    e = np.abs(e) / WIDE
    return -e - 2 * np.log1p(np.exp(-e)) - np.log(WIDE)


def smooth(grid: Grid, counts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, float]:
    """Densities of order 3 with one common strength, weighed by evidence: logarithms, deviations and evidence."""
    modes = ThinPlate(grid, 3).modes().without_constant()
    s = modes.values[0] * grid.axes[0].length
    top = density.SURE * sum(np.sum(seen) for seen in counts) / s[np.sum(s == 0)]
    strengths = (top / RATIO ** np.arange(STEPS)).tolist()
    problems = [
        Problem(DensityData(None, None, seen), LogDensity(grid), Gaussian(ThinPlate(grid, 3))) for seen in counts
    ]
    found: list[list[Trial]] = []
    totals: list[float] = []
    for strength in strengths:
        starts = [trial.fit for trial in found[-1]] if found else [None] * len(problems)
        found.append([attempt(problem, modes.times(strength), order=3, strength=strength, prior=1.0, start=start)
                      for problem, start in zip(problems, starts, strict=True)])  # fmt: skip
        totals.append(sum(trial.evidence for trial in found[-1]))
        if totals[-1] < max(totals) - LOST:
            break
    evidence = np.array(totals) - np.log(STEPS)
    shares = special.softmax(evidence)
    kept = shares > NEGLIGIBLE
    shares = shares[kept] / shares[kept].sum()
    trials = [trials for trials, keep in zip(found, kept, strict=True) if keep]
    fields = np.array([[trial.field for trial in each] for each in trials])
    mean = np.tensordot(shares, fields, axes=1)
    spread = np.array([[trial.variance() for trial in each] for each in trials]) + (fields - mean) ** 2
    mean = mean - np.log(np.sum(grid.weights * np.exp(mean), axis=1, keepdims=True))
    return mean, np.sqrt(np.tensordot(shares, spread, axes=1)), float(np.logaddexp.reduce(evidence))


def invert(axis: Axis, P: np.ndarray, below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Where densities `[n, points]` have some share below, given with that above as logarithms `[n]`."""
    X, (low, high) = axis.coordinates, axis.tails or (0.0, 0.0)
    pieces = (P[:, 1:] + P[:, :-1]) * np.diff(X) / 2
    F = np.cumsum(np.concatenate([low * P[:, :1], pieces], axis=1), axis=1)
    u = np.exp(below)
    j = np.clip(np.sum(F <= u[:, None], axis=1) - 1, 0, len(X) - 2)
    i = np.arange(len(P))
    h, a, b, rest = X[j + 1] - X[j], P[i, j], P[i, j + 1], np.maximum(u - F[i, j], 0.0)
    root = np.sqrt(np.maximum(a**2 + 2 * rest * (b - a) / h, 0.0))
    step = np.divide(2 * rest, a + root, out=np.zeros(len(P)), where=a + root > 0)
    with np.errstate(divide="ignore"):
        under = X[0] + low * (below - np.log(F[:, 0]))
        over = X[-1] - high * (above - np.log(high * P[:, -1]))
    return np.where(u < F[:, 0], under, np.where(u > F[:, -1], over, X[j] + np.minimum(step, h)))


@dataclasses.dataclass(frozen=True)
class Linear:
    """A linear function of scores, with what is known of it."""

    used: tuple[int, ...]
    beta: np.ndarray
    root: np.ndarray
    noise: float
    penalty: float

    @classmethod
    def learn(cls, used: tuple[int, ...], scores: np.ndarray, z: np.ndarray, weights: np.ndarray) -> Linear:
        """By evidence; `penalty` is what it says less than the likelihood."""
        A = np.column_stack([np.ones(len(z)), scores[:, list(used)]])
        n, B = weights.sum(), A.T @ (weights[:, None] * A)
        values, vectors = np.linalg.eigh(B)
        values, seen = np.maximum(values, 0.0), vectors.T @ (A.T @ (weights * z))
        total = weights @ z**2

        def look(ridge: float) -> tuple[float, float]:
            noise = max((total - np.sum(seen**2 / (values + ridge))) / n, SAME**2)
            occam = 0.5 * np.sum(np.log1p(values / ridge))
            return float(-0.5 * n * (np.log(2 * np.pi * noise) + 1) - occam), noise

        ridge = max(RIDGES, key=lambda ridge: look(ridge)[0])
        evidence, noise = look(ridge)
        beta = vectors @ (seen / (values + ridge))
        left = weights @ (z - A @ beta) ** 2
        likelihood = -0.5 * n * np.log(2 * np.pi * noise) - 0.5 * left / noise
        return cls(used, beta, vectors / np.sqrt(values + ridge), noise, float(evidence - likelihood))

    def at(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the leverage."""
        A = np.column_stack([np.ones(len(scores)), scores[:, list(self.used)]])
        return A @ self.beta, np.sum((A @ self.root) ** 2, axis=1)

    def spread(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean, and the scale of what new rows miss it by."""
        mean, h = self.at(scores)
        return mean, np.sqrt(self.noise * (1 + h))

    def left(self, scores: np.ndarray, z: np.ndarray) -> np.ndarray:
        """What it leaves of the rows it has seen, in units of the noise."""
        mean, h = self.at(scores)
        return (z - mean) / np.sqrt(self.noise * np.maximum(1 - h, 0.05))
