r"""An energy whose second derivatives are sparse: rows of data, Gaussians and potentials of filtered differences.

Matrices are factored once for each step, so that an image of 256 x 256 points takes a fraction of a second. An operator
is known by what it does; its matrix is found by applying it to combs, fields that are 1 at points too far apart to
meet, and checked on a random field.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh, splu

from quenched.core.types import InputError
from quenched.fields.learner.matrices import Method, each_x
from quenched.fields.model.expansion import Curvature, DesignCurvature
from quenched.fields.model.links import Direct
from quenched.fields.model.operators import Operator
from quenched.fields.model.potentials import Potential
from quenched.fields.model.priors import And, Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.rows import RowCurvature

REACHES = (1, 2, 3, 4)
"""How far an operator may reach, in points."""
SMALL = 1500
"""Operators on fewer points are taken as dense matrices where combs do not find them."""
SPARSE, BLIND = 1e-10, 1e-9
"""Entries below the first share of the largest are zero; a prior that pulls by less than the second share does not
see a field."""
TOWARDS = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
"""How a symmetric matrix is factored: without moving its diagonal, whose signs are then those of its eigenvalues."""


class Solver(Method):
    """A method that is no learning matrix."""

    @abc.abstractmethod
    def descend(self, problem: Problem, starts: list[np.ndarray] | None, tolerance: float, max_steps: int) -> list[Any]:
        """Where it arrives from each of some fields, as fits; by default from those that suit it."""


def matrix_of(operator: Operator) -> sparse.csr_array:
    """The matrix of an operator.

    Raises:
        InputError: if it is not sparse and the grid is large.
    """
    W = getattr(operator, "W", None)
    if W is not None:
        return sparse.csr_array(np.asarray(W).T @ np.asarray(W))
    probe = np.random.default_rng(0).normal(size=operator.grid.shape)
    seen = np.asarray(operator.apply(probe)).ravel()
    for reach in REACHES:
        if max(operator.grid.shape) > 2 * reach:
            found = _comb(operator, reach)
            if np.max(np.abs(found @ probe.ravel() - seen)) <= SPARSE * np.max(np.abs(seen), initial=1e-300):
                return found
    if operator.grid.size > SMALL:
        raise InputError(f"Operators must be sparse on a grid of {operator.grid.size} points, but one of the prior is "
                         "not.")  # fmt: skip
    return sparse.csr_array(operator.matrix)


def _comb(operator: Operator, reach: int) -> sparse.csr_array:
    """Its matrix, if it reaches no further."""
    shape, size = operator.grid.shape, operator.grid.size
    colours = []
    for n in shape:
        stride = min(2 * reach + 1, n)
        colour = np.arange(n) % stride
        colour[n - n % stride :] += stride  # around a periodic axis
        colours.append(colour)
    index = np.arange(size).reshape(shape)
    entries, rows, columns = [], [], []
    for several in itertools.product(*(np.unique(colour) for colour in colours)):
        teeth = np.ones(shape, dtype=bool)
        for dim, (colour, one) in enumerate(zip(colours, several, strict=True)):
            teeth &= (colour == one).reshape([-1 if d == dim else 1 for d in range(len(shape))])
        found = np.asarray(operator.apply(teeth.astype(float)))
        for shift in itertools.product(*(range(-reach, reach + 1) for _ in shape)):
            if any(abs(a) >= n for a, n in zip(shift, shape, strict=True)):
                continue
            tooth = np.roll(np.where(teeth, index, -1), shift, axis=tuple(range(len(shape))))
            here = (tooth >= 0) & (np.abs(found) > 0)
            entries.append(found[here])
            rows.append(index[here])
            columns.append(tooth[here])
    at = np.concatenate(rows) * size + np.concatenate(columns)
    at, first = np.unique(at, return_index=True)
    values = np.concatenate(entries)[first]
    kept = np.abs(values) > SPARSE * np.max(np.abs(values), initial=1e-300)
    return sparse.csr_array((values[kept], (at[kept] // size, at[kept] % size)), shape=(size, size))


@dataclasses.dataclass
class Look:
    """The energy at a field: its value, the part of the data, its slope, and the filtered differences."""

    energy: float
    loss: float
    slope: np.ndarray
    omegas: list[np.ndarray]


class SparseEnergy:
    """The energy of a problem, on the host.

    Attributes:
        problem: what is asked.
        potentials: parts of the prior that are not Gaussian.
    """

    def __init__(self, problem: Problem):
        self.problem, self.cell = problem, problem.grid.cell
        parts = problem.prior.parts if isinstance(problem.prior, And) else (problem.prior,)
        for part in parts:
            if not isinstance(part, (Gaussian, Potential)):
                raise InputError("Argument `method` must be Newton() for this prior, because it has parts that are "
                                 f"neither Gaussians nor potentials: {type(part).__name__}.")  # fmt: skip
        self.potentials = [part for part in parts if isinstance(part, Potential)]
        gaussians = [part for part in parts if isinstance(part, Gaussian)]
        size = problem.grid.size
        matrices = [self.cell * matrix_of(part.operator) for part in gaussians]
        self.K: Any = sum(matrices, sparse.csr_array((size, size)))
        means = [np.ravel(part.mean) for part in gaussians]
        self.push = sum((M @ t for M, t in zip(matrices, means, strict=True)), np.zeros(size))
        self.rest = 0.5 * sum(float(t @ (M @ t)) for M, t in zip(matrices, means, strict=True))
        self.expand, self.known = problem.expand_data, None
        self.gone: Any = self._shifts()

    def _shifts(self) -> Any:
        """Fields that change nothing, as rows: shifts of the logarithm of a density."""
        if isinstance(self.problem.link, Direct):
            return None
        if not self.problem.link.exponential:
            raise InputError("Argument `method` must be Newton() for this link, but potentials are used with Direct "
                             "and log-densities here.")  # fmt: skip
        gone = each_x(self.problem.grid)
        noise = np.random.default_rng(0).normal(size=gone.shape[1])
        for matrix in (self.K, *(part.filter.matrix for part in self.potentials)):
            if np.max(np.abs(matrix @ gone.T)) > BLIND * np.max(np.abs(matrix @ noise), initial=1e-300):
                raise InputError("Argument `method` must be Newton() here, because the prior pulls at functions of x "
                                 "alone.")  # fmt: skip
        return gone / np.linalg.norm(gone, axis=1, keepdims=True)

    def data(self, c: np.ndarray) -> tuple[float, np.ndarray, Curvature]:
        """The energy of the data, its slope and its curvature."""
        return self.expand(c.reshape(self.problem.grid.shape))

    def base(self, c: np.ndarray) -> tuple[float, np.ndarray, float]:
        """The energy of data and Gaussians, its slope, and the part of the data."""
        loss, slope, _ = self.data(c)
        Kc = self.K @ c
        return loss + 0.5 * float(c @ Kc) - float(self.push @ c) + self.rest, slope.ravel() + Kc - self.push, loss

    def curvature(self, c: np.ndarray) -> Any:
        """Second derivatives of data and Gaussians, and what makes shifts count."""
        if self.known is None or not self.problem.likelihood.quadratic:
            H = self.K + _sparse(self.data(c)[2])
            if self.gone is not None:
                H = H + sparse.csr_array(float(np.max(np.abs(H))) * self.gone.T @ self.gone)
            self.known = H
        return self.known

    def look(self, c: np.ndarray, potentials: list[Potential]) -> Look:
        """Energy and slope with some potentials."""
        energy, slope, loss = self.base(c)
        omegas = []
        for part in potentials:
            omega = part.differences(c.reshape(self.problem.grid.shape))
            length = part.lengths(omega)
            energy += self.cell * float(np.sum(part.psi.value(length)))
            pull = self.cell * part.psi.slope(length) * part.directions(omega, length)
            slope = slope + part.filter.matrix.T @ pull.ravel()
            omegas.append(omega)
        return Look(energy, loss, slope, omegas)


def _sparse(curvature: Curvature) -> Any:
    if isinstance(curvature, DesignCurvature):
        return curvature.design.T @ (curvature.design * curvature.weights[:, None])
    if isinstance(curvature, RowCurvature) and curvature.bends.ndim == 1:
        return curvature.design.T @ (curvature.design * curvature.bends[:, None])
    return sparse.csr_array(curvature.matrix())


@dataclasses.dataclass
class Factor:
    """A factored symmetric matrix, and whether it is positive definite."""

    solve: Any
    positive: bool


def factor(A: Any) -> Factor | None:
    """Factors of a symmetric matrix in units of its diagonal; None if it is singular."""
    diagonal = A.diagonal()
    if not np.all(np.isfinite(A.data)) or not np.all(diagonal > 0):
        return None
    scale = 1 / np.sqrt(diagonal)
    D = sparse.diags_array(scale)
    try:
        lu = splu(sparse.csc_array(D @ A @ D), **TOWARDS)
    except RuntimeError:  # exactly singular
        return None
    pivots = lu.U.diagonal()
    if np.min(np.abs(pivots)) < 1e-14:
        return None
    straight = np.array_equal(lu.perm_r, lu.perm_c)
    return Factor(lambda right: scale * lu.solve(scale * right), straight and bool(np.all(pivots > 0)))


def lowest(H: Any) -> tuple[float, np.ndarray]:
    """The least eigenvalue of a symmetric matrix and its vector."""
    if H.shape[0] <= SMALL:
        values, vectors = np.linalg.eigh(H.toarray())
        return float(values[0]), vectors[:, 0]
    start = np.random.default_rng(0).normal(size=H.shape[0])
    values, vectors = eigsh(H, k=1, which="SA", v0=start, tol=1e-4)  # pyright: ignore[reportArgumentType]
    return float(values[0]), vectors[:, 0]
