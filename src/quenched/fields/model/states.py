r"""In which state a quantum system is when it is measured: what the density operator $\rho$ is. [lemm1999, table 4]"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, Real, real, reals
from quenched.fields.model.eigenstates import UnresolvedError
from quenched.fields.model.evolution import Motion, MovingResponse, plan
from quenched.fields.model.grid import Grid
from quenched.fields.model.hamiltonian import Hamiltonian, Particle
from quenched.fields.model.observables import Observable, Positions
from quenched.fields.model.responses import LevelResponse, MixedResponse, Response, canonical, fixed

MEET = 1e-8
"""Two levels are degenerate if they are closer than this share of the span of energies."""
LOST = 23.0
"""Levels so many temperatures above the lowest have a share of 1e-10 of its weight and are left out."""


class DegenerateError(UnresolvedError):
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
    def chances(self, particle: Particle, energies: Array, states: Array, amplitudes: Any) -> Array:
        """The probabilities `[times, outcomes]` from all energies and states `[m, points]`, in JAX.

        Args:
            particle: mass, ends and grid; its potential is not looked at.
            energies: of all levels.
            states: their states.
            amplitudes: takes states to the amplitudes of outcomes.
        """

    def check(self, grid: Grid) -> None:
        """Check that the state fits a grid."""

    def again(self, count: int) -> State:
        """The same state, measured at its times in turn until there are so many measurements."""
        del count
        return self

    def carried(self, old: Grid, new: Grid) -> State | None:
        """The same state on another grid of the same intervals; None if it is not known there."""
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

    def chances(self, particle: Particle, energies: Array, states: Array, amplitudes: Any) -> Array:
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
        times = [None if state.times is None else np.asarray(state.times).tolist() for state in self.states]
        if any(one != times[0] for one in times):
            raise InputError("Argument `states` must be measured at the same times, but they are not.")

    @property
    def times(self) -> np.ndarray | None:
        """Those of the states."""
        return self.states[0].times

    def check(self, grid: Grid) -> None:
        """Each of them."""
        for state in self.states:
            state.check(grid)

    def again(self, count: int) -> State:
        """Each of them."""
        return Mixed(self.weights, tuple(state.again(count) for state in self.states))

    def chances(self, particle: Particle, energies: Array, states: Array, amplitudes: Any) -> Array:
        """The sum."""
        parts = [one.chances(particle, energies, states, amplitudes) for one in self.states]
        return jnp.tensordot(jnp.asarray(self.weights), jnp.stack(parts), axes=1)

    def respond(self, particle: Particle, observable: Observable) -> Response:
        """The sum."""
        parts = [one.respond(particle, observable) for one in self.states]
        return MixedResponse(np.asarray(self.weights), parts)


class Packet(eqx.Module):
    r"""A Gaussian wave packet, $\psi(y) \propto e^{-(y - c)^2/4\sigma^2 + i k y/\hbar}$ along each axis.

    Attributes:
        centre: $c$, one number or one for each axis.
        width: $\sigma$, the standard deviation of the position (not its variance).
        momentum: $k$.
    """

    centre: Any = eqx.field(converter=reals)
    width: Any = eqx.field(converter=reals, default=1.0)
    momentum: Any = eqx.field(converter=reals, default=0.0)

    def __check_init__(self):
        checks.finite("centre", self.centre)
        checks.positive("width", self.width)
        checks.finite("momentum", self.momentum)

    def on(self, grid: Grid, hbar: float) -> np.ndarray:
        """Its values on a grid, flat."""
        found = np.ones(1, complex)
        for i, axis in enumerate(grid.axes):
            try:
                c, s, k = (np.broadcast_to(one, len(grid.axes))[i] for one in (self.centre, self.width, self.momentum))
            except ValueError:
                raise InputError(f"A packet must have one number or one for each of the {len(grid.axes)} axes, but it "
                                 "has others.") from None  # fmt: skip
            y = axis.coordinates
            found = np.multiply.outer(found, np.exp(-((y - c) ** 2) / (4 * s**2) + 1j * k * y / hbar))
        return found.ravel()


class Evolving(State):
    r"""A pure state that moves, $\psi(t) = e^{-iHt/\hbar}\, \psi(0)$.

    At time 0 it is any pure state, and the potential is not seen; `Mixed` makes mixtures of several.

    Attributes:
        initial: $\psi(0)$: a `Packet`, or real or complex values on the grid, which are normalised.
        times: $t$ of each measurement, of which only different ones cost.

    Examples:
        >>> from quenched import fields
        >>> start = fields.Packet(centre=-1.0, width=0.5)
        >>> data = fields.PositionData([-0.9, 0.2, 0.4], fields.Evolving(start, times=[0.5, 1.0, 1.0]))
    """

    initial: Any
    moments: Any

    def __init__(self, initial: Any, times: Any):
        if not isinstance(initial, Packet):
            try:
                initial = np.asarray(initial, dtype=np.complex128)
            except (TypeError, ValueError):
                raise InputError("Argument `initial` must be a Packet or an array of numbers, but "
                                 f"{initial!r} was given.") from None  # fmt: skip
            if not np.all(np.isfinite(initial)) or not np.any(initial):
                raise InputError("Argument `initial` must be finite and not zero everywhere, but it is not.")
        found = np.atleast_1d(checks.numbers("times", times))
        checks.not_negative("times", found)
        if found.ndim != 1 or found.size == 0:
            raise InputError(f"Argument `times` must be a list of numbers, but its shape is {found.shape}.")
        self.initial, self.moments = initial, found

    @property
    def times(self) -> np.ndarray:
        """When rows are measured."""
        return np.asarray(self.moments)

    def again(self, count: int) -> State:
        """At different times in turn."""
        return Evolving(self.initial, np.resize(self.epochs[0], count))

    def wave(self, particle: Particle) -> np.ndarray:
        r"""$\psi(0)$ as a flat unit vector."""
        packet = isinstance(self.initial, Packet)
        psi = self.initial.on(particle.grid, particle.hamiltonian.hbar) if packet else np.ravel(self.initial)
        return psi / np.linalg.norm(psi)

    def check(self, grid: Grid) -> None:
        """Values must be those of the grid."""
        if isinstance(self.initial, Packet):
            self.initial.on(grid, 1.0)
        elif np.shape(self.initial) != grid.shape:
            raise InputError(f"Argument `initial` must have the shape {grid.shape} of the grid, but it has "
                             f"{np.shape(self.initial)}.")  # fmt: skip

    def carried(self, old: Grid, new: Grid) -> State | None:
        """A packet is known everywhere."""
        return self if isinstance(self.initial, Packet) or old.shape == new.shape else None

    def chances(self, particle: Particle, energies: Array, states: Array, amplitudes: Any) -> Array:
        """By all levels: another way than the steps."""
        t = jnp.asarray(self.epochs[0]) / particle.hamiltonian.hbar
        share = states @ jnp.asarray(self.wave(particle))
        psi = (jnp.exp(-1j * t[:, None] * energies) * share) @ states
        return jnp.abs(amplitudes(psi)) ** 2

    def respond(self, particle: Particle, observable: Observable) -> Response:
        """By steps in time, as many as were needed at the first potential."""
        psi, spans = self.wave(particle), np.diff(self.epochs[0], prepend=0.0)
        key = (psi.tobytes(), spans.tobytes())
        if key not in particle.steps:
            particle.steps[key] = plan(particle, psi, spans)
        return MovingResponse(Motion(particle, spans, particle.steps[key]), psi, observable)


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
