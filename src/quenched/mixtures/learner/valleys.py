r"""Is there a valley between two groups of rows? A test that assumes no shape of a cluster but that it has one peak.

Along the line that parts two groups best the rows have a density. If both are one cluster it has one peak, and then
it is nowhere lower than on both sides: of three intervals of the same length, the middle one holds at least as many
rows, on average, as the emptier of the others. So with $m$ rows in the middle and $l$, $r$ beside it,

$$p = \max_{s \in \{l, r\}} P\left(B \le m\right), \qquad B \sim \mathrm{Binomial}(m + s, \tfrac12).$$

Line and intervals are chosen on other rows than those that are counted: this is why skewed, correlated or heavy-tailed
columns are no clusters here, and why the number of columns does not matter. It is conservative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

BINS = 60
"""Of the grid on which intervals are sought."""
LENGTHS = (3, 5, 8, 12, 16)
"""Of intervals, in bins."""
TAIL = 0.01
"""Of the rows, on both sides, beyond the grid."""


class Valley(NamedTuple):
    """A line and three intervals of the same length on it."""

    line: np.ndarray  # [N]
    edges: np.ndarray  # [3, 2] of the left, the middle and the right interval
    lesser: bool  # whether the right one held fewer rows than the left one when they were chosen


def find_line(Z: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Fisher's discriminant of two groups of rows, from covariances that are shrunk towards their diagonal."""
    one, two = Z[~right], Z[right]
    apart = two.mean(axis=0) - one.mean(axis=0)
    Y = np.vstack([one - one.mean(axis=0), two - two.mean(axis=0)])
    within = Y.T @ Y / len(Y)
    diagonal = np.diag(within) + np.finfo(float).tiny
    shrunk = min(1.0, Y.shape[1] / len(Y))
    matrix = (1 - shrunk) * within
    matrix[np.diag_indices(len(matrix))] += shrunk * diagonal
    line = np.linalg.lstsq(matrix, apart, rcond=1e-10)[0]
    return line / max(float(np.linalg.norm(line)), np.finfo(float).tiny)


def find_valley(Z: np.ndarray, right: np.ndarray) -> Valley | None:
    """The line between two groups and the three intervals on it that differ most; None if there are none."""
    if min(right.sum(), (~right).sum()) < 2:
        return None
    line = find_line(Z, right)
    t = Z @ line
    low, high = np.quantile(t, [TAIL, 1 - TAIL])
    if not high > low:
        return None
    grid = np.linspace(low, high, BINS + 1)
    below = np.searchsorted(np.sort(t), grid)
    best, found = -np.inf, None
    for length in LENGTHS:
        inside = below[length:] - below[:-length]
        left = np.maximum.accumulate(inside)
        beyond = np.maximum.accumulate(inside[::-1])[::-1]
        middle = np.arange(length, len(inside) - length)
        lesser = np.minimum(left[middle - length], beyond[middle + length])
        deep = (lesser - inside[middle]) / np.sqrt(np.maximum(lesser + inside[middle], 1))
        if len(middle) and deep.max() > best:
            best, m = deep.max(), int(middle[np.argmax(deep)])
            places = np.array([np.argmax(inside[: m - length + 1]), m, m + length + np.argmax(inside[m + length :])])
            lesser = bool(inside[places[2]] < inside[places[0]])
            found = Valley(line, np.stack([grid[places], grid[places + length]], axis=1), lesser)
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
    return float(max(stats.binom.cdf(m, m + int(side.sum()), 0.5) for side in sums))
