"""Selection around a model: theory against the learner, and what EM promises."""

import jax
import numpy as np
import pytest
from scipy.special import expit, log_expit
from sklearn.linear_model import LogisticRegression, Ridge

import quenched
from quenched import outliers
from quenched.core.types import InputError
from quenched.outliers import learner
from quenched.outliers.simulation import models

LABELS = outliers.WrongLabels(separation=1.5, share=0.2)
TARGETS = outliers.WrongTargets(noise=0.2, spread=3.0, share=0.2)
CASES = {
    "labels, soft": (LABELS, outliers.SelectedLogistic(1.0, 0.2), [1.0, 3.0]),
    "labels, none": (LABELS, outliers.SelectedLogistic(1.0, 0.2, outliers.Hebb()), [3.0]),
    "targets, soft": (TARGETS, outliers.SelectedSquares(0.1, 1.0, 0.3), [6.0]),
    "targets, none": (TARGETS, outliers.SelectedSquares(0.1, 1.0, 0.3, outliers.Hebb()), [6.0]),
    "targets, trimmed": (TARGETS, outliers.SelectedSquares(0.1, 1.0, 0.3, outliers.HardSelection()), [6.0]),
}
FINITE = 2.0 / 150
"""Deviations fall as 1/N; trimming is beyond replica symmetry, where they are as small as that at these parameters."""
VARIABLES = ["R", "Q", "Phi"]


@pytest.mark.parametrize("case", CASES)
def test_the_learner_does_what_the_theory_says(case):
    law, rule, alpha = CASES[case]
    curve = outliers.curve(law, rule, alpha=alpha)
    assert np.all(curve.outcome == "converged")
    points = outliers.measure(law, rule, alpha=alpha, size=150, runs=16, key=jax.random.key(3))
    assert np.all(points.outcome == "converged")
    found = quenched.agreement(curve, points, variables=VARIABLES, allowance=FINITE)
    assert found.passed, found


def test_selection_is_what_makes_the_difference():
    """The theory of selection is not that of the plain model: the learner would not agree with it."""
    soft, none = (outliers.curve(TARGETS, CASES[f"targets, {one}"][1], alpha=6.0) for one in ("soft", "none"))
    assert float(soft.Delta) < 0.1 * float(none.Delta)


def test_hard_logistic_selection_ends_where_it_begins():
    """Replica symmetry is broken: on the same rows the learner ends elsewhere if the wrong labels are known at first.

    The energy falls and nothing is left to change in both, their gap does not close as N grows, and the theory lies
    between them, so that agreement with it cannot be claimed.
    """
    rule, gaps = outliers.SelectedLogistic(1.0, 0.2, outliers.HardSelection()), []
    theory = outliers.curve(LABELS, rule, alpha=4.0)
    assert np.isinf(theory.stability)
    for size, runs in ((50, 24), (200, 8)):
        R = []
        for key in jax.random.split(jax.random.key(4), runs):
            X, S, right = LABELS.sample(key, 4 * size, size=size)
            ends = [models.select_labels(rule, X / np.sqrt(size), S, start=w) for w in (None, right.astype(float))]
            assert all(found.outcome.name == "converged" for _, found, _ in ends)
            R.append([J[0] / np.sqrt(size) for J, _, _ in ends])
        gaps.append(np.diff(R).mean())
        assert np.mean(R, axis=0)[0] < float(theory.R) < np.mean(R, axis=0)[1]
    assert gaps[1] > 0.7 * gaps[0] > 0.03


def test_the_state_is_stationary():
    """For the energy of the learner: a gradient of its own sample, at the J it found."""
    X, S, _ = LABELS.sample(jax.random.key(0), 300, size=60)
    rule = CASES["labels, soft"][1]
    J, found, _ = models.select_labels(rule, X / np.sqrt(60), S)
    tau, u = 0.2 / 0.6, S * (X @ J) / np.sqrt(60)
    p = expit(u)
    slope = rule.ridge * J - (X * S[:, None]).T @ (p * (1 - p) / (tau + p)) / np.sqrt(60)
    np.testing.assert_allclose(slope, 0, atol=1e-5)
    np.testing.assert_allclose(found.weights, p / (tau + p), atol=1e-6)


@pytest.mark.parametrize("kind", [outliers.SoftSelection, outliers.HardSelection])
def test_the_energy_never_rises(kind):
    """The theorem of EM, for one fold that holds all rows."""
    X, y, _ = TARGETS.sample(jax.random.key(1), 200, size=40)
    rule, energies = kind(), []

    def fit(rows, weights):
        J = Ridge(alpha=0.1 * 0.09, fit_intercept=False).fit(X[rows], y[rows], sample_weight=weights).coef_
        h = 0.5 * ((1.0 / 0.3) ** 2 - ((y - X @ J) / 0.3) ** 2)
        gain = np.maximum(h, 0) if kind is outliers.HardSelection else np.logaddexp(0, h)
        energies.append(0.05 * J @ J - gain.sum())
        return lambda judged: X[judged] @ J

    judge = learner.Values(y, np.ones(200), known=(0.3, 0.5 * (1.0 / 0.3) ** 2))
    found = learner.iterate(rule, fit, judge.judge, learner.whole(200), np.ones(200), passes=100)
    assert found.outcome.name == "converged"
    assert np.all(np.diff(energies) <= 1e-9 * np.abs(energies[0]))
    assert len(energies) > 3


def test_a_given_share_is_kept_and_rows_are_judged_by_it():
    log_p = log_expit(np.array([[-2.0, 2.0], [1.0, -1.0], [0.0, 0.0]]))
    codes, ones = np.array([1, 1, 0]), np.ones(3)
    p = expit([2.0, -1.0, 0.0])
    found = learner.Labels(outliers.HardSelection(), codes, 2, ones, 0.25).judge(log_p)
    np.testing.assert_allclose(found.outlier, 0.25 * (1 - p) / (0.75 * p + 0.25 * (1 - p)))
    np.testing.assert_array_equal(found.h > 0, found.outlier < 0.5)
    assert found.share == 0.25


def test_folds_keep_a_flexible_model_from_vouching_for_itself():
    """A classifier that learns every row by heart finds no wrong label among its own rows, and most out of fold."""
    from sklearn.datasets import make_blobs
    from sklearn.neighbors import KNeighborsClassifier

    X, y = make_blobs(120, centers=[[-3, 0], [3, 0]], random_state=0)
    wrong = np.arange(120) % 6 == 0
    codes = np.where(wrong, 1 - y, y)

    def fit(rows, weights):
        model = KNeighborsClassifier(3, weights="distance").fit(X[rows], codes[rows])
        return lambda judged: np.log(np.clip(model.predict_proba(X[judged]), 1e-5, 1))

    judge = learner.Labels(outliers.HardSelection(), codes, 2, np.ones(120), 0.2).judge
    inside = learner.iterate(outliers.HardSelection(), fit, judge, learner.whole(120), np.ones(120), passes=1)
    halves = [(np.flatnonzero(m), np.flatnonzero(~m)) for m in (np.arange(120) % 4 < 2, np.arange(120) % 4 >= 2)]
    outside = learner.iterate(outliers.HardSelection(), fit, judge, halves, np.ones(120), passes=1)
    assert np.mean(inside.verdict.outlier[wrong] > 0.5) == 0
    assert np.mean(outside.verdict.outlier[wrong] > 0.5) > 0.8


def test_errors_say_what_goes_together():
    with pytest.raises(InputError, match=r"Argument `rule` must be SelectedLogistic\(\) with WrongLabels"):
        outliers.curve(LABELS, outliers.SelectedSquares(), alpha=1.0)
    with pytest.raises(InputError, match=r"Argument `share` must be at least 0 and below 0\.5"):
        outliers.WrongLabels(share=0.5)
    with pytest.raises(InputError, match="Argument `selection` must be SoftSelection"):
        outliers.SelectedLogistic(selection=3)
    with pytest.raises(InputError, match="Argument `branch` must not be given"):
        outliers.curve(LABELS, outliers.SelectedLogistic(), alpha=1.0, branch="informed")
    how = {"alpha": 1.0, "size": 20, "runs": 2, "key": jax.random.key(0), "start": outliers.RandomStart()}
    with pytest.raises(InputError, match="Arguments `start` and `search` must not be given"):
        outliers.measure(LABELS, outliers.SelectedLogistic(), **how)


def test_logistic_regression_without_selection_is_scikit_learns():
    X, S, _ = LABELS.sample(jax.random.key(2), 90, size=30)
    J, _, _ = models.select_labels(outliers.SelectedLogistic(0.7, 0.2, outliers.Hebb()), X, S)
    theirs = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=5000).fit(X, S).coef_[0]
    np.testing.assert_allclose(J, theirs, atol=1e-5)


def test_least_squares_with_a_vanishing_ridge_has_a_closed_form():
    """Below one example per dimension all rows are explained, and fields after training are a millionth apart."""
    alpha, noise, ridge, s = 0.3, 0.2, 1e-6, 0.3
    rule = outliers.SelectedSquares(ridge=ridge, noise=s, selection=outliers.Hebb())
    found = outliers.curve(outliers.WrongTargets(noise=noise, share=0.0), rule, alpha=alpha)
    b = 1 - alpha - ridge * s**2
    z = (b + np.sqrt(b**2 + 4 * ridge * s**2)) / (2 * ridge)  # 1/z = ridge + alpha/(s^2 + z)
    R, g = alpha * z / (s**2 + z), alpha * (z / (s**2 + z)) ** 2
    assert found.outcome == "converged"
    np.testing.assert_allclose([found.R, found.Q], [R, (R**2 + g * (1 + noise**2 - 2 * R)) / (1 - g)], rtol=1e-7)
