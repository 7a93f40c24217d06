"""FieldRegressor and FieldConditional: scikit-learn's checks, and what they refuse."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from quenched.estimators import FieldConditional, FieldRegressor
from tests.estimators.checks import each_check
from tests.estimators.rows import waves, whole_values

REWRITTEN = 1e-11  # one minimum, reached from data written down in two ways


class OneColumn:
    """Looks at the first column only, so that checks with many columns say something."""

    def _read(self, *given):
        rows, *rest = super()._read(*given)
        return rows[:, :1], *rest

    def _rows(self, X):
        return super()._rows(X)[:, :1]


class OneRegressor(OneColumn, FieldRegressor):
    pass


class OneConditional(OneColumn, FieldConditional):
    pass


ONE = {"check_regressors_train": "asks one column to explain half of the variance that ten explain"}
VALUES = dict.fromkeys(
    ["check_methods_sample_order_invariance", "check_methods_subset_invariance"],
    "call score_samples without the values whose density it is; there is a test of its own",
)
WIDE = dict.fromkeys(
    [
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_nan_inf",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_regressor_data_not_an_array",
        "check_regressors_int",
        "check_regressors_no_decision_function",
        "check_regressors_train",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weights_list",
        "check_supervised_y_2d",
    ],
    "has more columns than a grid takes; with one column it passes",
)
NARROW = dict.fromkeys(
    [
        "check_estimators_fit_returns_self",
        "check_fit_idempotent",
        "check_readonly_memmap_input",
        "check_estimators_overwrite_params",
        "check_fit_check_is_fitted",
        "check_n_features_in",
        "check_sample_weights_not_an_array",
        "check_sample_weights_not_overwritten",
        "check_sample_weights_pandas_series",
        "check_sample_weights_shape",
    ],
    "has more columns than one; with one column it passes",
)
EXPECTED = {
    FieldRegressor: WIDE,
    FieldConditional: WIDE | NARROW,
    OneRegressor: ONE,
    OneConditional: ONE | VALUES,
}


@each_check(
    FieldRegressor(points=12),
    FieldConditional(points=(12, 24), order=1, strength=(10.0, 1e-3)),
    OneRegressor(points=40),
    OneConditional(points=(12, 20), order=1, strength=(10.0, 1e-3)),
    expected=lambda e: EXPECTED[type(e)],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_what_fails_for_its_columns_is_a_check():
    names = {check.func.__name__ for _, check in estimator_checks_generator(OneConditional())}
    assert set(WIDE) | set(NARROW) <= names


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (FieldRegressor(), (*waves(60), np.random.default_rng(1).integers(0, 4, 60))),
        (FieldConditional(points=(12, 60), order=1), (*waves(60), np.random.default_rng(1).integers(0, 4, 60))),
        *((FieldConditional(points=(12, 24), order=1, strength=(10.0, 1e-3)), whole_values(k)) for k in (4, 8, 10)),
    ],
)
def test_a_weight_is_so_many_equal_rows_in_any_order(model, data):
    X, y, weights = data
    order = np.random.default_rng(2).permutation(np.arange(len(y)).repeat(weights))
    one, two = clone(model).fit(X, y, weights), clone(model).fit(X[order], y[order])
    np.testing.assert_allclose(two.predict(X), one.predict(X), rtol=REWRITTEN)
    assert two.log_evidence_ == pytest.approx(one.log_evidence_, rel=REWRITTEN)


@pytest.mark.parametrize("model", [FieldRegressor(), FieldConditional(points=(12, 40), order=1)])
@pytest.mark.parametrize("slope", [0.0, 3.0])
def test_values_without_noise_are_kept(model, slope):
    X = np.linspace(0, 1, 30)[:, None]
    found = clone(model).fit(X, 2 + slope * X[:, 0])
    np.testing.assert_allclose(found.predict(X), 2 + slope * X[:, 0], atol=1e-4)
    assert np.isfinite(found.log_evidence_)


# What they refuse

X, Y = waves(30)
BAD = {
    "no rows": (FieldRegressor(), X[:0], Y[:0], {}, "minimum of 1 is required"),
    "one row": (FieldRegressor(), X[:1], Y[:1], {}, "at least two different values .* n_samples=1 values of column 0"),
    "one x": (FieldConditional(), 0 * X, Y, {}, "at least two different values"),
    "nan": (FieldRegressor(), np.where(X > 2, np.nan, X), Y, {}, "NaN"),
    "nan value": (FieldConditional(), X, np.where(Y > 0.5, np.nan, Y), {}, "NaN"),
    "words": (FieldRegressor(), X, np.full(30, "a"), {}, "`y` must be real numbers"),
    "too large": (FieldRegressor(), 1e300 * X, Y, {}, "`X` must lie strictly between"),
    "too large value": (FieldRegressor(), X, 1e300 * Y, {}, "`y` must lie strictly between"),
    "three columns": (FieldRegressor(), np.ones((30, 3)), Y, {}, "one or two columns, but it has 3"),
    "two columns": (FieldConditional(), np.ones((30, 2)), Y, {}, "one column, but it has 2"),
    "one line in a plane": (FieldRegressor(order=2), np.hstack([X, X]), Y, {}, "do not decide"),
    "two rows": (FieldRegressor(order=2), X[:2], Y[:2], {}, "more different rows than there are free polynomials, 2"),
    "negative weight": (FieldRegressor(), X, Y, {"sample_weight": -np.ones(30)}, "[Nn]egative"),
    "no weight": (FieldConditional(), X, Y, {"sample_weight": np.zeros(30)}, "at least one non-zero"),
    "few points": (FieldRegressor(points=5), X, Y, {}, "`points` must be at least 12"),
    "one number of points": (FieldConditional(points=20), X, Y, {}, "`points` must be two numbers"),
    "few points along y": (FieldConditional(points=(20, 3)), X, Y, {}, "`points` must be at least 12"),
    "order zero": (FieldRegressor(order=0), X, Y, {}, "`order` must be at least 1"),
    "order seven": (FieldRegressor(order=7), X, Y, {}, "`order` must be at most 6"),
    "order seven along x": (FieldConditional(order=7), X, Y, {}, "`order` must be at most 6"),
    "strength alone": (FieldRegressor(strength=1.0), X, Y, {}, "`order` must be given together"),
    "one strength": (FieldConditional(order=1, strength=3.0), X, Y, {}, "`strength` must be two numbers"),
    "negative strength": (FieldConditional(order=1, strength=(3.0, -1.0)), X, Y, {}, "`strength` must be positive"),
    "strengths alone": (FieldConditional(strength=(3.0, 1.0)), X, Y, {}, "`order` must be given together"),
    "negative noise": (FieldRegressor(noise=-1.0), X, Y, {}, "`noise` must be positive"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    model, rows, values, options, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        model.fit(rows, values, **options)
