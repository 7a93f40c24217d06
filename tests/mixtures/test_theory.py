"""The theory of mixtures: exact limits, identities, two formulations against each other, and check values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched.core import gaussian, replica
from quenched.core.types import InputError
from quenched.mixtures import theory
from quenched.mixtures.model import MaximumLikelihood, TwoGaussians
from quenched.mixtures.theory import lines, scaled, states

CLOSED = 1e-10
"""Lines with a closed form: the equations are solved to 1e-12 and are well conditioned away from alpha_c."""
DIGITS = 5e-6
"""Check values are given to five digits."""
CASES = [(5.0, 1.0), (1.0, 2.0)]  # alpha, separation


def at(alpha, separation, width):
    found = theory.curve(TwoGaussians(separation), MaximumLikelihood(), alpha=[alpha], width=np.atleast_1d(width))
    assert np.all(found.outcome == "converged")
    return found.isel(alpha=0)


# ---- check values


def test_check_values():
    one = at(5.0, 1.0, [1.5, 1.9952, 2.1 - 1e-9])
    np.testing.assert_allclose(one.r[0], 0.19476, atol=DIGITS)
    np.testing.assert_allclose(one.q[0], 0.64674, atol=DIGITS)
    np.testing.assert_allclose(one.error, [0.40432, 0.39404, 0.39463], atol=DIGITS)
    two = at(1.0, 2.0, [3.0, 2.753, 4.5 - 1e-9])
    np.testing.assert_allclose(two.r[0], 0.70072, atol=DIGITS)
    np.testing.assert_allclose(two.q[0], 1.84525, atol=DIGITS)
    np.testing.assert_allclose(two.error[1:], [0.15096, 0.15866], atol=DIGITS)


def test_check_values_of_the_lines():
    found = theory.phase_lines(TwoGaussians(), alpha=[5.0], separation=[1.0, 2.0])
    np.testing.assert_allclose(found.splitting_ordered.sel(separation=1.0), 2.1, rtol=CLOSED)
    np.testing.assert_allclose(found.ordered_random.sel(separation=1.0), 0.8936, atol=5e-5)
    np.testing.assert_allclose(found.replica_symmetry.sel(separation=1.0), 1.4487, atol=5e-5)
    at_one = theory.phase_lines(TwoGaussians(2.0), alpha=1.0)
    np.testing.assert_allclose(at_one.splitting_ordered, 4.5, rtol=CLOSED)
    np.testing.assert_allclose(at_one.replica_symmetry, 1.5515, atol=5e-5)
    assert at_one.ordered_random_outcome == "absent"
    far = theory.phase_lines(TwoGaussians(1.0), alpha=160.0)
    np.testing.assert_allclose(160 * far.replica_symmetry, 5.32, atol=5e-3)


# ---- lines against closed forms


@pytest.mark.parametrize("separation", [0.5, 1.0, 2.0])
def test_lines_with_a_closed_form(separation):
    l = separation**2 / 2
    alphas = np.geomspace(0.2, 30, 40) / l**2
    found = theory.phase_lines(TwoGaussians(separation), alpha=alphas)
    np.testing.assert_allclose(found.alpha_c, 4 / separation**4, rtol=CLOSED)
    np.testing.assert_allclose(found.alpha_end, 2 * np.pi / separation**4, rtol=1e-7)  # width 1e-9 instead of 0
    ordered = alphas > 1 / l**2
    assert np.all((found.splitting_ordered_outcome == "converged") == ordered)
    closed = (1 + l) * (1 + 1 / (alphas * l))
    np.testing.assert_allclose(found.splitting_ordered[ordered], closed[ordered], rtol=CLOSED)
    np.testing.assert_allclose(found.splitting_random, (1 + alphas**-0.5) ** 2, rtol=CLOSED)
    assert np.all(closed >= found.splitting_random - CLOSED)


def test_the_line_between_order_and_chance_runs_from_the_splitting_to_width_zero(double):
    alphas = np.array([4.0 * (1 + 1e-6), 4.5, 5.0, 6.0, 2 * np.pi * (1 - 1e-6)])
    found = theory.phase_lines(TwoGaussians(1.0), alpha=alphas)
    widths = found.ordered_random.values
    assert np.all(found.ordered_random_outcome == "converged")
    assert np.all(np.diff(widths) < 0)
    np.testing.assert_allclose(widths[0], 2.25, atol=0.05)  # the line leaves this point as the fourth root of alpha
    np.testing.assert_allclose(widths[-1], 0.0, atol=0.1)  # and comes to this one as 1/log
    path = lines._path(lines.LINES["ordered_random"], 0.5, np.ones(1))
    np.testing.assert_allclose(np.exp(path[[0, -1], lines.LOG_ALPHA]), [4.0, 2 * np.pi], rtol=1e-7)


def test_where_lines_do_not_exist_they_are_absent():
    found = theory.phase_lines(TwoGaussians(1.0), alpha=[2.0, 5.0, 8.0])
    assert list(found.splitting_ordered_outcome.values) == ["absent", "converged", "converged"]
    assert list(found.ordered_random_outcome.values) == ["absent", "converged", "absent"]
    assert list(found.replica_symmetry_outcome.values) == ["absent", "converged", "converged"]
    assert np.isfinite(found.splitting_random).all()


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
    from scipy.special import erf

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


@pytest.mark.parametrize(("alpha", "separation", "width"), [(5.0, 1.0, 1.5), (1.0, 2.0, 0.7), (3.0, 1.0, 1.0)])
def test_length_is_the_mean_of_field_times_sign(double, alpha, separation, width):
    """q = <eta t>, the iteration multiplied by the splitting vector; and both forms of the energy."""
    law, rule = TwoGaussians(separation), MaximumLikelihood(width)
    (r, q, x), lost = BEGIN(law, rule, alpha)
    assert not bool(lost)
    state = at(alpha, separation, width)
    mean, energy = IDENTITY(states.problem(law, rule), r, q, x, width)
    np.testing.assert_allclose([r, q], [state.r.item(), state.q.item()], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mean, q, rtol=1e-9)
    np.testing.assert_allclose(energy, state.free_energy.item(), rtol=1e-9)


BEGIN = jax.jit(states._start)


@jax.jit
def IDENTITY(asked, r, q, x, width):
    def both(y, u, slope):
        return y * jnp.tanh(y / width), q / (2 * width) - jnp.log(jnp.cosh(y / width))

    return replica.averages(asked, r, q, x, both)


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


def test_two_formulations_agree(double):
    """The replica core, and the equations that are integrated over the scaled field."""
    averages = jax.jit(scaled.averages)
    for k, b, c, l in [(0.3, 0.25, 0.4, 0.5), (0.8, 0.3, 0.5, 2.0), (0.95, 0.5, 0.1, 0.5)]:
        alpha = (1 - c**2) / (b**2 * float(averages(k, b, c, l).T2))  # (A) holds
        S = 1 / (alpha * b) + float(averages(k, b, c, l).zT)
        width, q, x = (1 - k) * S, (k * S) ** 2, b / (1 - k) * ((1 - k) * S) ** 2
        asked = states.problem(TwoGaussians(np.sqrt(2 * l)), MaximumLikelihood(width))
        _, by_q, by_x = replica.equations(asked, alpha, c * np.sqrt(q / 2), q, x)
        assert abs(2 * x * by_q) < 1e-10
        assert abs(2 * x * x / q * by_x) < 1e-10


def test_averages_of_the_scaled_form(double):
    """Against plain quadrature over z, where there is no gap."""
    k, b, c, l = 0.4, 0.3, 0.6, 0.8
    z = np.linspace(-12, 12, 4001)  # the trapezoidal rule: its error is that of a Fourier series
    weight = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    zeta = np.sqrt(l) * c + z
    w = zeta.copy()
    for _ in range(500):
        w = zeta + b * np.tanh(k / (1 - k) * w) / k
    T = np.tanh(k / (1 - k) * w) / k
    found = scaled.averages(jnp.asarray(k), jnp.asarray(b), jnp.asarray(c), l)
    np.testing.assert_allclose(found.T * c, weight @ T, rtol=1e-9)
    np.testing.assert_allclose(found.T2, weight @ T**2, rtol=1e-9)
    np.testing.assert_allclose(found.zT, weight @ (z * T), rtol=1e-9)
    slope = b / (1 - k) / np.cosh(k / (1 - k) * w) ** 2
    np.testing.assert_allclose(found.response, weight @ (1 / (1 - slope) - 1) ** 2, rtol=1e-9)
    jumping = scaled.averages(jnp.asarray(0.8), jnp.asarray(b), jnp.asarray(c), l)
    assert np.isinf(jumping.response)


# ---- bounds


@pytest.mark.parametrize(("alpha", "separation"), CASES)
def test_nothing_beats_bayes(alpha, separation):
    best = theory.optimum(TwoGaussians(separation), alpha=alpha).error.item()
    cosine2 = {5.0: 0.144505, 1.0: 0.533033}[alpha]
    np.testing.assert_allclose(best, gaussian.cdf(-separation * np.sqrt(cosine2 / 2)), atol=1e-6)
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


def test_derivative_of_the_error_and_one_state_of_many(double):
    """Implicit differentiation against finite differences, with and without a jump of the field; vmap = one by one."""
    law = TwoGaussians(2.0)
    both = jax.jit(jax.value_and_grad(lambda width: theory.state(law, MaximumLikelihood(width), 1.0).error))
    many = at(1.0, 2.0, [3.0, 0.8]).error.values
    for width, error in zip((3.0, 0.8), many, strict=True):
        finite = (both(width + 1e-4)[0] - both(width - 1e-4)[0]) / 2e-4
        np.testing.assert_allclose(both(width)[1], finite, rtol=1e-5)
        np.testing.assert_allclose(both(width)[0], error, rtol=1e-10)


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
        (lambda: theory.state(TwoGaussians(), MaximumLikelihood(), 1.0), "double precision"),
    ],
)
def test_bad_input_gets_one_sentence(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
