"""Outlier selection as scikit-learn estimators: `SoftSelectionClassifier` and `HardSelectionClassifier`."""

from __future__ import annotations

import functools
import warnings
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import logit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from quenched.core import checks
from quenched.core.types import InputError, Outcome
from quenched.estimators.reading import Units, rows_of, validated, weights_of
from quenched.outliers import learner
from quenched.outliers.learner import Evidence
from quenched.outliers.model import Covariance, HardSelection, Rule, SoftSelection
from quenched.outliers.practice import Limit, find_limit


class _SelectionClassifier(ClassifierMixin, BaseEstimator):
    """What both kinds of selection have in common; `_rule` is how rows are selected."""

    _rule: ClassVar[type[Rule]]

    def __init__(
        self,
        *,
        outlier_fraction: float | None = None,
        gamma: float | None = None,
        outlier_spread: float | None = None,
        prior: float | None = None,
        covariance: Covariance | None = None,
        standardize: bool = False,
        accuracy: float = 1e-5,
        max_iter: int = 1000,
    ):
        self.outlier_fraction, self.gamma, self.outlier_spread = outlier_fraction, gamma, outlier_spread
        self.prior, self.covariance, self.standardize = prior, covariance, standardize
        self.accuracy, self.max_iter = accuracy, max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to a table.

        Args:
            X: rows `[n, N]`.
            y: their classes `[n]`, two different ones at least, two rows of each at least.
            sample_weight: weight w acts as w equal rows, zero as if the row were absent.

        Returns:
            The estimator.
        """
        rows, y = validated(self, X, y)
        check_classification_targets(y)
        weights = weights_of(sample_weight, rows)
        share, spread = self.outlier_fraction, self.outlier_spread
        if share is not None:
            checks.inside("outlier_fraction", checks.number("outlier_fraction", share), 0, 1)
        if spread is not None and not checks.number("outlier_spread", spread) >= 1:
            raise InputError(f"Argument `outlier_spread` must be at least 1, but {spread} was given.")
        units = self._units = Units.of(rows, weights, standardize=checks.flag("standardize", self.standardize))
        Z = units.into(rows)
        self._how = {
            "spread": spread, "eta": None if share is None else float(logit(share)), "covariance": self.covariance,
            "prior": units.given("prior", self.prior, 1), "accuracy": self.accuracy,
            "passes": checks.whole("max_iter", self.max_iter, least=1),
        }  # fmt: skip
        rule = self._rule(units.given("gamma", self.gamma, -2))
        fitted = learner.fit_classes(rule, (Z, y), sample_weight=weights, **self._how)
        evidence = self._weigh(fitted, Z, y, weights, share)
        self._fitted, self.classes_, self.class_prior_ = fitted, fitted.classes, fitted.shares
        self.centres_ = units.back(fitted.centres)
        self.gamma_, self.outlier_spread_ = float(units.measure(fitted.gamma, -2)), fitted.spread
        self.outlier_fraction_, self.selected_ = fitted.outlier_fraction, fitted.selected
        self.n_iter_, self.outcome_ = fitted.passes, fitted.outcome
        self.converged_ = fitted.outcome == Outcome.converged
        self.outlier_probability_ = np.ones(len(Z))
        present = weights > 0
        self.outlier_probability_[present] = evidence.mix(fitted.outlier_probability(Z[present], y[present]))
        self._conclude(evidence, present, weights)
        if not self.converged_:
            text = f"EM {self.outcome_.name} after {self.n_iter_} steps; a larger `max_iter` or `accuracy` may help."
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        left = [float(weights[y == k] @ fitted.selected[y == k]) for k in self.classes_]
        if min(left) < 1:
            text = (f"Nearly all rows of class {self.classes_[np.argmin(left)]} look like outliers, so that its centre "
                    "is uncertain; give a smaller `outlier_fraction`.")  # fmt: skip
            warnings.warn(text, UserWarning, stacklevel=2)
        return self

    def _weigh(self, fitted: Any, Z: np.ndarray, y: np.ndarray, weights: np.ndarray, share: float | None) -> Evidence:
        """What the rows of positive weight tell."""
        present = weights > 0
        X, labels, omega = Z[present], y[present], weights[present]
        rule = self._rule(self._units.given("gamma", self.gamma, -2))

        def fit(rows: np.ndarray, start: Any) -> Any:
            return learner.fit_classes(
                rule, (X[rows], labels[rows]), sample_weight=omega[rows], start=start, **self._how
            )

        return learner.weigh_evidence(fit, X, labels, omega, fitted, share=share, generator=np.random.default_rng(0))

    def _conclude(self, evidence: Evidence, present: np.ndarray, weights: np.ndarray) -> None:
        """The attributes that say how far to trust the fit, and a warning where its scores are contested."""
        n = len(present)
        self.__dict__.pop("_limit", None)
        self.outlier_fraction_interval_, self._likely = evidence.interval, evidence.likely
        self._goodness = evidence.goodness
        self._rows = float(weights.sum())
        self.clump_, self.alternative_ = np.zeros(n, bool), None
        self.clump_[present] = evidence.clump
        if evidence.alternative is not None:
            self.alternative_ = np.ones(n)
            self.alternative_[present] = evidence.alternative
        said = ""
        if evidence.clump.any():
            said = (f"{evidence.clump.sum()} rows lie in a tight ball apart from the others (`clump_` marks them): "
                    "they may be a group of their own, or outliers that agree with each other; `alternative_` leaves "
                    "them out.")  # fmt: skip
        elif evidence.alternative is not None:
            said = "Another selection explains the table about as well; `alternative_` holds its probabilities."
        self._said = said
        if said:
            warnings.warn(said, UserWarning, stacklevel=3)

    @functools.cached_property
    def _limit(self) -> Limit | None:
        """The place in the phase diagram, unless the share was given or rows are too few to judge it."""
        if self.outlier_fraction is not None or not np.isfinite(self._likely):
            return None
        return find_limit(self._rule(), self._fitted, self._rows, self._likely)

    @property
    def told_(self) -> bool:
        """Whether the data tell the share of outliers."""
        check_is_fitted(self, "_fitted")
        low, high = self.outlier_fraction_interval_
        if high - low > learner.WIDEST or self.clump_.any() or self._goodness.misfit:
            return False
        return self._limit is None or not self._limit.passed

    @property
    def sentence_(self) -> str:
        """What to know before using the result; empty if there is nothing."""
        told, (low, high), said = self.told_, self.outlier_fraction_interval_, [self._said]
        if self._goodness.misfit:
            said.append(
                f"The share of outliers cannot be told: {self._goodness.misfit}. "
                "`SelectionClassifier` assumes less about the classes."
            )
        elif self._limit is not None and self._limit.passed:
            said.append(
                f"The share of outliers cannot be told: with {self._limit.alpha:.3g} rows per column theory loses the "
                f"classes beyond {self._limit.share:.1%}, and rows out of fold look like {self._likely:.0%}."
            )
        elif not told:
            said.append(f"The share of outliers cannot be told: anything from {low:.0%} to {high:.0%} fits.")
        return " ".join(filter(None, said))

    def _joint(self, X: Any) -> np.ndarray:
        """The log-probability of each class and the row, were it informative, up to a constant of the row `[n, K]`."""
        rows = rows_of(self, X, getattr(self, "_units", None))
        return self._fitted.log_ratios(rows) + np.log(self.class_prior_)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row `[n]`."""
        joint = self._joint(X)
        return self.classes_[np.argmax(joint, axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class `[n, K]`, were the row informative."""
        return softmax(self._joint(X), axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """The log-probability of each class up to a constant of the row `[n, K]`; of two their difference `[n]`."""
        joint = self._joint(X)
        return joint[:, 1] - joint[:, 0] if len(self.classes_) == 2 else joint

    def outlier_probability(self, X: Any, y: Any = None) -> np.ndarray:
        """The probability `[n]` that rows are outliers: near 0 where its class explains a row, near 1 for an outlier.

        Args:
            X: rows `[n, N]`.
            y: their classes `[n]`; without them a row is judged by its place alone, whatever its class.
        """
        rows = rows_of(self, X, getattr(self, "_units", None))
        if y is not None:
            y = np.asarray(y)
            if y.shape != (len(rows),) or not np.all(np.isin(y, self.classes_)):
                raise InputError(f"Argument `y` must give each of the {len(rows)} rows one of the classes "
                                 f"{self.classes_.tolist()}, but it does not.")  # fmt: skip
        return self._fitted.outlier_probability(rows, y)


class SoftSelectionClassifier(_SelectionClassifier):
    r"""Nearest centre, learned from data of which some are outliers: rows count as much as they are informative.

    $$P(x, y) = \omega_y \Big[ (1 - f)\, \mathcal N(x;\, c_y, \tfrac1\gamma I)
    + f\, \mathcal N(x;\, \bar x, \tfrac\rho\gamma I) \Big]$$

    A share $f$ of the rows are outliers: their labels carry no information ($\omega_y$ is the share of class $y$) and
    they lie about the mean $\bar x$ of all rows. EM finds the most probable centres $c_y$ and, unless they are given,
    $\gamma$, $\rho$ and $f$. [dietrich1998] has two classes, $c_\pm = \pm c$, and $\rho = 1$; on real data outliers
    are mostly broader than classes, so $\rho$ is estimated by default. It does not help against outliers that agree
    with each other, such as a class most rows of which are false in the same way.

    Args:
        outlier_fraction: $f$, strictly between 0 and 1; None: estimated.
        gamma: $\gamma$, the inverse variance of informative rows in each direction; None: estimated.
        outlier_spread: $\rho \ge 1$, the variance of the outliers in units of $1/\gamma$; None: estimated.
        covariance: the shape of the classes, an object of `quenched.outliers`. `Spherical()`, the default, is the
            formula above; with `Shrunk()` they have a covariance matrix in place of $I/\gamma$, shrunk towards a
            sphere as far as the rows call for, and selection and covariance are found in turn; with
            `Shrunk(common=False)` each has its own. $\gamma$ and $\rho$ then are in units of that covariance.
        prior: how far from $\bar x$ a centre is believed to lie (root mean square of its Gaussian prior), which weighs
            as much as $N/(\gamma\, \mathrm{prior}^2)$ rows; None: as far as the rows do, which is less than one row.
        standardize: give all features mean 0 and variance 1; `gamma` and `prior` are then in these units.
        accuracy: what may be left to gain in the log-probability of a row when EM stops.
        max_iter: EM steps at most.

    Attributes:
        classes_: the classes.
        class_prior_: $\omega_y$ `[K]`.
        centres_: $c_y$, in the units of the data `[K, N]`.
        gamma_, outlier_spread_, outlier_fraction_: as given or estimated.
        outlier_probability_: the probability that each training row is an outlier `[n]`; 1 for rows without weight.
        selected_: how much each training row counts `[n]`, for soft selection 1 minus that.
        outlier_fraction_interval_: an interval that holds the share with a probability of about 80% if classes have
            the assumed shape: from rows that the centres were not fitted to. In most tables they have not, rows in long
            tails are called outliers, too, and the share is too large: `SelectionClassifier` assumes less.
        told_: whether the data tell the share: whether that interval is narrow, rows out of fold lie about their
            centres as the assumed shape says and those that look like outliers are not tails of their own class, and
            theory says that the classes can be found among so many outliers with so few rows for each column
            (`quenched.outliers.transitions` at the estimated parameters; computed when it is first asked for).
        clump_: the training rows in a tight ball of one label, apart from all others `[n]`. If there is one, there is a
            warning, and their probability is one half.
        alternative_: the probabilities without that ball, or by another selection that explains the table about as
            well `[n]`, of which there is a warning, too; None if there is none. `outlier_probability_` weighs both.
        sentence_: what to know before using the result; empty if there is nothing.
        n_iter_: EM steps made.
        converged_: whether EM came to its end.
        outcome_: the same as a word.
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> import numpy as np
        >>> from sklearn.datasets import load_wine
        >>> from quenched.estimators import SoftSelectionClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> noisy = np.where(np.arange(len(y)) % 4 == 0, (y + 1) % 3, y)
        >>> model = SoftSelectionClassifier(standardize=True).fit(X, noisy)
        >>> bool(model.score(X, y) > 0.94), bool(model.outlier_probability_[noisy != y].mean() > 0.9)
        (True, True)
    """

    _rule = SoftSelection


class HardSelectionClassifier(_SelectionClassifier):
    r"""Nearest centre, learned from the most probable set of informative rows; the others do not count at all.

    The world is that of `SoftSelectionClassifier`. Here the centres are averaged over, and the set of selected rows is
    the most probable one that EM finds from the soft solution: no single row is left to change. Its energy is

    $$\mathcal H = \sum_k \Big[ \frac N2 \ln \frac{a_k}\tau - \frac{|b_k|^2}{2 a_k} \Big]
    + \sum_{\mu\ \mathrm{selected}} \big( \eta + \ldots \big), \qquad a_k = \tau + \gamma n_k, \quad
    b_k = \gamma \sum_{\mu\ \mathrm{selected\ in}\ k} (x_\mu - \bar x)$$

    with $\tau = N/\mathrm{prior}^2$, $n_k$ the number of selected rows of class $k$, and terms that vanish for
    $\rho = 1$ left out. [dietrich1998, eq. (10)]

    Arguments and attributes are those of `SoftSelectionClassifier`, but for:

    Attributes:
        centres_: the mean of $c_y$, in the units of the data `[K, N]`.
        outlier_probability_: the probability that each training row is an outlier, at these centres `[n]`.
        selected_: 1 for the selected training rows, 0 for the others `[n]`.

    Examples:
        >>> from sklearn.datasets import load_wine
        >>> from quenched.estimators import HardSelectionClassifier
        >>> model = HardSelectionClassifier(standardize=True).fit(*load_wine(return_X_y=True))
        >>> sorted(set(model.selected_.tolist())), bool(model.selected_.mean() > 0.8)
        ([0.0, 1.0], True)
    """

    _rule = HardSelection
