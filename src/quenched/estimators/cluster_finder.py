"""Clusters with a p-value for each split as a scikit-learn estimator: `ClusterFinder`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClusterMixin

from quenched.core import checks
from quenched.core.types import InputError, Key
from quenched.estimators.reading import Units, bounded, generator_of, key_of, rows_of, validated, weights_of
from quenched.mixtures import FittedClusters, find_clusters
from quenched.mixtures.practice.clusters import LEAST, MOST_ROWS


def repeat(rows: np.ndarray, weights: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Rows as often as their weights say, in an order of their own; of fractions the whole number below or above, by
    chance, and of many rows so many as clusters are sought in."""
    order = np.lexsort(rows.T)
    often = weights[order] * min(1.0, MOST_ROWS / weights.sum())
    whole = np.floor(often)
    often = (whole + (draw.uniform(size=len(often)) < often - whole)).astype(int)
    return np.repeat(rows[order], often, axis=0)


def find(rows: np.ndarray, weights: np.ndarray, random_state: Any, key: Key, **options: Any) -> FittedClusters:
    """The clusters of weighted rows; neither their order nor the order of equal rows matters."""
    draw = np.random.default_rng(generator_of(random_state).randint(2**31))
    repeated = repeat(rows, weights, draw)
    if len(repeated) < LEAST:
        raise InputError(f"Argument `sample_weight` must add up to {LEAST} rows at least, but it is {weights.sum():g}.")
    return find_clusters(repeated, key=key, **options)


class ClusterFinder(ClusterMixin, BaseEstimator):
    """As many clusters as there are in a table, with a p-value for each split.

    A cluster has one peak, of whatever shape; two groups of rows are two clusters where fewer rows lie between them
    than on both sides, in rows that have not chosen the line (see `quenched.mixtures.find_clusters`).

    Args:
        level: the p-value below which a split is real.
        components: how many Gaussians describe the density, at most; a cluster may need several.
        draws: of one Gaussian, with which the rows of each split are compared, too (`p_gaussian` in `splits_`); 0 for
            none.
        random_state: seed of the folds and of random starts.

    Attributes:
        n_clusters_: how many clusters there are.
        labels_: the cluster of each training row, 0 the largest.
        p_values_: of each split that was tested, from all rows down: the probability of such a valley, or a deeper one,
            in a single cluster.
        rows_needed_: for each split, the rows in which it would be seen in half of all samples, or infinity.
        splits_: the tree of splits, a dataset; `quenched.plot(model.splits_)` draws it.
        shares_: of the rows, in each cluster.
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> import numpy as np
        >>> from quenched.estimators import ClusterFinder
        >>> rows = np.random.default_rng(0).exponential(size=(300, 2))
        >>> model = ClusterFinder(random_state=0).fit(np.vstack([rows, rows + 6]))
        >>> model.n_clusters_, int(np.sum(model.p_values_ < 0.05))
        (2, 1)
    """

    def __init__(
        self, level: float = 0.05, *, components: int = 10, draws: int = 0, random_state: Any = None
    ):  # fmt: skip
        self.level, self.components, self.draws, self.random_state = level, components, draws, random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ClusterFinder:
        """Find the clusters of a table.

        Args:
            X: rows `[n, N]`.
            y: not used.
            sample_weight: weight w acts as w equal rows, on average; zero as if the row were absent.

        Returns:
            The estimator.
        """
        rows = validated(self, X)
        weights = weights_of(sample_weight, rows)
        if not np.ptp(rows[weights > 0], axis=0).any():
            raise InputError(f"Argument `X` must hold different rows, but those of n_samples={np.sum(weights > 0)} "
                             "are the same.")  # fmt: skip
        if np.sum(weights > 0) < LEAST:
            raise InputError(f"Argument `X` must hold at least {LEAST} rows, but it has n_samples="
                             f"{np.sum(weights > 0)}.")  # fmt: skip
        self._units = Units.of(rows, weights, standardize=False)
        Z, key = bounded(self._units.into(rows)), key_of(self.random_state)
        options = {"level": checks.number("level", self.level), "components": self.components, "draws": self.draws}
        self._fitted = find(Z, weights, self.random_state, key, **options)
        self.n_clusters_, self.splits_, self.shares_ = self._fitted.count, self._fitted.splits, self._fitted.shares
        self.p_values_, self.rows_needed_ = self.splits_["p"].values, self.splits_["rows_needed"].values
        self.labels_ = self._fitted.log_densities(Z).argmax(axis=1)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most probable cluster of each row `[n]`."""
        return self._log_densities(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each cluster `[n, n_clusters_]`."""
        return softmax(self._log_densities(X), axis=1)

    def _log_densities(self, X: Any) -> np.ndarray:
        """Of each cluster at the rows of a query `[n, n_clusters_]`, in the units of training."""
        rows = rows_of(self, X, getattr(self, "_units", None))
        return self._fitted.log_densities(rows)
