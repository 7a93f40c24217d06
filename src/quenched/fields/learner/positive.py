r"""Densities that must not become negative: which components may move, and how far. [lemm1999, section 3.2.1]

$E_P$ is convex in $P$. Components at zero whose $G$ is not positive stay there. The others move within the
normalisation: a step has no integral over $y$ and stops where the first component reaches zero, which then stays.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import QUICK, Array, double
from quenched.fields.learner.matrices import LearningMatrix, Newton, each_x
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import Density
from quenched.fields.model.problem import Problem


def free(P: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Which components may move: those above zero, and those at zero that are pushed up."""
    return (P > 0) | (G > 0)


def step(
    problem: Problem, method: LearningMatrix, P: np.ndarray, G: np.ndarray, free: np.ndarray, iteration: int
) -> tuple[np.ndarray, float]:
    """A step of descent among the free components that keeps the normalisation, and how far it may go."""
    while True:
        if isinstance(method, Newton):
            move = _newton(problem, P, G, free)
        else:
            raw = method.step(problem, P, _balanced(problem.grid, G, free), iteration)
            move = _balanced(problem.grid, raw, free)  # before and after: Q A^-1 Q is positive
        blocked = free & (P <= 0) & (move < 0)
        if not blocked.any():
            break
        free = free & ~blocked
    falling = move < 0
    far = np.full(P.shape, np.inf)
    np.divide(P, -move, out=far, where=falling)
    return move, float(far.min())


def _balanced(grid: Grid, move: np.ndarray, free: np.ndarray) -> np.ndarray:
    """What is left of a step among the free components and without an integral over $y$: a projection $Q$."""
    move = np.where(free, move, 0.0)
    share = free / np.maximum(np.sum(free, axis=grid.dims, keepdims=True), 1)
    return move - share * np.sum(move, axis=grid.dims, keepdims=True)


def _newton(problem: Problem, P: np.ndarray, G: np.ndarray, free: np.ndarray) -> np.ndarray:
    r"""Newton's step with the constraint: $K + N/P^2$ on the free components, bordered by the normalisation."""
    grid, N = problem.grid, np.asarray(problem.likelihood.counts)  # pyright: ignore[reportAttributeAccessIssue]
    seen = (N > 0).ravel()
    H = np.array(_prior_matrix(problem, P))
    H[np.diag_indices_from(H)] += np.where(seen, N.ravel() / np.where(seen, P.ravel(), 1.0) ** 2, 0.0) / grid.cell
    rows = each_x(grid)
    on = free.ravel()
    used = rows[:, on].any(axis=1)
    A, B = H[np.ix_(on, on)], rows[np.ix_(used, on)]
    zero = np.zeros((len(B), len(B)))
    right = np.concatenate([G.ravel()[on], np.zeros(len(B))])
    found = np.linalg.lstsq(np.block([[A, B.T], [B, zero]]), right, rcond=None)[0]
    move = np.zeros(P.size)
    move[on] = found[: int(on.sum())]
    return move.reshape(P.shape)


def _prior_matrix(problem: Problem, P: np.ndarray) -> np.ndarray:
    """Second derivatives of the prior per volume; of one that is not convex the absolute values of its eigenvalues."""
    if type(problem.link) is not Density:
        return _bends(problem, P) / problem.grid.cell
    if problem.parts is not None:
        return problem.operator.matrix
    found = type(problem.prior).expand(problem.prior, P)
    bends = _bends(problem, P) if found is None else found[2]()
    values, vectors = np.linalg.eigh((bends + bends.T) / (2 * problem.grid.cell))
    return (vectors * np.abs(values)) @ vectors.T


@double
def _bends(problem: Problem, P: np.ndarray) -> np.ndarray:
    """Second derivatives of the prior by the density, where it is about something else than the density."""
    return np.asarray(_prior_hessian(problem, jnp.asarray(P, float))).reshape(P.size, -1)


@functools.partial(jax.jit, compiler_options=QUICK)
def _prior_hessian(problem: Problem, P: Array) -> Array:
    return jax.hessian(lambda one: problem.prior.energy(problem.link.argument(one)))(P)


def landed(moved: np.ndarray, P: np.ndarray, move: np.ndarray, length: float, most: float) -> np.ndarray:
    """The new density; what reached zero is exactly zero."""
    reached = (length >= most * (1 - 1e-9)) & (P + length * move <= 1e-12 * np.maximum(P, 1e-300)) & (move < 0)
    return np.where(reached | (moved < 0), 0.0, moved)
