"""AnnealedMixture: scikit-learn's own checks, densities, criteria, the tree, and what it reaches on real data."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import quenched
from quenched.core.types import Outcome
from quenched.estimators import AnnealedMixture
from quenched.mixtures.model import Diagonal, Full, MaximumLikelihood, Spherical
from tests.tolerances import SAME

WIDTHS = {
    "full": Full(),
    "tied": Full(common=True),
    "spherical": Spherical(),
    "diagonal": Diagonal(),
    "common": Spherical(common=True),
    "given": MaximumLikelihood(2.0),
}


@pytest.mark.filterwarnings("ignore:From every start")  # some tables have fewer rows than covariance matrices need
@parametrize_with_checks([AnnealedMixture(), AnnealedMixture(widths=Spherical())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs():
    return make_blobs(150, centers=3, n_features=3, random_state=2)


@pytest.mark.parametrize("name", WIDTHS)
def test_the_density_is_that_of_the_gaussians(name):
    X, _ = blobs()
    model = AnnealedMixture(3, widths=WIDTHS[name], random_state=0).fit(X)
    shapes = [v if v.ndim == 2 else np.diag(v * np.ones(3)) for v in model.covariances_]
    each = [w * stats.multivariate_normal(c, s).pdf(X)
            for w, c, s in zip(model.weights_, model.means_, shapes, strict=True)]  # fmt: skip
    np.testing.assert_allclose(np.exp(model.score_samples(X)), np.sum(each, axis=0), rtol=SAME)
    np.testing.assert_allclose(model.predict_proba(X), np.transpose(each / np.sum(each, axis=0)), atol=SAME)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.score(X) == pytest.approx(model.lower_bound_, rel=SAME)
    assert model.weights_.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "kind"), [("spherical", "spherical"), ("diagonal", "diag"), ("full", "full"), ("tied", "tied")]
)
def test_criteria_are_scikit_learn_s(name, kind):
    X, _ = blobs()
    ours = AnnealedMixture(3, widths=WIDTHS[name], accuracy=1e-10, random_state=0).fit(X)
    theirs = GaussianMixture(3, covariance_type=kind, tol=1e-11, random_state=0).fit(X)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-5)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-5)
    free = {"common": 9 + 1 + 2, "given": 9}
    for other, count in free.items():
        model = AnnealedMixture(3, widths=WIDTHS[other], random_state=0).fit(X)
        assert model.aic(X) + 2 * model.score_samples(X).sum() == pytest.approx(2 * count)


def test_the_criterion_finds_the_number_of_clusters():
    X, _ = make_blobs(300, centers=4, cluster_std=0.8, random_state=1)
    assert np.argmin([AnnealedMixture(k, random_state=0).fit(X).bic(X) for k in range(1, 7)]) + 1 == 4


def test_drawn_rows_have_the_fitted_moments():
    X, _ = blobs()
    model = AnnealedMixture(3, widths=Diagonal(), random_state=0).fit(X)
    rows, which = model.sample(30_000)
    for k in range(3):
        mine = rows[which == k]
        error = np.sqrt(model.covariances_[k] / len(mine))
        assert np.all(np.abs(mine.mean(axis=0) - model.means_[k]) < 5 * error)
        np.testing.assert_allclose(mine.var(axis=0), model.covariances_[k], rtol=0.08)
    np.testing.assert_allclose(np.bincount(which) / len(which), model.weights_, atol=0.015)


@pytest.mark.parametrize("data", [load_iris, load_wine], ids=["iris", "wine"])
def test_classes_of_real_data_are_found(data):
    X, y = data(return_X_y=True)
    model = make_pipeline(StandardScaler(), AnnealedMixture(3, widths=Diagonal(common=True), rivals=0))
    assert adjusted_rand_score(y, model.fit_predict(X)) > 0.84


def test_the_result_does_not_depend_on_the_seed():
    X, _ = load_iris(return_X_y=True)
    levels = [AnnealedMixture(3, accuracy=1e-8, random_state=seed).fit(X).lower_bound_ for seed in range(5)]
    np.testing.assert_allclose(levels, levels[0], rtol=1e-6)


def test_warm_start_search_clone_pickle_and_joblib(tmp_path):
    X, _ = blobs()
    model = AnnealedMixture(3, warm_start=True, accuracy=1e-8, random_state=0).fit(X)
    first, level = model.n_iter_, model.lower_bound_
    assert model.fit(X).n_iter_ < first
    assert model.lower_bound_ == pytest.approx(level, abs=1e-7)
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(joblib.dump(model, tmp_path / "model.joblib")[0])):
        np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
        np.testing.assert_array_equal(again.splits_.width, model.splits_.width)
    search = GridSearchCV(clone(model), {"widths": [Spherical(), Diagonal()], "n_components": [2, 3]}, cv=2).fit(X)
    assert search.best_params_["n_components"] == 3


def test_columns_keep_their_names():
    """Through a pipeline whose tables are data frames; other names raise an error."""
    table = load_iris(as_frame=True).data
    model = (
        make_pipeline(StandardScaler(), AnnealedMixture(3, random_state=0)).set_output(transform="pandas").fit(table)
    )
    np.testing.assert_array_equal(model[-1].feature_names_in_, table.columns)
    np.testing.assert_array_equal(model.predict(table), model[-1].labels_)
    with pytest.raises(ValueError, match="feature names"):
        model[-1].predict(pd.DataFrame(table.values, columns=list("abcd")))


def test_splits_are_drawn_as_a_tree():
    X, _ = load_iris(return_X_y=True)
    model = AnnealedMixture(4, random_state=0).fit(X)
    ax = quenched.plot(model.splits_).axes[0]
    levels = sorted(float(l.get_ydata()[0]) for l in ax.lines if len(set(l.get_ydata())) == 1)
    np.testing.assert_allclose(levels, np.sort(model.splits_.width))
    assert ax.get_yscale() == "log"
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert sorted(name.split("\n")[0] for name in names) == ["0", "1", "2", "3"]
    assert all(f"{model.weights_[int(k)]:.0%}" == share for k, share in (name.split("\n") for name in names))
    single = quenched.plot(AnnealedMixture(1).fit(X).splits_, ax=ax)
    assert single is ax.figure
    with pytest.raises(ValueError, match="must be one axes for such a picture, but 2"):
        quenched.plot(model.splits_, ax=[ax, ax])


def test_splits_can_be_saved(tmp_path):
    X, _ = blobs()
    model = AnnealedMixture(3, random_state=0).fit(X)
    again = quenched.load(quenched.save(model.splits_, tmp_path / "splits.nc"))
    np.testing.assert_array_equal(again.width, model.splits_.width)


def test_running_out_of_steps_warns():
    X, _ = load_iris(return_X_y=True)
    model = AnnealedMixture(3, max_iter=5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="EM stalled after"):
        model.fit(X)
    assert model.outcome_ == Outcome.stalled
    assert not model.converged_
    assert np.all(np.isfinite(model.score_samples(X)))


X, _ = blobs()
BAD = {
    "nan": (AnnealedMixture(), np.where(X > X.max() - 1, np.nan, X), {}, "NaN"),
    "infinite": (AnnealedMixture(), np.where(X > X.max() - 1, np.inf, X), {}, "infinity"),
    "one axis": (AnnealedMixture(), X[0], {}, "Expected 2D array"),
    "too many": (AnnealedMixture(151), X, {}, "must not exceed the rows, but n_samples=150"),
    "too many by weight": (AnnealedMixture(3), X, {"sample_weight": np.arange(150) < 2}, "must not exceed the rows"),
    "duplicates": (AnnealedMixture(3), np.repeat(X[:2], 5, axis=0), {}, "at least 3 different rows, but it holds 2"),
    "no component": (AnnealedMixture(0), X, {}, "`n_components` must be at least 1"),
    "word": (AnnealedMixture(widths="diag"), X, {}, "must be Spherical\\(\\), Diagonal\\(\\)"),
    "negative weight": (AnnealedMixture(), X, {"sample_weight": -np.ones(150)}, "[Nn]egative"),
    "no annealing": (AnnealedMixture(n_init=0), X, {}, "`n_init` must be at least 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_raises_one_sentence(name):
    model, data, options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        model.fit(data, **options)


def test_not_fitted():
    for method in ("predict", "predict_proba", "score_samples", "bic"):
        with pytest.raises(NotFittedError):
            getattr(AnnealedMixture(), method)(X)
    with pytest.raises(NotFittedError):
        AnnealedMixture().sample()
