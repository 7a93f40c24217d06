"""Hyperparameters: by the evidence, or by the out-of-bag error itself, whose theory can be differentiated."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import QUICK, Array, Real, double, real
from quenched.processes.learner.evidence import Slope, Surprise, as_arrays, default_rule, descend, scale
from quenched.processes.model import SCIENCE, Empirical, GaussianProcess
from quenched.processes.theory.state import state


class Aim(eqx.Module):
    """What hyperparameters are tuned for."""

    @abc.abstractmethod
    def slope(self, law: Empirical, rule: GaussianProcess) -> Slope:
        """Value and gradient of a number to be made small, over the logs of the parameters of a rule."""


class Evidence(Aim):
    """The marginal likelihood of the targets (type-II maximum likelihood)."""

    def slope(self, law: Empirical, rule: GaussianProcess) -> Slope:
        """The negative log evidence."""
        return Surprise(law, rule)


class PredictedError(Aim):
    """The out-of-bag error that the theory predicts, without drawing a sample.

    Attributes:
        ratio: size of the samples over the number of rows, $m/N$.
    """

    ratio: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("ratio", self.ratio)

    def slope(self, law: Empirical, rule: GaussianProcess) -> Slope:
        """The log of the predicted out-of-bag error."""
        given = as_arrays((law, rule, self.ratio))
        return lambda theta: tuple(np.asarray(part) for part in _predict(theta, *given))  # pyright: ignore[reportReturnType]


@eqx.filter_jit(compiler_options=QUICK)  # pyright: ignore[reportCallIssue]
@jax.value_and_grad
def _predict(theta: Any, law: Empirical, rule: GaussianProcess, ratio: Any) -> Array:
    """One program for each number of rows and kind of kernel."""
    return jnp.log(state(law, scale(rule, theta), law.rows * ratio).oob_error)


@double
def tune(
    law: Empirical, rule: GaussianProcess | None = None, aim: Aim | None = None, *, steps: int = 100
) -> GaussianProcess:
    """Tune the kernel's positive parameters and the noise by gradient descent.

    Args:
        law: the world.
        rule: where to start; by default a squared exponential with a length for each column.
        aim: `Evidence()` (default) or `PredictedError()`.
        steps: the largest number of iterations.

    Returns:
        The tuned rule, never worse than the start by its aim.

    Examples:
        >>> from sklearn.datasets import load_diabetes
        >>> from quenched import processes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> rule = processes.tune(processes.Empirical(X[:100], y[:100]), steps=5)
    """
    checks.kind("law", law, *SCIENCE.laws)
    rule = default_rule(law) if rule is None else rule
    aim = Evidence() if aim is None else aim
    SCIENCE.check_pair(law, rule)
    checks.kind("aim", aim, Aim, "Evidence() or PredictedError()")
    return descend(aim.slope(law, rule), rule, steps=steps)
