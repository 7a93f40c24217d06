"""Selection around any estimator: scikit-learn's checks, what it finds, and what it says where it finds nothing."""

import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_diabetes, make_blobs, make_circles
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from quenched.core.types import InputError
from quenched.estimators import SelectionClassifier, SelectionRegressor
from quenched.outliers import HardSelection, SoftSelection
from quenched.outliers.learner import density, doubts, labels, select, values
from quenched.outliers.learner.around import Verdict
from tests.estimators.checks import each_check

FOLDED = {
    "check_sample_weight_equivalence_on_dense_data": "folds are drawn over rows: a row of weight 2 is in one of them",
}


@each_check(
    SelectionClassifier(LogisticRegression(), folds=2, max_iter=1),
    SelectionRegressor(Ridge(), folds=2, max_iter=1),
    expected=lambda estimator: FOLDED if isinstance(estimator, SelectionClassifier) else {},
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


def cells(seed=0):
    """Every fourth label wrong."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:260], y[:260]
    bad = np.random.default_rng(seed).permutation(len(y)) % 4 == 0
    return StandardScaler().fit_transform(X), y, np.where(bad, 1 - y, y), bad


@pytest.fixture(scope="module")
def found():
    X, _, noisy, _ = cells()
    return SelectionClassifier(LogisticRegression(max_iter=500)).fit(X, noisy)


def test_wrong_labels_are_found_and_counted(found):
    X, y, noisy, bad = cells()
    plain = LogisticRegression(max_iter=500).fit(X, noisy)
    assert found.used_
    assert found.score(X, y) > plain.score(X, y) + 0.02
    assert roc_auc_score(bad, found.outlier_probability_) > 0.9
    low, high = found.outlier_fraction_interval_
    assert low <= bad.mean() <= high
    assert found.told_
    np.testing.assert_array_equal(found.selected_, np.where(found.outlier_probability_ > 0.5, 0.0, 1.0))
    np.testing.assert_allclose(found.predict_proba(X).sum(axis=1), 1)


def test_replaced_features_are_found_without_a_look_at_the_label():
    X, y, _, bad = cells()
    X = X.copy()
    rng = np.random.default_rng(1)
    X[bad] = np.column_stack([rng.choice(column, bad.sum()) for column in X.T])
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    strange = density.compare(X, y, np.ones(len(y)), folds, np.random.default_rng(0))
    assert strange.told
    assert roc_auc_score(bad, strange.outlier) > 0.9
    assert strange.share == pytest.approx(bad.mean(), abs=0.12)
    clean = density.compare(cells()[0], y, np.ones(len(y)), folds, np.random.default_rng(0))
    assert clean.share < 0.05


def test_a_clump_is_a_warning_and_never_a_confident_score():
    X, y = make_blobs(200, centers=[[0, 0, 0], [6, 0, 0]], random_state=0)
    rng = np.random.default_rng(0)
    X[:40] = [3, 12, 0] + 0.05 * rng.normal(size=(40, 3))
    y[:40] = 1
    with pytest.warns(UserWarning, match="40 rows lie in a tight ball"):
        model = SelectionClassifier(LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(model.clump_), np.arange(40))
    assert model.outlier_probability_[:40].min() >= 0.5
    assert not doubts.find_clump(X[40:], y[40:]).any()
    assert not doubts.find_clump(X, np.arange(200) % 2).any()  # of both labels


def test_a_clump_in_a_large_table_is_sought_among_some_rows_and_marked_among_all():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9000, 3)), np.arange(9000) % 2
    X[:1000], y[:1000] = [3, 12, 0] + 0.05 * rng.normal(size=(1000, 3)), 1
    found = doubts.find_clump(X, y)
    assert found[:1000].mean() > 0.95
    assert not found[1000:].any()


def test_noise_is_told_from_outliers_and_the_share_is_not_invented():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
    model = SelectionClassifier(LogisticRegression()).fit(X, y)  # labels that nothing explains
    low, high = model.outlier_fraction_interval_
    assert high - low > 0.35
    assert not model.told_
    assert "cannot be told" in model.sentence_


def diabetes(kind):
    X, y = load_diabetes(return_X_y=True)
    bad = np.random.default_rng(0).permutation(len(y)) % 4 == 0
    return X, y, np.where(bad & (kind == "shifted"), y + 500, y), bad


def test_shifted_targets_do_not_pull():
    X, y, noisy, bad = diabetes("shifted")
    plain = Ridge(0.1).fit(X, noisy).score(X, y)
    for selection in (SoftSelection(), HardSelection()):
        model = SelectionRegressor(Ridge(0.1), selection=selection).fit(X, noisy)
        assert model.score(X, y) > max(0.48, plain + 1)
        assert model.outlier_probability_[bad].min() > 0.9
        assert model.outlier_fraction_ == pytest.approx(bad.mean(), abs=0.04)


def test_clean_targets_keep_all_rows():
    X, y, _, _ = diabetes("clean")
    model = SelectionRegressor(Ridge(0.1)).fit(X, y)
    assert not model.used_
    assert "Selection does not help here" in model.sentence_
    assert np.all(model.selected_ == 1)
    np.testing.assert_allclose(model.predict(X), Ridge(0.1).fit(X, y).predict(X))


def test_leverage_points_do_not_pull():
    """Inputs five times as wide and targets of other rows: a small residual does not make such a row informative."""
    X, y, _, bad = diabetes("clean")
    rng, far, noisy = np.random.default_rng(0), X.copy(), y.copy()
    far[bad] = 5 * X.std(axis=0) * rng.normal(size=(bad.sum(), X.shape[1]))
    noisy[bad] = rng.choice(y, bad.sum())
    model, plain = SelectionRegressor(Ridge(0.1)).fit(far, noisy), Ridge(0.1).fit(far, noisy)
    assert model.used_
    assert model.score(X, y) > max(0.45, plain.score(X, y) + 0.2)
    assert model.outlier_probability_[bad].mean() > 0.9


def test_a_ball_of_rows_that_harms_the_others_is_left_out_with_a_warning():
    X, y, _, bad = diabetes("clean")
    rng, far, noisy = np.random.default_rng(0), X.copy(), y.copy()
    far[bad] = X.std(axis=0) * (3 + 0.1 * rng.normal(size=(bad.sum(), X.shape[1])))
    noisy[bad] = y.mean() - y.std() * (3 + 0.1 * rng.normal(size=bad.sum()))
    with pytest.warns(UserWarning, match="rows lie in a tight ball.*They are left out"):
        model = SelectionRegressor(Ridge(0.1)).fit(far, noisy)
    np.testing.assert_array_equal(model.clump_, bad)
    np.testing.assert_array_equal(model.selected_[bad], 0)
    np.testing.assert_array_equal(model.outlier_probability_[bad], 0.5)
    assert not model.told_
    low, high = model.outlier_fraction_interval_
    assert low <= bad.mean() <= high
    assert model.score(X, y) > 0.45


def test_two_selections_that_explain_a_table_as_well_are_a_warning():
    """Two lines, one the mirror image of the other; nothing tells which rows are the outliers."""
    x, noise = np.repeat(np.random.default_rng(0).normal(size=(2, 120)), 2, axis=1)
    up = np.arange(240) % 2 == 0
    y = np.where(up, 1, -1) * (3 * x + 0.1 * noise)
    with pytest.warns(UserWarning, match="Another selection explains the table about as well"):
        model = SelectionRegressor(LinearRegression()).fit(x[:, None], y)
    apart = np.abs(x) > 0.3
    p, q = model.outlier_probability_[apart], model.alternative_[apart]
    assert 0.2 < p.mean() < 0.8
    assert np.mean((p > 0.01) & (p < 0.99)) > 0.9  # not sure of either
    assert np.mean((q > 0.5) == up[apart]) > 0.95 or np.mean((q > 0.5) == ~up[apart]) > 0.95


def test_neighbours_vouch_for_rows_that_the_model_cannot_follow():
    """A ring around a ball, which no line divides: half of the labels would be wrong."""
    X, y = make_circles(240, noise=0.05, factor=0.3, random_state=0)
    model = SelectionClassifier(LogisticRegression()).fit(X, y)
    assert model.outlier_fraction_ < 0.05
    assert model.outlier_probability_.max() < 0.5
    bad = np.arange(240) % 5 == 0
    wrong = SelectionClassifier(LogisticRegression()).fit(X, np.where(bad, 1 - y, y))
    assert roc_auc_score(bad, wrong.outlier_probability_) > 0.95


def test_the_noise_has_the_tails_of_a_t_distribution():
    r = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(values.student(r, 2.25), stats.t.logpdf(r, 4, scale=1.5))


def test_a_model_at_fault_is_not_an_outlier():
    """A kink that a line cannot follow: the rows beyond it lie together."""
    x = np.linspace(0, 1, 300)
    y = np.where(x < 0.8, 0.0, 30 * (x - 0.8)) + 0.05 * np.random.default_rng(0).normal(size=300)
    model = SelectionRegressor(LinearRegression()).fit(x[:, None], y)
    assert not model.used_
    assert "lie next to each other" in model.sentence_


@pytest.mark.parametrize("seeds", [(0, 0), (None, 0), (5, 5)])
def test_the_same_seed_gives_the_same_selection(seeds):
    X, _, noisy, _ = cells()
    X, noisy = X[::2], noisy[::2]
    one, two = (SelectionClassifier(LogisticRegression(), random_state=s, check=False).fit(X, noisy) for s in seeds)
    np.testing.assert_array_equal(one.outlier_probability_, two.outlier_probability_)


def test_pipelines_and_models_without_weights_do():
    X, y, noisy, bad = cells()
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    soft = SelectionClassifier(pipeline, selection=SoftSelection(), check=False).fit(X, noisy)
    assert soft.score(X, y) > 0.9
    assert np.any((soft.selected_ > 0) & (soft.selected_ < 1))
    near = SelectionClassifier(KNeighborsClassifier(7), check=False).fit(X, noisy)
    assert roc_auc_score(bad, near.outlier_probability_) > 0.9


def test_weights_count_and_rows_without_weight_are_absent(found):
    X, _, noisy, _ = cells()
    weights = np.ones(len(X))
    weights[::5] = 0
    model = SelectionClassifier(LogisticRegression(max_iter=500), check=False).fit(X, noisy, weights)
    assert np.all(model.outlier_probability_[::5] == 1)
    assert np.all(model.selected_[::5] == 0)
    absent = SelectionClassifier(LogisticRegression(max_iter=500), check=False).fit(X[weights > 0], noisy[weights > 0])
    np.testing.assert_allclose(model.predict_proba(X), absent.predict_proba(X))


def test_errors_are_sentences():
    X, _, noisy, _ = cells()
    with pytest.raises(InputError, match="Argument `estimator` must have `predict_proba`, but LinearSVC does not"):
        SelectionClassifier(LinearSVC()).fit(X, noisy)
    with pytest.raises(InputError, match="Argument `estimator` must take `sample_weight`"):
        SelectionRegressor(KNeighborsRegressor()).fit(X, X[:, 0])
    with pytest.raises(InputError, match="Argument `selection` must be"):
        SelectionClassifier(selection="hard").fit(X, noisy)
    with pytest.raises(InputError, match="Argument `selection` must leave `gamma`"):
        SelectionClassifier(selection=SoftSelection(gamma=1.0)).fit(X, noisy)
    with pytest.raises(InputError, match="Argument `y` must have two classes"):
        SelectionClassifier().fit(X, np.zeros(len(X)))
    assert not hasattr(SelectionClassifier(LinearSVC()), "predict_proba")


def test_rows_that_lie_together_are_the_models_fault_and_far_ones_are_not():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 2))
    where = X[:, 0] > 0.7  # a part of the table that has a law of its own
    y = 3 * X[:, 1] + 0.2 * rng.normal(size=300)
    alone = SelectionRegressor().fit(X, np.where(where, 4 * rng.normal(size=300), y))
    assert not alone.used_
    assert "lie next to each other" in alone.sentence_
    bad = rng.random(300) < 0.2
    far = np.where(bad[:, None], 5 * X, X)
    assert SelectionRegressor().fit(far, np.where(bad, 3 * rng.normal(size=300), y)).used_


@pytest.mark.parametrize("labels", [[0, 1, 0, 1], [1, 1, *[0] * 38], [1, 1, 2, 2, *[0] * 36]])
def test_classes_of_two_rows_are_enough(labels):
    rows = np.random.default_rng(0).normal(size=(len(labels), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SelectionClassifier().fit(rows, labels)
    assert np.all(np.isfinite(model.outlier_probability_))


@pytest.mark.parametrize("seed", [6, 13])
def test_rows_are_left_out_only_where_unseen_labels_become_more_probable(seed):
    """Classes that overlap, no label wrong: a few more right answers out of fold are no reason to leave rows out."""
    rng = np.random.default_rng(seed)
    y, X = rng.integers(0, 3, 120), rng.normal(size=(120, 4))
    X[:, 0] += 1.2 * (y == 1)
    X[:, 1] += 1.2 * (y == 2)
    model = SelectionClassifier(LogisticRegression(), folds=3, max_iter=2).fit(X, y)
    assert not model.used_
    assert np.all(model.selected_ == 1)
    assert "held-out labels do not become more probable" in model.sentence_


def test_the_gain_is_one_of_log_likelihood(found):
    """Of labels rather than of right answers, whose mean change is a multiple of one over the number of rows."""
    assert found.gain_ > 1.25 * found.gain_stderr_ > 0
    assert abs(found.gain_ * 260 - round(found.gain_ * 260)) > 1e-6


def test_labels_are_explained_as_they_are_judged():
    rng = np.random.default_rng(0)
    codes, omega = rng.integers(0, 3, 80), rng.uniform(0.5, 2, 80)
    log_p = np.log(rng.dirichlet(np.ones(3), 80))
    judge = labels.Labels(HardSelection(), codes, 3, omega)
    assert omega @ judge.explain(log_p) / omega.sum() == pytest.approx(judge.judge(log_p).level)


@pytest.mark.parametrize("seed", [3, 5])
def test_long_tails_of_the_noise_keep_all_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    model = SelectionRegressor().fit(X, X @ [1, 0.5, 0.2] + 0.6 * rng.standard_t(2.2, size=150))
    assert not model.used_
    assert "the likelihood out of fold does not rise" in model.sentence_


@pytest.mark.parametrize("seed", [3, 5])
def test_a_dozen_rows_that_lie_together_are_enough_to_blame_the_model(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))
    where = (X[:, 0] > 1.3) & (X[:, 1] > -0.3)
    y = 3 * X[:, 1] + 0.2 * rng.normal(size=200)
    model = SelectionRegressor().fit(X, np.where(where, 4 * rng.normal(size=200), y))
    assert where.sum() < 12
    assert not model.used_
    assert "lie next to each other" in model.sentence_


@pytest.mark.parametrize(("seed", "share", "told"), [(0, 0.06, True), (5, 0.06, False), (5, 0.3, True)])
def test_few_replaced_rows_need_more_evidence(seed, share, told):
    rng, n = np.random.default_rng(seed), 150
    X = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 5))
    y, bad = rng.integers(0, 2, n), rng.permutation(n)[: round(share * n)]
    X[bad] = np.column_stack([rng.choice(column, len(bad)) for column in X.T])
    folds = [(np.flatnonzero(np.arange(n) % 5 != k), np.arange(k, n, 5)) for k in range(5)]
    found = density.compare(X, y, np.ones(n), folds, np.random.default_rng(0))
    assert found.told == told
    assert found.share == pytest.approx(share if told else 0, abs=0.03)


def told_by(share, level=0.0):
    """A verdict whose labels call for a share of outliers, at a mean log-likelihood."""
    support = -0.5 * ((labels.SHARES - share) / 0.01) ** 2
    return Verdict(np.zeros(1), np.zeros(1), share, level, labels.Estimated(share, 1.0, support))


def test_another_selection_has_a_say_in_the_interval_as_far_as_it_explains_the_rows():
    one = select.find_interval(told_by(0.05), None)
    assert one[1] <= 0.1
    low, high = select.find_interval(told_by(0.05), None, told_by(0.3), 100.0)
    assert low == one[0]
    assert 0.3 <= high < 0.35
    assert select.find_interval(told_by(0.05), None, told_by(0.3, level=-1.0), 100.0) == one


def test_an_interval_ends_at_hundredths():
    low, high = select.find_interval(told_by(0.2), None)
    assert (low, high) == (round(low, 2), round(high, 2))
