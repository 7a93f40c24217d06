r"""Spherical classes among outliers: what is assumed, the E-step and the M-step.

An informative row of class $k$ is Gaussian about $c_k$ with variance $1/\gamma$ in each direction; an outlier is
Gaussian about 0, whatever its class, with variance $\rho/\gamma$; a share $\pi = 1/(1 + e^\eta)$ is informative. Each
centre has a Gaussian prior of precision $\tau$ in each direction. One class, rows multiplied by their labels,
$\rho = 1$ and $\tau = N$: that is the student of the paper, $c = J/\sqrt N$.

$$h = \gamma\, z \cdot c_k - \tfrac\gamma2 (|c_k|^2 + s_k) - \eta + \tfrac N2 \ln \rho
- \tfrac\gamma2 (1 - \tfrac1\rho) |z|^2$$

is the logarithm of how much more probable it is that a row $z$ is informative than that it is not; `weigh` turns it
into how much the row counts. Classes with covariances of their own (`shapes`) are spherical, too, each in units of its
own; outliers are spherical in units of theirs, so that $|z|^2/\rho$ is measured in these and $h$ has the logarithm of
the ratio of both volumes besides. All arrays have a leading axis of W worlds that share their rows, but for their first
components: a simulation learns at many $\eta$ on the same noise. A table has one world.
"""

from __future__ import annotations

import dataclasses
import functools
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from quenched.outliers.model import HardSelection, Hebb, Rule

TILE = 2**18
"""Numbers in a tile, two megabytes, that stays in the cache between the two products of a pass: smaller ones cost more
in calls than the cache saves."""

NARROWEST = 1e-6
"""No variance falls below this share of that of all rows: equal rows have none."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """The table about the centre of the outliers, the rows of a class one after the other."""

    Z: np.ndarray  # [n, N]
    omega: np.ndarray  # [n] weights
    ends: np.ndarray  # [K + 1] rows of class k are ends[k]:ends[k + 1]
    shift: np.ndarray | None = None  # [W, n] what each world adds to the first components
    outer: np.ndarray | None = None  # [n] |z|^2 in the units of the outliers; None: those of Z
    volume: Any = 0.0  # [n] the logarithm of the volume of the units of a row's class in those of the outliers

    @property
    def classes(self) -> list[slice]:
        """The rows of each class."""
        return [slice(*pair) for pair in pairwise(self.ends)]

    @functools.cached_property
    def squares(self) -> np.ndarray:
        """|z|^2, `[1, n]` or `[W, n]`."""
        V = np.zeros((1, 1)) if self.shift is None else self.shift
        return np.einsum("ni,ni->n", self.Z, self.Z) + V * (2 * self.Z[:, 0] + V)

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """|z|^2 in the units of the outliers, `[1, n]` or `[W, n]`."""
        return self.squares if self.outer is None else self.outer[None]

    @functools.cached_property
    def number(self) -> float:
        """Of the rows, by weight."""
        return float(self.omega.sum())

    @functools.cached_property
    def variance(self) -> np.ndarray:
        """Of all rows, in one direction, about the origin, as outliers see them, `[1]` or `[W]`."""
        return self.lengths @ self.omega / (self.number * self.Z.shape[1])

    def take(self, worlds: Any) -> Rows:
        """The rows of some of the worlds."""
        return self if self.shift is None else dataclasses.replace(self, shift=self.shift[worlds])

    def table(self, world: int, rows: slice) -> np.ndarray:
        """Some rows as one world has them."""
        if self.shift is None:
            return self.Z[rows]
        Z = self.Z[rows].copy()
        Z[:, 0] += self.shift[world, rows]
        return Z


class State(NamedTuple):
    """What is believed in each world."""

    centres: np.ndarray  # [W, K, N] c_k
    unknown: np.ndarray  # [W, K] s_k, zero for soft selection
    gamma: np.ndarray  # [W]
    spread: np.ndarray  # [W] rho
    eta: np.ndarray  # [W]


class Freedom(NamedTuple):
    """The precision of the prior, and what EM may change besides the centres."""

    tau: float
    gamma: bool = False
    spread: bool = False
    eta: bool = False


class Sums(NamedTuple):
    """How much each row counts, and sums over what counts."""

    p: np.ndarray  # [W, n] weights included
    mass: np.ndarray  # [W, K] sum p
    total: np.ndarray  # [W, K, N] sum p z
    squares: np.ndarray  # [W] sum p |z|^2, where it matters
    gain: np.ndarray  # [W] sum of what all rows gain; soft: sum ln(1 + e^h)


def weigh(rule: Rule, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much rows count, given the log-odds that they are informative, and their gain in log-probability."""
    if isinstance(rule, Hebb):
        return np.ones_like(h), h
    if isinstance(rule, HardSelection):
        return (h > 0).astype(float), np.maximum(h, 0)
    e = np.exp(-np.abs(h))
    return np.where(h > 0, 1.0, e) / (1 + e), np.maximum(h, 0) + np.log1p(e)


def burden(squares: Any, lengths: Any, gamma: Any, spread: Any, N: int) -> Any:
    """What rows pay for being called informative, since outliers are broader.

    Args:
        squares: $|z|^2$ in the units of its class.
        lengths: the same in the units of the outliers.
        gamma: inverse variance of the informative rows.
        spread: of the outliers, in units of that variance.
        N: number of columns.
    """
    return 0.5 * gamma * (squares - lengths / spread) - 0.5 * N * np.log(spread)


@dataclasses.dataclass(frozen=True)
class Classes:
    """The model of a table: its rows, what is to be found, and how rows are selected."""

    rows: Rows
    free: Freedom
    rule: Rule

    @property
    def hard(self) -> bool:
        """Whether the centres are averaged over, so that their variance counts."""
        return isinstance(self.rule, HardSelection)

    def take(self, worlds: Any) -> Classes:
        """The model of some of the worlds."""
        return dataclasses.replace(self, rows=self.rows.take(worlds))

    def price(self, state: State) -> np.ndarray:
        r"""What each row pays for being selected, $\eta$ included, `[W, n]`."""
        W, (n, N) = len(state.eta), self.rows.Z.shape
        each, rows = 0.0, self.rows
        if np.any(state.spread != 1) or rows.outer is not None:
            each = burden(rows.squares, rows.lengths, state.gamma[:, None], state.spread[:, None], N) + rows.volume
        return np.broadcast_to(each + state.eta[:, None], (W, n))

    def expect(self, state: State) -> Sums:
        """The E-step: how much each row counts, by one pass over the table. [dietrich1998, eqs. (24), (29)]"""
        Z, omega, shift = self.rows.Z, self.rows.omega, self.rows.shift
        (n, N), c, gc = Z.shape, state.centres, state.gamma[:, None, None] * state.centres
        own, price = 0.5 * ((gc * c).sum(2) + state.gamma[:, None] * state.unknown), self.price(state)
        p, total, gain = np.empty((len(c), n)), np.zeros_like(c), np.zeros(len(c))
        height = max(1, TILE // N)
        for k, rows in enumerate(self.rows.classes):
            for first in range(rows.start, rows.stop, height):
                t = slice(first, min(first + height, rows.stop))
                h = gc[:, k] @ Z[t].T - own[:, k, None] - price[:, t]
                if shift is not None:
                    h += gc[:, k, :1] * shift[:, t]
                weights, gains = weigh(self.rule, h)
                p[:, t], gain = omega[t] * weights, gain + gains @ omega[t]
                total[:, k] += p[:, t] @ Z[t]
                if shift is not None:
                    total[:, k, 0] += np.einsum("wn,wn->w", p[:, t], shift[:, t])
        return self.add_up(p, total, gain, state)

    def add_up(self, p: np.ndarray, total: np.ndarray, gain: np.ndarray, state: State) -> Sums:
        """The sums of a selection whose `total` is known."""
        squares = np.zeros(len(p))
        if any(self.free[1:]):
            squares = (p * self.rows.squares).sum(1)
        return Sums(p, np.add.reduceat(p, self.rows.ends[:-1], axis=1), total, squares, gain)

    def maximize(self, sums: Sums, state: State) -> State:
        """The M-step: the most probable centres and scales, given how much each row counts."""
        return self.rescale(sums, self.centre(sums, state))

    def centre(self, sums: Sums, state: State) -> State:
        """The centres that belong to a selection. [dietrich1998, eqs. (25), (27), (28)]"""
        a = self.precision(sums, state)
        c = (state.gamma[:, None] / a)[:, :, None] * sums.total
        return state._replace(centres=c, unknown=self.hard * c.shape[2] / a)

    def precision(self, sums: Sums, state: State) -> np.ndarray:
        """Of each centre, given the selection, `[W, K]`."""
        return self.free.tau + state.gamma[:, None] * sums.mass

    def rescale(self, sums: Sums, state: State) -> State:
        """The most probable noise, spread and share of outliers, given the selection and its centres.

        Outliers are nowhere narrower than the others. The share is what it would be with one row more of each kind, so
        that neither is ever found impossible.
        """
        _, free_gamma, free_spread, free_eta = self.free
        if not any(self.free[1:]):
            return state
        (W, _, N), c, tiny = state.centres.shape, state.centres, np.finfo(float).tiny
        left = self.rows.omega - sums.p
        mass, rest = sums.mass.sum(1), left.sum(1)
        length = (c * c).sum(2) + state.unknown
        around = (sums.mass * length - 2 * (c * sums.total).sum(2)).sum(1)
        around, beyond = around + sums.squares, (left * self.rows.lengths).sum(1)
        least = NARROWEST * self.rows.variance
        near, far = np.maximum(around / np.maximum(N * mass, tiny), least), beyond / np.maximum(N * rest, tiny)
        v, rho = 1 / state.gamma, state.spread
        if free_gamma:
            rho = np.ones(W) if free_spread else rho
            v = np.maximum((around + beyond / rho) / (N * (mass + rest)), least)
            apart = far > near if free_spread else np.zeros(W, bool)
            v, rho = np.where(apart, near, v), np.where(apart, far / near, rho)
        elif free_spread:
            rho = np.maximum(far / v, 1.0)
        eta = np.log((rest + 1) / (mass + 1)) if free_eta else state.eta
        return state._replace(gamma=1 / v, spread=rho, eta=eta)

    def energy(self, sums: Sums, state: State) -> np.ndarray:
        r"""$\mathcal H$ of the centres or, for hard selection, of the selected set. [dietrich1998, eqs. (7), (10)]"""
        tau, N = self.free.tau, state.centres.shape[2]
        if not self.hard:
            return 0.5 * tau * (state.centres**2).sum((1, 2)) - sums.gain
        a = self.precision(sums, state)
        each = 0.5 * N * np.log(a / tau) - 0.5 * state.gamma[:, None] ** 2 * (sums.total**2).sum(2) / a
        return each.sum(1) + (self.price(state) * sums.p).sum(1)

    def level(self, sums: Sums, state: State) -> np.ndarray:
        r"""The log-posterior up to a constant: $-\mathcal H$ and, if scales are free, what outliers cost."""
        if not any(self.free[1:]):
            return -self.energy(sums, state)
        rows, N, g = self.rows, self.rows.Z.shape[1], state.gamma / state.spread
        log_rest = -np.logaddexp(0.0, -state.eta)
        outliers = rows.number * (log_rest + 0.5 * N * (np.log(g) - g * rows.variance))
        share = 2 * log_rest - state.eta if self.free.eta else 0.0  # one row more of each kind
        return outliers + share - self.energy(sums, state)

    def vector(self, state: State) -> np.ndarray:
        """All that EM may change, as vectors `[W, M]`: the centres, and logarithms of the scales."""
        centres = state.centres.reshape(len(state.eta), -1)
        return np.column_stack([centres, np.log(state.gamma), np.log(state.spread), state.eta])

    def state(self, vector: np.ndarray, like: State) -> State:
        """The state of a vector; what is given is that of another state."""
        gamma, rho = np.exp(vector[:, -3]), np.exp(np.maximum(vector[:, -2], 0.0))
        return State(
            vector[:, :-3].reshape(like.centres.shape),
            like.unknown,
            np.minimum(gamma, 1 / (NARROWEST * self.rows.variance)) if self.free.gamma else like.gamma,
            rho if self.free.spread else like.spread,
            vector[:, -1],
        )

    def metric(self, sums: Sums, state: State) -> np.ndarray:
        """The curvature of the log-posterior if the selection is kept, in each component of a vector, `[W, M]`."""
        N, every, mass = state.centres.shape[2], self.rows.number, sums.mass.sum(1)
        rest, centres = np.maximum(every - mass, 0.0), np.repeat(self.precision(sums, state), N, axis=1)
        return np.column_stack([centres, np.full_like(mass, 0.5 * N * every), 0.5 * N * rest, mass * rest / every])
