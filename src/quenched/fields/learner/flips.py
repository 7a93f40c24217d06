r"""Switches of a Gaussian regression, one by one: the field is integrated out exactly at every step.

With the precision $A = v K(b) + C$ and the pull $j$ of prior and data, and $A_0, j_0$ of the prior alone,
$$\ln p(D | b) = \tfrac12 (j, A^{-1} j) - \tfrac12 \ln\det A - \tfrac12 (j_0, A_0^{-1} j_0) + \tfrac12 \ln\det A_0$$
up to a term of the data. A switch changes both precisions by two rows of filters, so that its worth follows from a
matrix of two rows and columns, and the inverses from a change of rank two.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from quenched.fields.model.switches import Switches

CLEAN = 1e-9
"""At temperature zero a switch is turned if that gains more than this."""
MOST = 30
"""Domains that are turned as a whole, the smallest."""
CALM = 50
"""Sweeps at temperature zero at most."""


@dataclasses.dataclass(frozen=True, eq=False)
class Sampled:
    """Switches that were met.

    Attributes:
        switches: the best of all.
        log_density: logarithm of the density of data and switches there, up to a constant.
        probability: of each switch.
        counts: how often 0, 1, 2, ... were on.
        mean: of the field at each point, flat.
        variance: likewise.
    """

    switches: np.ndarray
    log_density: float
    probability: np.ndarray
    counts: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


class _Side:
    """A Gaussian with a precision that switches change."""

    def __init__(self, A: np.ndarray, j: np.ndarray):
        self.C, self.j = np.linalg.inv(A), j
        sign, self.log_det = np.linalg.slogdet(A)
        del sign

    @property
    def score(self) -> float:
        return 0.5 * float(self.j @ self.C @ self.j) - 0.5 * self.log_det

    def gain(self, at: np.ndarray, U: np.ndarray, signs: np.ndarray, push: np.ndarray) -> tuple[float, Any]:
        """What a change by rows `U` at the points `at` adds to the score."""
        CU = self.C[:, at] @ U
        G, a = U.T @ CU[at], U.T @ (self.C[at] @ self.j)
        q = a + G @ push
        M = np.diag(1 / signs) + G
        _, log_det = np.linalg.slogdet(np.eye(len(signs)) + signs[:, None] * G)
        inner = np.linalg.solve(M, np.column_stack([q, CU.T]))
        gain = 0.5 * float(2 * push @ a + push @ G @ push - q @ inner[:, 0]) - 0.5 * log_det
        return gain, (at, U, push, CU, inner[:, 1:], log_det)

    def move(self, change: Any) -> None:
        at, U, push, CU, inner, log_det = change
        self.C = self.C - CU @ inner
        self.j = self.j.copy()
        self.j[at] += U @ push
        self.log_det += log_det


class _Chain:
    """Switches with the field integrated out."""

    def __init__(self, prior: Switches, known: np.ndarray, pull: np.ndarray, b: np.ndarray):
        self.prior, self.known, self.pull, self.b = prior, known, pull, b.copy()
        cell = prior.grid.cell
        self.rows = []
        for first, second, s, t in zip(prior.first, prior.second, prior.first_target, prior.second_target, strict=True):
            at = np.flatnonzero((first != 0) | (second != 0))
            keep = np.array([np.any(first != 0), np.any(second != 0)])
            U = np.stack([first[at], second[at]], axis=1)[:, keep]
            self.rows.append((at, U, cell * np.array([-1.0, 1.0])[keep], np.array([s, t])[keep]))
        self.near = [[] for _ in self.b]
        for i, k in prior.pairs:
            self.near[i].append(int(k))
            self.near[k].append(int(i))
        self.clean()

    def clean(self) -> None:
        held, cell = self.prior.hold(self.b), self.prior.grid.cell
        M = cell * held.operator.matrix
        j = M @ np.asarray(held.mean).ravel()
        self.alone, self.data = _Side(M, j), _Side(M + self.known, j + self.pull)

    def look(self, x: int) -> tuple[float, Any, Any]:
        """What turning a switch adds to the log-density."""
        at, U, signs, targets = self.rows[x]
        turn = 1.0 if self.b[x] == 0 else -1.0
        signs = turn * signs
        here, data = self.data.gain(at, U, signs, signs * targets)
        there, alone = self.alone.gain(at, U, signs, signs * targets)
        others = self.b[self.near[x]] if self.near[x] else np.zeros(0)
        differ = turn * float(np.sum(1 - 2 * others))
        return here - there - turn * self.prior.price - self.prior.coupling * differ, data, alone

    def turn(self, x: int, data: Any, alone: Any) -> None:
        self.data.move(data)
        self.alone.move(alone)
        self.b[x] = 1.0 - self.b[x]

    @property
    def log_density(self) -> float:
        return self.data.score - self.alone.score - self.prior.price_of(self.b)


def sample(
    prior: Switches, known: np.ndarray, pull: np.ndarray, *, sweeps: int, samples: int, hot: float, seed: int
) -> Sampled:
    """Cool down to temperature 1, draw samples there, and cool on to the best.

    Args:
        prior: the switches.
        known: what the data know, a matrix.
        pull: where they pull.
        sweeps: from `hot` to 1.
        samples: sweeps at temperature 1 of which means are taken.
        hot: the first temperature.
        seed: of the random numbers.
    """
    random = np.random.default_rng(seed)
    chain = _Chain(prior, known, pull, np.zeros(len(prior.first)))
    probability, mean, square = np.zeros(len(chain.b)), np.zeros(len(known)), np.zeros(len(known))
    counts = np.zeros(len(chain.b) + 1)
    best, top = chain.b.copy(), chain.log_density
    for sweep, temperature in enumerate([*np.geomspace(hot, 1.0, sweeps), *np.ones(samples)]):
        for x in random.permutation(len(chain.b)):
            gain, data, alone = chain.look(int(x))
            chance = 1 / (1 + np.exp(-np.clip(gain / temperature, -700, 700)))
            if sweep >= sweeps:
                probability[x] += chance if chain.b[x] == 0 else 1 - chance
            if random.random() < chance:
                chain.turn(int(x), data, alone)
        chain.clean()
        if chain.log_density > top:
            best, top = chain.b.copy(), chain.log_density
        if sweep >= sweeps:
            middle = chain.data.C @ chain.data.j
            mean, square = mean + middle, square + middle**2 + np.diag(chain.data.C)
            counts[int(chain.b.sum())] += 1
    chain = _settle(_Chain(prior, known, pull, best))
    mean = mean / samples
    return Sampled(chain.b > 0, chain.log_density, probability / samples, counts / samples, mean,
                   np.maximum(square / samples - mean**2, 0.0))  # fmt: skip


def _settle(chain: _Chain) -> _Chain:
    """Turn switches, and whole domains of neighbours that are alike, as long as something is gained."""
    for _ in range(CALM):
        turned = False
        for x in range(len(chain.b)):
            gain, data, alone = chain.look(x)
            if gain > CLEAN:
                chain.turn(x, data, alone)
                turned = True
        chain.clean()
        for domain in _domains(chain):
            other = _Chain(chain.prior, chain.known, chain.pull, np.where(domain, 1.0 - chain.b, chain.b))
            if other.log_density > chain.log_density + CLEAN:
                chain, turned = other, True
        if not turned:
            break
    return chain


def _domains(chain: _Chain) -> list[np.ndarray]:
    """Switches that hang together and are alike, if neighbours like to be alike."""
    if chain.prior.coupling <= 0:
        return []
    i, k = chain.prior.pairs[chain.b[chain.prior.pairs[:, 0]] == chain.b[chain.prior.pairs[:, 1]]].T
    size = len(chain.b)
    count, label = csgraph.connected_components(sparse.coo_array((np.ones(len(i)), (i, k)), shape=(size, size)))
    sizes = np.bincount(label, minlength=count)
    return [label == one for one in np.argsort(sizes)[:MOST] if 1 < sizes[one] < size]
