r"""Where the data pile up at an end: bounds that should be given.

Without bounds a density may go on beyond the first and the last row. Where values cannot (a share, a waiting time), it
is wrong there, and where it is highest there it is wrong everywhere. Near an edge the density does not vanish: of the
rows next to it as many lie in the nearer half of their range as in the other, while at the end of a tail most lie in
the farther one. If they look so, the bound that is the roundest number just outside is tried, and proposed if the
evidence is larger with it.
"""

from __future__ import annotations

import numpy as np

from quenched.fields.practice.density import Bounds, estimate, grid_for

ROWS = 50
"""Fewer do not tell an edge from a tail."""
SHARE, FEWEST = 0.1, 20
"""Of the rows that are looked at next to an end; and how many at least."""
SURE = 2.0
"""Standard deviations by which their mean place may lie beyond the middle of their range."""
REACH = 4.0
"""How many times the distance between neighbours a bound may lie outside of the rows."""
GAIN = 10.0
"""What the logarithm of the evidence must gain by a bound."""


def suggested(
    x: np.ndarray, weights: np.ndarray, bounds: Bounds, points: int | None, evidence: float | None = None
) -> Bounds:
    """Bounds of a column at which rows pile up; None where they do not, or where a bound is given.

    Args:
        x: the column.
        weights: of its rows, all positive.
        bounds: those given.
        points: of the grid, None for as many as the data can tell apart.
        evidence: logarithm of that of smooth fields without another bound, if it is known.

    Returns:
        Lower and upper bound.
    """
    if weights.sum() < ROWS or not x.min() < x.max():
        return None, None
    tried: list[float | None] = [None, None]
    for side, sign in enumerate((1, -1)):
        end = _edge(*_nearest(sign * x, weights)) if bounds[side] is None else None
        tried[side] = None if end is None else sign * end
    if tried == [None, None]:
        return None, None
    before = _evidence(x, weights, bounds, points) if evidence is None else evidence
    for side in (0, 1):
        if tried[side] is None:
            continue
        other = 1 - side
        pair = [bounds[0], bounds[1]]
        pair[side] = tried[side]
        pair[other] = bounds[other] if tried[other] is None else tried[other]
        without = [bounds[side] if i == side else end for i, end in enumerate(pair)]
        least = before if without == list(bounds) else _evidence(x, weights, (without[0], without[1]), points)
        if _evidence(x, weights, (pair[0], pair[1]), points) < least + GAIN:
            tried[side] = None
    return tried[0], tried[1]


def _evidence(x: np.ndarray, weights: np.ndarray, bounds: Bounds, points: int | None) -> float:
    rows = x[:, None]
    grid = grid_for(rows, weights, bounds=[bounds], points=[points], extend=False)
    return estimate(grid, grid.counts(rows, weights), smooth=True).mixture.log_evidence


def _nearest(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Sorted rows at the lower end up to the first beyond them, their weights, and how many are looked at."""
    count = max(SHARE * weights.sum(), FEWEST)
    if np.ptp(weights) > 0:
        order = np.argsort(x)
        last = int(np.searchsorted(np.cumsum(weights[order]), count))
        return x[order[: last + 1]], weights[order[: last + 1]], count if last < len(x) else np.inf
    last = int(np.ceil(count / weights[0])) - 1
    if last >= len(x):
        return x, weights, np.inf
    return np.sort(np.partition(x, last)[: last + 1]), weights[: last + 1], count


def _edge(x: np.ndarray, weights: np.ndarray, count: float) -> float | None:
    """A lower bound that rising rows suggest by themselves."""
    if not np.isfinite(count) or not x[0] < x[-1]:
        return None
    place = (x[1:-1] - x[0]) / (x[-1] - x[0])
    if len(place) == 0 or np.average(place, weights=weights[1:-1]) > 0.5 + SURE / np.sqrt(12 * count):
        return None
    return _roundest(float(x[0] - REACH * (x[-1] - x[0]) / count), float(x[0]))


def _roundest(low: float, high: float) -> float:
    """The number with the fewest digits in an interval."""
    if low <= 0 <= high:
        return 0.0
    scale = 10.0 ** np.ceil(np.log10(max(abs(low), abs(high))))
    while True:
        for part in (1.0, 0.5):
            found = np.floor(high / scale / part) * scale * part
            if found >= low:
                return float(f"{found:.12g}")
        scale /= 10
