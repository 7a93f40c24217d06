r"""The posterior in the coordinates of Laplace's Gaussian: what samplers move in.

A field is $\phi = \phi^* + \sum_a z_a w_a$ with the roots $w_a$ of Laplace's covariance: were the posterior Gaussian,
the coordinates $z$ would be independent standard normal numbers. Directions in which the density of nothing changes,
the shifts of a log-density, are no coordinates. Where alternatives or hyperparameters are open, $\phi^*$ is the mean of
all their Gaussians and $w_a$ are roots of the covariance of all of them together, or of the mean covariance of one.

The energy is written in plain arrays, so that one compiled program serves all grids, data and priors of one shape:
$$E(z) = E_D(z) - \ln \sum_j e^{l_j - \frac12 z^T P_j z - b_j^T z - c_j} ,$$
where rows of data are padded by rows of no weight.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from scipy import linalg

from quenched.core.linear import next_length, padded
from quenched.core.types import Array, InputError, Outcome
from quenched.fields.learner.solving import solve
from quenched.fields.model.components import ClassData, ClusterData, VectorData
from quenched.fields.model.either import Either
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Density
from quenched.fields.model.noise import GaussianNoise, NoisyData
from quenched.fields.model.priors import And, Gaussian, combined
from quenched.fields.model.problem import Problem
from quenched.fields.practice.settings import Setting, require_free, settings_of
from quenched.fields.theory.laplace import FLAT, laplace, pulls_at_shifts, shifts_of

ROWS = (ClassData, NoisyData, ClusterData, VectorData)
"""Data whose rows alone decide the energy, and can be padded."""
NEGLIGIBLE = 1e-12
"""What is added to the diagonal of a covariance of unit diagonal before its root is taken."""


class Term(eqx.Module):
    """The energy of the data, and of the prior where that is no Gaussian, as a function of the coordinates."""

    @abc.abstractmethod
    def energy(self, z: Array) -> Array:
        """Minus the log-likelihood up to a constant."""


class DensityTerm(Term):
    r"""$\sum_x n_x \ln \int dy\, e^{g} - (N, g)$; it also gives the log-integrals, which shift a log-density."""

    mean: Any  # [X, Y]
    roots: Any  # [m, X, Y]
    log_weights: Any  # [Y]
    rows: Any  # n_x [X]
    pull: Any  # of the counts [m]

    def log_integrals(self, z: Array) -> Array:
        r"""$\ln \int dy\, e^g$ at each x."""
        return jax.nn.logsumexp(self.mean + jnp.tensordot(z, self.roots, axes=1) + self.log_weights, axis=1)

    def energy(self, z: Array) -> Array:
        """See `DensityData`."""
        return jnp.sum(self.rows * self.log_integrals(z)) - self.pull @ z


class RowTerm(Term):
    """Rows at values that are linear in the coordinates."""

    data: Any  # of which places are forgotten
    values: Any  # at z = 0, [n] or [n, k]
    slopes: Any  # [m, n] or [m, n, k]
    weights: Any  # [n]

    def energy(self, z: Array) -> Array:
        """See `RowData`."""
        return jnp.sum(self.weights * self.data.row_energy(self.values + jnp.tensordot(z, self.slopes, axes=1)))


class WholeTerm(Term):
    """Anything else: the energy of the problem; a program for each grid."""

    problem: Problem
    mean: Any
    roots: Any  # [m, *grid]
    alone: bool = eqx.field(static=True)  # whether the prior is part of it

    def energy(self, z: Array) -> Array:
        """See `Problem`."""
        energy, loss = self.problem.energies(self.mean + jnp.tensordot(z, self.roots, axes=1))
        return energy if self.alone else loss


class Quadratics(eqx.Module):
    r"""Log-weights $l_j$, matrices $P_j$, slopes $b_j$ and constants $c_j$ of Gaussian priors, one for each setting."""

    log_weights: Any  # [J]
    matrices: Any  # [J, m, m]
    slopes: Any  # [J, m]
    constants: Any  # [J]

    def energies(self, u: Array) -> Array:
        """Of each setting `[J]`."""
        return 0.5 * (self.matrices @ u) @ u + self.slopes @ u + self.constants

    def energy(self, u: Array) -> Array:
        """Of the mixture."""
        return -jax.nn.logsumexp(self.log_weights - self.energies(u))


class Target(eqx.Module):
    """The energy of the posterior."""

    data: Term
    prior: Quadratics | None

    def about(self, z: Array) -> Array:
        """What the prior is about: the coordinates, and how much a log-density is shifted to be normalised."""
        extra = 0 if self.prior is None else np.shape(self.prior.slopes)[1] - np.shape(z)[0]
        if not extra:
            return z
        assert isinstance(self.data, DensityTerm)
        return jnp.concatenate([z, self.data.log_integrals(z)])

    def energy(self, z: Array) -> Array:
        """Minus the log-density up to a constant."""
        loss = self.data.energy(z)
        return loss if self.prior is None else loss + self.prior.energy(self.about(z))


@dataclasses.dataclass(frozen=True, eq=False)
class Gaussians:
    """Laplace's mixture of Gaussians, one for each setting.

    Attributes:
        settings: the values of what is open.
        shares: the probability of each.
        fields: means `[J, points]`.
        roots: of each, rows whose products summed up are the covariance.
        outcome: the worst of the fits.
    """

    settings: list[Setting]
    shares: np.ndarray
    fields: np.ndarray
    roots: list[np.ndarray]
    outcome: Outcome

    @functools.cached_property
    def problem(self) -> Problem:
        """At the most probable setting."""
        return self.settings[int(np.argmax(self.shares))].problem


def approximate(settings: list[Setting]) -> Gaussians:
    """Laplace's Gaussian at every setting."""
    fits = [solve(one.problem) for one in settings]
    if len(settings) == 1 and settings[0].problem.parts is None:
        field, roots = fits[0].field, _roots(settings[0].problem, fits[0].field)
        return Gaussians(settings, np.ones(1), field.reshape(1, -1), [roots], fits[0].outcome)
    found = [laplace(one.problem, fit) for one, fit in zip(settings, fits, strict=True)]
    logs = np.log([one.weight for one in settings]) + np.array([one.log_evidence for one in found])
    fields = np.array([one.field.ravel() for one in found])
    worst = Outcome(max(fit.outcome for fit in fits))
    return Gaussians(settings, scipy.special.softmax(logs), fields, [one.roots for one in found], worst)


def _roots(problem: Problem, field: np.ndarray) -> np.ndarray:
    """Of the inverse Hessian, under a prior that is no Gaussian; it may be flat or bend down somewhere."""
    H = problem.hessian(field)
    shifts = gone_from(problem)
    values, vectors = np.linalg.eigh((H + H.T) / 2 + 2 * np.max(np.abs(H)) * problem.grid.size * shifts.T @ shifts)
    kept = len(values) - len(shifts)
    size = np.maximum(np.abs(values), FLAT * values[kept - 1])
    return (vectors / np.sqrt(size)).T[:kept]


def open_settings(problem: Problem) -> list[Setting]:
    """The settings of a problem; a prior that is not made of Gaussian ones is one as it stands."""
    if isinstance(problem.link, Density):
        raise InputError("Argument `problem` must not have the link Density, whose posterior ends at P = 0: use "
                         "LogDensity.")  # fmt: skip
    require_free(problem)
    parts = problem.prior.parts if isinstance(problem.prior, And) else (problem.prior,)
    if all(isinstance(part, (Gaussian, Either)) for part in parts):
        return settings_of(problem, proper=False)
    return [Setting(problem, 1.0, None)]


@dataclasses.dataclass(frozen=True, eq=False)
class Whitened:
    """A posterior in whitened coordinates.

    Attributes:
        gaussians: what it is about.
        mean: the field at the origin, flattened.
        roots: the field of each coordinate `[m, points]`.
        target: the energy.
    """

    gaussians: Gaussians
    mean: np.ndarray
    roots: np.ndarray
    target: Target

    def fields(self, z: np.ndarray) -> np.ndarray:
        """Fields at some coordinates `[..., m]`, of the shape of the grid."""
        return (self.mean + z @ self.roots).reshape(*z.shape[:-1], *self.gaussians.problem.grid.shape)

    def coordinates(self, fields: np.ndarray) -> np.ndarray:
        """Of flattened fields, up to what is no coordinate."""
        inverse = np.linalg.pinv(self.roots, rcond=1e-13)
        return (fields - self.mean) @ inverse


def whiten(gaussians: Gaussians, *, pooled: bool) -> Whitened:
    """The posterior in the coordinates of Laplace's mixture.

    Args:
        gaussians: the mixture.
        pooled: whether coordinates are those of the covariance of the whole mixture, or of the mean one of its parts.
    """
    if len(gaussians.settings) == 1:
        mean, roots = gaussians.fields[0], gaussians.roots[0]
    else:
        mean, roots = _common(gaussians, pooled)
    problem = gaussians.problem
    closed = None if problem.parts is None else term_of(problem, mean, roots)
    if closed is None:
        alone = len(gaussians.settings) == 1
        shape = problem.grid.shape
        term: Term = WholeTerm(problem, mean.reshape(shape), roots.reshape(-1, *shape), alone)
        return Whitened(gaussians, mean, roots, Target(term, None if alone else _priors(gaussians, mean, roots)))
    return Whitened(gaussians, mean, roots, Target(closed, _priors(gaussians, mean, roots)))


def _common(gaussians: Gaussians, pooled: bool) -> tuple[np.ndarray, np.ndarray]:
    """A mean and roots that serve all settings."""
    shares = np.maximum(gaussians.shares, NEGLIGIBLE)
    mean = shares @ gaussians.fields / shares.sum()
    rows = [np.sqrt(p) * roots for p, roots in zip(shares, gaussians.roots, strict=True)]
    if pooled:
        rows.append(np.sqrt(shares)[:, None] * (gaussians.fields - mean))
    stacked = np.concatenate(rows)
    basis = linalg.null_space(gone_from(gaussians.problem))
    stacked = stacked @ basis
    C = stacked.T @ stacked
    unit = np.sqrt(np.diag(C))
    lower = np.linalg.cholesky(C / unit / unit[:, None] + NEGLIGIBLE * np.eye(len(C)))
    return mean, (lower.T * unit) @ basis.T


def gone_from(problem: Problem) -> np.ndarray:
    """Directions that change nothing, as orthonormal rows: shifts of a log-density, or a constant of a potential."""
    return shifts_of(problem.grid) if problem.link.exponential else problem.undetermined


def term_of(problem: Problem, mean: np.ndarray, roots: np.ndarray) -> Term | None:
    """The data in plain arrays; None where they have no such form."""
    data, link, grid = problem.likelihood, problem.link, problem.grid
    if isinstance(data, DensityData) and link.exponential:
        X, Y = grid.blocks
        N = np.reshape(np.asarray(data.counts, dtype=np.float64), (X, Y))
        log_weights = np.log(np.broadcast_to(grid.weights, grid.shape).reshape(X, Y)[0])
        return DensityTerm(mean.reshape(X, Y), roots.reshape(-1, X, Y), log_weights, N.sum(axis=1), roots @ N.ravel())
    if isinstance(data, GaussianData):  # in units of the deviations
        s = np.sqrt(np.broadcast_to(data.variance, np.shape(data.targets)))
        weights = np.broadcast_to(data.weights, np.shape(data.targets))
        rows = NoisyData(points=np.zeros(len(s)), targets=np.asarray(data.targets) / s, noise=GaussianNoise(1.0))
        return rowterm_of(rows, (data.design @ mean) / s, (data.design @ roots.T).T / s, weights)
    if isinstance(data, ROWS):
        values = np.asarray(data.values(mean.reshape(grid.shape)))
        slopes = np.array([data.values(one.reshape(grid.shape)) for one in roots])
        return rowterm_of(data, values, slopes, data.weights)
    return None


def rowterm_of(data: Any, values: np.ndarray, slopes: np.ndarray, weights: Any) -> RowTerm:
    """Rows at values and slopes, padded, so that few numbers of rows have a program of their own."""
    n = len(values)
    length = next_length(n, first=32, ratio=2)
    if isinstance(data, VectorData) and np.ndim(data.precision) == 2:  # one matrix for all rows
        data = eqx.tree_at(lambda d: d.precision, data, np.broadcast_to(data.precision, (n, *data.precision.shape)))
    data = eqx.tree_at(
        lambda d: (d.points, d.places, d.shares, d.weights), data, (None,) * 4, is_leaf=lambda leaf: leaf is None
    )
    for name in ("targets", "labels", "precision"):
        if hasattr(data, name):
            leaf = padded(np.asarray(getattr(data, name)), length)
            data = eqx.tree_at(lambda d, name=name: getattr(d, name), data, leaf)
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    grown = np.swapaxes(padded(np.swapaxes(slopes, 0, 1), length), 0, 1)
    return RowTerm(data, padded(values, length), np.ascontiguousarray(grown), np.append(w, np.zeros(length - n)))


def _priors(gaussians: Gaussians, mean: np.ndarray, roots: np.ndarray) -> Quadratics:
    """The priors of all settings in these coordinates."""
    first = gaussians.settings[0].problem
    null = first.operator.null_space().reshape(-1, first.grid.size)
    rows = roots
    if pulls_at_shifts(first, null):  # the prior is about the field less the logarithm of its integral
        shifts = shifts_of(first.grid) * np.sqrt(first.grid.blocks[1])
        rows = np.concatenate([roots, -shifts])
    cell, shape, each = first.grid.cell, first.grid.shape, []
    for one in gaussians.settings:
        prior = combined(one.problem.prior)
        off = mean - np.asarray(prior.mean).ravel()
        pulled = cell * np.asarray(prior.operator.apply(rows.reshape(-1, *shape))).reshape(len(rows), -1)
        pushed = cell * np.asarray(prior.operator.apply(off.reshape(shape))).ravel()
        P = pulled @ rows.T
        log_weight = np.log(one.weight) + 0.5 * prior.operator.logdet()
        each.append((log_weight, (P + P.T) / 2, rows @ pushed, 0.5 * float(off @ pushed)))
    lw, P, b, c = (np.array(part) for part in zip(*each, strict=True))
    return Quadratics(lw - scipy.special.logsumexp(lw), P, b, c)
