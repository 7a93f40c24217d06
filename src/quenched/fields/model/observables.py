"""What is measured on a quantum system: positions or momenta, as amplitudes of its wave functions."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from quenched.core.types import InputError
from quenched.fields.model.grid import Grid, Periodic
from quenched.fields.model.hamiltonian import Hamiltonian

Counted = Callable[[np.ndarray], np.ndarray]
"""Shares out the counts of the points of one grid to those of another."""


class Observable(abc.ABC):
    r"""Outcomes $M_a = |a\rangle\langle a|$, with amplitudes $c_a = \langle a | \psi \rangle$ of unit vectors $\psi$.

    Attributes:
        volume: of each outcome: $|c_a|^2$ divided by it is a density.
    """

    volume: float

    @abc.abstractmethod
    def amplitude(self, states: Any) -> Any:
        """$c$ of flat states `[..., points]`, as `[..., outcomes]`; on the host or in JAX."""

    @abc.abstractmethod
    def spread(self, weights: np.ndarray, states: np.ndarray) -> np.ndarray:
        r"""$A \psi = \sum_a w_a |a\rangle c_a$; its real part if the states are real."""

    @abc.abstractmethod
    def carried(self, grid: Grid, counts: np.ndarray, counted: Counted) -> tuple[Observable, np.ndarray] | None:
        """The same on another grid, with the counts `[times, outcomes]` there; None if it does not resolve them."""


class Positions(Observable):
    """Where the particle is: an outcome is a point of the grid.

    Attributes:
        grid: the grid.
    """

    def __init__(self, grid: Grid):
        self.grid, self.volume = grid, grid.cell

    def amplitude(self, states: Any) -> Any:
        r"""$\psi(y)$."""
        return states

    def spread(self, weights: np.ndarray, states: np.ndarray) -> np.ndarray:
        r"""$w(y) \psi(y)$."""
        return weights * states

    def carried(self, grid: Grid, counts: np.ndarray, counted: Counted) -> tuple[Observable, np.ndarray]:
        """With the counts shared out."""
        moved = [counted(one.reshape(self.grid.shape)).ravel() for one in counts]
        return Positions(grid), np.stack(moved)


class Momenta(Observable):
    r"""How fast it is: $\langle p | \psi \rangle = (2\pi\hbar)^{-1/2} \int dy\, e^{-ipy/\hbar} \psi(y)$ for each axis.

    Along axes where the wave function is periodic momenta are multiples of $2\pi\hbar/L$, and the nearest is taken.

    Attributes:
        grid: the grid.
        hamiltonian: whose $\hbar$ and ends.
        momenta: `[outcomes, axes]`.
    """

    def __init__(self, grid: Grid, hamiltonian: Hamiltonian, momenta: np.ndarray):
        self.grid, self.hamiltonian, self.momenta, self.volume = grid, hamiltonian, momenta, 1.0
        self.waves = []
        for axis, p in zip(grid.axes, momenta.T, strict=True):
            unit, norm = 2 * np.pi * hamiltonian.hbar / (axis.spacing * axis.points), axis.points**-0.5
            most = np.pi * hamiltonian.hbar / axis.spacing
            if np.any(np.abs(p) > most):
                raise InputError(f"Argument `momenta` must lie between {-most:.4g} and {most:.4g}, what the grid "
                                 f"resolves, but {p[np.argmax(np.abs(p))]:.4g} was given.")  # fmt: skip
            if isinstance(hamiltonian.ends_of(axis), Periodic):
                p = np.rint(p / unit) * unit
            else:
                norm = (axis.spacing / (2 * np.pi * hamiltonian.hbar)) ** 0.5
            self.waves.append(norm * np.exp(-1j * np.outer(p, axis.coordinates) / hamiltonian.hbar))

    def amplitude(self, states: Any) -> Any:
        """Axis by axis, the last first: `[..., a, b]` to `[..., a, n]` to `[..., n]`."""
        library: Any = np if isinstance(states, np.ndarray) else jnp
        *others, last = self.waves
        c = states.reshape(*states.shape[:-1], *self.grid.shape) @ last.T
        for wave in reversed(others):
            c = library.einsum("...an,na->...n", c, wave)
        return c

    def spread(self, weights: np.ndarray, states: np.ndarray) -> np.ndarray:
        """The adjoint, axis by axis."""
        c = weights * self.amplitude(states)
        *others, last = [wave.conj() for wave in self.waves]
        for wave in others:
            c = np.einsum("...n,na->...an", c, wave)
        shape = (*c.shape[: c.ndim - len(self.waves)], self.grid.size)
        found = (c @ last).reshape(shape)
        return found.real if states.dtype.kind == "f" else found

    def carried(self, grid: Grid, counts: np.ndarray, counted: Counted) -> tuple[Observable, np.ndarray] | None:
        """The same momenta, if the grid resolves them."""
        del counted
        try:
            return Momenta(grid, self.hamiltonian, self.momenta), counts
        except InputError:
            return None
