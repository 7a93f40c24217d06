"""The headline of a forecast: an answer in one sentence, right on tables of different kinds."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn import datasets

from quenched import processes
from quenched.cli import digits, forecast


def kinds():
    """Tables of 100 rows, and what the headline may say of them: a number, that it is far, nothing, or no forecast."""
    draw = np.random.default_rng(7)
    X, y = datasets.load_diabetes(return_X_y=True)
    yield "diabetes", X[:100], y[:100], "number far"
    gym = datasets.load_linnerud()
    yield "linnerud", gym.data, gym.target[:, 0], "refused"
    yield "friedman1", *datasets.make_friedman1(100, noise=1.0, random_state=0), "number"
    yield "friedman2", *datasets.make_friedman2(100, noise=50.0, random_state=0), "number far"
    yield "friedman3", *datasets.make_friedman3(100, noise=0.2, random_state=0), "number far"
    linear = datasets.make_regression(100, 20, n_informative=10, noise=20.0, random_state=0)
    yield "regression", *linear, "number"
    yield "s-curve", *datasets.make_s_curve(100, noise=0.1, random_state=0), "number refused"
    yield "noise", draw.normal(size=(100, 4)), draw.normal(size=100), "nothing"
    spikes = np.full(100, 3.0)
    spikes[::20] = [4, 5, 2, 3.5, 9]
    yield "nearly constant", draw.normal(size=(100, 4)), spikes, "nothing refused"
    X, y = datasets.make_friedman1(100, noise=1.0, random_state=1)
    yield "copies", np.vstack([X, X[:30]]), np.append(y, y[:30]), "refused"
    X = draw.normal(size=(100, 4))
    yield "a walk in time", X, X[:, 0] + 0.5 * np.cumsum(draw.normal(size=100)), "refused"
    words = draw.integers(0, 3, size=(100, 3)).astype(float)
    yield "words", words, words[:, 0] + words[:, 1] + draw.normal(size=100), "number far"
    X, y = datasets.make_friedman1(100, noise=1.0, random_state=2)
    yield "sorted", X[np.argsort(y)], np.sort(y), "number"


HEADLINES = {
    "number": r"A tenth less error than now \((\S+) instead of (\S+)\) takes about ([\d,]+) examples \(80% interval "
              r"([\d,]+) to (more than )?([\d,]+)\); ([\d,]+) are at hand\.",
    "far": r"A tenth less error than now \((\S+) instead of (\S+)\) is (not likely|not) within 10 times the rows: "
           r"([\d,]+) examples change it by (\S+)% \((\S+)% to (\S+)%\)\.",
    "nothing": r"The inputs explain nothing of y that ([\d,]+) rows could show: the error is (\S+), where a constant "
               r"answer has 1\. More rows with the same columns are not known to help\.",
}  # fmt: skip


def whole(text):
    return int(text.replace(",", ""))


@example(rows=268, floor=0.51171875, power=0.1, width=0.25)  # two digits of its end lie beyond it
@example(rows=50, floor=0.375, power=1.5, width=0.0234375)  # no whole number lies in the interval, 57.2 to 57.96
@given(rows=st.integers(50, 50_000), floor=st.floats(0.3, 1.0), power=st.floats(0.1, 2.0), width=st.floats(0.02, 0.3))
def test_numbers_of_the_headline_lie_between_the_rows_and_the_end_and_hold_the_gain(rows, floor, power, width):
    """Any falling curve with any interval: rounding leads neither below the rows at hand nor out of the interval."""
    times = np.array([0.5, 1.0, 2.0, 4.0, 10.0])
    gain, wide = floor + (1 - floor) * times**-power, np.exp(width * np.abs(np.log2(times)))
    over = {"gain": gain, "gain_low": gain / wide, "gain_high": gain * wide, "error": 0.4 * gain}
    data = {name: ("examples", value) for name, value in over.items()} | {"refused": ("examples", np.full(5, ""))}
    about = {"rows": rows, "explained": 0.6, "explained_stderr": 0.05}
    result = xr.Dataset(data, {"examples": times * rows}, about)
    said = forecast.headline(result, "y")
    kind, found = next((k, m) for k, words in HEADLINES.items() if (m := re.fullmatch(words, said)))
    if kind == "far":
        assert gain[-1] > 0.9
        return
    best, low, high = whole(found[3]), whole(found[4]), whole(found[6])
    assert rows <= low <= best <= high <= 10 * rows

    def end(name, m):
        return np.exp(np.interp(np.log(m), np.log(times[1:] * rows), np.log(over[name][1:])))

    every = np.arange(rows, 10 * rows + 1)
    inside = np.sum((end("gain_low", every) <= 0.9) & (end("gain_high", every) >= 0.9))
    half = 0.0 if inside > 1 else 0.5  # an interval narrower than an example holds the number before it was rounded
    assert end("gain_low", best + half) <= 0.9 <= end("gain_high", best - half)


@pytest.mark.parametrize(("X", "y", "allowed"), [pytest.param(*rest, id=name) for name, *rest in kinds()])
def test_the_headline_is_right_on_tables_of_different_kinds(X, y, allowed):
    """Numbers are at least the rows at hand, and the gain asked for is inside the interval printed for them."""
    result, rows = processes.forecast(X, y), len(y)
    if result.attrs["grade"] == "refused":
        assert "refused" in allowed
        return
    said = forecast.headline(result, "y")
    kind, found = next((k, m) for k, words in HEADLINES.items() if (m := re.fullmatch(words, said)))
    assert kind in allowed
    ahead = result.sel(examples=result.examples >= rows)
    x = np.log(ahead.examples.values)

    def end(name, m):  # of the interval at a size, between those that are printed
        return np.exp(np.interp(np.log(m), x, np.log(ahead[name].values)))

    now = float(result.error.sel(examples=rows))
    if kind == "number":
        goal, present, best, low, beyond, high, hand = found.groups()
        numbers = [whole(low), whole(best), whole(high)]
        assert whole(hand) == rows
        assert rows <= numbers[0] <= numbers[1] <= numbers[2] <= 10 * rows
        assert (float(present), float(goal)) == pytest.approx((now, 0.9 * now), rel=2e-3)
        assert end("gain_low", numbers[1]) <= 0.9 <= end("gain_high", numbers[1])
        assert end("gain_low", numbers[0]) == pytest.approx(0.9, abs=0.01)
        assert end("gain", numbers[1]) == pytest.approx(0.9, abs=0.01)
        assert (
            end("gain_high", numbers[2]) > 0.9
            if beyond
            else end("gain_high", numbers[2]) == pytest.approx(0.9, abs=0.01)
        )
    elif kind == "far":
        change, low, high = (1 + float(text) / 100 for text in found.groups()[-3:])
        assert whole(found[4]) == 10 * rows
        assert max(low, 0.9) <= change <= high
        assert (found[3] == "not") == (low > 0.9)
        assert change == pytest.approx(float(result.gain.sel(examples=10 * rows)), abs=1e-3)
    else:
        assert result.attrs["explained"] < max(2 * result.attrs["explained_stderr"], 0.01)
        assert result.attrs["grade"] != "A"


def test_rounding_of_a_range():
    assert [digits.total(m, 120) for m in (121.2, 155.4, 743.0, 12345.0)] == ["121", "155", "740", "12,000"]
    assert [digits.total(m) for m in (3.4, 743.0, 2871.0, 123456.0)] == ["3", "740", "2,900", "120,000"]
