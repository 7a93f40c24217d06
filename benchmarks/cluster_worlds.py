"""Tables whose number of clusters is known, drawn from seeds: one cluster of many shapes, or several."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats


def one_cluster(case: int, seed: int) -> np.ndarray:
    """A table without clusters: correlated, skewed, heavy-tailed or curved columns."""
    rng = np.random.default_rng([seed, case])
    N, n = (2, 5, 10)[case % 3], (150, 400, 1000)[case // 3 % 3]
    A = rng.normal(size=(N, N))
    C = A @ A.T + 0.3 * np.eye(N)
    d = np.sqrt(np.diag(C))
    plain = rng.normal(size=(n, N))
    joint = plain @ np.linalg.cholesky(C / np.outer(d, d)).T
    kinds: list[Callable[[], np.ndarray]] = [
        lambda: plain,
        lambda: joint,
        lambda: np.exp(0.5 * joint),
        lambda: np.exp(joint),
        lambda: stats.expon.ppf(stats.norm.cdf(joint)),
        lambda: joint / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3),
        lambda: rng.uniform(size=(n, N)),
        lambda: stats.gamma(2).ppf(stats.norm.cdf(plain)),
        lambda: np.where(np.arange(N) % 2, np.exp(0.8 * joint), joint),
        lambda: np.column_stack([joint[:, 0], joint[:, 1] + 0.4 * joint[:, 0] ** 2, *joint[:, 2:].T]),
    ]
    return kinds[case % len(kinds)]()


def discrete(case: int, seed: int) -> np.ndarray:
    """A table without clusters whose columns are counts or rounded."""
    rng = np.random.default_rng([seed, 2, case])
    joint = rng.normal(size=((150, 400, 1000)[case % 3], 4)) @ rng.normal(size=(4, 4))
    joint /= joint.std(axis=0)
    return stats.poisson(3).ppf(stats.norm.cdf(joint)) if case % 2 else np.round(1.5 * joint)


def like_table(X: np.ndarray, seed: int) -> np.ndarray:
    """One Gaussian with the covariance of a table, and at most 1,000 rows."""
    rng = np.random.default_rng([seed, 3, *X.shape])
    return rng.multivariate_normal(np.zeros(X.shape[1]), np.atleast_2d(np.cov(X.T)), size=min(len(X), 1000))


FAR, NEAR = (4.5, 6.0), (2.0, 4.0)
"""Standard deviations between the closest clusters."""


def known_number(case: int, seed: int, apart: tuple[float, float] = FAR) -> tuple[np.ndarray, int]:
    """A table of two to five clusters, the closest at a distance between these standard deviations, and their number."""
    rng = np.random.default_rng([seed, 1, case])
    N, n, kind = (2, 5, 10)[case % 3], (200, 500, 1000)[case // 3 % 3], case % 5
    K = 2 + case % 4 if N > 2 else 2 + case % 3
    w = np.array([0.1] + [0.9 / (K - 1)] * (K - 1)) if kind == 3 else np.full(K, 1 / K)
    c, least = np.zeros((K, N)), 0.0
    while not apart[0] < least < apart[1]:
        c = 3.0 * apart[1] / FAR[1] * rng.normal(size=(K, N))
        least = np.min(np.sqrt(((c[:, None] - c) ** 2).sum(axis=-1)) + 1e9 * np.eye(K))
    z, noise = rng.choice(K, size=n, p=w), rng.normal(size=(n, N))
    if kind == 1:
        noise = noise * rng.uniform(0.5, 1.0, size=(K, N))[z]
    elif kind == 2:
        s = stats.lognorm(0.5)
        noise = (np.exp(0.5 * noise) - s.mean()) / s.std()
    elif kind == 4:
        noise = noise / np.sqrt(rng.chisquare(5, size=(n, 1)) / 3)
    X = c[z] + noise
    return (X @ (0.5 * rng.normal(size=(N, N)) + np.eye(N)) if case % 2 else X), K


def close_pair(seed: int, K: int, N: int, separation: float, shares: np.ndarray, n: int) -> np.ndarray:
    """Gaussian clusters with a common covariance: two at a given distance, the others far away."""
    rng = np.random.default_rng([seed, K, N, n])
    c = np.zeros((K, N))
    v = rng.normal(size=N)
    c[1] = separation * v / np.linalg.norm(v)
    for k in range(2, K):
        while True:
            c[k] = 8.0 * rng.normal(size=N)
            if np.min(np.linalg.norm(c[k] - c[:k], axis=1)) > 9:
                break
    X = c[rng.choice(K, size=n, p=shares)] + rng.normal(size=(n, N))
    return X @ (0.5 * rng.normal(size=(N, N)) + np.eye(N))


KINDS_OF_NOISE = ("isotropic", "correlated", "skewed", "very skewed", "exponential", "heavy tails", "uniform", "gamma",
                  "mixed columns", "curved")  # fmt: skip
"""Of `one_cluster`, in their order."""
