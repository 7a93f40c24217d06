r"""The question: likelihood x link x prior, and its energy, minus the logarithm of the posterior.

$$E(\phi) = -\sum_i \ln p(y_i | x_i, \phi) + \sum_j \tfrac12 \big(\phi - t_j,\, K_j (\phi - t_j)\big)$$

up to what does not depend on the field. Priors are combined by `&`: both hold. Nothing is solved here.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import Array, InputError, double
from quenched.fields.model.grid import Grid
from quenched.fields.model.likelihoods import GaussianData, Likelihood
from quenched.fields.model.links import Direct, Link
from quenched.fields.model.priors import Prior


class Problem(eqx.Module):
    """A learning problem on a grid.

    Attributes:
        likelihood: `DensityData` or `GaussianData`.
        link: what the field means.
        prior: what is known before.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 1, points=50)])
        >>> smooth = fields.Gaussian(0.1 * fields.Laplacian(grid))
        >>> problem = fields.Problem(fields.DensityData([0.3, 0.4]), fields.LogDensity(grid), smooth)
    """

    likelihood: Likelihood
    link: Link
    prior: Prior

    def __init__(self, likelihood: Likelihood, link: Link, prior: Prior):
        for name, value, kind in (
            ("likelihood", likelihood, Likelihood),
            ("link", link, Link),
            ("prior", prior, Prior),
        ):
            if not isinstance(value, kind):
                raise InputError(f"Argument `{name}` must be a {kind.__name__}, but {value!r} was given.")
        if prior.grid != link.grid:
            raise InputError("Prior and link must live on one grid, but they have different ones.")
        links = getattr(likelihood, "links", None)  # which links it goes with
        if links is not None and not isinstance(link, links):
            names = " or ".join(one.__name__ for one in links)
            raise InputError(f"`{type(likelihood).__name__}` must go with the link {names}, but {type(link).__name__} was "
                             "given.")  # fmt: skip
        if links is None and isinstance(link, Direct) != isinstance(likelihood, GaussianData):
            raise InputError("`GaussianData` must go with the link `Direct`, and `DensityData` with the others, but "
                             f"{type(likelihood).__name__} and {type(link).__name__} were given.")  # fmt: skip
        self.likelihood, self.link, self.prior = likelihood.prepared(link.grid), link, prior

    @property
    def grid(self) -> Grid:
        """Where the fields live."""
        return self.link.grid

    def energy(self, field: Array) -> Array:
        """Minus the log-posterior of the projected field, up to a constant."""
        field = self.link.project(field)
        return self.likelihood.energy(self.link, field) + self.prior.energy(self.link.argument(field))

    @double
    def gradient(self, field: Any) -> np.ndarray:
        """The derivative of the energy along the constraint, by each component of the field."""
        return np.asarray(_derivatives(self, jnp.asarray(field, float))[1])

    @double
    def hessian(self, field: Any) -> np.ndarray:
        """The matrix of its second derivatives `[points, points]`, of flattened fields."""
        return np.asarray(_hessian(self, jnp.asarray(field, float))).reshape(self.grid.size, -1)

    @double
    def value(self, field: Any) -> float:
        """The energy as a number."""
        return float(_derivatives(self, jnp.asarray(field, float))[0])


@jax.jit
def _derivatives(problem: Problem, field: Array) -> tuple[Array, Array]:
    return jax.value_and_grad(problem.energy)(field)


@jax.jit
def _hessian(problem: Problem, field: Array) -> Array:
    return jax.jacfwd(jax.grad(problem.energy))(field)
