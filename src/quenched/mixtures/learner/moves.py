r"""Moves between maxima: one Gaussian is taken away and another one split in two, where that is likelier.

EM never moves a Gaussian across a gap: one that describes a few rows, or half of what another describes, stays. So the
mixture found is tried with Gaussian $j$ left out and Gaussian $k$ in two halves along the line in which its rows vary
most, for many pairs side by side; the likeliest goes on, and moves are tried again until none helps. Gaussians that
have closed in on a few rows are left out first: what they were for is split again.
"""

from __future__ import annotations

import numpy as np

from quenched.mixtures.learner.em import Climbed, Freedom, Gaussians, Rows, maximise, pack
from quenched.mixtures.learner.starts import is_sound, race, sound_parts

MOVES = 20
"""Pairs that are tried at a time."""
HEATS = ((12, 4), (40, 1))
"""EM steps after which the mixtures of a round are compared, and how many go on."""
SLOW_HEATS = ((12, 6), (40, 3), (80, 1))
"""The same for a common width."""
HALF = 0.8
"""Distance of each half from the centre, in standard deviations: two halves of a Gaussian cut through the middle have
their means there."""
TURNS = 6
"""Steps of the power method for the direction in which a Gaussian is split; it need not be exact."""


def halves(rows: Rows, g: Gaussians, r: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    r"""Where the halves of each Gaussian lie from its centre `[K, N]`: `HALF` $C v/\sqrt{v \cdot C v}$ with the
    covariance $C$ of its rows and about its first eigenvector $v$. Taken away from $C$, this leaves it positive."""
    share = r * rows.omega
    share = share / np.maximum(share.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    v = rng.normal(size=g.centres.shape)
    spread = np.ones(len(v))
    for _ in range(TURNS):
        v = v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), np.finfo(float).tiny)
        along = v @ rows.Z.T - np.sum(v * g.centres, axis=1, keepdims=True)
        spread = np.sum(share * along**2, axis=1)
        v = (share * along) @ rows.Z - np.sum(share * along, axis=1, keepdims=True) * g.centres
    return HALF * v / np.sqrt(np.maximum(spread, np.finfo(float).tiny))[:, None]


def propose(rows: Rows, done: Climbed, free: Freedom, rng: np.random.Generator) -> Gaussians:
    """Mixtures `[B, ...]`, each with one Gaussian left out and another one in two halves."""
    sound = sound_parts(rows, done, free)
    g = maximise(rows, done.gaussians, done.r, free)
    K, N = g.centres.shape
    pairs = [(j, k) for j in range(K) for k in range(K) if j != k and (sound.all() or not sound[j])]
    j, k = np.array(pairs)[np.sort(rng.permutation(len(pairs))[:MOVES])].T
    half, features = halves(rows, g, done.r, rng), g.widths.shape[1]
    inner = pack(half[:, :, None] * half[:, None, :]) if features > N else half**2
    inner = np.mean(inner, axis=1, keepdims=True) if features == 1 else inner
    narrow = (
        g.widths if free.common else np.maximum(g.widths - inner, free.least) if features <= N else g.widths - inner
    )
    b = np.arange(len(j))
    centres, widths, weights = (np.repeat(leaf[None], len(b), axis=0) for leaf in g)
    centres[b, j], centres[b, k] = g.centres[k] - half[k], g.centres[k] + half[k]
    widths[b, j] = widths[b, k] = narrow[k]
    if free.weights:
        weights[b, j] = weights[b, k] = g.weights[k] / 2
        weights /= weights.sum(axis=1, keepdims=True)
    return Gaussians(centres, widths, weights)


def rearrange(
    rows: Rows, done: Climbed, free: Freedom, rng: np.random.Generator, *, moves: int, accuracy: float, passes: int
) -> Climbed:
    """The mixture after the moves that make it likelier, or sound; with its EM steps, those before included."""
    made, heats = int(done.passes), SLOW_HEATS if free.common else HEATS
    for _ in range(moves):
        if made >= passes:
            break
        begin = propose(rows, done, free, rng)
        new = race(rows, begin, free, accuracy=accuracy, passes=passes - made, heats=heats)
        made += int(new.passes)
        gain = float(new.log_likelihood - done.log_likelihood)
        better = int(is_sound(rows, new, free)) - int(is_sound(rows, done, free))
        if better < 0 or (better == 0 and not gain > accuracy):
            break
        done = new
    return done._replace(passes=made)
