"""Functions as a scikit-learn estimator: `FieldRegressor`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from quenched.core import checks
from quenched.core.types import InputError, Outcome
from quenched.estimators import worlds
from quenched.estimators.bands import Banded, between, check_band, fill
from quenched.estimators.reading import rows_of, validated, weights_of
from quenched.fields.practice import regression, robust, sampled
from quenched.fields.theory.laplace import interval

MOST_ORDER = 6
"""Beyond it differences lose all digits."""
FEWEST = 12
"""Points of an axis at least."""
LEAST = 1e-150
"""Size of the values whose squares are still numbers."""
PLACES = 101
"""Values of the column at which a conditional density is described."""


class Given(RegressorMixin, BaseEstimator):
    """What both read."""

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, values and weights, without rows of no weight."""
        rows: Any
        rows, values = validated(self, X, y, y_numeric=True)
        weights = weights_of(sample_weight, rows)
        values = checks.numbers("y", values)
        checks.inside("y", np.array([values.min(), values.max()]), -checks.LARGEST, checks.LARGEST)
        if 0 < np.abs(values).max() < LEAST:
            raise InputError(f"Argument `y` must reach {LEAST:g} in size, but it does not: its squares underflow.")
        there = weights > 0
        return rows[there], values[there], weights[there]

    def _rows(self, X: Any) -> np.ndarray:
        """Rows it is asked about."""
        return rows_of(self, X)


class FieldRegressor(Banded, Given):
    r"""A smooth function of one or two columns, with its uncertainty; nothing needs to be set.

    The function lives on a grid, and its $k$-th derivative is small a priori,
    $$p(h) \propto \exp\Bigl(-\tfrac\lambda2 \int |\partial^k h|^2\Bigr), \qquad
    y_i \sim \mathcal N(h(x_i), \sigma^2) .$$
    Then the posterior is Gaussian and exact. What is not given of order $k$, strength $\lambda$ and noise $\sigma^2$ is
    not taken as known: mean and deviation are those over all of them, weighed by their evidence (see
    `quenched.fields.practice.regression`).
    Between points the function is linear, and it goes on so beyond the ends of the grid, which lie a tenth of the range
    outside the data.

    With another `loss` the noise has long tails, and a few wild values do not pull the function away; then function and
    deviation are those of Laplace's method (see `quenched.fields.practice.robust`).

    Args:
        points: of each axis; by default 200 for one column and 48 for two.
        order: of the derivative that is small; by default 1, 2 and 3, weighed.
        strength: $\lambda$, in coordinates in which the grid has unit length; by default all, weighed. It needs an
            order.
        noise: $\sigma^2$; by default all, weighed.
        loss: what an error costs: "squared", "absolute", "huber" (squared up to 1.345 deviations, then linear) or
            "epsilon" (nothing up to a quarter of the scale of the noise, then linear).
        band: what `credible_band` is made of: "laplace", or "sampled" for draws from the posterior: with
            squared errors over all orders, strengths and noises; with another loss at those that were found (needs
            blackjax). If draws cannot be trusted, a warning says why, and the band is Laplace's.
        random_state: of the draws.

    Attributes:
        grid_: points `[G]`; for two columns a pair of arrays.
        mean_: the function at the points, of the grid's shape.
        variance_: its posterior variance there.
        order_, strength_: given, or the most probable.
        noise_: given, or its mean.
        log_evidence_: logarithm of the probability density of the values.
        outcome_: `converged`, or `stalled` where Newton's method ended early at a strength that matters.
        band_: "sampled" if the band is made of draws, otherwise "laplace".
        band_verdict_: how the draws were judged, as a sentence.
        draws_: functions at the points `[draws, ...]`; None without draws.
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> import numpy as np
        >>> from quenched.estimators import FieldRegressor
        >>> draw = np.random.default_rng(0)
        >>> x = draw.uniform(0, 3, size=(100, 1))
        >>> model = FieldRegressor().fit(x, np.sin(4 * x[:, 0]) + 0.1 * draw.normal(size=100))
        >>> mean, deviation = model.predict([[1.0]], return_std=True)
        >>> bool(abs(mean[0] - np.sin(4)) < 3 * deviation[0]), np.sqrt(model.noise_).round(1).item()
        (True, 0.1)
    """

    def __init__(
        self,
        *,
        points: int | None = None,
        order: int | None = None,
        strength: float | None = None,
        noise: float | None = None,
        loss: str = "squared",
        band: str = "laplace",
        random_state: Any = None,
    ):
        self.points = points
        self.order = order
        self.strength = strength
        self.noise = noise
        self.loss = loss
        self.band = band
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FieldRegressor:
        """Fit to one or two columns.

        Args:
            X: rows `[n, 1]` or `[n, 2]`.
            y: values `[n]`.
            sample_weight: weight w acts as w equal rows, zero as if the row were absent.

        Returns:
            The estimator.
        """
        rows, values, weights = self._read(X, y, sample_weight)
        if rows.shape[1] > 2:
            raise InputError(f"Argument `X` must have one or two columns, but it has {rows.shape[1]}: a grid of more "
                             "dimensions would hold too many points.")  # fmt: skip
        points = None if self.points is None else checks.whole("points", self.points, least=FEWEST)
        check_prior(self.order, self.strength)
        for name in ("strength", "noise"):
            if getattr(self, name) is not None:
                checks.positive(name, checks.number(name, getattr(self, name)))
        if self.loss not in ("squared", *robust.LOSSES):
            raise InputError('Argument `loss` must be "squared", "absolute", "huber" or "epsilon", but '
                             f"{self.loss!r} was given.")  # fmt: skip
        check_band(self.band)
        given: Any = {"order": self.order, "strength": self.strength, "noise": self.noise}
        seen = regression.grid_for(rows, points), rows, values, weights
        if self.loss == "squared":
            found = self._fitted = regression.learn(*seen, **given)
        else:
            found = self._fitted = robust.learn(*seen, self.loss, **given)
        axes = tuple(axis.coordinates for axis in found.grid.axes)
        self.grid_ = axes[0] if len(axes) == 1 else axes
        self.mean_, self.variance_ = found.mean, found.variance
        self.order_, self.strength_, self.noise_ = found.order, found.strength, found.noise
        self.log_evidence_, self.outcome_ = found.log_evidence, found.outcome
        if self.outcome_ is not Outcome.converged:
            warnings.warn("Newton's method stalled at some strength; the function may be inaccurate.",
                          ConvergenceWarning, stacklevel=2)  # fmt: skip
        fill(self, lambda key: sampled.noisy(found, key) if found.parts else sampled.function(*seen, key, **given))
        return self

    def _world(self, rows: int) -> Any:
        """What `quenched.calibrate` judges it in."""
        return worlds.world(worlds.Functions, self, rows)

    def credible_band(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Pointwise credible interval of the function at each row.

        Args:
            X: rows.
            level: the probability.

        Returns:
            Lower and upper ends `[n]`.
        """
        rows = self._rows(X)
        if self.draws_ is not None:
            hats = self._fitted.grid.interpolation(rows)
            return between((hats @ self.draws_.reshape(len(self.draws_), -1).T).T, level)
        return interval(self._fitted.at(rows), np.sqrt(self._fitted.variance_at(rows)), level)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the function at each row.

        Args:
            X: rows.
            return_std: whether to return its standard deviation, too. It is that of the function; that of a new value
                is the root of its square and `noise_`.

        Returns:
            Means `[n]`, or means and deviations.
        """
        rows = self._rows(X)
        mean = self._fitted.at(rows)
        return (mean, np.sqrt(self._fitted.variance_at(rows))) if return_std else mean


def check_prior(order: Any, strength: Any) -> None:
    """Validate `order` and `strength`."""
    if order is not None and checks.whole("order", order, least=1) > MOST_ORDER:
        raise InputError(f"Argument `order` must be at most {MOST_ORDER}, but {order} was given.")
    if strength is None:
        return
    checks.positive("strength", strength)
    if order is None:
        raise InputError("Argument `order` must be given together with `strength`, but it is None: strengths of "
                         "different orders cannot be compared.")  # fmt: skip
