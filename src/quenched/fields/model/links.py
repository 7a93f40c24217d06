r"""From a field to a density: which function of the density is smooth a priori, and which constraints it has.

| link | field | density | constraints |
|---|---|---|---|
| `LogDensity` | $L = \ln P$ | $e^L$ | normalised |
| `Shifted` | $g$ | $e^g / \int e^g$ | none |
| `Density` | $P$ | $P$ | normalised, not negative |
| `SquareRoot` | $\varphi = \sqrt P$ | $\varphi^2$ | normalised |
| `Direct` | $h$ | none: regression | none |

The energy is always that of the projected field, so that its derivative is the one along the constraint.
[lemm1999, sections 3.1 to 3.3, table 2]
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from quenched.core.types import Array, InputError
from quenched.fields.model.grid import Grid


class Link(eqx.Module):
    """What a field means."""

    exponential: ClassVar[bool] = False  # whether densities are the exponentials of fields, normalised
    linear: ClassVar[bool] = False  # whether the prior is about the field itself
    even: ClassVar[bool] = False  # whether the sign of a field means nothing

    grid: Grid = eqx.field(static=True)

    def __check_init__(self):
        if not isinstance(self.grid, Grid):
            raise InputError(f"Argument `grid` must be a Grid, but {self.grid!r} was given.")
        if not self.grid.over and not isinstance(self, Direct):
            raise InputError("A density must be normalised over at least one axis, but the grid has none: give `over`.")

    @abc.abstractmethod
    def project(self, field: Array) -> Array:
        """The field that fulfils the normalisation."""

    @abc.abstractmethod
    def argument(self, field: Array) -> Array:
        """What the prior is about, of a projected field."""

    @abc.abstractmethod
    def log_density(self, field: Array) -> Array:
        r"""$\ln P$ of a projected field."""

    @abc.abstractmethod
    def field(self, log_density: Array) -> Array:
        r"""The field of a given $\ln P$."""

    def probability(self, field: Array) -> Array:
        """$P$ of a projected field."""
        return jnp.exp(self.log_density(field))

    def density(self, field: Any) -> Array:
        r"""$P(x, y)$, normalised over $y$."""
        return self.probability(self.project(field))


def _log(P: Array) -> Array:
    """The logarithm, with a derivative that is a number where a density vanishes."""
    there = P > 0
    return jnp.where(there, jnp.log(jnp.where(there, P, 1.0)), -jnp.inf)


class LogDensity(Link):
    r"""The field is the log-density, $\phi = L = \ln P$. [lemm1999, eq. (109)]"""

    exponential = True

    def project(self, field: Array) -> Array:
        r"""$L - \ln \int e^L$."""
        return self.grid.normalised(field)

    def argument(self, field: Array) -> Array:
        """$L$."""
        return field

    def log_density(self, field: Array) -> Array:
        """$L$."""
        return field

    def field(self, log_density: Array) -> Array:
        """$L$."""
        return log_density


class Shifted(Link):
    r"""The field is the log-density up to a function of $x$: $L = g - \ln \int e^g$. [lemm1999, eq. (147)]"""

    exponential = True

    def project(self, field: Array) -> Array:
        """Nothing to do."""
        return field

    def argument(self, field: Array) -> Array:
        """$L$: the prior is about the log-density."""
        return self.grid.normalised(field)

    def log_density(self, field: Array) -> Array:
        r"""$g - \ln \int e^g$."""
        return self.grid.normalised(field)

    def field(self, log_density: Array) -> Array:
        """$g = L$."""
        return log_density


class Density(Link):
    r"""The field is the density, $\phi = P \ge 0$. [lemm1999, eq. (163), errata F164, F170]"""

    def project(self, field: Array) -> Array:
        r"""$P / \int P$."""
        return field / self.grid.integrate(field)

    def argument(self, field: Array) -> Array:
        """$P$."""
        return field

    def log_density(self, field: Array) -> Array:
        r"""$\ln P$."""
        return _log(field)

    def probability(self, field: Array) -> Array:
        """$P$, with its derivative also where it vanishes."""
        return field

    def field(self, log_density: Array) -> Array:
        r"""$e^L$."""
        return jnp.exp(log_density)


class SquareRoot(Link):
    r"""The field is the root of the density, $P = \varphi^2$. [lemm1999, eq. (194), erratum F198]"""

    even = True

    def project(self, field: Array) -> Array:
        r"""$\varphi / \sqrt{\int \varphi^2}$."""
        return field / jnp.sqrt(self.grid.integrate(jnp.square(field)))

    def argument(self, field: Array) -> Array:
        r"""$\varphi$."""
        return field

    def log_density(self, field: Array) -> Array:
        r"""$\ln \varphi^2$."""
        return _log(jnp.square(field))

    def field(self, log_density: Array) -> Array:
        r"""$e^{L/2}$."""
        return jnp.exp(log_density / 2)


class Direct(Link):
    """The field is the function that is asked for: regression."""

    linear = True

    def project(self, field: Array) -> Array:
        """Nothing to do."""
        return field

    def argument(self, field: Array) -> Array:
        """The function."""
        return field

    def log_density(self, field: Array) -> Array:
        """There is none."""
        raise InputError("A regression function has no density: use `DensityData` with LogDensity, Shifted, Density or "
                         "SquareRoot, and `GaussianData` with Direct.")  # fmt: skip

    def field(self, log_density: Array) -> Array:
        """There is none."""
        return self.log_density(log_density)
