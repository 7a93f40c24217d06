"""Classes with probabilities that can be trusted, as a scikit-learn estimator: `FieldClassifier`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from quenched.core import checks, results
from quenched.core.types import InputError, Outcome
from quenched.estimators import worlds
from quenched.estimators.bands import Banded, between, check_band, fill
from quenched.estimators.reading import rows_of, validated, weights_of
from quenched.fields.practice import classification
from quenched.fields.practice.bands import DRAWS, draw

TOGETHER = 3
"""Columns that one grid can have."""
FEWEST = 8
"""Points of an axis at least."""
LEFT_OUT = 400
"""Rows that are left out, one at a time, to describe the calibration: at most so many, evenly over the table."""


class FieldClassifier(Banded, ClassifierMixin, BaseEstimator):
    r"""Classes of rows by smooth log-odds, with calibrated probabilities; nothing needs to be set.

    $p(k|x) \propto e^{g_k(x)}$ with smooth fields $g_k$: on one grid for up to three columns, a sum of one-dimensional
    fields $\sum_c g_{kc}(x_c)$ for more. How smooth they are is decided by evidence. A probability is the ratio of two
    integrals over all fields, with and without the row, each by Laplace's method, not that of the best field
    alone; for large tables it is the mean over the Gaussian posterior (see `quenched.fields.practice.classification`).

    Args:
        points: of each axis; by default 33 for one column, 17 for two and 11 for three on one grid.
        together: whether the columns, two or three, are on one grid; by default what has more evidence. More than three
            are always added.
        strength: of the prior of straight lines and of what bends, each in coordinates in which a column has unit
            length; by default those of most evidence.
        band: what `credible_band` is made of: "laplace", or "sampled" for draws from the posterior (needs
            blackjax). If draws cannot be trusted, a warning says why, and the band is Laplace's.
        random_state: of the draws.

    Attributes:
        classes_: the classes `[K]`.
        together_: whether the columns are on one grid.
        strength_: given or found.
        log_evidence_: logarithm of the probability of the classes of the rows.
        exact_: whether probabilities are ratios of two integrals; otherwise means over a Gaussian.
        band_: "sampled" if the band is made of draws, otherwise "laplace".
        band_verdict_: how the draws were judged, as a sentence.
        draws_: fields of the classes `[draws, ...]`; None without draws.
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> import numpy as np
        >>> from quenched.estimators import FieldClassifier
        >>> x = np.linspace(-2, 2, 60)[:, None]
        >>> y = np.where(np.random.default_rng(0).uniform(size=60) < 1 / (1 + np.exp(-3 * x[:, 0])), "up", "down")
        >>> model = FieldClassifier().fit(x, y)
        >>> model.predict([[-2.0], [2.0]]).tolist()
        ['down', 'up']
        >>> bool(abs(model.predict_proba([[0.0]])[0, 1] - 0.5) < 0.2)
        True
    """

    def __init__(
        self,
        *,
        points: int | None = None,
        together: bool | None = None,
        strength: tuple[float, float] | None = None,
        band: str = "laplace",
        random_state: Any = None,
    ):
        self.points = points
        self.together = together
        self.strength = strength
        self.band = band
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FieldClassifier:
        """Fit to a table.

        Args:
            X: rows `[n, N]`.
            y: their classes `[n]`, two different ones at least.
            sample_weight: weight w acts as w equal rows, zero as if the row were absent.

        Returns:
            The estimator.
        """
        rows: Any
        rows, y = validated(self, X, y)
        check_classification_targets(y)
        weights = weights_of(sample_weight, rows)
        there = weights > 0
        rows, weights = rows[there], weights[there]
        self.classes_, labels = np.unique(np.asarray(y)[there], return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError("Argument `y` must hold examples of at least two classes, but only one class has any: "
                             f"{self.classes_[0]!s}.")  # fmt: skip
        check_band(self.band)
        points = None if self.points is None else checks.whole("points", self.points, least=FEWEST)
        if self.together is not None and checks.flag("together", self.together) and rows.shape[1] > TOGETHER:
            raise InputError(f"Argument `together` must be None or False for more than {TOGETHER} columns, but `X` has "
                             f"{rows.shape[1]}.")  # fmt: skip
        several = rows.shape[1] in range(2, TOGETHER + 1)
        ways = [rows.shape[1] == 1] if not several else [False, True] if self.together is None else [self.together]
        tried = [
            classification.learn(rows, labels, weights, len(self.classes_), joint=way, points=points,
                                 strength=_pair(self.strength))
            for way in ways
        ]  # fmt: skip
        found = self._fitted = max(tried, key=lambda one: one.log_evidence)
        self.together_, self.exact_ = found.layout.joint, found.exact
        self.strength_, self.log_evidence_ = (found.lines, found.bends), found.log_evidence
        self._labels = labels
        fill(self, lambda key: draw(found.parts(), key))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class `[n, K]`."""
        rows = self._rows(X)
        return self._fitted.probabilities(rows)

    def _world(self, rows: int) -> Any:
        """What `quenched.calibrate` judges it in."""
        return worlds.world(worlds.Classes, self, rows)

    def credible_band(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Pointwise credible interval of the probability of each class at each row.

        That probability is $p(k|x)$ of the unknown fields; `predict_proba` is its mean. Laplace's band is made of draws
        from the Gaussian of the fields.

        Args:
            X: rows.
            level: the probability.

        Returns:
            Lower and upper ends `[n, K]`.
        """
        rows, fields = self._rows(X), self.draws_
        if fields is None:
            with jax.enable_x64(True):
                fields = self._fitted.gaussian(jax.random.key(0), DRAWS)
        return between(self._fitted.drawn(fields, rows), level)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row `[n]`."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def _rows(self, X: Any) -> np.ndarray:
        """Rows it is asked about."""
        return rows_of(self, X)

    def describe(self, bins: int = 10) -> xr.Dataset:
        """The calibration curve: how often rows are right that are said to be right with some probability.

        Rows of the table are left out one at a time, at most 400 of them, so that nothing is judged by what it was
        learned from.

        Args:
            bins: intervals of the probability of the most probable class.

        Returns:
            `confidence` and `accuracy`, means over the rows of each `bin`, and their number `rows`; where there are
            none, they are NaN and `outcome` is "absent". The attribute `calibration_error` is the mean of their
            distance over all rows, `log_loss` the mean of minus the logarithm of the probability of the right class.
        """
        check_is_fitted(self, "_fitted")
        bins = checks.whole("bins", bins, least=1)
        found = self._fitted
        chosen = np.unique(np.linspace(0, len(found.labels) - 1, LEFT_OUT).astype(int))
        P = np.array([found.without(i) for i in chosen])
        labels, weights = found.labels[chosen], found.weights[chosen]
        confidence, right = P.max(axis=1), P.argmax(axis=1) == labels
        edges = np.linspace(0, 1, bins + 1)
        at = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, bins - 1)
        rows = np.bincount(at, weights, bins)
        with np.errstate(invalid="ignore"):
            means = [np.bincount(at, weights * part, bins) / rows for part in (confidence, right)]
        gap = float(np.nansum(rows * np.abs(means[0] - means[1])) / rows.sum())
        loss = -np.log(np.maximum(P[np.arange(len(labels)), labels], np.finfo(float).tiny))
        about = results.provenance(
            "fields", source="calibration of classes", rows=int(rows.sum()), calibration_error=gap,
            log_loss=float(weights @ loss / weights.sum()), strength=self.strength_, log_evidence=self.log_evidence_,
        )  # fmt: skip
        data = {"confidence": ("bin", means[0]), "accuracy": ("bin", means[1]), "rows": ("bin", rows)}
        data["outcome"] = ("bin", np.where(rows > 0, Outcome.converged.name, Outcome.absent.name))
        return xr.Dataset(data, {"bin": (edges[1:] + edges[:-1]) / 2}, about)


def _pair(strength: Any) -> tuple[float, float] | None:
    if strength is None:
        return None
    if np.shape(strength) != (2,):
        raise InputError(f"Argument `strength` must be two numbers, of straight lines and of what bends, but "
                         f"{strength!r} was given.")  # fmt: skip
    checks.positive("strength", strength)
    return float(strength[0]), float(strength[1])
