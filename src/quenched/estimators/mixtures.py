"""Mixtures of Gaussians as a scikit-learn estimator: `AnnealedMixture`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.base import BaseEstimator, ClusterMixin, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from quenched.core import checks
from quenched.core.types import InputError, Outcome
from quenched.estimators.cluster_finder import find
from quenched.estimators.reading import Units, bounded, generator_of, key_of, rows_of, validated, weights_of
from quenched.mixtures import learner
from quenched.mixtures.model import Annealed, Diagonal, Full, MaximumLikelihood, Spherical


class AnnealedMixture(DensityMixin, ClusterMixin, BaseEstimator):
    r"""A mixture of Gaussians, found by deterministic annealing and, where they are likelier, by random starts.

    $$P(x) = \sum_k w_k\, \mathcal N(x;\, c_k, \Sigma_k)$$

    The width of the Gaussians falls from a value at which all centres coincide; clusters split one by one, each along
    the direction in which its rows vary most (see `quenched.mixtures.fit`). `splits_` shows in which order, at which
    widths and in which directions clusters split. Then covariances become free, and a few random starts compete: the
    likeliest mixture is climbed to the end.

    Args:
        n_components: how many Gaussians; None for as many as there are clusters with a valley between them (see
            `quenched.mixtures.find_clusters`).
        widths: `Full()` (default), `Diagonal()` or `Spherical()`: covariances of maximum likelihood, variances of each
            feature, or one variance; each for every Gaussian by itself or, with `common=True`, for all; or
            `MaximumLikelihood(width)`: one given variance.
        n_init: how often to anneal, each time with other noise; the most likely result is kept.
        rivals: how many random starts compete with each annealing.
        moves: how often, at most, one Gaussian is taken away and another one split where that is likelier; only
            where there are rivals.
        step: the largest share by which the width falls at once.
        noise: of the directions in which clusters split.
        accuracy: what may be left to gain in the log-likelihood of a row when EM stops, judged by its last two gains.
        max_iter: EM steps at most.
        warm_start: go on from the last fit's Gaussians, without annealing, if their number has not changed.
        level: of the p-value of a split, for `n_components=None`.
        random_state: seed of the noise.

    Attributes:
        n_components_: how many Gaussians there are.
        clusters_: the tree of clusters with the p-value of each split, a dataset, for `n_components=None`, else None;
            `quenched.plot(model.clusters_)` draws it.
        means_: centres `[K, N]`.
        covariances_: matrices `[K, N, N]` for `Full`, variances of each feature `[K, N]` for `Diagonal`, else `[K]`.
        weights_: shares `[K]`.
        splits_: the splitting sequence, a dataset; `quenched.plot(model.splits_)` draws it as a tree.
        lower_bound_: mean log-likelihood of the training rows.
        converged_: whether EM converged within `max_iter` steps, and no Gaussian describes so few rows that its
            likelihood says nothing: one or two, or as many as there are features.
        outcome_: the same as an `Outcome`.
        labels_: the most probable Gaussian of each training row.
        n_iter_: EM steps made.
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> from sklearn.datasets import load_iris
        >>> from quenched.estimators import AnnealedMixture
        >>> X, _ = load_iris(return_X_y=True)
        >>> model = AnnealedMixture(n_components=3, random_state=0).fit(X)
        >>> model.splits_.width.values.round(1).tolist()
        [2.9, 1.3]
        >>> AnnealedMixture(n_components=None, random_state=0).fit(X).n_components_
        2
    """

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        widths: Spherical | Diagonal | MaximumLikelihood | None = None,
        n_init: int = 1,
        rivals: int = 40,
        moves: int = 3,
        step: float = 0.2,
        noise: float = 1e-3,
        accuracy: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        level: float = 0.05,
        random_state: Any = None,
    ):
        self.n_components, self.widths, self.n_init, self.random_state = n_components, widths, n_init, random_state
        self.step, self.noise, self.accuracy = step, noise, accuracy
        self.max_iter, self.warm_start, self.rivals, self.level = max_iter, warm_start, rivals, level
        self.moves = moves

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> AnnealedMixture:
        """Fit to a table.

        Args:
            X: rows `[n, N]`.
            y: not used.
            sample_weight: weight w acts as w equal rows, zero as if the row were absent.

        Returns:
            The estimator.
        """
        rows = validated(self, X)
        weights = weights_of(sample_weight, rows)
        key = key_of(self.random_state)
        count, self.clusters_ = self._count(rows, weights, key)
        if np.sum(weights > 0) < count:
            raise InputError(f"Argument `n_components` must not exceed the rows, but n_samples={np.sum(weights > 0)} "
                             f"and n_components={count}.")  # fmt: skip
        last = getattr(self, "_fitted", None) if checks.flag("warm_start", self.warm_start) else None
        last = last if last is not None and (self.n_components or len(last.weights) == count) else None
        if last is None:
            self._units = Units.of(rows, weights, standardize=False)
        Z = bounded(self._units.into(rows))
        rule: Any = Full() if self.widths is None else self.widths
        if isinstance(rule, MaximumLikelihood):
            given: Any = self._units.given("width", rule.width, 2)
            rule = MaximumLikelihood(given)
        schedule = Annealed(step=self.step, noise=self.noise)
        fitted = learner.fit(
            rule, Z, components=count, key=key, start=schedule if last is None else last,
            sample_weight=weights, n_init=self.n_init, rivals=self.rivals, moves=self.moves,
            accuracy=self.accuracy, passes=self.max_iter,
        )  # fmt: skip
        self._fitted, self.splits_, self.n_components_, units = fitted, fitted.splits, count, self._units
        if not fitted.splits.attrs["relative"]:
            width = units.measure(fitted.splits["width"].values, 2)
            self.splits_ = fitted.splits.assign(width=("split", width))
        self.means_, self.covariances_ = units.back(fitted.centres), units.measure(fitted.widths, 2)
        self.weights_, self.outcome_, self.n_iter_ = fitted.weights, fitted.outcome, fitted.passes
        self.lower_bound_ = fitted.log_likelihood - self._log_volume()
        self.converged_ = fitted.outcome == Outcome.converged
        self.labels_ = fitted.log_densities(Z).argmax(axis=1)
        if not self.converged_:
            text = f"EM {fitted.outcome.name} after {fitted.passes} steps; a larger `max_iter` or `accuracy` may help."
            if fitted.outcome == Outcome.failed:
                text = ("From every start a Gaussian closed in on a few rows, whose likelihood says nothing; fewer "
                        "components or plainer `widths` may help.")  # fmt: skip
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        return self

    def _count(self, rows: np.ndarray, weights: np.ndarray, key: Any) -> tuple[int, Any]:
        """How many Gaussians, and the tree of clusters that says so."""
        if self.n_components is not None:
            return checks.whole("n_components", self.n_components, least=1), None
        level = checks.number("level", self.level)
        Z = bounded(Units.of(rows, weights, standardize=False).into(rows))
        found = find(Z, weights, self.random_state, key, level=level)
        return found.count, found.splits

    def _log_volume(self) -> float:
        """The logarithm of the volume of a cube of unit length, in the units of the data."""
        return self._fitted.centres.shape[1] * self._units.power * float(np.log(2))

    def _log_densities(self, X: Any) -> np.ndarray:
        """The log-density of each Gaussian at the rows of a query `[n, K]`, in the units of training."""
        rows = rows_of(self, X, getattr(self, "_units", None))
        return self._fitted.log_densities(rows)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable Gaussian of each row `[n]`."""
        return self._log_densities(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each Gaussian `[n, K]`."""
        return softmax(self._log_densities(X), axis=1)

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density at each row `[n]`."""
        return np.asarray(logsumexp(self._log_densities(X), axis=1)) - self._log_volume()

    def score(self, X: Any, y: Any = None) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw `n_samples` new rows `[n, N]`, and return with them the Gaussian that each came from `[n]`."""
        check_is_fitted(self, "_fitted")
        draw = generator_of(self.random_state)
        k = draw.choice(len(self.weights_), checks.whole("n_samples", n_samples, least=1), p=self.weights_)
        c, v = self._fitted.centres, self._fitted.widths
        noise = draw.standard_normal((len(k), c.shape[1]))
        if v.ndim == 3:
            values, vectors = np.linalg.eigh(v)
            root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
            return self._units.back(c[k] + np.einsum("nij,nj->ni", root[k], noise)), k
        return self._units.back(c[k] + np.sqrt(v if v.ndim == 2 else v[:, None])[k] * noise), k

    def bic(self, X: Any) -> float:
        """The Bayesian information criterion on these rows: the lower the better."""
        log_p = self.score_samples(X)
        return -2 * float(np.sum(log_p)) + self._parameters() * float(np.log(len(log_p)))

    def aic(self, X: Any) -> float:
        """Akaike's information criterion on these rows: the lower the better."""
        return -2 * float(np.sum(self.score_samples(X))) + 2 * self._parameters()

    def _parameters(self) -> int:
        """How many numbers were free."""
        rule = Full() if self.widths is None else self.widths
        if isinstance(rule, MaximumLikelihood):
            return self.means_.size
        K, N = self.means_.shape
        each = N * (N + 1) // 2 if isinstance(rule, Full) else N if isinstance(rule, Diagonal) else 1
        return self.means_.size + each * (1 if rule.common else K) + (0 if rule.equal_weights else K - 1)
