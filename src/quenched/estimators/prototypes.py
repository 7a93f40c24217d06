"""Prototypes as scikit-learn estimators: what they share, and `VQClusterer`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning

from quenched.core import checks
from quenched.core.types import InputError, Outcome
from quenched.estimators.reading import Units, bounded, key_of, rows_of, validated, weights_of
from quenched.prototypes import learner
from quenched.prototypes.learner.steps import nearest
from quenched.prototypes.model import VQ, Interpolated, Rule


def falling(rule: Callable[[Any], Rule], passes: Any) -> Rule:
    """A rule with a rate that falls on a straight line to a hundredth over the passes: Kohonen's advice."""
    return rule(Interpolated((0.1, 0.001), until=checks.whole("passes", passes, least=1)))


class Prototypes(BaseEstimator):
    """What both estimators do with the learner."""

    random_state: Any
    _units: Units

    def _learn(self, rule: Any, data: Any, weights: np.ndarray, **options: Any) -> learner.Fitted:
        """Train, keep what was found, and warn where training stopped early."""
        fitted = learner.fit(rule, data, sample_weight=weights, **options)
        if fitted.outcome in (Outcome.diverged, Outcome.failed):
            text = (f"Training with {type(rule).__name__} {fitted.outcome.name} in pass {fitted.passes}; "
                    "a smaller rate or, for LVQ21, a narrower window may help.")  # fmt: skip
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        self._fitted, self.outcome_, self.n_iter_ = fitted, fitted.outcome, fitted.passes
        self.trace_: Any = fitted.trace
        if isinstance(fitted.trace, learner.Trace):
            self.trace_ = fitted.trace._replace(quantisation=self._units.measure(fitted.trace.quantisation, 2))
        return fitted

    def _rows(self, X: Any) -> np.ndarray:
        """Rows it is asked about, in the units of training."""
        return rows_of(self, X, getattr(self, "_units", None))


def temperature(squared: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> float:
    r"""The scale $T$ that makes $P(c \mid x) \propto e^{-d_c^2(x)/T}$ most likely on rows of these classes and weights.

    The loss is convex in $1/T$. As in Platt's scaling each row's own class counts a little less than fully, by
    $1/(n+2)$ shared among the classes, so that $T$ stays positive when the classes are separated perfectly.
    """
    unit = float(np.average(squared.mean(axis=1), weights=weights))
    if unit == 0:
        return 1.0
    doubt = 1 / (weights.sum() + 2)

    def loss(log_scale: float) -> float:
        log_p = log_softmax(-squared / (unit * np.exp(log_scale)), axis=1)
        own = log_p[np.arange(len(codes)), codes]
        return -float(np.average((1 - doubt) * own + doubt * log_p.mean(axis=1), weights=weights))

    found: Any = minimize_scalar(loss, bounds=(-12.0, 6.0), method="bounded", options={"xatol": 1e-3})
    return unit * float(np.exp(found.x))


class VQClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Prototypes):
    r"""Vector quantisation: prototypes that stand for the rows nearest to them, trained on-line.

    On-line training lowers the quantisation error $\langle \min_S |x - w_S|^2 \rangle$ step by step; with a falling
    rate it ends close to what k-means finds.

    Args:
        n_clusters: how many prototypes.
        rule: `VQ` or your own rule without labels, with a number or a `Schedule` in passes as its rate.
            Default: `VQ`, its rate falling on a straight line from 0.1 to 0.001.
        passes: how often the table is presented.
        shuffle: present the rows in a new random order in each pass.
        random_state: seed of the start and the order.

    Attributes:
        cluster_centers_: the prototypes `[K, N]`.
        labels_: the nearest prototype of each training row `[n]`.
        inertia_: weighted sum of the squared distances between rows and their prototypes.
        trace_: rate, errors and wins in each pass.
        outcome_: what became of the training.
        n_iter_: passes made.
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> from sklearn.datasets import make_blobs
        >>> from quenched.estimators import VQClusterer
        >>> X, _ = make_blobs(centers=3, random_state=0)
        >>> VQClusterer(n_clusters=3, random_state=0).fit(X).cluster_centers_.shape
        (3, 2)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        rule: Rule | None = None,
        passes: int = 30,
        shuffle: bool = True,
        random_state: Any = None,
    ):
        self.n_clusters = n_clusters
        self.rule = rule
        self.passes = passes
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> VQClusterer:
        """Train on a table.

        Args:
            X: rows `[n, N]`.
            y: not used.
            sample_weight: weight w acts as w presentations in succession, zero as if the row were absent.

        Returns:
            The estimator.
        """
        return self._train(X, sample_weight, start=None, passes=self.passes, shuffle=self.shuffle)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> VQClusterer:
        """Go on with a batch of rows: one more pass, in the order given; `labels_` are those of the batch.

        A first batch starts the prototypes. The rate is that of the number of passes (batches) made before.

        Args:
            X: rows `[n, N]`.
            y: not used.
            sample_weight: as in `fit`.

        Returns:
            The estimator.
        """
        return self._train(X, sample_weight, start=getattr(self, "_fitted", None), passes=1, shuffle=False)

    def _train(self, X: Any, sample_weight: Any, *, start: learner.Fitted | None, **order: Any) -> VQClusterer:
        """Read the table, call the learner and keep what it found."""
        X = validated(self, X, reset=start is None)
        weights = weights_of(sample_weight, X)
        rows, count = int(np.sum(weights > 0)), checks.whole("n_clusters", self.n_clusters, least=1)
        if start is None and rows < count:
            raise InputError(f"Argument `n_clusters` must not exceed the rows, but n_samples={rows} and "
                             f"n_clusters={count}.")  # fmt: skip
        if start is None:
            self._units = Units.of(X, weights, standardize=False)
        Z = bounded(self._units.into(X))
        rule = falling(VQ, self.passes) if self.rule is None else self.rule
        fitted = self._learn(
            rule, Z, weights, key=key_of(self.random_state), prototypes_per_class=count, start=start, **order
        )
        self.cluster_centers_ = self._units.back(fitted.prototypes)
        self._n_features_out = len(self.cluster_centers_)
        self.labels_, squared = nearest(fitted.prototypes, Z)
        self.inertia_ = float(self._units.measure(weights @ squared, 2))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The index of the nearest prototype of each row."""
        rows = self._rows(X)
        return nearest(self._fitted.prototypes, rows)[0]

    def transform(self, X: Any) -> np.ndarray:
        """The distance of each row from each prototype `[n, K]`."""
        rows = self._rows(X)
        return self._units.measure(cdist(rows, self._fitted.prototypes), 1)
