r"""EM for mixtures of Gaussians with spherical, diagonal or full covariances, on weighted rows.

$$\log p(x) = \log \sum_k w_k\, \mathcal N(x;\, c_k, \Sigma_k), \qquad
r_k(x) \propto w_k\, \mathcal N(x;\, c_k, \Sigma_k)$$

The E-step is one product of rows and centres (two, if widths differ) and so is the M-step. Many mixtures on the same
rows are climbed side by side, in the same products. A covariance matrix is kept as its upper triangle, row by row, and
the squares of a row are then all products of two of its features, in the same order.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

ROUNDING = 1e-13
"""Changes of the mean log-likelihood, relative to it, that are rounding errors."""
NEAR = 1e-4
"""What is left to gain in the log-likelihood of a row when steps begin to be stretched: so near, the maximum that is
reached is decided."""


class Rows(NamedTuple):
    """Centred (and scaled) rows with weights that add up to 1: the data are `mean + unit * Z`."""

    Z: np.ndarray  # [n, N]
    squares: np.ndarray  # [n, 1] lengths, [n, N] of every feature, or [n, N(N+1)/2] products of any two
    omega: np.ndarray  # [n]
    mean: np.ndarray  # [N]
    unit: np.ndarray  # [N]; ones unless `Diagonal` or `Full`
    total: float  # how many, repetitions included


class Gaussians(NamedTuple):
    """A mixture in the units of `Rows`, or many on a leading axis."""

    centres: np.ndarray  # [..., K, N]
    widths: np.ndarray  # [..., K, 1] or [..., K, N]: variances; [..., K, N(N+1)/2]: upper triangles of covariances
    weights: np.ndarray  # [..., K]


class Freedom(NamedTuple):
    """What the M-step may change besides the centres."""

    weights: bool = True
    widths: bool = False
    common: bool = False  # one width for all Gaussians
    least: float = 0.0  # the smallest width, or eigenvalue
    fewest: float | None = None  # rows that a sound Gaussian has more of; None: as its widths need


def rows_of(
    Z: np.ndarray, omega: np.ndarray, *, features: int, mean: Any = 0.0, unit: Any = 1.0, total: float | None = None
) -> Rows:
    """The rows with their squares, which every step needs; as many as a width has `features`."""
    N = Z.shape[1]
    if features == 1:
        squares = np.einsum("nk,nk->n", Z, Z)[:, None]
    elif features == N:
        squares = Z * Z
    else:
        i, j = _upper(N)
        squares = Z[:, i] * Z[:, j]
    mean, unit = (np.broadcast_to(one, Z.shape[1:]) for one in (mean, unit))
    return Rows(Z, squares, omega, mean, unit, len(Z) if total is None else total)


@functools.cache
def _upper(N: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of an upper triangle."""
    return np.triu_indices(N)


def pack(matrices: np.ndarray) -> np.ndarray:
    """Upper triangles `[..., N(N+1)/2]` of symmetric matrices `[..., N, N]`."""
    i, j = _upper(matrices.shape[-1])
    return matrices[..., i, j]


def unpack(triangles: np.ndarray, N: int) -> np.ndarray:
    """Symmetric matrices `[..., N, N]` from their upper triangles."""
    i, j = _upper(N)
    matrices = np.empty((*triangles.shape[:-1], N, N))
    matrices[..., i, j] = matrices[..., j, i] = triangles
    return matrices


def _multiply(vectors: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """The product of vectors `[..., N]` of many mixtures and a matrix, all at once."""
    return (vectors.reshape(-1, vectors.shape[-1]) @ matrix).reshape(*vectors.shape[:-1], matrix.shape[1])


def _log_full(rows: Rows, g: Gaussians, *, equal: bool) -> np.ndarray:
    """`log_densities` for covariance matrices."""
    N = g.centres.shape[-1]
    root = np.linalg.cholesky(unpack(g.widths[..., :1, :] if equal else g.widths, N))
    inverse = np.linalg.inv(root)
    precision = np.swapaxes(inverse, -1, -2) @ inverse
    half = pack(precision) * (1 - 0.5 * pack(np.eye(N)))  # off the diagonal every product counts twice
    turned = (precision @ g.centres[..., None])[..., 0]
    log_p = _multiply(turned, rows.Z.T)
    log_p -= (half @ (rows.omega @ rows.squares))[..., None] if equal else _multiply(half, rows.squares.T)
    volume = 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1) + N * np.log(2 * np.pi)
    log_p += (np.log(g.weights) - 0.5 * ((turned * g.centres).sum(axis=-1) + volume))[..., None]
    return log_p


def log_densities(rows: Rows, g: Gaussians, *, equal: bool = False) -> np.ndarray:
    r"""$\log w_k p_k(x)$ for every Gaussian and row `[..., K, n]`; $-\infty$ for a weight of zero.

    For `equal` widths without a term of each row that is 0 on average: then the last Gaussian needs no product.
    """
    (K, N), features = g.centres.shape[-2:], g.widths.shape[-1]
    if features > N:
        return _log_full(rows, g, equal=equal)
    scaled = (g.centres - g.centres[..., -1:, :] if equal else g.centres) / g.widths
    log_p = np.zeros((*g.weights.shape, len(rows.Z)))
    log_p[..., : K - equal, :] = _multiply(scaled[..., : K - equal, :], rows.Z.T)
    squares = rows.omega @ rows.squares if equal else rows.squares
    log_p -= (0.5 / g.widths @ squares)[..., None] if equal else _multiply(0.5 / g.widths, squares.T)
    volume = np.log(2 * np.pi * g.widths).sum(axis=-1) * (N / features)
    log_p += (np.log(g.weights) - 0.5 * ((g.centres**2 / g.widths).sum(axis=-1) + volume))[..., None]
    return log_p


def expect(rows: Rows, g: Gaussians, *, equal: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Log-density `[..., n]` of the rows (for `equal` widths only its mean) and responsibilities `[..., K, n]`."""
    log_p = log_densities(rows, g, equal=equal)
    top = log_p.max(axis=-2, keepdims=True)
    r = np.exp(log_p - top)
    total = r.sum(axis=-2, keepdims=True)
    r /= total
    return (top + np.log(total))[..., 0, :], r


def maximise(rows: Rows, g: Gaussians, r: np.ndarray, free: Freedom) -> Gaussians:
    """The Gaussians that these responsibilities make most likely; one without any rows stays where it is."""
    r = r * rows.omega
    mass = r.sum(axis=-1)
    present, sums = mass[..., None] > 0, np.zeros(g.centres.shape)
    share = np.where(present, mass[..., None], 1.0)
    sums[..., :-1, :] = _multiply(r[..., :-1, :], rows.Z)
    sums[..., -1, :] = -sums[..., :-1, :].sum(axis=-2)  # the rows are centred
    centres = np.where(present, sums / share, g.centres)
    weights = mass / mass.sum(axis=-1, keepdims=True) if free.weights else g.weights
    if not free.widths:
        return Gaussians(centres, g.widths, weights)
    N, features = centres.shape[-1], g.widths.shape[-1]
    full = features > N
    if full:
        squares = pack(centres[..., :, None] * centres[..., None, :])
    else:
        squares = centres**2 if features > 1 else np.sum(centres**2, axis=-1, keepdims=True)
    scale = 1.0 if full else features / N
    if free.common:  # those of all rows less those of the centres, so no row is needed
        between = np.sum(mass[..., None] * squares, axis=-2, keepdims=True)
        widths = (rows.omega @ rows.squares - between) * scale
    else:
        widths = np.where(present, (_multiply(r, rows.squares) / share - squares) * scale, g.widths)
    widths = _bound(widths, N, free.least) if full else np.maximum(widths, free.least)
    return Gaussians(centres, np.broadcast_to(widths, g.widths.shape), weights)


def _bound(widths: np.ndarray, N: int, least: float) -> np.ndarray:
    """Covariances whose eigenvalues are not below `least`."""
    matrices = unpack(widths, N)
    try:
        np.linalg.cholesky(matrices - least * np.eye(N))  # ten times as fast as eigenvalues, and mostly enough
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrices)
        raised = np.maximum(values, least)[..., None, :] * vectors
        return pack(raised @ np.swapaxes(vectors, -1, -2))
    return widths


class Climbed(NamedTuple):
    """Where EM ended."""

    gaussians: Gaussians
    log_likelihood: Any  # [...] mean over rows
    r: np.ndarray  # [..., K, n] responsibilities
    passes: Any  # [...] EM steps
    converged: Any  # [...]


class _Last(NamedTuple):
    """The last accepted Gaussians of each of `[B]` mixtures, and the steps to them."""

    g: Gaussians
    r: np.ndarray
    level: np.ndarray
    gain: np.ndarray
    centres: np.ndarray  # before the last step
    step: np.ndarray  # of plain EM from there
    longest: np.ndarray  # the largest factor by which a step was stretched
    near: np.ndarray  # whether steps are stretched
    plain: np.ndarray  # but for the next one


def climb(rows: Rows, g: Gaussians, free: Freedom, *, accuracy: float, passes: int, stretch: bool = True) -> Climbed:
    r"""EM until there seems to be little left to gain, of one mixture or of many, each of which stops by itself.

    Gains fall about geometrically, $\Delta_{t+1} = \rho \Delta_t$, which leaves $\Delta_t \rho/(1-\rho)$ to gain
    (Aitken); it stops when that is below `accuracy`, in units of the log-likelihood of a row. It is an estimate from
    the last two gains: later gains along slow directions are not foreseen.

    With given widths, which are equal, and an `accuracy` below `NEAR`, the last steps of the centres are stretched by
    Barzilai and Borwein's factor, about $1/(1 - \rho)$; where the likelihood would fall a plain step is taken instead.
    A plain step $\delta$ gains about $\sum_k w_k \delta_k^2/2v_k$; the largest factor times this is left to gain.
    """
    if g.weights.ndim == 1:
        many = climb(rows, take(None, g), free, accuracy=accuracy, passes=passes, stretch=stretch)
        return take(0, many)
    equal, B = not free.widths or free.common, len(g.weights)
    stretch = stretch and accuracy < NEAR and not free.widths
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p, r = expect(rows, g, equal=equal and bool(np.all(g.widths == g.widths[..., :1, :])))
        one, no, places, ended = np.ones(B), np.zeros(B, bool), [], []
        last = _Last(g, r, log_p @ rows.omega, np.inf * one, g.centres, 0 * g.centres, one, no, no)
        alive = np.arange(B)
        for t in range(1, passes + 1):
            new, longest, left_to_steps = maximise(rows, last.g, last.r, free), last.longest, np.inf
            step = new.centres - last.g.centres
            if last.near.any():
                change = last.step - step
                curvature = np.einsum("bkn,bkn->b", last.g.centres - last.centres, change)
                scale = np.einsum("bkn,bkn->b", change, change)
                usable = last.near & ~last.plain & (curvature > 0) & (scale > 0)
                factor = np.where(usable, np.maximum(curvature / scale, 1.0), 1.0)
                longest = np.maximum(longest, factor)
                gained = (last.g.weights * (step**2 / (2 * last.g.widths)).sum(axis=-1)).sum(axis=-1)
                left_to_steps = longest * gained
                new = new._replace(centres=last.g.centres + factor[:, None, None] * step)
            log_p, r = expect(rows, new, equal=equal)
            level = log_p @ rows.omega
            gain, least = level - last.level, ROUNDING * np.maximum(1.0, np.abs(level))
            left = np.where((gain < last.gain) & (last.gain < np.inf), gain * (gain / (last.gain - gain)), np.inf)
            done = np.where(last.near, left_to_steps < accuracy, (gain <= least) | (left < accuracy))
            worse, near = last.near & (gain < -least), last.near | (stretch & (left < NEAR))
            now = _Last(new, r, level, gain, last.g.centres, step, longest, near, worse)
            if worse.any():
                now = _choose(worse, last._replace(near=near, plain=worse), now)
            stop = done | (t == passes)
            if stop.any():
                every = Climbed(now.g, now.level, now.r, np.full(len(done), t), done)
                if stop.all() and not ended:
                    return every
                places.append(alive[stop])
                ended.append(take(stop, every))
                if stop.all():
                    break
                alive, now = take(~stop, (alive, now))
            last = now
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *ended)
    return take(np.argsort(np.concatenate(places)), joined)


def take(which: Any, values: Any) -> Any:
    """Some of the mixtures, from nested tuples of arrays; None makes one mixture many."""
    return jax.tree.map(lambda leaf: leaf[which], values)


def _choose(first: np.ndarray, one: Any, other: Any) -> Any:
    """Arrays from `one` in the mixtures marked, from `other` elsewhere."""
    return jax.tree.map(lambda a, b: np.where(first.reshape(-1, *[1] * (a.ndim - 1)), a, b), one, other)
