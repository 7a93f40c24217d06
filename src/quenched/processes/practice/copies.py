r"""Rows that are copies of others, so that each is counted once.

A row whose copy is among the rows it is predicted from is not unseen: leave-one-out then finds an error that no new row
will have, and the evidence takes for noiseless what was only written twice. Rows with equal inputs are not copies by
themselves. Where all columns are words or grades, independent rows agree in them by chance, and to leave out only those
that agree in the target, too, would choose them by the target. So:

* where the target has practically no ties, rows that agree in all inputs and in the target are copies;
* where it has few values, rows that agree in all inputs are copies if nearly all of them agree in the target, far more
  than rows with other inputs do; otherwise they are repeated measurements, and stay.
"""

from __future__ import annotations

import numpy as np

TIES = 0.01
"""Share of pairs of rows with equal targets up to which a target has practically no ties."""
CERTAIN = 0.9
"""Rows with equal inputs are copies where they agree in the target so much of the way from chance to certainty."""


def groups(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The first row of which each row is a copy, `[N]`, and its own place where it is not a copy.

    Args:
        X: inputs `[N, d]`.
        y: targets `[N]`.
    """
    both = _first(np.column_stack([X, y]))
    if np.all(both == np.arange(len(y))) or _pairs(y) <= TIES:
        return both
    alike = _first(X)
    of_alike, of_both = (_count(first) for first in (alike, both))
    chance = _pairs(y)
    return alike if of_both >= (chance + CERTAIN * (1 - chance)) * of_alike else np.arange(len(y))


def _first(rows: np.ndarray) -> np.ndarray:
    """For each row the place of the first that is equal to it."""
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


def _count(first: np.ndarray) -> float:
    """How many pairs of rows are equal."""
    sizes = np.bincount(first).astype(float)
    return float(np.sum(sizes * (sizes - 1) / 2))


def _pairs(y: np.ndarray) -> float:
    """Share of all pairs of rows with equal targets."""
    return _count(_first(y[:, None])) / (len(y) * (len(y) - 1) / 2)
