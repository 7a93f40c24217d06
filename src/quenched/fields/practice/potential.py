r"""The potential in which positions were measured, and how certain it is.

The prior is that the $k$-th derivative of $V - V_0$ is small,
$$p(V) \propto \exp\Bigl(-\tfrac\lambda2 \int |\partial^k (V - V_0)|^2\Bigr) ,$$
about a reference $V_0$. With order 3 and none, an oscillator costs nothing: at infinite strength the answer is the most
probable harmonic potential. Strengths are weighed by evidence, and the answer is the mean over them; its uncertainty is
that within each of them by Laplace's approximation, and that between them.

All is done in units of the data: lengths in their standard deviation $s$, energies in $\hbar^2/(m s^2)$. Positions
leave the constant of $V$ open; here $\langle V \rangle = 0$ under the density of positions.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from scipy import optimize

from quenched.core import checks
from quenched.core.types import InputError, Key, Outcome
from quenched.fields.learner.solving import solve_in_modes
from quenched.fields.learner.starts import Given
from quenched.fields.model.grid import Axis, Free, Grid, Periodic
from quenched.fields.model.hamiltonian import Hamiltonian, Particle
from quenched.fields.model.links import Direct
from quenched.fields.model.modes import Modes
from quenched.fields.model.observables import Positions
from quenched.fields.model.operators import Operator
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.quantum import PositionData
from quenched.fields.model.smoothness import Laplacian, ThinPlate
from quenched.fields.model.states import Canonical, Mixed, State, Stationary, Weighted
from quenched.fields.practice import bands
from quenched.fields.practice.bands import Drawn
from quenched.fields.practice.evidence import Mixture, Trial, weigh
from quenched.fields.theory.laplace import laplace

RATIO, LOST = 3.0, 12.0
"""Between strengths that are tried; and by how much the logarithm of the evidence falls before the search ends."""
TOP = 1.0
"""At the strongest prior its smoothest mode is known to this many times the precision that the data give it: closer to
infinite strength more trials would be alike, and count as if that were known beforehand."""
MARGIN, REACH = 1.5, 3.0
"""Standard deviations that the grid goes beyond the rows, and beyond its middle at least."""
WIDER, TRIES = 1.5, 3
"""A grid whose ends the state touches is made wider by this factor, so many times."""
STIFF = 1e3
"""Modes on which the prior is this many times as sure as the data are of its smoothest one are left out: they stay zero
where there is no reference."""
FREQUENCIES = (-300.0, 300.0)
"""Between which the logarithm of a frequency is searched."""
STEPS, GIVEN_UP = 60, 3
"""Newton's steps at one strength; and strengths without a minimum after which the search ends."""
SMALL = 1e-4
"""Trials with a smaller share of the posterior are left out of the mean."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """How positions are measured and what is known of the potential, in the units of the data.

    Attributes:
        state: in which they were measured.
        hamiltonian: mass and ends.
        grid: where the potential lives.
        order: of the derivative that is small.
        strength: of the prior on a grid of unit length; None for all of them.
        reference: $V_0$ on the grid; None for none.
        even: whether the potential is symmetric about the middle of the grid.
    """

    state: State
    hamiltonian: Hamiltonian
    grid: Grid
    order: int
    strength: float | None
    reference: np.ndarray | None
    even: bool

    @functools.cached_property
    def operator(self) -> Operator:
        """Of the prior with the strength 1."""
        axis = self.grid.axes[0]
        if not isinstance(axis.ends, Periodic):
            return ThinPlate(self.grid, self.order)
        period = axis.length + axis.spacing
        return period ** (2 * self.order - 1) * Laplacian(self.grid) ** self.order

    @functools.cached_property
    def modes(self) -> Modes:
        """All but the constant, which nothing here decides, and but for odd ones if the potential is even."""
        every = self.operator.modes()
        kept = np.arange(1, len(every.given))
        if self.even:
            flipped = every.given[::-1]
            kept = kept[np.sum(every.given * flipped, axis=0)[kept] > 0]
        return Modes(self.grid, every.values[kept], every.given[:, kept], every.over)


@dataclasses.dataclass(frozen=True, eq=False)
class Reconstruction:
    """A potential, in the units of the data.

    Attributes:
        setting: what was asked.
        mixture: strengths and their shares.
        outcome: whether all minima were found.
        potential: mean of $V$, with the mean zero under `density`.
        deviation: standard deviation of $V - \\langle V \\rangle$.
        density: of positions in that potential.
        log_deviation: standard deviation of the logarithm of the density.
        roots: rows whose products summed up are the covariance of the potential `[m, points]`.
    """

    setting: Setting
    mixture: Mixture
    outcome: Outcome
    potential: np.ndarray
    deviation: np.ndarray
    density: np.ndarray
    log_deviation: np.ndarray
    roots: np.ndarray

    def levels(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        r"""The lowest energies, and their standard deviations, $\delta E_k = \int \varphi_k^2\, \delta V$."""
        E, states = Particle(self.setting.hamiltonian, self.setting.grid, self.potential).lowest(count)
        return E, np.sqrt(np.sum((self.roots @ (states**2).T) ** 2, axis=0))


def draw(found: Reconstruction, key: Key) -> Drawn:
    r"""Potentials from the posterior, each less its mean under the density of the reconstruction `[draws, points]`.

    Args:
        found: whose strengths and shares are those of the draws, corrected by bridge sampling.
        key: of all draws.
    """
    shares = found.mixture.shares
    kept = [i for i, share in enumerate(shares) if share > SMALL * shares.max()]
    drawn = bands.draw([bands.part_of(found.mixture.trials[i], float(shares[i])) for i in kept], key)
    p = found.density / found.density.sum()
    return dataclasses.replace(drawn, fields=drawn.fields - (drawn.fields @ p)[:, None])


def densities(found: Reconstruction, potentials: np.ndarray) -> np.ndarray:
    """The density of positions in each of some potentials `[draws, points]`."""
    one = found.setting
    return np.array([one.state.density(one.grid, V, one.hamiltonian) for V in potentials])


def quanta(state: State, quantum: float) -> float:
    r"""The mean of $i + \frac12$ of an oscillator with levels $\hbar\omega (i + \frac12)$ in a state."""
    if isinstance(state, Stationary):
        return state.level + 0.5
    if isinstance(state, Weighted):
        return float(np.asarray(state.weights) @ (np.arange(len(state.weights)) + 0.5))
    if isinstance(state, Canonical):
        return 0.5 / np.tanh(quantum / (2 * float(state.temperature)))
    if isinstance(state, Mixed):
        return float(np.dot(state.weights, [quanta(one, quantum) for one in state.states]))
    raise InputError("Argument `state` must be one of a particle that does not move, such as 'ground', a level or a "
                     "Canonical(temperature), but "
                     f"{type(state).__name__} was given.")  # fmt: skip


def frequency(state: State) -> float:
    r"""$\omega$ of the oscillator whose density has unit variance in a state, where $\hbar = m = 1$."""
    return float(np.exp(optimize.brentq(lambda u: quanta(state, np.exp(u)) - np.exp(u), *FREQUENCIES)))  # pyright: ignore


def in_units(state: State, energy: float) -> State:
    """A state with its temperatures in some unit."""
    if isinstance(state, Canonical):
        return Canonical(float(state.temperature) / energy)
    if isinstance(state, Mixed):
        return Mixed(state.weights, [in_units(one, energy) for one in state.states])
    return state


def axis_for(
    rows: np.ndarray, bounds: tuple[float | None, float | None], points: int, *, ring: bool, centre: float | None,
    walls: bool, wider: float,
) -> Axis:  # fmt: skip
    """An axis that holds the rows, and what the state has beyond them.

    Args:
        rows: in units of their standard deviation, about their mean.
        bounds: ends that are given.
        points: of the axis.
        ring: whether the ends meet.
        centre: of a symmetric potential.
        walls: whether the bounds are hard walls.
        wider: factor of the margin.
    """
    given = [end is not None for end in bounds]
    low, high = (
        end if end is not None else side * (max(float(np.max(side * rows)), REACH) + wider * MARGIN)
        for end, side in zip(bounds, (-1, 1), strict=True)
    )
    if rows.min() < low or rows.max() > high:
        raise InputError("Argument `X` must lie inside `bounds`, but some positions do not.")
    if centre is not None and not all(given):
        half = max(centre - low, high - centre)
        low, high = centre - half, centre + half
    if ring:  # the last point is the one before the first
        high -= (high - low) / points
    if walls:  # the wave function vanishes one spacing outside
        step = (high - low) / (points + 1)
        low, high = low + step, high - step
    return Axis(low, high, points, ends=Periodic() if ring else Free())


def reconstruct(setting: Setting, rows: np.ndarray, weights: np.ndarray) -> Reconstruction:
    """The potential, over all strengths or at the given one.

    Raises:
        InputError: if no strength gives an answer, or the state is not bound.
    """
    axis = setting.grid.axes[0]
    ends = axis.low, axis.high
    inside = _round(rows, axis) if isinstance(axis.ends, Periodic) else np.clip(rows, *ends)
    data: Any = PositionData(
        positions=inside, state=setting.state, hamiltonian=setting.hamiltonian, weights=weights
    ).prepared(setting.grid)
    start = _start(setting, rows, weights)
    sure = _sureness(setting, data, start)
    strengths = [setting.strength] if setting.strength is not None else _strengths(setting, sure)
    trials, lost = [], []
    for strength in strengths:
        modes = _moved(setting, strength, sure)
        trial = _attempt(setting, data, modes, strength, trials[-1].fit if trials else Given(start))
        if trial is None and trials:
            trial = _attempt(setting, data, modes, strength, Given(start))
        if trial is None:
            lost.append(strength)
            if len(lost) == GIVEN_UP:
                break
            continue
        trials.append(trial)
        if trial.evidence < max(one.evidence for one in trials) - LOST:
            break
    if not trials:
        raise InputError("Argument `X` must decide a potential, but with these settings Newton's method found none: "
                         "give another reference, or a larger strength.")  # fmt: skip
    mixture = weigh(trials)
    data.check_bound(mixture.best.field)
    return _mean(setting, mixture, Outcome.stalled if lost else mixture.outcome)


def _round(rows: np.ndarray, axis: Axis) -> np.ndarray:
    """Positions on a ring, at the points of its axis."""
    place = np.rint((rows - axis.low) / axis.spacing).astype(int) % axis.points
    return axis.coordinates[place]


def _start(setting: Setting, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The reference; or an oscillator as wide as the rows; or, on a ring, nothing."""
    if setting.reference is not None:
        return setting.reference
    axis = setting.grid.axes[0]
    if isinstance(axis.ends, Periodic):
        return np.zeros(setting.grid.shape)
    mean = float(np.average(rows, weights=weights))
    return frequency(setting.state) ** 2 * (axis.coordinates - mean) ** 2 / 2


def _sureness(setting: Setting, data: Any, start: np.ndarray) -> float:
    """The precision that the data give the smoothest mode on which the prior has a say."""
    modes = setting.modes
    mode = modes.matrix[:, int(np.argmax(modes.values.ravel() > 0))]
    sure = abs(float(mode @ data.expand(Direct(setting.grid), start)[2].apply(mode[None])[0]))
    if not np.isfinite(sure):
        raise InputError("Argument `X` must be positions that the state may have, but in a potential as wide as all of "
                         "them some are too far out: leave these out, or give a `reference`.")  # fmt: skip
    return sure


def _strengths(setting: Setting, sure: float) -> list[float]:
    """From the strongest down, as many as there may be."""
    values = setting.modes.values.ravel()
    first = float(values[values > 0][0])
    many = int(np.log(values[-1] / first) / np.log(RATIO)) + 1
    return (TOP * sure / (setting.grid.cell * first) * RATIO ** -np.arange(many, dtype=float)).tolist()


def _moved(setting: Setting, strength: float, sure: float) -> Modes:
    """The modes that the data move, with the values of the prior; all of them about a reference."""
    modes = setting.modes.times(strength)
    if setting.reference is not None:
        return modes
    return modes.first(int(np.sum(setting.grid.cell * modes.values.ravel() <= STIFF * sure)), 1)


def _attempt(setting: Setting, data: Any, modes: Modes, strength: float, start: Any) -> Trial | None:
    """One strength; None where Newton's method finds no minimum."""
    mean = np.zeros(setting.grid.shape) if setting.reference is None else setting.reference
    problem = Problem(data, Direct(setting.grid), Gaussian(strength * setting.operator, mean=mean))
    fit = solve_in_modes(problem, modes, start, max_steps=STEPS)
    if not fit.converged or fit.factor is None:
        return None
    return Trial(setting.order, strength, 1.0, fit, laplace(problem, fit, unit_information=True))


def _mean(setting: Setting, mixture: Mixture, outcome: Outcome) -> Reconstruction:
    """Mean and deviations over the strengths that have weight."""
    grid, state, h = setting.grid, setting.state, setting.hamiltonian
    kept = [i for i, share in enumerate(mixture.shares) if share > SMALL * mixture.shares.max()]
    shares = mixture.shares[kept] / mixture.shares[kept].sum()
    trials = [mixture.trials[i] for i in kept]
    V = np.tensordot(shares, [trial.field for trial in trials], axes=1)
    P = state.density(grid, V, h)
    p = P / P.sum()
    V = V - p @ V
    roots, logs = [], []
    for share, trial in zip(shares, trials, strict=True):
        inner = trial.posterior.roots
        moved = state.respond(Particle(h, grid, trial.field), Positions(grid))
        density = np.maximum(moved.chance[0] / grid.cell, np.finfo(float).tiny)
        slopes = moved.move(np.ascontiguousarray(inner))[:, 0] / (density * grid.cell)
        off = trial.field - p @ trial.field - V
        roots += [np.sqrt(share) * (inner - (inner @ p)[:, None]), np.sqrt(share) * off[None]]
        logs += [np.sqrt(share) * slopes, np.sqrt(share) * (np.log(density) - np.log(np.maximum(P, 1e-300)))[None]]
    every, slopes = np.concatenate(roots), np.concatenate(logs)
    spread, log_spread = (np.sqrt(np.sum(one**2, axis=0)) for one in (every, slopes))
    return Reconstruction(setting, mixture, outcome, V, spread, P, log_spread, every)


def check_levels(count: Any, grid: Grid) -> int:
    """Check the number of levels asked for."""
    count = checks.whole("count", count, least=1)
    if count > grid.size:
        raise InputError(
            f"Argument `count` must be at most {grid.size}, the points of the grid, but {count} was given."
        )
    return count
