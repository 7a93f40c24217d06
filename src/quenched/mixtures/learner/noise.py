r"""Would isotropic noise split like this? The law of the largest eigenvalue.

A cluster of coincident centres splits at a width equal to the largest eigenvalue of its rows' covariance (`annealing`).
For $n$ rows of isotropic noise in $N$ columns that eigenvalue lies near the edge of the Marchenko-Pastur spectrum,
$(1 + \sqrt{N/n})^2$ times the variance, and about it as Tracy and Widom's law has it [johnstone2001]. The line
between two clusters shows as soon as the variance along it stands out of that spectrum: the onset of a split.

Correlated columns stand out of it, too, without any clusters: `gains` has a test for them.
"""

from __future__ import annotations

import functools

import numpy as np
from scipy import interpolate, special

NODES = 64
"""Of the quadrature in Fredholm's determinant; with these it has 12 digits."""
FAR = 26.0
"""Where Airy's function of the mean of two points is below rounding, the sum of both."""
LAW = np.linspace(-6.0, 12.0, 91)
"""Where Tracy and Widom's law is computed; beyond, it is 1 or 0 to 9 digits."""


@functools.cache
def _triangle() -> tuple[np.ndarray, ...]:
    """Nodes and weights of the quadrature, and the rows and columns of an upper triangle of that size."""
    return *np.polynomial.legendre.leggauss(NODES), *np.triu_indices(NODES)


def exceed(s: float) -> float:
    r"""The probability that a variable with Tracy and Widom's law $F_1$ exceeds $s$.

    $F_1(s) = \det(1 - K)$ with $K(x, y) = \tfrac12 \mathrm{Ai}((x + y)/2)$ for $x, y > s$ [ferrari2005, bornemann2010].
    """
    if s > FAR / 2:
        return 0.0
    x, weight, i, j = _triangle()
    length = (FAR - 2 * s) / 2
    x, weight, kernel = s + length * (1 + x), length * weight, np.empty((NODES, NODES))
    kernel[i, j] = kernel[j, i] = 0.5 * special.airy((x[i] + x[j]) / 2)[0] * np.sqrt(weight[i] * weight[j])
    return float(np.clip(1 - np.linalg.det(np.eye(NODES) - kernel), 0.0, 1.0))


@functools.cache
def _law() -> tuple[interpolate.PPoly, ...]:
    """The logarithm of `exceed`, its slope and its second derivative."""
    law = interpolate.CubicSpline(LAW, np.log([exceed(at) for at in LAW]))
    return law, law.derivative(), law.derivative(2)


def judge_spread(spread: float, total: float, rows: float, columns: int) -> float:
    """The p-value of a covariance's largest eigenvalue, where the variance of all columns together is `total`, for
    isotropic noise of an unknown variance; 1 for a single column or fewer than three rows."""
    n, N = rows - 1.0, columns  # the mean is not known
    if N < 2 or n < 2 or not total > 0:
        return 1.0
    long, short = np.sqrt(n - 0.5), np.sqrt(N - 0.5)
    centre = (long + short) ** 2
    scale = (long + short) * (1 / long + 1 / short) ** (1 / 3)
    s = (n * N * spread / total - centre) / scale
    if not LAW[0] < s < LAW[-1]:
        return float(s <= LAW[0])
    log_p, slope, bend = (float(law(s)) for law in _law())
    p = np.exp(log_p)
    wider = p * (slope**2 + bend) * (centre / scale) ** 2 / (n * N)
    return float(np.clip(p - wider, 0.0, 1.0))  # the variance is not known [nadler2011]
