r"""What was measured on a quantum system whose potential is unknown. [lemm1999, section 3.9]

The field is the potential $V$, with the link `Direct`, and
$$E = -\sum_i \ln p(y_i | V), \qquad p(y|V) = \langle y | \rho(V) | y \rangle ,$$
a nonlocal function of $V$. Positions and momenta do not change under $V \to V + c$: the constant is left to the prior,
or undetermined. Energies of levels determine it.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, reals
from quenched.fields.model.grid import Grid
from quenched.fields.model.hamiltonian import Hamiltonian
from quenched.fields.model.likelihoods import Likelihood
from quenched.fields.model.links import Direct, Link
from quenched.fields.model.observables import Momenta, Observable, Positions
from quenched.fields.model.outcomes import Memory, Outcomes, PlacedLevels, QuantumData, Several
from quenched.fields.model.states import Ground, State


class Measurements(Likelihood):
    """Measurements of a quantum system, not yet on a grid."""

    links: ClassVar[tuple[type[Link], ...]] = (Direct,)

    @abc.abstractmethod
    def prepared(self, grid: Grid) -> QuantumData:
        """Put on a grid."""

    def energy(self, link: Link, field: Array) -> Array:
        """Once they are on a grid."""
        return self.prepared(link.grid).energy(link, field)


class StateData(Measurements):
    """Outcomes of an observable in a state."""

    def _check(self: Any, name: str, rows: Any) -> None:
        checks.finite(name, rows)
        if np.size(rows) == 0 or np.ndim(rows) not in (1, 2):
            raise InputError(f"Argument `{name}` must have at least one measurement in a row, but its shape is "
                             f"{np.shape(rows)}.")  # fmt: skip
        checks.kind("state", self.state, State, "a state such as Ground()")
        checks.kind("hamiltonian", self.hamiltonian, Hamiltonian, "a Hamiltonian")
        if self.weights is not None:
            checks.not_negative("weights", self.weights)
            if np.shape(self.weights) != np.shape(rows)[:1] or not np.any(np.asarray(self.weights) > 0):
                raise InputError("Argument `weights` must be one number for each measurement, some of them positive, "
                                 "but it is not.")  # fmt: skip
        if self.state.times is not None and len(self.state.times) != np.shape(rows)[0]:
            raise InputError(f"Argument `times` of the state must be one for each of the {np.shape(rows)[0]} "
                             f"measurements, but there are {len(self.state.times)}.")  # fmt: skip

    def _place(self: Any, grid: Grid, rows: Any, observable: Observable, places: Any, size: int) -> Outcomes:
        self.state.check(grid)
        self.hamiltonian.kinetic(grid)
        w = np.ones(len(rows)) if self.weights is None else np.asarray(self.weights)
        epochs = np.zeros(len(rows), int) if self.state.times is None else self.state.epochs[1]
        count = epochs.max() + 1
        counts = np.bincount(epochs * size + places, w, count * size).reshape(count, size)
        return Outcomes(grid, observable, counts, self.state, self.hamiltonian)


class PositionData(StateData):
    r"""Measured positions of a particle, $p(y|V) = \langle y|\rho|y\rangle$. [lemm1999, eq. (330)]

    Attributes:
        positions: `[n, dimensions]`; each counts for the point of the grid nearest to it.
        state: `Ground()`, `Stationary(level)`, `Weighted(weights)`, `Canonical(temperature)`, `Mixed(weights, states)`
            or `Evolving(initial, times)` with a time for each position.
        hamiltonian: mass and ends.
        weights: how often each counts; by default once.

    Examples:
        >>> from quenched import fields
        >>> y = fields.Axis(-4, 4, points=41)
        >>> grid = fields.Grid(given=[y])
        >>> data = fields.PositionData([-1.0, -0.2, 0.1, 0.9], fields.Ground())
        >>> smooth = fields.Gaussian(0.1 * fields.Laplacian(grid) + fields.Mass(grid, 0.01), mean=y.coordinates**2 / 2)
        >>> fields.solve(fields.Problem(data, fields.Direct(grid), smooth)).converged
        True
    """

    positions: Any = eqx.field(converter=reals)
    state: State = Ground()
    hamiltonian: Hamiltonian = eqx.field(static=True, default=Hamiltonian())
    weights: Any = eqx.field(converter=reals, default=None)

    def __check_init__(self):
        self._check("positions", self.positions)

    def prepared(self, grid: Grid) -> Outcomes:
        """Counted on a grid."""
        rows = grid.rows(self.positions)
        return self._place(
            grid, rows, Positions(grid), np.ravel_multi_index(grid.indices(rows).T, grid.shape), grid.size
        )


class MomentumData(StateData):
    r"""Measured momenta of a particle, $p(p|V) = \langle p|\rho|p\rangle$.

    Along axes where the wave function is periodic they are multiples of $2\pi\hbar/L$; the nearest is taken.

    Attributes:
        momenta: `[n, dimensions]`.
        state: as of `PositionData`.
        hamiltonian: mass, $\hbar$ and ends.
        weights: how often each counts; by default once.
    """

    momenta: Any = eqx.field(converter=reals)
    state: State = Ground()
    hamiltonian: Hamiltonian = eqx.field(static=True, default=Hamiltonian())
    weights: Any = eqx.field(converter=reals, default=None)

    def __check_init__(self):
        self._check("momenta", self.momenta)

    def prepared(self, grid: Grid) -> Outcomes:
        """As plane waves on a grid."""
        rows = grid.rows(self.momenta)
        return self._place(grid, rows, Momenta(grid, self.hamiltonian, rows), np.arange(len(rows)), len(rows))


class LevelData(Measurements):
    r"""Measured energies of levels, with Gaussian errors: $\epsilon_k \sim \mathcal N(E_k, \sigma_k^2)$.

    Attributes:
        energies: $\epsilon_k$.
        errors: $\sigma_k$, one number or one for each.
        levels: which levels they are, from 0; by default the lowest.
        hamiltonian: mass and ends.
    """

    energies: Any = eqx.field(converter=reals)
    errors: Any = eqx.field(converter=reals, default=1.0)
    levels: tuple[int, ...] | None = eqx.field(static=True, default=None)
    hamiltonian: Hamiltonian = eqx.field(static=True, default=Hamiltonian())

    def __check_init__(self):
        checks.finite("energies", self.energies)
        checks.positive("errors", self.errors)
        checks.kind("hamiltonian", self.hamiltonian, Hamiltonian, "a Hamiltonian")
        if np.ndim(self.energies) != 1 or np.size(self.energies) == 0:
            raise InputError("Argument `energies` must be a list of numbers, but its shape is "
                             f"{np.shape(self.energies)}.")  # fmt: skip
        if np.shape(self.errors) not in ((), np.shape(self.energies)):
            raise InputError("Argument `errors` must be one number or one for each energy, but its shape is "
                             f"{np.shape(self.errors)}.")  # fmt: skip
        if self.levels is not None and (
            not isinstance(self.levels, (tuple, list, range)) or len(self.levels) != len(self.energies)
        ):
            raise InputError(f"Argument `levels` must be a list of one level for each of the {len(self.energies)} "
                             f"energies, but {self.levels!r} was given.")  # fmt: skip
        for one in self.levels or ():
            checks.whole("levels", one, least=0)

    def prepared(self, grid: Grid) -> PlacedLevels:
        """On a grid that has so many levels."""
        self.hamiltonian.kinetic(grid)
        which = tuple(range(len(self.energies)) if self.levels is None else map(int, self.levels))
        if max(which) + 1 >= grid.size:
            raise InputError(f"Argument `levels` must be below {grid.size - 1} on a grid of {grid.size} points, but "
                             f"{max(which)} was given.")  # fmt: skip
        errors = np.broadcast_to(np.asarray(self.errors, dtype=np.float64), np.shape(self.energies))
        return PlacedLevels(grid, self.energies, errors, which, self.hamiltonian)


class CombinedData(Measurements):
    """Independent measurements of several kinds on systems with the same potential.

    Attributes:
        parts: `PositionData`, `MomentumData` and `LevelData`.

    Examples:
        >>> from quenched import fields
        >>> cold = fields.PositionData([0.1, -0.4], fields.Ground())
        >>> data = fields.CombinedData([cold, fields.LevelData([0.5, 1.5], errors=0.01)])
    """

    parts: tuple[Measurements, ...]

    def __init__(self, parts: Any):
        if not isinstance(parts, (list, tuple)) or not parts:
            raise InputError(f"Argument `parts` must be a list of measurements, but {parts!r} was given.")
        for part in parts:
            checks.kind("parts", part, Measurements, "measurements such as PositionData(positions)")
        self.parts = tuple(parts)

    def prepared(self, grid: Grid) -> Several:
        """Each of them, with one memory."""
        return Several(tuple(part.prepared(grid) for part in self.parts)).with_memory(Memory())
