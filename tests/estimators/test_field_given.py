"""FieldRegressor and FieldConditional: scikit-learn's checks, exactness, calibration, and what they refuse."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import quenched
from quenched import fields
from quenched.core.types import Outcome
from quenched.estimators import FieldConditional, FieldRegressor
from quenched.fields.learner import modes
from quenched.fields.learner.regression import regress
from quenched.fields.practice import conditional, regression
from quenched.fields.practice.density_mesh import Line, Mesh

SAME = 1e-7  # two ways of computing, of matrices with condition numbers up to 1e8
EXACT = 1e-11  # one minimum, reached from data written down in two ways
ROUND = 1e-10  # one way, in other units
QUADRATURE = 1e-4  # of a density with kinks at 160 points, on 20001 places


class OneColumn:
    """Looks at the first column only, so that checks with many columns say something."""

    def _read(self, *given):
        rows, *rest = super()._read(*given)
        return rows[:, :1], *rest

    def _rows(self, X):
        return super()._rows(X)[:, :1]


class OneRegressor(OneColumn, FieldRegressor):
    pass


class OneConditional(OneColumn, FieldConditional):
    pass


ONE = {"check_regressors_train": "asks one column to explain half of the variance that ten explain"}
VALUES = dict.fromkeys(
    ["check_methods_sample_order_invariance", "check_methods_subset_invariance"],
    "call score_samples without the values whose density it is; there is a test of its own",
)
WIDE = dict.fromkeys(
    [
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_nan_inf",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_regressor_data_not_an_array",
        "check_regressors_int",
        "check_regressors_no_decision_function",
        "check_regressors_train",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weights_list",
        "check_supervised_y_2d",
    ],
    "has more columns than a grid takes; with one column it passes",
)
NARROW = dict.fromkeys(
    [
        "check_estimators_fit_returns_self",
        "check_fit_idempotent",
        "check_readonly_memmap_input",
        "check_estimators_overwrite_params",
        "check_fit_check_is_fitted",
        "check_n_features_in",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_pandas_series",
        "check_sample_weights_shape",
    ],
    "has more columns than one; with one column it passes",
)
EXPECTED = {
    FieldRegressor: WIDE,
    FieldConditional: WIDE | NARROW,
    OneRegressor: ONE,
    OneConditional: ONE | VALUES,
}


@parametrize_with_checks(
    [
        FieldRegressor(points=16),
        FieldConditional(points=(12, 24), order=1, strength=(10.0, 1e-3)),
        OneRegressor(points=40),
        OneConditional(points=(12, 24), order=1, strength=(10.0, 1e-3)),
    ],
    expected_failed_checks=lambda e: EXPECTED[type(e)],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_what_fails_for_its_columns_is_a_check():
    names = {check.func.__name__ for _, check in estimator_checks_generator(OneConditional())}
    assert set(WIDE) | set(NARROW) <= names


def waves(n, seed=0, noise=0.2):
    draw = np.random.default_rng(seed)
    x = draw.uniform(0, 3, n)
    return x[:, None], np.sin(4 * x) + noise * draw.normal(size=n)


# FieldRegressor


@pytest.mark.parametrize("order", [1, 2, 3])
def test_on_the_points_of_the_grid_it_is_the_exact_regression(order):
    X, y = waves(60)
    model = FieldRegressor(points=60, order=order).fit(X, y)
    at = np.random.default_rng(1).integers(5, 55, 60)
    X = model.grid_[at][:, None]
    grid = fields.Grid(given=[fields.Axis(0, 1, points=60)])
    rows = np.linspace(0, 1, 60)[at][:, None]
    rough, gains = fields.Difference(grid, grid.given[0], order), []
    lay = fields.Grid(given=[fields.Axis(model.grid_[0], model.grid_[-1], points=60)])
    for strength, noise in ((1e-3 / 60**order, 0.04), (1e-1 / 60**order, 0.09)):
        data, prior = fields.GaussianData(rows, y, noise), fields.Gaussian(strength * rough)
        truth = regress(fields.Problem(data, fields.Direct(grid), prior))
        ours = regression.learn(lay, X, y, np.ones(60), order=order, strength=strength, noise=noise)
        np.testing.assert_allclose(ours.mean, truth.mean, atol=SAME)
        np.testing.assert_allclose(ours.variance, truth.variance, rtol=SAME)
        gains.append(ours.log_evidence - truth.log_evidence)
    # Both evidences are right up to the prior of the free polynomials, which is as wide as the noise.
    assert gains[1] - gains[0] == pytest.approx(-0.5 * order * np.log(0.09 / 0.04), abs=SAME)


def test_strength_and_noise_of_draws_from_the_prior_are_found_and_deviations_are_true():
    lay, draw = modes.line_modes(100, 2), np.random.default_rng(0)
    strengths, noises, inside = [], [], []
    for _ in range(15):
        c = np.append([0.0, 0.0], draw.normal(size=98) / np.sqrt(2e-3 * lay.roughness[2:]))
        h = lay.fields @ c
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
    for factor in (0.2, 5.0):
        other = FieldRegressor(order=2, strength=factor * best.strength_).fit(X, y)
        assert other.log_evidence_ < best.log_evidence_
    orders = [FieldRegressor(order=k).fit(X, y) for k in (1, 2, 3)]
    chosen = FieldRegressor().fit(X, y)
    assert chosen.log_evidence_ == max(model.log_evidence_ for model in orders)
    assert np.sqrt(chosen.noise_) == pytest.approx(0.2, rel=0.15)


def whole_values(seed):
    """Few rows with values 0, 1 and 2, nearly on one function: what it leaves of them is 1e-10."""
    draw = np.random.RandomState(seed)
    return draw.randn(15, 10)[:, :1], draw.randint(0, 3, 15).astype(float), draw.randint(0, 5, 15)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (FieldRegressor(), (*waves(60), np.random.default_rng(1).integers(0, 4, 60))),
        (FieldConditional(points=(12, 60), order=1), (*waves(60), np.random.default_rng(1).integers(0, 4, 60))),
        *((FieldConditional(points=(12, 24), order=1, strength=(10.0, 1e-3)), whole_values(k)) for k in (4, 8, 10)),
    ],
)
def test_a_weight_is_so_many_equal_rows_in_any_order(model, data):
    X, y, weights = data
    order = np.random.default_rng(2).permutation(np.arange(len(y)).repeat(weights))
    one, two = clone(model).fit(X, y, weights), clone(model).fit(X[order], y[order])
    np.testing.assert_allclose(two.predict(X), one.predict(X), rtol=EXACT)
    assert two.log_evidence_ == pytest.approx(one.log_evidence_, rel=EXACT)


@pytest.mark.parametrize("seed", [4, 8, 10])
def test_noise_is_known_to_its_last_digits_where_the_function_takes_nearly_all_of_the_values(seed):
    X, y, weights = whole_values(seed)
    X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0].astype(float)
    found = regression.learn(regression.grid_for(X), X, y, weights)
    assert found.noise < 1e-4
    for phase in range(4):
        moved = y + 1e-15 * np.cos(np.arange(len(y)) + phase)
        other = regression.learn(regression.grid_for(X), X, moved, weights)
        assert other.noise == pytest.approx(found.noise, rel=EXACT, abs=0)


def test_another_unit_of_the_values_changes_nothing_else():
    X, y = waves(80)
    one, two = FieldRegressor().fit(X, y), FieldRegressor().fit(5 - 100 * X, 1e3 - 50 * y)
    mean, deviation = one.predict(X, return_std=True)
    there, wider = two.predict(5 - 100 * X, return_std=True)
    np.testing.assert_allclose(there, 1e3 - 50 * mean, rtol=SAME)
    np.testing.assert_allclose(wider, 50 * deviation, rtol=SAME)
    assert (two.order_, two.noise_) == (one.order_, pytest.approx(2500 * one.noise_, rel=SAME))
    assert two.strength_ == pytest.approx(one.strength_ / 2500, rel=1e-5)
    assert two.log_evidence_ == pytest.approx(one.log_evidence_ - 80 * np.log(50), abs=1e-6)


def test_it_goes_on_straight_and_less_sure():
    X, y = waves(80)
    model = FieldRegressor().fit(X, y)
    at = model.grid_[-1] + np.arange(4.0)[:, None]
    mean, deviation = model.predict(at, return_std=True)
    np.testing.assert_allclose(np.diff(mean, 2), 0, atol=SAME)
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


@pytest.mark.parametrize("model", [FieldRegressor(), FieldConditional(points=(12, 40), order=1)])
@pytest.mark.parametrize("slope", [0.0, 3.0])
def test_values_without_noise_are_kept(model, slope):
    X = np.linspace(0, 1, 30)[:, None]
    found = clone(model).fit(X, 2 + slope * X[:, 0])
    np.testing.assert_allclose(found.predict(X), 2 + slope * X[:, 0], atol=1e-4)
    assert np.isfinite(found.log_evidence_)


# FieldConditional


def growing(n, seed=0):
    """Noise that grows with x; its interval is known."""
    draw = np.random.default_rng(seed)
    x = draw.uniform(0, 1, n)
    return x[:, None], np.sin(5 * x) + (0.1 + 0.6 * x) * draw.normal(size=n)


@pytest.fixture(scope="module")
def model():
    return FieldConditional().fit(*growing(600))


def test_every_density_integrates_to_one_and_has_the_mean_and_quantiles_that_it_says(model):
    at = np.array([[-1.0], [0.0], [0.123], [0.5], [0.987], [1.0], [1.5]])
    for one in at:
        middle, (low, high) = model.predict([one])[0], model.predict_interval([one], 0.8)[0]
        y = np.linspace(middle - 8, middle + 8, 20001)
        P = model.predict_density([one], y)[0]
        below = (np.cumsum(P) - P / 2) * (y[1] - y[0])
        assert below[-1] == pytest.approx(1, abs=QUADRATURE)
        assert np.sum(P * y) * (y[1] - y[0]) == pytest.approx(middle, abs=5e-3)
        np.testing.assert_allclose(np.interp([low, high], y, below), [0.1, 0.9], atol=1e-3)
        assert np.interp(model.predict_quantile([one])[0], y, below) == pytest.approx(0.5, abs=1e-3)
    assert model.density_.shape == tuple(len(axis) for axis in model.grid_)
    np.testing.assert_array_equal(model.predict_density(model.grid_[0][:, None]), model.density_)
    assert model.outcome_ == Outcome.converged
    assert model.path_["share"].sum() == pytest.approx(1)
    assert set(model.path_["order"]) == {1, 2}


def test_quantiles_are_where_the_integral_of_the_density_says():
    line = Line(0.0, 1.0, 6, (0.1, 0.3))
    P = np.random.default_rng(0).uniform(0, 1, (3, 6))
    P /= (P @ line.measure)[:, None]
    levels = np.array([0.001, 0.02, 0.3, 0.5, 0.77, 0.97, 0.999])
    x = np.linspace(-1.5, 4, 200_001)
    for one, found in zip(P, conditional.quantiles(line, P, levels), strict=True):
        density = np.exp(Mesh((line,)).log_values(np.log(one), x[:, None]))
        below = (np.cumsum(density) - density / 2) * (x[1] - x[0])
        np.testing.assert_allclose(np.interp(found, x, below), levels, atol=QUADRATURE)


def test_the_interval_holds_as_much_as_it_says(model):
    inside = []
    for seed in range(3):
        fitted = model if seed == 0 else FieldConditional().fit(*growing(600, seed))
        X, y = growing(3000, seed + 100)
        low, high = fitted.predict_interval(X).T
        inside.append((low < y) & (y < high))
        for part in (X[:, 0] < 0.3, X[:, 0] > 0.7):  # also where noise is small, and where it is large
            assert 0.8 < np.mean(inside[-1][part]) < 0.97
    assert 0.85 < np.mean(inside) < 0.95
    ideal = -0.5 * np.log(2 * np.pi * np.e) - np.mean(np.log(0.1 + 0.6 * X[:, 0]))
    assert ideal - 0.08 < np.mean(fitted.score_samples(X, y)) < ideal + 0.05
    assert fitted.score(X, y) > 0.65


def test_few_rows_know_that_their_mean_has_seen_them():
    inside = []
    for seed in range(20):
        X, y = waves(24, seed)
        new = waves(60, 100 + seed)
        low, high = FieldConditional(points=(12, 60), order=1, strength=(1e3, 1.0)).fit(X, y).predict_interval(new[0]).T
        inside.append((low < new[1]) & (new[1] < high))
    assert 0.82 < np.mean(inside) < 0.95


def test_a_width_that_varies_is_kept_only_where_it_says_more(model):
    draw = np.random.default_rng(0)
    X = draw.uniform(0, 1, (300, 1))
    branches = 2 * X[:, 0] * draw.choice([-1, 1], 300) + 0.2 * draw.normal(size=300)
    two = FieldConditional(points=(12, 80), order=2).fit(X, branches)
    assert np.ptp(two._fitted.width.mean) < 1e-6
    assert np.ptp(model._fitted.width.mean) > 1


def test_rows_do_not_hang_on_each_other(model):
    X, y = growing(40)
    order = np.random.default_rng(0).permutation(40)
    for ask in (
        lambda i: model.predict(X[i]),
        lambda i: model.score_samples(X[i], y[i]),
        lambda i: model.predict_interval(X[i]),
    ):
        np.testing.assert_allclose(ask(order), ask(slice(None))[order], rtol=ROUND)
        np.testing.assert_allclose(ask(slice(0, 1)), ask(slice(None))[:1], rtol=ROUND)


def test_what_does_not_hang_on_x_is_found_not_to():
    draw = np.random.default_rng(0)
    X, y = draw.uniform(0, 1, (500, 1)), draw.exponential(size=500)
    model = FieldConditional().fit(X, y)
    sure = model.path_[model.path_["order"] == model.order_]
    assert model.strength_[0] > 0.01 * sure["strength_x"].max()
    low, high = model.predict_interval([[0.1], [0.5], [0.9]]).T
    np.testing.assert_allclose(high, np.mean(high), rtol=0.1)
    np.testing.assert_allclose([np.mean(low), np.mean(high)], -np.log([0.95, 0.05]), atol=0.3)


def test_two_branches_and_few_different_x_are_found():
    draw = np.random.default_rng(0)
    X = draw.integers(0, 3, 600).astype(float)[:, None]
    y = X[:, 0] * draw.choice([-2.0, 2.0], 600) + 0.5 * draw.normal(size=600)
    model = FieldConditional().fit(X, y)
    P = model.predict_density([[0.0], [2.0]], [0.0, 4.0])
    assert P[0, 0] == pytest.approx(0.8, rel=0.2)
    assert P[1, 1] == pytest.approx(0.4, rel=0.2)
    assert P[1, 0] < 0.02


def test_given_strengths_are_used():
    X, y = growing(150)
    model = FieldConditional(order=2, strength=(3.0, 1e-2)).fit(X, y)
    assert (model.order_, model.strength_, len(model.path_)) == (2, (3.0, 1e-2), 1)
    assert model.log_evidence_ < FieldConditional().fit(X, y).log_evidence_ + 5


def test_another_unit_changes_nothing_else():
    X, y = growing(150)
    one, two = (FieldConditional(points=(12, 60), order=1).fit(*data) for data in ((X, y), (7 * X - 1, 3 - 20 * y)))
    np.testing.assert_allclose(two.predict(7 * X - 1), 3 - 20 * one.predict(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        two.predict_interval(7 * X - 1), 3 - 20 * one.predict_interval(X)[:, ::-1], rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        two.score_samples(7 * X - 1, 3 - 20 * y), one.score_samples(X, y) - np.log(20), atol=1e-5
    )
    assert two.log_evidence_ == pytest.approx(one.log_evidence_ - 150 * np.log(20), abs=1e-4)


def question(order):
    draw = np.random.default_rng(0)
    counts = draw.poisson(3, (12, 16)).astype(float) * np.exp(-(np.linspace(-2, 2, 16) ** 2))
    measure = np.full(16, 1 / 16) + 0.01 * np.arange(16)
    return conditional._Question(counts, measure, modes.line_modes(12, order), modes.line_modes(16, 3))


@pytest.mark.parametrize("order", [1, 2])
def test_minimum_and_evidence_are_those_of_the_energy(order):
    ask = question(order)
    strength = (100 * ask.counts.sum() / ask.along.roughness[order], 100 * ask.counts.sum() / ask.across.roughness[3])
    found = conditional._minimum(ask, strength, np.zeros((0, 0)), 1.0)
    size, n = found.coefficients.shape, ask.counts.sum()
    K = strength[0] * ask.along.roughness[: size[0], None] + strength[1] * ask.across.roughness[1 : size[1] + 1]
    u, v = ask.along.fields[:, : size[0]], ask.across.fields[:, 1 : size[1] + 1]

    def energy(c):
        c = c.reshape(size)
        g = u @ c @ v.T
        log_Z = jax.nn.logsumexp(g + jnp.log(ask.measure), axis=1)
        return -jnp.sum(ask.counts * (g - log_Z[:, None])) + 0.5 * jnp.sum(K * c**2)

    with jax.enable_x64(True):
        look = jax.jit(lambda c: (jax.grad(energy)(c), jax.hessian(energy)(c), energy(c)))
        slope, H, E = (np.asarray(part) for part in look(found.coefficients.ravel()))
    np.testing.assert_allclose(slope, 0, atol=1e-5)
    free = np.zeros(size, bool)
    free[:order, :2] = True
    free = free.ravel()
    unit = (H - np.diag(K.ravel()))[np.ix_(free, free)] / n
    expected = -E + 0.5 * (np.sum(np.log(K.ravel()[~free])) - np.linalg.slogdet(H)[1] + np.linalg.slogdet(unit)[1])
    assert found.evidence == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(found.density @ ask.measure, 1)


def test_the_minimum_is_as_sharp_as_rounding_allows():
    ask, strength = question(1), (0.1, 1e-5)
    found = conditional._minimum(ask, strength, np.zeros((0, 0)), 1.0)
    draw = np.random.default_rng(1)
    for _ in range(3):
        begun = found.coefficients + draw.normal(size=found.coefficients.shape)
        other = conditional._minimum(ask, strength, begun, 1.0)
        np.testing.assert_allclose(other.density, found.density, rtol=EXACT)
        assert other.evidence == pytest.approx(found.evidence, rel=EXACT)


def test_a_density_that_does_not_hang_on_x_is_that_of_one_column():
    ask = question(1)
    found = conditional._minimum(
        ask, (1e12, 1e-4 * 11 / 12), np.zeros((0, 0)), 1.0
    )  # 12 points of length 1/11 each along x
    counts = ask.counts.sum(axis=0)
    alone = modes.minimum(ask.across, counts, ask.measure, 1e-4, np.zeros(0))
    np.testing.assert_allclose(found.density, np.broadcast_to(np.exp(alone.field), (12, 16)), rtol=1e-6)


# What they refuse

X, Y = waves(30)
BAD = {
    "no rows": (FieldRegressor(), X[:0], Y[:0], {}, "minimum of 1 is required"),
    "one row": (FieldRegressor(), X[:1], Y[:1], {}, "at least two different values .* n_samples=1 values of column 0"),
    "one x": (FieldConditional(), 0 * X, Y, {}, "at least two different values"),
    "nan": (FieldRegressor(), np.where(X > 2, np.nan, X), Y, {}, "NaN"),
    "nan value": (FieldConditional(), X, np.where(Y > 0.5, np.nan, Y), {}, "NaN"),
    "words": (FieldRegressor(), X, np.full(30, "a"), {}, "`y` must be real numbers"),
    "too large": (FieldRegressor(), 1e300 * X, Y, {}, "`X` must lie strictly between"),
    "too large value": (FieldRegressor(), X, 1e300 * Y, {}, "`y` must lie strictly between"),
    "three columns": (FieldRegressor(), np.ones((30, 3)), Y, {}, "one or two columns, but it has 3"),
    "two columns": (FieldConditional(), np.ones((30, 2)), Y, {}, "one column, but it has 2"),
    "one line in a plane": (FieldRegressor(order=2), np.hstack([X, X]), Y, {}, "do not decide"),
    "two rows": (FieldRegressor(order=2), X[:2], Y[:2], {}, "more different rows than there are free polynomials, 2"),
    "negative weight": (FieldRegressor(), X, Y, {"sample_weight": -np.ones(30)}, "[Nn]egative"),
    "no weight": (FieldConditional(), X, Y, {"sample_weight": np.zeros(30)}, "at least one non-zero"),
    "few points": (FieldRegressor(points=5), X, Y, {}, "`points` must be at least 12"),
    "one number of points": (FieldConditional(points=20), X, Y, {}, "`points` must be two numbers"),
    "few points along y": (FieldConditional(points=(20, 3)), X, Y, {}, "`points` must be at least 12"),
    "order zero": (FieldRegressor(order=0), X, Y, {}, "`order` must be at least 1"),
    "order seven": (FieldRegressor(order=7), X, Y, {}, "`order` must be at most 6"),
    "order seven along x": (FieldConditional(order=7), X, Y, {}, "`order` must be at most 6"),
    "strength alone": (FieldRegressor(strength=1.0), X, Y, {}, "`order` must be given together"),
    "one strength": (FieldConditional(order=1, strength=3.0), X, Y, {}, "`strength` must be two numbers"),
    "negative strength": (FieldConditional(order=1, strength=(3.0, -1.0)), X, Y, {}, "`strength` must be positive"),
    "strengths alone": (FieldConditional(strength=(3.0, 1.0)), X, Y, {}, "`order` must be given together"),
    "negative noise": (FieldRegressor(noise=-1.0), X, Y, {}, "`noise` must be positive"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    model, rows, values, options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        model.fit(rows, values, **options)


def test_bad_questions_are_refused(model):
    with pytest.raises(ValueError, match="`level` must lie strictly between 0 and 1"):
        model.predict_interval(X, level=1.0)
    with pytest.raises(ValueError, match="`y` must be finite"):
        model.predict_density(X, [np.nan])
    with pytest.raises(ValueError, match="`y` must have one number for each of the 30 rows"):
        model.score_samples(X, Y[:3])
    with pytest.raises(ValueError, match="expecting 1 features"):
        model.predict(np.ones((3, 2)))
    for method in ("predict", "predict_density", "predict_interval", "predict_quantile"):
        with pytest.raises(NotFittedError):
            getattr(FieldConditional(), method)(X)
    with pytest.raises(NotFittedError):
        FieldRegressor().predict(X)


def test_clone_pickle_and_search(model):
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    search = GridSearchCV(FieldRegressor(order=2), {"strength": [1e-4, 1e6]}, cv=3).fit(*waves(90))
    assert search.best_params_["strength"] == 1e-4


def test_a_conditional_density_describes_itself_and_is_drawn():
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"area": draw.uniform(1, 3, size=60)})
    price = pd.Series(frame["area"] + 0.1 * draw.normal(size=60), name="price")
    model = FieldConditional().fit(frame, price)
    found = model.describe(level=0.5)
    assert (found.attrs["given"], found.attrs["column"], found.attrs["rows"]) == ("area", "price", 60)
    at = pd.DataFrame({"area": found.given.values})
    np.testing.assert_array_equal(np.transpose([found.low, found.high]), model.predict_interval(at, 0.5))
    np.testing.assert_array_equal(found["mean"], model.predict(at))
    np.testing.assert_array_equal(found["median"], model.predict_quantile(at))
    np.testing.assert_array_equal([found.row_given, found.row_value], [frame["area"], price])
    assert (found.given.values[[0, -1]] == [frame["area"].min(), frame["area"].max()]).all()
    ax = quenched.plot(found).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("area", "price")
    drawn = ax.collections[0].get_array()  # the density itself, in which branches show
    np.testing.assert_array_equal(np.reshape(drawn, found.density.T.shape), found.density.T)
    with pytest.raises(NotFittedError):
        FieldConditional().describe()
