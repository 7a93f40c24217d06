"""Random subsets of the rows, without repeats, judged by the other rows: what a forecast measures within the data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from quenched.processes.learner.evidence import most_likely
from quenched.processes.learner.prior import Prior, prior_of
from quenched.processes.model import Empirical, GaussianProcess

SHARP = 1e-6
"""A step of tuning that changes the evidence by less than this share is the last."""
LARGEST_TUNED = 1000
"""Rows on which hyperparameters are tuned, at most."""
PARTS = 4
"""Disjoint subsets of one order of the rows, at most; their mean is one independent number."""
FEWEST_ORDERS, MOST_ORDERS = 8, 512
"""Random orders of the rows on which the error of subsets rests."""
PATIENCE = 3e10
"""Operations, about, after which there are enough orders, however noisy their mean: some seconds."""


class Measured(NamedTuple):
    """The error of processes trained on random subsets of the rows, at one size or at many."""

    error: Any
    stderr: Any  # with Student's factor, so that it can be read as a normal one
    draws: Any


def measure_subsets(known: Prior, left_out: np.ndarray, m: int, accuracy: float, draw: np.random.Generator) -> Measured:
    r"""The error of `m` random rows, judged by the rows outside them, up to a relative accuracy.

    What is averaged is by how much the squared residual of a row exceeds its leave-one-out residual, squared: the rows
    to judge by then matter little, and $m = N - 1$ is exact.
    """
    N, base, seen = len(left_out), left_out**2, []
    parts, rank = min(PARTS, N // m), min(m, N if known.F is None else known.F.shape[1])
    most = int(np.clip(PATIENCE / (parts * rank * (m * rank + N)), FEWEST_ORDERS, MOST_ORDERS))
    error, stderr = np.nan, np.inf
    while len(seen) < most and not (len(seen) >= FEWEST_ORDERS and stderr <= accuracy * error):
        order, more = draw.permutation(N), []
        for k in range(parts):
            test = np.delete(order, slice(k * m, (k + 1) * m))
            more.append(np.mean(known.residuals(order[k * m : (k + 1) * m], test) ** 2 - base[test]))
        seen.append(np.mean(more))
        if len(seen) >= FEWEST_ORDERS:
            error, stderr = float(np.mean(base) + np.mean(seen)), _stderr(seen)
    return Measured(max(error, float(np.min(base[base > 0], initial=1e-300))), stderr, parts * len(seen))


def _stderr(values: Any) -> float:
    """The standard error of a mean, with Student's factor at the ends of an 80% interval."""
    from scipy import stats

    n = len(values)
    return float(np.std(values, ddof=1) / np.sqrt(n) * stats.t.ppf(0.9, n - 1) / stats.norm.ppf(0.9))


def measure_anew(
    law: Empirical, start: GaussianProcess, tune: bool, m: int, count: int, draw: np.random.Generator
) -> tuple[float, float]:
    """The error of processes tuned and trained on `m` random rows, judged by the others, and its standard error."""
    errors = []
    for _ in range(count):
        order, rule = draw.permutation(law.rows), start
        if tune:
            weights = np.isin(np.arange(law.rows), order[: min(m, LARGEST_TUNED)]).astype(float)
            rule = most_likely(law, start, weights=weights, tolerance=SHARP)
        errors.append(float(np.mean(prior_of(law, rule).residuals(order[:m], order[m:]) ** 2)))
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / np.sqrt(count)) if count > 1 else np.inf
