"""The learner on real data: the student of the paper, any number of classes, and where there is little to learn.

EM and the descent by single rows are tested by themselves (`test_em`); that `measure` runs this learner is tested with
the simulation.
"""

import itertools

import numpy as np
import pytest

from quenched.core.types import InputError, Outcome
from quenched.outliers import learner
from quenched.outliers.learner.classes import Classes, Freedom, Rows, State
from quenched.outliers.learner.search import descend
from quenched.outliers.model import Gibbs, HardSelection, Hebb, SoftSelection
from tests.tolerances import ALGEBRA, FIXED_POINT, SAME

FINE = 1e-12  # accuracy of EM where fixed points are compared
N, P = 30, 240


def world(gamma=10.0, eta=0.0, seed=0, size=N, rows=P):
    """The paper's data, drawn here without the package: rows, labels, which are informative; the teacher is axis 0."""
    rng = np.random.default_rng(seed)
    S, V = rng.choice([-1, 1], rows), rng.random(rows) < 1 / (1 + np.exp(eta))
    x = rng.normal(scale=gamma**-0.5, size=(rows, size))
    x[:, 0] += V
    return x * S[:, None], S, V


def blobs(seed=0, classes=3, rows=90, size=4, outliers=0.3):
    """Classes in a table, and broad outliers with any label."""
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    X = 3 * rng.normal(size=(classes, size))[y] + rng.normal(size=(rows, size))
    V = rng.random(rows) > outliers
    X[~V] = 4 * rng.normal(size=(np.sum(~V), size))
    return X, y, V


# The paper's student ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "eta"), [(10.0, 0.0), (4.0, 1.0)])
def test_soft_selection_is_the_em_of_the_paper(gamma, eta):
    """Equations (24) and (25), written as they stand."""
    X, S, _ = world()
    x = X * S[:, None]
    J = np.sum(x, axis=0) / np.sqrt(N)
    for _ in range(300):
        h = gamma * x @ J / np.sqrt(N) - gamma * J @ J / (2 * N) - eta
        p = 1 / (1 + np.exp(-h))
        J = np.sqrt(N) * p @ x / (p.sum() + N / gamma)
    found = learner.fit(SoftSelection(gamma), (X, S), eta=eta, midpoint=0.0, accuracy=FINE)
    c = found.centres[1]
    np.testing.assert_allclose(c, J / np.sqrt(N), atol=FIXED_POINT)
    np.testing.assert_allclose(found.centres[0], -c)
    np.testing.assert_allclose(found.selected, p, atol=FIXED_POINT)
    assert found.energy == pytest.approx((J @ J / 2 - np.sum(np.log1p(np.exp(h)))) / N, rel=SAME)
    assert (found.gamma, found.eta, found.spread) == (gamma, eta, 1.0)
    other = learner.fit(SoftSelection(gamma), (X, S), eta=eta, midpoint=0.0, accuracy=FINE, start=np.eye(N)[0])
    np.testing.assert_allclose(other.centres, found.centres, atol=FIXED_POINT)


def test_hebb_is_the_plain_sum():
    """Equation (26); soft selection becomes it as outliers become impossible."""
    X, S, _ = world()
    expected = (X * S[:, None]).sum(axis=0) / (P + N / 10)
    found = learner.fit(Hebb(10.0), (X, S), midpoint=0.0)
    np.testing.assert_allclose(found.centres[1], expected, rtol=0, atol=ALGEBRA * np.linalg.norm(expected))
    soft = learner.fit(SoftSelection(10.0), (X, S), eta=-60.0, midpoint=0.0, accuracy=FINE)
    np.testing.assert_allclose(soft.centres[1], expected, atol=FIXED_POINT)
    assert np.all(found.selected == 1)
    assert np.all(found.outlier_probability(X, S) == 0)
    assert found.outlier_fraction == 0
    J, x = np.sqrt(N) * expected, X * S[:, None]
    energy_of_hebb = J @ J / 2 - np.sum(
        10 * x @ J / np.sqrt(N) - 10 * J @ J / (2 * N)
    )  # quadratic: all are informative
    assert found.energy * N == pytest.approx(energy_of_hebb, rel=ALGEBRA)
    free = learner.fit(Hebb(), (X, S), midpoint=0.0)
    assert free.gamma == pytest.approx(1 / np.mean((x - free.centres[1]) ** 2), rel=SAME)


def paper_energy(x, V, gamma, eta):
    """Equation (10)."""
    a, b = 1 + gamma * V.sum() / N, gamma / np.sqrt(N) * V @ x
    return -b @ b / (2 * a) + N / 2 * np.log(a) + eta * V.sum()


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_hard_selection_leaves_no_row_to_change(eta):
    X, S, _ = world(eta=eta)
    x, found = X * S[:, None], learner.fit(HardSelection(10.0), (X, S), eta=eta, midpoint=0.0)
    V = found.selected
    assert set(V) == {0.0, 1.0}
    best = paper_energy(x, V, 10.0, eta)
    assert found.energy * N == pytest.approx(best, rel=ALGEBRA)
    flipped = [paper_energy(x, np.where(np.arange(P) == i, 1 - V, V), 10.0, eta) for i in range(P)]
    assert min(flipped) >= best - ALGEBRA
    np.testing.assert_allclose(found.centres[1], 10 * V @ x / (N + 10 * V.sum()), rtol=ALGEBRA)


def test_hard_selection_of_few_rows_is_the_best_of_all():
    """All 2^10 selections."""
    X, S, _ = world(rows=10, seed=3)
    x = X * S[:, None]
    best = min((paper_energy(x, np.array(V), 10.0, 0.0), V) for V in itertools.product((0, 1), repeat=10))
    found = learner.fit(HardSelection(10.0), (X, S), eta=0.0, midpoint=0.0)
    assert found.energy * N == pytest.approx(best[0], abs=ALGEBRA)
    np.testing.assert_array_equal(found.selected, best[1])


@pytest.mark.parametrize("rule", [SoftSelection(), HardSelection(), Hebb()])
def test_the_midpoint_is_found(rule):
    X, S, _ = world()
    omega = np.where(S > 0, 2.0, 1.0)
    found = learner.fit(rule, (X + 7, S), sample_weight=omega, accuracy=FINE)
    middle = 0.5 * (X[S > 0].mean(axis=0) + X[S < 0].mean(axis=0))
    np.testing.assert_allclose(found.midpoint, middle + 7, rtol=ALGEBRA)
    given = learner.fit(rule, (X, S), midpoint=middle, sample_weight=omega, accuracy=FINE)
    np.testing.assert_allclose(found.centres, given.centres + 7, atol=FIXED_POINT)
    np.testing.assert_allclose(found.centres.mean(axis=0), found.midpoint)


def test_scales_are_estimated():
    """Within three standard errors of maximum likelihood, of a gamma known from n N numbers and a share from n rows."""
    X, S, V = world(gamma=5.0, eta=0.5, rows=3000)
    found = learner.fit(SoftSelection(), (X, S))
    assert found.outcome == Outcome.converged
    assert found.gamma == pytest.approx(5.0, rel=3 * np.sqrt(2 / X.size))
    assert found.outlier_fraction == pytest.approx(np.mean(~V), abs=0.03)
    broad = np.where(V[:, None], X, 1.5 * X)
    assert learner.fit(SoftSelection(), (broad, S), spread=None).spread == pytest.approx(1.5**2, rel=0.05)


# One centre in each class ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [SoftSelection(), HardSelection(), Hebb()])
def test_weights_are_repetitions(rule):
    X, y, _ = blobs()
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = learner.fit_classes(rule, (X, y), sample_weight=times, accuracy=FINE)
    repeated = learner.fit_classes(rule, (np.repeat(X, times, axis=0), np.repeat(y, times)), accuracy=FINE)
    np.testing.assert_allclose(weighted.centres, repeated.centres, atol=FIXED_POINT)
    np.testing.assert_allclose(np.repeat(weighted.selected, times), repeated.selected, atol=FIXED_POINT)
    assert weighted.gamma == pytest.approx(repeated.gamma, rel=FIXED_POINT)
    assert not np.allclose(weighted.centres, learner.fit_classes(rule, (X, y)).centres, atol=1e-3)


@pytest.mark.parametrize("rule", [SoftSelection(), HardSelection()])
def test_order_place_and_scale_do_not_matter(rule):
    X, y, _ = blobs()
    plain = learner.fit_classes(rule, (X, y), accuracy=FINE)
    order = np.random.default_rng(2).permutation(len(y))
    moved = learner.fit_classes(rule, (100 - 7 * X[order], 2 - y[order]), accuracy=FINE)
    np.testing.assert_allclose(moved.centres[::-1], 100 - 7 * plain.centres, rtol=FIXED_POINT)
    np.testing.assert_allclose(moved.selected, plain.selected[order], atol=FIXED_POINT)
    assert moved.gamma == pytest.approx(plain.gamma / 49, rel=FIXED_POINT)
    assert (moved.spread, moved.eta) == pytest.approx((plain.spread, plain.eta), rel=FIXED_POINT)


@pytest.mark.parametrize("rule", [SoftSelection(8.0), HardSelection(8.0)])
def test_two_classes_opposite_to_each_other_are_one(rule):
    """On a table and its mirror image both models coincide: two centres share the prior of one."""
    X, S, _ = world(size=6, rows=80)
    both = np.concatenate([X, -X]), np.concatenate([S, -S])
    one = learner.fit(rule, both, eta=0.3, prior=1.0, accuracy=FINE)
    two = learner.fit_classes(rule, both, eta=0.3, spread=1.0, prior=np.sqrt(2.0), accuracy=FINE)
    if isinstance(rule, SoftSelection):
        np.testing.assert_allclose(one.centres, two.centres, atol=FIXED_POINT)
        np.testing.assert_allclose(one.selected, two.selected, atol=FIXED_POINT)
    else:  # what is unknown of two centres is more than what is unknown of one, so few rows may differ
        assert np.mean(one.selected != two.selected) < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_hard_selection_and_its_scales_belong_together(seed):
    """Neither another pass nor the change of a single row finds anything left to do."""
    X, S, _ = world(seed=seed)
    found = learner.fit(HardSelection(), (X, S), midpoint=0.0, accuracy=FINE)
    x, p, scales = X * S[:, None], found.selected, (found.gamma, found.spread, found.eta)
    model = Classes(Rows(x, np.ones(P), np.array([0, P])), Freedom(float(N), gamma=True, eta=True), HardSelection())
    state = State(found.centres[None, 1:], found.unknown[None, 1:], *(np.array([one]) for one in scales))
    sums = model.add_up(p[None], (p @ x)[None, None], np.zeros(1), state)
    again = model.maximize(sums, state)
    assert (again.gamma[0], again.eta[0]) == pytest.approx((found.gamma, found.eta), rel=FIXED_POINT)
    np.testing.assert_allclose(again.centres, state.centres, atol=FIXED_POINT)
    assert descend(model, sums, again)[1][0] == 0


def test_outliers_are_nowhere_narrower():
    X, y, _ = blobs()
    assert learner.fit_classes(SoftSelection(1e-3), (X, y)).spread == 1.0
    assert learner.fit_classes(SoftSelection(), (X, y)).spread > 1


def test_planted_outliers_are_found():
    """At the truth the log-ratio is the best test there is (Neyman and Pearson); the fit must come close to it."""
    from sklearn.metrics import roc_auc_score

    X, S, V = world(gamma=10.0, eta=0.0, rows=1500)
    h = 10 * (X * S[:, None])[:, 0] - 5
    best, right = roc_auc_score(V, h), np.mean((h > 0) == V)
    for rule in (SoftSelection(), HardSelection()):
        found = learner.fit(rule, (X, S))
        assert roc_auc_score(~V, found.outlier_probability(X, S)) > best - 0.005
        assert np.mean((found.selected > 0.5) == V) > right - 0.02


# Where there is little to learn ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [SoftSelection(), HardSelection(), Hebb()])
def test_equal_rows_have_a_least_variance(rule):
    X = np.repeat([[0.0, 1.0], [4.0, 1.0]], 5, axis=0)
    found = learner.fit_classes(rule, (X, np.repeat([0, 1], 5)))
    assert np.isfinite(found.gamma)
    assert found.gamma <= 1.0001e6 / 2.0  # one millionth of the variance of a feature
    np.testing.assert_allclose(found.centres, [[0, 1], [4, 1]], atol=1e-4)


@pytest.mark.parametrize("rule", [SoftSelection(1.0), HardSelection(1.0)])
def test_when_all_rows_are_outliers_centres_are_those_of_the_prior(rule):
    X, y, _ = blobs()
    found = learner.fit_classes(rule, (X, y), eta=200.0, spread=1.0)
    assert np.sum(found.selected) < 1
    np.testing.assert_allclose(found.centres, found.midpoint[None].repeat(3, axis=0), atol=1e-6)
    assert found.outcome == Outcome.converged


def test_a_budget_of_passes_is_kept():
    X, y, _ = blobs()
    for rule in (SoftSelection(), HardSelection()):
        found = learner.fit_classes(rule, (X, y), passes=3, accuracy=FINE)
        assert found.outcome == Outcome.stalled
        assert found.passes <= 4


X, y, _ = blobs(classes=2)
BAD = {
    "no labels": (X, {}, "must be \\(X, y\\)"),
    "nan": ((np.where(X > 5, np.nan, X), y), {}, "must be finite"),
    "words": (([["a", "b"]], [1]), {}, "must be a table of numbers"),
    "labels missing": ((X, y[1:]), {}, "one label for each of the 90 rows"),
    "one class": ((X, 0 * y), {}, "two classes or more, but it has one class, 0"),
    "one example": ((X, np.arange(90) == 0), {}, "two rows or more of each class, but class True has one"),
    "one by weight": ((X, y), {"sample_weight": np.where(y == 1, np.arange(90) == 1, 1)}, "but class 1 has one"),
    "three classes": ((X, np.arange(90) % 3), {}, "must have two classes, but it has 3"),
    "constant": ((np.full((90, 4), 0.1), y), {}, "features that vary, but all of them are constant"),
    "negative weight": ((X, y), {"sample_weight": -np.ones(90)}, "not negative"),
    "eta": ((X, y), {"eta": np.inf}, "`eta` must be finite"),
    "narrow outliers": ((X, y), {"spread": 0.5}, "`spread` must be at least 1"),
    "prior": ((X, y), {"prior": 0.0}, "`prior` must be positive"),
    "midpoint": ((X, y), {"midpoint": np.nan}, "`midpoint` must be finite"),
    "midpoint of another table": ((X, y), {"midpoint": np.zeros(3)}, "`midpoint` must be a number or 4 numbers"),
    "start": ((X, y), {"start": np.zeros(3)}, "`start` must be a number or 4 numbers"),
    "accuracy": ((X, y), {"accuracy": 0.0}, "`accuracy` must be positive"),
    "passes": ((X, y), {"passes": 0}, "`passes` must be at least 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    data, options, message = BAD[name]
    with pytest.raises(InputError, match=message):
        learner.fit(SoftSelection(), data, **options)


def test_rules_that_cannot_be_fitted_are_refused():
    with pytest.raises(InputError, match="`rule` must be SoftSelection"):
        learner.fit(Gibbs(), (X, y))
    with pytest.raises(InputError, match="`gamma` must be positive"):
        learner.fit(SoftSelection(-1.0), (X, y))
