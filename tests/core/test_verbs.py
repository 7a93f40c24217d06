"""The front door: checks, sweep, dimensions and attributes, whatever the science."""

import dataclasses
import functools
import json

import equinox as eqx
import jax
import numpy as np
import pytest

from quenched.core import verbs
from quenched.core.types import InputError, Outcome, real

KEY = jax.random.key(0)


class World(eqx.Module):
    eta: float = eqx.field(converter=real, default=1.0)
    gamma: float = eqx.field(converter=real, default=2.0)


class Student(eqx.Module):
    rate: float = eqx.field(converter=real, default=0.1)


def check(law, rule):
    if law.gamma == rule.rate:
        raise InputError("Argument `rate` must differ from `gamma`, but it does not.")


SCIENCE = verbs.Science(
    "made_up", (World, "World()"), (Student, "Student()"), {"R": (), "Q": ("place",)}, check,
    lambda law, rule: {"place": ("place", np.arange(2))}, {"R": "overlap", "eta": "share"},
)  # fmt: skip


def values(law, rule, alpha):
    return {"R": law.gamma * alpha + law.eta, "Q": np.full(2, rule.rate), "outcome": Outcome.converged}


def test_dimensions_are_the_swept_controls_as_given_then_the_axis_then_a_variables_own():
    question = SCIENCE.ask(World(), Student(), {"rate": [0.1, 0.2, 0.3], "eta": [0.0, 1.0]}, alpha=[1.0, 2.0, 3.0, 4.0])
    result = question.answer(question.map(values), note="x")
    assert result.Q.dims == ("rate", "eta", "alpha", "place")
    np.testing.assert_array_equal(result.R.sel(eta=1.0, rate=0.2), 2 * result.alpha + 1)
    assert set(result.outcome.values.ravel()) == {"converged"}
    assert result.attrs["sweep"] == "rate eta"
    assert result.attrs["note"] == "x"
    assert json.loads(result.attrs["law"])["name"] == "World"
    assert (result.attrs["science"], result.attrs["source"]) == ("made_up", "theory")
    assert result.R.attrs["long_name"] == "overlap"
    assert result.eta.attrs["long_name"] == "share"


def test_one_number_drops_the_dimension_and_stays_as_a_coordinate():
    question = SCIENCE.ask(World(), Student(), {"gamma": 3.0}, alpha=2.0)
    result = question.answer(question.map(values))
    assert result.R.dims == ()
    assert float(result.R) == 7.0
    assert float(result.alpha) == 2.0
    assert "gamma" not in result.coords
    assert json.loads(result.attrs["law"])["gamma"] == 3.0


def test_without_an_axis_the_function_gets_law_and_rule_alone():
    question = SCIENCE.ask(World(), verbs.Bayes(), {"gamma": [1.0, 2.0]})
    result = question.answer(question.map(lambda law, _: {"R": law.gamma}))
    np.testing.assert_array_equal(result.R, [1.0, 2.0])
    assert json.loads(result.attrs["rule"]) == {"name": "Bayes"}


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("name", ["eta", "law_eta"])
def test_a_control_that_runs_pass_through_is_sorted_for_them_and_returned_as_given(falling, name):
    given = [2.0, 0.0, 1.0]
    sweep = {"rate": [0.1, 0.2], name: given, "gamma": [1.0, 2.0, 3.0, 4.0]}
    question = SCIENCE.ask(World(), Student(), sweep, alpha=[1.0, 2.0], through="eta", falling=falling)
    assert list(question.axes) == ["alpha", name]
    np.testing.assert_array_equal(question.axes[name], sorted(given, reverse=falling))
    assert len(question.plan.laws) == 8
    etas = question.axes[name]
    result = question.answer(question.map(lambda law, rule, alpha: {"R": law.gamma * alpha + etas}))
    assert result.R.dims == ("rate", name, "gamma", "alpha")
    np.testing.assert_array_equal(result[name], given)
    np.testing.assert_array_equal(result.R.sel(gamma=2.0, rate=0.1, alpha=2.0), 4.0 + np.array(given))
    assert result.attrs["sweep"].split() == list(sweep)


def run(key, point, *, alpha=None):
    law, rule, etas = point
    noise = jax.random.normal(key, ())
    shaped = etas + law.gamma * (1.0 if alpha is None else alpha)
    return {"R": shaped + noise, "Q": rule.rate + noise * np.ones((3, 2)), "stalled": (etas > 1.5).astype(float)}


@pytest.mark.parametrize("swept", [True, False])
def test_an_experiment_has_mean_error_runs_and_outcome(swept):
    sweep = {"eta": [2.0, 0.0, 1.0], "gamma": [1.0, 2.0]} if swept else {"eta": [2.0, 0.0, 1.0]}
    question = SCIENCE.ask(World(), Student(), sweep, alpha=[1.0, 2.0], through="eta")
    points = [(*pair, question.axes["eta"]) for pair in question.plan.pairs]
    work = [(functools.partial(run, alpha=float(a)), points) for a in question.axes["alpha"]]
    where = {"batch": None, "executor": None, "folder": None, "label": "runs"}
    result = question.measure(work, key=KEY, runs=4, start=Student(), **where)
    front = (*sweep, "alpha")
    assert result.R.dims == front
    assert result.Q_run.dims == (*front, "place", "run")
    assert result.runs.dims == front[1:]
    assert int(result.failed.max()) == 0
    assert result.outcome.isel(alpha=0).squeeze().values.ravel()[:2].tolist()[0] == "stalled"
    np.testing.assert_allclose(result.R_run.mean("run"), result.R)
    np.testing.assert_allclose((result.R.sel(eta=2.0) - result.R.sel(eta=0.0)).values, 2.0)
    assert result.attrs["source"] == "simulation"
    assert result.attrs["seed"].startswith("threefry2x32:")
    assert json.loads(result.attrs["start"])["name"] == "Student"


def test_runs_that_fail_are_kept_but_not_averaged():
    def sometimes(key, point):
        x = jax.random.uniform(key, (1,))
        return {"R": jax.numpy.where(x < point, np.nan, x)}

    question = SCIENCE.ask(World(), Student(), {}, alpha=1.0)
    where = {"batch": None, "executor": None, "folder": None, "label": "runs"}
    result = question.measure((sometimes, [0.5]), key=KEY, runs=20, **where)
    good = result.R_run.values[np.isfinite(result.R_run)]
    assert 0 < int(result.failed) == 20 - len(good) < 20
    assert int(result.runs) == len(good)
    np.testing.assert_allclose(result.R, good.mean())
    np.testing.assert_allclose(result.R_stderr, good.std(ddof=1) / np.sqrt(len(good)))
    assert "gave a value that is not finite" in result.attrs["messages"]
    assert str(result.outcome.values) == "converged"
    lost = question.measure((sometimes, [2.0]), key=KEY, runs=20, **where)
    assert str(lost.outcome.values) == "failed"


def test_a_control_passed_through_that_is_not_swept_leaves_no_trace():
    question = SCIENCE.ask(World(), Student(), {}, alpha=1.0, through="eta")
    result = question.measure(
        (lambda key, point: {"R": jax.random.normal(key, (1, 2))[:, :1]}, [np.zeros(1)]),
        key=KEY, runs=2, batch=None, executor=None, folder=None, label="runs",
        finish=lambda done: dataclasses.replace(done, values={"R": done.values["R"] + 1}),
    )  # fmt: skip
    assert result.R.dims == ()
    assert "eta" not in result.coords
    assert result.attrs["sweep"] == ""


@pytest.mark.parametrize(
    ("law", "rule", "sweep", "axes", "sentence"),
    [
        (Student(), Student(), {}, {}, "`law` must be World"),
        (World(), World(), {}, {}, "`rule` must be Student"),
        (World(gamma=0.1), Student(), {}, {}, "`rate` must differ"),
        (World(), Student(), {"colour": 1}, {}, "must be a field of the law or the rule"),
        (World(), Student(), {}, {"alpha": [2.0, 1.0]}, "must increase"),
        (World(), Student(), {}, {"alpha": np.broadcast_to(1.0, 2**50)}, "must fit in memory"),
    ],
)
def test_bad_questions_get_a_sentence(law, rule, sweep, axes, sentence):
    with pytest.raises(InputError, match=sentence):
        SCIENCE.ask(law, rule, sweep, **axes)
