r"""Stationarity equations and Hessians of the paper, written out: $N$ counts data, $I_X$ integrates over $y$.

| link | descent field $G$ | $-H$ at fixed multiplier | the whole $-H$ |
|---|---|---|---|
| $L$ | $N - K(L - t) - e^L \Lambda_X$ | $K + \Lambda_X e^L$ | that of $g$ |
| $g$ | the same | | $(I - P I_X)[K(I - I_X P) + \Lambda_X P]$ |
| $P$ | $P^{-1} N - K(P - t) - \Lambda_X$ | $K + P^{-2} N$ | |
| $\sqrt P$ | $2 N/\varphi - K(\varphi - t) - 2 \varphi \Lambda_X$ | $K + 2 N/\varphi^2 + 2 \Lambda_X$ | |

$\Lambda_X = I_X(N - P P'^{-1} K(\phi - t))$ keeps the normalisation. All are per volume, so that $N$ is a density of
points. The learner does not use these: it differentiates the energy itself.
[lemm1999, eqs. (127), (137), (156), (160), (165), (167), (181), (190); errata F170, F198]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quenched.core.types import InputError
from quenched.fields.model.grid import Grid
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import Density, Link, LogDensity, Shifted, SquareRoot
from quenched.fields.model.priors import combined
from quenched.fields.model.problem import Problem


def _parts(problem: Problem, field: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The projected field, its density, the density of points, and K(phi - t) of what the prior is about."""
    if not isinstance(problem.likelihood, DensityData):
        raise InputError("Argument `problem` must be one of density estimation, but it is a regression.")
    prior, grid = combined(problem.prior), problem.grid
    phi = np.asarray(field, dtype=np.float64)
    phi, P = _projected(problem.link, phi)
    argument = np.log(P) if isinstance(problem.link, (LogDensity, Shifted)) else phi
    N = np.asarray(problem.likelihood.counts) / grid.cell
    return phi, P, N, np.asarray(prior.operator.apply(argument - np.asarray(prior.mean)))


def _projected(link: Link, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A normalised field and its density."""
    grid = link.grid
    if isinstance(link, (LogDensity, Shifted)):
        P = np.exp(phi - np.max(phi, axis=grid.dims, keepdims=True))
        P = P / over(grid, P)
        return (np.log(P) if isinstance(link, LogDensity) else phi), P
    if isinstance(link, Density):
        return phi / over(grid, phi), phi / over(grid, phi)
    if isinstance(link, SquareRoot):
        phi = phi / np.sqrt(over(grid, phi**2))
        return phi, phi**2
    raise InputError(f"Argument `problem` must have a density, but its link is {type(link).__name__}.")


def over(grid: Grid, field: np.ndarray) -> np.ndarray:
    r"""$I_X$: the integral over $y$, kept as dimensions of length 1."""
    return np.sum(field, axis=grid.dims, keepdims=True) * grid.spacing


def multiplier(problem: Problem, field: Any) -> np.ndarray:
    r"""$\Lambda_X(x)$, which keeps the normalisation. [lemm1999, eqs. (137), (167), (190)]"""
    phi, P, N, push = _parts(problem, field)
    ratio = {Density: P, SquareRoot: phi / 2}.get(type(problem.link), 1.0)  # P/P'
    return over(problem.grid, N - ratio * push)


def descent(problem: Problem, field: Any) -> np.ndarray:
    r"""$G$, which vanishes at a stationary point. [lemm1999, eqs. (127), (165), (188), erratum F170]"""
    phi, P, N, push = _parts(problem, field)
    Lambda = multiplier(problem, field)
    if isinstance(problem.link, Density):
        seen = N > 0
        return np.where(seen, N / np.where(seen, P, 1.0), 0.0) - push - Lambda
    if isinstance(problem.link, SquareRoot):
        seen = N > 0
        return np.where(seen, 2 * N / np.where(seen, phi, 1.0), 0.0) - push - 2 * phi * Lambda
    return N - push - P * Lambda


def curvature(problem: Problem, field: Any) -> np.ndarray:
    r"""$-H$ of flattened fields at a fixed multiplier. [lemm1999, eqs. (156), (181)]"""
    _, P, N, _ = _parts(problem, field)
    K, Lambda = combined(problem.prior).operator.matrix, multiplier(problem, field)
    if isinstance(problem.link, Density):
        seen = N > 0
        return K + np.diag(np.where(seen, N / np.where(seen, P, 1.0) ** 2, 0.0).ravel())
    if isinstance(problem.link, SquareRoot):
        seen = N > 0
        return K + np.diag((np.where(seen, 2 * N / np.where(seen, P, 1.0), 0.0) + 2 * Lambda).ravel())
    return K + np.diag((Lambda * P).ravel())


def hessian(problem: Problem, field: Any) -> np.ndarray:
    r"""$-H_g = (I - P I_X)[K(I - I_X P) + \Lambda_X P]$ of flattened fields, for log-densities. [lemm1999, eq. (160)]

    It has one exact zero mode for each $x$: a shift of $g$.
    """
    if not isinstance(problem.link, (LogDensity, Shifted)):
        raise InputError("Argument `problem` must have the link LogDensity or Shifted, but it is "
                         f"{type(problem.link).__name__}.")  # fmt: skip
    grid = problem.grid
    _, P, _, _ = _parts(problem, field)
    K, Lambda = combined(problem.prior).operator.matrix, multiplier(problem, field)
    eye = np.eye(grid.size)
    ones = over_matrix(grid)
    PI = np.diag(P.ravel()) @ ones
    return (eye - PI) @ (K @ (eye - PI.T) + np.diag((Lambda * P).ravel()))


def over_matrix(grid: Grid) -> np.ndarray:
    """$I_X$ as a matrix of flattened fields."""
    unit = np.eye(grid.size).reshape(-1, *grid.shape)
    summed = np.sum(unit, axis=tuple(d + 1 for d in grid.dims), keepdims=True) * grid.spacing
    return np.broadcast_to(summed, unit.shape).reshape(grid.size, grid.size)
