"""Gibbs learning: centres drawn at random with probability proportional to exp(-H/T), by Hamiltonian Monte Carlo."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from quenched.core.extras import load_extra
from quenched.core.types import Array, Key, Outcome, Real
from quenched.outliers.learner import em

TRAJECTORIES = 200
"""Each goes a quarter of a period and forgets most of where it began; the last one's end is the draw."""
STRIDE = 1.0
"""Step of the integrator, times the fourth root of N, in units of the narrowest direction: 80 to 90% are accepted."""


@functools.partial(jax.jit, static_argnames=("trajectories",))
def draw(
    key: Key, rows: em.Rows, belief: em.Belief, start: Array, temperature: Real, *, trajectories: int = TRAJECTORIES
) -> em.Found:
    r"""One draw from $e^{-\mathcal H/T}$ for each world (pure JAX). [dietrich1998, eq. (16)]

    The mass is the curvature $N a/T$ at the minimum that EM finds from the start; the chain begins at the start itself.
    Its outcome is `stalled` where the mean energy still drifts in the second half by more than it fluctuates.

    Args:
        key: a JAX key.
        rows: the data.
        belief: gamma, and eta of each world.
        start: centres `[K, N]`.
        temperature: $T$.
        trajectories: how many, all but the last to forget the start.
    """
    (P, N), K = rows.common.shape, start.shape[0]
    a = 1 + belief.gamma * em.relax(rows, belief, start).selected * P / N

    def one(key: Key, shift: Array, eta: Array, c: Array, a: Array) -> tuple[Array, Array]:
        world = em.Rows(rows.common, shift[None]), em.Belief(belief.gamma, eta[None])
        return _chain(key, *world, c, temperature / (N * a), temperature, trajectories)

    c, energy = jax.vmap(one)(jax.random.split(key, K), rows.shift, belief.eta, start, a)
    third, fourth = energy[:, trajectories // 2 : -trajectories // 4], energy[:, -trajectories // 4 :]
    drift = jnp.abs(jnp.mean(third, axis=1) - jnp.mean(fourth, axis=1))
    steady = drift <= 2 * jnp.std(energy[:, trajectories // 2 :], axis=1)
    outcome = jnp.where(steady, Outcome.converged.value, Outcome.stalled.value)
    selected = em.evaluate(rows, belief, c, jnp.zeros(K), False)[3]
    return em.Found(c, jnp.zeros(K), energy[:, -1], selected, drift, jnp.full(K, trajectories), outcome)


def _chain(
    key: Key, rows: em.Rows, belief: em.Belief, c: Array, width: Real, temperature: Real, trajectories: int
) -> tuple[Array, Any]:
    """The end of one chain, and the energy over N after each trajectory."""
    blackjax: Any = load_extra("blackjax", extra="sampling", purpose="Gibbs learning")
    N = c.shape[0]
    stride = STRIDE * N**-0.25
    log = _log_weight(rows, belief, temperature)
    move = blackjax.hmc(log, stride, jnp.full(N, width), math.ceil(math.pi / 2 / stride)).step

    def go(state: Any, key: Key) -> tuple[Any, Real]:
        state, _ = move(key, state)
        return state, -state.logdensity * temperature / N

    first: Any = blackjax.hmc.init(c, log)
    end, energy = jax.lax.scan(go, first, jax.random.split(key, trajectories))
    return end.position, energy


def _log_weight(rows: em.Rows, belief: em.Belief, temperature: Real) -> Callable[[Array], Array]:
    """-H/T of one centre; its slope, N a (F - c)/T, comes from the same pass over the data."""
    P, N = rows.common.shape

    def both(c: Array) -> tuple[Array, Array]:
        F, _, energy, selected = em.evaluate(rows, belief, c[None], jnp.zeros(1), False)
        a = 1 + belief.gamma * selected[0] * P / N
        return -N * energy[0] / temperature, N * a * (F[0] - c) / temperature

    log = jax.custom_vjp(lambda c: both(c)[0])
    log.defvjp(both, lambda slope, sign: (sign * slope,))
    return log
