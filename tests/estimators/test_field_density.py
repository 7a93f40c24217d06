"""FieldDensity as a scikit-learn estimator: its own checks, options, and what it refuses."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import estimator_checks_generator

import quenched
from quenched.core.types import Outcome
from quenched.estimators import FieldDensity
from tests.estimators.checks import each_check


class OneColumn(FieldDensity):
    """Looks at the first column only, so that checks with many columns say something."""

    def _rows(self, X, *, reset):
        return super()._rows(X, reset=reset)[:, :1]


VECTOR = {"check_fit1d": "a vector is one column, so it is not refused"}
MANY = "has more columns than a grid takes; OneColumn passes it"
SPACE = FieldDensity(points=20, order=2, strength=1.0)
WIDE = VECTOR | dict.fromkeys(
    [
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_fit2d_1sample",
        "check_n_features_in_after_fitting",
        "check_positive_only_tag_during_fit",
        "check_sample_weight_equivalence_on_dense_data",
    ],
    MANY,
)


@pytest.mark.filterwarnings("ignore:The values of column")  # tables of few whole numbers
@each_check(SPACE, OneColumn(points=40, tree=False), expected=lambda e: VECTOR if type(e) is OneColumn else WIDE)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_what_fails_for_its_columns_passes_with_one():
    names = {check.func.__name__ for _, check in estimator_checks_generator(OneColumn())}
    assert set(WIDE) <= names


X = np.random.default_rng(0).normal(size=200)


def test_a_vector_a_column_a_list_and_a_series_are_the_same():
    first = FieldDensity().fit(X)
    for same in (X[:, None], X.tolist(), pd.Series(X)):
        np.testing.assert_array_equal(FieldDensity().fit(same).density_, first.density_)
    assert first.n_features_in_ == 1
    np.testing.assert_array_equal(first.score_samples(X), first.score_samples(X[:, None]))
    np.testing.assert_allclose(np.exp(first.score_samples(X)), first.pdf(X))
    assert first.score(X) == pytest.approx(np.mean(first.score_samples(X)))
    assert first.pdf(0.3).shape == ()
    assert first.pdf(np.zeros((2, 3))).shape == (2, 3)


def test_attributes_agree():
    model = FieldDensity().fit(X)
    np.testing.assert_allclose(model.pdf(model.grid_), model.density_)
    np.testing.assert_allclose(np.log(model.density_), model.log_density_)
    best = model.path_[np.argmax(model.path_["share"])]
    assert (best["order"], best["strength"]) == (model.order_, model.strength_)
    assert model.path_["share"].sum() == pytest.approx(1)
    assert model.outcome_ == Outcome.converged


def test_an_order_and_a_strength_can_be_given():
    model = FieldDensity(order=2, strength=1e-3).fit(X)
    assert (model.order_, model.strength_, len(model.path_)) == (2, 1e-3, 1)
    rough, smooth = (FieldDensity(order=2, strength=s).fit(X) for s in (1e-4, 1e2))
    bends = [np.sum(np.diff(m.log_density_, 2) ** 2) for m in (rough, model, smooth)]
    assert bends[0] > bends[1] > bends[2]
    assert FieldDensity(order=2).fit(X).order_ == 2
    assert rough.log_evidence_ < FieldDensity(order=2).fit(X).log_evidence_ + 5


def test_points_and_bounds_can_be_given():
    model = FieldDensity(points=57, bounds=(-5, 6)).fit(X)
    assert (len(model.grid_), model.grid_[0], model.grid_[-1]) == (57, -5, 6)
    assert model.score_samples([-5.1])[0] == -np.inf
    plane = FieldDensity(points=(24, 30), bounds=[(-5, 6), (None, 9)], order=3).fit(X.reshape(-1, 2))
    assert plane.density_.shape == (24, 30)
    assert (plane.grid_[0][0], plane.grid_[1][-1]) == (-5, 9)
    low, high = plane.credible_band()
    assert low.shape == high.shape == (24, 30)


def test_data_outside_the_bounds_can_lift_them():
    model = FieldDensity(bounds=(0, 8), extend=True).fit(X)
    assert model.grid_[0] < X.min()
    assert model.grid_[-1] == 8


def test_the_tail_falls_by_e_in_a_fiftieth_of_the_grid():
    model = FieldDensity().fit(X)
    end, length = model.grid_[-1], model.grid_[-1] - model.grid_[0]
    at = model.score_samples([end, end + length / 50, end + 1e6 * length])
    np.testing.assert_allclose(at, at[0] - [0, 1, 50e6])


def test_a_wider_level_gives_a_wider_band():
    model = FieldDensity().fit(X)
    (a, d), (b, c) = model.credible_band([0.0, 1.0], level=0.99), model.credible_band([0.0, 1.0], level=0.5)
    assert np.all((a < b) & (b < c) & (c < d))


def test_clone_pickle_and_search():
    model = FieldDensity(order=3).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    search = GridSearchCV(clone(model), {"order": [1, 3]}, cv=3).fit(X[:, None])
    assert search.best_params_["order"] == 3
    assert np.array_equal(model.sample(5, random_state=1), model.sample(5, random_state=1))


def test_a_far_row_leaves_the_middle_its_shape():
    near, far = FieldDensity(order=3).fit(X), FieldDensity(order=3).fit(np.append(X, 1e4))
    at = np.linspace(-1.5, 1.5, 31)
    np.testing.assert_allclose(far.pdf(at), near.pdf(at), rtol=0.25)  # half of its 90% band
    assert np.all(np.isfinite(far.log_density_))
    assert far.pdf(1e4) < 1e-4
    gaps = np.diff(far.grid_)
    assert gaps.max() > 100 * gaps.min()


@pytest.mark.filterwarnings("ignore:The values of column")  # an edge
def test_a_middle_without_width_warns():
    with pytest.warns(UserWarning, match="cannot resolve their middle half"):
        FieldDensity(order=2).fit(np.append(np.zeros(300), X[:100]))


BAD = {
    "no data": (FieldDensity(), [], {}, "minimum of 1 is required"),
    "one row": (FieldDensity(), [1.0], {}, "at least two different values .* but all n_samples=1 values"),
    "tiny": (FieldDensity(), 1e-200 * np.arange(9.0), {}, "differ by 1e-150 at least"),
    "rounding": (FieldDensity(), 1e16 + np.arange(0.0, 40, 2), {}, "differ by more than rounding .* 1e\\+16"),
    "one repeated value": (FieldDensity(), np.full(9, 2.5), {}, "at least two different values .* are 2.5"),
    "one repeated value in a column": (FieldDensity(), np.stack([X, 0 * X], axis=1), {}, "of column 1 are 0"),
    "nan": (FieldDensity(), [1.0, np.nan, 2.0], {}, "NaN"),
    "infinite": (FieldDensity(), [1.0, np.inf, 2.0], {}, "infinity"),
    "too large": (FieldDensity(), [-1e300, 1e300], {}, "`X` must lie strictly between"),
    "four columns": (FieldDensity(tree=False), np.ones((5, 4)), {}, "one, two or three columns, but it has 4"),
    "outside": (FieldDensity(bounds=(0, None)), X, {}, r"inside `bounds`, but column 0 holds -2\.\d+, beyond 0"),
    "negative weight": (FieldDensity(), X, {"sample_weight": -np.ones(200)}, "[Nn]egative"),
    "no weight": (FieldDensity(), X, {"sample_weight": np.zeros(200)}, "at least one non-zero"),
    "falling bounds": (FieldDensity(bounds=(3, -3)), X, {}, "`bounds` must rise"),
    "three bounds": (FieldDensity(bounds=(1, 2, 3)), X, {}, "`bounds` must be a pair"),
    "a number as bounds": (FieldDensity(bounds=3.0), X, {}, "`bounds` must be a pair"),
    "infinite bound": (FieldDensity(bounds=(0, np.inf)), X, {}, "`bounds` must be finite"),
    "few points": (FieldDensity(points=5), X, {}, "`points` must be at least 20"),
    "two points for one column": (FieldDensity(points=(30, 30)), X, {}, "one number for each of 1 columns"),
    "order zero": (FieldDensity(order=0), X, {}, "`order` must be at least 1"),
    "order seven": (FieldDensity(order=7), X, {}, "`order` must be at most 6"),
    "strength alone": (FieldDensity(strength=1.0), X, {}, "`order` must be given together"),
    "negative strength": (FieldDensity(order=3, strength=-1.0), X, {}, "`strength` must be positive"),
    "no strength": (FieldDensity(order=3, strength=1e-30), X, {}, "`strength` must be at least"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    model, data, options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        model.fit(data, **options)


def test_bad_questions_are_refused():
    model = FieldDensity().fit(X)
    with pytest.raises(ValueError, match="`level` must lie strictly between 0 and 1"):
        model.credible_band(level=1.0)
    with pytest.raises(ValueError, match="`x` must be finite"):
        model.pdf(np.nan)
    with pytest.raises(ValueError, match="`n_samples` must be at least 1"):
        model.sample(0)
    with pytest.raises(ValueError, match="expecting 1 features"):
        model.score_samples(np.ones((3, 2)))
    plane = FieldDensity(points=24, order=3).fit(X.reshape(-1, 2))
    with pytest.raises(ValueError, match="2 coordinates in its last dimension"):
        plane.pdf([1.0, 2.0, 3.0])


def test_not_fitted():
    for ask in ("score_samples", "pdf", "credible_band"):
        with pytest.raises(NotFittedError):
            getattr(FieldDensity(), ask)(X)
    with pytest.raises(NotFittedError):
        FieldDensity().sample()


def test_a_density_describes_itself_and_is_drawn():
    frame = pd.DataFrame({"price": np.random.default_rng(0).gamma(3.0, size=80)})
    weights = np.where(np.arange(80) < 40, 2.0, 0.0)
    model = FieldDensity().fit(frame, sample_weight=weights)
    found = model.describe(level=0.5)
    assert (found.attrs["column"], found.attrs["rows"], found.attrs["level"]) == ("price", 40, 0.5)
    np.testing.assert_array_equal(found.density, model.density_)
    np.testing.assert_array_equal([found.density_low, found.density_high], model.credible_band(level=0.5))
    heights, edges = np.histogram(frame["price"][:40], found.sizes["bar"], density=True)
    np.testing.assert_allclose(found.histogram, heights)
    np.testing.assert_allclose(found.edge, edges)
    ax = quenched.plot(found).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("price", "probability density")


def test_what_cannot_be_described_is_said():
    with pytest.raises(NotFittedError):
        FieldDensity().describe()
    plane = FieldDensity(points=20).fit(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.raises(quenched.InputError, match="must be of one column"):
        plane.describe()
