r"""Would a single Gaussian be split like this? How much likelier two Gaussians are than one, beside draws of one.

A covariance that is not known takes every direction in which the rows vary into itself: with it a split no longer
begins linearly, in the spectrum (`noise`). What is left is the gain in log-likelihood by two Gaussians of a common
covariance. That does not change under linear maps of the rows, so a single Gaussian of whatever covariance has one law
of it for given $n$ and $N$: the parametric bootstrap draws from the standard Gaussian.

A small p says that the rows are not one Gaussian. Skewed or heavy-tailed rows are not either, and yet they may be one
cluster: whether there are two is for `valleys` to say.
"""

from __future__ import annotations

import functools

import numpy as np

from quenched.mixtures.learner.fit import fit
from quenched.mixtures.model import Full

RIVALS = 4
"""Random starts of two Gaussians."""
FEWEST = 2.5
"""Rows for each column, at least: with fewer two Gaussians are always found."""


def gain(Z: np.ndarray) -> float:
    """How much likelier the rows are under two Gaussians of a common covariance than under one."""
    one, two = (fit(Full(common=True), Z, components=K, rivals=RIVALS, moves=0).log_likelihood for K in (1, 2))
    return len(Z) * (two - one)


@functools.lru_cache(maxsize=64)
def draw_gains(rows: int, columns: int, draws: int) -> np.ndarray:
    """The same for tables of a single Gaussian `[draws]`."""
    rng = np.random.default_rng([rows, columns])
    return np.array([gain(rng.normal(size=(rows, columns))) for _ in range(draws)])


def judge_gain(Z: np.ndarray, draws: int) -> float:
    """The p-value of two Gaussians instead of one, by so many draws; NaN for too few rows to tell."""
    varies = Z.std(axis=0) > 0
    n, N = len(Z), int(varies.sum())
    if n < FEWEST * (N + 1) or N == 0:
        return np.nan
    return float((1 + np.sum(draw_gains(n, N, draws) >= gain(Z[:, varies]))) / (draws + 1))
