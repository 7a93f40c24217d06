"""Ranks, their joint test and their band."""

import jax
import numpy as np
import pytest

from quenched.core import calibration
from quenched.core.calibration import Simulator, Trial
from quenched.core.types import InputError, Outcome


class _Normal(Simulator):
    """A mean with a normal prior and one measurement, and a posterior whose mean and deviation may be wrong."""

    def __init__(self, shift=0.0, wide=1.0, broken=0.0):
        self.shift, self.wide, self.broken = shift, wide, broken

    @property
    def quantities(self):
        return ["mean", "its cube", "its sign"]

    def run(self, key, draws):
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        truth = rng.normal()
        y = truth + rng.normal()
        drawn = y / 2 + self.shift + self.wide * np.sqrt(0.5) * rng.normal(size=draws)
        each = [np.stack([x, x**3, np.sign(x)], axis=-1) for x in (np.array(truth), drawn)]
        return Trial(each[0], each[1], Outcome.stalled if rng.uniform() < self.broken else Outcome.converged)


def _p(**wrong):
    return float(calibration.simulate(_Normal(**wrong), key=jax.random.key(1), runs=200, draws=49).p_value)


def test_a_right_posterior_passes_and_wrong_ones_do_not():
    assert _p() > 1e-3
    for wrong in ({"wide": 0.5**0.5}, {"shift": 0.4}, {"wide": 2.0}):
        assert _p(**wrong) < 1e-3


def test_polynomials_are_orthonormal_under_uniform_ranks():
    f = calibration.polynomials(19)
    np.testing.assert_allclose(f.T @ f / 20, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(f.mean(axis=0), 0, atol=1e-12)


def test_the_p_value_is_uniform_for_correlated_quantities():
    rng = np.random.default_rng(0)
    p = []
    for _ in range(200):
        one = rng.integers(0, 20, size=(60, 1))
        p.append(calibration.judge(np.concatenate([one, one, rng.integers(0, 20, size=(60, 2))], axis=1), 19)[0])
    assert abs(np.mean(np.array(p) < 0.1) - 0.1) < 0.07  # three standard errors of 200 trials
    assert abs(np.mean(p) - 0.5) < 0.08


def test_ranks_among_equal_draws_are_uniform():
    keys = jax.random.split(jax.random.key(0), 400)
    with jax.enable_x64(True):
        ranks = [calibration.rank(np.zeros(1), np.zeros((4, 1)), key)[0] for key in keys]
    assert np.abs(np.bincount(ranks, minlength=5) - 80).max() < 4 * np.sqrt(64)


def test_the_band_holds_uniform_ranks_as_often_as_it_says():
    shares, low, high = calibration.band(100, 49, 0.9)
    rng = np.random.default_rng(7)
    ranks = rng.integers(0, 50, size=(2000, 100))
    off = np.mean(ranks[:, :, None] < np.rint(shares * 50), axis=1) - shares
    inside = np.mean(np.all((off >= low - 1e-12) & (off <= high + 1e-12), axis=1))
    assert abs(inside - 0.9) < 0.025


def test_runs_that_failed_are_counted_and_not_judged():
    result = calibration.simulate(_Normal(broken=0.3), key=jax.random.key(1), runs=40, draws=19)
    assert int(result.failed) == int(np.sum(result.outcome == "stalled")) > 0
    assert "failed" in result.attrs["verdict"]


@pytest.mark.parametrize(("wrong", "sentence"), [({"runs": 1}, "runs"), ({"key": 3}, "key"), ({"draws": 1}, "draws")])
def test_bad_input_is_said_in_a_sentence(wrong, sentence):
    given = {"key": jax.random.key(0), "runs": 5, "draws": 19} | wrong
    with pytest.raises(InputError, match=f"Argument `{sentence}` must"):
        calibration.simulate(_Normal(), **given)
