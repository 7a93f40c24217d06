"""Strategies for arguments, by their names: what a verb or a class takes is read from its signature.

An argument is looked up as "verb or class.argument", then as "science.argument", then by its name alone. Where a verb
takes long to compile, `FEW` limits the calls and the strategies keep to one shape, so that all calls share a program.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from tinygp import kernels

import quenched
from quenched import fields, mixtures, outliers, processes, prototypes, replica
from tests.properties.common import KEY, hopeless

# Numbers and tables ---------------------------------------------------------------------------------------------------

usual = st.floats(0.1, 4.0)
positive = st.one_of(usual, usual, st.sampled_from([1e-12, 1e-3, 50.0, 1e4]))
"""Numbers that a user may give, with some far away."""
shares = st.one_of(st.floats(0.05, 0.95), st.sampled_from([1e-12, 1 - 1e-12]))
seeds = st.integers(0, 2**31)
scales = st.sampled_from([1.0, 1.0, 1e-100, 1e-8, 1e8, 1e100])


def increasing(values: st.SearchStrategy[float], length: int) -> st.SearchStrategy[list[float]]:
    """Lists of one length, so that there is one program."""
    return st.lists(values, min_size=length, max_size=length, unique=True).map(sorted)


def table(rows: int, columns: int, seed: int, scale: float = 1.0) -> np.ndarray:
    """Random numbers in three lumps."""
    rng = np.random.default_rng(seed)
    return scale * (rng.normal(size=(rows, columns)) + 3 * rng.integers(0, 3, (rows, 1)))


tables = st.builds(table, st.just(24), st.just(2), seeds, scales)
targets = st.builds(lambda seed, scale: table(24, 1, seed, scale)[:, 0], seeds, scales)
plain_tables = st.builds(table, st.just(24), st.just(2), seeds)
pairs = tables.map(lambda X: (X, np.arange(len(X)) % 2))
kernel = st.builds(lambda amplitude, length: amplitude * kernels.ExpSquared(length), positive, positive)

LINE = fields.Grid(over=[fields.Axis(0, 1, points=8, ends=fields.Periodic())])
INPUTS = fields.Grid(given=[fields.Axis(0, 1, points=8)])
places = st.lists(st.floats(0, 1), min_size=3, max_size=3)
PLANE = fields.Grid(given=[fields.Axis(-1, 1, points=4), fields.Axis(-1, 1, points=4)])
square, smooth = st.just(np.eye(8)), st.just(fields.Laplacian(LINE))
flat = np.full(8, 1 / 8 / LINE.spacing)


def prior_on(grid: fields.Grid, smoothness: float = 1.0, mass: float = 1.0) -> fields.Prior:
    """A smooth field of finite size."""
    return fields.Gaussian(smoothness * fields.Laplacian(grid) + fields.Mass(grid, mass))


def rules_on(link: Any) -> st.SearchStrategy[Any]:
    """Students with a link, of any smoothness."""
    priors = st.builds(prior_on, st.just(link.grid), positive, positive)
    return st.builds(fields.MaximumPosterior, st.just(link), priors, positive)


def problem_on(link: Any, likelihood: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Problems with a link, of any smoothness."""
    return st.builds(
        fields.Problem, likelihood, st.just(link), st.builds(prior_on, st.just(link.grid), positive, positive)
    )


def either_problem(first: float, second: float, value: float) -> fields.Problem:
    """A regression under two alternatives."""
    priors = (fields.Gaussian(fields.Mass(INPUTS), mean) for mean in (first, second))
    return fields.Problem(fields.GaussianData([0.2], [value]), fields.Direct(INPUTS), fields.either(*priors))


pair_of_priors = st.tuples(usual, usual).map(lambda means: [fields.Gaussian(fields.Mass(LINE), t) for t in means])
either_problems = st.builds(either_problem, usual, usual, usual)


# Results that were computed once --------------------------------------------------------------------------------------


@functools.cache
def _curve() -> Any:
    return prototypes.curve(prototypes.TwoClusters(0.8), prototypes.LVQ1(0.2), alpha=[0.5, 1.0, 2.0])


@functools.cache
def _points() -> Any:
    law, rule = prototypes.TwoClusters(0.8), prototypes.LVQ1(0.2)
    return prototypes.measure(law, rule, alpha=[0.5, 1.0, 2.0], size=20, runs=12, key=KEY, tests=20)


@functools.cache
def _learning_curve() -> Any:
    law = processes.Empirical(table(24, 2, 0), table(24, 1, 1)[:, 0])
    return processes.curve(law, processes.GaussianProcess(kernels.ExpSquared(2.0), 0.1), examples=[6.0, 12.0, 24.0])


def _made_fit(modes: bool | None) -> Any:
    problem = fields.Problem(fields.DensityData([0.1, 0.2, 0.7]), fields.LogDensity(LINE), prior_on(LINE))
    return fields.solve(problem, modes=modes)


@functools.cache
def _fit() -> Any:
    return _made_fit(None)


@functools.cache
def _fit_in_modes() -> Any:
    return _made_fit(True)


RESULTS = (_curve, _points, _learning_curve)
MADE = (*RESULTS, _fit, _fit_in_modes)


def called(verb: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Call a verb; results are computed only here, because no strategy may draw random numbers of its own."""
    made = {name: value() if any(value is one for one in MADE) else value for name, value in given.items()}
    return verb(*[made.pop("results")], **made) if "results" in made else verb(**made)


# By name --------------------------------------------------------------------------------------------------------------

contaminated = st.builds(outliers.Contaminated, gamma=usual, eta=st.floats(-2, 6))
two_clusters = st.builds(
    prototypes.TwoClusters, prior=shares, separation=positive | st.just(0.0), variances=st.tuples(usual, usual)
)
winners = st.one_of(*(st.builds(rule, rate=positive) for rule in (prototypes.LVQ1, prototypes.LVQPlus, prototypes.VQ)))
selections = st.sampled_from([outliers.SoftSelection(), outliers.HardSelection()])

STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    # experiments
    "alpha": st.floats(2.0, 20.0),
    "size": st.just(8),
    "runs": st.just(4),
    "key": st.just(KEY),
    "tests": st.just(20),
    "batch": st.sampled_from([None, 2]),
    "executor": st.none(),
    "folder": st.none(),
    "start": st.none(),
    "measure.alpha": st.just(1.0),
    # learners
    "sample_weight": st.lists(st.floats(0.0, 5.0), min_size=24, max_size=24).filter(any),
    "passes": st.integers(1, 50),
    "accuracy": positive,
    "data": pairs,
    "shuffle": st.booleans(),
    "equal_weights": st.booleans(),
    "common": st.booleans(),
    # fields of laws, rules and starts
    "gamma": st.none() | positive,
    "rate": positive,
    "scale": positive,
    "labels": st.none() | st.just((1, 2)),
    "width": positive,
    "separation": usual,
    "variances": st.tuples(usual, usual),
    "prior": shares,
    "noise": positive,
    "step": shares,
    "least": shares,
    "strength": positive,
    "variance": positive,
    # prototypes
    "prototypes.size": st.just(20),
    "prototypes.law": two_clusters,
    "prototypes.rule": winners,
    "prototypes.passes": st.integers(1, 3),
    "prototypes.curve.alpha": increasing(st.floats(0, 50), 3),
    "prototypes.escape_rate.rule": st.builds(prototypes.VQ, rate=positive),
    "prototypes.simulator": st.sampled_from([prototypes.Direct(), prototypes.Chain()]),
    "prototypes.prototypes_per_class": st.integers(1, 3),
    "prototypes.window": st.none() | st.floats(0.01, 1.0),
    "prototypes.small_rate": st.booleans(),
    "Clusters.priors": st.just([0.5, 0.5]),
    "Clusters.labels": st.just([1, 2]),
    "Clusters.separations": st.tuples(usual, usual),
    "Clusters.gram": st.floats(-0.9, 0.9).map(lambda c: [[1.0, c], [c, 1.0]]),
    "Decay.initial": positive,
    "Decay.time": positive,
    "Interpolated.rates": st.tuples(positive, positive),
    "Interpolated.until": positive,
    "NearOrigin.norm": positive,
    "Overlaps.R": st.just(np.zeros((2, 2))),
    "Overlaps.Q": st.just(np.eye(2)),
    # mixtures
    "mixtures.law": st.builds(mixtures.TwoGaussians, separation=usual),
    "mixtures.rule": st.builds(mixtures.MaximumLikelihood, width=positive),
    "mixtures.fit.rule": st.sampled_from([mixtures.Spherical(), mixtures.Full(), mixtures.MaximumLikelihood(0.5)]),
    "mixtures.rivals": st.integers(0, 3),
    "mixtures.rows_needed.separation": st.floats(3.0, 20.0),
    "mixtures.rows_needed.columns": st.integers(1, 30),
    "mixtures.rows_needed.shares": st.sampled_from([(0.5, 0.5), (0.2, 0.3)]),
    "mixtures.rows_needed.power": st.floats(0.05, 0.9),
    "mixtures.level": st.floats(0.01, 0.2),
    "mixtures.data": tables,
    "mixtures.components": st.integers(1, 4),
    "mixtures.n_init": st.integers(1, 2),
    "Annealed.from_width": st.none() | positive,
    # outliers
    "outliers.law": contaminated,
    "outliers.rule": selections,
    "outliers.curve.rule": st.just(outliers.HardSelection()),
    "outliers.transitions.rule": st.just(outliers.HardSelection()),
    "outliers.measure.rule": st.just(outliers.SoftSelection()),
    "outliers.branch": st.sampled_from([None, *outliers.Branch]),
    "outliers.eta": st.floats(-2, 6),
    "outliers.prior": st.none() | positive,
    "outliers.spread": st.none() | st.floats(1, 100),
    "outliers.midpoint": st.none() | usual,
    "outliers.temperature": positive,
    "outliers.search": st.sampled_from([outliers.Flips(), outliers.Iteration()]),
    "Contaminated.gamma": positive,
    "CarriedStart.first": st.builds(outliers.RandomStart, scale=positive),
    # processes
    "processes.law": st.builds(processes.Empirical, plain_tables, targets),
    "processes.rule": st.builds(processes.GaussianProcess, kernel, positive),
    "processes.data": st.tuples(plain_tables, targets),
    "processes.accuracy": st.floats(0.3, 1.0),
    "processes.examples": st.floats(1, 100),
    "processes.measure.examples": st.just(10.0),
    "processes.steps": st.just(1),
    "processes.tolerance": positive,
    "processes.weights": st.lists(st.sampled_from([0.0, 1.0]), min_size=24, max_size=24),
    "processes.variance": st.booleans(),
    "processes.cheapest": st.booleans(),
    "processes.rank": st.none() | st.just(8),
    "processes.closure": st.sampled_from([None, processes.Cavity(), processes.Variational()]),
    "processes.total": st.sampled_from([processes.PoissonTotal(), processes.FixedTotal()]),
    "processes.simulator": st.sampled_from([processes.Plain(), processes.LatinHypercube(4)]),
    "processes.aim": st.sampled_from([processes.Evidence(), processes.PredictedError(0.5)]),
    "processes.X": tables,
    "processes.y": targets,
    "processes.tune": st.just(False),
    "processes.check": st.just(0),
    "processes.names": st.sampled_from([None, ["a", "b"]]),
    "processes.forecast.X": tables,
    "processes.forecast.y": targets,
    "processes.forecast.examples": st.sampled_from([None, [12.0, 24.0, 100.0]]),
    "processes.error": positive,
    "processes.gain": st.floats(0.1, 0.9),
    "Empirical.inputs": st.just(np.eye(6)),
    "Empirical.targets": st.just(np.arange(6.0)),
    "Empirical.centre": usual,
    "GaussianProcess.kernel": st.sampled_from([kernels.ExpSquared(1.0), np.eye(6)]),
    "LatinHypercube.draws": st.integers(1, 32),
    "PredictedError.ratio": positive,
    # fields
    "fields.law": st.lists(st.floats(-5, 5), min_size=8, max_size=8).map(
        lambda logs: fields.TrueDensity(LINE, np.exp(logs) / np.exp(logs).sum() / LINE.spacing)
    ),
    "fields.rule": rules_on(fields.LogDensity(LINE)),
    "fields.curve.law": st.builds(
        fields.TrueFunction, st.just(INPUTS), st.lists(st.floats(-1e3, 1e3), min_size=8, max_size=8), positive
    ),
    "fields.curve.rule": rules_on(fields.Direct(INPUTS)),
    "fields.examples": st.just(5),
    "fields.curve.examples": st.integers(8, 1000) | st.just([8, 20, 1000]),
    "fields.data": places,
    "fields.problem": problem_on(fields.LogDensity(LINE), st.builds(fields.DensityData, places)),
    "fields.regress.problem": problem_on(
        fields.Direct(INPUTS), st.builds(fields.GaussianData, places, places, positive)
    ),
    "fields.data_space": st.none() | st.booleans(),
    "fields.method": st.builds(fields.Newton, mass=positive) | st.just(fields.NewtonCG()) | st.just(fields.LBFGS()),
    "fields.coarsest": st.none() | st.integers(4, 64),
    "fields.history": st.integers(1, 20),
    "fields.tolerance": st.floats(1e-12, 1e-3),
    "fields.max_steps": st.integers(1, 20),
    "fields.solve.start": st.sampled_from([fields.Uniform(), fields.Empirical(), fields.Kernel(0.1)]),
    "fields.field": st.lists(st.floats(-3, 3), min_size=8, max_size=8),
    "fields.grid": st.just(LINE),
    "TrueFunction.grid": st.just(INPUTS),
    "TrueFunction.values": st.just(np.zeros(8)),
    "TrueDensity.density": st.just(flat),
    "fields.axis": st.just(LINE.axes[0]),
    "fields.order": st.integers(1, 3),
    "fields.value": positive,
    "fields.upper": st.none() | usual,
    "fields.link": st.just(fields.LogDensity(LINE)),
    "fields.prior": st.just(prior_on(LINE)),
    "fields.likelihood": st.just(fields.DensityData([0.1, 0.2])),
    "fields.points": st.just([0.1, 0.2]),
    "fields.targets": st.just([1.0, 2.0]),
    "DensityData.weights": st.none() | st.just([1.0, 2.0]),
    "fields.operator": smooth,
    "fields.mean": st.none() | usual,
    "fields.given": st.just(np.zeros(8)),
    "Dense.given": square,
    "Filter.W": square,
    "Grid.given": st.just([LINE.axes[0]]),
    "Grid.over": st.just(LINE.axes[0]),
    "Axis.low": st.floats(-1, 0),
    "Axis.high": usual,
    "Axis.points": st.integers(2, 9),
    "Axis.ends": st.sampled_from([fields.Free(), fields.Periodic()]),
    "Components.count": st.integers(2, 4),
    "Components.name": st.sampled_from(["component", "class"]),
    "BinnedData.low": st.sampled_from([[0.0, 0.5], [-np.inf, 0.5]]),
    "BinnedData.high": st.sampled_from([[0.5, 0.5], [0.5, np.inf]]),
    "KernelData.kernel": st.just(np.eye(8)[:2]),
    "MixtureNoise.means": st.tuples(usual, usual),
    "MixtureNoise.shares": st.none() | st.floats(0, 1).map(lambda p: (p, 1 - p)),
    "RiskData.loss": st.just(lambda target, value: (target - value) ** 2),
    "VectorData.targets": st.just([[1.0, 2.0], [3.0, 4.0]]),
    "VectorData.precision": st.floats(-0.9, 0.9).map(lambda c: [[1.0, c], [c, 1.0]]),
    "ClusterData.portions": st.none() | st.floats(0.1, 0.9).map(lambda p: (p, 1 - p)),
    "fields.epsilon": positive,
    "Either.priors": pair_of_priors,
    "LocalEither.priors": pair_of_priors,
    "fields.weights": st.none() | st.just([0.3, 0.7]),
    "fields.beta": positive | st.sampled_from([0.0, np.inf]),
    "fields.regions": st.none() | st.lists(st.integers(0, 3), min_size=8, max_size=8),
    "fields.which": st.none() | st.integers(0, 3),
    "fields.first": positive,
    "fields.mean_field.problem": either_problems,
    "fields.find_bifurcations.problem": either_problems,
    "fields.mass": positive,
    "fields.conditional": st.booleans(),
    "fields.modes": st.none() | st.just(True) | st.integers(1, 9),
    "fields.unit_information": st.booleans(),
    "fields.probes": st.none() | st.integers(2, 4),
    "laplace.fit": st.sampled_from([_fit, _fit_in_modes]) | st.lists(st.floats(-3, 3), min_size=8, max_size=8),
    "Axis.name": st.text(max_size=3),
    "Axis.tails": st.none() | st.tuples(positive, st.just(0.0)),
    "Axis.bend": st.none() | st.tuples(usual, positive),
    # calibration: short, since each run is a fit
    "calibrate.subject": problem_on(
        fields.Direct(INPUTS), st.builds(fields.GaussianData, places, places, positive)
    ),
    "calibrate.runs": st.integers(2, 4),
    "calibrate.draws": st.integers(2, 9),
    "fields.sample.problem": problem_on(
        fields.Direct(INPUTS), st.builds(fields.GaussianData, places, places, positive)
    ),
    "fields.sample.draws": st.integers(4, 60),
    "fields.sample.chains": st.just(2),
    "fields.sample.method": st.sampled_from([None, fields.NUTS(warmup=50)]),
    "NUTS.warmup": st.integers(1, 90),
    "NUTS.acceptance": st.floats(0.1, 0.99),
    "NUTS.doublings": st.integers(1, 9),
    "Tempered.moves": st.integers(1, 4),
    "Tempered.from_prior": st.none() | st.booleans(),
    # forecasts
    "extrapolate.examples": st.just([20.0, 40.0, 80.0, 160.0, 320.0]),
    "extrapolate.errors": st.lists(st.floats(0, 1e3), min_size=5, max_size=5),
    "extrapolate.at": st.sampled_from([[640.0], [100.0, 320.0, 900.0, 1e4]]),
    "extrapolate.stderr": st.none() | st.lists(st.floats(0, 10), min_size=5, max_size=5),
    "extrapolate.training_errors": st.none() | st.lists(st.floats(0, 10), min_size=5, max_size=5),
    "extrapolate.level": st.floats(0.5, 0.95),
    "forecast.estimator": st.sampled_from([Ridge(), DummyRegressor()]),
    "forecast.X": st.builds(table, st.just(60), st.just(2), seeds, scales),
    "forecast.y": st.builds(lambda seed, scale: table(60, 1, seed, scale)[:, 0], seeds, scales),
    "forecast.examples": st.sampled_from([None, [30.0, 60.0, 700.0]]),
    "forecast.scoring": st.sampled_from([None, "r2", "neg_mean_absolute_error"]),
    "forecast.groups": st.none() | st.just(np.arange(60) // 2),
    "forecast.budget": st.none() | st.just(1e-3),
    "forecast.executor": st.none() | st.just(quenched.Local()),
    "forecast.random_state": st.integers(0, 9),
    # potentials and parameterised fields
    "FilterBank.matrices": square,
    "Convolution.kernel": st.just([1.0, -2.0, 1.0]),
    "Cup.height": positive | positive.map(lambda a: -a),
    "Cup.power": positive,
    "Cup.centre": usual,
    "fields.psi": st.sampled_from([fields.Quadratic(2.0), fields.Huber(), fields.AbsoluteValue(), fields.Cup()]),
    "fields.filter": st.just(fields.Gradient(LINE)),
    "fields.together": st.booleans(),
    "fields.potential": st.sampled_from([fields.AbsoluteValue(), fields.Cup(power=0.7)]),
    "fields.smoothing": st.floats(1e-5, 0.1),
    "fields.accuracy": st.floats(1e-6, 0.1),
    "Parametrised.function": st.just(lambda xi: xi[0] * np.arange(8.0)),
    "Parametrised.parameters": st.just([1.0]),
    "Parametrised.prior": st.none() | st.just(lambda xi: xi[0] ** 2),
    # hyperparameters
    "Hyper.make": st.just(lambda theta: fields.Gaussian(fields.Mass(LINE))),
    "Hyper.start": st.just({"a": 1.0}) | st.builds(lambda a: {"a": a}, positive),
    "Hyper.hyperprior": st.none() | st.just({"a": fields.LogFlat()}),
    "fields.hyperprior": st.none() | st.just(fields.LogFlat(0.1, 10.0)),
    "Smoothness.hyperprior": st.none() | st.just(prior_on(LINE)),
    "MassField.hyperprior": st.none() | st.just(prior_on(LINE)),
    "LengthScale.hyperprior": st.none() | st.just({"variance": fields.Gamma()}),
    "Flat.low": st.none() | st.floats(-5, 0),
    "Flat.high": st.none() | st.floats(1, 5),
    "LogFlat.low": st.floats(0.1, 1.0),
    "LogFlat.high": st.floats(2.0, 1e6),
    "fields.deviation": positive,
    "fields.median": positive,
    "Normal.mean": usual,
    "Gamma.shape": positive,
    "fields.rate": positive,
    "fields.exponent": st.floats(-5, 5),
    "Choice.values": st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True) | st.just(["a", "b"]),
    "Choice.weights": st.just(()) | st.just([1.0, 2.0]),
    "Integral.points": st.integers(3, 6),
    "Spectrum.count": st.integers(1, 3),
    "LengthScale.power": st.integers(1, 3),
    "Period.periods": st.lists(st.sampled_from([2 / 7, 3 / 7, 4 / 7]), min_size=1, max_size=2, unique=True),
    "Order.orders": st.just((1, 2)),
    "Order.grid": st.just(INPUTS),
    "Order.axis": st.none() | st.just(INPUTS.axes[0]),
    "adapt.problem": st.builds(
        lambda x, y, v: fields.Problem(
            fields.GaussianData(x, y, v), fields.Direct(INPUTS),
            fields.Strength(fields.Laplacian(INPUTS) + fields.Mass(INPUTS), hyperprior=fields.LogFlat(0.1, 10.0)),
        ), places, places, usual),
    "adapt.method": st.sampled_from([fields.Marginal(), fields.Integral(3)]),
    "adapt.noise": st.none() | st.just(fields.LogFlat(0.1, 10.0)),
    "Switches.common": st.just(prior_on(LINE)),
    "Switches.first": square,
    "Switches.second": square,
    "Switches.first_target": st.none() | st.just(np.ones(8)),
    "Switches.second_target": st.none() | st.just(np.ones(8)),
    "fields.price": usual,
    "fields.coupling": usual,
    "Switches.pairs": st.none() | st.just([(0, 1), (1, 2)]),
    "Switches.chain": st.booleans(),
    "Jumps.grid": st.just(INPUTS),
    "Jumps.strength": positive | st.just(fields.LogFlat(0.1, 10.0)),
    "Jumps.mass": positive | st.just(fields.LogFlat(0.1, 10.0)),
    "fields.expected": st.floats(0.1, 3.0),
    "Jumps.axes": st.none() | st.just(INPUTS.axes[0]),
    "Patches.first": usual,
    "Patches.second": usual,
    "fields.sweeps": st.integers(1, 3),
    "fields.samples": st.integers(1, 3),
    "fields.hot": usual,
    "fields.cold": usual,
    "fields.seed": st.integers(0, 9),
    "fields.temperatures": st.integers(1, 2),
    "locate.problem": st.builds(
        lambda x, y, v, prior: fields.Problem(fields.GaussianData(x, y, v), fields.Direct(INPUTS), prior),
        places, places, usual, st.sampled_from([fields.Jumps(INPUTS), fields.Jumps(INPUTS, fields.LogFlat(0.1, 10.0))])
    ),
    "locate.method": st.sampled_from([None, fields.Exact(), fields.Annealing(2, 2), fields.Alternation(2)]),
    "screen.X": plain_tables,
    "screen.y": targets,
    "screen.lengths": st.just([0.3]),
    "screen.ratios": st.just([1.0, 10.0]),
    "locate.noise": st.none() | st.just(fields.LogFlat(0.1, 10.0)),
    # quantum systems
    "fields.state": st.sampled_from([fields.Ground(), fields.Canonical(0.5)]),
    "fields.states": st.just((fields.Ground(), fields.Canonical(0.5))),
    "Mixed.weights": st.just([0.4, 0.6]),
    "Weighted.weights": st.just([0.4, 0.6]),
    "fields.level": st.integers(0, 4),
    "fields.levels": st.none() | st.just((0, 2)),
    "fields.temperature": positive,
    "fields.positions": st.just([0.1, 0.2]),
    "Hartree.interaction": square | st.just(lambda distance: np.exp(-distance)),
    "Hartree.particles": st.integers(1, 3),
    "Evolving.initial": st.just(fields.Packet(0.5, 0.1)) | st.just(np.ones(8)),
    "fields.times": st.just([0.1, 0.2]),
    "fields.momentum": usual,
    "Packet.centre": usual,
    "TruePotential.grid": st.just(INPUTS),
    "TruePotential.potential": st.just(np.zeros(8)) | st.just(fields.Harmonic(9.0, 0.5)),
    "TruePotential.hamiltonian": st.just(fields.Hamiltonian(ends=fields.Dirichlet())),
    "fields.frequency": positive,
    "fields.centre": usual,
    "fields.height": positive,
    "fields.distance": positive,
    "fields.depth": positive,
    "fields.period": positive,
    "fields.momenta": st.just([0.1, -0.2]),
    "PositionData.weights": st.none() | st.just([1.0, 2.0]),
    "CombinedData.parts": st.just([fields.PositionData([0.1]), fields.LevelData([0.5])]),
    "fields.hamiltonian": st.just(fields.Hamiltonian()),
    "Hamiltonian.ends": st.sampled_from([None, fields.Periodic(), fields.Free(), fields.Dirichlet()]),
    "fields.hbar": positive,
    "LevelData.energies": st.just([0.5, 1.5]),
    "LevelData.errors": positive,
    # symmetries
    "fields.within": st.none() | smooth,
    "fields.map": st.builds(fields.Translation, st.just(LINE), st.just(LINE.axes[0]), st.floats(0.2, 0.8))
    | st.permutations(range(8)).map(lambda order: fields.Permutation(LINE, order)),
    "Coordinates.function": st.sampled_from([lambda x: 1 - x, lambda x: (x**2,), lambda x: [x + 1e9], lambda x: x + 5]),
    "Coordinates.name": st.text(max_size=3),
    "Infinitesimal.velocity": st.sampled_from([lambda x: x, lambda x: (1.0,), lambda x: [np.sin(x)], lambda x: 0 * x]),
    "Permutation.places": st.permutations(range(8)) | st.just([0] * 8),
    "Rotation.grid": st.just(PLANE),
    "Rotation.angle": st.floats(-720, 720) | st.sampled_from([90.0, 1e100]),
    "Rotation.axes": st.sampled_from([None, PLANE.axes, PLANE.axes[::-1]]),
    "Rotation.about": st.none() | st.tuples(usual, usual),
    "Mirror.about": st.none() | positive,
    "Translation.by": st.floats(-2, 2) | st.sampled_from([1e-12, 8 / 7, 1e9, 1e100]),
    "LinearMap.matrix": square,
    "Map.places": st.permutations(range(8)).map(lambda order: np.array(order)[:, None]),
    "Map.shares": st.just(np.ones((8, 1))),
    "Map.inside": st.lists(st.booleans(), min_size=8, max_size=8),
    "Map.name": st.text(max_size=3),
    "Map.interpolated": st.booleans(),
    # users' own energies, and what is done with results
    "replica.limits": st.just((1.0, 2.0)),
    "replica.problem": st.just(
        replica.Problem(energy=lambda u, Q: 0.5 * (1 - u) ** 2, norm=lambda R, Q: 0.5 * Q)
    ),
    "result": st.sampled_from(RESULTS),
    "results": st.sampled_from(RESULTS),
    "curve": st.sampled_from(RESULTS),
    "points": st.sampled_from(RESULTS),
    "variables": st.sampled_from([None, "error", ["error"], ["R", "Q"]]),
    "allowance": st.floats(0, 1),
    "relative_allowance": st.floats(0, 1),
    "x": st.sampled_from([None, "alpha", "examples"]),
    "ax": st.none(),
    "path": st.just("result.nc"),
}  # fmt: skip

SWEPT = {"prototypes": "rate", "mixtures": "width", "outliers": "eta", "processes": "noise", "fields": "strength"}
"""A field that each science sweeps."""
ALWAYS = {
    "processes.forecast": ("rule", "tune"),
    "processes.tune": ("rule", "steps"),
    "processes.most_likely": ("steps",),
    "calibrate": ("runs", "draws"),
    "fields.sample": ("draws", "chains"),
    "forecast": ("groups", "budget"),
}
"""Optional arguments that keep a verb short."""
FEW = {
    "prototypes.curve": 4, "prototypes.measure": 3, "prototypes.asymptote": 2, "mixtures.curve": 1,
    "mixtures.find_clusters": 2,
    "mixtures.phase_lines": 1, "mixtures.transitions": 1, "mixtures.measure": 2,
    "outliers.curve": 1, "outliers.transitions": 1, "outliers.measure": 2,
    "outliers.asymptote": 3, "processes.curve": 2, "processes.measure": 2, "processes.most_likely": 2,
    "processes.tune": 2, "processes.forecast": 2, "fields.measure": 2, "fields.sample": 2,
    "replica.curve": 2, "replica.transitions": 1,
    "calibrate": 3, "forecast": 3,
}  # fmt: skip
"""Calls with good arguments of verbs that take long to compile; they get no options and share a program."""


def verbs() -> dict[str, Callable[..., Any]]:
    """Every public function of the package, found where it is exported."""
    homes = {science: importlib.import_module(f"quenched.{science}") for science in quenched.SCIENCES}
    found = {f"{science}.{name}": getattr(home, name) for science, home in homes.items() for name in home.__all__}
    found |= {name: getattr(quenched, name) for name in quenched.__all__}
    found |= {f"replica.{name}": getattr(replica, name) for name in ("curve", "transitions") if hasattr(replica, name)}
    return {name: thing for name, thing in found.items() if inspect.isroutine(thing)}


def declarations() -> dict[str, type]:
    """Every public class that a user makes something with, where it is exported; no bases, nor what verbs return."""
    found, bases = {}, ("Law", "Rule", "Start", "Total", "LearningMatrix", "Laplace", "ProbedLaplace", "Alternatives")
    for science in quenched.SCIENCES:
        home = importlib.import_module(f"quenched.{science}")
        for name in home.__all__:
            thing = getattr(home, name)
            if isinstance(thing, type) and not inspect.isabstract(thing) and not issubclass(thing, enum.Enum):
                found[f"{science}.{name}"] = thing
    return {name: cls for name, cls in found.items() if cls.__name__ not in bases and "Fitted" not in name}


def strategy(name: str, argument: str) -> st.SearchStrategy[Any] | None:
    """The strategy of an argument of a verb or class, by the longest name that is known."""
    science, _, own = name.rpartition(".")
    for key in (f"{name}.{argument}", f"{own}.{argument}", f"{science}.{argument}", argument):
        if key in STRATEGIES:
            return STRATEGIES[key]
    return None


def good(name: str, thing: Callable[..., Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments as they should be: those that are needed and, unless calls are few, some of the others."""
    needed, more = {}, {}
    for argument, about in inspect.signature(thing).parameters.items():
        found = strategy(name, argument)
        if about.kind is about.VAR_KEYWORD:
            science = name.partition(".")[0]
            more |= {SWEPT[science]: increasing(usual, 2)} if science in SWEPT else {}
        elif about.kind is about.VAR_POSITIONAL and found is None:
            continue
        elif about.default is about.empty or argument in ALWAYS.get(name, ()):
            assert found is not None, f"{name} needs `{argument}`, which has no strategy"
            needed[argument] = found
        elif found is not None and name not in FEW:
            more[argument] = found
    return st.fixed_dictionaries(needed, optional={} if name in FEW else more)


def wrong(name: str, thing: Callable[..., Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The same but for one argument, which may be unknown to the function."""
    known = inspect.signature(thing).parameters.values()
    which = ["unheard_of" if about.kind is about.VAR_KEYWORD else about.name
             for about in known if about.kind is not about.VAR_POSITIONAL or about.name in STRATEGIES]  # fmt: skip
    return st.builds(lambda found, one, junk: found | {one: junk}, good(name, thing), st.sampled_from(which), hopeless)
