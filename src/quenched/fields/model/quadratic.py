r"""Quadratic density estimation: the density is near the empirical one, in a quadratic sense. [lemm1999, section 3.6]

$$E = \tfrac12 \big(P - P_{emp}, K_D (P - P_{emp})\big) + \tfrac12 (P, K P) ,$$
an empirical risk, no likelihood. With $K_D = R^T R$, $R$ the integral $\int^y$ (`Cumulative`), and $K = \lambda$ the
distribution function is $\Phi = m^2 \big(\prod_k (-\Delta_k) + m^2\big)^{-1} \Phi_{emp}$ with $m^2 = 1/\lambda$, and in
one dimension the density a sum of Parzen windows $\tfrac m2 e^{-m|y - y_i|}$. [eqs. (239) to (243), erratum F241]
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, reals
from quenched.fields.model.grid import Grid
from quenched.fields.model.likelihoods import DensityData, Likelihood
from quenched.fields.model.links import Density, Direct, Link
from quenched.fields.model.operators import Operator


class Cumulative(Operator):
    r"""$R^T R$ with the integral $R = \int^y$ over the axes that are normalised over: $(P, R^T R P) = \int \Phi^2$."""

    def __check_init__(self):
        checks.kind("grid", self.grid, Grid, "a Grid")
        if not self.grid.over:
            raise InputError("Argument `grid` must have an axis that is normalised over, but it has none: give `over`.")

    def integrate(self, field: Any) -> Any:
        r"""$\Phi = R P$."""
        return self._sum(field, 1)

    def apply(self, field: Any) -> Any:
        r"""$R^T R P$."""
        return self._sum(self._sum(field, 1), -1)

    def _sum(self, field: Any, step: int) -> Any:
        library: Any = np if isinstance(field, np.ndarray) else jnp
        first = np.ndim(field) - len(self.grid.axes)
        for dim in self.grid.dims:
            turned = library.flip(field, axis=first + dim) if step < 0 else field
            summed = library.cumsum(turned, axis=first + dim)
            field = library.flip(summed, axis=first + dim) if step < 0 else summed
        return field * self.grid.spacing


class QuadraticData(Likelihood):
    r"""$\tfrac12 (P - P_{emp}, K_D (P - P_{emp}))$: no log-likelihood, so no evidence.

    With given axes $P_{emp}(y|x) = N(x, y)/N(x)$. Where there are no data for an $x$ it is left out, or if `extended`
    taken to be uniform. Use it with the link `Density`, which keeps $P$ normalised and not negative, or `Direct`, which
    does neither. [lemm1999, eqs. (233) to (239)]

    Attributes:
        points: rows `[n, dimensions]`, coordinates of the given axes first.
        operator: $K_D$, such as `Cumulative(grid)` or `Mass(grid)`.
        weights: how often each counts; by default once.
        extended: whether the empirical density is uniform where nothing is known.
        empirical: on a grid, $P_{emp}$.
        known: on a grid, where it is.
    """

    links: ClassVar[tuple[type[Link], ...]] = (Density, Direct)
    convex: ClassVar[bool] = True

    points: Any = eqx.field(converter=reals)
    operator: Operator
    weights: Any = eqx.field(converter=reals, default=None)
    extended: bool = eqx.field(static=True, default=False)
    empirical: Any = None
    known: Any = None

    def __check_init__(self):
        checks.kind("operator", self.operator, Operator, "an operator such as Cumulative(grid)")
        checks.flag("extended", self.extended)
        if self.empirical is None and self.known is None:
            DensityData(self.points, self.weights)  # checks them
            return
        for name in ("empirical", "known"):
            checks.finite(name, getattr(self, name))
            if np.shape(getattr(self, name)) != self.operator.grid.shape:
                raise InputError(f"Argument `{name}` must have the shape {self.operator.grid.shape} of the grid, but "
                                 f"its shape is {np.shape(getattr(self, name))}: leave it to `prepared`.")  # fmt: skip

    @property
    def total(self) -> float:
        """One: how well a density is known does not follow from the number of rows."""
        return 1.0

    def prepared(self, grid: Grid) -> QuadraticData:
        """With the empirical density on a grid."""
        if self.empirical is not None:
            return self
        if self.operator.grid != grid or not grid.over:
            raise InputError("Data and operator must live on one grid with an axis to normalise over, but they do not.")
        N = grid.counts(self.points, self.weights)
        rows = N.sum(axis=grid.dims, keepdims=True)
        uniform = 1 / np.prod([axis.points for axis in grid.over]) if self.extended else 0.0
        P = np.where(rows > 0, N / np.where(rows > 0, rows, 1.0), uniform) / grid.weights
        known = np.broadcast_to((rows > 0) | self.extended, grid.shape).astype(float)
        return QuadraticData(None, self.operator, None, self.extended, P, known)

    def energy(self, link: Link, field: Array) -> Array:
        r"""$\tfrac12 (P - P_{emp}, K_D (P - P_{emp}))$."""
        del link  # both have the density as their field
        return self.operator.energy((field - self.empirical) * self.known)
