"""What the paper prints and what is used instead, decided by enumeration over all samples or by counting."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats

from quenched.papers import malzahn2002
from quenched.papers.malzahn2002 import sets
from quenched.processes import Cavity, Variational, measure, theory
from quenched.processes.kernels import numbers_of
from quenched.processes.theory.closures import counts_of
from quenched.processes.theory.responses import Exact
from quenched.processes.theory.state import solve
from tests.processes import cases


def enumerated(K, y, s2, mu, most=8):
    """Averages over all Poisson samples: posterior variance, prediction and squared error at each row."""
    variance, prediction, error = np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y))
    for s in itertools.product(range(most), repeat=len(y)):
        p = np.prod(stats.poisson.pmf(s, mu))
        G = np.linalg.inv(np.linalg.inv(K) + np.diag(s) / s2)
        f = G @ (np.array(s) * y / s2)
        variance += p * np.diagonal(G)
        prediction += p * f
        error += p * (f - y) ** 2
    return variance, prediction, error


@pytest.fixture(scope="module")
def three():
    """Three rows, all samples."""
    K = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.4], [0.2, 0.4, 1.0]])
    y, s2, mu = np.array([1.0, -0.5, 2.0]), 0.5, 0.8
    return K, y, s2, mu, *enumerated(K, y, s2, mu)


def solution(K, y, s2, mu, closure):
    return solve(Exact(K), y, s2, counts_of(mu), closure, np.diagonal(K))[0]


def test_m1_the_posterior_variance_does_not_see_the_targets(three):
    """Eq. (6) with (8) to the letter gives half of 1/S and a term with the error in the precision."""
    K, y, s2, mu, variance, _, error = three

    def literal(error):
        g = np.diagonal(K)
        for _ in range(500):
            S = s2 + g
            u = mu * (1 / (2 * S) + error / (2 * S**2))
            g = np.diagonal(np.linalg.inv(np.linalg.inv(K) + np.diag(u)))
        return g

    assert np.max(np.abs(literal(4 * error) / literal(error) - 1)) > 0.1  # it would see the targets
    used = solution(K, y, s2, mu, Variational()).g
    np.testing.assert_array_equal(used, solution(K, 2 * y, s2, mu, Variational()).g)
    np.testing.assert_allclose(enumerated(K, 2 * y, s2, mu)[0], variance)


def test_m2_the_mean_prediction_is_driven_by_the_target_itself(three):
    """With dH/dR at fixed covariance eq. (15) would read (R - y) DQ, and R = G u (y - R)."""
    K, y, s2, mu, _, prediction, _ = three
    found = solution(K, y, s2, mu, Cavity())
    other = np.linalg.solve(np.linalg.inv(K) + 2 * np.diag(found.u), found.u * y)
    assert np.max(np.abs(found.mean - prediction)) < 0.03
    assert np.max(np.abs(other - prediction)) > 0.2


def test_m4_r_is_the_mean_prediction_and_not_the_bias(three):
    K, y, s2, mu, _, prediction, _ = three
    found = solution(K, y, s2, mu, Cavity())
    assert np.max(np.abs(found.mean - prediction)) < 0.2 * np.max(np.abs(found.mean - (prediction - y)))


def test_m5_the_error_averages_over_samples_with_and_without_the_row(three):
    K, y, s2, mu, _, _, error = three
    found = solution(K, y, s2, mu, Cavity())
    weights = stats.poisson.pmf(np.arange(40), mu)
    with_row = [found.oob_error / (1 + k * found.oob_variance / s2) ** 2 for k in range(40)]
    np.testing.assert_allclose(weights @ with_row, found.error, rtol=1e-10)
    assert np.mean(found.error) == pytest.approx(np.mean(error), rel=0.05)
    assert np.mean(found.oob_error) > 1.3 * np.mean(error)  # what a row that is never seen would have


def test_m6_lengths_from_standard_deviations_depend_on_the_unit_of_a_column(monkeypatch):
    table = sets.boston()
    scaled = table._replace(inputs=table.inputs * np.where(np.arange(13) == 9, 10.0, 1.0))  # tax in other units
    before = {
        power: numbers_of(malzahn2002.boston_law(), malzahn2002.boston_rule(power=power))[0].K for power in (0.5, 1.0)
    }
    monkeypatch.setattr(sets, "boston", lambda: scaled)
    after = {
        power: numbers_of(malzahn2002.boston_law(), malzahn2002.boston_rule(power=power))[0].K for power in (0.5, 1.0)
    }
    np.testing.assert_allclose(after[1.0], before[1.0], atol=1e-12)
    assert float(np.max(np.abs(np.asarray(after[0.5]) - np.asarray(before[0.5])))) > 0.5


def test_m7_the_number_of_distinct_rows():
    """N(1 - exp(-m/N)) is the value of a Poisson number of rows; exactly m rows have a few more."""
    law, _ = cases.five()
    rows = [np.unique(law.sample(jax.random.key(i), 5)[0]).size for i in range(400)]
    exact, poisson = 5 * (1 - (1 - 1 / 5) ** 5), 5 * (1 - np.exp(-1))
    assert np.mean(rows) == pytest.approx(exact, abs=4 * np.std(rows) / 20)
    assert abs(np.mean(rows) - poisson) > 4 * np.std(rows) / 20


def test_m8_the_subsets_are_not_a_quarter_and_a_half():
    rows = malzahn2002.abalone_law().rows
    assert (round(1000 / rows, 3), round(2000 / rows, 3)) == (0.239, 0.479)


def test_m11_square_roots_of_variances_are_better_by_the_seen_error_only():
    law = malzahn2002.boston_law()
    seen, unseen = {}, {}
    for name, rule in (("root", malzahn2002.boston_rule()), ("half", malzahn2002.boston_rule(73.55, 1.0))):
        points = measure(law, rule, examples=506, runs=4, key=jax.random.key(5), variance=False)
        seen[name], unseen[name] = float(points.error), float(points.oob_error)
        unseen[f"{name} loo"] = theory.curve(law, rule, examples=506).attrs["leave_one_out"]
    assert seen["root"] < 0.9 * seen["half"]
    assert unseen["root"] > 1.05 * unseen["half"]
    assert unseen["root loo"] > 1.05 * unseen["half loo"]
