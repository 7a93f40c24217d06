"""What is forecast: an error on unseen rows, 0 at best, from the predictions or from a score of scikit-learn."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from sklearn import metrics

from quenched.core.types import InputError

AT_BEST_ONE = ("accuracy", "balanced_accuracy", "top_k", "f1", "precision", "recall", "jaccard", "roc_auc", "r2",
               "average_precision", "explained_variance", "matthews_corrcoef", "d2_")  # fmt: skip
"""Beginnings of the names of scores that are 1 at best."""
ROUNDING = 1e-9
"""By which a score may exceed that of a perfect estimator."""


@dataclasses.dataclass(frozen=True)
class Error:
    """An error of a fitted estimator on rows.

    Attributes:
        classes: whether the target is a class.
        scale: the standard deviation of the target, for numbers.
        scorer: a scorer of scikit-learn, or None for the share of wrong classes, or the squared error as a share of the
            target's variance.
        best: the score of a perfect estimator.
        words: what the error is.
        remark: a sentence about a score that was turned round.
    """

    classes: bool
    scale: float
    scorer: Any = None
    best: float = 0.0
    words: str = ""
    remark: str = ""

    def __call__(self, fitted: Any, X: Any, y: np.ndarray) -> float:
        """The error on some rows."""
        if self.scorer is not None:
            return self._scored(fitted, X, y)
        return float(np.mean(np.square(self.residual(fitted, X, y))))

    def _scored(self, fitted: Any, X: Any, y: np.ndarray) -> float:
        """The error by the score."""
        try:
            value = self.best - float(self.scorer(fitted, X, y))
        except Exception as error:  # whatever a score raises for an estimator or a target that it is not made for
            raise InputError(f"Argument `scoring` must fit the estimator and the target, but {self.words} fails: "
                             f"{type(error).__name__}: {error}") from None  # fmt: skip
        if not np.isfinite(value):
            raise InputError(f"Argument `scoring` must give finite numbers, but {self.words} gives {value}.")
        if value < -ROUNDING:
            raise InputError(
                f"Argument `scoring` must be 0 at best and negative otherwise, but {self.words} gives "
                f"{self.best - value:g}: take the name of a score, such as 'r2', or negate it."
            )
        return value

    def residual(self, fitted: Any, X: Any, y: np.ndarray) -> np.ndarray:
        """For each row 1 where the class is wrong, or the residual in standard deviations of the target."""
        predicted = np.asarray(fitted.predict(X))
        if predicted.shape != y.shape:
            raise InputError(f"Argument `estimator` must predict one value for each row, but of {len(y)} rows it "
                             f"returns an array of shape {predicted.shape}.")  # fmt: skip
        if self.classes:
            return (predicted != y).astype(float)
        if lost := int(np.sum(~np.isfinite(predicted))):
            raise InputError(f"Argument `estimator` must predict finite numbers, but {lost} of {len(y)} are NaN or "
                             "infinite.")  # fmt: skip
        return (y - predicted) / self.scale


def error_of(scoring: Any, classes: bool, scale: float) -> Error:
    """The error that belongs to a score."""
    if scoring is None:
        words = "share of wrong classes" if classes else "squared error (share of the target's variance)"
        return Error(classes, scale, words=words)
    try:
        scorer = metrics.get_scorer(scoring)
    except ValueError:
        raise InputError(f"Argument `scoring` must be the name of a score of scikit-learn, but {scoring!r} was "
                         "given.") from None  # fmt: skip
    if not callable(scorer):
        raise InputError(f"Argument `scoring` must be a name, a scorer or None, but {scoring!r} was given.")
    name = scoring if isinstance(scoring, str) else getattr(getattr(scorer, "_score_func", None), "__name__", "score")
    if isinstance(scoring, str) and scoring.startswith(AT_BEST_ONE):
        return Error(classes, scale, scorer, 1.0, f"1 - {name}", f"The score {name} is no error: 1 - {name} is "
                     "forecast.")  # fmt: skip
    if isinstance(scoring, str) and not scoring.startswith("neg_"):
        raise InputError(f"Argument `scoring` must be an error or a score that is 1 at best, but {scoring!r} is "
                         "neither.")  # fmt: skip
    words = name.removeprefix("neg_").replace("_", " ")
    return Error(classes, scale, scorer, 0.0, words, f"The score {name} is negated: its size is forecast.")
