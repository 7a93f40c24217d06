r"""Learning matrices: how the descent field $G$ becomes a step, $A\, \Delta\phi = \eta\, G$. [lemm1999, section 7.2]

| object | $A$ |
|---|---|
| `Gradient` | $I$ |
| `Jacobi` | $D$, the diagonal of $K$ |
| `GaussSeidel` | $D$ and what is below the diagonal of $K$ |
| `PriorRelaxation` | $K$, and $I$ on its null space |
| `Massive` | $K + m^2 I$ |
| `GaussianFilter` | $e^{-\sigma^2 \Delta/2}$: the gradient is smoothed over a length $\sigma$ |
| `DirichletRelaxation` | $K$ inside, and nothing moves on a boundary |
| `Newton` | $-H$ of the whole energy; with a mass where it is not positive |

All are positive, so that every step is one of descent. $K$ is the operator of the prior, or a given one (the paper
takes it without its factor $\lambda$).
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import numpy as np
import scipy.linalg

from quenched.core import checks
from quenched.core.types import InputError, Real, real
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import SquareRoot
from quenched.fields.model.operators import Laplacian, Mass, Operator, check_operator
from quenched.fields.model.priors import operator_of
from quenched.fields.model.problem import Problem


class LearningMatrix(eqx.Module):
    """How a gradient becomes a step."""

    @abc.abstractmethod
    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        r"""$A^{-1} G$ at a field."""


class Gradient(LearningMatrix):
    """Steepest descent."""

    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        """$G$."""
        return G


def _operator(problem: Problem, operator: Operator | None) -> Operator:
    if operator is not None and operator.grid != problem.grid:
        raise InputError("Argument `operator` must live on the grid of the problem, but it has another.")
    return operator_of(problem.prior) if operator is None else operator


class Jacobi(LearningMatrix):
    """Each component by its own curvature in the prior.

    Attributes:
        operator: $K$; by default that of the prior.
    """

    operator: Operator | None = None

    def __check_init__(self):
        check_operator(self.operator)

    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        """$G/D$."""
        D = np.diag(_operator(problem, self.operator).matrix).reshape(G.shape)
        return G / np.where(D > 0, D, 1.0)


class GaussSeidel(LearningMatrix):
    """One component after the other, each with the new values of those before.

    Attributes:
        operator: $K$; by default that of the prior.
    """

    operator: Operator | None = None

    def __check_init__(self):
        check_operator(self.operator)

    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        """By forward substitution."""
        A = np.tril(_operator(problem, self.operator).matrix)
        A[np.diag_indices_from(A)] = np.where(np.diag(A) > 0, np.diag(A), 1.0)
        return scipy.linalg.solve_triangular(A, G.ravel(), lower=True).reshape(G.shape)


class PriorRelaxation(LearningMatrix):
    """The inverse of the prior's operator; a gradient step in its null space.

    Attributes:
        operator: $K$; by default that of the prior.
    """

    operator: Operator | None = None

    def __check_init__(self):
        check_operator(self.operator)

    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        r"""$K^\# G$ and the part of $G$ in the null space."""
        K = _operator(problem, self.operator)
        null = K.null_space().reshape(-1, G.size)
        return K.solve(G) + (G.ravel() @ null.T @ null).reshape(G.shape)


class Massive(LearningMatrix):
    """Prior relaxation with a mass, which makes the operator invertible.

    Attributes:
        mass: $m^2$.
        operator: $K$; by default that of the prior.
    """

    mass: Real = eqx.field(converter=real, default=0.01)
    operator: Operator | None = None

    def __check_init__(self):
        check_operator(self.operator)
        checks.positive("mass", self.mass)

    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        """$(K + m^2)^{-1} G$."""
        return (_operator(problem, self.operator) + Mass(problem.grid, float(self.mass))).solve(G)


class GaussianFilter(LearningMatrix):
    r"""The gradient smoothed by a Gaussian. [lemm1999, eqs. (648) to (653), erratum F651]

    Attributes:
        length: $\sigma$, in the units of the axes.
    """

    length: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("length", self.length)

    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        r"""$e^{\sigma^2 \Delta/2} G$."""
        waves = Laplacian(problem.grid)
        damping = np.exp(-0.5 * float(self.length) ** 2 * waves.values)
        return np.asarray(waves.in_modes(G, lambda a: a * damping))


class DirichletRelaxation(LearningMatrix):
    r"""The prior's operator inside a boundary on which the field is not moved. [lemm1999, eqs. (669), (670)]

    Attributes:
        boundary: where nothing moves: an array of truth values of the shape of the grid, or several `[k, ...]` that
            take turns.
        operator: $K$; by default that of the prior.
    """

    boundary: Any
    operator: Operator | None = None

    def __check_init__(self):
        check_operator(self.operator)
        checks.finite("boundary", self.boundary)

    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        r"""$K_{II}^{-1} G_I$."""
        masks = np.asarray(self.boundary, dtype=bool)
        if masks.shape[-G.ndim :] != G.shape or masks.ndim not in (G.ndim, G.ndim + 1):
            raise InputError(
                f"Argument `boundary` must have the shape {G.shape} of the grid, but it has {masks.shape}."
            )
        masks = masks.reshape(-1, G.size)
        inside = ~masks[iteration % len(masks)]
        A = _operator(problem, self.operator).matrix[np.ix_(inside, inside)]
        step = np.zeros(G.size)
        step[inside] = np.linalg.lstsq(A, G.ravel()[inside], rcond=None)[0]
        return step.reshape(G.shape)


def each_x(grid: Grid) -> np.ndarray:
    """One row of a flattened field for each $x$: ones at its points."""
    xs = int(np.prod([axis.points for axis in grid.given]))
    return np.kron(np.eye(xs), np.ones((1, grid.size // xs)))


def curvatures(problem: Problem, field: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of the Hessian per volume, with a curvature along what normalisation takes away."""
    H = problem.hessian(field) / problem.grid.cell
    gone = each_x(problem.grid) * (field.ravel() if isinstance(problem.link, SquareRoot) else 1.0)
    gone = gone / np.linalg.norm(gone, axis=1, keepdims=True)
    return np.linalg.eigh((H + H.T) / 2 + np.max(np.abs(H)) * gone.T @ gone)


class Newton(LearningMatrix):
    r"""The whole Hessian; where it is not positive, a mass is added that makes it so.

    Along what the normalisation takes away (shifts of $L$ or $g$, multiples of $\sqrt P$, by a function of $x$) nothing
    pulls and the Hessian is singular: there it gets a curvature.

    Attributes:
        mass: least eigenvalue that a direction of negative curvature gets, as a share of the largest.
    """

    mass: Real = eqx.field(converter=real, default=1e-3)

    def __check_init__(self):
        checks.positive("mass", self.mass)

    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        """By eigenvectors."""
        values, vectors = curvatures(problem, field)
        least = float(self.mass) * np.max(np.abs(values))
        values = np.where(values > 0, values, np.maximum(-values, least))
        return (vectors @ ((vectors.T @ G.ravel()) / values)).reshape(G.shape)
