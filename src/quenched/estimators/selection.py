"""Selection around any scikit-learn estimator: `SelectionClassifier` and `SelectionRegressor`."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from quenched.core import checks
from quenched.core.types import InputError
from quenched.estimators.reading import bounded, generator_of, validated, weights_of
from quenched.outliers import learner
from quenched.outliers.learner import Selection
from quenched.outliers.model import HardSelection, Rule, SoftSelection

LEAST_PROBABILITY = 1e-5
"""Probabilities below this are taken for this: no single row decides."""


def _weights_argument(estimator: Any) -> str | None:
    """The name under which an estimator, or the last step of a pipeline, takes weights of rows."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__sample_weight" if has_fit_parameter(last, "sample_weight") else None
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def _fit(estimator: Any, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Any:
    """A fitted clone; weights are given only where they differ."""
    model: Any = clone(estimator)
    name = _weights_argument(estimator)
    if name is None or np.all(weights == weights[0]):
        return model.fit(X, y)
    return model.fit(X, y, **{name: weights})


def _has_proba(estimator: Any) -> bool:
    return hasattr(estimator._given(), "predict_proba")


class _Selecting(MetaEstimatorMixin, BaseEstimator):
    """What both estimators have in common; `_usual` is how rows are selected by default."""

    _usual: ClassVar[type[Rule]]

    def __init__(
        self, estimator: Any = None, *, selection: Rule | None = None, folds: int = 5, check: bool = True,
        max_iter: int = 5, random_state: Any = None,
    ):  # fmt: skip
        self.estimator, self.selection, self.folds, self.check = estimator, selection, folds, check
        self.max_iter, self.random_state = max_iter, random_state

    def _given(self) -> Any:
        raise NotImplementedError

    def _rule(self, weights: np.ndarray) -> Rule:
        """How rows are selected, where the model can do so."""
        rule = self._usual() if self.selection is None else self.selection
        checks.kind("selection", rule, (SoftSelection, HardSelection), "SoftSelection() or HardSelection()")
        if rule.gamma is not None:
            raise InputError("Argument `selection` must leave `gamma` to the estimator, but it is given.")
        soft = isinstance(rule, SoftSelection) or np.any(weights != weights[0])
        if soft and _weights_argument(self._given()) is None:
            raise InputError("Argument `estimator` must take `sample_weight` for soft selection and for weighted rows, "
                             f"but {type(self._given()).__name__} does not.")  # fmt: skip
        return rule

    def _options(self) -> dict[str, Any]:
        seed = int(generator_of(self.random_state if self.random_state is not None else 0).randint(2**31 - 1))
        return {
            "folds": checks.whole("folds", self.folds, least=2),
            "passes": checks.whole("max_iter", self.max_iter, least=1),
            "check": checks.flag("check", self.check),
            "generator": np.random.default_rng(seed),
        }

    def _finish(self, found: Selection, place: np.ndarray, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> None:
        """The last fit, and the attributes; `place`: of each row among those judged, -1 of no weight."""
        kept = found.weights > 0
        self.estimator_ = _fit(self._given(), X[kept], y[kept], (w * found.weights)[kept])
        n, present = len(place), place >= 0
        at = place[present]
        self.outlier_probability_, self.selected_, self.clump_ = np.ones(n), np.zeros(n), np.zeros(n, bool)
        self.outlier_probability_[present], self.selected_[present] = found.outlier[at], found.weights[at]
        self.clump_[present] = found.clump[at]
        self.outlier_fraction_, self.outlier_fraction_interval_ = found.share, found.interval
        self.told_, self.used_, self.sentence_ = found.told, found.used, found.sentence
        self.gain_, self.gain_stderr_ = found.gain, found.gain_stderr
        self.n_iter_, self.outcome_ = found.passes, found.outcome
        self._signs = found.signs
        self.alternative_ = None
        if found.alternative is not None:
            self.alternative_ = np.ones(n)
            self.alternative_[present] = found.alternative[at]
        if found.clump.any() or found.alternative is not None:
            warnings.warn(found.sentence, UserWarning, stacklevel=3)

    def predict(self, X: Any) -> np.ndarray:
        """What the fitted estimator predicts for each row `[n]`."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict(bounded(validated(self, X, reset=False)))


class SelectionClassifier(ClassifierMixin, _Selecting):
    r"""Any classifier, learned from the rows that are probably informative; which rows are not is found out of fold.

    A row is informative, or its label is wrong, or its features do not belong. The classifier's probabilities for rows
    that it was not fitted to and the densities of the classes, beside rows with permuted columns, tell how probably:

    $$P(y \mid x) = (1 - q) \Big[ (1 - f)\, p_y + f\, \frac{1 - p_y}{K - 1} \Big] + q\, \omega_y .$$

    $f$ is the share of wrong labels, $q$ the probability that features do not belong, $\omega_y$ the share of class
    $y$, $K$ the number of classes. The classifier is then fitted to the rows that are more probably informative than
    not, or with soft selection to all rows by how probably they are, and both are repeated. It is the selection of
    [dietrich1998] around a model of your choice. No share of outliers is assumed.

    In the last judgement the labels of the ten nearest rows have a say, too, by as much as the labels call for: a
    classifier that cannot follow the classes would take rows for wrong ones that lie among their like.

    A whole selection with folds of its own is checked on rows it never saw. Where their labels do not become more
    probable by one and a quarter standard errors, all rows count alike (`used_` is False) and `sentence_` says so; the
    probabilities are there all the same. Rows in a tight ball apart from the others are a warning, since outliers that
    agree with each other look like a class: their probability is one half, and they are left out where the other rows
    are predicted better without them. Where another selection explains the table about as well, there is a warning,
    too.

    Args:
        estimator: a classifier with `predict_proba`, or a pipeline; None: `LogisticRegression(max_iter=1000)`.
        selection: `HardSelection()`, the default, or `SoftSelection()`, for which the estimator must take
            `sample_weight`.
        folds: how many models judge the rows, none of them fitted to the rows that it judges.
        check: whether selection is given up where it does not help.
        max_iter: fits in each fold at most, while the selection changes.
        random_state: seed of the folds and of the permuted rows; None is 0.

    Attributes:
        estimator_: the fitted classifier.
        classes_: the classes.
        outlier_probability_: the probability that each training row is an outlier `[n]`; 1 for rows without weight.
        selected_: how much each training row counts `[n]`.
        outlier_fraction_: the estimated share of outliers.
        outlier_fraction_interval_: an interval that holds the share with a probability of about 80%.
        told_: whether that interval is narrow enough to mean something; if not, `sentence_` says that the share cannot
            be told.
        used_: whether selection is used.
        gain_, gain_stderr_: change of the mean log-likelihood of the labels, as given, on held-out rows, and its
            standard error.
        clump_: the training rows in a tight ball `[n]`.
        alternative_: the probabilities by another selection that explains the table about as well `[n]`, or None;
            `outlier_probability_` weighs both.
        sentence_: what to know before using the result; empty if there is nothing.
        n_iter_, outcome_: fits in each fold, and whether the selection settled (`converged`) or not (`stalled`).
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> import numpy as np
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from quenched.estimators import SelectionClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> noisy = np.where(np.arange(len(y)) % 4 == 0, 1 - y, y)
        >>> model = SelectionClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, noisy)
        >>> bool(model.score(X, y) > 0.95), bool(0.2 < model.outlier_fraction_ < 0.3)
        (True, True)
    """

    _usual = HardSelection

    def _given(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Args:
            X: rows `[n, N]`.
            y: their classes or targets `[n]`.
            sample_weight: weight of each row; zero as if the row were absent.

        Returns:
            The estimator.
        """
        X, y = validated(self, X, y)
        bounded(X)
        check_classification_targets(y)
        weights = weights_of(sample_weight, X)
        present = weights > 0
        rows, given, w = X[present], y[present], weights[present]
        self.classes_, codes = np.unique(given, return_inverse=True)
        K = len(self.classes_)
        if K < 2:
            raise InputError(f"Argument `y` must have two classes or more, but it has one class, {self.classes_[0]}.")
        if np.bincount(codes).min() < 2:
            raise InputError("Argument `y` must have two rows or more of each class, "
                             f"but class {self.classes_[np.argmin(np.bincount(codes))]} has one.")  # fmt: skip
        rule, model = self._rule(w), self._given()
        if not hasattr(model, "predict_proba"):
            raise InputError("Argument `estimator` must have `predict_proba`, "
                             f"but {type(model).__name__} does not.")  # fmt: skip

        def fit(some: np.ndarray, omega: np.ndarray) -> Any:
            there = np.unique(codes[some])
            if len(there) == 1:  # nothing to learn: that class, whatever the row
                log_p = np.log(np.where(np.arange(K) == there[0], 1 - (K - 1) * LEAST_PROBABILITY, LEAST_PROBABILITY))
                return lambda judged: np.tile(log_p, (len(judged), 1))
            fitted = _fit(model, rows[some], given[some], omega)
            places = np.searchsorted(self.classes_, fitted.classes_)

            def log_probabilities(judged: np.ndarray) -> np.ndarray:
                p = np.full((len(judged), K), LEAST_PROBABILITY)
                p[:, places] = np.maximum(fitted.predict_proba(rows[judged]), LEAST_PROBABILITY)
                return np.log(p / p.sum(axis=1, keepdims=True))

            return log_probabilities

        found = learner.select_labels(rule, fit, _standard(rows), codes, w, **self._options())
        self._finish(found, np.where(present, np.cumsum(present) - 1, -1), rows, given, w)
        return self

    @available_if(_has_proba)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class `[n, K]`, were the row informative."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.predict_proba(bounded(validated(self, X, reset=False)))


class SelectionRegressor(RegressorMixin, _Selecting):
    r"""Any regression, learned from the rows that are probably informative; which rows are not is found out of fold.

    The residual $r$ of an informative row has a t-distribution with four degrees of freedom, the target of an outlier
    has nothing to do with its inputs:

    $$P(y \mid x) = (1 - f)\, t_4(r / s) / s + f\, \mathcal N(y;\, m, v), \qquad
    \ln \frac{f}{1 - f} = a + b u(x) .$$

    The further out the inputs lie ($u$), the more probable an outlier may be. $a$, $b$, the noise $s$ and the law of
    the outliers' targets $m$, $v$ are estimated from residuals of rows that the model was not fitted to. It begins at
    all rows, at those in the middle of the table, and at rows near models that were fitted to subsets, and takes the
    selection of the largest likelihood in which the doubtful targets have nothing to do with the inputs, as assumed.
    Where they follow the inputs all the same, or doubtful rows lie next to each other and not just far out, the model
    is at fault rather than the rows. If no selection is left, or the likelihood does not rise, all rows count alike
    (`used_` is False, `sentence_` says why).

    Args:
        estimator: a regressor; None: `Ridge()`. A pipeline may be given.
        selection: `SoftSelection()`, the default, or `HardSelection()`, which leaves rows out (a trimmed likelihood);
            estimators without `sample_weight` need it.
        folds: as in `SelectionClassifier`, as are all arguments and attributes that are not named here.

    Rows that are copies of each other, targets included, count as one row that weighs as much as all of them, where the
    estimator takes `sample_weight`: a copy in another fold would vouch for a row.

    Attributes:
        estimator_: the fitted regressor.
        gain_: by how much of itself the median size of the residuals falls; `gain_stderr_` is 0.

    Examples:
        >>> import numpy as np
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> from quenched.estimators import SelectionRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> wrong = np.arange(len(y)) % 4 == 0
        >>> model = SelectionRegressor(Ridge(alpha=0.1)).fit(X, np.where(wrong, y + 500, y))
        >>> bool(model.score(X, y) > 0.45), bool(model.outlier_probability_[wrong].min() > 0.5)
        (True, True)
    """

    _usual = SoftSelection

    def _given(self) -> Any:
        return Ridge() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Args:
            X: rows `[n, N]`.
            y: their classes or targets `[n]`.
            sample_weight: weight of each row; zero as if the row were absent.

        Returns:
            The estimator.
        """
        X, y = validated(self, X, y, y_numeric=True, ensure_min_samples=2)
        bounded(X)
        y = np.asarray(y, float)
        weights = weights_of(sample_weight, X)
        rule, model = self._rule(weights[weights > 0]), self._given()
        rows, given, w, place = _gather_copies(X, y, weights, merged=_weights_argument(model) is not None)

        def fit(some: np.ndarray, omega: np.ndarray) -> Any:
            fitted = _fit(model, rows[some], given[some], omega)
            return lambda judged: fitted.predict(rows[judged])

        found = learner.select_values(rule, fit, _standard(rows), given, w, **self._options())
        self._finish(found, place, rows, given, w)
        return self


def _gather_copies(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, *, merged: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of positive weight, sorted, copies as one row that weighs as much as all of them; the place of each row.

    A copy in another fold would vouch for a row, whatever its target. Folds do not depend on the order of rows.
    """
    present = np.flatnonzero(weights > 0)
    place = np.full(len(y), -1)
    first, which = np.arange(len(present)), np.arange(len(present))
    if merged:
        _, first, which = np.unique(np.column_stack([X, y])[present], axis=0, return_index=True, return_inverse=True)
    place[present] = which
    return X[present[first]], y[present[first]], np.bincount(which, weights[present]), place


def _standard(X: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and variance 1; constant ones go."""
    deviation = X.std(axis=0)
    vary = deviation > 0
    return (X[:, vary] - X[:, vary].mean(axis=0)) / deviation[vary] if vary.any() else X[:, :1]
