r"""The density of any number of columns as a tree of fields.

$p(x) = \prod_i p(x_i | x_{\text{parent}(i)}, \ldots)$: every column depends on one other by a field, and on those
before it linearly (see `quenched.fields.practice.nodes`). The tree is the one of most mutual information, of counts in
bins; a field is learned only along its edges, and an edge along which the evidence gains nothing is cut. Its root is
the one from which means of bins explain the most: $y$ may be a function of $x$ where $x$ is none of $y$.

Clusters are no tree. So beside one tree, mixtures of few are tried, one for each cluster of Gaussians in the scores of
the columns; rows have shares $w_{ik}$ of the clusters. The evidence of a mixture is its likelihood, less what the
evidence of every tree is below its own likelihood of these shares of rows,
$$\ln p(D) \approx \sum_i \ln \sum_k \pi_k p_k(x_i)
+ \sum_k \Bigl(\ln p_k(D^{w_k}) - \sum_i w_{ik} \ln p_k(x_i)\Bigr) ,$$
and that of the shares $\pi$ likewise. The most probable is kept.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import special

from quenched.fields.practice.density import Bounds
from quenched.fields.practice.nodes import (
    ALPHA,
    Node,
    Number,
    cut,
    information,
    learn_category,
    learn_number,
)
from quenched.fields.practice.rounding import step_of
from quenched.fields.practice.scores import Line

MOST = 8
"""Clusters at most."""
NEGLIGIBLE = 1e-3
"""Shares of a row in a cluster that are left out."""
ROWS = 5
"""Rows of the table for each column of each cluster."""
FEWEST = 2
"""Rows of a cluster for each of its columns, at least."""
HEAVY = 9.0
"""The fourth moment from which on clusters are looked for among scores; that of a Gaussian is 3."""
FURTHER = 0.8
"""A new centre has this share of the squared distances from all others below it: far out, but not the farthest row."""


@dataclasses.dataclass(frozen=True)
class Forest:
    """Columns, each given some before it.

    Attributes:
        nodes: in an order in which they can be drawn.
        information: mutual information of each pair of columns, of counts `[d, d]`.
    """

    nodes: list[Node]
    information: np.ndarray

    @property
    def log_evidence(self) -> float:
        """Of all columns."""
        return float(sum(node.log_evidence for node in self.nodes))

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Of the columns of numbers."""
        scores = np.zeros(rows.shape)
        for node in self.nodes:
            if isinstance(node, Number):
                scores[:, node.column] = node.line.score(rows[:, node.column])
        return scores

    def log_density(self, rows: np.ndarray) -> np.ndarray:
        """Of each row."""
        scores = self.scores(rows)
        return np.sum([node.log_density(rows, scores) for node in self.nodes], axis=0)

    def variance(self, rows: np.ndarray) -> np.ndarray:
        """Of the log-density of each row."""
        scores = self.scores(rows)
        return np.sum([node.variance(rows, scores) for node in self.nodes], axis=0)

    def sample(self, n: int, random: np.random.RandomState) -> np.ndarray:
        """New rows."""
        rows, scores = np.zeros((n, len(self.nodes))), np.zeros((n, len(self.nodes)))
        for node in self.nodes:
            node.draw(rows, scores, random)
        return rows


@dataclasses.dataclass(frozen=True)
class Trees:
    """A mixture of forests, often of one.

    Attributes:
        forests: one for each cluster.
        shares: of the clusters.
        log_evidence: logarithm of the probability of the rows.
        steps: to what the values of each column were rounded, 0 where they were not.
    """

    forests: list[Forest]
    shares: np.ndarray
    log_evidence: float
    steps: np.ndarray

    def log_density(self, rows: np.ndarray) -> np.ndarray:
        """Of each row."""
        return np.logaddexp.reduce(self._parts(rows), axis=0)

    def variance(self, rows: np.ndarray) -> np.ndarray:
        """Of the log-density of each row."""
        part = special.softmax(self._parts(rows), axis=0)
        each = np.stack([forest.variance(rows) for forest in self.forests])
        return np.sum(part**2 * each, axis=0)

    def sample(self, n: int, random: np.random.RandomState) -> np.ndarray:
        """New rows."""
        counts = random.multinomial(n, self.shares)
        rows = [forest.sample(k, random) for forest, k in zip(self.forests, counts, strict=True) if k]
        return np.concatenate(rows)[random.permutation(n)]

    def _parts(self, rows: np.ndarray) -> np.ndarray:
        """Log-densities of the clusters, with their shares `[clusters, n]`."""
        return np.stack([np.log(p) + f.log_density(rows) for p, f in zip(self.shares, self.forests, strict=True)])


def learn(
    rows: np.ndarray,
    weights: np.ndarray,
    levels: list[int],
    *,
    bounds: list[Bounds] | None = None,
    clusters: int | None = None,
) -> Trees:
    """The most probable tree, or mixture of trees.

    Args:
        rows: the table `[n, d]`, categories as codes.
        weights: how many equal rows each stands for, all positive.
        levels: categories of each column, 0 for numbers.
        bounds: of each column of numbers; by default none.
        clusters: how many trees; by default as many as are most probable.
    """
    rows, where = np.unique(rows, axis=0, return_inverse=True)  # an order that depends on what was seen alone
    weights = np.bincount(where.ravel(), weights)
    ends: list[Bounds] = [(None, None)] * len(levels) if bounds is None else bounds
    steps = [0.0 if k else step_of(x, weights) for x, k in zip(rows.T, levels, strict=True)]
    rows = np.column_stack([spread(x, step, pair) for x, step, pair in zip(rows.T, steps, ends, strict=True)])
    one = Trees([plant(rows, weights, levels, ends)], np.ones(1), 0.0, np.array(steps))
    one = dataclasses.replace(one, log_evidence=one.forests[0].log_evidence)
    numbers = [i for i, k in enumerate(levels) if not k]
    if clusters == 1 or not numbers:
        return one
    places = standardise(rows[:, numbers], one.forests[0].scores(rows)[:, numbers], weights)
    found = [one]
    W = gather(places, weights, MOST if clusters is None else clusters, exact=clusters is not None)
    if W.shape[1] > 1 and all(np.all(np.ptp(rows[w > NEGLIGIBLE][:, numbers], axis=0) > 0) for w in W.T):
        found.append(dataclasses.replace(mix(rows, weights, levels, W, ends), steps=one.steps))
    return max(found, key=lambda trees: trees.log_evidence) if clusters is None else found[-1]


def mix(rows: np.ndarray, weights: np.ndarray, levels: list[int], W: np.ndarray, bounds: list[Bounds]) -> Trees:
    """A tree for each cluster, of rows that have shares of them."""
    forests = []
    for w in W.T:
        there = w > NEGLIGIBLE
        forests.append(plant(rows[there], weights[there] * w[there], levels, bounds, simple=True))
    seen = weights @ W
    shares = (seen + ALPHA) / (seen + ALPHA).sum()
    labels = special.gammaln(len(seen) * ALPHA) - special.gammaln(seen.sum() + len(seen) * ALPHA)
    labels += np.sum(special.gammaln(seen + ALPHA)) - len(seen) * special.gammaln(ALPHA) - seen @ np.log(shares)
    labels += special.gammaln(len(seen) + 1)  # their names do not matter
    parts = np.stack([forest.log_density(rows) for forest in forests], axis=1)
    likelihood = weights @ special.logsumexp(np.log(shares) + parts, axis=1)
    occam = sum(forest.log_evidence for forest in forests) - np.sum(weights[:, None] * W * parts)
    return Trees(forests, shares, float(likelihood + occam + labels), np.zeros(len(levels)))


def plant(
    rows: np.ndarray, weights: np.ndarray, levels: list[int], bounds: list[Bounds], *, simple: bool = False
) -> Forest:
    """One tree."""
    d = rows.shape[1]
    lines = [None if levels[i] else Line.learn(rows[:, i], weights, simple=simple, bounds=bounds[i]) for i in range(d)]
    scores = np.zeros(rows.shape)
    codes = []
    for i, line in enumerate(lines):
        if line is not None:
            scores[:, i] = line.score(rows[:, i])
        codes.append(rows[:, i].astype(int) if line is None else cut(rows[:, i], weights))
    found = np.zeros((d, d))
    for i in range(d):
        for j in range(i):
            found[i, j] = found[j, i] = _dependence(i, j, codes, scores, weights, levels)
    found_by = [[_explained(codes[i], scores[:, j], weights) for j in range(d)] for i in range(d)]
    trees = [span(found, root) for root in range(d)]
    order, parents = max(trees, key=lambda t: sum(found_by[p][i] for i, p in enumerate(t[1]) if p is not None))
    nodes: list[Node] = []
    for place, i in enumerate(order):
        line = lines[i]
        if line is None:
            nodes.append(learn_category(i, parents[i], rows, scores, weights, levels))
        else:
            nodes.append(learn_number(i, parents[i], order[:place], line, rows, scores, weights, levels))
    return Forest(nodes, found)


def spread(x: np.ndarray, step: float, bounds: Bounds) -> np.ndarray:
    """Values on a lattice, spread evenly over the intervals that are rounded to them."""
    if not step:
        return x
    order = np.random.RandomState(0).permutation(len(x))
    order = order[np.argsort(x[order], kind="stable")]  # rows of one value, in an order that nothing else has
    first = np.append(True, np.diff(x[order]) > step / 2)
    start = np.flatnonzero(first)
    counts = np.diff(np.append(start, len(x)))
    place = (np.arange(len(x)) - np.repeat(start, counts) + 0.5) / np.repeat(counts, counts)
    found = np.empty(len(x))
    found[order] = x[order] + step * (place - 0.5)
    low, high = (end if end is not None else far for end, far in zip(bounds, (-np.inf, np.inf), strict=True))
    return np.where((found < low) | (found > high), 2 * x - found, found)  # an edge is rounded to from one side


def _dependence(
    i: int, j: int, codes: list[np.ndarray], scores: np.ndarray, weights: np.ndarray, levels: list[int]
) -> float:
    """Mutual information of two columns: that of counts, or of Gaussians, whichever is larger."""
    found = information(codes[i], codes[j], weights)[0]
    if levels[i] or levels[j]:
        return max(found, 0.0)
    a, b = scores[:, i], scores[:, j]
    n = weights.sum()
    moments = [weights @ a / n, weights @ b / n]
    a, b = a - moments[0], b - moments[1]
    r2 = min((weights @ (a * b)) ** 2 / ((weights @ a**2) * (weights @ b**2)), 1 - 1e-9)
    return max(found, -0.5 * float(np.log1p(-r2)) - 0.5 / n, 0.0)


def _explained(codes: np.ndarray, z: np.ndarray, weights: np.ndarray) -> float:
    """What the mean in each bin of another column takes from the logarithm of the deviation of a score."""
    n = np.bincount(codes, weights) + 1e-9
    mean = np.bincount(codes, weights * z) / n
    total = weights @ (z - weights @ z / weights.sum()) ** 2 + 1e-9
    return -0.5 * float(np.log(max(weights @ (z - mean[codes]) ** 2 / total, 1e-9)))


def span(information: np.ndarray, root: int) -> tuple[list[int], list[int | None]]:
    """An order of columns, and the parent of each, in the tree of most information with some root."""
    d = len(information)
    order, parents = [root], [None] * d
    near, best = np.full(d, root), information[root].copy()
    best[root] = -np.inf
    for _ in range(d - 1):
        i = int(np.argmax(best))
        order.append(i)
        parents[i] = int(near[i])  # pyright: ignore[reportArgumentType, reportCallIssue]
        best[i] = -np.inf
        closer = np.isfinite(best) & (information[i] > best)
        near[closer], best[closer] = i, information[i][closer]
    return order, parents  # pyright: ignore[reportReturnType]


def standardise(x: np.ndarray, z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Columns in units of their deviations; those with heavy tails as scores."""
    u = x - weights @ x / weights.sum()
    u = u / np.sqrt(weights @ u**2 / weights.sum())
    return np.where(weights @ u**4 / weights.sum() > HEAVY, z, u)


def gather(z: np.ndarray, weights: np.ndarray, most: int, *, exact: bool = False) -> np.ndarray:
    """Shares of the rows in clusters `[n, k]`: Gaussians with full covariances, as many as the BIC says."""
    n, d = weights.sum(), z.shape[1]
    best, least, worse = np.ones((len(z), 1)), np.inf, 0
    for k in [most] if exact else range(1, most + 1):
        if n < ROWS * k * (d + 1):
            break
        likelihood, W = max(
            (_gaussians(z, weights, k, outside) for outside in (False, True)[: min(k, 2)]), key=lambda f: f[0]
        )
        bic = -2 * likelihood + (k * (d + 1) * (d + 2) / 2 - 1) * np.log(n)
        if bic < least and (weights @ W).min() >= FEWEST * (d + 1):
            best, least, worse = W, bic, 0
        else:
            worse += 1
        if worse == 2:
            break
    return best


def _gaussians(z: np.ndarray, weights: np.ndarray, k: int, outside: bool) -> tuple[float, np.ndarray]:
    """Expectation and maximisation from rows far apart: likelihood and shares."""
    n, d = z.shape
    middle = weights @ z / weights.sum()
    apart = np.sum((z - middle) ** 2, axis=1)
    centres = z[[int(np.argmax(apart) if outside else np.argmin(apart))]]
    for _ in range(k - 1):
        far = np.min(np.sum((z[:, None] - centres) ** 2, axis=2), axis=1)
        order = np.argsort(far, kind="stable")
        total = np.cumsum((weights * far)[order])
        centres = np.concatenate([centres, z[[order[np.searchsorted(total, FURTHER * total[-1])]]]])
    near = np.zeros(n, int)
    for _ in range(10):
        near = np.argmin(np.sum((z[:, None] - centres) ** 2, axis=2), axis=1)
        centres = np.stack([np.average(z[near == j], axis=0, weights=weights[near == j]) if np.any(near == j) else c
                            for j, c in enumerate(centres)])  # fmt: skip
    W, before, likelihood = np.eye(k)[near], -np.inf, -np.inf
    for _ in range(200):
        logs = np.empty((n, k))
        for j in range(k):
            w = weights * W[:, j]
            total = w.sum() + 1e-9
            mean = w @ z / total
            C = (z - mean).T @ (w[:, None] * (z - mean)) / total + 1e-4 * np.eye(d)
            L = np.linalg.cholesky(C)
            off = np.linalg.solve(L, (z - mean).T)
            logs[:, j] = np.log(total / weights.sum()) - 0.5 * np.sum(off**2, axis=0) - np.sum(np.log(np.diag(L)))
        top = np.logaddexp.reduce(logs, axis=1)
        W, likelihood = np.exp(logs - top[:, None]), float(weights @ top) - 0.5 * weights.sum() * d * np.log(2 * np.pi)
        if likelihood - before < 1e-4 * weights.sum():
            break
        before = likelihood
    return likelihood, W
