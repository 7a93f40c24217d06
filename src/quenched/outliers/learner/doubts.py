"""Signs that selection is misled: tight balls of one label, and outliers that lie together.

Outliers that agree with each other look like a class; no likelihood tells which of the two they are. And rows that a
model cannot explain are the model's fault rather than the rows' where they lie next to each other.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata
from sklearn.neighbors import NearestNeighbors

NEIGHBOURS = 10
"""Of a row, by whose part in the outliers its own is predicted."""
SMALLEST = 0.05
"""The share of the rows in a ball worth a warning."""
TIGHT, EMPTY = 3.0, 0.1
"""A ball ends where, up to this many times its radius, fewer than this share of its rows follow."""
NARROW = 0.35
"""Its radius in units of the distance at which rows elsewhere have as many neighbours."""
PURE = 0.95
"""The share of one label in a ball of outliers, at least."""


def find_clump(X: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    """The rows of a tight ball apart from all others, nearly all of one class; none are marked if there is none.

    Args:
        X: rows `[n, d]` in comparable units.
        codes: their classes; without them any ball counts.
    """
    n = len(X)
    none, least = np.zeros(n, bool), max(10, round(SMALLEST * n))
    if n < 3 * least:
        return none
    near = NearestNeighbors(n_neighbors=least).fit(X).kneighbors(X)[0][:, -1]
    centre = int(np.argmin(near))
    distance = np.linalg.norm(X - X[centre], axis=1)
    radius = max(float(near[centre]), 1e-9 * float(np.median(distance)))
    ball = distance <= radius
    for _ in range(20):  # grows while there are rows just outside
        wider = distance <= 1.5 * radius
        if wider.sum() <= (1 + EMPTY) * ball.sum():
            break
        radius, ball = 1.5 * radius, wider
    around = (distance <= TIGHT * radius) & ~ball
    apart = around.sum() <= EMPTY * ball.sum()
    narrow = radius <= NARROW * float(np.median(near[~ball])) if np.any(~ball) else False
    if not (apart and narrow and least <= ball.sum() <= 0.5 * n):
        return none
    if codes is not None:
        counts = np.bincount(codes[ball])
        if counts.max() < PURE * ball.sum():
            return none
    return distance <= 1.5 * radius


def measure_crowding(X: np.ndarray, outlier: np.ndarray) -> float:
    """How well the neighbours of a row tell whether it is an outlier: the area under the curve, 0.5 if not at all."""
    marked, n = outlier > 0.5, len(X)
    if not 3 < marked.sum() < n - 3:
        return 0.5
    count = min(NEIGHBOURS, n // 10) + 1
    near = NearestNeighbors(n_neighbors=count).fit(X).kneighbors(X)[1][:, 1:]
    ranks = rankdata(marked[near].mean(axis=1))
    m = int(marked.sum())
    return float((ranks[marked].sum() - m * (m + 1) / 2) / (m * (n - m)))
