r"""Hyperparameters from data: `adapt`. [lemm1999, sections 5.1 to 5.5]

Three ways, each an object. `Marginal` integrates the field out and maximises what is left, the evidence times the
hyperprior: exact in regression, by Laplace's approximation elsewhere. `Integral` goes on and integrates the
hyperparameters, too, on a grid about that maximum. `Joint` maximises over field and hyperparameters together. The joint
density is often unbounded, at places that say nothing about the data; these are looked for and named (`Pathology`).

Alternatives (`Choice`) are enumerated, each with its own numbers; where they are too many they are annealed.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
import math
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np
from scipy import optimize

from quenched.core import checks
from quenched.core.types import InputError, Outcome, double
from quenched.fields.model.hyper import ALONE, Hyper, Space, space_of
from quenched.fields.model.hyperpriors import Hyperprior
from quenched.fields.model.priors import And
from quenched.fields.model.problem import Problem
from quenched.fields.practice.weighing import Look, Weigher
from quenched.fields.theory.laplace import Laplace, interval, laplace

if TYPE_CHECKING:
    import xarray as xr

SCAN = 5
"""Values of each coordinate that are tried before the search, with the others at their start."""
SCANNED = 12
"""At most so many coordinates are scanned."""
FLAT = 1e-4
"""The search has converged when the slope per coordinate is below this, in units of the log-density."""
EDGE = 1e-6
"""A coordinate is at an end of its range if it is this close to it, as a share of the range."""
NOTHING = 1e-8
"""The field is its template if the prior's energy is below this share of half its rank."""
ALL, NEARLY = 1e-6, 1e-3
"""Data or prior have no say if the other one has all of it but this share; at the end of a range, nearly all."""
WIDE = 5.0
"""Standard deviations to each side over which hyperparameters are integrated."""
FEWEST = 1e-4
"""Alternatives with a smaller share of the posterior are left out of the mean field."""
ENUMERATED = 4096
"""So many combinations of alternatives are enumerated; more are annealed."""
HOT, COLD, SWEEPS = 10.0, 0.5, 30
"""Temperatures of the annealing, and how often each choice is tried."""


class Pathology(enum.Enum):
    """What can go wrong when field and hyperparameters are maximised together; each is a sentence."""

    frozen = (
        "The density grows without bound as the prior's variance goes to zero: the field is its template, and the data "
        "have no say."
    )
    released = (
        "The density grows as the prior's strength goes to zero: the field goes through the data, and the prior has no "
        "say (the delta catastrophe)."
    )
    swallowed = (
        "The template has followed the field: the prior's energy is zero, and the template's parameters alone fit the "
        "data."
    )


class Adaptation(eqx.Module):
    """How hyperparameters are found."""


class Marginal(Adaptation):
    """The field is integrated out, and the posterior of the hyperparameters is maximised."""


class Joint(Adaptation):
    """Field and hyperparameters are maximised together, with the pathologies that this has detected."""


class Integral(Adaptation):
    """The field and the hyperparameters are integrated.

    Attributes:
        points: how many values of each number.
    """

    points: int = eqx.field(static=True, default=15)

    def __check_init__(self):
        checks.whole("points", self.points, least=3)


@dataclasses.dataclass(frozen=True, eq=False)
class FittedHyper:
    """Hyperparameters and the field that goes with them.

    Attributes:
        theta: the hyperparameters, as they were given to `Hyper`: the most probable ones.
        field: the mean of the field: at `theta`, or over all that were weighed.
        variance: of the field, likewise; that of a `Joint` maximum does not know how uncertain `theta` is.
        log_evidence: logarithm of the density of the data: at `theta`, or over all that were weighed; of a `Joint`
            maximum, that of data, field and hyperparameters.
        deviation: standard deviations of the numbers among the hyperparameters, of their logarithms where they are
            searched in these; infinite where the posterior has no curvature.
        edges: names of those that end at an end of their range.
        outcome: `converged`; `diverged` if a joint maximum is at no finite place; `stalled` if the search was not done.
        pathologies: what went wrong with a joint maximum.
        alternatives: all that were weighed, with their `log_evidence` and `share` of the posterior.
        problem: with the hyperparameters at `theta`.
        posterior: of the field at `theta`.
    """

    theta: Any
    field: np.ndarray
    variance: np.ndarray
    log_evidence: float
    deviation: dict[str, Any]
    edges: tuple[str, ...]
    outcome: Outcome
    pathologies: tuple[Pathology, ...]
    alternatives: xr.Dataset
    problem: Problem
    posterior: Laplace

    @property
    def converged(self) -> bool:
        """Whether this is an answer."""
        return self.outcome is Outcome.converged

    def probability(self, name: str = ALONE) -> dict[Any, float]:
        """The posterior probability of each value of a hyperparameter.

        Args:
            name: of a hyperparameter.

        Raises:
            InputError: if there is none of that name.
        """
        if name not in self.alternatives:
            raise InputError(f"Argument `name` must be a hyperparameter that was weighed, but {name!r} was given.")
        found: dict[Any, float] = {}
        for value, share in zip(self.alternatives[name].values, self.alternatives["share"].values, strict=True):
            value = value.item() if isinstance(value, np.generic) else value
            found[value] = found.get(value, 0.0) + float(share)
        return found

    def band(self, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """The interval of the field at each point.

        Args:
            level: its probability.
        """
        return interval(self.field, np.sqrt(self.variance), level)


@double
def adapt(problem: Problem, method: Adaptation | None = None, *, noise: Hyperprior | None = None) -> FittedHyper:
    r"""Find the hyperparameters of a prior.

    Args:
        problem: likelihood x link x prior, with `Hyper` among the parts of the prior.
        method: `Marginal()`, `Integral()` or `Joint()`; by default the first.
        noise: what is known of a factor of the noise variances of `GaussianData`, which is then found, too.

    Returns:
        The hyperparameters, the field, and how probable each alternative is.

    Raises:
        InputError: if the prior has no hyperparameters, or its null space depends on them.

    Examples:
        >>> import numpy as np
        >>> from quenched import fields
        >>> axis = fields.Axis(0, 1, points=30)
        >>> grid = fields.Grid(given=[axis])
        >>> smooth = fields.Strength(fields.Laplacian(grid))
        >>> data = fields.GaussianData(axis.coordinates, np.sin(6 * axis.coordinates), 0.01)
        >>> found = fields.adapt(fields.Problem(data, fields.Direct(grid), smooth))
        >>> found.outcome.name, sorted(found.theta)
        ('converged', ['strength'])
    """
    checks.kind("problem", problem, Problem, "a Problem")
    method = Marginal() if method is None else method
    checks.kind("method", method, Adaptation, "a method such as Marginal()")
    space = space_of(problem, noise)
    combinations = math.prod(len(space.hyperprior[name].values) for name in space.choices)
    find = functools.lru_cache(maxsize=None)(functools.partial(_found, space, method))
    if combinations <= ENUMERATED:
        every = [
            find(key) for key in itertools.product(*(range(len(space.hyperprior[n].values)) for n in space.choices))
        ]
    else:
        every = _anneal(space, find)
    return _answer(space, method, every, combinations)


@dataclasses.dataclass(frozen=True, eq=False)
class _Found:
    """What was found for one combination of alternatives."""

    best: Look
    weighed: list[tuple[Look, float]]  # with logarithms of their weights
    outcome: Outcome
    edges: tuple[str, ...]
    pathologies: tuple[Pathology, ...]
    deviation: np.ndarray

    @property
    def log_weight(self) -> float:
        return float(np.logaddexp.reduce([weight for _, weight in self.weighed]))


def _found(space: Space, method: Adaptation, key: tuple[int, ...]) -> _Found:
    """The best numbers of one combination of alternatives."""
    choices = {name: space.hyperprior[name].values[i] for name, i in zip(space.choices, key, strict=True)}
    weigher, bounds = Weigher(space, choices), space.bounds()
    joint = isinstance(method, Joint)
    if len(bounds) == 0:
        best = weigher.look(np.zeros(0))
        return _Found(best, [(best, best.log_joint if joint else best.log_posterior)], Outcome.converged, (),
                      tuple(_pathologies(best)) if joint else (), np.zeros(0))  # fmt: skip
    best, outcome = _search(weigher, bounds, joint)
    at = _ends(best.u, bounds)
    edges = tuple(label for label, side in zip(weigher.labels, at, strict=True) if side)
    if joint:
        wrong = tuple(dict.fromkeys(_pathologies(best) + _higher_ends(weigher, best, bounds)))
        return _Found(best, [(best, best.log_joint)], Outcome.diverged if wrong else outcome, edges, wrong,
                      np.full(len(bounds), np.nan))  # fmt: skip
    inside = at == 0
    curvature = _curvature(weigher, best, inside)
    values = np.linalg.eigvalsh(curvature) if curvature.size else np.zeros(0)
    deviation = np.full(len(bounds), np.inf)
    if len(values) and values[0] > 0:
        deviation[inside] = np.sqrt(np.diag(np.linalg.inv(curvature)))
    if isinstance(method, Integral):
        return _Found(best, _integrate(weigher, best, bounds, deviation, method.points), outcome, edges, (), deviation)
    volume = 0.5 * float(np.sum(np.log(2 * np.pi / values))) if len(values) and values[0] > 0 else 0.0
    weight = best.log_posterior + space.log_volume(best.theta) + volume
    return _Found(best, [(best, weight)], outcome, edges, (), deviation)


def _search(weigher: Weigher, bounds: np.ndarray, joint: bool) -> tuple[Look, Outcome]:
    """The highest place, by a scan along each coordinate and a quasi-Newton method from there."""
    looks: dict[bytes, Look] = {}

    def look(u: np.ndarray) -> Look:
        u = np.clip(u, bounds[:, 0], bounds[:, 1])
        if u.tobytes() not in looks:
            looks[u.tobytes()] = weigher.look(u)
            _check_ranks(looks.values())
        return looks[u.tobytes()]

    def height(one: Look) -> float:
        return one.log_joint if joint else one.log_posterior

    def fall(u: np.ndarray) -> tuple[float, np.ndarray]:
        one = look(u)
        return -height(one), -(one.joint_slope if joint else one.slope)

    best = look(weigher.space.pack(weigher.space.start))
    for i in np.flatnonzero(np.all(np.isfinite(bounds), axis=1)) if len(bounds) <= SCANNED else ():
        for value in np.linspace(bounds[i, 0], bounds[i, 1], SCAN + 2)[1:-1]:
            u = best.u.copy()
            u[i] = value
            best = max(best, look(u), key=height)
    found = optimize.minimize(fall, best.u, jac=True, bounds=bounds, method="L-BFGS-B",
                              options={"maxiter": 500, "ftol": 1e-14, "gtol": 1e-8, "maxls": 40})  # fmt: skip
    best = max(best, look(found.x), key=height)
    steep = np.where(_ends(best.u, bounds) * fall(best.u)[1] < 0, 0.0, fall(best.u)[1])
    done = float(np.max(np.abs(steep))) < FLAT * (1 + 1e-6 * abs(height(best)))
    return best, Outcome.converged if done else Outcome.stalled


def _check_ranks(looks: Iterable[Look]) -> None:
    """Check that the prior has the same null space everywhere."""
    ranks = {look.rank for look in looks}
    if len(ranks) > 1:
        raise InputError("The null space of a prior must not depend on its hyperparameters, or they cannot be "
                         f"compared, but its rank is {min(ranks)} or {max(ranks)}: add a Mass.")  # fmt: skip


def _ends(u: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """-1 at the lower end of a range, 1 at the upper one, 0 between."""
    near = EDGE * np.where(np.isfinite(bounds[:, 1] - bounds[:, 0]), bounds[:, 1] - bounds[:, 0], 0.0)
    return np.where(u <= bounds[:, 0] + near, -1, np.where(u >= bounds[:, 1] - near, 1, 0))


def _pathologies(best: Look) -> list[Pathology]:
    """What is wrong at a joint maximum."""
    swallowed = best.moved and best.bent <= NOTHING * 0.5 * best.rank
    return ([Pathology.swallowed] if swallowed else []) + _extreme(best, ALL)


def _extreme(look: Look, limit: float) -> list[Pathology]:
    """Whether the prior or the data have no say.

    The share of the data in what is known of the directions that they see: Tr(H^# C) by the rank of their curvature C.
    """
    C = look.problem.expand_data(look.field)[2].matrix()
    roots = laplace(look.problem, look.field).roots
    share = float(np.sum((roots @ C) * roots)) / max(int(np.linalg.matrix_rank(C, hermitian=True)), 1)
    return [Pathology.frozen] if share < limit else [Pathology.released] if share > 1 - limit else []


def _higher_ends(weigher: Weigher, best: Look, bounds: np.ndarray) -> list[Pathology]:
    """What the ends of the ranges say, if a local maximum between them is not the highest place.

    Either an end is higher, or the density still grows there and the range has no end of its own.
    """
    wrong, endless = [], weigher.space.open()
    for i in range(len(bounds) if len(bounds) <= SCANNED else 0):
        for side, end in enumerate(bounds[i]):
            if not np.isfinite(end):
                continue
            u = best.u.copy()
            u[i] = end
            there = weigher.look(u)
            grows = endless[i, side] and (2 * side - 1) * there.joint_slope[i] > FLAT
            if grows or there.log_joint > best.log_joint + FLAT:
                wrong += _extreme(there, NEARLY)
    return wrong


def _curvature(weigher: Weigher, best: Look, inside: np.ndarray) -> np.ndarray:
    """Minus the second derivatives of the log-posterior by the coordinates that are not at an end."""
    step, places = 1e-4, np.flatnonzero(inside)
    rows = []
    for i in places:
        unit = step * (np.arange(len(inside)) == i)
        rows.append((weigher.look(best.u - unit).slope - weigher.look(best.u + unit).slope)[places] / (2 * step))
    H = np.array(rows).reshape(len(places), len(places))
    return (H + H.T) / 2


def _integrate(
    weigher: Weigher, best: Look, bounds: np.ndarray, deviation: np.ndarray, points: int
) -> list[tuple[Look, float]]:
    """A grid about the maximum, with the logarithms of what each place contributes to the integral."""
    if not np.all(np.isfinite(bounds)) or points ** len(bounds) > ENUMERATED:
        raise InputError(f"Argument `method` must be Marginal() here, because {len(bounds)} hyperparameters are too "
                         "many to be integrated, or have no bounds.")  # fmt: skip
    lines = []
    for (low, high), u, s in zip(bounds, best.u, deviation, strict=True):
        first, last = max(low, u - WIDE * s), min(high, u + WIDE * s)
        step = (last - first) / points
        lines.append((first + step * (np.arange(points) + 0.5), np.log(step)))
    volume = sum(log_step for _, log_step in lines)
    found = []
    for u in itertools.product(*(line for line, _ in lines)):
        one = weigher.look(np.array(u), slopes=False)
        found.append((one, one.log_posterior + weigher.space.log_volume(one.theta) + volume))
    return found


def _anneal(space: Space, find: Any) -> list[_Found]:
    """Combinations of alternatives met while the temperature falls, with fixed random numbers."""
    random = np.random.default_rng(0)
    counts = [len(space.hyperprior[name].values) for name in space.choices]
    now = tuple(space.hyperprior[name].values.index(space.start[name]) for name in space.choices)
    met = {now: find(now)}
    for temperature in np.geomspace(HOT, COLD, SWEEPS):
        for place in random.permutation(len(counts)):
            other = list(now)
            other[place] = int((now[place] + random.integers(1, counts[place])) % counts[place])
            trial = tuple(other)
            met[trial] = find(trial)
            if random.random() < np.exp(min(0.0, (met[trial].log_weight - met[now].log_weight) / temperature)):
                now = trial
    return list(met.values())


def _answer(space: Space, method: Adaptation, every: list[_Found], combinations: int) -> FittedHyper:
    """All alternatives with their shares, and the field."""
    import xarray as xr

    logs = np.concatenate([[weight for _, weight in found.weighed] for found in every])
    looks = [look for found in every for look, _ in found.weighed]
    _check_ranks(looks)
    total = float(np.logaddexp.reduce(logs))
    shares = np.exp(logs - total)
    chosen = max(every, key=lambda found: found.log_weight)
    best = chosen.best
    columns: dict[str, Any] = {}
    for name in space.hyperprior:
        values = [look.theta[name] for look in looks]
        if np.ndim(values[0]) == 0:
            columns[name] = ("alternative", np.array(values))
    columns["log_evidence"] = ("alternative", np.array([look.log_evidence for look in looks]))
    columns["share"] = ("alternative", shares / shares.sum())
    table = xr.Dataset(columns, attrs={"combinations": combinations, "visited": len(every)})
    at_best = laplace(best.problem, best.field)
    field, variance = at_best.field, at_best.variance
    kept = [(look, share) for look, share in zip(looks, shares, strict=True) if share > FEWEST * shares.max()]
    if len(kept) > 1:
        parts = np.array([share for _, share in kept]) / sum(share for _, share in kept)
        fields = np.array([look.field for look, _ in kept])
        field = np.tensordot(parts, fields, axes=1)
        inner = [laplace(look.problem, look.field).variance for look, _ in kept]
        variance = np.tensordot(parts, np.array(inner) + (fields - field) ** 2, axes=1)
    weighed = isinstance(method, Integral) or bool(space.choices)
    evidence = best.log_joint if isinstance(method, Joint) else total if weighed else best.log_evidence
    for wrong in chosen.pathologies:
        warnings.warn(f"{wrong.value} Give a hyperprior that forbids it, or use Marginal().", UserWarning, stacklevel=3)
    deviation = dict(zip(space.labels(), chosen.deviation.tolist(), strict=True))
    return FittedHyper(_as_given(space, best.theta), field, variance, evidence, deviation, chosen.edges, chosen.outcome,
                   chosen.pathologies, table, best.problem, at_best)  # fmt: skip


def _as_given(space: Space, theta: dict[str, Any]) -> Any:
    """A dictionary, or what stands alone without a name."""
    prior = space.problem.prior
    parts = [part for part in (prior.parts if isinstance(prior, And) else (prior,)) if isinstance(part, Hyper)]
    bare = len(parts) == 1 and not parts[0].family.named and len(theta) == 1
    return theta[ALONE] if bare else theta
