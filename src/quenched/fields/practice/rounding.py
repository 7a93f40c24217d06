r"""Values that were rounded: all rows of one value are counts over the interval that was rounded to it.

Of a value $v$ on a lattice of step $\delta$ only $v - \delta/2 < x < v + \delta/2$ is known. As points such rows are a
comb, and the more there are the surer its teeth. So they are shared out over their interval. What is known exactly is
how many lie below each end of an interval, $F$; between the ends $\Phi^{-1}(F)$ is interpolated, for a Gaussian a
straight line. Then they are shared out as the density that this gives, and so on: the iteration of expectation and
maximisation for $\prod_v \bigl(\int_{v - \delta/2}^{v + \delta/2} P\bigr)^{N_v}$. The band does not know what is lost
inside an interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri

from quenched.fields.model.grid import Axis, Grid
from quenched.fields.practice.counting import LOOK, may_be_few

TIED = 0.1
"""Share of rows that have a twin, from which on values may be rounded."""
FEWEST = 3
"""Different values, at least, that can be a lattice."""
PARTS = 10
"""The smallest distance between values is at most so many steps."""
EVEN = 1e-4
"""By what share of a step a value may miss the lattice."""
FINE = 0.25
"""Rounding to less than this share of the spacing of the grid does not matter."""
COARSE = 0.05
"""Rounding to more than this share of the deviation of the middle half is worth a word."""
PLACES = {1: (4, 32), 2: (2, 4), 3: (2, 2)}
"""By dimension: places, at least and at most, over which an interval is shared out."""
LEAST, LEAST_SHARE = 1e-3, 1e-12
"""The least density inside an interval, as a share of the largest; and the least share of rows below an end."""
ROUNDS, SAME = 8, 1e-3
"""Times that rows are shared out at most; and the change of the log-density, where rows are, below which it is done."""


def step_of(x: np.ndarray, weights: np.ndarray) -> float:
    """The step of the lattice on which all values of a column lie; zero if there is none."""
    noise = 8 * np.finfo(float).eps * float(np.max(np.abs(x)))
    values = np.unique(x)
    values = values[np.append(True, np.diff(values) > noise)]
    if len(values) < FEWEST or len(values) > (1 - TIED) * weights.sum():
        return 0.0
    gaps = np.diff(values)
    for parts in range(1, PARTS + 1):
        step = float(gaps.min()) / parts
        whole = np.rint((values - values[0]) / step)
        step = float(whole @ (values - values[0]) / (whole @ whole))  # of all values, not of one distance
        if np.max(np.abs(values - values[0] - step * whole)) < EVEN * step + noise:
            return step
    return 0.0


def is_coarse(x: np.ndarray, step: float) -> bool:
    """Whether a column was rounded so much that it should be said."""
    low, high = np.quantile(x, [0.25, 0.75])
    return step > COARSE * (high - low) / 1.35


def steps_that_matter(grid: Grid, rows: np.ndarray, weights: np.ndarray) -> list[float]:
    """The step of each column, zero where values are not rounded, or more finely than the grid can see."""
    found = []
    for axis, x in zip(grid.axes, rows.T, strict=True):
        step = step_of(x, weights) if len(x) < LOOK or may_be_few(x[:, None]) else 0.0
        found.append(step if step > FINE * np.diff(axis.coordinates).min() else 0.0)
    return found


def share_out(
    learn: Callable[[np.ndarray, np.ndarray], Any],
    log_density: Callable[[Any, np.ndarray], np.ndarray],
    axes: tuple[Axis, ...],
    rows: np.ndarray,
    weights: np.ndarray,
    steps: list[float],
    rounds: int = ROUNDS,
) -> Any:
    """What is learned from rows that are known to an interval only.

    Args:
        learn: from rows and their weights to an estimate.
        log_density: of an estimate at some rows.
        axes: of the columns, with their bounds.
        rows: `[n, d]`.
        weights: of the rows.
        steps: to which each column was rounded, zero where it was not.
        rounds: times that rows are shared out at most.

    Returns:
        The estimate.
    """
    cells, where = np.unique(rows, axis=0, return_inverse=True)
    counts = np.bincount(where.ravel(), weights)
    places, allowed = _places(axes, cells, steps)
    flat = places.reshape(-1, places.shape[-1])
    share, before = allowed * _first(cells, counts, places, steps), None
    for taken in itertools.count(1):
        share = share / share.sum(axis=1, keepdims=True)
        shared = (counts[:, None] * share).ravel()
        found = learn(flat[shared > 0], shared[shared > 0])
        if taken == rounds:
            return found
        logs = np.where(allowed > 0, log_density(found, flat).reshape(share.shape), 0.0)
        if before is not None and float(np.max(np.abs(logs - before))) < SAME:
            return found
        top = np.max(np.where(allowed > 0, logs, -np.inf), axis=1, keepdims=True)
        share, before = allowed * np.exp(np.minimum(logs - top, 0.0)), logs
    raise AssertionError  # the loop ends by itself


def _first(cells: np.ndarray, counts: np.ndarray, places: np.ndarray, steps: list[float]) -> np.ndarray:
    """The density at places inside their intervals, of one column after the other, from what is known at their ends."""
    share = np.ones(places.shape[:2])
    for i, step in enumerate(steps):
        if not step:
            continue
        at = np.rint((cells[:, i] - cells[:, i].min()) / step).astype(int)
        below = np.cumsum(np.bincount(at, counts))[:-1]
        ends = cells[:, i].min() + step * (np.arange(len(below)) + 0.5)
        slope = PchipInterpolator(ends, ndtri(np.clip(below / counts.sum(), LEAST_SHARE, 1 - LEAST_SHARE)))
        inside = np.clip(places[..., i], ends[0], ends[-1])
        drift = slope(inside, 1)
        z = slope(inside) + drift * (places[..., i] - inside)
        share *= np.exp(-(z**2) / 2) * np.maximum(drift, LEAST * drift.max())
    return share


def _places(axes: tuple[Axis, ...], cells: np.ndarray, steps: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Places in the interval of each cell `[cells, places, d]`, and which of them are inside the bounds."""
    fewest, most = PLACES[len(steps)]
    offsets = []
    for axis, step in zip(axes, steps, strict=True):
        gap = np.diff(axis.coordinates).min()
        count = int(np.clip(np.ceil(4 * step / gap), fewest, most)) if step else 1
        offsets.append(step * ((np.arange(count) + 0.5) / count - 0.5))
    around = np.stack([part.ravel() for part in np.meshgrid(*offsets, indexing="ij")], axis=1)
    places = cells[:, None] + around
    inside = np.full(places.shape[:2], True)
    for i, axis in enumerate(axes):
        for end, sign, tail in zip((axis.low, axis.high), (1, -1), axis.tails or (1.0, 1.0), strict=True):
            if tail == 0:
                inside &= sign * (places[..., i] - end) >= 0
    return places, inside.astype(float)
