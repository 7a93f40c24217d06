r"""Rows against rows whose columns were permuted: which rows do not belong to any class?

In normal scores $z$ of the columns (ranks through the Gaussian quantile) a class is Gaussian with a covariance that is
shrunk to the one of all classes, and that to its diagonal. A row with replaced features has columns that know nothing
of each other: it is as a row $z'$ whose columns were each drawn from the table by themselves. The score

$$r(z) = \ln \sum_k \omega_k \mathcal N(z; \mu_k, \Sigma_k) - \ln \prod_i \mathcal N(z_i; 0, v_i)$$

is calibrated on such rows, $P(z)/P(z') = (1 - g)\, e^{a r(z) + b} + g$, where $g$ is the share of rows without
structure. No share is assumed: it is what the densities have in common at low $r$.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, ndtri

from quenched.outliers.learner.around import Fold

COPIES = 2
"""Permuted rows for each row."""
SHARES = np.linspace(0.0, 0.6, 31)
"""Shares of rows without structure that are tried."""
LEAST_SHARE, LEAST_GAIN, LEAST_SCORE = 0.05, 4.0, 0.6
"""Below these (share, log-likelihood gained by it, median of r above that of permuted rows) the densities say nothing:
chosen on the development tables, where clean ones reach them rarely."""
SMALL_SHARE, SMALL_GAIN = 0.1, 12.0
"""A share below this must gain that much: where clean tables do look as if rows were replaced, it is so few."""
EDGE = 30.0
"""Scores are cut here, in units of their own spread."""


class Strangeness(NamedTuple):
    """How rows compare with permuted ones."""

    outlier: np.ndarray  # [n] the probability that a row has no structure; 0 where the densities say nothing
    share: float
    support: np.ndarray  # log-likelihood of each of `SHARES`, its maximum 0
    told: bool  # whether the densities say something


def normal_scores(X: np.ndarray) -> np.ndarray:
    """The columns as quantiles of a Gaussian, by rank."""
    from scipy.stats import rankdata

    return ndtri((np.apply_along_axis(rankdata, 0, X) - 0.5) / len(X))


def score(Z: np.ndarray, codes: np.ndarray, omega: np.ndarray, tried: np.ndarray, K: int) -> np.ndarray:
    """$r$ of the rows `tried` `[m, d]`, by classes that are learned from `Z` `[n, d]`."""
    d = Z.shape[1]
    masses, means, sums = np.bincount(codes, omega, K), [], []
    for k in range(K):
        t = omega * (codes == k)
        means.append(t @ Z / max(masses[k], 1e-9))
        A = (Z - means[k]) * np.sqrt(t)[:, None]
        sums.append(A.T @ A)
    total = masses.sum()
    shrink = min(1.0, (d + 1) / total)
    pooled = np.sum(sums, axis=0) / total
    pooled = (1 - shrink) * pooled + shrink * np.diag(np.diag(pooled)) + 1e-3 * np.eye(d)
    prior, logs = 2 * (d + 1), []
    for k in np.flatnonzero(masses > 0):
        L = np.linalg.cholesky((sums[k] + prior * pooled) / (masses[k] + prior))
        u = solve_triangular(L, (tried - means[k]).T, lower=True)
        logs.append(np.log(masses[k] / total) - 0.5 * np.einsum("in,in->n", u, u) - np.log(np.diag(L)).sum())
    v = np.maximum(omega @ Z**2 / total, 1e-3)
    return logsumexp(logs, axis=0) + 0.5 * (tried**2 @ (1 / v)) + 0.5 * np.log(v).sum()


def compare(
    X: np.ndarray, codes: np.ndarray, omega: np.ndarray, folds: Sequence[Fold], generator: np.random.Generator
) -> Strangeness:
    """Judge each row by densities that were not learned from it."""
    n, K, Z = len(X), int(codes.max()) + 1, normal_scores(X)
    real, permuted = np.empty(n), np.empty((COPIES, n))
    for rows, judged in folds:
        copies = [np.column_stack([generator.permutation(c) for c in Z[judged].T]) for _ in range(COPIES)]
        tried = np.concatenate([Z[judged], *copies])
        parts = score(Z[rows], codes[rows], omega[rows], tried, K).reshape(1 + COPIES, -1)
        real[judged], permuted[:, judged] = parts[0], parts[1:]
    return calibrate(real, permuted.ravel(), omega, np.tile(omega, COPIES))


def calibrate(real: np.ndarray, permuted: np.ndarray, omega: np.ndarray, copies: np.ndarray) -> Strangeness:
    """The share of rows without structure, and the probability of each, from scores of both kinds of rows."""
    scale = max(float(np.median(np.abs(real - np.median(real)))), float(np.std(permuted)) / 5) + 1e-9
    sides = [(np.clip(r / scale, -EDGE, EDGE), t, s) for r, t, s in ((real, omega, -1.0), (permuted, copies, 1.0))]
    ratio = np.log(copies.sum() / omega.sum())

    def loss(x: np.ndarray, g: float) -> tuple[float, np.ndarray]:
        """Of telling one kind from the other, with its slopes."""
        a, value, slope = np.exp(x[0]), 0.0, np.zeros(2)
        for u, t, sign in sides:
            e = np.log1p(-g) + a * u + x[1]
            both = np.logaddexp(e, np.log(g + 1e-12))
            z = sign * (both - ratio)
            value += float(t @ np.logaddexp(0, z))
            d = t * sign * expit(z) * np.exp(e - both)
            slope += np.array([a * (d @ u), d.sum()])
        return value, slope

    x, support, found = np.zeros(2), [], []
    for g in SHARES:
        best = minimize(loss, x, args=(g,), jac=True, method="BFGS", options={"maxiter": 30, "gtol": 1e-2})
        x = best.x
        support.append(-float(best.fun))
        found.append(x)
    level = np.array(support) - np.max(support)
    i = int(np.argmax(level))
    g, (log_a, b) = float(SHARES[i]), found[i]  # g > 0 below: otherwise nothing is told
    told = g >= LEAST_SHARE and -level[0] >= (LEAST_GAIN if g >= SMALL_SHARE else SMALL_GAIN)
    told = told and float(np.median(real) - np.median(permuted)) >= LEAST_SCORE
    if not told:
        return Strangeness(np.zeros(len(real)), 0.0, np.where(SHARES == 0, 0.0, -np.inf), False)
    q = expit(np.log(g) - np.log1p(-g) - np.exp(log_a) * sides[0][0] - b)
    return Strangeness(q, g, level, True)
