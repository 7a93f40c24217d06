"""Draws from the posterior of a problem: by Laplace's Gaussian, or by a class of your own."""

from __future__ import annotations

import abc
import dataclasses

import numpy as np

from quenched.core.random import normals
from quenched.core.types import Key, Outcome
from quenched.fields.learner.solving import solve
from quenched.fields.model.problem import Problem
from quenched.fields.theory.laplace import laplace


class PosteriorDraws(abc.ABC):
    """How fields are drawn from a posterior: `LaplaceDraws()`, or a class of your own."""

    @abc.abstractmethod
    def draw(self, problem: Problem, key: Key, count: int) -> tuple[np.ndarray, Outcome]:
        """Draw fields.

        Args:
            problem: with a Gaussian prior.
            key: of the draws.
            count: how many, nearly independent of each other.

        Returns:
            Fields `[count, *grid.shape]`, and whether they can be trusted.
        """


@dataclasses.dataclass(frozen=True)
class LaplaceDraws(PosteriorDraws):
    """Draws from the Gaussian about the field of least energy: exact in regression with Gaussian noise.

    Examples:
        >>> from quenched import fields
        >>> method = fields.LaplaceDraws()
    """

    def draw(self, problem: Problem, key: Key, count: int) -> tuple[np.ndarray, Outcome]:
        """See `PosteriorDraws`."""
        fit = solve(problem)
        roots = laplace(problem, fit).roots
        fields = fit.field.ravel() + normals(key, count, len(roots)) @ roots
        return fields.reshape(count, *problem.grid.shape), fit.outcome
