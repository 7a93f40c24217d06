"""R-hat and effective sample sizes, against what is known of simple chains."""

import numpy as np

from quenched.core import chains

RNG = np.random.default_rng(0)
SCATTER = 0.25
"""Relative error of an effective sample size of a thousand, three standard deviations."""


def _autoregressive(rho, draws=4000):
    x = RNG.normal(size=(4, draws, 2))
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


def test_the_effective_size_of_an_autoregressive_chain_is_the_known_one():
    for rho in (0.0, 0.5, 0.9):
        x = _autoregressive(rho)
        np.testing.assert_allclose(chains.bulk_size(x), 16000 * (1 - rho) / (1 + rho), rtol=SCATTER)
        assert np.all(chains.split_rhat(x) < 1.01)


def test_chains_that_disagree_in_place_width_or_trend_are_found():
    x = RNG.normal(size=(4, 500, 1))
    shifted, wide, drifting = x.copy(), x.copy(), x + np.linspace(0, 1.5, 500)[:, None]
    shifted[0] += 1
    wide[0] *= 3
    assert chains.split_rhat(x) < 1.01
    for wrong in (shifted, wide, drifting):
        assert chains.split_rhat(wrong) > 1.05
    assert chains.bulk_size(shifted) < 100 < chains.bulk_size(x)
    assert chains.tail_size(wide) < 100 < chains.tail_size(x)


def test_only_the_order_of_draws_counts():
    x = _autoregressive(0.5, 400)
    for measure in (chains.bulk_size, chains.tail_size):
        np.testing.assert_allclose(measure(np.exp(3 * x)), measure(x))


def test_equal_draws_and_nan_have_an_answer():
    same = np.ones((4, 50, 1))
    assert chains.split_rhat(same) == 1
    broken = RNG.normal(size=(4, 50, 1))
    broken[0, 0] = np.nan
    assert np.isnan(chains.split_rhat(broken))
    assert chains.bulk_size(broken) == 0
