r"""Is there a valley between two groups of rows? A test that assumes no shape of a cluster but that it has one peak.

Along the line that parts two groups best the rows have a density. If both are one cluster it has one peak, and then
it is nowhere lower than on both sides: of three intervals of the same length, the middle one holds at least as many
rows, on average, as the emptier of the others. So with $m$ rows in the middle and $l$, $r$ beside it,

$$p = \max_{s \in \{l, r\}} P\left(B \le m\right), \qquad B \sim \mathrm{Binomial}(m + s, \tfrac12).$$

Line and intervals are chosen from a mixture of other rows than those that are counted: this is why skewed, correlated
or heavy-tailed columns are no clusters here, and why the number of columns does not matter. It is conservative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

GRID = 240
"""Points of the line between which intervals are sought."""
LENGTHS = np.unique(np.geomspace(4, 70, 16).astype(int))
"""Of intervals, in steps of the grid."""
REACH = 3.0
"""How far beyond the outermost Gaussians the grid reaches, in their standard deviations."""


class Valley(NamedTuple):
    """A line and three intervals of the same length on it."""

    line: np.ndarray  # [N]
    edges: np.ndarray  # [3, 2] of the left, the middle and the right interval
    lesser: bool  # whether the right one should hold fewer rows than the left one


def moments(w: np.ndarray, centres: np.ndarray, covariances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of Gaussians together."""
    share = w / max(w.sum(), np.finfo(float).tiny)
    mean = share @ centres
    off = centres - mean
    return mean, np.einsum("k,kij->ij", share, covariances) + np.einsum("k,ki,kj->ij", share, off, off)


def find_line(
    w: np.ndarray, centres: np.ndarray, covariances: np.ndarray, right: np.ndarray, rows: float
) -> np.ndarray:
    """Fisher's discriminant of two groups of Gaussians, with a covariance shrunk towards its diagonal for few rows."""
    (one, left), (two, other) = (moments(w[k], centres[k], covariances[k]) for k in (~right, right))
    share = w[right].sum() / max(w.sum(), np.finfo(float).tiny)
    within = (1 - share) * left + share * other
    shrunk = min(1.0, len(one) / max(rows, 1.0))
    matrix = (1 - shrunk) * within + shrunk * np.diag(np.diag(within))
    line = np.linalg.lstsq(matrix, two - one, rcond=1e-10)[0]
    return line / max(float(np.linalg.norm(line)), np.finfo(float).tiny)


def find_valley(
    w: np.ndarray, centres: np.ndarray, covariances: np.ndarray, right: np.ndarray, rows: float
) -> Valley | None:
    """The line between two groups of Gaussians, of so many rows, and the three intervals that should differ most; None
    where the density along the line has one peak."""
    line = find_line(w, centres, covariances, right, rows)
    mean, deviation = centres @ line, np.sqrt(np.maximum(np.einsum("i,kij,j->k", line, covariances, line), 0.0))
    low, high = np.min(mean - REACH * deviation), np.max(mean + REACH * deviation)
    if not high > low:
        return None
    grid = np.linspace(low, high, GRID)
    below = special.ndtr((grid[:, None] - mean) / np.maximum(deviation, np.finfo(float).tiny)) @ (w / w.sum())
    best, found = 0.0, None
    for length in LENGTHS:
        inside = below[length:] - below[:-length]
        left = np.maximum.accumulate(inside)
        beyond = np.maximum.accumulate(inside[::-1])[::-1]
        middle = np.arange(length, len(inside) - length)
        lesser = np.minimum(left[middle - length], beyond[middle + length])
        deep = (lesser - inside[middle]) / np.sqrt(np.maximum(lesser + inside[middle], np.finfo(float).tiny))
        if len(middle) and deep.max() > best + 1e-9:
            best, m = deep.max(), int(middle[np.argmax(deep)])
            places = np.array([np.argmax(inside[: m - length + 1]), m, m + length + np.argmax(inside[m + length :])])
            fewer = bool(inside[places[2]] < inside[places[0]])
            found = Valley(line, np.stack([grid[places], grid[places + length]], axis=1), fewer)
    return found


def count(valley: Valley, Z: np.ndarray) -> np.ndarray:
    """Rows in the left, the middle and the right interval `[3]`."""
    t = np.sort(Z @ valley.line)
    return np.diff(np.searchsorted(t, valley.edges), axis=1)[:, 0]


def judge(counts: np.ndarray, lesser: np.ndarray) -> float:
    """The p-value of rows in the left, the middle and the right interval `[folds, 3]`, all folds together.

    Where the two groups are concentric, lines of different folds may point to opposite sides, and so may the peak of a
    single cluster: its side would be full in some folds and the other one in others. So the sides are added up twice,
    as left and right, and as the lesser and the greater; the larger p-value counts.
    """
    left, middle, right = np.asarray(counts).T
    sums = [left, right, np.where(lesser, right, left), np.where(lesser, left, right)]
    m = int(middle.sum())
    return float(max(special.bdtr(m, m + int(side.sum()), 0.5) for side in sums))
