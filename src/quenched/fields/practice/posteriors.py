"""Draws from the posterior of a problem: by Laplace's Gaussian, by a sampler, or by a class of your own."""

from __future__ import annotations

import abc
import dataclasses

import jax
import numpy as np
import scipy.special

from quenched.core.random import normals, split, uniforms
from quenched.core.types import Key, Outcome
from quenched.fields.learner.solving import solve
from quenched.fields.model.problem import Problem
from quenched.fields.practice.settings import Setting, pick, symmetric
from quenched.fields.theory.laplace import laplace


class PosteriorDraws(abc.ABC):
    """How fields are drawn from a posterior: `LaplaceDraws()`, `NUTS()`, `Tempered()`, or a class of your own."""

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

    def draw_among(self, settings: list[Setting], key: Key, count: int) -> tuple[np.ndarray, np.ndarray, Outcome]:
        """Draw fields and the settings that they belong to, by default in proportion to Laplace's evidence.

        Args:
            settings: the values of what is open in the prior, with the same data.
            key: of the draws.
            count: how many.

        Returns:
            Fields, the index of the setting of each, and the worst outcome.
        """
        if len(settings) == 1:
            fields, outcome = self.draw(settings[0].problem, key, count)
            return fields, np.zeros(count, dtype=int), outcome
        which, rest = split(key, 2)
        logs = [np.log(one.weight) + laplace(one.problem, solve(one.problem)).log_evidence for one in settings]
        at = np.sort(pick(scipy.special.softmax(logs), uniforms(which, count)))
        parts, outcome = [], Outcome.converged
        for j, some in zip(*np.unique(at, return_counts=True), strict=True):
            fields, found = self.draw(settings[j].problem, jax.random.fold_in(rest, int(j)), int(some))
            parts.append(fields)
            outcome = max(outcome, found)
        return np.concatenate(parts), at, outcome


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
        roots = symmetric(laplace(problem, fit).roots)
        fields = fit.field.ravel() + normals(key, count, len(roots)) @ roots
        return fields.reshape(count, *problem.grid.shape), fit.outcome
