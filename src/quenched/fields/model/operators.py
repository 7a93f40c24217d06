r"""Inverse covariances: symmetric positive semi-definite operators, added, scaled, multiplied and raised to powers.

`Laplacian` and `Mass`, and what is made of them, are all diagonal in the same waves (the modes of the axes): such a
`Waves` operator is an array of eigenvalues, and applying, solving and its determinant cost next to nothing. A `Filter`
is $W^T W$ of any matrix $W$, such as `Difference`, whose null space are polynomials. A sum of both kinds is a `Sum`.

A scalar product contains the volume of a cell: $(\phi, K \phi) = \int \phi\, K \phi$.
"""

from __future__ import annotations

import abc
import functools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, is_traced, reals
from quenched.fields.model.grid import Axis, Free, Grid, Periodic

NULL = 1e-10
"""Eigenvalues below this share of the largest are zero."""
RANK = 1e-13
"""Singular values below this share of the largest are zero."""
SYMMETRIC = 1e-9
"""A matrix is symmetric if it is so to this share of its largest entry."""


class Operator(eqx.Module):
    """A symmetric positive semi-definite operator on the fields of a grid."""

    grid: Grid = eqx.field(static=True)

    def __check_init__(self):
        checks.kind("grid", self.grid, Grid, "a Grid")

    @abc.abstractmethod
    def apply(self, field: Any) -> Any:
        r"""$K \phi$; fields may have further dimensions in front."""

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """As a dense matrix `[points, points]` of flattened fields."""
        unit = np.eye(self.grid.size).reshape(-1, *self.grid.shape)
        return np.asarray(self.apply(unit), dtype=np.float64).reshape(self.grid.size, -1)

    @functools.cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, those of the null space exactly zero, and orthonormal eigenvectors `[points, modes]`."""
        values, vectors = np.linalg.eigh((self.matrix + self.matrix.T) / 2)
        return np.where(values < NULL * values[-1], 0.0, values), vectors

    def solve(self, right: Any) -> np.ndarray:
        r"""The field $\phi$ of least norm with $K \phi$ = `right`, but for the null space: $K^\#$ (erratum F278)."""
        values, vectors = self.spectrum
        inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
        flat = np.asarray(right, dtype=np.float64).reshape(-1, self.grid.size)
        return ((flat @ vectors) * inverse @ vectors.T).reshape(np.shape(right))

    def logdet(self) -> float:
        """The logarithm of the product of all eigenvalues that are not zero."""
        values, _ = self.spectrum
        return float(np.sum(np.log(values[values > 0])))

    def null_space(self) -> np.ndarray:
        """Orthonormal fields `[k, ...]` that the operator takes to zero."""
        values, vectors = self.spectrum
        return vectors[:, values == 0].T.reshape(-1, *self.grid.shape)

    def energy(self, field: Array) -> Array:
        r"""$\tfrac12 (\phi, K \phi)$."""
        return 0.5 * self.grid.cell * jnp.sum(field * self.apply(field))

    def _other(self, other: Any) -> Operator:
        if not isinstance(other, Operator):
            raise InputError(f"An operator can only be combined with an operator, but {other!r} was given.")
        if other.grid != self.grid:
            raise InputError("Operators must live on one grid, but these have different ones.")
        return other

    def __add__(self, other: Operator) -> Operator:
        other = self._other(other)
        if isinstance(self, Waves) and isinstance(other, Waves):
            return Waves(self.grid, self.values + other.values)
        return Sum(self.grid, (*_terms(self), *_terms(other)))

    def __mul__(self, factor: float) -> Operator:
        return Sum(self.grid, ((_factor(factor), self),))

    __rmul__ = __mul__

    def __pow__(self, power: int) -> Operator:
        checks.whole("power", power, least=1)
        return Dense(self.grid, np.linalg.matrix_power(self.matrix, power))


class Waves(Operator):
    """An operator that is diagonal in the modes of the axes.

    Attributes:
        values: eigenvalues, one for each combination of modes, of the shape of the grid.
    """

    values: Any

    def apply(self, field: Any) -> Any:
        """Into modes, times eigenvalues, and back."""
        return self.in_modes(field, lambda a: a * self.values)

    def in_modes(self, field: Any, function: Any) -> Any:
        """A function applied to the amplitudes of the modes of a field."""
        first = np.ndim(field) - len(self.grid.axes)
        bases = [axis.modes[1] for axis in self.grid.axes]
        for i, U in enumerate(bases):
            field = _along(field, U.T, first + i)
        field = function(field)
        for i, U in enumerate(bases):
            field = _along(field, U, first + i)
        return field

    def solve(self, right: Any) -> np.ndarray:
        """By division in modes."""
        inverse = np.divide(1.0, self.values, out=np.zeros(self.grid.shape), where=self.values > 0)
        return np.asarray(self.in_modes(np.asarray(right, dtype=np.float64), lambda a: a * inverse))

    def logdet(self) -> float:
        """The sum of the logarithms."""
        return float(np.sum(np.log(self.values[self.values > 0])))

    def null_space(self) -> np.ndarray:
        """The modes with eigenvalue zero."""
        units = np.eye(self.grid.size)[self.values.ravel() == 0].reshape(-1, *self.grid.shape)
        for i, axis in enumerate(self.grid.axes):
            units = _along(units, axis.modes[1], 1 + i)
        return np.asarray(units)

    def __mul__(self, factor: float) -> Operator:
        return Waves(self.grid, _factor(factor) * self.values)

    __rmul__ = __mul__

    def __matmul__(self, other: Operator) -> Operator:
        other = self._other(other)
        if not isinstance(other, Waves):
            raise InputError("Only operators of the same waves commute and have a symmetric product, but one is not.")
        return Waves(self.grid, self.values * other.values)

    def __pow__(self, power: int) -> Operator:
        return Waves(self.grid, self.values ** checks.whole("power", power, least=1))


def _factor(value: Any) -> float:
    if not isinstance(value, (int, float, np.number)) or not np.isfinite(value) or value < 0:
        raise InputError(f"An operator must be multiplied by a number that is not negative, but {value!r} was given: a "
                         "prior must be positive semi-definite.")  # fmt: skip
    return float(value)


def _along(field: Any, matrix: np.ndarray, dim: int) -> Any:
    """A matrix applied along one dimension of a field."""
    library: Any = np if isinstance(field, np.ndarray) else jnp
    return library.moveaxis(library.tensordot(field, matrix, axes=(dim, 1)), -1, dim)


def Laplacian(grid: Grid, *axes: Axis) -> Waves:
    r"""$-\Delta$ along some axes, by default all: positive.

    Args:
        grid: where the fields live.
        *axes: along which.

    Examples:
        >>> from quenched import fields
        >>> line = fields.Axis(0, 3, points=4)
        >>> fields.Laplacian(fields.Grid(over=[line])).matrix.diagonal().round(12).tolist()
        [1.0, 2.0, 2.0, 1.0]
    """
    checks.kind("grid", grid, Grid, "a Grid")
    values = np.zeros(grid.shape)
    for i in [grid.place(axis) for axis in axes] or range(len(grid.axes)):
        values = values + grid.axes[i].modes[0].reshape([-1 if j == i else 1 for j in range(len(grid.axes))])
    return Waves(grid, values)


def Mass(grid: Grid, value: float = 1.0) -> Waves:
    """The identity times a number: fields are small."""
    checks.kind("grid", grid, Grid, "a Grid")
    checks.not_negative("value", value)
    return Waves(grid, np.full(grid.shape, checks.number("value", value)))


class Filter(Operator):
    r"""$K = W^T W$ of any matrix `[rows, points]`: what the rows of $W$ give is small.

    Attributes:
        W: the matrix, on flattened fields.
    """

    W: Any = eqx.field(converter=reals)

    def __check_init__(self):
        checks.kind("grid", self.grid, Grid, "a Grid")
        if np.ndim(self.W) != 2 or np.shape(self.W)[1] != self.grid.size:
            raise InputError(f"Argument `W` must be a matrix with {self.grid.size} columns, but its shape is "
                             f"{np.shape(self.W)}.")  # fmt: skip
        checks.finite("W", self.W)

    def apply(self, field: Any) -> Any:
        r"""$W^T (W \phi)$."""
        shape = np.shape(field)
        return (field.reshape(*shape[: len(shape) - len(self.grid.axes)], self.grid.size) @ self.W.T @ self.W).reshape(
            shape
        )

    @functools.cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """By singular values of $W$: small eigenvalues are known to many more digits than from its square."""
        _, root, V = np.linalg.svd(self.W)
        values = np.zeros(self.grid.size)
        values[: len(root)] = np.where(root < RANK * root[0], 0.0, root) ** 2
        return values, V.T

    def __add__(self, other: Operator) -> Operator:
        other = self._other(other)
        if isinstance(other, Filter):
            return Filter(self.grid, np.concatenate([self.W, other.W]))
        return super().__add__(other)

    def __mul__(self, factor: float) -> Operator:
        return Filter(self.grid, np.sqrt(_factor(factor)) * self.W)

    __rmul__ = __mul__


def Difference(grid: Grid, axis: Axis, order: int) -> Operator:
    r"""The square of the derivative of some order along an axis: $\int (\partial^k \phi)^2$.

    At free ends no derivative is asked for across the end, so polynomials below the order are the null space: with
    `order=3` log-densities may be any parabola, densities any Gaussian. (Powers of `Laplacian` have only constants.)

    Args:
        grid: where the fields live.
        axis: along which.
        order: of the derivative.
    """
    checks.kind("grid", grid, Grid, "a Grid")
    place, order = grid.place(axis), checks.whole("order", order, least=1)
    if isinstance(axis.ends, Periodic):
        return Laplacian(grid, axis) ** order
    if not isinstance(axis.ends, Free) or order >= axis.points:
        raise InputError(f"Argument `axis` must have free ends and more than {order} points, but it has not.")
    D = np.diff(np.eye(axis.points), n=order, axis=0) / axis.spacing**order
    for i, other in enumerate(grid.axes):
        if i < place:
            D = np.kron(np.eye(other.points), D)
        elif i > place:
            D = np.kron(D, np.eye(other.points))
    return Filter(grid, D)


class Dense(Operator):
    """A given matrix, which must be symmetric and positive semi-definite.

    Attributes:
        given: the matrix `[points, points]`, on flattened fields.
    """

    given: Any = eqx.field(converter=reals)

    def __check_init__(self):
        checks.kind("grid", self.grid, Grid, "a Grid")
        if is_traced(self.given):
            return
        M = np.asarray(self.given, dtype=np.float64)
        if M.shape != (self.grid.size,) * 2 or not np.all(np.isfinite(M)):
            raise InputError(f"Argument `given` must be a finite matrix of shape {(self.grid.size,) * 2}, but its "
                             f"shape is {M.shape}.")  # fmt: skip
        largest = np.max(np.abs(M), initial=1e-300)
        if np.max(np.abs(M - M.T)) > SYMMETRIC * largest:
            raise InputError("Argument `given` must be symmetric, but it is not.")
        least = np.linalg.eigvalsh((M + M.T) / 2)[0]
        if least < -SYMMETRIC * largest * self.grid.size:
            raise InputError("Argument `given` must be positive semi-definite, or the prior has no maximum, but it has "
                             f"the eigenvalue {least:.3g}.")  # fmt: skip

    def apply(self, field: Any) -> Any:
        """A product with the matrix."""
        shape = np.shape(field)
        return (field.reshape(*shape[: len(shape) - len(self.grid.axes)], self.grid.size) @ self.given).reshape(shape)


class Sum(Operator):
    """A sum of operators with factors.

    Attributes:
        terms: factors and operators.
    """

    terms: tuple[tuple[float, Operator], ...]

    def apply(self, field: Any) -> Any:
        """Term by term."""
        total = 0.0 * field
        for factor, operator in self.terms:
            total = total + factor * operator.apply(field)
        return total

    def __mul__(self, factor: float) -> Operator:
        return Sum(self.grid, tuple((_factor(factor) * old, operator) for old, operator in self.terms))

    __rmul__ = __mul__


def _terms(operator: Operator) -> tuple[tuple[float, Operator], ...]:
    return operator.terms if isinstance(operator, Sum) else ((1.0, operator),)


def check_operator(operator: Any) -> None:
    """Refuse what is neither an operator nor left out."""
    checks.kind("operator", operator, (Operator, type(None)), "an operator such as Laplacian(grid), or None")
