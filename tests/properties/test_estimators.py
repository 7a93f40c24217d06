"""Whatever table and settings an estimator gets: a finite answer, or a sentence."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from quenched import estimators
from quenched.core.types import InputError
from tests.properties import common as properties
from tests.properties.estimators import ALONE, ASKED, ESTIMATORS, TABLES, WEIGHTS, Estimator, lumps

CLASSES = [name for name in estimators.__all__ if isinstance(getattr(estimators, name), type)]


def test_every_estimator_is_tried():
    assert sorted(CLASSES) == sorted(ESTIMATORS)
    for name, case in ESTIMATORS.items():
        assert set(case.settings) <= set(case.cls().get_params()), name
        public = {m for m in dir(case.cls) if not m.startswith("_") and callable(getattr(case.cls, m))}
        known = {*ASKED, *ALONE, "fit", "partial_fit", "fit_predict", "fit_transform", "get_params", "set_params",
                 "get_metadata_routing", "get_feature_names_out", "set_output", "levels", "plot", "metric"}  # fmt: skip
        assert {m for m in public if not m.endswith("_request")} <= known, name


def _from_sklearn(error: Exception) -> bool:
    """Whether scikit-learn itself refuses a table, as it does in every estimator."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    return where is not None and "sklearn" in where.tb_frame.f_code.co_filename and bool(str(error))


def attempt(call: Any) -> Any:
    """A finite answer, or None where it was refused with a sentence (scikit-learn's own are longer than ours)."""
    with warnings.catch_warnings(), properties.in_time():
        for kind in (ConvergenceWarning, DataConversionWarning, UserWarning):
            warnings.simplefilter("ignore", kind)
        try:
            answer = call()
        except InputError as error:
            properties.said(error)
            return None
        except (ValueError, TypeError) as error:
            if not _from_sklearn(error):
                raise
            return None
    return answer


def finite(value: Any) -> None:
    """Refuse numbers that are none."""
    if isinstance(value, (tuple, list)):
        for part in value:
            finite(part)
    elif isinstance(value, xr.Dataset):
        properties.look_at_dataset(value)
    elif np.asarray(value).dtype.kind == "f":
        assert np.all(np.isfinite(np.asarray(value))), value


def ask(case: Estimator, model: Any, X: Any, y: Any) -> None:
    """Everything that a fitted estimator can say about rows, and its own numbers."""
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_") and isinstance(value, (float, np.ndarray, tuple)):
            finite(value)
    for name in ALONE:
        if hasattr(model, name):
            finite_or_log(name, attempt(getattr(model, name)))
    for name in ASKED:
        if not hasattr(model, name):
            continue
        method = getattr(model, name)
        needs = case.targets is not None and name in ("score", "score_samples", "predict_branch")
        finite_or_log(name, attempt(functools.partial(method, X, y) if needs else functools.partial(method, X)))


def finite_or_log(name: str, result: Any) -> None:
    """A log-density may be minus infinity where the density is less than the least number; all else is finite."""
    if result is None:
        return
    if name in ("score_samples", "score", "bic", "aic"):
        assert not np.any(np.isnan(np.asarray(result))), (name, result)
        return
    finite(result)


def fitted(case: Estimator, settings: dict[str, Any], X: Any, y: Any, weights: Any) -> Any:
    """The model, or None where it was refused."""
    model = case.cls(**settings)
    arguments = {} if weights is None else {"sample_weight": weights}
    return attempt(lambda: model.fit(X, y, **arguments) if case.targets is not None else model.fit(X, **arguments))


@pytest.mark.parametrize("name", CLASSES)
@properties.property_settings(8)
@given(data=st.data())
def test_any_table_gives_a_finite_answer_or_a_sentence(name, data):
    case = ESTIMATORS[name]
    kind = data.draw(st.sampled_from(sorted(TABLES)))
    X = TABLES[kind](lumps(data.draw(st.integers(0, 9)), case.columns))
    rows = np.shape(X)[0] if np.ndim(X) else 0
    y = None if case.targets is None else case.targets[data.draw(st.sampled_from(sorted(case.targets)))](rows)
    weights = WEIGHTS[data.draw(st.sampled_from(sorted(WEIGHTS)))](rows)
    settings = case.fast | data.draw(st.fixed_dictionaries({}, optional=case.settings))
    model = fitted(case, settings, X, y, weights)
    if model is not None:
        ask(case, model, X, y)


@pytest.mark.parametrize("name", CLASSES)
@properties.property_settings(8)
@given(data=st.data())
def test_wrong_settings_are_refused_with_a_sentence(name, data):
    case = ESTIMATORS[name]
    X = lumps(0, case.columns)
    y = None if case.targets is None else next(iter(case.targets.values()))(len(X))
    settings = case.fast | data.draw(st.fixed_dictionaries({}, optional=case.settings))
    which = data.draw(st.sampled_from(sorted(case.cls().get_params())))
    model = fitted(case, settings | {which: data.draw(properties.wrong)}, X, y, None)
    if model is not None:
        ask(case, model, X, y)


@functools.cache
def usual(name):
    """An estimator with fast settings that has seen usual rows, and these rows."""
    case = ESTIMATORS[name]
    X = lumps(0, case.columns)
    y = None if case.targets is None else next(iter(case.targets.values()))(len(X))
    return fitted(case, case.fast, X, y, None), X, y


@pytest.mark.parametrize("name", CLASSES)
@properties.property_settings(8)
@given(kind=st.sampled_from(sorted(TABLES)))
def test_any_rows_may_be_asked_about(name, kind):
    model, X, y = usual(name)
    ask(ESTIMATORS[name], model, TABLES[kind](X), y)
