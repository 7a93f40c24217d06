"""Forecasts of estimators from tables: what is measured, what is kept together, and the sentences."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import IsolationForest, StackingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import quenched
from quenched import forecasting, processes
from quenched.core.types import InputError
from quenched.forecasting import errors, linear, measure
from quenched.plots import ForecastDisplay

DRAW = np.random.default_rng(0)
X = DRAW.standard_normal((240, 4))
VALUES = X @ [1.0, 0.5, 0.0, 0.0] + 0.5 * DRAW.standard_normal(240)
CLASSES = np.where(X[:, 0] + 0.7 * DRAW.standard_normal(240) > 0, "yes", "no")


class Watched(ClassifierMixin, BaseEstimator):
    """Remembers what it was trained on."""

    seen: list = []  # noqa: RUF012  shared by clones

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        Watched.seen.append((np.asarray(X)[:, 0], y))
        return self

    def predict(self, X):
        Watched.seen.append((np.asarray(X)[:, 0], None))
        return np.full(len(X), self.classes_[0])


@pytest.fixture(scope="module")
def classes():
    return quenched.forecast(GaussianNB(), X, CLASSES, random_state=0)


@pytest.fixture(scope="module")
def values():
    return quenched.forecast(Ridge(1e-3), X, VALUES, random_state=0)


def parts(**more):
    """The training and test rows of every fit of a forecast, by their first column."""
    Watched.seen = []
    quenched.forecast(
        Watched(), **({"X": np.column_stack([np.arange(240.0), X]), "y": CLASSES, "random_state": 1} | more)
    )
    fits = [i for i, (_, y) in enumerate(Watched.seen) if y is not None]
    return [Watched.seen[i] for i in fits], [Watched.seen[i + 1][0] for i in fits]  # judged first by the test rows


def test_parts_are_nested_have_all_classes_and_each_row_is_judged_once_at_every_size():
    fits, tests = parts()
    per_split = len(fits) // 10
    tested = np.concatenate(tests[::per_split])
    assert sorted(tested) == list(range(240))
    for split in range(10):
        own = fits[split * per_split : (split + 1) * per_split]
        for (large, _), (small, y) in itertools.pairwise(own):
            assert set(small) < set(large)
            assert 0.3 < np.mean(y == "yes") < 0.7
        for test in tests[split * per_split : (split + 1) * per_split]:
            assert not set(own[0][0]) & set(test)
            assert set(test) == set(tests[split * per_split])
    sizes = np.array([len(rows) for rows, _ in fits[:per_split]])
    assert sizes[0] == 216
    assert sizes[-1] <= 240 / 16


def test_groups_and_copies_stay_on_one_side():
    groups = np.repeat(np.arange(48), 5)
    for (learn, _), test in zip(*parts(groups=groups), strict=True):
        assert not set(groups[learn.astype(int)]) & set(groups[test.astype(int)])
    doubled, target = np.concatenate([X[:120], X[:120]]), np.concatenate([CLASSES[:120], CLASSES[:120]])
    for (learn, _), test in zip(*parts(X=doubled, y=target), strict=True):
        assert not set(learn) & set(test)
    answer = quenched.forecast(KNeighborsClassifier(1), doubled, target, random_state=0)
    assert answer.attrs["copies"] == 120
    assert answer.curve_error[-1] > 0.1  # a row whose copy is learned would be predicted without error


def test_leave_one_out_of_linear_models_is_what_scikit_learn_finds_row_by_row():
    for model in (Ridge(3.0), LinearRegression(), Ridge(0.5, fit_intercept=False)):
        error = errors.error_of(None, False, float(np.std(VALUES)))
        found = linear.leave_one_out(model, measure.Rows(X, VALUES, None, False), error)
        left = VALUES - cross_val_predict(model, X, VALUES, cv=LeaveOneOut())
        np.testing.assert_allclose(found.residual * np.std(VALUES), left, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.error, np.mean(left**2) / np.var(VALUES))
        np.testing.assert_allclose(
            found.training, np.mean((VALUES - model.fit(X, VALUES).predict(X)) ** 2) / np.var(VALUES)
        )
    assert linear.leave_one_out(GaussianNB(), measure.Rows(X, VALUES, None, False), error) is None


@pytest.mark.parametrize(
    ("model", "scale"),
    [
        (LinearRegression(), np.array([1e9, 1.0, 1.0, 1.0])),  # leaves all columns but the largest out
        (Ridge(1.0, solver="sag", max_iter=1, random_state=0), np.array([100.0, 1.0, 1.0, 1.0])),  # stops early
        (LinearRegression(), 1e-180),  # squares underflow
    ],
)
def test_leave_one_out_is_exact_or_there_is_none(model, scale):
    error = errors.error_of(None, False, float(np.std(VALUES)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = linear.leave_one_out(model, measure.Rows(X * scale, VALUES, None, False), error)
        left = VALUES - cross_val_predict(model, X * scale, VALUES, cv=LeaveOneOut())
    assert found is None or found.error == pytest.approx(np.mean(left**2) / np.var(VALUES), rel=1e-6)


def test_linear_regression_is_forecast_as_its_theory_has_it(values):
    # Gaussian inputs: the expected error is noise (1 + d / (m - d - 2)), with d + 1 numbers to fit  [exact]
    m = values.examples.values[3:]
    theory = 0.25 / np.var(VALUES) * (1 + 5 / (m - 6))
    assert np.all((values.error_low[3:] < theory) & (theory < values.error_high[3:]))
    gain = theory / theory[0]
    np.testing.assert_allclose(values.gain[3:], gain, rtol=0.03)


def test_the_dataset_is_that_of_a_forecast(classes, values):
    for answer in (classes, values):
        assert answer.attrs["grade"] == "A", answer.attrs["reasons"]
        assert np.all(answer.error_low < answer.error)
        assert np.all(answer.error < answer.error_high)
        now = answer.sel(examples=240)
        assert float(now.gain) == float(now.gain_low) == float(now.gain_high) == 1.0
        assert quenched.plot(answer).axes[0].get_xlabel() == "training examples, $m$"
    assert "rmse" in values
    assert "rmse" not in classes
    low, high = processes.examples_for(values, gain=0.995)
    assert 240 <= low < high


def test_the_same_seed_gives_the_same_answer_here_and_in_other_processes(classes):
    again = quenched.forecast(GaussianNB(), X, CLASSES, random_state=0)
    assert again.identical(classes)
    spread = quenched.forecast(GaussianNB(), X, CLASSES, random_state=0, executor=quenched.Processes(1))
    np.testing.assert_array_equal(spread.error, classes.error)


def test_a_budget_buys_fewer_or_more_splits():
    few = quenched.forecast(GaussianNB(), X, CLASSES, random_state=0, budget=1e-3)
    more = quenched.forecast(GaussianNB(), X[:60], CLASSES[:60], random_state=0, budget=60.0)  # on a busy machine, too
    assert few.attrs["passes"] == 0.3
    assert more.attrs["passes"] > 1


def test_scores_are_turned_into_errors_and_the_result_says_so():
    loss = quenched.forecast(GaussianNB(), X, CLASSES, scoring="neg_log_loss", random_state=0)
    assert "negated" in loss.attrs["reasons"]
    rank = quenched.forecast(GaussianNB(), X, CLASSES, scoring="roc_auc", random_state=0)
    assert "1 - roc_auc" in rank.attrs["reasons"]
    assert 0 < float(rank.error[3]) < 0.5
    with pytest.raises(InputError, match="scoring"):
        quenched.forecast(GaussianNB(), X, CLASSES, scoring="completeness_score")


def test_frames_and_sparse_matrices_are_taken_as_they_are(classes):
    frame = quenched.forecast(GaussianNB(), pd.DataFrame(X, columns=list("abcd")), CLASSES, random_state=0)
    np.testing.assert_array_equal(frame.error, classes.error)
    few = [240, 480]
    dense, thin = (quenched.forecast(Ridge(2.0, solver="lsqr"), Z, VALUES, examples=few, groups=np.arange(240),
                                     random_state=0) for Z in (X, sparse.csr_matrix(X)))  # fmt: skip
    np.testing.assert_allclose(thin.error, dense.error, rtol=1e-3)


def test_a_stack_is_forecast_though_it_predicts_only_when_fitted():
    stack = StackingRegressor([("flat", DummyRegressor()), ("line", LinearRegression())], cv=2)
    assert not hasattr(stack, "predict")
    answer = quenched.forecast(stack, X, VALUES, random_state=0)
    assert answer.attrs["grade"] == "A"


def test_what_cannot_be_forecast_is_refused_or_rough():
    ordered = np.linspace(-1, 1, 240)[:, None] + 0 * X
    series = np.sin(np.arange(240) / 15) + 0.1 * VALUES
    assert "neighbouring rows" in quenched.forecast(Ridge(), ordered, series, random_state=0).attrs["reasons"]
    assert "at least 50" in str(quenched.forecast(Ridge(), X[:40], VALUES[:40]).refused.values[0])
    easy, wide = np.where(X[:, 0] > 0, "a", "b"), X * [3, 0.3, 0.3, 0.3]
    assert "wrong on only" in quenched.forecast(KNeighborsClassifier(1), wide, easy).attrs["reasons"]
    assert "makes no error" in quenched.forecast(KNeighborsClassifier(1), wide * [100, 1, 1, 1], easy).attrs["reasons"]
    for model, y in ((DummyClassifier(strategy="uniform", random_state=0), CLASSES), (DummyRegressor(), VALUES)):
        answer = quenched.forecast(model, X, y, random_state=0)
        assert answer.attrs["grade"] == "rough"
        assert "explain nothing" in answer.attrs["reasons"]


class Moody(GaussianNB):
    """Fails on few rows."""

    fewest = 30

    def fit(self, X, y):
        if len(y) < self.fewest:
            raise ValueError("too few")
        return super().fit(X, y)


def test_an_estimator_may_fail_on_few_rows_but_not_on_many(monkeypatch):
    answer = quenched.forecast(Moody(), X, CLASSES, random_state=0)
    assert "failed on the 2 smallest" in answer.attrs["reasons"]
    monkeypatch.setattr(Moody, "fewest", 200)
    with pytest.raises(InputError, match="too few"):
        quenched.forecast(Moody(), X, CLASSES, random_state=0)


def test_fewer_rows_than_were_learned_have_no_forecast():
    answer = quenched.forecast(Ridge(), X, VALUES, examples=[3, 120, 240], random_state=0)
    assert list(answer.refused.values != "") == [True, False, False]
    assert "fewer than the 14 rows of the smallest part" in str(answer.refused.values[0])
    assert list(np.isnan(answer.error.values)) == [True, False, False]
    assert answer.attrs["grade"] == "A"


class Lost(RegressorMixin, BaseEstimator):
    """Predicts what is no number."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), np.nan)


class Bare:
    """An estimator that is none of scikit-learn's."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def get_params(self, deep=True):
        return {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"estimator": object()}, "estimator with `fit`"),
        ({"estimator": GaussianNB}, "estimator with `fit`"),
        ({"estimator": StandardScaler()}, "estimator with `predict`"),
        ({"estimator": Bare(), "y": VALUES}, "with tags"),
        ({"estimator": KMeans(2), "y": VALUES}, "classifier or a regressor"),
        ({"estimator": IsolationForest(), "y": VALUES}, "of the kind outlier detector"),
        ({"X": X[:20]}, "shapes"),
        ({"X": X[:, :0]}, "shapes"),
        ({"X": [[1.0, 2.0], [3.0]]}, "differ in length"),
        ({"y": np.where(np.arange(240) == 3, None, CLASSES)}, "some are missing"),
        ({"X": X[:10], "y": CLASSES[:10]}, "at least 20 rows"),
        ({"y": np.where(np.arange(240) < 4, "rare", CLASSES)}, "class rare has 4"),
        ({"y": np.full(240, "same")}, "two or more classes"),
        ({"estimator": Ridge(), "y": np.ones(240)}, "vary"),
        ({"estimator": Ridge(), "y": np.where(np.arange(240) == 3, np.nan, VALUES)}, "1 of 240 targets"),
        ({"estimator": Ridge(), "y": CLASSES}, "real numbers, because the estimator is a regressor"),
        ({"estimator": Lost(), "y": VALUES}, "must predict finite numbers"),
        ({"y": np.where(np.arange(240) % 2, 1, CLASSES.astype(object))}, "either words or numbers"),
        ({"groups": np.arange(3)}, "groups"),
        ({"groups": np.where(np.arange(240) == 3, np.nan, np.arange(240))}, "some are missing"),
        ({"groups": np.arange(240) % 4}, "at least 10 groups"),
        ({"budget": -1}, "budget"),
        ({"budget": 0}, "budget"),
        ({"budget": np.nan}, "budget"),
        ({"scoring": "no_such_score"}, "`scoring` must be the name"),
        ({"scoring": ["accuracy"]}, "`scoring` must be the name"),
        ({"scoring": "neg_mean_squared_error"}, "`scoring` must fit the estimator"),
        ({"scoring": lambda fitted, X, y: np.nan}, "`scoring` must give finite numbers"),
        ({"scoring": make_scorer(accuracy_score)}, "0 at best"),
        ({"executor": 4}, "executor"),
        ({"random_state": "x"}, "random_state"),
        ({"examples": [0]}, "examples"),
    ],
)
def test_bad_input_is_a_sentence(change, words):
    good = {"estimator": GaussianNB(), "X": X, "y": CLASSES}
    with pytest.raises(InputError, match=words) as caught:
        quenched.forecast(**(good | change))
    assert str(caught.value).startswith("Argument")
    assert str(caught.value).count("Argument") == 1


def test_forecasts_are_compared_in_one_picture(classes):
    other = quenched.forecast(KNeighborsClassifier(), X, CLASSES, random_state=0)
    both = forecasting.compare({"bayes": classes, "knn": other})
    np.testing.assert_array_equal(both.error.sel(model="knn"), other.error)
    (ax,) = quenched.plot(both).axes
    assert ax.get_ylabel().replace("\n", " ") == "expected share of wrong classes"
    with pytest.raises(InputError, match="same measure"):
        forecasting.compare({"a": classes, "b": quenched.forecast(Ridge(), X, VALUES, random_state=0)})
    with pytest.raises(InputError, match="by name"):
        forecasting.compare([classes])


def test_the_display_draws_on_axes_that_are_given(classes):
    display = ForecastDisplay(forecast=classes).plot()
    other = ForecastDisplay.from_estimator(GaussianNB(), X, CLASSES, random_state=0, ax=display.ax_)
    assert other.ax_ is display.ax_
    assert other.forecast.identical(classes)
