"""`LVQClassifier`: the fall back to class means, rejection, and the learned metric."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler

import quenched
from quenched.core.types import InputError
from quenched.estimators import LVQClassifier
from quenched.prototypes import GLVQ, GMLVQ, LVQ1, LVQ21, RSLVQ, LVQPlus


def test_class_means_are_kept_with_a_warning_where_they_are_better():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.9).astype(int)
    X = rng.normal(size=(400, 2)) + 3.0 * y[:, None]
    rule = LVQPlus(0.99)  # a prototype is the last example that it won
    with pytest.warns(ConvergenceWarning, match="the class means are kept as prototypes"):
        model = LVQClassifier(rule, passes=3, random_state=0).fit(X, y)
    assert model.fallback_
    assert model.held_out_["learned"] < model.held_out_["class means"]
    np.testing.assert_array_equal(model.predict(X), NearestCentroid().fit(X, y).predict(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = LVQClassifier(rule, passes=3, fallback=False, random_state=0).fit(X, y)
    assert not kept.fallback_
    assert kept.held_out_ is None


@pytest.mark.filterwarnings("ignore:.*class means are kept")
@pytest.mark.parametrize("rule", [None, GMLVQ(), RSLVQ(), LVQ1(), LVQ21()])
def test_no_rule_falls_below_the_class_means_at_its_defaults(rule):
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    share = cross_val_score(LVQClassifier(rule, random_state=0), X, y, cv=5).mean()
    assert share > 0.95
    assert share > cross_val_score(NearestCentroid(), X, y, cv=5).mean() - 0.012  # two of 178 rows


def test_metric_learning_on_iris():
    X, y = load_iris(return_X_y=True)
    model = LVQClassifier(GMLVQ(), standardize=True, random_state=0)
    assert cross_val_score(model, X, y, cv=5).mean() > 0.96


def test_what_is_rejected_is_wrong_more_often():
    X, y = load_iris(return_X_y=True)
    model = LVQClassifier(RSLVQ(), standardize=True, random_state=0).fit(X[::2], y[::2])
    unseen, truth = X[1::2], y[1::2]
    wrong = model.predict(unseen) != truth
    rejected = model.reject(unseen, confidence=0.9)
    assert 0 < rejected.sum() < len(unseen) / 2
    assert wrong[rejected].mean() > wrong[~rejected].mean()
    several = [model.reject(unseen, confidence=c).sum() for c in (0.0, 0.5, 0.9, 0.99, 1.0)]
    assert several[0] == 0
    assert several == sorted(several)
    answers = model.predict(unseen, confidence=0.9, otherwise=-1)
    np.testing.assert_array_equal(answers[rejected], -1)
    np.testing.assert_array_equal(answers[~rejected], model.predict(unseen)[~rejected])
    assert model.reject([[100.0, -100.0, 100.0, -100.0]], within=1.0).all()
    shares = [model.reject(X[::2], within=share).mean() for share in (0.5, 0.9, 1.0)]
    np.testing.assert_allclose(shares, [0.5, 0.1, 0.0], atol=0.01)
    for name in ("confidence", "within"):
        with pytest.raises(InputError, match=f"`{name}` must lie between 0 and 1"):
            model.reject(X, **{name: 1.5})


def test_the_learned_metric_is_data_and_a_picture():
    data: Any = load_iris(as_frame=True)
    model = LVQClassifier(GMLVQ(rank=2), standardize=True, random_state=0).fit(data.data, data.target)
    metric = model.metric()
    assert metric.column.values.tolist() == list(data.data.columns)
    assert float(metric.relevance.sum()) == pytest.approx(1.0)
    assert float(metric.eigenvalue[2:].max()) < 1e-12
    np.testing.assert_allclose(metric.matrix, model.metric_.T @ model.metric_)
    # The matrix is what distances are measured with.
    Z = (data.data.to_numpy()[:5] - data.data.to_numpy().mean(axis=0)) / data.data.to_numpy().std(axis=0)
    w = (model.prototypes_ - data.data.to_numpy().mean(axis=0)) / data.data.to_numpy().std(axis=0)
    away = Z[:, None] - w
    squared = np.einsum("nki,ij,nkj->nk", away, metric.matrix.values, away)
    np.testing.assert_allclose(-model.decision_function(data.data[:5]), squared, rtol=1e-6)
    picture = quenched.plot(metric)
    labels = [text.get_text() for text in picture.axes[0].get_xticklabels()]
    assert len(labels) == 4
    with pytest.raises(InputError, match="A metric must have been learned"):
        LVQClassifier(fallback=False).fit(data.data, data.target).metric()


def test_partial_fit_refuses_an_energy():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="`rule` must learn from one example at a time for `partial_fit`"):
        LVQClassifier(GLVQ()).partial_fit(X, y)
    assert LVQClassifier(random_state=0).partial_fit(X, y).fallback_ is False


def test_large_tables_are_judged_by_some_of_their_rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 9000)
    X = pd.DataFrame(rng.normal(size=(9000, 3)) + 2.0 * np.eye(3)[y])
    model = LVQClassifier(random_state=0).fit(*train_test_split(X, y, random_state=0)[::2])
    assert 200 <= model.held_out_["rows"] <= 1010
