"""States of outliers against plain quadrature in NumPy, where the theory is hard to evaluate: see `systems.selection`.

The states stand here as numbers, found once from many random starts by `selection.solve`; one test puts them back into
its equations. Where a state is expected to fail, the package does not find it.
"""

import jax
import numpy as np
import pytest

from quenched import outliers
from quenched.core.types import Outcome
from quenched.outliers.theory import state
from quenched.papers.dietrich1998 import printed
from tests.programs import compiled
from tests.systems import selection

EXACT = 1e-8
"""Two quadratures, each exact to ten digits or more."""
SECOND = 1e-6
"""Second derivatives against five-point differences of step 2e-3 of states that are exact to 1e-13, relative."""

COLD = [  # gamma, alpha, eta, T: R, q, z
    ((40.0, 5.0, 4.0, 0.1), (0.7398714037883, 0.7236231341134, 0.2062918589426)),
    ((10.0, 20.0, 3.9, 0.01), (0.6490501407957, 0.7744557862459, 0.3072031930813)),
]
SOFT = {3.5: (0.7688876, 0.79036567), 3.7: (0.72264306, 0.77733349), 3.9: (0.64850387, 0.77607862)}
"""R and Q of soft selection at gamma = 10, alpha = 20, in its informed state."""
POSTERIOR = {0.0069744669: -1.0427334427, 0.3627314297: -1.0332937113, 0.4611638701: -1.0336797178}
"""q = R and free energy of the states of the posterior at gamma = 20, alpha = 50, eta = 6; Q = 1."""
LOST = [  # gamma, alpha, eta: R, Q, z, f of the state of least free energy
    ((300.0, 1.7, 5.7), (0.1956683, 0.180103, 0.11504813, -0.8513275994)),
    ((300.0, 1.7, 5.8), (0.16343445, 0.16246268, 0.10616819, -0.8267073262)),
    ((300.0, 1.7, 5.9), (0.14223551, 0.15352968, 0.1020863, -0.8070853465)),
    ((150.0, 10.0, 6.6), (0.27935691, 0.26377693, 0.13709166, -1.0005118450)),
]


@compiled
def gibbs(gamma, alpha, eta, T):
    return state(outliers.Contaminated(gamma, eta), outliers.Gibbs(temperature=T), alpha)


def test_the_states_solve_their_equations():
    for (gamma, alpha, eta, T), (R, q, z) in COLD:
        assert np.max(np.abs(selection.residual(R, q, z, gamma, alpha, eta, T))) < 1e-10
    for q, f in POSTERIOR.items():
        assert np.max(np.abs(selection.residual(q, q, 1 - q, 20.0, 50.0, 6.0, 1.0))) < 1e-7  # ten digits of a small q
        assert selection.free_energy(q, q, 1 - q, 20.0, 50.0, 6.0, 1.0) == pytest.approx(f, abs=1e-9)
    for (gamma, alpha, eta), (R, Q, z, f) in LOST:
        assert np.max(np.abs(selection.residual(R, Q, z, gamma, alpha, eta))) < 1e-6
        assert selection.free_energy(R, Q, z, gamma, alpha, eta) == pytest.approx(f, abs=1e-8)


@pytest.mark.parametrize(("given", "exact"), COLD)
def test_a_vector_drawn_at_a_low_temperature(double, given, exact):
    found, (R, q, z) = gibbs(*given), exact
    assert int(found.outcome) == Outcome.converged
    np.testing.assert_allclose([found.R, found.q, found.z, found.Q], [R, q, z, q + given[-1] * z], rtol=EXACT)


@pytest.mark.parametrize("eta", SOFT)
def test_as_the_temperature_falls_a_drawn_vector_becomes_that_of_soft_selection(double, eta):
    """The distance falls as T, also where a field makes the vector's weight steep."""
    for T in (1e-2, 1e-3, 1e-4):
        found = gibbs(10.0, 20.0, eta, T)
        assert int(found.outcome) == Outcome.converged
        np.testing.assert_allclose([found.R, found.Q], SOFT[eta], atol=0.2 * T)


def test_a_sum_that_is_too_coarse_is_no_state(double):
    """Over a range of 10,000 standard deviations 320 points see nothing."""
    assert int(gibbs(10.0, 20.0, 2.0, 1e-8).outcome) == Outcome.failed


def test_the_posterior_has_three_states():
    """Beside the informed state one of lower free energy that hardly knows the teacher; at the middle one it turns."""
    found = outliers.curve(outliers.Contaminated(20.0), outliers.Gibbs(), alpha=50.0, eta=[6.0])
    assert "branch" in found.dims
    there = found.isel(eta=0).where(found.outcome.isel(eta=0) == "converged")
    R = np.sort(there.R.values[np.isfinite(there.R.values)])
    least, _, informed = POSTERIOR
    np.testing.assert_allclose(R, [least, informed], rtol=1e-6)
    np.testing.assert_allclose(there.Q.values[np.isfinite(there.Q.values)], 1.0, rtol=EXACT)
    lowest = found.isel(eta=0).isel(branch=int(found.lowest.isel(eta=0).argmax("branch")))
    np.testing.assert_allclose(lowest.R, least, rtol=1e-6)
    assert int(found.lowest.sum()) == 1


def test_the_posterior_has_a_transition():
    """Between eta = 5.8 and 6 the informed state stops being the one of least free energy."""
    found = outliers.transitions(outliers.Contaminated(20.0), outliers.Gibbs(), alpha=50.0)
    at = [float(found[name]) for name in ("informed_overfit", "informed_trivial") if np.isfinite(float(found[name]))]
    assert len(at) == 1
    assert 5.8 < at[0] < 6
    start = np.array([0.5, 0.5, 0.5]), np.array([0.007, 0.007, 0.99])
    energies = []
    for begin in start:
        x, left = selection.solve(begin, 20.0, 50.0, at[0], 1.0)
        assert left < 1e-9
        energies.append(selection.free_energy(*x, 20.0, 50.0, at[0], 1.0))
    assert energies[0] == pytest.approx(energies[1], abs=1e-6)


@pytest.mark.parametrize(("given", "exact"), LOST)
def test_every_arm_of_soft_selection_is_kept(given, exact):
    gamma, alpha, eta = given
    found = outliers.curve(outliers.Contaminated(gamma), outliers.SoftSelection(), alpha=alpha, eta=[eta]).isel(eta=0)
    assert int(found.lowest.sum()) == 1  # it is impossible that no state exists
    lowest = found.isel(branch=int(found.lowest.argmax("branch")))
    assert str(lowest.outcome.values) == "converged"
    np.testing.assert_allclose([lowest.R, lowest.Q, lowest.z, lowest.free_energy], exact, rtol=1e-6)


@compiled
def bend(eta, near):
    """The second derivative of R by eta at a state that is known."""

    def R(eta):
        return state(outliers.Contaminated(10.0, eta), outliers.SoftSelection(), 20.0, start=near).R

    return jax.jacfwd(jax.jacfwd(R))(eta)


@pytest.mark.parametrize(
    ("eta", "near", "jumps"),
    [(3.0, (0.86, 0.85, 0.12), False), (3.7, (0.72, 0.78, 0.24), False), (4.5, (0.033, 0.87, 0.54), True)],
)
def test_second_derivatives_know_that_the_state_moves(double, eta, near, jumps):
    h = 2e-3
    around = [selection.solve(near, 10.0, 20.0, eta + k * h) for k in (-2, -1, 0, 1, 2)]
    assert max(left for _, left in around) < 1e-12
    R, Q, z = around[2][0]
    assert (10 * z > 4) == jumps
    expected = np.array([-1, 16, -30, 16, -1]) @ [x[0] for x, _ in around] / (12 * h * h)
    assert float(bend(eta, (R, Q, z))) == pytest.approx(expected, rel=SECOND)


def test_where_the_printed_soft_theory_divides_by_zero_there_is_no_state(double):
    """Its integrand has a pole from b = 4 on, over which a sum of points steps. [dietrich1998, eq. (A2), erratum E1]"""
    law, rule = outliers.Contaminated(10.0, 3.0), outliers.SoftSelection()
    start = (0.03364207483469187, 2.032958626359487, 0.4931413519813092)  # where the sum comes to rest
    found = printed.soft_state(law, rule, 5.0, start=start)
    assert float(found.residual) < 1e-9
    assert 10 * float(found.z) > 4
    assert int(found.outcome) == Outcome.absent
    assert int(printed.soft_state(law, rule, 5.0).outcome) != Outcome.converged
    assert int(printed.soft_state(outliers.Contaminated(10.0, 2.4), rule, 5.0).outcome) == Outcome.converged
