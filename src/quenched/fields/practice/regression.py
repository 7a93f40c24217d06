r"""Functions from noisy values: smoothness and noise are chosen by evidence, everything else is exact.

A function $h$ of one or two inputs lives on a grid and is linear between its points and beyond its ends. Its $k$-th
derivative is small a priori, $p(h) \propto \exp(-\frac\lambda2 \int |\partial^k h|^2)$, and $n$ values were seen with
noise of variance $\sigma^2$. The energy is a parabola. At unit noise and the strength $\gamma = \lambda \sigma^2$ the
least of it is $R/2$, and with $D$, what determinants say there, the evidence is
$$\ln p(y) = D - \tfrac n2 \ln 2\pi\sigma^2 - \frac{R}{2\sigma^2} .$$
For each $\gamma$ the best noise is $R/(n - f)$ with $f$ free polynomials, so that one number is searched; where it is
searched the polynomials have no prior, $+\tfrac f2 \ln 2\pi\sigma^2$. [lemm1999, eqs. (73), (301) to (318)]

Few rows decide neither: a function through all of them, without noise, is about as probable as a smooth one. Then the
posterior is the mean over orders, $\gamma$ and $\sigma$, each equally probable on a logarithmic scale, and polynomials
have no prior, in units of the values' deviation. (With that of unit information, which is as wide as the noise, they
would be the surer the less noise there is, and functions through all rows would win.)
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from quenched.core.types import InputError
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import GaussianData
from quenched.fields.model.links import Direct
from quenched.fields.model.operators import Modes, ThinPlate
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.practice.density import check_range
from quenched.fields.practice.evidence import Trial, attempt

ORDERS = (1, 2, 3)
"""Orders tried: functions that may have kinks, smooth ones, and very smooth ones."""
POINTS = {1: 200, 2: 48}
"""Of each axis, by dimension."""
MARGIN = 0.1
"""Share of the range of the inputs by which a grid goes beyond them on both sides."""
SURE, UNSURE = 100.0, 1e-1
"""At the first strength the prior is so many times as sure as the data of the smoothest mode that is not free; at the
last, of the roughest mode."""
RATIO, FINER = 1.5, 9
"""From one strength to the next the length on which the function may bend falls by this factor; and strengths that are
tried about the best of them."""
NOISELESS = 1e-8
"""Share of the variance of the values below which noise is not told from rounding and from what lies between points."""
DECIDED = 1e-9
"""The rows decide free polynomials if each has this share of the weight of the best known one."""
FEW = 64
"""Rows from which on the most probable order, strength and noise stand for all of them."""
NOISES = np.geomspace(1e-4, 3.0, 121)
"""Standard deviations of the noise that are weighed, as shares of that of the values."""
NEGLIGIBLE = 1e-4
"""Shares of the posterior that are left out."""
BLOCK = 4096
"""Rows whose variance is computed at once."""


@dataclasses.dataclass(frozen=True)
class Function:
    r"""The posterior of a function.

    Attributes:
        grid: where.
        mean: at the points, of the grid's shape.
        order: of the derivative that is small.
        strength: $\lambda$, in coordinates in which the grid has unit length.
        noise: $\sigma^2$.
        log_evidence: $\ln p(y)$.
        roots: rows whose products summed up are the covariance at the points `[modes, points]`.
        part: where the noise is not Gaussian, the posterior of the function less a centre, in units of a size, and
            both.
    """

    grid: Grid
    mean: np.ndarray
    order: int
    strength: float
    noise: float
    log_evidence: float
    roots: np.ndarray
    part: Any = None

    @property
    def variance(self) -> np.ndarray:
        """Of the function at the points."""
        return np.sum(self.roots**2, axis=0).reshape(self.grid.shape)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The mean at some rows."""
        return self.grid.interpolation(rows) @ self.mean.ravel()

    def variance_at(self, rows: np.ndarray) -> np.ndarray:
        """The variance of the function at some rows."""
        blocks = [rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK)]
        return np.concatenate([np.sum((self.grid.interpolation(b) @ self.roots.T) ** 2, axis=1) for b in blocks])


def merged(rows: np.ndarray, values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Equal rows as one, in a fixed order: numbers hang on what was seen, not on how it was written down."""
    both, where = np.unique(np.column_stack([rows, values]), axis=0, return_inverse=True)
    return both[:, :-1], both[:, -1], np.bincount(where.ravel(), weights)


def grid_for(rows: np.ndarray, points: int | None = None) -> Grid:
    """A grid for these rows.

    Raises:
        InputError: if a column does not vary, or is too large.
    """
    axes = []
    for i, x in enumerate(rows.T):
        low, high = check_range("X", i, x)
        wide = MARGIN * (high - low)
        axes.append(Axis(low - wide, high + wide, points or POINTS[rows.shape[1]], tails=(0.0, 0.0)))
    return Grid(given=axes)


@dataclasses.dataclass(frozen=True)
class _Found:
    """A trial with its noise and strength, and the evidence with free polynomials that have no prior."""

    trial: Trial
    strength: float
    noise: float
    log_evidence: float
    searched: float


@dataclasses.dataclass(frozen=True)
class _Weighed:
    """A trial, the posterior mean of its noise, and the logarithm of its evidence times its prior."""

    trial: Trial
    noise: float
    log_evidence: float


@dataclasses.dataclass(frozen=True)
class Search:
    """One order: standardised values at unit noise, and what values of one place add to the misfit."""

    data: GaussianData
    grid: Grid
    order: int
    problem: Problem
    modes: Modes
    scatter: float

    @property
    def free(self) -> int:
        """How many polynomials are free."""
        return int(np.sum(self.modes.values == 0))

    def ask(self, gamma: float, start: object) -> tuple[Trial, float, float]:
        r"""The fit at one $\gamma$, the misfit $R$ and what determinants say, $D$."""
        modes = self.modes.times(gamma)
        trial = attempt(self.problem, modes, order=self.order, strength=gamma, prior=1.0, start=start)
        h = trial.fit.field
        # The misfit from what is left, not as a difference of squares: a function through all values leaves 1e-8.
        bent = self.grid.cell * float(modes.values.ravel() @ modes.coefficients(h) ** 2)
        return trial, self.scatter + self.data.misfit(h) + bent, trial.evidence + trial.fit.energy

    def look(self, gamma: float, strength: float | None, noise: float | None, start: object) -> _Found:
        r"""What the data say of one $\gamma$; noise and strength follow, where they are not given."""
        trial, R, determinants = self.ask(gamma, start)
        n, f = self.data.total, self.free
        if noise is None:
            noise = max(R / (n - f), NOISELESS) if strength is None else gamma / strength
        evidence = determinants - 0.5 * (n * np.log(2 * np.pi * noise) + R / noise)
        searched = evidence + 0.5 * f * np.log(2 * np.pi * noise)
        return _Found(trial, gamma / noise if strength is None else strength, noise, float(evidence), float(searched))

    def path(self) -> tuple[np.ndarray, Any]:
        r"""Logarithms of $\gamma$ that are tried, and the fit at the first; None if rows decide no polynomials."""
        n, s = self.data.total, np.sort(self.modes.values.ravel()) * np.prod([axis.length for axis in self.grid.axes])
        f = self.free
        if not n > f:
            return np.zeros(0), None
        top, bottom = np.log(SURE * n / s[f]), np.log(UNSURE * n / s[-1])
        start = self.ask(float(np.exp(top)), None)[0].fit
        known = np.linalg.eigvalsh(start.data_hessian[:f, :f])  # pyright: ignore[reportOptionalSubscript]
        tried = np.linspace(top, bottom, int((top - bottom) / (2 * self.order * np.log(RATIO))) + 3)
        return tried, start if known[0] > DECIDED * known[-1] else None

    def weigh(self) -> list[_Weighed]:
        r"""All $\gamma$, each with the mean over the noise."""
        tried, start = self.path()
        if start is None:
            return []
        n, f, found = self.data.total, self.free, []
        prior = -np.log(len(tried) * len(NOISES))
        for gamma in np.exp(tried).tolist():
            trial, R, determinants = self.ask(gamma, start)
            logs = determinants - 0.5 * ((n - f) * np.log(2 * np.pi * NOISES**2) + R / NOISES**2)
            total = np.logaddexp.reduce(logs)
            found.append(_Weighed(trial, float(np.exp(logs - total) @ NOISES**2), float(total + prior)))
        return found

    def best(self, strength: float | None, noise: float | None) -> _Found | None:
        """The most probable smoothness and noise, of those that are not given; None if rows decide no polynomials."""
        tried, start = self.path()
        if start is None:
            return None
        if strength is not None and noise is not None:
            return self.look(strength * noise, strength, noise, start)

        def evidence(x: float) -> float:
            return self.look(float(np.exp(x)), strength, noise, start).searched

        best = int(np.argmax([evidence(x) for x in tried[1:-1]])) + 1
        tried = np.linspace(tried[best - 1], tried[best + 1], FINER)
        x = _summit(tried, np.array([evidence(x) for x in tried]))
        return self.look(float(np.exp(x)), strength, noise, start)


def learn(
    grid: Grid,
    rows: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    *,
    order: int | None = None,
    strength: float | None = None,
    noise: float | None = None,
) -> Function:
    """The posterior of a function of which values were seen.

    Args:
        grid: where, as `grid_for` lays it.
        rows: inputs `[n, d]`.
        values: $y$ `[n]`.
        weights: how many equal rows each stands for, all positive.
        order: of the derivative that is small; by default the most probable of `ORDERS`, or all for few rows.
        strength: of the prior; by default the most probable, or all.
        noise: its variance; by default the most probable, or all.

    Returns:
        The posterior.

    Raises:
        InputError: if the rows are too few to say anything.
    """
    centre, scale, searches = standardise(grid, rows, values, weights, order)
    n = float(weights.sum())
    if strength is None and noise is None and n < FEW:
        weighed = [one for search in searches for one in search.weigh()]
        if weighed:
            return _mixed(grid, weighed, centre, scale, n, len(searches))
    found = [search.best(strength and strength * scale**2, noise and noise / scale**2) for search in searches]
    decided = [one for one in found if one is not None]
    if not decided:
        free = int(np.sum(searches[0].modes.values == 0))
        raise InputError(f"Argument `X` must hold more different rows than there are free polynomials, {free}, but the "
                         f"n_samples={len(merged(rows, values, weights)[0])} rows do not decide them.")  # fmt: skip
    best = max(decided, key=lambda one: one.log_evidence)
    return Function(
        grid=grid,
        mean=centre + scale * best.trial.fit.field,
        order=best.trial.order,
        strength=best.strength / scale**2,
        noise=best.noise * scale**2,
        log_evidence=best.log_evidence - n * np.log(scale),
        roots=scale * np.sqrt(best.noise) * best.trial.posterior.roots,
    )


def standardise(
    grid: Grid, rows: np.ndarray, values: np.ndarray, weights: np.ndarray, order: int | None
) -> tuple[float, float, list[Search]]:
    """The mean of the values and their deviation, and a search in these units for each order."""
    rows, values, weights = merged(rows, values, weights)
    n = float(weights.sum())
    centre = float(weights @ values / n)
    scale = float(np.sqrt(weights @ (values - centre) ** 2 / n)) or 1.0
    y = (values - centre) / scale
    places, where = np.unique(rows, axis=0, return_inverse=True)  # rows of one place are one row, of their mean value
    where = where.ravel()
    w = np.bincount(where, weights)
    mean = np.bincount(where, weights * y) / w
    scatter = float(weights @ (y - mean[where]) ** 2)
    data = GaussianData(places, mean, weights=w).prepared(grid)
    searches = []
    for k in [order] if order else ORDERS:
        problem = Problem(data, Direct(grid), Gaussian(ThinPlate(grid, k)))
        searches.append(Search(data, grid, k, problem, problem.operator.modes(), scatter))
    return centre, scale, searches


def _mixed(grid: Grid, weighed: list[_Weighed], centre: float, scale: float, n: float, orders: int) -> Function:
    """The mean over orders, strengths and noises, from standardised values back to those that were seen."""
    logs = np.array([one.log_evidence for one in weighed])
    total = float(np.logaddexp.reduce(logs))
    shares = np.exp(logs - total)
    best = weighed[int(np.argmax(shares))]
    kept = [(one, share) for one, share in zip(weighed, shares.tolist(), strict=True) if share > NEGLIGIBLE]
    p = np.array([share for _, share in kept])
    p, means = p / p.sum(), np.stack([one.trial.fit.field.ravel() for one, _ in kept])
    mean = p @ means
    roots = [np.sqrt(share * one.noise) * one.trial.posterior.roots for (one, _), share in zip(kept, p, strict=True)]
    covariance: Any = np.concatenate([*roots, np.sqrt(p)[:, None] * (means - mean)])
    if len(covariance) > grid.size:  # as few rows as there are points
        covariance = np.linalg.qr(covariance, mode="r")
    noise = float(p @ np.array([one.noise for one, _ in kept]))
    return Function(
        grid=grid,
        mean=centre + scale * mean.reshape(grid.shape),
        order=best.trial.order,
        strength=best.trial.strength / best.noise / scale**2,
        noise=noise * scale**2,
        log_evidence=total - np.log(orders) - n * np.log(scale),
        roots=scale * covariance,
    )


def _summit(x: np.ndarray, y: np.ndarray) -> float:
    """Where the parabola through the highest of equally spaced points and its neighbours is highest.

    A smooth function of the data, unlike the last digits of a search.
    """
    i = int(np.clip(np.argmax(y), 1, len(y) - 2))
    bend = y[i - 1] - 2 * y[i] + y[i + 1]
    shift = 0.5 * (y[i - 1] - y[i + 1]) / bend if bend < 0 else 0.0
    return float(x[i] + np.clip(shift, -1, 1) * (x[1] - x[0]))
