"""FieldClassifier: scikit-learn's checks, probabilities beside other classifiers' and the truth, and bad input."""

import numpy as np
import pytest
from scipy import linalg, special
from sklearn.datasets import load_iris, load_wine
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import Kernel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quenched.estimators import FieldClassifier
from tests.estimators.checks import each_check

REWRITTEN = 1e-9  # one minimum, reached from data written down in two ways


@each_check(FieldClassifier(strength=(1.0, 1.0)), expected=lambda e: {})
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def labelled(n, seed=0, height=3.0):
    """Two classes whose log-odds are a wave, and their probabilities."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (n, 1))
    p = 1 / (1 + np.exp(-height * np.sin(1.5 * x[:, 0])))
    return x, np.where(rng.uniform(size=n) < p, "yes", "no"), p


def log_loss(P, labels):
    return -np.log(P[np.arange(len(labels)), labels]).mean()


def test_it_finds_log_odds_of_any_shape():
    x, y, p = labelled(600)
    model = FieldClassifier().fit(x, y)
    assert np.sqrt(np.mean((model.predict_proba(x)[:, 1] - p) ** 2)) < 0.07
    assert model.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("seed", [0, 2])
def test_log_odds_that_are_no_trend_are_found(seed):
    """Without a trend the evidence has a second maximum, at fields that are constant."""
    x, y, p = labelled(300, seed)
    model = FieldClassifier().fit(x, y)
    assert model.strength_[1] < 0.1
    assert np.sqrt(np.mean((model.predict_proba(x[:60])[:, 1] - p[:60]) ** 2)) < 0.1


class FieldKernel(Kernel):
    """The prior covariance of the log-odds of a fitted classifier, for a Gaussian process."""

    def __init__(self, found):
        self.found = found

    def __call__(self, X, Y=None, eval_gradient=False):
        one, modes = self.found, self.found.fit.modes
        A, B = one.modes_at(X), one.modes_at(X if Y is None else Y)
        apart = modes.over[1, 0] - modes.over[0, 0]
        return apart**2 * (A / (one.layout.grid.cell * modes.values[:, 0])) @ B.T

    def diag(self, X):
        return np.diag(self(X))

    def is_stationary(self):
        return False

    def clone_with_theta(self, theta):
        return self


@pytest.mark.parametrize("n", [80, 200])
def test_probabilities_are_those_of_a_gaussian_process_classifier_with_the_same_prior(n):
    """Its Laplace approximation and its means are another library's; classes overlap, so that both are accurate."""
    x, y, _ = labelled(n, height=2.0)
    model = FieldClassifier().fit(x, y)
    process = GaussianProcessClassifier(FieldKernel(model._fitted), optimizer=None).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x[:60]), process.predict_proba(x[:60]), atol=0.02)


def averaged(found, rows, draws=40_000, degrees=8):
    """Probabilities of the second of two classes under the exact posterior of the fields, by importance sampling."""
    state, rng = found.state, np.random.default_rng(0)
    t = rng.standard_normal((draws, state.c.size)) * np.sqrt(degrees / rng.chisquare(degrees, draws))[:, None]
    c = state.c.ravel() + linalg.solve_triangular(state.lower.T, t.T, lower=False).T
    apart = state.over[1, 0] - state.over[0, 0]
    sides = np.where(state.labels == 1, apart, -apart)
    logs = -np.logaddexp(0, -(c @ state.B.T) * sides) @ state.weights - 0.5 * c**2 @ state.prior.ravel()
    weights = special.softmax(logs + 0.5 * (degrees + c.shape[1]) * np.log1p(np.sum(t**2, axis=1) / degrees))
    assert 1 / np.sum(weights**2) > 1000  # enough draws count
    return weights @ special.expit(apart * c @ found.modes_at(rows).T)


@pytest.mark.parametrize(("n", "columns"), [(80, 1), (200, 4)])
def test_probabilities_are_those_of_the_exact_posterior(n, columns):
    """Within 0.02, where means over a Gaussian, such as those of a Gaussian process classifier, are farther off."""
    x, y, _ = labelled(n)
    X = np.column_stack([x, np.random.default_rng(1).normal(size=(n, columns - 1))])
    found = FieldClassifier().fit(X, y)._fitted
    exact = averaged(found, X[:30])
    off = np.abs(found.probabilities(X[:30])[:, 1] - exact)
    rough = np.abs(found.state.mean(found.modes_at(X[:30]))[:, 1] - exact)
    assert off.max() < 0.02
    assert off.max() < rough.max() / 2


def test_columns_that_act_together_are_put_on_one_grid():
    """An exclusive or has no additive log-odds; a sum of two columns has."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (300, 2))
    either = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = FieldClassifier().fit(X, either)
    assert model.together_
    assert model.score(X, either) > 0.9
    alone = FieldClassifier(together=False).fit(X, either)
    assert alone.score(X, either) < 0.75
    assert model.log_evidence_ > alone.log_evidence_ + 50
    summed = (X.sum(axis=1) + 0.2 * rng.normal(size=300) > 0).astype(int)
    assert not FieldClassifier().fit(X, summed).together_


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_probabilities_of_unseen_rows_beat_those_of_a_logistic_regression(load):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[::2], order[1::2]
    ours = FieldClassifier().fit(X[train], y[train]).predict_proba(X[test])
    theirs = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[train], y[train]).predict_proba(X[test])
    assert log_loss(ours, y[test]) < log_loss(theirs, y[test]) + 0.02


def test_a_ratio_of_integrals_is_less_cautious_than_a_mean_over_a_gaussian_where_classes_are_apart():
    """By the probability of the right classes of unseen rows."""
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[::2], order[1::2]
    model = FieldClassifier().fit(X[train], y[train])
    assert model.exact_
    found = model._fitted
    gaussian = found.state.mean(found.modes_at(X[test]))
    assert log_loss(model.predict_proba(X[test]), y[test]) < log_loss(gaussian, y[test]) - 0.05


def test_both_agree_where_there_are_many_rows():
    x, y, _ = labelled(1500)
    model = FieldClassifier(points=17).fit(x, y)
    at = np.linspace(-3, 3, 13)[:, None]
    found = model._fitted
    np.testing.assert_allclose(model.predict_proba(at), found.state.mean(found.modes_at(at)), atol=0.01)


def test_a_ratio_of_integrals_sums_to_one_by_itself():
    """No class is favoured by the approximation: the parts are probabilities before they are normalised."""
    x, y, _ = labelled(80)
    found = FieldClassifier().fit(x, y)._fitted
    for b in found.modes_at(np.linspace(-3, 3, 7)[:, None]):
        total = sum(np.exp(found.state.with_row(b, k).log_integral - found.state.log_integral) for k in range(2))
        assert total == pytest.approx(1, abs=0.01)


def test_a_weight_is_so_many_equal_rows_in_any_order():
    x, y, _ = labelled(50)
    weights = np.random.default_rng(1).integers(0, 4, 50)
    order = np.random.default_rng(2).permutation(np.arange(50).repeat(weights))
    one, two = FieldClassifier().fit(x, y, weights), FieldClassifier().fit(x[order], y[order])
    np.testing.assert_allclose(two.predict_proba(x), one.predict_proba(x), rtol=REWRITTEN)
    assert two.log_evidence_ == pytest.approx(one.log_evidence_, rel=REWRITTEN)


def test_the_calibration_curve_is_that_of_rows_left_out():
    x, y, _ = labelled(60)
    model = FieldClassifier(strength=(1.0, 0.01)).fit(x, y)
    curve = model.describe(bins=5)
    assert float(curve.rows.sum()) == 60
    assert 0 < curve.attrs["calibration_error"] < 0.3
    i = 7
    rest = np.arange(60) != i
    found = model._fitted
    i = int(np.flatnonzero(found.rows[:, 0] == x[7, 0])[0])
    again = FieldClassifier(strength=(1.0, 0.01)).fit(x[rest], y[rest])
    np.testing.assert_allclose(found.without(i), again.predict_proba(x[[7]])[0], atol=0.01)


X, Y, _ = labelled(30)
WIDE = np.random.default_rng(0).normal(size=(30, 4))
BAD = {
    "one class": (FieldClassifier(), X, np.full(30, "yes"), {}, "only one class has any: yes"),
    "class of no weight": (FieldClassifier(), X, Y, {"sample_weight": Y == "yes"}, "only one class has any: yes"),
    "numbers": (FieldClassifier(), X, X[:, 0], {}, "continuous"),
    "nan": (FieldClassifier(), np.where(X > 2, np.nan, X), Y, {}, "NaN"),
    "too large": (FieldClassifier(), 1e300 * X, Y, {}, "`X` must lie strictly between"),
    "few points": (FieldClassifier(points=3), X, Y, {}, "`points` must be at least 8"),
    "four together": (FieldClassifier(together=True), WIDE, Y, {}, "more than 3 columns, but `X` has 4"),
    "one strength": (FieldClassifier(strength=1.0), X, Y, {}, "`strength` must be two numbers"),
    "negative strength": (FieldClassifier(strength=(1.0, -1.0)), X, Y, {}, "`strength` must be positive"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    model, rows, values, options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        model.fit(rows, values, **options)
