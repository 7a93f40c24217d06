r"""Laplace's approximation: the posterior as a Gaussian about its maximum. [lemm1999, eqs. (66), (70), (73)]

At a field of least energy $E^*$ with second derivatives $H$ (by the components of the field, along the constraint) the
posterior is about $\mathcal N(\phi^*, H^\#)$ and the evidence of the data

$$\ln p(D) \approx -E^* + \tfrac12 \ln \det{}' v K - \tfrac12 \ln \det{}' H + \tfrac12 (d_H - d_K) \ln 2\pi ,$$

where $v$ is the volume of a cell, $\det'$ leaves null directions out, and $d_K, d_H$ count what remains. The directions
that the normalisation takes away, one for each $x$ (shifts of a log-density), are null directions of $H$: they are no
freedom of the density. It is exact for regression. A prior that is flat in directions the data decide gives a relative
evidence: comparable between strengths, not between priors with different null spaces (`proper` says which).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, double
from quenched.fields.model.links import Density, Direct
from quenched.fields.model.priors import operator_of
from quenched.fields.model.problem import Problem

FLAT = 1e-9
"""The energy is flat in a direction if its curvature is below this share of the largest."""


@dataclasses.dataclass(frozen=True, eq=False)
class Laplace:
    """A Gaussian posterior.

    Attributes:
        field: its mean, of the shape of the grid.
        covariance: of flattened fields `[points, points]`; nothing in null directions.
        log_evidence: logarithm of the density of the data, see the module.
        proper: whether the prior is a density in all directions that the data decide.
        problem: what was asked.
    """

    field: np.ndarray
    covariance: np.ndarray
    log_evidence: float
    proper: bool
    problem: Problem

    @double
    def log_density_variance(self) -> np.ndarray:
        r"""Variance of $\ln P$ at each point of the grid."""
        J = np.asarray(_log_density_slopes(self.problem, jnp.asarray(self.field))).reshape(self.field.size, -1)
        return np.einsum("ij,jk,ik->i", J, self.covariance, J).reshape(self.field.shape)

    @double
    def band(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        r"""The interval of the density (of the function, in regression) at each point, $e^{\ln P \pm q s}$.

        Args:
            level: its probability.
        """
        from scipy.stats import norm

        checks.inside("level", checks.number("level", level), 0, 1)
        q = float(norm.ppf(0.5 + level / 2))
        if isinstance(self.problem.link, Direct):
            s = np.sqrt(np.diag(self.covariance)).reshape(self.field.shape)
            return self.field - q * s, self.field + q * s
        s = np.sqrt(self.log_density_variance())
        P = np.asarray(self.problem.link.density(jnp.asarray(self.field)))
        return P * np.exp(-q * s), P * np.exp(q * s)


@jax.jit
def _log_density_slopes(problem: Problem, field: Array) -> Array:
    """Derivatives of ln P by the components of the field."""
    return jax.jacfwd(lambda f: problem.link.log_density(problem.link.project(f)))(field)


@double
def laplace(problem: Problem, field: Any) -> Laplace:
    """Laplace's approximation at a field of least energy.

    Args:
        problem: what was asked.
        field: where the energy is least, from `solve` or `regress`.

    Raises:
        InputError: for densities bounded by zero, at which the posterior is no Gaussian, or a field that is no minimum
            of positive curvature.
    """
    checks.kind("problem", problem, Problem, "a Problem")
    if isinstance(problem.link, Density):
        raise InputError("Argument `problem` must not have the link Density, because at a bound P = 0 the posterior is "
                         "no Gaussian: use LogDensity.")  # fmt: skip
    field = problem.grid.check("field", field)
    H = problem.hessian(field)
    values, vectors = np.linalg.eigh(H)
    taken = 0 if isinstance(problem.link, Direct) else int(np.prod([axis.points for axis in problem.grid.given]))
    flat = np.isin(np.arange(len(values)), np.argsort(np.abs(values))[:taken])
    if np.any(values[~flat] <= 0) or np.any(np.abs(values[flat]) > FLAT * values[-1]):
        raise InputError("Argument `field` must be a minimum of the energy, but there the least curvature is "
                         f"{values[~flat].min():.3g}.")  # fmt: skip
    inverse = np.where(flat, 0.0, 1 / np.where(flat, 1.0, values))
    K = operator_of(problem.prior)
    null = K.null_space().reshape(-1, problem.grid.size)
    d_H, d_K = problem.grid.size - taken, problem.grid.size - len(null)
    log_det_K = K.logdet() + d_K * np.log(problem.grid.cell)
    log_det_H = float(np.sum(np.log(values[~flat])))
    evidence = -problem.value(field) + 0.5 * (log_det_K - log_det_H + (d_H - d_K) * np.log(2 * np.pi))
    proper = bool(np.all(np.abs(null @ H) <= FLAT * values[-1]))
    return Laplace(np.asarray(field), (vectors * inverse) @ vectors.T, evidence, proper, problem)
