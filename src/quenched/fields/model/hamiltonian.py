r"""The Hamiltonian of a particle on a grid, $H = T + V$: its lowest states, and linear equations with $H - E$.

$T = -\frac{\hbar^2}{2m}\Delta$ has the discrete Laplacian of the grid, with the ends of the wave function. States are
unit vectors of the points, so that $\varphi_i(y)^2$ is the probability of the cell of $y$.

Along one axis $H$ is tridiagonal: its lowest states are found by bisection, and $(H - E_i) x = b$ is solved by leaving
out the point where $\varphi_i$ is largest, which also opens a ring. On other grids no matrix is made: states come from
Davidson's method (`model/eigenstates`) and equations are solved by conjugate gradients on the complement of the lowest
states, where $H - E$ is positive. Both use the preconditioner $s (T + c)^{-1} s$, by fast transforms.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import scipy.linalg

from quenched.core import checks
from quenched.core.types import InputError
from quenched.fields.model.eigenstates import conjugate_gradients, davidson
from quenched.fields.model.grid import Dirichlet, Ends, Free, Grid, Periodic
from quenched.fields.model.modes import require_matrix
from quenched.fields.model.operators import Waves
from quenched.fields.model.smoothness import Laplacian

SMALL, MANY = 300, 4
"""Grids with fewer points, and those of which more than one state in so many is needed, are diagonalised as a whole."""
STIFF = 3.0
"""The constant of the preconditioner, in energies of the lowest states: the quickest of 0.3, 1, 3 and 10."""
EDGE, TOUCHES = 0.02, 5e-5
"""A state is bound if the outermost points, this share of an axis at either end, have less than the second share of the
probability: a particle that is free in the box has twice as much there."""


@dataclasses.dataclass(frozen=True)
class Hamiltonian:
    r"""What is known of a particle before its potential: $H = -\frac{\hbar^2}{2m}\Delta + V$.

    Attributes:
        mass: $m$, one number or one for each axis.
        hbar: $\hbar$.
        ends: of the wave function: `Periodic()`, `Free()`, or `Dirichlet()` for hard walls, where it vanishes one
            spacing outside. By default periodic on periodic axes; on others it vanishes as well, but the grid must be
            so wide that it does so by itself.

    Examples:
        >>> from quenched import fields
        >>> y = fields.Axis(-5, 5, points=101)
        >>> grid = fields.Grid(given=[y])
        >>> energies, states = fields.Hamiltonian().levels(grid, y.coordinates**2 / 2, 3)
        >>> energies.round(2).tolist()
        [0.5, 1.5, 2.5]
    """

    mass: float | tuple[float, ...] = 1.0
    hbar: float = 1.0
    ends: Ends | None = None

    def __post_init__(self) -> None:
        checks.positive("mass", checks.numbers("mass", self.mass))
        checks.positive("hbar", checks.number("hbar", self.hbar))
        if np.ndim(self.mass):
            object.__setattr__(self, "mass", tuple(np.ravel(self.mass).tolist()))
        if self.ends is not None and not isinstance(self.ends, (Periodic, Free, Dirichlet)):
            raise InputError("Argument `ends` must be Periodic(), Free() or Dirichlet(), or None, but "
                             f"{self.ends!r} was given.")  # fmt: skip
        if isinstance(self.ends, Dirichlet) and (self.ends.value or self.ends.upper):
            raise InputError("Argument `ends` must be Dirichlet() with the value 0 for a wave function, but "
                             f"{self.ends!r} was given.")  # fmt: skip

    def ends_of(self, axis: Any) -> Ends:
        """The ends of the wave function along an axis."""
        if self.ends is not None:
            return self.ends
        return axis.ends if isinstance(axis.ends, Periodic) else Dirichlet()

    @property
    def boxed(self) -> bool:
        """Whether the grid merely cuts off where the wave function should have vanished."""
        return self.ends is None

    def kinetic(self, grid: Grid) -> Waves:
        """$T$ as an operator."""
        return _kinetic(self, grid)

    def levels(self, grid: Grid, potential: Any, count: int = 1) -> tuple[np.ndarray, np.ndarray]:
        r"""The lowest levels in a potential.

        Args:
            grid: where it lives.
            potential: $V$, of the shape of the grid.
            count: how many levels.

        Returns:
            Energies `[count]` and wave functions `[count, ...]`, with $\int \varphi^2 = 1$.
        """
        checks.kind("grid", grid, Grid, "a Grid")
        count = checks.whole("count", count, least=1)
        if count > grid.size:
            raise InputError(f"Argument `count` must be at most {grid.size}, the points of the grid, but {count} was "
                             "given.")  # fmt: skip
        E, states = Particle(self, grid, grid.check("potential", potential)).lowest(count)
        return E.copy(), states.reshape(count, *grid.shape) / np.sqrt(grid.cell)


@functools.lru_cache(maxsize=16)
def _kinetic(hamiltonian: Hamiltonian, grid: Grid) -> Waves:
    if any(axis.tails is not None for axis in grid.axes):
        raise InputError("The grid of a potential must be a lattice, but one of its axes has `tails`.")
    masses = np.ravel(hamiltonian.mass)
    masses = np.repeat(masses, len(grid.axes)) if np.ndim(hamiltonian.mass) == 0 else masses
    if len(masses) != len(grid.axes):
        raise InputError(f"Argument `mass` must be one number or one for each of the {len(grid.axes)} axes, but it has "
                         f"{len(masses)}.")  # fmt: skip
    axes = [dataclasses.replace(axis, ends=hamiltonian.ends_of(axis), name=f"{i}") for i, axis in enumerate(grid.axes)]
    own = Grid(given=axes)
    total: Any = None
    for axis, mass in zip(axes, masses, strict=True):
        part = float(hamiltonian.hbar**2 / (2 * mass)) * Laplacian(own, axis)
        total = part if total is None else total + part
    return total


class Particle:
    """The Hamiltonian at one potential, with what was computed of it.

    Attributes:
        hamiltonian: mass and ends.
        grid: where the potential lives.
        potential: $V$, flat.
        kinetic: $T$.
        before: the same at a potential nearby, or None: its states are where the search begins, and states that move
            take as many steps.
    """

    def __init__(self, hamiltonian: Hamiltonian, grid: Grid, potential: np.ndarray, before: Particle | None = None):
        self.hamiltonian, self.grid = hamiltonian, grid
        self.potential = np.array(potential, dtype=np.float64).ravel()
        self.kinetic, self.guess = hamiltonian.kinetic(grid), None if before is None else before.states
        self.steps: dict[Any, np.ndarray] = {} if before is None else before.steps
        self.line = len(grid.axes) == 1
        self._known: tuple[np.ndarray, np.ndarray] = (np.zeros(0), np.zeros((0, grid.size)))

    @functools.cached_property
    def _bands(self) -> tuple[np.ndarray, float, bool]:
        """Along a line: the diagonal of $H$, what is beside it, and whether the ends meet."""
        axis, T = self.grid.axes[0], self.hamiltonian
        ends, mass = T.ends_of(axis), np.ravel(T.mass)[0]
        t = T.hbar**2 / (2 * mass * axis.spacing**2)
        diagonal = 2 * t + self.potential
        if isinstance(ends, Free):
            diagonal[[0, -1]] -= t
        return diagonal, -t, isinstance(ends, Periodic)

    @functools.cached_property
    def depth(self) -> float:
        """The least value of the potential."""
        return float(self.potential.min())

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """$H$ as a dense matrix."""
        require_matrix(self.grid.size, "fewer states need none")
        return self.kinetic.matrix + np.diag(self.potential)

    @property
    def states(self) -> np.ndarray:
        """The lowest states, as far as they are known `[k, points]`."""
        return self._known[1]

    def apply(self, states: np.ndarray) -> np.ndarray:
        """$H$ times flat fields `[..., points]`."""
        shaped = np.asarray(self.kinetic.apply(states.reshape(*states.shape[:-1], *self.grid.shape)))
        return shaped.reshape(states.shape) + self.potential * states

    def lowest(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The lowest energies `[count]` and states `[count, points]`."""
        E, states = self._known
        if len(E) < count:
            self._known = E, states = self._find(count)
        return E[:count], states[:count]

    def below(self, span: float) -> int:
        """How many levels there are up to so far above the lowest one."""
        if not self._tridiagonal:
            count = max(4, len(self._known[0]))
            while True:
                count = min(count, self.grid.size)
                E, _ = self.lowest(count)
                if E[-1] - E[0] > span or count == self.grid.size:
                    return max(1, int(np.sum(E - E[0] <= span)))
                count *= 2
        E, _ = self.lowest(1)
        if self._known[0][-1] - E[0] <= span and len(self._known[0]) < self.grid.size:
            diagonal, t, _ = self._bands
            slack = 1e-9 * (abs(E[0]) + abs(t))
            self._known = _ordered(*scipy.linalg.eigh_tridiagonal(
                diagonal, np.full(len(diagonal) - 1, t), select="v", select_range=(E[0] - slack, E[0] + span + slack)
            ))  # fmt: skip
            E = self._known[0]
        return max(1, int(np.sum(self._known[0] - E[0] <= span)))

    @property
    def _tridiagonal(self) -> bool:
        return self.line and not self._bands[2]

    def _find(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        size = self.grid.size
        if self._tridiagonal:
            diagonal, t, _ = self._bands
            some: Any = {"select": "i", "select_range": (0, count - 1)} if count < size else {}
            return _ordered(*scipy.linalg.eigh_tridiagonal(diagonal, np.full(size - 1, t), **some))
        if size <= SMALL or count * MANY > size:
            some = {"subset_by_index": (0, count - 1)} if count < size else {}
            return _ordered(*scipy.linalg.eigh(self.matrix, **some))
        guess = self._known[1] if len(self._known[0]) else self.guess
        return davidson(self.apply, self._precondition, self._start(guess, count), count, self.depth)

    def _start(self, guess: np.ndarray | None, count: int) -> np.ndarray:
        """Where Davidson's method begins: what is known, and smooth random fields among which no symmetry hides."""
        block = count + 2
        random = np.random.default_rng(0).normal(size=(block, self.grid.size))
        smooth = self._precondition(random, np.zeros(block))
        if guess is None or len(guess) == 0:
            return smooth
        smooth = smooth / np.linalg.norm(smooth, axis=1, keepdims=True)
        return np.concatenate([guess[:count], smooth[len(guess[:count]) :]])

    @functools.cached_property
    def _scale(self) -> tuple[float, np.ndarray]:
        """$c$ and $s$ of the preconditioner: the kinetic energy in the well, and less weight where walls are high."""
        T = np.asarray(self.kinetic.values).ravel()
        least = float(np.min(T[T > 0]))
        known = self._known[0] if len(self._known[0]) else np.sort(self.potential)[: max(1, self.grid.size // 10)]
        c = STIFF * max(float(np.mean(known)) - self.depth, least)
        return c, np.sqrt(c / (c + np.maximum(self.potential - self.depth - c, 0.0)))

    def _precondition(self, right: np.ndarray, energies: np.ndarray) -> np.ndarray:
        del energies
        c, s = self._scale
        inside = self.kinetic.in_modes(
            (s * right).reshape(-1, *self.grid.shape), lambda a: a / (self.kinetic.values + c)
        )
        return s * np.asarray(inside).reshape(right.shape)

    def resolve(self, which: np.ndarray, count: int, right: np.ndarray) -> np.ndarray:
        r"""$(E_i - H)^{-1} b_i$ on the complement of the lowest states. [lemm1999, eq. (336), erratum F336]

        Args:
            which: the levels $i$ `[m]`.
            count: how many states are left out; all levels $i$ are among them.
            right: $b_i$ `[m, ..., points]`.

        Returns:
            Solutions of the shape of `right`, orthogonal to the states.
        """
        shape, (E, states) = right.shape, self.lowest(count)
        b = self._beside(states, right.reshape(len(which), -1, shape[-1]))
        if not self.line:
            product = lambda x: self.apply(x) - E[which, None, None] * x  # noqa: E731
            precondition = lambda x: self._beside(states, self._precondition(x, E))  # noqa: E731
            found = conjugate_gradients(lambda x: self._beside(states, product(x)), precondition, b)
            return -self._beside(states, found).reshape(shape)
        diagonal, t, ring = self._bands
        n, x = len(diagonal), np.zeros_like(b)
        for i, level in enumerate(which):
            left_out = int(np.argmax(np.abs(states[level])))
            rest = np.roll(np.arange(n), -left_out - 1)[:-1]
            bands = np.empty((3, n - 1))
            bands[0], bands[2], bands[1] = t, t, diagonal[rest] - E[level]
            if not ring and 0 < left_out < n - 1:  # the ends do not meet
                bands[0, n - 1 - left_out] = bands[2, n - 2 - left_out] = 0.0
            x[i][:, rest] = scipy.linalg.solve_banded((1, 1), bands, b[i][:, rest].T, check_finite=False).T
        return -self._beside(states, x).reshape(shape)

    @staticmethod
    def _beside(states: np.ndarray, fields: np.ndarray) -> np.ndarray:
        """Fields without what lies along some states."""
        return fields - (fields @ states.T) @ states

    def check_bound(self, density: np.ndarray) -> None:
        """Check that a state does not touch the ends of a grid that should hold all of it."""
        weight = boundary_weight(self.hamiltonian, self.grid, density)
        if weight > TOUCHES:
            raise InputError("The state must be bound inside the grid, but it touches the ends, where it has "
                             f"{weight:.2g} of its probability: take a wider grid, or give `ends=Dirichlet()` for hard "
                             "walls.")  # fmt: skip


def boundary_weight(hamiltonian: Hamiltonian, grid: Grid, density: np.ndarray) -> float:
    """The probability of the outermost points of axes that should hold all of a state; zero where there are none."""
    p = np.asarray(density).reshape(-1, *grid.shape).mean(axis=0)
    total, inside = float(p.sum()), p
    for i, axis in enumerate(grid.axes):
        if hamiltonian.boxed and not isinstance(hamiltonian.ends_of(axis), Periodic):
            edge = max(1, round(EDGE * axis.points))
            inside = np.take(inside, range(edge, axis.points - edge), axis=i)
    return 1 - float(inside.sum()) / total


def _ordered(E: np.ndarray, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Energies, and states as rows."""
    return E, np.ascontiguousarray(states.T)
