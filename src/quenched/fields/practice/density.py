r"""Densities from data alone: the smoothness of the log-density is chosen by evidence.

For each order $k$ a path of strengths $\lambda$ is followed, from one at which only the free polynomials are left down
to one at which the evidence is lost. In Laplace's approximation, with $A$ the Hessian of the energy in modes,
$$\ln p(x | k, \lambda) = -E + n + \tfrac12 \sum_{s_m > 0} \ln \lambda s_m - \tfrac12 \ln\det A
+ \tfrac12 \ln\det (A_0/n) + \tfrac12 \ln n .$$
Free polynomials have no prior, so orders could not be compared. They are given that of unit information: a Gaussian as
wide as one row allows, whose precision is the block $A_0 = U_0^T W U_0$ of the data divided by $n$. (The last term
takes the constant out, which normalisation fixes.) For $\lambda \to \infty$ this is the Bayesian information
criterion of an exponential family: for order 3, of the Gaussian.

The posterior of $\ln P$ is the mixture over orders and strengths, equally probable on a logarithmic scale of lengths;
its mean is the estimate, and its mean and variance make the band.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from quenched.core.types import InputError, Outcome
from quenched.fields.learner.modes import Minimum, Modes, minimum, modes_of
from quenched.fields.practice.density_mesh import Mesh

ORDERS = {2: 0.25, 3: 0.5, 4: 0.25}
"""Orders tried, and how probable they are beforehand: the middle one, for which Gaussians are free, is as probable as
its neighbours together. Order 1 allows kinks."""
ROWS = 5
"""Rows for each free polynomial, but the constant, without which an order is not tried; the lowest always is."""
RATIO = {1: 3.0, 2: 5.0}
"""By dimension: strengths fall by this factor. Finer steps change the mean error of many data sets by less than one
part in a hundred."""
SURE = 100.0
"""At the first strength the prior is so many times as sure as the data of the smoothest mode that is not free."""
LOST = 12.0
"""A path ends when the logarithm of the evidence is so much below its best."""
NEGLIGIBLE = 1e-4
"""Shares of the posterior that are left out."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    r"""The posterior of a log-density.

    Attributes:
        mesh: where.
        log_density: mean of $\ln P$ at the points, normalised.
        deviation: standard deviation of $\ln P$ at the points.
        order: of the derivative that is small, the most probable.
        strength: $\lambda$ of the most probable, in coordinates in which the grid has unit length.
        log_evidence: $\ln p(x)$, of all orders and strengths together.
        path: what was tried: order, strength, logarithm of the evidence, share of the posterior.
        outcome: whether all minima were found.
    """

    mesh: Mesh
    log_density: np.ndarray
    deviation: np.ndarray
    order: int
    strength: float
    log_evidence: float
    path: np.ndarray
    outcome: Outcome


@dataclasses.dataclass(frozen=True)
class _Trial:
    """One order and strength, how probable they are beforehand, and what the data say."""

    modes: Modes
    strength: float
    prior: float
    minimum: Minimum
    evidence: float


def estimate(mesh: Mesh, counts: np.ndarray, *, order: int | None = None, strength: float | None = None) -> Estimate:
    """The posterior of the log-density of rows that were counted on a mesh.

    Args:
        mesh: where.
        counts: rows at its points, as `Mesh.counts` gives them.
        order: of the derivative that is small; by default all of `ORDERS`.
        strength: of the prior; by default all.

    Returns:
        The estimate.

    Raises:
        InputError: if the strength is too small for so many rows on so many points.
    """
    modes = [modes_of(mesh.shape, k) for k in (ORDERS if order is None else [order])]
    modes = [modes[0]] + [m for m in modes[1:] if counts.sum() >= ROWS * (m.free - 1)]
    total = sum(ORDERS.get(m.order, 1.0) for m in modes)
    trials = [t for m in modes for t in _path(mesh, counts, m, ORDERS.get(m.order, 1.0) / total, strength)]
    logs = np.array([trial.evidence + np.log(trial.prior) for trial in trials])
    evidence = np.logaddexp.reduce(logs)
    shares, best = np.exp(logs - evidence), trials[int(np.argmax(logs))]
    log_density, deviation = _mixture(mesh, trials, shares)
    path = [(t.modes.order, t.strength, t.evidence, share) for t, share in zip(trials, shares, strict=True)]
    return Estimate(
        mesh=mesh,
        log_density=log_density.reshape(mesh.shape),
        deviation=deviation.reshape(mesh.shape),
        order=best.modes.order,
        strength=best.strength,
        log_evidence=float(evidence - counts.sum() * np.log(mesh.volume)),
        path=np.array(path, dtype=[("order", int), ("strength", float), ("log_evidence", float), ("share", float)]),
        outcome=Outcome.converged if all(trial.minimum.converged for trial in trials) else Outcome.stalled,
    )


def _path(mesh: Mesh, counts: np.ndarray, modes: Modes, prior: float, strength: float | None) -> list[_Trial]:
    """Minima at falling strengths, each begun at the one before; or at one strength."""
    n, measure = counts.sum(), mesh.measure
    # Down to where half of all modes are free: finer ones are shorter than four spacings.
    top, bottom = SURE * n / modes.roughness[modes.free], n / modes.roughness[len(modes.roughness) // 2]
    if strength is not None and strength < bottom:
        raise InputError(f"Argument `strength` must be at least {bottom:.3g} for {n:g} rows on this grid, or the prior "
                         f"says nothing, but {strength:g} was given.")  # fmt: skip
    count = int(np.log(top / bottom) / np.log(RATIO[len(mesh.shape)])) + 1
    strengths = np.geomspace(top, bottom, count) if strength is None else np.array([strength])
    start = minimum(modes, counts, measure, np.inf, np.zeros(0)).coefficients
    trials: list[_Trial] = []
    for lam in strengths.tolist():
        found = minimum(modes, counts, measure, lam, start)
        trials.append(_Trial(modes, lam, prior / len(strengths), found, _evidence(modes, found, counts, measure)))
        if trials[-1].evidence < max(trial.evidence for trial in trials) - LOST:
            break
        start = found.coefficients
    return trials


def _evidence(modes: Modes, found: Minimum, counts: np.ndarray, measure: np.ndarray) -> float:
    """The logarithm of the evidence, in coordinates in which the grid has unit length."""
    n, U0 = counts.sum(), modes.fields[:, : modes.free]
    W = n * measure * np.exp(found.field)
    _, unit = np.linalg.slogdet((U0.T * W) @ U0 / n)
    stiff = np.sum(np.log(found.precision[modes.free :]))
    return float(n - found.energy + 0.5 * (stiff - found.logdet + unit + np.log(n)))


def _mixture(mesh: Mesh, trials: list[_Trial], shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Mean, normalised, and standard deviation of $\ln P$ over all trials."""
    kept = np.flatnonzero(shares > NEGLIGIBLE)
    p = shares[kept] / shares[kept].sum()
    posteriors = [_posterior(mesh, trials[i]) for i in kept]
    means, variances = (np.stack(part) for part in zip(*posteriors, strict=True))
    mean = p @ means
    deviation = np.sqrt(p @ (variances + (means - mean) ** 2))
    mass = mesh.volume * np.sum(mesh.measure * np.exp(mean))
    return mean - np.log(mass), deviation


def _posterior(mesh: Mesh, trial: _Trial) -> tuple[np.ndarray, np.ndarray]:
    r"""Mean and variance of $\ln P$: of the field less the logarithm of its integral."""
    found = trial.minimum
    mass = mesh.measure * np.exp(found.field)
    U = trial.modes.fields[:, : len(found.coefficients)]
    return found.field - np.log(mass.sum()), found.variances(U - (mass / mass.sum()) @ U)
