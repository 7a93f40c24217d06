"""Labelled prototypes as a scikit-learn estimator: `LVQClassifier`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from quenched.core import checks
from quenched.core.types import InputError
from quenched.estimators.prototypes import Prototypes, falling, temperature
from quenched.estimators.reading import Units, bounded, key_of, validated, weights_of
from quenched.prototypes import learner
from quenched.prototypes.learner.fit import PASSES
from quenched.prototypes.learner.steps import nearest
from quenched.prototypes.model import GLVQ, LVQ1, LVQ21, Cost, Rule

WINDOW = 0.2
"""Of LVQ2.1; Kohonen's advice is 0.2 to 0.3."""


def _share(name: str, value: Any) -> None:
    """Check that a number lies between 0 and 1."""
    if not 0 <= checks.number(name, value) <= 1:
        raise InputError(f"Argument `{name}` must lie between 0 and 1, but {value!r} was given.")


class LVQClassifier(ClassifierMixin, Prototypes):
    r"""Learning vector quantisation: the nearest of a few labelled prototypes decides.

    $$\hat y(x) = \text{label of } \arg\min_S |\Omega(x - w_S)|$$

    The prototypes, and the metric $\Omega$ if the rule learns one, are trained by minimising an energy or on-line (see
    `quenched.prototypes.fit`). Probabilities are $P(c \mid x) \propto e^{-d_c^2(x)/T}$, where $d_c$ is the distance
    from the nearest prototype of class $c$ and $T$ the scale that is most likely on the training rows; so the most
    probable class is the predicted one.

    What is learned is compared with the nearest class mean on held-out rows; where that finds the class more often, the
    class means are kept in place of the prototypes, with a warning.

    Args:
        rule: how prototypes learn: `GLVQ` (default), `GMLVQ` with a learned metric, `RSLVQ` or your own energy; or,
            on-line, `LVQ1`, `LVQPlus`, `LVQ21`, `VQ` or your own, with a number or a `Schedule` in passes as its rate.
            Its `g` sees the classes themselves if they are whole numbers, otherwise their place in `classes_`. The
            default of `partial_fit` is `LVQ1`, its rate falling on a straight line from 0.1 to 0.001.
        prototypes_per_class: how many, or `{class: how many}`.
        passes: how often the table is presented, default 30; for an energy the steps, at most, by default as many as
            the rule says: 100, and 30 of `GMLVQ`.
        window: of `LVQ21` (LVQ2.1), by default that of the rule or 0.2; see `quenched.prototypes.fit`.
        fallback: whether to compare with the nearest class mean on held-out rows.
        standardize: measure distances in features of mean 0 and variance 1.
        shuffle: present the rows in a new random order in each pass.
        random_state: seed of the start and the order.

    Attributes:
        classes_: the classes.
        prototypes_: the prototypes, in the units of the data, `[K, N]`.
        prototype_labels_: the class of each `[K]`.
        metric_: $\Omega$ `[rank, N]` if one was learned, otherwise None; of columns of variance 1 with `standardize`.
        held_out_: the share of held-out rows whose class was found, by what is learned and by class means, and the
            standard error of their difference; None without the comparison.
        fallback_: whether the class means were kept.
        temperature_: $T$.
        trace_: rate, errors and wins in each pass, or the energy after each step.
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

    def __init__(
        self,
        rule: Rule | Cost | None = None,
        *,
        prototypes_per_class: int | Mapping[Any, int] = 1,
        passes: int | None = None,
        window: float | None = None,
        fallback: bool = True,
        standardize: bool = False,
        shuffle: bool = True,
        random_state: Any = None,
    ):
        self.rule = rule
        self.prototypes_per_class = prototypes_per_class
        self.passes = passes
        self.window = window
        self.fallback = fallback
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
        rule = GLVQ() if self.rule is None else self.rule
        order = {"passes": self.passes, "shuffle": self.shuffle}
        return self._train(rule, X, y, sample_weight, None, whole=True, start=None, **order)

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
        rule = falling(LVQ1, PASSES if self.passes is None else self.passes) if self.rule is None else self.rule
        if isinstance(rule, Cost):
            raise InputError("Argument `rule` must learn from one example at a time for `partial_fit`, as LVQ1() does, "
                             f"but it is {type(rule).__name__}.")  # fmt: skip
        start = getattr(self, "_fitted", None)
        return self._train(rule, X, y, sample_weight, classes, whole=False, start=start, passes=1, shuffle=False)

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

    def _train(
        self, rule: Any, X: Any, y: Any, sample_weight: Any, classes: Any, *, whole: bool, start: Any, **order: Any
    ) -> LVQClassifier:
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
        key, options = (
            key_of(self.random_state),
            {"prototypes_per_class": self._per_class(), "window": self._window(rule)},
        )
        fitted = self._learn(rule, (Z, labels[codes]), weights, key=key, start=start, **order, **options)
        self.held_out_: Any = None
        self.fallback_ = False
        if checks.flag("fallback", self.fallback) and whole:
            options |= {**order, "key": jax.random.fold_in(key, 1)}
            fitted = self._compare(rule, fitted, (Z, labels[codes]), weights, options)
        self._fitted = fitted
        self.metric_: Any = fitted.metric
        self.prototypes_ = self._units.back(fitted.prototypes)
        self.prototype_labels_ = self.classes_[np.searchsorted(labels, fitted.labels)]
        squared = self._squared(Z)
        self._temperature = temperature(squared, codes, weights)
        self._reach = squared.min(axis=1), weights
        self.temperature_ = float(self._units.measure(self._temperature, 2))
        return self

    def _window(self, rule: Any) -> float | None:
        """The window of LVQ2.1: without one prototypes run away."""
        own = isinstance(rule, LVQ21) and rule.window is None and self.window is None
        return WINDOW if own else self.window

    def _compare(
        self, rule: Any, fitted: learner.Fitted, data: tuple, weights: np.ndarray, options: dict[str, Any]
    ) -> learner.Fitted:
        """What was learned, or the class means if they find the class of held-out rows more often."""
        found = learner.hold_out(rule, data, sample_weight=weights, **options)
        self.held_out_ = {"learned": found.learned, "class means": found.class_means, "rows": found.rows,
                          "error": found.error}  # fmt: skip
        if not found.learned < found.class_means:
            return fitted
        text = (f"{type(rule).__name__} found the class of {found.learned:.1%} of {found.rows} held-out rows, the "
                f"nearest class mean of {found.class_means:.1%}: the class means are kept as prototypes. Another rule, "
                "other rates or `standardize=True` may help; `fallback=False` keeps what was learned.")  # fmt: skip
        warnings.warn(text, ConvergenceWarning, stacklevel=4)
        self.fallback_ = True
        return learner.fit_means(data, sample_weight=weights)

    def _squared(self, Z: np.ndarray) -> np.ndarray:
        """Squared distance from the nearest prototype of each class `[n, C]`, all in the units of training."""
        w, labels, metric = self._fitted.prototypes, self._fitted.labels, self._fitted.metric
        if metric is not None:
            w, Z = w @ metric.T, Z @ metric.T
        return np.column_stack([nearest(w[labels == c], Z)[1] for c in self._labels()])

    def predict(
        self, X: Any, *, confidence: float | None = None, within: float | None = None, otherwise: Any = None
    ) -> np.ndarray:
        """The class of the nearest prototype of each row; or no class, where it may be wrong.

        Args:
            X: rows `[n, N]`.
            confidence: as in `reject`; rows that are rejected get no class.
            within: as in `reject`.
            otherwise: what stands in place of a class.

        Returns:
            Classes `[n]`; as objects if some may be `otherwise`.
        """
        squared = self._squared(self._rows(X))
        found = self.classes_[np.argmin(squared, axis=1)]
        if confidence is None and within is None:
            return found
        found = found.astype(object)
        found[self.reject(X, confidence=confidence, within=within)] = otherwise
        return found

    def reject(self, X: Any, *, confidence: float | None = None, within: float | None = None) -> np.ndarray:
        """The rows whose class may be wrong, because two classes are near or none is.

        Args:
            X: rows `[n, N]`.
            confidence: the probability that the predicted class must have, from 0 to 1.
            within: a share of the training rows, from 0 to 1: a row must not be further from the nearest prototype than
                this share of them, by weight, are from theirs.

        Returns:
            True for rows that are rejected `[n]`.
        """
        squared = self._squared(self._rows(X))
        rejected = np.zeros(len(squared), dtype=bool)
        if confidence is not None:
            _share("confidence", confidence)
            rejected |= softmax(-squared / self._temperature, axis=1).max(axis=1) < confidence
        if within is not None:
            _share("within", within)
            order = np.argsort(self._reach[0])
            mass = np.cumsum(self._reach[1][order])
            place = min(int(np.searchsorted(mass, within * mass[-1] * (1 - 1e-12))), len(order) - 1)
            rejected |= squared.min(axis=1) > self._reach[0][order[place]]
        return rejected

    def metric(self) -> Any:
        r"""The learned metric as a dataset, for `quenched.plot`.

        Returns:
            `matrix` $\Lambda = \Omega^T\Omega$ over `column` and `column2`, `relevance`, its diagonal as shares of the
            trace, and `eigenvalue`, its eigenvalues as such shares.
        """
        import xarray as xr

        check_is_fitted(self, "_fitted")
        if self.metric_ is None:
            raise InputError("A metric must have been learned, as by GMLVQ(), but the distance is Euclidean.")
        matrix = self.metric_.T @ self.metric_
        names = np.asarray(getattr(self, "feature_names_in_", [f"x{i}" for i in range(len(matrix))]), dtype=str)
        values = np.linalg.eigvalsh(matrix)[::-1] / np.trace(matrix)
        parts = {"matrix": (("column", "column2"), matrix), "relevance": ("column", np.diag(matrix) / np.trace(matrix)),
                 "eigenvalue": ("axis", np.maximum(values, 0.0))}  # fmt: skip
        return xr.Dataset(parts, {"column": names, "column2": names}, {"source": "metric"})

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class `[n, C]`, largest for the predicted one."""
        squared = self._squared(self._rows(X))
        return softmax(-squared / self._temperature, axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Minus the squared distance of each class `[n, C]`; for two classes the difference of the two `[n]`."""
        squared = self._squared(self._rows(X))
        values = squared[:, 0] - squared[:, 1] if len(self.classes_) == 2 else -squared
        return self._units.measure(values, 2)
