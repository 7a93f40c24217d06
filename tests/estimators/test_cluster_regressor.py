"""ClusterRegressor: branches that cross, scikit-learn's checks, and bad input; losses of FieldRegressor."""

import numpy as np
import pytest
from sklearn.base import clone

from quenched.estimators import ClusterRegressor, FieldRegressor
from tests.estimators.checks import each_check
from tests.estimators.rows import waves
from tests.estimators.test_field_checks import NARROW, ONE, VALUES, WIDE, OneColumn

REWRITTEN = 1e-9  # one minimum, reached from data written down in two ways


class OneCluster(OneColumn, ClusterRegressor):
    pass


EXPECTED = {ClusterRegressor: WIDE | NARROW, OneCluster: ONE | VALUES}


@each_check(
    ClusterRegressor(points=20, strength=1.0, n_init=2, random_state=0),
    OneCluster(points=20, strength=1.0, n_init=2, random_state=0),
    expected=lambda e: EXPECTED[type(e)],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def branches(n=200, seed=0):
    """A wave and a line that crosses it, which rows are on which, and both functions."""
    rng = np.random.default_rng(seed)
    x, on = rng.uniform(-1.5, 1.5, n), rng.integers(0, 2, n)
    both = np.stack([1 - x, np.sin(2 * x)], axis=1)
    return x[:, None], both[np.arange(n), on] + 0.1 * rng.normal(size=n), on, both


def test_branches_that_cross_are_told_apart():
    x, y, on, both = branches()
    model = ClusterRegressor(random_state=0).fit(x, y)
    found = model.predict_functions(x)
    exchanged = int(np.mean((found - both) ** 2) > np.mean((found[:, ::-1] - both) ** 2))
    found = found[:, ::-1] if exchanged else found
    assert np.sqrt(np.mean((found - both) ** 2)) < 0.06
    assert np.sqrt(model.noise_) == pytest.approx(0.1, rel=0.2)
    np.testing.assert_allclose(model.portions_, 0.5, atol=0.1)
    sure = model.predict_branch(x, y)
    far = np.abs(both[:, 0] - both[:, 1]) > 0.6
    assert np.mean(sure.argmax(axis=1)[far] == (1 - on[far] if exchanged else on[far])) > 0.97
    density = [np.exp(model.score_samples(np.full((801, 1), 0.3), np.linspace(-4, 4, 801))).sum() * 0.01]
    assert density[0] == pytest.approx(1, abs=1e-6)


def test_the_same_rows_in_another_order_give_the_same_functions():
    x, y, _, _ = branches(60)
    weights = np.random.default_rng(1).integers(0, 3, 60)
    order = np.random.default_rng(2).permutation(np.arange(60).repeat(weights))
    one, two = (ClusterRegressor(strength=0.1, random_state=0) for _ in range(2))
    one.fit(x, y, weights)
    two.fit(x[order], y[order])
    np.testing.assert_allclose(two.functions_, one.functions_, rtol=REWRITTEN, atol=REWRITTEN)


X, Y = waves(30)
BAD = {
    "two columns": (np.hstack([X, X]), Y, {}, "one column, but it has 2"),
    "few rows": (X[:3], Y[:3], {}, "at least 4 different rows for 2 functions"),
    "one function": (X, Y, {"n_functions": 1}, "`n_functions` must be at least 2"),
    "strength": (X, Y, {"strength": 0.0}, "`strength` must be positive"),
    "starts": (X, Y, {"n_init": 0}, "`n_init` must be at least 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    rows, values, options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        ClusterRegressor(**options).fit(rows, values)


# Losses of FieldRegressor


def wild(n=150, seed=0):
    """A wave with noise, of which every seventh value is wild."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 3, (n, 1))
    h = np.sin(3 * x[:, 0])
    y = h + 0.1 * rng.normal(size=n)
    return x, np.where(rng.uniform(size=n) < 0.15, y + 5 * rng.normal(size=n), y), h


@pytest.mark.parametrize(("loss", "share"), [("absolute", 0.2), ("huber", 0.25), ("epsilon", 0.6)])
def test_wild_values_do_not_pull_the_function_away(loss, share):
    x, y, h = wild()
    squared, robust = (
        np.sqrt(np.mean((FieldRegressor(loss=one).fit(x, y).predict(x) - h) ** 2)) for one in ("squared", loss)
    )
    assert robust < share * squared


def test_evidence_prefers_the_noise_that_is_there():
    x, y, h = wild()
    assert FieldRegressor(loss="absolute").fit(x, y).log_evidence_ > FieldRegressor().fit(x, y).log_evidence_ + 50
    tame = h + 0.1 * np.random.default_rng(3).normal(size=len(h))
    assert FieldRegressor().fit(x, tame).log_evidence_ > FieldRegressor(loss="absolute").fit(x, tame).log_evidence_


@pytest.mark.parametrize("loss", ["absolute", "huber", "epsilon"])
def test_a_robust_fit_has_a_deviation_and_counts_weights(loss):
    x, y, h = wild(60)
    weights = np.random.default_rng(1).integers(0, 4, 60)
    order = np.random.default_rng(2).permutation(np.arange(60).repeat(weights))
    model = FieldRegressor(loss=loss, order=2, strength=1e-3, noise=0.05)
    one, two = clone(model).fit(x, y, weights), clone(model).fit(x[order], y[order])
    mean, deviation = one.predict(x, return_std=True)
    np.testing.assert_allclose(two.predict(x), mean, rtol=1e-6, atol=1e-8)
    assert np.all(deviation > 0)
    assert np.mean((mean - h) ** 2 / deviation**2) < 9


def test_a_loss_that_is_none_is_refused():
    with pytest.raises(ValueError, match='`loss` must be "squared", "absolute", "huber" or "epsilon"'):
        FieldRegressor(loss="cubic").fit(X, Y)
