"""The table of a forecast: whatever its units are, the answer is the same; what is no number is named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tinygp import kernels

from quenched.core.types import InputError
from quenched.processes import Empirical, GaussianProcess, forecast
from quenched.processes.practice.table import read
from tests.properties import common as properties

N = 60
EXACT = 1e-9
"""Rounding of numbers in other units, relative."""


def world():
    draw = np.random.default_rng(0)
    X = draw.uniform(-2, 2, size=(N, 2))
    return X, 5 + np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.4 * draw.normal(size=N)


def answer(X, y):
    return forecast(X, y, rule=GaussianProcess(kernels.ExpSquared(1.0), 0.4), tune=False, examples=[N, 2 * N])


@pytest.fixture(scope="module")
def plain():
    return answer(*world())


@pytest.mark.parametrize(("of_X", "of_y"), [(1e200, 1.0), (1e-200, 1.0), (1.0, 1e200), (1.0, 1e-200), (1e-300, 1e305)])
def test_units_do_not_change_the_answer(plain, of_X, of_y):
    X, y = world()
    found = answer(of_X * X, of_y * y)
    assert found.attrs["grade"] == plain.attrs["grade"]
    for name in ("error", "error_low", "gain_high", "measured"):
        np.testing.assert_allclose(found[name], plain[name], rtol=EXACT)
    for name in ("rmse", "rmse_low", "rmse_high", "leave_one_out"):
        np.testing.assert_allclose(found[name] / of_y, plain[name], rtol=EXACT, atol=1e-9)
    for name in ("target_scale", "target_centre"):
        assert found.attrs[name] / of_y == pytest.approx(plain.attrs[name], rel=EXACT)
    assert found.attrs["leave_one_out"] == pytest.approx(plain.attrs["leave_one_out"], rel=EXACT)


def test_everything_in_the_units_of_the_target_is_known(plain):
    found = answer(world()[0], 4.0 * world()[1])
    other = [
        str(n)
        for n, v in found.data_vars.items()
        if v.dtype.kind == "f" and not np.allclose(v, plain[n], equal_nan=True)
    ]
    said = [
        n for n, v in found.attrs.items() if isinstance(v, float) and not np.isclose(v, plain.attrs[n], equal_nan=True)
    ]
    assert {*other, *said} == {"rmse", "rmse_low", "rmse_high", "leave_one_out", "target_scale", "target_centre"}


@properties.property_settings(20)
@given(st.integers(-900, 900), st.integers(-900, 900))
def test_powers_of_two_change_no_bit_of_the_inputs(first, second):
    X, y = world()
    found = read(X * np.array([2.0**first, 2.0**second]), y, None, keep=False)
    np.testing.assert_array_equal(found.X, read(X, y, None, keep=False).X)


MADE = {
    "complex inputs": (lambda X, y: (X + 1j, y), "`X` .* column '0' has complex numbers in 60 of 60"),
    "complex targets": (lambda X, y: (X, y + 0j), "`y` .* it has complex numbers in 60 of 60"),
    "a complex object": (
        lambda X, y: (np.where(np.arange(2) == 1, np.array(1j, object), X), y),
        "column '1' has complex numbers",
    ),
    "masked inputs": (lambda X, y: (np.ma.masked_greater(X, 1.9), y), r"column '0' lacks \d+ of 60 values"),
    "masked targets": (lambda X, y: (X, np.ma.masked_greater(y, 6)), r"`y` .* it lacks \d+ of 60 values"),
    "two columns": (
        lambda X, y: (pd.DataFrame({"u": np.where(X[:, 0] > 1.9, np.nan, X[:, 0]), "w": ["a"] * N}), y),
        r"column 'u' lacks \d+ of 60 values .rows .*; column 'w' has words in 60 of 60, such as 'a' .rows 0, 1, 2, ...",
    ),
    "dates": (
        lambda X, y: (pd.DataFrame({"day": pd.date_range("2024-01-01", periods=N)}), y),
        "column 'day' has dates in 60 of 60",
    ),
    "nullable": (lambda X, y: (X, pd.Series(y).where(y > 4.1).astype("Float64")), r"lacks \d+ of 60"),
    "ragged": (lambda X, y: ([[1.0], [1.0, 2.0]] * 30, y), "rows of one length"),
    "no columns": (lambda X, y: (X[:, :0], y), "must have columns"),
    "cube": (lambda X, y: (X[:, :, None], y), r"shape \[N, d\]"),
}


@pytest.mark.parametrize("case", MADE)
def test_what_is_no_number_is_named(case):
    change, words = MADE[case]
    with pytest.raises(InputError, match=words) as caught:
        answer(*change(*world()))
    properties.said(caught.value)


def test_what_is_a_number_is_read():
    X, y = world()
    plain = read(X, y, None, keep=False)
    for given_X in (X.tolist(), X.astype(object), np.ma.array(X), pd.DataFrame(X), X.astype(str)):
        np.testing.assert_allclose(read(given_X, pd.Series(y), None, keep=False).X, plain.X, rtol=1e-12)
    shares = read(pd.DataFrame({"p": [f"{x:.3f}%" for x in X[:, 0]]}), y, None, keep=False)
    assert "is read as numbers" in shares.remarks[0]


def test_a_law_needs_targets_whose_squares_are_numbers():
    X, y = world()
    for scale in (1e200, 1e-200):
        with pytest.raises(InputError, match="`targets` must be between"):
            Empirical(X, scale * y)
