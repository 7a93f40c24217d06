"""ClusterFinder: scikit-learn's own checks, what it finds, and that it is `find_clusters`."""

from typing import Any

import jax
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import quenched
from benchmarks.cluster_worlds import known_number, one_cluster
from quenched.core.types import InputError
from quenched.estimators import ClusterFinder
from tests.estimators.checks import each_check


@each_check(ClusterFinder(components=4), expected=lambda one: {})
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def three():
    X, K = known_number(1, 3)
    return X, K, ClusterFinder(random_state=0).fit(X)


def test_clusters_are_found_with_their_p_values(three):
    X, K, model = three
    assert model.n_clusters_ == K == len(model.shares_) == 3
    assert np.sum(model.p_values_ < model.level) == K - 1
    assert model.p_values_.shape == model.rows_needed_.shape == (model.splits_.sizes["split"],)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_array_equal(model.labels_, model.predict_proba(X).argmax(axis=1))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert np.all(np.diff(np.bincount(model.labels_)) <= 0)
    assert quenched.plot(model.splits_).axes


def test_it_is_the_verb(three):
    X, K, model = three
    found = quenched.mixtures.find_clusters(X, key=jax.random.key(0))
    assert found.count == model.n_clusters_ == K
    assert adjusted_rand_score(found.labels, model.labels_) > 0.95


def test_one_cluster_has_no_small_p_and_knows_rows_that_would_be_needed():
    X = one_cluster(2, 7)  # skewed columns
    model: Any = make_pipeline(StandardScaler(), ClusterFinder(random_state=0)).fit(X)[-1]
    assert model.n_clusters_ == 1
    assert not model.labels_.any()
    assert np.all(model.p_values_ >= model.level)
    assert np.all(model.rows_needed_ > 0)


def test_draws_of_one_gaussian_give_another_p():
    X = np.vstack([np.random.default_rng(0).normal(size=(60, 2)) + c for c in (0.0, 5.0)])
    model = ClusterFinder(draws=19, components=2, random_state=0).fit(X)
    assert float(model.splits_.p_gaussian[0]) == pytest.approx(1 / 20)
    assert "p_gaussian" not in ClusterFinder(components=2, random_state=0).fit(X).splits_


def test_a_column_that_never_varies_changes_nothing(three):
    X, _, model = three
    more = np.insert(X, 1, 5.0, axis=1)
    found = ClusterFinder(random_state=0).fit(more)
    np.testing.assert_array_equal(found.predict(more), model.labels_)
    np.testing.assert_allclose(found.predict_proba(more), model.predict_proba(X), rtol=1e-9, atol=1e-12)


def test_two_narrow_spikes_are_two_clusters():
    spikes = np.repeat([0.0, 1.0], 100) + 1e-9 * np.random.default_rng(0).normal(size=200)
    assert ClusterFinder(random_state=0).fit(spikes[:, None]).n_clusters_ == 2


def test_weights_are_repetitions(three):
    X, _, _ = three
    times = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = ClusterFinder(components=4, random_state=0).fit(X, sample_weight=times)
    repeated = ClusterFinder(components=4, random_state=0).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.p_values_, repeated.p_values_)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"level": 2.0}, "`level` must lie"),
        ({"components": 0}, "`components` must be at least 1"),
        ({"draws": -1}, "`draws` must be at least 0"),
    ],
)
def test_bad_input_raises_one_sentence(given, sentence):
    with pytest.raises(InputError, match=sentence):
        ClusterFinder(**given).fit(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.raises(InputError, match="must hold at least 3 rows, but it has n_samples=2"):
        ClusterFinder().fit(np.arange(4.0).reshape(2, 2))
    with pytest.raises(InputError, match="must hold different rows, but those of n_samples=30 are the same"):
        ClusterFinder().fit(np.ones((30, 2)))
