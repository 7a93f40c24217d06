r"""The squared exponential with a length for each column, on the host: no compilation, and LAPACK's own speed.

$$K(x, x') = a\, \exp\Big(-\tfrac12 \sum_k w_k^2 (x_k - x'_k)^2\Big), \qquad w_k = v_k/\ell$$

This is the kernel of `learner.default_rule`, as tinygp writes it: `a * Linear(v, ExpSquared(l))`. Tuning it by the
compiled program of any kernel costs a compilation for each number of rows and four times as much for each step.

With $A = K + \sigma^2 I$, $\alpha = A^{-1} y$ and $M = (A^{-1} - \alpha \alpha^\top) \circ K$, the slopes of the
negative log evidence over the logs are

$$\partial_{\ln a} = \tfrac12 \sum_{ij} M_{ij}, \qquad
\partial_{\ln w_k} = z_k^\top M z_k - \sum_i z_{ik}^2 (M 1)_i, \qquad
\partial_{\ln \sigma^2} = \tfrac{\sigma^2}{2} (\mathrm{tr} A^{-1} - \alpha^\top \alpha), \qquad z_{ik} = w_k x_{ik}.$$
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from quenched.processes.model import Empirical, GaussianProcess


class Scales(NamedTuple):
    """The parameters of the kernel."""

    amplitude: float
    weights: np.ndarray  # [d], one over the lengths

    def of(self, X1: np.ndarray, X2: np.ndarray) -> np.ndarray:
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


def recognise(law: Empirical, rule: GaussianProcess) -> Scales | None:
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
    return Scales(float(value), scale / float(length))


class Surprise:
    """The negative log evidence and its slope, over the logs of the parameters as `learner.descend` orders them.

    These are the amplitude, the columns' scales, their common length and the noise.
    """

    def __init__(self, law: Empirical, scales: Scales, noise: float, weights: np.ndarray):
        used = weights > 0
        self._X, self._y = np.asarray(law.inputs, float)[used], np.asarray(law.standard(), float)[used]
        self._scales, self._noise = scales, noise

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and slope; infinite where the covariance cannot be factorised."""
        from scipy.linalg import blas, lapack

        with np.errstate(over="ignore"):
            a, s2 = self._scales.amplitude * np.exp(theta[0]), self._noise * np.exp(theta[-1])
            w = self._scales.weights * np.exp(theta[1:-2] - theta[-2])
        y, n = self._y, len(self._y)
        K = Scales(float(a), w).of(self._X, self._X).T  # symmetric, and in Fortran's order for LAPACK
        A = K.copy(order="F")
        A.flat[:: n + 1] += s2
        L, failed = lapack.dpotrf(A, lower=1, overwrite_a=1, clean=0)  # pyright: ignore[reportAttributeAccessIssue]
        if failed or not np.isfinite(L[-1, -1]):
            return np.inf, np.full(len(theta), np.inf)
        logs = np.sum(np.log(np.diagonal(L)))
        alpha, _ = lapack.dpotrs(L, y, lower=1)  # pyright: ignore[reportAttributeAccessIssue]
        M, _ = lapack.dpotri(L, lower=1, overwrite_c=1)  # pyright: ignore[reportAttributeAccessIssue]
        trace = float(np.trace(M))
        M -= np.outer(alpha, alpha)  # only the lower triangle counts from here on
        M *= K
        Z = np.asfortranarray(np.column_stack([self._X * w, np.ones(n)]))
        MZ = blas.dsymm(1.0, M, Z, lower=1)  # pyright: ignore[reportAttributeAccessIssue]
        columns = np.sum(Z * MZ, axis=0)[:-1] - (Z[:, :-1] ** 2).T @ MZ[:, -1]
        value = 0.5 * y @ alpha + logs + 0.5 * n * np.log(2 * np.pi)
        slope = [0.5 * MZ[:, -1].sum(), *columns, -columns.sum(), 0.5 * s2 * (trace - alpha @ alpha)]
        return float(value), np.asarray(slope)
