r"""Learning matrices: how the descent field $G$ becomes a step, $A\, \Delta\phi = \eta\, G$. [lemm1999, section 7.2]

`Newton` takes $-H$ of the whole energy, with a mass where it is not positive; the others of the paper stand with its
figures. All are positive, so that every step is one of descent.
"""

from __future__ import annotations

import abc

import equinox as eqx
import numpy as np
from scipy.linalg import get_lapack_funcs

from quenched.core import checks
from quenched.core.types import Real, real
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import Direct, SquareRoot
from quenched.fields.model.problem import Problem

RIDGE = 1e-11
"""What is added to the unit diagonal of a scaled Hessian that is singular: nearly all rows are at one point."""


FLAT = 1e-9
"""Nothing pulls in a direction in which the Hessian is below this share of its largest entry."""
_factorise, _solve = get_lapack_funcs(("potrf", "potrs"), dtype=np.float64)


class Method(eqx.Module):
    """A way to a field of least energy: a learning matrix, `Reweighting` or `Splitting`."""


class LearningMatrix(Method):
    """How a gradient becomes a step."""

    @abc.abstractmethod
    def step(self, problem: Problem, field: np.ndarray, G: np.ndarray, iteration: int) -> np.ndarray:
        r"""$A^{-1} G$ at a field."""


def each_x(grid: Grid) -> np.ndarray:
    """One row of a flattened field for each $x$: ones at its points."""
    return np.kron(np.eye(grid.blocks[0]), np.ones((1, grid.blocks[1])))


def curvature(problem: Problem, field: np.ndarray) -> np.ndarray:
    """The Hessian, with a curvature along what normalisation takes away."""
    H = problem.expand(field).hessian()
    if isinstance(problem.link, Direct):
        gone = problem.undetermined
        return (H + H.T) / 2 + (np.max(np.abs(H)) * gone.T @ gone if len(gone) else 0.0)
    gone = each_x(problem.grid) * (field.ravel() if isinstance(problem.link, SquareRoot) else 1.0)
    gone = gone / np.linalg.norm(gone, axis=1, keepdims=True)
    if problem.link.linear:  # a prior about the field itself may pull at shifts
        gone = gone[np.max(np.abs(gone @ H), axis=1) <= FLAT * np.max(np.abs(H))]
    return (H + H.T) / 2 + np.max(np.abs(H)) * gone.T @ gone


def factor(H: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Cholesky factor of a matrix with unit diagonal, and the scale taken out; None if the matrix is not positive."""
    diagonal = H.diagonal()
    if not np.all(diagonal > 0):
        return None
    scale = np.sqrt(diagonal)
    A = H / scale / scale[:, None]
    for ridge in (0.0, RIDGE):
        A.flat[:: len(A) + 1] += ridge
        upper, fails = _factorise(A.T, lower=False)  # A.T is A: in the order of Fortran
        if not fails:
            return upper.T, scale
    return None


def solve_factored(found: tuple[np.ndarray, np.ndarray], right: np.ndarray) -> np.ndarray:
    """The solution of a system whose matrix was factored."""
    lower, scale = found
    return _solve(lower.T, right / scale, lower=False)[0] / scale


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
        """By a factor of the Hessian, or by its eigenvectors."""
        return self.invert(curvature(problem, field), problem.grid.cell * G.ravel())[0].reshape(G.shape)

    def invert(self, H: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
        """The step, and the factor of a Hessian that is positive."""
        found = factor(H)
        if found is not None:
            return solve_factored(found, right), found
        if not np.all(np.isfinite(H)):  # hardly any density where data are: along the slope
            return right, None
        values, vectors = np.linalg.eigh(H)
        least = float(self.mass) * np.max(np.abs(values))
        values = np.where(values > 0, values, np.maximum(-values, least))
        return vectors @ ((vectors.T @ right) / values), None
