"""The sciences are alike: the same verbs, in the same order, with results of the same form."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr
from tinygp import kernels

import quenched
from quenched import fields, mixtures, outliers, processes, prototypes
from quenched.core.types import InputError

KEY = jax.random.key(0)
ROWS = np.random.default_rng(0).normal(size=(30, 2))
GRID = fields.Grid(given=[fields.Axis(0, 1, points=8)])
SMOOTH = fields.Gaussian(fields.Laplacian(GRID) + fields.Mass(GRID))
WHERE = ["batch", "executor", "folder", "sweep"]
"""The last arguments of every experiment."""

# law, rule, controls, the size of a simulation, and data for the learner
CASES = {
    "outliers": (
        outliers.Contaminated(),
        outliers.SoftSelection(),
        {"alpha": [5.0, 6.0]},
        {"size": 20},
        (ROWS, np.where(ROWS[:, 0] > 0, 1, -1)),
    ),
    "mixtures": (mixtures.TwoGaussians(2.0), mixtures.Spherical(), {"alpha": [5.0, 6.0]}, {"size": 20}, ROWS),
    "prototypes": (
        prototypes.TwoClusters(0.8),
        prototypes.LVQ1(0.2),
        {"alpha": [1.0, 2.0]},
        {"size": 20},
        (ROWS, np.where(ROWS[:, 0] > 0, 1, -1)),
    ),
    "processes": (
        processes.Empirical(ROWS, ROWS[:, 0]),
        processes.GaussianProcess(kernels.ExpSquared(), 0.1),
        {"examples": [10, 20]},
        {},
        processes.Empirical(ROWS, ROWS[:, 0]),
    ),
    "fields": (
        fields.TrueFunction(GRID, np.zeros(8)),
        fields.MaximumPosterior(fields.Direct(GRID), SMOOTH),
        {"examples": [10, 20]},
        {},
        fields.GaussianData([0.2, 0.7], [1.0, 2.0]),
    ),
}
STUDENT = {"mixtures": mixtures.MaximumLikelihood()}
"""The rule of theory and simulation, where real data have others."""


FILES = ["theory/curve.py", "theory/state.py", "simulation/measure.py", "learner/fit.py"]
"""Where the verbs of every science stand, each in the file of its name; `fields` has no pure `state`."""
ELSEWHERE = {"transitions": "theory/transitions.py", "asymptote": "theory/asymptote.py", "optimum": "theory/optimum.py"}
"""Where a science has these, they stand there."""
NO_RULE = {"optimum"}
"""Verbs about the law alone."""


def package(science):
    return importlib.import_module(f"quenched.{science}")


def declared(science):
    """The `Science` of a package."""
    home = importlib.import_module(f"quenched.{science}.model")
    return (
        home.SCIENCE if hasattr(home, "SCIENCE") else importlib.import_module(f"quenched.{science}.model.laws").SCIENCE
    )


@pytest.fixture(scope="module", params=CASES)
def answers(request):
    """What each verb of a science returns."""
    law, rule, controls, size, data = CASES[request.param]
    home, student = package(request.param), STUDENT.get(request.param, rule)
    theory = home.curve(law, student, **controls)
    points = home.measure(law, student, **controls, **size, runs=4, key=KEY)
    return request.param, law, student, controls, theory, points, home.fit(rule, data, key=KEY)


def test_the_cases_are_all_sciences():
    assert set(CASES) == set(quenched.SCIENCES)


@pytest.mark.parametrize("science", CASES)
def test_verbs_stand_in_files_of_the_same_names(science):
    home = package(science)
    here = Path(home.__file__).parent
    files = [name for name in FILES if not (science == "fields" and name == "theory/state.py")]
    assert [name for name in files if not (here / name).exists()] == []
    for room in ("theory", "simulation", "learner"):
        assert (here / room / "__init__.py").exists(), room
    assert (here / "model.py").exists() != (here / "model").is_dir()
    for verb, place in ELSEWHERE.items():
        assert hasattr(home, verb) == (here / place).exists(), verb
    for verb, room in (("curve", "practice" if science == "processes" else "theory"), ("measure", "simulation"),
                       ("fit", "learner")):  # fmt: skip
        assert getattr(home, verb).__module__ == f"quenched.{science}.{room}.{verb}"


@pytest.mark.parametrize("science", CASES)
def test_every_science_declares_itself_once(science):
    law, rule = CASES[science][:2]
    one = declared(science)
    assert one.name == science
    assert isinstance(law, one.laws[0])
    assert isinstance(STUDENT.get(science, rule), one.rules[0])
    with pytest.raises(InputError, match=re.escape(f"Argument `law` must be {one.laws[1]}")):
        one.check_pair(object(), rule)


@pytest.mark.parametrize("science", sorted(set(CASES) - {"fields"}))
def test_what_is_measured_is_the_learner_that_fits(science):
    """An experiment calls functions of the learner that `fit` calls; only `fields` has a minimiser of its own."""
    fit = importlib.import_module(f"quenched.{science}.learner.fit")
    room = importlib.import_module(f"quenched.{science}.simulation")
    modules = [importlib.import_module(f"{room.__name__}.{one.name}") for one in pkgutil.iter_modules(room.__path__)]
    learner = f"quenched.{science}.learner"
    called = {thing.__module__ for one in modules for thing in vars(one).values() if inspect.isroutine(thing)}
    used = {getattr(thing, "__module__", "") for thing in vars(fit).values()} | {fit.__name__}
    assert {one for one in called if one.startswith(learner)} & used


@pytest.mark.parametrize("science", CASES)
def test_verbs_have_the_same_arguments_in_the_same_order(science):
    home, (control,) = package(science), CASES[science][2]
    signatures = {verb: list(inspect.signature(getattr(home, verb)).parameters) for verb in ("curve", "measure", "fit")}
    assert signatures["curve"][:3] == ["law", "rule", control]
    assert signatures["curve"][-1] == "sweep"
    experiment = ["law", "rule", control, *CASES[science][3], "runs", "key"]
    assert signatures["measure"][: len(experiment)] == experiment
    assert signatures["measure"][-4:] == WHERE
    assert signatures["fit"][:2] == ["rule", "data"]
    assert "key" in signatures["fit"]
    for verb in ELSEWHERE:
        if hasattr(home, verb):
            given = list(inspect.signature(getattr(home, verb)).parameters)
            assert given[: 1 + (verb not in NO_RULE)] == ["law", "rule"][: 1 + (verb not in NO_RULE)], verb
            assert verb != "transitions" or given[2:4] == ["along", "alpha"]
    for verb in ("curve", "measure", "fit"):
        kinds = [p.kind for p in inspect.signature(getattr(home, verb)).parameters.values()]
        assert all(kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD) for kind in kinds[2:])
    assert next(iter(inspect.signature(CASES[science][0].sample).parameters)) == "key"


@pytest.mark.parametrize("science", CASES)
def test_every_experiment_can_run_anywhere(science):
    """Whatever repeats runs says where they run and what is kept."""
    home = package(science)
    for name in home.__all__:
        thing = getattr(home, name)
        if inspect.isfunction(thing) and "runs" in (have := inspect.signature(thing).parameters):
            assert {"key", "executor", "folder"} <= set(have), name


@pytest.mark.parametrize("science", CASES)
def test_the_same_argument_means_the_same(science):
    """An argument that every `measure` has is described in the same words."""
    texts = [_described(package(name).measure) for name in CASES]
    for name in ("key", "executor", "folder"):
        assert _described(package(science).measure)[name] == texts[0][name]


def _described(verb):
    """The entries of a docstring's list of arguments."""
    text = inspect.cleandoc(verb.__doc__)
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)+)", text, flags=re.MULTILINE)
    entries = re.findall(r"^ {4}\**(\w+): (.*(?:\n {5,}.*)*)", section.group(1), flags=re.MULTILINE)
    return {name: " ".join(words.split()) for name, words in entries}


ATTRIBUTES = {"law", "rule", "version", "format", "science", "source", "sweep"}


def test_theory_and_simulation_have_the_same_form(answers):
    science, law, rule, controls, theory, points, _ = answers
    for result in (theory, points):
        assert isinstance(result, xr.Dataset)
        assert set(controls) <= set(result.dims)
        assert set(result.attrs) >= ATTRIBUTES
        assert result.attrs["science"] == science
        assert json.loads(result.attrs["law"])["name"] == type(law).__name__
        assert json.loads(result.attrs["rule"])["name"] == type(rule).__name__
        assert set(np.unique(result["outcome"].values.astype(str))) <= {"converged", "stalled", "absent"}
        assert not [name for name in result.coords if result[name].ndim == 0]  # what was not swept is in law and rule
    for name, own in declared(science).reports.items():  # the control, then a variable's own dimensions
        assert points[name].dims == (*controls, *own), name
        assert theory[name].dims in ((*controls, *own), (*controls, "branch", *own)), name
    assert points.attrs["source"] == "simulation"
    assert points.attrs["seed"].startswith("threefry2x32:")
    assert int(points.runs.max()) == 4
    assert int(points.failed.max()) == 0


def test_the_best_that_can_be_done_is_a_result_like_others():
    for home, law, given in (
        (prototypes, prototypes.TwoClusters(0.8), {}),
        (mixtures, mixtures.TwoGaussians(2.0), {"alpha": [1.0, 5.0]}),
    ):
        best = home.optimum(law, **given)
        assert set(best.attrs) >= ATTRIBUTES
        assert json.loads(best.attrs["rule"]) == {"name": "Bayes"}
        assert best.error.dims == tuple(given)
        assert np.all(best.outcome == "converged")


def test_every_measured_quantity_has_its_error_and_its_runs(answers):
    *_, theory, points, _ = answers
    names = [
        n for n in points.data_vars if not n.endswith(("_stderr", "_run")) and n not in ("runs", "failed", "outcome")
    ]
    assert set(names) & set(theory.data_vars)
    for name in names:
        assert points[f"{name}_stderr"].dims == points[name].dims
        assert points[f"{name}_run"].dims == (*points[name].dims, "run")


def test_a_number_instead_of_a_list_drops_the_dimension(answers):
    science, law, rule, controls, theory, _, _ = answers
    ((name, values),) = controls.items()
    one = package(science).curve(law, rule, **{name: values[0]})
    assert name not in one.dims
    assert float(one[name]) == values[0]
    assert set(one.data_vars) == set(theory.data_vars)


def test_what_is_fitted_has_one_name_and_an_outcome(answers):
    science, *_, fitted = answers
    assert isinstance(fitted, package(science).Fitted)
    if science != "processes":  # solved in one go
        assert fitted.outcome.name == "converged"


def test_sciences_load_without_what_only_some_of_their_verbs_need():
    """Scikit-learn and `scipy.stats` take as long to load as all the rest."""
    unwanted = {"sklearn", "scipy.stats", "matplotlib", "rich"}
    code = f"import sys; from quenched import {', '.join(CASES)}; sys.exit(str({unwanted} & set(sys.modules) or ''))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
