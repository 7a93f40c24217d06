"""What the paper prints and what is used instead: the tests that decide. Ids are those of `docs/errata.md`."""

import itertools

import jax
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from quenched import outliers
from quenched.outliers.theory.setting import Setting
from quenched.papers.dietrich1998 import printed
from tests.programs import compiled
from tests.tolerances import SAME

LAW, SOFT, HARD = outliers.Contaminated(gamma=10.0), outliers.SoftSelection(), outliers.HardSelection()


def test_e2_the_printed_derivative_has_the_wrong_sign(double):
    """The integrals I_1 to I_7 of appendix A by hand."""
    at = Setting(10.0, 10.0, 1.0, 5.0, 0.0)
    R, Q, z, alpha, gamma, gt = 0.8, 0.75, 0.05, 5.0, 10.0, 10.0
    exact = float(compiled(jax.grad(printed.soft_free_energy, argnums=1))(R, Q, z, at))
    x, b = np.linspace(-9, 9, 20001), gt**2 * z / gamma
    dx, w1 = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * (x[1] - x[0]), 1 / (1 + np.e)
    total = {-1: 0.0, 1: 0.0}
    for weight, V in ((1 - w1, 0), (w1, 1)):
        e = np.exp(-(-gt * Q / 2 - 1.0 + V * gt * R + gt * np.sqrt(Q / gamma) * x))
        slope = (2 * e**2 + (2 - b) * e) / (e**2 + 1 + (2 - b) * e) ** 2
        I2, I3, I6, I7 = slope @ dx, slope * x @ dx, (1 / (e + 1)) @ dx, (x / (e + 1)) @ dx
        for sign in total:
            total[sign] += weight * (
                sign * gt / 2 * (I6 + b / 2 * I2) + gt / (2 * np.sqrt(gamma * Q)) * (I7 + b / 2 * I3)
            )
    used, as_printed = (-1 / (2 * z) + 0.5 - alpha * total[sign] for sign in (-1, 1))
    assert used == pytest.approx(exact, rel=1e-8)
    assert abs(as_printed - exact) > 1


@pytest.mark.parametrize(("gamma", "gt"), [(10.0, 10.0), (10.0, 4.0), (2.0, 6.0)])
def test_e6_where_selecting_nothing_becomes_stable(gamma, gt, double):
    """The exact energy of selecting one row of squared length N/gamma out of none, at large N."""
    N = 10_000_000
    a = 1 + gt / N
    energy = lambda eta: -(gt**2) / (2 * a * gamma) + N / 2 * np.log(a) + eta  # noqa: E731
    threshold = -gt / 2 + gt**2 / (2 * gamma)
    assert energy(threshold) == pytest.approx(0, abs=1e-4)
    assert abs(energy(-gt / 2 + gt**2 / (4 * gamma))) > 0.3
    found = outliers.transitions(outliers.Contaminated(gamma), outliers.HardSelection(gt), alpha=5.0)
    assert float(found.trivial_start) == pytest.approx(threshold, abs=1e-9)


def test_e7_the_critical_fraction_at_infinite_data_is_spurious():
    for gamma in (0.3, 1.0, 5.0):
        critical = printed.critical_fraction(gamma)
        assert critical.eta > 0
        assert critical.bracket > 0  # that is, R < 0
        law = outliers.Contaminated(gamma, critical.eta + 0.5)
        assert float(outliers.asymptote(law, HARD).example_energy) < 0
    assert printed.critical_fraction(0.278).eta == 0
    assert printed.critical_fraction(0.2784).eta == pytest.approx(0.806, abs=0.05)
    beyond = outliers.Contaminated(1.0, printed.critical_fraction(1.0).eta + 0.3)
    start = outliers.TeacherStart(float(outliers.asymptote(beyond, HARD).R))
    found = outliers.measure(beyond, HARD, alpha=10_000.0, size=10, runs=10, start=start, key=jax.random.key(7))
    assert float(found.free_energy) < -4 * float(found.free_energy_stderr)
    # where learning was said to be impossible beyond eta = 0, hard EM gains energy
    points = outliers.measure(
        outliers.Contaminated(0.2, 0.5), HARD, alpha=1000.0, size=20, runs=10, key=jax.random.key(7)
    )
    assert np.all(points.free_energy_run < -100)
    theory = outliers.curve(outliers.Contaminated(0.2, 0.5), HARD, alpha=1000.0, branch="informed")
    assert float(points.free_energy) == pytest.approx(float(theory.free_energy), rel=0.02)


@pytest.fixture(scope="module")
def points():
    """Hard selection of rather small systems."""
    return outliers.measure(LAW, HARD, alpha=20.0, eta=2.0, size=100, runs=40, key=jax.random.key(5))


def test_e8_the_angle_is_that_of_the_estimate(points):
    """In a sample with one selected row the estimate points exactly at it; as printed its angle would not be zero."""
    curve = outliers.curve(LAW, HARD, alpha=20.0, eta=2.0, branch="informed")
    variance = 1 / (1 + 10.0 * 20.0 * float(curve.selected))
    as_printed = np.arccos(float(curve.R) / np.sqrt(float(curve.Q) + variance)) / np.pi
    assert abs(float(points.Phi) - float(curve.Phi)) < 4 * float(points.Phi_stderr)
    assert abs(float(points.Phi) - as_printed) > 8 * float(points.Phi_stderr)
    trivial = outliers.curve(LAW, HARD, alpha=20.0, eta=7.0, branch="trivial")
    assert (float(trivial.Q), float(trivial.Phi)) == (0.0, 0.5)


def test_e10_soft_selection_has_two_transitions(soft_lines):
    found = soft_lines
    assert found.informed_overfit_outcome.values.tolist() == ["absent", "converged", "converged"]
    assert float(found.informed_overfit[-1]) < float(found.overfit_trivial[-1]) - 5
    at = outliers.curve(LAW, SOFT, alpha=20.0, eta=float(found.informed_overfit[-1]))
    informed, overfit = at.sel(branch="informed"), at.sel(branch="overfit")
    assert float(informed.free_energy) == pytest.approx(float(overfit.free_energy), abs=1e-8)
    assert float(informed.R) - float(overfit.R) > 0.5  # R drops, Q does not
    assert abs(float(informed.Q) - float(overfit.Q)) < 0.1


def hard_states(eta, noise, alpha=20.0, gamma=10.0):
    """All states (R, Q) of hard selection at one eta, by elimination: no search can miss one.

    `noise` is 1 for the noise Qh of the selected examples, 1/2 for the printed Qh/2. With k_V = m_V/s the shares of
    selected examples, and so Qh, Rh and the angle, (k_1 - k_0)/sqrt(gamma) = R/sqrt(Q), depend on k_0 and k_1 alone;
    then 1/z follows from its equation, which is linear, and the last equation, that of the field, is what is left.
    """
    w1 = 1 / (1 + np.exp(eta))
    k0, rise = np.meshgrid(np.linspace(-7, 4, 1101), np.linspace(1e-4, np.sqrt(gamma) - 1e-4, 4001), indexing="ij")

    def angle(k0, rise):
        Rh = alpha * w1 * ndtr(k0 + rise)
        Qh = Rh + alpha * (1 - w1) * ndtr(k0)
        return rise / np.sqrt(gamma) - Rh * np.sqrt(gamma / (gamma * Rh**2 + noise * Qh)), Rh, Qh

    def field(k0, rise):
        _, Rh, Qh = angle(k0, rise)
        kappa = np.sqrt(gamma * (noise * Qh + gamma * Rh**2))  # sqrt(Q)/z
        density = alpha * (w1 * norm.pdf(k0 + rise) + (1 - w1) * norm.pdf(k0))
        z = (1 + np.sqrt(gamma) * density / kappa) / (1 + gamma * Qh)
        Q, c = (z * kappa) ** 2, gamma / (2 * (1 + gamma * Qh))
        left = np.sqrt(gamma * Q) * k0 - (-gamma * Q / 2 - eta - c + noise * gamma * z / 2)
        return left, z * gamma * Rh, Q

    off = angle(k0, rise)[0]
    i, j = np.nonzero(np.diff(np.sign(off), axis=1))
    low, high = rise[i, j], rise[i, j + 1]
    for _ in range(50):
        middle = (low + high) / 2
        same = np.sign(angle(k0[i, 0], middle)[0]) == np.sign(off[i, j])
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    left, R, Q = field(k0[i, 0], low)
    order = np.lexsort((k0[i, 0], R / np.sqrt(Q) < 0.5))  # each of the curves in the plane by itself, along k_0
    found = []
    for a, b in itertools.pairwise(order):
        near = abs(low[a] - low[b]) < 0.2 and abs(k0[i[a], 0] - k0[i[b], 0]) < 0.02
        if near and left[a] * left[b] < 0:
            share = left[a] / (left[a] - left[b])
            found.append((R[a] + share * (R[b] - R[a]), Q[a] + share * (Q[b] - Q[a])))
    return sorted(found)


def test_e11_hard_selection_has_an_overfitted_state():
    """One long and nearly orthogonal to the teacher; the printed equations have none of that kind at any angle."""
    state = outliers.curve(LAW, HARD, alpha=20.0, eta=4.5, branch="overfit")
    assert str(state.outcome.values) == "converged"
    overfit = [(R, Q) for R, Q in hard_states(4.5, 1.0) if R < 0.1 and Q > 0.5]
    assert len(overfit) == 1
    np.testing.assert_allclose(overfit[0], [float(state.R), float(state.Q)], atol=1e-3)
    assert not [(R, Q) for R, Q in hard_states(4.5, 0.5) if R < 0.5 and Q > 0.1]


def test_e13_the_denominator_of_the_overlap(points):
    """R = gamma gt Rh/D. With the printed denominator of (B4) the simulated overlap is missed by far."""
    curve = outliers.curve(LAW, HARD, alpha=20.0, eta=2.0, branch="informed")
    gamma = gt = 10.0
    R, z, Qh = float(curve.R), float(curve.z), 20.0 * float(curve.selected)
    Rh, zh = R / (z * gt), (1 / z - 1 - gt * Qh) * gamma / gt**2
    D, as_printed = Qh * gamma * gt + zh * gt**2 + gamma, Qh * gt + zh * gt**2 + gamma
    overlap = lambda D: Rh * gt / (Qh * gt + 1) * (1 - zh * gt**2 / D)  # noqa: E731  (B4)
    assert overlap(D) == pytest.approx(R, rel=1e-9)
    assert abs(overlap(as_printed) - float(points.R)) > 20 * float(points.R_stderr)
    assert abs(R - float(points.R)) < 5 * float(points.R_stderr)


def test_soft_em_without_outliers_is_the_hebb_vector():
    """The limiting case of section 4, on the same samples."""
    given = {"alpha": 5.0, "eta": -200.0, "size": 7, "runs": 3, "key": jax.random.key(0)}
    soft, hebb = (outliers.measure(LAW, rule, **given) for rule in (SOFT, outliers.Hebb()))
    for name in ("R_run", "Q_run"):
        np.testing.assert_allclose(soft[name], hebb[name], rtol=SAME)
