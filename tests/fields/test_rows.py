"""Likelihoods of rows, of blurred and binned rows, and quadratic ones: derivatives, normalisation, special cases."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from quenched import fields as f
from quenched.core.types import InputError
from tests.programs import compiled
from tests.tolerances import ALGEBRA, GRADIENT, MACHINE, QUADRATURE

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0, 3, 9), np.linspace(-0.7, 1.6, 9)
TWO = RNG.uniform(0, 3, (9, 2))
WEIGHTS = RNG.uniform(0.5, 2, 9)
LINE = f.Axis(0, 3, points=6, tails=(0.0, 0.0))
LATTICE = f.Axis(0, 3, points=7)
NOISES = {
    "gaussian": f.GaussianNoise(0.3),
    "laplace": f.LaplaceNoise(0.4, rounding=0.3),
    "huber": f.HuberNoise(0.5),
    "insensitive": f.InsensitiveNoise(0.3, epsilon=0.4, rounding=0.2),
    "two": f.MixtureNoise([-1.0, 1.0], 0.6),
    "eleven": f.MixtureNoise(np.linspace(-2, 2, 11), 0.1),
    "outliers": f.MixtureNoise([0.0, 0.0], [0.1, 9.0], [0.9, 0.1]),
}
PRECISION = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.2], [0.0, -0.2, 3.0]])


def logistic(side, value):
    return jnp.log1p(jnp.exp(-side * value))


def cases():
    """A likelihood, a link, and a field to look at it."""
    one, two = f.Grid(given=[LINE]), f.Grid(given=[LINE, LATTICE])
    three = f.Components(3)
    classes, vectors = f.Grid(given=[LINE], over=[three]), f.Grid(given=[LINE, three])
    sums = f.Grid(given=[f.Components(2), LINE], over=[three])
    over, given = f.Grid(over=[LATTICE]), f.Grid(given=[f.Axis(0, 3, points=4)], over=[LATTICE])
    hats = f.Grid(over=[f.Axis(0, 3, points=7, tails=(0.1, 0.2))])
    labels = np.arange(9) % 3
    found = {name: (f.NoisyData(X, Y, noise), f.Direct(one)) for name, noise in NOISES.items()}
    found |= {
        "plane": (f.NoisyData(TWO, Y, NOISES["huber"], WEIGHTS), f.Direct(two)),
        "risk": (f.RiskData(X, np.sign(Y), logistic, WEIGHTS), f.Direct(one)),
        "classes": (f.ClassData(X, labels, WEIGHTS), f.Logits(classes)),
        "classes of logs": (f.ClassData(X, labels), f.LogDensity(classes)),
        "additive classes": (f.ClassData(TWO, labels, sums=True), f.Logits(sums)),
        "vectors": (f.VectorData(X, RNG.normal(size=(9, 3)), PRECISION, WEIGHTS), f.Direct(vectors)),
        "clusters": (f.ClusterData(X, Y, 0.4, [0.5, 0.2, 0.3], WEIGHTS), f.Direct(vectors)),
        "blurred": (f.BlurredData(X, 0.3), f.LogDensity(over)),
        "blurred hats": (f.BlurredData(X, 0.3), f.Logits(hats)),
        "blurred along both": (f.BlurredData(TWO, [0.5, 0.2]), f.SquareRoot(given)),
        "binned": (f.BinnedData(X - 0.3, X + 0.4, WEIGHTS), f.Shifted(over)),
        "quadratic": (f.QuadraticData(X, f.Cumulative(over)), f.Density(over)),
        "quadratic given": (f.QuadraticData(TWO, f.Mass(given), extended=True), f.Density(given)),
        "quadratic without link": (f.QuadraticData(X, f.Cumulative(hats)), f.Direct(hats)),
    }
    return found


@functools.cache
def look(name):
    """A likelihood on its grid, its link, a field, and derivatives of the energy.

    These are energy, slope and the change of both along a direction, of flat fields: one program for all tests.
    """
    with jax.enable_x64(True):
        likelihood, link = cases()[name]
        likelihood = likelihood.prepared(link.grid)
        field = np.random.default_rng(1).uniform(0.2, 1.2, link.grid.shape)
        energy = jax.value_and_grad(lambda v: likelihood.energy(link, link.project(v.reshape(field.shape))))
        turn = compiled(lambda v, along: jax.jvp(energy, (v,), (along,)))
        return likelihood, link, field, lambda *given: jax.tree.map(np.asarray, turn(*given))


@pytest.mark.parametrize("name", cases())
def test_derivatives_are_those_of_finite_differences(name, double):
    _, _, field, turn = look(name)
    flat, step = field.ravel(), 1e-5
    along = np.random.default_rng(2).normal(size=flat.size)
    (_, slope), (_, bend) = turn(flat, along)
    ups, downs = (np.array([turn(flat + s * e, along)[0][0] for e in step * np.eye(flat.size)]) for s in (1, -1))
    np.testing.assert_allclose(slope, (ups - downs) / (2 * step), rtol=GRADIENT, atol=GRADIENT)
    found = (turn(flat + step * along, along)[0][1] - turn(flat - step * along, along)[0][1]) / (2 * step)
    np.testing.assert_allclose(bend, found, rtol=10 * GRADIENT, atol=10 * GRADIENT)


ROWS = [
    name for name, (data, link) in cases().items() if isinstance(data, f.RowData) and type(link) is not f.LogDensity
]


@pytest.mark.parametrize("name", ROWS)
def test_what_is_computed_on_the_host_is_the_derivative_of_the_energy(name, double):
    likelihood, link, field, turn = look(name)
    value, slope, curvature = likelihood.expand(link, field)
    flat = field.ravel()
    found = [turn(flat, unit) for unit in np.eye(flat.size)]
    energy, gradient = found[0][0]
    assert value == pytest.approx(float(energy), rel=MACHINE)
    np.testing.assert_allclose(slope.ravel(), gradient, atol=ALGEBRA)
    H = np.array([change for _, (_, change) in found])
    np.testing.assert_allclose(curvature.matrix(), H, atol=ALGEBRA)
    several = np.random.default_rng(3).normal(size=(2, flat.size))
    np.testing.assert_allclose(curvature.apply(several), several @ H, atol=ALGEBRA)
    assert curvature.diagonal == bool(np.all(H == np.diag(np.diag(H))))
    modes = (f.Laplacian(link.grid) + f.Mass(link.grid)).modes((2,) * (len(link.grid.axes) - 1) + (3,))
    U = np.kron(modes.given, modes.over)
    np.testing.assert_allclose(curvature.project(modes), U.T @ H @ U, atol=ALGEBRA)


def test_rows_on_points_of_the_grid_stay_where_they_are():
    """Shares of zero are left out of the matrix of the rows, and not out of the rows."""
    axis = f.Axis(0, 1, points=5, tails=(0.0, 0.0))
    data = f.ClassData(np.array([[0.25, 0.5], [0.3, 0.75], [1.0, 0.0]]), [0, 1, 0], sums=True)
    grid = f.Grid(given=[f.Components(2), axis], over=[f.Components(2)])
    placed = data.prepared(grid)
    assert np.any(placed.shares == 0)
    field = np.random.default_rng(0).normal(size=grid.shape)
    before = placed.places.copy(), placed.shares.copy(), placed.expand(f.Logits(grid), field)[0]
    after = placed.places, placed.shares, placed.expand(f.Logits(grid), field)[0]
    for one, two in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", NOISES)
def test_noise_is_a_normalised_density(name):
    noise = NOISES[name]
    total, _ = scipy.integrate.quad(lambda r: np.exp(-noise.energy(np.array([r]))[0]), -60, 60, points=[0], limit=500)
    assert total == pytest.approx(1, abs=QUADRATURE)


def test_the_insensitive_error_is_flat_and_then_straight():
    """Figure 5, right; and Huber's, which is a parabola first."""
    noise = f.InsensitiveNoise(0.5, epsilon=1.0, rounding=1e-6)
    r = np.array([-3.0, -1.0, -0.3, 0.0, 0.9, 2.0])
    np.testing.assert_allclose(noise.energy(r) - noise.energy(0 * r), np.maximum(np.abs(r) - 1, 0) / 0.5, atol=1e-5)
    huber = f.HuberNoise(2.0, threshold=1.5)
    np.testing.assert_allclose(huber.expand(np.array([0.5, 2.9]))[1], np.array([0.5, 2.9]) / 4, atol=MACHINE)
    np.testing.assert_allclose(huber.expand(np.array([3.1, -50.0]))[1], [0.75, -0.75], atol=MACHINE)


@pytest.mark.parametrize(("name", "width"), [("two", 0.6), ("eleven", 1.8)])
def test_mixtures_of_means_are_flat_about_zero(name, width):
    """Figure 5, left and middle."""
    noise = NOISES[name]
    near, far = noise.energy(np.linspace(-width, width, 50)), noise.energy(np.array([width + 2.0]))
    assert np.ptp(near) < 0.1 * (far[0] - near.min())


def test_gaussian_noise_is_gaussian_data(double):
    grid = f.Grid(given=[LATTICE])
    field = np.random.default_rng(4).normal(size=7)
    one, two = f.NoisyData(X, Y, f.GaussianNoise(0.3)), f.GaussianData(X, Y, 0.3)
    energies = [float(data.prepared(grid).energy(f.Direct(grid), field)) for data in (one, two)]
    assert energies[0] == pytest.approx(energies[1], rel=MACHINE)


def test_a_vector_with_equal_components_is_as_many_regressions(double):
    likelihood, _, field, _ = look("vectors")
    alone = f.VectorData(X, np.asarray(likelihood.targets), np.diag([2.0, 1.0, 3.0]))
    grid = f.Grid(given=[LINE, f.Components(3)])
    parts = [f.NoisyData(X, alone.targets[:, k], f.GaussianNoise(1 / v)) for k, v in enumerate([2.0, 1.0, 3.0])]
    one = f.Grid(given=[LINE])
    total = sum(float(part.prepared(one).energy(f.Direct(one), field[:, k])) for k, part in enumerate(parts))
    assert float(alone.prepared(grid).energy(f.Direct(grid), field)) == pytest.approx(total, rel=MACHINE)


def test_f321_the_mixture_is_normalised_over_one_value(double):
    """(2 pi / beta)^(1/2) for each part, whatever their number; printed to the power of the number of parts."""
    grid = f.Grid(given=[LINE, f.Components(3)])
    field, beta = np.random.default_rng(5).normal(size=grid.shape), 2.5
    y = np.linspace(-30, 30, 60001)
    data = f.ClusterData(np.full(len(y), 1.0), y, 1 / beta, [0.5, 0.2, 0.3]).prepared(grid)
    density = np.exp(-np.asarray(data.row_energy(data.values(field))))
    assert np.sum(density) * (y[1] - y[0]) == pytest.approx(1, abs=QUADRATURE)
    raw = np.exp(-0.5 * beta * (y[:, None] - data.values(field)) ** 2) @ np.array([0.5, 0.2, 0.3])
    np.testing.assert_allclose(density, raw / np.sqrt(2 * np.pi / beta), rtol=ALGEBRA, atol=1e-300)
    assert (beta / (2 * np.pi)) ** 1.5 != pytest.approx(np.sqrt(2 * np.pi / beta), rel=0.5)


def test_one_cluster_more_of_no_share_changes_nothing(double):
    two, three = (f.Grid(given=[LINE, f.Components(k)]) for k in (2, 3))
    field = np.random.default_rng(6).normal(size=three.shape)
    fewer = f.ClusterData(X, Y, 0.4, [0.4, 0.6]).prepared(two).energy(f.Direct(two), field[:, :2])
    more = f.ClusterData(X, Y, 0.4, [0.4, 0.6 - 1e-15, 1e-15]).prepared(three).energy(f.Direct(three), field)
    assert float(more) == pytest.approx(float(fewer), abs=1e-5)


def test_f325_data_lower_the_energy_of_their_class(double):
    """Minus the logarithm of their probability; as printed the least energy would be at the wrong classes."""
    likelihood, _, field, turn = look("classes")
    P = np.asarray(jax.nn.softmax(likelihood.values(field), axis=1))
    expected = -np.sum(WEIGHTS * np.log(P[np.arange(9), np.arange(9) % 3]))
    assert float(turn(field.ravel(), field.ravel())[0][0]) == pytest.approx(expected, rel=MACHINE)


def test_classes_on_a_lattice_are_a_conditional_density(double):
    axis, labels = f.Axis(0, 3, points=7), np.arange(9) % 3
    grid = f.Grid(given=[axis], over=[f.Components(3)])
    field = np.random.default_rng(7).normal(size=grid.shape)
    one = f.ClassData(X, labels).prepared(grid).energy(f.Logits(grid), field)
    two = f.DensityData(np.stack([X, labels], axis=1)).prepared(grid).energy(f.Logits(grid), field)
    assert float(one) == pytest.approx(float(two), rel=MACHINE)
    pairs = f.Grid(given=[f.Components(2), axis], over=[f.Components(3)])
    apart = np.stack([field, 0 * field])
    both = f.ClassData(np.stack([X, X], axis=1), labels, sums=True).prepared(pairs).energy(f.Logits(pairs), apart)
    assert float(both) == pytest.approx(float(one), rel=MACHINE)


@pytest.mark.parametrize("grid", [f.Grid(over=[LATTICE]), f.Grid(given=[f.Axis(0, 3, points=4)], over=[LATTICE])])
def test_rows_without_blur_are_points(grid, double):
    rows = TWO[:, -len(grid.axes) :]
    field = grid.normalised(np.random.default_rng(8).normal(size=grid.shape))
    expected = float(f.DensityData(rows).prepared(grid).energy(f.LogDensity(grid), field))
    for data in (f.BlurredData(rows, 0.0), f.BinnedData.rounded(rows, 0.0), f.BinnedData(rows, rows)):
        assert float(data.prepared(grid).energy(f.LogDensity(grid), field)) == pytest.approx(expected, rel=ALGEBRA)


def test_a_bin_has_the_probability_of_its_cells(double):
    grid = f.Grid(over=[f.Axis(0.5, 9.5, points=10)])
    L = np.asarray(grid.normalised(np.random.default_rng(9).normal(size=10)))
    P = np.exp(L)
    data = f.BinnedData([0.0, 3.0, -np.inf, 2.25], [3.0, 10.0, np.inf, 2.5], [2.0, 1.0, 5.0, 1.0])
    expected = -(2 * np.log(P[:3].sum()) + np.log(P[3:].sum()) + 5 * np.log(1.0) + np.log(0.25 * P[2]))
    assert float(data.prepared(grid).energy(f.LogDensity(grid), L)) == pytest.approx(expected, rel=ALGEBRA)


def test_a_blur_convolves_the_density(double):
    axis = f.Axis(-8, 8, points=321)
    grid, wide = f.Grid(over=[axis]), 0.7
    L = np.asarray(grid.normalised(-0.5 * axis.coordinates**2))
    rows = np.array([-1.0, 0.3, 2.0])
    v = 1 + wide**2
    expected = np.sum(0.5 * rows**2 / v + 0.5 * np.log(2 * np.pi * v))
    found = f.BlurredData(rows, wide).prepared(grid).energy(f.LogDensity(grid), L)
    assert float(found) == pytest.approx(expected, abs=1e-9)


GRID, CLASSES = f.Grid(given=[LINE]), f.Grid(given=[LINE], over=[f.Components(3)])
BAD = {
    "class without examples": (lambda: f.ClassData(X, np.arange(9) % 2).prepared(CLASSES), "class 2 has none"),
    "class of no weight": (lambda: f.ClassData(X, np.arange(9) % 3, np.arange(9) % 3).prepared(CLASSES), "class 0 has"),
    "too many classes": (lambda: f.ClassData(X, np.arange(9) % 4).prepared(CLASSES), "must be below 3"),
    "half a class": (lambda: f.ClassData(X, np.arange(9) / 2), "whole numbers from 0"),
    "no rows": (lambda: f.NoisyData([], []), "at least one point"),
    "targets": (lambda: f.NoisyData(X, Y[:3]), "one entry for each of the 9 points"),
    "columns": (lambda: f.NoisyData(TWO, Y).prepared(GRID), "rows of 1 numbers"),
    "noise": (lambda: f.NoisyData(X, Y, 0.3), "`noise` must be a noise"),
    "scale": (lambda: f.LaplaceNoise(0.0), "`scale` must be positive"),
    "shares": (lambda: f.MixtureNoise([0, 1], 1.0, [0.5, 0.6]), "sum to 1"),
    "portions": (lambda: f.ClusterData(X, Y, 1.0, [0.5, 0.4]), "sum to 1"),
    "weights": (lambda: f.NoisyData(X, Y, weights=np.zeros(9)), "some of them positive"),
    "loss": (lambda: f.RiskData(X, Y, "hinge"), "`loss` must be a function"),
    "precision": (lambda: f.VectorData(X, TWO, -np.eye(2)), "positive definite"),
    "vector": (lambda: f.VectorData(X, TWO, np.eye(2)).prepared(f.Grid(given=[LINE, f.Components(3)])), "3 components"),
    "interval": (lambda: f.BinnedData([1.0], [0.0]), "`low` must not lie above `high`"),
    "outside": (lambda: f.BinnedData([8.0], [9.0]).prepared(f.Grid(over=[LATTICE])), "some of the grid"),
    "width": (lambda: f.BlurredData(X, -1.0), "`width` must not be negative|`width` must be"),
    "widths": (lambda: f.BlurredData(X, [1.0, 2.0]).prepared(f.Grid(over=[LATTICE])), "`width` must be one number"),
    "kernel": (lambda: f.KernelData(np.ones((2, 3))).prepared(f.Grid(over=[LATTICE])), "must have 7 columns"),
    "cumulative": (lambda: f.Cumulative(GRID), "give `over`"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    call, message = BAD[name]
    with pytest.raises(InputError, match=message):
        call()
