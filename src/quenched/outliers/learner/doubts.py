"""Signs that selection is misled: tight balls of one label, and outliers that lie together.

Outliers that agree with each other look like a class; no likelihood tells which of the two they are. And rows that a
model cannot explain are the model's fault rather than the rows' where they lie next to each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quenched.outliers.learner.around import Verdict

NEIGHBOURS = 10
"""Of a row, whose labels speak for it, and by whose part in the outliers its own is predicted."""
SMALLEST = 0.05
"""The share of the rows in a ball worth a warning."""
TIGHT, EMPTY = 3.0, 0.1
"""A ball ends where, up to this many times its radius, fewer than this share of its rows follow."""
NARROW = 0.35
"""Its radius in units of the distance at which rows elsewhere have as many neighbours."""
FEWEST_DOUBTFUL = 5
"""Rows whose correlation says something."""
PURE = 0.95
"""The share of one label in a ball of outliers, at least."""
FOLLOWING = 0.3
"""The correlation of doubtful targets with what the inputs say at which the model is at fault, not the rows."""
CROWDED, SMOOTH = 0.8, 0.5
"""... or the area under the curve by which neighbours tell doubtful rows, together with the rank correlation of their
targets with those of doubtful rows next to them."""
ELSEWHERE, CERTAIN, FAR = 0.68, 2.0, 0.9
"""... or that area alone, as far as it is certain by so many standard errors, where the area by which the distance from
the middle of the table tells them is less: leverage points are told by their distance."""
DRAWN = 2000
"""Rows among which a ball is sought in a larger table."""
MOST = 0.55
"""No selection in which more than this share of the rows would be outliers: the others are a subset then."""


def find_clump(X: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
    """The rows of a tight ball apart from all others, nearly all of one class; none are marked if there is none.

    Args:
        X: rows `[n, d]` in comparable units.
        codes: their classes; without them any ball counts.
    """
    if len(X) > DRAWN:
        drawn = np.random.default_rng(0).permutation(len(X))[:DRAWN]
        ball = _find_ball(X[drawn], None if codes is None else codes[drawn])
    else:
        ball = _find_ball(X, codes)
    return np.zeros(len(X), bool) if ball is None else np.linalg.norm(X - ball[0], axis=1) <= ball[1]


def _find_ball(X: np.ndarray, codes: np.ndarray | None) -> tuple[np.ndarray, float] | None:
    """The centre of the ball, and how far its rows reach."""
    n = len(X)
    least = max(10, round(SMALLEST * n))
    if n < 3 * least:
        return None
    tree = _tree(X)
    near = tree.kneighbors(X, n_neighbors=least)[0][:, -1]
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
    if not (apart and least <= ball.sum() <= 0.5 * n):
        return None
    elsewhere = tree.kneighbors(X[~ball], n_neighbors=int(ball.sum()))[0][:, -1]
    if radius > NARROW * float(np.median(elsewhere)):
        return None
    if codes is not None:
        counts = np.bincount(codes[ball])
        if counts.max() < PURE * ball.sum():
            return None
    return X[centre], 1.5 * radius


def count_neighbours(X: np.ndarray, codes: np.ndarray, omega: np.ndarray, K: int) -> np.ndarray:
    """Logarithms of the shares of the labels around each row, itself not counted `[n, K]`."""
    count = min(NEIGHBOURS, len(X) - 1)
    near = _tree(X).kneighbors(X, n_neighbors=count + 1)[1]
    own = near == np.arange(len(X))[:, None]
    own[~own.any(axis=1), -1] = True  # among more equal rows than neighbours
    others = near[~own].reshape(len(X), count)
    labels = np.eye(K)[codes] * omega[:, None]
    shares = labels[others].sum(axis=1) + omega @ labels / (omega @ omega)
    return np.log(shares / shares.sum(axis=1, keepdims=True))


def measure_area(score: np.ndarray, marked: np.ndarray) -> float:
    """How well a score tells which rows are marked: the area under the curve, 0.5 if not at all."""
    m, n = int(marked.sum()), len(marked)
    if not 3 < m < n - 3:
        return 0.5
    return float((_ranks(score)[marked].sum() - m * (m + 1) / 2) / (m * (n - m)))


def measure_crowding(X: np.ndarray, outlier: np.ndarray) -> float:
    """How well the neighbours of a row tell whether it is an outlier: the area under the curve."""
    marked = outlier > 0.5
    count = min(NEIGHBOURS, max(1, len(X) // 10)) + 1
    near = _tree(X).kneighbors(X, n_neighbors=count)[1][:, 1:]
    return measure_area(marked[near].mean(axis=1), marked)


def measure_following(targets: np.ndarray, predicted: np.ndarray, outlier: np.ndarray, middle: float) -> float:
    """Whether the targets of doubtful rows follow the inputs all the same: their correlation with what is predicted.

    About the middle of all targets rather than of these: the targets of outliers have nothing to do with their inputs,
    so that a prediction above the middle says nothing of the target. Where a model is at fault both lie on one side.
    """
    marked = outlier > 0.5
    if marked.sum() < FEWEST_DOUBTFUL:
        return 0.0
    y, f = targets[marked] - middle, predicted[marked] - middle
    return float(y @ f / np.sqrt(max((y @ y) * (f @ f), 1e-300)))


def measure_smoothness(X: np.ndarray, targets: np.ndarray, outlier: np.ndarray) -> float:
    """How well the targets of doubtful rows are told by those of the doubtful rows next to them: a rank correlation."""
    marked = outlier > 0.5
    if marked.sum() < 2 * FEWEST_DOUBTFUL:
        return 0.0
    near = _tree(X[marked]).kneighbors(X[marked], n_neighbors=FEWEST_DOUBTFUL + 1)[1][:, 1:]
    around = targets[marked][near].mean(axis=1)
    if np.ptp(around) == 0 or np.ptp(targets[marked]) == 0:
        return 0.0
    return float(np.corrcoef(_ranks(around), _ranks(targets[marked]))[0, 1])


def measure_distance(X: np.ndarray) -> np.ndarray | None:
    """How far from the middle of the table rows lie, on a logarithmic scale of mean 0 and variance 1 `[n]`."""
    far = np.log(np.linalg.norm(X - np.median(X, axis=0), axis=1) + 0.1 * np.sqrt(X.shape[1]))
    spread = float(far.std())
    return (far - far.mean()) / spread if spread > 1e-9 else None


def find_fault(
    verdict: Verdict, predicted: np.ndarray, far: np.ndarray | None, X: np.ndarray, targets: np.ndarray
) -> str:
    """Why a selection of values is not sound; empty if it is.

    Args:
        verdict: on each row.
        predicted: targets, out of fold `[n]`.
        far: how far out the inputs are `[n]`, or None.
        X: rows in comparable units `[n, d]`.
        targets: as given `[n]`.
    """
    outlier = verdict.outlier
    if verdict.share > MOST:
        return "most rows would be outliers"
    if measure_following(targets, predicted, outlier, float(np.median(targets))) > FOLLOWING:
        return (
            "the targets of the rows that do not fit follow the inputs all the same, so that the model may be at fault"
        )
    crowding, marked = measure_crowding(X, outlier), outlier > 0.5
    if crowding > CROWDED and measure_smoothness(X, targets, outlier) > SMOOTH:
        return "the rows that do not fit lie next to each other with targets alike, so that the model may be at fault"
    m, n = int(marked.sum()), len(marked)
    limit = max(ELSEWHERE, 0.5 + CERTAIN * np.sqrt((n + 1) / (12 * max(m * (n - m), 1))))
    if crowding > limit and (far is None or measure_area(far, marked) < FAR):
        return "the rows that do not fit lie next to each other, so that the model may be at fault"
    return ""


def _tree(X: np.ndarray) -> Any:
    """What finds the neighbours of rows."""
    from sklearn.neighbors import NearestNeighbors  # imported where it is used: a second of every start

    return NearestNeighbors().fit(X)


def _ranks(values: np.ndarray) -> np.ndarray:
    """The rank of each, the mean of theirs where several are equal."""
    from scipy.stats import rankdata

    return rankdata(values)
