r"""The race: many mixtures begin, side by side, and only the promising ones are climbed to the end.

Beside the annealed mixture stand random ones, whose centres are rows far from each other (the seeds of k-means++), in
the features as they are and in features without correlations, by turns. After a few steps of EM only the likeliest go
on. A Gaussian that has closed in on few rows can be as likely as one likes; a mixture with such a one wins only where
all have one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quenched.mixtures.learner.em import Climbed, Freedom, Gaussians, Rows, climb, maximise, pack, take

HEATS = ((10, 12), (30, 4))
"""EM steps after which the mixtures are compared, and how many go on."""
SLOW_HEATS = ((5, 24), (20, 8), (50, 3), (100, 1))
"""The same for a common width: Gaussians then part slowly, and the likeliest of the first steps is often overtaken."""
FEWEST = 2.5
"""A Gaussian of fewer rows than this describes one or two of them, and no cluster."""
LLOYD = 6
"""Steps of k-means for random cells are drawn below this: none make cells large and small, many make them equal."""
PRIOR = 0.1
"""Of an average cell's rows: so many are added to each, with the covariance that all cells have together."""
DIFFERENT = 1e-10
"""Directions in which rows vary by less than this share of the largest variance are left out of the distances."""


def is_sound(rows: Rows, done: Climbed, free: Freedom) -> np.ndarray:
    """Whether no Gaussian has closed in on a few rows: one or two, or as many as a covariance matrix needs not to be
    singular."""
    return np.all(sound_parts(rows, done, free), axis=-1)


def sound_parts(rows: Rows, done: Climbed, free: Freedom) -> np.ndarray:
    """The same of each Gaussian `[..., K]`."""
    return rows.total * (done.r @ rows.omega) > fewest_rows(rows, free)


def fewest_rows(rows: Rows, free: Freedom) -> float:
    """A sound Gaussian has more rows than this."""
    if free.fewest is not None:
        return free.fewest
    N, features = rows.Z.shape[1], rows.squares.shape[1]
    return max(FEWEST, N + 1.5 if features > N and not free.common else 0.0)


def widen(g: Gaussians, features: int) -> Gaussians:
    """Gaussians with one width each as ones with variances of all features, or with covariance matrices."""
    N = g.centres.shape[-1]
    shape = pack(np.eye(N)) if features > N else np.ones(features)
    return g._replace(widths=g.widths[..., :1] * shape)


def _cells(Y: np.ndarray, omega: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    """In which of K cells each row lies `[n]`: around rows far from each other (k-means++), then around their means."""
    n, lengths, chance = len(Y), np.einsum("nk,nk->n", Y, Y), omega
    nearest, cell = np.full(n, np.inf), np.zeros(n, int)
    for k in range(K):
        seed = Y[min(np.searchsorted(np.cumsum(chance), rng.uniform()), n - 1)]
        distance = np.maximum(lengths - 2 * Y @ seed + seed @ seed, 0.0)
        cell[distance < nearest] = k
        nearest = np.minimum(nearest, distance)
        left = omega * nearest
        chance = left / left.sum() if left.sum() > 0 else omega
    for _ in range(int(rng.integers(LLOYD))):
        own = np.zeros((K, n))
        own[cell, np.arange(n)] = omega
        centres = (own @ Y) / np.maximum(own.sum(axis=1), np.finfo(float).tiny)[:, None]
        cell = np.argmin(np.einsum("kn,kn->k", centres, centres) - 2 * Y @ centres.T, axis=1)
    return cell


def draw(rows: Rows, K: int, count: int, least: float, rng: np.random.Generator) -> Gaussians:
    """Random mixtures: the Gaussians of random cells, with some of the covariance that all have together."""
    (n, N), features = rows.Z.shape, rows.squares.shape[1]
    values, vectors = np.linalg.eigh((rows.Z.T * rows.omega) @ rows.Z)
    varies = values > DIFFERENT * values[-1]
    turned = rows.Z @ (vectors[:, varies] / np.sqrt(values[varies]))
    r = np.zeros((count, K, n))
    for b in range(count):
        r[b, _cells(turned if b % 2 else rows.Z, rows.omega, K, rng), np.arange(n)] = 1.0
    blank = Gaussians(np.zeros((count, K, N)), np.ones((count, K, 1)), np.full((count, K), 1 / K))
    own = maximise(rows, widen(blank, features), r, Freedom(widths=True, least=least))
    mass = own.weights[..., None]
    together = np.sum(mass * own.widths, axis=-2, keepdims=True)
    few = PRIOR / K
    return own._replace(widths=(mass * own.widths + few * together) / (mass + few))


def race(rows: Rows, begin: Gaussians, free: Freedom, *, accuracy: float, passes: int, heats: Any = None) -> Climbed:
    """The likeliest of several mixtures `[B, ...]`, climbed to its maximum, with its number of EM steps."""
    made, left = 0, begin
    heats = heats or (SLOW_HEATS if free.common else HEATS)
    for steps, keep in heats:
        if len(left.weights) <= keep or made >= passes:
            continue
        done = climb(rows, left, free, accuracy=accuracy, passes=min(steps, passes - made), stretch=False)
        level = np.where(np.isfinite(done.log_likelihood), done.log_likelihood, -np.inf)
        best = np.lexsort((-level, ~is_sound(rows, done, free)))[:keep]
        made, left = made + int(done.passes[best].max()), take(best, done.gaussians)
    done = climb(rows, take(0, left), free, accuracy=accuracy, passes=max(1, passes - made), stretch=False)
    return done._replace(passes=made + int(done.passes))
