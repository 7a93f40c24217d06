"""Conditional densities as a scikit-learn estimator: `FieldConditional`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from quenched.core import checks, results
from quenched.core.types import InputError, Outcome
from quenched.estimators import worlds
from quenched.estimators.bands import Banded, between, check_band, fill
from quenched.estimators.field_given import FEWEST, Given, check_prior
from quenched.fields.model.grid import Axis
from quenched.fields.practice import conditional, regression, rounding, sampled
from quenched.fields.theory.laplace import interval

PLACES = 101
"""Values of the column at which a conditional density is described."""


class FieldConditional(Banded, Given):
    r"""The whole density $p(y|x)$ of a value given one column, not only its mean; nothing needs to be set.

    The mean over $x$ is that of `FieldRegressor`; about it, the logarithm of the density is a field on a grid that is
    smooth along $x$ and along $y$. How smooth is weighed by evidence, and the estimate is the mean over what was
    weighed (see `quenched.fields.practice.conditional`). Noise that grows with $x$, skewed noise and several branches
    are found if they are there. The column may hold few different values. Beyond its range the density is that of the
    nearest end, about the mean, which goes on straight.

    Args:
        points: of the grid along x and along y; by default 24 and 160.
        order: of the derivative along x that is small; by default 1 and 2 are weighed. (Along y it is 3.)
        strength: of the prior along x and along y, in coordinates in which the grid has unit lengths; by default all
            are weighed. It needs an order.
        band: what `credible_band` is made of: "laplace", or "sampled" for draws from the posterior (needs
            blackjax). If draws cannot be trusted, a warning says why, and the band is Laplace's.
        random_state: of the draws.

    Attributes:
        grid_: points along x and along y.
        density_: at the points `[x, y]`.
        order_: the most probable.
        strength_: the most probable, along x and along y.
        log_evidence_: logarithm of the probability of what the mean leaves of the values.
        path_: what was tried: order, strengths, logarithm of the evidence, share.
        outcome_: whether all minima were found.
        rounding_: to what the values were rounded, zero if they were not; each is then spread over its interval.
        band_: "sampled" if the band is made of draws, otherwise "laplace".
        band_verdict_: how the draws were judged, as a sentence.
        draws_: logarithms of the density of the remainder at the points `[draws, x, remainder]`; None without draws.
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> import numpy as np
        >>> from quenched.estimators import FieldConditional
        >>> draw = np.random.default_rng(0)
        >>> x = draw.uniform(size=(300, 1))
        >>> model = FieldConditional().fit(x, (0.1 + x[:, 0]) * draw.normal(size=300))
        >>> low, high = model.predict_interval([[0.0], [1.0]], level=0.9).T
        >>> bool(high[0] - low[0] < 0.5 < 2.5 < high[1] - low[1])
        True
    """

    def __init__(
        self,
        *,
        points: tuple[int, int] | None = None,
        order: int | None = None,
        strength: tuple[float, float] | None = None,
        band: str = "laplace",
        random_state: Any = None,
    ):
        self.points = points
        self.order = order
        self.strength = strength
        self.band = band
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FieldConditional:
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
            raise InputError(f"Argument `X` must have one column, but it has {rows.shape[1]}: give the one "
                             "on which the density depends.")  # fmt: skip
        points = self._points()
        check_band(self.band)
        check_prior(self.order, self.strength)
        strength = None if self.strength is None else _pair("strength", self.strength)
        centre = regression.learn(regression.grid_for(rows), rows, values, weights)

        def learn(rows: np.ndarray, weights: np.ndarray) -> conditional.Conditional:
            x, y = rows.T
            return conditional.learn(centre, x, y, weights, points=points, order=self.order, strength=strength)

        both = np.column_stack([rows, values])
        self.rounding_ = conditional.step_that_matters(centre, values, weights, points)
        if self.rounding_:
            axes = (centre.grid.given[0], Axis(values.min(), values.max(), points[1], tails=(1.0, 1.0)))
            found = rounding.share_out(
                learn, lambda one, at: one.log_density(*at.T), axes, both, weights, [0.0, self.rounding_], rounds=2
            )
        else:
            found = learn(both, weights)
        self._fitted, mixture = found, found.mixture
        self.order_, self.strength_, self.log_evidence_ = mixture.best.order, mixture.best.strength, found.log_evidence
        self.path_, self.outcome_ = mixture.path(("strength_x", "strength_y")), mixture.outcome
        if self.outcome_ != Outcome.converged:
            warnings.warn("Newton's method stalled at some strength; the density may be inaccurate.",
                          ConvergenceWarning, stacklevel=2)  # fmt: skip
        self.grid_ = found.places
        self.density_ = self._densities(*found.places)
        self._seen = rows[:, 0], values, str(getattr(y, "name", None) or "value")
        fill(self, lambda key: sampled.conditional(mixture, found.grid, key))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The mean of the density at each row, the best answer under squared loss `[n]`."""
        x = self._column(X)
        return self._fitted.mean(x)

    def predict_density(self, X: Any, y: Any = None) -> np.ndarray:
        """The density at each row and some values.

        Args:
            X: rows.
            y: values `[m]`; by default those of the grid, `grid_[1]`.

        Returns:
            Densities `[n, m]`.
        """
        x = self._column(X)
        values = np.atleast_1d(checks.numbers("y", self.grid_[1] if y is None else y))
        checks.finite("y", values)
        return self._densities(x, values)

    def _world(self, rows: int) -> Any:
        """What `quenched.calibrate` judges it in."""
        return worlds.world(worlds.Conditionals, self, rows)

    def credible_band(self, X: Any, y: Any = None, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Pointwise credible interval of the density at each row and some values.

        Mean and width, about which the density is a field, are taken as known.

        Args:
            X: rows.
            y: values `[m]`; by default those of the grid, `grid_[1]`.
            level: the probability.

        Returns:
            Lower and upper ends `[n, m]`.
        """
        x = self._column(X)
        values = np.atleast_1d(checks.numbers("y", self.grid_[1] if y is None else y))
        checks.finite("y", values)
        mean, deviation = self._fitted.uncertainty
        ends = interval(mean, deviation, level) if self.draws_ is None else between(self.draws_, level)
        pairs = np.repeat(x, len(values)), np.tile(values, len(x))
        low, high = (np.exp(self._fitted.log_density(*pairs, end)).reshape(len(x), len(values)) for end in ends)
        return low, high

    def predict_interval(self, X: Any, level: float = 0.9) -> np.ndarray:
        """The interval in which a new value lies with some probability, as probable to be missed below as above.

        Args:
            X: rows.
            level: the probability.

        Returns:
            Lower and upper ends `[n, 2]`.
        """
        x = self._column(X)
        checks.inside("level", checks.number("level", level), 0.0, 1.0)
        return self._fitted.quantiles(x, np.array([(1 - level) / 2, (1 + level) / 2]))

    def predict_quantile(self, X: Any, level: float = 0.5) -> np.ndarray:
        """The value below which a new one lies with some probability, for each row `[n]`; by default the median."""
        x = self._column(X)
        checks.inside("level", checks.number("level", level), 0.0, 1.0)
        return self._fitted.quantiles(x, np.array([level]))[:, 0]

    def score_samples(self, X: Any, y: Any) -> np.ndarray:
        """The log-density of each value given its row `[n]`."""
        x = self._column(X)
        values = checks.numbers("y", y)
        if values.shape != x.shape:
            raise InputError(f"Argument `y` must have one number for each of the {len(x)} rows, but its shape is "
                             f"{values.shape}.")  # fmt: skip
        checks.finite("y", values)
        return self._fitted.log_density(x, values)

    def describe(self, level: float = 0.9) -> xr.Dataset:
        """Mean, median and interval of the value over the column, and the rows themselves; `quenched.plot` draws it.

        Args:
            level: the probability of the interval.

        Returns:
            `mean`, `median`, `low` and `high` over `given`, `density` over `given` and `value`, and the rows.
        """
        check_is_fitted(self, "_fitted")
        checks.inside("level", checks.number("level", level), 0.0, 1.0)
        rows, values, name = self._seen
        x = np.linspace(rows.min(), rows.max(), PLACES)
        low, median, high = self._fitted.quantiles(x, np.array([(1 - level) / 2, 0.5, (1 + level) / 2])).T
        over = {"mean": self._fitted.mean(x), "median": median, "low": low, "high": high}
        data: dict[str, Any] = {name: ("given", values) for name, values in over.items()}
        data |= {"row_given": ("row", rows), "row_value": ("row", values)}
        data["density"] = (("given", "value"), self._densities(x, self.grid_[1]))
        about = results.provenance(
            "fields", source="conditional density", column=name, level=level, rows=len(rows), order=self.order_,
            given=str(getattr(self, "feature_names_in_", ["value"])[0]), strength=self.strength_,
            log_evidence=self.log_evidence_,
        )  # fmt: skip
        return xr.Dataset(data, {"given": x, "value": self.grid_[1]}, about)

    def _densities(self, x: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The density at all combinations."""
        pairs = np.repeat(x, len(values)), np.tile(values, len(x))
        return np.exp(self._fitted.log_density(*pairs)).reshape(len(x), len(values))

    def _column(self, X: Any) -> np.ndarray:
        """The column it is asked about."""
        return self._rows(X)[:, 0]

    def _points(self) -> tuple[int, int]:
        """Points of both axes."""
        if self.points is None:
            return conditional.POINTS
        x, y = (checks.whole("points", count, least=FEWEST) for count in _pair("points", self.points))
        return x, y


def _pair(name: str, given: Any) -> tuple[Any, Any]:
    """Two numbers, along x and along y."""
    if np.ndim(given) != 1 or len(given) != 2:
        raise InputError(f"Argument `{name}` must be two numbers, along x and y, but {given!r} was given.")
    return given[0], given[1]
