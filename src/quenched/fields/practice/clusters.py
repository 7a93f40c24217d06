r"""Several functions of one column, of which each row shows one: cluster regression. [lemm1999, section 3.7.3]

$p(y|x) = \sum_k p_k\, \mathcal N(y; h_k(x), \sigma^2)$ with smooth $h_k$. Expectation and maximisation in the smoothest
modes of the prior: rows are shared out among the functions, and every function, the portions $p_k$ and the noise
follow from their shares. The energy has many minima: several starts are tried, functions through a few random rows
each. The strength of the prior is that of most evidence, by Laplace's method at the minimum.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy import linalg, special

from quenched.core.types import InputError, Outcome
from quenched.fields.learner.fitted import Fitted
from quenched.fields.learner.matrices import factor
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Given
from quenched.fields.model.components import ClusterData, Components
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import Direct
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.rows import RowCurvature
from quenched.fields.model.smoothness import ThinPlate
from quenched.fields.practice.bands import Part
from quenched.fields.practice.regression import merged
from quenched.fields.theory.laplace import laplace

MODES = 24
"""The smoothest modes that take part."""
STRENGTHS = 10.0 ** np.arange(2.0, -4.01, -1.0)
"""Strengths that are tried, of values of unit variance, from the smoothest on."""
STRONGEST = 1e10
"""The largest strength that can be given, of values of unit variance; its inverse is the smallest."""
STEPS, CLOSE = 2000, 1e-6
"""Steps of EM at most, and the gain of the last one for each row."""
FEW = 3
"""Rows through which a function goes at the start."""
NOISELESS = 1e-6
"""Share of the variance of the values that the noise has at least."""
KEPT = 3
"""Minima from which the next strength begins."""
LOST = 0.5
"""A function with less than this many rows is lost: its start is given up."""


@dataclasses.dataclass(frozen=True, eq=False)
class Branches:
    """Functions of a column.

    Attributes:
        grid: of the column.
        functions: at its points `[points, m]`, lowest mean first.
        portions: share of the rows of each.
        noise: the variance about each.
        strength: of the prior.
        log_evidence: logarithm of the probability density of the values.
        outcome: whether the iteration arrived.
        part: the posterior of the functions less a centre and in units of a size, both, and the order of the functions.
    """

    grid: Grid
    functions: np.ndarray
    portions: np.ndarray
    noise: float
    strength: float
    log_evidence: float
    outcome: Outcome
    part: Any = None

    def at(self, rows: np.ndarray) -> np.ndarray:
        """The functions at some rows `[n, m]`."""
        return self.grid.interpolation(rows) @ self.functions

    def deviation_at(self, rows: np.ndarray) -> np.ndarray:
        """Of each function at some rows, by Laplace's method `[n, m]`."""
        part, _, size, order = self.part
        hats = self.grid.interpolation(rows)
        roots = part.roots.reshape(-1, *self.functions.shape)[:, :, order]
        return size * np.sqrt(np.sum([(hats @ one) ** 2 for one in roots], axis=0))

    def log_parts(self, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The logarithm of each function's part of the density of values `[n, m]`."""
        off = values[:, None] - self.at(rows)
        return np.log(self.portions) - 0.5 * (off**2 / self.noise + np.log(2 * np.pi * self.noise))


def learn(
    grid: Grid,
    rows: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    count: int,
    random: np.random.RandomState,
    *,
    strength: float | None = None,
    starts: int = 10,
) -> Branches:
    """Functions of a column, each row on one of them.

    Args:
        grid: of the column.
        rows: inputs `[n, 1]`.
        values: $y$ `[n]`.
        weights: how many equal rows each stands for, all positive.
        count: how many functions.
        random: for the starts.
        strength: of the prior; by default the most probable.
        starts: how many.

    Raises:
        InputError: for fewer rows than the functions need.
    """
    rows, values, weights = merged(rows, values, weights)
    n = float(weights.sum())
    if len(rows) < 2 * count:
        raise InputError(f"Argument `X` must hold at least {2 * count} different rows for {count} functions, but it "
                         f"has n_samples={len(rows)}.")  # fmt: skip
    centre = float(weights @ values / n)
    size = float(np.sqrt(weights @ (values - centre) ** 2 / n)) or 1.0
    y = (values - centre) / size
    if strength is not None and not 1 / STRONGEST <= strength * size**2 <= STRONGEST:
        raise InputError(f"Argument `strength` must be between {1 / STRONGEST / size**2:.2g} and "
                         f"{STRONGEST / size**2:.2g} for values with a deviation of {size:.2g}, but {strength:g} was "
                         "given.")  # fmt: skip
    modes = ThinPlate(grid, 2).modes(MODES)
    B, rough = grid.interpolation(rows) @ modes.given, grid.cell * modes.values.ravel()
    begun = [_start(B, rough, y, count, random) for _ in range(starts)]
    best: tuple[float, Any] | None = None
    for lam in STRENGTHS if strength is None else [strength * size**2]:
        tried = [end for c in begun if (end := _settle(B, lam * rough, y, weights, c)) is not None]
        if not tried:
            continue
        tried.sort(key=lambda end: end[0])
        begun = [end[1] for end in tried[:KEPT]]  # from the smoothest functions on to rougher ones
        _, c, p, v, done = tried[0]
        evidence, fit, part = _weigh(grid, rows, y, weights, modes.given @ c, p, v, lam)
        if best is None or evidence > best[0]:
            best = evidence, (fit, p, v, lam, done, part)
    if best is None:
        raise InputError(f"Argument `n_functions` must be smaller, because rows for {count} functions were not found.")
    evidence, (field, p, v, lam, done, part) = best
    order = np.argsort(field.mean(axis=0), kind="stable")
    return Branches(
        grid, centre + size * field[:, order], p[order], v * size**2, lam / size**2,
        evidence - n * np.log(size), Outcome.converged if done else Outcome.stalled, (part, centre, size, order),
    )  # fmt: skip


def _start(B: np.ndarray, rough: np.ndarray, y: np.ndarray, count: int, random: np.random.RandomState) -> np.ndarray:
    """Very smooth functions through a few random rows each `[modes, count]`."""
    c = []
    for _ in range(count):
        some = random.choice(len(y), min(FEW, len(y)), replace=False)
        H = B[some].T @ B[some] + np.diag(np.maximum(rough, 1e-3 * len(B[0]) / len(B)))
        c.append(_solve(H, B[some].T @ y[some]))
    return np.stack(c, axis=1)


def _solve(H: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of positive equations, in units in which the diagonal is 1: rough modes have very strong priors."""
    unit = 1 / np.sqrt(np.diag(H))
    return unit * linalg.solve(unit[:, None] * H * unit, unit * right, assume_a="pos")


def _settle(B: np.ndarray, prior: np.ndarray, y: np.ndarray, weights: np.ndarray, c: np.ndarray) -> Any:
    """Expectation and maximisation from some functions: energy, functions, portions, noise, whether it arrived."""
    n, m = weights.sum(), c.shape[1]
    p, v, last = np.full(m, 1 / m), 0.25, np.inf
    for _ in range(STEPS):
        off = y[:, None] - B @ c
        logs = np.log(p) - 0.5 * (off**2 / v + np.log(2 * np.pi * v))
        total: Any = special.logsumexp(logs, axis=1)
        energy = float(-weights @ total + 0.5 * np.sum(prior[:, None] * c**2))
        if last - energy < CLOSE * n:
            return energy, c, p, v, True
        last, a = energy, weights[:, None] * np.exp(logs - total[:, None])
        if np.any(a.sum(axis=0) < LOST):
            return None
        p = a.sum(axis=0) / n
        c = np.stack([
            _solve(B.T @ (a[:, k, None] * B) / v + np.diag(prior) + 1e-10 * n * np.eye(len(prior)),
                   B.T @ (a[:, k] * y) / v)
            for k in range(m)
        ], axis=1)  # fmt: skip
        v = max(float(np.sum(a * (y[:, None] - B @ c) ** 2) / n), NOISELESS)
    return last, c, p, v, False


def _weigh(
    grid: Grid,
    rows: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    field: np.ndarray,
    p: np.ndarray,
    v: float,
    lam: float,
) -> tuple[float, np.ndarray, Part]:
    """The evidence of a strength by Laplace's method, the functions of least energy, and their posterior."""
    whole = Grid(given=[*grid.axes, Components(len(p))])
    other = whole.axes[-1].length  # by which `ThinPlate` divides, too
    prior = Gaussian(lam * other * ThinPlate(whole, 2, whole.axes[0]))
    problem = Problem(ClusterData(rows, y, v, p, weights), Direct(whole), prior)
    fit: Fitted = solve(problem, modes=(MODES, len(p)), start=Given(field), max_steps=50)
    if fit.factor is None:  # not a minimum in all directions: rows are shared out, and shares are kept
        data: Any = problem.likelihood
        H = _shared(data, fit)
        fit = dataclasses.replace(fit, hessian=H, factor=factor(H))
    modes: Any = fit.modes
    part = Part.of(problem, modes.coefficients(fit.field), fit.factor, grid_values(modes), modes.matrix)
    return laplace(problem, fit, unit_information=True).log_evidence, fit.field, part


def grid_values(modes: Any) -> np.ndarray:
    """Eigenvalues of the prior in units of coefficients."""
    return modes.grid.cell * np.ravel(modes.values)


def _shared(data: ClusterData, fit: Fitted) -> np.ndarray:
    """The Hessian in modes with the shares of rows as they are: always positive."""
    a = np.asarray(data.weights)[:, None] * data.responsibilities(np.asarray(data.values(fit.field)))
    bends = a[:, :, None] * np.eye(a.shape[1]) / float(data.variance)
    modes: Any = fit.modes
    H = RowCurvature(data.design(fit.field.shape), bends).project(modes)
    H.flat[:: len(H) + 1] += np.maximum(fit.problem.grid.cell * modes.values.ravel(), 1e-12)
    return H
