r"""Two centres of a given width: the student of the paper, as an iteration in one splitting vector.

With the centres at $\bar S \pm \Delta U$, $X = S - \bar S$ and $P$ examples, the energy of an example is
$\epsilon = |\Delta U|^2/2\sigma - P^{-1} \sum_\mu \ln\cosh(\Delta U \cdot X^\mu/\sigma)$, and EM is the map
$\Delta U \leftarrow P^{-1} \sum_\mu X^\mu \tanh(\Delta U \cdot X^\mu/\sigma)$, which never increases it.

The data enter centred: the paper's uncentred form would split along $\bar S$ as readily as along the truth.
Many splitting vectors on one sample are rows of one matrix, and a step of all of them is two matrix products.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from quenched.core.types import Array, Outcome, Real, require_double

SLOTS = 128
"""Splitting vectors that are iterated side by side; more are no faster and those behind would wait for the slowest."""
NEAR = 0.03
"""Residual, as a share of the splitting vector, below which steps are stretched: so near, the basin is decided."""
ROUND = 8
"""Steps after which slots that are done get new starts."""
ROUNDING = 1e-14
"""Energies closer than this are equal."""


class Relaxed(NamedTuple):
    """Local minima of the energy, one for each start."""

    dU: Array  # [starts, N]
    energy: Array  # [starts] of an example
    residual: Array  # [starts] |F(dU) - dU|
    steps: Array  # [starts] evaluations of the map
    outcome: Array  # [starts] an `Outcome` code


def _evaluate(X: Array, dU: Array, width: Real) -> tuple[Array, Array]:
    """Energy and image under the map; both come from the same fields and one exponential."""
    h = dU @ X.T / width
    e = jnp.exp(-2 * jnp.abs(h))
    log_cosh = jnp.abs(h) + jnp.log1p(e) - jnp.log(2.0)
    eps = jnp.sum(dU * dU, axis=-1) / (2 * width) - jnp.mean(log_cosh, axis=-1)  # [barkai1994, eq. (6), erratum B1]
    t = jnp.sign(h) * (1 - e) / (1 + e)
    return eps, t @ X / X.shape[0]  # [barkai1994, eq. (8), erratum B1]


def step(X: Array, dU: Array, width: Real) -> Array:
    r"""One EM step (pure JAX): $\Delta U \leftarrow P^{-1} \sum_\mu X^\mu \tanh(\Delta U \cdot X^\mu/\sigma)$.

    Args:
        X: centred examples `[P, N]`.
        dU: splitting vectors `[..., N]`.
        width: $\sigma$, a variance.
    """
    require_double("step")
    return _evaluate(X, dU, width)[1]


def energy(X: Array, dU: Array, width: Real) -> Array:
    r"""$\epsilon(\Delta U) = |\Delta U|^2/2\sigma - P^{-1} \sum_\mu \ln\cosh(\Delta U \cdot X^\mu/\sigma)$ (pure JAX).

    Args:
        X: centred examples `[P, N]`.
        dU: splitting vectors `[..., N]`.
        width: $\sigma$, a variance.
    """
    require_double("energy")
    return _evaluate(X, dU, width)[0]


class _Slots(NamedTuple):
    """Where each slot stands: the trial point, and the last accepted point with its residual and energy."""

    which: Array  # [B] the start that is worked on; the number of starts where there is nothing left to do
    x: Array  # [B, N]
    before: Array  # [B, N]
    g: Array  # [B, N]
    eps: Array  # [B]
    plain: Array  # [B] whether the trial is an EM step, which needs no test
    steps: Array  # [B]
    done: Array  # [B]


@functools.partial(jax.jit, static_argnames=("max_steps", "slots"))
def relax(
    X: Array, starts: Array, width: Real, *, accuracy: Real = 1e-6, max_steps: int = 10_000, slots: int = SLOTS
) -> Relaxed:
    r"""Go downhill from many starts on one sample, each to its local minimum (pure JAX).

    The plain map decides which minimum it is; once $|F - \Delta U| < 0.03\,|\Delta U|$ the step $F - \Delta U$ is
    stretched by Barzilai and Borwein's factor, and taken back for a plain one where the energy would rise. Converged
    is what has $|F(\Delta U) - \Delta U| \le \text{accuracy} \cdot \sqrt\sigma$. A start that has converged makes
    room for the next one, so the cost is that of the steps actually needed.

    Args:
        X: centred examples `[P, N]`.
        starts: splitting vectors `[starts, N]`.
        width: $\sigma$, a variance.
        accuracy: see above.
        max_steps: at most, for each start; beyond them its outcome is `stalled`.
        slots: starts iterated side by side.
    """
    require_double("relax")
    count = starts.shape[0]
    B = min(slots, count)
    limit = jnp.asarray(accuracy * jnp.sqrt(width))

    def iterate(now: _Slots) -> _Slots:
        eps, F = _evaluate(X, now.x, width)
        g = F - now.x
        rises = ~now.plain & (eps > now.eps + ROUNDING)
        residual = jnp.linalg.norm(g, axis=1)
        factor = jnp.where(residual < NEAR * jnp.linalg.norm(now.x, axis=1), _stretch(now, g), 1.0)
        retreat, advance = now.before + now.g, now.x + factor[:, None] * g
        accepted = _Slots(now.which, advance, now.x, g, eps, factor == 1.0, now.steps + 1, residual <= limit)
        rejected = now._replace(x=retreat, plain=jnp.ones_like(rises), steps=now.steps + 1)
        after = _choose(rises, rejected, accepted)
        after = after._replace(done=after.done | (after.steps >= max_steps) | ~jnp.isfinite(residual))
        return _choose(now.done, now, after)

    def body(state: tuple[_Slots, Array, Relaxed]) -> tuple[_Slots, Array, Relaxed]:
        now, head, found = state
        # Placing results and starts costs as much as a step: it is done for the steps of a round together.
        _, now = jax.lax.while_loop(
            lambda turn: (turn[0] < ROUND) & ~jnp.all(turn[1].done),
            lambda turn: (turn[0] + 1, iterate(turn[1])),
            (0, now),
        )
        return *_refill(now, head, starts), _keep(found, now, limit)

    nothing = Relaxed(starts, *(jnp.zeros(count) for _ in range(2)), *(jnp.zeros(count, int) for _ in range(2)))
    now, head, found = _begin(jnp.arange(B), starts[:B]), jnp.asarray(B), nothing
    while B:  # the last starts go on in fewer slots
        fewer = B // 4 if B >= 64 else 0
        state = (jax.tree.map(lambda leaf, B=B: leaf[:B], now), head, found)
        now, head, found = jax.lax.while_loop(functools.partial(_busy, count, fewer), body, state)
        if fewer:
            first = jnp.argsort(now.done)
            now = jax.tree.map(lambda leaf, first=first: leaf[first], now)
        B = fewer
    return found


def _busy(count: int, most: int, state: tuple[_Slots, Array, Relaxed]) -> Array:
    """Whether more slots than `most` have work, or starts are waiting."""
    now, head, _ = state
    return (head < count) | (jnp.sum(now.which < count) > most)


def _begin(which: Array, x: Array) -> _Slots:
    B = which.shape[0]
    return _Slots(
        which, x, x, jnp.zeros_like(x), jnp.full(B, jnp.inf), jnp.full(B, True), jnp.zeros(B, int), jnp.full(B, False)
    )


def _choose(first: Array, one: _Slots, other: _Slots) -> _Slots:
    """Slots from `one` where `first`, from `other` elsewhere."""
    return jax.tree.map(lambda a, b: jnp.where(first[:, None] if a.ndim == 2 else first, a, b), one, other)


def _stretch(now: _Slots, g: Array) -> Array:
    """Barzilai and Borwein's factor from the last accepted step, at least that of the plain map."""
    s, y = now.x - now.before, now.g - g
    curvature, scale = jnp.sum(s * y, axis=1), jnp.sum(y * y, axis=1)
    return jnp.where(curvature > 0, jnp.maximum(curvature / jnp.where(scale > 0, scale, 1.0), 1.0), 1.0)


def _keep(found: Relaxed, now: _Slots, limit: Array) -> Relaxed:
    """Write down what is done; what is not has no place to be written to."""
    where = jnp.where(now.done, now.which, found.dU.shape[0])
    residual = jnp.linalg.norm(now.g, axis=1)  # of the last accepted point
    stopped = jnp.where(jnp.isfinite(residual), Outcome.stalled.value, Outcome.failed.value)
    outcome = jnp.where(residual <= limit, Outcome.converged.value, stopped)
    new = Relaxed(now.before, now.eps, residual, now.steps, outcome)
    return Relaxed(*(old.at[where].set(value, mode="drop") for old, value in zip(found, new, strict=True)))


def _refill(now: _Slots, head: Array, starts: Array) -> tuple[_Slots, Array]:
    """Give the slots that are done the next starts, in turn."""
    count = starts.shape[0]
    place = jnp.minimum(head + jnp.cumsum(now.done) - 1, count)
    fresh = _begin(place, starts[jnp.minimum(place, count - 1)])
    fresh = fresh._replace(done=place == count)  # idle: nothing left
    return _choose(now.done, fresh, now), jnp.minimum(head + jnp.sum(now.done), count)


def spread(X: Array, *, steps: int = 60) -> Array:
    r"""About the largest variance of the sample in any direction, from below (pure JAX, by power iteration).

    The linear part of the map is $X^\top X/P\sigma$: at a width above it every splitting vector dies out.
    """

    def grow(_: Any, v: Array) -> Array:
        v = (X @ v) @ X
        return v / jnp.linalg.norm(v)

    v = jax.lax.fori_loop(0, steps, grow, X.T @ jnp.sign(X[:, 0]) + X[0])
    return jnp.sum((X @ v) ** 2) / X.shape[0]
