r"""How many clusters? Gaussians by a criterion that finds too many, which are merged where no valley parts them.

Gaussians are added as long as the Bayesian information criterion falls, of several shapes the best; a skewed cluster
takes several. Then the two groups whose valley (`valleys`) is the least certain are merged, again and again. Lines and
intervals come from the other folds, in which the Gaussians are climbed again without the rows that are counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from quenched.core.types import InputError, Key, Outcome
from quenched.mixtures.learner.fit import Fitted, fit
from quenched.mixtures.learner.valleys import count, find_valley, judge
from quenched.mixtures.model import Diagonal, Full, Spherical

SHAPES = (Full(), Full(common=True), Diagonal(), Spherical(common=True))
"""Of Gaussians; the criterion chooses."""
PATIENCE = 2
"""Numbers of Gaussians in a row that do not lower the criterion before no more are tried."""
FOLDS = 5
"""In which rows are counted."""
RIVALS = 10
"""Random starts of each mixture."""


class Merge(NamedTuple):
    """Two groups that become one."""

    first: frozenset[int]  # components
    second: frozenset[int]
    p: float  # of no valley between them
    counts: np.ndarray  # [3] rows in the intervals
    rows: int  # in both groups


def criterion(fitted: Fitted, rule: Spherical, n: int) -> float:
    """The Bayesian information criterion, over two: the lower the better."""
    K, N = fitted.centres.shape
    each = N * (N + 1) // 2 if isinstance(rule, Full) else N if isinstance(rule, Diagonal) else 1
    free = K * N + each * (1 if rule.common else K) + K - 1
    return -n * fitted.log_likelihood + 0.5 * free * np.log(n)


def choose(Z: np.ndarray, most: int, key: Key | None) -> tuple[Fitted, Spherical]:
    """The mixture that the criterion prefers."""
    best: tuple[float, Any, Any] = (np.inf, None, None)
    for rule in SHAPES:
        least, since = np.inf, 0
        for K in range(1, most + 1):
            try:
                fitted = fit(rule, Z, components=K, key=key, rivals=RIVALS, moves=0)
            except InputError:  # no clusters are left whose rows differ by more than rounding
                if K == 1:
                    raise
                break
            value = criterion(fitted, rule, len(Z)) if fitted.outcome != Outcome.failed else np.inf
            since = 0 if value < least else since + 1
            least = min(least, value)
            if value < best[0]:
                best = value, fitted, rule
            if since == PATIENCE:
                break
    return best[1], best[2]


class Fold(NamedTuple):
    """Some rows, and the mixture of the others."""

    mixture: Fitted
    covariances: np.ndarray  # [K, N, N]
    train: int  # rows of the mixture
    rows: np.ndarray  # these
    log_p: np.ndarray  # [n, K] their log-densities


def divide(Z: np.ndarray, fitted: Fitted, rule: Spherical, rng: np.random.Generator) -> list[Fold]:
    """The folds, in each of which the mixture is climbed again."""
    fold, folds = rng.permutation(len(Z)) % FOLDS, []
    for k in range(FOLDS):
        train, test = Z[fold != k], Z[fold == k]
        again = fit(rule, train, components=len(fitted.weights), start=fitted)
        folds.append(Fold(again, again.covariances(), len(train), test, again.log_densities(test)))
    return folds


def sides(log_p: np.ndarray, groups: list[frozenset[int]]) -> np.ndarray:
    """The most probable group of each row `[n]`."""
    each = np.stack([np.logaddexp.reduce(log_p[:, sorted(group)], axis=1) for group in groups], axis=1)
    return each.argmax(axis=1)


def compare(folds: list[Fold], groups: list[frozenset[int]], a: int, b: int) -> tuple[float, np.ndarray, int]:
    """The p-value of no valley between two of the groups, rows in the intervals `[3]`, and in both groups."""
    counts, lesser, rows = [np.zeros(3, int)], [False], 0
    k = np.array(sorted(groups[a] | groups[b]))
    right = np.isin(k, sorted(groups[b]))
    for fold in folds:
        side = sides(fold.log_p, groups)
        mine = (side == a) | (side == b)
        rows += int(mine.sum())
        w = fold.mixture.weights[k]
        valley = find_valley(w, fold.mixture.centres[k], fold.covariances[k], right, fold.train * w.sum())
        if valley is not None:
            counts.append(count(valley, fold.rows[mine]))
            lesser.append(valley.lesser)
    return judge(np.array(counts), np.array(lesser)), np.sum(counts, axis=0), rows


def merge(folds: list[Fold], components: int) -> list[Merge]:
    """Merge groups one by one, those first between which a valley is the least certain."""
    groups, merges = [frozenset([k]) for k in range(components)], []
    known: dict[frozenset, tuple[float, np.ndarray, int]] = {}
    while len(groups) > 1:
        best: tuple[Any, ...] = (-1.0,)
        for a in range(len(groups)):
            for b in range(a + 1, len(groups)):
                pair = frozenset([groups[a], groups[b]])
                if pair not in known:
                    known[pair] = compare(folds, groups, a, b)
                if known[pair][0] > best[0]:
                    best = (*known[pair], a, b)
        p, counts, rows, a, b = best
        merges.append(Merge(groups[a], groups[b], p, counts, rows))
        groups = [g for k, g in enumerate(groups) if k not in (a, b)] + [groups[a] | groups[b]]
    return merges
