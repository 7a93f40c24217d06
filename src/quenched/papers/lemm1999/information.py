r"""Mutual information: how much data at one place say about another, and how learning uses it up.

[lemm1999, section 2.1.5, errata F29, F33] States of Nature $h_l$ give each of two observables $y_a, y_b$ a Gaussian of
mean $h_l(x_i)$ and standard deviation $\sigma$. With probabilities $p_l$ of the states the predictive density is their
mixture, and

$$M = \int dy_a\, dy_b\, p(y_a, y_b) \ln \frac{p(y_a, y_b)}{p(y_a)\, p(y_b)} = H(Y_a) + H(Y_b) - H(Y_a, Y_b) .$$

Factorial probabilities, single states among them, have none: from them no generalisation is possible.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.random import normals, uniforms
from quenched.core.types import Array, InputError, Key, double

MARGIN, FINE, FURTHEST = 8, 8, 200
"""The trapezium rule goes this many standard deviations beyond all means, with so many points for each: exact to 1e-12.
Means may be so many standard deviations apart."""


@functools.partial(jax.jit, static_argnames="points")
def _mutual(means: Array, p: Array, sigma: Array, points: int) -> Array:
    y = jnp.linspace(jnp.min(means) - MARGIN * sigma, jnp.max(means) + MARGIN * sigma, points)
    cell = y[1] - y[0]
    one = jnp.exp(-jnp.square((y - means[..., None]) / sigma) / 2) / (jnp.sqrt(2 * jnp.pi) * sigma)  # [l, i, y]
    joint = jnp.einsum("l,la,lb->ab", p, one[:, 0], one[:, 1])

    def entropy(density: Array, volume: Array) -> Array:
        return -jnp.sum(jax.scipy.special.xlogy(density, density)) * volume

    alone = sum(entropy(p @ one[:, i], cell) for i in range(2))
    return alone - entropy(joint, cell**2)


@functools.partial(jax.jit, static_argnames="points")
def _mutual_of_each(means: Array, rows: Array, sigma: Array, points: int) -> Array:
    return jax.lax.map(lambda p: _mutual(means, p, sigma, points), rows)


def _checked(probabilities: Any, means: Any, sigma: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Probabilities and means as arrays, and how many points their integrals need."""
    p, m = checks.numbers("probabilities", probabilities), checks.numbers("means", means)
    if m.ndim != 2 or m.shape[1] != 2 or p.shape != (len(m),):
        raise InputError("Argument `means` must be a row of two numbers for each probability, but their shapes are "
                         f"{m.shape} and {p.shape}.")  # fmt: skip
    checks.finite("means", m)
    checks.not_negative("probabilities", p)
    checks.positive("sigma", checks.number("sigma", sigma))
    if abs(p.sum() - 1) > 1e-9:
        raise InputError(f"Argument `probabilities` must sum to 1, but it sums to {p.sum():g}.")
    apart = float(np.ptp(m)) / float(sigma)
    if apart > FURTHEST:
        raise InputError(f"Argument `sigma` must be at least 1/{FURTHEST} of the distance of the means, but they are "
                         f"{apart:g} times as far apart.")  # fmt: skip
    return p, m, FINE * int(np.ceil(apart + 2 * MARGIN)) + 1


FOUR = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
"""The four states of the paper: means 1 or -1 at two places."""


@double
def mutual_information(probabilities: Any, *, means: Any = FOUR, sigma: float = 1.0) -> float:
    r"""The mutual information of two observables, in nats.

    Args:
        probabilities: $p_l$ of each state.
        means: $h_l(x_a), h_l(x_b)$, one row for each state.
        sigma: standard deviation of both.

    Examples:
        >>> from quenched.papers.lemm1999.information import mutual_information
        >>> round(mutual_information([0.5, 0, 0, 0.5]), 8)
        0.1735895
    """
    p, m, points = _checked(probabilities, means, sigma)
    return float(_mutual(jnp.asarray(m), jnp.asarray(p), jnp.asarray(float(sigma)), points))


@double
def learning_decay(
    prior: Any, truth: int, *, examples: int, key: Key, means: Any = FOUR, sigma: float = 1.0
) -> xr.Dataset:
    """Posterior probabilities of the states and mutual information while single observations come in.

    Args:
        prior: probabilities of the states before.
        truth: which state is true.
        examples: how many observations, each at one of the two places by the toss of a coin.
        key: a JAX key.
        means: see `mutual_information`.
        sigma: see `mutual_information`.

    Returns:
        `probability` over `examples` and `state`, and `information` over `examples`.
    """
    p, m, points = _checked(prior, means, sigma)
    truth = checks.whole("truth", truth, least=0)
    if not truth < len(m):
        raise InputError(f"Argument `truth` must be one of the {len(m)} states, but {truth} was given.")
    n = checks.whole("examples", examples, least=1)
    where, noise = jax.random.split(checks.key(key))
    place = (uniforms(where, n) < 0.5).astype(int)
    y = m[truth, place] + float(sigma) * normals(noise, n)
    steps = -((y[:, None] - m[:, place].T) ** 2) / (2 * float(sigma) ** 2)  # [n, l]
    with np.errstate(divide="ignore"):
        logs = np.log(p) + np.concatenate([np.zeros((1, len(m))), np.cumsum(steps, axis=0)])
    every = np.exp(logs - logs.max(axis=1, keepdims=True))
    every /= every.sum(axis=1, keepdims=True)
    information = _mutual_of_each(jnp.asarray(m), jnp.asarray(every), jnp.asarray(float(sigma)), points)
    return xr.Dataset(
        {"probability": (("examples", "state"), every), "information": ("examples", np.asarray(information))},
        {"examples": np.arange(n + 1), "state": np.arange(len(m))},
        {"truth": int(truth), "science": "fields", "source": "theory"},
    )
