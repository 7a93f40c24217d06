"""When there is no forecast, when it is rough, and tables that cannot be worked with."""

import importlib
import re

import numpy as np
import pandas as pd
import pytest
from tinygp import kernels

from quenched.core import progress
from quenched.core.types import InputError
from quenched.processes.model import GaussianProcess
from quenched.processes.practice import forecast, trials
from quenched.processes.practice.table import find_copies
from tests.processes.forecasts import RULE, VALUES, N, answer, fixed, world

room = importlib.import_module("quenched.processes.practice.forecast")  # its name is that of the function


# When it refuses ------------------------------------------------------------------------------------------------------


def check_refused(result, words):
    assert words in result["refused"].values[0]
    assert words in result.attrs["reasons"]
    assert result.attrs["grade"] == "refused"
    for name in VALUES:
        assert np.all(np.isnan(result[name]))
    assert np.all(np.isfinite(result["measured"]))  # what was computed stays
    assert np.all(np.isfinite(result["leave_one_out"]))
    assert np.isfinite(result.attrs["leave_one_out"])


def test_too_far():
    result = answer()
    assert result["refused"].values.tolist()[:4] == [""] * 4
    assert "more than 10 times" in result["refused"].values[4]
    for name in VALUES:
        assert np.isnan(result[name].values).tolist() == [False] * 4 + [True]
    assert result.attrs["grade"] == "A"


def test_too_few_rows():
    check_refused(fixed(*world(49, 0)), "at least 50 rows")
    assert fixed(*world(50, 0)).attrs["grade"] == "A"
    assert "only 60 rows" in answer().attrs["reasons"]


def test_copies():
    X, y = world(N, 0)
    X[1::10], y[1::10] = X[::10], y[::10]
    check_refused(fixed(X, y), "6 of 60 rows are copies")


def repeated(rows=110, copied=60, grades=False):
    """A noisy table, and the same with copies of some rows in random places."""
    draw = np.random.default_rng(1)
    X = draw.normal(size=(rows, 8))
    y = X[:, 0] + np.sin(X[:, 1]) + 1.5 * draw.normal(size=rows)
    y = np.round(y) if grades else y
    order = draw.permutation(np.append(np.arange(rows), draw.permutation(rows)[:copied]))
    return (X, y), (X[order], y[order]), order


@pytest.mark.parametrize("grades", [False, True])
def test_copies_count_once_in_tuning_error_and_subsets(grades):
    (X, y), (X2, y2), order = repeated(grades=grades)
    once, twice = forecast(X, y, examples=[55, 110]), forecast(X2, y2, examples=[85, 170])
    check_refused(twice, "60 of 170 rows are copies")
    assert twice.attrs["copies"] == 60
    assert twice.attrs["noise"] == pytest.approx(once.attrs["noise"], rel=0.1)  # the columns' units differ
    assert twice.attrs["leave_one_out"] == pytest.approx(once.attrs["leave_one_out"], rel=0.1)
    np.testing.assert_allclose(twice["measured"], once["measured"], rtol=0.1)
    np.testing.assert_allclose(twice["leave_one_out"], once["leave_one_out"].values[order], atol=0.2 * y.std())
    assert len(np.unique(X2[twice["worst"].values], axis=0)) == 10


def test_a_few_copies_are_allowed_and_said():
    X, y = world(101, 0)
    X[50], y[50] = X[3], y[3]
    result = fixed(X, y, examples=[50, 101, 202, 1010])
    assert result.attrs["grade"] == "A"
    assert "1 row is a copy of another; each was counted once." in result.attrs["reasons"]
    assert float(result["gain"].sel(examples=101)) == pytest.approx(1)
    assert result["leave_one_out"].values[50] == result["leave_one_out"].values[3]
    assert np.all(np.isfinite(result["error"]))


def test_rows_that_agree_by_chance_are_no_copies():
    draw = np.random.default_rng(0)
    words = draw.integers(0, 3, size=(100, 2)).astype(float)
    own = np.arange(100)
    for y in (draw.normal(size=100), np.round(words[:, 0] + 0.5 * draw.normal(size=100))):
        np.testing.assert_array_equal(find_copies(words, y), own)
    np.testing.assert_array_equal(find_copies(np.tile(words, (2, 1)), np.tile(own, 2)), np.tile(own, 2))
    grades = np.round(draw.normal(size=100))
    X = np.tile(draw.normal(size=(100, 2)), (2, 1))
    np.testing.assert_array_equal(find_copies(X, np.tile(grades, 2)), np.tile(own, 2))


def test_noise_has_no_grade_a():
    draw = np.random.default_rng(0)
    for seed in range(3):
        X, y = np.random.default_rng(seed).normal(size=(N, 3)), draw.normal(size=N)
        result = forecast(X, y, examples=[N, 2 * N])
        assert result.attrs["grade"] != "A"
        assert result.attrs["grade"] == "refused" or "explain nothing" in result.attrs["reasons"]
    mean = GaussianProcess(1e-6 * kernels.ExpSquared(1.0), 1.0)  # answers the mean, and knows nothing else
    assert "explain nothing" in fixed(X, y, rule=mean).attrs["reasons"]
    monotone = GaussianProcess(kernels.ExpSquared(1.0), 0.97)
    assert "97.0% of the target's variance for noise" in fixed(*world(N, 0), rule=monotone).attrs["reasons"]


def test_large_tables_say_first_numbers_and_progress(monkeypatch, capsys):
    monkeypatch.setattr(room, "FIRST_TUNED", 60)
    monkeypatch.setattr(trials, "LARGEST_TUNED", 80)
    monkeypatch.setattr(progress, "PAUSE", 0.01)
    X, y = world(120, 0)
    result = forecast(X, y, examples=[120, 240])
    said = capsys.readouterr().err.splitlines()
    (first,) = (line for line in said if line.startswith("First numbers: with all rows the error is about"))
    number = float(first.split("about ")[1].split()[0])
    assert number == pytest.approx(result.attrs["leave_one_out"], rel=0.2)
    assert re.fullmatch(r"forecast: \d+ of 20, \d+ s", said[-1])
    assert "tuned on 80 random rows of 120" in result.attrs["reasons"]


def test_a_default_forecast_compiles_nothing_that_grows_with_the_table(monkeypatch):
    """The default kernel is tuned and factorised on the host: 8 rows do not wait for a compiler."""
    for name in ("_call", "numbers_of"):
        monkeypatch.setattr(f"quenched.processes.kernels.{name}", None)
    check_refused(forecast(*world(8, 0), examples=[4, 8]), "at least 50 rows")


def test_rows_in_order():
    X, y = world(N, 0)
    drift = np.sin(np.arange(N) / 8)
    result = fixed(X, y + drift)
    check_refused(result, "Residuals of neighbouring rows are correlated (+0.")
    assert "would hide that" in result.attrs["reasons"]  # nobody is taught to shuffle
    shuffled = np.random.default_rng(0).permutation(N)
    assert fixed(X[shuffled], (y + drift)[shuffled]).attrs["grade"] != "refused"


def test_rows_sorted_by_the_target_are_no_series():
    X, y = world(N, 0)
    order = np.argsort(y)
    result = fixed(X[order], y[order])
    assert result.attrs["grade"] == "rough"
    assert "sorted by the target" in result.attrs["reasons"]
    assert result["error"].values[0] == pytest.approx(float(answer()["error"].sel(examples=N)))


def test_nothing_left_to_judge_by():
    X, y = world(N, 0)
    check_refused(fixed(X, y, rule=GaussianProcess(kernels.ExpSquared(0.2), 1e-3)), "degrees of freedom")


def test_failed_backtest(monkeypatch):
    X, y = world(N, 0)
    monkeypatch.setattr(trials, "backtest", lambda *arguments: 0.4)
    check_refused(fixed(X, y), "49% too high")
    monkeypatch.setattr(trials, "backtest", lambda *arguments: -0.3)
    result = fixed(X, y, examples=[N, 2 * N])
    assert result.attrs["grade"] == "rough"
    assert "off by 26%" in result.attrs["reasons"]
    wider = np.log(result["gain_high"] / result["gain"]).values
    assert wider[0] == pytest.approx(0, abs=1e-12)
    assert wider[1] > room.Z80 * 0.15  # half of the deviation


def test_rough_where_single_rows_dominate():
    X, y = world(N, 0)
    X[5], y[5] = (3.0, 3.0), 3.0
    result = fixed(X, y)
    assert result.attrs["H"] > 0.15
    assert result.attrs["grade"] == "rough"
    assert "single rows dominate" in result.attrs["reasons"]
    assert result["worst"].values[0] == 5


def test_rough_where_tuning_matters(monkeypatch):
    monkeypatch.setattr(trials, "refit_ratio", lambda *arguments: 1.4)
    monkeypatch.setattr(room.learner, "most_likely", lambda law, rule, **_: rule)
    result = forecast(*world(N, 0), rule=RULE, examples=[5, N])
    assert result.attrs["grade"] == "rough"
    assert "by 40%" in result.attrs["reasons"]
    assert result["error"].sel(examples=5) == pytest.approx(1.2)  # the mean of five rows does as well
    assert result["gain"].sel(examples=5) == pytest.approx(1.2 / float(result["error"].sel(examples=N)))


# Bad input ------------------------------------------------------------------------------------------------------------


def test_constant_columns_are_named():
    X, y = world(N, 0)
    seen = []
    frame = pd.DataFrame({"one": np.full(N, 3.0), "u": X[:, 0], "v": X[:, 1]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "refit_ratio", lambda *arguments: 1.0)
        patch.setattr(room.learner, "default_rule", lambda law: seen.append(law) or RULE)
        patch.setattr(room.learner, "most_likely", lambda law, rule, **_: rule)
        result = forecast(frame, pd.Series(y), examples=[N])
    assert "left out: one." in result.attrs["reasons"]
    assert seen[0].inputs.shape == (N, 2)
    np.testing.assert_allclose(result["leave_one_out"], answer()["leave_one_out"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X[:4], y[:4]), "at least 5 rows"),
        (
            lambda X, y: (X, np.where(np.arange(len(y)) == 3, np.nan, y)),
            "`y` must have a value in every row, but it lacks 1 of",
        ),
        (
            lambda X, y: (np.where(np.arange(2) == 1, np.nan, X), y),
            "`X` must have a value in every row, but column '1' lacks",
        ),
        (lambda X, y: (X, np.array(["a"] * len(y))), "`y` must have a finite number in every row, but it has words"),
        (
            lambda X, y: (pd.DataFrame({"u": X[:, 0], "w": ["a"] * len(y)}), y),
            "`X` must have a finite number in every row, but column 'w' has words",
        ),
        (lambda X, y: (np.ones_like(X), y), "all are constant"),
        (lambda X, y: (X, np.ones_like(y)), "must vary"),
        (lambda X, y: (X[:-1], y), r"shapes \[N, d\] and \[N\]"),
        (lambda X, y: (X, np.column_stack([y, y])), r"shapes \[N, d\] and \[N\]"),
    ],
)
def test_tables_that_cannot_be_worked_with(change, words):
    with pytest.raises(InputError, match=words):
        fixed(*change(*world(N, 0)), examples=[N])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"examples": [0, 10]}, "`examples` must increase from 1"),
        ({"examples": [-5]}, "`examples` must increase from 1"),
        ({"examples": [10, 10]}, "`examples` must increase"),
        ({"rule": "rbf"}, "`rule` must be a GaussianProcess"),
        ({"rule": None}, "`rule` must be given when `tune` is False"),
        ({"rule": GaussianProcess(np.eye(3), 0.1)}, "`kernel` must give a matrix of 60 x 60 rows"),
        ({"check": -1}, "`check` must be at least 0"),
        ({"accuracy": 0}, "`accuracy` must be positive"),
        ({"names": ["a"]}, "`names` must name each of the 2 columns"),
    ],
)
def test_arguments_that_cannot_be_worked_with(arguments, words):
    with pytest.raises(InputError, match=words):
        fixed(*world(N, 0), **arguments)
