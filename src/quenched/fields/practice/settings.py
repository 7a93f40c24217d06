"""All values of what is open in the prior of a problem: alternatives, and hyperparameters on a grid.

At each value the prior is Gaussian. A number among the hyperparameters takes `VALUES` values, evenly spaced in the
coordinates in which it is searched; each has the probability that its hyperprior gives it.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import scipy.special

from quenched.core.random import normals
from quenched.core.types import InputError, Key
from quenched.fields.model.either import Either, resolve
from quenched.fields.model.hyper import Hyper, space_of
from quenched.fields.model.priors import And, Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.theory.laplace import FLAT, pulls_at_shifts, shifts_of

VALUES = 25
"""Values that a hyperparameter takes: neighbours differ by less than the data decide of a strength."""


@dataclasses.dataclass(frozen=True, eq=False)
class Setting:
    """One value of what is open: the problem with a Gaussian prior, its probability, and the hyperparameter."""

    problem: Problem
    weight: float
    theta: float | None

    @functools.cached_property
    def roots(self) -> np.ndarray:
        """The symmetric root of the covariance of the prior: rounding does not turn it where modes are degenerate."""
        K = self.problem.grid.cell * np.asarray(self.problem.operator.matrix)
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        kept = values > FLAT * values[-1]
        return (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T

    def field(self, key: Key) -> np.ndarray:
        """A field from the prior."""
        mean = np.asarray(self.problem.prior.mean)  # pyright: ignore[reportAttributeAccessIssue]
        return mean + (normals(key, len(self.roots)) @ self.roots).reshape(mean.shape)


def symmetric(roots: np.ndarray) -> np.ndarray:
    """The symmetric root of the covariance of which other roots are given: the same draws on every machine."""
    _, size, vectors = np.linalg.svd(roots, full_matrices=False)
    return (vectors.T * size) @ vectors


def pick(weights: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Indices drawn with these probabilities."""
    whole = np.cumsum(weights / weights.sum())
    return np.minimum(np.searchsorted(whole, u, side="right"), len(weights) - 1)


def settings_of(problem: Problem, *, proper: bool = True) -> list[Setting]:
    """The problem at every value of what is open in its prior, each with a Gaussian prior.

    Args:
        problem: with a prior of Gaussian parts, alternatives, and at most one hyperparameter.
        proper: whether fields must be drawn from the prior.
    """
    parts = problem.prior.parts if isinstance(problem.prior, And) else (problem.prior,)
    strange = [type(part).__name__ for part in parts if not isinstance(part, (Gaussian, Either))]
    if strange:
        raise InputError("Argument `problem` must have a prior from which fields can be drawn, of Gaussian parts and "
                         f"alternatives, but it has {strange[0]}.")  # fmt: skip
    require_free(problem)
    hyper = any(isinstance(part, Hyper) for part in parts)
    if hyper:
        found = _hyper_settings(problem)
    else:
        mixture = resolve(problem.prior)
        if mixture.beta != 1:
            raise InputError(f"Argument `problem` must have alternatives at `beta=1`, but it is {mixture.beta:g}.")
        each = zip(mixture.gaussians, mixture.weights, strict=True)
        found = [Setting(Problem(problem.likelihood, problem.link, one), float(w), None) for one, w in each]
    for one in found if proper else ():
        require_proper(one.problem)
    if hyper:
        require_blind(found[0].problem)
    return found


def require_free(problem: Problem) -> None:
    """Check that every field has a meaning under the link."""
    link = problem.link
    if not (link.linear or link.exponential):
        raise InputError("Argument `problem` must have a link without constraints on the field, such as Logits or "
                         f"Direct, but it has {type(link).__name__}.")  # fmt: skip


def require_blind(problem: Problem) -> None:
    """Check that a prior about a log-density does not decide how high it lies."""
    if pulls_at_shifts(problem, _null(problem)):
        raise InputError("Argument `problem` must have the link Logits if its prior decides how high a log-density "
                         "lies, as one with a Mass does, but it has " f"{type(problem.link).__name__}: log-densities "
                         "are normalised, and cannot be drawn from it.")  # fmt: skip


def _hyper_settings(problem: Problem) -> list[Setting]:
    """The problem at all values of one hyperparameter."""
    space = space_of(problem)
    names = [*space.choices, *space.numbers]
    if len(names) != 1 or np.size(space.start[names[0]]) != 1:
        raise InputError(f"Argument `problem` must have at most one hyperparameter here, but it has {names}: give the "
                         "others values.")  # fmt: skip
    if space.choices:
        known = space.hyperprior[names[0]]
        values, weights = list(known.values), np.asarray(known.probabilities)
    else:
        ends: Any = space.bounds()[0]
        if np.any(space.open()) or not np.all(np.isfinite(ends)):
            raise InputError("Argument `problem` must have a hyperprior that is proper, with two ends, but that of "
                             f"{names[0]} has none: give it as LogFlat(low, high).")  # fmt: skip
        values: Any = [space.unpack(np.array([u]), {})[names[0]] for u in np.linspace(ends[0], ends[1], VALUES)]
        logs = np.array([space.log_volume({names[0]: v}) - space.energy({names[0]: v}) for v in values])
        weights = scipy.special.softmax(logs)
    every: Any = values
    numbers = [float(v) if isinstance(v, (int, float)) else float(i) for i, v in enumerate(every)]
    each = zip(values, weights, numbers, strict=True)
    return [Setting(space.hold({names[0]: v}), float(w), number) for v, w, number in each]


def require_proper(problem: Problem) -> None:
    """Check that a Gaussian prior is a density of everything that the data see."""
    require_blind(problem)
    null = _null(problem)
    gone = shifts_of(problem.grid) if problem.link.exponential else problem.undetermined
    rest = null - (null @ gone.T) @ gone
    free = int(np.sum(np.linalg.svd(rest, compute_uv=False) > np.sqrt(FLAT))) if len(null) else 0
    if free:
        raise InputError(f"Argument `problem` must have a proper prior, from which a field can be drawn, but {free} "
                         "of its directions are free: add a Mass, as in "
                         "`prior & Gaussian(0.1 * Mass(grid))`.")  # fmt: skip


def _null(problem: Problem) -> np.ndarray:
    """Directions that the prior leaves free, as orthonormal rows."""
    return problem.operator.null_space().reshape(-1, problem.grid.size)
