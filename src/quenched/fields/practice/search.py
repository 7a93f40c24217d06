"""The best of ordered values, such as strengths, by steps uphill."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

PATIENCE = 2
"""Steps downhill after which a side is left: evidence may be rough."""


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
