"""The potential of a quantum system as an experiment: positions drawn again and again, each time reconstructed."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from quenched.core.ensemble import OnHost
from quenched.core.types import InputError, double
from quenched.fields.learner.solving import solve
from quenched.fields.model.laws import MaximumPosterior, TruePotential
from quenched.fields.model.priors import And, Gaussian, Prior
from quenched.fields.model.problem import Problem

READINGS = ("training_error", "test_error", "density_error", "potential_error", "stalled")
"""What a run gives."""


def measure_potential(examples: int) -> OnHost:
    """A run with so many positions."""
    return OnHost(functools.partial(_one_run, examples=examples), dict.fromkeys(READINGS, ()))


@double
def _one_run(key: Any, point: tuple[TruePotential, MaximumPosterior], *, examples: int) -> dict[str, Any]:
    """Errors of the reconstruction from one data set."""
    law, rule = point
    grid = law.grid
    positions = law.sample(key, examples)
    problem = Problem(law.observe(positions), rule.link, strengthen(rule.prior, float(rule.strength)))
    fit = solve(problem)
    true, found = (
        one.reshape(-1, grid.size) * grid.cell
        for one in (law.density, law.state.density(grid, fit.field, law.hamiltonian))
    )
    true, found = true / true.sum(axis=1, keepdims=True), found / found.sum(axis=1, keepdims=True)
    off, p = (fit.field - law.potential).ravel(), true.mean(axis=0)
    loss = problem.expand_data(fit.field)[0]
    return {
        "training_error": np.asarray(loss / examples),
        "test_error": -np.mean(np.sum(true * np.log(np.maximum(found, np.finfo(float).tiny) / grid.cell), axis=1)),
        "density_error": np.mean(np.sum(np.abs(found - true), axis=1)) / 2,
        "potential_error": np.sqrt(p @ (off - p @ off) ** 2),
        "stalled": np.asarray(float(not fit.converged)),
    }


def strengthen(prior: Prior, strength: float) -> Prior:
    """A prior whose energy is multiplied by a factor."""
    if strength == 1.0:
        return prior
    if isinstance(prior, And):
        return And(tuple(strengthen(part, strength) for part in prior.parts))
    if not isinstance(prior, Gaussian):
        raise InputError("Argument `strength` must be 1 for a potential under a prior that is not Gaussian, but it "
                         f"is {strength:g}.")  # fmt: skip
    return Gaussian(strength * prior.operator, prior.mean)
