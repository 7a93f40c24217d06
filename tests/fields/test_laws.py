"""Learning curves of fields: the exact one, the experiment, and both ways to solve."""

import jax
import numpy as np
import pytest

import quenched
from quenched import fields
from quenched.core.types import InputError

LINE = fields.Axis(0, 1, points=12)
INPUTS = fields.Grid(given=[LINE])
FUNCTION = fields.TrueFunction(INPUTS, np.sin(6 * LINE.coordinates), variance=0.3)
SMOOTH = fields.Gaussian(fields.Laplacian(INPUTS) + fields.Mass(INPUTS), mean=0.5)
REGRESSION = fields.MaximumPosterior(fields.Direct(INPUTS), SMOOTH)

CIRCLE = fields.Axis(0, 9, points=10, ends=fields.Periodic())
PLANE = fields.Grid(given=[fields.Axis(0, 2, points=3)], over=[CIRCLE])
TRUTH = 1 + np.outer([0.2, 0.5, 0.8], np.cos(np.arange(10) * np.pi / 5))
DENSITY = fields.TrueDensity(PLANE, TRUTH / 10)
STUDENT = fields.MaximumPosterior(fields.LogDensity(PLANE), fields.Gaussian(fields.Laplacian(PLANE)))


CONTROLS = {"examples": [6, 48], "strength": [0.01, 0.1]}


@pytest.fixture(scope="module")
def points():
    return fields.measure(FUNCTION, REGRESSION, **CONTROLS, runs=200, key=jax.random.key(0))


def test_the_exact_curve_is_what_the_experiment_measures(points):
    curve = fields.curve(FUNCTION, REGRESSION, **CONTROLS)
    assert points.test_error.dims == ("strength", "examples")
    assert np.all(points.outcome == "converged")
    proof = quenched.agreement(curve, points)  # both are of this very size: no allowance
    assert proof.passed, proof


def test_the_error_beyond_the_noise_is_measured_to_two_percent():
    points = fields.measure(FUNCTION, REGRESSION, examples=12, runs=1500, strength=0.01, key=jax.random.key(2))
    curve = fields.curve(FUNCTION, REGRESSION, examples=12, strength=0.01)
    assert quenched.agreement(curve, points).passed
    beyond = float(curve.test_error) - 0.5 * np.log(2 * np.pi * 0.3) - 0.5
    assert float(points.test_error_stderr) < 0.02 * beyond


def test_a_wrong_noise_is_noticed(points):
    louder = fields.TrueFunction(INPUTS, FUNCTION.values, variance=0.33)
    wrong = fields.curve(louder, REGRESSION, **CONTROLS)
    assert not quenched.agreement(wrong, points).passed


def test_densities_are_learned_with_more_examples():
    points = fields.measure(DENSITY, STUDENT, examples=[20, 320], runs=20, strength=[0.3], key=jax.random.key(1))
    test, training = points.test_error.values[0], points.training_error.values[0]
    entropy = -np.mean(np.sum(TRUTH / 10 * np.log(TRUTH / 10), axis=1))
    assert np.all(np.diff(test) < 0)
    assert np.all(test > entropy)
    assert np.all(training < test)
    # as 1/n with the number of free directions in the end: the gap is less than half of that without a prior
    assert test[-1] - entropy < 0.5 * 27 / 320


def test_a_data_set_of_the_experiment_is_solved_as_by_newton():
    """The damped iteration of the experiment against `solve`."""
    key = jax.random.key(3)
    points = fields.measure(DENSITY, STUDENT, examples=40, runs=10, key=key)
    first = jax.random.fold_in(jax.random.fold_in(key, 0), 0)
    fit = fields.fit(STUDENT, DENSITY.sample(first, 40))
    assert fit.converged
    ours = fit.trace.training_error.values[-1]
    assert float(points.training_error_run[0]) == pytest.approx(ours, abs=1e-8)


def test_fit_gives_the_posterior_of_a_function():
    x, y = FUNCTION.sample(jax.random.key(0), 24)
    found = fields.fit(REGRESSION, fields.GaussianData(x, y, 0.3))
    problem = fields.Problem(fields.GaussianData(x, y, 0.3), REGRESSION.link, SMOOTH)
    np.testing.assert_allclose(found.mean, fields.regress(problem).mean, rtol=1e-12)
    assert np.abs(found.mean - FUNCTION.values).max() < 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fields.TrueDensity(PLANE, np.ones((3, 10))), "integral"),
        (lambda: fields.TrueFunction(INPUTS, np.ones(3)), "shape"),
        (lambda: fields.TrueFunction(INPUTS, np.ones(12), variance=-1), "variance"),
        (lambda: fields.curve(DENSITY, STUDENT, examples=5), "only regression"),
        (lambda: fields.measure(DENSITY, REGRESSION, examples=5, runs=2, key=jax.random.key(0)), "one grid"),
        (lambda: fields.measure(FUNCTION, STUDENT, examples=5, runs=2, key=jax.random.key(0)), "one grid"),
        (lambda: fields.MaximumPosterior(fields.Direct(INPUTS), SMOOTH, strength=0), "strength"),
        (lambda: fields.fit("soft", [1.0]), "MaximumPosterior"),
        (lambda: fields.curve(FUNCTION, REGRESSION, examples=0), "examples"),
    ],
)  # fmt: skip
def test_bad_input_gets_a_sentence(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
