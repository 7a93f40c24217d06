"""Learning matrices, starts and the iteration: the paper's numbers, laws of descent, and what is refused."""

import jax
import numpy as np
import pytest
import scipy.linalg
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quenched.core.types import InputError
from quenched.fields.learner.matrices import Newton
from quenched.fields.learner.regression import regress
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Empirical, Given, Kernel, Truncated, Uniform, begin, usual
from quenched.fields.model.grid import Axis, Free, Grid
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Density, Direct, LogDensity, SquareRoot
from quenched.fields.model.parametrisations import Logits
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Difference, Laplacian, Mass, ThinPlate
from quenched.fields.theory.laplace import laplace
from quenched.papers.lemm1999.matrices import (
    DirichletRelaxation,
    GaussianFilter,
    GaussSeidel,
    Gradient,
    Jacobi,
    Massive,
    PriorRelaxation,
)
from quenched.papers.lemm1999.stationarity import descent
from tests.fields.meshes import FIGURES, LINE, LINKS, paper_mesh, small, two_points

ROUNDING = 1e-12
"""An energy of the order of 10 may seem to rise by this."""
METHODS = (
    Gradient(),
    Jacobi(),
    GaussSeidel(),
    PriorRelaxation(),
    Massive(0.1),
    GaussianFilter(0.5),
    DirichletRelaxation(np.arange(15).reshape(3, 5) % np.array([2, 3]).reshape(2, 1, 1) == 0),
    Newton(),
)
STARTS = (Uniform(), Empirical(), Kernel(0.3), Kernel(0.3, conditional=False), Truncated(0.3))


def named(one):
    return type(one).__name__


@pytest.mark.parametrize(
    ("figure", "energy", "largest"), [(14, 1.87700934, 0.602228), (15, 1.84699170, 0.589287)]
)  # fmt: skip
def test_the_check_values_of_two_points(figure, energy, largest):
    fit = solve(two_points(*FIGURES[figure]))
    assert fit.energy == pytest.approx(energy, abs=5e-9)
    assert fit.density.max() == pytest.approx(largest, abs=5e-7)
    assert fit.converged
    np.testing.assert_allclose(fit.density.sum(axis=1), 1, atol=1e-13)
    assert fit.trace.energy[-1] == fit.energy


@pytest.mark.parametrize("figure", [15, 17])
def test_densities_reach_their_bound_and_the_constrained_minimum(figure):
    """Nothing pulls where P > 0 and nothing pulls up where P = 0, by the written equations; two starts agree."""
    problem = two_points(*FIGURES[figure])
    fits = [solve(problem, start=start) for start in (Uniform(), Kernel(1.0))]
    for fit in fits:
        G = descent(problem, fit.field)
        at_zero = fit.field == 0
        assert at_zero.any()
        assert np.all(fit.field >= 0)
        assert np.max(np.abs(G[~at_zero])) < 1e-8
        assert np.max(G[at_zero]) < 1e-8
        assert fit.kkt < 1e-8
    np.testing.assert_allclose(fits[0].field, fits[1].field, atol=1e-8)  # the energy is convex


def test_figure_16_has_two_minima():
    """The energy is not convex: where one arrives depends on the start."""
    problem = two_points(*FIGURES[16])
    fits = [solve(problem, start=start) for start in (Uniform(), Kernel(0.1))]
    assert all(fit.converged for fit in fits)
    assert fits[0].energy == pytest.approx(1.51155, abs=1e-5)
    assert fits[1].energy == pytest.approx(1.48467, abs=1e-5)
    for fit in fits:
        laplace(problem, fit.field)  # raises unless all curvatures are positive


def test_the_lowest_of_several_minima_is_found_without_a_start():
    fit = solve(two_points(*FIGURES[16]))
    assert fit.energy == pytest.approx(1.484672, abs=1e-6)
    assert fit.minima == pytest.approx((1.484672, 1.511551), abs=1e-6)
    assert (fit.starts, fit.minima[0], fit.converged) == (4, fit.energy, True)
    for start in ((Uniform(), Kernel(0.1)), [Kernel(0.1), Uniform()]):
        other = solve(two_points(*FIGURES[16]), start=start)
        assert other.energy == pytest.approx(fit.energy, abs=1e-12)
        assert (other.starts, len(other.minima)) == (2, 2)
    alone = solve(two_points(*FIGURES[16]), start=Uniform())
    assert (alone.starts, alone.minima) == (1, (alone.energy,))


def test_one_start_is_enough_where_there_is_one_minimum():
    """Of a density, or where the prior is blind to what normalisation adds: then the energy is convex."""
    x, y = Axis(0, 1, points=3), Axis(0, 1, points=5)
    for grid, K, starts in (
        (Grid(over=[y]), Laplacian(Grid(over=[y])), 1),
        (Grid(given=[x], over=[y]), Laplacian(Grid(given=[x], over=[y]), y), 1),
        (Grid(given=[x], over=[y]), Laplacian(Grid(given=[x], over=[y])), 4),
        (Grid(over=[y]), Mass(Grid(over=[y])), 4),
    ):
        data = DensityData([[0.5] * len(grid.shape)])
        assert len(usual(Problem(data, LogDensity(grid), Gaussian(K)))) == starts
        assert len(usual(Problem(data, Density(grid), Gaussian(K)))) == 1


@pytest.mark.parametrize("link", [LogDensity, SquareRoot])
def test_a_saddle_is_left(link):
    """Two data, mirror images: a uniform start is symmetric, but the minima are not."""
    grid = Grid(given=[Axis(0, 4, points=5)], over=[Axis(0, 6, points=7)])
    K = 0.001 * (Laplacian(grid, grid.given[0]) ** 3 + Laplacian(grid, grid.over[0]) ** 3)
    problem = Problem(DensityData([(2, 1), (2, 5)]), link(grid), Gaussian(K))
    fit = solve(problem, start=Uniform())
    assert fit.converged
    laplace(problem, fit.field)  # raises unless all curvatures are positive
    mirrored = solve(problem, start=Given(fit.field[:, ::-1]))
    assert mirrored.energy == pytest.approx(fit.energy, abs=1e-10)
    assert np.max(np.abs(mirrored.density - fit.density)) > 0.01
    assert np.all(np.diff(fit.trace.energy) < ROUNDING)


@pytest.mark.parametrize("method", METHODS, ids=named)
@given(seed=st.integers(0, 1000), start=st.sampled_from(STARTS))
@example(seed=3, start=Uniform())  # Newton's step for P ends where a datum has P = 0
@example(seed=22, start=Uniform())  # so does that of the gradient
@settings(max_examples=3, deadline=None, derandomize=True)
def test_the_energy_never_rises(method, seed, start):
    for link in LINKS:
        problem, _ = small(link, seed, rough=True)
        fit = solve(problem, method, start=start, max_steps=12)
        assert np.max(np.diff(fit.trace.energy), initial=-1.0) < ROUNDING
        assert np.all(np.isfinite(fit.trace[["energy", "training_error", "kkt"]].to_array()))
        assert np.all(fit.density >= 0)
        np.testing.assert_allclose(fit.density.sum(axis=1) * problem.grid.spacing, 1, atol=1e-12)


@pytest.mark.parametrize("link", LINKS)
def test_all_methods_and_starts_meet(link):
    """This problem has one minimum: every method finds it, and Newton's from every start."""
    problem, _ = small(link, 3)
    best = solve(problem)
    assert best.converged
    for method in (Massive(0.1), PriorRelaxation(), GaussSeidel()):
        fit = solve(problem, method, max_steps=400, tolerance=1e-8)
        assert fit.converged, method
        assert fit.energy == pytest.approx(best.energy, abs=1e-8)
    for start in (*STARTS, Given(best.field)):
        fit = solve(problem, start=start)
        assert fit.energy == pytest.approx(best.energy, abs=1e-10)
    assert len(fit.trace.iteration) <= 3  # where it began


def fifty(seed):
    """Figure 22: 50 points of the paper's true density, and its smoothness."""
    rng = np.random.default_rng(seed)
    grid, x, y = paper_mesh(Free())
    X = rng.integers(1, 11, 50)
    up = rng.random(50) < 0.5
    Y = np.rint(np.where(up, 125 / 18 + 5 / 9 * X, 145 / 18 - 5 / 9 * X) + 1.5 * rng.normal(size=50)).clip(1, 15)
    K = 2 * Laplacian(grid, x) + Laplacian(grid, y)
    return Problem(DensityData(np.stack([X, Y], axis=1)), LogDensity(grid), Gaussian(0.5 * K)), K


@pytest.mark.parametrize("seed", range(5))
def test_figure_22_newton_is_faster_than_massive_relaxation_than_the_gradient(seed):
    problem, K = fifty(seed)
    least = solve(problem).energy
    for start in (Uniform(), Kernel(0.01, K)):
        steps = []
        for method in (Newton(), Massive(0.01, K), Gradient()):
            energy = solve(problem, method, start=start, max_steps=60).trace.energy.values
            arrived = np.flatnonzero(energy < least + 1e-6)
            steps.append(arrived[0] if len(arrived) else len(energy))
        assert steps[0] < steps[1] < steps[2]
        assert 2 * steps[1] < steps[2]


def test_learning_matrices_are_what_they_say():
    problem, field = small(LogDensity)
    K, G = problem.prior.operator.matrix, np.random.default_rng(0).normal(size=(3, 5))
    lower = np.tril(K)
    expected = {
        Gradient(): np.eye(15),
        Jacobi(): np.diag(np.diag(K)),
        GaussSeidel(): lower,
        PriorRelaxation(): K,
        Massive(0.7): K + 0.7 * np.eye(15),
        GaussianFilter(0.5): scipy.linalg.expm(0.125 * Laplacian(problem.grid).matrix),
    }
    for method, A in expected.items():
        step = method.step(problem, field, G, 0)
        np.testing.assert_allclose(A @ step.ravel(), G.ravel(), atol=1e-9, err_msg=named(method))
    singular = Laplacian(problem.grid)
    step = PriorRelaxation(singular).step(problem, field, G, 0)
    np.testing.assert_allclose(singular.apply(step), G - G.mean(), atol=1e-9)
    assert step.mean() == pytest.approx(G.mean())


def test_newton_takes_the_inverse_hessian_where_it_is_positive():
    problem, _ = small(LogDensity)
    field = solve(problem).field + 1e-3
    G = -problem.gradient(field) / problem.grid.cell
    step = Newton().step(problem, field, G, 0)
    np.testing.assert_allclose(problem.hessian(field) @ step.ravel(), -problem.gradient(field).ravel(), atol=1e-9)


def test_nothing_moves_on_a_boundary():
    problem, _ = small(Density)
    edge = np.zeros((3, 5), bool)
    edge[:, 2] = True
    inside = DirichletRelaxation(edge).step(problem, np.ones((3, 5)), np.ones((3, 5)), 0)
    assert np.all(inside[edge] == 0)
    A = problem.prior.operator.matrix[np.ix_(~edge.ravel(), ~edge.ravel())]
    np.testing.assert_allclose(A @ inside[~edge], 1, atol=1e-9)
    turns = DirichletRelaxation(np.stack([edge, ~edge]))
    assert np.all(turns.step(problem, np.ones((3, 5)), np.ones((3, 5)), 1)[~edge] == 0)
    with pytest.raises(InputError, match=r"shape \(3, 5\) of the grid"):
        DirichletRelaxation(edge.T).step(problem, np.ones((3, 5)), np.ones((3, 5)), 0)


def test_f651_a_peak_is_smoothed_to_a_gaussian_of_the_asked_width():
    """A^-1 = exp(+sigma^2 Delta/2) has the variance sigma^2; with the printed sign it explodes."""
    axis = Axis(-10, 10, points=201)
    grid = Grid(over=[axis])
    problem = Problem(DensityData([0.0]), LogDensity(grid), Gaussian(Laplacian(grid)))
    peak = (np.arange(201) == 100).astype(float)
    smoothed = GaussianFilter(1.3).step(problem, peak, peak, 0)
    assert smoothed.sum() == pytest.approx(1, abs=1e-12)
    assert smoothed @ axis.coordinates**2 == pytest.approx(1.3**2, abs=1e-9)
    assert smoothed.min() > -1e-12


@pytest.mark.parametrize("link", LINKS)
def test_starts_are_normalised_and_kernels_smooth_by_the_inverse(link):
    problem, _ = small(link)
    grid = problem.grid
    N = problem.likelihood.counts
    C = np.linalg.inv(problem.prior.operator.matrix + 0.3 * np.eye(15))  # erratum F692: the inverse
    shares = (N / N.sum(axis=1, keepdims=True)) / grid.spacing
    expected = {
        Uniform(): np.ones((3, 5)),
        Empirical(1e-3): N / N.sum() + 1e-3,
        Kernel(0.3): (C @ shares.ravel()).reshape(3, 5),
        Kernel(0.3, conditional=False): (C @ N.ravel()).reshape(3, 5),
        Truncated(0.3): np.exp((C @ N.ravel()).reshape(3, 5) / grid.cell),
    }
    with jax.enable_x64(True):
        for start, P in expected.items():
            P = np.maximum(P, 1e-6 * P.max())
            found = problem.link.density(begin(start, problem))
            np.testing.assert_allclose(found, P / (P.sum(axis=1, keepdims=True) * grid.spacing), rtol=1e-9)


def test_a_start_with_hardly_any_density_where_data_are_is_no_obstacle():
    """There the Hessian overflows."""
    grid = Grid(over=[Axis(0, 1, points=24)])
    rows = grid.over[0].coordinates[np.random.default_rng(3).binomial(23, 0.4, 60)]
    problem = Problem(DensityData(rows), SquareRoot(grid), Gaussian(1e-2 * Laplacian(grid)))
    fit = solve(problem, start=(Uniform(), Truncated()), max_steps=20)
    assert fit.converged
    assert fit.energy == pytest.approx(-60.6462495315, abs=1e-9)


def test_one_repeated_value_has_a_density():
    value = LINE.over[0].coordinates[5]
    fit = solve(Problem(DensityData([value] * 20), LogDensity(LINE), Gaussian(0.1 * Laplacian(LINE))))
    assert fit.converged
    assert fit.density.argmax() == 5
    np.testing.assert_allclose(fit.density.sum() * LINE.spacing, 1)


def test_a_prior_that_leaves_parabolas_free_gives_the_maximum_likelihood_gaussian():
    """At any strength its first two moments are those of the data; elsewhere the prior is 1e10 times as stiff."""
    axis = LINE.over[0]
    data = axis.coordinates[[2, 4, 5, 5, 6, 8]]
    fit = solve(Problem(DensityData(data), LogDensity(LINE), Gaussian(1e4 * Difference(LINE, axis, 3))))
    p = fit.density * LINE.spacing
    assert p @ axis.coordinates == pytest.approx(data.mean(), abs=1e-6)
    assert p @ axis.coordinates**2 == pytest.approx(np.mean(data**2), abs=1e-6)


def test_regressions_are_solved_on_points_and_in_modes_as_exactly():
    grid = Grid(given=[Axis(0, 1, points=9)])
    prior = Gaussian(0.1 * Difference(grid, grid.given[0], 2), mean=3.0 + grid.given[0].coordinates ** 2)
    rows, y = [0.0, 0.25, 0.5, 0.5, 1.0], [1.0, 2.0, 0.5, 0.7, 3.0]
    problem = Problem(GaussianData(rows, y, [0.1, 0.2, 0.3, 0.1, 0.1]), Direct(grid), prior)
    exact = regress(problem)
    for modes in (None, True):
        fit = solve(problem, modes=modes)
        np.testing.assert_allclose(fit.field, exact.mean, atol=1e-10)
        found = laplace(problem, fit)
        assert fit.converged
        assert fit.energy == pytest.approx(problem.value(exact.mean), abs=1e-10)
        assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
        np.testing.assert_allclose(found.covariance, exact.covariance, atol=1e-9)
    again = solve(problem, modes=True, start=fit)
    np.testing.assert_allclose(again.field, fit.field, atol=1e-12)


@pytest.mark.parametrize("link", LINKS)
def test_closed_forms_are_the_derivatives_of_the_energy(link):
    problem, field = small(link, 1)
    both = Gaussian(problem.prior.operator, mean=problem.prior.mean) & Gaussian(Mass(problem.grid, 0.3), mean=0.7)
    for asked in (problem, Problem(problem.likelihood, problem.link, both)):
        for phi in (field, field + 0.3):  # also where it is not normalised
            about = asked.expand(phi)
            assert about.energy == pytest.approx(asked.value(phi), abs=1e-11)
            np.testing.assert_allclose(about.slope, asked.gradient(phi).ravel(), atol=1e-11)
            np.testing.assert_allclose(about.hessian(), asked.hessian(phi), atol=1e-10)


def test_the_curvature_of_the_data_is_the_same_in_every_form():
    x, y = Axis(0, 1, points=4), Axis(-1, 2, points=6, tails=(0.3, 0.0))
    grid = Grid(given=[x], over=[y])
    K = 0.3 * ThinPlate(grid, 1, x) + 0.1 * ThinPlate(grid, 2, y)
    rng = np.random.default_rng(0)
    density = Problem(DensityData(rng.uniform([0, -1], [1, 2], (20, 2))), Logits(grid), Gaussian(K))
    line = Grid(given=[Axis(0, 1, points=7, tails=(0, 0))])
    data = GaussianData(rng.uniform(0, 1, 9), rng.normal(size=9), 0.3, weights=rng.uniform(1, 2, 9))
    function = Problem(data, Direct(line), Gaussian(ThinPlate(line, 2)))
    for problem in (density, function):
        phi = rng.normal(size=problem.grid.shape)
        energy, slope, bends = problem.expand_data(phi)
        H, modes = bends.matrix(), problem.operator.modes()
        with jax.enable_x64(True):
            assert energy + float(problem.prior.energy(phi)) == pytest.approx(problem.value(phi), abs=1e-9)
        np.testing.assert_allclose(slope.ravel(), (problem.expand(phi).slope - problem.grid.cell
                                   * np.asarray(problem.operator.apply(phi)).ravel()), atol=1e-9)  # fmt: skip
        np.testing.assert_allclose(H + problem.grid.cell * problem.operator.matrix, problem.hessian(phi), atol=1e-9)
        np.testing.assert_allclose(bends.project(modes), modes.matrix.T @ H @ modes.matrix, atol=1e-9)
        several = rng.normal(size=(3, problem.grid.size))
        np.testing.assert_allclose(bends.apply(several), several @ H, atol=1e-9)


BAD = {
    "modes of a root": (lambda: solve(small(SquareRoot)[0], modes=True), "log-densities and regressions"),
    "modes that see x": (lambda: solve(small(LogDensity)[0], modes=True), "functions of x alone"),
    "no modes": (lambda: solve(small(LogDensity)[0], modes=0), "`modes` must be at least 1"),
    "modes of three axes": (lambda: solve(small(LogDensity)[0], modes=(2, 2, 2)), "each of the 2 axes"),
    "method in modes": (lambda: solve(small(LogDensity)[0], Gradient(), modes=True), "must be Newton"),
    "method": (lambda: solve(small(LogDensity)[0], "newton"), "must be a method"),  # pyright: ignore
    "start": (lambda: solve(small(LogDensity)[0], start="uniform"), "must be a start"),
    "tolerance": (lambda: solve(small(LogDensity)[0], tolerance=0.0), "positive"),
    "steps": (lambda: solve(small(LogDensity)[0], max_steps=0), "at least 1"),
    "mass": (lambda: Massive(0.0), "positive"),
    "length": (lambda: GaussianFilter(-1.0), "positive"),
    "epsilon": (lambda: Empirical(0.0), "positive"),
    "shape": (lambda: solve(small(LogDensity)[0], start=Given(np.zeros(4))), "shape"),
    "negative": (lambda: solve(small(Density)[0], start=Given(np.linspace(-1, 9, 15).reshape(3, 5))), "not negative"),
    "zero": (lambda: solve(small(Density)[0], start=Given(np.eye(3, 5))), "positive where data are"),
    "operator": (lambda: solve(small(LogDensity)[0], Jacobi(Mass(paper_mesh()[0]))), "grid of the problem"),
    "kernel": (lambda: solve(small(LogDensity)[0], start=Kernel(0.1, Mass(paper_mesh()[0]))), "one grid"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_one_sentence(name):
    make, sentence = BAD[name]
    with pytest.raises(InputError, match=sentence):
        make()


def test_what_did_not_arrive_says_so():
    fit = solve(small(LogDensity)[0], Gradient(), max_steps=2)
    assert not fit.converged
    assert fit.outcome.name == "stalled"
    assert fit.kkt > 1e-3
    assert len(fit.trace.iteration) == 3
