"""Extreme but legal worlds and students against closed forms and plain quadrature: see `systems.clusters`."""

import sys

import numpy as np
import pytest

from quenched import mixtures
from tests.systems import clusters

EXACT = 1e-7
"""What is left of the digits of states whose direction differs from the truth by 1e-7."""
FAR = [50.0, 100.0, 1000.0]
NARROW = [1e-3, 1e-4, 1e-6, 1e-10]
LARGE = {1e5: (0.9999999999939, 2.0000130042173), 1e6: (0.9999999999999, 2.000001300421), 1e7: (1.0, 2.0000001300421)}
"""r and q at separation 2 and width 1."""
BEST = {(1.0, 4.0001): 0.4988483630, (1.0, 4.01): 0.4884936496, (1.0, 5.0): 0.3940425198, (2.0, 0.2501): 0.4934856379,
        (2.0, 1.0): 0.1509178265, (10.0, 1e-3): 0.0921272813}  # fmt: skip
"""The least error, over separation and sample size."""


def ordered(found):
    assert np.all(found.phase == "ordered")
    assert np.all(found.outcome == "converged")
    return found


def test_the_references_solve_their_equations():
    for alpha, (r, q) in LARGE.items():
        (r_found, q_found, _), left = clusters.solve((r, q, 1.3), 2.0, alpha, 1.0)
        assert left < 1e-12
        np.testing.assert_allclose([r_found, q_found], [r, q], rtol=1e-12)
    for separation in FAR:
        (r, q, _), left = clusters.solve(clusters.far_apart(separation, 10.0), separation, 10.0, 1.0)
        assert left < 1e-12
        np.testing.assert_allclose([r, q], clusters.far_apart(separation, 10.0)[:2], rtol=1e-12)
    (r, q, _), left = clusters.solve(clusters.two_means(2.0, 100.0), 2.0, 100.0, 1e-3)
    assert left < 1e-12
    np.testing.assert_allclose([r, q], clusters.two_means(2.0, 100.0)[:2], rtol=1e-10)
    assert clusters.least_error(1.0, 4.01) == pytest.approx(BEST[1.0, 4.01], abs=1e-10)


def test_centres_far_apart_are_found():
    found = ordered(
        mixtures.curve(mixtures.TwoGaussians(), mixtures.MaximumLikelihood(1.0), alpha=10.0, separation=FAR)
    )
    r, q, _ = np.transpose([clusters.far_apart(u, 10.0) for u in FAR])
    np.testing.assert_allclose(found.r, r, rtol=EXACT)
    np.testing.assert_allclose(found.q, q, rtol=EXACT)
    np.testing.assert_allclose(found.error[0], clusters.error(50.0, r[0], q[0]), rtol=1e-4)  # 4e-274


def test_a_narrow_student_does_two_means_clustering():
    found = ordered(mixtures.curve(mixtures.TwoGaussians(2.0), mixtures.MaximumLikelihood(), alpha=100.0, width=NARROW))
    r, q, _ = clusters.two_means(2.0, 100.0)
    np.testing.assert_allclose(found.r, r, rtol=EXACT)
    np.testing.assert_allclose(found.q, q, rtol=EXACT)
    np.testing.assert_allclose(found.error, clusters.error(2.0, r, q), rtol=EXACT)


def test_very_many_examples_show_the_truth():
    found = ordered(mixtures.curve(mixtures.TwoGaussians(2.0), mixtures.MaximumLikelihood(1.0), alpha=list(LARGE)))
    r, q = np.transpose(list(LARGE.values()))
    np.testing.assert_allclose(found.r, r, rtol=EXACT)
    np.testing.assert_allclose(found.q, q, rtol=EXACT)
    np.testing.assert_allclose(found.error, clusters.error(2.0, r, q), rtol=EXACT)


def test_order_that_exists_but_is_not_found_is_marked(monkeypatch):
    """Where the random state would gain by turning towards the truth, it is no answer."""
    monkeypatch.setattr(sys.modules["quenched.mixtures.theory.curve"], "guess_ordered", lambda *_: np.full(3, np.nan))

    def outcome(separation, width, alpha):
        return mixtures.curve(mixtures.TwoGaussians(separation), mixtures.MaximumLikelihood(width), alpha=alpha).outcome

    assert outcome(2.0, 1.0, 10.0) == "failed"
    assert outcome(1.0, 0.8, 5.0) == "converged"  # random indeed


@pytest.mark.parametrize("separation", [1.0, 2.0])
def test_below_the_critical_size_nobody_can_learn(separation):
    """Exactly 1/2 up to alpha_c = 4/u0^4."""
    critical = 4 / separation**4
    found = mixtures.optimum(mixtures.TwoGaussians(separation), alpha=[critical / 2, critical * 0.9975, critical])
    np.testing.assert_array_equal(found.error, 0.5)
    np.testing.assert_array_equal(found.cosine, 0.0)
    assert np.all(found.outcome == "converged")


@pytest.mark.parametrize(("separation", "alpha"), BEST)
def test_the_least_error_of_any_estimate(separation, alpha):
    found = mixtures.optimum(mixtures.TwoGaussians(separation), alpha=alpha)
    assert str(found.outcome.values) == "converged"
    assert float(found.residual) < 1e-12
    np.testing.assert_allclose(found.error, BEST[separation, alpha], atol=1e-9)
    np.testing.assert_allclose(
        found.error, clusters.error(separation, float(found.cosine) / np.sqrt(2), 1.0), rtol=1e-12
    )
