"""Learn the prior of `quenched.extrapolate` from the curves of LCDB 1.1.

Every curve is seen up to many of its anchors and asked about at 1.3 to 22 times as many rows: once as it is and twice as a
user might have measured it (`curves.thin`). For each question, the log of the truth over the forecast of the
recency-weighted power law is learned from the features of what was seen (`quenched.forecasting.features`), by networks of two
hidden layers of 64. They return nine quantiles (pinball loss) and four point forecasts, among them the one that is used,
which minimises log(1 + |relative error|/0.07): it follows the well-behaved curves, and those that jump do not drag it
along. Quantiles weigh 1/(0.04 + width of the predicted interval), which depends on the features alone and so moves no
quantile, so that narrow and wide curves count alike. Adam, cosine schedule, a tenth of the features dropped at random.
All members are trained at once; a fold's members never see its tables.

    python -m benchmarks.learn_prior --curves PATH --held-out FILE   # out-of-fold outputs, for benchmarks.extrapolation
    python -m benchmarks.learn_prior --curves PATH --ship FILE       # learn from all tables, write the prior

On a GPU each takes half a minute, on two processor cores an hour or more. `--ship` takes the widening of the
intervals from `--held-out`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import curves
from quenched.forecasting import features, prior

Q = prior.QUANTILES.astype(np.float32)
POINTS = 4
WIDTH, DROPPED, FEATURES_DROPPED = 64, 0.05, 0.1
STEPS, BATCH, RATE, DECAY = 6000, 2048, 2e-3, 1e-2
WARM_UP, CHUNK = 300, 500
FOLDS, MEMBERS, SHIPPED = 18, 4, 14
"""Folds of tables, networks of each, and networks of the prior that is shipped."""


def begin(key: Any, inputs: int) -> list[tuple[jax.Array, jax.Array]]:
    """Random weights; the quantiles begin in order."""
    sizes = [inputs, WIDTH, WIDTH, len(Q) + POINTS]
    layers = []
    for k, a, b in zip(jax.random.split(key, 3), sizes[:-1], sizes[1:], strict=True):
        scale = 0.05 / a**0.5 if b == sizes[-1] else (2 / a) ** 0.5
        layers.append((jax.random.normal(k, (a, b)) * scale, jnp.zeros(b)))
    W, c = layers[-1]
    layers[-1] = W, c.at[: len(Q)].set(jnp.array([-0.35, -0.25, -0.15, -0.06, 0, 0.06, 0.15, 0.25, 0.35]))
    return layers


def outputs(layers: Any, x: jax.Array, key: Any = None) -> jax.Array:
    """The outputs of one network; with a key some hidden units are dropped."""
    for W, c in layers[:-1]:
        x = jax.nn.silu(x @ W + c)
        if key is not None:
            key, k = jax.random.split(key)
            x = x * jax.random.bernoulli(k, 1 - DROPPED, x.shape) / (1 - DROPPED)
    W, c = layers[-1]
    return x @ W + c


def loss(found: jax.Array, y: jax.Array, w: jax.Array) -> jax.Array:
    """The loss of quantiles and point forecasts."""
    q, p = found[:, : len(Q)], found[:, len(Q) :]
    off = y[:, None] - q
    pinball = jnp.mean(jnp.maximum(Q * off, (Q - 1) * off), axis=1)
    scale = 1 / (0.04 + jax.lax.stop_gradient(jnp.abs(q[:, 6] - q[:, 2])))
    relative = jnp.abs(jnp.expm1(jnp.clip(p - y[:, None], -6, 3)))
    points = 0.5 * scale * jnp.abs(p[:, 0] - y)
    points += 0.7 * jnp.log1p(relative[:, 1] / 0.03) + 1.5 * jnp.log1p(relative[:, 2] / 0.2)
    points += jnp.log1p(relative[:, prior.POINT] / 0.07)
    return jnp.mean(w * (2 * scale * pinball + 0.5 * points))


def train(x: jax.Array, y: jax.Array, w: jax.Array, members: list[np.ndarray], seed: int) -> Any:
    """Train networks at once, each on its own lessons; weights have the member first."""
    counts = np.array([len(m) for m in members])
    lists = jnp.asarray(np.stack([np.pad(m, (0, counts.max() - len(m))) for m in members]).astype(np.int32))
    seeds = seed + jnp.arange(len(members))
    layers = jax.vmap(lambda s: begin(jax.random.key(s), x.shape[1]))(seeds)

    def step(layers, m, v, rows, count, key, t):
        pick, hide, drop = jax.random.split(key, 3)
        i = rows[jax.random.randint(pick, (BATCH,), 0, count)]
        seen = x[i] * jax.random.bernoulli(drop, 1 - FEATURES_DROPPED, (BATCH, x.shape[1]))
        g = jax.grad(lambda p: loss(outputs(p, seen, hide), y[i], w[i]))(layers)
        norm = jnp.sqrt(sum(jnp.sum(a**2) for a in jax.tree.leaves(g)))
        g = jax.tree.map(lambda a: a * jnp.minimum(1, 5 / (norm + 1e-9)), g)
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
        rate = RATE * jnp.where(t < WARM_UP, t / WARM_UP, 0.5 * (1 + jnp.cos(jnp.pi * t / STEPS)))

        def move(a, first, second):
            towards = first / (1 - 0.9 ** (t + 1)) / (jnp.sqrt(second / (1 - 0.999 ** (t + 1))) + 1e-8)
            return a - rate * (towards + DECAY * a * (a.ndim > 1))

        return jax.tree.map(move, layers, m, v), m, v

    def many(carry, t):
        layers, m, v, keys = carry
        keys = jax.vmap(lambda k: jax.random.split(k)[0])(keys)
        return (*jax.vmap(step, in_axes=(0, 0, 0, 0, 0, 0, None))(layers, m, v, lists, counts, keys, t), keys), None

    run = jax.jit(lambda carry, start: jax.lax.scan(many, carry, start + jnp.arange(CHUNK))[0])
    zeros = jax.tree.map(jnp.zeros_like, layers)
    carry = layers, zeros, zeros, jax.vmap(jax.random.key)(seeds + 1000)
    for start in range(0, STEPS, CHUNK):
        carry = run(carry, jnp.float32(start))
    return jax.tree.map(np.asarray, carry[0])


class Lessons:
    """What is learned from, scaled."""

    def __init__(self, found: curves.Samples):
        self.table = found.table
        self.mean, self.scale = found.rows.mean(axis=0), found.rows.std(axis=0) + 1e-3
        clean = np.where(found.kind == 0, 1.5, 0.75)  # there are two noisy lessons for each clean one
        w = found.weight * clean
        self.x = jnp.asarray(np.clip((found.rows - self.mean) / self.scale, -prior.CLIPPED, prior.CLIPPED), jnp.float32)
        self.y = jnp.asarray(np.clip(found.truth - features.baseline(found.rows), -3, 3), jnp.float32)
        self.w = jnp.asarray(w / w.mean(), jnp.float32)

    def learn(self, members: list[np.ndarray], seed: int) -> prior.Prior:
        """A prior of one network for each list of lessons."""
        layers = tuple(train(self.x, self.y, self.w, members, seed))
        return prior.Prior(self.mean, self.scale, layers, np.ones(4))


def fold_of(table: np.ndarray, folds: int) -> np.ndarray:
    """The fold of each table."""
    return (np.random.default_rng(1).permutation(200) % folds)[table]


def hold_out(lessons: Lessons, asked: curves.Samples, folds: int, members: int) -> np.ndarray:
    """Outputs for each question, by networks that have not seen its table, `[questions, outputs]`."""
    own, theirs = fold_of(lessons.table, folds), fold_of(asked.table, folds)
    lists = [np.flatnonzero(own != k) for k in range(folds) for _ in range(members)]
    learned, found = lessons.learn(lists, 0), np.empty((len(theirs), len(Q) + POINTS), np.float32)
    for k in range(folds):
        some = slice(k * members, (k + 1) * members)
        one = learned._replace(layers=tuple((W[some], c[some]) for W, c in learned.layers))
        found[theirs == k] = one.evaluate(asked.rows[theirs == k])
    return found


def widening(asked: curves.Samples, found: np.ndarray) -> np.ndarray:
    """By how much intervals of 80% must be widened at each horizon to contain the truth so often."""
    q = prior.read_outputs(found, asked.rows, np.ones(4), 0.8)
    t = asked.truth
    need = np.where(t < q.point, (q.point - t) / (q.point - q.low), (t - q.point) / (q.high - q.point))
    return np.array([np.quantile(need[asked.horizon == h], 0.8) for h in curves.HORIZONS])


def main() -> None:
    """Learn, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", type=Path, required=True)
    parser.add_argument("--held-out", type=Path)
    parser.add_argument("--ship", type=Path)
    parser.add_argument("--every", type=int, default=1, help="only each so many tables")
    parser.add_argument("--workers", type=int, default=1)
    a = parser.parse_args()
    known = curves.read(a.curves, a.every)
    lessons = Lessons(curves.sample(known, learn=True, workers=a.workers))
    asked = curves.sample(known, learn=False, workers=a.workers)
    if a.held_out is not None and not a.held_out.exists():
        np.savez_compressed(a.held_out, outputs=hold_out(lessons, asked, FOLDS, MEMBERS))
    if a.ship is not None:
        everything = np.arange(len(lessons.table))
        learned = lessons.learn([everything] * SHIPPED, 500)
        wide = np.ones(4) if a.held_out is None else widening(asked, np.load(a.held_out)["outputs"])
        prior.save(a.ship, learned._replace(widening=wide))


if __name__ == "__main__":
    main()
