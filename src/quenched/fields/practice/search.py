"""The best of ordered values, such as strengths, by steps uphill, and what is near it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

PATIENCE = 2
"""Steps downhill after which a side is left: evidence may be rough."""

BESIDE = ((1, 0), (-1, 0), (0, 1), (0, -1))
"""Steps to neighbours on a lattice."""


def climb(values: np.ndarray, start: float, height: Callable[[float], float]) -> float:
    """The best of ascending positive values, going to both sides of a start while it rises.

    Args:
        values: what can be chosen.
        start: where it begins.
        height: what shall be largest.
    """
    i = int(np.argmin(np.abs(np.log(values / start))))
    best, most = i, height(float(values[i]))
    for side in (-1, 1):
        j, lower = i + side, 0
        while 0 <= j < len(values) and lower < PATIENCE:
            found = height(float(values[j]))
            best, most, lower = (j, found, 0) if found > most else (best, most, lower + 1)
            j += side
    return float(values[best])


def spread(
    first: np.ndarray,
    second: np.ndarray,
    start: tuple[float, float],
    height: Callable[[float, float], float],
    lost: float,
) -> dict[tuple[float, float], float]:
    """Heights on a lattice of two values, from the best to the sides until so much is lost, and one step more.

    Args:
        first: values that can be chosen.
        second: of the other.
        start: the best pair, of these.
        height: of a pair.
        lost: below the greatest height, up to which neighbours are asked for.
    """
    edge = [(int(np.argmin(np.abs(first - start[0]))), int(np.argmin(np.abs(second - start[1]))))]
    found: dict[tuple[int, int], float] = {}
    while edge:
        found |= {(i, j): height(float(first[i]), float(second[j])) for i, j in edge}
        most = max(found.values())
        beside = {(i + a, j + b) for (i, j), h in found.items() if h > most - lost for a, b in BESIDE}
        edge = sorted((i, j) for i, j in beside - set(found) if 0 <= i < len(first) and 0 <= j < len(second))
    return {(float(first[i]), float(second[j])): h for (i, j), h in found.items()}
