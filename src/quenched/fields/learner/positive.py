r"""Densities that must not become negative: which components may move, and how far. [lemm1999, section 3.2.1]

$E_P$ is convex in $P$. Components at zero whose $G$ is not positive stay there. The others move within the
normalisation: a step has no integral over $y$ and stops where the first component reaches zero, which then stays.
"""

from __future__ import annotations

import numpy as np

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
    r"""Newton's step with the constraint: the Hessian on the free components, bordered by the normalisation.

    Only directions without an integral over $y$ count: along them a density stays normalised.
    """
    grid = problem.grid
    H, rows, on = _hessian(problem, P) / grid.cell, each_x(grid), free.ravel()
    used = rows[:, on].any(axis=1)
    A, B = H[np.ix_(on, on)], rows[np.ix_(used, on)]
    zero = np.zeros((len(B), len(B)))
    right = np.concatenate([G.ravel()[on], np.zeros(len(B))])
    found = np.linalg.lstsq(np.block([[A, B.T], [B, zero]]), right, rcond=None)[0]
    move = np.zeros(P.size)
    move[on] = found[: int(on.sum())]
    move = move.reshape(P.shape)
    return move if np.sum(move * G) > 0 else _balanced(grid, G, free)  # a prior need not be convex


def _hessian(problem: Problem, P: np.ndarray) -> np.ndarray:
    """$K + N/P^2$ for points of a density and a prior with a closed form; else by automatic differentiation."""
    N = getattr(problem.likelihood, "counts", None)
    prior = type(problem.prior).expand(problem.prior, P) if N is not None and type(problem.link) is Density else None
    if prior is None:
        return problem.hessian(P)
    H, N = np.array(prior[2]()), np.asarray(N).ravel()
    H.flat[:: len(H) + 1] += np.where(N > 0, N / np.where(N > 0, P.ravel(), 1.0) ** 2, 0.0)
    return H


def landed(moved: np.ndarray, P: np.ndarray, move: np.ndarray, length: float, most: float) -> np.ndarray:
    """The new density; what reached zero is exactly zero."""
    reached = (length >= most * (1 - 1e-9)) & (P + length * move <= 1e-12 * np.maximum(P, 1e-300)) & (move < 0)
    return np.where(reached | (moved < 0), 0.0, moved)
