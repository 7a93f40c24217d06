"""What was observed: points of a density, or values of a function with noise."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, reals
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import Link


class Likelihood(eqx.Module):
    """What was observed."""

    @abc.abstractmethod
    def prepared(self, grid: Grid) -> Likelihood:
        """The same with the data put on a grid."""

    @abc.abstractmethod
    def energy(self, link: Link, field: Array) -> Array:
        """Minus the log-likelihood of a projected field."""


class DensityData(Likelihood):
    """Points drawn from a density: rows of coordinates, those of the given axes first.

    Attributes:
        points: `[n, dimensions]`; each counts for the grid point nearest to it. None once they are counted.
        weights: how often each counts; by default once.
        counts: on a grid, of its shape.

    Examples:
        >>> from quenched import fields
        >>> data = fields.DensityData([(3, 3), (7, 12)])
    """

    points: Any = eqx.field(converter=reals)
    weights: Any = eqx.field(converter=reals, default=None)
    counts: Any = None

    def __check_init__(self):
        if self.counts is not None:
            checks.not_negative("counts", self.counts)
        else:
            checks.finite("points", self.points)
            if np.size(self.points) == 0:
                raise InputError("Argument `points` must have at least one point, but there is none.")
            if self.weights is not None:
                checks.not_negative("weights", self.weights)
                if not np.any(np.asarray(self.weights) > 0):
                    raise InputError("Argument `weights` must be positive for some point, but all are zero.")

    def prepared(self, grid: Grid) -> DensityData:
        """Counted on a grid; the points are forgotten, so that problems of one grid compile once."""
        if self.counts is None:
            return DensityData(None, None, grid.counts(self.points, self.weights))
        if np.shape(self.counts) != grid.shape:
            raise InputError(f"Data that were counted on a grid of shape {np.shape(self.counts)} must be used on it, "
                             f"but this grid has the shape {grid.shape}.")  # fmt: skip
        return self

    def energy(self, link: Link, field: Array) -> Array:
        r"""$-(N, \ln P)$."""
        seen = self.counts > 0  # a density may be zero where nothing was seen
        return -jnp.sum(jnp.where(seen, self.counts * link.log_density(field), 0.0))


class GaussianData(Likelihood):
    r"""Values of a function with Gaussian noise, $y_i \sim \mathcal N(h(x_i), \sigma_i^2)$.

    Attributes:
        points: inputs `[n, dimensions]`; inputs may repeat.
        targets: $y_i$ `[n]`.
        variance: $\sigma_i^2$, one number or `[n]`.
        places: on a grid, the flat index of each point.
    """

    points: Any = eqx.field(converter=reals)
    targets: Any = eqx.field(converter=reals)
    variance: Any = eqx.field(converter=reals, default=1.0)
    places: Any = None

    def __check_init__(self):
        if self.places is not None:
            checks.not_negative("places", self.places)
        else:
            checks.finite("points", self.points)
            checks.finite("targets", self.targets)
            checks.positive("variance", self.variance)
            if np.size(self.points) == 0:
                raise InputError("Argument `points` must have at least one point, but there is none.")
            if np.ndim(self.targets) != 1 or np.shape(self.points)[:1] != np.shape(self.targets):
                raise InputError("Argument `targets` must have one number for each of the points, but its shape is "
                                 f"{np.shape(self.targets)}.")  # fmt: skip
            if np.shape(self.variance) not in ((), np.shape(self.targets)):
                raise InputError("Argument `variance` must be one number or one for each point, but its shape is "
                                 f"{np.shape(self.variance)}.")  # fmt: skip

    def prepared(self, grid: Grid) -> GaussianData:
        """Placed on a grid."""
        places = np.ravel_multi_index(tuple(grid.indices(self.points).T), grid.shape)
        return GaussianData(self.points, self.targets, self.variance, places)

    def energy(self, link: Link, field: Array) -> Array:
        r"""$\tfrac12 \sum_i \big[(y_i - h(x_i))^2/\sigma_i^2 + \ln 2\pi\sigma_i^2\big]$."""
        off = self.targets - field.reshape(-1)[self.places]
        return 0.5 * jnp.sum(jnp.square(off) / self.variance + jnp.log(2 * jnp.pi * self.variance))
