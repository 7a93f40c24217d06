"""Prototypes as scikit-learn estimators: `LVQClassifier` and `VQClusterer`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets

from quenched.core import checks
from quenched.core.types import InputError, Outcome
from quenched.estimators.reading import Units, bounded, key_of, rows_of, validated, weights_of
from quenched.prototypes import learner
from quenched.prototypes.learner.steps import nearest
from quenched.prototypes.model import LVQ1, VQ, Interpolated, Rule


class _Prototypes(BaseEstimator):
    """What both estimators do with the learner; without a rule they take the one in `_default`."""

    rule: Rule | None
    passes: int
    random_state: Any
    _default: type[Rule]
    _units: Units

    def _learn(self, data: Any, weights: np.ndarray, **options: Any) -> learner.Fitted:
        """Train, keep what was found, and warn where training stopped early."""
        rule = self.rule
        if rule is None:  # Kohonen's advice: a rate that falls on a straight line to a hundredth over the passes
            rule = self._default(Interpolated((0.1, 0.001), until=checks.whole("passes", self.passes, least=1)))
        fitted = learner.fit(rule, data, key=key_of(self.random_state), sample_weight=weights, **options)
        if fitted.outcome != Outcome.converged:
            text = (f"Training with {type(rule).__name__} {fitted.outcome.name} in pass {fitted.passes}; "
                    "a smaller rate or, for LVQ21, a narrower window may help.")  # fmt: skip
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        self._fitted, self.outcome_, self.n_iter_ = fitted, fitted.outcome, fitted.passes
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


class LVQClassifier(ClassifierMixin, _Prototypes):
    r"""Learning vector quantisation: the nearest of a few labelled prototypes decides.

    $$\hat y(x) = \text{label of } \arg\min_S |x - w_S|$$

    The prototypes are trained on-line (see `quenched.prototypes.fit`). Probabilities are
    $P(c \mid x) \propto e^{-d_c^2(x)/T}$, where $d_c$ is the distance from the nearest prototype of class $c$ and $T$
    the scale that is most likely on the training rows; so the most probable class is the predicted one.

    Args:
        rule: how prototypes learn: `LVQ1`, `LVQPlus`, `LVQ21`, `VQ` or your own, with a number or a `Schedule` in
            passes as its rate. Its `g` sees the classes themselves if they are whole numbers, otherwise
            their place in `classes_`. Default: `LVQ1`, its rate falling on a straight line from 0.1 to 0.001.
        prototypes_per_class: how many, or `{class: how many}`.
        passes: how often the table is presented.
        window: of `LVQ21` with more than two prototypes (LVQ2.1); see `quenched.prototypes.fit`.
        standardize: measure distances in features of mean 0 and variance 1.
        shuffle: present the rows in a new random order in each pass.
        random_state: seed of the start and the order.

    Attributes:
        classes_: the classes.
        prototypes_: the prototypes, in the units of the data, `[K, N]`.
        prototype_labels_: the class of each `[K]`.
        temperature_: $T$.
        trace_: rate, errors and wins in each pass.
        outcome_: what became of the training.
        n_iter_: passes made.
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> from sklearn.datasets import load_iris
        >>> from quenched.estimators import LVQClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> bool(LVQClassifier(prototypes_per_class=2, random_state=0).fit(X, y).score(X, y) > 0.9)
        True
    """

    _default = LVQ1

    def __init__(
        self,
        rule: Rule | None = None,
        *,
        prototypes_per_class: int | Mapping[Any, int] = 1,
        passes: int = 30,
        window: float | None = None,
        standardize: bool = False,
        shuffle: bool = True,
        random_state: Any = None,
    ):
        self.rule = rule
        self.prototypes_per_class = prototypes_per_class
        self.passes = passes
        self.window = window
        self.standardize = standardize
        self.shuffle = shuffle
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LVQClassifier:
        """Train on a table.

        Args:
            X: rows `[n, N]`.
            y: their classes `[n]`, two different ones at least.
            sample_weight: weight w acts as w presentations in succession, zero as if the row were absent.

        Returns:
            The estimator.
        """
        return self._train(X, y, sample_weight, None, start=None, passes=self.passes, shuffle=self.shuffle)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> LVQClassifier:
        """Go on with a batch of rows: one more pass, in the order given.

        A first batch starts the prototypes, so it must hold rows of every class. The rate is that of the number
        of passes (batches) made before; the probabilities' scale is learned from the latest batch.

        Args:
            X: rows `[n, N]`.
            y: their classes `[n]`.
            classes: all classes, at the first call; default those of the first batch.
            sample_weight: as in `fit`.

        Returns:
            The estimator.
        """
        if checks.flag("standardize", self.standardize):
            raise InputError("Argument `standardize` must be False for `partial_fit`, but it is True: "
                             "the scale of rows to come is unknown.")  # fmt: skip
        return self._train(X, y, sample_weight, classes, start=getattr(self, "_fitted", None), passes=1, shuffle=False)

    def _labels(self) -> np.ndarray:
        """The classes as the rule sees them: whole numbers, in the order of `classes_`."""
        return self.classes_.astype(int) if self.classes_.dtype.kind in "iub" else np.arange(len(self.classes_))

    def _per_class(self) -> int | dict[int, int]:
        """`prototypes_per_class` with the classes as the rule sees them."""
        if not isinstance(self.prototypes_per_class, Mapping):
            return self.prototypes_per_class
        if set(self.prototypes_per_class) != set(self.classes_):
            raise InputError(f"Argument `prototypes_per_class` must name the classes {self.classes_.tolist()}, "
                             f"but it names {list(self.prototypes_per_class)}.")  # fmt: skip
        return {int(k): self.prototypes_per_class[c] for k, c in zip(self._labels(), self.classes_, strict=True)}

    def _check_classes(self, y: np.ndarray, *, all_needed: bool) -> None:
        """Two classes at least; none unknown; none missing where prototypes are yet to be placed."""
        known, present = set(self.classes_.tolist()), set(np.unique(y).tolist())
        if len(known) < 2:
            raise InputError(f"Argument `y` must hold two classes or more, but it has one class: {sorted(known)}.")
        if present - known:
            raise InputError(f"Argument `y` must hold known classes only, but {sorted(present - known)} are new.")
        if all_needed and known - present:
            raise InputError("Argument `y` must hold every class in the first batch, "
                             f"but {sorted(known - present)} are missing.")  # fmt: skip

    def _train(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, start: Any, **order: Any) -> LVQClassifier:
        """Read the table, call the learner and keep what it found."""
        X, y = validated(self, X, y, reset=start is None)
        check_classification_targets(y)
        weights = weights_of(sample_weight, X)
        X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        if start is None:
            self.classes_ = np.unique(y if classes is None else classes)
            self._units = Units.of(X, weights, standardize=checks.flag("standardize", self.standardize))
        self._check_classes(y, all_needed=start is None)
        codes, labels, Z = np.searchsorted(self.classes_, y), self._labels(), bounded(self._units.into(X))
        fitted = self._learn(
            (Z, labels[codes]),
            weights,
            prototypes_per_class=self._per_class(),
            window=self.window,
            start=start,
            **order,
        )
        self.prototypes_ = self._units.back(fitted.prototypes)
        self.prototype_labels_ = self.classes_[np.searchsorted(labels, fitted.labels)]
        self._temperature = temperature(self._squared(Z), codes, weights)
        self.temperature_ = float(self._units.measure(self._temperature, 2))
        return self

    def _squared(self, Z: np.ndarray) -> np.ndarray:
        """Squared distance from the nearest prototype of each class `[n, C]`, all in the units of training."""
        w, labels = self._fitted.prototypes, self._fitted.labels
        return np.column_stack([nearest(w[labels == c], Z)[1] for c in self._labels()])

    def predict(self, X: Any) -> np.ndarray:
        """The class of the nearest prototype of each row."""
        squared = self._squared(self._rows(X))
        return self.classes_[np.argmin(squared, axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class `[n, C]`, largest for the predicted one."""
        squared = self._squared(self._rows(X))
        return softmax(-squared / self._temperature, axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Minus the squared distance of each class `[n, C]`; for two classes the difference of the two `[n]`."""
        squared = self._squared(self._rows(X))
        values = squared[:, 0] - squared[:, 1] if len(self.classes_) == 2 else -squared
        return self._units.measure(values, 2)


class VQClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, _Prototypes):
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

    _default = VQ

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
        fitted = self._learn(Z, weights, prototypes_per_class=count, start=start, **order)
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
