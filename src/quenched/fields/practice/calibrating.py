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
from quenched.core.types import QUICK, Array, InputError, Key, double
from quenched.fields.model.components import ClassData
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Direct
from quenched.fields.model.noise import GaussianNoise, NoisyData
from quenched.fields.model.observables import Positions
from quenched.fields.model.outcomes import Outcomes
from quenched.fields.model.problem import Problem
from quenched.fields.practice.posteriors import LaplaceDraws, PosteriorDraws
from quenched.fields.practice.settings import Setting, pick, settings_of
from quenched.fields.theory.laplace import FLAT

PLACES = 4
"""Places at which the field is ranked, evenly over the grid."""


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
    def settings(self) -> list[Setting]:
        """All values of what is open."""
        return settings_of(self.problem)

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
        chosen = self.settings[pick(weights, uniforms(which, 1))[0]]
        truth = chosen.field(before)
        seen = redraw(chosen.problem, truth, noise)
        data = seen.likelihood
        problems = [eqx.tree_at(lambda p: p.likelihood, one.problem, data) for one in self.settings]
        settings = [dataclasses.replace(one, problem=p) for one, p in zip(self.settings, problems, strict=True)]
        fields, at, outcome = self.method.draw_among(settings, after, draws)
        thetas = np.array([np.nan if one.theta is None else one.theta for one in self.settings])
        drawn = self._evaluate(problems, fields, at)
        true = self._evaluate(problems, truth[None], np.array([self.settings.index(chosen)]))
        if chosen.theta is not None:
            drawn = np.column_stack([drawn, thetas[at]])
            true = np.column_stack([true, [chosen.theta]])
        return Trial(true[0], drawn, outcome)

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
    elif isinstance(data, Outcomes) and isinstance(data.observable, Positions):
        new = dataclasses.replace(data, counts=_measured(data, field, key))
    else:
        raise InputError("Argument `problem` must have data that can be drawn anew (DensityData, GaussianData, "
                         "ClassData, PositionData, or NoisyData with GaussianNoise), but it has "
                         f"{type(data).__name__}.")  # fmt: skip
    return eqx.tree_at(lambda p: p.likelihood, problem, new)  # a class may have no rows by chance


def _counts(problem: Problem, field: np.ndarray, key: Key) -> np.ndarray:
    """Rows drawn from the density of a field, as many at each x as before."""
    grid, before = problem.grid, np.asarray(problem.likelihood.counts).reshape(problem.grid.blocks)  # pyright: ignore[reportAttributeAccessIssue]
    p = (problem.density(field) * grid.weights).reshape(grid.blocks)
    rows = np.rint(before.sum(axis=1)).astype(int)
    u, first, counts = uniforms(key, int(rows.sum())), 0, np.zeros(grid.blocks)
    for x, n in enumerate(rows):
        counts[x] = np.bincount(pick(p[x], u[first : first + n]), minlength=grid.blocks[1])
        first += n
    return counts.reshape(grid.shape)


def _measured(data: Outcomes, field: np.ndarray, key: Key) -> np.ndarray:
    """Positions measured in the state of a potential, as many at each time as before."""
    p = np.reshape(data.density(field), (len(data.counts), -1))
    counts = np.zeros(p.shape)
    for i, n in enumerate(np.rint(np.sum(data.counts, axis=1)).astype(int)):
        at = pick(p[i], uniforms(jax.random.fold_in(key, i), int(n)))
        counts[i] = np.bincount(at, minlength=counts.shape[1])
    return counts


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
    rows: int = 100,
    executor: Any = None,
    folder: Any = None,
) -> xr.Dataset:
    """Check by simulation whether posteriors hold the truth as often as they say.

    In every run a field is drawn from the prior, data from the field, and fields from the posterior of the data. Of
    a right posterior the rank of the truth among its draws is uniform, for every quantity.

    Args:
        subject: a `fields.Problem`, whose data give the number of rows, the inputs and the noise, and are drawn anew;
            the posterior behind the band of an estimator of fields, such as `FieldDensity()`; or a `Simulator` of
            your own. The prior of a problem must be proper; that of an estimator is made so, and drawn from with what
            is given of order, strength and noise (see `quenched.estimators.worlds`).
        key: a JAX key; the same key gives the same ranks, whatever the executor.
        runs: truths and data sets, at least 2.
        draws: from each posterior, so that ranks go from 0 to `draws`.
        method: of a problem, how its posterior is drawn from: `fields.LaplaceDraws()`, the default, `fields.NUTS()`,
            `fields.Tempered()`, or an object of your own. (Of an estimator, its option `band` says it.)
        quantities: of a problem, functions of the field in JAX that are ranked besides, by name.
        rows: of the tables from which an estimator learns, at least 8.
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
    elif hasattr(subject, "_world") and not isinstance(subject, type):
        for name, given in (("method", method), ("quantities", quantities)):
            if given is not None:
                raise InputError(f"Argument `{name}` must be None for an estimator, but {given!r} was given.")
        simulator = subject._world(rows)
    else:
        raise InputError("Argument `subject` must be a fields.Problem, an estimator of fields or a Simulator, but "
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
