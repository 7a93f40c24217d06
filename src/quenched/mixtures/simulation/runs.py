"""One sample, and the ways to its minima: annealing, and random starts; pure JAX functions for `ensemble`."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import controls
from quenched.core.types import Array, InputError, Key
from quenched.mixtures.learner.two_centres import Relaxed, relax, spread
from quenched.mixtures.model import Annealed, Law, MaximumLikelihood, RandomStart, Start, draw

ABOVE = 1.1
"""First width of an annealing over the largest variance of the sample, which power iteration finds from below."""


class Sample(NamedTuple):
    """A finite world and what it knows of the truth."""

    X: Array  # [P, N] centred
    truth: Array  # [N] dU0 / u0
    fresh: Array  # [tests, N] new examples, centred like the others
    side: Array  # [tests] their classes


def world(key: Key, law: Law, P: int, size: int, tests: int) -> Sample:
    """Draw a sample and fresh examples."""
    S, side = draw(law, key, P + tests, size)  # in one go: each call of a generator takes a second to compile
    U = law.centres(size)
    truth = (U[0] - U[1]) / (2 * jnp.linalg.norm(U[0]))
    mean = jnp.mean(S[:P], axis=0)
    return Sample(S[:P] - mean, truth, S[P:] - mean, side[P:])


def observe(sample: Sample, found: Relaxed) -> dict[str, Array]:
    """Order parameters of splitting vectors `[..., N]`. [barkai1994, eqs. (9), (10), erratum B4]"""
    r = found.dU @ sample.truth
    right = jnp.where(r >= 0, 1.0, -1.0)[..., None] * sample.side
    wrong = jnp.where((found.dU @ sample.fresh.T) >= 0, 1.0, -1.0) != right
    q = jnp.sum(found.dU**2, axis=-1)
    error = jnp.mean(wrong, axis=-1, dtype=float)
    return {"r": jnp.abs(r), "q": q, "error": error, "free_energy": found.energy}


def towards(key: Key, start: RandomStart, shape: tuple[int, ...]) -> Array:
    """Random directions of the start's length."""
    v = jax.random.normal(key, shape)
    return jnp.asarray(start.scale) * v / jnp.linalg.norm(v, axis=-1, keepdims=True)


def anneal(key: Key, X: Array, start: Annealed, widths: Array) -> Relaxed:
    """The minima at falling widths `[W]`, each step from the last one's, a little shaken."""
    N, fall = X.shape[1], 1 - jnp.asarray(start.step)
    first = ABOVE * spread(X) if start.from_width is None else jnp.asarray(start.from_width)
    noise = jnp.asarray(start.noise) / jnp.sqrt(N)

    def lower(state: tuple[Array, Relaxed, Key], target: Array) -> tuple[Array, Relaxed, Key]:
        width, found, key = state
        key, now = jax.random.split(key)
        width = jnp.maximum(target, width * fall)
        return width, relax(X, found.dU + noise * jax.random.rademacher(now, (1, N), float), width), key

    def reach(state: Any, target: Array) -> tuple[Any, Relaxed]:
        state = jax.lax.while_loop(lambda state: state[0] > target, lambda state: lower(state, target), state)
        return state, state[1]

    nothing = Relaxed(jnp.zeros((1, N)), *(jnp.zeros(1) for _ in range(2)), *(jnp.zeros(1, int) for _ in range(2)))
    begin = (jnp.maximum(first, widths[0] / fall), nothing, key)
    _, path = jax.lax.scan(reach, begin, widths)
    return Relaxed(*(leaf[:, 0] for leaf in path))


def scatter(key: Key, X: Array, start: RandomStart, widths: Array, starts: int) -> Relaxed:
    """The minima that random starts find, anew at each width `[W, starts]`."""
    keys = jax.random.split(key, widths.shape[0])
    shape = (starts, X.shape[1])
    return jax.lax.map(lambda one: relax(X, towards(one[0], start, shape), one[1]), (keys, widths))


class Asked(NamedTuple):
    """A checked question."""

    widths: np.ndarray  # falling
    order: np.ndarray  # their places as given
    plan: controls.Plan  # of all other controls
    points: list[Any]


def ask(law: Any, rule: Any, start: Any, sweep: dict[str, Any]) -> Asked:
    """Widths are passed through by each run, so they are no points of the sweep."""
    if not isinstance(law, Law):
        raise InputError(f"Argument `law` must be a law such as TwoGaussians(), but {law!r} was given.")
    if not isinstance(rule, MaximumLikelihood):
        raise InputError(f"Argument `rule` must be MaximumLikelihood(width), but {rule!r} was given.")
    if not isinstance(start, Start):
        raise InputError(f"Argument `start` must be Annealed() or RandomStart(), but {start!r} was given.")
    every = controls.expand(law, rule, {"width": sweep.pop("width", rule.width)})
    given = np.array([float(one.width) for one in every.rules])
    plan = controls.expand(law, every.rules[0], sweep)
    order = np.argsort(-given, kind="stable")
    return Asked(given[order], np.argsort(order), plan, [(one, start, given[order]) for one in plan.laws])
