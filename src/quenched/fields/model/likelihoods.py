"""What was observed: points of a density, or values of a function with noise."""

from __future__ import annotations

import abc
import dataclasses
import functools
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from quenched.core import checks
from quenched.core.types import Array, InputError, is_traced, reals
from quenched.fields.model.expansion import Curvature, DesignCurvature, ShareCurvature
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import Direct, Link


class Likelihood(eqx.Module):
    """What was observed."""

    links: ClassVar[tuple[type[Link], ...]] = (Link,)  # with which it can be used
    convex: ClassVar[bool] = False  # whether its energy is known to be convex in what the link makes of a field
    convex_in_density: ClassVar[bool] = False  # whether it is convex in the density, though not in its logarithm
    quadratic: ClassVar[bool] = False  # whether its curvature does not depend on the field
    on_host: ClassVar[bool] = False  # whether large grids are looked at by `expand` alone, not by `energy`

    @property
    def total(self) -> float:
        """How many rows there are, each counted with its weight."""
        points, weights = (getattr(self, name, None) for name in ("points", "weights"))
        return float(len(np.asarray(points)) if weights is None else np.sum(weights))

    def expand(self, link: Link, field: np.ndarray) -> tuple[float, np.ndarray, Curvature] | None:
        """The energy at a field, its slope and its curvature in closed form on the host; None if there is none."""
        return None

    @property
    def shifts(self) -> bool:
        """Whether nothing changes when a constant is added to the field."""
        return False

    def check_field(self, field: np.ndarray) -> None:
        """Check that an iteration can begin at a field."""

    def expected_counts(self, grid: Grid) -> np.ndarray | None:
        """How many rows came from each point, as far as is known before anything is learned; None without points."""
        return getattr(self, "counts", None)

    @abc.abstractmethod
    def prepared(self, grid: Grid) -> Likelihood:
        """The same with the data put on a grid."""

    @abc.abstractmethod
    def energy(self, link: Link, field: Array) -> Array:
        """Minus the log-likelihood of a projected field."""


def check_places(rows: int, places: Any, shares: Any, *, shared: bool = True) -> None:
    """Check where rows lie on a grid, as `prepared` says it: places, each with its share if `shared`."""
    if is_traced(places) or is_traced(shares) or (places is None and shares is None):
        return
    checks.finite("places", places)
    at = np.asarray(places if isinstance(places, (np.ndarray, Array)) else None)
    if at.dtype.kind not in "iu" or at.shape[:1] != (rows,) or np.any(at < 0):
        raise InputError(f"Argument `places` must be an array of whole numbers from 0, with a row for each of the "
                         f"{rows} points, but {places!r} was given: leave it to `prepared`.")  # fmt: skip
    if shares is None and not shared and at.ndim == 1:
        return
    checks.finite("shares", shares)  # negative beyond the ends of an axis
    parts = checks.numbers("shares", shares)
    if at.ndim != 2 or parts.shape != at.shape:
        raise InputError(f"Argument `shares` must have the shape of `places`, {at.shape}, but its shape is "
                         f"{parts.shape}.")  # fmt: skip


class DensityData(Likelihood):
    """Points drawn from a density: rows of coordinates, those of the given axes first.

    Attributes:
        points: `[n, dimensions]`; each counts for the grid point nearest to it, or is shared out to those around it on
            axes with tails. None once they are counted.
        weights: how often each counts; by default once.
        counts: on a grid, of its shape.

    Examples:
        >>> from quenched import fields
        >>> data = fields.DensityData([(3, 3), (7, 12)])
    """

    convex = True

    points: Any = eqx.field(converter=reals)
    weights: Any = eqx.field(converter=reals, default=None)
    counts: Any = None

    @property
    def total(self) -> float:
        """The sum of all counts or weights."""
        counted = self.weights if self.counts is None else self.counts
        return float(len(self.points) if counted is None else np.sum(counted))

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

    def expand(self, link: Link, field: np.ndarray) -> tuple[float, np.ndarray, Curvature] | None:
        r"""$-\sum N g + \sum_x n_x \ln \int e^g$, for densities that are exponentials."""
        if not link.exponential:
            return None
        grid = link.grid
        g, N = field.reshape(grid.blocks), np.reshape(self.counts, grid.blocks)
        top = g.max(axis=1, keepdims=True)
        with np.errstate(over="ignore", invalid="ignore"):  # a step much too long: refused
            p = grid.weights.reshape(1, -1) * np.exp(g - top)
            Z = p.sum(axis=1, keepdims=True)
            p, n = p / Z, N.sum(axis=1)
            energy = float(n @ (top + np.log(Z))[:, 0] - np.vdot(N, g))
        return energy, (n[:, None] * p - N).reshape(field.shape), ShareCurvature(n, p)


class GaussianData(Likelihood):
    r"""Values of a function with Gaussian noise, $y_i \sim \mathcal N(h(x_i), \sigma_i^2)$.

    Attributes:
        points: inputs `[n, dimensions]`; inputs may repeat.
        targets: $y_i$ `[n]`.
        variance: $\sigma_i^2$, one number or `[n]`.
        weights: how often each counts; by default once.
        places: on a grid, the flat index of each point; of those around it `[n, corners]` on axes with tails.
        shares: of these, `[n, corners]`.
        size: points of the grid.
    """

    links = (Direct,)
    convex = True
    quadratic = True

    points: Any = eqx.field(converter=reals)
    targets: Any = eqx.field(converter=reals)
    variance: Any = eqx.field(converter=reals, default=1.0)
    weights: Any = eqx.field(converter=reals, default=1.0)
    places: Any = None
    shares: Any = None
    size: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        checks.finite("points", self.points)
        checks.finite("targets", self.targets)
        checks.positive("variance", self.variance)
        checks.positive("weights", self.weights)
        if np.size(self.points) == 0:
            raise InputError("Argument `points` must have at least one point, but there is none.")
        if np.ndim(self.targets) != 1 or np.shape(self.points)[:1] != np.shape(self.targets):
            raise InputError("Argument `targets` must have one number for each of the points, but its shape is "
                             f"{np.shape(self.targets)}.")  # fmt: skip
        for name, value in (("variance", self.variance), ("weights", self.weights)):
            if np.shape(value) not in ((), np.shape(self.targets)):
                raise InputError(f"Argument `{name}` must be one number or one for each point, but its shape is "
                                 f"{np.shape(value)}.")  # fmt: skip
        checks.whole("size", self.size, least=0)
        check_places(len(self.targets), self.places, self.shares, shared=False)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(np.sum(np.broadcast_to(self.weights, np.shape(self.targets))))

    def prepared(self, grid: Grid) -> GaussianData:
        """Placed on a grid."""
        if self.places is not None and self.size == grid.size:
            return self
        at, shares, _ = grid.corners(grid.rows(self.points), straight=True)
        if at.shape[1] == 1:
            return dataclasses.replace(self, places=at[:, 0], size=grid.size)
        return dataclasses.replace(self, places=at, shares=shares, size=grid.size)

    @functools.cached_property
    def design(self) -> sparse.csr_array:
        """The matrix $S$ from flat fields to their values at the points `[n, size]`."""
        at = np.asarray(self.places).reshape(len(self.places), -1)
        shares = np.ones(at.shape) if self.shares is None else np.asarray(self.shares)
        ends = np.arange(len(at) + 1) * at.shape[1]
        return sparse.csr_array((shares.ravel(), at.ravel(), ends), shape=(len(at), self.size))

    def energy(self, link: Link, field: Array) -> Array:
        r"""$\tfrac12 \sum_i w_i \big[(y_i - h(x_i))^2/\sigma_i^2 + \ln 2\pi\sigma_i^2\big]$."""
        h = field.reshape(-1)[self.places]
        off = self.targets - (h if self.shares is None else jnp.sum(h * self.shares, axis=-1))
        return 0.5 * jnp.sum(self.weights * (jnp.square(off) / self.variance + jnp.log(2 * jnp.pi * self.variance)))

    def misfit(self, field: np.ndarray) -> float:
        r"""$\sum_i w_i (y_i - h(x_i))^2/\sigma_i^2$, from what is left of each value."""
        off = np.asarray(self.targets) - self.design @ field.ravel()
        return float(np.sum(np.asarray(self.weights) * off**2 / np.asarray(self.variance)))

    def expand(self, link: Link, field: np.ndarray) -> tuple[float, np.ndarray, Curvature] | None:
        """A parabola."""
        v, y = np.asarray(self.variance), np.asarray(self.targets)
        w = np.broadcast_to(np.asarray(self.weights) / v, y.shape)
        off = self.design @ field.ravel() - y
        constant = np.sum(np.broadcast_to(np.asarray(self.weights) * np.log(2 * np.pi * v), y.shape))
        slope = (self.design.T @ (w * off)).reshape(field.shape)
        return 0.5 * float(w @ off**2 + constant), slope, DesignCurvature(self.design, w)
