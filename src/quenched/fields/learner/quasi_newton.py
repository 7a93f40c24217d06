"""Rounds of optimistix's L-BFGS in coordinates in which a preconditioner is the identity."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optimistix

from quenched.core.types import Array
from quenched.fields.model.preconditioner import Ground, precondition
from quenched.fields.model.problem import Problem
from quenched.fields.model.products import compiled, look


class _Rounds(optimistix.AbstractLBFGS):
    """L-BFGS that ends when the slope is small."""

    search: optimistix.AbstractSearch
    history_length: int
    enough: Array
    rtol: float = 0.0
    atol: float = 0.0
    norm: Callable[[Any], Any] = optimistix.two_norm
    use_inverse: bool = True
    descent: optimistix.AbstractDescent = optimistix.NewtonDescent()  # pyright: ignore[reportIncompatibleVariableOverride]
    verbose: Callable[..., None] = lambda **_: None

    def terminate(
        self, fn: Any, y: Any, args: Any, options: dict[str, Any], state: Any, tags: frozenset[object]
    ) -> tuple[Array, optimistix.RESULTS]:
        """By the norm of the slope."""
        arrived = ~state.first_step & (self.norm(state.f_info.grad) <= self.enough)
        return arrived, state.result


@functools.partial(compiled, static=(4, 5, 6))
def advance(
    problem: Problem, ground: Ground, field: Array, enough: Any, history: int, most: int, whole: bool
) -> tuple[Array, Array]:
    """Some steps of L-BFGS, and how many.

    Args:
        problem: where JAX computes.
        ground: what the preconditioner is made of.
        field: where they begin.
        enough: the norm of the slope at which they may end.
        history: slopes that are remembered.
        most: steps at most.
        whole: whether steps are taken whole, without looking at the energy, as they must be where it is only rounding.
    """
    M = precondition(problem, ground, field)

    @jax.custom_jvp
    def energy(c: Array) -> Array:
        return look(problem, field + M.spread(c))[0][0]

    @energy.defjvp
    def _(primals: Any, tangents: Any) -> tuple[Array, Array]:
        (value, _), slope = look(problem, field + M.spread(primals[0]))
        return value, jnp.vdot(M.gather(slope), tangents[0])

    slope = look(problem, field)[1]
    scale = jnp.linalg.norm(M.gather(slope)) / jnp.linalg.norm(slope)  # the slope in these coordinates is another one
    search = optimistix.LearningRate(1.0) if whole else optimistix.BacktrackingArmijo()
    solver = _Rounds(search=search, history_length=history, enough=0.3 * enough * scale)  # pyright: ignore[reportCallIssue]
    found = optimistix.minimise(lambda c, _: energy(c), solver, jnp.zeros_like(field), max_steps=most, throw=False)
    return field + M.spread(found.value), found.stats["num_steps"]
