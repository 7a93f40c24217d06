r"""Inverse covariances: symmetric positive semi-definite operators, added, scaled, multiplied and raised to powers.

`Laplacian`, `Difference`, `Mass` and `ThinPlate` along one axis, and what is made of them, are diagonal in products of
modes of the axes: such a `Waves` operator is an array of eigenvalues, and applying, solving and its determinant cost
next to nothing. A `Plate` is a thin plate over several axes, a `Filter` is $W^T W$ of any matrix $W$. What has no
modes in common is added as a `Sum`.

A scalar product contains the volume of a cell: $(\phi, K \phi) = \int \phi\, K \phi$.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import itertools
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.system import require_memory
from quenched.core.types import Array, InputError, is_traced, reals
from quenched.fields.model import transforms
from quenched.fields.model.grid import Axis, Free, Grid, Periodic

NULL = 1e-10
"""Eigenvalues below this share of the largest are zero."""
RANK = 1e-13
"""Singular values below this share of the largest are zero."""
SYMMETRIC = 1e-9
"""A matrix is symmetric if it is so to this share of its largest entry."""
ALONG, FINE = {2: 18, 3: 8}, {2: (96, 24)}
"""By dimension: modes of each axis of which those of a plate are made; and points from which on it is more of them."""
FAST = 64
"""Axes with more points are transformed by FFT, DCT or DST; on shorter ones a product with a matrix is as quick."""
LARGE, DENSE = 4000, 6
"""Points above which the system is asked for memory before matrices of all pairs are made, and how many of them."""


def require_matrix(points: int, advice: str = "") -> None:
    """Check that matrices of all pairs of points fit in memory; `advice` says what needs none."""
    if points > LARGE:
        subject = f"Matrices of all pairs of {points:,} points"
        require_memory(f"{subject} ({advice})" if advice else subject, DENSE * 8.0 * points**2)


@dataclasses.dataclass(frozen=True, eq=False)
class Modes:
    r"""The smoothest modes of an operator: products $u_a(x)\, v_b(y)$ over the given axes and those normalised over.

    Attributes:
        grid: where they live.
        values: eigenvalues `[a, b]`, exactly zero in the null space.
        given: $u_a$ as orthonormal columns `[points, a]`; a single 1 without given axes.
        over: $v_b$ as orthonormal columns `[points, b]`; a single 1 without axes that are normalised over.
    """

    grid: Grid
    values: np.ndarray
    given: np.ndarray
    over: np.ndarray

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """All modes as columns `[points, modes]` of flattened fields."""
        return _products([self.given, self.over])

    def field(self, c: np.ndarray) -> np.ndarray:
        """The field with these coefficients."""
        return (self.given @ c.reshape(self.values.shape) @ self.over.T).reshape(self.grid.shape)

    def coefficients(self, field: np.ndarray) -> np.ndarray:
        """Scalar products of a field with the modes, flat."""
        return (self.given.T @ field.reshape(self.grid.blocks) @ self.over).ravel()

    def first(self, given: int, over: int) -> Modes:
        """The smoothest of them."""
        values = self.values[:given, :over]
        return Modes(self.grid, values, self.given[:, :given], self.over[:, :over])

    def times(self, factor: float) -> Modes:
        """Those of a multiple of the operator."""
        return dataclasses.replace(self, values=factor * self.values)

    def without_constant(self) -> Modes:
        """Without what depends on $x$ alone: the first mode over $y$ is constant."""
        return Modes(self.grid, self.values[:, 1:], self.given, self.over[:, 1:])


class PlateModes(Modes):
    r"""Modes over all axes that are sums of products of those of the axes, $U = (A \otimes B \otimes \dots) M$.

    Fields, coefficients and quadratic forms are computed axis by axis, at the cost of products and not of points.

    Attributes:
        sides: modes of each axis as orthonormal columns.
        mixed: $M$ `[products, modes]`.
    """

    sides: tuple[np.ndarray, ...]
    mixed: np.ndarray

    def __init__(self, grid: Grid, values: np.ndarray, sides: tuple[np.ndarray, ...], mixed: np.ndarray):
        for name, value in (("grid", grid), ("values", values), ("given", np.ones((1, 1))),
                            ("sides", sides), ("mixed", mixed)):  # fmt: skip
            object.__setattr__(self, name, value)

    @functools.cached_property
    def over(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """All modes as columns."""
        return functools.reduce(np.kron, self.sides) @ self.mixed

    @functools.cached_property
    def pairs(self) -> list[np.ndarray]:
        """Products of every two modes of each axis `[points, modes^2]`."""
        return [(U[:, :, None] * U[:, None]).reshape(len(U), -1) for U in self.sides]

    def field(self, c: np.ndarray) -> np.ndarray:
        """The field with these coefficients."""
        return _along_each(self.sides, (self.mixed @ c).reshape([U.shape[1] for U in self.sides]))

    def coefficients(self, field: np.ndarray) -> np.ndarray:
        """Scalar products of a field with the modes, flat."""
        return _along_each([U.T for U in self.sides], field.reshape(self.grid.shape)).ravel() @ self.mixed

    def gram(self, weights: np.ndarray) -> np.ndarray:
        r"""$U^T \mathrm{diag}(w)\, U$ for weights of the points."""
        counts = [U.shape[1] for U in self.sides]
        G = _along_each([P.T for P in self.pairs], weights.reshape(self.grid.shape))
        G = G.reshape([m for count in counts for m in (count, count)])
        d, size = len(counts), math.prod(counts)
        G = G.transpose(*range(0, 2 * d, 2), *range(1, 2 * d, 2)).reshape(size, size)
        return self.mixed.T @ G @ self.mixed

    def diagonal(self, roots: np.ndarray) -> np.ndarray:
        r"""$\mathrm{diag}(U R^T R\, U^T)$, of the shape of the grid, for rows $R$ of coefficients."""
        counts = [U.shape[1] for U in self.sides]
        half = roots @ self.mixed.T
        d, C = len(counts), (half.T @ half).reshape(counts + counts)
        C = C.transpose([i + side * d for i in range(d) for side in (0, 1)]).reshape([count**2 for count in counts])
        return _along_each(self.pairs, C)

    def first(self, given: int, over: int) -> Modes:
        """The smoothest of them."""
        return self._some(self.values[:, :over], slice(over))

    def times(self, factor: float) -> Modes:
        """Those of a multiple of the operator."""
        return self._some(factor * self.values, slice(None))

    def without_constant(self) -> Modes:
        """Without the first mode, which is constant."""
        return self._some(self.values[:, 1:], slice(1, None))

    def _some(self, values: np.ndarray, kept: slice) -> PlateModes:
        found = PlateModes(self.grid, values, self.sides, self.mixed[:, kept])
        found.__dict__["pairs"] = self.pairs
        return found


def _along_each(matrices: Any, field: np.ndarray) -> np.ndarray:
    """A matrix applied along each dimension of a field."""
    for matrix in matrices:  # the first dimension is done and becomes the last
        field = np.tensordot(field, matrix, axes=(0, 1))
    return field


def _products(parts: list[np.ndarray]) -> np.ndarray:
    """The columns of some matrices multiplied, in all combinations; a single 1 leaves the others as they are."""
    parts = [part for part in parts if part.shape != (1, 1)]
    return functools.reduce(np.kron, parts) if parts else np.ones((1, 1))


@functools.lru_cache(maxsize=64)
def difference_modes(points: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors `[points, modes]` of the square of differences at unit spacing."""
    require_matrix(points, "Laplacian needs none")
    D = np.diff(np.eye(points), n=order, axis=0)
    # Singular values of D, not eigenvalues of its square: the smallest is known to more than half of all digits.
    _, root, V = np.linalg.svd(D)
    free, _ = np.linalg.qr(np.vander(np.linspace(-1, 1, points), order, increasing=True))
    rough = V[: len(root)][::-1].T
    rough = rough - free @ (free.T @ rough)
    return np.concatenate([np.zeros(order), root[::-1] ** 2]), np.concatenate([free, rough], axis=1)


@functools.lru_cache(maxsize=16)
def plate_modes(points: tuple[int, ...], order: int) -> tuple[np.ndarray, tuple[np.ndarray, ...], np.ndarray]:
    """The modes of a plate with sides of unit length, among products of the smoothest ones of its sides.

    Returns:
        Eigenvalues, the modes of each side as columns, and the coefficients of products of these `[products, modes]`.
    """
    sides, energies = [], []
    enough, most = FINE.get(len(points), (math.inf, 0))
    along = most if min(points) >= enough else ALONG[len(points)]
    for count in points:
        U = difference_modes(count, order)[1][:, :along]
        slopes = [U] + [np.diff(U, n=a, axis=0) * (count - 1) ** a for a in range(1, order + 1)]
        sides.append(U)
        energies.append([D.T @ D for D in slopes])
    total = sum(
        factor * functools.reduce(np.kron, [E[a] for E, a in zip(energies, powers, strict=True)])
        for factor, powers in _bends(order, len(points))
    )
    values, mixed = np.linalg.eigh(total)
    free = math.comb(order - 1 + len(points), len(points))
    one = functools.reduce(np.kron, [U.sum(axis=0) for U in sides])
    turn, _ = np.linalg.qr(np.column_stack([one @ mixed[:, :free], np.eye(free)]))
    mixed[:, :free] = mixed[:, :free] @ turn  # the first is constant
    return np.where(np.arange(len(values)) < free, 0.0, values), tuple(sides), mixed


@functools.lru_cache(maxsize=4)
def _plate_vectors(points: tuple[int, ...], order: int) -> np.ndarray:
    """The modes of a plate as columns."""
    _, sides, mixed = plate_modes(points, order)
    return functools.reduce(np.kron, sides) @ mixed


def _bends(order: int, axes: int) -> list[tuple[int, tuple[int, ...]]]:
    """All derivatives of an order: how often each occurs, and how often it is taken along each axis."""
    every = itertools.product(range(order + 1), repeat=axes)
    return [(math.factorial(order) // math.prod(math.factorial(a) for a in powers), powers)
            for powers in every if sum(powers) == order]  # fmt: skip


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
        return Sum(self.grid, ((_factor(factor), self),))

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
        sides = [_products(part) for part in (bases[:given], bases[given:])]
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
        return Waves(self.grid, _factor(factor) * self.values, self.orders)

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


def _factor(value: Any) -> Any:
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


def _squared_difference(field: Any, order: int, dim: int) -> Any:
    """The square of differences of some order along one dimension, without a matrix."""
    library: Any = np if isinstance(field, np.ndarray) else jnp
    pad = [(order, order) if d == dim else (0, 0) for d in range(np.ndim(field))]
    return (-1) ** order * library.diff(library.pad(library.diff(field, n=order, axis=dim), pad), n=order, axis=dim)


def _line(grid: Grid, i: int, values: np.ndarray, order: int) -> Waves:
    """Eigenvalues along one axis."""
    shape = [-1 if j == i else 1 for j in range(len(grid.axes))]
    return Waves(grid, values.reshape(shape), tuple(order if j == i else None for j in range(len(grid.axes))))


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
    total: Any = Mass(grid, 0.0)
    for i in [grid.place(axis) for axis in axes] or range(len(grid.axes)):
        total = total + _line(grid, i, _even(grid.axes[i]).eigenvalues, 0)
    return total


def _even(axis: Axis) -> Axis:
    """An axis, if its points are at equal distances."""
    if axis.bend is not None:
        raise InputError("Argument `axis` must have points at equal distances here, but it is bent: use ThinPlate.")
    return axis


def Mass(grid: Grid, value: float = 1.0) -> Waves:
    """The identity times a number: fields are small."""
    checks.kind("grid", grid, Grid, "a Grid")
    checks.not_negative("value", value)
    return Waves(grid, np.full((1,) * len(grid.axes), checks.number("value", value)), (None,) * len(grid.axes))


def Difference(grid: Grid, axis: Axis, order: int) -> Waves:
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
        return Laplacian(grid, axis) ** order  # pyright: ignore[reportReturnType]
    _check_free(axis, order)
    return _line(grid, place, difference_modes(axis.points, order)[0] / _even(axis).spacing ** (2 * order), order)


def _check_free(axis: Axis, order: int) -> None:
    if not isinstance(axis.ends, Free) or order >= axis.points:
        raise InputError(f"Argument `axis` must have free ends and more than {order} points, but it has not.")


def ThinPlate(grid: Grid, order: int, *axes: Axis) -> Operator:
    r"""Roughness in units of the axes: the sum of the squares of all derivatives of an order along some axes.

    In coordinates $u$ in which every axis has unit length (and the points equal distances, also of an axis that is
    bent) the energy is $\tfrac12 \sum_\alpha \binom{k}{\alpha} \int du\, (\partial^\alpha \phi)^2$, so that
    a strength means the same on every grid. Polynomials below the order are the null space.

    Args:
        grid: where the fields live.
        order: of the derivatives.
        *axes: along which, all with free ends; by default all.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 30, points=16), fields.Axis(0, 1, points=12)])
        >>> len(fields.ThinPlate(grid, 2).modes().values[0])
        192
    """
    checks.kind("grid", grid, Grid, "a Grid")
    places = [grid.place(axis) for axis in axes] or list(range(len(grid.axes)))
    for i in places:
        _check_free(grid.axes[i], checks.whole("order", order, least=1))
    volume = math.prod(axis.length for axis in grid.axes)
    if len(places) == 1:
        axis = grid.axes[places[0]]
        values = difference_modes(axis.points, order)[0] * (axis.points - 1) ** (2 * order) / volume
        return _line(grid, places[0], values, order)
    if len(places) not in ALONG or len(places) != len(grid.axes):
        raise InputError(f"Argument `axes` must be one axis of the grid, or all, two or three, but {len(places)} of "
                         f"{len(grid.axes)} were given.")  # fmt: skip
    return Plate(grid, order, 1 / volume)


class Plate(Operator):
    """A thin plate over all axes of a grid, see `ThinPlate`.

    Attributes:
        order: of the derivatives.
        factor: of the sum of their squares.
    """

    order: int = eqx.field(static=True)
    factor: float

    def apply(self, field: Any) -> Any:
        """Derivative by derivative."""
        first, total = np.ndim(field) - len(self.grid.axes), 0.0 * field
        for often, powers in _bends(self.order, len(self.grid.axes)):
            part = field
            for i, (axis, a) in enumerate(zip(self.grid.axes, powers, strict=True)):
                part = part if a == 0 else (axis.points - 1) ** (2 * a) * _squared_difference(part, a, first + i)
            total = total + self.factor * often * part
        return total

    def modes(self, count: int | tuple[int, ...] | None = None) -> Modes:
        """The smoothest modes, among products of those of the axes."""
        if self.grid.given or count is not None:
            return super().modes(count)
        values, sides, mixed = plate_modes(self.grid.shape, self.order)
        return PlateModes(self.grid, self.factor * values[None], sides, mixed)

    def _smoothest(self) -> tuple[np.ndarray, np.ndarray]:
        """Among products of the smoothest modes of the axes."""
        return self.factor * plate_modes(self.grid.shape, self.order)[0], _plate_vectors(self.grid.shape, self.order)

    def __mul__(self, factor: float) -> Operator:
        return Plate(self.grid, self.order, _factor(factor) * self.factor)

    __rmul__ = __mul__


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
        factor = _factor(factor)
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
        return Sum(self.grid, tuple((_factor(factor) * old, operator) for old, operator in self.terms))

    __rmul__ = __mul__


def _terms(operator: Operator) -> tuple[tuple[float, Operator], ...]:
    return operator.terms if isinstance(operator, Sum) else ((1.0, operator),)


def check_operator(operator: Any) -> None:
    """Refuse what is neither an operator nor left out."""
    checks.kind("operator", operator, (Operator, type(None)), "an operator such as Laplacian(grid), or None")
