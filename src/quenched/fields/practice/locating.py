r"""Where a field jumps, or changes its template: `locate`. [lemm1999, sections 5.5 and 5.6]

Three ways, each an object. `Exact` sums over all places of jumps on a line (see `quenched.fields.learner.segments`).
`Annealing` turns the switches one by one while the temperature falls, with the field integrated out exactly; it draws
from the posterior at temperature 1 and cools on to the best. `Alternation` is mean field for any likelihood: the
posterior of the field given real switches $0 \le b_x \le 1$, then the switches given the field,
$$b_x = \sigma(-h_x/T) , \qquad
  h_x = \kappa + \tfrac v2 \big[\langle|\omega_{2,x}|^2 - |\omega_{1,x}|^2\rangle_{\rm post}
    - \langle|\omega_{2,x}|^2 - |\omega_{1,x}|^2\rangle_{\rm prior}\big] + \text{coupling} ,$$
where the mean under the prior comes from its normalisation; the temperature falls until all are off or on.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import numpy as np
from scipy import optimize
from scipy.special import expit

from quenched.core import checks
from quenched.core.types import InputError, Outcome, double
from quenched.fields.learner import flips, segments
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Given
from quenched.fields.model.hyperpriors import Choice, Hyperprior
from quenched.fields.model.likelihoods import GaussianData
from quenched.fields.model.links import Direct
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.switches import Jumps, Switches
from quenched.fields.theory.laplace import interval, laplace

SCAN = 5
"""Values of each number that are tried before the search."""
DAMPED = 0.5
"""Share of the way that switches go in a step of mean field."""
STEPS, PATIENCE = 6, 40
"""Steps of mean field at each temperature, and at most at the last. It has settled when so many change no switch."""


class Locator(eqx.Module):
    """How switches are found."""


class Exact(Locator):
    """The sum over all jumps of a line, for regression on a lattice."""


class Annealing(Locator):
    """Switches are turned one by one while the temperature falls; for regression.

    Attributes:
        sweeps: through all switches, until temperature 1.
        samples: sweeps there, of which means are taken.
        hot: the first temperature.
        seed: of the random numbers.
    """

    sweeps: int = eqx.field(static=True, default=20)
    samples: int = eqx.field(static=True, default=20)
    hot: float = eqx.field(static=True, default=10.0)
    seed: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        checks.whole("sweeps", self.sweeps, least=1)
        checks.whole("samples", self.samples, least=1)
        checks.whole("seed", self.seed, least=0)
        checks.positive("hot", checks.number("hot", self.hot))


class Alternation(Locator):
    """Field and switches in turn, as mean field at falling temperatures; for any likelihood.

    Attributes:
        temperatures: how many.
        hot: the first.
        cold: the last.
    """

    temperatures: int = eqx.field(static=True, default=12)
    hot: float = eqx.field(static=True, default=5.0)
    cold: float = eqx.field(static=True, default=0.05)

    def __check_init__(self):
        checks.whole("temperatures", self.temperatures, least=1)
        checks.positive("hot", checks.number("hot", self.hot))
        checks.positive("cold", checks.number("cold", self.cold))


@dataclasses.dataclass(frozen=True, eq=False)
class FittedSwitches:
    """Switches and the field that goes with them.

    Attributes:
        field: the mean of the field over all switches; at the best ones in mean field.
        variance: of the field, likewise.
        switches: the most probable ones, together.
        probability: of each switch, by itself.
        counts: probability of 0, 1, 2, ... switches that are on; the last is that of more. None in mean field.
        log_evidence: logarithm of the density of the data, summed over all switches; None unless that is exact.
        theta: numbers that were found: `strength`, `mass`, `noise`.
        outcome: `converged`, or `stalled` if mean field has not settled.
        problem: with the best switches.
    """

    field: np.ndarray
    variance: np.ndarray
    switches: np.ndarray
    probability: np.ndarray
    counts: np.ndarray | None
    log_evidence: float | None
    theta: dict[str, float]
    outcome: Outcome
    problem: Problem

    @property
    def converged(self) -> bool:
        """Whether this is an answer."""
        return self.outcome is Outcome.converged

    def band(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The interval of the field at each point.

        Args:
            level: its probability.
        """
        return interval(self.field, np.sqrt(self.variance), level)


@double
def locate(problem: Problem, method: Locator | None = None, *, noise: Hyperprior | None = None) -> FittedSwitches:
    """Find where a prior is switched.

    Args:
        problem: likelihood x link x prior, with `Jumps`, `Patches` or `Switches` as the prior.
        method: `Exact()`, `Annealing()` or `Alternation()`; by default the first that can be used.
        noise: what is known of a factor of the noise variances of `GaussianData`, which is then found, too (`Exact`).

    Returns:
        The switches, their probabilities, and the field.

    Raises:
        InputError: for a prior without switches, or a method that cannot be used.
    """
    checks.kind("problem", problem, Problem, "a Problem")
    checks.kind("noise", noise, (Hyperprior, type(None)), "a hyperprior such as LogFlat(0.1, 10), or None")
    prior = problem.prior
    if not isinstance(prior, Switches):
        raise InputError(
            f"Argument `problem` must have a prior with switches, such as Jumps(grid), but it has {prior!r}."
        )
    regression = isinstance(problem.likelihood, GaussianData) and isinstance(problem.link, Direct)
    lattice = regression and problem.likelihood.shares is None  # pyright: ignore[reportAttributeAccessIssue]
    if method is None:
        method = Exact() if prior.chain and lattice else Annealing() if regression else Alternation()
    checks.kind("method", method, Locator, "a method such as Exact()")
    if isinstance(method, Exact):
        if not (isinstance(prior, Jumps) and prior.chain and lattice):
            raise InputError("Argument `method` must not be Exact() here, because only jumps along one axis without "
                             "tails are summed exactly, with GaussianData.")  # fmt: skip
        return _exact(problem, prior, noise)
    if noise is not None or (isinstance(prior, Jumps) and any(isinstance(one, Hyperprior)
                                                              for one in (prior.strength, prior.mass))):  # fmt: skip
        raise InputError(
            "Arguments `strength`, `mass` and `noise` must be numbers here, because only Exact() finds them."
        )
    if isinstance(method, Annealing):
        if not regression:
            raise InputError("Argument `method` must be Alternation() here, because the data are not GaussianData.")
        return _annealed(problem, prior, method)
    return _alternated(problem, prior, method)  # pyright: ignore[reportArgumentType]


def _exact(problem: Problem, prior: Jumps, noise: Hyperprior | None) -> FittedSwitches:
    """All sums, at the numbers of most evidence."""
    data: Any = problem.likelihood
    grid = problem.grid
    loss, slope, curvature = data.expand(problem.link, np.zeros(grid.shape))
    known, pull = np.diag(curvature.matrix()), -slope.ravel()
    total = data.total
    asked = {"strength": prior.strength, "mass": prior.mass, "noise": 1.0 if noise is None else noise}
    free = {name: one for name, one in asked.items() if isinstance(one, Hyperprior)}
    if any(isinstance(one, Choice) for one in free.values()):
        raise InputError("Arguments `strength`, `mass` and `noise` must be numbers or densities, but one is a choice.")

    def line(theta: dict[str, float]) -> segments.Line:
        factor = theta["noise"]
        return segments.Line(
            grid.cell * theta["strength"] / grid.axes[0].spacing ** 2, grid.cell * theta["mass"],
            np.asarray(prior.common.mean).ravel(), known / factor, pull / factor, prior.price, prior.coupling,
        )  # fmt: skip

    def rest(theta: dict[str, float]) -> float:
        """What the data have by themselves: -loss at a field of zero, with the noise."""
        constant = 0.5 * total * np.log(theta["noise"])
        misfit = data.misfit(np.zeros(grid.shape))
        return -(loss - 0.5 * misfit + constant) - 0.5 * misfit / theta["noise"]

    fixed = {name: float(one) for name, one in asked.items() if name not in free}

    def unpack(u: np.ndarray) -> dict[str, float]:
        numbers = {
            name: float(np.exp(v) if one.logarithmic else v) for (name, one), v in zip(free.items(), u, strict=True)
        }
        return {**fixed, **numbers}

    def fall(u: np.ndarray) -> float:
        theta = unpack(u)
        if min(theta.values()) <= 0:
            return np.inf
        beforehand = sum(float(one.energy(theta[name])) for name, one in free.items())
        return -segments.evidence(line(theta)) - rest(theta) + beforehand

    theta = unpack(_least(fall, list(free.values())))
    found = segments.segment(line(theta))
    held = Jumps(grid, theta["strength"], theta["mass"], prior.expected, prior.coupling, np.asarray(prior.common.mean))
    variance = theta["noise"] * np.asarray(data.variance)
    asked_again = Problem(dataclasses.replace(data, variance=variance), problem.link, held.hold(found.switches))
    numbers = {name: theta[name] for name in free}
    return FittedSwitches(found.mean.reshape(grid.shape), found.variance.reshape(grid.shape), found.switches,
                          found.probability, found.counts, found.log_evidence + rest(theta), numbers, Outcome.converged,
                          asked_again)  # fmt: skip


def _least(fall: Any, free: list[Hyperprior]) -> np.ndarray:
    """The lowest place, by a scan along each coordinate and the simplex method."""
    if not free:
        return np.zeros(0)
    bounds = [np.log(one.bounds(one.middle)) if one.logarithmic else np.array(one.bounds(one.middle)) for one in free]
    best = np.array([np.log(one.middle) if one.logarithmic else one.middle for one in free])
    for _ in range(2):
        for i, (low, high) in enumerate(bounds):
            tried = [np.where(np.arange(len(best)) == i, v, best) for v in np.linspace(low, high, 2 * SCAN + 1)[1:-1]]
            best = min([best, *tried], key=fall)
    found = optimize.minimize(fall, best, method="Nelder-Mead", bounds=bounds, options={"xatol": 1e-4, "fatol": 1e-7})
    return np.clip(found.x, *np.array(bounds).T)


def _annealed(problem: Problem, prior: Switches, method: Annealing) -> FittedSwitches:
    data: Any = problem.likelihood
    _, slope, curvature = data.expand(problem.link, np.zeros(problem.grid.shape))
    found = flips.sample(prior, curvature.matrix(), -slope.ravel(), sweeps=method.sweeps, samples=method.samples,
                         hot=float(method.hot), seed=method.seed)  # fmt: skip
    counts = np.append(found.counts[: segments.MANY], found.counts[segments.MANY :].sum())
    held = Problem(data, problem.link, prior.hold(found.switches))
    shape = problem.grid.shape
    return FittedSwitches(found.mean.reshape(shape), found.variance.reshape(shape), found.switches, found.probability,
                          counts, None, {}, Outcome.converged, held)  # fmt: skip


def _alternated(problem: Problem, prior: Switches, method: Alternation) -> FittedSwitches:
    """Mean field, cooled."""
    grid, b, field = problem.grid, np.full(len(prior.first), 0.5), None
    if prior.price or prior.coupling == 0:
        b = np.full(len(prior.first), expit(-prior.price))
    schedule = np.geomspace(float(method.hot), float(method.cold), method.temperatures)
    quiet = 0
    for step, temperature in enumerate([*np.repeat(schedule, STEPS), *np.full(PATIENCE, schedule[-1])]):
        push, field = _push(problem, prior, b, field)
        new = expit(-(prior.price + push + _coupled(prior, b)) / temperature)
        quiet = quiet + 1 if np.array_equal(new > 0.5, b > 0.5) else 0
        b = np.where(np.arange(len(b)) % 2 == step % 2, b + DAMPED * (new - b), b)  # neighbours in turn: no cycles
        if step >= STEPS * len(schedule) and quiet >= STEPS:
            break
    outcome = Outcome.converged if quiet >= STEPS else Outcome.stalled
    switches = b > 0.5
    held = prior.hold(switches)
    field, covariance = _posterior(problem, held, field)
    return FittedSwitches(field, np.diag(covariance).reshape(grid.shape), switches, b, None, None, {}, outcome,
                          Problem(problem.likelihood, problem.link, held))  # fmt: skip


def _push(problem: Problem, prior: Switches, b: np.ndarray, field: Any) -> tuple[np.ndarray, np.ndarray]:
    """Minus the derivatives of the log-density of the data by real switches, and the field."""
    held = prior.hold(b)
    field, covariance = _posterior(problem, held, field)
    inverse = np.linalg.inv(problem.grid.cell * held.operator.matrix)
    push = _worth(prior, field, covariance) - _worth(prior, np.asarray(held.mean), inverse)
    return 0.5 * problem.grid.cell * push, field


def _posterior(problem: Problem, held: Gaussian, field: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the field at given switches: exact in regression, by Laplace's approximation elsewhere."""
    if isinstance(problem.likelihood, GaussianData):
        _, slope, curvature = problem.likelihood.expand(problem.link, np.zeros(problem.grid.shape))  # pyright: ignore[reportGeneralTypeIssues]
        M = problem.grid.cell * held.operator.matrix
        covariance = np.linalg.inv(M + curvature.matrix())
        return (covariance @ (M @ np.asarray(held.mean).ravel() - slope.ravel())).reshape(
            problem.grid.shape
        ), covariance
    asked = Problem(problem.likelihood, problem.link, held)
    fit = solve(asked, start=None if field is None else Given(field))
    return fit.field, laplace(asked, fit).covariance


def _worth(prior: Switches, field: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    r"""$\langle |\omega_2|^2 - |\omega_1|^2 \rangle$ of each switch."""
    found = []
    for W, target in ((prior.second, prior.second_target), (prior.first, prior.first_target)):
        found.append((W @ field.ravel() - target) ** 2 + np.sum((W @ covariance) * W, axis=1))
    return found[0] - found[1]


def _coupled(prior: Switches, b: np.ndarray) -> np.ndarray:
    """What the neighbours say: the derivative of the coupling by each switch, for independent neighbours."""
    found = np.zeros(len(b))
    i, k = prior.pairs.T
    np.add.at(found, i, prior.coupling * (1 - 2 * b[k]))
    np.add.at(found, k, prior.coupling * (1 - 2 * b[i]))
    return found
