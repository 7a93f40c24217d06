"""Several functions of one column as a scikit-learn estimator: `ClusterRegressor`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

from quenched.core import checks
from quenched.core.types import InputError, Outcome
from quenched.estimators import worlds
from quenched.estimators.bands import Banded, between, check_band, fill
from quenched.estimators.field_given import FEWEST, Given
from quenched.estimators.reading import generator_of, validated
from quenched.fields.practice import clusters, regression, sampled
from quenched.fields.theory.laplace import interval


class ClusterRegressor(Banded, Given):
    r"""Several smooth functions of one column, of which every row shows one, nobody says which.

    $p(y|x) = \sum_k p_k\, \mathcal N(y; h_k(x), \sigma^2)$ with smooth $h_k$. Between one function (`FieldRegressor`)
    and a whole density for every $x$ (`FieldConditional`). How smooth they are is decided by evidence (see
    `quenched.fields.practice.clusters`).

    Args:
        n_functions: how many.
        points: of the axis; by default 200.
        strength: of the prior, in coordinates in which the grid has unit length; by default the most probable.
        n_init: random starts, of which the best is taken.
        band: what `credible_band` is made of: "laplace", or "sampled" for draws from the posterior of the functions
            (needs blackjax). If draws cannot be trusted, a warning says why, and the band is Laplace's.
        random_state: of the starts and the draws.

    Attributes:
        grid_: points `[G]`.
        functions_: the functions at the points `[G, n_functions]`, that with the lowest mean first.
        portions_: the share of rows of each.
        strength_, noise_: strength of the prior, and variance of the noise about each function.
        log_evidence_: logarithm of the probability density of the values, up to exchanges of functions.
        outcome_: whether the iteration arrived.
        band_: "sampled" if the band is made of draws, otherwise "laplace".
        band_verdict_: how the draws were judged, as a sentence.
        draws_: functions at the points `[draws, G, n_functions]`; None without draws.
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> import numpy as np
        >>> from quenched.estimators import ClusterRegressor
        >>> draw = np.random.default_rng(0)
        >>> x, side = draw.uniform(size=(200, 1)), draw.choice([-1, 1], 200)
        >>> model = ClusterRegressor(2, random_state=0).fit(x, side * (0.5 + x[:, 0]) + 0.05 * draw.normal(size=200))
        >>> model.predict_functions([[0.5]]).round(1).tolist()
        [[-1.0, 1.0]]
    """

    def __init__(
        self,
        n_functions: int = 2,
        *,
        points: int | None = None,
        strength: float | None = None,
        n_init: int = 10,
        band: str = "laplace",
        random_state: Any = None,
    ):
        self.n_functions = n_functions
        self.points = points
        self.strength = strength
        self.n_init = n_init
        self.band = band
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ClusterRegressor:
        """Fit to one column.

        Args:
            X: rows `[n, 1]`.
            y: values `[n]`.
            sample_weight: weight w acts as w equal rows, zero as if the row were absent.

        Returns:
            The estimator.
        """
        rows, values, weights = self._read(X, y, sample_weight)
        if rows.shape[1] > 1:
            raise InputError(f"Argument `X` must have one column, but it has {rows.shape[1]}.")
        count = checks.whole("n_functions", self.n_functions, least=2)
        points = None if self.points is None else checks.whole("points", self.points, least=FEWEST)
        if self.strength is not None:
            checks.positive("strength", checks.number("strength", self.strength))
        check_band(self.band)
        found = self._fitted = clusters.learn(
            regression.grid_for(rows, points), rows, values, weights, count, generator_of(self.random_state),
            strength=self.strength, starts=checks.whole("n_init", self.n_init, least=1),
        )  # fmt: skip
        self.grid_, self.functions_ = found.grid.axes[0].coordinates, found.functions
        self.portions_, self.noise_, self.strength_ = found.portions, found.noise, found.strength
        self.log_evidence_, self.outcome_ = found.log_evidence, found.outcome
        if found.outcome is not Outcome.converged:
            text = f"EM {found.outcome.name}; more starts (`n_init`) may help."
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        fill(self, lambda key: sampled.branches(found, key))
        return self

    def _world(self, rows: int) -> Any:
        """What `quenched.calibrate` judges it in."""
        return worlds.world(worlds.Branches, self, rows)

    def credible_band(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Pointwise credible interval of each function at each row; portions and noise are taken as known.

        Args:
            X: rows.
            level: the probability.

        Returns:
            Lower and upper ends `[n, n_functions]`.
        """
        rows = self._rows(X)
        if self.draws_ is not None:
            hats = self._fitted.grid.interpolation(rows)
            return between(np.array([hats @ one for one in self.draws_]), level)
        return interval(self._fitted.at(rows), self._fitted.deviation_at(rows), level)

    def predict_functions(self, X: Any) -> np.ndarray:
        """All functions at each row `[n, n_functions]`."""
        rows = self._rows(X)
        return self._fitted.at(rows)

    def predict(self, X: Any) -> np.ndarray:
        """The mean value at each row, over the functions `[n]`."""
        return self.predict_functions(X) @ self.portions_

    def predict_branch(self, X: Any, y: Any) -> np.ndarray:
        """The probability that each row with its value is on each function `[n, n_functions]`."""
        return softmax(self._parts(X, y), axis=1)

    def score_samples(self, X: Any, y: Any) -> np.ndarray:
        """The log-density of each value at its row `[n]`."""
        return np.asarray(logsumexp(self._parts(X, y), axis=1))

    def _parts(self, X: Any, y: Any) -> np.ndarray:
        rows = self._rows(X)
        validated(self, X, y, reset=False, y_numeric=True)  # as many values as rows, and numbers
        return self._fitted.log_parts(rows, checks.numbers("y", y))
