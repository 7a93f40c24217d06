"""FieldRegressor: exactness, units, weights and calibration."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from quenched import fields
from quenched.core.types import Outcome
from quenched.estimators import FieldRegressor
from quenched.fields.learner.regression import regress
from quenched.fields.model.modes import difference_modes
from quenched.fields.practice import regression, robust
from tests.estimators.rows import waves, whole_values

CONDITIONED = 1e-7  # two ways of computing, of matrices with condition numbers up to 1e8
REWRITTEN = 1e-11  # one minimum, reached from data written down in two ways


@pytest.mark.parametrize("order", [1, 2, 3])
def test_on_the_points_of_the_grid_it_is_the_exact_regression(order):
    X, y = waves(60)
    model = FieldRegressor(points=60, order=order).fit(X, y)
    at = np.random.default_rng(1).integers(5, 55, 60)
    X = model.grid_[at][:, None]
    grid = fields.Grid(given=[fields.Axis(0, 1, points=60)])
    rows = np.linspace(0, 1, 60)[at][:, None]
    rough = fields.Difference(grid, grid.given[0], order)
    lay = fields.Grid(given=[fields.Axis(model.grid_[0], model.grid_[-1], points=60, tails=(0, 0))])
    for strength, noise in ((1e-3 / 60**order, 0.04), (1e-1 / 60**order, 0.09)):
        data, prior = fields.GaussianData(rows, y, noise), fields.Gaussian(strength * rough)
        truth = regress(fields.Problem(data, fields.Direct(grid), prior))
        ours = regression.learn(lay, X, y, np.ones(60), order=order, strength=strength, noise=noise)
        np.testing.assert_allclose(ours.mean, truth.mean, atol=CONDITIONED)
        np.testing.assert_allclose(ours.variance, truth.variance, rtol=CONDITIONED)
        # Beforehand the free polynomials are Gaussian, of unit covariance over the rows in units of the values.
        free, size = np.vander(X[:, 0], order), np.std(y)
        polynomials = size**2 * free @ np.linalg.solve(free.T @ free / len(X), free.T)
        stiff = strength * grid.cell * rough.matrix
        bent = np.linalg.pinv((stiff + stiff.T) / 2, rcond=1e-12, hermitian=True)[np.ix_(at, at)]
        before = multivariate_normal(np.full(60, y.mean()), bent + polynomials + noise * np.eye(60))
        assert ours.log_evidence == pytest.approx(before.logpdf(y), abs=1e-5)


def test_strength_and_noise_of_draws_from_the_prior_are_found_and_deviations_are_true():
    (values, vectors), draw = difference_modes(100, 2), np.random.default_rng(0)
    roughness, shapes = values * 99**4, vectors * np.sqrt(99)  # on unit length
    strengths, noises, inside = [], [], []
    for _ in range(15):
        c = np.append([0.0, 0.0], draw.normal(size=98) / np.sqrt(2e-3 * roughness[2:]))
        h = shapes @ c
        X = draw.uniform(0.1, 0.9, (300, 1))
        X[:2, 0] = 0.1, 0.9
        truth = np.interp(X[:, 0], np.linspace(0, 1, 100), h)
        model = FieldRegressor(order=2).fit(X, truth + 0.5 * draw.normal(size=300))
        mean, deviation = model.predict(X, return_std=True)
        inside.append(np.abs(mean - truth) < 1.645 * deviation)
        noises.append(model.noise_)
        strengths.append(model.strength_ / 0.96**3)  # the model's grid is shorter
    assert 1 / 3 < np.exp(np.mean(np.log(strengths))) / 2e-3 < 3
    np.testing.assert_allclose(np.mean(noises), 0.25, rtol=5 * np.sqrt(2 / 300 / 15))
    assert 0.85 < np.mean(inside) < 0.95


def test_given_strength_and_noise_are_used_and_evidence_finds_the_best_of_them():
    X, y = waves(200)
    best = FieldRegressor(order=2).fit(X, y)
    for given in (
        {"strength": best.strength_},
        {"noise": best.noise_},
        {"strength": best.strength_, "noise": best.noise_},
    ):
        model = FieldRegressor(order=2, **given).fit(X, y)
        np.testing.assert_allclose(model.predict(X), best.predict(X), atol=0.01)
        assert all(getattr(model, f"{name}_") == pytest.approx(value) for name, value in given.items())
    given = [FieldRegressor(order=2, strength=factor * best.strength_).fit(X, y) for factor in (0.2, 1.0, 5.0)]
    assert np.argmax([model.log_evidence_ for model in given]) == 1
    orders = [FieldRegressor(order=k).fit(X, y).log_evidence_ for k in (1, 2, 3)]
    chosen = FieldRegressor().fit(X, y)
    assert chosen.log_evidence_ == pytest.approx(np.logaddexp.reduce(orders) - np.log(3), abs=REWRITTEN)
    assert chosen.order_ == 1 + np.argmax(orders)
    assert np.sqrt(chosen.noise_) == pytest.approx(0.2, rel=0.15)


@pytest.mark.parametrize("seed", [4, 8, 10])
def test_noise_is_known_to_its_last_digits_where_the_function_takes_nearly_all_of_the_values(seed):
    X, y, weights = whole_values(seed)
    X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0].astype(float)
    found = regression.learn(regression.grid_for(X), X, y, weights)
    assert found.noise < 1e-4
    for phase in range(4):
        moved = y + 1e-15 * np.cos(np.arange(len(y)) + phase)
        other = regression.learn(regression.grid_for(X), X, moved, weights)
        assert other.noise == pytest.approx(found.noise, rel=REWRITTEN, abs=0)


def test_another_unit_of_the_values_changes_nothing_else():
    X, y = waves(80)
    one, two = FieldRegressor().fit(X, y), FieldRegressor().fit(5 - 100 * X, 1e3 - 50 * y)
    mean, deviation = one.predict(X, return_std=True)
    there, wider = two.predict(5 - 100 * X, return_std=True)
    np.testing.assert_allclose(there, 1e3 - 50 * mean, rtol=CONDITIONED)
    np.testing.assert_allclose(wider, 50 * deviation, rtol=CONDITIONED)
    assert (two.order_, two.noise_) == (one.order_, pytest.approx(2500 * one.noise_, rel=CONDITIONED))
    assert two.strength_ == pytest.approx(one.strength_ / 2500, rel=1e-5)
    assert two.log_evidence_ == pytest.approx(one.log_evidence_ - 80 * np.log(50), abs=1e-6)


def test_it_goes_on_straight_and_less_sure():
    X, y = waves(80)
    model = FieldRegressor().fit(X, y)
    at = model.grid_[-1] + np.arange(4.0)[:, None]
    mean, deviation = model.predict(at, return_std=True)
    np.testing.assert_allclose(np.diff(mean, 2), 0, atol=CONDITIONED)
    slope = (model.mean_[-1] - model.mean_[-2]) / (model.grid_[-1] - model.grid_[-2])
    np.testing.assert_allclose(np.diff(mean), slope)
    assert np.all(np.diff(deviation) > 0)
    np.testing.assert_allclose(model.predict(model.grid_[:, None], return_std=True)[1] ** 2, model.variance_)


def test_a_function_of_two_columns():
    draw = np.random.default_rng(0)
    X = draw.uniform(-1, [1, 99], size=(300, 2))
    truth = np.sin(3 * X[:, 0]) * (X[:, 1] + 1) / 100
    model = FieldRegressor().fit(X, truth + 0.1 * draw.normal(size=300))
    mean, deviation = model.predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.04
    assert 0.8 < np.mean(np.abs(mean - truth) < 1.645 * deviation) < 0.99
    assert np.sqrt(model.noise_) == pytest.approx(0.1, rel=0.15)
    assert model.mean_.shape == model.variance_.shape == (48, 48)
    assert len(model.grid_) == 2
    flat = FieldRegressor(points=16).fit(X, 1 + 2 * X[:, 0] - X[:, 1])
    np.testing.assert_allclose(flat.predict([[2.0, -3.0]]), 8, atol=1e-6)


FUNCTIONS = [lambda x: np.sin(2 * np.pi * x), lambda x: 4 * (x - 0.5) ** 2, lambda x: np.tanh(8 * (x - 0.5))]


def test_the_band_of_few_rows_covers_as_often_as_it_says():
    covered = []
    for i, truth in enumerate(FUNCTIONS):
        for seed in range(5):
            draw = np.random.default_rng([seed, i])
            X = draw.random((10, 1))
            model = FieldRegressor().fit(X, truth(X[:, 0]) + 0.2 * draw.normal(size=10))
            at = np.linspace(X.min(), X.max(), 20)
            mean, deviation = model.predict(at[:, None], return_std=True)
            covered.append(np.mean(np.abs(mean - truth(at)) < 1.645 * deviation))
    assert 0.83 < np.mean(covered) < 0.97  # the most probable alone: 0.7


def test_few_rows_are_a_mixture_of_strengths_and_noises():
    X, y = waves(20)
    grid = regression.grid_for(X)
    model, ones = regression.learn(grid, X, y, np.ones(20), order=2), np.ones(20)
    means, inside, logs = [], [], []
    for strength in np.geomspace(1e-7, 1e0, 15):
        for noise in np.geomspace(0.08, 0.6, 6) ** 2:
            one = regression.learn(grid, X, y, ones, order=2, strength=strength, noise=noise)
            logs.append(one.log_evidence)
            means.append(one.mean)
            inside.append(one.variance)
    share = np.exp(np.array(logs) - max(logs))
    share /= share.sum()
    mean = share @ np.array(means)
    between = share @ (np.array(means) - mean) ** 2
    seen = slice(20, 180)  # where the rows are
    assert np.max(np.abs(model.mean - mean)[seen] / np.sqrt(model.variance)[seen]) < 0.1
    np.testing.assert_allclose(model.variance[seen], (share @ np.array(inside) + between)[seen], rtol=0.15)


def test_it_warns_where_the_search_for_the_function_ended_early(monkeypatch):
    X, y = waves(12)
    monkeypatch.setattr(robust, "STEPS", 0)
    monkeypatch.setattr(robust, "_reweigh", lambda B, *_: np.full(B.shape[1], 9.0))
    with pytest.warns(ConvergenceWarning, match="stalled at some strength"):
        model = FieldRegressor(points=40, order=1, loss="absolute").fit(X, y)
    assert model.outcome_ is Outcome.stalled


def test_few_rows_at_equal_places_have_an_answer_that_was_found():
    X, y = np.array([[0.0]] * 5 + [[1.0]]), np.array([-3.0, -1.0, 0.0, 1.0, 4.0, 20.0])
    model = FieldRegressor(loss="absolute").fit(X, y)
    assert model.outcome_ is Outcome.converged
    assert model.predict([[0.0]])[0] == pytest.approx(0.0, abs=1.0)
