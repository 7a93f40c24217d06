"""Axes with hats and tails, bent axes, and the modes of thin plates."""

import jax
import numpy as np
import pytest
from scipy import integrate, stats

from quenched import fields
from quenched.core.types import InputError
from quenched.fields.model.modes import plate_modes

KS = 1e-4  # p-value below which drawn rows come from another distribution; seeds are fixed
LINES = {
    "tail below": fields.Axis(0.0, 3.0, 4, tails=(0.5, 0.0)),
    "bounded": fields.Axis(-1.0, 1.0, 7, tails=(0.0, 0.0)),
    "bent": fields.Axis(-40.0, 60.0, 15, tails=(0.7, 2.0), bend=(1.0, 2.0)),
}


def heights(axis):
    """A density on an axis, and places from one end of its support to the other."""
    grid = fields.Grid(over=[axis])
    values = np.random.default_rng(0).uniform(0.2, 2.0, axis.points)
    x = np.unique(np.concatenate([np.linspace(axis.low - 20, axis.high + 40, 300_001), axis.coordinates]))
    return grid, values / np.sum(grid.weights * values), x


@pytest.mark.parametrize("name", LINES)
def test_weights_are_the_integrals_of_the_hats(name):
    grid, values, x = heights(LINES[name])
    p = np.exp(grid.log_values(np.log(values), x[:, None]))
    assert integrate.trapezoid(p, x) == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(np.exp(grid.log_values(np.log(values), grid.over[0].coordinates)), values, rtol=1e-12)
    with jax.enable_x64(True):
        assert float(grid.integrate(values)[0]) == pytest.approx(1, abs=1e-12)
        assert float(np.sum(np.exp(grid.normalised(3 + np.log(values))) * grid.weights)) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", LINES)
def test_rows_under_hats_are_drawn_from_the_density(name):
    grid, values, x = heights(LINES[name])
    p = np.exp(grid.log_values(np.log(values), x[:, None]))
    cdf = integrate.cumulative_trapezoid(p, x, initial=0)
    rows = grid.sample(values, 20_000, np.random.RandomState(0))[:, 0]
    assert stats.kstest(rows, lambda a: np.interp(a, x, cdf)).pvalue > KS


@pytest.mark.parametrize("name", LINES)
def test_counts_and_interpolation_are_linear_between_points(name):
    axis = LINES[name]
    grid = fields.Grid(over=[axis])
    rows = np.random.default_rng(1).uniform(axis.low, axis.high, 50)
    w = np.random.default_rng(2).uniform(0, 3, 50)
    N = grid.counts(rows, w)
    assert N.sum() == pytest.approx(w.sum())
    assert N @ axis.coordinates == pytest.approx(w @ rows)  # a straight line is what it is
    line = grid.interpolation([axis.low - 3.0, axis.high + 5.0]) @ (2 - 3 * axis.coordinates)
    np.testing.assert_allclose(line, [2 - 3 * (axis.low - 3), 2 - 3 * (axis.high + 5)])
    assert grid.counts([axis.low - 1.0])[0] == 1  # beyond the end: all for the last point


def test_beyond_the_ends_a_tail_falls_by_e_in_its_length_or_there_is_nothing():
    grid = fields.Grid(over=[LINES["tail below"]])
    found = grid.log_values(np.zeros(4), [-0.5, -2.0, 3.1])
    np.testing.assert_allclose(found, [-1, -4, -np.inf])


def test_a_plane_of_hats():
    x, y = fields.Axis(0, 1, 5, tails=(0, 0)), fields.Axis(0, 2, 4, tails=(0.1, 0))
    grid = fields.Grid(over=[x, y])
    np.testing.assert_allclose(grid.weights, np.outer(x.weights, y.weights))
    rows = np.random.default_rng(0).uniform(0, [1, 2], (30, 2))
    values = 1 + np.add.outer(x.coordinates, 2 * y.coordinates)
    np.testing.assert_allclose(np.exp(grid.log_values(np.log(values), rows)), 1 + rows @ [1, 2])
    mixed = fields.Grid(given=[fields.Axis(0, 2, 3)], over=[y])  # a lattice beside hats
    assert mixed.counts([(0.6, 0.5)])[1].sum() == 1
    assert mixed.weights.shape == (1, 4)


def test_points_of_a_bent_axis_are_dense_about_its_centre():
    axis = LINES["bent"]
    gaps = np.diff(axis.coordinates)
    assert (axis.coordinates[0], axis.coordinates[-1]) == (-40, 60)
    assert abs(axis.coordinates[np.argmin(gaps)] - 1) < 3
    assert gaps.max() > 10 * gaps.min()
    np.testing.assert_allclose(np.diff(np.arcsinh((axis.coordinates - 1) / 2), 2), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: fields.Axis(0, 1, 5, tails=(-1, 0)), "not negative"),
        (lambda: fields.Axis(0, 1, 5, tails=3.0), "two numbers"),
        (lambda: fields.Axis(0, 1, 5, ends=fields.Periodic(), tails=(0, 0)), "free ends"),
        (lambda: fields.Axis(0, 1, 5, bend=(0, 1)), "needs `tails`"),
        (lambda: fields.Axis(0, 1, 5, tails=(0, 0), bend=(1e20, 1)), "keep the points apart"),
        (lambda: fields.Axis(0, 1, 5, tails=(0, np.nan)), "finite"),
        (lambda: fields.Axis(0, 1, 5, tails=(0, 0), bend=(0, -1)), "positive"),
        (lambda: fields.Laplacian(fields.Grid(over=[LINES["bent"]])), "use ThinPlate"),
        (lambda: fields.Difference(fields.Grid(over=[LINES["bent"]]), LINES["bent"], 2), "use ThinPlate"),
        (lambda: fields.ThinPlate(fields.Grid(over=[fields.Axis(0, 1, 3)] * 4), 2), "all, two or three"),
    ],
)
def test_bad_axes_get_a_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_modes_of_a_plane_have_the_energy_of_a_thin_plate():
    values, sides, mixed = plate_modes((16, 14), 3)  # all products of modes take part
    vectors = np.kron(*sides) @ mixed
    x, y = np.meshgrid(np.linspace(0, 1, 16), np.linspace(0, 1, 14), indexing="ij")
    # Sums of differences have fewer terms than the grid has points.
    exact = {"x^3": 36 * 13 / 15 * 14 / 13, "x^2 y": 3 * 4 * 14 / 15 * 13 / 13, "x y": 0.0, "y^2": 0.0}
    plate = fields.ThinPlate(fields.Grid(over=[fields.Axis(0, 5, 16), fields.Axis(0, 0.1, 14)]), 3)
    for name, field in {"x^3": x**3, "x^2 y": x**2 * y, "x y": x * y, "y^2": y**2}.items():
        assert values @ (vectors.T @ field.ravel()) ** 2 / 15 / 13 == pytest.approx(exact[name], rel=1e-6, abs=1e-6)
        with jax.enable_x64(True):
            assert 2 * float(plate.energy(field)) == pytest.approx(exact[name], rel=1e-6, abs=1e-6), name
    assert np.sum(values == 0) == 6
    assert values[6] > 1


def test_a_plate_in_three_dimensions_leaves_polynomials_free():
    grid = fields.Grid(over=[fields.Axis(0, 1, 8), fields.Axis(0, 2, 9), fields.Axis(0, 3, 10)])
    modes = fields.ThinPlate(grid, 2).modes(30)
    assert modes.values.shape == (1, 30)
    assert np.sum(modes.values == 0) == 4
    np.testing.assert_allclose(modes.over.T @ modes.over, np.eye(30), atol=1e-10)


@pytest.mark.parametrize("order", [1, 3])
def test_a_strength_means_the_same_on_every_grid(order):
    one, other = (fields.Axis(low, high, 30) for low, high in ((0, 1), (-70, 13)))
    energies = []
    for axis in (one, other):
        grid = fields.Grid(given=[axis])
        with jax.enable_x64(True):
            energies.append(float(fields.ThinPlate(grid, order).energy(np.sin(5 * np.linspace(0, 1, 30)))))
    assert energies[0] == pytest.approx(energies[1])
    grid = fields.Grid(given=[one])
    with jax.enable_x64(True):  # with unit length it is the derivative itself
        assert float(fields.Difference(grid, one, order).energy(np.sin(5 * one.coordinates))) == pytest.approx(
            energies[0]
        )


def test_modes_are_products_of_those_of_the_axes():
    x, y = fields.Axis(0, 1, 9), fields.Axis(0, 2, 11)
    grid = fields.Grid(given=[x], over=[y])
    K = 0.3 * fields.ThinPlate(grid, 1, x) + 2.0 * fields.ThinPlate(grid, 3, y)
    modes = K.modes((4, 7))
    c = np.random.default_rng(0).normal(size=28)
    np.testing.assert_allclose(modes.coefficients(K.apply(modes.field(c))), modes.values.ravel() * c, atol=1e-8)
    assert np.sum(K.modes().values == 0) == 3
    blind = modes.without_constant()
    np.testing.assert_allclose(blind.field(c[:24]).sum(axis=1), 0, atol=1e-12)
    with pytest.raises(InputError, match="no products"):
        fields.ThinPlate(grid, 2).modes(5)
