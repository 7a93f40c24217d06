"""The theory of mixtures: exact limits, identities, two formulations against each other, and check values."""

import json

import jax
import numpy as np
import pytest
from scipy.special import erf, ndtr

from quenched.core.types import InputError
from quenched.mixtures import theory
from quenched.mixtures.model import MaximumLikelihood, TwoGaussians
from quenched.mixtures.theory import equations
from tests.programs import compiled
from tests.systems import clusters
from tests.systems.selection import nodes
from tests.tolerances import ALGEBRA, GRADIENT, PRINTED, QUADRATURE, SAME

CASES = [(5.0, 1.0), (1.0, 2.0)]  # alpha, separation


def at(alpha, separation, width):
    found = theory.curve(TwoGaussians(separation), MaximumLikelihood(), alpha=[alpha], width=np.atleast_1d(width))
    assert np.all(found.outcome == "converged")
    return found.isel(alpha=0)


# ---- check values


def test_check_values():
    one = at(5.0, 1.0, [1.5, 1.9952, 2.1 - 1e-9])
    np.testing.assert_allclose(one.r[0], 0.19476, atol=PRINTED)
    np.testing.assert_allclose(one.q[0], 0.64674, atol=PRINTED)
    np.testing.assert_allclose(one.error, [0.40432, 0.39404, 0.39463], atol=PRINTED)
    two = at(1.0, 2.0, [3.0, 2.753, 4.5 - 1e-9])
    np.testing.assert_allclose(two.r[0], 0.70072, atol=PRINTED)
    np.testing.assert_allclose(two.q[0], 1.84525, atol=PRINTED)
    np.testing.assert_allclose(two.error[1:], [0.15096, 0.15866], atol=PRINTED)


def test_check_values_of_the_lines():
    found = theory.phase_lines(TwoGaussians(), alpha=[5.0], separation=[1.0, 2.0])
    np.testing.assert_allclose(found.splitting_ordered.sel(separation=1.0), 2.1, rtol=ALGEBRA)
    np.testing.assert_allclose(found.ordered_random.sel(separation=1.0), 0.8936, atol=5e-5)
    np.testing.assert_allclose(found.replica_symmetry.sel(separation=1.0), 1.4487, atol=5e-5)
    at_one = theory.phase_lines(TwoGaussians(2.0), alpha=1.0)
    np.testing.assert_allclose(at_one.splitting_ordered, 4.5, rtol=ALGEBRA)
    np.testing.assert_allclose(at_one.replica_symmetry, 1.5515, atol=5e-5)
    assert at_one.ordered_random_outcome == "absent"
    far = theory.phase_lines(TwoGaussians(1.0), alpha=160.0)
    np.testing.assert_allclose(160 * far.replica_symmetry, 5.32, atol=5e-3)


def test_lines_say_which_phase_is_above_and_which_below():
    law = TwoGaussians(1.0)
    for alpha in (3.0, 5.0):
        found = theory.phase_lines(law, alpha=alpha)
        above = "unsplit"
        for name, upper, lower in json.loads(found.attrs["boundaries"]):
            if upper != above or not np.isfinite(found[name]):  # a line of another state
                continue
            above, width = lower, float(found[name])
            phases = theory.curve(law, MaximumLikelihood(), alpha=alpha, width=[0.98 * width, 1.02 * width]).phase
            assert list(phases.values) == [lower, upper]


# ---- lines against closed forms


@pytest.mark.parametrize("separation", [0.5, 1.0, 2.0])
def test_lines_with_a_closed_form(separation):
    l = separation**2 / 2
    alphas = np.geomspace(0.2, 30, 40) / l**2
    found = theory.phase_lines(TwoGaussians(separation), alpha=alphas)
    np.testing.assert_allclose(found.alpha_c, 4 / separation**4, rtol=ALGEBRA)
    np.testing.assert_allclose(found.alpha_end, 2 * np.pi / separation**4, rtol=1e-7)  # width 1e-9 instead of 0
    ordered = alphas > 1 / l**2
    assert np.all((found.splitting_ordered_outcome == "converged") == ordered)
    closed = (1 + l) * (1 + 1 / (alphas * l))
    np.testing.assert_allclose(found.splitting_ordered[ordered], closed[ordered], rtol=ALGEBRA)
    np.testing.assert_allclose(found.splitting_random, (1 + alphas**-0.5) ** 2, rtol=ALGEBRA)
    assert np.all(closed >= found.splitting_random - ALGEBRA)


def test_the_line_between_order_and_chance_runs_from_the_splitting_to_width_zero(double):
    alphas = np.array([4.0 * (1 + 1e-6), 4.5, 5.0, 6.0, 2 * np.pi * (1 - 1e-6)])
    found = theory.phase_lines(TwoGaussians(1.0), alpha=alphas)
    widths = found.ordered_random.values
    assert np.all(found.ordered_random_outcome == "converged")
    assert np.all(np.diff(widths) < 0)
    np.testing.assert_allclose(widths[0], 2.25, atol=0.05)  # the line leaves this point as the fourth root of alpha
    np.testing.assert_allclose(widths[-1], 0.0, atol=0.1)  # and comes to this one as 1/log
    np.testing.assert_allclose([found.alpha_c, found.alpha_end], [4.0, 2 * np.pi], rtol=1e-7)


def test_where_lines_do_not_exist_they_are_absent():
    found = theory.phase_lines(TwoGaussians(1.0), alpha=[2.0, 5.0, 8.0])
    assert list(found.splitting_ordered_outcome.values) == ["absent", "converged", "converged"]
    assert list(found.ordered_random_outcome.values) == ["absent", "converged", "absent"]
    assert list(found.replica_symmetry_outcome.values) == ["absent", "converged", "converged"]
    assert np.isfinite(found.splitting_random).all()


def test_lines_of_clusters_far_apart():
    """They lie close to the splitting, and the curve changes there; one that cannot be resolved is marked."""
    separation = 60.0
    alphas = 4 / separation**4 * np.array([1.2, 8.0, 1000.0])
    found = theory.phase_lines(TwoGaussians(separation), alpha=alphas)
    np.testing.assert_allclose(
        [found.alpha_c, found.alpha_end], 4 / separation**4 * np.array([1, np.pi / 2]), rtol=1e-9
    )
    l = separation**2 / 2
    np.testing.assert_allclose(found.splitting_ordered, (1 + l) * (1 + 1 / (alphas * l)), rtol=1e-9)
    assert found.replica_symmetry_outcome.values.tolist() == ["converged", "converged", "stalled"]
    near = at(alphas[0], separation, float(found.ordered_random[0]) * np.array([1 - 1e-6, 1 + 1e-6]))
    assert near.phase.values.tolist() == ["random", "ordered"]
    near = at(alphas[1], separation, float(found.replica_symmetry[1]) * np.array([1 - 1e-6, 1 + 1e-6]))
    assert near.stability[0] > 1 > near.stability[1]
    along = theory.transitions(
        TwoGaussians(), MaximumLikelihood(float(found.ordered_random[0])), along="separation", alpha=alphas[0]
    )
    np.testing.assert_allclose(along.ordered_random, separation, rtol=1e-6)


def test_transitions_along_the_separation_are_those_along_the_width():
    """What happens at a width of some separation happens at that separation of this width."""
    along = theory.phase_lines(TwoGaussians(1.0), alpha=5.0)
    for name in ("splitting_ordered", "ordered_random", "replica_symmetry"):
        rule = MaximumLikelihood(float(along[name]))
        found = theory.transitions(TwoGaussians(3.0), rule, alpha=5.0, along="separation")
        assert float(found[name]) == pytest.approx(1.0, rel=ALGEBRA)
        assert found.splitting_random_outcome == "absent"  # it does not depend on the separation


# ---- exact limits of states


@pytest.mark.parametrize(("alpha", "separation"), CASES)
def test_at_the_splitting_line(alpha, separation):
    """Cosine of the BBP transition, growth of q, and the stability value alpha_c/alpha."""
    l = separation**2 / 2
    top = (1 + l) * (1 + 1 / (alpha * l))
    found = at(alpha, separation, [top - 1e-5, top - 2e-5])
    cosine2 = (1 - 1 / (alpha * l * l)) / (1 + 1 / (alpha * l))
    np.testing.assert_allclose(2 * found.r**2 / found.q, cosine2, rtol=1e-4)
    np.testing.assert_allclose(found.stability, 1 / (alpha * l * l), rtol=1e-4)
    slope = {5.0: 1.00297, 1.0: 1.20000}[alpha]
    np.testing.assert_allclose(np.diff(found.q)[0] / 1e-5, slope, rtol=1e-4)


def test_above_the_splitting_there_is_one_centre():
    found = at(5.0, 1.0, [2.1 + 1e-9, 4.0])
    assert list(found.phase.values) == ["unsplit", "unsplit"]
    assert np.all(found.q == 0)
    assert np.all(found.error == 0.5)
    edge = at(0.5, 1.0, [(1 + 0.5**-0.5) ** 2 * (1 + 1e-12)])
    np.testing.assert_allclose(edge.stability, 1.0, rtol=1e-4)


@pytest.mark.parametrize(("alpha", "separation"), [(8.0, 1.0), (1.0, 2.0)])
def test_width_zero_is_two_means(alpha, separation):
    found = at(alpha, separation, [1e-3])
    c = np.sqrt(2 * found.r**2 / found.q).item()
    np.testing.assert_allclose(
        c / np.sqrt(1 - c**2), separation * np.sqrt(alpha / 2) * erf(separation * c / 2), rtol=1e-5
    )
    root = 1 / np.sqrt(alpha * (1 - c**2)) + np.sqrt(2 / np.pi) * np.exp(-(separation**2) * c**2 / 4)
    np.testing.assert_allclose(np.sqrt(found.q), root, rtol=1e-5)


def test_width_zero_of_the_random_phase():
    found = at(3.0, 1.0, [1e-3])
    assert found.phase == "random"
    np.testing.assert_allclose(np.sqrt(found.q), 3**-0.5 + np.sqrt(2 / np.pi), rtol=1e-5)


# ---- identities


@pytest.mark.parametrize(("alpha", "separation", "width"), [(5.0, 1.0, 1.5), (1.0, 2.0, 0.7), (8.0, 1.0, 0.5)])
def test_a_state_makes_the_free_energy_stationary(alpha, separation, width):
    r"""By plain quadrature; with $q = \langle \eta t \rangle$, the iteration multiplied by the splitting vector."""
    state = at(alpha, separation, width)
    r, q = state.r.item(), state.q.item()
    (r_found, q_found, chi), left = clusters.solve((r, q, 1.5), separation, alpha, width)
    np.testing.assert_allclose([r, q], [r_found, q_found], rtol=SAME)
    assert left < 1e-12

    def examples(r, q, x):
        """Fields before and after training, and their weights."""
        z, weight = nodes(-separation * r / np.sqrt(q), finest=1e-12)
        y = separation * r + np.sqrt(q) * z
        return y, y + x / width * clusters.trained(y, x, width), weight

    def log_cosh(h):
        return np.logaddexp(h, -h) - np.log(2)

    def free_energy(r, q, x):
        y, eta, weight = examples(r, q, x)
        gain = weight @ ((eta - y) ** 2 / (2 * x) - log_cosh(eta / width))
        return alpha * q / (2 * width) + alpha * gain - (q - 2 * r * r) / (2 * x)

    point = np.array([r, q, chi * width / alpha])
    slopes = [free_energy(*(point + h)) - free_energy(*(point - h)) for h in 1e-4 * np.diag(point)]
    np.testing.assert_allclose(slopes, 0.0, atol=1e-10)
    _, eta, weight = examples(*point)
    assert weight @ (eta * np.tanh(eta / width)) == pytest.approx(q, rel=SAME)
    energy = q / (2 * width) - weight @ log_cosh(eta / width)
    np.testing.assert_allclose([state.energy.item(), state.free_energy.item() / alpha], energy, rtol=SAME)
    assert free_energy(*point) == pytest.approx(state.free_energy.item(), rel=SAME)


def test_the_random_phase_is_never_stable():
    found = at(3.0, 1.0, np.linspace(0.2, 0.99, 6) * (1 + 3**-0.5) ** 2)
    assert np.all(found.phase == "random")
    assert np.all(found.stability > 1)


def test_on_the_line_the_stability_value_is_one():
    for alpha, separation in [*CASES, (4.0, 3.0)]:  # far apart, the line is followed in shorter steps
        width = float(theory.phase_lines(TwoGaussians(separation), alpha=alpha).replica_symmetry)
        np.testing.assert_allclose(at(alpha, separation, [width]).stability, 1.0, rtol=1e-7)


def test_order_dies_on_its_line():
    width = float(theory.phase_lines(TwoGaussians(1.0), alpha=5.0).ordered_random)
    found = at(5.0, 1.0, [width - 1e-3, width + 1e-3, width + 2e-3])
    assert list(found.phase.values) == ["random", "ordered", "ordered"]
    np.testing.assert_allclose(found.r[2] ** 2 / found.r[1] ** 2, 2.0, rtol=0.01)  # r grows as a square root


def test_averages_over_an_example(double):
    """Against plain quadrature over z, where there is no gap."""
    s, b, c, l = 0.7, 0.35, 0.6, 0.8
    n, m = np.sqrt(1 + s * s), np.sqrt(l) * c
    z = np.linspace(-12, 12, 4001)  # the trapezoidal rule: its error is that of a Fourier series
    weight = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    w = m + z
    for _ in range(500):
        w = m + z + b * n / s * np.tanh(s * w)
    T = n / s * np.tanh(s * w)
    found = compiled(equations.averages)(s, n, b, m, equations.find_nodes(*map(np.float64, (s, n, b, m))))
    slope = b * n / np.cosh(s * w) ** 2
    expected = [T / m, T**2, z * T, np.log(np.cosh(s * w)), (1 / (1 - slope) - 1) ** 2]
    np.testing.assert_allclose(found, np.array(expected) @ weight, rtol=QUADRATURE)


# ---- bounds


@pytest.mark.parametrize(("alpha", "separation"), CASES)
def test_nothing_beats_bayes(alpha, separation):
    best = theory.optimum(TwoGaussians(separation), alpha=alpha).error.item()
    cosine2 = {5.0: 0.144505, 1.0: 0.533033}[alpha]
    np.testing.assert_allclose(best, ndtr(-separation * np.sqrt(cosine2 / 2)), atol=1e-6)
    top = float(np.asarray(theory.splitting(TwoGaussians(separation), alpha)))
    found = at(alpha, separation, np.linspace(0.05, 0.999, 12) * top)
    assert np.all(found.error >= best)


def test_the_best_width_lies_between_the_true_one_and_the_splitting():
    """Erratum B7: never at the splitting line."""
    for (alpha, separation), where in zip(CASES, (1.9952, 2.753), strict=True):
        found = at(alpha, separation, where + np.array([-0.02, 0.0, 0.02]))
        assert found.error[1] < found.error[0]
        assert found.error[1] < found.error[2]


# ---- JAX, derivatives, bad input


def test_the_pure_function_is_the_curve_and_has_two_derivatives(double):
    """In all phases; derivatives against finite differences, with and without a jump of the field; vectorised."""
    names = ("r", "q", "error", "energy", "free_energy", "stability")

    def error(width, separation, alpha):
        found = theory.state(TwoGaussians(separation), MaximumLikelihood(width), alpha)
        return found.error, found

    def slope(width, *rest):
        _, value, found = jax.jvp(lambda w: error(w, *rest), (width,), (1.0,), has_aux=True)
        return value, found

    @compiled
    @jax.vmap
    def every(width, *rest):
        value, bend, found = jax.jvp(lambda w: slope(w, *rest), (width,), (1.0,), has_aux=True)
        return value, bend, found

    widths, rest = np.array([3.0, 0.8, 1.5, 0.5, 3.0]), (np.array([2.0, 2.0, 1, 1, 1]), np.array([1.0, 1.0, 5, 5, 5]))
    first, second, found = every(widths, *rest)
    (up, _, after), (down, _, before) = every(widths + 1e-4, *rest), every(widths - 1e-4, *rest)
    np.testing.assert_allclose(first[:3], (after.error - before.error)[:3] / 2e-4, rtol=1e-5)
    np.testing.assert_allclose(second[:2], (up - down)[:2] / 2e-4, rtol=GRADIENT)
    assert [theory.Phase(int(p)).name for p in found.phase] == ["ordered", "ordered", "ordered", "random", "unsplit"]
    for i, (width, separation, alpha) in enumerate(zip(widths, *rest, strict=True)):
        host = at(alpha, separation, width)
        for name in names:
            np.testing.assert_allclose(getattr(found, name)[i], host[name].item(), rtol=ALGEBRA, atol=ALGEBRA)


def test_a_sweep_is_its_points():
    law, rule = TwoGaussians(1.0), MaximumLikelihood()
    many = theory.curve(law, rule, alpha=[3.0, 5.0], width=[0.5, 1.5])
    assert many.r.dims == ("width", "alpha")
    np.testing.assert_allclose(many.r.sel(width=1.5, alpha=5.0), at(5.0, 1.0, 1.5).r.item(), rtol=1e-9)
    assert theory.curve(law, rule, alpha=5.0, width=1.5).r.ndim == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: TwoGaussians(0.0), "separation"),
        (lambda: TwoGaussians(np.nan), "separation"),
        (lambda: MaximumLikelihood(-1.0), "width"),
        (lambda: theory.curve(TwoGaussians(), MaximumLikelihood(), alpha=0.0), "alpha"),
        (lambda: theory.curve(TwoGaussians(), MaximumLikelihood(), alpha=[2.0, 1.0]), "alpha"),
        (lambda: theory.curve(TwoGaussians(), MaximumLikelihood(), alpha=1.0, width=[1.0, 0.0]), "width"),
        (lambda: theory.curve(TwoGaussians(), MaximumLikelihood(), alpha=1.0, sigma=1.0), "sigma"),
        (lambda: theory.phase_lines(TwoGaussians(), alpha=-1.0), "alpha"),
        (lambda: theory.transitions(TwoGaussians(), MaximumLikelihood(), alpha=5.0, along="prior"), "along"),
        (lambda: theory.transitions(TwoGaussians(), MaximumLikelihood(), alpha=5.0, width=1.0), "width"),
        (lambda: theory.state(TwoGaussians(), MaximumLikelihood(), 1.0), "double precision"),
    ],
)
def test_bad_input_gets_one_sentence(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
