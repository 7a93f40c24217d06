"""Learn the prior of `quenched.extrapolate` from the curves of LCDB 1.1.

Every curve is seen up to many of its anchors and asked about at 1.3 to 22 times as many rows: once as it is and twice as a
user might have measured it (`curves.thin`). For each question, the log of the truth over the forecast of the
recency-weighted power law is learned from the features of what was seen (`quenched.forecasting.features`), by networks of two
hidden layers of 64. They return nine quantiles (pinball loss) and four point forecasts, among them the one that is used,
which minimises log(1 + |relative error|/0.07): it follows the well-behaved curves, and those that jump do not drag it
along. Quantiles weigh 1/(0.04 + width of the predicted interval), which depends on the features alone and so moves no
quantile, so that narrow and wide curves count alike. Adam, cosine schedule, a tenth of the features dropped at random.
A fold's networks never see its tables.

    python -m benchmarks.learn_prior --curves PATH --held-out FILE   # out-of-fold outputs, for benchmarks.extrapolation
    python -m benchmarks.learn_prior --curves PATH --ship FILE       # learn from all tables, write the prior

The first takes about ten minutes of processor time, the second seven. `--ship` takes the widening of the intervals from
`--held-out`.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import numpy as np

from benchmarks import curves
from quenched.core.progress import progress
from quenched.forecasting import features, prior

Q = prior.QUANTILES.astype(np.float32)
POINTS = 4
WIDTH, DROPPED, FEATURES_DROPPED = 64, 0.05, 0.1
STEPS, BATCH, RATE, DECAY, WARM_UP = 6000, 512, 2e-3, 1e-1, 300
HALF = 0.5 * 0.5
NEAR, SHARES = np.array([0.03, 0.2, 0.07]), 0.5 * np.array([0.7, 1.5, 1.0])
"""Relative errors up to which the other point forecasts count in proportion, and their shares of the loss."""
FOLDS, MEMBERS, SHIPPED = 18, 2, 12
"""Folds of tables, networks of each, and networks of the prior that is shipped."""


def begin(inputs: int, draw: np.random.Generator) -> list[np.ndarray]:
    """Random weights, each followed by its offsets; the quantiles begin in order."""
    sizes, layers = [inputs, WIDTH, WIDTH, len(Q) + POINTS], []
    for a, b in itertools.pairwise(sizes):
        scale = 0.05 / a**0.5 if b == sizes[-1] else (2 / a) ** 0.5
        layers += [(scale * draw.standard_normal((a, b))).astype(np.float32), np.zeros(b, np.float32)]
    layers[-1][: len(Q)] = [-0.35, -0.25, -0.15, -0.06, 0, 0.06, 0.15, 0.25, 0.35]
    return layers


def loss(found: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    """The loss of quantiles and point forecasts."""
    q, p = found[:, : len(Q)], found[:, len(Q) :]
    off, scale = y[:, None] - q, _scale(q)
    relative = np.abs(np.expm1(np.clip(p - y[:, None], -6, 3)))
    points = HALF * scale * np.abs(p[:, 0] - y) + np.log1p(relative[:, 1:] / NEAR) @ SHARES
    return float(np.mean(w * (2 * scale * np.mean(np.maximum(Q * off, (Q - 1) * off), axis=1) + points)))


def _scale(q: np.ndarray) -> np.ndarray:
    """The weight of a lesson by its predicted interval; no derivative is taken of it."""
    return 1 / (0.04 + np.abs(q[:, 6] - q[:, 2]))


def slopes(found: np.ndarray, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The derivative of `loss` in the outputs."""
    q, p = found[:, : len(Q)], found[:, len(Q) :]
    scale, z = _scale(q), p - y[:, None]
    ratio = np.exp(np.clip(z, -6, 3))
    each = np.where((z > -6) & (z < 3), np.sign(z) * ratio, 0.0)[:, 1:]
    quantiles = 2 * scale[:, None] * np.where(y[:, None] > q, -Q, 1 - Q) / len(Q)
    points = SHARES * each / (NEAR + np.abs(ratio[:, 1:] - 1))
    first = HALF * scale * np.sign(z[:, 0])
    return np.column_stack([quantiles, first, points]).astype(np.float32) * (w / len(w))[:, None]


def train(x: np.ndarray, y: np.ndarray, w: np.ndarray, chosen: np.ndarray, seed: int) -> list[np.ndarray]:
    """Train one network on the chosen lessons by Adam; weights, each followed by its offsets."""
    draw = np.random.default_rng(seed)
    layers = begin(x.shape[1], draw)
    first, second = ([np.zeros_like(a) for a in layers] for _ in range(2))
    for t in range(STEPS):
        i = chosen[draw.integers(0, len(chosen), BATCH)]
        g = _derivatives(layers, x[i] * _kept((BATCH, x.shape[1]), FEATURES_DROPPED, draw), y[i], w[i], draw)
        norm = np.sqrt(sum(float(np.sum(a * a)) for a in g))
        rate = RATE * (t / WARM_UP if t < WARM_UP else 0.5 * (1 + np.cos(np.pi * t / STEPS)))
        for a, d, m, v in zip(layers, g, first, second, strict=True):
            d *= np.float32(min(1, 5 / (norm + 1e-9)))
            m += np.float32(0.1) * (d - m)
            v += np.float32(0.001) * (d * d - v)
            towards = m / (1 - 0.9 ** (t + 1)) / (np.sqrt(v / (1 - 0.999 ** (t + 1))) + 1e-8)
            a -= (rate * (towards + DECAY * a * (a.ndim > 1))).astype(np.float32)
    return layers


def _kept(shape: tuple[int, int], dropped: float, draw: np.random.Generator) -> np.ndarray:
    """1 where a number is kept, 0 where it is dropped."""
    return (draw.integers(0, 256, shape, np.uint8) >= round(256 * dropped)).astype(np.float32)


def _derivatives(
    layers: list[np.ndarray], x: np.ndarray, y: np.ndarray, w: np.ndarray, draw: np.random.Generator
) -> list[np.ndarray]:
    """The derivative of the loss in the weights and offsets, some hidden units dropped."""
    seen, bends = [x], []
    for W, c in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        z = seen[-1] @ W + c
        sigma = 1 / (1 + np.exp(-np.clip(z, -60, 60)))
        kept = _kept(z.shape, DROPPED, draw) / np.float32(1 - DROPPED)
        seen.append(z * sigma * kept)
        bends.append(sigma * (1 + z * (1 - sigma)) * kept)
    d, found = slopes(seen[-1] @ layers[-2] + layers[-1], y, w), []
    for k in range(len(seen) - 1, -1, -1):
        found = [seen[k].T @ d, d.sum(axis=0), *found]
        d = (d @ layers[2 * k].T) * bends[k - 1] if k else d
    return found


class Lessons:
    """What is learned from, scaled."""

    def __init__(self, found: curves.Samples):
        self.table = found.table
        self.mean, self.scale = found.rows.mean(axis=0), found.rows.std(axis=0) + 1e-3
        clean = np.where(found.kind == 0, 1.5, 0.75)  # there are two noisy lessons for each clean one
        w = found.weight * clean
        self.x = np.clip((found.rows - self.mean) / self.scale, -prior.CLIPPED, prior.CLIPPED).astype(np.float32)
        self.y = np.clip(found.truth - features.baseline(found.rows), -3, 3).astype(np.float32)
        self.w = (w / w.mean()).astype(np.float32)

    def learn(self, chosen: np.ndarray, members: int, seed: int) -> prior.Prior:
        """A prior of some networks learned from the chosen lessons."""
        networks = [train(self.x, self.y, self.w, chosen, seed + k) for k in range(members)]
        layers = [np.stack([one[k] for one in networks]) for k in range(len(networks[0]))]
        pairs = tuple(zip(layers[::2], layers[1::2], strict=True))
        return prior.Prior(self.mean, self.scale, pairs, np.ones(4))


def fold_of(table: np.ndarray, folds: int) -> np.ndarray:
    """The fold of each table."""
    return (np.random.default_rng(1).permutation(200) % folds)[table]


def hold_out(lessons: Lessons, asked: curves.Samples, folds: int, members: int) -> np.ndarray:
    """Outputs for each question, by networks that have not seen its table, `[questions, outputs]`."""
    own, theirs = fold_of(lessons.table, folds), fold_of(asked.table, folds)
    found = np.empty((len(theirs), len(Q) + POINTS), np.float32)
    with progress("fold", folds) as advance:
        for k in range(folds):
            one = lessons.learn(np.flatnonzero(own != k), members, 100 * k)
            found[theirs == k] = one.evaluate(asked.rows[theirs == k])
            advance(1)
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
        learned = lessons.learn(np.arange(len(lessons.table)), SHIPPED, 5000)
        wide = np.ones(4) if a.held_out is None else widening(asked, np.load(a.held_out)["outputs"])
        prior.save(a.ship, learned._replace(widening=wide))


if __name__ == "__main__":
    main()
