"""The verb `find_clusters`: how many clusters there are, which splits are real, and what it takes to see the others."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.types import InputError, Key
from quenched.mixtures.learner import Fitted
from quenched.mixtures.learner.gains import judge_gain
from quenched.mixtures.learner.merging import FOLDS, Merge, choose, divide, merge
from quenched.mixtures.learner.valleys import moments
from quenched.mixtures.theory.rows import rows_needed

MOST_ROWS = 5000
"""On which clusters are sought; of larger tables so many are drawn."""
FEWEST = 5
"""Rows for each Gaussian, at least."""
LEAST = 3
"""Rows below which not even one Gaussian is known."""


@dataclasses.dataclass(frozen=True, eq=False)
class FittedClusters:
    """The clusters of a table.

    Attributes:
        count: how many.
        labels: the cluster of each row, the largest first `[n]`.
        probabilities: of each cluster for each row `[n, count]`.
        shares: of the rows, of each cluster `[count]`.
        splits: the tree (see `find_clusters`), a dataset; `quenched.plot` draws it.
        mixture: the Gaussians, in columns of unit variance about 0; a cluster may need several.
        groups: the Gaussians of each cluster.
        varies: the columns that vary, in which the Gaussians are `[N]`.
        mean: of each of these columns.
        unit: the standard deviation of each of them.
    """

    count: int
    labels: np.ndarray
    probabilities: np.ndarray
    shares: np.ndarray
    splits: xr.Dataset
    mixture: Fitted
    groups: tuple[tuple[int, ...], ...]
    varies: np.ndarray
    mean: np.ndarray
    unit: np.ndarray

    def log_densities(self, X: np.ndarray) -> np.ndarray:
        """The log-density of each cluster, times its share, at rows `[n, count]` in the units of the data."""
        log_p = self.mixture.log_densities((X[:, self.varies] - self.mean) / self.unit) - np.sum(np.log(self.unit))
        return _gather(log_p, self.groups)


def _gather(log_p: np.ndarray, groups: Any) -> np.ndarray:
    return np.stack([np.logaddexp.reduce(log_p[:, list(group)], axis=1) for group in groups], axis=1)


def spread_ties(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows with rounded values spread evenly over what is rounded to them: steps of a scale are no valleys."""
    spread = X.copy()
    for x, out in zip(X.T, spread.T, strict=True):
        values, place, times = np.unique(x, return_inverse=True, return_counts=True)
        if len(values) > 1 and len(values) < len(x):
            middle = (values[1:] + values[:-1]) / 2
            ends = np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]])
            tied = times[place] > 1
            low, high = ends[:-1][place], ends[1:][place]
            out[tied] = (low + (high - low) * rng.uniform(size=len(x)))[tied]
    return spread


def _measure(mixture: Fitted, first: frozenset[int], second: frozenset[int]) -> tuple[float, float, float]:
    """Mahalanobis's distance of two groups of Gaussians, and the share of each."""
    parts, full = [sorted(first), sorted(second)], mixture.covariances()
    shares = [float(mixture.weights[k].sum()) for k in parts]
    (one, left), (two, right) = (moments(mixture.weights[k], mixture.centres[k], full[k]) for k in parts)
    pooled = (shares[0] * left + shares[1] * right) / sum(shares)
    square = (two - one) @ np.linalg.lstsq(pooled, two - one, rcond=1e-10)[0]
    return float(np.sqrt(max(square, 0.0))), shares[0], shares[1]


def _compare(Z: np.ndarray, mixture: Fitted, merges: list[Merge], draws: int) -> dict[str, tuple[str, np.ndarray]]:
    """For each split, from all rows down, the p-value of one Gaussian for both halves; none if not asked."""
    if not draws:
        return {}
    whose = mixture.log_densities(Z).argmax(axis=1)
    mine = (np.isin(whose, sorted(one.first | one.second)) for one in reversed(merges))
    return {"p_gaussian": ("split", np.array([judge_gain(Z[rows], draws) for rows in mine], float))}


def _tabulate(
    mixture: Fitted, merges: list[Merge], groups: Any, level: float, size: int, more: dict[str, Any]
) -> xr.Dataset:
    """The tree of splits, from all rows down: the merges in reverse order."""
    seen = len(groups) - 1
    N, rows = mixture.centres.shape[1], []
    nodes = {frozenset(range(len(mixture.weights))): 0}
    for place, one in enumerate(reversed(merges)):
        parent = nodes[one.first | one.second]
        nodes |= {one.first: 1 + 2 * place, one.second: 2 + 2 * place}
        apart, *shares = _measure(mixture, one.first, one.second)
        wanted = rows_needed(apart, columns=N, shares=(shares[0], shares[1]), level=level) if apart > 0 else np.inf
        rows.append((parent, (nodes[one.first], nodes[one.second]), one.p, place < seen, apart, wanted, one.counts))
    share = np.array([mixture.weights[sorted(group)].sum() for group in nodes])[np.argsort(list(nodes.values()))]
    parents, into, p, real, apart, wanted, counts = zip(*rows, strict=True) if rows else ((),) * 7
    return xr.Dataset(
        {
            "cluster": ("split", np.array(parents, int)),
            "into": (("split", "half"), np.array(into, int).reshape(-1, 2)),
            "p": ("split", np.array(p, float)),
            **more,
            "seen": ("split", np.array(real, bool)),
            "separation": ("split", np.array(apart, float)),
            "rows_needed": ("split", np.array(wanted, float)),
            "counts": (("split", "interval"), np.array(counts, int).reshape(-1, 3)),
            "share": ("node", share),
            "leaf": ("component", np.array([nodes[frozenset(group)] for group in groups])),
        },
        coords={"interval": ["left", "middle", "right"]},
        attrs={"science": "mixtures", "source": "clusters", "rows": size, "level": level},
    )


def find_clusters(
    data: Any, *, components: int = 10, level: float = 0.05, draws: int = 0, key: Key | None = None
) -> FittedClusters:
    r"""Find the clusters of a table, with a p-value for each split.

    A mixture of Gaussians, of the number and the shape that the Bayesian information criterion prefers, describes the
    density; a cluster that is skewed or curved takes several. Two of them are one cluster unless there is a valley
    between them: in rows that neither the Gaussians nor the line through both have seen, an interval in between holds
    significantly fewer rows than intervals of the same length on both sides. Clusters need not be Gaussian; they have
    one peak. Columns are standardised, and ties spread over what is rounded to them.

    Args:
        data: rows `[n, N]`.
        components: how many Gaussians at most.
        level: the p-value below which a split is real.
        draws: of one Gaussian, with which the rows of each split are compared for `p_gaussian`; 0 for none.
        key: a JAX key, for the folds and for random starts; `jax.random.key(0)` by default.

    Returns:
        Labels, probabilities, and `splits`: the `cluster` (a node of the tree; 0 is all rows) that splits `into` two
        others, `p` of no valley between them, `p_gaussian`, if `draws` were asked for, of their rows being one Gaussian
        with any covariance, whether it is `seen` as a split of clusters (by `p`), the `separation` of the two
        in standard deviations, `rows_needed` to see such a split in half of all samples if both were Gaussian, and the
        `counts` of rows in the three intervals; the `share` of the rows in each `node`, and
        the node that is the `leaf` of each cluster.

    Raises:
        InputError: for data that have no clusters, in one sentence.

    Examples:
        >>> import numpy as np
        >>> from quenched import mixtures
        >>> rows = np.random.default_rng(0).exponential(size=(300, 2))  # skewed columns, but one cluster
        >>> mixtures.find_clusters(rows).count, mixtures.find_clusters(np.vstack([rows, rows + 6])).count
        (1, 2)
    """
    components = checks.whole("components", components, least=1)
    checks.inside("level", checks.number("level", level), 0, 1)
    draws = checks.whole("draws", draws, least=0)
    X, _ = checks.table(data, None)
    key = jax.random.key(0) if key is None else checks.key(key)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    mean, unit = X.mean(axis=0), X.std(axis=0)
    varies = unit > 1e-12 * np.abs(mean)
    if not varies.any():
        raise InputError(f"Argument `data` must hold different rows, but all {len(X)} are the same.")
    if len(X) < LEAST:
        raise InputError(f"Argument `data` must hold at least {LEAST} rows, but it has {len(X)}.")
    unit = np.where(varies, unit, 1.0)
    Z = np.where(varies, (X - mean) / unit, 0.0)
    drawn = np.sort(rng.permutation(len(Z))[:MOST_ROWS])
    Y = spread_ties(Z[drawn], rng)
    most = max(1, min(components, len(Y) // FEWEST))
    mixture, rule = choose(Y[:, varies], most, key)
    K = len(mixture.weights)
    merges = merge(divide(Y[:, varies], mixture, rule, rng), K) if K > 1 and len(Y) >= 2 * FOLDS else []
    count = K
    for one in merges:
        if one.p < level:
            break
        count -= 1
    more = _compare(Y[:, varies], mixture, merges, draws)
    return _collect(X, mean, unit, varies, mixture, merges, count if merges else 1, level, more)


def _collect(X, mean, unit, varies, mixture, merges, count, level, more) -> FittedClusters:
    groups = [frozenset([k]) for k in range(len(mixture.weights))]
    for one in merges[: len(groups) - count]:
        groups = [g for g in groups if g not in (one.first, one.second)] + [one.first | one.second]
    groups = [frozenset(range(len(mixture.weights)))] if count == 1 else groups
    ordered = sorted((tuple(sorted(g)) for g in groups), key=lambda g: -mixture.weights[list(g)].sum())
    log_p = _gather(mixture.log_densities(((X - mean) / unit)[:, varies]), ordered)
    probabilities = np.exp(log_p - np.logaddexp.reduce(log_p, axis=1, keepdims=True))
    return FittedClusters(
        count=count, labels=log_p.argmax(axis=1), probabilities=probabilities,
        shares=np.array([mixture.weights[list(g)].sum() for g in ordered]),
        splits=_tabulate(mixture, merges, ordered, level, len(X), more), mixture=mixture, groups=tuple(ordered),
        varies=varies, mean=mean[varies], unit=unit[varies],
    )  # fmt: skip
