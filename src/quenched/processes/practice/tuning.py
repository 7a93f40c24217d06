r"""Hyperparameters: by the evidence, or by the predicted out-of-bag error itself.

The theory of the out-of-bag error is differentiable, so kernel scales and noise can be descended on what one wants to
be small: the error on rows that were not in the sample, averaged over samples, without drawing any.
"""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, Real, double, real
from quenched.processes import learner
from quenched.processes.model import Empirical, GaussianProcess
from quenched.processes.theory.curve import state


class Aim(eqx.Module):
    """What hyperparameters are tuned for."""

    @abc.abstractmethod
    def objective(self, law: Empirical, rule: GaussianProcess, weights: Any) -> Array:
        """A number to be made small; a pure JAX function."""


class Evidence(Aim):
    """The marginal likelihood of the targets (type-II maximum likelihood)."""

    def objective(self, law: Empirical, rule: GaussianProcess, weights: Any) -> Array:
        """The negative log evidence."""
        return -learner.log_evidence(law, rule, weights)


class PredictedError(Aim):
    """The out-of-bag error that the theory predicts, without drawing a sample.

    Attributes:
        ratio: size of the samples over the number of rows, $m/N$.
    """

    ratio: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("ratio", self.ratio)

    def objective(self, law: Empirical, rule: GaussianProcess, weights: Any) -> Array:
        """The log of the predicted out-of-bag error."""
        del weights
        return jnp.log(state(law, rule, law.rows * self.ratio).oob_error)


@double
def tune(
    law: Empirical, rule: GaussianProcess | None = None, aim: Aim | None = None, *, steps: int = 100
) -> GaussianProcess:
    """Tune the kernel's positive parameters and the noise by gradient descent.

    Args:
        law: the world.
        rule: where to start; by default a squared exponential with a length for each column.
        aim: `Evidence()` (default) or `PredictedError()`.
        steps: at most so many.

    Returns:
        The tuned rule, never worse than the start by its aim.

    Examples:
        >>> from sklearn.datasets import load_diabetes
        >>> from quenched import processes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> rule = processes.tune(processes.Empirical(X[:100], y[:100]), steps=5)
    """
    if not isinstance(law, Empirical):
        raise InputError(f"Argument `law` must be an Empirical table, but {type(law).__name__} was given.")
    rule = learner.default_rule(law) if rule is None else rule
    aim = Evidence() if aim is None else aim
    checks.kind("rule", rule, GaussianProcess, "a GaussianProcess")
    checks.kind("aim", aim, Aim, "Evidence() or PredictedError()")
    weights = np.ones(law.rows) if isinstance(aim, Evidence) else None
    return learner.descend(_objective(aim), law, rule, weights=weights, steps=steps)


def _objective(aim: Aim) -> Any:
    """The objective as a function that compares equal for equal aims, so that it is compiled once."""
    return eqx.Partial(_call, aim)


def _call(aim: Aim, law: Empirical, rule: GaussianProcess, weights: Any) -> Array:
    return aim.objective(law, rule, weights)
