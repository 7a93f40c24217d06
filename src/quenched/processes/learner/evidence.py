r"""Hyperparameters: the evidence, its slope, and descent.

With the kernel matrix $K$ of the rows, the noise variance $\sigma^2$, $A = K + \sigma^2 I$ and $\alpha = A^{-1} y$, the
negative log evidence (marginal likelihood) and its slopes are

$$\tfrac12 y^\top \alpha + \tfrac12 \log\det A + \tfrac n2 \log 2\pi, \qquad
\partial_K = \tfrac12 (A^{-1} - \alpha \alpha^\top), \qquad
\partial_{\ln \sigma^2} = \tfrac{\sigma^2}{2} (\mathrm{tr} A^{-1} - \alpha^\top \alpha) .$$

The kernel takes the slope on to its parameters: any kernel by its vector-Jacobian product, compiled; the squared
exponential in closed form, without compilation and at LAPACK's own speed.
`descend` finds the minimum at hand, not the lowest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import InputError, double, is_traced
from quenched.processes import kernels
from quenched.processes.model import SCIENCE, Empirical, GaussianProcess, take

FARTHEST = 1e4
"""Factor of its start within which `descend` keeps each parameter."""
LEAST_NOISE = 1e-6
"""Noise variance below which `descend` does not go: the kernel matrix alone need not be invertible."""
STARTING_NOISES, MOST_STARTING = (0.01, 0.1, 0.5), 400
"""Noise variances of which the most likely is a start of tuning, judged by this many rows at most."""
WALL = 1e100
"""What `descend` takes an objective for that is not finite: no line search ends there."""

Slope = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""Value and gradient of an objective as a function of the logs of all parameters over their start, noise last."""
Pull = Callable[[np.ndarray], np.ndarray]
r"""From the lower triangle of $M$ to the slopes of $\tfrac12 \sum M_{ij} K_{ij}$ over the logs of the parameters."""


class Surprise:
    """The negative log evidence of a law and its slope, a `Slope` from a rule."""

    def __init__(self, law: Empirical, rule: GaussianProcess):
        self._y, self._noise = np.asarray(law.standard(), float), float(rule.noise)
        X = kernels.places_of(law, rule)
        known = kernels.recognise(rule.kernel, X)
        self._covariance: Callable[[np.ndarray], tuple[np.ndarray, Pull]]
        if known is not None:
            self._covariance = lambda theta: _squared_exponential(theta, X, known)
        elif callable(rule.kernel):
            self._covariance = lambda theta: _any_kernel(theta, X, rule.kernel)
        else:
            self._covariance = lambda theta: (np.asarray(rule.kernel), lambda M: np.zeros(0))

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and slope; infinite where the covariance cannot be factorised."""
        from scipy.linalg import lapack

        with np.errstate(over="ignore"):
            s2 = self._noise * np.exp(theta[-1])
            K, pull = self._covariance(theta[:-1])
        y, n = self._y, len(self._y)
        A = np.array(K, order="F")
        A.flat[:: n + 1] += s2
        L, failed = lapack.dpotrf(A, lower=1, overwrite_a=1, clean=0)  # pyright: ignore[reportAttributeAccessIssue]
        if failed or not np.isfinite(L[-1, -1]):
            return np.inf, np.full(len(theta), np.inf)
        logs = np.sum(np.log(np.diagonal(L)))
        alpha, _ = lapack.dpotrs(L, y, lower=1)  # pyright: ignore[reportAttributeAccessIssue]
        M, _ = lapack.dpotri(L, lower=1, overwrite_c=1)  # pyright: ignore[reportAttributeAccessIssue]
        trace = float(np.trace(M))
        M -= np.outer(alpha, alpha)  # only the lower triangle counts from here on
        value = 0.5 * y @ alpha + logs + 0.5 * n * np.log(2 * np.pi)
        return float(value), np.append(pull(M), 0.5 * s2 * (trace - alpha @ alpha))


def _squared_exponential(
    theta: np.ndarray, X: np.ndarray, known: kernels.SquaredExponential
) -> tuple[np.ndarray, Pull]:
    r"""Covariances, and the slopes over the logs of the amplitude, the columns' scales and their common length.

    With $P = M \circ K$ and $z_{ik} = w_k x_{ik}$: $\tfrac12 \sum_{ij} P_{ij}$ over the amplitude,
    $z_k^\top P z_k - \sum_i z_{ik}^2 (P 1)_i$ over a scale, and minus the sum of the latter over the length.
    """
    from scipy.linalg import blas

    w = known.weights * np.exp(theta[1:-1] - theta[-1])
    K = kernels.SquaredExponential(float(known.amplitude * np.exp(theta[0])), w).evaluate(X, X).T  # Fortran's order

    def pull(M: np.ndarray) -> np.ndarray:
        M *= K
        Z = np.asfortranarray(np.column_stack([X * w, np.ones(len(X))]))
        MZ = blas.dsymm(1.0, M, Z, lower=1)  # pyright: ignore[reportAttributeAccessIssue]
        columns = np.sum(Z * MZ, axis=0)[:-1] - (Z[:, :-1] ** 2).T @ MZ[:, -1]
        return np.array([0.5 * MZ[:, -1].sum(), *columns, -columns.sum()])

    return K, pull


@double
def _any_kernel(theta: np.ndarray, X: np.ndarray, kernel: Any) -> tuple[np.ndarray, Pull]:
    """Covariances, and their slopes by a compiled product; rows are padded, so that subsets share the program."""

    @double
    def pull(M: np.ndarray) -> np.ndarray:
        full, rows = np.tril(M) + np.tril(M, -1).T, kernels.pad(X)
        more = len(rows) - len(X)
        return np.asarray(_pull(theta, kernel, rows, np.pad(full, ((0, more), (0, more)))))

    return kernels.evaluate(_scale(kernel, theta), X, X), pull


@eqx.filter_jit
@jax.grad
def _pull(theta: Any, kernel: Any, X: Any, M: Any) -> Any:
    return 0.5 * jnp.sum(M * _scale(kernel, theta)(X, X))


def scale(rule: GaussianProcess, theta: Any) -> GaussianProcess:
    r"""The rule with its parameters multiplied by $e^\theta$, noise last."""
    kernel = _scale(rule.kernel, theta[:-1]) if callable(rule.kernel) else rule.kernel
    return GaussianProcess(kernel, rule.noise * (jnp if is_traced(theta) else np).exp(theta[-1]))


def _scale(kernel: Any, theta: Any) -> Any:
    """The kernel with its parameters multiplied."""
    factors, (leaves, structure) = (jnp if is_traced(theta) else np).exp(theta), jax.tree.flatten(kernel)
    first = 0
    for i, leaf in enumerate(leaves):
        if _is_float(leaf):
            last = first + np.size(leaf)
            leaves[i], first = leaf * factors[first:last].reshape(np.shape(leaf)), last
    return structure.unflatten(leaves)


def _free(rule: GaussianProcess) -> np.ndarray:
    """Which parameters, in the order of `scale`, may be descended: all of an array of positive numbers, or none."""
    floats = [np.ravel(leaf) for leaf in jax.tree.leaves(rule.kernel) if callable(rule.kernel) and _is_float(leaf)]
    return np.concatenate([*(np.full(len(v), np.all(np.isfinite(v) & (v > 0))) for v in floats), [True]])


def _is_float(leaf: Any) -> bool:
    """Whether a parameter is a real number or an array of them, known or traced."""
    return isinstance(leaf, float) or (eqx.is_inexact_array(leaf) and not jnp.iscomplexobj(leaf))


def as_arrays(tree: Any) -> Any:
    """Numbers as arrays, so that a program is compiled for all their values and not for one."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype=float) if _is_float(leaf) else leaf, tree)


@double
def descend(slope: Slope, rule: GaussianProcess, *, steps: int = 100, tolerance: float = 2e-9) -> GaussianProcess:
    """The best rule that L-BFGS-B from a given one meets, over the logs of its positive float parameters.

    Other parameters, and a kernel given as a matrix, stay as they are. There are at most `steps` iterations; one that
    makes the objective smaller by less than a share `tolerance` of it is the last.
    """
    from scipy.optimize import minimize

    steps = checks.whole("steps", steps, least=0)
    free = _free(rule)
    low, high = np.full(len(free), -np.log(FARTHEST)), np.full(len(free), np.log(FARTHEST))
    low[-1] = min(0.0, max(low[-1], np.log(LEAST_NOISE / float(rule.noise))))
    best_value, best = np.inf, np.zeros(len(free))

    def value_and_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best_value, best
        theta = np.zeros(len(free))
        theta[free] = x
        value, gradient = slope(theta)
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            return WALL, np.zeros(len(x))
        if value < best_value:
            best_value, best = float(value), theta
        return float(value), gradient[free]

    minimize(
        value_and_slope, np.zeros(int(free.sum())), jac=True, method="L-BFGS-B",
        bounds=list(zip(low[free], high[free], strict=True)), options={"maxiter": steps, "ftol": tolerance},
    )  # fmt: skip
    found = scale(rule, best)
    return GaussianProcess(found.kernel, float(found.noise))


@double
def most_likely(
    law: Empirical, rule: GaussianProcess, *, weights: Any = None, steps: int = 100, tolerance: float = 2e-9
) -> GaussianProcess:
    """The rule of largest evidence that descent from a given one finds.

    Args:
        law: the world.
        rule: where to start, see `default_rule`.
        weights: `[N]` of 1, or 0 for rows that are left out.
        steps: the largest number of iterations.
        tolerance: an iteration that changes the evidence by less than this share is the last.
    """
    SCIENCE.check_pair(law, rule)
    weights = np.ones(law.rows) if weights is None else checks.numbers("weights", weights)
    if weights.shape != (law.rows,) or not np.all((weights == 0) | (weights == 1)) or not weights.any():
        raise InputError("Argument `weights` must be 0 or 1 for each row, not all 0, but it is not.")
    checks.positive("tolerance", checks.number("tolerance", tolerance))
    surprise = Surprise(*take(law, rule, np.flatnonzero(weights)))
    return descend(surprise, rule, steps=steps, tolerance=float(tolerance))


def default_rule(law: Empirical) -> GaussianProcess:
    r"""A rule to start from: squared exponential with a length for each column.

    $$K(x, x') = a\, \exp\Big(-\sum_k \frac{(x_k - x'_k)^2}{2 \ell_k^2}\Big), \qquad \ell_k = \sqrt{d}\,
    \mathrm{std}(x_k),\; a = 1$$

    The noise is the most likely of 0.01, 0.1 and 0.5. From a noise far below that of the data descent may run into
    vanishing lengths, where the kernel is another noise and nothing is learned.
    """
    from tinygp import kernels as tinygp
    from tinygp import transforms

    X = np.asarray(law.inputs).reshape(law.rows, -1)
    spread = X.std(axis=0)
    lengths = np.sqrt(X.shape[1]) * np.where(spread > 0, spread, 1.0)
    kernel = 1.0 * transforms.Linear(1 / lengths, tinygp.ExpSquared(1.0))  # pyright: ignore[reportArgumentType]
    rows = np.linspace(0, law.rows - 1, min(law.rows, MOST_STARTING)).astype(int)
    few, start = Empirical(X, law.targets, *law.units()).take(rows), np.zeros(X.shape[1] + 3)
    rules = [GaussianProcess(kernel, noise) for noise in STARTING_NOISES]
    return min(rules, key=lambda rule: Surprise(few, rule)(start)[0])
