"""Rules that minimise an energy: their slopes, their symmetries, and what they find."""

import jax
import numpy as np
import pytest
from scipy.optimize import approx_fprime

from quenched import prototypes
from quenched.core.types import InputError, Outcome
from quenched.prototypes.learner import distances, fit, fit_means, hold_out
from quenched.prototypes.learner.descent import Rows, Task, descend, slope
from tests import tolerances

KEY = jax.random.key(19)
RULES = {
    "GLVQ": prototypes.GLVQ(),
    "GMLVQ": prototypes.GMLVQ(stiffness=0.1),
    "GMLVQ, rank 2": prototypes.GMLVQ(rank=2),
    "RSLVQ": prototypes.RSLVQ(width=0.3),
}


def table(rows=60, columns=4, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    return rng.normal(size=(rows, columns)) + 1.5 * rng.normal(size=(classes, columns))[y], y


@pytest.mark.parametrize("name", RULES)
def test_slopes_are_those_of_the_energy(name):
    rule, (X, y), rng = RULES[name], table(), np.random.default_rng(1)
    labels = np.repeat([0, 1, 2], 2)
    weights = rng.random(len(X))
    rows = Rows(X, y[:, None] == labels, weights / weights.sum(), float(len(X)))
    w = rng.normal(size=(6, 4))
    metric = rng.normal(size=(2 if "rank" in name else 4, 4)) if rule.learns_metric else None
    parts = [w] if metric is None else [w, metric]

    task = Task.of(rule, 1.7)

    def energy(theta):
        now = theta[: w.size].reshape(w.shape)
        return slope(task, rows, now, None if metric is None else theta[w.size :].reshape(metric.shape))[0]

    _, *slopes = slope(task, rows, w, metric)
    numeric = approx_fprime(np.concatenate([p.ravel() for p in parts]), energy, 1e-7)
    np.testing.assert_allclose(np.concatenate([s.ravel() for s in slopes if s is not None]), numeric, atol=1e-5)


@pytest.mark.parametrize("name", RULES)
def test_the_energy_falls_and_nothing_hangs_on_origin_unit_and_weights(name):
    rule, (X, y) = RULES[name], table()
    given = {"key": KEY, "passes": 6}
    found = fit(rule, (X, y), **given)
    assert np.all(np.diff(found.trace.energy) < 0)
    assert found.passes == len(found.trace.energy)
    moved = fit(rule, (100.0 * X - 7.0, y), **given)
    np.testing.assert_allclose(moved.prototypes, 100.0 * found.prototypes - 7.0, rtol=1e-5, atol=1e-4)
    times = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = fit(rule, (X, y), sample_weight=times, **given)
    repeated = fit(rule, (np.repeat(X, times, axis=0), np.repeat(y, times)), **given)
    np.testing.assert_allclose(weighted.prototypes, repeated.prototypes, atol=1e-6)
    assert not np.allclose(weighted.prototypes, found.prototypes, atol=1e-3)


def test_rslvq_of_two_means_is_logistic_regression():
    # Two prototypes: -log p is the logistic loss of a linear score, so without an anchor the boundary is the same.
    from sklearn.linear_model import LogisticRegression

    X, y = table(rows=400, columns=3, classes=2, seed=3)
    found = fit(prototypes.RSLVQ(anchor=0.0), (X, y), key=KEY, passes=500)
    assert found.outcome == Outcome.converged
    logistic = LogisticRegression(C=1e9, tol=1e-10, max_iter=1000).fit(X, y)
    d = distances(X, found.prototypes, None)
    score, expected = d[:, 0] - d[:, 1], logistic.decision_function(X)
    np.testing.assert_allclose(score / np.std(score), expected / np.std(expected), atol=2e-3)


def test_a_metric_finds_the_column_that_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) * [0.3, 3.0, 3.0, 3.0, 3.0]
    y = (X[:, 0] > 0).astype(int)
    euclidean, learned = (fit(rule, (X, y), key=KEY) for rule in (prototypes.GLVQ(), prototypes.GMLVQ()))
    right = [
        np.mean(f.labels[np.argmin(distances(X, f.prototypes, f.metric), axis=1)] == y) for f in (euclidean, learned)
    ]
    assert right[1] > 0.97
    share = np.diag(learned.metric.T @ learned.metric) / 5
    assert share.argmax() == 0
    assert share[0] > 0.8
    assert np.sum(learned.metric**2) == pytest.approx(5.0)
    flat = fit(prototypes.GMLVQ(rank=1), (X, y), key=KEY)
    assert flat.metric.shape == (1, 5)
    stiff = fit(prototypes.GMLVQ(stiffness=1e6), (X, y), key=KEY)
    np.testing.assert_allclose(stiff.metric.T @ stiff.metric, np.eye(5), atol=1e-3)


def test_a_fit_goes_on_where_it_stopped():
    X, y = table()
    first = fit(prototypes.GMLVQ(), (X, y), key=KEY, passes=5)
    more = fit(prototypes.GMLVQ(), (X, y), key=KEY, start=first, passes=5)
    assert more.passes == 10
    assert more.trace.energy[-1] < first.trace.energy[-1]


@pytest.mark.parametrize("count", [1, 3])
def test_a_metric_does_not_run_ahead_of_several_prototypes(count):
    """Each is pulled by its share of the rows, the metric by all: beside theirs its first step is as much shorter."""
    rng, rule = np.random.default_rng(0), prototypes.GMLVQ(stiffness=0.0)
    X, y, labels = rng.normal(size=(60, 4)), np.arange(60) % 2, np.repeat([0, 1], count)
    own = y[:, None] == labels
    w = rng.normal(size=(len(labels), 4))
    near = np.min(np.where(own, distances(X, w, None), np.inf), axis=1).mean()
    X, w = X * np.sqrt(4 / near), w * np.sqrt(4 / near)  # in the unit of the descent
    rows = Rows(X, own, np.full(60, 1 / 60), 60.0)
    _, force, stress = slope(Task.of(rule, 4.0), rows, w, np.eye(4))
    found = descend(rule, rows, w, np.eye(4), 1)
    moved = 4 * found.metric / np.trace(found.metric) - np.eye(4)  # its size does not matter
    ratio = np.linalg.norm(moved) / np.linalg.norm(found.prototypes - w)
    assert ratio == pytest.approx(np.linalg.norm(stress) / np.linalg.norm(force) / count, rel=tolerances.SAME)


def test_a_metric_is_stopped_early_unless_more_steps_are_asked_for():
    X, y = table(rows=200, columns=8)
    y = np.random.default_rng(0).permutation(y)
    steps = [len(fit(prototypes.GMLVQ(), (X, y), key=KEY, passes=passes).trace.energy) for passes in (None, 30, 60)]
    assert steps[0] == steps[1] == 30 < steps[2]
    assert len(fit(prototypes.GLVQ(), (X, y), key=KEY, prototypes_per_class=4).trace.energy) > 30


def test_held_out_rows_judge_what_is_learned():
    # Two clusters of one class on both sides of the other: class means coincide, three prototypes do not.
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 2)) + np.where(y == 1, np.where(rng.random(300) < 0.5, 6.0, -6.0), 0.0)[:, None] * [1, 0]
    good = hold_out(prototypes.GLVQ(), (X, y), key=KEY, prototypes_per_class=2)
    assert good.learned > 0.95
    assert good.class_means < 0.7
    assert good.rows >= 200
    apart, wrong = good.learned - good.class_means, 2 - good.learned - good.class_means
    assert apart <= good.error**2 * good.rows <= wrong  # the share of rows whose class only one of the two finds
    bad = hold_out(prototypes.LVQ21(0.5, window=1.0), (X + 50.0 * y[:, None], y), key=KEY)
    assert bad.class_means > 0.95
    assert bad.learned < bad.class_means
    means = fit_means((X, y), sample_weight=np.arange(300) % 4)
    expected = [np.average(X[y == c], axis=0, weights=(np.arange(300) % 4)[y == c]) for c in (0, 1)]
    np.testing.assert_allclose(means.prototypes, expected, atol=tolerances.SAME)


@pytest.mark.parametrize("rule", [prototypes.GLVQ(labels=(1, -1)), prototypes.GMLVQ()])
def test_the_experiment_runs_the_learner(rule):
    law = prototypes.TwoClusters(0.6, 2.0)
    points = prototypes.measure(law, rule, alpha=[2.0, 8.0], size=20, runs=8, key=KEY, tests=200)
    assert points.R.dims == ("alpha", "prototype", "cluster")
    assert float(points.error[1]) < float(points.error[0]) < 0.5
    assert float(prototypes.optimum(law).error) - 0.03 < float(points.error[1]) < 0.25
    R = points.R[1].values
    assert R[0, 0] > R[0, 1]
    assert R[1, 1] > R[1, 0]
    few = prototypes.measure(law, rule, alpha=[0.05], size=20, runs=3, key=KEY, tests=10)  # one row: one class
    assert int(few.failed) == 3


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: prototypes.GLVQ(steepness=0.0), "`steepness` must be positive"),
        (lambda: prototypes.GMLVQ(rank=0), "`rank` must be at least 1"),
        (lambda: prototypes.GMLVQ(stiffness=-1.0), "`stiffness` must be finite and not negative"),
        (lambda: prototypes.RSLVQ(width=0.0), "`width` must be positive"),
        (lambda: prototypes.curve(prototypes.TwoClusters(), prototypes.GLVQ(), alpha=1.0), "must learn from one"),
        (lambda: prototypes.asymptote(prototypes.TwoClusters(), prototypes.GLVQ()), "must learn from one example"),
        (lambda: fit(prototypes.GLVQ(), table(), key=KEY, window=0.2), "`window` must be None for GLVQ"),
        (lambda: fit(prototypes.GLVQ(), table()[0], key=KEY), r"must be \(X, y\) for GLVQ"),
        (
            lambda: prototypes.measure(
                prototypes.TwoClusters(drift=0.1), prototypes.GLVQ(), alpha=1.0, size=9, runs=2, key=KEY
            ),
            "`drift` must be zero",
        ),
        (
            lambda: prototypes.measure(
                prototypes.TwoClusters(),
                prototypes.GLVQ(),
                alpha=1.0,
                size=9,
                runs=2,
                key=KEY,
                start=prototypes.NearOrigin(),
            ),
            "`start` must be None",
        ),
        (lambda: fit(prototypes.LVQ1(weight_decay=1.0), table(), key=KEY), "`weight_decay` must be below 1"),
    ],
)  # fmt: skip
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
