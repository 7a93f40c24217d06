r"""Gaussian regression, solved exactly: never iterated. [lemm1999, section 3.7, errata F318, F486]

The posterior of a function under a Gaussian prior and Gaussian noise is Gaussian, and its mean is the field of least
energy. With the prior precision $v K$ ($v$ the volume of a cell), noise $\sigma_i^2$ at the places $x_i$ and the matrix
$S$ that picks them:

* in data space, for an invertible $K$ with covariance $C = (v K)^{-1}$:
  $h = t + C S^T (S C S^T + \sigma^2)^{-1} (y - S t)$;
* in grid space, also for a singular $K$: $(v K + S^T \sigma^{-2} S)\, h = v K t + S^T \sigma^{-2} y$.

The evidence is that of the data. Under a singular $K$ the prior is flat along its null space; then it is known up to a
constant that does not depend on the strength of the other directions (the density of the data with the null space
integrated out), and `proper` is False.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.linalg

from quenched.core import checks
from quenched.core.types import InputError, Outcome, double
from quenched.fields.learner.fitted import FittedAlternatives, FittedFunction
from quenched.fields.model.either import log_sum, resolve, uncertain
from quenched.fields.model.likelihoods import GaussianData
from quenched.fields.model.modes import require_matrix
from quenched.fields.model.operators import Operator
from quenched.fields.model.priors import Gaussian, combined
from quenched.fields.model.problem import Problem

DETERMINED = 1e-12
"""A matrix is singular if an eigenvalue is below this share of the largest."""


@double
def regress(problem: Problem, *, data_space: bool | None = None) -> FittedFunction:
    """Solve a Gaussian regression exactly.

    Args:
        problem: `GaussianData`, `Direct` and Gaussian priors, or alternatives of them.
        data_space: whether to invert a matrix of the size of the data (needs an invertible operator) or of the grid.
            By default the smaller one that can be used.

    Returns:
        The posterior; under alternatives a `FittedAlternatives`, the mixture of theirs with the probability of each.

    Raises:
        InputError: for another problem, or a prior that leaves directions to the data which they do not see.
    """
    if not isinstance(problem, Problem) or not isinstance(problem.likelihood, GaussianData):
        raise InputError("Argument `problem` must be a regression, of `GaussianData` and `Direct`, but it is not.")
    if uncertain(problem.prior):
        return _regress_alternatives(problem, data_space)
    prior, data = combined(problem.prior), problem.likelihood
    null = prior.operator.null_space().reshape(-1, problem.grid.size)
    if data_space is not None:
        data_space = checks.flag("data_space", data_space)
    else:
        data_space = len(null) == 0 and len(data.targets) < problem.grid.size
    if data_space and len(null):
        raise InputError(
            "Argument `data_space` must be False here, because the operator of the prior has a null space."
        )
    require_matrix(problem.grid.size, "solve with NewtonCG needs none")
    solver = _in_data_space if data_space else _in_grid_space
    mean, covariance, evidence = solver(prior.operator, np.asarray(prior.mean).ravel(), null, data)
    field = mean.reshape(problem.grid.shape)
    at = problem.expand(field)
    kkt = float(np.max(np.abs(at.slope))) / problem.grid.cell
    return FittedFunction(field, Outcome.converged, problem, at.energy, kkt, (at.energy,), covariance=covariance,
                          log_evidence=evidence, proper=len(null) == 0)  # fmt: skip


def _regress_alternatives(problem: Problem, data_space: bool | None) -> FittedAlternatives:
    """Each alternative by itself, weighed by its evidence; noise and priors have the temperature of the prior."""
    found, data = resolve(problem.prior), problem.likelihood
    if not 0 < found.beta < np.inf:
        raise InputError(f"Argument `beta` must be positive and finite for an exact posterior, but it is {found.beta}.")
    data = dataclasses.replace(data, variance=np.asarray(data.variance) / found.beta)  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue]
    parts = [
        regress(Problem(data, problem.link, Gaussian(found.beta * one.operator, one.mean)), data_space=data_space)
        for one in found.gaussians
    ]
    with np.errstate(divide="ignore"):
        each = np.log(found.weights) + np.array([part.log_evidence for part in parts])
    evidence = log_sum(each).item()
    b = np.exp(each - evidence)
    means = np.array([part.mean.ravel() for part in parts])
    mean = b @ means
    spread = (means - mean) * np.sqrt(b)[:, None]
    covariance = sum(share * part.covariance for share, part in zip(b, parts, strict=True)) + spread.T @ spread
    field = mean.reshape(problem.grid.shape)
    at = problem.expand(field)
    kkt = float(np.max(np.abs(at.slope))) / problem.grid.cell
    return FittedAlternatives(field, Outcome.converged, problem, at.energy, kkt, (at.energy,), covariance=covariance,
                              log_evidence=evidence, proper=all(part.proper for part in parts),
                              components=tuple(parts), probabilities=b)  # fmt: skip


def _noise(data: GaussianData) -> tuple[Any, np.ndarray, np.ndarray, float]:
    """The matrix S, targets, variances of rows that stand for several, and what these add to the evidence."""
    y = np.asarray(data.targets)
    w, v = (np.broadcast_to(np.asarray(part), y.shape) for part in (data.weights, data.variance))
    return data.design, y, v / w, -0.5 * float(np.sum((w - 1) * np.log(2 * np.pi * v) + np.log(w)))


def _in_data_space(K: Operator, t: np.ndarray, null: np.ndarray, data: GaussianData) -> tuple[Any, Any, float]:
    del null  # there is none
    S, y, noise, rest = _noise(data)
    unit = np.eye(K.grid.size)
    C = K.solve(unit.reshape(-1, *K.grid.shape)).reshape(K.grid.size, -1) / K.grid.cell
    SC = S @ C
    try:
        factor = scipy.linalg.cholesky((S @ SC.T).T + np.diag(noise), lower=True)
    except np.linalg.LinAlgError:
        raise InputError(f"Argument `variance` must be larger beside a prior of variance {C.max():.3g}, but "
                         f"{noise.min():g} is lost in rounding.") from None  # fmt: skip
    half = scipy.linalg.solve_triangular(factor, SC, lower=True)
    off = scipy.linalg.solve_triangular(factor, y - S @ t, lower=True)
    evidence = -0.5 * float(off @ off) - float(np.sum(np.log(np.diag(factor)))) - 0.5 * len(y) * np.log(2 * np.pi)
    return t + half.T @ off, C - half.T @ half, evidence + rest


def _in_grid_space(K: Operator, t: np.ndarray, null: np.ndarray, data: GaussianData) -> tuple[Any, Any, float]:
    S, y, noise, rest = _noise(data)
    prior = K.grid.cell * K.matrix
    A = prior + (S.T @ (S / noise[:, None])).toarray()
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    if values[0] < DETERMINED * values[-1]:
        raise InputError("The data must decide what the prior leaves open, but they do not: the prior has a null space "
                         f"of dimension {len(null)}, more than the data see.")  # fmt: skip
    covariance = (vectors / values) @ vectors.T
    h = covariance @ (S.T @ ((y - S @ t) / noise))
    off = y - S @ (t + h)
    least = 0.5 * float(np.sum(off**2 / noise) + h @ prior @ h)
    log_prior = K.logdet() + (K.grid.size - len(null)) * np.log(K.grid.cell)
    determinants = 0.5 * (log_prior - float(np.sum(np.log(values)))) - 0.5 * float(np.sum(np.log(2 * np.pi * noise)))
    return t + h, covariance, determinants - least + 0.5 * len(null) * np.log(2 * np.pi) + rest
