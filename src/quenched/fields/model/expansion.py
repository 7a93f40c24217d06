r"""An energy about a field, on the host: its value, its slope and its curvature, the latter kept as its parts."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from quenched.fields.model.modes import Modes, PlateModes


class Curvature(abc.ABC):
    """Second derivatives of the data's energy by the components of the field."""

    @abc.abstractmethod
    def matrix(self) -> np.ndarray:
        """As a dense matrix `[points, points]` of flattened fields."""

    @abc.abstractmethod
    def project(self, modes: Modes) -> np.ndarray:
        r"""In modes, $U^T H U$ `[modes, modes]`."""

    def apply(self, fields: np.ndarray) -> np.ndarray:
        """Its product with flattened fields `[..., points]`."""
        return fields @ self.matrix()


@dataclasses.dataclass(frozen=True, eq=False)
class DenseCurvature(Curvature):
    """A matrix.

    Attributes:
        H: the matrix.
    """

    H: np.ndarray

    def matrix(self) -> np.ndarray:
        """Itself."""
        return self.H

    def project(self, modes: Modes) -> np.ndarray:
        """By two products."""
        return modes.matrix.T @ self.H @ modes.matrix


@dataclasses.dataclass(frozen=True, eq=False)
class DesignCurvature(Curvature):
    r"""$S^T W S$: rows that see the field by a matrix $S$, with a curvature each.

    Attributes:
        design: $S$ `[n, points]`, sparse.
        weights: the diagonal of $W$.
    """

    design: Any
    weights: np.ndarray

    def _sparse(self) -> Any:
        return self.design.T @ (self.design * self.weights[:, None])

    def matrix(self) -> np.ndarray:
        """By a sparse product."""
        return self._sparse().toarray()

    def project(self, modes: Modes) -> np.ndarray:
        """By a sparse product first."""
        return modes.matrix.T @ (self._sparse() @ modes.matrix)

    def apply(self, fields: np.ndarray) -> np.ndarray:
        """Row by row."""
        seen = self.weights[:, None] * (self.design @ fields.reshape(-1, self.design.shape[1]).T)
        return (self.design.T @ seen).T.reshape(fields.shape)


@dataclasses.dataclass(frozen=True, eq=False)
class ShareCurvature(Curvature):
    r"""$n_x (\mathrm{diag}\, p_x - p_x p_x^T)$ for each $x$: the covariance of counts.

    Attributes:
        level: $n_x$ `[x]`.
        shares: $p_x$ `[x, y]`, each row with the sum 1.
    """

    level: np.ndarray
    shares: np.ndarray

    def matrix(self) -> np.ndarray:
        """One block for each x."""
        (X, Y), p = self.shares.shape, self.shares
        H = np.zeros((X, Y, X, Y))
        x = np.arange(X)
        H[x, :, x] = self.level[:, None, None] * (p[:, :, None] * np.eye(Y) - p[:, :, None] * p[:, None])
        return H.reshape(X * Y, X * Y)

    def project(self, modes: Modes) -> np.ndarray:
        r"""$\sum_x n_x u_a u_{a'}\, \mathrm{cov}_x(v_b, v_{b'})$."""
        p = self.shares
        if isinstance(modes, PlateModes):
            mean = modes.coefficients(p)
            return self.level[0] * (modes.gram(p) - mean[:, None] * mean)
        u, v = modes.given, modes.over
        if len(p) == 1:
            B = np.sqrt(self.level[0] * p[0])[:, None] * (v - p[0] @ v)
            return u[0, 0] ** 2 * (B.T @ B)
        B = np.sqrt(p)[:, :, None] * (v - (p @ v)[:, None])
        cov = B.transpose(0, 2, 1) @ B
        outer = (self.level[:, None, None] * u[:, :, None] * u[:, None]).reshape(len(u), -1)
        a, b = modes.values.shape
        return (outer.T @ cov.reshape(len(u), -1)).reshape(a, a, b, b).transpose(0, 2, 1, 3).reshape(a * b, a * b)

    def apply(self, fields: np.ndarray) -> np.ndarray:
        """Block by block."""
        f = fields.reshape(-1, *self.shares.shape)
        f = f - np.sum(self.shares * f, axis=-1, keepdims=True)
        return (self.level[:, None] * self.shares * f).reshape(fields.shape)


@dataclasses.dataclass(frozen=True, eq=False)
class Expansion:
    """The energy of a problem about a field.

    Attributes:
        energy: its value.
        loss: the part of the data.
        slope: its derivatives, flat.
        hessian: computes the matrix of its second derivatives.
    """

    energy: float
    loss: float
    slope: np.ndarray
    hessian: Callable[[], np.ndarray]
