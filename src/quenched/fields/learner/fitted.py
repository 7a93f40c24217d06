"""What a fit gives: a field, and how it was found."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core.types import Outcome
from quenched.fields.model.either import log_sum
from quenched.fields.model.modes import Modes
from quenched.fields.model.problem import Problem

if TYPE_CHECKING:
    import xarray as xr


@dataclasses.dataclass(frozen=True)
class Level:
    """What a method without matrices did on one grid.

    Attributes:
        shape: of the grid.
        steps: of the method.
        products: with the Hessian; of L-BFGS, slopes.
        gradient: norm of the slope of the energy in the end, as a share of that of the data at an even field.
    """

    shape: tuple[int, ...]
    steps: int
    products: int
    gradient: float


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """A field of least energy.

    Attributes:
        field: of the shape of the grid, in the meaning of the link.
        outcome: `converged`: the residual of the stationarity equation vanished; `stalled`: it did not, within the
            allowed iterations.
        problem: what was solved.
        energy: minus the log-posterior, up to a constant.
        kkt: the residual of the stationarity equation, per volume; in modes, of their coefficients.
        minima: energies of all different minima that were met, lowest first: that of this field is the first.
        starts: how many starts were tried.
        met: the fits of these minima, in the same order; of the solver on points.
        modes: of which the field is a sum; None for all fields on the points.
        factor: a Cholesky factor of the Hessian in modes and the scale of its rows, from the last step.
        hessian: the Hessian in modes.
        data_hessian: the part of the data in it, where it does not depend on the field.
        steps: energy, energy of the data, length and residual of every step.
        gap: how far the energy is above the least one at most, where it is convex and the method knows.
        levels: of a method without matrices, what it did on every grid, the coarsest first.
    """

    field: np.ndarray
    outcome: Outcome
    problem: Problem
    energy: float = np.nan
    kkt: float = np.nan
    minima: tuple[float, ...] = ()
    starts: int = 1
    modes: Modes | None = None
    factor: tuple[np.ndarray, np.ndarray] | None = None
    hessian: np.ndarray | None = None
    data_hessian: np.ndarray | None = None
    steps: tuple[tuple[float, float, float, float], ...] = ()
    met: tuple[Any, ...] = ()
    gap: float | None = None
    levels: tuple[Level, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the stationarity residual vanished."""
        return self.outcome is Outcome.converged

    @functools.cached_property
    def trace(self) -> xr.Dataset:
        """Of all iterations: `energy`, `training_error` (minus the mean log-likelihood), `step` and `kkt`."""
        import xarray as xr

        columns = np.array(self.steps).T / np.array([1.0, self.problem.likelihood.total, 1.0, 1.0])[:, None]
        names = ("energy", "training_error", "step", "kkt")
        return xr.Dataset({name: ("iteration", column) for name, column in zip(names, columns, strict=True)})

    @functools.cached_property
    def density(self) -> np.ndarray:
        """$P$ on the grid, normalised; a regression has none."""
        return self.problem.density(self.field)


class FittedDensity(Fitted):
    """A density of least energy."""


@dataclasses.dataclass(frozen=True, eq=False)
class FittedFunction(Fitted):
    """The posterior of a function, whose mean is the field of least energy.

    Attributes:
        covariance: of flattened fields `[points, points]`.
        log_evidence: logarithm of the density of the data.
        proper: whether the prior is a density, so that the evidence is one.
    """

    covariance: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    log_evidence: float = np.nan
    proper: bool = True

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
        S = self.problem.grid.interpolation(points)
        v = np.sum((S @ self.covariance) * S.toarray(), axis=1) + np.asarray(variance, float)
        return -0.5 * (np.square(np.asarray(targets, float) - S @ self.mean.ravel()) / v + np.log(2 * np.pi * v))


@dataclasses.dataclass(frozen=True, eq=False)
class FittedAlternatives(FittedFunction):
    r"""The exact posterior of a function under alternatives: a mixture of Gaussians. [lemm1999, eqs. (570) to (576)]

    Its mean $\sum_j b_j \bar t_j$ is in general no field of least energy.

    Attributes:
        components: the posterior under each alternative alone.
        probabilities: $b_j$, the posterior probability of each alternative.
    """

    components: tuple[FittedFunction, ...] = ()
    probabilities: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))

    def log_density(self, points: Any, targets: Any, variance: Any) -> np.ndarray:
        """The predictive log-density of new values with noise of a given variance."""
        each = [one.log_density(points, targets, variance) for one in self.components]
        with np.errstate(divide="ignore"):
            return log_sum(np.array(each) + np.log(self.probabilities)[:, None])[0]
