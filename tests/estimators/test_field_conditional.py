"""FieldConditional: normalisation, calibration, evidence and what it finds."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import quenched
from quenched import fields
from quenched.core.types import Outcome
from quenched.estimators import FieldConditional, FieldRegressor
from quenched.fields.model.parametrisations import Logits
from quenched.fields.practice import conditional
from tests import programs
from tests.estimators.rows import growing, waves
from tests.tolerances import ALGEBRA

REWRITTEN = 1e-11  # one minimum, reached from data written down in two ways
KINKS = 1e-4  # quadrature of a density with kinks at 160 points, on 20001 places


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
        assert below[-1] == pytest.approx(1, abs=KINKS)
        assert np.sum(P * y) * (y[1] - y[0]) == pytest.approx(middle, abs=5e-3)
        np.testing.assert_allclose(np.interp([low, high], y, below), [0.1, 0.9], atol=1e-3)
        assert np.interp(model.predict_quantile([one])[0], y, below) == pytest.approx(0.5, abs=1e-3)
    assert model.density_.shape == tuple(len(axis) for axis in model.grid_)
    np.testing.assert_array_equal(model.predict_density(model.grid_[0][:, None]), model.density_)
    assert model.outcome_ == Outcome.converged
    assert model.path_["share"].sum() == pytest.approx(1)
    assert set(model.path_["order"]) == {1, 2}


def test_quantiles_are_where_the_integral_of_the_density_says():
    line = fields.Axis(0.0, 1.0, 6, tails=(0.1, 0.3))
    P = np.random.default_rng(0).uniform(0, 1, (3, 6))
    P /= (P @ line.weights)[:, None]
    levels = np.array([0.001, 0.02, 0.3, 0.5, 0.77, 0.97, 0.999])
    x = np.linspace(-1.5, 4, 200_001)
    for one, found in zip(P, conditional.quantiles(line, P, levels), strict=True):
        density = np.exp(fields.Grid(over=[line]).log_values(np.log(one), x[:, None]))
        below = (np.cumsum(density) - density / 2) * (x[1] - x[0])
        np.testing.assert_allclose(np.interp(found, x, below), levels, atol=KINKS)


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
        np.testing.assert_allclose(ask(order), ask(slice(None))[order], rtol=ALGEBRA)
        np.testing.assert_allclose(ask(slice(0, 1)), ask(slice(None))[:1], rtol=ALGEBRA)


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


def question(order, strength):
    x, r = fields.Axis(0, 1, 12, tails=(0, 0)), fields.Axis(-2, 2, 16, tails=(0.3, 0.5))
    grid = fields.Grid(given=[x], over=[r])
    counts = np.random.default_rng(0).poisson(3, (12, 16)).astype(float) * np.exp(-(r.coordinates**2))
    data = fields.DensityData(None, None, counts)
    K = strength[0] * fields.ThinPlate(grid, order, x) + strength[1] * fields.ThinPlate(grid, 3, r)
    return fields.Problem(data, Logits(grid), fields.Gaussian(K))


@pytest.mark.parametrize("order", [1, 2])
def test_minimum_and_evidence_are_those_of_the_energy(order):
    problem = question(order, (3.0, 1e-2))
    fit = fields.solve(problem, modes=(12, 16))
    n, grid, K = problem.likelihood.total, problem.grid, problem.grid.cell * fit.modes.values.ravel()
    u, v, size = fit.modes.given, fit.modes.over, fit.modes.values.shape
    counts, weights = problem.likelihood.counts, grid.weights[0]

    def energy(c):
        g = u @ c.reshape(size) @ v.T
        log_Z = jax.nn.logsumexp(g + jnp.log(weights), axis=1)
        return -jnp.sum(counts * (g - log_Z[:, None])) + 0.5 * jnp.sum(K * c**2)

    with jax.enable_x64(True):
        look = programs.compiled(lambda c: (jax.grad(energy)(c), jax.hessian(energy)(c), energy(c)))
        slope, H, E = (np.asarray(part) for part in look(fit.modes.coefficients(fit.field)))
    np.testing.assert_allclose(slope, 0, atol=1e-5)
    free = K == 0
    assert free.sum() == 2 * order
    unit = (H - np.diag(K))[np.ix_(free, free)] / n
    expected = -E + 0.5 * (np.sum(np.log(K[~free])) - np.linalg.slogdet(H)[1] + np.linalg.slogdet(unit)[1])
    found = fields.laplace(problem, fit, unit_information=True).log_evidence
    assert found == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(fit.density @ weights, 1)


def test_the_minimum_is_as_sharp_as_rounding_allows():
    problem = question(1, (0.1, 1e-5))
    found = fields.solve(problem, modes=True)
    draw = np.random.default_rng(1)
    for _ in range(3):
        other = fields.solve(problem, modes=True, start=fields.Given(found.field + draw.normal(size=(12, 16))))
        np.testing.assert_allclose(other.density, found.density, rtol=REWRITTEN)
        evidence = [fields.laplace(problem, fit, unit_information=True).log_evidence for fit in (other, found)]
        assert evidence[0] == pytest.approx(evidence[1], rel=REWRITTEN)


def test_a_density_that_does_not_hang_on_x_is_that_of_one_column():
    problem = question(1, (1e12, 1e-4 * 11 / 12))  # 12 points of length 1/11 each along x
    found = fields.solve(problem, modes=True)
    grid = fields.Grid(over=problem.grid.over)
    data = fields.DensityData(None, None, problem.likelihood.counts.sum(axis=0))
    prior = fields.Gaussian(1e-4 * fields.ThinPlate(grid, 3))
    alone = fields.solve(fields.Problem(data, fields.LogDensity(grid), prior), modes=True)
    np.testing.assert_allclose(found.density, np.broadcast_to(alone.density, (12, 16)), rtol=1e-6)


X, Y = waves(30)


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
