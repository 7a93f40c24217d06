r"""In which state a quantum system is when it is measured: what the density operator $\rho$ is. [lemm1999, table 4]"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, Real, real, reals
from quenched.fields.model.grid import Grid
from quenched.fields.model.hamiltonian import Hamiltonian, Particle
from quenched.fields.model.observables import Observable, Positions
from quenched.fields.model.responses import LevelResponse, MixedResponse, Response, canonical, fixed

MEET = 1e-8
"""Two levels are degenerate if they are closer than this share of the span of energies."""
LOST = 28.0
"""Levels so many temperatures above the lowest have a weight of less than 1e-12 and are left out."""


class DegenerateError(InputError):
    """A state that is not unique, because two levels meet."""


class State(eqx.Module):
    """In which state a system is prepared before each measurement."""

    @property
    def times(self) -> np.ndarray | None:
        """When rows are measured `[n]`; None for a state that does not move."""
        return None

    @property
    def epochs(self) -> tuple[np.ndarray, np.ndarray]:
        """The different times, ascending, and which of them each row has."""
        times, rows = np.unique(np.asarray([] if self.times is None else self.times), return_inverse=True)
        return times, rows

    @abc.abstractmethod
    def respond(self, particle: Particle, observable: Observable) -> Response:
        """Probabilities of outcomes and their derivatives, on the host."""

    @abc.abstractmethod
    def chances(self, energies: Array, states: Array, amplitudes: Any) -> Array:
        """The probabilities `[times, outcomes]` from all energies and states `[m, points]`, in JAX."""

    def check(self, grid: Grid) -> None:
        """Check that the state fits a grid."""

    def carried(self, old: Grid, new: Grid) -> State:
        """The same state on another grid of the same intervals."""
        del old, new
        return self

    def density(self, grid: Grid, potential: Any, hamiltonian: Hamiltonian | None = None) -> np.ndarray:
        r"""The density of positions, $\langle y | \rho | y \rangle$.

        Args:
            grid: where the potential lives.
            potential: $V$, of the shape of the grid.
            hamiltonian: mass and ends; by default `Hamiltonian()`.

        Returns:
            The density on the grid; one for each time, `[times, ...]`, of a state that moves.
        """
        checks.kind("grid", grid, Grid, "a Grid")
        particle = Particle(hamiltonian or Hamiltonian(), grid, grid.check("potential", potential))
        self.check(grid)
        p = self.respond(particle, Positions(grid)).density / grid.cell
        return p.reshape(grid.shape) if self.times is None else p.reshape(-1, *grid.shape)


class Levels(State):
    """A state that does not move: weighted levels, $\\rho = \\sum_i f_i\\, \\varphi_i \\varphi_i^T$."""

    @abc.abstractmethod
    def shares(self, energies: Array) -> Array:
        """The weights of levels with these energies, in JAX."""

    def chances(self, energies: Array, states: Array, amplitudes: Any) -> Array:
        r"""$\sum_i f_i |c_i|^2$."""
        return (self.shares(energies) @ jnp.abs(amplitudes(states)) ** 2)[None]


class Stationary(Levels):
    r"""One level, $\rho = \varphi_i \varphi_i^T$.

    Attributes:
        level: $i$, from 0.
    """

    level: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        checks.whole("level", self.level, least=0)

    def check(self, grid: Grid) -> None:
        """There must be such a level, and one above."""
        if self.level + 1 >= grid.size:
            raise InputError(f"Argument `level` must be below {grid.size - 1} on a grid of {grid.size} points, but "
                             f"{self.level} was given.")  # fmt: skip

    def shares(self, energies: Array) -> Array:
        """One."""
        return jnp.zeros_like(energies).at[self.level].set(1.0)

    def respond(self, particle: Particle, observable: Observable) -> Response:
        """With the levels below, and apart from the one above."""
        E, _ = particle.lowest(self.level + 2)
        check_apart(particle, E, np.eye(self.level + 2)[self.level])
        E = E[: self.level + 1]
        return LevelResponse(particle, fixed(E, np.eye(len(E))[-1], near_of(particle, E)), observable)


class Ground(Stationary):
    r"""The ground state, $\rho = \varphi_0 \varphi_0^T$. [lemm1999, eq. (332)]

    Examples:
        >>> from quenched import fields
        >>> y = fields.Axis(-5, 5, points=101)
        >>> density = fields.Ground().density(fields.Grid(given=[y]), y.coordinates**2 / 2)
        >>> round(float(density.max()), 2)
        0.56
    """

    def __init__(self):
        super().__init__(level=0)


class Weighted(Levels):
    r"""Levels with given weights, $\rho = \sum_i p_i\, \varphi_i \varphi_i^T$: a stationary mixture.

    Attributes:
        weights: $p_i$ of the lowest levels, which sum to 1.
    """

    weights: Any = eqx.field(converter=reals)

    def __check_init__(self):
        check_weights(self.weights)

    def check(self, grid: Grid) -> None:
        """There must be so many levels."""
        if len(self.weights) >= grid.size:
            raise InputError(f"Argument `weights` must be of less than {grid.size} levels on this grid, but there are "
                             f"{len(self.weights)}.")  # fmt: skip

    def shares(self, energies: Array) -> Array:
        """They."""
        return jnp.zeros_like(energies).at[: len(self.weights)].set(jnp.asarray(self.weights))

    def respond(self, particle: Particle, observable: Observable) -> Response:
        """Apart from the level above; levels of equal weight may meet."""
        f = np.asarray(self.weights)
        E, _ = particle.lowest(len(f) + 1)
        check_apart(particle, E, np.append(f, 0.0))
        return LevelResponse(particle, fixed(E[:-1], f, near_of(particle, E)), observable)


class Canonical(Levels):
    r"""Thermal equilibrium, $\rho = e^{-H/T}/\mathrm{Tr}\, e^{-H/T}$, at $T$ in units of energy.

    Only levels are needed that have weight.

    Attributes:
        temperature: $T$.
    """

    temperature: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("temperature", self.temperature)

    def shares(self, energies: Array) -> Array:
        r"""$e^{-E/T}/Z$."""
        e = jnp.exp(-(energies - energies[0]) / self.temperature)
        return e / jnp.sum(e)

    def respond(self, particle: Particle, observable: Observable) -> Response:
        """With as many levels as the temperature needs."""
        T = float(self.temperature)
        E, _ = particle.lowest(particle.below(LOST * T))
        return LevelResponse(particle, canonical(E, T), observable)


class Mixed(State):
    r"""A mixture of states, $\rho = \sum_k p_k \rho_k$.

    Attributes:
        weights: $p_k$, which sum to 1.
        states: $\rho_k$; either none of them moves, or all are measured at the same times.
    """

    weights: Any = eqx.field(converter=reals)
    states: tuple[State, ...]

    def __init__(self, weights: Any, states: Any):
        if not isinstance(states, (list, tuple)) or not states:
            raise InputError(f"Argument `states` must be a list of states such as Ground(), but {states!r} was given.")
        for state in states:
            checks.kind("states", state, State, "states such as Ground()")
        check_weights(weights)
        self.weights, self.states = reals(weights), tuple(states)
        if len(self.weights) != len(self.states):
            raise InputError(f"Argument `weights` must be one for each of the {len(self.states)} states, but there are "
                             f"{len(self.weights)}.")  # fmt: skip
        first, *rest = (state.times for state in self.states)
        if any((one is None) != (first is None) or not np.array_equal(one, first) for one in rest if one is not first):
            raise InputError("Argument `states` must be measured at the same times, but they are not.")

    @property
    def times(self) -> np.ndarray | None:
        """Those of the states."""
        return self.states[0].times

    def check(self, grid: Grid) -> None:
        """Each of them."""
        for state in self.states:
            state.check(grid)

    def chances(self, energies: Array, states: Array, amplitudes: Any) -> Array:
        """The sum."""
        parts = [one.chances(energies, states, amplitudes) for one in self.states]
        return jnp.tensordot(jnp.asarray(self.weights), jnp.stack(parts), axes=1)

    def respond(self, particle: Particle, observable: Observable) -> Response:
        """The sum."""
        parts = [one.respond(particle, observable) for one in self.states]
        return MixedResponse(np.asarray(self.weights), parts)


def check_weights(weights: Any) -> None:
    """Check that weights are probabilities."""
    weights = checks.numbers("weights", weights)
    checks.not_negative("weights", weights)
    if np.ndim(weights) != 1 or abs(float(np.sum(weights)) - 1) > 1e-9:
        raise InputError(f"Argument `weights` must be numbers that are not negative and sum to 1, but {weights!r} was "
                         "given.")  # fmt: skip


def near_of(particle: Particle, E: np.ndarray) -> float:
    """The distance of levels that cannot be told apart."""
    return MEET * max(float(E[-1]) - particle.depth, np.finfo(float).tiny)


def check_apart(particle: Particle, E: np.ndarray, f: np.ndarray) -> None:
    """Check that levels of different weight do not meet."""
    meet = np.flatnonzero((np.diff(E) <= near_of(particle, E)) & (np.diff(f) != 0))
    if len(meet):
        i = int(meet[0])
        raise DegenerateError(f"The state must be unique, but the levels {i} and {i + 1} are degenerate: both have the "
                              f"energy {E[i]:.6g}.")  # fmt: skip
