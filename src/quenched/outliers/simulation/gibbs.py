"""Gibbs learning: centres drawn at random with probability proportional to exp(-H/T), by Hamiltonian Monte Carlo."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.system import load_extra
from quenched.core.types import Array, Key, Outcome, Real
from quenched.outliers.learner import Learned, Rows, State

TRAJECTORIES = 200
"""Each goes a quarter of a period and forgets most of where it began; the last one's end is the draw."""
STRIDE = 1.0
"""Step of the integrator, times the fourth root of N, in units of the narrowest direction: 80 to 90% are accepted."""


def draw(
    key: Key, rows: Rows, start: State, minimum: Learned, temperature: float, *, trajectories: int = TRAJECTORIES
) -> Learned:
    r"""One draw from $e^{-\mathcal H/T}$ at each eta. [dietrich1998, eq. (16)]

    The mass is the curvature $N a/T$ at the minimum that EM finds from the start; the chains begin at the start itself.
    The outcome is `stalled` where the mean energy still drifts in the second half by more than it fluctuates.
    """
    a = rows.Z.shape[1] + start.gamma * minimum.sums.mass[:, 0]
    keys = jax.random.split(key, len(a))
    c, energy, p = (
        np.asarray(one)
        for one in _draw(keys, rows.Z, rows.shift, start.gamma, start.eta, start.centres[:, 0], temperature / a,
                         jnp.asarray(temperature), trajectories=trajectories)
    )  # fmt: skip
    half, quarter = trajectories // 2, -trajectories // 4
    drift = np.abs(np.mean(energy[:, half:quarter], axis=1) - np.mean(energy[:, quarter:], axis=1))
    steady = drift <= 2 * np.std(energy[:, half:], axis=1)
    outcome = np.where(steady, Outcome.converged, Outcome.stalled)
    sums = minimum.sums._replace(p=p, mass=np.sum(p, axis=1, keepdims=True))
    state = start._replace(centres=c[:, None])
    return Learned(state, sums, energy[:, -1], np.full(len(a), trajectories), outcome)


def log_odds(c: Array, noise: Array, shift: Array, gamma: Array, eta: Array) -> Array:
    """h of each example at a centre."""
    return gamma * (noise @ c + c[0] * shift) - gamma * jnp.sum(c * c) / 2 - eta


def energy_of(c: Array, noise: Array, shift: Array, gamma: Array, eta: Array) -> Array:
    r"""$\mathcal H(c) = N |c|^2/2 - \sum_\mu \ln(1 + e^{h_\mu})$ of one centre. [dietrich1998, eq. (7)]"""
    h = log_odds(c, noise, shift, gamma, eta)
    return c.shape[0] * jnp.sum(c * c) / 2 - jnp.sum(jax.nn.softplus(h))


@functools.partial(jax.jit, static_argnames=("trajectories",))
def _draw(
    keys: Key, noise: Array, shift: Array, gamma: Array, eta: Array, start: Array, width: Array, temperature: Real,
    *, trajectories: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The end of the chain at each eta, the energy after each trajectory, and the weights at the end."""
    blackjax: Any = load_extra("blackjax", extra="sampling", purpose="Gibbs learning")
    N = noise.shape[1]
    stride = STRIDE * N**-0.25

    def chain(key: Key, shift: Array, gamma: Array, eta: Array, c: Array, width: Array) -> tuple[Array, Array, Array]:
        log = lambda c: -energy_of(c, noise, shift, gamma, eta) / temperature  # noqa: E731
        move = blackjax.hmc(log, stride, jnp.full(N, width), math.ceil(math.pi / 2 / stride)).step

        def go(state: Any, key: Key) -> tuple[Any, Any]:
            state, _ = move(key, state)
            return state, -state.logdensity * temperature

        first: Any = blackjax.hmc.init(c, log)
        end, energy = jax.lax.scan(go, first, jax.random.split(key, trajectories))
        return end.position, energy, jax.nn.sigmoid(log_odds(end.position, noise, shift, gamma, eta))

    return jax.vmap(chain)(keys, shift, gamma, eta, start, width)
