"""States of outliers: check values, identities of the free energies, brute force, exact limits, derivatives."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, root
from scipy.special import expit
from scipy.stats import norm

from quenched.core import replica, saddle
from quenched.core.types import InputError, Outcome
from quenched.outliers.model import Contaminated, Gibbs, HardSelection, Hebb, SoftSelection
from quenched.outliers.theory import curve, gibbs, hard, soft, state
from quenched.outliers.theory.setting import free_of_units, numbers, scales, unknowns
from quenched.outliers.theory.state import RELAXATIONS, THEORIES, guess, read
from tests.programs import compiled
from tests.tolerances import EXACT, PRINTED, SAME

BRUTE = 1e-6
"""Central differences of step 1e-4 of a free energy that is integrated to 1e-12."""
SLOPE = 1e-6
"""Implicit derivatives against central differences of step 1e-4, relative."""
ETAS = np.array([1.0, 2.0, 3.0])


def law(eta, gamma=10.0):
    return Contaminated(gamma, eta)


def at(rule, alpha, eta, gamma=10.0):
    """The informed state, found on the host."""
    theory, theta = THEORIES[type(rule)], numbers(law(eta, gamma), rule, alpha)
    found = read(theory, saddle.solve(theory, theta, guess(theta, "informed"), relaxations=RELAXATIONS), theta)
    assert found.outcome == Outcome.converged
    return found


def evaluated(rule, alpha, eta, R, Q, z):
    return saddle.evaluate(THEORIES[type(rule)], unknowns(*np.array([R, Q, z])), numbers(law(eta), rule, alpha))


@pytest.fixture(scope="module")
def hard_states():
    """Hard selection at alpha = 20 for several eta side by side."""
    with jax.enable_x64(True):
        found = compiled(jax.vmap(lambda eta: state(Contaminated(10.0, eta), HardSelection(), 20.0)))(ETAS)
        return [jax.tree.map(lambda v, k=k: float(v[k]), found) for k in range(len(ETAS))]


# ---- averages of soft selection

AVERAGED = compiled(lambda m, s, b, nodes: soft.averages(m, s, b, nodes))
AVERAGES = 1e-10
"""Against adaptive quadrature; the largest weight is 1."""


@pytest.mark.parametrize("b", [0.3, 2.0, 4.1, 9.0, 40.0])
@pytest.mark.parametrize(("m", "s"), [(-3.0, 0.2), (-3.0, 2.0), (-8.0, 4.0), (2.0, 6.0)])
def test_averages_are_those_of_adaptive_quadrature(double, m, s, b):
    """An example ends at w = a + b sigma(w): the positive solution where a > -b/2, else the negative one."""

    def weight(x):
        a = m + s * x
        ends = (0.0, a + b + 1) if a > -b / 2 else (a - 1, 0.0)
        return float(expit(brentq(lambda w: w - a - b * expit(w), *ends, xtol=1e-14)))

    jump = float(np.clip((-b / 2 - m) / s, -9, 9))
    both = np.array([m, m])
    found = AVERAGED(both, s, b, soft.find_nodes(both, np.float64(s), np.float64(b)))
    for power, ours in ((1, found.p[0]), (2, found.p2[1])):
        parts = [quad(lambda x, n=power: weight(x) ** n * norm.pdf(x), *ends, epsabs=1e-12, limit=200)[0]
                 for ends in ((-9.0, jump), (jump, 9.0))]  # fmt: skip
        assert float(ours) == pytest.approx(sum(parts), abs=AVERAGES)


# ---- check values


def test_check_values_of_soft_selection(double):
    found = at(SoftSelection(), 5.0, 0.0)
    np.testing.assert_allclose([found.R, found.Q, found.Phi], [0.94991, 0.94203, 0.06581], atol=PRINTED)
    found = at(SoftSelection(), 20.0, 2.0)
    values = [found.R, found.Q, found.Phi, found.free_energy]
    np.testing.assert_allclose(values, [0.93714, 0.92554, 0.07259, -8.86851], atol=PRINTED)
    np.testing.assert_allclose(at(SoftSelection(), 5.0, 2.0).Delta, 0.1913, atol=5e-5)
    found = at(SoftSelection(), 5.0, 2.4)
    np.testing.assert_allclose(found.Delta, 0.2824, atol=5e-5)
    assert found.stability < 1
    assert at(SoftSelection(), 5.0, 3.0).stability > 1


def test_check_values_of_hard_selection(hard_states):
    found = hard_states[1]
    values = [found.R, found.Q, found.Phi, found.free_energy]
    np.testing.assert_allclose(values, [1.03103, 1.12559, 0.07576, -6.62836], atol=PRINTED)
    assert found.stability == np.inf


def test_hebb_is_closed(double):
    found = jax.tree.map(float, state(law(0.0), Hebb(), 5.0))
    np.testing.assert_allclose([found.R, found.Q], [0.490196, 0.259516], atol=5e-7)
    np.testing.assert_allclose(found.R, 5 * 0.5 / 5.1, rtol=1e-14)
    assert (found.stability, found.selected) == (0, 1)


def test_without_outliers_soft_selection_is_the_hebb_rule(double):
    found = at(SoftSelection(), 5.0, -40.0)
    hebb = jax.tree.map(float, state(law(-40.0), Hebb(), 5.0))
    for name in ("R", "Q", "z", "Phi", "free_energy", "selected"):
        np.testing.assert_allclose(getattr(found, name), getattr(hebb, name), rtol=1e-9, err_msg=name)


# ---- soft selection against the replica core, and against brute force

POINTS = [(0.75, 0.8, 0.25, 3.0, 10.0), (0.2, 0.85, 1.1, 6.0, 10.0), (0.6, 0.9, 0.3, 2.0, 14.0)]  # R, Q, z, eta, gt


class Energy(eqx.Module):
    r"""$\ell(u, Q) = -\ln(1 + e^{\tilde\gamma u - \tilde\gamma Q/2 - \eta})$, as the replica core takes it."""

    gt: float
    eta: float

    def __call__(self, u, Q):
        return -jax.nn.softplus(self.gt * u - self.gt * Q / 2 - self.eta)


def test_soft_equations_are_those_of_the_declared_energy(double):
    """Away from states, with and without a jump of the field, and with a student who believes in less noise."""
    for R, Q, z, eta, gt in POINTS:
        weights = np.array([1 / (1 + np.exp(-eta)), 1 / (1 + np.exp(eta))])
        classes = replica.Classes(weights, np.array([0.0, 1.0]), np.array([0.1, 0.1]))
        problem = replica.Problem(Energy(gt, eta), classes, lambda R, Q: Q / 2)
        slopes = replica.equations(problem, 20.0, R, Q, z)
        found = evaluated(SoftSelection(gt), 20.0, eta, R, Q, z)
        np.testing.assert_allclose(found.equations, free_of_units(slopes, jnp.asarray(Q), jnp.asarray(z)), atol=SAME)
        assert np.isinf(found.readings.stability) == (gt**2 * z / 10 > 4)


def least(a, b):
    """min over t of t^2/2b - ln(1 + e^(a+t)), on a grid and then by Newton's steps."""
    t = np.linspace(0, b, 400)[:, None]
    t = t[np.argmin(t**2 / (2 * b) - np.logaddexp(0, a + t), axis=0), 0]
    for _ in range(6):
        p = 1 / (1 + np.exp(-a - t))
        curvature = 1 / b - p * (1 - p)
        t = np.where(curvature > 0, t - (t / b - p) / np.where(curvature > 0, curvature, 1.0), t)
    return t**2 / (2 * b) - np.logaddexp(0, a + t)


def brute(x, alpha, eta):
    """The free energy by Gauss-Legendre on either side of the jump."""
    R, Q, z = x
    s, b, w1 = 10 * np.sqrt(Q / 10), 10 * z, 1 / (1 + np.exp(eta))
    nodes, weights = np.polynomial.legendre.leggauss(120)
    total = 0.0
    for m, w in ((-5 * Q - eta, 1 - w1), (-5 * Q - eta + 10 * R, w1)):
        cut = np.clip((-b / 2 - m) / s, -8.5, 8.5)
        for low, high in ((-8.5, cut), (cut, 8.5)):
            u = low + (high - low) * (nodes + 1) / 2
            total += w * (high - low) / 2 * weights @ (np.exp(-u * u / 2) / np.sqrt(2 * np.pi) * least(m + s * u, b))
    return (R * R - Q) / (2 * z) + Q / 2 + alpha * total


def forced(alpha, eta, start):
    """The stationary point near a start."""
    step = 1e-4

    def gradient(y):
        return [(brute(y + step * e, alpha, eta) - brute(y - step * e, alpha, eta)) / (2 * step) for e in np.eye(3)]

    return root(gradient, start, tol=1e-11).x


@pytest.mark.parametrize(("alpha", "eta"), [(5.0, 1.0), (20.0, 3.0)])
def test_soft_selection_equals_brute_force(double, alpha, eta):
    found = at(SoftSelection(), alpha, eta)
    x = np.array([found.R, found.Q, found.z])
    np.testing.assert_allclose(forced(alpha, eta, 1.01 * x), x, atol=BRUTE)
    np.testing.assert_allclose(brute(x, alpha, eta), found.free_energy, rtol=1e-10)


def test_soft_selection_with_a_jump_equals_brute_force(double):
    """The overfit state, b > 4."""
    x = forced(20.0, 9.0, np.array([1e-4, 0.76, 1.07]))
    assert 10 * x[2] > 4
    found = evaluated(SoftSelection(), 20.0, 9.0, *x)
    np.testing.assert_allclose(found.equations, 0, atol=BRUTE)
    np.testing.assert_allclose(found.free_energy, brute(x, 20.0, 9.0), rtol=SAME)


# ---- hard selection


def test_hard_equations_are_the_closed_ones(double, hard_states):
    """The gradient of the free energy in all five order parameters, against the equations written out."""
    found = hard_states[2]
    setting = numbers(law(3.0), HardSelection(), 20.0)
    Qh, ch = map(float, hard.eliminate(found.R, found.Q, found.z, setting))
    slopes = compiled(jax.grad(hard.free_energy, argnums=(0, 1, 2, 3, 4)))(found.R, found.Q, found.z, Qh, ch, setting)
    np.testing.assert_allclose(slopes, 0, atol=SAME)
    np.testing.assert_allclose(Qh, 20 * found.selected, rtol=1e-12)

    s, w1 = 10 * np.sqrt(found.Q / 10), 1 / (1 + np.exp(3.0))
    m = -5 * found.Q - 3.0 - 10 / (2 * (1 + 10 * Qh)) + 10 * found.z / 2 + np.array([0, 10 * found.R])
    w = np.array([1 - w1, w1])
    Rh, zh = 20 * w1 * norm.cdf(m[1] / s), -20 * w @ norm.pdf(m / s) / s
    D = 100 * Qh + 100 * zh + 10
    np.testing.assert_allclose(Qh, 20 * w @ norm.cdf(m / s), rtol=SAME)
    np.testing.assert_allclose(found.z, 10 / D, rtol=SAME)
    np.testing.assert_allclose(found.R, 100 * Rh / D, rtol=SAME)
    np.testing.assert_allclose(found.Q, 1000 * (Qh + 10 * Rh**2) / D**2, rtol=SAME)
    f = 3.0 * Qh + np.log1p(10 * Qh) / 2 - (1 + 10 * Qh) * found.Q / 2
    np.testing.assert_allclose(found.free_energy, f, rtol=SAME)


def test_the_trivial_state_selects_nothing(double):
    found = state(law(3.0), HardSelection(), 20.0, branch="trivial")
    assert (float(found.Q), float(found.free_energy), float(found.Phi)) == (0, 0, 0.5)
    assert found.outcome == Outcome.converged
    assert state(law(-1.0), HardSelection(), 20.0, branch="trivial").outcome == Outcome.absent


# ---- Gibbs learning


def test_a_drawn_vector_is_one_more_teacher(double):
    """Nishimori: R = q and Q = 1 at temperature 1 with the true gamma."""
    for alpha, eta, gamma in ((5.0, 0.0, 10.0), (20.0, 2.0, 10.0), (8.0, 1.0, 3.0)):
        found = at(Gibbs(), alpha, eta, gamma)
        np.testing.assert_allclose([found.q, found.Q], [found.R, 1.0], atol=1e-9)
        np.testing.assert_allclose(found.selected, 1 / (1 + np.exp(eta)), rtol=1e-9)  # the posterior is calibrated


def test_at_temperature_one_the_field_is_closed(double):
    a, b = jnp.linspace(-30, 10, 9), jnp.asarray(2.5)
    found = compiled(gibbs.fields)(a, b, jnp.asarray(1.0), np.linspace(-8.0, 10.0, 200))
    p = jax.nn.sigmoid(a + b / 2)
    np.testing.assert_allclose(found.phi, jax.nn.softplus(a + b / 2), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.first, p, rtol=1e-10)
    np.testing.assert_allclose(found.second, p * (1 - p), rtol=1e-9, atol=1e-13)


@jax.jit
def gibbs_energy(overlaps, theta, nodes):
    r"""$-(T/N) \ln \int dJ e^{-H/T}$ of the order parameters (R, q, Q)."""
    (R, q, Q), T = overlaps, theta.temperature
    m, s, b = scales(R, Q, q, Q - q, theta)
    phi = theta.weights @ jnp.sum(nodes.weight * gibbs.fields(m[:, None] + s * nodes.x, b, 1 / T, nodes.y).phi, axis=1)
    return (Q - T * ((Q - R * R) / (Q - q) + jnp.log(2 * jnp.pi * (Q - q)))) / 2 - theta.alpha * T * phi


def test_gibbs_equations_are_the_gradient(double):
    """Away from a state: in (R, q, Q) the free energy has the slopes that the equations say."""
    R, q, z, T = np.array([0.7, 0.75, 0.2, 0.6])
    at, theta = (R, q, q + T * z), numbers(law(2.5), Gibbs(temperature=0.6), 12.0)
    nodes = gibbs.DRAWN.landmarks(unknowns(R, q, z), theta)
    f_R, f_q, f_Q = compiled(jax.grad(gibbs_energy))(at, theta, nodes)
    found = evaluated(Gibbs(temperature=0.6), 12.0, 2.5, R, q, z)
    expected = z / np.sqrt(q) * f_R, 2 * z * (f_q + f_Q), -2 * z * z * T / q * f_q
    np.testing.assert_allclose(found.equations, expected, atol=EXACT)
    np.testing.assert_allclose(found.free_energy, gibbs_energy(at, theta, nodes), rtol=SAME)


def test_cold_gibbs_learning_is_soft_selection(double):
    cold = at(SoftSelection(), 20.0, 2.0)
    values = []
    for T in (0.02, 0.01):
        found = at(Gibbs(temperature=T), 20.0, 2.0)
        values.append([found.R, found.Q, found.z, found.free_energy, found.stability, found.selected])
    expected = [cold.R, cold.Q, cold.z, cold.free_energy, cold.stability, cold.selected]
    np.testing.assert_allclose(values[1], expected, rtol=0.01)
    np.testing.assert_allclose(2 * np.array(values[1]) - values[0], expected, rtol=2e-4)  # linear in T


def test_the_energy_of_gibbs_learning_is_a_derivative(double):
    """d(f/T)/d(1/T) of the whole free energy, at its saddle."""
    T, d = 0.5, 1e-3
    found = at(Gibbs(temperature=T), 20.0, 2.0)
    whole = compiled(gibbs_energy)

    def f(T):
        theta = numbers(law(2.0), Gibbs(temperature=T), 20.0)
        x = unknowns(found.R, found.q, (found.Q - found.q) / T)
        return float(whole((found.R, found.q, found.Q), theta, gibbs.DRAWN.landmarks(x, theta)))

    low, high = 1 / (1 / T + d), 1 / (1 / T - d)  # at a saddle order parameters may stay
    np.testing.assert_allclose((f(low) / low - f(high) / high) / (2 * d), found.free_energy, rtol=1e-5)


# ---- JAX


@pytest.mark.parametrize("rule", [SoftSelection(), Gibbs()], ids=lambda r: type(r).__name__)
def test_the_pure_function_gives_the_states_of_the_host_and_their_derivatives(double, rule):
    def value(eta):
        found = state(Contaminated(10.0, eta), rule, 20.0)
        return found.R, found

    (_, found), slope = compiled(jax.value_and_grad(value, has_aux=True))(2.0)
    host = at(rule, 20.0, 2.0)
    for name in host._fields[:-2]:
        np.testing.assert_allclose(getattr(found, name), getattr(host, name), rtol=SAME, err_msg=name)
    finite = (at(rule, 20.0, 2.0 + 1e-4).R - at(rule, 20.0, 2.0 - 1e-4).R) / 2e-4
    np.testing.assert_allclose(slope, finite, rtol=SLOPE)


def test_side_by_side_is_one_by_one(hard_states):
    """vmap, and jit, against the states that `curve` finds on the branch."""
    one_by_one = curve(law(0.0), HardSelection(), alpha=20.0, eta=ETAS, branch="informed")
    for name in ("R", "Q", "z", "Phi", "free_energy", "selected"):
        np.testing.assert_allclose([getattr(one, name) for one in hard_states], one_by_one[name], rtol=SAME)


def test_jit_is_eager(double):
    eager, jitted = (f(law(2.0), Hebb(), 20.0) for f in (state, compiled(state)))
    for name in ("R", "Q", "Phi", "free_energy"):
        np.testing.assert_allclose(getattr(eager, name), getattr(jitted, name), rtol=1e-14)


# ---- bad input


def test_single_precision_is_refused():
    with pytest.raises(InputError, match="double precision"):
        state(law(0.0), SoftSelection(), 5.0)


def test_an_unknown_branch_is_refused(double):
    with pytest.raises(InputError, match="branch"):
        state(law(0.0), SoftSelection(), 5.0, branch="lucky")
