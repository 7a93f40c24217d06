"""What a fit gives: a field, and how it was found."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core.types import Outcome
from quenched.fields.model.problem import Problem

if TYPE_CHECKING:
    import xarray as xr


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """A field of least energy.

    Attributes:
        field: of the shape of the grid, in the meaning of the link.
        outcome: `converged`: the residual of the stationarity equation vanished; `stalled`: it did not, within the
            allowed iterations.
        problem: what was solved.
    """

    field: np.ndarray
    outcome: Outcome
    problem: Problem

    @property
    def converged(self) -> bool:
        """Whether the stationarity residual vanished."""
        return self.outcome is Outcome.converged


@dataclasses.dataclass(frozen=True, eq=False)
class FittedDensity(Fitted):
    """A density of least energy.

    Attributes:
        density: $P$ on the grid, normalised.
        energy: minus the log-posterior, up to a constant.
        kkt: the residual of the stationarity equation, per volume.
        trace: `energy`, `training_error` (minus the mean log-likelihood of the data), `step` (0 at the last) and `kkt`
            over the iterations.
        minima: energies of all different minima that were met, lowest first: that of this field is the first.
        starts: how many starts were tried.
    """

    density: np.ndarray
    energy: float
    kkt: float
    trace: xr.Dataset
    minima: tuple[float, ...] = ()
    starts: int = 1


@dataclasses.dataclass(frozen=True, eq=False)
class FittedFunction(Fitted):
    """The posterior of a function, whose mean is the field of least energy.

    Attributes:
        covariance: of flattened fields `[points, points]`.
        log_evidence: logarithm of the density of the data.
        proper: whether the prior is a density, so that the evidence is one.
    """

    covariance: np.ndarray
    log_evidence: float
    proper: bool

    @property
    def mean(self) -> np.ndarray:
        """The posterior mean of the function at each point of the grid."""
        return self.field

    @property
    def variance(self) -> np.ndarray:
        """Posterior variance of the function at each point of the grid."""
        return np.diag(self.covariance).reshape(self.mean.shape)

    def log_density(self, points: Any, targets: Any, variance: Any) -> np.ndarray:
        """The predictive log-density of new values with noise of a given variance."""
        places = np.ravel_multi_index(tuple(self.problem.grid.indices(points).T), self.problem.grid.shape)
        v = self.variance.ravel()[places] + np.asarray(variance, float)
        return -0.5 * (np.square(np.asarray(targets, float) - self.mean.ravel()[places]) / v + np.log(2 * np.pi * v))
