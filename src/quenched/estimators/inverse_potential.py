"""The potential of a quantum system as a scikit-learn estimator: `InversePotential`."""

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
from quenched.core.types import InputError, Outcome, double
from quenched.estimators.bands import Banded, between, check_band, fill
from quenched.estimators.reading import generator_of, validated, weights_of
from quenched.fields.model.grid import Dirichlet, Grid
from quenched.fields.model.hamiltonian import Hamiltonian
from quenched.fields.model.states import Canonical, Ground, State, Stationary
from quenched.fields.practice import potential
from quenched.fields.practice.potential import Setting
from quenched.fields.theory.laplace import interval

LEVELS = 5
"""Energies in `energies_`."""
MOST_BARS, MOST_ORDER = 60, 4


class InversePotential(DensityMixin, Banded, BaseEstimator):
    r"""The potential in which positions were measured, with a band; nothing needs to be set.

    Each position is one measurement of a particle that was prepared in a state of $H = -\frac{\hbar^2}{2m} \Delta + V$,
    so that its density is $\langle y | \rho(V) | y \rangle$. The prior of $V$ is that its third derivative is small,
    with a strength found by evidence: very strong, and the answer is the most probable oscillator. [lemm1999, section
    3.9]

    Positions leave one constant open. Potentials and energies are given with the zero at the mean of $V$ over the
    density of positions, and bands are those of $V$ less that mean.

    Args:
        state: in which each particle was measured: `"ground"`; a whole number, the level from 0; or a state such as
            `fields.Mixed(weights, states)`.
        temperature: of a canonical ensemble, in units of energy; the state is then `"ground"`, and replaced by it.
        mass: $m$.
        hbar: $\hbar$; with 1 energies are in units of $1/(m\, \text{length}^2)$.
        bounds: `(low, high)` of the grid, None for an end that is found from the data.
        walls: whether the bounds are hard walls; otherwise the state must vanish before it reaches them.
        periodic: whether the particle is on a ring from one bound to the other.
        symmetric: whether the potential is even about the middle: that of the bounds if both are given, otherwise the
            mean of the data.
        reference: a function $V_0(y)$ about which the potential is smooth; by default there is none.
        points: of the grid.
        order: of the derivative that is small; by default 3, about a reference 1, on a ring 2.
        strength: of the prior, in units of the data on a grid of unit length; by default all are weighed by evidence.
        band: what bands are made of: "laplace", or "sampled" for draws from the posterior (`pip install
            'quenched[sampling]'`), which take minutes. If draws cannot be trusted, a warning says why, and bands are
            Laplace's.
        random_state: of the draws.

    Attributes:
        grid_: places `[points]`.
        potential_: $V$ at these, with the mean zero over the density.
        deviation_: its standard deviation.
        density_: of positions in that potential.
        energies_: the lowest energies in that potential `[5]`, with its zero.
        energy_deviations_: their standard deviations.
        strength_: the most probable strength, in units of the data.
        log_evidence_: logarithm of the probability of the data, all strengths together, in units of the data.
        path_: what was tried: order, components (0), strength, logarithm of the evidence, share.
        outcome_: whether all minima were found.
        draws_: potentials from the posterior, less their means `[draws, points]`; None if bands are Laplace's.
        band_: "sampled" if bands are made of draws, otherwise "laplace".
        band_verdict_: whether draws can be trusted, and why.
        n_features_in_, feature_names_in_: the column seen in `fit`.

    Examples:
        >>> import numpy as np
        >>> from quenched.estimators import InversePotential
        >>> y = np.random.default_rng(0).normal(scale=np.sqrt(0.5), size=500)  # an oscillator in its ground state
        >>> model = InversePotential().fit(y)
        >>> bool(abs(model.energies_[1] - model.energies_[0] - 1.0) < 0.2)
        True
        >>> low, high = model.credible_band()
        >>> bool(np.all(low < model.potential_) and np.all(model.potential_ < high))
        True
    """

    def __init__(
        self,
        *,
        state: Any = "ground",
        temperature: float | None = None,
        mass: float = 1.0,
        hbar: float = 1.0,
        bounds: Any = None,
        walls: bool = False,
        periodic: bool = False,
        symmetric: bool = False,
        reference: Callable[[Any], Any] | None = None,
        points: int = 120,
        order: int | None = None,
        strength: float | None = None,
        band: str = "laplace",
        random_state: Any = None,
    ):
        self.state = state
        self.temperature = temperature
        self.mass = mass
        self.hbar = hbar
        self.bounds = bounds
        self.walls = walls
        self.periodic = periodic
        self.symmetric = symmetric
        self.reference = reference
        self.points = points
        self.order = order
        self.strength = strength
        self.band = band
        self.random_state = random_state

    @double
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> InversePotential:
        """Fit to measured positions.

        Args:
            X: positions `[n]` or `[n, 1]`.
            y: not used.
            sample_weight: weight w acts as w equal rows, zero as if the row were absent.

        Returns:
            The estimator.

        Raises:
            InputError: for bad input, and for a state that is not bound inside the bounds.
        """
        check_band(self.band)
        rows = self._rows(X, reset=True)
        weights = weights_of(sample_weight, rows)
        x, weights = rows[weights > 0, 0], weights[weights > 0]
        if not x.min() < x.max():
            raise InputError("Argument `X` must hold at least two different positions, but all n_samples="
                             f"{len(x)} are {x[0]:g}.")  # fmt: skip
        state = self._state()
        centre, width = self._units(x, weights)
        unit = float(self.hbar) ** 2 / (float(self.mass) * width**2)
        if not 1 / checks.LARGEST < unit < checks.LARGEST:
            raise InputError("Argument `mass` must suit the data and `hbar`, but with it energies would be of size "
                             f"{unit:g}.")  # fmt: skip
        standard = (x - centre) / width
        state = potential.in_units(state, unit)
        with threadpool_limits(1, user_api="blas"):  # matrices so small are slower with two threads
            found = self._reconstruct(state, standard, weights, centre, width, unit)
            energies, deviations = found.levels(min(LEVELS, found.setting.grid.size))
            fill(self, lambda key: potential.draw(found, key))
        axis = found.setting.grid.axes[0]
        self._found, self._scales, self._seen = found, (centre, width, unit), (x, weights)
        self.grid_ = centre + width * axis.coordinates
        self.potential_, self.deviation_ = unit * found.potential, unit * found.deviation
        self.density_ = found.density / width
        self._drawn_densities = None
        if self.draws_ is not None:
            self._drawn_densities = potential.densities(found, self.draws_) / width
            self.draws_ = unit * self.draws_
        self.energies_, self.energy_deviations_ = unit * energies, unit * deviations
        self.strength_, self.log_evidence_ = found.mixture.best.strength, found.mixture.log_evidence
        self.path_, self.outcome_ = found.mixture.path(), found.outcome
        if self.outcome_ != Outcome.converged:
            warnings.warn("Newton's method stalled at some strength; the potential may be inaccurate.",
                          ConvergenceWarning, stacklevel=2)  # fmt: skip
        return self

    def _reconstruct(
        self, state: State, rows: np.ndarray, weights: np.ndarray, centre: float, width: float, unit: float
    ) -> potential.Reconstruction:
        """On a grid that is made wider if its own ends are too near."""
        low, high = self._bounds()
        bounds = tuple(None if end is None else (end - centre) / width for end in (low, high))
        ring, walls, even = (checks.flag(name, getattr(self, name)) for name in ("periodic", "walls", "symmetric"))
        if (ring or walls) and None in bounds:
            raise InputError("Argument `bounds` must be two numbers with `periodic` or `walls`, but "
                             f"{self.bounds!r} was given.")  # fmt: skip
        if ring and walls:
            raise InputError("Argument `walls` must be False on a ring, but it is True.")
        middle: float | None = float(np.average(rows, weights=weights)) if even and None in bounds else None
        points, order, strength = self._numbers(ring)
        hamiltonian = Hamiltonian(ends=Dirichlet() if walls else None)
        wider = 1.0
        for attempt in range(potential.TRIES):
            axis = potential.axis_for(rows, bounds, points, ring=ring, centre=middle, walls=walls, wider=wider)  # pyright: ignore[reportArgumentType]
            reference = self._reference(centre + width * axis.coordinates, unit)
            setting = Setting(state, hamiltonian, Grid(given=[axis]), order, strength, reference, even)
            try:
                return potential.reconstruct(setting, rows, weights)
            except InputError as error:
                last = attempt == potential.TRIES - 1 or None not in bounds
                if last or "bound inside the grid" not in str(error):
                    raise
            wider = potential.WIDER * (wider + 1.0)
        raise AssertionError

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-density at each position `[n]`; minus infinity beyond the grid."""
        return self._log_at(self._rows(X, reset=False)[:, 0], self.density_)

    def score(self, X: Any, y: Any = None) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The mean log-density of the positions."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw new positions `[n, 1]`."""
        check_is_fitted(self, "_found")
        n, draw = checks.whole("n_samples", n_samples, least=1), generator_of(random_state)
        step, p = self.grid_[1] - self.grid_[0], self.density_ / self.density_.sum()
        rows = draw.choice(self.grid_, n, p=p) + step * (draw.uniform(size=n) - draw.uniform(size=n))
        if self.periodic:
            low, period = self.grid_[0], step * len(self.grid_)
            rows = low + (rows - low) % period
        return rows[:, None]

    def credible_band(self, x: Any = None, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Pointwise credible interval of the potential less its mean over the density.

        Args:
            x: places of any shape on the grid; by default its points.
            level: the probability.

        Returns:
            Lower and upper ends.
        """
        check_is_fitted(self, "_found")
        if self.draws_ is not None:
            low, high = between(self.draws_, level)
        else:
            low, high = interval(self.potential_, self.deviation_, level)
        return self._on_grid(x, low), self._on_grid(x, high)

    def density_band(self, x: Any = None, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Pointwise credible interval of the density of positions.

        Args:
            x: places of any shape on the grid; by default its points.
            level: the probability.

        Returns:
            Lower and upper ends.
        """
        check_is_fitted(self, "_found")
        if self._drawn_densities is not None:
            low, high = between(self._drawn_densities, level)
        else:
            below, above = interval(np.zeros(len(self.density_)), self._found.log_deviation, level)
            low, high = self.density_ * np.exp(below), self.density_ * np.exp(np.minimum(above, 50.0))
            high = np.minimum(high, high[np.argmax(self.density_)])  # far from all rows it is hardly known
        return self._on_grid(x, low), self._on_grid(x, high)

    @double
    def levels(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The lowest energies in the potential and their standard deviations, each `[count]`.

        Args:
            count: how many.
        """
        check_is_fitted(self, "_found")
        energies, deviations = self._found.levels(potential.check_levels(count, self._found.setting.grid))
        return self._scales[2] * energies, self._scales[2] * deviations

    def describe(self, level: float = 0.9) -> xr.Dataset:
        """The potential and the density with their bands, energies, and a histogram; `quenched.plot` draws them.

        Args:
            level: the probability of the bands.

        Returns:
            `potential` and `density` over `value`, each with `_low` and `_high`; `energy` and `energy_deviation` over
            `state`; and `histogram` between every two of `edge`.
        """
        check_is_fitted(self, "_found")
        x, weights = self._seen
        heights, edges = np.histogram(x, min(2 * int(np.sqrt(len(x))), MOST_BARS), weights=weights, density=True)
        over: dict[str, np.ndarray] = {"potential": self.potential_, "density": self.density_}
        for name, band in (("potential", self.credible_band(level=level)), ("density", self.density_band(level=level))):
            over |= {f"{name}_{end}": values for end, values in zip(("low", "high"), band, strict=True)}
        data: dict[str, Any] = {name: ("value", values) for name, values in over.items()}
        data |= {"energy": ("state", self.energies_), "energy_deviation": ("state", self.energy_deviations_)}
        about = results.provenance(
            "fields", source="potential", column=str(getattr(self, "feature_names_in_", ["position"])[0]), level=level,
            rows=len(x), order=self._found.setting.order, strength=self.strength_, log_evidence=self.log_evidence_,
            measured=self._in_words(), mass=float(self.mass), hbar=float(self.hbar),
        )  # fmt: skip
        at = {"value": self.grid_, "edge": edges, "state": np.arange(len(self.energies_))}
        return xr.Dataset(data | {"histogram": ("bar", heights)}, at, about)

    def plot(self, level: float = 0.9) -> Any:
        """Draw the potential and the density with their bands.

        Args:
            level: the probability of the bands.

        Returns:
            The matplotlib figure.
        """
        import quenched

        return quenched.plot(self.describe(level))

    def _in_words(self) -> str:
        """In which state positions were measured."""
        if self.temperature is not None:
            return f"a canonical ensemble at temperature {float(self.temperature):g}"
        if isinstance(self.state, State):
            return f"the state {type(self.state).__name__}"
        return "the ground state" if self.state in ("ground", 0) else f"level {self.state}"

    def _state(self) -> State:
        """As an object."""
        if self.temperature is not None:
            if self.state != "ground":
                raise InputError("Argument `temperature` must be None beside a `state`, but both were given.")
            return Canonical(checks.number("temperature", self.temperature))
        if isinstance(self.state, State):
            potential.quanta(self.state, 1.0)  # checks that it does not move
            return self.state
        if isinstance(self.state, str):
            if self.state != "ground":
                raise InputError("Argument `state` must be 'ground', a level or a state such as Canonical(1.0), but "
                                 f"{self.state!r} was given.")  # fmt: skip
            return Ground()
        return Stationary(checks.whole("state", self.state, least=0))

    def _units(self, x: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
        """Where the data are, and how wide; and checks of the numbers that carry units."""
        checks.inside("X", x, -checks.LARGEST, checks.LARGEST)
        for name in ("mass", "hbar"):
            checks.positive(name, checks.number(name, getattr(self, name)))
        centre = float(np.average(x, weights=weights))
        width = float(np.sqrt(np.average((x - centre) ** 2, weights=weights)))
        if not width > 1e-12 * max(abs(x.min()), abs(x.max())):
            raise InputError("Argument `X` must hold positions that differ by more than rounding, but their standard "
                             f"deviation is {width:g}.")  # fmt: skip
        return centre, width

    def _bounds(self) -> tuple[float | None, float | None]:
        if self.bounds is None:
            return None, None
        if np.ndim(self.bounds) != 1 or len(self.bounds) != 2:
            raise InputError(f"Argument `bounds` must be two numbers or None, but {self.bounds!r} was given.")
        low, high = (None if end is None else float(checks.number("bounds", end)) for end in self.bounds)
        checks.finite("bounds", [end for end in (low, high) if end is not None])
        if low is not None and high is not None and not low < high:
            raise InputError(f"Argument `bounds` must rise, but {self.bounds!r} was given.")
        return low, high

    def _numbers(self, ring: bool) -> tuple[int, int, float | None]:
        """Points, order and strength."""
        usual = 2 if ring else 3 if self.reference is None else 1
        order = usual if self.order is None else checks.whole("order", self.order, least=1)
        if order > MOST_ORDER:
            raise InputError(f"Argument `order` must be at most {MOST_ORDER}, but {order} was given.")
        if order < 3 and self.reference is None and not ring and not self.walls:
            raise InputError("Argument `order` must be at least 3 without a `reference`, or the state is free at "
                             f"infinite strength, but {order} was given.")  # fmt: skip
        if self.strength is not None:
            checks.positive("strength", checks.number("strength", self.strength))
        strength = None if self.strength is None else float(self.strength)
        return checks.whole("points", self.points, least=40), order, strength

    def _reference(self, places: np.ndarray, unit: float) -> np.ndarray | None:
        """The reference at the points, in the units of the data and with the least value zero."""
        if self.reference is None:
            return None
        if not callable(self.reference):
            raise InputError(f"Argument `reference` must be a function of places, but {self.reference!r} was given.")
        values = checks.numbers("reference", self.reference(places))
        if values.shape != places.shape or not np.all(np.isfinite(values)):
            raise InputError("Argument `reference` must return a finite number for each place, but it does not.")
        return (values - values.min()) / unit

    def _rows(self, X: Any, *, reset: bool) -> np.ndarray:
        """A table of one column; a vector is one."""
        if not reset:
            check_is_fitted(self, "_found")
        vector = X.ndim == 1 if hasattr(X, "ndim") else isinstance(X, (list, tuple)) and np.ndim(X) == 1
        rows = validated(self, np.asanyarray(X).reshape(-1, 1) if vector else X, reset=reset)
        if rows.shape[1] != 1:
            raise InputError(f"Argument `X` must have one column of positions, but it has {rows.shape[1]}.")
        return rows

    def _on_grid(self, x: Any, values: np.ndarray) -> np.ndarray:
        """Values on the grid at places of any shape."""
        if x is None:
            return values
        places = checks.numbers("x", x)
        checks.finite("x", places)
        low, high = self.grid_[0], self.grid_[-1]
        if self.periodic:
            period = len(self.grid_) * (self.grid_[1] - low)
            return np.interp(places, self.grid_, values, period=period)
        slack = 1e-9 * (high - low)
        if np.any((places < low - slack) | (places > high + slack)):
            raise InputError(f"Argument `x` must lie on the grid, from {low:g} to {high:g}, but it does not.")
        return np.interp(places, self.grid_, values)

    def _log_at(self, places: np.ndarray, density: np.ndarray) -> np.ndarray:
        """The logarithm of the density between the points, which vanishes one spacing beyond the grid."""
        step = self.grid_[1] - self.grid_[0]
        if self.periodic:
            values = np.interp(places, self.grid_, density, period=step * len(self.grid_))
        else:
            around = np.concatenate([[self.grid_[0] - step], self.grid_, [self.grid_[-1] + step]])
            values = np.interp(places, around, np.concatenate([[0.0], density, [0.0]]))
        with np.errstate(divide="ignore"):
            return np.log(values)
