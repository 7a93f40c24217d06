"""The energy of a problem whose data are looked at on the host alone: its slope, and Newton's equation.

For `NewtonCG`, in place of compiled programs: potentials of quantum systems, whose states are found by searches.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import QUICK, Array, double
from quenched.fields.learner.starts import Uniform, begin
from quenched.fields.model.either import templates_of, uncertain
from quenched.fields.model.operators import Operator, Waves
from quenched.fields.model.preconditioner import RIDGE, resembling
from quenched.fields.model.priors import Prior
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Mass

PRODUCTS = 400
"""Newton's equation is solved with so many products at most."""


class HostTask:
    """A problem on the host, and a preconditioner: the prior in waves, and a constant for the data.

    Attributes:
        problem: with the link `Direct`.
    """

    def __init__(self, problem: Problem):
        self.problem = problem
        self.waves: Waves = resembling(_operator(problem))
        self.signs = np.random.default_rng(0).choice([-1.0, 1.0], size=problem.grid.size)

    def scale(self) -> float:
        """The norm of the slope of the data where nothing is known."""
        return float(np.linalg.norm(self.problem.expand_data(begin(Uniform(), self.problem))[1]))

    def place(self, field: np.ndarray) -> Any:
        """It is there."""
        return np.asarray(field)

    def look(self, field: Any) -> tuple[Any, tuple[float, float, Any]]:
        """The field; energy, the part of the data, slope."""
        at = self.problem.expand(field)
        return field, (at.energy, at.loss, at.slope.reshape(field.shape))

    def direction(self, field: Any, slope: Any, share: float) -> tuple[Any, int]:
        """Newton's step by conjugate gradients, which end where the curvature is negative, and the products it took."""
        curvature = self.problem.expand_data(field)[2]
        prior, solve = self._prior(field), self._preconditioner(curvature)
        x, r = np.zeros(field.size), -slope.ravel()
        enough, z = share * np.linalg.norm(r), solve(r)
        p, rz, count = z, float(r @ z), 0
        while np.linalg.norm(r) > enough and count < PRODUCTS:
            Hp = curvature.apply(p) + prior(p)
            bend, count = float(p @ Hp), count + 1
            if not bend > 0:
                x = p if count == 1 else x
                break
            x, r = x + rz / bend * p, r - rz / bend * Hp
            z = solve(r)
            p, rz = z + float(r @ z) / rz * p, float(r @ z)
        return x.reshape(field.shape), count

    def _preconditioner(self, curvature: Any) -> Any:
        grid = self.problem.grid
        diagonal = np.maximum(self.signs * curvature.apply(self.signs), 0.0)
        level = np.sum(diagonal**2) / max(np.sum(diagonal), np.finfo(float).tiny)
        prior = np.broadcast_to(grid.cell * np.asarray(self.waves.values), grid.shape)
        stiffness = prior + max(level, RIDGE * float(np.mean(prior)) + np.finfo(float).tiny)
        return lambda r: np.asarray(self.waves.in_modes(r.reshape(grid.shape), lambda a: a / stiffness)).ravel()

    def _prior(self, field: np.ndarray) -> Any:
        """Products with the second derivatives of the prior."""
        grid, parts = self.problem.grid, self.problem.parts
        if parts is None:
            return lambda v: _product(self.problem.prior, field, v.reshape(field.shape)).ravel()
        operator = self.problem.operator
        return lambda v: grid.cell * np.asarray(operator.apply(v.reshape(field.shape))).ravel()


def _operator(problem: Problem) -> Operator:
    """That of the prior, of its first alternative, or none."""
    if problem.parts is not None:
        return problem.operator
    return templates_of(problem.prior)[0][0].operator if uncertain(problem.prior) else Mass(problem.grid, 0.0)


@double
def _product(prior: Prior, field: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(_compiled_product(prior, jnp.asarray(field), jnp.asarray(v)))


@functools.partial(jax.jit, compiler_options=QUICK)
def _compiled_product(prior: Prior, field: Array, v: Array) -> Array:
    return jax.jvp(jax.grad(prior.energy), (field,), (v,))[1]
