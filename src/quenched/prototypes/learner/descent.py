r"""Descent of an energy of all rows: prototypes, and a metric if the rule learns one, by L-BFGS.

With the slopes $c_{nS} = \omega_n\, \partial\ell_n/\partial d_{nS}$ (weights $\omega$ of sum 1) and
$\Lambda = \Omega^T\Omega$

$$\frac{\partial E}{\partial w_S} = -2 \Lambda \sum_n c_{nS} (x_n - w_S),\quad
\frac{\partial E}{\partial \Omega} = 2\, \Omega \sum_{nS} c_{nS} (x_n - w_S)(x_n - w_S)^T,$$

so a step costs a few products of matrices, in NumPy: there is nothing to compile, whatever the shape of the table.

Of $m$ prototypes of a class each is pulled by an $m$-th of its rows, the metric by all of them. So that it does not run
ahead of the prototypes, the descent has $\sqrt m\, \Omega$ as its variables: steps of $\Omega$ are $m$ times shorter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs
from scipy.optimize import minimize

from quenched.core.types import Outcome
from quenched.prototypes.model import Cost
from quenched.prototypes.model.costs import Slopes

MEMORY, ACCURACY = 10, 1e-5
"""Steps that L-BFGS remembers, and the largest component of the slope at its end, where rows have size 1."""
(solve_positive,) = get_lapack_funcs(("posv",))
"""The Cholesky factor of a positive matrix, solutions of equations, and where it is not positive, in one call."""
LEAST_SPREAD = 0.01
"""Share of the spread of rows, beside that of class means, in the choice of the first directions of a metric."""


class Descent(NamedTuple):
    """What happened in each step of a descent."""

    energy: np.ndarray  # [steps] the energy after each


class Rows(NamedTuple):
    """A table as the descent reads it."""

    X: np.ndarray  # [n, N]
    own: np.ndarray  # [n, K] whether row and prototype have the same class
    weights: np.ndarray  # [n] of sum 1
    total: float  # how many rows there are, by weight


class Task(NamedTuple):
    """What a descent asks of its rule, read once: fields of declarations are slow to come by."""

    energy: Callable[[np.ndarray, np.ndarray, float], Slopes]
    scale: float
    stiffness: float

    @classmethod
    def of(cls, rule: Cost, scale: float) -> Task:
        """The task that a rule sets, for rows of this mean squared distance."""
        return cls(functools.partial(type(rule).energy, rule), scale, float(getattr(rule, "stiffness", 0.0)))


class Found(NamedTuple):
    """Prototypes and metric at the end of a descent."""

    prototypes: np.ndarray
    metric: np.ndarray | None
    trace: Descent
    outcome: Outcome


def distances(X: np.ndarray, w: np.ndarray, metric: np.ndarray | None) -> np.ndarray:
    """Squared distances `[n, K]`."""
    return _apart(*((X, w) if metric is None else (X @ metric.T, w @ metric.T)))


def _apart(Z: np.ndarray, V: np.ndarray) -> np.ndarray:
    squared = np.einsum("ni,ni->n", Z, Z)[:, None] + np.einsum("ki,ki->k", V, V) - 2 * Z @ V.T
    return np.maximum(squared, 0.0, out=squared)


def slope(
    task: Task, rows: Rows, w: np.ndarray, metric: np.ndarray | None
) -> tuple[float, np.ndarray, np.ndarray | None]:
    """The energy of the table, and its derivatives by prototypes and metric."""
    X = rows.X
    Z, V = (X, w) if metric is None else (X @ metric.T, w @ metric.T)
    energy, c = task.energy(_apart(Z, V), rows.own, task.scale)
    c = c * rows.weights[:, None]
    pulled, mass = c.T @ X, c.sum(axis=0)
    force = mass[:, None] * w - pulled
    value = float(rows.weights @ energy)
    if metric is None:
        return value, 2 * force, None
    spread = (c.sum(axis=1)[:, None] * Z).T @ X - (pulled @ metric.T).T @ w + V.T @ force
    cost, stress = stiffen(task.stiffness, metric, rows.total)
    return value + cost, 2 * (force @ metric.T) @ metric, 2 * spread + stress


def stiffen(stiffness: float, metric: np.ndarray, count: float) -> tuple[float, np.ndarray]:
    r"""$\kappa (N^2/n) [\log\mathrm{mean}(\lambda) - \mathrm{mean}(\log\lambda)]$ and its derivative by $\Omega$."""
    rank, N = metric.shape
    strength = stiffness * N**2 / count
    if strength == 0:
        return 0.0, np.zeros_like(metric)
    total = float(np.vdot(metric, metric))
    factor, solved, lost = solve_positive(metric @ metric.T, metric)
    if lost:  # a direction is lost, to rounding
        return np.inf, np.zeros_like(metric)
    cost = np.log(total / rank) - 2 * float(np.log(np.diagonal(factor)).sum()) / rank
    return strength * cost, strength * 2 * (metric / total - solved / rank)


def first_metric(rule: Cost, rows: Rows, w: np.ndarray) -> np.ndarray | None:
    r"""The metric at the start: the identity, or the directions in which class means, and then rows, spread most."""
    if not rule.learns_metric:
        return None
    N, rank = rows.X.shape[1], getattr(rule, "rank", None)
    rank = N if rank is None else min(rank, N)
    if rank == N:
        return np.eye(N)
    centred = rows.X - rows.weights @ rows.X
    within = centred.T @ (rows.weights[:, None] * centred)
    apart = w - w.mean(axis=0)
    _, axes = np.linalg.eigh(apart.T @ apart / len(w) + LEAST_SPREAD * within)
    return axes[:, ::-1][:, :rank].T * np.sqrt(N / rank)


def descend(rule: Cost, rows: Rows, w: np.ndarray, metric: np.ndarray | None, steps: int) -> Found:
    """Follow the slope from prototypes `[K, N]` and a metric, at most so many steps."""
    K, N = w.shape
    if not rows.own.any(axis=1).all() or rows.own.all(axis=1).any():  # one class: there is nothing to learn
        return Found(w, metric, Descent(np.zeros(0)), Outcome.converged)
    squared = np.stack([np.sum((rows.X - one) ** 2, axis=1) for one in w], axis=1)
    scale = float(rows.weights @ np.min(np.where(rows.own, squared, np.inf), axis=1)) or 1.0
    unit = np.sqrt(scale / N)  # lengths are measured in it, so that the accuracy means the same in every table
    middle = rows.weights @ rows.X  # |x|^2 - 2 x.w + |w|^2 loses digits far from the origin
    scaled = rows._replace(X=(rows.X - middle) / unit)
    slow = np.sqrt(rows.weights @ rows.own.sum(axis=1))

    def read(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        return theta[: K * N].reshape(K, N), None if metric is None else theta[K * N :].reshape(-1, N) / slow

    pull, first = float(getattr(rule, "anchor", 0.0)) / rows.total, (w - middle) / unit
    task = Task.of(rule, scale / unit**2)

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        now, O = read(theta)
        energy, force, stress = slope(task, scaled, now, O)
        energy, force = energy + pull / 2 * float(np.sum((now - first) ** 2)), force + pull * (now - first)
        return energy, force.ravel() if stress is None else np.concatenate([force.ravel(), stress.ravel() / slow])

    seen: list[float] = []

    def keep(intermediate_result: Any) -> None:
        seen.append(float(intermediate_result.fun))

    begin = first.ravel() if metric is None else np.concatenate([first.ravel(), slow * metric.ravel()])
    options = {"maxiter": steps, "maxcor": MEMORY, "gtol": ACCURACY, "maxfun": 4 * steps}
    end: Any = minimize(value, begin, jac=True, method="L-BFGS-B", callback=keep, options=options)
    w, found = read(end.x)
    if found is not None:
        found = found * np.sqrt(N / np.sum(found**2))
    stalled = end.nit >= steps
    return Found(middle + unit * w, found, Descent(np.array(seen)), Outcome.stalled if stalled else Outcome.converged)
