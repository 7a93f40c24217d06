"""Quadratic density estimation: Parzen windows on a lattice and in the continuum, and the sign of the operators."""

import numpy as np
import pytest

from quenched import fields as f
from tests.tolerances import ALGEBRA

STRENGTH = 0.04  # windows of length 0.2


def parzen(y, rows, h, strength):
    """Windows of the lattice: (1 - k)/(1 + k) k^|i|, with k + 1/k = 2 + h^2/strength; over h a density."""
    m2 = h**2 / strength
    k = 1 + m2 / 2 - np.sqrt(m2 + m2**2 / 4)
    steps = np.rint(np.abs(y[:, None] - rows[None, :]) / h)
    return np.mean((1 - k) / (1 + k) * k**steps, axis=1) / h


def least(problem, grid):
    """Where the quadratic energy is least: its Hessian and gradient are exact anywhere."""
    zero = np.zeros(grid.shape)
    return np.linalg.solve(problem.hessian(zero), -problem.gradient(zero).ravel())


def test_quadratic_estimation_is_a_sum_of_parzen_windows(double):
    """Eq. (243), with rows far from the ends of the axis."""
    axis = f.Axis(-10, 10, points=401)
    grid, rows = f.Grid(over=[axis]), axis.coordinates[[170, 183, 184, 220, 221, 221]]
    data = f.QuadraticData(rows, f.Cumulative(grid))
    P = least(f.Problem(data, f.Direct(grid), f.Gaussian(STRENGTH * f.Mass(grid))), grid)
    np.testing.assert_allclose(P, parzen(axis.coordinates, rows, axis.spacing, STRENGTH), atol=ALGEBRA)
    assert P.min() > -ALGEBRA
    assert P.sum() * axis.spacing == pytest.approx(1, abs=ALGEBRA)


def test_the_windows_of_a_fine_lattice_are_exponentials():
    rows, m = np.array([0.0]), 1 / np.sqrt(STRENGTH)
    for points, share in ((401, 1e-2), (1601, 1e-3)):
        y = np.linspace(-2, 2, points)
        exact = m / 2 * np.exp(-m * np.abs(y))
        found = parzen(y, rows, y[1] - y[0], STRENGTH)
        assert np.max(np.abs(found - exact)) < share * exact.max()


def test_the_distribution_function_solves_the_massive_equation(double):
    axis = f.Axis(-10, 10, points=401)
    grid, rows = f.Grid(over=[axis]), axis.coordinates[[170, 183, 220]]
    R = np.tril(np.ones((401, 401))) * axis.spacing
    P = least(
        f.Problem(f.QuadraticData(rows, f.Cumulative(grid)), f.Direct(grid), f.Gaussian(STRENGTH * f.Mass(grid))), grid
    )
    steps = np.mean(axis.coordinates[:, None] >= rows - 1e-9, axis=1)
    backwards = np.linalg.inv(R)
    mass = 1 / STRENGTH
    np.testing.assert_allclose(
        R @ P, mass * np.linalg.solve(backwards.T @ backwards + mass * np.eye(401), steps), atol=1e-9
    )


def test_f241_the_inverse_of_the_integrals_is_a_product_of_positive_laplacians():
    """In two dimensions minus the product of the Laplacians, as printed, has the wrong sign."""
    grid = f.Grid(over=[f.Axis(0, 1, points=4), f.Axis(0, 1, points=5)])
    R = np.asarray(f.Cumulative(grid).integrate(np.eye(20).reshape(-1, 4, 5))).reshape(20, 20).T
    backwards = np.linalg.inv(R)
    inverse = backwards.T @ backwards
    minus = []
    for axis in grid.axes:
        D = (np.eye(axis.points) - np.eye(axis.points, k=-1)) / axis.spacing
        minus.append(D.T @ D)  # -Delta: zero before the first point, no slope after the last
    product = np.kron(*minus)
    np.testing.assert_allclose(inverse, product, rtol=1e-8, atol=1e-6)
    assert np.linalg.eigvalsh(inverse)[0] > 0
    assert np.linalg.eigvalsh(-np.kron(-minus[0], -minus[1]))[0] < 0  # -prod_k Delta_k


def test_an_x_without_data_is_left_out_or_uniform(double):
    x, y = f.Axis(0, 2, points=3), f.Axis(0, 4, points=5)
    grid = f.Grid(given=[x], over=[y])
    rows = [(0, 1), (0, 2), (2, 3)]
    left, uniform = (f.QuadraticData(rows, f.Mass(grid), extended=flag).prepared(grid) for flag in (False, True))
    np.testing.assert_allclose(uniform.empirical[1], 0.2)
    np.testing.assert_allclose(uniform.empirical[0], [0, 0.5, 0.5, 0, 0])
    P = np.random.default_rng(0).uniform(size=grid.shape)
    moved = P.copy()
    moved[1] += 1.0
    assert float(left.energy(f.Direct(grid), P)) == float(left.energy(f.Direct(grid), moved))
    assert float(uniform.energy(f.Direct(grid), P)) != float(uniform.energy(f.Direct(grid), moved))


def test_the_cumulative_operator_is_the_square_of_the_integral():
    grid = f.Grid(given=[f.Axis(0, 1, points=2)], over=[f.Axis(0, 3, points=4)])
    R = np.kron(np.eye(2), np.tril(np.ones((4, 4)))) * grid.spacing
    np.testing.assert_allclose(f.Cumulative(grid).matrix, R.T @ R, atol=ALGEBRA)
