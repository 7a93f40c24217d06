"""Methods without matrices: fast transforms, Newton-CG and L-BFGS against dense algebra; grids that are too large."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched import fields
from quenched.core import system
from quenched.core.types import InputError
from quenched.fields.learner.coarse import carry, coarsen
from quenched.fields.model import operators, transforms
from quenched.fields.model.preconditioner import ground_of, precondition
from quenched.fields.model.products import data_diagonal, hessian_product, look
from tests.programs import compiled
from tests.tolerances import ALGEBRA, EXACT, MACHINE, SAME

X, Y = fields.Axis(0, 1, points=12, ends=fields.Periodic()), fields.Axis(0, 1, points=10)
ROWS = np.random.default_rng(0).random((40, 2)) * 0.6
VALUES = np.random.default_rng(1).normal(size=40)


def smooth(grid):
    return fields.Gaussian(0.1 * fields.Laplacian(grid) + fields.Mass(grid, 0.01))


def problems():
    plane, inputs = fields.Grid(over=[X, Y]), fields.Grid(given=[X, Y])
    conditional, classes = fields.Grid(given=[X], over=[Y]), fields.Grid(given=[X], over=[fields.Components(3)])
    bent = fields.Problem(fields.NoisyData(ROWS, VALUES, fields.HuberNoise(0.3)), fields.Direct(inputs), smooth(inputs))
    labels = fields.ClassData(ROWS[:, 0], np.arange(40) % 3)
    return {
        "density": fields.Problem(fields.DensityData(ROWS), fields.LogDensity(plane), smooth(plane)),
        "root": fields.Problem(fields.DensityData(ROWS), fields.SquareRoot(plane), smooth(plane)),
        "conditional": fields.Problem(fields.DensityData(ROWS), fields.LogDensity(conditional),
                                      fields.Gaussian(0.1 * fields.Laplacian(conditional, Y))),
        "classes": fields.Problem(labels, fields.Logits(classes), smooth(classes)),
        "regression": fields.Problem(fields.GaussianData(ROWS, VALUES, 0.1), fields.Direct(inputs), smooth(inputs)),
        "robust": bent,
    }  # fmt: skip


PROBLEMS = problems()


@pytest.mark.parametrize("n", [2, 3, 8, 9])
@pytest.mark.parametrize("ends", [fields.Periodic(), fields.Free(), fields.Dirichlet()])
@jax.enable_x64(True)
def test_fast_transforms_are_products_with_the_modes(ends, n):
    """On the host and in JAX, also along a dimension between others."""
    U, field = fields.Axis(0, 1, points=n, ends=ends).modes[1], np.random.default_rng(n).normal(size=(2, n, 3))
    expected = np.einsum("anb,nk->akb", field, U)

    def there_and_back(one):
        amplitudes = transforms.to_modes(one, ends, 1)
        return amplitudes, transforms.from_modes(amplitudes, ends, 1)

    for amplitudes, again in (there_and_back(field), compiled(there_and_back)(field)):
        np.testing.assert_allclose(amplitudes, expected, atol=MACHINE)
        np.testing.assert_allclose(again, field, atol=MACHINE)


def test_long_axes_have_the_operators_of_short_ones(monkeypatch):
    """Apply, solve and null space do not depend on whether axes are transformed fast."""
    grid = fields.Grid(over=[X, Y, fields.Axis(0, 2, points=5, ends=fields.Dirichlet())])
    K = fields.Laplacian(grid) ** 2 + 0.3 * fields.Laplacian(grid, X)
    field, even = np.random.default_rng(0).normal(size=(2, *grid.shape)), fields.Laplacian(grid, X, Y)
    dense = K.apply(field), K.solve(field), even.null_space()
    monkeypatch.setattr(operators, "FAST", 0)
    np.testing.assert_allclose(np.sum(dense[2] ** 2, axis=(1, 2, 3)), 1.0, rtol=MACHINE)
    for fast, one in zip((K.apply(field), K.solve(field), even.null_space()), dense, strict=True):
        np.testing.assert_allclose(fast, one, atol=MACHINE * np.abs(one).max())


def test_a_plate_is_the_sum_of_its_squared_differences():
    grid = fields.Grid(over=[Y, fields.Axis(0, 3, points=7)])
    K, phi = fields.ThinPlate(grid, 2), np.random.default_rng(0).normal(size=grid.shape)
    bends = [np.diff(phi, n=2, axis=0) * 9**2, np.diff(phi, n=2, axis=1) * 6**2]
    twist = np.diff(np.diff(phi, axis=0), axis=1) * 9 * 6
    total = sum(float(np.sum(part**2)) for part in bends) + 2 * float(np.sum(twist**2))
    np.testing.assert_allclose(float(np.sum(phi * K.apply(phi))), total / 3, rtol=MACHINE)
    slopes = [np.diff(phi, axis=0) * 9, np.diff(phi, axis=1) * 6]
    total = sum(float(np.sum(part**2)) for part in slopes)
    np.testing.assert_allclose(float(np.sum(phi * fields.ThinPlate(grid, 1).apply(phi))), total / 3, rtol=MACHINE)


energies = compiled(lambda problem, field: problem.energies(field))


@compiled
def apart(problem, field, v):
    """What methods without matrices see of an energy."""
    return *look(problem, field), hessian_product(problem, field)(v)


@pytest.mark.parametrize("name", PROBLEMS)
@jax.enable_x64(True)
def test_slopes_and_products_are_those_of_the_energy(name):
    problem = PROBLEMS[name]
    field = jnp.asarray(0.3 * np.random.default_rng(2).normal(size=problem.grid.shape) + (name == "root"))
    v = np.random.default_rng(3).normal(size=problem.grid.shape)
    (energy, loss), slope, products = apart(problem, field, v)
    np.testing.assert_allclose((energy, loss), energies(problem, field), rtol=MACHINE)
    np.testing.assert_allclose(slope, problem.gradient(field), atol=ALGEBRA)
    expected = (problem.hessian(field) @ v.ravel()).reshape(v.shape)
    np.testing.assert_allclose(products, expected, atol=ALGEBRA)


NEWTON, COARSE, QUASI = fields.NewtonCG(coarsest=None), fields.NewtonCG(coarsest=3), fields.LBFGS(coarsest=None)


@pytest.mark.parametrize(
    ("name", "method"),
    [("density", COARSE), ("density", QUASI), ("robust", QUASI), *((name, NEWTON) for name in PROBLEMS)],
)
def test_newton_cg_and_l_bfgs_find_what_newton_finds(name, method):
    """From a coarser grid, or directly: the same energy, and the same field."""
    problem = PROBLEMS[name]
    dense, free = fields.solve(problem), fields.solve(problem, method, tolerance=1e-11)
    assert free.converged
    assert free.levels[-1].gradient <= 1e-11
    assert len(free.levels) == (2 if method.coarsest else 1)
    assert free.energy == pytest.approx(dense.energy, rel=MACHINE)
    turned = np.sign(np.sum(free.field * dense.field)) if name == "root" else 1.0
    np.testing.assert_allclose(turned * free.field, dense.field, atol=EXACT)
    assert free.kkt == pytest.approx(np.max(np.abs(problem.gradient(free.field))) / problem.grid.cell, abs=1e-6)


def test_three_dimensions_and_a_start_on_a_coarser_grid():
    cube = fields.Grid(over=[fields.Axis(0, 1, points=m) for m in (6, 7, 8)])
    rows = np.random.default_rng(0).random((200, 3)) ** 2
    fits = []
    for prior in (0.001 * fields.ThinPlate(cube, 2), 0.01 * fields.Laplacian(cube) ** 2):
        problem = fields.Problem(fields.DensityData(rows), fields.LogDensity(cube), fields.Gaussian(prior))
        fits.append(fields.solve(problem, fields.NewtonCG(coarsest=None), tolerance=1e-9))
        dense = fields.solve(problem)
        np.testing.assert_allclose(fits[-1].density, dense.density, rtol=EXACT)
    again = fields.solve(problem, fields.NewtonCG(), start=fits[0])
    np.testing.assert_allclose(again.density, fits[1].density, rtol=1e-4)


def test_a_coarse_problem_has_nearly_the_same_solution():
    """Counts are kept, eigenvalues too; a smooth field keeps its values on any grid."""
    axes = [fields.Axis(0, 1 - 1 / 32, points=32, ends=fields.Periodic()), fields.Axis(0, 1, points=33),
            fields.Axis(0, 1, points=31, ends=fields.Dirichlet())]  # fmt: skip
    grid = fields.Grid(over=axes)
    rows, operator = np.random.default_rng(0).random((500, 3)), smooth(grid).operator
    problem = fields.Problem(fields.DensityData(rows), fields.LogDensity(grid), smooth(grid))
    half: Any = coarsen(problem, least=7)
    assert half.grid.shape == (8, 8, 7)
    assert coarsen(half, least=4) is None
    assert half.likelihood.total == pytest.approx(500)
    np.testing.assert_array_equal(half.operator.values, operator.values[:8, :8, :7])
    x, y, z = (axis.coordinates for axis in axes)
    u, v, w = (axis.coordinates for axis in half.grid.axes)
    edges = axes[1].low - axes[1].spacing / 2, axes[1].high + axes[1].spacing / 2

    def wave(x, y, z):
        across = np.cos(np.pi * (y - edges[0]) / (edges[1] - edges[0]))
        low, high = axes[2].low - axes[2].spacing, axes[2].high + axes[2].spacing
        along = np.sin(np.pi * (z - low) / (high - low))
        return np.sin(2 * np.pi * x)[:, None, None] * across[:, None] * along

    np.testing.assert_allclose(carry(wave(u, v, w), half.grid, grid), wave(x, y, z), atol=ALGEBRA)


@compiled
def parts_of_preconditioner(problem, ground, field, v):
    """What is asked of it below."""
    M = precondition(problem, ground, field)
    diagonal = data_diagonal(problem, field, ground.signs)
    return diagonal, M.solve(v), M.spread(M.gather(v)), M.spread(M.coordinates(v)), M.logdet()


@jax.enable_x64(True)
def test_the_preconditioner_is_exact_with_all_modes_in_its_block():
    """Its root and its determinant are those of the matrix; the diagonal of the data is that of their Hessian."""
    problem = PROBLEMS["regression"]
    v = np.random.default_rng(0).normal(size=problem.grid.shape)
    zero = np.zeros(problem.grid.shape)
    diagonal, solved, spread, again, logdet = parts_of_preconditioner(problem, ground_of(problem), zero, v)
    H = problem.hessian(zero)
    np.testing.assert_allclose(diagonal.ravel(), np.diag(H) - np.diag(problem.grid.cell * problem.operator.matrix),
                               atol=ALGEBRA)  # fmt: skip
    np.testing.assert_allclose(solved.ravel(), np.linalg.solve(H, v.ravel()), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(spread, solved, atol=SAME)
    np.testing.assert_allclose(again, v, atol=SAME)
    assert float(logdet) == pytest.approx(np.linalg.slogdet(H)[1], rel=SAME)


def test_what_does_not_fit_in_memory_is_refused_before_it_is_made(monkeypatch):
    with pytest.raises(InputError, match=r"1000000 x 1000000 points must fit in memory, but that takes 8e\+04 GB"):
        fields.Grid(over=[fields.Axis(0, 1, points=10**6)] * 2)
    monkeypatch.setattr(system, "available_memory", lambda: 1e9)
    square = fields.Grid(given=[fields.Axis(0, 1, points=300)] * 2)
    K = fields.Laplacian(square)
    problem = fields.Problem(fields.GaussianData([[0.5, 0.5]], [1.0]), fields.Direct(square), fields.Gaussian(K))
    for dense in (
        lambda: K.matrix,
        lambda: K.modes(),
        lambda: fields.solve(problem),
        lambda: fields.regress(problem),
        lambda: fields.laplace(problem, np.zeros((300, 300))),
        lambda: problem.hessian(np.zeros((300, 300))),
    ):
        with pytest.raises(InputError, match=r"pairs of 90,000 points .* must fit in memory, but that takes 389 GB"):
            dense()


def test_methods_without_matrices_check_their_input():
    grid = fields.Grid(over=[X])
    problem = fields.Problem(fields.DensityData(ROWS[:, 0]), fields.Density(grid), smooth(grid))
    with pytest.raises(InputError, match=r"`method` must be Newton\(\) for the link Density"):
        fields.solve(problem, fields.NewtonCG())
    with pytest.raises(InputError, match=r"`coarsest` must be"):
        fields.NewtonCG(coarsest=1)
    with pytest.raises(InputError, match=r"`method` must be Newton\(\) in modes"):
        fields.solve(PROBLEMS["density"], fields.LBFGS(), modes=True)
    few = fields.solve(PROBLEMS["density"], fields.NewtonCG(coarsest=None), max_steps=1)
    assert not few.converged
