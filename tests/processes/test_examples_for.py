"""How many examples are needed: curves and forecasts read the other way round."""

import numpy as np
import pytest
import xarray as xr

from quenched.core.types import InputError
from quenched.processes import examples_for
from quenched.processes.practice.examples_for import reach_gain


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
    assert 200 < reach_gain(result, 0.9).best < 400
    assert reach_gain(result, 0.9).farthest == 800
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
