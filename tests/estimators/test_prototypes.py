"""The estimators: scikit-learn's own checks, weights, probabilities, and what they reach on real data."""

import pickle
import warnings

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score, log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quenched.core.types import Outcome
from quenched.estimators import LVQClassifier, VQClusterer
from quenched.estimators.prototypes import temperature
from quenched.prototypes.model import GMLVQ, LVQ1, LVQ21, RSLVQ, VQ, Decay, Interpolated, LVQPlus, Rule
from tests.estimators.checks import each_check
from tests.tolerances import SAME

ORDER = (
    "on-line learning depends on the order of presentation and the check shuffles the weighted rows; "
    "test_weights_are_repetitions proves the equivalence in the same order"
)
EXPECTED = {"check_sample_weight_equivalence_on_dense_data": ORDER}
MEANS_KEPT = "ignore:.*the class means are kept:sklearn.exceptions.ConvergenceWarning"
"""Rows without meaning, and few of them: what is learned is often no better than class means."""
ON_LINE = LVQ1(Interpolated((0.1, 0.001), until=30))


def expected(estimator):
    return {} if isinstance(estimator, LVQClassifier) and estimator.rule is None else EXPECTED


@pytest.mark.filterwarnings(MEANS_KEPT)
@each_check(LVQClassifier(), LVQClassifier(ON_LINE, fallback=False), VQClusterer(), expected=expected)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(rows=90, seed=0):
    X, y = make_blobs(rows, n_features=3, centers=4, cluster_std=2.5, random_state=seed)
    return X, np.minimum(y, 2)


# Weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("rule", [None, GMLVQ(), RSLVQ(), LVQ1(0.3), LVQPlus(Decay(0.3, 3.0)), LVQ21(0.02)])
def test_weights_are_repetitions(rule, standardize):
    X, y = blobs()
    times = np.random.default_rng(0).integers(0, 4, len(X))
    window = 0.3 if isinstance(rule, LVQ21) else None
    model = LVQClassifier(
        rule,
        prototypes_per_class=2,
        passes=None if isinstance(rule, Rule) else 5,  # rounding grows along a descent
        window=window,
        standardize=standardize,
        fallback=False,
        shuffle=False,
        random_state=0,
    )
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    removed = clone(model).fit(X[times > 0], y[times > 0], sample_weight=times[times > 0])
    assert not np.allclose(weighted.prototypes_, clone(model).fit(X, y).prototypes_, atol=1e-3)
    np.testing.assert_array_equal(weighted.predict_proba(X), removed.predict_proba(X))
    np.testing.assert_allclose(weighted.prototypes_, repeated.prototypes_, rtol=0, atol=SAME)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=0, atol=1e-6)


def test_cluster_weights_are_repetitions():
    X, _ = blobs()
    times = np.random.default_rng(0).integers(0, 4, len(X))
    model = VQClusterer(4, shuffle=False, random_state=0)
    weighted = clone(model).fit(X, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0))
    removed = clone(model).fit(X[times > 0], sample_weight=times[times > 0])
    np.testing.assert_array_equal(weighted.cluster_centers_, removed.cluster_centers_)
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=0, atol=SAME)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=SAME)
    assert len(weighted.labels_) == len(X)


# Probabilities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_agree_with_predictions(classes):
    X, y = blobs()
    y = np.minimum(y, classes - 1)
    model = LVQClassifier(prototypes_per_class=2, random_state=0).fit(X, y)
    p, decision = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    if classes == 2:
        np.testing.assert_array_equal(decision > 0, model.predict(X) == model.classes_[1])
        np.testing.assert_allclose(decision / model.temperature_, np.log(p[:, 1] / p[:, 0]))
    else:
        np.testing.assert_array_equal(model.classes_[decision.argmax(axis=1)], model.predict(X))


def test_temperature_of_gaussian_clusters_is_twice_their_variance():
    # Equally likely spherical clusters: log P(c|x) = -|x - m_c|^2 / (2 v) + constant, exactly.
    rng = np.random.default_rng(0)
    centres, v = 2 * rng.normal(size=(3, 5)), 1.7
    codes = np.arange(30_000) % 3
    x = centres[codes] + np.sqrt(v) * rng.normal(size=(len(codes), 5))
    squared = ((x[:, None] - centres) ** 2).sum(axis=2)
    assert temperature(squared, codes, np.ones(len(codes))) == pytest.approx(2 * v, rel=0.03)


def test_temperature_is_the_best_and_stays_positive():
    X, y = blobs()
    model = LVQClassifier(fallback=False, random_state=0).fit(X, y)
    squared = -model.decision_function(X)
    losses = [log_loss(y, np.exp(-squared / t) / np.exp(-squared / t).sum(axis=1, keepdims=True))
              for t in model.temperature_ * np.array([0.5, 0.8, 1.0, 1.25, 2.0])]  # fmt: skip
    assert np.argmin(losses) == 2
    # Separated perfectly: each row's own class has 1 - d + d/2 of its four rows' doubt d = 1/6, not all.
    apart = LVQClassifier(ON_LINE, random_state=0).fit([[0.0], [0.0], [9.0], [9.0]], [0, 0, 1, 1])
    np.testing.assert_allclose(apart.predict_proba([[0.0], [9.0]]).max(axis=1), 1 - 1 / 12, rtol=1e-3)
    same = LVQClassifier(random_state=0).fit(np.ones((4, 1)), [0, 0, 1, 1])
    np.testing.assert_allclose(same.predict_proba(np.ones((1, 1))), 0.5)


# Real data -------------------------------------------------------------------------------------------------------


def test_iris():
    X, y = load_iris(return_X_y=True)
    model = LVQClassifier(prototypes_per_class=3, standardize=True, random_state=0)
    assert cross_val_score(model, X, y, cv=5).mean() > 0.93


@pytest.mark.parametrize(
    ("model", "least"),
    [
        (LVQClassifier(prototypes_per_class=10, standardize=True, random_state=0), 0.945),
        (
            LVQClassifier(
                LVQ21(Interpolated((0.05, 0.0005), until=20)),
                prototypes_per_class=5,
                passes=20,
                window=0.1,
                standardize=True,
                random_state=0,
            ),
            0.96,
        ),
    ],
    ids=["LVQ1", "LVQ2.1"],
)
def test_digits(model, least):
    train, test, y_train, y_test = train_test_split(
        *load_digits(return_X_y=True), test_size=0.3, random_state=1, stratify=load_digits().target
    )
    fitted = clone(model).fit(train, y_train)
    assert fitted.score(test, y_test) > least
    assert log_loss(y_test, fitted.predict_proba(test)) < 0.3


def test_clusters_as_good_as_k_means():
    X, _ = load_digits(return_X_y=True)
    ours = VQClusterer(10, random_state=0).fit(X)
    theirs = KMeans(10, n_init=1, random_state=0).fit(X)
    assert ours.inertia_ < 1.03 * theirs.inertia_
    X, y = make_blobs(300, centers=3, cluster_std=0.5, random_state=3)
    assert adjusted_rand_score(y, VQClusterer(3, random_state=0).fit_predict(X)) > 0.95


def test_cluster_attributes():
    X, _ = blobs()
    model = VQClusterer(4, random_state=0).fit(X)
    distances = model.transform(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.labels_)
    assert (distances.min(axis=1) ** 2).sum() == pytest.approx(model.inertia_)
    assert list(model.get_feature_names_out()) == [f"vqclusterer{k}" for k in range(4)]
    assert model.trace_.quantisation.shape == (30,)


# Living with scikit-learn ----------------------------------------------------------------------------------------


def test_standardising_is_the_pipeline():
    X, y = blobs()
    X = X * [1.0, 100.0, 0.01] + [0.0, 5.0, 7.0]
    inside = LVQClassifier(prototypes_per_class=2, standardize=True, random_state=0).fit(X, y)
    outside = make_pipeline(StandardScaler(), LVQClassifier(prototypes_per_class=2, random_state=0)).fit(X, y)
    np.testing.assert_allclose(inside.predict_proba(X), outside.predict_proba(X), atol=1e-9)
    units = outside[0].inverse_transform(outside[1].prototypes_)
    np.testing.assert_allclose(inside.prototypes_, units)


def test_names_of_classes_and_columns():
    X, y = blobs()
    words = np.array(["apple", "pear", "plum"])
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    numbers = LVQClassifier(prototypes_per_class={0: 1, 1: 2, 2: 3}, random_state=0).fit(X, y)
    named = LVQClassifier(prototypes_per_class={"apple": 1, "pear": 2, "plum": 3}, random_state=0).fit(frame, words[y])
    np.testing.assert_array_equal(named.predict(frame), words[numbers.predict(X)])
    assert named.prototype_labels_.tolist() == ["apple", "pear", "pear", "plum", "plum", "plum"]
    assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    assert named.n_features_in_ == 3


class Product(Rule):
    """A user's rule in the paper's letters: it needs to see +1 and -1."""

    def g(self, S, sigma):
        return jnp.asarray(S * sigma, float)


def test_a_rule_sees_whole_number_classes_as_they_are():
    X, y = blobs()
    y = np.where(y == 0, -1, 1)
    own, lvq1 = (
        LVQClassifier(rule, prototypes_per_class=2, fallback=False, random_state=0).fit(X, y)
        for rule in (Product(0.1), LVQ1(0.1))
    )
    np.testing.assert_array_equal(own.prototypes_, lvq1.prototypes_)


def test_search_clone_and_pickle():
    X, y = blobs()
    model = LVQClassifier(passes=5, fallback=False, random_state=0)
    search = GridSearchCV(model, {"rule": [LVQ1(0.05), LVQPlus(0.05), GMLVQ()]}, cv=2).fit(X, y)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))


@pytest.mark.parametrize("batches", [1, 3])
def test_partial_fit_goes_on(batches):
    X, y = blobs()
    model = LVQClassifier(prototypes_per_class=2, passes=batches, shuffle=False, fallback=False, random_state=0)
    on_line = LVQ1(Interpolated((0.1, 0.001), until=batches))  # the default of `partial_fit`
    whole, parts = clone(model).set_params(rule=on_line).fit(X, y), clone(model)
    for _ in range(batches):
        parts.partial_fit(X, y, classes=[0, 1, 2])
    np.testing.assert_array_equal(parts.prototypes_, whole.prototypes_)
    assert parts.n_iter_ == whole.n_iter_ == batches
    assert parts.temperature_ == whole.temperature_
    parts.partial_fit(X[y == 1], y[y == 1])  # later batches need not hold every class
    clusters, several = (
        VQClusterer(3, passes=batches, shuffle=False, random_state=0),
        VQClusterer(3, passes=batches, random_state=0),
    )
    clusters.fit(X)
    for _ in range(batches):
        several.partial_fit(X)
    np.testing.assert_array_equal(several.cluster_centers_, clusters.cluster_centers_)


# What goes wrong -------------------------------------------------------------------------------------------------


def test_running_away_warns():
    X, y = make_blobs([60, 10], random_state=0)
    model = LVQClassifier(LVQ21(0.1, window=1.0), passes=100, fallback=False, random_state=0)
    with pytest.warns(ConvergenceWarning, match="LVQ21 diverged in pass"):
        model.fit(X, y)
    assert model.outcome_ == Outcome.diverged
    assert np.all(np.isfinite(model.prototypes_))
    assert np.all(np.isfinite(model.predict_proba(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LVQClassifier(LVQ1(0.1), random_state=0).fit(X, y)


X, Y = blobs()
BAD = {
    "nan": (LVQClassifier(), np.where(X > 5, np.nan, X), Y, {}, "NaN"),
    "infinite": (LVQClassifier(), np.where(X > 5, np.inf, X), Y, {}, "infinity"),
    "one class": (LVQClassifier(), X, 0 * Y, {}, "two classes or more, but it has one class"),
    "one class by weight": (LVQClassifier(), X, Y, {"sample_weight": Y == 1}, "two classes or more"),
    "y too short": (LVQClassifier(), X, Y[:-1], {}, "inconsistent numbers of samples"),
    "y real": (LVQClassifier(), X, X[:, 0], {}, "Unknown label type"),
    "empty": (LVQClassifier(), X[:0], Y[:0], {}, "0 sample"),
    "no prototype": (LVQClassifier(prototypes_per_class=0), X, Y, {}, "at least 1"),
    "too many": (LVQClassifier(prototypes_per_class=70), X, Y, {}, "must not exceed the rows of a class"),
    "class not named": (LVQClassifier(prototypes_per_class={0: 1}), X, Y, {}, "must name the classes"),
    "no pass": (LVQClassifier(passes=0), X, Y, {}, "`passes` must be at least 1"),
    "word for a rule": (LVQClassifier("LVQ1"), X, Y, {}, "must be a rule such as"),
    "negative weight": (LVQClassifier(), X, Y, {"sample_weight": -Y}, "[Nn]egative"),
    "clusters": (VQClusterer(91), X, None, {}, "must not exceed the rows"),
    "no cluster": (VQClusterer(0), X, None, {}, "at least 1"),
    "clusters by weight": (VQClusterer(50), X, None, {"sample_weight": Y == 1}, "must not exceed the rows"),
    "rule with labels": (VQClusterer(rule=LVQ1(0.1)), X, None, {}, "must be \\(X, y\\) for LVQ1"),
    "clusters, nan": (VQClusterer(), np.where(X > 5, np.nan, X), None, {}, "NaN"),
    "clusters, negative weight": (VQClusterer(), X, None, {"sample_weight": -Y}, "[Nn]egative"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    model, X, y, options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **options)


@pytest.mark.filterwarnings(MEANS_KEPT)
def test_partial_fit_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="`standardize` must be False"):
        LVQClassifier(standardize=True).partial_fit(X, Y)
    with pytest.raises(ValueError, match="every class in the first batch, but \\[3\\] are missing"):
        LVQClassifier().partial_fit(X, Y, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="known classes only, but \\[3\\] are new"):
        LVQClassifier().fit(X, Y).partial_fit(X, Y + 1)


def test_not_fitted():
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(LVQClassifier(), method)(X)
    with pytest.raises(NotFittedError):
        VQClusterer(rule=VQ(0.1)).transform(X)
