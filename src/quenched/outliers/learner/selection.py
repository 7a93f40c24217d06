r"""Selection on a finite table: EM, soft or hard, for one centre in each class and outliers about the origin.

An informative row of class $k$ is Gaussian about $c_k$ with variance $1/\gamma$ in each direction; an outlier is
Gaussian about 0, whatever its class, with variance $\rho/\gamma$; a share $\pi = 1/(1 + e^\eta)$ is informative. Each
centre has a Gaussian prior of precision $\tau$ in each direction. One class, rows multiplied by their labels,
$\rho = 1$ and $\tau = N$: that is the student of the paper, $c = J/\sqrt N$.

$$h = \gamma\, z \cdot c_k - \tfrac\gamma2 (|c_k|^2 + s_k) - \eta + \tfrac N2 \ln \rho
- \tfrac\gamma2 (1 - \tfrac1\rho) |z|^2$$

is the logarithm of how much more probable it is that a row $z$ is informative than that it is not. Soft selection looks
for the most probable centres: $s_k = 0$, and the row counts by $p = 1/(1 + e^{-h})$. Hard selection looks for the most
probable set of rows, whatever the centres: $s_k = N/a_k$ is what is unknown of $c_k$, and $p = 1$ if $h > 0$, else 0.

A pass reads the table once, in tiles of rows that stay in the cache between its two products. It runs on the host:
there is nothing to compile.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

TILE = 2**15
"""Numbers in a tile: a quarter of a megabyte, which the second cache holds."""

ROUNDING = 1e-12
"""Gains, relative to the level, that are no gains."""

NARROWEST = 1e-6
"""No variance falls below this share of that of all rows: equal rows have none."""


class Rows(NamedTuple):
    """The table about the centre of the outliers, the rows of a class one after the other."""

    Z: np.ndarray  # [n, N]
    omega: np.ndarray  # [n] weights
    squares: np.ndarray  # [n] |z|^2
    ends: np.ndarray  # [K + 1] rows of class k are ends[k]:ends[k + 1]

    @property
    def variance(self) -> float:
        """Of all rows, in one direction, about the origin."""
        return float(self.omega @ self.squares / self.omega.sum()) / self.Z.shape[1]


class State(NamedTuple):
    """What is believed."""

    centres: np.ndarray  # [K, N] c_k
    unknown: np.ndarray  # [K] s_k, zero for soft selection
    gamma: float
    spread: float  # rho
    eta: float


class Freedom(NamedTuple):
    """The prior of the centres, how rows are selected, and what EM may change besides."""

    tau: float
    hard: bool = False
    gamma: bool = False
    spread: bool = False
    eta: bool = False


class Sums(NamedTuple):
    """How much each row counts, and sums over what counts."""

    p: np.ndarray  # [n] weights included
    mass: np.ndarray  # [K] sum p
    total: np.ndarray  # [K, N] sum p z
    squares: float  # sum p |z|^2
    gain: float  # sum ln(1 + e^h) over all rows


def burden(squares: np.ndarray, state: State, N: int) -> np.ndarray:
    """What rows of these lengths pay for being called informative, since outliers are broader."""
    g, rho = state.gamma, state.spread
    return 0.5 * g * (1 - 1 / rho) * squares - 0.5 * N * np.log(rho)


def ratios(Z: np.ndarray, squares: np.ndarray, state: State) -> np.ndarray:
    r"""$h + \eta$ of rows `[n, N]`, were they of class $k$, `[n, K]`."""
    c, g = state.centres, state.gamma
    own = 0.5 * g * (np.sum(c * c, axis=1) + state.unknown)
    return Z @ (g * c).T - own - burden(squares, state, Z.shape[1])[:, None]


def select(rows: Rows, state: State, *, hard: bool) -> Sums:
    """How much each row counts: one pass over the table. [dietrich1998, eqs. (24), (29)]"""
    Z, omega, (c, s, g, _, eta) = rows.Z, rows.omega, state
    p, total, gain = np.empty(len(Z)), np.zeros_like(c), 0.0
    threshold = burden(rows.squares, state, Z.shape[1]) + eta
    height = max(1, TILE // Z.shape[1])
    for k, (begin, end) in enumerate(itertools.pairwise(rows.ends)):
        own = 0.5 * g * (c[k] @ c[k] + s[k])
        for first in range(begin, end, height):
            t = slice(first, min(first + height, end))
            h = Z[t] @ (g * c[k]) - own - threshold[t]
            one = np.logaddexp(0.0, h)  # ln(1 + e^h)
            p[t] = omega[t] * (h > 0 if hard else np.exp(h - one))
            gain += float(omega[t] @ one)
            total[k] += p[t] @ Z[t]
    return Sums(p, np.add.reduceat(p, rows.ends[:-1]), total, float(p @ rows.squares), gain)


def centred(sums: Sums, state: State, free: Freedom) -> State:
    """The centres that belong to a selection. [dietrich1998, eqs. (25), (27), (28)]"""
    a = free.tau + state.gamma * sums.mass
    c = state.gamma * sums.total / a[:, None]
    return state._replace(centres=c, unknown=c.shape[1] / a if free.hard else np.zeros(len(a)))


def scaled(rows: Rows, sums: Sums, state: State, free: Freedom) -> State:
    """The most probable noise, spread and share of outliers, given the selection and its centres.

    Outliers are nowhere narrower than the others. The share is what it would be with one row more of each kind, so
    that neither is ever found impossible.
    """
    N, c = rows.Z.shape[1], state.centres
    mass, rest = float(sums.mass.sum()), float(np.sum(rows.omega - sums.p))
    around = sums.squares + float(
        np.sum(sums.mass * (np.sum(c * c, axis=1) + state.unknown)) - 2 * np.sum(c * sums.total)
    )
    beyond, tiny = float((rows.omega - sums.p) @ rows.squares), np.finfo(float).tiny
    least = NARROWEST * rows.variance
    near, far = max(around / max(N * mass, tiny), least), beyond / max(N * rest, tiny)
    v, rho = 1 / state.gamma, state.spread
    if free.gamma and free.spread and far > near:
        v, rho = near, far / near
    elif free.gamma:
        rho = 1.0 if free.spread else rho
        v = max((around + beyond / rho) / (N * (mass + rest)), least)
    elif free.spread:
        rho = max(far / v, 1.0)
    eta = float(np.log((rest + 1) / (mass + 1))) if free.eta else state.eta
    return State(c, state.unknown, 1 / v, rho, eta)


def energy(rows: Rows, sums: Sums, state: State, free: Freedom) -> float:
    r"""$\mathcal H$ of the centres or, for hard selection, of the selected set. [dietrich1998, eqs. (7), (10)]"""
    N, c = rows.Z.shape[1], state.centres
    if not free.hard:
        return 0.5 * free.tau * float(np.sum(c * c)) - sums.gain
    n, g = sums.mass + free.tau / state.gamma, state.gamma  # n = a / gamma, total = b / gamma
    each = 0.5 * N * np.log(n * g / free.tau) - 0.5 * g * np.sum(sums.total**2, axis=1) / n
    return float(np.sum(each) + sums.p @ (state.eta + burden(rows.squares, state, N)))


def level(rows: Rows, sums: Sums, state: State, free: Freedom) -> float:
    r"""The logarithm of the posterior, up to a constant: $-\mathcal H$ and what it costs if all rows were outliers."""
    N, every, g = rows.Z.shape[1], float(rows.omega.sum()), state.gamma / state.spread
    log_rest = -np.logaddexp(0.0, -state.eta)
    outliers = every * (log_rest + 0.5 * N * np.log(g)) - 0.5 * g * float(rows.omega @ rows.squares)
    share = 2 * log_rest - state.eta if free.eta else 0.0  # one row more of each kind
    return float(outliers + share) - energy(rows, sums, state, free)


class Climbed(NamedTuple):
    """Where EM came to."""

    state: State
    sums: Sums
    level: float
    passes: int
    converged: bool


def climb(rows: Rows, state: State, free: Freedom, *, accuracy: float, passes: int) -> Climbed:
    r"""EM until there seems to be little left to gain.

    Gains fall about geometrically, $\Delta_{t+1} = r \Delta_t$, which leaves $\Delta_t r/(1-r)$ to gain (Aitken); it
    stops when that is below `accuracy`, in units of the logarithm of a row's probability.
    """
    little, now, gain, t = accuracy * float(rows.omega.sum()), -np.inf, np.inf, 0
    while True:
        sums, t = select(rows, state, hard=free.hard), t + 1
        before, last, now = gain, now, level(rows, sums, state, free)
        gain = now - last
        converged = gain <= ROUNDING * abs(now) or (gain < before < np.inf and gain * gain < little * (before - gain))
        if converged or t == passes:
            return Climbed(state, sums, now, t, converged)
        state = scaled(rows, sums, centred(sums, state, free), free)


def _change(t: Any, n: float, m: np.ndarray, u: Any, squares: Any, price: Any, gamma: float) -> Any:
    """How the energy of a class changes when `t` rows z more (less, if negative) are selected; u = m.z.

    Here n = a/gamma is the number of selected rows, the prior counted as rows, and m = b/gamma their sum.
    """
    mm = float(m @ m)
    pull = mm / n - (mm + 2 * t * u + t**2 * squares) / (n + t)
    return 0.5 * gamma * pull + 0.5 * len(m) * np.log1p(t / n) + t * price


def descend(rows: Rows, sums: Sums, state: State, free: Freedom) -> tuple[Sums, int]:
    r"""Change single rows of a hard selection as long as that lowers its energy. [dietrich1998, eq. (10)]

    As a function of how many of some equal rows are selected the energy is concave, so what is worth while for one of
    them is for all: a row of weight $\omega$ changes as a whole if it would pay for one of $\omega$ equal rows.

    Returns:
        The selection, in which no single row is left to change, and how many rows were changed.
    """
    g, flips, p, total = state.gamma, 0, sums.p.copy(), sums.total.copy()
    price = state.eta + burden(rows.squares, state, rows.Z.shape[1])
    for k in range(len(total)):
        t = slice(rows.ends[k], rows.ends[k + 1])
        changed = _descend_class(rows.Z[t], rows.omega[t], rows.squares[t], price[t], p[t], g, free.tau)
        flips += changed
        total[k] = p[t] @ rows.Z[t] if changed else total[k]
    return Sums(p, np.add.reduceat(p, rows.ends[:-1]), total, float(p @ rows.squares), sums.gain), flips


def _descend_class(
    Z: np.ndarray, omega: np.ndarray, squares: np.ndarray, price: np.ndarray, p: np.ndarray, gamma: float, tau: float
) -> int:
    """Do it in one class, changing `p` in place: all rows are tried at once, those that would pay then one by one."""
    flips = 0
    while True:
        n, m = tau / gamma + float(p.sum()), p @ Z
        way = np.where(p > 0, -1.0, 1.0)
        one, whole = way * np.minimum(omega, 1.0), way * omega
        change = _change(one, n, m, Z @ m, squares, price, gamma)
        worth = -ROUNDING * (1 + np.abs(price) + gamma * float(m @ m) / n)
        before, order = flips, np.argsort(change, kind="stable")
        for i in order[(change < worth)[order]]:
            if _change(one[i], n, m, float(Z[i] @ m), squares[i], price[i], gamma) < worth[i]:
                n, m = n + float(whole[i]), m + whole[i] * Z[i]
                p[i], flips = max(whole[i], 0.0), flips + 1
        if flips == before:
            return flips
