"""Rest states: check values, closed forms, and the flow itself."""

import jax
import numpy as np
import pytest

from quenched import prototypes
from quenched.core.types import InputError
from quenched.prototypes import theory
from tests import tolerances
from tests.prototypes.cases import BROKEN, A, B
from tests.systems import vq


def at_12(prior):
    return prototypes.TwoClusters(prior=prior, separation=1.2)


def test_check_values_of_the_small_rate_limit():
    law = at_12(0.7)
    assert prototypes.optimum(law) == pytest.approx(0.17124, abs=tolerances.DIGITS)
    for rule, value in ((prototypes.LVQ1(), 0.17718), (prototypes.LVQPlus(), 0.19807), (prototypes.VQ(), 0.22868)):
        found = prototypes.asymptote(law, rule, small_rate=True).sel(state="axis")
        assert float(found.error) == pytest.approx(value, abs=tolerances.DIGITS)
        assert float(found.growth) < 0


def test_all_rest_states_and_their_stability():
    vq_states = prototypes.asymptote(at_12(0.7), prototypes.VQ(), small_rate=True)
    errors, rates = vq_states.error.values, vq_states.growth.values
    assert errors[1] == pytest.approx(1 - errors[0], abs=1e-10)  # labels swapped
    assert errors[2] == pytest.approx(0.5, abs=1e-12)
    assert (rates < 0).tolist() == [True, True, False]
    assert rates[2] == pytest.approx(1.2**2 * 0.7 * 0.3, abs=1e-9)  # lambda^2 p+ p- as eta -> 0
    lvq1 = prototypes.asymptote(at_12(0.7), prototypes.LVQ1(), small_rate=True)
    assert (lvq1.growth.values < 0).tolist() == [True, False, False]
    assert float(lvq1.error.sel(state="other")) > 0.5
    lvq_plus = prototypes.asymptote(at_12(0.7), prototypes.LVQPlus(), small_rate=True)
    assert lvq_plus.outcome.values.tolist() == ["converged", "absent", "absent"]
    even = prototypes.asymptote(at_12(0.5), prototypes.LVQ1(), small_rate=True)
    assert even.outcome.values.tolist() == ["converged", "absent", "absent"]


def test_lvq_plus_is_closed():
    found = prototypes.asymptote(at_12(0.8), prototypes.LVQPlus(), small_rate=True).sel(state="axis")
    u = 1.2 / np.sqrt(2)
    from scipy.stats import norm

    assert float(found.error) == pytest.approx(norm.cdf(-u), abs=1e-12)
    x = u + norm.pdf(u) / norm.cdf(u)
    np.testing.assert_allclose(found.R, 0.6 + x / np.sqrt(2) * np.array([[1, -1], [-1, 1]]), atol=1e-9)
    np.testing.assert_allclose(found.R.sum("cluster"), 1.2, atol=1e-9)  # erratum P17: about lambda (B+ + B-)/2


def test_lvq_plus_does_not_see_the_prior_only_for_equal_variances():
    equal = prototypes.asymptote(at_12(0.5), prototypes.LVQPlus(), small_rate=True, prior=[0.2, 0.5, 0.9])
    assert float(np.ptp(equal.error.sel(state="axis").values)) < 1e-12
    unequal = prototypes.asymptote(B, prototypes.LVQPlus(), small_rate=True, prior=[0.2, 0.9]).sel(state="axis")
    np.testing.assert_allclose(unequal.R[0], unequal.R[1], atol=1e-9)  # erratum P18: the prototypes do not see it
    assert float(np.ptp(unequal.error.values)) > 0.01  # but the error does
    finite = prototypes.asymptote(at_12(0.5), prototypes.LVQPlus(0.2), prior=[0.3, 0.8])
    np.testing.assert_allclose(finite.R[0], finite.R[1], atol=1e-9)


def test_check_values_at_finite_rate():
    found = prototypes.asymptote(A, prototypes.LVQ1(0.2))
    assert float(found.error) == pytest.approx(0.16734, abs=tolerances.DIGITS)
    assert float(found.growth) == pytest.approx(-0.0093, abs=5e-5)
    half = at_12(0.5)
    assert float(prototypes.asymptote(half, prototypes.LVQ1(0.2)).error) == pytest.approx(0.20283, abs=6e-6)
    assert float(prototypes.asymptote(half, prototypes.LVQPlus(0.2)).error) == pytest.approx(0.20373, abs=6e-6)
    assert float(prototypes.asymptote(half, prototypes.VQ(0.2), start=BROKEN).error) == pytest.approx(0.20894, abs=6e-6)


def test_finite_rates_extrapolate_to_the_small_rate_limit():
    rates = np.array([0.04, 0.02, 0.01])
    errors = prototypes.asymptote(at_12(0.7), prototypes.LVQ1(), rate=rates).error.values
    limit = np.polyfit(rates, errors, 2)[-1]
    small = prototypes.asymptote(at_12(0.7), prototypes.LVQ1(), small_rate=True).sel(state="axis")
    assert limit == pytest.approx(float(small.error), abs=2e-5)


def test_unspecialised_state_of_vq_is_closed(double):
    R, Q = theory.unspecialised_overlaps(A, 0.2)
    np.testing.assert_allclose(R, [[0.8, 0.2]] * 2)
    assert np.sqrt(Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]) == pytest.approx(vq.distance(0.2), abs=1e-12)
    field = jax.jit(theory.field)
    for law, rate in ((A, 0.2), (B, 0.3)):
        drift = field(law, prototypes.VQ(rate), *theory.unspecialised_overlaps(law, rate))
        for part in drift:
            np.testing.assert_allclose(part, 0.0, atol=1e-14)


@pytest.mark.parametrize(("prior", "separation", "rate"), [(0.8, 1.0, 0.2), (0.02, 1.2, 0.2), (0.5, 2.0, 1.0)])
def test_escape_rate_of_vq_is_closed(prior, separation, rate):
    ours = prototypes.escape_rate(prototypes.TwoClusters(prior, separation), prototypes.VQ(rate))
    assert ours == pytest.approx(vq.escape_rate(prior, separation, rate), abs=1e-12)


def test_check_values_of_the_escape_rate():
    assert prototypes.escape_rate(A, prototypes.VQ(0.2)) == pytest.approx(0.022998, abs=1e-6)
    never = prototypes.escape_rate(prototypes.TwoClusters(0.02, 1.2), prototypes.VQ(0.2))
    assert never == pytest.approx(-0.001559, abs=1e-6)
    assert prototypes.escape_rate(B, prototypes.VQ(0.2)) == pytest.approx(0.097, abs=0.001)


def test_vq_leaves_the_unspecialised_state_at_the_escape_rate():
    R, Q = theory.unspecialised_overlaps(A, 0.2)
    start = prototypes.Overlaps(R + 1e-7 * np.array([[1.0, -1.0], [-1.0, 1.0]]), Q)
    path = prototypes.curve(A, prototypes.VQ(0.2), alpha=np.linspace(0, 80, 501), start=start).sel(alpha=[60, 80])
    apart = path.R.isel(prototype=0, cluster=0) - path.R.isel(prototype=1, cluster=0)
    grown = float(np.log(apart[1] / apart[0])) / 20
    assert grown == pytest.approx(vq.escape_rate(0.8, 1.0, 0.2), rel=0.01)


def test_the_optimum_is_the_best_flat_boundary():
    from scipy.stats import norm

    for law in (A, B, prototypes.TwoClusters(0.95, 0.3, (0.2, 2.0))):
        theta = np.linspace(-20, 20, 400_001)
        m, sd = law.separation / np.sqrt(2), np.sqrt(law.variances)
        errors = law.prior * norm.cdf((theta - m) / sd[0]) + (1 - law.prior) * norm.cdf((-m - theta) / sd[1])
        assert prototypes.optimum(law) == pytest.approx(errors.min(), abs=1e-8)


def test_general_worlds_settle_too():
    law = prototypes.Clusters([0.5, 0.3, 0.2], (0, 1, 1))
    start = prototypes.Overlaps(R=0.3 * np.eye(2, 3), Q=0.2 * np.eye(2))
    found = prototypes.asymptote(law, prototypes.LVQ1(0.1), start=start)
    assert str(found.outcome.values) == "converged"
    assert float(found.growth) < 0


def test_bad_input_gets_a_sentence():
    with pytest.raises(InputError, match="must be constant"):
        prototypes.asymptote(A, prototypes.LVQ1(prototypes.Decay(0.1, 1.0)))
    with pytest.raises(InputError, match="escape rate"):
        prototypes.escape_rate(A, prototypes.LVQ1(0.2))
