r"""The learning matrices of the paper beside `Newton`. [lemm1999, section 7.2]

| object | $A$ |
|---|---|
| `Gradient` | $I$ |
| `Jacobi` | $D$, the diagonal of $K$ |
| `GaussSeidel` | $D$ and what is below the diagonal of $K$ |
| `PriorRelaxation` | $K$, and $I$ on its null space |
| `Massive` | $K + m^2 I$ |
| `GaussianFilter` | $e^{-\sigma^2 \Delta/2}$: the gradient is smoothed over a length $\sigma$ |
| `DirichletRelaxation` | $K$ inside, and nothing moves on a boundary |

$K$ is the operator of the prior, or a given one (the paper takes it without its factor $\lambda$).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
import scipy.linalg

from quenched.core import checks
from quenched.core.types import InputError, Real, real
from quenched.fields.learner.matrices import LearningMatrix
from quenched.fields.model.operators import Operator, check_operator
from quenched.fields.model.priors import operator_of
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass


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
