r"""Mixtures of few Gaussians as templates of a density. [lemm1999, section 4.4]

$P_\theta(x) \propto \sum_k w_k\, \mathcal N(x; m_k, s_k^2)$ on the points of an axis, normalised there, so that a
support that ends is no obstacle. The likelihood of counted rows is maximised by scoring, Newton's method with Fisher's
information $F = n\, \mathrm{Cov}_P(\partial_\theta \ln P)$, begun by a few steps of expectation and maximisation. One
component after the other is added, where the rows exceed most what is expected.

About the maximum the posterior of $\theta$ is Gaussian with the covariance $F^{-1}$, and with the prior of unit
information the evidence is $\ln p(x|\theta) - \tfrac d2 \ln n$ for $d$ free parameters: a template is compared on the
same terms with a smooth field of infinite strength, the exponential of a polynomial.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

WINDOWS = (0.05, 0.15, 0.5)
"""Half widths of the windows in which counts are compared with what is expected, as shares of the rows' deviation."""
EXPECTED = 8
"""Steps of expectation and maximisation with which every candidate begins."""
SCORED, ENOUGH = 60, 1e-5
"""Steps of scoring at most; and what a step must gain, in nats, for another to be made."""
NARROW = 0.7
"""The least width of a component, as a share of the spacing."""
SINGULAR = 1e-9
"""Directions of which the information is below this share of the largest change nothing."""


@dataclasses.dataclass(frozen=True)
class Template:
    r"""A mixture of Gaussians on the points of an axis.

    Attributes:
        shares: $w_k$.
        centres: $m_k$.
        widths: $s_k$.
        log_density: $\ln P$ at the points, normalised.
        likelihood: the logarithm of that of the rows.
        slopes: $\partial_\theta \ln P$ at the points `[points, 3 k]`, of mean zero, by shares, centres and widths.
        information: $F / n$.
    """

    shares: np.ndarray
    centres: np.ndarray
    widths: np.ndarray
    log_density: np.ndarray
    likelihood: float
    slopes: np.ndarray
    information: np.ndarray

    def variance(self, rows: float) -> np.ndarray:
        r"""Of $\ln P$ at the points, given the number of rows."""
        values, vectors = self.directions
        return np.sum((self.slopes @ (vectors / np.sqrt(values))) ** 2, axis=1) / rows

    @property
    def directions(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors of the information, without what changes nothing: the sum of the shares."""
        values, vectors = np.linalg.eigh(self.information)
        kept = values > SINGULAR * values[-1]
        return values[kept], vectors[:, kept]

    @property
    def freedom(self) -> int:
        """How many parameters are free."""
        return 3 * len(self.shares) - 1


@dataclasses.dataclass(frozen=True)
class Rows:
    """Counted rows: places, integrals of the hats, counts, and the least width."""

    x: np.ndarray
    weights: np.ndarray
    counts: np.ndarray
    least: float

    def look(self, shares: np.ndarray, centres: np.ndarray, widths: np.ndarray) -> tuple[Template, np.ndarray]:
        """A template, and the share of each component at each point."""
        z = (self.x[:, None] - centres) / widths
        logs = np.log(shares / widths) - 0.5 * z**2
        top = logs.max(axis=1, keepdims=True)
        parts = np.exp(logs - top)
        total = parts.sum(axis=1, keepdims=True)
        parts /= total
        g = np.log(total[:, 0]) + top[:, 0]
        with np.errstate(over="ignore"):
            g = g - np.log(self.weights @ np.exp(g - g.max())) - g.max()
        slopes = np.concatenate([parts, parts * z, parts * (z**2 - 1)], axis=1)  # by ln w, m/s and ln s
        mass = self.weights * np.exp(g)
        slopes = slopes - mass @ slopes
        information = (slopes.T * mass) @ slopes
        return Template(shares, centres, widths, g, float(self.counts @ g), slopes, information), parts

    def expect(self, shares: np.ndarray, centres: np.ndarray, widths: np.ndarray, steps: int) -> Template:
        """Expectation and maximisation, as if no support ended."""
        at = self.x[:, None]
        for _ in range(steps):
            _, parts = self.look(shares, centres, widths)
            R = self.counts[:, None] * parts
            mine = R.sum(axis=0) + 1e-9
            shares, centres = mine / mine.sum(), (R * at).sum(axis=0) / mine
            widths = np.sqrt((R * (at - centres) ** 2).sum(axis=0) / mine + self.least**2)
        return self.look(shares, centres, widths)[0]

    def score(self, found: Template) -> Template:
        """The maximum of the likelihood near a template, by scoring."""
        n, k = self.counts.sum(), len(found.shares)
        for _ in range(SCORED):
            values, vectors = found.directions
            along = vectors.T @ (self.counts @ found.slopes)
            gain, step = float(along @ (along / values)) / n, vectors @ (along / values) / n
            step = step * min(1.0, 1.0 / max(float(np.max(np.abs(step))), 1e-300))
            if gain < ENOUGH:
                break
            t = 1.0
            while True:
                shares = found.shares * np.exp(t * step[:k])
                widths = np.maximum(found.widths * np.exp(t * step[2 * k :]), self.least)
                tried, _ = self.look(shares / shares.sum(), found.centres + t * found.widths * step[k : 2 * k], widths)
                if tried.likelihood > found.likelihood:
                    break
                t /= 2
                if t < 1e-4:
                    return found
            found = tried
        return found


def templates(x: np.ndarray, weights: np.ndarray, counts: np.ndarray, most: int) -> Iterator[Template]:
    """Templates of one, two, ... components."""
    n = counts.sum()
    centre = counts @ x / n
    deviation = float(np.sqrt(counts @ (x - centre) ** 2 / n))
    rows = Rows(x, weights, counts, NARROW * float(np.min(np.diff(x))))
    found = rows.score(rows.expect(np.ones(1), np.array([centre]), np.array([deviation]), 1))
    yield found
    for _ in range(most - 1):
        candidates = [rows.expect(*start, EXPECTED) for start in _starts(rows, found, deviation)]
        found = rows.score(max(candidates, key=lambda one: one.likelihood))
        yield found


def _starts(rows: Rows, found: Template, deviation: float) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Mixtures with one component more: where rows are too many, or the largest one split."""
    n, x, w, m, s = rows.counts.sum(), rows.x, found.shares, found.centres, found.widths
    seen, expected = np.cumsum(rows.counts), np.cumsum(n * rows.weights * np.exp(found.log_density))
    for window in WINDOWS:
        half = max(window * deviation, 1.5 * rows.least)
        low, high = np.searchsorted(x, x - half), np.searchsorted(x, x + half) - 1
        excess, wanted = seen[high] - seen[low] - expected[high] + expected[low], expected[high] - expected[low] + 1
        j = int(np.argmax(excess / np.sqrt(wanted)))
        share = float(np.clip(excess[j] / n, 1.5 / n, 0.5))
        yield np.append(w * (1 - share), share), np.append(m, x[j]), np.append(s, half / 1.5)
    j = int(np.argmax(w * s))
    shift = np.where(np.arange(len(w)) == j, 0.7, 0.0)
    half = np.where(np.arange(len(w)) == j, 0.5, 1.0)
    yield (
        np.append(half * w, w[j] / 2),
        np.append(m - shift * s, m[j] + 0.7 * s[j]),
        np.append(np.where(half < 1, 0.7, 1) * s, 0.7 * s[j]),
    )
