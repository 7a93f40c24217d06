r"""A line with jumps, summed exactly over all places of jumps. [lemm1999, eqs. (519) to (522)]

Where a link is cut the line falls apart into two that know nothing of each other, so that the density of data and jumps
is a product over segments, $p(D, b) = p(b) \prod_s e^{\ell(s)}$, and all sums over the $2^{n-1}$ combinations are
products of a matrix $e^{\ell(a, b)}$, forwards and backwards.

Of a segment from $a$ to $b$ the precision is tridiagonal: $m + c_i$ at each point (the mass, and what the data know),
and $\lambda$ for each link. What the points to the left of $i$ say about $i$ is a precision $A_{ai}$ and a pull
$B_{ai}$,
$$P_{ai} = m + c_i + A_{ai} + \lambda , \quad A_{a, i+1} = \lambda - \lambda^2/P_{ai} , \quad
  B_{a, i+1} = \lambda (j_i + B_{ai})/P_{ai} ,$$
likewise to the right; with both the mean and the variance of each point follow, and from the left ones the determinant.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

MANY = 8
"""Numbers of jumps whose probability is computed; more are one case."""


@dataclasses.dataclass(frozen=True, eq=False)
class Line:
    """A line of points that can be cut.

    Attributes:
        link: $\\lambda$ times the volume: the precision of a difference between neighbours.
        mass: $m$ times the volume, at each point.
        mean: of the levels, at each point.
        known: $c_i$, what the data know about each point.
        pull: $c_i$ times what they say.
        price: what a jump costs.
        coupling: what two neighbouring links cost of which one is cut and one is not.
    """

    link: float
    mass: float
    mean: np.ndarray
    known: np.ndarray
    pull: np.ndarray
    price: float
    coupling: float = 0.0

    @property
    def points(self) -> int:
        """How many."""
        return len(self.known)


@dataclasses.dataclass(frozen=True, eq=False)
class Segmented:
    """All that is known about a line.

    Attributes:
        log_evidence: logarithm of the mean over all jumps of the density of the data, up to a term of the data alone.
        probability: of a jump at each link.
        switches: the most probable jumps, together.
        best: logarithm of their share of the posterior.
        counts: probability of 0, 1, 2, ... jumps; the last is that of more.
        mean: of each point, over all jumps.
        variance: likewise.
    """

    log_evidence: float
    probability: np.ndarray
    switches: np.ndarray
    best: float
    counts: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


def _sum(logs: np.ndarray) -> float:
    """The logarithm of a sum of exponentials."""
    top = logs.max()
    return top + np.log(np.sum(np.exp(logs - top))) if top > -np.inf else top


def segment(line: Line) -> Segmented:
    """Sum over all jumps."""
    n = line.points
    data, logs = _weighed(line)
    forward, backward, total = _sums(logs, line.price, _sum)
    norm = _sums(_prior(line), line.price, _sum, back=False)[2]
    jumps = np.exp(forward[1:n] + backward[1:n] - total - line.price)
    tops, _, highest = _sums(logs, line.price, np.max)
    mean, variance = _moments(line, data, logs, forward, backward, total)
    return Segmented(total - norm, np.clip(jumps, 0, 1), _best(logs, tops, line.price), highest - total,
                     _counts(logs, line.price, total), mean, variance)  # fmt: skip


def evidence(line: Line) -> float:
    """The logarithm of the evidence alone."""
    _, logs = _weighed(line)
    whole, alone = (_sums(part, line.price, _sum, back=False)[2] for part in (logs, _prior(line)))
    return whole - alone


def _weighed(line: Line) -> tuple[_Sweep, np.ndarray]:
    """What the data say, and the logarithm of what each segment contributes."""
    data = _Sweep(line, line.known, line.mass * line.mean + line.pull)
    alone = _Sweep(line, np.zeros(line.points), line.mass * line.mean)
    with np.errstate(invalid="ignore"):  # what is no segment
        logs = data.logs - alone.logs + _prior(line)
    return data, np.where(np.isnan(logs), -np.inf, logs)


class _Sweep:
    """Segments `[a, b]` of points from a to b - 1: what each side says, and logarithms of Gaussian integrals."""

    def __init__(self, line: Line, known: np.ndarray, push: np.ndarray):
        n, link = line.points, line.link
        own = line.mass + known
        self.own, self.push = own, push
        self.left = self._side(own, push, link)
        right = self._side(own[::-1], push[::-1], link)
        self.right = tuple(part[::-1, ::-1] for part in right)  # [last point, point]
        A, B = self.left
        inner, ends = own + A + link, own + A
        pull = push + B
        inside = 0.5 * (pull**2 / inner - np.log(inner))
        ending = 0.5 * (pull**2 / ends - np.log(ends))
        upper = np.triu(np.ones((n, n), bool))
        before = np.cumsum(np.where(upper, inside, 0.0), axis=1) - np.where(upper, inside, 0.0)
        self.logs = np.full((n + 1, n + 1), -np.inf)
        self.logs[:-1, 1:] = np.where(upper, before + ending, -np.inf)

    @staticmethod
    def _side(own: np.ndarray, push: np.ndarray, link: float) -> tuple[np.ndarray, np.ndarray]:
        """What the points from a to i - 1 say about i: precision and pull `[a, i]`."""
        n = len(own)
        A, B = np.zeros((n, n)), np.zeros((n, n))
        for i in range(n - 1):
            P = own[i] + A[: i + 1, i] + link
            A[: i + 1, i + 1] = link - link**2 / P
            B[: i + 1, i + 1] = link * (push[i] + B[: i + 1, i]) / P
        return A, B


def _prior(line: Line) -> np.ndarray:
    """Logarithms of what a segment has to pay for its neighbouring links that differ."""
    n = line.points
    a, b = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    differ = np.where(b - a >= 2, (a > 0).astype(float) + (b < n), 0.0)
    return np.where(b > a, -line.coupling * differ, -np.inf)


def _sums(logs: np.ndarray, price: float, add: Any, *, back: bool = True) -> tuple[np.ndarray, np.ndarray, float]:
    """Sums over all cuts of the points before and behind each place, and over all."""
    n = len(logs) - 1
    forward, backward = np.full(n + 1, -np.inf), np.full(n + 1, -np.inf)
    forward[0] = backward[n] = 0.0
    for b in range(1, n + 1):
        forward[b] = add(forward[:b] + logs[:b, b] - price * (np.arange(b) > 0))
    for a in range(n - 1, -1, -1) if back else ():
        backward[a] = add(backward[a + 1 :] + logs[a, a + 1 :] - price * (np.arange(a + 1, n + 1) < n))
    return forward, backward, float(forward[n])


def _best(logs: np.ndarray, tops: np.ndarray, price: float) -> np.ndarray:
    """The most probable jumps."""
    n = len(logs) - 1
    switches, b = np.zeros(n - 1, bool), n
    while b > 0:
        a = int(np.argmax(tops[:b] + logs[:b, b] - price * (np.arange(b) > 0)))
        if a > 0:
            switches[a - 1] = True
        b = a
    return switches


def _counts(logs: np.ndarray, price: float, total: float) -> np.ndarray:
    """The probability of each number of jumps."""
    n = len(logs) - 1
    now, found = logs[0].copy(), []
    for _ in range(min(MANY, n)):
        found.append(np.exp(now[n] - total))
        now = np.array([_sum(column) for column in (now[:, None] + logs - price).T])
    return np.array([*found, max(0.0, 1.0 - sum(found))])


def _moments(
    line: Line, data: _Sweep, logs: np.ndarray, forward: np.ndarray, backward: np.ndarray, total: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each point, over all segments that it may be in."""
    n = line.points
    places = np.arange(n + 1)
    shares = (forward[:, None] + logs + backward[None] - line.price * (places > 0)[:, None]
              - line.price * (places < n)[None] - total)  # fmt: skip
    shares = np.exp(shares)
    mean, variance = np.zeros(n), np.zeros(n)
    for i in range(n):
        share = shares[: i + 1, i + 1 :]
        precision = data.own[i] + data.left[0][: i + 1, i, None] + data.right[0][None, i:, i]
        middle = (data.push[i] + data.left[1][: i + 1, i, None] + data.right[1][None, i:, i]) / precision
        mean[i] = np.sum(share * middle)
        variance[i] = np.sum(share * (1 / precision + (middle - mean[i]) ** 2))
    return mean, variance
