r"""Functions from values with noise of long tails: orders, strengths and scales of the noise weighed by evidence.

$-\ln p(y|h) = V((y - h)/s)$ and a constant, with the absolute error, Huber's, or the $\epsilon$-insensitive one. The
function is found by Newton's method in the smoothest modes of the prior. In the evidence and in the uncertainty every
row has the mean curvature of the noise, $\langle V'^2 \rangle$: that at its own residual is zero for most rows of an
absolute error. [lemm1999, section 3.7.4; evidence: eq. (73)]
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from scipy import integrate, linalg, special

from quenched.core.types import InputError, Outcome
from quenched.fields.learner.fitted import Fitted
from quenched.fields.learner.solving import solve_in_modes
from quenched.fields.learner.starts import Given
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import Direct
from quenched.fields.model.modes import Modes
from quenched.fields.model.noise import HuberNoise, InsensitiveNoise, LaplaceNoise, Noise, NoisyData
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import ThinPlate
from quenched.fields.practice.bands import part_of_fit, thin
from quenched.fields.practice.classification import quantiles
from quenched.fields.practice.regression import DECIDED, ORDERS, Function, Piece, merged, mix, of_polynomials
from quenched.fields.practice.search import climb, spread

MODES = {1: 60, 2: 120}
"""The smoothest modes that take part, by the number of columns."""
STRENGTHS = 10.0 ** np.arange(-9.0, 4.01, 0.5)
"""Strengths that are tried, of values of unit size."""
SCALES, COARSE = 2.0 ** np.arange(-10.0, 2.01, 0.125), 4
"""Scales of the noise that are tried, in units of the spread of the values; at first every so many-th. Where few rows
leave the scale open, those up to as far apart as it is known are enough: the evidence is smooth."""
BEGIN = 1e-2, 0.5
"""Strength and scale at which the search begins."""
LOST = 4.0
"""Strengths and scales are weighed up to where the logarithm of the evidence is so much below its best, and those
beside them."""
VALUES = 1.4826
"""Deviation of the values in units of their median distance from the median, if they are Gaussian: that of free
polynomials beforehand."""
STEPS = 100
"""Of Newton's method, at most."""
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


def _scales(n: float) -> np.ndarray:
    """Those of `SCALES` no further apart than the deviation, $n^{-1/2}$, to which n rows tell their logarithm."""
    apart = n**-0.5 / np.log(SCALES[1] / SCALES[0])
    return SCALES[:: int(np.clip(2.0 ** np.floor(np.log2(apart)), 1, COARSE))]


def noise(loss: str, count: int, random: np.random.RandomState) -> np.ndarray:
    """Noise under which a loss is minus the log-likelihood, of unit variance."""
    r = np.linspace(-60, 60, 240001)
    share = np.cumsum(np.exp(-LOSSES[loss](1.0).expand(r)[0]))
    return np.interp(random.uniform(size=count) * share[-1], share, r) / np.sqrt(_moments(loss)[0])


@dataclasses.dataclass(frozen=True, eq=False)
class Search:
    """One order: values in units of their own, and what was tried of it."""

    grid: Grid
    data: Any
    loss: str
    order: int
    modes: Modes
    tried: dict[tuple[float, float], tuple[float, Fitted]] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def design(self) -> np.ndarray:
        """Modes at the rows."""
        return self.data.design(self.grid.shape) @ self.modes.given

    @functools.cached_property
    def seen(self) -> np.ndarray:
        """Products of modes, summed over the rows."""
        return self.design.T @ (self.data.weights[:, None] * self.design)

    @property
    def free(self) -> np.ndarray:
        """Which modes are free polynomials."""
        return np.ravel(self.modes.values) == 0

    @property
    def decided(self) -> bool:
        """Whether rows decide the free polynomials."""
        free = self.free
        known = np.linalg.eigvalsh(self.seen[np.ix_(free, free)])
        return bool(self.data.weights.sum() > free.sum() and known[0] > DECIDED * known[-1])

    def problem(self, lam: float, s: float) -> Problem:
        """At a strength and a scale."""
        noise = LOSSES[self.loss](s)
        seen = NoisyData(
            self.data.points, self.data.targets, noise, self.data.weights, self.data.places, self.data.shares
        )
        return Problem(seen, Direct(self.grid), Gaussian(lam * ThinPlate(self.grid, self.order)))

    def look(self, lam: float, s: float) -> float:
        """The logarithm of the evidence at a strength and a scale."""
        if (lam, s) not in self.tried:
            prior, free = lam * self.grid.cell * self.modes.values.ravel(), self.free
            fit = self._solve(lam, s, prior)
            told = _moments(self.loss)[1] / s**2 * self.seen
            factor = linalg.cholesky(told + np.diag(prior), lower=True), np.ones(len(prior))
            unit = self.seen[np.ix_(free, free)] / self.data.weights.sum() / VALUES**2
            _, measure = np.linalg.slogdet(2 * np.pi * unit)
            determinants = 0.5 * (np.sum(np.log(prior[~free])) + measure) - np.sum(np.log(np.diag(factor[0])))
            known = of_polynomials(unit, self.modes.coefficients(fit.field), free, factor, np.ones(1))[0]
            self.tried[lam, s] = float(determinants + known - fit.energy), dataclasses.replace(fit, factor=factor)
        return self.tried[lam, s][0]

    def _solve(self, lam: float, s: float, prior: np.ndarray) -> Fitted:
        """The function of least energy: from that of the last fit, and from least squares if Newton's method stalls."""
        problem, modes, fit = self.problem(lam, s), self.modes.times(lam), None
        if self.tried:  # the energy is convex: the start decides nothing but the time
            last = next(reversed(self.tried.values()))[1].field
            fit = solve_in_modes(problem, modes, Given(last), max_steps=STEPS)
            if fit.outcome is Outcome.converged:
                return fit
        start = self.modes.field(_reweigh(self.design, self.data.targets, self.data.weights, s, prior))
        other = solve_in_modes(problem, modes, Given(start), max_steps=STEPS)
        return other if fit is None or other.energy < fit.energy else fit

    def weigh(self, strengths: np.ndarray, scales: np.ndarray) -> dict[tuple[float, float], float]:
        """What is near the best of some strengths and scales, from one to the next, with logarithms of the evidence."""
        lam, s = (float(values[np.argmin(np.abs(np.log(values / begin)))])
                  for values, begin in ((strengths, BEGIN[0]), (scales, BEGIN[1])))  # fmt: skip
        for some in (scales[::COARSE], scales):
            s = climb(some, s, lambda v, a=lam: self.look(a, v))
            lam = climb(strengths, lam, lambda v, b=s: self.look(v, b))
        return spread(strengths, scales, (lam, s), self.look, LOST)


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
        order: of the derivative that is small; by default all of `ORDERS`.
        strength: of the prior; by default all.
        noise: its variance; by default all.

    Raises:
        InputError: if the rows are too few to say anything.
    """
    rows, values, weights = merged(rows, values, weights)
    (centre,) = quantiles(values, weights, (0.5,))
    size = quantiles(np.abs(values - centre), weights, (0.5,))[0] or float(np.max(np.abs(values - centre))) or 1.0
    y, unit = (values - centre) / size, _moments(loss)[0]
    data: Any = NoisyData(points=rows, targets=y, noise=LOSSES[loss](1.0), weights=weights).prepared(grid)
    every = [Search(grid, data, loss, k, ThinPlate(grid, k).modes(MODES[len(grid.axes)]))
             for k in (ORDERS if order is None else [order])]  # fmt: skip
    searches = [search for search in every if search.decided]
    if not searches:
        raise InputError("Argument `X` must hold more different rows than there are free polynomials, but the "
                         f"n_samples={len(rows)} rows do not decide them.")  # fmt: skip
    strengths = STRENGTHS if strength is None else np.array([strength * size**2])
    scales = _scales(float(weights.sum())) if noise is None else np.array([np.sqrt(noise / unit) / size])
    weighed = [search.weigh(strengths, scales) for search in searches]
    orders = []
    for search, found in zip(searches, weighed, strict=True):
        fits = {pair: search.tried[pair][1] for pair in found}
        orders.append((search.modes, [
            Piece(log, search.modes.coefficients(fits[pair].field), fits[pair], 1.0, unit * pair[1] ** 2)
            for pair, log in found.items()
        ]))  # fmt: skip
    evidence, mean, roots, mean_noise = mix(orders)
    best = int(np.argmax(evidence))
    lam = max(weighed[best], key=weighed[best].__getitem__)[0]
    flat = [(piece.log, piece.fit) for _, pieces in orders for piece in pieces]
    shares = thin(special.softmax([log for log, _ in flat]))
    parts = [part_of_fit(flat[i][1], flat[i][1].factor, share) for i, share in shares.items()]
    before = np.log(len(every) * len(strengths) * len(scales))
    return Function(
        grid=grid,
        mean=centre + size * mean.reshape(grid.shape),
        order=searches[best].order,
        strength=lam / size**2,
        noise=mean_noise * size**2,
        log_evidence=float(np.logaddexp.reduce(evidence)) - before - float(weights.sum()) * np.log(size),
        roots=size * roots,
        parts=(parts, centre, size),
        outcome=max(flat[i][1].outcome for i in shares),
    )
