"""Is a split noise? The largest eigenvalue's law, and draws of one Gaussian."""

import numpy as np
import pytest
from scipy.integrate import simpson
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from quenched.estimators import AnnealedMixture
from quenched.mixtures import Spherical, fit
from quenched.mixtures.learner.gains import gain, judge_gain
from quenched.mixtures.learner.noise import exceed, judge_spread
from tests.tolerances import SAME

LEVEL = 0.05


def judge(X):
    """The p-value of the largest eigenvalue of the rows' covariance."""
    values = np.linalg.eigvalsh(np.cov(X.T, bias=True))
    return judge_spread(values[-1], values.sum(), *X.shape)


def clouds(rng, n, N, separation):
    """Two isotropic clouds."""
    X = rng.normal(size=(n, N))
    X[:, 0] += separation * (np.arange(n) % 2)
    return X


@pytest.mark.parametrize(("s", "p"), [(0.4501, 0.10), (0.9793, 0.05), (2.0234, 0.01)])
def test_tracy_and_widom_s_law_has_its_known_quantiles(s, p):
    assert exceed(s) == pytest.approx(p, rel=2e-4)


def test_tracy_and_widom_s_law_has_its_known_moments():
    s = np.linspace(-8.0, 8.0, 161)
    above = np.array([exceed(one) for one in s])
    mean, square = s[0] + simpson(above, x=s), s[0] ** 2 + simpson(2 * s * above, x=s)
    assert mean == pytest.approx(-1.2065335745820, abs=1e-5)
    assert square - mean**2 == pytest.approx(1.607781034581, abs=1e-4)


@pytest.mark.parametrize(("n", "N"), [(200, 3), (100, 10), (60, 80)])
def test_isotropic_noise_is_split_at_the_level_whatever_its_variance(n, N):
    rng, draws = np.random.default_rng(0), 1000
    p = np.array([judge(10.0 ** rng.uniform(-3, 3) * rng.normal(size=(n, N))) for _ in range(draws)])
    for level in (0.01, LEVEL, 0.2):
        assert np.mean(p < level) == pytest.approx(level, abs=0.25 * level + 4 * np.sqrt(level * (1 - level) / draws))


@pytest.mark.parametrize("N", [10, 100])
def test_a_split_is_seen_where_its_variance_stands_out_of_the_spectrum(N):
    """Clouds at a distance D add D^2/4 to the variance; it stands out above sqrt(N/n)."""
    rng, n = np.random.default_rng(1), 400
    onset = 2 * (N / n) ** 0.25
    seen = [np.mean([judge(clouds(rng, n, N, factor * onset)) < LEVEL for _ in range(100)]) for factor in (0.5, 2.0)]
    assert seen[0] < 0.2
    assert seen[1] > 0.95


def test_a_single_column_and_two_rows_have_no_spectrum():
    assert judge_spread(2.0, 2.0, 100, 1) == judge_spread(1.0, 2.0, 2, 2) == judge_spread(0.0, 0.0, 100, 3) == 1.0


def test_splits_of_an_annealing_have_p_values():
    rng = np.random.default_rng(2)
    noise = np.array([fit(Spherical(), rng.normal(size=(150, 6)), components=3, rivals=0).splits.p for _ in range(60)])
    assert np.mean(noise[:, 0] < LEVEL) < LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / len(noise))
    assert np.all(np.diff(noise, axis=1) >= 0)  # halves of noise do not look like noise, and yet they are
    p = (
        AnnealedMixture(3, widths=Spherical(), random_state=0)
        .fit(StandardScaler().fit_transform(load_wine(return_X_y=True)[0]))
        .splits_.p
    )
    assert float(p[0]) < 1e-6


def test_the_gain_of_two_gaussians_does_not_hang_on_the_covariance():
    rng = np.random.default_rng(3)
    X, A = rng.normal(size=(120, 3)), rng.normal(size=(3, 3))
    assert gain(X @ A + 7.0) == pytest.approx(gain(X), rel=SAME, abs=0.05)


def test_one_correlated_gaussian_is_rarely_two():
    rng, runs = np.random.default_rng(4), 60
    p = [judge_gain(rng.normal(size=(120, 3)) @ rng.normal(size=(3, 3)), 19) for _ in range(runs)]
    assert np.mean(np.array(p) <= LEVEL) < LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / runs)
    assert judge(rng.normal(size=(120, 3)) * [3.0, 1.0, 1.0]) < 1e-6  # which the spectrum alone would split
    assert judge_gain(clouds(rng, 120, 3, 6.0), 19) == pytest.approx(1 / 20)
    assert np.isnan(judge_gain(rng.normal(size=(8, 3)), 19))
