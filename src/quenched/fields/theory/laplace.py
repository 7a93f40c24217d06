r"""Laplace's approximation: the posterior as a Gaussian about its maximum. [lemm1999, eqs. (66), (70), (73)]

At a field of least energy $E^*$ with second derivatives $H$ (by the components of the field, along the constraint) the
posterior is about $\mathcal N(\phi^*, H^\#)$ and the evidence of the data

$$\ln p(D) \approx -E^* + \tfrac12 \ln \det{}' v K - \tfrac12 \ln \det{}' H + \tfrac12 (d_H - d_K) \ln 2\pi ,$$

where $E$ counts from the least energy of the prior alone, $v$ is the volume of a cell, $\det'$ leaves null directions
out, and $d_K, d_H$ count what remains. The directions
that the normalisation takes away, one for each $x$ (shifts of a log-density), are null directions of $H$: they are no
freedom of the density. It is exact for regression. A prior that is flat in directions the data decide gives a relative
evidence: comparable between strengths, not between priors with different null spaces (`proper` says which).

To compare priors with different null spaces, free directions can be given the prior of unit information: a Gaussian as
wide as one of $n$ rows allows, whose precision is the block $H_0$ of the data among them divided by $n$,
$$\ln p(D) \approx -E^* + \tfrac12 \ln \det{}' v K - \tfrac12 \ln \det{}' H + \tfrac12 \ln \det (H_0/n) .$$
For an infinite strength this is the Bayesian information criterion of an exponential family: of the Gaussian, if the
third derivative of a log-density is small.

A prior that pulls at shifts of a log-density (one with a `Mass`) is a prior of all fields, of which only the normalised
ones are log-densities: then the determinant of $K$ is replaced by the integral of the prior over these alone, Laplace's
as well. (`Logits` is about all fields, and needs no such thing.)

Under alternatives (`a | b`) the posterior has several maxima, and this is the share of one of them: for $K$ stands what
normalises the mixture, and $H$ has the part $-\mathrm{cov}_a$ of its responsibilities.

A field that is a sum of modes has its Gaussian in their coefficients, from the factor of the last step of Newton's
method: nothing is computed again.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg
from scipy.special import ndtri

from quenched.core import checks
from quenched.core.types import QUICK, Array, InputError, double
from quenched.fields.model.either import Mixture, log_sum, resolve, uncertain
from quenched.fields.model.grid import Grid
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import Density, Direct
from quenched.fields.model.modes import Modes, PlateModes
from quenched.fields.model.problem import Problem

FLAT = 1e-9
"""The energy is flat in a direction if its curvature is below this share of the largest."""
STEPS, SMALL = 100, 1e-12
"""Newton steps to the mode of a prior, which end when a step would lower its energy by less."""
RIDGE = 1e-11
"""What is added to the unit diagonal of the scaled block of free directions, singular with all rows at one point."""


@dataclasses.dataclass(frozen=True, eq=False)
class Laplace:
    """A Gaussian posterior.

    Attributes:
        field: its mean, of the shape of the grid.
        log_evidence: logarithm of the density of the data, see the module.
        proper: whether the prior is a density in all directions that the data decide.
        problem: what was asked.
        factor: the covariance of coefficients is $D^{-1} L^{-T} L^{-1} D^{-1}$ of the lower triangle $L$ and the scale
            $D$ in it.
        modes: whose coefficients; None for directions on the points.
        directions: of the field on the points, whose coefficients these are, as columns.
    """

    field: np.ndarray
    log_evidence: float
    proper: bool
    problem: Problem
    factor: tuple[np.ndarray, np.ndarray]
    modes: Modes | None
    directions: np.ndarray | None = None

    @functools.cached_property
    def roots(self) -> np.ndarray:
        """Rows whose products summed up are the covariance of flattened fields `[m, points]`."""
        lower, scale = self.factor
        U = self.directions if self.modes is None else self.modes.matrix
        return linalg.solve_triangular(lower, (U / scale).T, lower=True, check_finite=False)  # pyright: ignore[reportOptionalOperand]

    @property
    def covariance(self) -> np.ndarray:
        """Of flattened fields `[points, points]`; nothing in null directions."""
        return self.roots.T @ self.roots

    @property
    def variance(self) -> np.ndarray:
        """Of the field at each point."""
        return np.sum(self.roots**2, axis=0).reshape(self.field.shape)

    def log_density_variance(self) -> np.ndarray:
        r"""Variance of $\ln P$ at each point of the grid."""
        if isinstance(self.modes, PlateModes) and self.problem.link.exponential:
            return self._plate_variance(self.modes)
        if self.problem.link.exponential:  # of the field less the logarithm of its integral
            grid, roots = self.problem.grid, self.roots.reshape(-1, *self.problem.grid.blocks)
            p = grid.weights * np.exp(self.field - self.problem.log_integral(self.field))
            centred = roots - np.sum(p.reshape(grid.blocks) * roots, axis=-1, keepdims=True)
            return np.sum(centred**2, axis=0).reshape(self.field.shape)
        J = self._slopes()
        return np.sum((self.roots @ J.T) ** 2, axis=0).reshape(self.field.shape)

    def _plate_variance(self, modes: PlateModes) -> np.ndarray:
        """The same from products of modes, without a row for each mode on the points."""
        lower, scale = self.factor
        R = linalg.solve_triangular(lower, np.diag(1 / scale), lower=True, check_finite=False)
        mean = modes.coefficients(
            self.problem.grid.weights * np.exp(self.field - self.problem.log_integral(self.field))
        )
        shared = R.T @ (R @ mean)
        return np.maximum(modes.diagonal(R) - 2 * modes.field(shared) + float(mean @ shared), 0.0)

    @double
    def _slopes(self) -> np.ndarray:
        return np.asarray(_log_density_slopes(self.problem, jnp.asarray(self.field))).reshape(self.field.size, -1)

    @double
    def band(self, level: float = 0.9, about: Any = None) -> tuple[np.ndarray, np.ndarray]:
        r"""The interval of the density (of the function, with `Direct`) at each point, $e^{\ln P \pm q s}$.

        Args:
            level: its probability.
            about: None; or a density on the grid, whose average of the function is subtracted from it: the interval of
                $h - \langle h \rangle$. Where the data leave a constant open it is narrower, and comparable.
        """
        if isinstance(self.problem.link, Direct):
            if about is None:
                return interval(self.field, np.sqrt(self.variance), level)
            p = self.problem.grid.check("about", about).ravel()
            checks.not_negative("about", p)
            p = p / np.sum(p)
            s = np.sqrt(np.sum((self.roots - (self.roots @ p)[:, None]) ** 2, axis=0)).reshape(self.field.shape)
            return interval(self.field - float(self.field.ravel() @ p), s, level)
        if about is not None:
            raise InputError("Argument `about` must be None for densities, but one was given.")
        low, high = interval(np.zeros(self.field.shape), np.sqrt(self.log_density_variance()), level)
        P = self.problem.density(self.field)
        return P * np.exp(low), P * np.exp(high)


def interval(mean: np.ndarray, deviation: np.ndarray, level: Any) -> tuple[np.ndarray, np.ndarray]:
    """The central intervals of Gaussians.

    Args:
        mean: of each.
        deviation: standard deviation of each.
        level: the probability of the interval.
    """
    checks.inside("level", checks.number("level", level), 0.0, 1.0)
    half = float(ndtri((1 + level) / 2)) * deviation
    return mean - half, mean + half


@functools.partial(jax.jit, compiler_options=QUICK)
def _log_density_slopes(problem: Problem, field: Array) -> Array:
    """Derivatives of ln P by the components of the field."""
    return jax.jacfwd(lambda f: problem.link.log_density(problem.link.project(f)))(field)


def laplace(
    problem: Problem, fit: Any, *, unit_information: bool = False, probes: int | None = None, seed: int = 0
) -> Laplace:
    """Laplace's approximation at a field of least energy.

    Args:
        problem: what was asked.
        fit: where the energy is least, from `solve` or `regress`: the fit, or its field.
        unit_information: whether free directions of the prior have that of unit information in the evidence.
        probes: None for dense algebra. On large grids, the number of random vectors, at least 2, from whose products
            with the Hessian the evidence is estimated, with its error: `log_evidence_error`.
        seed: of these vectors.

    Raises:
        InputError: for densities bounded by zero, at which the posterior is no Gaussian, or a field that is no minimum
            of positive curvature.
    """
    checks.kind("problem", problem, Problem, "a Problem")
    if isinstance(problem.link, Density):
        raise InputError("Argument `problem` must not have the link Density, because at a bound P = 0 the posterior is "
                         "no Gaussian: use LogDensity.")  # fmt: skip
    unit_information = checks.flag("unit_information", unit_information)
    if uncertain(problem.prior) and resolve(problem.prior).beta != 1:
        raise InputError("Argument `problem` must have alternatives at `beta=1`, because at another temperature "
                         f"energies are no log-probabilities, but it is {resolve(problem.prior).beta:g}.")  # fmt: skip
    if probes is not None:
        return _probe(problem, fit, unit_information, checks.whole("probes", probes, least=2), seed)
    if isinstance(getattr(fit, "modes", None), Modes):
        if fit.modes.grid != problem.grid:
            raise InputError("Argument `fit` must be of this problem, but it lives on another grid.")
        return _in_modes(problem, fit, unit_information)
    return _on_points(problem, problem.grid.check("fit", getattr(fit, "field", fit)), unit_information)


@double
def _probe(problem: Problem, fit: Any, unit_information: bool, probes: int, seed: int) -> Laplace:
    """By products with random vectors."""
    from quenched.fields.theory.probing import probe

    if unit_information:
        raise InputError("Argument `unit_information` must be False with `probes`, but it is True.")
    field = problem.grid.check("fit", getattr(fit, "field", fit))
    return probe(problem, field, probes, checks.whole("seed", seed, least=0), _least(problem))


def _in_modes(problem: Problem, fit: Any, unit_information: bool) -> Laplace:
    """With the factor that the fit has left."""
    lower, scale = fit.factor
    K = problem.grid.cell * fit.modes.values.ravel()
    free = K == 0
    log_det_H = 2 * float(np.sum(np.log(np.diag(lower)) + np.log(scale)))
    evidence = _least(problem) - fit.energy + 0.5 * (float(np.sum(np.log(K[~free]))) - log_det_H)
    if unit_information:
        evidence += 0.5 * _unit(problem, fit.hessian[np.ix_(free, free)])
    else:
        evidence += 0.5 * float(free.sum()) * np.log(2 * np.pi)
    return Laplace(fit.field, evidence, not free.any(), problem, fit.factor, fit.modes)


def _least(problem: Problem) -> float:
    """The least energy of a Gaussian prior: not zero if its parts have different templates."""
    parts = problem.parts or []
    if len(parts) < 2 or not any(np.any(part.mean) for part in parts):
        return 0.0
    return -float(resolve(problem.prior).log_weights[0])


def _prior_norm(problem: Problem, prior: Mixture, null: np.ndarray) -> tuple[float, int]:
    r"""$\ln \int e^{-E}$ of the prior without its factors $\sqrt{2\pi}$, and the number of these.

    A prior that pulls at shifts of a log-density is one of the normalised ones alone: their integral has no closed
    form, and is Laplace's about the most probable of them under each alternative.
    """
    grid, link = problem.grid, problem.link
    d_K = grid.size - len(null)
    shifts = shifts_of(grid)
    if not pulls_at_shifts(problem, null):
        return prior.log_norm() - 0.5 * d_K * np.log(grid.cell), d_K
    none = unseen(grid)
    each, d_K = [], grid.size
    for weight, one in zip(prior.log_weights, prior.gaussians, strict=True):
        energy, values, _ = prior_mode(Problem(none, link, one), shifts)
        kept = values[values > FLAT * values[-1]]
        each.append(weight - energy - 0.5 * np.sum(np.log(kept)))
        d_K = min(d_K, len(kept))
    return log_sum(np.array(each)).item(), d_K


def shifts_of(grid: Grid) -> np.ndarray:
    """Shifts of a log-density, one for each x, as orthonormal rows."""
    return np.kron(np.eye(grid.blocks[0]), np.ones((1, grid.blocks[1]))) / np.sqrt(grid.blocks[1])


def unseen(grid: Grid) -> DensityData:
    """No data."""
    return DensityData(None, None, np.zeros(grid.shape))


def pulls_at_shifts(problem: Problem, null: np.ndarray) -> bool:
    """Whether a prior with this null space is one of all fields, of which only some are log-densities."""
    shifts = shifts_of(problem.grid)
    pulled = np.linalg.norm(shifts - (shifts @ null.T) @ null) > np.sqrt(FLAT)
    return bool(problem.link.exponential and not problem.link.linear and pulled)


def prior_mode(empty: Problem, shifts: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The least energy of a Gaussian prior among normalised log-densities, the curvatures there, and the field."""
    field = np.array(empty.prior.mean, dtype=np.float64)  # pyright: ignore[reportAttributeAccessIssue]
    at = empty.expand(field)
    for _ in range(STEPS):
        H = at.hessian()
        values, vectors = np.linalg.eigh((H + H.T) / 2 + np.max(np.abs(H)) * shifts.T @ shifts)
        step = -vectors @ ((vectors.T @ at.slope) / np.maximum(np.abs(values), FLAT * values[-1]))
        gain, length = -float(at.slope @ step), 1.0
        there = empty.expand(field + step.reshape(field.shape))
        while there.energy > at.energy and length > SMALL:
            length /= 2
            there = empty.expand(field + length * step.reshape(field.shape))
        field, at = field + length * step.reshape(field.shape), there
        if gain < SMALL:
            break
    H = at.hessian()
    return at.energy, np.linalg.eigvalsh((H + H.T) / 2), field


def _unit(problem: Problem, block: np.ndarray) -> float:
    r"""$\ln\det (H_0/n)$."""
    scale = np.sqrt(np.maximum(np.diag(block), np.finfo(float).tiny))
    _, logdet = np.linalg.slogdet(block / scale / scale[:, None] + RIDGE * np.eye(len(block)))
    return float(logdet + 2 * np.sum(np.log(scale)) - len(block) * np.log(problem.likelihood.total))


def _on_points(problem: Problem, field: np.ndarray, unit_information: bool) -> Laplace:
    """By all eigenvectors of the Hessian."""
    about = problem.expand(field)
    H = about.hessian()
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    if isinstance(problem.link, Direct):
        taken = len(problem.undetermined)
    elif problem.link.linear:  # what the prior about g leaves of the shifts
        taken = int(np.sum(np.abs(values) <= FLAT * values[-1]))
    else:
        taken = problem.grid.blocks[0]
    flat = np.isin(np.arange(len(values)), np.argsort(np.abs(values))[:taken])
    if np.any(values[~flat] <= 0) or np.any(np.abs(values[flat]) > FLAT * values[-1]):
        raise InputError("Argument `fit` must be a minimum of the energy, but there the least curvature is "
                         f"{values[~flat].min():.3g}.")  # fmt: skip
    prior = resolve(problem.prior)
    null = prior.gaussians[0].operator.null_space().reshape(-1, problem.grid.size)
    d_H, (log_norm, d_K) = problem.grid.size - taken, _prior_norm(problem, prior, null)
    evidence = -about.energy - log_norm - 0.5 * float(np.sum(np.log(values[~flat])))
    proper = bool(np.all(np.abs(null @ H) <= FLAT * values[-1]))
    if unit_information:
        decided, among, _ = np.linalg.svd(null @ vectors[:, ~flat], full_matrices=False)
        kept = decided[:, among > 0.5].T @ null
        evidence += 0.5 * _unit(problem, kept @ problem.expand_data(field)[2].apply(kept).T)
    else:
        evidence += 0.5 * (d_H - d_K) * np.log(2 * np.pi)
    root = np.sqrt(values[~flat])
    return Laplace(np.asarray(field), evidence, proper, problem, (np.eye(len(root)), root), None, vectors[:, ~flat])
