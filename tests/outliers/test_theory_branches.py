"""Branches of outliers, transitions between them, unlimited examples, and the theory as it was printed."""

import json

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from quenched.core.saddle.state import ACCURACY
from quenched.core.types import InputError
from quenched.outliers.model import Contaminated, Gibbs, HardSelection, Hebb, SoftSelection
from quenched.outliers.theory import asymptote, curve, transitions
from quenched.papers.dietrich1998 import printed
from tests.outliers.conftest import ETAS
from tests.tolerances import PRINTED

LAW = Contaminated(10.0)
SOFT, HARD = SoftSelection(), HardSelection()
GIVEN = 5e-4
"""Transitions are given to three digits or four."""
EQUAL = 1e-9
"""Free energies at a crossing, relative."""


def at(found, eta, branch):
    return found.sel(eta=eta, branch=branch)


# ---- branches


def test_check_values(soft_curve, hard_curve):
    found = at(soft_curve, 2.0, "informed")
    values = [found[name].item() for name in ("R", "Q", "Phi", "free_energy")]
    np.testing.assert_allclose(values, [0.93714, 0.92554, 0.07259, -8.86851], atol=PRINTED)
    found = at(hard_curve, 2.0, "informed")
    values = [found[name].item() for name in ("R", "Q", "Phi", "free_energy")]
    np.testing.assert_allclose(values, [1.03103, 1.12559, 0.07576, -6.62836], atol=PRINTED)


def test_the_informed_branch_alone_is_the_same(soft_curve, hard_curve):
    """Short of its end only a part of the curve is followed, beyond it all of it."""
    for rule, every in ((SOFT, soft_curve), (HARD, hard_curve)):
        for etas in (ETAS[:4], ETAS):
            one = curve(LAW, rule, alpha=20.0, eta=etas, branch="informed")
            for name in ("R", "Q", "free_energy", "stability"):
                np.testing.assert_allclose(one[name], every[name].sel(branch="informed", eta=etas), rtol=1e-10)
            assert "lowest" not in one


def test_every_branch_is_where_it_should_be(soft_curve, hard_curve):
    for found, exist in ((soft_curve, {"informed": (-2, 3.95), "overfit": (3.8, 9), "trivial": (6.5, 20)}),
                         (hard_curve, {"informed": (-2, 3.8), "overfit": (3.8, 4.2), "trivial": (2, 20)})):  # fmt: skip
        for name, (first, last) in exist.items():
            there = (ETAS >= first) & (ETAS <= last)
            assert np.array_equal(found.outcome.sel(branch=name) == "converged", there), name
            assert np.all(found.outcome.sel(branch=name).values[~there] == "absent")
            assert np.array_equal(np.isfinite(found.R.sel(branch=name)), there)
        assert np.all(found.residual < ACCURACY)
        assert np.all(found.lowest.sum("branch") == 1)
    assert np.all(soft_curve.R.sel(branch="overfit", eta=[4.2, 9.0]) < 0.06)
    assert np.all(soft_curve.Q.sel(branch="overfit", eta=[4.2, 9.0]) > 0.7)
    assert np.all(soft_curve.Q.sel(branch="trivial", eta=[6.5, 20.0]) < 1e-3)


def test_the_branch_of_least_free_energy(soft_curve, hard_curve):
    lowest = soft_curve.branch.values[soft_curve.lowest.argmax("branch").values]
    assert list(lowest) == ["informed"] * 6 + ["overfit"] * 4 + ["trivial"] * 2
    lowest = hard_curve.branch.values[hard_curve.lowest.argmax("branch").values]
    assert list(lowest) == ["informed"] * 4 + ["overfit"] * 4 + ["trivial"] * 4


def test_the_energy_grows_with_eta_by_the_selected_share():
    """Of hard selection: each selected example costs eta, and eta moves the shares of the classes.

    d f/d eta = alpha selected + alpha w0 w1 (<(m_1 + s x)_+> - <(m_0 + s x)_+>), by differences of the whole law.
    """
    alpha, gt, eta, step = 20.0, 10.0, 3.4, 1e-4
    found = curve(LAW, HARD, alpha=alpha, eta=[eta - step, eta, eta + step], branch="informed")
    slope = (found.free_energy[2] - found.free_energy[0]).item() / (2 * step)
    R, Q, z, selected = (found[name][1].item() for name in ("R", "Q", "z", "selected"))
    s = gt * np.sqrt(Q / 10.0)
    m = -gt * Q / 2 - eta - gt / (2 * (1 + gt * alpha * selected)) + gt * gt * z / 10.0 / 2 + np.array([0, gt * R])
    gain = m * norm.cdf(m / s) + s * norm.pdf(m / s)
    w1 = 1 / (1 + np.exp(eta))
    np.testing.assert_allclose(slope, alpha * selected + alpha * w1 * (1 - w1) * (gain[1] - gain[0]), rtol=1e-6)
    assert selected == pytest.approx((1 - w1) * norm.cdf(m[0] / s) + w1 * norm.cdf(m[1] / s), rel=1e-9)


def test_a_trivial_state_of_soft_selection_has_a_closed_limit(soft_curve):
    found = at(soft_curve, 20.0, "trivial")
    np.testing.assert_allclose(found.Q, 20 * 10 * np.exp(-40.0), rtol=1e-6)
    np.testing.assert_allclose(found.R, 20 * 10 * np.exp(-40.0), rtol=1e-6)
    np.testing.assert_allclose(found.free_energy, -20 * np.exp(-20.0), rtol=1e-6)
    assert found.stability < 1


def test_one_branch_of_many_and_one_point_of_a_sweep(soft_curve):
    one = curve(LAW, SOFT, alpha=[20.0], eta=2.0, branch="informed")
    assert one.R.dims == ("alpha",)
    np.testing.assert_allclose(one.R[0], at(soft_curve, 2.0, "informed").R.item(), rtol=1e-10)


def test_noisy_data_have_one_branch():
    found = curve(Contaminated(1.0), SOFT, alpha=20.0, eta=[0.0, 8.0, 20.0])
    assert np.all(found.outcome.sel(branch="informed") == "converged")
    assert np.all(found.outcome.sel(branch=["overfit", "trivial"]) == "absent")


def test_a_student_who_believes_in_another_noise(soft_curve):
    found = curve(LAW, SOFT, alpha=20.0, eta=2.0, rule_gamma=[5.0, 20.0], branch="informed")
    assert np.all(found.Phi > at(soft_curve, 2.0, "informed").Phi.item())  # the true one is best


def test_students_with_one_branch():
    hebb = curve(LAW, Hebb(), alpha=[5.0, 10.0], eta=[0.0, 1.0])
    assert hebb.R.dims == ("eta", "alpha")
    np.testing.assert_allclose(hebb.R[0, 0], 0.490196, atol=PRINTED)
    gibbs = curve(LAW, Gibbs(), alpha=5.0, branch="informed")
    np.testing.assert_allclose(gibbs.Q, 1.0, atol=PRINTED)


# ---- transitions


def test_first_order_transitions(soft_lines, hard_lines):
    found = soft_lines.sel(alpha=20.0)
    values = [found[name].item() for name in ("overfit_start", "informed_end", "informed_overfit", "overfit_trivial")]
    np.testing.assert_allclose(values, [3.769, 3.992, 3.9206, 9.558], atol=GIVEN)
    found = hard_lines.sel(alpha=20.0)
    np.testing.assert_allclose([found.informed_overfit, found.overfit_trivial], [3.742, 5.712], atol=GIVEN)
    assert found.trivial_start == 0
    assert found.informed_trivial_outcome == "absent"  # where they cross the overfit branch is lower
    single = hard_lines.sel(alpha=1.0)
    assert (single.informed_overfit_outcome, single.informed_trivial_outcome) == ("absent", "converged")


def test_the_cusp(soft_lines):
    assert list(soft_lines.informed_overfit_outcome.values) == ["absent", "converged", "converged"]
    near = soft_lines.sel(alpha=5.6)
    assert 0 < near.informed_end - near.overfit_start < 1e-3
    np.testing.assert_allclose(near.informed_overfit, 3.21, atol=0.01)


def test_lines_say_which_state_is_lower_on_either_side(soft_lines):
    found = soft_lines.sel(alpha=20.0)
    for name, above, below in json.loads(found.attrs["boundaries"]):
        if not np.isfinite(found[name]):
            continue
        eta = float(found[name]) * np.array([0.995, 1.005])
        energy = curve(LAW, SOFT, alpha=20.0, eta=eta).free_energy
        assert list(energy.branch.values[energy.argmin("branch")]) == [below, above]


def test_replica_symmetry(soft_lines, hard_lines):
    np.testing.assert_allclose(soft_lines.replica_symmetry.sel(alpha=20.0), 3.84, atol=5e-3)
    assert np.all(hard_lines.replica_symmetry_outcome == "absent")
    assert np.all(soft_lines.informed_overfit_stability[1:] == np.inf)  # of the overfit branch


def test_free_energies_are_equal_at_a_transition(soft_lines):
    found = soft_lines.sel(alpha=20.0)
    etas = [found.informed_overfit.item(), found.overfit_trivial.item()]
    found = curve(LAW, SOFT, alpha=20.0, eta=etas)
    f = found.free_energy.values
    np.testing.assert_allclose([f[0, 0], f[1, 1]], [f[0, 1], f[1, 2]], rtol=EQUAL)
    np.testing.assert_allclose(found.stability[0, 0], 1.55, atol=0.01)
    np.testing.assert_allclose(found.Q[1, 1], 0.629, atol=GIVEN)


@pytest.mark.parametrize(
    ("along", "rule", "limits"), [("gamma", HARD, (9.6, 10.4)), ("rule_gamma", HardSelection(10.0), (9.6, 16.0))]
)
def test_lines_along_another_control_meet_those_in_eta(hard_lines, along, rule, limits):
    """At the eta of a transition the control is the law's own; where selecting nothing begins is known."""
    law = Contaminated(10.0, hard_lines.informed_overfit.sel(alpha=20.0).item())
    found = transitions(law, rule, along=along, alpha=20.0, limits=limits)
    assert found.attrs["along"] == along
    np.testing.assert_allclose(found.informed_overfit, 10.0, rtol=EQUAL)
    assert found.informed_overfit_outcome == "converged"
    if along == "rule_gamma":  # eta = -g/2 + g^2/20
        np.testing.assert_allclose(found.trivial_end, 5 + np.sqrt(25 + 20 * law.eta), rtol=EQUAL)


# ---- unlimited examples


def test_unlimited_examples_find_the_teacher():
    found = asymptote(LAW, SOFT, eta=[0.0, 4.0])
    np.testing.assert_allclose(found.R, 1.0, rtol=1e-9)

    def squared(x, m):
        return np.exp(-x * x / 2) / np.sqrt(2 * np.pi) / (1 + np.exp(-m - np.sqrt(10) * x)) ** 2

    w1 = 1 / (1 + np.exp(4.0))
    p2 = (1 - w1) * quad(squared, -9, 9, (-9.0,))[0] + w1 * quad(squared, -9, 9, (1.0,))[0]
    np.testing.assert_allclose(found.c[1], 1 / (10 * p2), rtol=1e-8)


def test_the_asymptote_is_the_limit_of_the_curve():
    for rule in (HARD, SoftSelection(14.0), Hebb()):
        limit = asymptote(LAW, rule, eta=1.0)
        found = curve(LAW, rule, alpha=[1e4, 2e4], eta=1.0, branch="informed")
        for name, value in (("R", found.R), ("Phi_amplitude", np.sqrt(found.alpha) * found.Phi)):
            limiting = 2 * value[1] - value[0]  # the rest is of order 1/alpha
            np.testing.assert_allclose(limiting, limit[name], rtol=1e-5, err_msg=f"{rule} {name}")
        energy = found.free_energy / found.alpha
        np.testing.assert_allclose(2 * energy[1] - energy[0], limit.example_energy, rtol=1e-4)


def test_a_drawn_vector_is_twice_as_far():
    soft, gibbs = (asymptote(LAW, rule, eta=2.0) for rule in (SOFT, Gibbs()))
    np.testing.assert_allclose(gibbs.c, 2 * soft.c, rtol=1e-9)


def test_hard_selection_always_gains():
    """There is no critical share of outliers: erratum E7."""
    for gamma in (0.2, 1.0, 10.0):
        found = asymptote(Contaminated(gamma), HARD, eta=[0.5, 5.0, 20.0])
        assert np.all(found.example_energy < 0)
        assert np.all(found.R > 0)


def test_an_overlap_that_rounding_hides_is_marked_without_a_warning():
    """At this eta all overlaps gain the same, to rounding."""
    assert asymptote(LAW, SOFT, eta=50.0).outcome == "failed"


def test_a_student_who_believes_in_far_too_little_noise_is_followed_without_a_warning():
    """At the largest eta of the curve squares of slopes are beyond all numbers."""
    found = curve(Contaminated(100.0, 5.5), SoftSelection(1000.0), alpha=0.1)
    assert (found.outcome == "converged").any()


# ---- as printed


def test_the_printed_soft_theory_is_another():
    values = [float(printed.soft_state(Contaminated(10.0, eta), SOFT, 5.0).Delta) for eta in (2.0, 2.4)]
    np.testing.assert_allclose(values, [0.2112, 0.3733], atol=5e-5)


def test_the_printed_hard_theory_is_another():
    found = printed.hard_state(Contaminated(10.0, 2.0), HARD, 20.0)
    np.testing.assert_allclose(float(found.Phi), 0.0537, atol=5e-5)
    for alpha, eta in ((5.0, 2.829), (20.0, 3.8165), (50.0, 4.463)):
        np.testing.assert_allclose(printed.hard_transition(LAW, HARD, alpha), eta, atol=GIVEN)


def test_the_printed_critical_fraction_is_no_state():
    assert printed.critical_fraction(0.2783).eta == 0
    np.testing.assert_allclose(printed.critical_fraction(0.27836 + 1e-5).eta, 0.806, atol=0.02)
    np.testing.assert_allclose(printed.critical_fraction(1.0).eta, 4.623, atol=GIVEN)
    for gamma in (0.3, 1.0, 10.0):
        assert printed.critical_fraction(gamma).bracket > 0  # R < 0


# ---- bad input


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: curve(LAW, SOFT, alpha=0.0), "alpha"),
        (lambda: curve(LAW, SOFT, alpha=[2.0, 1.0]), "alpha"),
        (lambda: curve(LAW, SOFT, alpha=1.0, branch="lucky"), "branch"),
        (lambda: curve(LAW, Hebb(), alpha=1.0, branch="overfit"), "branch"),
        (lambda: curve(LAW, SOFT, alpha=1.0, gamma=1.0), "gamma"),
        (lambda: curve(LAW, SOFT, alpha=1.0, eta=1e4), "eta"),
        (lambda: curve(LAW, SOFT, alpha=1.0, eta=np.nan), "eta"),
        (lambda: transitions(LAW, Hebb(), alpha=1.0), "rule"),
        (lambda: transitions(LAW, SOFT, alpha=1.0, eta=[1.0]), "eta"),
        (lambda: transitions(LAW, SOFT, alpha=-1.0), "alpha"),
        (lambda: transitions(LAW, SOFT, alpha=1.0, along="width"), "width"),
        (lambda: transitions(LAW, SOFT, alpha=1.0, along="gamma", limits=(2.0, 1.0)), "limits"),
        (lambda: printed.critical_fraction(0.0), "gamma"),
    ],
)
def test_bad_input_gets_one_sentence(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
