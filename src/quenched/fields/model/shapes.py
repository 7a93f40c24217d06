"""Shapes of potentials whose states are well known, as sums over the axes of a grid."""

from __future__ import annotations

import abc
import functools
from typing import Any

import equinox as eqx
import numpy as np

from quenched.core import checks
from quenched.core.types import Real, real
from quenched.fields.model.grid import Grid
from quenched.fields.model.hamiltonian import Hamiltonian


class Shape(eqx.Module):
    """A potential along one axis; on several axes, the sum."""

    @abc.abstractmethod
    def along(self, y: Any, mass: float) -> Any:
        """The potential at some coordinates, of a particle of a given mass."""

    def values(self, grid: Grid, hamiltonian: Hamiltonian | None = None) -> np.ndarray:
        """The potential on a grid.

        Args:
            grid: where it lives.
            hamiltonian: whose mass; by default `Hamiltonian()`.
        """
        checks.kind("grid", grid, Grid, "a Grid")
        masses = np.broadcast_to(np.asarray((hamiltonian or Hamiltonian()).mass, float), len(grid.axes))
        parts = [self.along(axis.coordinates, m) for axis, m in zip(grid.axes, masses, strict=True)]
        return functools.reduce(np.add.outer, parts)


class Harmonic(Shape):
    r"""The oscillator, $V = \tfrac12 m \omega^2 (y - c)^2$, with levels $\hbar\omega(n + \tfrac12)$.

    Attributes:
        frequency: $\omega$.
        centre: $c$.
    """

    frequency: Real = eqx.field(converter=real, default=1.0)
    centre: Real = eqx.field(converter=real, default=0.0)

    def __check_init__(self):
        checks.positive("frequency", self.frequency)
        checks.finite("centre", self.centre)

    def along(self, y: Any, mass: float) -> Any:
        """A parabola."""
        return mass * self.frequency**2 * (y - self.centre) ** 2 / 2


class DoubleWell(Shape):
    r"""Two wells of equal depth, $V = h\,\big(4 y^2/d^2 - 1\big)^2$.

    Attributes:
        height: $h$ of the barrier between them.
        distance: $d$ of the wells.
    """

    height: Real = eqx.field(converter=real, default=2.0)
    distance: Real = eqx.field(converter=real, default=3.0)

    def __check_init__(self):
        checks.positive("height", self.height)
        checks.positive("distance", self.distance)

    def along(self, y: Any, mass: float) -> Any:
        """A polynomial."""
        del mass
        return self.height * (4 * y**2 / self.distance**2 - 1) ** 2


class Morse(Shape):
    r"""A molecule of two atoms, $V = D\,\big(1 - e^{-(y - c)/w}\big)^2$.

    With $\lambda = w\sqrt{2mD}/\hbar$ it has the levels
    $\frac{\hbar^2}{2mw^2}\big[\lambda^2 - (\lambda - n - \tfrac12)^2\big]$ for $n < \lambda - \tfrac12$.

    Attributes:
        depth: $D$.
        width: $w$.
        centre: $c$.
    """

    depth: Real = eqx.field(converter=real, default=5.0)
    width: Real = eqx.field(converter=real, default=1.0)
    centre: Real = eqx.field(converter=real, default=0.0)

    def __check_init__(self):
        checks.positive("depth", self.depth)
        checks.positive("width", self.width)
        checks.finite("centre", self.centre)

    def along(self, y: Any, mass: float) -> Any:
        """A well with a steep and a soft side."""
        del mass
        return self.depth * (1 - np.exp(-(y - self.centre) / self.width)) ** 2


class Cosine(Shape):
    r"""Wells in a row, $V = \tfrac h2 (1 - \cos 2\pi y/L)$.

    Attributes:
        height: $h$.
        period: $L$.
    """

    height: Real = eqx.field(converter=real, default=2.0)
    period: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("height", self.height)
        checks.positive("period", self.period)

    def along(self, y: Any, mass: float) -> Any:
        """A wave."""
        del mass
        return self.height / 2 * (1 - np.cos(2 * np.pi * y / self.period))


class TwoWells(Shape):
    r"""An oscillator with a bump, $V = \tfrac12 m\omega^2 y^2 + h\, e^{-(y - c)^2/2w^2}$: two unequal wells.

    Attributes:
        frequency: $\omega$.
        height: $h$ of the bump.
        centre: $c$, where it is.
        width: $w$.
    """

    frequency: Real = eqx.field(converter=real, default=0.5)
    height: Real = eqx.field(converter=real, default=2.0)
    centre: Real = eqx.field(converter=real, default=1.0)
    width: Real = eqx.field(converter=real, default=0.7)

    def __check_init__(self):
        checks.positive("frequency", self.frequency)
        checks.positive("height", self.height)
        checks.finite("centre", self.centre)
        checks.positive("width", self.width)

    def along(self, y: Any, mass: float) -> Any:
        """A parabola and a Gaussian."""
        return mass * self.frequency**2 * y**2 / 2 + self.height * np.exp(
            -((y - self.centre) ** 2) / (2 * self.width**2)
        )
