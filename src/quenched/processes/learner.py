r"""The procedure: Gaussian-process regression on a table, and its hyperparameters by gradient descent.

With the kernel matrix $K$ of the rows and the noise variance $\sigma^2$, all is one Cholesky factorisation of
$A = K + \sigma^2 I$: the prediction $k(x)^\top A^{-1} y$, its variance, the residuals with each row left out, and the
evidence (marginal likelihood), whose maximum is the usual choice of hyperparameters. `descend` makes any other
differentiable objective as small as it can, from the rule it is given: it finds the minimum at hand, not the lowest.

Not covered: other likelihoods than Gaussian noise, low rank, restarts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.linear import inverse_factor
from quenched.core.types import Array, InputError, Key, double, is_traced, require_double
from quenched.processes import squared_exponential
from quenched.processes.model import Empirical, GaussianProcess, check_pair, declared, numbers

LEAST_NOISE = 1e-6
"""Noise variance below which `descend` does not go: the kernel matrix alone need not be invertible."""
STARTING_NOISES, MOST_STARTING = (0.01, 0.1, 0.5), 400
"""Noise variances of which the most likely is a start of tuning, as so many rows at most see it."""
WALL = 1e100
"""What `descend` takes an objective for that is not finite: no line search ends there."""
BLOCK = 1024
"""Rows predicted at a time, so that memory does not grow with their number."""

Objective = Callable[[Empirical, GaussianProcess, Any], Array]
"""A pure JAX function of law, rule and weights that gives one number."""


def log_evidence(law: Empirical, rule: GaussianProcess, weights: Any = None) -> Array:
    r"""The log marginal likelihood of the targets; a pure JAX function.

    $$\log p(y) = -\tfrac12 y^\top A^{-1} y - \tfrac12 \log\det A - \tfrac n2 \log 2\pi, \qquad A = K + \sigma^2 I$$

    Args:
        law: the world.
        rule: the student.
        weights: `[N]` of 1, or 0 for rows that are left out. All subsets of a table share one compiled program.
    """
    require_double("log_evidence")
    n = numbers(law, rule)
    return _evidence(n.K, n.y, n.s2, jnp.ones(n.y.shape) if weights is None else jnp.asarray(weights, float))


@jax.custom_jvp
def _evidence(K: Array, y: Array, s2: Array, w: Array) -> Array:
    """The log evidence from arrays. It is not differentiated in the weights."""
    return _evidence_parts(K, y, s2, w)[0]


@_evidence.defjvp
def _evidence_slope(primals, tangents):
    # Differentiating the Cholesky factorisation itself costs four times as much as the inverse.
    value, alpha, W = _evidence_parts(*primals)
    dK, dy, ds2, _ = tangents
    inverse = W.T @ W
    quadratic = 0.5 * alpha @ dK @ alpha - alpha @ dy + 0.5 * ds2 * alpha @ alpha
    return value, quadratic - 0.5 * jnp.sum(inverse * dK) - 0.5 * ds2 * jnp.trace(inverse)


def _evidence_parts(K: Array, y: Array, s2: Array, w: Array) -> tuple[Array, Array, Array]:
    """The log evidence, `A^-1 y` and `W` with `A^-1 = W' W`; the last two vanish at rows that are left out."""
    r = w / jnp.sqrt(s2)  # w is 0 or 1 and its own root, without a root's derivative at 0
    L = jnp.linalg.cholesky(jnp.eye(len(y)) + r[:, None] * K * r, symmetrize_input=False)
    W = inverse_factor(L) * r
    z = W @ y
    value = -0.5 * z @ z - jnp.sum(jnp.log(jnp.diagonal(L))) - 0.5 * jnp.sum(w) * jnp.log(2 * jnp.pi * s2)
    return value, z @ W, W


def _surprise(law: Empirical, rule: GaussianProcess, weights: Any) -> Array:
    """What `most_likely` descends."""
    return -log_evidence(law, rule, weights)


def _floats(rule: GaussianProcess) -> tuple[list[Any], Any, list[int]]:
    """The leaves of the kernel, its structure, and which leaves are parameters: none of a kernel given as a matrix."""
    leaves, structure = jax.tree.flatten(rule.kernel)
    return leaves, structure, [i for i, leaf in enumerate(leaves) if callable(rule.kernel) and _is_float(leaf)]


def _scaled(rule: GaussianProcess, theta: Any) -> GaussianProcess:
    r"""The rule with its parameters multiplied by $e^\theta$, noise last."""
    exp: Any = jnp.exp if is_traced(theta) else np.exp
    leaves, structure, places = _floats(rule)
    first = 0
    for i in places:
        factor = exp(theta[first : first + np.size(leaves[i])])
        first += len(factor)
        leaves[i] = leaves[i] * factor.reshape(np.shape(leaves[i]))
    return GaussianProcess(structure.unflatten(leaves), rule.noise * exp(theta[first]))


def _free(rule: GaussianProcess) -> np.ndarray:
    """Which parameters, in the order of `_scaled`, may be descended.

    One without a log stays as it is, and so do its companions in one array (a rotation of the inputs).
    """
    leaves, _, places = _floats(rule)
    values = [np.ravel(np.asarray(leaves[i], dtype=float)) for i in places]
    return np.concatenate([*(np.full(len(v), bool(np.all(np.isfinite(v) & (v > 0)))) for v in values), [True]])


def _is_float(leaf: Any) -> bool:
    """Whether a parameter is a real number or an array of them, known or traced."""
    return isinstance(leaf, float) or (eqx.is_inexact_array(leaf) and not jnp.iscomplexobj(leaf))


@eqx.filter_jit
def _slope(theta: Any, objective: Objective, law: Empirical, rule: GaussianProcess, weights: Any):
    """Value and gradient of the objective; one compiled program for each objective and shapes."""
    return jax.value_and_grad(lambda theta: objective(law, _scaled(rule, theta), weights))(theta)


def _as_arrays(tree: Any) -> Any:
    """Numbers as arrays, so that a program is compiled for all their values and not for one."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype=float) if _is_float(leaf) else leaf, tree)


@double
def descend(
    objective: Objective,
    law: Empirical,
    rule: GaussianProcess,
    *,
    weights: Any = None,
    steps: int = 100,
    bound: float = 1e4,
    tolerance: float = 2e-9,
) -> GaussianProcess:
    r"""Make an objective as small as descent from a given rule can.

    L-BFGS-B over the logs of all positive float parameters of the kernel and of the noise. Other parameters, and a
    kernel given as a matrix, stay as they are.

    Args:
        objective: a pure JAX function of (law, rule, weights) that gives one number. Give the same function object
            each time: it is compiled once for each.
        law: the world.
        rule: where to start.
        weights: passed on to the objective.
        steps: the largest number of iterations.
        bound: each parameter stays within this factor of its start, and the noise at least $10^{-6}$.
        tolerance: a step that makes the objective smaller by less than this share of it is the last.

    Returns:
        The best rule met; never worse than the start.

    Examples:
        >>> import numpy as np
        >>> from tinygp import kernels
        >>> from quenched.processes.learner import descend, log_evidence
        >>> from quenched.processes.model import Empirical, GaussianProcess
        >>> law = Empirical(np.linspace(0, 1, 20), np.sin(6 * np.linspace(0, 1, 20)))
        >>> best = descend(lambda law, rule, weights: -log_evidence(law, rule), law,
        ...                GaussianProcess(kernels.ExpSquared(1.0), 0.1))
        >>> best.noise < 1e-3
        True
    """
    from scipy.optimize import minimize

    steps = checks.whole("steps", steps, least=0)
    if not bound > 1:
        raise InputError(f"Argument `bound` must be above 1, but {bound} was given.")
    free = _free(rule)
    low, high = np.full(len(free), -np.log(bound)), np.full(len(free), np.log(bound))
    low[-1] = min(0.0, max(low[-1], np.log(LEAST_NOISE / float(rule.noise))))
    slope_at = _slope_of(objective, law, rule, weights)
    best_value, best = np.inf, np.zeros(len(free))

    def value_and_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best_value, best
        theta = np.zeros(len(free))
        theta[free] = x
        value, slope = slope_at(theta)
        if not (np.isfinite(value) and np.all(np.isfinite(slope))):
            return WALL, np.zeros(len(x))
        if value < best_value:
            best_value, best = float(value), theta
        return float(value), slope[free]

    minimize(
        value_and_slope, np.zeros(int(free.sum())), jac=True, method="L-BFGS-B",
        bounds=list(zip(low[free], high[free], strict=True)), options={"maxiter": steps, "ftol": tolerance},
    )  # fmt: skip
    found = _scaled(rule, best)
    return GaussianProcess(found.kernel, float(found.noise))


def _slope_of(objective: Objective, law: Empirical, rule: GaussianProcess, weights: Any) -> Callable[[np.ndarray], Any]:
    """Value and slope of an objective as a function of the logs, without compilation for the default kernel."""
    scales = squared_exponential.recognise(law, rule) if objective is _surprise else None
    if scales is not None:
        return squared_exponential.Surprise(law, scales, float(rule.noise), np.asarray(weights))
    given = _as_arrays((law, rule, weights))
    return lambda theta: tuple(np.asarray(part) for part in _slope(theta, objective, *given))


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
        tolerance: of the evidence, see `descend`.
    """
    check_pair(law, rule)
    weights = np.ones(law.rows) if weights is None else checks.numbers("weights", weights)
    if weights.shape != (law.rows,) or not np.all((weights == 0) | (weights == 1)):
        raise InputError(f"Argument `weights` must be 0 or 1 for each of the {law.rows} rows, but it is not.")
    checks.positive("tolerance", checks.number("tolerance", tolerance))
    return descend(_surprise, law, rule, weights=weights, steps=steps, tolerance=float(tolerance))


def default_rule(law: Empirical) -> GaussianProcess:
    r"""A rule to start from: squared exponential with a length for each column.

    $$K(x, x') = a\, \exp\Big(-\sum_k \frac{(x_k - x'_k)^2}{2 \ell_k^2}\Big), \qquad \ell_k = \sqrt{d}\,
    \mathrm{std}(x_k),\; a = 1$$

    The noise is the most likely of 0.01, 0.1 and 0.5. From a noise far below that of the data descent may run into
    vanishing lengths, where the kernel is another noise and nothing is learned.
    """
    from tinygp import kernels, transforms

    X = np.asarray(law.inputs).reshape(law.rows, -1)
    spread = X.std(axis=0)
    lengths = np.sqrt(X.shape[1]) * np.where(spread > 0, spread, 1.0)
    scales, few = squared_exponential.Scales(1.0, 1 / lengths), np.zeros(law.rows)
    few[np.linspace(0, law.rows - 1, min(law.rows, MOST_STARTING)).astype(int)] = 1
    columns = Empirical(X, law.targets, *law.units())
    nothing = np.zeros(X.shape[1] + 3)
    surprise = [squared_exponential.Surprise(columns, scales, noise, few)(nothing)[0] for noise in STARTING_NOISES]
    noise = STARTING_NOISES[int(np.argmin(surprise))]
    return GaussianProcess(1.0 * transforms.Linear(1 / lengths, kernels.ExpSquared(1.0)), noise=noise)  # pyright: ignore[reportArgumentType]


class Fitted(eqx.Module):
    r"""A Gaussian process that has seen its data.

    Attributes:
        rule: the rule.
        law: the data.
        jitter: what was added to the diagonal of the kernel matrix to make it positive definite.
        training_error: mean squared residual of the rows themselves, as a share of the target's variance.
        leave_one_out: `[N]`, residual $y_i$ minus the prediction without row $i$, standardised.
        log_evidence: the log marginal likelihood of the standardised targets.
    """

    rule: GaussianProcess
    law: Empirical
    jitter: float
    training_error: float
    leave_one_out: np.ndarray
    log_evidence: float
    _factor: np.ndarray  # L, with A = L L'
    _alpha: np.ndarray  # A^-1 y

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
        from scipy.linalg import solve_triangular

        X = np.asarray(self.law.inputs)
        new = np.asarray(inputs, dtype=np.float64)
        if not callable(self.rule.kernel):
            raise InputError("Predictions at new inputs must have a kernel, but it was given as a matrix.")
        if new.ndim != X.ndim or new.shape[1:] != X.shape[1:] or not np.all(np.isfinite(new)):
            raise InputError(f"Argument `inputs` must be finite and of shape {['n', *X.shape[1:]]}, "
                             f"but its shape is {new.shape}.")  # fmt: skip
        centre, scale = self.law.units()
        mean, variance = np.empty(len(new)), np.empty(len(new))
        for first in range(0, len(new), BLOCK):
            rows = slice(first, first + BLOCK)
            prior, cross = covariances(self.rule.kernel, new[rows], X)
            W = solve_triangular(self._factor, cross.T, lower=True, check_finite=False)
            mean[rows] = cross @ self._alpha
            variance[rows] = np.maximum(prior - np.sum(W * W, axis=0), 0.0)
        return centre + scale * mean, scale**2 * variance


@double
def covariances(kernel: Any, new: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prior variances `[n]` of new inputs, and their covariances `[n, N]` with the rows."""
    prior, cross = _kernels(_as_arrays(kernel), new, X)
    return np.asarray(prior), np.asarray(cross)


@eqx.filter_jit
def _kernels(kernel: Any, new: Any, X: Any) -> tuple[Array, Array]:
    """Prior variances of new inputs, and their covariances with the rows."""
    return kernel(new), kernel(new, X)


@double
def fit(rule: GaussianProcess, data: Any, *, key: Key | None = None) -> Fitted:
    """Learn from a table; hyperparameters stay as they are.

    Args:
        rule: the rule, for example of `most_likely`.
        data: an `Empirical`, or `(X, y)`.
        key: not needed, because nothing here is random; every science's `fit` takes it.

    Returns:
        The fitted process, to predict with.

    Raises:
        InputError: for data or a kernel that cannot be learned from, in one sentence.

    Examples:
        >>> import numpy as np
        >>> from tinygp import kernels
        >>> from quenched.processes.learner import fit
        >>> from quenched.processes.model import GaussianProcess
        >>> x = np.linspace(0, 1, 20)
        >>> fitted = fit(GaussianProcess(kernels.ExpSquared(0.3), noise=1e-4), (x, x**2))
        >>> mean, variance = fitted.predict([0.5])
        >>> bool(abs(mean[0] - 0.25) < 1e-3)
        True
    """
    from scipy.linalg import cho_solve
    from scipy.linalg.lapack import dpotri  # pyright: ignore[reportAttributeAccessIssue]

    if not isinstance(rule, GaussianProcess):
        raise InputError(f"Argument `rule` must be a GaussianProcess, but {rule!r} was given.")
    law = data if isinstance(data, Empirical) else Empirical(*_pair(data))
    n, jitter = declared(law, rule)
    K, y, s2 = np.asarray(n.K), np.asarray(n.y), float(n.s2)
    L = np.linalg.cholesky(K + s2 * np.eye(len(y)))
    alpha = cho_solve((L, True), y, check_finite=False)
    inverse, _ = dpotri(L, lower=True)
    evidence = -0.5 * y @ alpha - np.sum(np.log(np.diagonal(L))) - 0.5 * len(y) * np.log(2 * np.pi)
    return Fitted(
        rule, law, jitter, float(np.mean((s2 * alpha) ** 2)), alpha / np.diagonal(inverse), float(evidence), L, alpha
    )


def _pair(data: Any) -> tuple[Any, Any]:
    if not isinstance(data, tuple) or len(data) != 2:
        raise InputError("Argument `data` must be an Empirical or (X, y), but it is neither.")
    return data
