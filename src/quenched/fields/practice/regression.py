r"""Functions from noisy values: smoothness and noise are chosen by evidence, everything else is exact.

A function $h$ of one or two inputs lives on a grid and is linear between its points, $h(x_i) = \sum_j S_{ij} h_j$, and
beyond its ends. Its $k$-th derivative is small a priori, $p(h) \propto \exp(-\frac\lambda2 \int |\partial^k h|^2)$, and
$w_i$ values $y_i$ were seen with noise of variance $\sigma^2$. In modes $h = U c$ of the roughness $s$ (see
`quenched.fields.learner.modes`) and with $B = S U$, the posterior is Gaussian,

$$A\, c = B^T w y, \qquad A = B^T w B + \gamma s, \qquad \gamma = \lambda \sigma^2, \qquad
\mathrm{cov}\, c = \sigma^2 A^{-1},$$

and with $n = \sum_i w_i$, $f$ free polynomials and the least misfit $R = (y - Bc)^T w (y - Bc) + \gamma\, c^T s c$
the evidence is

$$\ln p(y) = -\tfrac{n - f}2 \ln 2\pi\sigma^2 - \frac{R}{2\sigma^2} + \tfrac12 \sum_{s_m > 0} \ln \gamma s_m
- \tfrac12 \ln\det A .$$

For each $\gamma$ the best noise is $R/(n - f)$, so that one number is searched. Orders have different free polynomials,
which have no prior; to be compared they are given that of unit information, as wide as one row allows:
$+\tfrac12 \ln\det (A_0/n) - \tfrac f2 \ln 2\pi\sigma^2$, where $A_0$ is the block $B_0^T w B_0$ of the free ones.
[lemm1999, eqs. (301) to (318); evidence: eq. (73)]
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import linalg, sparse

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.learner.modes import Modes, modes_of
from quenched.fields.model.grid import Axis, Grid

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
REFINED = 3
"""How often the normal equations are solved, each time for what is left: to the last digits of the values."""
NOISELESS = 1e-8
"""Share of the variance of the values below which noise is not told from rounding and from what lies between points."""
DECIDED = 1e-9
"""The rows decide free polynomials if each has this share of the weight of the best known one."""
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
        directions: columns $L^{-1} U^T$ whose squares add up to the variance at the points `[modes, points]`.
    """

    grid: Grid
    mean: np.ndarray
    order: int
    strength: float
    noise: float
    log_evidence: float
    directions: np.ndarray

    @property
    def variance(self) -> np.ndarray:
        """Of the function at the points."""
        return np.sum(self.directions**2, axis=0).reshape(self.grid.shape)

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The mean at some rows."""
        return interpolation(self.grid, rows) @ self.mean.ravel()

    def variance_at(self, rows: np.ndarray) -> np.ndarray:
        """The variance of the function at some rows."""
        blocks = [rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK)]
        parts = [np.sum((interpolation(self.grid, block) @ self.directions.T) ** 2, axis=1) for block in blocks]
        return np.concatenate(parts)


def interpolation(grid: Grid, rows: np.ndarray) -> sparse.csr_array:
    """The matrix $S$ `[rows, points]` that is linear between points, and goes on so beyond the ends."""
    n = len(rows)
    at, weights = np.zeros((n, 1), int), np.ones((n, 1))
    for axis, x in zip(grid.axes, rows.T, strict=True):
        z = (x - axis.low) / axis.spacing
        below = np.clip(z, 0, axis.points - 2).astype(int)
        above = z - below
        at = (at[:, :, None] * axis.points + np.stack([below, below + 1], axis=1)[:, None]).reshape(n, -1)
        weights = (weights[:, :, None] * np.stack([1 - above, above], axis=1)[:, None]).reshape(n, -1)
    ends = np.arange(n + 1) * at.shape[1]
    return sparse.csr_array((weights.ravel(), at.ravel(), ends), shape=(n, grid.size))


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
        low, high = float(x.min()), float(x.max())
        checks.inside("X", np.array([low, high, high - low]), -checks.LARGEST, checks.LARGEST)
        if not low < high:
            raise InputError(f"Argument `X` must hold at least two different values in each column, but all n_samples="
                             f"{len(x)} values of column {i} are {low:g}.")  # fmt: skip
        wide = MARGIN * (high - low)
        axes.append(Axis(low - wide, high + wide, points or POINTS[rows.shape[1]]))
    return Grid(given=axes)


@dataclasses.dataclass(frozen=True)
class _Rows:
    """What the values say of the modes of one order: the normal equations, of standardised values.

    Rows of one place are one row, of their mean value; `scatter` is what the values of one place add to the misfit.
    """

    modes: Modes
    matrix: np.ndarray
    at: sparse.csr_array
    weights: np.ndarray
    values: np.ndarray
    scatter: float
    count: float

    def left(self, c: np.ndarray) -> np.ndarray:
        """What a function leaves of the mean values."""
        return self.values - self.at @ (self.modes.fields @ c)

    def pull(self, left: np.ndarray) -> np.ndarray:
        """How it pulls at the modes."""
        return self.modes.fields.T @ (self.at.T @ (self.weights * left))


@dataclasses.dataclass(frozen=True)
class _Trial:
    """One order, smoothness and noise; evidence without and of the prior of the free polynomials."""

    rows: _Rows
    strength: float
    noise: float
    coefficients: np.ndarray
    factor: np.ndarray
    scale: np.ndarray
    evidence: float
    unit: float


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
        order: of the derivative that is small; by default the most probable of `ORDERS`.
        strength: of the prior; by default the most probable.
        noise: its variance; by default the most probable.

    Returns:
        The posterior.

    Raises:
        InputError: if the rows are too few to say anything.
    """
    rows, values, weights = merged(rows, values, weights)
    n = float(weights.sum())
    centre = float(weights @ values / n)
    scale = float(np.sqrt(weights @ (values - centre) ** 2 / n)) or 1.0
    y = (values - centre) / scale
    places, where = np.unique(rows, axis=0, return_inverse=True)
    where = where.ravel()
    w = np.bincount(where, weights)
    mean = np.bincount(where, weights * y) / w
    scatter = float(weights @ (y - mean[where]) ** 2)
    S = interpolation(grid, places)
    weighted = S.T @ (S * w[:, None])
    found = []
    for k in ORDERS if order is None else [order]:
        modes = modes_of(grid.shape, k)
        U = modes.fields
        told = _Rows(modes, U.T @ (weighted @ U), S, w, mean, scatter, n)
        if _decided(told):
            found.append(_best(told, strength and strength * scale**2, noise and noise / scale**2))
    if not found:
        free = modes_of(grid.shape, order or ORDERS[0]).free
        raise InputError(f"Argument `X` must hold more different rows than there are free polynomials, {free}, but the "
                         f"n_samples={len(rows)} rows do not decide them.")  # fmt: skip
    best = max(found, key=lambda trial: trial.evidence + trial.unit)
    U = best.rows.modes.fields
    half = linalg.solve_triangular(best.factor, (U / best.scale).T, lower=True, check_finite=False)
    return Function(
        grid=grid,
        mean=(centre + scale * (U @ best.coefficients)).reshape(grid.shape),
        order=best.rows.modes.order,
        strength=best.strength / scale**2,
        noise=best.noise * scale**2,
        log_evidence=best.evidence + best.unit - n * np.log(scale),
        directions=scale * np.sqrt(best.noise) * half,
    )


def _decided(told: _Rows) -> bool:
    """Whether the rows decide the free polynomials, with one to spare for the noise."""
    f = told.modes.free
    known = np.linalg.eigvalsh(told.matrix[:f, :f])
    return told.count > f and bool(known[0] > DECIDED * known[-1])


def _best(told: _Rows, strength: float | None, noise: float | None) -> _Trial:
    """The most probable smoothness and noise, of those that are not given."""
    if strength is not None and noise is not None:
        return _trial(told, strength * noise, strength, noise)
    n, s = told.count, told.modes.roughness
    top, bottom = np.log(SURE * n / s[told.modes.free]), np.log(UNSURE * n / s[-1])
    tried = np.linspace(top, bottom, int((top - bottom) / (2 * told.modes.order * np.log(RATIO))) + 3)

    def evidence(x: float) -> float:
        return _trial(told, np.exp(x), strength, noise).evidence

    best = int(np.argmax([evidence(x) for x in tried[1:-1]])) + 1
    tried = np.linspace(tried[best - 1], tried[best + 1], FINER)
    return _trial(told, float(np.exp(_summit(tried, np.array([evidence(x) for x in tried])))), strength, noise)


def _summit(x: np.ndarray, y: np.ndarray) -> float:
    """Where the parabola through the highest of equally spaced points and its neighbours is highest.

    A smooth function of the data, unlike the last digits of a search.
    """
    i = int(np.clip(np.argmax(y), 1, len(y) - 2))
    bend = y[i - 1] - 2 * y[i] + y[i + 1]
    shift = 0.5 * (y[i - 1] - y[i + 1]) / bend if bend < 0 else 0.0
    return float(x[i] + np.clip(shift, -1, 1) * (x[1] - x[0]))


def _trial(told: _Rows, gamma: float, strength: float | None, noise: float | None) -> _Trial:
    r"""What the data say of one $\gamma$; noise and strength follow, where they are not given."""
    n, f, prior = told.count, told.modes.free, gamma * told.modes.roughness
    A = told.matrix + np.diag(prior)
    scale = np.sqrt(np.diag(A))  # to a unit diagonal: roughnesses are powers apart
    factor = linalg.cholesky(A / scale / scale[:, None], lower=True, check_finite=False)
    c = np.zeros(len(prior))
    for _ in range(REFINED):
        pull = told.pull(told.left(c)) - prior * c
        c = c + linalg.cho_solve((factor, True), pull / scale, check_finite=False) / scale
    # The misfit from what is left, not as a difference of squares: a function through all values leaves 1e-8 of them.
    R = told.scatter + float(told.weights @ told.left(c) ** 2 + prior @ c**2)
    if noise is None:
        noise = max(R / (n - f), NOISELESS) if strength is None else gamma / strength
    strength = gamma / noise if strength is None else strength
    logdet = 2 * float(np.sum(np.log(np.diag(factor)) + np.log(scale)))
    evidence = -0.5 * ((n - f) * np.log(2 * np.pi * noise) + R / noise - np.sum(np.log(prior[f:])) + logdet)
    _, unit = np.linalg.slogdet(told.matrix[:f, :f] / n)
    unit = 0.5 * (unit - f * np.log(2 * np.pi * noise))
    return _Trial(told, strength, noise, c, factor, scale, float(evidence), float(unit))
