r"""EM for mixtures of Gaussians with spherical or diagonal widths, on weighted rows.

$$\log p(x) = \log \sum_k w_k \prod_i \mathcal N(x_i;\, c_{ki}, v_{ki}), \qquad
r_k(x) \propto w_k \prod_i \mathcal N(x_i;\, c_{ki}, v_{ki})$$

The E-step is one product of rows and centres (two, if widths differ between features) and so is the M-step. It runs on
the host: there is nothing to compile, and the matrix products are most of the work. Many mixtures on the same rows are
climbed side by side, in the same products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

ROUNDING = 1e-13
"""Changes of the mean log-likelihood, relative to it, that are rounding errors."""
NEAR = 1e-4
"""What is left to gain in the log-likelihood of a row when steps begin to be stretched: so near, the maximum that is
reached is decided."""


class Rows(NamedTuple):
    """Centred (and scaled) rows with weights that add up to 1."""

    Z: np.ndarray  # [n, N]
    squares: np.ndarray  # [n, 1] lengths, or [n, N] of every feature
    omega: np.ndarray  # [n]


class Gaussians(NamedTuple):
    """A mixture in the units of `Rows`, or many on a leading axis."""

    centres: np.ndarray  # [..., K, N]
    widths: np.ndarray  # [..., K, 1] or [..., K, N]: variances
    weights: np.ndarray  # [..., K]


class Freedom(NamedTuple):
    """What the M-step may change besides the centres."""

    weights: bool = True
    widths: bool = False
    common: bool = False  # one width for all Gaussians
    least: float = 0.0  # the smallest width


def rows_of(Z: np.ndarray, omega: np.ndarray, *, diagonal: bool) -> Rows:
    """The rows with their squares, which every step needs."""
    squares = Z * Z if diagonal else np.einsum("nk,nk->n", Z, Z)[:, None]
    return Rows(Z, squares, omega)


def log_densities(rows: Rows, g: Gaussians) -> np.ndarray:
    r"""$\log w_k p_k(x)$ for every Gaussian and row `[..., K, n]`; $-\infty$ for a weight of zero."""
    N, features = g.centres.shape[-1], g.widths.shape[-1]
    scaled = g.centres / g.widths
    log_p = scaled.reshape(-1, N) @ rows.Z.T
    log_p -= (0.5 / g.widths).reshape(-1, features) @ rows.squares.T
    volume = np.sum(np.log(2 * np.pi * g.widths), axis=-1) * (N / features)
    level = np.log(g.weights) - 0.5 * (np.sum(scaled * g.centres, axis=-1) + volume)
    return log_p.reshape(*level.shape, -1) + level[..., None]


def _shifted_log_densities(rows: Rows, g: Gaussians) -> np.ndarray:
    """The same for equal widths, but for a shift of each row that is 0 on average: one Gaussian needs no product."""
    N, features = g.centres.shape[-1], g.widths.shape[-1]
    width, last = g.widths[..., :1, :], g.centres[..., -1:, :]
    apart = (g.centres[..., :-1, :] - last) / width
    spread = np.sum(g.centres**2 / width, axis=-1) + np.sum(rows.omega @ rows.squares / width, axis=-1)
    volume = np.sum(np.log(2 * np.pi * width), axis=-1) * (N / features)
    log_p = np.zeros((*g.weights.shape, len(rows.Z)))
    if apart.size:
        log_p[..., :-1, :] = (apart.reshape(-1, N) @ rows.Z.T).reshape(*apart.shape[:-1], -1)
    log_p += (np.log(g.weights) - 0.5 * (spread + volume))[..., None]
    return log_p


def expect(rows: Rows, g: Gaussians, *, equal: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Log-density `[..., n]` of the rows (for `equal` widths only its mean) and responsibilities `[..., K, n]`."""
    log_p = _shifted_log_densities(rows, g) if equal else log_densities(rows, g)
    top = log_p.max(axis=-2, keepdims=True)
    r = np.exp(log_p - top)
    total = r.sum(axis=-2, keepdims=True)
    r /= total
    return (top + np.log(total))[..., 0, :], r


def maximise(rows: Rows, g: Gaussians, r: np.ndarray, free: Freedom) -> Gaussians:
    """The Gaussians that these responsibilities make most likely; one without any rows stays where it is."""
    r, K, n = r * rows.omega, r.shape[-2], r.shape[-1]
    mass = r.sum(axis=-1)
    share, present = mass[..., None], mass[..., None] > 0
    share = np.where(present, share, 1.0)
    sums = np.zeros(g.centres.shape)
    if K > 1:
        sums[..., :-1, :] = (r[..., :-1, :].reshape(-1, n) @ rows.Z).reshape(*r.shape[:-2], K - 1, -1)
        sums[..., -1, :] = -sums.sum(axis=-2)  # the rows are centred
    centres = np.where(present, sums / share, g.centres)
    weights = mass / mass.sum(axis=-1, keepdims=True) if free.weights else g.weights
    if not free.widths:
        return Gaussians(centres, g.widths, weights)
    N, features = centres.shape[-1], g.widths.shape[-1]
    squares = centres**2 if features > 1 else np.sum(centres**2, axis=-1, keepdims=True)
    widths = ((r.reshape(-1, n) @ rows.squares).reshape(g.widths.shape) / share - squares) * (features / N)
    if free.common:
        mean = np.sum(mass[..., None] * widths, axis=-2, keepdims=True) / mass.sum(axis=-1)[..., None, None]
        widths = np.broadcast_to(mean, widths.shape)
    return Gaussians(centres, np.maximum(np.where(present, widths, g.widths), free.least), weights)


class Climbed(NamedTuple):
    """Where EM ended."""

    gaussians: Gaussians
    log_likelihood: Any  # [...] mean over rows
    r: np.ndarray  # [..., K, n] responsibilities
    passes: Any  # [...] EM steps
    converged: Any  # [...]


def climb(rows: Rows, g: Gaussians, free: Freedom, *, accuracy: float, passes: int, stretch: bool = True) -> Climbed:
    r"""EM until there seems to be little left to gain.

    Gains fall about geometrically, $\Delta_{t+1} = \rho \Delta_t$, which leaves $\Delta_t \rho/(1-\rho)$ to gain
    (Aitken); it stops when that is below `accuracy`, in units of the log-likelihood of a row. It is an estimate from
    the last two gains: later gains along slow directions are not foreseen.

    With given widths and an `accuracy` below `NEAR`, the last steps of the centres are stretched by Barzilai and
    Borwein's factor, about $1/(1 - \rho)$; where the likelihood would fall a plain step is taken instead. A plain step
    $\delta$ gains about $\sum_k w_k \delta_k^2/2v_k$; the largest factor so far times this is left to gain.

    Args:
        rows: the data.
        g: where to begin: one mixture, or many on a leading axis, each of which stops by itself. Its widths are equal
            unless they are free.
        free: what may change.
        accuracy: see above.
        passes: at most.
        stretch: whether steps may be stretched.
    """
    if g.weights.ndim == 1:
        one = Gaussians(*(leaf[None] for leaf in g))
        many = climb(rows, one, free, accuracy=accuracy, passes=passes, stretch=stretch)
        return Climbed(Gaussians(*(leaf[0] for leaf in many.gaussians)), *(leaf[0] for leaf in many[1:]))
    with np.errstate(divide="ignore", invalid="ignore"):
        equal = not free.widths
        log_p, r = expect(rows, g, equal=equal)
        level = log_p @ rows.omega
        B = len(level)
        gain, place = np.full(B, np.inf), np.arange(B)
        found: Any = None
        longer = _Stretch(g.centres) if stretch and accuracy < NEAR and not free.widths else None
        for t in range(1, passes + 1):
            before = g, r, level, gain
            g = maximise(rows, g, r, free)
            if longer is not None:
                g = longer.extend(before[0], g)
            log_p, r = expect(rows, g, equal=equal)
            level = log_p @ rows.omega
            gain = level - before[2]
            least = ROUNDING * np.maximum(1.0, np.abs(level))
            left = np.where((gain < before[3]) & (before[3] < np.inf), gain**2 / (before[3] - gain), np.inf)
            done = (gain <= least) | (left < accuracy)
            if longer is not None:
                done, worse = longer.judge(done, left, gain < -least, accuracy)
                if worse.any():
                    g, r, level, gain = _choose(worse, before, (g, r, level, gain))
            if t == passes or done.any():
                stop = done if t < passes else np.ones(len(done), bool)
                found = _record(found, Climbed(g, level, r, np.full(len(done), t), done), place, stop, B)
                if stop.all():
                    break
                g, r, level, gain, place = _select(~stop, (g, r, level, gain, place))
                if longer is not None:
                    longer.select(~stop)
    return found


class _Stretch:
    """Steps of the centres of `[B]` mixtures that are longer than those of EM, once little is left to gain."""

    def __init__(self, centres: np.ndarray):
        self.near, self.plain = (np.zeros(len(centres), bool) for _ in range(2))  # stretched; the next one is not
        self.centres, self.step = centres, np.zeros_like(centres)  # before the last step, and EM's step there
        self.longest, self.left = np.ones(len(centres)), np.full(len(centres), np.inf)
        self.trial = self.centres, self.step, self.longest

    def extend(self, g: Gaussians, new: Gaussians) -> Gaussians:
        """The next trial, from the last accepted Gaussians and EM's step from there."""
        step = new.centres - g.centres
        self.trial = g.centres, step, self.longest
        if not self.near.any():
            return new
        moved, change = g.centres - self.centres, self.step - step
        curvature, scale = (np.einsum("bkn,bkn->b", a, change) for a in (moved, change))
        usable = self.near & ~self.plain & (curvature > 0) & (scale > 0)
        factor = np.where(usable, np.maximum(curvature / scale, 1.0), 1.0)  # Barzilai and Borwein's
        self.trial = g.centres, step, np.maximum(self.longest, factor)
        gained = np.sum(g.weights * np.sum(step**2 / (2 * g.widths), axis=-1), axis=-1)
        self.left = self.trial[2] * gained
        return new._replace(centres=g.centres + factor[:, None, None] * step)

    def judge(self, done: np.ndarray, left: np.ndarray, falls: np.ndarray, accuracy: float) -> tuple[np.ndarray, ...]:
        """Which mixtures are done, and whose trial is rejected."""
        worse, done = self.near & falls, np.where(self.near, self.left < accuracy, done)
        self.plain, self.near = worse, self.near | (left < NEAR)
        self.centres, self.step, self.longest = _choose(worse, (self.centres, self.step, self.longest), self.trial)
        return done, worse

    def select(self, which: np.ndarray) -> None:
        """Keep some of the mixtures."""
        for name, value in vars(self).items():
            setattr(self, name, _select(which, value))


def _select(which: np.ndarray, values: Any) -> Any:
    """Some of the mixtures, from arrays or tuples of them."""
    return jax.tree.map(lambda leaf: leaf[which], values)


def _choose(first: np.ndarray, one: Any, other: Any) -> Any:
    """Arrays from `one` where `first`, from `other` elsewhere."""
    if not first.any():
        return other
    return jax.tree.map(lambda a, b: np.where(first.reshape(-1, *[1] * (a.ndim - 1)), a, b), one, other)


def _record(found: Any, now: Climbed, place: np.ndarray, stop: np.ndarray, count: int) -> Climbed:
    """Put those that stop in their places among all."""
    if found is None and stop.all():
        return now
    found = found or jax.tree.map(lambda leaf: np.empty((count, *leaf.shape[1:]), leaf.dtype), now)
    for kept, leaf in zip(jax.tree.leaves(found), jax.tree.leaves(now), strict=True):
        kept[place[stop]] = leaf[stop]
    return found
