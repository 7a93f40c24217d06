r"""Functions from values with noise of long tails: order, strength and scale of the noise by evidence.

$-\ln p(y|h) = V((y - h)/s)$ and a constant, with the absolute error, Huber's, or the $\epsilon$-insensitive one. The
function is found by Newton's method in the smoothest modes of the prior. In the evidence and in the uncertainty every
row has the mean curvature of the noise, $\langle V'^2 \rangle$: that at its own residual is zero for most rows of an
absolute error. [lemm1999, section 3.7.4; evidence: eq. (73)]
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy import integrate, linalg

from quenched.core.types import InputError
from quenched.fields.learner.solving import solve_in_modes
from quenched.fields.learner.starts import Given
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import Direct
from quenched.fields.model.noise import HuberNoise, InsensitiveNoise, LaplaceNoise, Noise, NoisyData
from quenched.fields.model.operators import ThinPlate
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.practice.bands import Part
from quenched.fields.practice.classification import quantiles
from quenched.fields.practice.regression import DECIDED, ORDERS, Function, merged
from quenched.fields.practice.search import climb

MODES = {1: 60, 2: 120}
"""The smoothest modes that take part, by the number of columns."""
STRENGTHS = 10.0 ** np.arange(-9.0, 4.01, 0.5)
"""Strengths that are tried, of values of unit size."""
SCALES = 2.0 ** np.arange(-10.0, 2.01, 0.5)
"""Scales of the noise that are tried, in units of the spread of the values."""
REWEIGHED, SMALL = 30, 1e-3
"""Rounds of least squares that find a start, and residuals and weights below which rows are all alike."""
ROUNDING = 0.3
"""Share of the scale within which kinks are rounded."""
DEAD = 0.25
"""Share of the scale up to which the insensitive error costs nothing."""
LOSSES = {
    "absolute": lambda s: LaplaceNoise(s, rounding=ROUNDING * s),
    "huber": HuberNoise,
    "epsilon": lambda s: InsensitiveNoise(s, epsilon=DEAD * s, rounding=ROUNDING * s),
}
"""What the noise is, by the name of a loss, at some scale."""


def _reweigh(B: np.ndarray, y: np.ndarray, weights: np.ndarray, s: float, prior: np.ndarray) -> np.ndarray:
    """Coefficients near the minimum: least squares in which rows far off count less, again and again."""
    noise, c = LOSSES["absolute"](s), np.zeros(B.shape[1])
    for _ in range(REWEIGHED):
        r = y - B @ c
        pull = weights * noise.expand(r)[1] / np.where(np.abs(r) > SMALL * s, r, SMALL * s)
        H = B.T @ (np.maximum(pull, SMALL * weights / s**2)[:, None] * B) + np.diag(prior)
        c = linalg.solve(H, B.T @ (np.maximum(pull, SMALL * weights / s**2) * y), assume_a="pos")
    return c


@functools.cache
def _moments(loss: str) -> tuple[float, float]:
    """The variance of the noise and the mean of its squared slope, at scale 1."""
    noise: Noise = LOSSES[loss](1.0)
    r = np.linspace(-60, 60, 240001)
    energy, slope, _ = noise.expand(r)
    p = np.exp(-energy)
    return float(integrate.simpson(p * r**2, x=r)), float(integrate.simpson(p * slope**2, x=r))


def noise(loss: str, count: int, random: np.random.RandomState) -> np.ndarray:
    """Noise under which a loss is minus the log-likelihood, of unit variance."""
    r = np.linspace(-60, 60, 240001)
    share = np.cumsum(np.exp(-LOSSES[loss](1.0).expand(r)[0]))
    return np.interp(random.uniform(size=count) * share[-1], share, r) / np.sqrt(_moments(loss)[0])


def learn(
    grid: Grid,
    rows: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    loss: str,
    *,
    order: int | None = None,
    strength: float | None = None,
    noise: float | None = None,
) -> Function:
    """A function of which values were seen with noise of long tails.

    Args:
        grid: where, as `grid_for` lays it.
        rows: inputs `[n, d]`.
        values: $y$ `[n]`.
        weights: how many equal rows each stands for, all positive.
        loss: a name in `LOSSES`.
        order: of the derivative that is small; by default the most probable.
        strength: of the prior; by default the most probable.
        noise: its variance; by default the most probable.

    Raises:
        InputError: if the rows are too few to say anything.
    """
    rows, values, weights = merged(rows, values, weights)
    (centre,) = quantiles(values, weights, (0.5,))
    size = quantiles(np.abs(values - centre), weights, (0.5,))[0] or float(np.max(np.abs(values - centre))) or 1.0
    y, (unit, bend) = (values - centre) / size, _moments(loss)
    data: Any = NoisyData(points=rows, targets=y, noise=LOSSES[loss](1.0), weights=weights).prepared(grid)
    S = data.design(grid.shape)
    scale = None if noise is None else float(np.sqrt(noise / unit) / size)
    best: tuple[float, Any] | None = None
    for k in ORDERS if order is None else [order]:
        modes = ThinPlate(grid, k).modes(MODES[len(grid.axes)])
        free = modes.values.ravel() == 0
        B = S @ modes.given
        told, f = B.T @ (weights[:, None] * B), int(free.sum())
        known = np.linalg.eigvalsh(told[:f, :f])
        if not (weights.sum() > f and known[0] > DECIDED * known[-1]):
            continue
        tried: dict[tuple[float, float], tuple[float, Any]] = {}

        def look(lam: float, s: float, k: int = k, modes: Any = modes, told: Any = told, tried: Any = tried) -> float:
            """The evidence at a strength and a scale."""
            if (lam, s) not in tried:
                seen = NoisyData(data.points, data.targets, LOSSES[loss](s), weights, data.places, data.shares)
                problem = Problem(seen, Direct(grid), Gaussian(lam * ThinPlate(grid, k)))
                free, prior = modes.values.ravel() == 0, lam * grid.cell * modes.values.ravel()
                start = Given(modes.field(_reweigh(S @ modes.given, y, weights, s, prior)))
                fit = solve_in_modes(problem, modes.times(lam), start, max_steps=100)
                data_part = bend / s**2 * told
                lower = linalg.cholesky(data_part + np.diag(prior), lower=True)
                _, sure = np.linalg.slogdet(data_part[np.ix_(free, free)] / weights.sum())
                determinants = 0.5 * (np.sum(np.log(prior[~free])) + sure) - np.sum(np.log(np.diag(lower)))
                tried[lam, s] = float(determinants - fit.energy), (fit, lower, prior)
            return tried[lam, s][0]

        lam = 1e-2 if strength is None else strength * size**2
        s = 0.5 if scale is None else scale
        for _ in range(2):
            s = climb(SCALES, s, lambda v, a=lam: look(a, v)) if scale is None else s
            lam = climb(STRENGTHS, lam, lambda v, b=s: look(v, b)) if strength is None else lam
        found = look(lam, s), (k, lam, s, modes, tried[lam, s][1])
        best = found if best is None or found[0] > best[0] else best
    if best is None:
        raise InputError("Argument `X` must hold more different rows than there are free polynomials, but the "
                         f"n_samples={len(rows)} rows do not decide them.")  # fmt: skip
    evidence, (k, lam, s, modes, (fit, lower, prior)) = best
    c = modes.coefficients(fit.field)
    part = Part.of(fit.problem, c, (lower, np.ones(len(c))), prior, modes.given)
    return Function(
        grid=grid,
        mean=centre + size * fit.field,
        order=k,
        strength=lam / size**2,
        noise=unit * (s * size) ** 2,
        log_evidence=evidence - float(weights.sum()) * np.log(size),
        roots=size * linalg.solve_triangular(lower, modes.given.T, lower=True),
        part=(part, centre, size),
    )
