r"""The world and the student of an experiment: a true density or function on a grid, and who estimates it.

For learning curves: how training and test error fall with the number of examples, at a given strength of the prior.
"""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks, verbs
from quenched.core.types import QUICK, Array, InputError, Key, Real, double, real, reals
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import Direct, Link
from quenched.fields.model.priors import Prior

NORMALISED = 1e-6
"""How far from 1 the integral of a true density may be; it is then made exact."""


class Law(eqx.Module):
    """A world on a grid."""

    grid: eqx.AbstractVar[Grid]


class TrueDensity(Law):
    r"""A density $p(y|x)$ on a grid; the given axes are drawn uniformly.

    Attributes:
        grid: where it lives.
        density: of the shape of the grid, positive, normalised over $y$.

    Examples:
        >>> import numpy as np
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 1, points=4)])
        >>> law = fields.TrueDensity(grid, np.full(4, 0.75))
    """

    grid: Grid = eqx.field(static=True)
    density: Any = eqx.field(converter=reals)

    def __check_init__(self):
        checks.kind("grid", self.grid, Grid, "a Grid")
        P = self.grid.check("density", self.density)
        total = np.sum(P * self.grid.weights, axis=self.grid.dims)
        if not self.grid.over or np.any(P < 0) or np.any(np.abs(total - 1) > NORMALISED):
            raise InputError("Argument `density` must not be negative and must have the integral 1 over each `over` "
                             f"axis, but its integral lies between {total.min():g} and {total.max():g}.")  # fmt: skip

    @double
    def sample(self, key: Key, examples: int) -> np.ndarray:
        """Draw points `[examples, dimensions]` of the grid."""
        flat = np.asarray(_draw(self, key, checks.whole("examples", examples, least=1)))
        places = np.unravel_index(flat, self.grid.shape)
        return np.stack([axis.coordinates[i] for axis, i in zip(self.grid.axes, places, strict=True)], axis=1)

    def draw(self, key: Key, examples: int) -> Array:
        """Flat places of points (pure JAX)."""
        with np.errstate(divide="ignore"):
            volume = self.grid.weights / self.grid.spacing
            logits = jnp.log(jnp.asarray(self.density, float) * volume).reshape(-1)
        return jax.random.categorical(key, logits, shape=(examples,))


class TrueFunction(Law):
    r"""A function $h(x)$ on a grid, seen with Gaussian noise at its points in turn.

    Attributes:
        grid: where it lives; all its axes are given.
        values: $h$, of the shape of the grid.
        variance: $\sigma^2$ of the noise.
    """

    grid: Grid = eqx.field(static=True)
    values: Any = eqx.field(converter=reals)
    variance: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.kind("grid", self.grid, Grid, "a Grid")
        self.grid.check("values", self.values)
        checks.positive("variance", self.variance)

    @double
    def sample(self, key: Key, examples: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw points `[examples, dimensions]`, the grid's one after the other, and values `[examples]`."""
        examples = checks.whole("examples", examples, least=1)
        flat, y = _draw(self, key, examples)
        places = np.unravel_index(np.asarray(flat), self.grid.shape)
        points = np.stack([axis.coordinates[i] for axis, i in zip(self.grid.axes, places, strict=True)], axis=1)
        return points, np.asarray(y)

    def draw(self, key: Key, examples: int) -> tuple[Array, Array]:
        """Flat places and values of examples (pure JAX)."""
        place = jnp.arange(examples) % self.grid.size
        h = jnp.asarray(self.values, float).reshape(-1)[place]
        return place, h + jnp.sqrt(jnp.asarray(self.variance, float)) * jax.random.normal(key, (examples,))


@functools.partial(jax.jit, static_argnums=2, compiler_options=QUICK)
def _draw(law: Any, key: Key, examples: int) -> Any:
    return law.draw(key, examples)


class Rule(eqx.Module):
    """A student on a grid."""


class MaximumPosterior(Rule):
    """The field of largest posterior probability.

    Attributes:
        link: what the field means.
        prior: what is known before.
        strength: a factor of the prior's energy.
    """

    link: Link
    prior: Prior
    strength: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.kind("link", self.link, Link, "a link such as LogDensity(grid)")
        checks.kind("prior", self.prior, Prior, "a prior such as Gaussian(Laplacian(grid))")
        checks.positive("strength", self.strength)
        if self.prior.grid != self.link.grid:
            raise InputError("Prior and link must live on one grid, but they have different ones.")


def check_pair(law: Law, rule: MaximumPosterior) -> None:
    """Check that the rule can learn in this world."""
    if law.grid != rule.link.grid:
        raise InputError("Law and rule must live on one grid, but they have different ones.")
    if isinstance(law, TrueFunction) != isinstance(rule.link, Direct):
        raise InputError("A `TrueFunction` must be learned with the link `Direct`, and a `TrueDensity` with another, "
                         f"but {type(law).__name__} and {type(rule.link).__name__} were given.")  # fmt: skip


SCIENCE = verbs.Science(
    "fields",
    laws=((TrueDensity, TrueFunction), "a TrueDensity or TrueFunction"),
    rules=(MaximumPosterior, "MaximumPosterior(link, prior)"),
    reports={"training_error": (), "test_error": ()},  # minus the mean log-likelihood of the examples, and of new ones
    check=check_pair,
    labels={"examples": "number of examples"},
    command="quenched density DATA.csv --column COLUMN",
)
"""What the verbs of this science share."""
