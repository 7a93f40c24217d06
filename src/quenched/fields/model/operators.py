r"""Inverse covariances: symmetric positive semi-definite operators, added, scaled, multiplied and raised to powers.

What is diagonal in products of modes of the axes is a `Waves` operator: an array of eigenvalues, and applying, solving
and its determinant cost next to nothing. A `Filter` is $W^T W$ of any matrix $W$, a `Dense` operator a matrix. What has
no modes in common is added as a `Sum`. Those that have names are in `smoothness`.

A scalar product contains the volume of a cell: $(\phi, K \phi) = \int \phi\, K \phi$.
"""

from __future__ import annotations

import abc
import functools
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.system import require_memory
from quenched.core.types import Array, InputError, is_traced, reals
from quenched.fields.model import transforms
from quenched.fields.model.grid import Grid
from quenched.fields.model.modes import LARGE, Modes, difference_modes, multiply, require_matrix

NULL = 1e-10
"""Eigenvalues below this share of the largest are zero."""
RANK = 1e-13
"""Singular values below this share of the largest are zero."""
SYMMETRIC = 1e-9
"""A matrix is symmetric if it is so to this share of its largest entry."""
FAST = 64
"""Axes with more points are transformed by FFT, DCT or DST; on shorter ones a product with a matrix is as quick."""


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
        require_matrix(self.grid.size, "NewtonCG needs none")
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

    def modes(self, count: int | tuple[int, ...] | None = None) -> Modes:
        """The smoothest modes.

        Args:
            count: how many at most, of each axis where modes are products of those of the axes; by default all.

        Returns:
            The modes, with exact zeros for the null space.

        Raises:
            InputError: if the grid has given axes and others, and the modes are no products.
        """
        if self.grid.given and self.grid.over:
            raise InputError("Argument `modes` must be None for this prior, because its modes are no products of "
                             "functions of x and of y.")  # fmt: skip
        most = self._most(count)
        values, vectors = self._smoothest()
        most = len(values) if count is None else math.prod(most) if isinstance(count, (tuple, list)) else most[0]
        values, vectors = values[:most], vectors[:, :most]
        one = np.ones((1, 1))
        parts = (one, vectors) if self.grid.over else (vectors, one)
        return Modes(self.grid, values.reshape(parts[0].shape[1], -1), *parts)

    def _most(self, count: Any) -> tuple[int, ...]:
        """How many modes of each axis there are at most."""
        if count is None:
            return self.grid.shape
        several = tuple(count) if isinstance(count, (tuple, list)) else (count,) * len(self.grid.axes)
        if len(several) != len(self.grid.axes):
            raise InputError(f"Argument `modes` must have one number for each of the {len(self.grid.axes)} axes, but "
                             f"{count!r} was given.")  # fmt: skip
        return tuple(checks.whole("modes", one, least=1) for one in several)

    def _smoothest(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues, ascending, and eigenvectors."""
        values, vectors = self.spectrum
        order = np.argsort(values, kind="stable")
        return values[order], vectors[:, order]

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
        return Sum(self.grid, (*_terms(self), *_terms(self._other(other))))

    def __mul__(self, factor: float) -> Operator:
        return Sum(self.grid, ((read_factor(factor), self),))

    __rmul__ = __mul__

    def __pow__(self, power: int) -> Operator:
        checks.whole("power", power, least=1)
        return Dense(self.grid, np.linalg.matrix_power(self.matrix, power))


class Waves(Operator):
    """An operator that is diagonal in products of modes of the axes.

    Attributes:
        values: eigenvalues, one for each combination of modes; of length 1 along axes that it does not see.
        orders: for each axis, whose modes: 0 of the Laplacian, k of differences of order k, None if it does not matter.
    """

    values: Any
    orders: tuple[int | None, ...] = eqx.field(static=True)

    def basis(self, i: int, count: int | None = None) -> np.ndarray:
        """The modes of an axis `[points, modes]`, or the first of them."""
        axis, order = self.grid.axes[i], self.orders[i]
        if order:
            return difference_modes(axis.points, order)[1][:, :count]
        return axis.modes[1] if count is None else axis.smoothest(count)

    def apply(self, field: Any) -> Any:
        """Into modes, times eigenvalues, and back."""
        return self.in_modes(field, lambda a: a * self.values)

    def in_modes(self, field: Any, function: Any) -> Any:
        """A function applied to the amplitudes of the modes of a field."""
        return self.from_modes(function(self.to_modes(field)))

    def to_modes(self, field: Any) -> Any:
        """Amplitudes of modes along the axes that it sees; fields may have further dimensions in front."""
        first = np.ndim(field) - len(self.grid.axes)
        for i, order in enumerate(self.orders):
            axis = self.grid.axes[i]
            if order == 0 and axis.points > FAST:
                field = transforms.to_modes(field, axis.ends, first + i)
            elif order is not None:
                field = _along(field, self.basis(i).T, first + i)
        return field

    def from_modes(self, amplitudes: Any) -> Any:
        """The field with these amplitudes."""
        first = np.ndim(amplitudes) - len(self.grid.axes)
        for i, order in enumerate(self.orders):
            axis = self.grid.axes[i]
            if order == 0 and axis.points > FAST:
                amplitudes = transforms.from_modes(amplitudes, axis.ends, first + i)
            elif order is not None:
                amplitudes = _along(amplitudes, self.basis(i), first + i)
        return amplitudes

    def solve(self, right: Any) -> np.ndarray:
        """By division in modes."""
        inverse = np.divide(1.0, self.values, out=np.zeros(np.shape(self.values)), where=self.values > 0)
        return np.asarray(self.in_modes(np.asarray(right, dtype=np.float64), lambda a: a * inverse))

    def logdet(self) -> float:
        """The sum of the logarithms."""
        values = np.broadcast_to(self.values, self.grid.shape)
        return float(np.sum(np.log(values[values > 0])))

    def null_space(self) -> np.ndarray:
        """The modes with eigenvalue zero."""
        zero = np.flatnonzero(np.broadcast_to(self.values, self.grid.shape) == 0)
        if len(zero) * self.grid.size > LARGE**2:
            require_memory(f"All {len(zero)} null directions of a grid of {self.grid.size:,} points",
                           16.0 * len(zero) * self.grid.size)  # fmt: skip
        units = np.zeros((len(zero), self.grid.size))
        units[np.arange(len(zero)), zero] = 1.0
        return np.asarray(self.from_modes(units.reshape(-1, *self.grid.shape)))

    def modes(self, count: int | tuple[int, ...] | None = None) -> Modes:
        """Products of the smoothest modes of each axis."""
        axes, given = self.grid.axes, len(self.grid.given)
        most = self._most(count)
        most = tuple(min(m, axis.points) for m, axis in zip(most, axes, strict=True))
        for points, part in zip(self.grid.blocks, (most[:given], most[given:]), strict=True):
            require_matrix(math.isqrt(points * math.prod(part)), "fewer modes need less")
        bases = [self.basis(i, None if m == axes[i].points else m) for i, m in enumerate(most)]
        values = np.broadcast_to(self.values, self.grid.shape)[tuple(slice(m) for m in most)]
        sides = [multiply(part) for part in (bases[:given], bases[given:])]
        return Modes(self.grid, values.reshape(sides[0].shape[1], -1), *sides)

    def _smoothest(self) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError  # the modes are products

    def _with(self, other: Operator) -> tuple[int | None, ...] | None:
        """The modes that are those of both, if there are any."""
        if not isinstance(other, Waves):
            return None
        pairs = list(zip(self.orders, other.orders, strict=True))
        if any(None not in pair and pair[0] != pair[1] for pair in pairs):
            return None
        return tuple(b if a is None else a for a, b in pairs)

    def __add__(self, other: Operator) -> Operator:
        orders = self._with(self._other(other))
        return super().__add__(other) if orders is None else Waves(self.grid, self.values + other.values, orders)  # pyright: ignore[reportAttributeAccessIssue]

    def __mul__(self, factor: float) -> Operator:
        return Waves(self.grid, read_factor(factor) * self.values, self.orders)

    __rmul__ = __mul__

    def __matmul__(self, other: Operator) -> Operator:
        orders = self._with(self._other(other))
        if orders is None:
            raise InputError("Only operators of the same waves commute and have a symmetric product, but one is not.")
        return Waves(self.grid, self.values * other.values, orders)  # pyright: ignore[reportAttributeAccessIssue]

    def __pow__(self, power: int) -> Operator:
        return Waves(self.grid, self.values ** checks.whole("power", power, least=1), self.orders)

    def roughen(self, deviation: float, count: int) -> Waves:
        """The operator of its field plus an independent rough one: covariances add.

        Args:
            deviation: standard deviation of the rough field at each point.
            count: how many modes it has, the smoothest that are not free; all are equally strong.
        """
        checks.positive("deviation", checks.number("deviation", deviation))
        values = np.broadcast_to(self.values, self.grid.shape)
        place = np.argsort(np.argsort(values, axis=None, kind="stable")).reshape(values.shape)
        taken = (values > 0) & (place < checks.whole("count", count, least=1))
        variance = deviation**2 * self.grid.size / max(int(taken.sum()), 1)
        smooth = np.where(taken, values, 1.0)
        return Waves(self.grid, np.where(taken, smooth / (1 + self.grid.cell * variance * smooth), values), self.orders)


def read_factor(value: Any) -> Any:
    """A factor that is not negative; one that JAX traces has no number yet."""
    if is_traced(value):
        return value
    value = float(value) if isinstance(value, Array) and value.ndim == 0 else value
    if not isinstance(value, (int, float, np.number)) or not np.isfinite(value) or value < 0:
        raise InputError(f"An operator must be multiplied by a number that is not negative, but {value!r} was given: a "
                         "prior must be positive semi-definite.")  # fmt: skip
    return float(value)


def _along(field: Any, matrix: np.ndarray, dim: int) -> Any:
    """A matrix applied along one dimension of a field."""
    library: Any = np if isinstance(field, np.ndarray) else jnp
    return library.moveaxis(library.tensordot(field, matrix, axes=(dim, 1)), -1, dim)


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
            library: Any = jnp if is_traced(self.W) or is_traced(other.W) else np
            return Filter(self.grid, library.concatenate([self.W, other.W]))
        return super().__add__(other)

    def __mul__(self, factor: float) -> Operator:
        factor = read_factor(factor)
        return Filter(self.grid, (jnp if is_traced(factor) else np).sqrt(factor) * self.W)

    __rmul__ = __mul__


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
        return Sum(self.grid, tuple((read_factor(factor) * old, operator) for old, operator in self.terms))

    __rmul__ = __mul__


def _terms(operator: Operator) -> tuple[tuple[float, Operator], ...]:
    return operator.terms if isinstance(operator, Sum) else ((1.0, operator),)


def check_operator(operator: Any) -> None:
    """Refuse what is neither an operator nor left out."""
    checks.kind("operator", operator, (Operator, type(None)), "an operator such as Laplacian(grid), or None")
