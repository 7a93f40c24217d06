r"""Decisions: the action of least expected loss, given a predictive density $p(y|x)$. [lemm1999, section 2.2]

| loss | best action |
|---|---|
| `LogLoss`: $-\ln p(y \vert x, a)$ | the density itself |
| `SquaredLoss`: $(y - a)^2$ | the mean |
| `AbsoluteLoss`: $\vert y - a \vert$ | a median |
| `ZeroOneLoss`: $-\delta(y - a)$ | a mode (erratum F63: with the minus sign) |

Densities live on a grid with one axis that is normalised over; integrals are sums over its points, with their weights.
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import numpy as np
import scipy.special

from quenched.core.types import InputError
from quenched.fields.model.grid import Grid


class Loss(eqx.Module):
    """What a wrong answer costs."""

    @abc.abstractmethod
    def action(self, grid: Grid, density: np.ndarray) -> np.ndarray:
        """The action of least risk for each $x$."""

    @abc.abstractmethod
    def risk(self, grid: Grid, density: np.ndarray, action: np.ndarray) -> np.ndarray:
        """The expected loss of an action for each $x$."""


def _axis(grid: Grid, density: Any) -> tuple[np.ndarray, np.ndarray]:
    """The values of $y$ and the probability of each, `[..., points]`."""
    if len(grid.over) != 1:
        raise InputError(f"Argument `grid` must have one axis that is normalised over, but it has {len(grid.over)}.")
    P = grid.check("density", density)
    mass = P * grid.weights
    if np.any(mass < 0) or not np.allclose(mass.sum(axis=-1), 1, atol=1e-6):
        raise InputError("Argument `density` must not be negative and must be normalised, but it is not.")
    return grid.over[0].coordinates, mass


class LogLoss(Loss):
    r"""$-\ln p(y|x, a)$: the action is a density. [lemm1999, eqs. (46) to (50), erratum F48]"""

    def action(self, grid: Grid, density: np.ndarray) -> np.ndarray:
        """The density itself."""
        _axis(grid, density)
        return np.asarray(density)

    def risk(self, grid: Grid, density: np.ndarray, action: np.ndarray) -> np.ndarray:
        """The cross entropy."""
        _, mass = _axis(grid, density)
        _axis(grid, action)  # a density too
        return -np.sum(scipy.special.xlogy(mass, action), axis=-1)


class SquaredLoss(Loss):
    r"""$(y - a(x))^2$. [lemm1999, eqs. (51), (52)]"""

    def action(self, grid: Grid, density: np.ndarray) -> np.ndarray:
        """The mean."""
        y, mass = _axis(grid, density)
        return mass @ y

    def risk(self, grid: Grid, density: np.ndarray, action: np.ndarray) -> np.ndarray:
        """The variance and the square of the bias."""
        y, mass = _axis(grid, density)
        return np.sum(mass * (y - np.asarray(action)[..., None]) ** 2, axis=-1)


class AbsoluteLoss(Loss):
    r"""$|y - a(x)|$. [lemm1999, eqs. (57), (60)]"""

    def action(self, grid: Grid, density: np.ndarray) -> np.ndarray:
        """A median, among the points of the axis."""
        y, mass = _axis(grid, density)
        return y[np.argmax(np.cumsum(mass, axis=-1) >= 0.5 - 1e-12, axis=-1)]

    def risk(self, grid: Grid, density: np.ndarray, action: np.ndarray) -> np.ndarray:
        """The mean absolute deviation."""
        y, mass = _axis(grid, density)
        return np.sum(mass * np.abs(y - np.asarray(action)[..., None]), axis=-1)


class ZeroOneLoss(Loss):
    r"""$-\delta(y - a(x))$. [lemm1999, eq. (62), erratum F63]"""

    def action(self, grid: Grid, density: np.ndarray) -> np.ndarray:
        """A mode."""
        y, mass = _axis(grid, density)
        return y[np.argmax(mass, axis=-1)]

    def risk(self, grid: Grid, density: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Minus the density at the action."""
        y, mass = _axis(grid, density)
        place = np.argmin(np.abs(y - np.asarray(action)[..., None]), axis=-1)
        return -np.take_along_axis(mass / grid.weights, place[..., None], axis=-1)[..., 0]
