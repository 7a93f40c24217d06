r"""Calibration by simulation: are the bands of a problem right?

A field is drawn from the prior, data from the likelihood at the inputs and with the number of rows of the problem, and
fields from the posterior of these data; the truth is ranked among them (see `quenched.core.calibration`). The prior
must be proper, except for directions that change no density. Laplace's Gaussian is exact in regression; of a density
it is not, and the ranks show it. Hyperparameters are drawn from their hyperprior, as the
alternatives of `a | b` are; a number among them takes `VALUES` values, for the truth and for the posterior alike.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import xarray as xr

from quenched.core import calibration, checks, results
from quenched.core.calibration import Simulator, Trial
from quenched.core.random import normals, split, uniforms
from quenched.core.types import QUICK, Array, InputError, Key, Outcome, double
from quenched.fields.learner.solving import solve
from quenched.fields.model.components import ClassData
from quenched.fields.model.either import Either, resolve
from quenched.fields.model.hyper import Hyper, space_of
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Direct
from quenched.fields.model.noise import GaussianNoise, NoisyData
from quenched.fields.model.priors import And, Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.practice.posteriors import LaplaceDraws, PosteriorDraws
from quenched.fields.theory.laplace import FLAT, laplace, pulls_at_shifts, shifts_of

VALUES = 25
"""Values that a hyperparameter takes: neighbours differ by less than the data decide of a strength."""
PLACES = 4
"""Places at which the field is ranked, evenly over the grid."""


@dataclasses.dataclass(frozen=True, eq=False)
class _Setting:
    """One value of what is open: the problem with a Gaussian prior, its probability, and the hyperparameter."""

    problem: Problem
    weight: float
    theta: float | None

    @functools.cached_property
    def roots(self) -> np.ndarray:
        """Rows whose products summed up are the covariance of the prior."""
        K = self.problem.grid.cell * np.asarray(self.problem.operator.matrix)
        values, vectors = np.linalg.eigh((K + K.T) / 2)
        kept = values > FLAT * values[-1]
        return (vectors[:, kept] / np.sqrt(values[kept])).T

    def field(self, key: Key) -> np.ndarray:
        """A field from the prior."""
        mean = np.asarray(self.problem.prior.mean)  # pyright: ignore[reportAttributeAccessIssue]
        return mean + (normals(key, len(self.roots)) @ self.roots).reshape(mean.shape)


@dataclasses.dataclass(frozen=True, eq=False)
class ProblemSimulator(Simulator):
    """Fields from the prior of a problem, and data like its own.

    Attributes:
        problem: its data say how many rows there are, where, and with what noise.
        method: how the posterior is drawn from.
        functions: what is ranked besides, by name.
    """

    problem: Problem
    method: PosteriorDraws
    functions: Mapping[str, Callable[[Array], Array]]

    @functools.cached_property
    def settings(self) -> list[_Setting]:
        """All values of what is open."""
        return _settings(self.problem)

    @functools.cached_property
    def places(self) -> np.ndarray:
        """Flat indices of points at which the field is ranked."""
        return np.unique(np.linspace(0, self.problem.grid.size - 1, PLACES + 2).astype(int)[1:-1])

    @property
    def quantities(self) -> list[str]:
        """Values at places, their mean and their range, log-likelihood and prior energy, and what is open."""
        grid = self.problem.grid
        at = np.unravel_index(self.places, grid.shape)
        each = zip(*(axis.coordinates[i] for axis, i in zip(grid.axes, at, strict=True)), strict=True)
        what = "field" if isinstance(self.problem.link, Direct) else "ln P"
        names = [f"{what} at {', '.join(f'{x:.3g}' for x in place)}" for place in each]
        names += [f"mean of {what}", f"last less first {what}", "log-likelihood", "prior energy", *self.functions]
        return [*names, "hyperparameter"] if self.settings[0].theta is not None else names

    @property
    def facts(self) -> dict[str, Any]:
        """The problem and the method."""
        return {"science": "fields", "problem": type(self.problem.likelihood).__name__,
                "link": type(self.problem.link).__name__, "method": results.describe(self.method),
                "rows": self.problem.likelihood.total}  # fmt: skip

    def run(self, key: Key, draws: int) -> Trial:
        """See `Simulator`."""
        which, before, noise, after = split(key, 4)
        weights = np.array([one.weight for one in self.settings])
        chosen = self.settings[_pick(weights, uniforms(which, 1))[0]]
        truth = chosen.field(before)
        seen = redraw(chosen.problem, truth, noise)
        data = seen.likelihood
        problems = [eqx.tree_at(lambda p: p.likelihood, one.problem, data) for one in self.settings]
        fields, at, outcome = self._posterior(problems, weights, after, draws)
        thetas = np.array([np.nan if one.theta is None else one.theta for one in self.settings])
        drawn = self._evaluate(problems, fields, at)
        true = self._evaluate(problems, truth[None], np.array([self.settings.index(chosen)]))
        if chosen.theta is not None:
            drawn = np.column_stack([drawn, thetas[at]])
            true = np.column_stack([true, [chosen.theta]])
        return Trial(true[0], drawn, outcome)

    def _posterior(
        self, problems: list[Problem], weights: np.ndarray, key: Key, draws: int
    ) -> tuple[np.ndarray, np.ndarray, Outcome]:
        """Fields, the setting of each, and the worst outcome."""
        if len(problems) == 1:
            fields, outcome = self.method.draw(problems[0], key, draws)
            return fields, np.zeros(draws, dtype=int), outcome
        which, rest = split(key, 2)
        logs = np.log(weights) + np.array([laplace(one, solve(one)).log_evidence for one in problems])
        at = np.sort(_pick(scipy.special.softmax(logs), uniforms(which, draws)))
        parts, outcome = [], Outcome.converged
        for j, count in zip(*np.unique(at, return_counts=True), strict=True):
            fields, found = self.method.draw(problems[j], jax.random.fold_in(rest, int(j)), int(count))
            parts.append(fields)
            outcome = max(outcome, found)
        return np.concatenate(parts), at, outcome

    def _evaluate(self, problems: list[Problem], fields: np.ndarray, at: np.ndarray) -> np.ndarray:
        """The quantities of fields, each under its setting `[fields, quantities]`."""
        functions = tuple(self.functions.values())
        found = np.zeros((len(fields), len(self.places) + 4 + len(functions)))
        for j in np.unique(at):
            mine = at == j
            found[mine] = np.asarray(_quantities(problems[j], jnp.asarray(fields[mine]), self.places, functions))
        return found


@functools.partial(jax.jit, static_argnums=3, compiler_options=QUICK)
def _quantities(problem: Problem, fields: Array, places: Any, functions: tuple[Callable[..., Any], ...]) -> Array:
    """Quantities of each field."""

    def one(field: Array) -> Array:
        energy, loss = problem.energies(field)
        direct = isinstance(problem.link, Direct)
        seen = (field if direct else problem.link.log_density(problem.link.project(field))).reshape(-1)
        whole = [jnp.mean(seen), seen[-1] - seen[0], -loss, energy - loss]
        return jnp.concatenate([seen[places], jnp.stack([*whole, *(jnp.asarray(f(field), float) for f in functions)])])

    return jax.vmap(one)(fields)


def _pick(weights: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Indices drawn with these probabilities."""
    whole = np.cumsum(weights / weights.sum())
    return np.minimum(np.searchsorted(whole, u, side="right"), len(weights) - 1)


def _settings(problem: Problem) -> list[_Setting]:
    """The problem at every value of what is open in its prior, each with a Gaussian prior that is proper."""
    parts = problem.prior.parts if isinstance(problem.prior, And) else (problem.prior,)
    strange = [type(part).__name__ for part in parts if not isinstance(part, (Gaussian, Either))]
    if strange:
        raise InputError("Argument `problem` must have a prior from which fields can be drawn, of Gaussian parts and "
                         f"alternatives, but it has {strange[0]}.")  # fmt: skip
    link = problem.link
    if not (link.linear or link.exponential or getattr(link, "invariant", False)):
        raise InputError("Argument `problem` must have a link without constraints on the field, such as Logits or "
                         f"Direct, but it has {type(link).__name__}.")  # fmt: skip
    if any(isinstance(part, Hyper) for part in parts):
        found = _hyper_settings(problem)
    else:
        mixture = resolve(problem.prior)
        if mixture.beta != 1:
            raise InputError(f"Argument `problem` must have alternatives at `beta=1`, but it is {mixture.beta:g}.")
        each = zip(mixture.gaussians, mixture.weights, strict=True)
        found = [_Setting(Problem(problem.likelihood, link, one), float(w), None) for one, w in each]
    for one in found:
        _require_proper(one.problem)
    return found


def _hyper_settings(problem: Problem) -> list[_Setting]:
    """The problem at all values of one hyperparameter."""
    space = space_of(problem)
    names = [*space.choices, *space.numbers]
    if len(names) != 1 or np.size(space.start[names[0]]) != 1:
        raise InputError(f"Argument `problem` must have at most one hyperparameter here, but it has {names}: give the "
                         "others values.")  # fmt: skip
    if space.choices:
        known = space.hyperprior[names[0]]
        values, weights = list(known.values), np.asarray(known.probabilities)
    else:
        ends: Any = space.bounds()[0]
        if np.any(space.open()) or not np.all(np.isfinite(ends)):
            raise InputError("Argument `problem` must have a hyperprior that is proper, with two ends, but that of "
                             f"{names[0]} has none: give it as LogFlat(low, high).")  # fmt: skip
        values: Any = [space.unpack(np.array([u]), {})[names[0]] for u in np.linspace(ends[0], ends[1], VALUES)]
        logs = np.array([space.log_volume({names[0]: v}) - space.energy({names[0]: v}) for v in values])
        weights = scipy.special.softmax(logs)
    every: Any = values
    numbers = [float(v) if isinstance(v, (int, float)) else float(i) for i, v in enumerate(every)]
    each = zip(values, weights, numbers, strict=True)
    return [_Setting(space.hold({names[0]: v}), float(w), number) for v, w, number in each]


def _require_proper(problem: Problem) -> None:
    """Check that a Gaussian prior is a density of everything that the data see."""
    null = problem.operator.null_space().reshape(-1, problem.grid.size)
    if pulls_at_shifts(problem, null):
        raise InputError("Argument `problem` must have the link Logits if its prior decides how high a log-density "
                         "lies, as one with a Mass does, but it has " f"{type(problem.link).__name__}: log-densities "
                         "are normalised, and cannot be drawn from it.")  # fmt: skip
    if problem.link.exponential:
        gone = shifts_of(problem.grid)
    elif getattr(problem.link, "invariant", False):
        gone = np.full((1, problem.grid.size), problem.grid.size**-0.5)
    else:
        gone = np.zeros((0, problem.grid.size))
    rest = null - (null @ gone.T) @ gone
    free = int(np.sum(np.linalg.svd(rest, compute_uv=False) > np.sqrt(FLAT))) if len(null) else 0
    if free:
        raise InputError(f"Argument `problem` must have a proper prior, from which a field can be drawn, but {free} "
                         "of its directions are free: add a Mass, as in "
                         "`prior & Gaussian(0.1 * Mass(grid))`.")  # fmt: skip


def redraw(problem: Problem, field: np.ndarray, key: Key) -> Problem:
    """The problem with data drawn anew from a field: as many rows, at the same inputs, with the same noise."""
    data = problem.likelihood
    if isinstance(data, DensityData):
        new: Any = dataclasses.replace(data, counts=_counts(problem, field, key))
    elif isinstance(data, GaussianData):
        deviation = np.sqrt(np.broadcast_to(data.variance, np.shape(data.targets)))
        noise = deviation * normals(key, len(deviation))
        new = dataclasses.replace(data, targets=data.design @ field.ravel() + noise)
    elif isinstance(data, NoisyData) and isinstance(data.noise, GaussianNoise):
        values = np.asarray(data.values(field))
        noise = np.sqrt(np.asarray(data.noise.variance)) * normals(key, len(values))
        new = dataclasses.replace(data, targets=values + noise)
    elif isinstance(data, ClassData):
        P = scipy.special.softmax(np.asarray(data.values(field)), axis=1)
        edges = np.cumsum(P, axis=1)[:, :-1]
        labels = np.sum(uniforms(key, len(P))[:, None] > edges, axis=1)
        new = dataclasses.replace(data, labels=labels.astype(float))
    else:
        raise InputError("Argument `problem` must have data that can be drawn anew (DensityData, GaussianData, "
                         f"ClassData, or NoisyData with GaussianNoise), but it has {type(data).__name__}.")  # fmt: skip
    return eqx.tree_at(lambda p: p.likelihood, problem, new)  # a class may have no rows by chance


def _counts(problem: Problem, field: np.ndarray, key: Key) -> np.ndarray:
    """Rows drawn from the density of a field, as many at each x as before."""
    grid, before = problem.grid, np.asarray(problem.likelihood.counts).reshape(problem.grid.blocks)  # pyright: ignore[reportAttributeAccessIssue]
    p = (problem.density(field) * grid.weights).reshape(grid.blocks)
    rows = np.rint(before.sum(axis=1)).astype(int)
    u, first, counts = uniforms(key, int(rows.sum())), 0, np.zeros(grid.blocks)
    for x, n in enumerate(rows):
        counts[x] = np.bincount(_pick(p[x], u[first : first + n]), minlength=grid.blocks[1])
        first += n
    return counts.reshape(grid.shape)


def _check_data(problem: Problem) -> None:
    """Check that a problem has whole rows, each counted once."""
    data = problem.likelihood
    if not data.total > 0:
        raise InputError("Argument `problem` must have data, which say how many rows are drawn, but it has none.")
    weights = getattr(data, "counts", None) if isinstance(data, DensityData) else getattr(data, "weights", None)
    off = 0.0 if weights is None else np.abs(np.asarray(weights) - 1.0).max()
    if isinstance(data, DensityData):
        sums = np.asarray(weights).reshape(problem.grid.blocks).sum(axis=1)
        off = float(np.abs(sums - np.rint(sums)).max())
    if off > np.sqrt(FLAT):
        raise InputError("Argument `problem` must have data in which every row counts once, but some have weights.")


@double
def calibrate(
    subject: Any,
    *,
    key: Any,
    runs: int = 200,
    draws: int = 99,
    method: PosteriorDraws | None = None,
    quantities: Mapping[str, Callable[[Array], Array]] | None = None,
    executor: Any = None,
    folder: Any = None,
) -> xr.Dataset:
    """Check by simulation whether posteriors hold the truth as often as they say.

    In every run a field is drawn from the prior, data from the field, and fields from the posterior of the data. Of
    a right posterior the rank of the truth among its draws is uniform, for every quantity.

    Args:
        subject: a `fields.Problem`, whose data give the number of rows, the inputs and the noise, and are drawn anew;
            or a `Simulator` of your own. The prior must be proper.
        key: a JAX key; the same key gives the same ranks, whatever the executor.
        runs: truths and data sets, at least 2.
        draws: from each posterior, so that ranks go from 0 to `draws`.
        method: of a problem, how its posterior is drawn from: `fields.LaplaceDraws()`, the default, or
            an object of your own.
        quantities: of a problem, functions of the field in JAX that are ranked besides, by name.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished runs are kept, so that an interrupted calibration goes on where it stopped.

    Returns:
        `rank` over `run` and `quantity`; `p_value` of one joint test that they are uniform, which keeps the
        correlations of quantities, and `p_value_alone` of each; `outcome` of each run (those that did not converge are
        not in the test, and counted in `failed`); `difference`, the distribution of ranks less the uniform one, with
        its simultaneous band between `low` and `high`, which `quenched.plot` draws. The attribute `verdict` is the
        answer as a sentence.

    Raises:
        InputError: for a prior that is improper or cannot be drawn from, and for other bad input.

    Examples:
        >>> import jax
        >>> import quenched
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(0, 1, points=8)])
        >>> prior = fields.Gaussian(fields.Laplacian(grid) + fields.Mass(grid))
        >>> problem = fields.Problem(fields.GaussianData([0.1, 0.5, 0.9], [0.0, 0.0, 0.0]), fields.Direct(grid), prior)
        >>> result = quenched.calibrate(problem, key=jax.random.key(0), runs=50)
        >>> bool(result.p_value > 1e-3)
        True
    """
    if isinstance(subject, Problem):
        simulator: Simulator = _of_problem(subject, method, quantities)
    elif isinstance(subject, Simulator):
        simulator = subject
    else:
        raise InputError("Argument `subject` must be a fields.Problem or a Simulator, but "
                         f"{subject!r} was given.")  # fmt: skip
    return calibration.simulate(simulator, key=key, runs=runs, draws=draws, executor=executor, folder=folder)


def _of_problem(problem: Problem, method: Any, quantities: Any) -> ProblemSimulator:
    """The simulator of a problem, checked."""
    method = LaplaceDraws() if method is None else method
    checks.kind("method", method, PosteriorDraws, "how to draw, such as LaplaceDraws()")
    functions = {} if quantities is None else quantities
    if not isinstance(functions, Mapping) or not all(callable(one) for one in functions.values()):
        raise InputError(f"Argument `quantities` must map names to functions of the field, but {quantities!r} was "
                         "given.")  # fmt: skip
    _check_data(problem)
    simulator = ProblemSimulator(problem, method, functions)
    settings = simulator.settings
    redraw(settings[0].problem, np.zeros(problem.grid.shape), jax.random.key(0))
    return simulator
