r"""Covariances of the rows on the host: what theory and learner both begin with.

A kernel is evaluated by one compiled program for many numbers of rows, since these are padded to a few lengths. The
squared exponential with a length for each column, which is what `learner.default_rule` gives and tinygp writes as
`a * Linear(v, ExpSquared(l))`, needs no compilation at all:

$$K(x, x') = a\, \exp\Big(-\tfrac12 \sum_k w_k^2 (x_k - x'_k)^2\Big), \qquad w_k = v_k/\ell .$$

`choose_pivots` is the pivoted Cholesky factorisation, for tables whose matrix of all pairs is too large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from quenched.core import system
from quenched.core.linear import next_length, padded
from quenched.core.types import InputError, double
from quenched.processes.model import Empirical, GaussianProcess, Numbers, symmetrize

MATRICES = 6
"""Matrices of all pairs of rows that are held at a time when a process is trained or its theory is solved."""
JITTERS = 0.0, 1e-12, 1e-10, 1e-8, 1e-6
"""Shares of the mean prior variance that are added to a kernel matrix in turn, until it is positive definite."""
NOT_POSITIVE = 1e-6
"""Share of the largest prior variance by which rounding may make another one negative."""
HINT = " (tinygp's Matern kernels need distance=L2Distance() for several inputs)"


def pad(X: np.ndarray) -> np.ndarray:
    """Rows filled up to one of a few lengths, for which programs are compiled."""
    return padded(X, next_length(len(X), first=64, ratio=2, most=512))


@double
def evaluate(kernel: Any, X1: np.ndarray, X2: np.ndarray) -> np.ndarray:
    """The covariances of two sets of inputs."""
    K = np.asarray(_matrix(kernel, pad(X1), pad(X2)))
    return K[: len(X1), : len(X2)] if K.ndim == 2 else K


@double
def evaluate_diagonal(kernel: Any, X: np.ndarray) -> np.ndarray:
    """The prior variances of inputs."""
    return np.asarray(_diagonal(kernel, pad(X)))[: len(X)]


@eqx.filter_jit
def _matrix(kernel: Any, X1: Any, X2: Any) -> Any:
    return kernel(X1, X2)


@eqx.filter_jit
def _diagonal(kernel: Any, X: Any) -> Any:
    return kernel(X)


def numbers_of(law: Empirical, rule: GaussianProcess) -> tuple[Numbers, float]:
    """Law and rule as NumPy arrays, and the jitter that made the kernel matrix positive definite.

    Raises:
        InputError: if the kernel matrix has values that are not finite or is not positive definite, even with jitter,
            or if what is computed from it would not fit in memory.
    """
    system.require_memory(f"The kernel matrices of {law.rows} rows", MATRICES * 8.0 * law.rows**2)
    X = np.asarray(law.inputs)
    K = symmetrize(evaluate(rule.kernel, X, X) if callable(rule.kernel) else np.asarray(rule.kernel), law.rows)
    if not np.all(np.isfinite(K)) or np.any(np.diagonal(K) <= 0):
        raise InputError("The kernel must give finite numbers and positive variances at these rows, but it does not.")
    for share in JITTERS:
        jitter = share * float(np.mean(np.diagonal(K)))
        A = K + jitter * np.eye(len(K))
        try:
            np.linalg.cholesky(A)
        except np.linalg.LinAlgError:
            continue
        return Numbers(A, np.asarray(law.standard(), float), np.asarray(rule.noise, float)), jitter  # pyright: ignore[reportArgumentType]
    hint = HINT if callable(rule.kernel) else ""
    raise InputError(f"The kernel must be positive definite at these rows, but its matrix is not, even with "
                     f"{JITTERS[-1]:g} of the mean variance added to its diagonal{hint}.")  # fmt: skip


class SquaredExponential(NamedTuple):
    """The parameters of a squared exponential."""

    amplitude: float
    weights: np.ndarray  # [d], one over the lengths

    def evaluate(self, X1: np.ndarray, X2: np.ndarray) -> np.ndarray:
        """The covariances of two sets of inputs."""
        Z1, Z2 = X1 * self.weights, X2 * self.weights
        D = Z1 @ Z2.T
        D *= -2.0
        D += np.sum(Z1 * Z1, axis=1)[:, None]
        D += np.sum(Z2 * Z2, axis=1)
        np.maximum(D, 0.0, out=D)
        D *= -0.5
        np.exp(D, out=D)
        D *= self.amplitude
        return D


def recognise(law: Empirical, rule: GaussianProcess) -> SquaredExponential | None:
    """The parameters, if the kernel is of this form and the inputs are columns of numbers; otherwise None."""
    from tinygp import kernels, transforms
    from tinygp.kernels.distance import L2Distance

    kernel: Any = rule.kernel
    if not (type(kernel) is kernels.Product and type(kernel.kernel1) is kernels.Constant):
        return None
    linear: Any = kernel.kernel2
    if not (type(linear) is transforms.Linear and type(linear.kernel) is kernels.ExpSquared):
        return None
    if type(linear.kernel.distance) is not L2Distance:
        return None
    value, scale, length = (np.asarray(x) for x in (kernel.kernel1.value, linear.scale, linear.kernel.scale))
    X = np.asarray(law.inputs)
    if X.ndim != 2 or scale.shape != X.shape[1:] or value.ndim or length.ndim or value <= 0 or np.any(scale <= 0):
        return None
    return SquaredExponential(float(value), scale / float(length))


class Columns(NamedTuple):
    """A kernel at the rows of a table, column by column.

    Attributes:
        column: the covariances of all rows with one of them, as a function of its place.
        diagonal: the prior variances.
        hint: what may help where the kernel is not positive definite.
    """

    column: Callable[[int], np.ndarray]
    diagonal: np.ndarray
    hint: str = HINT


def columns_of(rule: GaussianProcess, X: np.ndarray, scales: SquaredExponential | None = None) -> Columns:
    """The kernel at some inputs, or at the rows `X` of a kernel matrix; on the host if it was recognised."""
    kernel = rule.kernel
    if not callable(kernel):
        K = np.asarray(kernel)
        return Columns(lambda p: K[X[p], X], np.diagonal(K)[X].copy(), "")
    if scales is not None:
        return Columns(lambda p: scales.evaluate(X[p : p + 1], X)[0], np.full(len(X), scales.amplitude))
    return Columns(lambda p: evaluate(kernel, X, X[p : p + 1])[:, 0], evaluate_diagonal(kernel, X).copy())


class Pivots(NamedTuple):
    r"""A pivoted Cholesky factorisation, $K \approx F F^\top$.

    Attributes:
        order: the places of the pivots, each the row that those before it describe worst.
        F: `[N, r]`.
        left: variances that the factor leaves out `[N]`.
    """

    order: np.ndarray
    F: np.ndarray
    left: np.ndarray


def choose_pivots(columns: Columns, most: int, *, enough: float = 0.0, least: float = 0.0) -> Pivots:
    """Choose pivots greedily.

    Args:
        columns: the kernel.
        most: how many pivots at most.
        enough: sum of the variances left out at which to stop.
        least: stop where no row has more than this share of the largest prior variance left.

    Raises:
        InputError: if the kernel is not positive definite or not finite.
    """
    left = columns.diagonal
    if not (np.all(np.isfinite(left)) and left.max() > 0):
        raise InputError("The kernel must give finite numbers and positive variances at these rows, but it does not.")
    F, largest, order = np.empty((most, len(left))), float(left.max()), []
    while len(order) < most and left.sum() > enough and left.max() > least * largest:
        p, rank = int(np.argmax(left)), len(order)
        F[rank] = (columns.column(p) - F[:rank, p] @ F[:rank]) / np.sqrt(left[p])
        left = left - F[rank] ** 2
        left[p] = 0.0
        order.append(p)
        if not left.min() >= -NOT_POSITIVE * largest:
            raise InputError("The kernel must be finite and positive definite at these rows, but it is not"
                             f"{columns.hint}.")  # fmt: skip
        left = np.maximum(left, 0.0)
    return Pivots(np.array(order, int), F[: len(order)].T, left)
