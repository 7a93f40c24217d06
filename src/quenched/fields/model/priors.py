r"""What is known before any data: energies of a field, combined by `&`: both hold, and `|`: one does."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core.types import Array, InputError, is_traced
from quenched.fields.model.grid import Grid
from quenched.fields.model.operators import Operator

PriorExpansion = tuple[float, np.ndarray, Callable[[], np.ndarray]]
"""An energy about a field, its slope of the shape of the field, and what computes its matrix of second derivatives."""


class Prior(eqx.Module):
    """What is known before any data: `a & b` if both hold, `a | b` if one of them does, it is not known which."""

    @abc.abstractmethod
    def energy(self, field: Array) -> Array:
        """Minus the log-density of the field, up to a constant."""

    @property
    @abc.abstractmethod
    def grid(self) -> Grid:
        """Where the fields live."""

    def expand(self, field: np.ndarray) -> PriorExpansion | None:
        """The energy about a field with its derivatives in closed form, on the host.

        Args:
            field: what the prior is about, of the shape of the grid.

        Returns:
            Energy, slope by the components of the field (of its shape), and a function that computes the matrix of
            second derivatives `[points, points]` of flattened fields; None if there is no closed form: then they
            come from automatic differentiation of `energy`.
        """
        return None

    def __and__(self, other: Prior) -> Prior:
        if not isinstance(other, Prior):
            raise InputError(f"A prior can only be combined with a prior, but {other!r} was given.")
        if other.grid != self.grid:
            raise InputError("Priors must live on one grid, but these have different ones.")
        return And((*_parts(self), *_parts(other)))

    def __or__(self, other: Prior) -> Prior:
        from quenched.fields.model.either import either

        return either(self, other)


class Gaussian(Prior):
    r"""The field is near a template: $\tfrac12 (\phi - t, K(\phi - t))$.

    Attributes:
        operator: $K$, the inverse covariance: 0.025 * Laplacian(grid).
        mean: $t$, the template, of the shape of the grid; by default zero, or what Dirichlet ends ask for.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 1, points=50)])
        >>> prior = fields.Gaussian(0.1 * fields.Laplacian(grid)) & fields.Gaussian(fields.Mass(grid), mean=-1.0)
    """

    operator: Operator
    mean: Any = None

    def __init__(self, operator: Operator, mean: Any = None):
        if not isinstance(operator, Operator):
            raise InputError(f"Argument `operator` must be an operator, such as Laplacian(grid), but {operator!r} was "
                             "given.")  # fmt: skip
        self.operator = operator
        if is_traced(mean):
            self.mean = jnp.broadcast_to(mean, operator.grid.shape)
        else:
            self.mean = operator.grid.boundary() if mean is None else operator.grid.check("mean", mean)

    @property
    def grid(self) -> Grid:
        """That of the operator."""
        return self.operator.grid

    def energy(self, field: Array) -> Array:
        r"""$\tfrac12 (\phi - t, K(\phi - t))$."""
        return self.operator.energy(field - self.mean)

    def expand(self, field: np.ndarray) -> PriorExpansion:
        r"""A parabola with the slope $v K (\phi - t)$ and the matrix $v K$, $v$ the volume of a cell."""
        cell, off = self.grid.cell, field - np.asarray(self.mean)
        push = cell * np.asarray(self.operator.apply(off))
        return 0.5 * float(np.sum(off * push)), push, lambda: cell * self.operator.matrix


class And(Prior):
    """Several priors that all hold: their energies add.

    Attributes:
        parts: the priors.
    """

    parts: tuple[Prior, ...]

    @property
    def grid(self) -> Grid:
        """That of the parts."""
        return self.parts[0].grid

    def energy(self, field: Array) -> Array:
        """The sum."""
        total = self.parts[0].energy(field)
        for part in self.parts[1:]:
            total = total + part.energy(field)
        return total

    def expand(self, field: np.ndarray) -> PriorExpansion | None:
        """The sums, if all parts have a closed form."""
        parts = [type(part).expand(part, field) for part in self.parts]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            return None
        energies, slopes, matrices = zip(*found, strict=True)
        return sum(energies), np.sum(slopes, axis=0), lambda: np.sum([matrix() for matrix in matrices], axis=0)


def _parts(prior: Prior) -> tuple[Prior, ...]:
    return prior.parts if isinstance(prior, And) else (prior,)


def gaussians(prior: Prior) -> list[Gaussian]:
    """The parts of a prior, if all are Gaussian."""
    parts = [part for part in _parts(prior) if isinstance(part, Gaussian)]
    if len(parts) < len(_parts(prior)):
        raise InputError("Argument `prior` must be Gaussian in all its parts here, but one of them is not.")
    return parts


def operator_of(prior: Prior) -> Operator:
    """The operator of Gaussian priors, added."""
    first, *rest = (part.operator for part in gaussians(prior))
    for operator in rest:
        first = first + operator
    return first


def combined(prior: Prior) -> Gaussian:
    r"""Gaussian priors that all hold are one: $K = \sum_j K_j$, $K t = \sum_j K_j t_j$.

    Its energy differs from their sum by $\tfrac12 [\sum_j (t_j, K_j t_j) - (t, K t)]$.
    [lemm1999, eqs. (230) to (232), erratum F232]
    """
    parts = gaussians(prior)
    if len(parts) == 1:
        return parts[0]
    K = operator_of(prior)
    push = sum(np.asarray(part.operator.apply(np.asarray(part.mean))) for part in parts)
    return Gaussian(K, mean=K.solve(push))
