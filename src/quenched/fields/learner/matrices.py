r"""Learning matrices: how the descent field $G$ becomes a step, $A\, \Delta\phi = \eta\, G$. [lemm1999, section 7.2]

`Newton` takes $-H$ of the whole energy, with a mass where it is not positive; the others of the paper stand with its
figures. All are positive, so that every step is one of descent.
"""

from __future__ import annotations

import abc

import equinox as eqx
import numpy as np

from quenched.core import checks
from quenched.core.types import Real, real
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import SquareRoot
from quenched.fields.model.problem import Problem


class LearningMatrix(eqx.Module):
    """How a gradient becomes a step."""

    @abc.abstractmethod
    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        r"""$A^{-1} G$ at a field."""


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
