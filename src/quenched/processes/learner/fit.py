r"""Gaussian-process regression on rows that may count more than once.

A row that comes $s_i$ times is one measurement with noise $\sigma^2/s_i$, so that rows with weights are a system in
the *distinct* rows $b$ alone:

$$A = K_{bb} + \mathrm{diag}(\sigma^2/s_b), \qquad \alpha = A^{-1} y_b, \qquad d = \mathrm{diag}\, A^{-1} .$$

The prediction at $x$ is $k(x)^\top \alpha$, its variance $k(x, x) - k(x)^\top A^{-1} k(x)$; at a row of the sample the
residual is $\sigma^2 \alpha_i/s_i$, and $\alpha_i/d_i$ once all copies of the row are taken out. `train` does it for
everyone: `fit`, the data sets of `measure`, and the subsets of a forecast.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from quenched.core import checks, linear
from quenched.core.types import InputError, Key, double
from quenched.processes import kernels
from quenched.processes.model import SCIENCE, Empirical, GaussianProcess, Numbers

BLOCK = 1024
"""Rows predicted at a time, so that memory does not grow with their number."""


class Trained(NamedTuple):
    r"""A process after training: $A^{-1} = r B^{-1} r$ with $B = 1 + r K r = L L^T$ and $r = \sqrt{s}/\sigma$."""

    L: np.ndarray  # [b, b]
    r: np.ndarray  # [b]
    alpha: np.ndarray  # [b], A^-1 y

    def whiten(self) -> np.ndarray:
        r"""$W$ with $A^{-1} = W^\top W$."""
        return linear.invert_lower(self.L) * self.r


def train(K: np.ndarray, y: np.ndarray, precision: Any) -> Trained:
    r"""Gaussian-process regression on rows with prior covariance `K` and precisions $s_i/\sigma^2$."""
    r = np.broadcast_to(np.sqrt(precision), y.shape)
    B = r[:, None] * K * r
    B.flat[:: len(y) + 1] += 1.0
    L = linear.cholesky(B)
    return Trained(L, r, r * linear.solve_factored(L, r * y))


class Predictions(NamedTuple):
    """What a process predicts at the rows of its table, `[N]`; variances are None where they were not asked for."""

    trained: Trained
    residual: np.ndarray  # y - prediction
    left_out: np.ndarray  # the same with all copies of the row taken out
    variance: np.ndarray | None
    left_out_variance: np.ndarray | None


def predict_rows(n: Numbers, s: np.ndarray, *, variance: bool) -> Predictions:
    """Train on rows that come `s` times each, `[N]`, and predict every row, with posterior variances if asked for."""
    bag, out = np.flatnonzero(s), np.flatnonzero(s == 0)
    K: Any = n.K
    y, c = np.asarray(n.y), float(n.s2) / s[bag]
    trained = train(K[np.ix_(bag, bag)], y[bag], 1 / c)
    W, cross = trained.whiten(), K[np.ix_(bag, out)]
    d = np.sum(W * W, axis=0)

    def join(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
        rows = np.empty(len(y))
        rows[bag], rows[out] = inside, outside
        return rows

    away = y[out] - cross.T @ trained.alpha
    residual, left_out = join(c * trained.alpha, away), join(trained.alpha / d, away)
    if not variance:
        return Predictions(trained, residual, left_out, None, None)
    away = np.diagonal(K)[out] - np.sum((W @ cross) ** 2, axis=0)
    return Predictions(trained, residual, left_out, join(c - c**2 * d, away), join(1 / d - c, away))


class Fitted(eqx.Module):
    r"""A Gaussian process that has seen its data.

    Attributes:
        rule: the rule.
        law: the data.
        weights: `[N]`, how often each row counted.
        jitter: what was added to the diagonal of the kernel matrix to make it positive definite.
        training_error: mean squared residual of the rows themselves, as a share of the target's variance.
        leave_one_out: `[N]`, residual $y_i$ minus the prediction without row $i$, standardised.
        log_evidence: the log marginal likelihood of the standardised targets, each with noise $\sigma^2/s_i$.
    """

    rule: GaussianProcess
    law: Empirical
    weights: np.ndarray
    jitter: float
    training_error: float
    leave_one_out: np.ndarray
    log_evidence: float
    _trained: Trained

    @double
    def predict(self, inputs: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predict the target at new inputs.

        Args:
            inputs: `[n, d]` (or `[n]`), columns as in the law.

        Returns:
            Mean and variance `[n]` of the target without its noise, in its own units. For the variance of a new
            measurement add the noise, `rule.noise` times the target's variance.

        Raises:
            InputError: if the inputs do not fit the law's, or the kernel is known at the law's rows only.
        """
        X = np.asarray(self.law.inputs)
        new = np.asarray(inputs, dtype=np.float64)
        if not callable(self.rule.kernel):
            raise InputError("Predictions at new inputs must have a kernel, but it was given as a matrix.")
        if new.ndim != X.ndim or new.shape[1:] != X.shape[1:] or not np.all(np.isfinite(new)):
            raise InputError(f"Argument `inputs` must be finite and of shape {['n', *X.shape[1:]]}, "
                             f"but its shape is {new.shape}.")  # fmt: skip
        centre, scale = self.law.units()
        X, W = X[self.weights > 0], self._trained.whiten()
        mean, variance = np.empty(len(new)), np.empty(len(new))
        for first in range(0, len(new), BLOCK):
            rows = slice(first, first + BLOCK)
            cross = kernels.evaluate(self.rule.kernel, new[rows], X)
            prior = kernels.evaluate(self.rule.kernel, new[rows])
            mean[rows] = cross @ self._trained.alpha
            variance[rows] = np.maximum(prior - np.sum((cross @ W.T) ** 2, axis=1), 0.0)
        return centre + scale * mean, scale**2 * variance


@double
def fit(rule: GaussianProcess, data: Any, *, weights: Any = None, key: Key | None = None) -> Fitted:
    """Learn from a table; hyperparameters stay as they are.

    Args:
        rule: the rule, for example of `most_likely`.
        data: an `Empirical`, or `(X, y)`.
        weights: `[N]`, how often each row counts, as if it were repeated; by default once.
        key: not needed, because nothing here is random; every science's `fit` takes it.

    Returns:
        The fitted process, to predict with.

    Raises:
        InputError: for data or a kernel that cannot be learned from, in one sentence.

    Examples:
        >>> import numpy as np
        >>> from tinygp import kernels
        >>> from quenched import processes
        >>> x = np.linspace(0, 1, 20)
        >>> fitted = processes.fit(processes.GaussianProcess(kernels.ExpSquared(0.3), noise=1e-4), (x, x**2))
        >>> mean, variance = fitted.predict([0.5])
        >>> bool(abs(mean[0] - 0.25) < 1e-3)
        True
    """
    law: Any = Empirical(*data) if isinstance(data, tuple) and len(data) == 2 else data
    checks.kind("data", law, Empirical, "an Empirical or (X, y)")
    SCIENCE.check_pair(law, rule)
    s = np.ones(law.rows) if weights is None else checks.numbers("weights", weights)
    if s.shape != (law.rows,) or not np.all(np.isfinite(s) & (s >= 0)) or not s.any():
        raise InputError(f"Argument `weights` must be a number of at least 0 for each of the {law.rows} rows, not all "
                         "0, but it is not.")  # fmt: skip
    n, jitter = kernels.numbers_of(law, rule)
    found, bag = predict_rows(n, s, variance=False), s > 0
    L, r, alpha = found.trained
    logs = np.sum(np.log(np.diagonal(L) / r)) + 0.5 * len(r) * np.log(2 * np.pi)
    evidence = float(-0.5 * np.asarray(n.y)[bag] @ alpha - logs)
    error = float(np.mean(found.residual[bag] ** 2))
    return Fitted(rule, law, s, jitter, error, found.left_out, evidence, found.trained)
