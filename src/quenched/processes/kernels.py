r"""Covariances of the rows on the host: what theory and learner both begin with.

A kernel is evaluated by one compiled program for many numbers of rows, since these are padded to a few lengths. The
squared exponential with a length for each column, which is what `learner.default_rule` gives and tinygp writes as
`a * Linear(v, ExpSquared(l))`, needs no compilation at all:

$$K(x, x') = a\, \exp\Big(-\tfrac12 \sum_k w_k^2 (x_k - x'_k)^2\Big), \qquad w_k = v_k/\ell .$$
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from quenched.core import system
from quenched.core.linear import next_length, padded
from quenched.core.types import InputError, double
from quenched.processes.model import Empirical, GaussianProcess, Numbers, check_pairs

MATRICES = 6
"""Matrices of all pairs of rows that are held at a time when a process is trained or its theory is solved."""
JITTERS = 0.0, 1e-12, 1e-10, 1e-8, 1e-6
"""Shares of the mean prior variance that are added to a kernel matrix in turn, until it is positive definite."""
NOT_POSITIVE = 1e-6
"""Share of the largest prior variance by which rounding may make another one negative."""


class SquaredExponential(NamedTuple):
    """The parameters of a squared exponential."""

    amplitude: float
    weights: np.ndarray  # [d], one over the lengths

    def evaluate(self, X1: np.ndarray, X2: np.ndarray) -> np.ndarray:
        """The covariances of two sets of inputs."""
        Z1, Z2 = X1 * self.weights, X2 * self.weights
        D = Z1 @ Z2.T  # in place from here on: minus half the squared distance
        D -= 0.5 * np.sum(Z1 * Z1, axis=1)[:, None]
        D -= 0.5 * np.sum(Z2 * Z2, axis=1)
        np.exp(np.minimum(D, 0.0, out=D), out=D)
        D *= self.amplitude
        return D


def recognise(kernel: Any, X: np.ndarray) -> SquaredExponential | None:
    """The parameters, if the kernel is of this form and the inputs are columns of numbers; otherwise None."""
    tinygp: Any = sys.modules.get("tinygp")  # without it there is no kernel of its own
    if tinygp is None or type(kernel) is not tinygp.kernels.Product:
        return None
    constant, linear = kernel.kernel1, kernel.kernel2
    if type(constant) is not tinygp.kernels.Constant or type(linear) is not tinygp.transforms.Linear:
        return None
    inner = linear.kernel
    if type(inner) is not tinygp.kernels.ExpSquared or type(inner.distance) is not tinygp.kernels.distance.L2Distance:
        return None
    value, scale, length = (np.asarray(x) for x in (constant.value, linear.scale, inner.scale))
    if X.ndim != 2 or scale.shape != X.shape[1:] or value.ndim or length.ndim or value <= 0 or np.any(scale <= 0):
        return None
    return SquaredExponential(float(value), scale / float(length))


def pad(X: np.ndarray) -> np.ndarray:
    """Rows filled up to one of a few lengths, for which programs are compiled."""
    return padded(X, next_length(len(X), first=64, ratio=2, most=512))


def places_of(law: Empirical, rule: GaussianProcess) -> np.ndarray:
    """The rows of a table as `evaluate` takes them: inputs, or row numbers if the kernel is a matrix."""
    if callable(rule.kernel):
        return np.asarray(law.inputs)
    check_pairs(rule.kernel, law.rows)
    return np.arange(law.rows)


@double
def evaluate(kernel: Any, X1: np.ndarray, X2: np.ndarray | None = None) -> np.ndarray:
    """The covariances of two sets of rows, each as from `places_of`, or the variances of one."""
    if not callable(kernel):
        return np.diagonal(kernel)[X1] if X2 is None else np.asarray(kernel)[np.ix_(X1, X2)]
    if (known := recognise(kernel, X1)) is not None:
        return np.full(len(X1), known.amplitude) if X2 is None else known.evaluate(X1, X2)
    if X2 is None:
        return np.asarray(_call(kernel, pad(X1)))[: len(X1)]
    K = np.asarray(_call(kernel, pad(X1), pad(X2)))
    return K[: len(X1), : len(X2)] if K.ndim == 2 else K


@eqx.filter_jit
def _call(kernel: Any, *inputs: Any) -> Any:
    return kernel(*inputs)


def numbers_of(law: Empirical, rule: GaussianProcess) -> tuple[Numbers, float]:
    """Law and rule as NumPy arrays, and the jitter that made the kernel matrix positive definite."""
    system.require_memory(f"The kernel matrices of {law.rows} rows", MATRICES * 8.0 * law.rows**2)
    X = places_of(law, rule)
    K = evaluate(rule.kernel, X, X)
    check_pairs(K, law.rows)
    K = (K + K.T) / 2  # rounding may have spoiled the symmetry
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
    raise InputError(f"The kernel must be positive definite at these rows, but its matrix is not, even with "
                     f"{JITTERS[-1]:g} of the mean variance added to its diagonal{_hint(rule.kernel)}.")  # fmt: skip


def _hint(kernel: Any) -> str:
    return " (tinygp's Matern kernels need distance=L2Distance() for several inputs)" if callable(kernel) else ""


def choose_pivots(
    kernel: Any, X: np.ndarray, most: int, *, enough: float = 0.0, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""The pivoted Cholesky factorisation of the covariance of rows, as from `places_of`: $K \approx F F^\top$.

    Each of at most `most` pivots is the row that those before it describe worst. It stops before where the variances
    left out sum up to no more than `enough`, or where no row has more than a share `least` of the largest one left.
    What is returned are the places of the pivots, $F$ `[N, r]`, and the variances left out `[N]`.
    """
    left = evaluate(kernel, X)
    if not (np.all(np.isfinite(left)) and left.max() > 0):
        raise InputError("The kernel must give finite numbers and positive variances at these rows, but it does not.")
    F, largest, order = np.empty((most, len(left))), float(left.max()), []
    while len(order) < most and left.sum() > enough and left.max() > least * largest:
        p, rank = int(np.argmax(left)), len(order)
        F[rank] = (evaluate(kernel, X[p : p + 1], X)[0] - F[:rank, p] @ F[:rank]) / np.sqrt(left[p])
        left = left - F[rank] ** 2
        left[p] = 0.0
        order.append(p)
        if not left.min() >= -NOT_POSITIVE * largest:
            raise InputError(f"The kernel must be finite and positive definite at these rows, but it is not"
                             f"{_hint(kernel)}.")  # fmt: skip
        left = np.maximum(left, 0.0)
    return np.array(order, int), F[: len(order)].T, left
