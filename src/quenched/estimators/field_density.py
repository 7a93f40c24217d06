"""Densities as a scikit-learn estimator: `FieldDensity`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from quenched.core import checks, results
from quenched.core.types import InputError, Outcome
from quenched.estimators import field_tree, worlds
from quenched.estimators.bands import Banded, between, check_band, fill
from quenched.estimators.reading import generator_of, validated, weights_of
from quenched.fields.model.grid import Grid
from quenched.fields.practice import chunks, counting, rounding, sampled
from quenched.fields.practice.counting import Seen, Tally
from quenched.fields.practice.density import POINTS, Bounds, Estimate, check_inside, check_range, estimate, grid_for
from quenched.fields.practice.edges import suggested
from quenched.fields.practice.tree import Trees
from quenched.fields.theory.laplace import interval

MOST_BARS = 60
"""Of a histogram."""


class FieldDensity(Banded, DensityMixin, BaseEstimator):
    r"""The density of any number of columns, with a band; nothing needs to be set.

    The log-density is a field on a grid with the prior that its $k$-th derivative is small,
    $$p(\ln P) \propto \exp\Bigl(-\tfrac{\lambda}{2} \int |\partial^k \ln P|^2\Bigr) .$$
    Strength $\lambda$ and order $k$ are weighed by their evidence, and the estimate is the mean over them; beside them,
    for one column, mixtures of few Gaussians (see `quenched.fields.practice.density`). With order 3 a Gaussian costs
    nothing: for very strong smoothness the estimate is that of maximum likelihood. Between the points the density is
    linear, so that its integral is exactly one.

    One to three columns of numbers share a grid. From four on, and where a data frame has columns of words, the density
    is a tree of fields, $p(x) = \prod_i p(x_i | x_{\text{parent}(i)})$ with linear terms in the columns before, or a
    mixture of few such trees, whichever is most probable (see `quenched.fields.practice.tree`). It is normalised and
    drawn from exactly, too. Of the options only `bounds` is for trees.

    Args:
        bounds: where the support ends: `(low, high)`, with None for an end that is not known; for several columns a
            sequence of such pairs. Beyond a given bound the density is zero and its logarithm `-inf`; beyond an end
            that is not given it falls exponentially, by a factor of e in a fiftieth of the grid's length, and its
            logarithm is finite everywhere.
        points: of the grid, for several columns a number or one for each; by default 200 or 400, of a plane 128 or 192
            each way, in space 48 or 96, the more from 2,000 rows on.
        order: of the derivative that is small; by default 2, 3 and 4 are weighed.
        strength: $\lambda$, in coordinates in which the grid has unit length; by default all are weighed. It needs an
            order.
        extend: whether data outside a bound lift it; otherwise they are refused.
        tree: whether the density is a tree of fields; by default from four columns on, and where some hold words.
        band: what `credible_band` is made of: "laplace", or "sampled" for draws from the posterior (needs
            blackjax). If draws cannot be trusted, a warning says why, and the band is Laplace's.
        random_state: of the draws.

    Attributes:
        grid_: points `[G]`; for several columns one array for each.
        density_: at the points, of the grid's shape.
        log_density_: its logarithm.
        deviation_: standard deviation of the logarithm.
        strength_, order_: the most probable; infinite and 0 where that is a mixture of Gaussians.
        components_: how many Gaussians the most probable mixture has; 0 where a smooth field is more probable.
        log_evidence_: logarithm of the probability of the data, all strengths and orders together.
        path_: what was tried: order, components, strength, logarithm of the evidence, share.
        outcome_: whether all minima were found.
        rounding_: to what the values of each column were rounded, zero where they were not. Rounded values are spread
            over their intervals (see `quenched.fields.practice.rounding`); a warning says so if the step is coarse.
        suggested_bounds_: a pair for one column, a list of pairs for several: a bound where rows pile up at an end
            without one, None elsewhere. A warning says so (see `quenched.fields.practice.edges`).
        tree_: of a tree, an edge in each row: cluster, column, parent (-1 for none), mutual information, and what the
            logarithm of the evidence gains. A tree has no grid, so it has neither `grid_` nor what is given on it.
        shares_: of a tree, the shares of its clusters.
        band_: "sampled" if the band is made of draws, otherwise "laplace".
        band_verdict_: how the draws were judged, as a sentence.
        draws_: log-densities at the points `[draws, ...]`; None without draws.
        n_features_in_, feature_names_in_: columns seen in `fit`.

    Examples:
        >>> import numpy as np
        >>> from quenched.estimators import FieldDensity
        >>> x = np.random.default_rng(0).normal(size=500)
        >>> model = FieldDensity().fit(x)
        >>> model.order_, model.pdf(0.0).round(2).item()
        (3, 0.39)
        >>> low, high = model.credible_band(0.0)
        >>> bool(low < 0.3989 < high)
        True
    """

    def __init__(
        self,
        *,
        bounds: Any = None,
        points: Any = None,
        order: int | None = None,
        strength: float | None = None,
        extend: bool = False,
        tree: bool | None = None,
        band: str = "laplace",
        random_state: Any = None,
    ):
        self.bounds = bounds
        self.points = points
        self.order = order
        self.strength = strength
        self.extend = extend
        self.tree = tree
        self.band = band
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FieldDensity:
        """Fit to a table.

        Args:
            X: rows `[n]` or `[n, columns]`; a data frame may have columns of words. Or, up to three columns, a Dask
                array or data frame, of which two passes are made, chunk by chunk, and only counts are gathered.
            y: not used.
            sample_weight: weight w acts as w equal rows, zero as if the row were absent. For a Dask collection, a Dask
                array or series in the same chunks.

        Returns:
            The estimator.
        """
        self._tally: Any = None
        if not chunks.is_chunked(X) and self._is_tree(X):
            return self._plant(X, sample_weight)
        if chunks.is_chunked(X):
            return self._learn(chunks.gather(X, sample_weight, self._named(X)))
        return self._learn(self._read(X, sample_weight, reset=True))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, update: bool = True) -> FieldDensity:
        """Add a batch of rows to those seen so far, in `fit` or in earlier calls.

        Rows are counted and forgotten, so that memory does not grow with them. Between given bounds the result is that
        of `fit` on all rows at once, but for rounding. Where an end is not given the grid is laid over the range of all
        rows so far, also of those that lie outside the first batch, and the result is that of `fit` but for a small
        fraction of the band. Rounded values are found as long as there are at most 10,000 different rows.

        Args:
            X: rows, with as many columns as before.
            y: not used.
            sample_weight: as for `fit`.
            update: whether to estimate the density now. With False the rows are only counted: all but the last of many
                batches need no estimate.

        Returns:
            The estimator.
        """
        if chunks.is_chunked(X):
            raise InputError("Argument `X` must be rows in memory here, but it is a Dask collection: give it to `fit`.")
        first = getattr(self, "_tally", None) is None and not hasattr(self, "_seen")
        seen = self._read(X, sample_weight, reset=first)
        columns = seen.rows.shape[1]
        if getattr(self, "_tally", None) is None:
            points = [POINTS[columns][-1] if count is None else count for count in self._points(columns)]
            self._tally = Tally(self._bounds(columns), points)
            if not first:
                self._tally.add(self._seen.rows, self._seen.weights)
                self._tally.ends, self._tally.size = self._seen.ends, self._seen.size
        if not checks.flag("extend", self.extend):
            check_inside(seen.ends, self._bounds(columns))
        self._tally.add(seen.rows, seen.weights)
        return self._learn(self._tally.seen) if checks.flag("update", update) else self

    def _is_tree(self, X: Any) -> bool:
        """Whether the density of a table is a tree."""
        if self.tree is not None:
            return checks.flag("tree", self.tree)
        shape = np.shape(X) if isinstance(X, (list, tuple)) else getattr(X, "shape", ())
        return field_tree.has_words(X) or (len(shape) == 2 and shape[1] > len(POINTS))

    def _plant(self, X: Any, sample_weight: Any) -> FieldDensity:
        """The tree of a table."""
        self._reading = field_tree.Reading.of(X) if field_tree.has_words(X) else None
        if self._reading is None:
            rows = self._rows(X, reset=True)
            levels = [0] * rows.shape[1]
        else:
            rows, levels = self._reading.into(X), self._reading.levels
            self.n_features_in_, self.feature_names_in_ = rows.shape[1], np.array(self._reading.names, dtype=object)
        weights = weights_of(sample_weight, rows)
        for name in ("points", "order", "strength"):
            if getattr(self, name) is not None:
                raise InputError(f"Argument `{name}` must be None for a tree of fields, which it is from four columns "
                                 f"on or with words, but {getattr(self, name)!r} was given.")  # fmt: skip
        if check_band(self.band):
            raise InputError('Argument `band` must be "laplace" for a tree of fields, but "sampled" was given.')
        if checks.flag("extend", self.extend):
            raise InputError("Argument `extend` must be False for a tree of fields, but True was given.")
        rows, weights = rows[weights > 0], weights[weights > 0]
        found = field_tree.learn(rows, weights, levels, self._bounds(rows.shape[1]))
        for name in ("grid_", "density_", "log_density_", "deviation_", "strength_", "order_", "components_", "path_",
                     "outcome_", "suggested_bounds_", "_seen", "draws_", "band_", "band_verdict_"):  # fmt: skip
            self.__dict__.pop(name, None)
        self._fitted: Any = found
        self._size, self.rounding_ = len(rows), found.steps
        self.shares_, self.tree_, self.log_evidence_ = found.shares, field_tree.edges(found), found.log_evidence
        return self

    def _table(self, X: Any) -> np.ndarray:
        """Rows that a tree is asked about."""
        return self._rows(X, reset=False) if self._reading is None else self._reading.into(X)

    def _places(self, x: Any) -> tuple[np.ndarray, tuple[int, ...]]:
        """Rows of a tree at places of any shape, and that shape."""
        if self._reading is not None:
            rows = self._reading.into(x)
            return rows, (len(rows),)
        places = checks.numbers("x", x)
        checks.finite("x", places)
        if places.shape[-1:] != (self.n_features_in_,):
            raise InputError(f"Argument `x` must have {self.n_features_in_} coordinates in its last dimension, but its "
                             f"shape is {places.shape}.")  # fmt: skip
        return places.reshape(-1, self.n_features_in_), places.shape[:-1]

    def _read(self, X: Any, sample_weight: Any, *, reset: bool) -> Seen:
        """Rows in memory."""
        rows = self._rows(X, reset=reset)
        weights = weights_of(sample_weight, rows)
        counting.check_columns(rows.shape[1])
        return Seen.of(rows, weights)

    def _named(self, X: Any) -> Callable[[Seen], Grid]:
        """Notes the columns of a Dask collection, and lays the grid."""
        self.n_features_in_, names = chunks.columns_of(X), chunks.names_of(X)
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self._grid

    def _grid(self, seen: Seen) -> Grid:
        """The grid of some rows."""
        columns = seen.rows.shape[1]
        ends = None if seen.exact and seen.size == len(seen.rows) else seen.ends
        for i, (low, high) in enumerate(seen.ends.tolist() if ends is not None else []):
            check_range("X", i, np.array([low, high]), seen.size)
        return grid_for(seen.rows, seen.weights, bounds=self._bounds(columns), points=self._points(columns),
                        extend=checks.flag("extend", self.extend), ends=ends)  # fmt: skip

    def _learn(self, seen: Seen) -> FieldDensity:
        """The estimate from what is kept of the rows."""
        rows, weights = seen.rows, seen.weights
        bounds, points = self._bounds(rows.shape[1]), self._points(rows.shape[1])
        grid = self._grid(seen) if seen.grid is None else seen.grid
        order, strength = self._prior()
        check_band(self.band)

        def learn(rows: np.ndarray, weights: np.ndarray) -> Estimate:
            return estimate(grid, counting.count(grid, rows, weights), order=order, strength=strength)

        def log_density(found: Estimate, at: np.ndarray) -> np.ndarray:
            return grid.log_values(found.log_density, at)

        with threadpool_limits(1, user_api="blas"):  # matrices so small are slower with two threads
            steps = rounding.steps_that_matter(grid, rows, weights) if seen.exact else [0.0] * rows.shape[1]
            if any(steps):
                found = rounding.share_out(learn, log_density, grid.axes, rows, weights, steps)
            else:
                found = learn(rows, weights)
            inside = rows if seen.exact else np.clip(rows, *seen.ends.T)
            each = zip(inside.T, steps, bounds, points, strict=True)
            known = found.smooth if len(steps) == 1 and order is None else None
            edges = [(None, None) if step else suggested(x, weights, ends, count, known)
                     for x, step, ends, count in each]  # fmt: skip
        self._fitted, self.rounding_ = grid, np.array(steps)
        self.suggested_bounds_ = edges[0] if len(edges) == 1 else edges
        axes = tuple(axis.coordinates for axis in grid.axes)
        self.grid_ = axes[0] if len(axes) == 1 else axes
        self.log_density_, self.deviation_, self.path_ = found.log_density, found.deviation, found.mixture.path()
        self.density_ = np.exp(found.log_density)
        self.order_, self.strength_ = found.mixture.best.order, found.mixture.best.strength
        self.components_ = found.mixture.best.components
        self.log_evidence_, self.outcome_ = found.mixture.log_evidence, found.mixture.outcome
        self._warn(rows, edges)
        self._seen = seen
        fill(self, lambda key: sampled.density(found, key))
        return self

    def _world(self, rows: int) -> Any:
        """What `quenched.calibrate` judges it in."""
        return worlds.world(worlds.Densities, self, rows)

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density at each row `[n]`."""
        check_is_fitted(self, "_fitted")
        if isinstance(self._fitted, Trees):
            return self._fitted.log_density(self._table(X))
        return self._fitted.log_values(self.log_density_, self._rows(X, reset=False))

    def score(self, X: Any, y: Any = None) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The mean log-density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def pdf(self, x: Any) -> np.ndarray:
        """The density at places of any shape; for several columns the last dimension holds their coordinates."""
        check_is_fitted(self, "_fitted")
        if isinstance(self._fitted, Trees):
            rows, shape = self._places(x)
            return np.exp(self._fitted.log_density(rows)).reshape(shape)
        return np.exp(self._at(x, self.log_density_))

    def credible_band(self, x: Any = None, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Pointwise credible interval of the density.

        The logarithm of the density is taken as Gaussian, or the band is made of draws. Far from all rows it is hardly
        known, and the upper end stops at that of the highest density.

        Args:
            x: places, as for `pdf`; by default the points of the grid. A tree has no grid.
            level: the probability.

        Returns:
            Lower and upper ends.
        """
        check_is_fitted(self, "_fitted")
        if isinstance(self._fitted, Trees):
            if x is None:
                raise InputError("Argument `x` must be given for a tree of fields, which has no grid, but it is None.")
            rows, shape = self._places(x)
            low, high = interval(self._fitted.log_density(rows), np.sqrt(self._fitted.variance(rows)), level)
            return np.exp(low).reshape(shape), np.exp(high).reshape(shape)
        low, high = interval(self.log_density_, self.deviation_, level)
        if self.draws_ is not None:
            low, high = between(self.draws_, level)
        ends = low, np.minimum(high, high.flat[np.argmax(self.log_density_)])
        lower, upper = (np.exp(end if x is None else self._at(x, end)) for end in ends)
        return lower, upper

    def describe(self, level: float = 0.9) -> xr.Dataset:
        """The density of one column with its band and a histogram of the rows, or a tree; `quenched.plot` draws it.

        Args:
            level: the probability of the band.

        Returns:
            `density`, `density_low` and `density_high` over `value`, and `histogram` between every two of `edge`. Of a
            tree: `parent`, `kind` and `gain` over `cluster` and `column`, `share` over `cluster`, mutual `information`
            of every pair of columns, and the attribute `summary`, the tree in words.

        Raises:
            InputError: if it was fitted to two or three columns on one grid.
        """
        check_is_fitted(self, "_fitted")
        if isinstance(self._fitted, Trees):
            names = getattr(self, "feature_names_in_", [f"column {i}" for i in range(self.n_features_in_)])
            return field_tree.describe(self._fitted, [str(name) for name in names], self._size)
        low, high = self.credible_band(level=level)
        rows, weights = self._seen.rows, self._seen.weights
        if rows.shape[1] > 1:
            raise InputError(f"A description must be of one column, but the density is that of {rows.shape[1]}; it is "
                             "in `density_` over `grid_`.")  # fmt: skip
        bars = min(2 * int(np.sqrt(self._seen.size)), MOST_BARS)
        heights, edges = np.histogram(rows[:, 0], bars, weights=weights, density=True)
        over = {"density": self.density_, "density_low": low, "density_high": high}
        data: dict[str, Any] = {name: ("value", values) for name, values in over.items()}
        about = results.provenance(
            "fields", source="density", column=str(getattr(self, "feature_names_in_", ["value"])[0]), level=level,
            rows=self._seen.size, order=self.order_, strength=self.strength_, components=self.components_,
            log_evidence=self.log_evidence_,
        )  # fmt: skip
        about |= {"rounding": float(self.rounding_[0])} if self.rounding_[0] else {}
        ends = zip(("suggested_low", "suggested_high"), self.suggested_bounds_, strict=True)
        about |= {name: end for name, end in ends if end is not None}
        return xr.Dataset(data | {"histogram": ("bar", heights)}, {"value": self.grid_, "edge": edges}, about)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draw new rows `[n, columns]` from the density; a data frame if there are columns of words."""
        check_is_fitted(self, "_fitted")
        draw = generator_of(random_state)
        if isinstance(self._fitted, Trees):
            rows = self._fitted.sample(checks.whole("n_samples", n_samples, least=1), draw)
            return rows if self._reading is None else self._reading.back(rows)
        return self._fitted.sample(self.density_, checks.whole("n_samples", n_samples, least=1), draw)

    def _warn(self, rows: np.ndarray, edges: list[Bounds]) -> None:
        """Of what may make the density wrong."""
        if self.outcome_ != Outcome.converged:
            warnings.warn(
                "Newton's method stalled at some strength; the density may be inaccurate.",
                ConvergenceWarning,
                stacklevel=3,
            )
        for i, (x, step, pair) in enumerate(zip(rows.T, self.rounding_, edges, strict=True)):
            if step and rounding.is_coarse(x, step):
                warnings.warn(f"The values of column {i} look rounded to {step:.6g}: each is spread over the interval "
                              "that is rounded to it.", stacklevel=3)  # fmt: skip
            if pair != (None, None):
                low, high = (None if end is None else float(f"{end:.6g}") for end in pair)
                warnings.warn(f"The values of column {i} pile up at an end: if none can lie beyond, set "
                              f"`bounds=({low}, {high})`.", stacklevel=3)  # fmt: skip

    def _rows(self, X: Any, *, reset: bool) -> np.ndarray:
        """A table; a vector is one column."""
        vector = X.ndim == 1 if hasattr(X, "ndim") else isinstance(X, (list, tuple)) and np.ndim(X) == 1
        table: Any = np.asanyarray(X).reshape(-1, 1) if vector else X
        return validated(self, table, reset=reset)

    def _at(self, x: Any, log_values: np.ndarray) -> np.ndarray:
        """A function on the grid, given and returned as a logarithm, at places of any shape."""
        places = checks.numbers("x", x)
        checks.finite("x", places)
        shape, columns = places.shape, self.log_density_.ndim
        if columns > 1:
            if shape[-1:] != (columns,):
                raise InputError(f"Argument `x` must have {columns} coordinates in its last dimension, but its shape "
                                 f"is {shape}.")  # fmt: skip
            shape = shape[:-1]
        if places.size == 0:
            return np.zeros(shape)
        return self._fitted.log_values(log_values, places.reshape(-1, columns)).reshape(shape)

    def _bounds(self, columns: int) -> list[Bounds]:
        """The bounds, a pair for each column."""
        given: list[Any] = [(None, None)] * columns if self.bounds is None else list(np.atleast_1d(self.bounds))
        if columns == 1 and len(given) == 2 and all(np.ndim(end) == 0 for end in given):
            given = [given]
        if len(given) != columns or any(np.ndim(pair) != 1 or len(pair) != 2 for pair in given):
            raise InputError(f"Argument `bounds` must be a pair of numbers or None for each of {columns} columns, but "
                             f"{self.bounds!r} was given.")  # fmt: skip
        for pair in given:
            ends = [end for end in pair if end is not None]
            checks.finite("bounds", ends)
            if len(ends) == 2 and not ends[0] < ends[1]:
                raise InputError(f"Argument `bounds` must rise, but {pair!r} was given.")
        return [(low, high) for low, high in given]

    def _points(self, columns: int) -> list[int | None]:
        """Points of each axis."""
        given: list[Any] = [self.points] * columns if np.ndim(self.points) == 0 else list(self.points)
        if len(given) != columns:
            raise InputError(f"Argument `points` must be one number for each of {columns} columns, but {self.points!r} "
                             "was given.")  # fmt: skip
        return [None if count is None else checks.whole("points", count, least=20) for count in given]

    def _prior(self) -> tuple[int | None, float | None]:
        """Order and strength, where they are given."""
        if self.order is not None and checks.whole("order", self.order, least=1) > 6:
            raise InputError(f"Argument `order` must be at most 6, but {self.order} was given.")
        if self.strength is None:
            return self.order, None
        checks.positive("strength", checks.number("strength", self.strength))
        if self.order is None:
            raise InputError("Argument `order` must be given together with `strength`, but it is None: strengths of "
                             "different orders cannot be compared.")  # fmt: skip
        return self.order, float(self.strength)
