r"""Measurements of a quantum system, put on a grid: their energy as a function of the potential.

On the host it has its derivatives in closed form (`model/responses`), without any matrix. `energy` is the same by one
diagonalisation in JAX, for moderate grids.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import Array, InputError
from quenched.fields.model.eigenstates import UnresolvedError
from quenched.fields.model.expansion import Curvature
from quenched.fields.model.grid import Grid
from quenched.fields.model.hamiltonian import Hamiltonian, Particle
from quenched.fields.model.likelihoods import Likelihood
from quenched.fields.model.links import Direct, Link
from quenched.fields.model.modes import Modes, require_matrix
from quenched.fields.model.observables import Counted, Observable, Positions
from quenched.fields.model.responses import LevelResponse, fixed
from quenched.fields.model.states import DegenerateError, State, near_of

HARDLY = 1e-24
"""A probability below this is known from rounding only: a potential under which a measurement has one is left alone."""
TOGETHER = 4e6
"""Numbers in one array while a matrix of second derivatives is computed."""
APART = 1e-10
"""Eigenvalues closer than this share of the largest are degenerate: their vectors do not turn into each other."""


class Memory:
    """The states of the potential that was looked at last: where the search for those of the next begins."""

    def __init__(self) -> None:
        self.last: dict[Hamiltonian, Particle] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Memory)

    def __hash__(self) -> int:
        return 0

    def particle(self, hamiltonian: Hamiltonian, grid: Grid, field: np.ndarray) -> Particle:
        """The Hamiltonian at a field, with what is known of it."""
        V, last = np.asarray(field, dtype=np.float64).ravel(), self.last.get(hamiltonian)
        if last is not None and last.grid == grid and np.array_equal(last.potential, V):
            return last
        before = last if last is not None and last.grid == grid else None
        found = self.last[hamiltonian] = Particle(hamiltonian, grid, V, before)
        return found


class QuantumCurvature(Curvature):
    """Second derivatives by products.

    Attributes:
        product: of flat fields `[B, points]`.
        size: points of the grid.
        levels: how many levels are used.
    """

    def __init__(self, product: Any, size: int, levels: int):
        self.product, self.size, self.levels = product, size, levels

    def apply(self, fields: np.ndarray) -> np.ndarray:
        """In batches."""
        flat = np.asarray(fields, dtype=np.float64).reshape(-1, self.size)
        step = max(1, int(TOGETHER / (self.size * self.levels)))
        parts = [self.product(np.ascontiguousarray(flat[i : i + step])) for i in range(0, len(flat), step)]
        return np.concatenate(parts).reshape(np.shape(fields))

    def matrix(self) -> np.ndarray:
        """By products with all unit fields."""
        require_matrix(self.size, "NewtonCG needs none")
        H = self.apply(np.eye(self.size))
        return (H + H.T) / 2

    def project(self, modes: Modes) -> np.ndarray:
        """By products with the modes."""
        H = self.apply(np.ascontiguousarray(modes.matrix.T)) @ modes.matrix
        return (H + H.T) / 2


Expanded = tuple[float, np.ndarray, Any, int]
"""Energy, slope, products with the second derivatives, and how many levels are used."""


class QuantumData(Likelihood):
    """Measurements of a quantum system on a grid."""

    links: ClassVar[tuple[type[Link], ...]] = (Direct,)
    on_host: ClassVar[bool] = True

    @abc.abstractmethod
    def look(self, field: np.ndarray) -> Expanded:
        """The energy at a potential and its derivatives.

        Raises:
            DegenerateError: where a state is not unique or a measurement hardly possible.
        """

    @abc.abstractmethod
    def carried(self, grid: Grid, counted: Counted) -> QuantumData | None:
        """The same on another grid."""

    @abc.abstractmethod
    def with_memory(self, memory: Memory) -> QuantumData:
        """The same, sharing states with others."""

    def prepared(self: Any, grid: Grid) -> QuantumData:
        """It is."""
        if self.grid != grid:
            raise InputError("Measurements that were put on a grid must be used on it, but this one is another.")
        return self

    def expand(self, link: Link, field: np.ndarray) -> tuple[float, np.ndarray, Curvature]:
        """Infinite where a state is not unique or a measurement hardly possible."""
        del link
        try:
            energy, slope, product, levels = self.look(field)
        except UnresolvedError:
            energy, slope, product, levels = np.inf, np.full(field.size, np.nan), lambda v: np.full(v.shape, np.nan), 1
        return energy, slope.reshape(field.shape), QuantumCurvature(product, field.size, levels)

    def check_field(self, field: np.ndarray) -> None:
        """Check that every state is unique there and every measurement possible."""
        self.look(field)

    def levels(self: Any, hamiltonian: Hamiltonian, field: Array) -> tuple[Array, Array]:
        """All energies and states `[m, points]`, in JAX."""
        require_matrix(self.grid.size, "NewtonCG needs none")
        E, U = eigenstates(jnp.asarray(hamiltonian.kinetic(self.grid).matrix) + jnp.diag(field.reshape(-1)))
        return E, U.T


class Outcomes(QuantumData):
    """Outcomes of one observable in one state.

    Attributes:
        grid: where the potential lives.
        observable: what was measured.
        counts: how often each outcome was seen `[times, outcomes]`.
        state: in which state.
        hamiltonian: mass and ends.
        memory: of states.
    """

    grid: Grid = eqx.field(static=True)
    observable: Observable = eqx.field(static=True)
    counts: Any
    state: State
    hamiltonian: Hamiltonian = eqx.field(static=True)
    memory: Memory = eqx.field(static=True, default_factory=Memory)

    @property
    def total(self) -> float:
        """How many measurements there are."""
        return float(np.sum(self.counts))

    @property
    def shifts(self) -> bool:
        """They do not see a constant in the potential."""
        return True

    def with_memory(self, memory: Memory) -> Outcomes:
        """With another memory."""
        return dataclasses.replace(self, memory=memory)

    def carried(self, grid: Grid, counted: Counted) -> Outcomes | None:
        """With the counts shared out."""
        found = self.observable.carried(grid, np.asarray(self.counts), counted)
        if found is None:
            return None
        state = self.state.carried(self.grid, grid)
        return None if state is None else Outcomes(grid, *found, state, self.hamiltonian)

    def look(self, field: np.ndarray) -> Expanded:
        """By the response of the state."""
        N = np.asarray(self.counts)
        response = self.state.respond(self.memory.particle(self.hamiltonian, self.grid, field), self.observable)
        here, p = N > 0, response.chance
        if np.any(p[here] < HARDLY):
            raise DegenerateError("Every measurement must be possible, but at the start one hardly is: "
                                  "start from a wider potential.")  # fmt: skip
        safe = np.where(here, p, 1.0)
        energy, pulls = -float(np.sum(N * np.log(safe / self.observable.volume))), -N / safe

        def product(v: np.ndarray) -> np.ndarray:
            return response.bend(pulls, v, N / safe**2 * response.move(v))

        levels = len(response.states) if isinstance(response, LevelResponse) else 4
        return energy, response.pull(pulls), product, levels

    def energy(self, link: Link, field: Array) -> Array:
        """By all levels. Derivatives in a canonical ensemble need levels that are apart, unlike those of `expand`."""
        del link
        N = jnp.asarray(self.counts)
        bare = Particle(self.hamiltonian, self.grid, np.zeros(self.grid.shape))
        p = self.state.chances(bare, *self.levels(self.hamiltonian, field), self.observable.amplitude)
        return -jnp.sum(jnp.where(N > 0, N * jnp.log(jnp.where(N > 0, p, 1.0) / self.observable.volume), 0.0))

    def density(self, field: np.ndarray) -> np.ndarray:
        """The density of positions at a potential, of the shape of the grid; one for each time of a moving state."""
        return self.state.density(self.grid, field, self.hamiltonian)

    def check_bound(self, field: np.ndarray) -> None:
        """Check that the state does not touch the ends of a grid that should hold all of it."""
        particle = self.memory.particle(self.hamiltonian, self.grid, field)
        particle.check_bound(self.state.respond(particle, Positions(self.grid)).density)


class PlacedLevels(QuantumData):
    r"""Measured levels, $\tfrac12 \sum_k (E_k - \epsilon_k)^2/\sigma_k^2$ and a constant.

    Attributes:
        grid: where the potential lives.
        energies: $\\epsilon_k$.
        errors: $\\sigma_k$.
        which: which levels they are.
        hamiltonian: mass and ends.
        memory: of states.
    """

    grid: Grid = eqx.field(static=True)
    energies: Any
    errors: Any
    which: tuple[int, ...] = eqx.field(static=True)
    hamiltonian: Hamiltonian = eqx.field(static=True)
    memory: Memory = eqx.field(static=True, default_factory=Memory)

    @property
    def total(self) -> float:
        """How many energies there are."""
        return float(len(self.which))

    def with_memory(self, memory: Memory) -> PlacedLevels:
        """With another memory."""
        return dataclasses.replace(self, memory=memory)

    def carried(self, grid: Grid, counted: Counted) -> PlacedLevels | None:
        """The same levels, if there are so many."""
        del counted
        return dataclasses.replace(self, grid=grid, memory=Memory()) if max(self.which) + 1 < grid.size else None

    def look(self, field: np.ndarray) -> Expanded:
        r"""Its slope is the density of levels with the weights $(E_k - \epsilon_k)/\sigma_k^2$."""
        particle, count = self.memory.particle(self.hamiltonian, self.grid, field), max(self.which) + 1
        E, states = particle.lowest(count + 1)
        which, v, near = np.asarray(self.which), np.asarray(self.errors) ** 2, near_of(particle, E)
        off = E[which] - np.asarray(self.energies)
        pull, stiff = np.bincount(which, off / v, count), np.bincount(which, 1 / v, count)
        seen = np.append(stiff > 0, False)
        if np.any((np.diff(E) <= near) & (seen[1:] | seen[:-1])):
            raise DegenerateError("Levels that were measured must be apart, but two of them are degenerate.")
        response = LevelResponse(particle, fixed(E[:count], pull, near), Positions(self.grid))
        densities = states[:count] ** 2

        def product(v: np.ndarray) -> np.ndarray:
            return response.move(v)[:, 0] + (v @ densities.T * stiff) @ densities

        return 0.5 * float(np.sum(off**2 / v + np.log(2 * np.pi * v))), response.density[0], product, count

    def energy(self, link: Link, field: Array) -> Array:
        """By all levels."""
        del link
        E, _ = self.levels(self.hamiltonian, field)
        v = jnp.square(jnp.asarray(self.errors))
        return 0.5 * jnp.sum(
            (E[np.asarray(self.which)] - jnp.asarray(self.energies)) ** 2 / v + jnp.log(2 * jnp.pi * v)
        )


class Several(QuantumData):
    """Independent measurements of several kinds: their energies add.

    Attributes:
        parts: each on the grid.
    """

    parts: tuple[Any, ...]

    @property
    def grid(self) -> Grid:
        """That of the parts."""
        return self.parts[0].grid

    @property
    def total(self) -> float:
        """Of all parts."""
        return sum(part.total for part in self.parts)

    @property
    def shifts(self) -> bool:
        """Unless one sees a constant."""
        return all(part.shifts for part in self.parts)

    def with_memory(self, memory: Memory) -> Several:
        """With another memory."""
        return Several(tuple(part.with_memory(memory) for part in self.parts))

    def carried(self, grid: Grid, counted: Counted) -> Several | None:
        """Each of them."""
        parts = [part.carried(grid, counted) for part in self.parts]
        found = tuple(part for part in parts if part is not None)
        return Several(found).with_memory(Memory()) if len(found) == len(parts) else None

    def look(self, field: np.ndarray) -> Expanded:
        """The sums."""
        energies, slopes, products, levels = zip(*(part.look(field) for part in self.parts), strict=True)
        return sum(energies), np.sum(slopes, axis=0), lambda v: sum(one(v) for one in products), max(levels)

    def energy(self, link: Link, field: Array) -> Array:
        """The sum."""
        return jnp.sum(jnp.stack([part.energy(link, field) for part in self.parts]))


@jax.custom_jvp
def eigenstates(H: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric matrix, whose derivatives do not turn those that meet."""
    E, U = jnp.linalg.eigh(H)
    return E, U


@eigenstates.defjvp
def _(primals: Any, tangents: Any) -> Any:
    E, U = eigenstates(primals[0])
    A = U.T @ tangents[0] @ U
    gap = E[None, :] - E[:, None]
    meet = jnp.abs(gap) <= APART * jnp.max(jnp.abs(E))
    return (E, U), (jnp.diagonal(A), U @ (A * jnp.where(meet, 0.0, 1 / jnp.where(meet, 1.0, gap))))
