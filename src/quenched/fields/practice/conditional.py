r"""Conditional densities $p(y|x)$ from data alone: how they vary with $x$ and with $y$ is chosen by evidence.

First the mean and the width: $y = h(x) + e^{w(x)} r$, with $h$ and $w$ from `quenched.fields.practice.regression`. The
mean, of posterior variance $v$ and noise $\sigma^2$, has seen the rows: what it leaves of them is too small by
$\sqrt{1 - v(x_i)/\sigma^2}$, and what it misses of new ones is larger by $\sqrt{1 + v(x)/\sigma^2}$; both are put
right. The width is that of the logarithms of the sizes of what is left, whose variance is $\pi^2/8$ for Gaussians; a
constant one is tried, too, and the more probable of both is kept.

Then the density of what remains, $p(r|x) = e^{g(x, r)} / \int dr\, e^{g}$, on a grid of $x$ and $r$. A priori $g$ is
smooth along both,
$$p(g) \propto \exp\Bigl(-\tfrac{\lambda_x}2 \int |\partial_x^k g|^2
- \tfrac{\lambda_y}2 \int |\partial_r^3 g|^2\Bigr),$$
so that Gaussians are free, which for $k = 1$ do not hang on $x$; for $k = 2$ their natural parameters may be linear.

In products of the modes of both axes, $g = \sum_{ab} c_{ab} u_a(x) v_b(r)$ without the constant $v_0$, the prior is
diagonal, and with $N_{ij}$ rows at the points, $n_i = \sum_j N_{ij}$ and the measure $\mu_j$ the energy
$$E(c) = -\sum_{ij} N_{ij} g_{ij} + \sum_i n_i \ln \sum_j \mu_j e^{g_{ij}}
+ \tfrac12 \sum_{ab} (\lambda_x s_a + \lambda_y t_b)\, c_{ab}^2$$
is convex. Strengths and orders are weighed by their evidence in Laplace's approximation,
$\ln p(r|x) = -E + \tfrac12 \ln\det' K - \tfrac12 \ln\det H + \tfrac12 \ln\det (H_0/n)$, where free polynomials have the
prior of unit information (see `quenched.fields.practice.density`); the predictive density is the mean over all.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy import linalg

from quenched.core.types import Outcome
from quenched.fields.learner.modes import Modes, line_modes
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.practice.density_mesh import MARGIN, TAIL, Line, Mesh
from quenched.fields.practice.regression import Function, interpolation, merged
from quenched.fields.practice.regression import learn as regress
from quenched.fields.theory.decisions import SquaredLoss

POINTS = (24, 160)
"""Along x and along y."""
MODES = (12, 32)
"""The smoothest of each axis, of which log-densities are made."""
ORDERS = (1, 2)
"""Along x."""
ORDER = 3
"""Along y: Gaussians are free."""
SURE = 100.0
"""At the first strengths the prior is so many times as sure as the data of the smoothest mode that is not free."""
ROUGH = 0.1
"""At the last strengths the roughest mode is so large a priori, as an inverse variance."""
STEP = 16.0
"""From one strength to the next."""
LOST = 7.0
"""A path ends when the logarithm of the evidence is so much below its best."""
STIFF = 300.0
"""Modes on which the prior is this many times as sure as the data are left out: they stay zero."""
CLOSE, ROUNDING, RIDGE, STEPS = 1e-7, 1e-14, 1e-11, 100
"""Steps of Newton's method that lower the energy by less than the first are taken whole; noise of the energy, for each
row; what is added to the scaled Hessian, singular when all rows are at one point; and steps at most."""
SHARP, FALLS = 1e-18, 4.0
"""Steps end with one that lowers the energy by less than the first, in nats: the next would be its square. Or where the
gain does not fall by the second from step to step: only rounding is left."""
WEAK = 1e-9
"""The inverse variance of free modes: where all rows are at one point, their density would become ever narrower."""
CONSTANT, WORTH = 1e9, 2.0
"""A strength of order 1 that leaves only constants; and the logarithm of the evidence that a width which is none must
gain, because it was itself learned from the rows."""
NARROW = 1e-6
"""The least width of a density, as a share of the range of y."""
SMALL = 1e-4
"""What is added to squares before their logarithm is taken, as a share of their mean."""
FAR = 1e-6
"""The least share of a row that the mean leaves; below it there is only rounding."""


@dataclasses.dataclass(frozen=True)
class Conditional:
    r"""The predictive density $p(y|x)$.

    Attributes:
        centre: the mean $h(x)$.
        width: $w(x)$.
        mesh: points of $x$ and of the remainder $r$.
        density: $p(r|x)$ at the points.
        order: of the derivative along $x$ that is small, the most probable.
        strength: $\lambda_x$ and $\lambda_y$ of the most probable, in coordinates in which the grid has unit lengths.
        log_evidence: logarithm of the probability of what the mean leaves, of all orders and strengths together.
        path: what was tried: order, strengths, logarithm of the evidence, share of the posterior.
        outcome: whether all minima were found.
    """

    centre: Function
    width: Function
    mesh: Mesh
    density: np.ndarray
    order: int
    strength: tuple[float, float]
    log_evidence: float
    path: np.ndarray
    outcome: Outcome

    @property
    def lattice(self) -> Grid:
        """The points of x and r."""
        x, r = (Axis(line.low, line.high, line.points) for line in self.mesh.lines)
        return Grid(given=[x], over=[r])

    @property
    def grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Points along x, and along y from the least to the largest that the mesh holds."""
        x, r = (line.coordinates for line in self.mesh.lines)
        h, s = self.centre.at(x[:, None]), self._spread(x)
        return x, np.linspace(np.min(h + s * r[0]), np.max(h + s * r[-1]), len(r))

    def log_density(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The logarithm of the density of each y given its x."""
        s = self._spread(x)
        rows = np.stack([self._near(x), (y - self.centre.at(x[:, None])) / s], axis=1)
        with np.errstate(divide="ignore"):  # less than the least number
            return self.mesh.log_values(np.log(self.density), rows) - np.log(s)

    def mean(self, x: np.ndarray) -> np.ndarray:
        """The best answer under squared loss."""
        line, lattice = self.mesh.lines[1], self.lattice
        mass = self.density * line.measure * line.length
        r = self._between(x) @ SquaredLoss().action(lattice, mass / lattice.spacing)
        return self.centre.at(x[:, None]) + self._spread(x) * r

    def quantiles(self, x: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """The y below which a share of the density lies, for each x and level `[n, levels]`."""
        r = quantiles(self.mesh.lines[1], self._between(x) @ self.density, levels)
        return self.centre.at(x[:, None])[:, None] + self._spread(x)[:, None] * r

    def _spread(self, x: np.ndarray) -> np.ndarray:
        r"""$e^{w(x)} \sqrt{1 + v(x)/\sigma^2}$."""
        S = interpolation(self.centre.grid, x[:, None])
        v = np.maximum(S @ self.centre.variance, 0.0)  # between points from above
        return np.exp(self.width.at(self._near(x)[:, None])) * np.sqrt(1 + v / self.centre.noise)

    def _near(self, x: np.ndarray) -> np.ndarray:
        """The nearest x in the range of the data."""
        return np.clip(x, self.mesh.lines[0].low, self.mesh.lines[0].high)

    def _between(self, x: np.ndarray) -> Any:
        """The matrix that takes what is known at the points of x to any x."""
        return interpolation(Grid(given=self.lattice.given), self._near(x)[:, None])


def quantiles(line: Line, density: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Where the integrals of densities `[n, points]`, linear between points and with tails, reach some levels."""
    h, (low, high) = line.length / (line.points - 1), line.tails
    inside = np.cumsum((density[:, 1:] + density[:, :-1]) * h / 2, axis=1)
    below = low * density[:, :1] + np.concatenate([np.zeros((len(density), 1)), inside], axis=1)
    found = np.empty((len(density), len(levels)))
    for k, level in enumerate(levels):
        j = np.clip(np.sum(below <= level, axis=1) - 1, 0, line.points - 2)[:, None]
        F, P, after = (np.take_along_axis(a, i, axis=1)[:, 0] for a, i in ((below, j), (density, j), (density, j + 1)))
        rest = np.maximum(level - F, 0.0)
        root = np.sqrt(np.maximum(P**2 + 2 * rest * (after - P) / h, 0.0))
        step = np.divide(2 * rest, P + root, out=np.zeros_like(rest), where=P + root > 0)
        found[:, k] = line.low + j[:, 0] * h + np.minimum(step, h)
        with np.errstate(
            divide="ignore", invalid="ignore", over="ignore"
        ):  # beyond the ends, where there is no tail to speak of
            under = line.low + low * np.log(level / below[:, 0])
            over = line.high - high * np.log((1 - level) / (1 - below[:, -1]))
        found[:, k] = np.where(level < below[:, 0], under, np.where(level > below[:, -1], over, found[:, k]))
    return found


def mesh_of(x: np.ndarray, r: np.ndarray, weights: np.ndarray, points: tuple[int, int]) -> Mesh:
    """A mesh for inputs and remainders."""
    low, high = min(float(r.min()), -1.0), max(float(r.max()), 1.0)
    wide = (high - low) * (MARGIN + 2 / np.sqrt(weights.sum()))
    tail = TAIL * (high - low + 2 * wide)
    across = Line(low - wide, high + wide, points[1], (tail, tail))
    return Mesh((Line(float(x.min()), float(x.max()), points[0], (0.0, 0.0)), across))


def learn(
    centre: Function,
    x: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    *,
    points: tuple[int, int] = POINTS,
    order: int | None = None,
    strength: tuple[float, float] | None = None,
) -> Conditional:
    """The density of values given inputs, about a mean.

    Args:
        centre: the mean, learned from the same rows.
        x: inputs `[n]`, not all the same.
        y: values `[n]`.
        weights: how many equal rows each stands for, all positive.
        points: of the grid, along x and along y.
        order: of the derivative along x that is small; by default all of `ORDERS`.
        strength: along x and along y; by default all.

    Returns:
        The predictive density.
    """
    rows, y, weights = merged(x[:, None], y, weights)
    x = rows[:, 0]
    left = (y - centre.at(rows)) / np.sqrt(np.maximum(1 - centre.variance_at(rows) / centre.noise, FAR))
    least = NARROW * (float(np.ptp(y)) or 1.0)
    sizes = np.sqrt(left**2 + SMALL * (weights @ left**2) / weights.sum() + least**2)
    varied = regress(centre.grid, rows, np.log(sizes), weights, noise=np.pi**2 / 8)
    same = regress(centre.grid, rows, np.log(sizes), weights, noise=np.pi**2 / 8, order=1, strength=CONSTANT)
    one, two = (_about(centre, width, x, left, weights, points, order, strength) for width in (varied, same))
    return one if one.log_evidence > two.log_evidence + WORTH else two


def _about(
    centre: Function,
    width: Function,
    x: np.ndarray,
    left: np.ndarray,
    weights: np.ndarray,
    points: tuple[int, int],
    order: int | None,
    strength: tuple[float, float] | None,
) -> Conditional:
    """The density about a mean, in units of a width."""
    w = width.at(x[:, None])
    r = left / np.exp(w)
    mesh = mesh_of(x, r, weights, points)
    counts = mesh.counts(np.stack([x, r], axis=1), weights).reshape(mesh.shape)
    across = line_modes(points[1], ORDER)
    orders = ORDERS if order is None else [order]
    trials: list[_Trial] = []
    for k in orders:
        trials += _paths(_Question(counts, mesh.lines[1].measure, line_modes(points[0], k), across), strength)
    logs = np.array([trial.evidence + np.log(trial.prior / len(orders)) for trial in trials])
    evidence = np.logaddexp.reduce(logs)
    shares, best = np.exp(logs - evidence), trials[int(np.argmax(logs))]
    shares = shares / shares.sum()  # to the last digit, so that densities are normalised to it
    path = [(t.order, *t.strength, t.evidence, share) for t, share in zip(trials, shares, strict=True)]
    names = ("strength_x", "strength_y", "log_evidence", "share")
    length = mesh.lines[1].length
    return Conditional(
        centre=centre,
        width=width,
        mesh=mesh,
        density=np.tensordot(shares, np.stack([trial.density for trial in trials]), axes=1) / length,
        order=best.order,
        strength=best.strength,
        log_evidence=float(evidence - weights @ (np.log(length) + w)),
        path=np.array(path, dtype=[("order", int), *((name, float) for name in names)]),
        outcome=Outcome.converged if all(trial.converged for trial in trials) else Outcome.stalled,
    )


@dataclasses.dataclass(frozen=True)
class _Question:
    """Rows at the points, the measure along y, and the modes of both axes."""

    counts: np.ndarray
    measure: np.ndarray
    along: Modes
    across: Modes

    @property
    def roughness(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the modes of both axes; the constant along y is none."""
        return self.along.roughness[: MODES[0]], self.across.roughness[1 : MODES[1] + 1]

    @property
    def free(self) -> tuple[int, int]:
        """How many modes of each axis are free."""
        return self.along.free, self.across.free - 1


@dataclasses.dataclass(frozen=True)
class _Trial:
    """One order and pair of strengths, how probable they are beforehand, and what the data say."""

    order: int
    strength: tuple[float, float]
    prior: float
    coefficients: np.ndarray
    density: np.ndarray
    evidence: float
    converged: bool


def _paths(question: _Question, strength: tuple[float, float] | None) -> list[_Trial]:
    """Minima at falling strengths along y, for falling strengths along x, as long as the evidence is not lost."""
    if strength is not None:
        return [_minimum(question, strength, np.zeros((0, 0)), 1.0)]
    n = question.counts.sum()
    xs, ys = (_strengths(s, free, n) for s, free in zip(question.roughness, question.free, strict=True))
    start, trials, most = np.zeros((0, 0)), [], -np.inf
    for x in xs:
        row: list[_Trial] = []
        for y in ys:
            row.append(_minimum(question, (x, y), row[-1].coefficients if row else start, 1 / len(xs) / len(ys)))
            if row[-1].evidence < max(trial.evidence for trial in row) - LOST:
                break
        start, trials = row[0].coefficients, trials + row
        best = max(trial.evidence for trial in row)
        if best < most - LOST:
            break
        most = max(most, best)
    return trials


def _strengths(roughness: np.ndarray, free: int, n: float) -> list[float]:
    """Falling strengths, from one at which only free modes are left."""
    top, bottom = SURE * n / roughness[free], ROUGH / roughness[-1]
    return np.geomspace(top, bottom, int(np.log(top / bottom) / np.log(STEP)) + 2).tolist()


@dataclasses.dataclass(frozen=True)
class _Energy:
    r"""The energy at one pair of strengths: rows $N$, measure $\mu$, modes $u$ and $v$, precisions $K$."""

    N: np.ndarray
    mu: np.ndarray
    u: np.ndarray
    v: np.ndarray
    K: np.ndarray

    def at(self, c: np.ndarray) -> tuple[float, np.ndarray]:
        """Energy, and the probability of each point given its x."""
        g = self.u @ c @ self.v.T
        top = g.max(axis=1, keepdims=True)
        p = self.mu * np.exp(g - top)
        Z = p.sum(axis=1, keepdims=True)
        return float(np.sum(self.N * (top + np.log(Z) - g)) + 0.5 * np.sum(self.K * c**2)), p / Z

    def slope(self, c: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Its derivatives, where the probabilities are these."""
        return self.u.T @ (self.N.sum(axis=1, keepdims=True) * p - self.N) @ self.v + self.K * c

    def curvature(self, p: np.ndarray) -> np.ndarray:
        r"""Second derivatives without the prior, $\sum_i n_i\, u_a u_{a'}\, \mathrm{cov}_i(v_b, v_{b'})$."""
        u, v, mean = self.u, self.v, p @ self.v
        cov = (p[:, None] * v.T) @ v - mean[:, :, None] * mean[:, None]
        A, B = self.K.shape
        outer = (self.N.sum(axis=1)[:, None, None] * u[:, :, None] * u[:, None]).reshape(len(u), -1)
        H = outer.T @ cov.reshape(len(u), -1)
        return H.reshape(A, A, B, B).transpose(0, 2, 1, 3).reshape(A * B, A * B)


def _energy(question: _Question, strength: tuple[float, float]) -> _Energy:
    """With the modes on which the prior leaves something open."""
    s, t = question.roughness
    K = np.maximum(strength[0] * s[:, None] + strength[1] * t, WEAK)
    a, b = (int(np.sum(edge < STIFF * question.counts.sum())) for edge in (K[:, 0], K[0]))
    u, v = question.along.fields[:, :a], question.across.fields[:, 1 : b + 1]
    return _Energy(question.counts, question.measure, u, v, K[:a, :b])


def _minimum(question: _Question, strength: tuple[float, float], start: np.ndarray, prior: float) -> _Trial:
    """The log-density of least energy, by Newton's method with a line search, and its evidence."""
    energy, n = _energy(question, strength), question.counts.sum()
    c = np.zeros(energy.K.shape)
    had = tuple(slice(0, min(old, new)) for old, new in zip(start.shape, c.shape, strict=True))
    c[had] = start[had]
    E, p = energy.at(c)
    taken, last = 0, np.inf
    while True:
        slope, data = energy.slope(c, p), energy.curvature(p)
        factor, scale = _factor(data + np.diag(energy.K.ravel()))
        step = -linalg.cho_solve((factor, True), slope.ravel() / scale, check_finite=False) / scale
        gain, step, t = float(-slope.ravel() @ step), step.reshape(c.shape), 1.0
        while gain > CLOSE and energy.at(c + t * step)[0] > E - 1e-4 * t * gain + ROUNDING * n:
            t /= 2
        if gain < CLOSE and not gain < last / FALLS:
            break
        c, last = c + t * step, gain
        E, p = energy.at(c)
        taken += 1
        if gain < SHARP or taken == STEPS:
            break
    K, free = energy.K.ravel(), np.zeros(c.shape, bool)
    free[: question.free[0], : question.free[1]] = True
    free = free.ravel()
    _, unit = np.linalg.slogdet(data[np.ix_(free, free)] / n + RIDGE * np.eye(int(free.sum())))
    logdet = 2 * float(np.sum(np.log(np.diag(factor)) + np.log(scale)))
    evidence = -E + 0.5 * (float(np.sum(np.log(K[~free]))) - logdet + unit)
    return _Trial(question.along.order, strength, prior, c, p / energy.mu, float(evidence), bool(gain < CLOSE))


def _factor(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cholesky factor of a Hessian with unit diagonal, and the scale taken out."""
    scale = np.sqrt(np.diag(H))
    H = H / scale / scale[:, None]
    H[np.diag_indices_from(H)] += RIDGE
    return linalg.cholesky(H, lower=True, check_finite=False), scale
