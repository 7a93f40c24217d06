"""Densities of columns as they come: rounded, with edges, with heavy tails; each beside a simple estimate."""

import warnings

import numpy as np
import pytest
from scipy import stats

from quenched.estimators import FieldConditional, FieldDensity
from quenched.fields.practice import edges, rounding


def error(estimate, truth):
    """Integrated squared error."""
    x = truth.ppf(np.linspace(1e-6, 1 - 1e-6, 1_501))
    return float(np.trapezoid((estimate(x) - truth.pdf(x)) ** 2, x))


def fitted(x, **options):
    """Without its warnings, which have tests of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return FieldDensity(**options).fit(x)


ROUNDED = [
    (stats.norm(), 0.1, 20_000),
    (stats.norm(), 0.25, 1_000),
    (stats.norm(50, 10), 5.0, 1_000),
    (stats.norm(), 1.0, 20_000),
    (stats.norm(), 2.0, 5_000),
    (stats.gamma(3), 0.5, 1_000),
]


@pytest.mark.parametrize(("truth", "step", "n"), ROUNDED)
def test_rounded_values_give_the_density_of_what_was_rounded(truth, step, n):
    exact = truth.rvs(n, random_state=1)
    x = np.round(exact / step) * step
    model = fitted(x)
    assert model.rounding_ == pytest.approx([step])
    # A kernel estimate of the values before they were rounded: those after it have teeth, too.
    assert error(model.pdf, truth) < 1.5 * error(stats.gaussian_kde(exact), truth)
    at = np.linspace(*truth.ppf([0.05, 0.95]), 50)
    low, high = model.credible_band(at)
    assert np.mean((low < truth.pdf(at)) & (truth.pdf(at) < high)) > 0.75


def test_rounded_values_of_two_columns():
    draw = np.random.default_rng(0)
    x = np.column_stack([np.round(2 * draw.normal(size=2_000)) / 2, draw.normal(size=2_000)])
    model = fitted(x, points=32, order=3)
    np.testing.assert_allclose(model.rounding_, [0.5, 0.0])
    at = draw.normal(size=(500, 2))
    truth = stats.norm.logpdf(at).sum(axis=1)
    assert np.mean((model.score_samples(at) - truth) ** 2) < 0.02


def test_rounding_is_said_and_described():
    x = np.round(np.random.default_rng(0).normal(size=300) * 4) / 4
    with pytest.warns(UserWarning, match=r"^The values of column 0 look rounded to 0\.25: each is spread"):
        model = FieldDensity(order=3).fit(x)
    assert model.describe().attrs["rounding"] == pytest.approx(0.25)


def test_bounds_hold_for_the_intervals_of_rounded_values():
    x = np.floor(np.random.default_rng(0).exponential(3.0, size=2_000) + 0.5)
    model = fitted(x, bounds=(0, None))
    assert model.rounding_ == pytest.approx([1.0])
    assert model.pdf(-0.1) == 0
    truth = stats.expon(scale=3)
    assert error(lambda at: np.where(at >= 0, model.pdf(np.maximum(at, 0)), 0), truth) < 1e-3


@pytest.mark.parametrize(
    ("name", "x", "step"),
    [
        ("tenths", np.array([0.1, 0.3, 0.3, 0.7, 0.7, 0.8, 1.2, 0.1, 0.1]), 0.1),
        ("eighths with an offset", 3.01 + np.array([1, 1, 2, 5, 5, 9, 9, 9]) / 8, 0.125),
        ("far away", 1e6 + np.array([0.5, 0.5, 1.5, 2.0, 2.0]), 0.5),
        ("no ties", np.arange(10.0), 0.0),
        ("not on a lattice", np.sqrt([1.0, 1, 2, 2, 3, 3, 5, 5]), 0.0),
        ("two values", np.array([1.0, 1, 1, 2, 2, 2]), 0.0),
        ("one value often", np.append(np.zeros(50), np.random.default_rng(0).random(50)), 0.0),
    ],
)
def test_the_step_of_a_lattice(name, x, step):
    assert rounding.step_of(x, np.ones(len(x))) == pytest.approx(step), name
    if step:  # a weight is so many equal rows
        values, counts = np.unique(x, return_counts=True)
        assert rounding.step_of(values, counts.astype(float)) == pytest.approx(step)


def test_exact_values_are_left_alone():
    model = FieldDensity().fit(np.random.default_rng(0).normal(size=200))
    assert model.rounding_ == [0.0]
    assert model.suggested_bounds_ == (None, None)
    assert not {"rounding", "suggested_low", "suggested_high"} & set(model.describe().attrs)


EDGES = {
    "uniform": (stats.uniform(), (0.0, 1.0)),
    "exponential": (stats.expon(), (0.0, None)),
    "half": (stats.halfnorm(10), (10.0, None)),
    "peaks at both ends": (stats.beta(0.5, 0.5), (0.0, 1.0)),
}


@pytest.mark.parametrize("name", EDGES)
def test_bounds_are_proposed_where_rows_pile_up(name):
    truth, bounds = EDGES[name]
    x = truth.rvs(1_000, random_state=3)
    with pytest.warns(UserWarning, match=r"column 0 pile up at an end: if none can lie beyond, set `bounds=\("):
        model = FieldDensity().fit(x)
    assert model.suggested_bounds_ == bounds
    ends = [model.describe().attrs.get(f"suggested_{end}") for end in ("low", "high")]
    assert tuple(ends) == bounds


def test_a_density_with_the_proposed_bounds_is_as_good_as_a_histogram():
    truth = stats.uniform()
    for n in (200, 2_000):
        x = truth.rvs(n, random_state=2)
        model = fitted(x)
        best = fitted(x, bounds=model.suggested_bounds_)
        heights, ends = np.histogram(x, bins=int(np.ceil(2 * n ** (1 / 3))), range=(0, 1), density=True)
        bars = stats.rv_histogram((heights, ends), density=True)
        assert error(best.pdf, truth) < min(error(bars.pdf, truth), error(stats.gaussian_kde(x), truth))


@pytest.mark.parametrize("truth", [stats.norm(), stats.t(3), stats.gamma(3), stats.logistic()])
def test_tails_are_no_edges(truth):
    found = [
        edges.suggested(truth.rvs(n, random_state=s), np.ones(n), (None, None), None)
        for n in (60, 200, 1_000)
        for s in range(5)
    ]
    assert found == [(None, None)] * 15


def test_a_bound_that_is_given_is_not_proposed():
    x = stats.uniform().rvs(500, random_state=0)
    assert fitted(x, bounds=(0, None)).suggested_bounds_ == (None, 1.0)
    assert fitted(x, bounds=(0, 1)).suggested_bounds_ == (None, None)


@pytest.mark.parametrize("n", [2_000, 20_000])
def test_heavy_tails_leave_the_middle_its_shape(n):
    truth = stats.t(2)
    x = truth.rvs(n, random_state=1)
    middle = x[np.abs(x) < 20]
    simple = stats.gaussian_kde(middle, bw_method=1.06 * 0.9 * n**-0.2 / np.std(middle))
    share = len(middle) / n
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = FieldDensity().fit(x)
    assert error(model.pdf, truth) < 2 * error(lambda at: share * simple(at), truth)


def test_rounded_values_given_another_column_are_no_comb():
    draw = np.random.default_rng(1)
    x, exact = draw.uniform(0, 1, (500, 1)), draw.normal(size=500)
    model = FieldConditional(points=(12, 160), order=1).fit(x, np.round(exact))
    at = np.linspace(-3, 3, 301)
    found = model.predict_density([[0.2], [0.5], [0.8]], at)
    off = [float(np.trapezoid((P - stats.norm.pdf(at)) ** 2, at)) for P in (*found, stats.gaussian_kde(exact)(at))]
    assert max(off[:3]) < 3 * off[3]
