r"""EM for a mixture of Gaussians with spherical or diagonal widths, on weighted rows.

$$\log p(x) = \log \sum_k w_k \prod_i \mathcal N(x_i;\, c_{ki}, v_{ki}), \qquad
r_k(x) \propto w_k \prod_i \mathcal N(x_i;\, c_{ki}, v_{ki})$$

The E-step is one product of rows and centres (two, if widths differ between features) and so is the M-step. It runs on
the host: there is nothing to compile, and the matrix products are most of the work.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

ROUNDING = 1e-13
"""Gains of the mean log-likelihood, relative to it, that are no gains."""


class Rows(NamedTuple):
    """Centred (and scaled) rows with weights that add up to 1."""

    Z: np.ndarray  # [n, N]
    squares: np.ndarray  # [n, 1] lengths, or [n, N] of every feature
    omega: np.ndarray  # [n]


class Gaussians(NamedTuple):
    """A mixture in the units of `Rows`."""

    centres: np.ndarray  # [M, N]
    widths: np.ndarray  # [M, 1] or [M, N]: variances
    weights: np.ndarray  # [M]


class Freedom(NamedTuple):
    """What the M-step may change besides the centres."""

    weights: bool = True
    widths: bool = False
    common: bool = False  # one width for all Gaussians
    least: float = 0.0  # no width below it


def rows_of(Z: np.ndarray, omega: np.ndarray, *, diagonal: bool) -> Rows:
    """The rows with their squares, which every step needs."""
    squares = Z * Z if diagonal else np.einsum("nk,nk->n", Z, Z)[:, None]
    return Rows(Z, squares, omega)


def log_densities(rows: Rows, g: Gaussians) -> np.ndarray:
    r"""$\log w_k p_k(x)$ for every row and Gaussian `[n, M]`."""
    N = g.centres.shape[1]
    scaled = g.centres / g.widths
    away = rows.squares @ (1 / g.widths).T - rows.Z @ (2 * scaled).T + np.sum(scaled * g.centres, axis=1)
    volume = np.sum(np.log(2 * np.pi * g.widths), axis=1) * (N / g.widths.shape[1])
    with np.errstate(divide="ignore"):  # a weight of zero is no Gaussian at all
        return np.log(g.weights) - 0.5 * (away + volume)


def expect(rows: Rows, g: Gaussians) -> tuple[np.ndarray, np.ndarray]:
    """Log-density `[n]` and responsibilities `[n, M]` of the rows."""
    log_p = log_densities(rows, g)
    top = log_p.max(axis=1, keepdims=True)
    r = np.exp(log_p - top)
    total = r.sum(axis=1, keepdims=True)
    return (top + np.log(total))[:, 0], r / total


def maximise(rows: Rows, g: Gaussians, r: np.ndarray, free: Freedom) -> Gaussians:
    """The Gaussians that these responsibilities make most likely; one without any rows stays where it is."""
    r = r * rows.omega[:, None]
    mass = r.sum(axis=0)
    share = np.maximum(mass, np.finfo(float).tiny)[:, None]
    centres = np.where(mass[:, None] > 0, (r.T @ rows.Z) / share, g.centres)
    weights = mass / mass.sum() if free.weights else g.weights
    if not free.widths:
        return Gaussians(centres, g.widths, weights)
    N, features = centres.shape[1], g.widths.shape[1]
    squares = centres**2 if features > 1 else np.sum(centres**2, axis=1, keepdims=True)
    widths = (r.T @ rows.squares / share - squares) * (features / N)
    if free.common:
        widths = np.broadcast_to(mass @ widths / mass.sum(), widths.shape)
    return Gaussians(centres, np.maximum(np.where(mass[:, None] > 0, widths, g.widths), free.least), weights)


class Climbed(NamedTuple):
    """Where EM came to."""

    gaussians: Gaussians
    log_likelihood: float  # mean over rows
    r: np.ndarray  # responsibilities
    passes: int
    converged: bool


def climb(rows: Rows, g: Gaussians, free: Freedom, *, accuracy: float, passes: int) -> Climbed:
    r"""EM until there seems to be little left to gain.

    Gains fall about geometrically, $\Delta_{t+1} = \rho \Delta_t$, which leaves $\Delta_t \rho/(1-\rho)$ to gain
    (Aitken); it stops when that is below `accuracy`, in units of the log-likelihood of a row. It is an estimate from
    the last two gains: what is gained later along slow directions is not foreseen.

    Args:
        rows: the data.
        g: where to begin.
        free: what may change.
        accuracy: see above.
        passes: at most.
    """
    log_p, r = expect(rows, g)
    level, gain = float(rows.omega @ log_p), np.inf
    for t in range(1, passes + 1):
        g = maximise(rows, g, r, free)
        log_p, r = expect(rows, g)
        before, (level, last) = gain, (float(rows.omega @ log_p), level)
        gain = level - last
        if gain <= ROUNDING * max(1.0, abs(level)):
            return Climbed(g, level, r, t, True)
        if gain < before < np.inf and gain**2 / (before - gain) < accuracy:
            return Climbed(g, level, r, t, True)
    return Climbed(g, level, r, passes, False)
