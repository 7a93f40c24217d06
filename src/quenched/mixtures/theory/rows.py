r"""The verb `rows_needed`: how many rows it takes to see a split of a given size.

Two clusters of shares $w_1, w_2$ lie $\Delta$ standard deviations apart (Mahalanobis's distance) in $N$ columns. With
$n$ rows of theirs three things must happen.

1. The mixture must be told from one Gaussian: $n g + \tfrac12 (N + 1) \ge \tfrac12 (N + 1) \ln n$, where $g$ is how
   much likelier a row is under the mixture; $N + 1$ numbers are fitted, which costs that much by the Bayesian
   information criterion and gains half of their number by chance.
2. The direction must be found, with means and covariances that nobody knows. Let $x$ be the coordinate along the true
   line and $\tau(x)$ the probability of the second cluster there. In each of the $N - 1$ other directions the estimate
   is off by the error of a regression on $\tau$ beside one on $x$, which stands for the unknown covariance:

   $$\frac{c^2}{1 - c^2} = \frac{n}{N - 1}\, \Delta^2 V(c\Delta), \qquad
   V = \mathrm{Var}\, \tau - \frac{\mathrm{Cov}(\tau, x)^2}{\mathrm{Var}\, x}$$

   with the cosine $c$ of the estimated and the true direction; $\tau$ is as uncertain as clusters at a distance
   $c\Delta$ make it, which is what can be seen of them. Were covariances known, $V$ would be $\mathrm{Var}\, \tau$, and
   this the equation of `optimum` with its transition at $\alpha_c$. Here $V$ falls faster: below some number of rows
   there is no solution but $c = 0$.
3. The valley between them must be seen, by the binomial test of three intervals of the same length. They lie best for
   the two Gaussians that are found, not for the true ones; Fisher's information says how far off these are.

Lines and intervals are found in `TRAIN` of the rows, and all are counted. Assumptions: both clusters are Gaussian with
the same covariance, and others are farther away.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy import optimize, special

from quenched.core import checks
from quenched.core.types import InputError

FEWEST, MOST = 10.0, 1e12
"""Rows below which nothing is seen, and rows that nobody has: beyond, no number is enough."""
FARTHEST = 12.0
"""Standard deviations; clusters farther apart are as easy to see."""
TRAIN = 0.8
"""The share of the rows from which lines are found."""
GRID = 300
"""Points on the line on which intervals are sought."""
LENGTHS = np.geomspace(0.3, 3.0, 12)
"""Of intervals, in standard deviations."""


def density(x: np.ndarray, separation: float, share: float) -> np.ndarray:
    """The density of two Gaussians of unit variance on the line."""
    return share * _normal(x) + (1 - share) * _normal(x - separation)


def _normal(x: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def gain(separation: float, share: float) -> float:
    """How much likelier a row is under two Gaussians than under the best single one, on average."""
    x, step = np.linspace(-9.0, separation + 9.0, 1001, retstep=True)
    p = density(x, separation, share)
    own = np.sum(p * np.log(p)) * step
    return float(own + 0.5 * np.log(2 * np.pi * np.e * (1 + share * (1 - share) * separation**2)))


def best_intervals(share: float, centres: np.ndarray, deviation: float) -> np.ndarray | None:
    """The left, the middle and the right interval `[3, 2]` of the same length whose rows differ most for two Gaussians
    on the line; None for a single peak."""
    grid = np.linspace(centres.min() - 4.0 * deviation, centres.max() + 4.0 * deviation, GRID)
    below = np.array([share, 1 - share]) @ special.ndtr((grid - centres[:, None]) / deviation)
    best, found = 0.0, None
    for length in LENGTHS:
        k = max(1, round(length * deviation / (grid[1] - grid[0])))
        inside = below[k:] - below[:-k]
        left, right = np.maximum.accumulate(inside), np.maximum.accumulate(inside[::-1])[::-1]
        middle = np.arange(k, len(inside) - k)
        lesser = np.minimum(left[middle - k], right[middle + k])
        deep = (lesser - inside[middle]) / np.sqrt(lesser + inside[middle])
        if len(middle) and deep.max() > best:
            best, m = deep.max(), int(middle[np.argmax(deep)])
            places = np.array([np.argmax(inside[: m - k + 1]), m, m + k + np.argmax(inside[m + k :])])
            found = np.stack([grid[places], grid[places + k]], axis=1)
    return found


def intervals(separation: float, share: float, n: float = np.inf) -> np.ndarray | None:
    """Chances `[3]` of a row to lie in the left, the middle and the right interval, if these are found from `n` rows,
    on average; None for a single peak.

    Share, centres and deviation are off by the errors of maximum likelihood, with the inverse of Fisher's information
    for their covariance; the average is that over two points on each of its axes, which have the same covariance.
    """
    exact = np.array([share, 0.0, separation, 1.0])
    off = np.sqrt(len(exact) / n) * _errors(separation, share).T
    points = [exact] if n == np.inf else [exact + sign * one for one in off for sign in (-1, 1)]
    chances = []
    for w, one, two, deviation in points:
        w, deviation = np.clip(w, 0.02, 0.98), max(deviation, 0.3)
        edges = best_intervals(w, np.array([one, two]), deviation)
        ends = np.zeros((3, 2)) if edges is None else edges  # without a valley no row is counted
        chances.append(np.diff(share * special.ndtr(ends) + (1 - share) * special.ndtr(ends - separation))[:, 0])
    mean = np.mean(chances, axis=0)
    return mean if mean.any() else None


def _errors(separation: float, share: float) -> np.ndarray:
    """A root `[4, 4]` of the covariance of one row's estimates of share, both centres and deviation."""
    x, step = np.linspace(-9.0, separation + 9.0, 1001, retstep=True)
    one, two = share * _normal(x), (1 - share) * _normal(x - separation)
    t = x - separation
    slopes = np.stack([one / share - two / (1 - share), one * x, two * t, one * (x * x - 1) + two * (t * t - 1)])
    information = slopes / (one + two) @ slopes.T * step
    return np.linalg.cholesky(np.linalg.inv(information))


def chance(n: float, separation: float, share: float, level: float, train: float = np.inf) -> float:
    """The probability that the test of a valley on `n` rows has a p-value below the level, with intervals found from
    `train` rows."""
    from scipy import stats

    places = intervals(separation, share, train)
    if places is None:
        return 0.0
    left, middle, right = n * places
    z = -special.ndtri(level)
    ends = [(side - middle - 1) / np.sqrt(side + middle) - z for side in (left, right)]  # B is a whole number: -1
    together = middle / np.sqrt((left + middle) * (right + middle))
    covariance: Any = [[1.0, together], [together, 1.0]]
    return float(stats.multivariate_normal.cdf(ends, cov=covariance))


def certainty(separation: float, share: float) -> float:
    """$V$, what a row says about the direction beside what it says about the covariance."""
    x, step = np.linspace(-9.0, separation + 9.0, 401, retstep=True)
    p = density(x, separation, share) * step
    tau = (1 - share) * _normal(x - separation) * step / p
    tau, x = tau - p @ tau, x - p @ x
    return float(p @ tau**2 - (p @ (tau * x)) ** 2 / (p @ x**2))


def overlap(n: float, separation: float, share: float, columns: int) -> float:
    """The cosine of the estimated direction with the true one: the largest solution, from above."""
    if columns == 1:
        return 1.0
    square = new = 1.0
    for _ in range(200):
        odds = n / (columns - 1) * separation**2 * certainty(np.sqrt(square) * separation, share)
        new = odds / (1 + odds)
        if abs(new - square) < 1e-4:
            break
        square = new
    return float(np.sqrt(new))


def rows_needed(
    separation: float,
    *,
    columns: int,
    shares: tuple[float, float] = (0.5, 0.5),
    level: float = 0.05,
    power: float = 0.5,
) -> float:
    r"""The number of rows of a table in which a split is seen with a given probability.

    Args:
        separation: $\Delta$, the distance of the two clusters in standard deviations along their line
            (Mahalanobis's distance).
        columns: $N$, of the table.
        shares: of the rows of the table that are in the one and in the other cluster; their sum may be below one.
        level: the p-value below which the split counts as seen.
        power: the probability of that.

    Returns:
        The rows of the whole table; infinite where the clusters together have a single peak.

    Examples:
        >>> from quenched import mixtures
        >>> mixtures.rows_needed(2.0, columns=3)  # their densities have one peak together
        inf
    """
    checks.positive("separation", checks.number("separation", separation))
    columns = checks.whole("columns", columns, least=1)
    checks.inside("level", checks.number("level", level), 0, 1)
    checks.inside("power", checks.number("power", power), 0, 1)
    w = checks.numbers("shares", shares)
    if w.shape != (2,) or not np.all(w > 0) or not w.sum() <= 1 + 1e-9:
        raise InputError(f"Argument `shares` must be two positive numbers whose sum is at most 1, but they are {w}.")
    total, share, separation = float(w.sum()), float(w[0] / w.sum()), min(float(separation), FARTHEST)

    @functools.cache
    def excess(log_n: float) -> float:
        n = np.exp(log_n)
        rows = n * total
        told = rows * gain(separation, share) - 0.5 * (columns + 1) * (log_n - 1)
        if told < 0:
            return -1.0
        apart = separation * overlap(TRAIN * rows, separation, share, columns)
        return chance(rows, apart, share, level, TRAIN * rows) - power

    if excess(np.log(MOST)) < 0:
        return np.inf
    low, high = np.log(FEWEST), np.log(MOST)
    if excess(low) >= 0:
        return FEWEST
    log_n: Any = optimize.bisect(excess, low, high, xtol=1e-2)
    return float(np.exp(log_n))
