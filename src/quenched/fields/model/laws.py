r"""The world and the student of an experiment: a true density, function or potential on a grid, and who estimates it.

For learning curves: how training and test error fall with the number of examples, at a given strength of the prior.
"""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks, random, verbs
from quenched.core.types import QUICK, Array, InputError, Key, Real, double, is_traced, real, reals
from quenched.fields.model.grid import Grid
from quenched.fields.model.hamiltonian import Hamiltonian, Particle
from quenched.fields.model.links import Direct, Link
from quenched.fields.model.priors import Prior
from quenched.fields.model.quantum import PositionData
from quenched.fields.model.shapes import Shape
from quenched.fields.model.states import Ground, State

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


class TruePotential(Law):
    r"""A quantum system in a potential, whose positions are measured.

    Attributes:
        grid: where it lives.
        potential: $V$, of the shape of the grid, or one that has a name: `Harmonic`, `DoubleWell`, `Morse`, `Cosine` or
            `TwoWells`.
        state: in which state it is measured; with several times, at each of them in turn.
        hamiltonian: mass and ends.

    Examples:
        >>> import jax
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(-6, 6, points=121)])
        >>> law = fields.TruePotential(grid, fields.DoubleWell(height=3.0, distance=4.0), fields.Canonical(0.5))
        >>> law.sample(jax.random.key(0), 200).shape
        (200, 1)
    """

    grid: Grid = eqx.field(static=True)
    potential: Any
    state: State
    hamiltonian: Hamiltonian = eqx.field(static=True)

    def __init__(self, grid: Grid, potential: Any, state: State | None = None, hamiltonian: Hamiltonian | None = None):
        self.grid, self.state = grid, Ground() if state is None else state
        self.hamiltonian = Hamiltonian() if hamiltonian is None else hamiltonian
        checks.kind("grid", grid, Grid, "a Grid")
        checks.kind("state", self.state, State, "a state such as Ground()")
        checks.kind("hamiltonian", self.hamiltonian, Hamiltonian, "a Hamiltonian")
        values = potential.values(grid, self.hamiltonian) if isinstance(potential, Shape) else potential
        if is_traced(values):
            self.potential = values
            return
        self.potential = np.array(grid.check("potential", values), dtype=np.float64)
        Particle(self.hamiltonian, grid, self.potential).check_bound(self.density)

    @property
    def density(self) -> np.ndarray:
        """The density of positions; one for each time of a state that moves."""
        return self.state.density(self.grid, self.potential, self.hamiltonian)

    @double
    def sample(self, key: Key, examples: int) -> np.ndarray:
        """Draw positions `[examples, dimensions]`, points of the grid; with several times, at each in turn."""
        flat = self.draw(random.uniforms(checks.key(key), checks.whole("examples", examples, least=1)))
        places = np.unravel_index(flat, self.grid.shape)
        return np.stack([axis.coordinates[i] for axis, i in zip(self.grid.axes, places, strict=True)], axis=1)

    def draw(self, uniform: np.ndarray) -> np.ndarray:
        """Flat places of measurements from uniform random numbers."""
        p = self.density.reshape(-1, self.grid.size)
        total = np.cumsum(p, axis=1)
        at = np.arange(len(uniform)) % len(p)
        return np.array(
            [np.searchsorted(total[t], u * total[t, -1], side="right") for t, u in zip(at, uniform, strict=True)]
        )

    def observe(self, positions: Any) -> PositionData:
        """Positions as they were drawn, with state and time."""
        n = len(positions)
        state = self.state if self.state.times is None else self.state.again(n)
        return PositionData(positions, state, self.hamiltonian)


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
    if isinstance(law, TrueDensity) == isinstance(rule.link, Direct):
        raise InputError("A `TrueFunction` or `TruePotential` must have the link `Direct`, a `TrueDensity` another, "
                         f"but {type(law).__name__} and {type(rule.link).__name__} were given.")  # fmt: skip


SCIENCE = verbs.Science(
    "fields",
    laws=((TrueDensity, TrueFunction, TruePotential), "a TrueDensity, TrueFunction or TruePotential"),
    rules=(MaximumPosterior, "MaximumPosterior(link, prior)"),
    reports={"training_error": (), "test_error": ()},  # minus the mean log-likelihood of the examples, and of new ones
    check=check_pair,
    labels={"examples": "number of examples"},
    command="quenched density DATA.csv --column COLUMN",
)
"""What the verbs of this science share."""
