r"""The on-line step, and one pass of it over a table: pure JAX.

The winner, the nearest prototype, moves by $w_S \leftarrow w_S + \mathrm{gain}_S\, (x - w_S)$.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import QUICK, Array, Real


def squared_distances(w: Array, x: Array) -> Array:
    """$|x - w_S|^2$ for each prototype, from differences: a far origin costs no digits."""
    return jnp.sum((w - x) ** 2, axis=1)


def update(w: Array, x: Array, gain: Array, *, all_move: bool = False) -> Array:
    r"""Prototypes `[K, N]` after an example `[N]`, where `gain` `[K]` is the step times $g(S, \sigma)$."""
    if all_move:
        return w + gain[:, None] * (x - w)
    s = jnp.argmin(squared_distances(w, x))
    w_s = jax.lax.dynamic_index_in_dim(w, s, keepdims=False)
    # One row is written, in place under a loop: cheaper than `w + mask * (x - w)` and than a scatter.
    return jax.lax.dynamic_update_index_in_dim(w, w_s + gain[s] * (x - w_s), s, 0)


def repeated(gain: Array, times: Real) -> Array:
    r"""The gain of some presentations in succession: each shrinks $x - w$ by $1 - \mathrm{gain}$.

    A step beyond the example (gain above 1) has no fractional power; part of it is taken in proportion.
    """
    power = 1 - jnp.maximum(1 - gain, 0.0) ** times
    return jnp.where(times == 1, gain, jnp.where(gain <= 1, power, gain * times))


class World(NamedTuple):
    """What stays the same during a pass; all of it values, so that no rule needs its own compilation."""

    X: Any  # [n, N]
    codes: Any  # [n] class of each row
    weights: Any  # [n]
    gains: Any  # [K, C] rate times g(S, sigma)
    own: Any  # [K, C] whether prototype and class have the same label
    window: Any  # of LVQ2.1, or None
    decay: Any  # share that prototypes lose at each presentation, or None
    bound: Any  # squared distance of a runaway


def pair(d: Array, own: Array, window: Array) -> Array:
    """Kohonen's pair, as a mask: nearest of the row's class and nearest of another, if inside the window."""
    right = jnp.argmin(jnp.where(own, d, jnp.inf))
    wrong = jnp.argmin(jnp.where(own, jnp.inf, d))
    near, far = jnp.minimum(d[right], d[wrong]), jnp.maximum(d[right], d[wrong])
    inside = jnp.sqrt(near) * (1 + window) >= jnp.sqrt(far) * (1 - window)
    S = jnp.arange(d.shape[0])
    return ((right == S) | (wrong == S)) & inside


def _compete(d: Array, gain: Array, own: Array, window: Array | None, all_move: bool):
    """Who moves: gains after the competition, whether a repetition ends the same way, how far movers are."""
    if window is not None:
        movers = pair(d, own, window)
        return jnp.where(movers, gain, 0.0), ~jnp.any(movers), jnp.max(jnp.where(movers, d, 0.0))
    if all_move:
        return gain, jnp.all(gain <= 1), jnp.max(d)
    s = jnp.argmin(d)
    # A winner that comes nearer wins again; one that is pushed away may not. On the spot, none moves.
    return jnp.full_like(gain, gain[s]), ((gain[s] >= 0) & (gain[s] <= 1)) | (d[s] == 0), d[s]


@functools.partial(jax.jit, static_argnames="all_move", compiler_options=QUICK)
def present(w: Array, world: World, order: Array, rows: Array, *, all_move: bool):
    """Present the rows once in this order; stop early where a mover is out of bounds or not a number.

    One turn of the loop is one presentation, or several that end the same way. The arrays may be longer than the
    number of `rows` (see `pad`). Returns the prototypes, whether they stayed inside the bound, the weight of the rows
    won `[K, C]` and the weighted sum of squared distances.
    """

    def more(state):
        i, _, _, reach, _, _ = state
        return (i < rows) & (reach <= world.bound)

    def body(state):
        i, left, w, _, wins, squared = state
        k = order[i]
        x, code, weight = world.X[k], world.codes[k], world.weights[k]
        w = w if world.decay is None else (1 - world.decay) * w
        d = squared_distances(w, x)
        counted = jnp.where(left == 0, weight, 0.0)  # a row counts when it comes, not when it comes again
        wins, squared = wins.at[jnp.argmin(d), code].add(counted), squared + counted * jnp.min(d)
        left = left + counted
        gain, steady, reach = _compete(d, world.gains[:, code], world.own[:, code], world.window, all_move)
        once = jnp.minimum(left, 1.0)
        times = once if world.decay is not None else jnp.where(steady, left, once)
        w = update(w, x, repeated(gain, times), all_move=all_move)
        left = left - times
        return jnp.where(left > 0, i, i + 1), left, w, reach, wins, squared

    zero = jnp.asarray(0.0)
    state = (jnp.asarray(0), zero, w, zero, jnp.zeros(world.gains.shape), zero)
    _, _, w, reach, wins, squared = jax.lax.while_loop(more, body, state)
    return w, reach <= world.bound, wins, squared


def pad(array: np.ndarray) -> np.ndarray:
    """The array with rows of zeros up to a round number, so that folds of similar size compile once."""
    rows = len(array)
    block = max(64, 2 ** (rows.bit_length() - 3))
    return np.concatenate([array, np.zeros((-rows % block, *array.shape[1:]), array.dtype)])


def nearest(prototypes: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The index of the nearest prototype of each row, and the squared distance to it, in little memory."""
    centre = prototypes.mean(axis=0)
    w = prototypes - centre  # |x|^2 - 2 x.w + |w|^2 loses digits far from the origin, so come near it
    half = 0.5 * np.einsum("kn,kn->k", w, w)
    index, squared = np.empty(len(X), dtype=np.intp), np.empty(len(X))
    block = max(1, 2**20 // max(w.shape))
    for first in range(0, len(X), block):
        rows = slice(first, first + block)
        x = X[rows] - centre
        index[rows] = np.argmin(half - x @ w.T, axis=1)
        away = x - w[index[rows]]
        squared[rows] = np.einsum("nk,nk->n", away, away)
    return index, squared
