"""Arguments of every public verb."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from tinygp import kernels

import quenched
from quenched import fields, mixtures, outliers, processes, prototypes, replica
from tests.properties.common import EXAMPLES, KEY, hopeless, wrong
from tests.properties.strategies import (
    INPUTS,
    LINE,
    contaminated,
    density_problems,
    density_rules,
    empirical,
    function_problems,
    function_rules,
    gaussian_processes,
    increasing,
    keys,
    likelihoods,
    lvq_rules,
    mixture_starts,
    one_or,
    outlier_starts,
    overlap_starts,
    pairs,
    places,
    positive,
    probabilities,
    row_weights,
    seeds,
    selections,
    shares,
    students,
    table,
    tables,
    targets,
    true_densities,
    true_functions,
    two_clusters,
    two_gaussians,
    usual,
    winner_rules,
    worlds,
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A verb and its arguments.

    Attributes:
        verb: the function.
        needed: strategies of the arguments that every call has.
        more: strategies of those that some calls have.
        slim: for a verb that takes long to compile, strategies with which all calls share one program. In a short run
            these are all there are.
        few: how many such calls.
    """

    verb: Callable[..., Any]
    needed: dict[str, st.SearchStrategy[Any]]
    more: dict[str, st.SearchStrategy[Any]] = dataclasses.field(default_factory=dict)
    slim: dict[str, st.SearchStrategy[Any]] | None = None
    few: int = 2

    @property
    def arguments(self) -> list[str]:
        """All names."""
        return [*self.needed, *self.more]

    def good(self) -> st.SearchStrategy[dict[str, Any]]:
        """Arguments as they should be."""
        if EXAMPLES or self.slim is None:
            return st.fixed_dictionaries(self.needed, optional=self.more)
        return st.fixed_dictionaries(self.needed | self.slim)

    def wrong(self) -> st.SearchStrategy[dict[str, Any]]:
        """The same but for one argument."""
        swept = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(self.verb).parameters.values())
        which = st.sampled_from([*self.arguments, *(["unheard_of"] if swept else [])])
        junk = wrong if EXAMPLES or self.slim is None else hopeless
        return st.builds(lambda good, name, value: good | {name: value}, self.good(), which, junk)


def verbs() -> dict[str, Callable[..., Any]]:
    """Every public function of the package, found where it is exported."""
    homes = [importlib.import_module(f"quenched.{science}") for science in quenched.SCIENCES]
    found = {
        f"{home.__name__.removeprefix('quenched.')}.{name}": getattr(home, name)
        for home in homes
        for name in home.__all__
    }
    found |= {name: getattr(quenched, name) for name in quenched.__all__}
    found["replica.curve"] = replica.curve
    return {name: thing for name, thing in found.items() if inspect.isroutine(thing)}


# results --------------------------------------------------------------------------------------------------------------


@functools.cache
def curve_of_prototypes() -> Any:
    """A theory that was computed once."""
    return prototypes.curve(prototypes.TwoClusters(0.8), prototypes.LVQ1(0.2), alpha=[0.5, 1.0, 2.0])


@functools.cache
def points_of_prototypes() -> Any:
    """A simulation that was run once."""
    law, rule = prototypes.TwoClusters(0.8), prototypes.LVQ1(0.2)
    return prototypes.measure(law, rule, alpha=[0.5, 1.0, 2.0], size=8, runs=12, key=KEY, tests=20)


@functools.cache
def curve_of_processes() -> Any:
    """A learning curve that was computed once."""
    law = processes.Empirical(table(24, 2, 0), table(24, 1, 1)[:, 0])
    return processes.curve(law, processes.GaussianProcess(kernels.ExpSquared(2.0), 0.1), examples=[6.0, 12.0, 24.0])


MADE = (curve_of_prototypes, points_of_prototypes, curve_of_processes)
some_results = st.sampled_from(MADE)


def with_results(verb: Callable[..., Any]) -> Callable[..., Any]:
    """A verb whose arguments are computed when it is called: no strategy may draw random numbers of its own."""

    @functools.wraps(verb)
    def called(**given: Any) -> Any:
        return verb(**{name: value() if any(value is one for one in MADE) else value for name, value in given.items()})

    return called


def _plot(result: Any, ax: Any = None, variables: Any = None, x: Any = None) -> Any:
    return quenched.plot(result, ax=ax, variables=variables, x=x)


alphas = one_or(st.floats(0.2, 20.0))
small_alphas = one_or(st.sampled_from([0.5, 1.0, 2.0, 3.0]))
running = {"size": st.just(8), "runs": st.sampled_from([1, 4]), "key": keys}
whereabouts = {"batch": st.sampled_from([None, 2]), "executor": st.none(), "folder": st.none()}

CASES = {
    "prototypes.curve": Case(
        prototypes.curve,
        {"law": worlds, "rule": lvq_rules, "alpha": one_or(st.floats(0, 50))},
        {"start": overlap_starts, "rate": one_or(usual, 2)},
    ),
    "prototypes.measure": Case(
        prototypes.measure,
        {"law": worlds, "rule": lvq_rules, "alpha": small_alphas, **running},
        {
            "start": overlap_starts,
            "simulator": st.sampled_from([prototypes.Direct(), prototypes.Chain()]),
            "tests": st.just(20),
            "rate": one_or(usual, 2),
            **whereabouts,
        },
    ),
    "prototypes.asymptote": Case(
        prototypes.asymptote,
        {"law": worlds, "rule": lvq_rules},
        {"small_rate": st.booleans(), "start": overlap_starts, "rate": one_or(usual, 2)},
    ),
    "prototypes.escape_rate": Case(
        prototypes.escape_rate, {"law": two_clusters, "rule": st.builds(prototypes.VQ, rate=positive)}
    ),
    "prototypes.optimum": Case(prototypes.optimum, {"law": two_clusters}),
    "prototypes.fit": Case(
        prototypes.fit,
        {"rule": lvq_rules, "data": pairs, "key": keys},
        {
            "prototypes_per_class": st.integers(1, 3),
            "passes": st.integers(1, 3),
            "shuffle": st.booleans(),
            "sample_weight": row_weights,
            "window": st.none() | st.floats(0.01, 1.0),
            "start": st.none(),
        },
    ),
    "mixtures.curve": Case(
        mixtures.curve, {"law": two_gaussians, "rule": likelihoods, "alpha": alphas}, {"width": one_or(positive, 2)}
    ),
    "mixtures.optimum": Case(mixtures.optimum, {"law": two_gaussians, "alpha": alphas}),
    "mixtures.phase_lines": Case(
        mixtures.phase_lines, {"law": two_gaussians, "alpha": alphas}, {"separation": one_or(usual, 2)}
    ),
    "mixtures.measure": Case(
        mixtures.measure,
        {"law": two_gaussians, "rule": likelihoods, "alpha": st.sampled_from([1.0, 2.0]), **running},
        {"start": mixture_starts, "tests": st.just(20), "width": one_or(usual, 2), **whereabouts},
    ),
    "mixtures.spectrum": Case(
        mixtures.spectrum,
        {
            "law": two_gaussians,
            "rule": likelihoods,
            "alpha": st.sampled_from([1.0, 2.0]),
            "starts": st.just(2),
            **running,
        },
        {
            "start": st.builds(mixtures.RandomStart, scale=positive),
            "annealed": st.builds(mixtures.Annealed),
            "width": one_or(usual, 2),
            "executor": st.none(),
            "folder": st.none(),
        },
    ),
    "mixtures.follow": Case(
        mixtures.follow,
        {
            "law": two_gaussians,
            "rule": likelihoods,
            "alpha": st.just(1.0),
            "starts": st.just(2),
            "from_width": usual,
            "width": st.just([0.05, 4.5]),
            **running,
        },
        {
            "start": st.builds(mixtures.RandomStart, scale=positive),
            "annealed": st.builds(mixtures.Annealed),
            "executor": st.none(),
            "folder": st.none(),
        },
    ),
    "mixtures.fit": Case(
        mixtures.fit,
        {
            "rule": st.one_of(
                st.builds(mixtures.Spherical, least=shares, equal_weights=st.booleans(), common=st.booleans()),
                st.builds(mixtures.Diagonal, least=shares),
                likelihoods,
            ),
            "data": tables,
        },
        {
            "components": st.integers(1, 4),
            "key": keys,
            "sample_weight": row_weights,
            "n_init": st.integers(1, 2),
            "step": st.floats(0.05, 0.9),
            "noise": st.floats(0, 1),
            "accuracy": positive,
            "passes": st.integers(1, 50),
            "start": st.none(),
        },
    ),
    "outliers.curve": Case(
        outliers.curve,
        {"law": contaminated, "rule": students, "alpha": alphas},
        {"branch": st.sampled_from([None, *outliers.Branch]), "eta": one_or(st.floats(-2, 6), 2)},
    ),
    "outliers.transitions": Case(
        outliers.transitions,
        {"law": contaminated, "rule": selections, "alpha": st.floats(2.0, 20.0)},
        {"law_gamma": usual},
    ),
    "outliers.asymptote": Case(
        outliers.asymptote, {"law": contaminated, "rule": students}, {"eta": one_or(st.floats(-2, 6), 2)}
    ),
    "outliers.measure": Case(
        outliers.measure,
        {"law": contaminated, "rule": students, "alpha": st.sampled_from([1.0, 2.0, [1.0, 2.0]]), **running},
        {"start": outlier_starts, "descend": st.booleans(), "eta": one_or(st.floats(-2, 6), 2), **whereabouts},
    ),
    "outliers.fit": Case(
        outliers.fit,
        {"rule": st.one_of(selections, st.builds(outliers.Hebb, gamma=st.none() | positive)), "data": pairs},
        {
            "key": keys,
            "eta": st.none() | st.floats(-5, 5),
            "spread": st.none() | st.floats(1, 100),
            "midpoint": st.none() | usual,
            "prior": st.none() | positive,
            "sample_weight": row_weights,
            "accuracy": positive,
            "passes": st.integers(1, 50),
        },
    ),
    "processes.curve": Case(
        processes.curve,
        {"law": empirical, "rule": gaussian_processes, "examples": one_or(st.floats(1, 100))},
        {
            "accuracy": st.floats(0.3, 1.0),
            "cheapest": st.booleans(),
            "key": keys,
            "rank": st.none() | st.just(8),
            "closure": st.sampled_from([None, processes.Cavity(), processes.Variational()]),
            "total": st.sampled_from([processes.PoissonTotal(), processes.FixedTotal()]),
            "noise": one_or(usual, 2),
            "executor": st.none(),
            "folder": st.none(),
        },
    ),
    "processes.measure": Case(
        processes.measure,
        {
            "law": empirical,
            "rule": gaussian_processes,
            "examples": one_or(st.sampled_from([5.0, 10.0, 20.0, 30.0])),
            "runs": st.just(2),
            "key": keys,
        },
        {
            "simulator": st.sampled_from([processes.Plain(), processes.LatinHypercube(4)]),
            "total": st.sampled_from([processes.PoissonTotal(), processes.FixedTotal()]),
            "variance": st.booleans(),
            "noise": one_or(usual, 2),
            **whereabouts,
        },
    ),
    "processes.fit": Case(
        processes.fit,
        {"rule": gaussian_processes, "data": st.tuples(st.builds(table, st.just(24), st.just(2), seeds), targets)},
        {"key": keys},
    ),
    "processes.most_likely": Case(
        processes.most_likely,
        {"law": empirical, "rule": gaussian_processes},
        {
            "steps": st.integers(1, 3),
            "weights": st.lists(st.sampled_from([0.0, 1.0]), min_size=24, max_size=24),
            "tolerance": positive,
        },
    ),
    "processes.tune": Case(
        processes.tune,
        {"law": empirical},
        {
            "rule": gaussian_processes,
            "aim": st.sampled_from([processes.Evidence(), processes.PredictedError(0.5)]),
            "steps": st.integers(1, 3),
        },
    ),
    "processes.forecast": Case(
        processes.forecast,
        {"X": tables, "y": targets, "rule": gaussian_processes, "tune": st.just(False)},
        {
            "examples": st.sampled_from([None, [12.0, 24.0, 100.0]]),
            "check": st.just(0),
            "accuracy": st.floats(0.3, 1.0),
            "key": keys,
            "names": st.sampled_from([None, ["a", "b"]]),
        },
    ),
    "processes.examples_for": Case(
        with_results(processes.examples_for), {"result": some_results}, {"error": positive, "gain": st.floats(0.1, 0.9)}
    ),
    "fields.curve": Case(
        fields.curve,
        {"law": true_functions, "rule": function_rules, "examples": one_or(st.integers(8, 1000))},
        {"strength": one_or(usual, 2)},
    ),
    "fields.measure": Case(
        fields.measure,
        {
            "law": true_densities,
            "rule": density_rules,
            "examples": st.sampled_from([5, 20, [5, 20]]),
            "runs": st.sampled_from([1, 4]),
            "key": keys,
        },
        {"strength": one_or(usual, 2), **whereabouts},
    ),
    "fields.fit": Case(fields.fit, {"rule": density_rules, "data": places}, {"key": keys}),
    "fields.solve": Case(
        fields.solve,
        {"problem": density_problems},
        {
            "method": st.sampled_from([fields.Newton(), fields.Gradient(), fields.Massive()]),
            "tolerance": st.floats(1e-12, 1e-3),
            "max_steps": st.integers(1, 20),
            "start": st.sampled_from([fields.Uniform(), fields.Empirical(), fields.Kernel(0.1), fields.Truncated(0.1)]),
        },
    ),
    "fields.regress": Case(fields.regress, {"problem": function_problems}, {"data_space": st.none() | st.booleans()}),
    "fields.laplace": Case(
        fields.laplace, {"problem": density_problems, "field": st.lists(st.floats(-3, 3), min_size=8, max_size=8)}
    ),
    "fields.mutual_information": Case(
        fields.mutual_information,
        {"probabilities": probabilities},
        {"sigma": st.floats(0.1, 10), "means": st.just([[0.0, 1.0]] * 4)},
    ),
    "fields.learning_decay": Case(
        fields.learning_decay,
        {"prior": probabilities, "truth": st.integers(0, 3), "examples": st.just(3), "key": keys},
        {"sigma": st.floats(0.1, 10), "means": st.just([[0.0, 1.0]] * 4)},
    ),
    "fields.Laplacian": Case(fields.Laplacian, {"grid": st.sampled_from([LINE, INPUTS])}),
    "fields.Mass": Case(fields.Mass, {"grid": st.sampled_from([LINE, INPUTS])}, {"value": positive}),
    "fields.Difference": Case(
        fields.Difference, {"grid": st.just(LINE), "axis": st.just(LINE.axes[0]), "order": st.integers(1, 3)}
    ),
    "replica.curve": Case(
        replica.curve,
        {
            "problem": st.just(replica.Problem(energy=lambda u, Q: 0.5 * (1 - u) ** 2, norm=lambda R, Q: 0.5 * Q)),
            "alpha": alphas,
        },
        {"start": st.none() | st.tuples(usual, usual, usual)},
    ),
    "agreement": Case(
        with_results(quenched.agreement),
        {"curve": some_results, "points": some_results},
        {
            "variables": st.sampled_from([None, ["error"], ["R", "Q"], "error"]),
            "allowance": st.floats(0, 1),
            "relative_allowance": st.floats(0, 1),
        },
    ),
    "plot": Case(
        with_results(_plot),
        {"result": some_results},
        {
            "variables": st.sampled_from([None, "error", ["error"]]),
            "x": st.sampled_from([None, "alpha", "examples"]),
            "ax": st.none(),
        },
    ),
    "save": Case(with_results(quenched.save), {"result": some_results, "path": st.just("result.nc")}),
    "load": Case(quenched.load, {"path": st.just("result.nc")}),
}

one_alpha = st.floats(2.0, 20.0)
some_runs = {"alpha": st.just(1.0), "runs": st.just(4)}
usual_world = {"law": st.builds(outliers.Contaminated, gamma=usual, eta=st.floats(-2, 6))}
hard, soft = ({"rule": st.builds(rule)} for rule in (outliers.HardSelection, outliers.SoftSelection))
SLIM: dict[str, tuple[dict[str, st.SearchStrategy[Any]], int]] = {
    "prototypes.curve": ({"law": two_clusters, "rule": winner_rules, "alpha": increasing(st.floats(0, 50), 3)}, 4),
    "prototypes.measure": ({"law": two_clusters, "rule": winner_rules, "tests": st.just(20), **some_runs}, 4),
    "prototypes.asymptote": ({"law": two_clusters, "rule": winner_rules}, 4),
    "mixtures.curve": ({"alpha": one_alpha}, 1),
    "mixtures.phase_lines": ({"law": st.builds(mixtures.TwoGaussians, separation=usual), "alpha": one_alpha}, 1),
    "mixtures.measure": ({"tests": st.just(20), **some_runs}, 3),
    "mixtures.spectrum": (some_runs, 2),
    "mixtures.follow": ({"from_width": st.floats(0.1, 4.0), **some_runs}, 2),
    "outliers.curve": ({"alpha": one_alpha, **usual_world, **hard}, 1),
    "outliers.transitions": ({"alpha": one_alpha, **usual_world, **hard}, 1),
    "outliers.measure": ({**some_runs, **soft}, 3),
    "processes.curve": ({"examples": st.floats(1, 100)}, 2),
    "processes.measure": ({"examples": st.just(10.0)}, 2),
    "processes.most_likely": ({"steps": st.just(1)}, 2),
    "processes.tune": ({"steps": st.just(1), "rule": gaussian_processes}, 2),
    "processes.forecast": ({"accuracy": st.just(1.0)}, 3),
    "fields.measure": ({"examples": st.just(5), "runs": st.just(4)}, 3),
    "replica.curve": ({"alpha": one_alpha}, 2),
}
CASES |= {name: dataclasses.replace(CASES[name], slim=slim, few=few) for name, (slim, few) in SLIM.items()}
