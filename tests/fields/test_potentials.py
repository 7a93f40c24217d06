"""Potentials of filtered differences: derivatives, minima against other routes, and bad input."""

import jax
import numpy as np
import pytest
from scipy import optimize, sparse

from quenched import fields as f
from quenched.core.types import InputError
from quenched.fields.learner.sparse import matrix_of
from tests.tolerances import ALGEBRA, EXACT, GRADIENT, MACHINE, SAME

SIDES = f.Axis(0, 2, points=5), f.Axis(0, 3, points=4, ends=f.Periodic())
PLANE = f.Grid(given=SIDES)
LINE = f.Grid(given=[f.Axis(0, 11, points=12)])
SMOOTH = {
    "quadratic": f.Quadratic(2.0),
    "huber": f.Huber(3.0, 0.4),
    "cup": f.Cup(5.0, 0.7, 2.0),
    "steep cup": f.Cup(1.0, 0.5, 3.0, centre=0.2),
    "inverted": f.Cup(-4.8, 1.5, 2.0),
    "smoothed": f.Smoothed(f.AbsoluteValue(0.5), 0.1),
    "smoothed cusp": f.Smoothed(f.Cup(5.0, 1.0, 0.7), 0.1),
}
STEP_SIZE = 1e-6


class Quartic(f.PotentialFunction):
    """One of the user's own, by JAX."""

    convex = True

    def value(self, s):
        return 0.25 * s**4


EACH = [(name, together) for name in (*SMOOTH, "own") for together in (False, True)]


@pytest.mark.parametrize(("name", "together"), [each for each in EACH if each != ("steep cup", True)])
def test_derivatives_agree_with_finite_differences(name, together):
    psi = SMOOTH.get(name, Quartic())
    prior = f.Potential(f.Gradient(PLANE), psi, mean=0.3, together=together)
    rng = np.random.default_rng(0)
    field, step = rng.normal(size=PLANE.shape), STEP_SIZE * rng.normal(size=PLANE.shape)
    energy, slope, hessian = prior.expand(field)
    with jax.enable_x64(True):
        assert energy == pytest.approx(float(prior.energy(field)), rel=MACHINE)
    above, below = prior.expand(field + step), prior.expand(field - step)
    assert (above[0] - below[0]) / 2 == pytest.approx(np.sum(slope * step), rel=GRADIENT, abs=GRADIENT * STEP_SIZE)
    change = (above[1] - below[1]).ravel() / 2
    np.testing.assert_allclose(change, hessian() @ step.ravel(), rtol=GRADIENT, atol=10 * GRADIENT * STEP_SIZE)


@pytest.mark.parametrize("name", SMOOTH)
def test_parabolas_touch_the_potential_and_lie_above_it(name):
    psi, s = SMOOTH[name], np.linspace(-4, 4, 161)
    at = np.array([-2.0, -0.3, 0.05, 0.7, 3.0])[:, None]
    above = psi.value(at) + psi.slope(at) * (s - at) + 0.5 * psi.parabola(at) * (s - at) ** 2
    assert np.all(above >= psi.value(s) - ALGEBRA)


def test_the_cups_are_those_of_the_paper():
    """Figure 12; erratum F12: gamma = 0.7 has the cusp, gamma = 2 has none."""
    s = np.array([-20.0, -1e-6, 1e-6, 3.0, 50.0])
    for a, b, gamma in ((5.0, 10.0, 0.7), (1.0, 3.0, 2.0), (-4.8, 15.0, 2.0)):
        printed = a * (1.0 - 1 / (1 + (np.abs(s) / b) ** gamma))
        np.testing.assert_allclose(f.Cup(a, b, gamma).value(s), printed, rtol=MACHINE)
        assert f.Cup(a, b, gamma).smooth == (gamma > 1)
    assert np.abs(f.Cup(5.0, 10.0, 0.7).slope(np.array([1e-9]))[0]) > 100
    assert np.abs(f.Cup(1.0, 3.0, 2.0).slope(np.array([1e-9]))[0]) < 1e-6


def test_filters_are_the_differences_one_writes_down():
    field = np.random.default_rng(1).normal(size=PLANE.shape)
    down, across = f.Gradient(PLANE).respond(field)
    written = np.zeros((2, *PLANE.shape))
    written[0, :-1] = np.diff(field, axis=0) / SIDES[0].spacing
    written[1] = (np.roll(field, -1, axis=1) - field) / SIDES[1].spacing
    np.testing.assert_allclose([down, across], written.reshape(2, -1), atol=MACHINE)
    curved = f.Derivative(PLANE, SIDES[0], 2).respond(field)
    np.testing.assert_allclose(curved[0], np.diff(field, n=2, axis=0).ravel() / SIDES[0].spacing ** 2, atol=MACHINE)
    kernel = np.random.default_rng(2).normal(size=(2, 3))
    wrapped = np.concatenate([field, field[:, :2]], axis=1)
    expected = [[np.sum(kernel * wrapped[i : i + 2, j : j + 3]) for j in range(4)] for i in range(4)]
    np.testing.assert_allclose(f.Convolution(PLANE, kernel).respond(field)[0], np.ravel(expected), atol=MACHINE)
    W = np.random.default_rng(3).normal(size=(3, PLANE.size))
    for same in (f.FilterBank(PLANE, W), f.FilterBank(PLANE, sparse.csr_array(W))):
        with jax.enable_x64(True):
            np.testing.assert_allclose(same.respond(jax.numpy.asarray(field))[0], W @ field.ravel(), atol=MACHINE)


def test_a_quadratic_potential_is_a_gaussian():
    """Of the Laplacian, as an energy and as a fit; beside another Gaussian."""
    data = f.GaussianData([(0.0, 0.0), (1.0, 2.0), (2.0, 3.0)], [1.0, -1.0, 2.0], 0.1)
    near = f.Gaussian(f.Mass(PLANE, 0.2), mean=0.5)
    potential = f.Potential(f.Gradient(PLANE), f.Quadratic(0.7)) & near
    gaussian = f.Gaussian(0.7 * f.Laplacian(PLANE)) & near
    field = np.random.default_rng(4).normal(size=PLANE.shape)
    assert potential.expand(field)[0] == pytest.approx(gaussian.expand(field)[0], rel=MACHINE)
    fits = [f.solve(f.Problem(data, f.Direct(PLANE), prior)) for prior in (potential, gaussian)]
    np.testing.assert_allclose(fits[0].field, fits[1].field, atol=ALGEBRA)
    np.testing.assert_allclose(matrix_of(gaussian.parts[0].operator).toarray(), gaussian.parts[0].operator.matrix,
                               atol=ALGEBRA)  # fmt: skip
    bent = f.Laplacian(PLANE, SIDES[0]) ** 2 + f.Laplacian(PLANE, SIDES[1])
    np.testing.assert_allclose(matrix_of(bent).toarray(), bent.matrix, atol=EXACT)


def noisy_steps(variance=0.04):
    rng = np.random.default_rng(5)
    true = np.where(np.arange(12) < 5, 0.0, 2.0)
    seen = np.array([0, 1, 2, 4, 5, 6, 8, 9, 11])
    return f.GaussianData(seen.astype(float), true[seen] + 0.2 * rng.normal(size=9), variance), true


def test_total_variation_is_that_of_a_linear_programme():
    """The dual as a bounded least-squares problem by SciPy: p within [-a, a], for data at all points."""
    rng = np.random.default_rng(6)
    y, D, a = np.cumsum(rng.normal(size=12)), np.diff(np.eye(12), axis=0), 0.8
    best = optimize.lsq_linear(D.T, y, bounds=(-a, a), tol=1e-14).x
    data = f.GaussianData(np.arange(12.0), y)
    problem = f.Problem(data, f.Direct(LINE), f.Potential(f.Gradient(LINE), f.AbsoluteValue(a)))
    fit = f.solve(problem, f.Splitting(accuracy=1e-12))
    assert fit.converged
    np.testing.assert_allclose(fit.field, y - D.T @ best, atol=EXACT)
    close = f.solve(problem, f.Reweighting(smoothing=1e-5))
    np.testing.assert_allclose(close.field, fit.field, atol=1e-4)
    rough = f.solve(problem, max_steps=1)
    assert not rough.converged
    least = fit.energy
    assert least <= rough.energy <= least + rough.gap  # the gap is a bound, also of what has not arrived


@pytest.mark.parametrize("psi", [f.Huber(2.0, 0.3), f.Smoothed(f.AbsoluteValue(1.0), 0.05)])
def test_a_convex_potential_has_the_minimum_that_scipy_finds(psi):
    data, _ = noisy_steps()
    problem = f.Problem(data, f.Direct(LINE), f.Potential(f.Gradient(LINE), psi))

    def look(c):
        at = problem.expand(c)
        return at.energy, at.slope

    best = optimize.minimize(look, np.zeros(12), jac=True, method="BFGS", options={"gtol": 1e-9})
    fit = f.solve(problem)
    assert fit.converged
    np.testing.assert_allclose(fit.field, best.x, atol=1e-6)
    assert fit.gap < EXACT
    if isinstance(psi, f.Huber):
        split = f.solve(problem, f.Splitting(accuracy=1e-11))
        np.testing.assert_allclose(split.field, fit.field, atol=1e-5)


def test_a_cup_keeps_a_step_that_a_parabola_blurs_and_reports_every_minimum():
    data, true = noisy_steps(0.3)
    blurred = f.solve(f.Problem(data, f.Direct(LINE), f.Potential(f.Gradient(LINE), f.Quadratic(20.0))))
    problem = f.Problem(data, f.Direct(LINE), f.Potential(f.Gradient(LINE), f.Cup(10.0, 0.4, 2.0)))
    fit = f.solve(problem, start=[f.Given(np.full(12, 1.0)), f.Given(true)])
    assert np.diff(fit.field).max() > 1.5 > 1.0 > np.diff(blurred.field).max()
    assert len(fit.minima) == len(fit.met) == 2
    assert fit.minima[0] < fit.minima[1]
    for energy, one in zip(fit.minima, fit.met, strict=True):
        at = problem.expand(one.field)
        assert at.energy == pytest.approx(energy, rel=SAME)
        assert np.max(np.abs(at.slope)) < EXACT
        assert np.linalg.eigvalsh(at.hessian())[0] > 0
    assert f.solve(problem).starts == 3


def test_a_saddle_is_left():
    """The double well of an inverted cup in a Gaussian: zero is stationary, by symmetry."""
    point = f.Grid(given=[f.Axis(0, 1, points=2)])
    prior = f.Potential(f.Gradient(point), f.Cup(-6.0, 1.0, 2.0)) & f.Gaussian(f.Mass(point, 1.0))
    problem = f.Problem(f.GaussianData([0.0], [0.0], 1e3), f.Direct(point), prior)
    fit = f.solve(problem, start=f.Given(np.zeros(2)))
    assert fit.converged
    assert abs(fit.field[1] - fit.field[0]) > 0.5


@pytest.mark.parametrize("psi", [f.AbsoluteValue(0.2), f.Huber(3.0, 0.1)])
def test_a_density_may_have_steps(psi):
    """Both methods on a log-density, against the smoothed one by Newton's method."""
    grid = f.Grid(over=[f.Axis(0, 11, points=12)])
    rows = [1.0, 2, 2, 2, 3, 3, 8, 9, 9]
    prior = f.Potential(f.Gradient(grid), psi)
    fit = f.solve(f.Problem(f.DensityData(rows), f.LogDensity(grid), prior), f.Splitting(accuracy=1e-9))
    assert fit.converged
    assert fit.density.sum() * grid.spacing == pytest.approx(1.0)
    other = f.Potential(f.Gradient(grid), psi if psi.smooth else f.Smoothed(psi, 1e-4))
    smooth = f.solve(f.Problem(f.DensityData(rows), f.LogDensity(grid), other), f.Newton())
    np.testing.assert_allclose(fit.density, smooth.density, atol=1e-4)


def bad_input():
    gradient, data = f.Gradient(PLANE), f.GaussianData([(0.0, 0.0)], [1.0])

    class Falling(f.PotentialFunction):
        def value(self, s):
            return -(s**2)

    inverted = f.Potential(gradient, f.Cup(-4.8, 15.0))
    bent = f.Grid(given=[f.Axis(0, 1, points=4, ends=f.Dirichlet(0.0))])
    return {
        "falls without bound": lambda: f.Potential(gradient, Falling()),
        "must have a minimum": lambda: f.solve(f.Problem(data, f.Direct(PLANE), inverted)),
        "20 columns": lambda: f.FilterBank(PLANE, np.eye(3)),
        "same number of rows": lambda: f.FilterBank(PLANE, [np.ones((2, 20)), np.ones((3, 20))]),
        "no larger than the grid": lambda: f.Convolution(PLANE, np.ones((6, 1))),
        "not zero everywhere": lambda: f.Convolution(PLANE, np.zeros((2, 2))),
        "free or periodic ends": lambda: f.Gradient(bent),
        "more than 5 points": lambda: f.Derivative(PLANE, SIDES[0], 5),
        "must not be zero": lambda: f.Cup(0.0),
        "must be positive": lambda: f.Huber(-1.0),
        "must be even": lambda: f.Potential(gradient, f.Cup(centre=1.0), together=True),
        "its minimum at zero": lambda: f.Smoothed(f.Cup(-1.0)),
        "the shape": lambda: f.Potential(gradient, f.Huber(), mean=np.zeros(3)),
        "not known to be convex": lambda: f.solve(
            f.Problem(data, f.Direct(PLANE), f.Potential(gradient, f.Cup())), f.Splitting()
        ),
        "are seen by neither.": lambda: f.solve(
            f.Problem(data, f.Direct(PLANE), f.Potential(f.FilterBank(PLANE, np.eye(20)[:3]), f.Huber()))
        ),
        "are seen by neither": lambda: f.solve(
            f.Problem(data, f.Direct(PLANE), f.Potential(f.FilterBank(PLANE, np.eye(20)[:3]), f.AbsoluteValue()))
        ),
    }


@pytest.mark.parametrize("sentence", bad_input())
def test_bad_input_is_refused_in_a_sentence(sentence):
    with pytest.raises(InputError, match=sentence):
        bad_input()[sentence]()
