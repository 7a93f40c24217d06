r"""Worlds in which the bands of field estimators are judged: truths from their priors, made proper, and rows from them.

What a prior leaves free, polynomials of low order, has coefficients of a width that rows decide much better; a strength
that is not given is drawn evenly on a logarithmic scale between those at which fields typically have the sizes `SIZES`.
(The estimator itself weighs, or searches, a wider range.) Orders are drawn as probable as the estimator takes them
beforehand. Rows are drawn from the truth, the estimator is fitted as it is shipped, and the truth is ranked at a few
places among draws from the posterior that its band is made of: its draws, or Laplace's Gaussian.
"""

from __future__ import annotations

import abc
import warnings
from typing import Any

import jax
import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone

from quenched.core import checks
from quenched.core.calibration import Simulator, Trial
from quenched.core.types import InputError, Key, Outcome
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.modes import Modes
from quenched.fields.model.smoothness import ThinPlate
from quenched.fields.practice import classification, density, regression, robust

SIZES = (0.3, 1.0)
"""Root mean squares of what bends, between which fields are drawn."""
WIDTH = 1.0
"""Deviation of the root mean square of each free polynomial."""
NOISE = (0.1, 0.4)
"""Deviations of the noise, where it is not given."""
PLACES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Shares of the range at which functions are ranked."""
ATTEMPTS = 100
"""Data sets drawn at most until one has rows of every class: which data are kept changes no posterior."""


class World(Simulator):
    """Truths and rows for an estimator."""

    def __init__(self, estimator: Any, rows: int):
        self.estimator, self.rows = estimator, rows

    @abc.abstractmethod
    def imagine(self, random: np.random.RandomState) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """The true quantities, and a table of rows."""

    @abc.abstractmethod
    def posterior(self, model: Any, draws: int, random: np.random.RandomState) -> np.ndarray:
        """Draws of the quantities from what the band of a fitted estimator is made of `[draws, quantities]`."""

    @property
    def facts(self) -> dict[str, Any]:
        """The estimator."""
        return {
            "science": "fields",
            "estimator": repr(self.estimator),
            "rows": self.rows,
            "method": self.estimator.band,
        }

    def run(self, key: Key, draws: int) -> Trial:
        """See `Simulator`."""
        random = np.random.RandomState(np.asarray(jax.random.key_data(key)).astype(np.uint32))
        truth, table = self.imagine(random)
        model: Any = clone(self.estimator)
        model.set_params(random_state=int(random.randint(2**31 - 1)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of draws that cannot be trusted: these runs are counted as failed
            model.fit(*table)
        done = getattr(model, "outcome_", Outcome.converged)
        if model.band == "sampled" and model.band_ != "sampled":
            done = max(done, Outcome.stalled)
        return Trial(truth, self.posterior(model, draws, random), Outcome(done))


def smooth(grid: Grid, order: int, strength: float | None, random: np.random.RandomState) -> np.ndarray:
    """A function on one axis from the prior of an order, at a strength or at a random one."""
    modes = ThinPlate(grid, order).modes()
    values = grid.cell * np.ravel(modes.values)
    free = values == 0
    size = np.sqrt(np.sum(1 / values[~free]) / grid.size)  # at strength 1
    drawn = (size / np.exp(random.uniform(*np.log(SIZES)))) ** 2 if strength is None else strength
    c = _white(modes, random)
    c[free] *= WIDTH * np.sqrt(grid.size)
    c[~free] /= np.sqrt(drawn * values[~free])
    return modes.field(c)


def _white(modes: Modes, random: np.random.RandomState) -> np.ndarray:
    """Independent coefficients of modes, drawn on the points: signs and turns of modes change no field."""
    return modes.coefficients(random.normal(size=modes.grid.shape))


class Densities(World):
    """For `FieldDensity` of one column between two bounds, by default 0 and 1."""

    def __init__(self, estimator: Any, rows: int):
        bounds = estimator.bounds
        if bounds is None:
            estimator = clone(estimator)
            estimator.set_params(bounds=(0.0, 1.0))
        elif np.shape(bounds) != (2,) or None in list(bounds):
            raise InputError("Argument `subject` must have two bounds for one column, between which densities are "
                             f"drawn, but it has {bounds!r}.")  # fmt: skip
        super().__init__(estimator, rows)
        low, high = self.estimator.bounds
        self.grid = Grid(over=[Axis(low, high, density.POINTS[1][0], tails=(0.0, 0.0))])
        self.places = low + np.array(PLACES) * (high - low)

    @property
    def quantities(self) -> list[str]:
        """ln P at places."""
        return [f"ln P at {x:.3g}" for x in self.places]

    def imagine(self, random: np.random.RandomState) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """See `World`."""
        orders, p = zip(*density.ORDERS.items(), strict=True)
        order = self.estimator.order or int(random.choice(orders, p=p))
        g = smooth(self.grid, order, self.estimator.strength, random)
        logs = g - np.log(np.sum(self.grid.weights * np.exp(g)))
        rows = self.grid.sample(np.exp(logs), self.rows, random)
        return self.grid.log_values(logs, self.places[:, None]), (rows,)

    def posterior(self, model: Any, draws: int, random: np.random.RandomState) -> np.ndarray:
        """See `World`."""
        at = self.places[:, None]
        if model.draws_ is None:
            mean = model.score_samples(at)
            hats = model._fitted.interpolation(at)
            return mean + random.normal(size=(draws, len(at))) * (hats @ model.deviation_)
        return np.array([model._fitted.log_values(one, at) for one in _some(model.draws_, draws)])


class Functions(World):
    """For `FieldRegressor` of one column from 0 to 1."""

    def __init__(self, estimator: Any, rows: int):
        super().__init__(estimator, rows)
        self.x = np.linspace(0, 1, rows)[:, None]
        self.grid = regression.grid_for(self.x, estimator.points)
        self.places = np.array(PLACES)[:, None]

    @property
    def quantities(self) -> list[str]:
        """The function at places."""
        return [f"function at {x:.3g}" for x in self.places[:, 0]]

    def imagine(self, random: np.random.RandomState) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """See `World`."""
        one = self.estimator
        h = smooth(self.grid, one.order or int(random.choice(regression.ORDERS)), one.strength, random)
        deviation = np.exp(random.uniform(*np.log(NOISE))) if one.noise is None else np.sqrt(one.noise)
        noise = random.normal(size=self.rows) if one.loss == "squared" else robust.noise(one.loss, self.rows, random)
        return self.grid.interpolation(self.places) @ h, (
            self.x,
            self.grid.interpolation(self.x) @ h + deviation * noise,
        )

    def posterior(self, model: Any, draws: int, random: np.random.RandomState) -> np.ndarray:
        """See `World`."""
        if model.draws_ is None:
            mean, deviation = model.predict(self.places, return_std=True)
            return mean + random.normal(size=(draws, len(mean))) * deviation
        hats = model._fitted.grid.interpolation(self.places)
        return np.array([hats @ one.ravel() for one in _some(model.draws_, draws)])


class Classes(World):
    """For `FieldClassifier` of two classes of one column from 0 to 1."""

    def __init__(self, estimator: Any, rows: int):
        super().__init__(estimator, rows)
        self.x = np.linspace(0, 1, rows)[:, None]
        self.layout = classification.Layout.of(self.x, np.ones(rows), 2, joint=True, points=estimator.points)
        self.places = np.array(PLACES)[:, None]

    @property
    def quantities(self) -> list[str]:
        """Log-odds at places."""
        return [f"log-odds at {x:.3g}" for x in self.places[:, 0]]

    def imagine(self, random: np.random.RandomState) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """See `World`."""
        given, there, labels = self.estimator.strength, np.zeros((0, 2)), np.zeros(0, dtype=int)
        for _ in range(ATTEMPTS):
            lines, bends = 10.0 ** random.uniform((-1, -4), (1, -1)) if given is None else given
            modes = self.layout.prior(lines, bends).operator.modes(self.layout.modes).without_constant()
            values = self.layout.grid.cell * np.ravel(modes.values)
            g = modes.field(_white(modes, random) / np.sqrt(values))
            seen, there = (self._at(x, g) for x in (self.x, self.places))
            labels = (random.uniform(size=self.rows) < softmax(seen, axis=1)[:, 1]).astype(int)
            if len(np.unique(labels)) == 2:
                break
        return there[:, 1] - there[:, 0], (self.x, labels)

    def _at(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Fields at some rows."""
        inputs = Grid(given=self.layout.grid.given)
        return inputs.interpolation(self.layout.place(x)) @ g

    def posterior(self, model: Any, draws: int, random: np.random.RandomState) -> np.ndarray:
        """See `World`."""
        if model.draws_ is None:
            with jax.enable_x64(True):
                fields = model._fitted.gaussian(jax.random.key(random.randint(2**31 - 1)), draws)
        else:
            fields = _some(model.draws_, draws)
        P = model._fitted.drawn(fields, self.places)
        return np.log(P[:, :, 1]) - np.log(P[:, :, 0])


class Branches(World):
    """For `ClusterRegressor` of two functions of one column from 0 to 1, one usually above the other."""

    def __init__(self, estimator: Any, rows: int):
        if estimator.n_functions != 2:
            raise InputError("Argument `subject` must have two functions here, but it has "
                             f"`n_functions={estimator.n_functions!r}`.")  # fmt: skip
        super().__init__(estimator, rows)
        self.x = np.linspace(0, 1, rows)[:, None]
        self.grid = regression.grid_for(self.x, estimator.points)
        self.places = np.array(PLACES[1::2])[:, None]

    @property
    def quantities(self) -> list[str]:
        """Both functions at places."""
        return [f"{which} function at {x:.3g}" for x in self.places[:, 0] for which in ("lower", "upper")]

    def imagine(self, random: np.random.RandomState) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """See `World`."""
        h = np.stack([smooth(self.grid, 2, self.estimator.strength, random) / 2 + side for side in (-2, 2)], axis=1)
        h = h[:, np.argsort(h.mean(axis=0), kind="stable")]
        which, noise = random.randint(2, size=self.rows), random.normal(size=self.rows)
        deviation = np.exp(random.uniform(*np.log(NOISE)))
        seen = self.grid.interpolation(self.x) @ h
        y = seen[np.arange(self.rows), which] + deviation * noise
        return (self.grid.interpolation(self.places) @ h).ravel(), (self.x, y)

    def posterior(self, model: Any, draws: int, random: np.random.RandomState) -> np.ndarray:
        """See `World`."""
        if model.draws_ is None:
            mean, deviation = model._fitted.at(self.places), model._fitted.deviation_at(self.places)
            return (mean + random.normal(size=(draws, *mean.shape)) * deviation).reshape(draws, -1)
        hats = model._fitted.grid.interpolation(self.places)
        return np.array([(hats @ one).ravel() for one in _some(model.draws_, draws)])


class Conditionals(World):
    """For `FieldConditional` of a value given a column from 0 to 1: about a line, with noise of any shape."""

    def __init__(self, estimator: Any, rows: int):
        super().__init__(estimator, rows)
        self.x = np.linspace(0, 1, rows)[:, None]
        self.grid = Grid(given=[Axis(0, 1, 12, tails=(0.0, 0.0))], over=[Axis(-4, 4, 80, tails=(0.0, 0.0))])

    @property
    def quantities(self) -> list[str]:
        """ln P at places about the line through the rows."""
        return [f"ln P at {x:g}, {r:+d}" for x in (0.25, 0.75) for r in (-1, 0, 1)]

    def imagine(self, random: np.random.RandomState) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """See `World`."""
        along, across = self.grid.axes
        order = self.estimator.order or int(random.choice((1, 2)))
        columns = [smooth(Grid(given=[across]), 3, None, random) for _ in range(2)]
        bent = smooth(Grid(given=[along]), order, None, random)
        r = across.coordinates
        free: Any = np.linalg.qr(np.vander(r, 3))[0]
        g = [column - free @ (free.T @ column) for column in columns]  # what is free is that of a Gaussian
        logs = -(r**2) / 2 + g[0] + np.outer(bent - bent.mean(), g[1])
        P = self.grid.weights * np.exp(logs)
        P = np.exp(logs) / P.sum(axis=1, keepdims=True)
        line, scale = random.normal(size=2), 0.5
        seen = Grid(given=[along]).interpolation(self.x) @ P
        drawn = np.array([Grid(over=[across]).sample(p, 1, random)[0, 0] for p in seen])
        y = np.polyval(line, self.x[:, 0]) + scale * drawn
        x, where = self._places(y)
        rest = (where - np.polyval(line, x)) / scale
        there = self.grid.log_values(np.log(P), np.column_stack([x, rest])) - np.log(scale)
        return there, (self.x, y)

    def _places(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where it is ranked: known from the rows."""
        line = np.polyfit(self.x[:, 0], y, 1)
        spread = np.std(y - np.polyval(line, self.x[:, 0]))
        x = np.repeat([0.25, 0.75], 3)
        return x, np.polyval(line, x) + spread * np.tile([-1, 0, 1], 2)

    def posterior(self, model: Any, draws: int, random: np.random.RandomState) -> np.ndarray:
        """See `World`."""
        at = self._places(model._seen[1])
        if model.draws_ is None:
            mean, deviation = model._fitted.uncertainty
            low, high = (model._fitted.log_density(*at, mean + side * deviation) for side in (-1, 1))
            return (low + high) / 2 + random.normal(size=(draws, len(low))) * (high - low) / 2
        return np.array([model._fitted.log_density(*at, one) for one in _some(model.draws_, draws)])


def _some(drawn: np.ndarray, count: int) -> np.ndarray:
    """As many of the draws, evenly spread; all of them and some again if there are fewer."""
    return drawn[np.linspace(0, len(drawn) - 1, count).astype(int)]


def world(kind: type[World], estimator: BaseEstimator, rows: Any) -> World:
    """The world of an estimator, checked."""
    return kind(estimator, checks.whole("rows", rows, least=8))
