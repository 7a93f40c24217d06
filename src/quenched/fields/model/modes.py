r"""Modes of operators: functions that an operator only multiplies by numbers, the smoothest first."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np

from quenched.core.system import require_memory
from quenched.fields.model.grid import Grid

ALONG, FINE = {2: 18, 3: 8}, {2: (96, 24)}
"""By dimension: modes of each axis of which those of a plate are made; and points from which on it is more of them."""
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
        return multiply([self.given, self.over])

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


def multiply(parts: list[np.ndarray]) -> np.ndarray:
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
        for factor, powers in find_bends(order, len(points))
    )
    values, mixed = np.linalg.eigh(total)
    free = math.comb(order - 1 + len(points), len(points))
    one = functools.reduce(np.kron, [U.sum(axis=0) for U in sides])
    turn, _ = np.linalg.qr(np.column_stack([one @ mixed[:, :free], np.eye(free)]))
    mixed[:, :free] = mixed[:, :free] @ turn  # the first is constant
    return np.where(np.arange(len(values)) < free, 0.0, values), tuple(sides), mixed


@functools.lru_cache(maxsize=4)
def plate_vectors(points: tuple[int, ...], order: int) -> np.ndarray:
    """The modes of a plate as columns."""
    _, sides, mixed = plate_modes(points, order)
    return functools.reduce(np.kron, sides) @ mixed


def find_bends(order: int, axes: int) -> list[tuple[int, tuple[int, ...]]]:
    """All derivatives of an order: how often each occurs, and how often it is taken along each axis."""
    every = itertools.product(range(order + 1), repeat=axes)
    return [(math.factorial(order) // math.prod(math.factorial(a) for a in powers), powers)
            for powers in every if sum(powers) == order]  # fmt: skip
