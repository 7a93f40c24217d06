r"""Functions from noisy values: smoothness and noise are chosen by evidence, everything else is exact.

A function $h$ of one or two inputs lives on a grid and is linear between its points and beyond its ends. Its $k$-th
derivative is small a priori, $p(h) \propto \exp(-\frac\lambda2 \int |\partial^k h|^2)$, and $n$ values were seen with
noise of variance $\sigma^2$. The energy is a parabola. At unit noise and the strength $\gamma = \lambda \sigma^2$ the
least of it is $R/2$, and with $D$, what determinants say there, the evidence is
$$\ln p(y) = D - \tfrac n2 \ln 2\pi\sigma^2 - \frac{R}{2\sigma^2} .$$
Order, $\gamma$ and $\sigma$ are not taken as known: the posterior is the mean over all of them, each equally probable
beforehand on a logarithmic scale, weighed by what the data say. [lemm1999, eqs. (73), (301) to (318)]

Orders are compared by that, so what a prior leaves free, the $f$ polynomials below its order, needs a density, and the
same measure for every order. Let $c$ be the root mean squares of the polynomials over the rows (in coordinates in
which they are orthonormal there), in units of the deviation of the values. Beforehand
$$c \sim \mathcal N(0, 1) :$$
a polynomial may be as large as what was seen. The evidence under this prior is that under a flat one,
$\int dc\, p(y|c)$, times
$$\int dc\; \mathcal N(c; \hat c, \sigma^2 V)\, \mathcal N(c; 0, 1) = \mathcal N(\hat c; 0, 1 + \sigma^2 V) ,$$
with mean $\hat c$ and covariance $\sigma^2 V$ of the posterior. (A density of 1 instead favours order 3. That of unit
information is as wide as the noise: polynomials would be the surer the less noise there is, and functions through all
rows would win.) In the posterior of the function itself polynomials stay flat, so that adding one to the values adds it
to the answer.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import linalg, special

from quenched.core.types import InputError, Outcome
from quenched.fields.learner.fitted import Fitted
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import GaussianData
from quenched.fields.model.links import Direct
from quenched.fields.model.modes import Modes
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import ThinPlate
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
RATIO = 1.5
"""From one strength to the next the length on which the function may bend falls by this factor."""
NEAR, STEEP, HALVINGS = 4.0, 2.0, 12
"""Where the logarithm of the evidence is within `NEAR` of its best and changes by more than `STEEP` from one strength
to the next, those between are tried, too; so often at most."""
DECIDED = 1e-9
"""The rows decide free polynomials if each has this share of the weight of the best known one."""
NOISE = (np.log(1e-8), np.log(9.0))
"""Logarithms of the variances of the noise that are weighed, as shares of that of the values: below, noise is not told
from rounding and from what lies between points."""
NOISES, DEVIATIONS = 121, 8.0
"""Of the noise so many are weighed at each strength, up to so many deviations from the best."""
GIVEN = 25
"""Noises that are tried first where the strength is given."""
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
        parts: where the noise is not Gaussian, posteriors of the function less a centre, in units of a size, and
            both.
        outcome: whether the fits behind it were found.
    """

    grid: Grid
    mean: np.ndarray
    order: int
    strength: float
    noise: float
    log_evidence: float
    roots: np.ndarray
    parts: Any = None
    outcome: Outcome = Outcome.converged

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
    """Equal rows as one, in a fixed order: the answer depends on what was seen, not on the order of the rows."""
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
class Weighed:
    r"""A trial at one $\gamma$ with the noises that are weighed there.

    Attributes:
        trial: at unit noise.
        gamma: $\ln \gamma$.
        noises: $\sigma^2$ in units of the variance of the values.
        logs: logarithm of the probability of each beforehand and of the data.
        modes: of the order.
    """

    trial: Trial
    gamma: float
    noises: np.ndarray
    logs: np.ndarray
    modes: Modes

    @functools.cached_property
    def height(self) -> float:
        r"""The logarithm of the evidence of this $\gamma$."""
        return float(np.logaddexp.reduce(self.logs))

    @property
    def noise(self) -> float:
        """The mean noise."""
        return float(np.exp(self.logs - self.height) @ self.noises)

    def piece(self, weight: float) -> Piece:
        """As a part of the posterior, of a logarithmic weight."""
        fit = self.trial.fit
        return Piece(self.height + weight, self.modes.coefficients(fit.field), fit, self.noise, self.noise)


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
    def free(self) -> np.ndarray:
        """Which modes are free polynomials."""
        return np.ravel(self.modes.values) == 0

    def ask(self, gamma: float, start: object) -> tuple[Trial, float, float]:
        r"""The fit at one $\gamma$, the misfit $R$ and what determinants say, $D$."""
        modes = self.modes.times(gamma)
        trial = attempt(self.problem, modes, order=self.order, strength=gamma, prior=1.0, start=start)
        h = trial.fit.field
        # The misfit from what is left, not as a difference of squares: a function through all values leaves 1e-8.
        bent = self.grid.cell * float(modes.values.ravel() @ modes.coefficients(h) ** 2)
        return trial, self.scatter + self.data.misfit(h) + bent, trial.evidence + trial.fit.energy

    def at(self, gamma: float, strength: float | None, noise: float | None, start: object) -> Weighed:
        r"""What the data say at $\ln \gamma$ of the noises that go with it."""
        trial, R, determinants = self.ask(float(np.exp(gamma)), start)
        f, before = int(self.free.sum()), 0.0
        n = self.data.total - f
        if noise is not None:
            v = np.array([noise])
        elif strength is not None:
            v = np.array([np.exp(gamma) / strength])
        else:
            low, high = NOISE
            best, wide = np.clip(np.log(max(R / n, np.finfo(float).tiny)), low, high), DEVIATIONS * np.sqrt(2 / n)
            u = np.linspace(max(low, best - wide), min(high, best + wide), NOISES)
            v, before = np.exp(u), np.log((u[1] - u[0]) / (high - low))
        free, fit = self.free, trial.fit
        unit = fit.hessian[np.ix_(free, free)] / self.data.total  # pyright: ignore[reportOptionalSubscript]
        known = of_polynomials(unit, self.modes.coefficients(fit.field), free, fit.factor, v)
        flat = determinants - 0.5 * (n * np.log(2 * np.pi * v) + R / v)
        return Weighed(trial, gamma, v, flat + known + before, self.modes)

    def path(self) -> tuple[np.ndarray, Any]:
        r"""Logarithms of $\gamma$ that are tried, and the fit at the first; None if rows decide no polynomials."""
        n, s = self.data.total, np.sort(self.modes.values.ravel()) * np.prod([axis.length for axis in self.grid.axes])
        f = int(self.free.sum())
        if not n > f:
            return np.zeros(0), None
        top, bottom = np.log(SURE * n / s[f]), np.log(UNSURE * n / s[-1])
        start = self.ask(float(np.exp(top)), None)[0].fit
        known = np.linalg.eigvalsh(start.data_hessian[:f, :f])  # pyright: ignore[reportOptionalSubscript]
        tried = np.linspace(top, bottom, int((top - bottom) / (2 * self.order * np.log(RATIO))) + 3)
        return tried, start if known[0] > DECIDED * known[-1] else None

    def weigh(self, strength: float | None = None, noise: float | None = None) -> list[tuple[Weighed, float]]:
        r"""What the data say along $\gamma$, and logarithms of weights; nothing if rows decide no polynomials.

        Args:
            strength: $\lambda$ in units of the values, if it is given.
            noise: $\sigma^2$ in these, if it is given.
        """
        tried, start = self.path()
        if start is None:
            return []
        if strength is not None and noise is not None:
            return [(self.at(float(np.log(strength * noise)), strength, noise, start), 0.0)]
        if strength is not None:
            tried = np.log(strength) + np.linspace(*NOISE, GIVEN)
        found = {x: self.at(x, strength, noise, start) for x in sorted(tried.tolist())}
        for _ in range(HALVINGS):
            x, h = np.array(list(found)), np.array([one.height for one in found.values()])
            near, steep = h > h.max() - NEAR, np.abs(np.diff(h)) > STEEP
            beside = steep | np.append(steep[1:], False) | np.append(False, steep[:-1])
            wanted = (near[1:] | near[:-1]) & beside
            if not wanted.any():
                break
            found |= {y: self.at(y, strength, noise, start) for y in ((x[1:] + x[:-1]) / 2)[wanted].tolist()}
            found = dict(sorted(found.items()))
        x = np.array(list(found))
        widths = np.convolve(np.diff(x), [0.5, 0.5])
        return list(zip(found.values(), np.log(widths / (x[-1] - x[0])).tolist(), strict=True))


def of_polynomials(unit: np.ndarray, c: np.ndarray, free: np.ndarray, factor: Any, sizes: np.ndarray) -> np.ndarray:
    r"""$\ln \mathcal N(\hat c; 0, 1 + \sigma^2 V)$ of free polynomials, in coordinates orthonormal over the rows.

    Args:
        unit: mean products of the polynomials over the rows.
        c: the mean of the posterior, in units of the values.
        free: which of the coefficients are free.
        factor: lower triangle and scale of the inverse of its covariance.
        sizes: $\sigma^2$, by which that is multiplied.
    """
    lower, scale = factor
    root = np.linalg.cholesky(unit)
    half = linalg.solve_triangular(lower, np.diag(1 / scale)[:, free] @ root, lower=True, check_finite=False)
    values, vectors = np.linalg.eigh(half.T @ half)
    total = 1 + sizes[:, None] * values
    return -0.5 * np.sum(np.log(2 * np.pi * total) + (vectors.T @ (root.T @ c[free])) ** 2 / total, axis=1)


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
        order: of the derivative that is small; by default all of `ORDERS`.
        strength: of the prior; by default all.
        noise: its variance; by default all.

    Returns:
        The posterior.

    Raises:
        InputError: if the rows are too few to say anything.
    """
    centre, scale, searches = standardise(grid, rows, values, weights, order)
    weighed = [search.weigh(strength and strength * scale**2, noise and noise / scale**2) for search in searches]
    if not any(weighed):
        raise InputError(f"Argument `X` must hold more different rows than there are free polynomials, "
                         f"{searches[0].free.sum()}, but the n_samples={len(merged(rows, values, weights)[0])} rows do "
                         "not decide them.")  # fmt: skip
    weighed = [each for each in weighed if each]
    orders = [(each[0][0].modes, [one.piece(log) for one, log in each]) for each in weighed]
    evidence, mean, roots, mean_noise = mix(orders)
    best, gamma = _summit([one for one, _ in weighed[int(np.argmax(evidence))]])
    return Function(
        grid=grid,
        mean=centre + scale * mean.reshape(grid.shape),
        order=best.trial.order,
        strength=strength or float(np.exp(gamma)) / best.noise / scale**2,
        noise=noise or mean_noise * scale**2,
        log_evidence=float(np.logaddexp.reduce(evidence))
        - np.log(len(searches))
        - float(weights.sum()) * np.log(scale),
        roots=scale * roots,
    )


@dataclasses.dataclass(frozen=True)
class Piece:
    """A Gaussian in the modes of an order.

    Attributes:
        log: logarithm of its weight.
        mean: coefficients.
        fit: whose factor has its covariance.
        size: by what that is multiplied.
        noise: that goes with it.
    """

    log: float
    mean: np.ndarray
    fit: Fitted
    size: float
    noise: float

    @property
    def roots(self) -> np.ndarray:
        """Rows whose products summed up are the covariance of the coefficients."""
        lower, scale = self.fit.factor  # pyright: ignore[reportGeneralTypeIssues]
        half = linalg.solve_triangular(lower, np.diag(1 / scale), lower=True, check_finite=False)
        return np.sqrt(self.size) * half


def mix(orders: Sequence[tuple[Modes, Sequence[Piece]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """The mean over orders, strengths and noises.

    Args:
        orders: the modes of each, and Gaussians in these.

    Returns:
        Logarithms of the weights of the orders; mean and roots of the covariance on the points; the mean noise.
    """
    evidence = np.array([np.logaddexp.reduce([one.log for one in pieces]) for _, pieces in orders])
    shares = special.softmax(evidence)
    kept = np.flatnonzero(shares > NEGLIGIBLE).tolist()
    p = shares[kept] / shares[kept].sum()
    means, halves, noises = zip(*(_within(*orders[k]) for k in kept), strict=True)
    mean = p @ means
    halves = [np.sqrt(share) * half for share, half in zip(p, halves, strict=True)]
    roots = np.concatenate([*halves, np.sqrt(p)[:, None] * (means - mean)]) if len(p) > 1 else halves[0]
    if len(roots) > len(mean):
        roots = np.asarray(np.linalg.qr(roots, mode="r"))
    return evidence, mean, roots, float(p @ noises)


def _within(modes: Modes, pieces: Sequence[Piece]) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, roots and mean noise of one order, in its modes, which are fewer than points."""
    shares = special.softmax([one.log for one in pieces])
    kept = np.flatnonzero(shares > NEGLIGIBLE).tolist()
    some, p = [pieces[i] for i in kept], shares[kept] / shares[kept].sum()
    c = np.array([one.mean for one in some])
    mean = p @ c
    halves = [np.sqrt(share) * one.roots for one, share in zip(some, p, strict=True)]
    roots = np.concatenate([*halves, np.sqrt(p)[:, None] * (c - mean)])
    roots = np.linalg.qr(roots, mode="r") if len(some) > 1 else halves[0]
    return modes.matrix @ mean, roots @ modes.matrix.T, float(p @ [one.noise for one in some])


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


def _summit(weighed: list[Weighed]) -> tuple[Weighed, float]:
    r"""The most probable, and where the parabola through it and its neighbours is highest: $\ln \gamma$.

    A smooth function of the data, unlike the last digits of a search.
    """
    i = int(np.argmax([one.height for one in weighed]))
    if not 0 < i < len(weighed) - 1:
        return weighed[i], weighed[i].gamma
    x, y = (np.array([getattr(one, name) for one in weighed[i - 1 : i + 2]]) for name in ("gamma", "height"))
    bend, slope, _ = np.polyfit(x - x[1], y, 2)
    return weighed[i], float(np.clip(x[1] - slope / (2 * bend), x[0], x[2])) if bend < 0 else weighed[i].gamma
