"""The replica core: identities of the free energy, exact limits, independent quadrature, and scikit-learn."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad
from scipy.optimize import brentq
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from quenched.core import replica
from quenched.core.proof import agreement
from quenched.core.types import InputError, Outcome
from tests import tolerances
from tests.programs import compiled
from tests.systems import ridge

SLOPE = 2e-6
"""Automatic against central differences of step 1e-4 or 1e-5, relative to the largest component."""
FINITE_SIZE = 3.0
"""Overlaps at size N deviate from N = infinity by less than this over N, besides their standard error."""


class LnCosh(eqx.Module):
    """Two centres at +-J: the energy of mixtures."""

    sigma: Any

    def __call__(self, y, Q):
        x = jnp.abs(y) / self.sigma
        return Q / (2 * self.sigma) - (x + jnp.log1p(jnp.exp(-2 * x)) - jnp.log(2.0))


class Selection(eqx.Module):
    """Soft selection of informative examples, gamma = 10: the energy of outliers."""

    eta: Any

    def __call__(self, y, Q):
        return -jax.nn.softplus(10 * y - 5 * Q - self.eta)


def mixture(separation, sigma):
    return replica.Problem(LnCosh(sigma), replica.Classes(means=separation), rho2=0.5)


def selection(eta):
    informative = jax.nn.sigmoid(-jnp.asarray(eta))
    weights = jnp.stack([1 - informative, informative])
    return replica.Problem(Selection(eta), replica.Classes(weights, np.array([0.0, 1.0]), 0.1), half_norm)


def half_norm(R, Q):
    return 0.5 * Q


def logistic(y, Q):
    return jax.nn.softplus(-y)


def hinge(y, Q):
    return jnp.maximum(0.0, 1 - y)


# (problem, alpha, R, Q, z): the map jumps where z v exceeds sigma^2 (mixtures) and 4/100 (selection)
BELOW, ABOVE = (mixture(1.0, 1.5), 5.0, 0.2, 0.6, 0.9), (mixture(1.0, 0.7), 5.0, 0.2, 0.6, 0.9)
CASES = {
    "mixture below": BELOW,
    "mixture opening": (mixture(1.0, 1.5), 5.0, 0.3, 0.6, 2.2501),
    "mixture above": ABOVE,
}


@compiled
def derivatives(problem, alpha, point):
    """First derivatives of the free energy by the reverse mode and as averages, second ones by the forward mode."""

    def first(point):
        slopes = jax.grad(lambda point: replica.free_energy(problem, alpha, *point))(point)
        return slopes, (slopes, jnp.stack(replica.equations(problem, alpha, *point)))

    curvatures, (slopes, equations) = jax.jacfwd(first, has_aux=True)(point)
    return slopes, equations, curvatures


def differences(function, point, step):
    """Central differences of a function of (R, Q, z), `[3, ...]`."""
    rows = []
    for i in range(3):
        up, down = list(point), list(point)
        up[i] += step
        down[i] -= step
        rows.append((np.asarray(function(*up)) - np.asarray(function(*down))) / (2 * step))
    return np.array(rows)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_saddle_equations_are_the_gradient_of_the_free_energy(double, case):
    problem, alpha, *point = case
    slopes, equations, curvatures = (np.asarray(value) for value in derivatives(problem, alpha, np.array(point)))
    np.testing.assert_allclose(slopes, equations, rtol=0, atol=1e-11 * np.abs(equations).max())
    numerical = differences(lambda *x: replica.equations(problem, alpha, *x), point, 1e-5)
    largest = np.abs(curvatures).max()
    np.testing.assert_allclose(curvatures, numerical, rtol=0, atol=SLOPE * largest)
    np.testing.assert_allclose(curvatures, curvatures.T, rtol=0, atol=1e-11 * largest)
    numerical = differences(lambda *x: replica.free_energy(problem, alpha, *x), point, 1e-5)
    np.testing.assert_allclose(equations, numerical, rtol=0, atol=SLOPE * np.abs(equations).max())


def brute_force(slope, curvature, energy, centre, width, s, mean, sd):
    """The averages by an adaptive integrator over u; the map by root finding, the jump where two minima are equal.

    The energy is odd-symmetric about `centre` but for a linear part, and bends within `width` of it.
    """
    inner = 0.0
    if 1 + s * curvature(centre) < 0:
        inner = brentq(lambda w: 1 + s * curvature(centre + w), 0, 100 * width, xtol=1e-15)

    def branch(u, side):
        edge, far = centre + side * inner, u - s * slope(centre + side * 100 * width)
        return brentq(lambda y: y + s * slope(y) - u, edge, far + side * width, xtol=1e-14, rtol=1e-14)

    def height(u, y):
        return (y - u) ** 2 / (2 * s) + energy(y)

    def crossing(u):
        return height(u, branch(u, 1)) - height(u, branch(u, -1))

    turns = [centre + side * inner + s * slope(centre + side * inner) for side in (1, -1)]
    jump = brentq(crossing, *np.nextafter(turns, turns[::-1]), xtol=1e-15) if inner else turns[0]
    total = np.zeros(4)
    for side, low, high in ((-1, mean - 9 * sd, jump), (1, jump, mean + 9 * sd)):

        def integrand(u, side=side):
            y = branch(u, side)
            pull, x = (u - y) / s, (u - mean) / sd
            values = np.array([height(u, y), pull, pull**2, x * pull])
            return values * np.exp(-x * x / 2) / np.sqrt(2 * np.pi) / sd

        if low < high:
            for i in range(4):
                total[i] += quad(lambda u, i=i: integrand(u)[i], low, high, epsabs=1e-12, epsrel=1e-12, limit=200)[0]
    return total


def integrate(problem, R, Q, z, s, mean, sd):
    """What `brute_force` gives, by ours."""

    def values(y, u, slope):
        pull = (u - y) / s
        height = (y - u) ** 2 / (2 * s) + jax.vmap(jax.vmap(problem.energy, (0, None)), (0, None))(y, jnp.asarray(Q))
        return height, pull, pull**2, (u - mean) / sd * pull

    return np.array(replica.averages(problem, R, Q, z, values))


@pytest.mark.parametrize("a", [0.5, 0.9999, 1.0, 1.0001, 1.01, 8.0])
def test_averages_equal_quadrature_through_a_jump_of_mixtures(double, a):
    sigma, R, Q = 0.8, 0.35, 0.9
    s = a * sigma**2
    exact = brute_force(
        lambda y: -np.tanh(y / sigma) / sigma,
        lambda y: -1 / (sigma * np.cosh(min(y / sigma, 300))) ** 2,
        lambda y: Q / (2 * sigma) - np.logaddexp(y / sigma, -y / sigma) + np.log(2),
        0.0, sigma, s, R, np.sqrt(Q),
    )  # fmt: skip
    ours = integrate(mixture(1.0, sigma), R, Q, s, s, R, np.sqrt(Q))
    np.testing.assert_allclose(ours, exact, rtol=tolerances.QUADRATURE, atol=tolerances.QUADRATURE)


@pytest.mark.parametrize("b", [2.0, 4.0, 4.004, 6.0, 30.0])
def test_averages_equal_quadrature_through_a_jump_of_selection(double, b):
    eta, R, Q = 2.0, 0.6, 0.7
    s, sd, centre = b / 100, np.sqrt(0.07), (5 * 0.7 + 2.0) / 10
    problem = replica.Problem(Selection(eta), replica.Classes(means=1.0, variances=0.1))

    def weight(y):
        return 1 / (1 + np.exp(-np.clip(10 * (y - centre), -500, 500)))

    exact = brute_force(
        lambda y: -10 * weight(y),
        lambda y: -100 * weight(y) * (1 - weight(y)),
        lambda y: -np.logaddexp(0, 10 * (y - centre)),
        centre, 0.1, s, R, sd,
    )  # fmt: skip
    ours = integrate(problem, R, Q, s / 0.1, s, R, sd)
    np.testing.assert_allclose(ours, exact, rtol=tolerances.QUADRATURE, atol=tolerances.QUADRATURE)


def test_ridge_regression_is_marchenko_and_pasturs(double):
    noise, alpha = 0.25, np.array([0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 6.0])
    for strength in (0.01, 1.0):
        problem = shifted_ridge(strength, noise)
        found = replica.curve(problem, alpha=alpha)
        assert np.all(found.outcome == "converged")
        for name, exact in ridge.closed_form(alpha, strength, noise).items():
            np.testing.assert_allclose(found[name], exact, rtol=0, atol=tolerances.EXACT)


class ShiftedNorm(eqx.Module):
    """The ridge of J, said of J - B."""

    strength: Any

    def __call__(self, R, Q):
        return 0.5 * self.strength * (Q + 2 * R + 1)


def squares(y, Q):
    return 0.5 * jnp.square(y)


def shifted_ridge(strength, noise):
    return replica.Problem(squares, replica.Classes(noise=noise), ShiftedNorm(strength))


def test_check_values_of_mixtures(double):
    for alpha, separation, sigma, r, q in ((5.0, 1.0, 1.5, 0.19476, 0.64674), (1.0, 2.0, 3.0, 0.70072, 1.84525)):
        found = replica.state(mixture(separation, sigma), alpha)
        assert int(found.outcome) == Outcome.converged
        np.testing.assert_allclose([found.R, found.Q], [r, q], atol=tolerances.DIGITS)
        assert float(found.free_energy) == pytest.approx(alpha * float(found.example_energy), abs=1e-11)
        near = replica.state(mixture(separation, sigma), alpha, start=found[:3])
        on_host = replica.curve(mixture(separation, sigma), alpha=alpha)
        for name in ("R", "Q", "z", "free_energy", "example_energy", "stability"):
            np.testing.assert_allclose([getattr(near, name), on_host[name]], getattr(found, name), atol=tolerances.SAME)


@compiled
def curvature(t):
    """First and second derivatives of the equations along a line on which order parameters and a jump move."""

    def first(t):
        line = lambda t: jnp.stack(replica.equations(mixture(1 + t, 0.7 - t), 5 + t, 0.2 + t, 0.6 - t, 0.9 + t))  # noqa: E731
        return jax.jvp(line, (t,), (1.0,))[1]

    return jax.jvp(first, (t,), (1.0,))


def test_second_derivatives_of_the_equations_are_exact_where_the_map_jumps(double):
    (up, _), (_, ours), (down, _) = (curvature(t) for t in (1e-5, 0.0, -1e-5))
    np.testing.assert_allclose(ours, (up - down) / 2e-5, rtol=0, atol=SLOPE * np.abs(ours).max())


@compiled
def overlaps(eta, alpha, start):
    """A state of selection, and the derivatives of its numbers by eta."""

    def value(eta):
        found = replica.state(selection(eta), alpha, start)
        return jnp.stack([found.R, found.Q, found.z, found.free_energy, found.example_energy]), found

    _, slope, found = jax.jvp(value, (eta,), (1.0,), has_aux=True)
    return found, slope


@pytest.mark.parametrize(
    ("eta", "start", "jumps"),
    [(2.0, (0.94, 0.93, 0.05), False), (5.0, (0.02, 0.9, 0.6), True)],  # informed; overfit
)
def test_check_values_of_selection_and_its_derivatives(double, eta, start, jumps):
    """Of mixtures they are tested in tests/mixtures."""
    alpha, step = 20.0, 1e-5
    found, slope = overlaps(eta, alpha, np.array(start))
    assert int(found.outcome) == Outcome.converged
    assert np.isinf(float(found.stability)) == jumps
    if not jumps:
        np.testing.assert_allclose([found.R, found.Q], [0.93714, 0.92554], atol=tolerances.DIGITS)
        assert float(found.free_energy) == pytest.approx(-8.86851, abs=tolerances.DIGITS)
        assert float(found.stability) < 1
    up, down = (np.array(overlaps(eta + side * step, alpha, np.array(found[:3]))[0][:5]) for side in (1, -1))
    assert np.abs(np.asarray(slope)).min() > 1e-3  # every one of them is felt
    np.testing.assert_allclose(slope, (up - down) / (2 * step), rtol=0, atol=SLOPE * np.abs(np.asarray(slope)).max())


def clusters(rng, size, alpha, mean):
    """Inputs gauged by their labels, `x ~ N(mean B/sqrt N, 1)`, a teacher with |B|^2 = N, and the labels."""
    B = rng.standard_normal(size)
    B *= np.sqrt(size) / np.linalg.norm(B)
    x = rng.standard_normal((int(alpha * size), size)) + mean * B / np.sqrt(size)
    return x, B, rng.choice([-1, 1], len(x))


SIZE, RUNS, EXAMPLES, MEAN, RIDGE = 500, 10, 2.0, 1.5, 1.0


@pytest.mark.parametrize(
    ("energy", "kinks", "learner"),
    [
        (logistic, (), LogisticRegression(C=1 / RIDGE, fit_intercept=False, tol=1e-7, max_iter=1000)),
        (hinge, (1.0,), LinearSVC(C=1 / RIDGE, loss="hinge", fit_intercept=False, tol=1e-5, max_iter=100_000)),
    ],
    ids=["logistic", "hinge"],
)
def test_theory_is_what_scikit_learn_finds(energy, kinks, learner):
    problem = replica.Problem(energy, replica.Classes(means=MEAN), half_norm, kinks=kinks)  # RIDGE is 1
    theory = replica.curve(problem, alpha=EXAMPLES)
    assert theory.outcome == "converged"
    found = []
    rng = np.random.default_rng(4)
    for _ in range(RUNS):
        x, B, label = clusters(rng, SIZE, EXAMPLES, MEAN)
        J = learner.fit(label[:, None] * x / np.sqrt(SIZE), label).coef_[0]
        found.append([J @ B / SIZE, J @ J / SIZE])
    runs = {f"{name}_run": ("run", values) for name, values in zip("RQ", np.transpose(found), strict=True)}
    means = {name: float(runs[f"{name}_run"][1].mean()) for name in "RQ"}
    points = xr.Dataset(runs | means)
    proof = agreement(theory, points, variables=["R", "Q"], allowance=FINITE_SIZE / SIZE)
    assert proof.passed, proof


def test_replica_symmetry_is_unstable_where_the_map_jumps(double):
    problem, alpha, R, Q, _ = BELOW
    stable, jumping = (float(replica.stability(problem, alpha, R, Q, z)) for z in (2.2, 2.3))  # sigma^2 = 2.25
    assert 0 < stable < np.inf
    assert jumping == np.inf


def test_a_curve_is_followed_and_marked():
    problem = mixture(2.0, 3.0)
    curve = replica.curve(problem, alpha=[1.0, 1.5, 2.0], start=(0.7, 1.8, 4.2))
    assert list(curve.outcome.values) == ["converged"] * 3
    assert float(curve.R.sel(alpha=1.0)) == pytest.approx(0.70072, abs=tolerances.DIGITS)
    np.testing.assert_allclose(curve.cosine, np.sqrt(2 * curve.R**2 / curve.Q))
    assert np.all(np.diff(curve.cosine) > 0)
    above = replica.curve(mixture(2.0, 30.0), alpha=1.0)  # above the splitting width no state but J = 0
    assert above.outcome.item() != "converged"
    assert np.isfinite(above.R.item())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: replica.Problem(3.0), "An energy must be a function"),
        (lambda: replica.Problem(logistic, classes=1.0), "`classes` must be a `Classes`"),
        (lambda: replica.Problem(logistic, rho2=0.0), "`rho2` must be positive"),
        (lambda: replica.Problem(logistic, kinks=(np.nan,)), "`kinks` must be finite"),
        (lambda: replica.Classes([0.5, 0.4]), "`weights` must sum to 1"),
        (lambda: replica.Classes([0.5, 0.5], means=[1.0, 2.0, 3.0]), "one length"),
        (lambda: replica.Classes(variances=0.0), "`variances` must be positive"),
        (lambda: replica.Classes(noise=-1.0), "`noise` must be finite and not negative"),
        (lambda: replica.check(replica.Problem(lambda y, Q: jnp.sqrt(y))), "`energy` must be finite"),
        (lambda: replica.check(replica.Problem(lambda y, Q: -(y**4))), "unbounded below"),
        (lambda: replica.check(replica.Problem(lambda y, Q: -jnp.exp(y))), "unbounded below"),
        (lambda: replica.check(replica.Problem(lambda y, Q: jnp.stack([y, Q]))), "must return one number"),
        (lambda: replica.check(replica.Problem(logistic, norm=lambda R, Q: (R, Q))), "must return one number"),
        (lambda: replica.curve(replica.Problem(logistic), alpha=0.0), "`alpha` must be positive"),
        (lambda: replica.curve(replica.Problem(logistic), alpha=[2.0, 1.0]), "`alpha` must increase"),
        (lambda: replica.curve(replica.Problem(logistic), alpha=1.0, start=(0.0, -1.0, 1.0)), "`start` must be"),
        (lambda: replica.state(replica.Problem(logistic), 1.0), "double precision"),
    ],
)
def test_bad_input_is_one_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        make()
    assert str(caught.value).count(".\n") == 0


def test_good_energies_pass(double):
    for energy in (
        logistic,
        hinge,
        LnCosh(1.5),
        Selection(2.0),
        lambda y, Q: -(y**2),
        lambda y, Q: jnp.log1p(jnp.exp(-y)),
    ):
        assert replica.check(replica.Problem(energy)) is None
