"""Grid, operators, links, priors and the problem: algebra against explicit matrices, and bad input."""

import jax
import numpy as np
import pytest

from quenched.core.types import InputError
from quenched.fields.model.grid import Axis, Dirichlet, Free, Grid, Periodic
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Density, Direct, LogDensity, Shifted
from quenched.fields.model.operators import Dense, Filter
from quenched.fields.model.priors import And, Gaussian, Prior, combined, operator_of
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Difference, Laplacian, Mass
from tests.fields.meshes import LINKS, paper_mesh

ROUNDING = 1e-11
"""Products of matrices with entries up to about 100."""


def explicit(n, ends, h):
    """-Delta as it is written down: 2 on the diagonal, -1 beside it."""
    M = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    if isinstance(ends, Periodic):
        M[0, -1] = M[-1, 0] = -1
    if isinstance(ends, Free):
        M[0, 0] = M[-1, -1] = 1
    return M / h**2


@pytest.mark.parametrize("ends", [Periodic(), Free(), Dirichlet(0.0)])
@pytest.mark.parametrize("n", [5, 6])
def test_the_laplacian_is_the_matrix_one_writes_down(ends, n):
    axis = Axis(-1, 1, points=n, ends=ends)
    M = explicit(n, ends, axis.spacing)
    np.testing.assert_allclose(Laplacian(Grid(over=[axis])).matrix, M, atol=ROUNDING)
    np.testing.assert_allclose((Laplacian(Grid(over=[axis])) ** 3).matrix, M @ M @ M, atol=1e3 * ROUNDING)


def operators():
    x, y = Axis(0, 1, points=3), Axis(0, 2, points=5, ends=Periodic())
    grid = Grid(given=[x], over=[y])
    W = np.random.default_rng(0).normal(size=(4, 15))
    waves = 0.3 * Laplacian(grid, x) + 2.0 * Laplacian(grid, y) ** 2
    return {
        "waves": waves,
        "massive": waves + Mass(grid, 0.5),
        "product": Laplacian(grid, x) @ Laplacian(grid, y),
        "filter": Filter(grid, W),
        "difference": 0.5 * Difference(grid, x, 2) + Difference(grid, y, 1),
        "sum": waves + 0.1 * Filter(grid, W),
        "power": Filter(grid, W) ** 2,
        "dense": 2.0 * Dense(grid, W.T @ W),
    }


@pytest.mark.parametrize("name", operators())
def test_apply_solve_determinant_and_null_space_agree_with_the_matrix(name):
    """Also of several fields at once. The solution is that of the pseudo-inverse (erratum F278)."""
    K = operators()[name]
    M, fields = K.matrix, np.random.default_rng(1).normal(size=(2, *K.grid.shape))
    np.testing.assert_allclose(M, M.T, atol=1e-9)
    flat = fields.reshape(2, -1)
    np.testing.assert_allclose(np.asarray(K.apply(fields)).reshape(2, -1), flat @ M, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        K.solve(fields).reshape(2, -1), flat @ np.linalg.pinv(M, rcond=1e-9), rtol=1e-7, atol=1e-8
    )
    values = np.linalg.eigvalsh(M)
    there = values > 1e-9 * values[-1]
    assert K.logdet() == pytest.approx(np.sum(np.log(values[there])), abs=1e-7)
    null = K.null_space()
    assert len(null) == np.sum(~there)
    np.testing.assert_allclose(np.asarray(K.apply(null)), 0, atol=1e-7)
    np.testing.assert_allclose(np.tensordot(null, null, ([1, 2], [1, 2])), np.eye(len(null)), atol=1e-9)
    field = fields[0].astype(float)
    with jax.enable_x64(True):
        assert float(K.energy(field)) == pytest.approx(0.5 * K.grid.cell * flat[0] @ M @ flat[0])


def test_f278_the_pseudo_inverse_is_the_one_that_is_used():
    """A# A A# = A# and A A# A = A; printed the other way round."""
    K = operators()["waves"]
    A = K.matrix
    inverse = K.solve(np.eye(15).reshape(-1, 3, 5)).reshape(15, 15)
    np.testing.assert_allclose(inverse @ A @ inverse, inverse, atol=1e-9)
    np.testing.assert_allclose(A @ inverse @ A, A, atol=1e-9)
    assert np.max(np.abs(A @ inverse @ A - inverse)) > 1


def test_sums_multiples_and_powers_are_those_of_matrices():
    every = operators()
    a, b = every["waves"], every["sum"]
    np.testing.assert_allclose((2 * a + 3 * b).matrix, 2 * a.matrix + 3 * b.matrix, atol=1e-9)
    np.testing.assert_allclose((a @ a).matrix, (a**2).matrix, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(
        (every["filter"] ** 2).matrix, every["filter"].matrix @ every["filter"].matrix, atol=1e-9
    )
    grid = Grid(over=[Axis(0, 1, points=4), Axis(0, 1, points=3)])
    kronecker = np.kron(explicit(4, Free(), 1 / 3), np.eye(3)) + np.kron(np.eye(4), explicit(3, Free(), 1 / 2))
    np.testing.assert_allclose(Laplacian(grid).matrix, kronecker, atol=1e-10)


@pytest.mark.parametrize(("order", "points"), [(1, 30), (2, 30), (3, 400)])
def test_differences_leave_polynomials_free(order, points):
    """Also on a fine grid, where the smallest eigenvalue is 1e-13 of the largest: it is not zero."""
    axis = Axis(0, 1, points=points)
    K = 0.1 * Difference(Grid(over=[axis]), axis, order)
    null = K.null_space()
    assert len(null) == order
    polynomials = np.vander(axis.coordinates, order)
    np.testing.assert_allclose(null.T @ (null @ polynomials), polynomials, atol=1e-7)


def test_the_difference_of_a_power_is_its_derivative():
    axis = Axis(0, 2, points=9)
    K = Difference(Grid(over=[axis]), axis, 3)
    with jax.enable_x64(True):  # (d^3 y^3)^2 = 36 at each of the 6 places where all four points exist
        assert float(K.energy(axis.coordinates**3)) == pytest.approx(0.5 * 36 * 6 * axis.spacing)


def test_dirichlet_values_pull_the_field_to_a_straight_line():
    axis = Axis(1, 4, points=4, ends=Dirichlet(0.0, 5.0))
    grid = Grid(over=[axis])
    prior = Gaussian(Laplacian(grid))
    np.testing.assert_allclose(prior.mean, [1, 2, 3, 4])
    field = np.array([0.3, -1.0, 2.0, 0.5])
    padded = np.concatenate([[0.0], field, [5.0]])
    straight = np.concatenate([[0.0], prior.mean, [5.0]])
    with jax.enable_x64(True):
        found = float(prior.energy(field))
    assert found == pytest.approx(0.5 * np.sum(np.diff(padded) ** 2) - 0.5 * np.sum(np.diff(straight) ** 2))


@pytest.mark.parametrize("link", LINKS)
def test_from_a_density_to_the_field_and_back(link, double):
    grid, _, _ = paper_mesh()
    logs = np.random.default_rng(2).normal(size=grid.shape)
    L = grid.normalised(logs)
    found = link(grid).project(link(grid).field(L))
    np.testing.assert_allclose(link(grid).log_density(found), L, atol=1e-12)
    np.testing.assert_allclose(link(grid).density(found).sum(axis=1) * grid.spacing, 1, atol=1e-12)
    again = link(grid).project(found + 1 if link in (LogDensity, Shifted) else 3 * found)
    np.testing.assert_allclose(link(grid).log_density(again), L, atol=1e-12)


def test_f232_gaussian_priors_that_both_hold_are_one_up_to_the_constant():
    """As printed, without the brackets, the constant is wrong; it cannot be negative."""
    grid, x, y = paper_mesh()
    rng = np.random.default_rng(3)
    parts = [
        Gaussian(Laplacian(grid, x) + Mass(grid, 0.3), mean=rng.normal(size=grid.shape)),
        Gaussian(0.5 * Laplacian(grid, y), mean=rng.normal(size=grid.shape)),
        Gaussian(Mass(grid, 0.1), mean=1.0),
    ]
    both = parts[0] & (parts[1] & parts[2])
    assert isinstance(both, And)
    assert len(both.parts) == 3
    one = combined(both)
    field = rng.normal(size=grid.shape)
    with jax.enable_x64(True):
        constant = float(both.energy(field)) - float(one.energy(field))
        own = sum(2 * float(part.operator.energy(part.mean)) for part in parts)
        together = 2 * float(one.operator.energy(one.mean))
    assert constant == pytest.approx((own - together) / 2, abs=1e-9)
    assert constant > 0
    assert own / 2 - together < -10


def test_f164_the_prior_on_the_square_of_a_density_is_a_mass(double):
    """lambda/2 (P, P) is the energy of K = lambda I, not of lambda/2 I."""
    grid, _, _ = paper_mesh()
    P = np.random.default_rng(4).uniform(size=grid.shape)
    assert float(Gaussian(Mass(grid, 0.7)).energy(P)) == pytest.approx(0.7 / 2 * np.sum(P**2))


def test_only_gaussian_parts_have_one_operator():
    class Other(Prior):
        home: Grid

        def energy(self, field):
            return 0.0

        @property
        def grid(self):
            return self.home

    grid, _, _ = paper_mesh()
    with pytest.raises(InputError, match="must be Gaussian in all its parts"):
        operator_of(Gaussian(Mass(grid)) & Other(grid))


def test_counts_are_those_of_the_nearest_points():
    x, y = Axis(0, 2, points=3), Axis(0, 3, points=4, ends=Periodic())
    grid = Grid(given=[x], over=[y])
    N = grid.counts([(0.4, 0.1), (0.2, -0.4), (2.4, 3.7), (1, 2)], [1, 2, 3, 0.5])
    expected = np.zeros((3, 4))
    expected[0, 0], expected[2, 0], expected[1, 2] = 3, 3, 0.5
    np.testing.assert_allclose(N, expected)


GRID = Grid(over=[Axis(0, 1, points=5, name="y")])
SMOOTH = Gaussian(Laplacian(GRID))


def problem(points, **kwargs):
    return Problem(DensityData(points, **kwargs), LogDensity(GRID), SMOOTH)


BAD = {
    "outside": (lambda: problem([0.5, 1.2]), "must lie on the grid of axis y, from 0 to 1, but 1.2 is outside"),
    "below": (lambda: problem([-0.2, 0.3]), "but -0.2 is outside"),
    "no data": (lambda: problem([]), "at least one point"),
    "no regression data": (lambda: GaussianData([], []), "at least one point"),
    "not a number": (lambda: problem([0.5, np.nan]), "`points` must be finite"),
    "words": (lambda: problem(["a"]), "array of numbers"),
    "columns": (lambda: problem([(0.1, 0.2)]), "rows of 1 numbers"),
    "weights": (lambda: problem([0.1, 0.2], weights=[1.0]), "one number for each of the 2 points"),
    "no weight": (lambda: problem([0.1], weights=[0.0]), "positive for some point"),
    "negative weight": (lambda: problem([0.1], weights=[-1.0]), "not negative"),
    "not symmetric": (lambda: Dense(GRID, np.triu(np.ones((5, 5)))), "must be symmetric"),
    "indefinite": (lambda: Dense(GRID, -np.eye(5)), "positive semi-definite"),
    "negative factor": (lambda: -0.1 * Laplacian(GRID), "not negative"),
    "shape of an operator": (lambda: Dense(GRID, np.eye(4)), r"shape \(5, 5\)"),
    "shape of a filter": (lambda: Filter(GRID, np.eye(4)), "5 columns"),
    "shape of a template": (lambda: Gaussian(Laplacian(GRID), mean=np.zeros(4)), r"shape \(5,\) of the grid"),
    "template of NaN": (lambda: Gaussian(Laplacian(GRID), mean=np.nan), "`mean` must be finite"),
    "no operator": (lambda: Gaussian(0.1), "must be an operator"),  # pyright: ignore
    "another grid": (lambda: Laplacian(GRID) + Mass(paper_mesh()[0]), "one grid"),
    "prior elsewhere": (lambda: SMOOTH & Gaussian(Mass(paper_mesh()[0])), "one grid"),
    "link elsewhere": (lambda: Problem(DensityData([0.1]), LogDensity(paper_mesh()[0]), SMOOTH), "one grid"),
    "regression of points": (lambda: Problem(DensityData([0.1]), Direct(GRID), SMOOTH), "must go with"),
    "no axis": (lambda: Grid(), "at least one axis"),
    "nothing to normalise": (lambda: Density(Grid(given=[Axis(0, 1, points=3)])), "normalised over"),
    "order": (lambda: Difference(GRID, GRID.over[0], 5), "more than 5 points"),
    "axis": (lambda: Axis(1, 0, points=3), "below `high`"),
    "points": (lambda: Axis(0, 1, points=1), "at least 2"),
    "ends": (lambda: Axis(0, 1, points=3, ends="periodic"), "must be Free"),  # pyright: ignore
    "foreign axis": (lambda: Laplacian(GRID, Axis(0, 1, points=7)), "one axis of the grid"),
    "variance": (lambda: GaussianData([0.1], [1.0], variance=0.0), "positive"),
    "targets": (lambda: GaussianData([0.1], [1.0, 2.0]), "one number for each"),
    "product": (lambda: Laplacian(GRID) @ Filter(GRID, np.eye(5)), "symmetric product"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_one_sentence(name):
    make, sentence = BAD[name]
    with pytest.raises(InputError, match=sentence) as caught:
        make()
    assert str(caught.value).count("\n") == 0


def test_one_repeated_value_is_a_problem_like_others():
    assert problem([0.5] * 3).likelihood.counts[2] == 3  # pyright: ignore
    counted = problem([0.5]).likelihood
    assert Problem(counted, Shifted(GRID), SMOOTH).likelihood is counted
    with pytest.raises(InputError, match="counted on a grid of shape"):
        Problem(counted, LogDensity(paper_mesh()[0]), Gaussian(Mass(paper_mesh()[0])))


def test_the_levels_of_a_hamiltonian():
    """Check values of the theory note: the operator with given ends is that of quantum mechanics."""
    y = Axis(-8, 8, points=81, ends=Dirichlet())
    kinetic = 0.5 * Laplacian(Grid(over=[y]))
    V = y.coordinates**2 / 8 + 2 * np.exp(-((y.coordinates - 1) ** 2) / 0.98)
    levels = np.linalg.eigvalsh(kinetic.matrix + np.diag(V))
    np.testing.assert_allclose(levels[:2], [0.60395760, 1.39755555], atol=5e-9)
