r"""What the data say of hyperparameters: the joint energy and the evidence at one place, with exact derivatives.

With $M = v K(\theta)$, the field $\phi$ of least energy, $h = \phi - t(\theta)$ and the Hessian $H$ there
$$\ln p(D, \phi, \theta) = -E + \tfrac12 \ln\det{}' M + \ln p(\theta) , \qquad
  \ln p(D | \theta) = -E + \tfrac12 \ln\det{}' M - \tfrac12 \ln\det{}' H + \text{const} ,$$
$$\partial \big(-E + \tfrac12 \ln\det{}' M\big) = -\tfrac12 (h, \partial M\, h) + (\partial t, M h)
  + \tfrac12 \mathrm{Tr}\, M^\# \partial M ,$$
where the field is stationary and its own derivative drops out. [lemm1999, eqs. (487), (488), errata F425, F449]
The evidence has $-\tfrac12 \mathrm{Tr}\, H^\# \partial H$ beside it: $\partial H = \partial M$ in regression, where
all is exact; elsewhere $H$ also follows the field, $\partial\phi = -H^\# \partial \nabla E$.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.linalg

from quenched.core.types import InputError
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Given
from quenched.fields.model.hyper import NOISE, STENCIL, STEP, Slopes, Space
from quenched.fields.model.likelihoods import GaussianData
from quenched.fields.model.links import Direct
from quenched.fields.model.operators import Operator, Waves
from quenched.fields.model.problem import Problem
from quenched.fields.theory.laplace import FLAT, laplace, prior_mode, pulls_at_shifts, shifts_of, unseen

SOLVED = 1e-12
"""Tolerance of fields at which evidences are compared."""


@dataclasses.dataclass(frozen=True, eq=False)
class Look:
    """One place in the space of hyperparameters.

    Attributes:
        u: its coordinates.
        theta: the hyperparameters.
        problem: the problem with these hyperparameters.
        field: of least energy.
        bent: the energy of the prior there.
        log_joint: logarithm of the density of data, field and hyperparameters, up to a constant.
        log_evidence: logarithm of the density of the data.
        rank: of the prior's operator.
        precision: mean logarithm of the eigenvalues of the prior's operator.
        moved: whether the template depends on the hyperparameters.
        known: log-density of the hyperparameters beforehand.
        joint_slope: derivatives of `log_joint` by the coordinates.
        slope: derivatives of `log_evidence + known`.
    """

    u: np.ndarray
    theta: dict[str, Any]
    problem: Problem
    field: np.ndarray
    bent: float
    log_joint: float
    log_evidence: float
    rank: int
    precision: float
    moved: bool
    known: float
    joint_slope: np.ndarray
    slope: np.ndarray

    @property
    def log_posterior(self) -> float:
        """Logarithm of the density of data and hyperparameters."""
        return self.log_evidence + self.known


class Weigher:
    """Looks at places of a space, each begun at the field of the one before."""

    def __init__(self, space: Space, choices: Mapping[str, Any]):
        self.space, self.choices, self.seen = space, dict(choices), None
        self.exact = isinstance(space.problem.likelihood, GaussianData) and isinstance(space.problem.link, Direct)

    @functools.cached_property
    def labels(self) -> list[str]:
        """A name for each coordinate."""
        return self.space.labels()

    def look(self, u: np.ndarray, *, slopes: bool = True) -> Look:
        """What the data say at some coordinates."""
        u = np.asarray(u, dtype=np.float64)
        theta = self.space.unpack(u, self.choices)
        problem = self.space.hold(theta)
        K, t = problem.operator, np.asarray(problem.prior.mean)  # pyright: ignore[reportAttributeAccessIssue]
        by = self.space.differentiate(u, self.choices) if slopes and len(u) else None
        frame = _Frame(K, by)
        found = self._exact(problem, frame, t) if self.exact else self._laplace(problem, frame, t, u)
        field, energy, log_evidence, half = found
        norm, norm_slope = self._norm(problem, frame, t, u)
        off = frame.inside(_argument(problem, field) - t)
        bent = 0.5 * frame.cell * float(frame.form(off, off))
        log_joint = -energy - norm - 0.5 * frame.rank * np.log(2 * np.pi)
        known = -self.space.energy(theta)
        joint = np.zeros(len(u)) - self.space.slope(theta)
        if by is not None:
            joint = joint + frame.slope(off, frame.inside(t)) - norm_slope + self._noise_slope(problem, field)
            half = half + joint
        self.seen = field
        moved = by is not None and bool(np.any(frame.pull(frame.inside(t)) != 0))
        return Look(u, theta, problem, field, bent, log_joint + known, log_evidence, frame.rank,
                    frame.log_det / max(frame.rank, 1),                    moved, known, joint, half)  # fmt: skip

    def _norm(self, problem: Problem, frame: _Frame, t: np.ndarray, u: np.ndarray) -> tuple[float, np.ndarray]:
        r"""$\ln Z(\theta)$ of the prior without its factors $\sqrt{2\pi}$, and its derivatives.

        That of a prior of all fields, of which only the normalised ones are log-densities, is Laplace's integral over
        these, see `quenched.fields.theory.laplace`.
        """
        null = problem.operator.null_space().reshape(-1, problem.grid.size)
        if not pulls_at_shifts(problem, null):
            return -0.5 * frame.log_det, np.zeros(len(u)) if frame.by is None else -0.5 * frame.own_trace()
        grid, link = problem.grid, problem.link
        energy, values, field = prior_mode(Problem(unseen(grid), link, problem.prior), shifts_of(grid))
        kept = values > FLAT * values[-1]
        norm = -energy - 0.5 * float(np.sum(np.log(values[kept])))
        if frame.by is None:
            return norm, np.zeros(len(u))
        H = Problem(unseen(grid), link, problem.prior).expand(field).hessian()
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        kept = values > FLAT * values[-1]
        roots = (vectors[:, kept] / np.sqrt(values[kept])).T
        half = self._follow(unseen(grid), field, roots, frame, t, u)
        return norm, frame.slope(frame.inside(_argument(problem, field) - t), frame.inside(t)) + half

    def _follow(
        self, data: Any, field: np.ndarray, roots: np.ndarray, frame: _Frame, t: np.ndarray, u: np.ndarray
    ) -> np.ndarray:
        """Minus half the derivatives of the logarithm of det H, where H also follows the field."""
        link, half = self.space.problem.link, np.zeros(len(u))
        problem = Problem(data, link, self.space.hold(self.space.unpack(u, self.choices)).prior)
        off = frame.inside(_argument(problem, field) - t)
        for i, unit in enumerate(np.eye(len(u))):
            pull = frame.cell * frame.outside(frame.bend(i, off) - frame.pull(frame.inside(t))[i])
            along = -roots.T @ (roots @ _back(problem, field, pull))  # of the field
            total = 0.0
            for place, weight in STENCIL:
                prior = self.space.hold(self.space.unpack(u + place * STEP * unit, self.choices)).prior
                H = Problem(data, link, prior).expand(field + place * STEP * along.reshape(field.shape)).hessian()
                total += weight / STEP * float(np.sum((roots @ H) * roots))
            half[i] = -0.5 * total
        return half

    def _noise_slope(self, problem: Problem, field: np.ndarray) -> np.ndarray:
        """Of minus the energy of the data by the noise: half of the misfit less half of the number of rows."""
        found = np.zeros(len(self.labels))
        if NOISE in self.labels:
            data: Any = problem.likelihood
            found[self.labels.index(NOISE)] = 0.5 * (data.misfit(field) - data.total) * self._noise_scale(data)
        return found

    def _noise_scale(self, data: GaussianData) -> float:
        """The derivative of the logarithm of the noise by its coordinate."""
        first = np.ravel(np.asarray(self.space.problem.likelihood.variance))[0]  # pyright: ignore[reportAttributeAccessIssue]
        factor = float(np.ravel(np.asarray(data.variance))[0] / first)
        return 1.0 if self.space.logarithmic(NOISE) else 1 / factor

    def _exact(self, problem: Problem, frame: _Frame, t: np.ndarray) -> tuple[np.ndarray, float, float, np.ndarray]:
        """Regression: field, energy, evidence, and the derivative of minus half the logarithm of det H."""
        found: Any = problem.likelihood.expand(problem.link, np.zeros(problem.grid.shape))
        C = frame.between(found[2].matrix())
        A = C + frame.matrix()
        try:
            factor = scipy.linalg.cho_factor(A, lower=True)
        except np.linalg.LinAlgError:
            raise InputError("The data must decide what the prior leaves open, but they do not: its null space has "
                             f"the dimension {problem.grid.size - frame.rank}.") from None  # fmt: skip
        right = frame.cell * frame.times(frame.inside(t)) - frame.inside(found[1])
        field = frame.outside(scipy.linalg.cho_solve(factor, right)).reshape(problem.grid.shape)
        energy = problem.expand(field).energy
        log_det = 2 * float(np.sum(np.log(np.diag(factor[0]))))
        free = problem.grid.size - frame.rank
        evidence = -energy + 0.5 * (frame.log_det - log_det + free * np.log(2 * np.pi))
        if frame.by is None:
            return field, energy, evidence, np.zeros(len(self.labels))
        inverse = scipy.linalg.cho_solve(factor, np.eye(len(A)))
        half = -0.5 * frame.cell * frame.trace(inverse)
        if NOISE in self.labels:
            half[self.labels.index(NOISE)] += 0.5 * float(np.sum(inverse * C)) * self._noise_scale(problem.likelihood)  # pyright: ignore[reportArgumentType]
        return field, energy, evidence, half

    def _laplace(
        self, problem: Problem, frame: _Frame, t: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, float, float, np.ndarray]:
        """Any likelihood: the same by Laplace's approximation."""
        start = None if self.seen is None else Given(self.seen)
        fit = solve(problem, start=start, tolerance=SOLVED)
        posterior = laplace(problem, fit)
        if frame.by is None:
            return fit.field, fit.energy, posterior.log_evidence, np.zeros(len(u))
        if not (problem.link.linear or problem.link.exponential):
            raise InputError(f"Hyperparameters must go with LogDensity, Shifted, Logits or Direct, but the link is "
                             f"{type(problem.link).__name__}.")  # fmt: skip
        half = self._follow(problem.likelihood, fit.field, posterior.roots, frame, t, u)
        return fit.field, fit.energy, posterior.log_evidence, half


def _argument(problem: Problem, field: np.ndarray) -> np.ndarray:
    """What the prior is about."""
    return field if problem.link.linear else field - problem.log_integral(field)


def _back(problem: Problem, field: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """From derivatives by what the prior is about to those by the field, both flat."""
    if problem.link.linear:
        return pull
    p = (problem.grid.weights * np.exp(_argument(problem, field))).reshape(problem.grid.blocks)
    flat = pull.reshape(problem.grid.blocks)
    return (flat - p * flat.sum(axis=1, keepdims=True)).ravel()


class _Frame:
    """An operator and its derivatives in its own modes, where it is diagonal in products of waves, or on the points."""

    def __init__(self, K: Operator, by: Slopes | None):
        self.K, self.by, self.cell, self.waves = K, by, K.grid.cell, isinstance(K, Waves)
        if isinstance(K, Waves):
            sides = [np.eye(axis.points) if K.orders[i] is None else K.basis(i) for i, axis in enumerate(K.grid.axes)]
            self.U = functools.reduce(np.kron, sides)
            self.values = np.broadcast_to(np.asarray(K.values), K.grid.shape).ravel()
            self.rank = int(np.sum(self.values > 0))
            self.log_det = float(np.sum(np.log(self.values[self.values > 0]))) + self.rank * np.log(self.cell)
        else:
            self.rank = K.grid.size - len(K.null_space())
            self.log_det = K.logdet() + self.rank * np.log(self.cell)

    def inside(self, field: np.ndarray) -> np.ndarray:
        return self.U.T @ np.ravel(field) if self.waves else np.ravel(field)

    def outside(self, c: np.ndarray) -> np.ndarray:
        return self.U @ c if self.waves else c

    def between(self, C: np.ndarray) -> np.ndarray:
        return self.U.T @ C @ self.U if self.waves else C

    def matrix(self) -> np.ndarray:
        """$v K$."""
        return self.cell * (np.diag(self.values) if self.waves else self.K.matrix)

    def times(self, c: np.ndarray) -> np.ndarray:
        return self.values * c if self.waves else self.K.matrix @ c

    def form(self, a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ self.times(b))

    def bend(self, i: int, c: np.ndarray) -> np.ndarray:
        r"""$\partial_i K\, c$."""
        D = self.by.operator[i]  # pyright: ignore[reportOptionalMemberAccess]
        return D.ravel() * c if self.waves else D @ c

    def pull(self, t: np.ndarray) -> np.ndarray:
        r"""$K \partial t = \partial (K t) - \partial K\, t$, in rows."""
        by: Any = self.by
        push = by.push @ self.U if self.waves else by.push
        bent = np.array([self.bend(i, t) for i in range(len(push))]).reshape(push.shape)
        found = push - bent
        size = np.abs(push) + np.abs(bent)
        return np.where(np.abs(found) > 1e-9 * size.max(initial=0.0), found, 0.0)  # a fixed template leaves rounding

    def trace(self, inverse: np.ndarray) -> np.ndarray:
        r"""$\mathrm{Tr}\, A^{-1} \partial_i K$."""
        D = self.by.operator  # pyright: ignore[reportOptionalMemberAccess]
        if self.waves:
            return D.reshape(len(D), -1) @ np.diag(inverse)
        return np.einsum("ij,kji->k", inverse, D)

    def own_trace(self) -> np.ndarray:
        r"""$\mathrm{Tr}\, K^\# \partial_i K$, the derivatives of $\ln\det' K$."""
        D = self.by.operator  # pyright: ignore[reportOptionalMemberAccess]
        values, vectors = (self.values, None) if self.waves else self.K.spectrum
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
        if vectors is None:
            return D.reshape(len(D), -1) @ inverse
        return np.einsum("ij,kji->k", (vectors * inverse) @ vectors.T, D)

    def slope(self, off: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Derivatives of minus the prior's energy at a fixed field."""
        bent = np.array([off @ self.bend(i, off) for i in range(len(self.by.operator))])  # pyright: ignore[reportOptionalMemberAccess]
        return self.cell * self.pull(t) @ off - 0.5 * self.cell * bent
