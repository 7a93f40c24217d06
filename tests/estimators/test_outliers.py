"""Outlier selection: scikit-learn's own checks, probabilities, weights, and what it reaches on real data."""

import pickle
import warnings

import jax
import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.covariance import oas
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from quenched import outliers
from quenched.core.types import Outcome
from quenched.estimators import HardSelectionClassifier, SoftSelectionClassifier
from quenched.outliers.learner.shapes import shrink
from tests.tolerances import FIXED_POINT, SAME

BOTH = [SoftSelectionClassifier, HardSelectionClassifier]
both = pytest.mark.parametrize("kind", BOTH)


@pytest.mark.filterwarnings("ignore:Another selection")  # some of these tables have labels at random
@parametrize_with_checks([kind(standardize=s) for kind in BOTH for s in (False, True)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(seed=2):
    """Three classes, a quarter of the rows with the wrong label, some rows far away."""
    X, y = make_blobs(160, centers=3, n_features=3, cluster_std=1.5, random_state=seed)
    rng = np.random.default_rng(seed)
    wrong = rng.permutation(160)[:40]
    noisy = y.copy()
    noisy[wrong] = (y[wrong] + 1) % 3
    X[wrong[:15]] *= 3
    return X, noisy, y, np.isin(np.arange(160), wrong)


def densities(model, X):
    """Of each class at the rows, and of the outliers, by scipy."""
    deviation = model.gamma_**-0.5
    inside = [stats.norm(c, deviation).pdf(X).prod(axis=1) for c in model.centres_]
    middle = model._units.back(model._fitted.midpoint)
    return np.transpose(inside), stats.norm(middle, deviation * model.outlier_spread_**0.5).pdf(X).prod(axis=1)


def test_probabilities_are_those_of_the_model():
    X, y, _, _ = blobs()
    model = SoftSelectionClassifier().fit(X, y)
    inside, outside = densities(model, X)
    f, share = model.outlier_fraction_, np.bincount(y) / len(y)
    np.testing.assert_allclose(model.class_prior_, share)
    np.testing.assert_allclose(model._units.back(model._fitted.midpoint), X.mean(axis=0))
    joint = inside * share
    np.testing.assert_allclose(model.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), atol=SAME)
    mine = (1 - f) * inside[np.arange(len(y)), y]
    np.testing.assert_allclose(model.outlier_probability(X, y), f * outside / (mine + f * outside), atol=SAME)
    whole = (1 - f) * joint.sum(axis=1)
    np.testing.assert_allclose(model.outlier_probability(X), f * outside / (whole + f * outside), atol=SAME)
    np.testing.assert_array_equal(model.outlier_probability_, model.outlier_probability(X, y))
    np.testing.assert_allclose(model.selected_, 1 - model.outlier_probability_, atol=SAME)


@both
def test_predictions_agree_with_probabilities(kind):
    X, y, _, _ = blobs()
    model = kind().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    two = kind().fit(X, np.where(y == 0, "no", "yes"))
    np.testing.assert_allclose(two.predict_proba(X)[:, 1], expit(two.decision_function(X)), atol=SAME)
    assert two.outlier_probability(X, np.where(y == 0, "no", "yes")).shape == (160,)


def test_hard_selection_is_yes_or_no():
    X, y, _, bad = blobs()
    model = HardSelectionClassifier().fit(X, y)
    assert set(model.selected_) == {0.0, 1.0}
    assert np.mean((model.selected_ == 0) == bad) > 0.85
    assert np.mean((model.outlier_probability_ < 0.5) == (model.selected_ > 0.5)) > 0.97


@both
def test_corrupted_rows_are_found_and_do_not_count(kind):
    X, noisy, y, bad = blobs()
    model = kind().fit(X, noisy)
    assert roc_auc_score(bad, model.outlier_probability_) > 0.95
    clean = NearestCentroid().fit(X[~bad], y[~bad]).centroids_
    dirty = NearestCentroid().fit(X, noisy).centroids_
    assert np.linalg.norm(model.centres_ - clean) < 0.25 * np.linalg.norm(dirty - clean)


@both
def test_given_numbers_are_kept(kind):
    X, y, _, _ = blobs()
    model = kind(outlier_fraction=0.25, gamma=0.4, outlier_spread=2.0).fit(X, y)
    assert (model.gamma_, model.outlier_spread_) == (0.4, 2.0)
    assert model.outlier_fraction_ == pytest.approx(0.25)
    assert isinstance(kind(gamma=0.4).fit(X, y).outlier_fraction_, float)


@both
@pytest.mark.parametrize("standardize", [False, True])
def test_weights_are_repetitions(kind, standardize):
    X, y, _, _ = blobs()
    times = np.random.default_rng(0).integers(0, 4, len(y))
    model = kind(standardize=standardize, accuracy=1e-12)
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.centres_, repeated.centres_, atol=FIXED_POINT)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=FIXED_POINT)
    assert np.all(weighted.outlier_probability_[times == 0] == 1)


@both
def test_standardized_is_scaled_before(kind):
    X, y = load_wine(return_X_y=True)
    inside = kind(standardize=True).fit(X, y)
    before = make_pipeline(StandardScaler(), kind()).fit(X, y)
    np.testing.assert_allclose(inside.predict_proba(X), before.predict_proba(X), atol=SAME)
    np.testing.assert_allclose(inside.centres_, before[0].inverse_transform(before[1].centres_))
    np.testing.assert_allclose(inside.outlier_probability(X, y), inside.outlier_probability_)
    constant = np.column_stack([X, np.ones(len(X))])
    np.testing.assert_allclose(kind(standardize=True).fit(constant, y).centres_[:, -1], 1.0)


@both
@pytest.mark.parametrize(("load", "least"), [(load_wine, 0.03), (load_digits, 0.03)], ids=["wine", "digits"])
def test_systematic_mistakes_cost_less_than_they_cost_the_means(kind, load, least):
    """Every third row bears the label of the next class."""
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    noisy = np.where(np.arange(len(y)) % 3 == 0, (y + 1) % (y.max() + 1), y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # digits have constant features, of which NearestCentroid warns
        means = NearestCentroid().fit(X, noisy).score(X, y)
    model = kind().fit(X, noisy)
    assert model.converged_
    assert model.score(X, y) > means + least
    assert roc_auc_score(noisy != y, model.outlier_probability_) > 0.85


@both
@pytest.mark.parametrize(("scale", "shift"), [(1e100, 0.0), (1e-100, 0.0), (1.0, 1e6)])
def test_units_do_not_matter(kind, scale, shift):
    X, y, _, _ = blobs()
    plain, other = kind().fit(X, y), kind().fit(scale * X + shift, y)
    np.testing.assert_allclose(other.predict_proba(scale * X + shift), plain.predict_proba(X), atol=SAME)
    assert other.outlier_fraction_ == pytest.approx(plain.outlier_fraction_, rel=SAME)


@both
def test_search_clone_pickle_and_joblib(kind, tmp_path):
    X, y, _, _ = blobs()
    model = kind(gamma=0.4).fit(X, y)
    joblib.dump(model, tmp_path / "model")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.outlier_probability(X, y), model.outlier_probability_)
        assert again.get_params() == model.get_params()
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "centres_")
    search = GridSearchCV(kind(), {"outlier_spread": [None, 1.0], "standardize": [False, True]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5


@both
def test_frames_give_their_columns(kind):
    """It transforms nothing, so that `set_output` concerns the step before it."""
    X, y, _, _ = blobs()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = kind().fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])
    pipe = make_pipeline(StandardScaler(), kind()).set_output(transform="pandas").fit(frame, y)
    assert list(pipe[-1].feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(pipe.predict(frame), make_pipeline(StandardScaler(), kind()).fit(X, y).predict(X))


@both
def test_running_out_of_steps_warns(kind):
    X, y, _, _ = blobs()
    with pytest.warns(ConvergenceWarning, match="EM stalled after"):
        model = kind(max_iter=2).fit(X, y)
    assert model.outcome_ == Outcome.stalled
    assert not model.converged_
    assert np.all(np.isfinite(model.predict_proba(X)))


@both
def test_a_class_that_loses_its_rows_is_named(kind):
    """A class that no Gaussian describes: single rows far apart on a circle, about the other class."""
    rng = np.random.default_rng(0)
    angle = np.arange(6) * np.pi / 3
    ring = 30 * np.column_stack([np.cos(angle), np.sin(angle)])
    X, y = np.concatenate([rng.normal(size=(60, 2)), ring]), np.repeat(["core", "ring"], [60, 6])
    with pytest.warns(UserWarning, match="Nearly all rows of class ring look like outliers"):
        model = kind().fit(X, y)
    assert np.all(np.isfinite(model.centres_))


X, y, _, _ = blobs()
BAD = {
    "fraction 0": ({"outlier_fraction": 0.0}, X, y, {}, "`outlier_fraction` must lie strictly between 0 and 1"),
    "fraction 1": ({"outlier_fraction": 1.0}, X, y, {}, "`outlier_fraction` must lie strictly between 0 and 1"),
    "gamma": ({"gamma": -1.0}, X, y, {}, "`gamma` must be positive"),
    "spread": ({"outlier_spread": 0.5}, X, y, {}, "`outlier_spread` must be at least 1"),
    "one class": ({}, X, np.zeros(160), {}, "one class"),
    "one example": ({}, X, np.arange(160) == 0, {}, "two rows or more of each class, but class True has one"),
    "constant": ({}, np.ones((160, 3)), y, {}, "features that vary, but all of them are constant"),
    "constant, scaled": ({"standardize": True}, np.ones((160, 3)), y, {}, "all of them are constant"),
    "nan": ({}, np.where(X > 5, np.nan, X), y, {}, "NaN"),
    "numbers": ({}, X, X[:, 0], {}, "Unknown label type"),
    "negative weight": ({}, X, y, {"sample_weight": -np.ones(160)}, "[Nn]egative"),
    "steps": ({"max_iter": 0}, X, y, {}, "`max_iter` must be at least 1"),
}


@both
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(kind, name):
    how, rows, labels, options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        kind(**how).fit(rows, labels, **options)


@both
def test_scores_need_known_classes(kind):
    model = kind().fit(X, y)
    with pytest.raises(ValueError, match="one of the classes \\[0, 1, 2\\]"):
        model.outlier_probability(X, y + 1)
    with pytest.raises(ValueError, match="each of the 160 rows"):
        model.outlier_probability(X, y[1:])
    with pytest.raises(NotFittedError):
        kind().outlier_probability(X)


# Shapes of classes ----------------------------------------------------------------------------------------------


def stretched(seed=0, turned=False):
    """Two long classes side by side, or across each other, every fifth row with the wrong label."""
    rng = np.random.default_rng(seed)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 3)) * [8, 1, 1]
    if turned:
        X[y == 1] = X[y == 1][:, [1, 0, 2]]
    X[:, 2] += 4 * y
    wrong = np.arange(300) % 5 == 0
    return X, np.where(wrong, 1 - y, y), y, wrong


@both
@pytest.mark.parametrize("turned", [False, True])
def test_classes_have_shapes(kind, turned):
    """Of long classes the sphere loses what their covariance tells; if they cross, each needs its own."""
    X, noisy, y, wrong = stretched(turned=turned)
    shape = outliers.Shrunk(common=not turned)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the sphere there may be another one as good
        sphere = kind().fit(X, noisy)
    model = kind(covariance=shape).fit(X, noisy)
    assert model.converged_
    assert model.score(X, y) > max(0.97, sphere.score(X, y))
    assert roc_auc_score(wrong, model.outlier_probability_) > 0.97


@pytest.mark.parametrize("common", [True, False])
def test_probabilities_are_those_of_the_shapes(common):
    """Densities by scipy, with covariances put together from the fit."""
    X, noisy, _, _ = stretched()
    model = SoftSelectionClassifier(covariance=outliers.Shrunk(common=common)).fit(X, noisy)
    fitted, Z = model._fitted, model._units.into(X)
    covariances = [np.linalg.inv(A @ A.T) / fitted.gamma for A in fitted.shapes.classes]
    inside = [stats.multivariate_normal(c, S).pdf(Z) for c, S in zip(fitted.centres, covariances, strict=True)]
    wide = np.linalg.inv(fitted.shapes.outliers @ fitted.shapes.outliers.T) * fitted.spread / fitted.gamma
    outside, f = stats.multivariate_normal(fitted.midpoint, wide).pdf(Z), model.outlier_fraction_
    mine = (1 - f) * np.transpose(inside)[np.arange(len(Z)), noisy]
    np.testing.assert_allclose(model.outlier_probability(X, noisy), f * outside / (mine + f * outside), atol=SAME)
    joint = np.transpose(inside) * model.class_prior_
    np.testing.assert_allclose(model.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), atol=SAME)


def test_shrinkage_is_scikit_learns():
    """Of many rows; of few, one row more lies on the sphere."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(20_000, 4)) @ rng.normal(size=(4, 4))
    np.testing.assert_allclose(shrink(Z, np.ones(20_000)), oas(Z, assume_centered=True)[0], rtol=1e-3, atol=1e-3)
    few = rng.normal(size=(12, 9))
    S, share = oas(few, assume_centered=True)
    variance = np.trace(few.T @ few) / (9 * 12)
    np.testing.assert_allclose(shrink(few, np.ones(12)), (12 * S + variance * np.eye(9)) / 13)
    assert share > 0.3


@both
def test_weights_are_repetitions_with_shapes(kind):
    X, noisy, _, _ = stretched()
    times = np.random.default_rng(0).integers(0, 4, len(noisy))
    model = kind(accuracy=1e-12, covariance=outliers.Shrunk(common=False))
    weighted = clone(model).fit(X, noisy, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(noisy, times))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=FIXED_POINT)


# What can be told -----------------------------------------------------------------------------------------------


def drawn(eta, examples=300, size=30, seed=0):
    """The world of the theory."""
    return outliers.Contaminated(gamma=10.0, eta=eta).sample(jax.random.key(seed), examples, size=size)


@both
def test_the_interval_holds_the_share(kind):
    held = []
    for seed in range(10):
        X, S, informative = drawn(1.0, seed=seed)
        model = kind().fit(X, S)
        low, high = model.outlier_fraction_interval_
        assert low <= model.outlier_fraction_ <= high
        held.append(low - 0.005 <= 1 - informative.mean() <= high + 0.005)
    assert np.mean(held) >= 0.7


@both
def test_the_share_is_told_where_theory_finds_the_classes(kind):
    X, S, _ = drawn(0.0)
    model = kind().fit(X, S)
    assert model.told_
    assert model.sentence_ == ""
    assert model._limit.eta < model._limit.lost


@both
@pytest.mark.filterwarnings("ignore:Another selection")
def test_the_share_cannot_be_told_beyond_the_transition(kind):
    """Labels at random: the fit selects rows that agree by chance and believes it; rows out of fold disagree."""
    X, S, _ = drawn(6.0)
    model = kind().fit(X, S)
    assert not model.told_
    assert model._limit.passed
    assert "theory loses the classes" in model.sentence_
    given = kind(outlier_fraction=0.3).fit(X, S)
    assert given.outlier_fraction_interval_ == pytest.approx((0.3, 0.3))


@both
def test_the_share_is_not_told_of_classes_of_another_shape(kind):
    """A table, classes with long tails, and classes longer than wide: good rows are called outliers."""
    model = kind(standardize=True).fit(*load_breast_cancer(return_X_y=True))
    assert model.outlier_fraction_interval_[0] > 0.1
    assert not model.told_
    rng = np.random.default_rng(0)
    y, Z = np.arange(600) % 2, rng.normal(size=(600, 8))
    ends = np.eye(8)[0] * 3 * (2 * y - 1)[:, None]
    tails = kind().fit(ends + Z / np.sqrt(rng.chisquare(3, 600) / 3)[:, None], y)
    assert tails.outlier_fraction_interval_[0] > 0.1
    assert not tails.told_
    assert "lie near their own class" in tails.sentence_
    long = kind().fit(ends + Z * np.where(np.arange(8) == 1, 2.0, 1.0), y)
    assert not long.told_
    assert "do not have the assumed shape" in long.sentence_


def test_classes_of_the_assumed_shape_are_told():
    """Chance says of few of them that they have another."""
    told = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y, outlier = np.arange(300) % 3, rng.random(300) < 0.2
        centres = 2.5 * np.array([[1, 0, 0, 0, 0], [-0.5, 0.87, 0, 0, 0], [-0.5, -0.87, 0, 0, 0]])
        X = np.where(outlier[:, None], 2 * rng.normal(size=(300, 5)), centres[y] + rng.normal(size=(300, 5)))
        told.append(SoftSelectionClassifier().fit(X, y)._goodness.misfit == "")
    assert np.mean(told) >= 0.8


@both
def test_a_ball_of_rows_is_never_scored_with_confidence(kind):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    rng = np.random.default_rng(0)
    ball = np.arange(178) % 4 == 0
    X[ball], y[ball] = 3 + 0.1 * rng.normal(size=(ball.sum(), 13)), 0
    with pytest.warns(UserWarning, match="tight ball"):
        model = kind().fit(X, y)
    np.testing.assert_array_equal(model.clump_, ball)
    np.testing.assert_array_equal(model.outlier_probability_[ball], 0.5)
    np.testing.assert_array_equal(model.alternative_[ball], 1.0)
    assert not model.told_


def test_of_two_selections_neither_is_trusted_alone():
    """Each class has a narrow part and a broad one far from it: either may be the outliers of the other."""
    rng = np.random.default_rng(0)
    y, narrow = np.arange(400) % 2, rng.random(400) < 0.6
    X = np.where(narrow, 0.3, 1.0)[:, None] * rng.normal(size=(400, 4))
    X[:, 0] += np.where(narrow, 0, 3) * (2 * y - 1)
    X[:, 1] += np.where(narrow, 1, 0) * (2 * y - 1)
    with pytest.warns(UserWarning, match="Another selection explains the table about as well"):
        model = SoftSelectionClassifier().fit(X, y)
    mine, other = model.outlier_probability(X, y), model.alternative_
    assert np.mean(np.abs(mine - other)) > 0.8
    assert np.mean(np.abs(model.outlier_probability_ - 0.5) < 0.1) > 0.8
    np.testing.assert_allclose(model.outlier_probability_, 0.5 * (mine + other), atol=SAME)
    assert "`alternative_`" in model.sentence_
