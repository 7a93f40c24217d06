"""The benchmarks of forecasts: peers at their global minimum, noise as it is said to be, folds by table."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from benchmarks import curves, extrapolation, forecasts, learn_prior, surrogate
from quenched.forecasting import prior

N = np.unique(np.geomspace(16, 4096, 65).round())


def made(table, learner, seed=0):
    draw = np.random.default_rng([table, learner, seed])
    error = draw.uniform(0.05, 0.3) + draw.uniform(0.3, 1) * N ** -draw.uniform(0.3, 1)
    return curves.Curve(table, learner, N, error * np.exp(0.01 * draw.standard_normal(len(N))), 0.01 * error, error / 3)


MADE = [made(table, learner) for table in range(6) for learner in range(2)]


@pytest.mark.parametrize("family", ["pow3", "pow4", "mmf4", "wbl4"])
def test_a_family_is_found_again(family):
    shape = {
        "pow3": lambda n: n**-0.7,
        "pow4": lambda n: 10 * (n + 50) ** -0.9,
        "mmf4": lambda n: 1 / (1 + (n / 200) ** 1.3),
        "wbl4": lambda n: np.exp(-((n / 300) ** 0.6)),
    }[family]
    error = 0.1 + shape(N)
    seen = curves.Curve(0, 0, N, error, 0.01 * error, None)
    assert (
        abs(extrapolation.fit(family, seen, 4 * N[-1]) / (0.1 + shape(4 * N[-1])) - 1) < 0.005
    )  # steps of the finest grid
    assert extrapolation.fit("last value", seen, 4 * N[-1]) == error[-1]


def test_thin_curves_have_two_points_an_octave_and_the_noise_of_five_splits():
    curve = made(0, 0)._replace(error=np.full(len(N), 0.2), stderr=np.full(len(N), 0.004))
    draw = np.random.default_rng(0)
    found = np.stack([curves.thin(curve, draw).error for _ in range(2000)])
    assert found.shape[1] == 17  # eight octaves
    expected = 0.2 * 0.8 / (5 * 500) + (25 / 5 - 1) * 0.004**2
    np.testing.assert_allclose(found.var(axis=0), expected, rtol=0.15)
    assert curves.thin(curve, draw, noise=0.0).error.std() == 0


def test_the_truth_is_not_seen_and_folds_are_tables():
    for curve in MADE[:2]:
        for horizon in curves.HORIZONS:
            seen, truth = curves.parts(curve, horizon)
            assert seen.n[-1] <= N[-1] / horizon
            assert truth == curve.error[-1]
    asked = curves.sample(MADE, learn=False)
    fold = learn_prior.fold_of(asked.table, 3)
    for table in range(6):
        assert len(set(fold[asked.table == table])) == 1


def test_the_noise_of_the_truth_is_its_standard_error():
    floor = extrapolation.noise([c._replace(stderr=0.03 * c.error) for c in MADE])
    assert floor.shape == (len(curves.HORIZONS), 2)
    np.testing.assert_allclose(floor[0], 0.03 * np.array([0.6745, 1.645]), rtol=0.06)  # of a normal variable


def test_a_run_that_was_stopped_goes_on_and_sizes_take_turns(monkeypatch, tmp_path):
    one = types.SimpleNamespace(name="a", seed=3, arrays=lambda: (np.zeros((2600, 2)), np.zeros(2600)))
    assert [forecasts.rows_seen(one, 2600, split) for split in range(4)] == [100, 200, 400, 100]
    asked = []

    def measured(table, X, y, split):
        asked.append(split)
        return iter([{"table": table.name, "split": split}])

    monkeypatch.setattr(forecasts, "chosen", lambda half, count: [one])
    monkeypatch.setattr(forecasts, "cases", measured)
    for splits in ("2", "3"):
        monkeypatch.setattr(sys, "argv", ["", "measure", str(tmp_path / "rows"), "development", "8", splits])
        forecasts.main()
    assert asked == [0, 1, 2]


def test_networks_go_down_the_slope_of_their_loss(monkeypatch):
    draw = np.random.default_rng(0)
    x, y, w = draw.standard_normal((6, 7)), draw.standard_normal(6), draw.uniform(0.5, 2, 6)
    layers = [a.astype(float) for a in learn_prior.begin(7, draw)]
    layers[4] *= 20

    def outputs():
        h = x
        for k in (0, 2):
            z = h @ layers[k] + layers[k + 1]
            h = z / (1 + np.exp(-z))
        return h @ layers[4] + layers[5]

    weights = learn_prior._scale(outputs()[:, : len(prior.QUANTILES)])
    monkeypatch.setattr(learn_prior, "_scale", lambda q: weights)  # no derivative is taken of it
    monkeypatch.setattr(learn_prior, "DROPPED", 0.0)
    found = learn_prior._derivatives(layers, x, y, w, draw)
    for a, slope in zip(layers, found, strict=True):
        place = tuple(draw.integers(0, a.shape))
        ends = []
        for step in (1e-6, -1e-6):
            a[place] += step
            ends.append(learn_prior.loss(outputs(), y, w))
            a[place] -= step
        np.testing.assert_allclose(slope[place], (ends[0] - ends[1]) / 2e-6, rtol=1e-4, atol=1e-7)


def test_a_prior_that_is_learned_beats_chance_on_tables_it_has_not_seen(monkeypatch):
    for name, value in {"STEPS": 500, "BATCH": 128}.items():
        monkeypatch.setattr(learn_prior, name, value)
    lessons, asked = (learn_prior.Lessons(curves.sample(MADE, learn=True)), curves.sample(MADE, learn=False))
    found = learn_prior.hold_out(lessons, asked, 2, 1)
    error, inside, widths = extrapolation.judge(asked, found, 2)
    last = np.array([np.abs(curves.parts(c, h)[0].error[-1] / c.error[-1] - 1) for c in MADE for h in (8, 16)])
    far = asked.horizon >= 8
    assert np.median(error[far]) < 0.7 * np.median(last)
    q = prior.read_outputs(found, asked.rows, learn_prior.widening(asked, found), 0.8)
    held = (q.low <= asked.truth) & (asked.truth <= q.high)
    for horizon in curves.HORIZONS:  # on the tables that they were calibrated on, intervals hold just so many
        assert abs(held[asked.horizon == horizon].mean() - 0.8) <= 1 / 12
    assert np.all(widths > 0)
    text = extrapolation.report(asked, error, inside, widths, np.ones((len(error), len(extrapolation.FAMILIES))),
                                extrapolation.noise(MADE))  # fmt: skip
    assert "1.000 (1.00)" in text
    assert found.shape[1] == len(prior.QUANTILES) + learn_prior.POINTS


def test_a_better_method_has_a_ratio_below_one_and_a_small_p():
    names = np.repeat(list("abcdefgh"), 20)
    theirs = np.random.default_rng(0).exponential(size=160)
    ratio, p = forecasts.bootstrap(theirs / 2, theirs, names)
    assert ratio == 0.5
    assert p == 0
    assert forecasts.bootstrap(theirs, theirs, names) == (1.0, 1.0)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_theory_that_knows_the_truth_is_followed_as_far_as_it_does(share):
    draw, rows, theory = np.random.default_rng(0), [], []
    for table in "abcd":
        known, said = draw.uniform(0.4, 0.9, 2)
        rows += [{"table": table, "split": 0, "gain": [1.0, said], "truth": [[0.3, 0], [0.3 * known, 0]]}] * 3
        theory.append({"table": table, "split": 0, "gain": said * (known / said) ** (1 / share)})
    text = surrogate.ablate(rows, [*theory, {"table": "e", "split": 0, "gain": np.nan}])
    assert f"Shares of the way: {share:.2f} to {share:.2f}" in text
    assert "12 forecasts, 4 tables, 1 of 5 refused" in text


def test_the_oracle_of_the_gain_is_wrong_by_the_level_alone():
    size = [20, 40, 80, 160, 320]
    row = {"table": "a", "task": "regression", "rows": 360, "size": size, "curve_error": [0.6, 0.5, 0.4, 0.35, 0.3],
           "curve_stderr": [0.01] * 5, "error": [0.3, 0.2], "error_low": [0.2, 0.1], "error_high": [0.4, 0.3],
           "gain": [1.0, 2 / 3], "truth": [[0.25, 0.0], [0.2, 0.0]]}  # fmt: skip
    found = forecasts.judge([row])
    ahead, gain = found["the same, had the gain been known"]
    np.testing.assert_allclose([ahead[0], gain[0]], [0.3 * 0.8, 0.8])
    np.testing.assert_allclose(forecasts.regret_of(np.array([0.9, 0.99]), np.array([0.99, 0.8])), [0.04, 0.15])
    assert "1 forecasts" in forecasts.report([row, row | {"error": [np.nan, np.nan]}])
