r"""Likelihoods of rows: each row sees the field at one place, or several fields there, and all rows are independent.

$$E = \sum_i w_i\, V_i\big((S\phi)_i\big), \qquad (S\phi)_i = \sum_j S_{ij} \phi_j .$$
$S$ is linear between the points of axes with `tails`, and takes the nearest point of a lattice. With several fields
$\phi_k(x)$, the components along the last axis of the grid, $(S\phi)_i$ has a number for each. Gradient
and Hessian follow from those of the rows, $S^T V'$ and $S^T V'' S$; rows give them on the host, most in closed form.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from quenched.core import checks
from quenched.core.types import Array, InputError
from quenched.fields.model.expansion import Curvature
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import Likelihood
from quenched.fields.model.links import Direct, Link
from quenched.fields.model.modes import Modes


def weigh_rows(axes: tuple[Axis, ...], rows: np.ndarray, *, additive: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Flat places `[n, terms]` of rows on the grid of some axes and their shares.

    If `additive`, the first axis counts columns and the second is where a column's value lies: each column has its
    place, and the field is summed over them.
    """
    if not additive:
        return Grid(given=axes).corners(rows, straight=True)[:2]
    hats = [axes[1].hats(column, straight=True)[:2] for column in rows.T]
    places = np.concatenate([i * axes[1].points + at for i, (at, _) in enumerate(hats)], axis=1)
    return places, np.concatenate([share for _, share in hats], axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class RowCurvature(Curvature):
    r"""The Hessian of the data, $S^T V'' S$, kept as its parts.

    Attributes:
        design: $S$ `[n, inputs]`, sparse.
        bends: $w V''$: `[n]`, or `[n, k, k]` for `k` components.
    """

    design: Any
    bends: np.ndarray

    @property
    def diagonal(self) -> bool:
        """Whether the Hessian is diagonal: every row lies on one point, and there is one component."""
        return self.bends.ndim == 1 and bool(np.all(np.diff(self.design.indptr) <= 1))

    def apply(self, fields: np.ndarray) -> np.ndarray:
        """Its product with flattened fields `[..., points]`."""
        flat = np.asarray(fields).reshape(-1, self._points)
        if self.bends.ndim == 1:
            return (self.design.T @ (self.bends[:, None] * (self.design @ flat.T))).T.reshape(np.shape(fields))
        k = self.bends.shape[1]
        return np.stack([
            (self.design.T @ np.einsum("nij,nj->ni", self.bends, self.design @ one.reshape(-1, k))).ravel()
            for one in flat
        ]).reshape(np.shape(fields))  # fmt: skip

    @property
    def _points(self) -> int:
        return self.design.shape[1] * (1 if self.bends.ndim == 1 else self.bends.shape[1])

    def matrix(self) -> np.ndarray:
        """As a dense matrix `[points, points]`."""
        k = 1 if self.bends.ndim == 1 else self.bends.shape[1]
        return self._within(np.eye(self.design.shape[1]), np.eye(k))

    def project(self, modes: Modes) -> np.ndarray:
        """In modes `[a b, a b]`, those of the last axis last."""
        return self._within(*self._split(modes))

    def _split(self, modes: Modes) -> tuple[np.ndarray, np.ndarray]:
        """Modes of the inputs and of the components."""
        k = 1 if self.bends.ndim == 1 else self.bends.shape[1]
        if modes.grid.over and k > 1:
            return modes.given, modes.over
        whole = modes.over if modes.grid.over else modes.given
        return (whole, np.eye(1)) if k == 1 else (whole, np.eye(k))

    def _within(self, inputs: np.ndarray, components: np.ndarray) -> np.ndarray:
        if inputs.shape[0] != self.design.shape[1]:  # modes of functions with components, not products
            H = self.apply(np.ascontiguousarray(inputs.T)) @ inputs
            return (H + H.T) / 2
        B = self.design @ inputs
        if self.bends.ndim == 1:
            return B.T @ (self.bends[:, None] * B)
        bends = np.einsum("nij,ia,jb->nab", self.bends, components, components, optimize=True)
        k, m = components.shape[1], inputs.shape[1]
        H = np.empty((m, k, m, k))
        for i, j in itertools.product(range(k), repeat=2):
            H[:, i, :, j] = B.T @ (bends[:, i, j, None] * B) if j >= i else H[:, j, :, i].T
        return H.reshape(m * k, m * k)


class RowData(Likelihood):
    """Rows that see a field at one place each, or several components of a field.

    Attributes:
        points: inputs `[n, dimensions]`; inputs may repeat.
        weights: how often each row counts; by default once.
        places, shares: on a grid, the flat places of the inputs `[n, terms]` and their shares.
    """

    components: ClassVar[bool] = False  # whether the last axis of the grid counts components
    links: ClassVar[tuple[type[Link], ...]] = (Direct,)

    if TYPE_CHECKING:  # fields of the subclasses, whose order is theirs
        points: Any
        weights: Any
        places: Any
        shares: Any

    @abc.abstractmethod
    def row_energy(self, values: Array) -> Array:
        """$V$ of each row `[n]`, of the field's values there (pure JAX)."""

    def expand_rows(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """$V$, its derivatives and its second derivatives of each row; by default of `row_energy` by JAX."""
        with jax.enable_x64(True):
            at = jnp.asarray(values, jnp.float64)
            slope = jax.grad(lambda v: jnp.sum(self.row_energy(v)))
            columns = [()] if at.ndim == 1 else [(slice(None), j) for j in range(at.shape[1])]
            units = [jnp.zeros_like(at).at[column].set(1.0) for column in columns]
            bends = [np.asarray(jax.jvp(slope, (at,), (unit,))[1]) for unit in units]  # rows do not see each other
            energies, slopes = np.asarray(self.row_energy(at)), np.asarray(slope(at))
        return energies, slopes, bends[0] if at.ndim == 1 else np.stack(bends, axis=-1)

    def check_rows(self, grid: Grid) -> None:
        """Check that the rows fit a grid."""

    @property
    def additive(self) -> bool:
        """Whether the field is a sum of fields of one column each."""
        return False

    @property
    def total(self) -> float:
        """How many rows there are, each counted with its weight."""
        return float(np.shape(self.points)[0] if self.weights is None else np.sum(self.weights))

    def prepared(self, grid: Grid) -> RowData:
        """Placed on a grid that it fits."""
        if self.places is not None:
            return self
        self.check_rows(grid)
        return self.placed(grid)

    def placed(self, grid: Grid) -> RowData:
        """Placed on a grid."""
        axes = self._inputs(grid)
        rows = checks.numbers("points", self.points)
        rows = rows[:, None] if rows.ndim == 1 else rows
        columns = axes[0].points if self.additive else len(axes)
        if rows.ndim != 2 or rows.shape[1] != columns:
            raise InputError(f"Argument `points` must be rows of {columns} numbers, but its shape is {rows.shape}.")
        places, shares = weigh_rows(axes, rows, additive=self.additive)
        return dataclasses.replace(self, places=places, shares=shares)

    def _inputs(self, grid: Grid) -> tuple[Axis, ...]:
        axes = grid.axes[:-1] if self.components else grid.axes
        if not axes:
            raise InputError("The grid must have an axis for the inputs before the one that counts components, but it "
                             "has one axis.")  # fmt: skip
        return axes

    def values(self, field: Any) -> Any:
        """The field at each row `[n]`, or `[n, components]`."""
        if self.components:
            flat = field.reshape(-1, np.shape(field)[-1])
            return (flat[self.places] * self.shares[..., None]).sum(axis=1)
        return (field.reshape(-1)[self.places] * self.shares).sum(axis=1)

    def energy(self, link: Link, field: Array) -> Array:
        r"""$\sum_i w_i V_i$."""
        one = self.row_energy(self.values(field))
        return one.sum() if self.weights is None else (self.weights * one).sum()

    def expand(self, link: Link, field: np.ndarray) -> tuple[float, np.ndarray, RowCurvature]:
        """Energy, gradient and curvature of the data on the host."""
        field, kind = np.asarray(field, dtype=np.float64), type(self)  # Equinox is slow to bind methods
        energies, slopes, bends = kind.expand_rows(self, np.asarray(kind.values(self, field)))
        w = np.ones(len(energies)) if self.weights is None else np.asarray(self.weights)
        S = kind.design(self, field.shape)
        gradient = S.T @ (slopes * (w[:, None] if slopes.ndim == 2 else w))
        bends = bends * w.reshape(-1, *[1] * (bends.ndim - 1))
        return float(w @ energies), gradient.reshape(field.shape), RowCurvature(S, bends)

    def design(self, shape: tuple[int, ...]) -> scipy.sparse.csr_array:
        """$S$ as a sparse matrix `[n, inputs]`, without zeros."""
        inputs = int(np.prod(shape[:-1] if self.components else shape))
        n, terms = np.shape(self.places)
        entries = (np.ravel(self.shares), np.ravel(self.places), np.arange(n + 1) * terms)
        S = scipy.sparse.csr_array(entries, shape=(n, inputs), copy=True)  # zeros are eliminated in place
        S.eliminate_zeros()
        return S


def check_rows(points: Any, weights: Any, **others: Any) -> None:
    """Check inputs, weights and what else there is one of for each row."""
    checks.finite("points", points)
    n = np.shape(points)[0] if np.ndim(points) else 0
    if n == 0 or np.size(points) == 0:
        raise InputError("Argument `points` must have at least one point, but there is none.")
    for name, value in others.items():
        checks.finite(name, value)
        if np.shape(value)[:1] != (n,):
            raise InputError(f"Argument `{name}` must have one entry for each of the {n} points, but its shape is "
                             f"{np.shape(value)}.")  # fmt: skip
    check_weights(n, weights)


def check_weights(n: int, weights: Any) -> None:
    """Check how often rows count."""
    if weights is not None:
        checks.not_negative("weights", weights)
        if np.shape(weights) != (n,) or not np.any(np.asarray(weights) > 0):
            raise InputError(f"Argument `weights` must be one number for each of the {n} rows, some of them "
                             "positive, but it is not.")  # fmt: skip
