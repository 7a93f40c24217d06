"""A curve continued: its laws, what it says of odd curves, and the sentences of bad input."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

import quenched
from quenched.core.types import InputError
from quenched.forecasting import features, prior

N = np.unique(np.geomspace(25, 800, 16).astype(int)).astype(float)
AHEAD = [1600.0, 3200.0, 6400.0, 12800.0]


def power(n, floor=0.1):
    return floor + np.asarray(n) ** -0.6


def noisy(seed, size=0.05):
    return power(N) * np.exp(size * np.random.default_rng(seed).standard_normal(len(N)))


def test_the_answer_is_free_of_scale():
    errors = noisy(0)
    one = quenched.extrapolate(N, errors, AHEAD, stderr=0.05 * errors, training_errors=errors / 3)
    for factor in (1e-3, 1e5):
        many = factor * errors
        other = quenched.extrapolate(N, many, AHEAD, stderr=0.05 * many, training_errors=many / 3)
        for name in ("error", "low", "high"):
            np.testing.assert_allclose(other[name], factor * one[name], rtol=1e-4)


def test_a_power_law_without_noise_is_continued_to_a_few_percent():
    answer = quenched.extrapolate(N, power(N), AHEAD)
    assert np.all(np.abs(answer.error / power(AHEAD) - 1) < [0.03, 0.04, 0.06, 0.08])
    assert np.all((answer.low < power(AHEAD)) & (power(AHEAD) < answer.high))


def test_intervals_of_noisy_power_laws_contain_the_truth_mostly_and_widen():
    inside = []
    for seed in range(40):
        errors = noisy(seed, 0.08)
        answer = quenched.extrapolate(N, errors, AHEAD[:3], stderr=0.08 * errors)
        inside.append((answer.low <= power(AHEAD[:3])) & (power(AHEAD[:3]) <= answer.high))
        width = np.log(answer.high / answer.low).values
        assert width[2] > width[0]
    assert np.mean(inside) > 0.7  # nominal is 0.8 for curves of all kinds; these are of the kindest


def test_wider_levels_give_wider_intervals_and_the_same_error():
    answers = [quenched.extrapolate(N, noisy(1), AHEAD, level=level) for level in (0.5, 0.8, 0.95)]
    for inner, outer in itertools.pairwise(answers):
        assert np.all((outer.low < inner.low) & (inner.high < outer.high))
        np.testing.assert_array_equal(inner.error, outer.error)


def test_up_to_the_last_point_it_is_the_curve_and_it_runs_on_without_a_jump():
    answer = quenched.extrapolate(N, power(N), [50, 200, 800, 801])
    np.testing.assert_allclose(answer.error[:3], power([50, 200, 800]), rtol=0.02)
    np.testing.assert_allclose(answer.error[3], answer.error[2], rtol=1e-3)
    assert list(answer.source.values) == ["measured"] * 3 + ["continuation"]


def test_training_errors_that_have_met_the_test_errors_leave_little_to_fall():
    errors = noisy(2, 0.02)
    free = quenched.extrapolate(N, errors, AHEAD, training_errors=0 * errors)
    closed = quenched.extrapolate(N, errors, AHEAD, training_errors=0.98 * errors)
    assert np.all(closed.error > free.error)


def test_beyond_sixteen_times_there_is_a_sentence():
    answer = quenched.extrapolate(N, power(N), [16 * 800, 16 * 800 + 1])
    assert list(answer.refused.values != "") == [False, True]
    assert np.isnan(answer.error[1])
    assert "16 times" in str(answer.refused.values[1])


def test_peaks_and_dips_are_named_and_noise_is_not():
    peak = power(N) + 0.3 * np.exp(-0.5 * (np.log2(N / 150) / 0.5) ** 2)
    dip = power(N) + 0.2 * np.clip(np.log2(N / 200), 0, None)
    for curve, words in ((peak, "and falls again"), (dip, "the end of the curve"), (power(N), ""), (noisy(3), "")):
        said = quenched.extrapolate(N, curve, AHEAD, stderr=0.03 * curve).attrs["remarks"]
        assert (words in said) if words else said == ""


def test_the_shipped_prior_is_small_fast_and_says_where_it_comes_from():
    assert prior.FILE.stat().st_size < 500_000
    assert "CC BY 4.0" in prior.FILE.with_suffix(".md").read_text()
    quenched.extrapolate(N, power(N), AHEAD)
    start = time.process_time()
    for _ in range(10):
        quenched.extrapolate(N, power(N), AHEAD)
    assert (time.process_time() - start) / 10 < 0.02


def test_looking_back_tells_curves_that_came_as_foretold_from_those_that_did_not():
    h, n = np.array([1.0, 2.0]), np.geomspace(25, 6400, 200)
    fair, bent = (features.read(n, e, 0.01 * e, None) for e in (n**-0.6, np.maximum(n**-0.6, 1600**-0.6)))
    as_told, surprising = (features._looked_back(curve, h).reshape(len(features.BACK), 5, 2) for curve in (fair, bent))
    np.testing.assert_allclose(as_told[:3, 3:], 0.0, atol=0.03)  # no forecast changed, none was wrong
    assert np.all(surprising[2, 4] > 0.4)  # two octaves back, the floor had not been reached
    for curve in (fair, bent):
        assert np.all(np.isfinite(features.ahead(curve, np.array(AHEAD))))
    short = features.read(N[-7:], N[-7:] ** -0.6, None, None)
    assert np.all(features._looked_back(short, h)[10:] == 0)  # beginnings that are too short say nothing


def test_a_prior_survives_its_file(tmp_path):
    known = prior.shipped()
    prior.save(tmp_path / "again.npz", known)
    again = prior.load(tmp_path / "again.npz")
    rows = features.ahead(features.read(N, power(N), None, None), np.array(AHEAD))
    np.testing.assert_array_equal(again.evaluate(rows), known.evaluate(rows))  # half precision is what was shipped
    assert rows.shape[1] == len(known.mean)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"errors": [np.nan, *power(N)[1:]]}, "errors"),
        ({"errors": -power(N)}, "errors"),
        ({"errors": 0 * N}, "above 0"),
        ({"errors": power(N)[1:]}, "one number for each"),
        ({"examples": N[:4], "errors": power(N)[:4]}, "at least 5"),
        ({"examples": 800 + np.arange(len(N))}, "span a factor"),
        ({"examples": N[::-1]}, "increase"),
        ({"examples": np.where(N == N[5], N[4], N)}, rf"where {N[4]:g} follows {N[4]:g}"),
        ({"examples": np.where(N == N[5], np.nan, N)}, rf"where nan follows {N[4]:g}"),
        ({"examples": N - N[0]}, "from 1 or above"),
        ({"examples": -N[::-1]}, "from 1 or above"),
        ({"examples": [], "errors": []}, "non-empty"),
        ({"errors": None}, "`errors` must be real numbers, but None"),
        ({"errors": power(N)[:, None]}, "one number for each"),
        ({"errors": "abc"}, "real numbers"),
        ({"at": [10.0]}, "`at` must increase from 25"),
        ({"at": [np.inf]}, "`at` must increase"),
        ({"at": [np.nan]}, "`at` must increase"),
        ({"at": [1600.0, 900.0]}, "`at` must increase"),
        ({"at": []}, "non-empty"),
        ({"level": 0.99}, "level"),
        ({"level": 0}, "`level` must lie between"),
        ({"level": 80}, "`level` must lie between"),
        ({"level": np.nan}, "`level` must be finite"),
        ({"stderr": np.ones(3)}, "`stderr` must have one number for each"),
        ({"stderr": 0.1}, "`stderr` must have one number for each"),
        ({"stderr": -power(N)}, "`stderr` must be finite and not negative"),
        ({"stderr": np.nan * N}, "`stderr` must be finite and not negative"),
        ({"training_errors": np.inf * N}, "training_errors"),
        ({"training_errors": N[1:]}, "`training_errors` must have one number for each"),
    ],
)
def test_bad_input_is_a_sentence(change, words):
    good = {"examples": N, "errors": power(N), "at": AHEAD}
    with pytest.raises(InputError, match=words):
        quenched.extrapolate(**(good | change))


@pytest.mark.parametrize("count", [5, 8, 60])
@pytest.mark.parametrize("last", [20, 5_000, 3_000_000])
def test_extreme_curves_have_finite_answers(count, last):
    n = np.unique(np.geomspace(last / 8, last, count).round())
    for curve in (n**-3.0, 1 + 1e-9 * n, np.where(n == n[-1], 0.0, 1.0), np.where(n == n[0], 1e6, 1.0)):
        answer = quenched.extrapolate(n, curve, [last, 2 * last, 16 * last])
        values = np.stack([answer.low, answer.error, answer.high])
        assert np.all(np.isfinite(values))
        assert np.all(np.diff(values, axis=0) >= 0)


def test_what_is_not_known_at_the_end_is_not_known_further_on():
    """Standard errors far beyond those of any curve that was learned from: the interval is as wide as they say."""
    n = np.array([50, 70, 100, 140, 200, 280, 400])
    errors = 0.3 * n**-0.3
    vague = quenched.extrapolate(n, errors, [400, 800, 6400], stderr=np.full(7, 10.0))
    width = np.log(vague.high / vague.low).values
    assert width[1] > 2
    assert width[2] >= width[1]
    clear = quenched.extrapolate(n, errors, [800], stderr=0.02 * errors)
    assert float(np.log(clear.high / clear.low)[0]) < 0.3
