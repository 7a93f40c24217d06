"""Further links: constraints, derivatives, the printed Hessian of an unnormalised density, and the check of links."""

import numpy as np
import pytest

from quenched import fields as f
from quenched.core.types import InputError
from quenched.fields.model.likelihoods import DensityData
from tests.fields.meshes import small
from tests.programs import compiled
from tests.tolerances import ALGEBRA, GRADIENT, MACHINE

NEW = {
    "unnormalised": f.Unnormalised,
    "distribution": f.Distribution,
    "bounded": lambda grid: f.Bounded(grid, most=0.5),
    "logits": f.Logits,
}
GRIDS = {
    "lattice": f.Grid(given=[f.Axis(0, 1, points=2)], over=[f.Axis(0, 3, points=5, ends=f.Periodic())]),
    "hats": f.Grid(over=[f.Axis(0, 2, points=5, tails=(0.2, 0.0))]),
    "plane": f.Grid(over=[f.Axis(0, 2, points=3), f.Axis(0, 3, points=4)]),
}


def problem_of(link, seed=0):
    """Data, a prior with a template, and a field to look at."""
    grid, rng = link.grid, np.random.default_rng(seed)
    K = f.Mass(grid, 0.3) + 0.1 * f.Laplacian(grid)
    counts = rng.integers(0, 4, grid.shape).astype(float)
    problem = f.Problem(DensityData(None, None, counts), link, f.Gaussian(K, mean=rng.uniform(0.2, 1, grid.shape)))
    return problem, rng.uniform(0.5, 1.5, grid.shape)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("unnormalised", "hats"),
        ("distribution", "plane"),
        ("bounded", "lattice"),
        ("bounded", "hats"),
        ("logits", "plane"),
    ],
)
def test_every_link_passes_the_check(name, place):
    assert f.check_link(NEW[name](GRIDS[place])).to_array().max() < GRADIENT


@pytest.mark.parametrize("name", NEW)
def test_derivatives_are_those_of_finite_differences(name, double):
    problem, field = problem_of(NEW[name](GRIDS["lattice"]))
    gradient, hessian = problem.gradient(field).ravel(), problem.hessian(field)
    step = 1e-5 * np.eye(field.size).reshape(-1, *field.shape)
    ups, downs = (np.array([problem.value(field + s * one) for one in step]) for s in (1, -1))
    np.testing.assert_allclose(gradient, (ups - downs) / 2e-5, rtol=GRADIENT, atol=GRADIENT)
    slopes = [(problem.gradient(field + one) - problem.gradient(field - one)).ravel() / 2e-5 for one in step]
    np.testing.assert_allclose(hessian, np.array(slopes), rtol=GRADIENT, atol=10 * GRADIENT)


def test_the_hessian_of_an_unnormalised_density_is_the_printed_one(double):
    """Eqs. (179) and (183), per volume; and (184), which is the same written out."""
    problem, _ = small(f.Unnormalised)
    grid = problem.grid
    z = np.random.default_rng(3).uniform(0.5, 1.5, grid.shape)
    Z = np.broadcast_to((z * grid.weights).sum(axis=1, keepdims=True), grid.shape).ravel()
    prior = problem.prior
    p, N = z.ravel() / Z, np.asarray(problem.likelihood.counts).ravel() / grid.cell
    K, mean = prior.operator.matrix, np.asarray(prior.mean).ravel()
    unit, spread = np.eye(grid.size), np.kron(np.eye(3), np.ones((5, 5))) * grid.spacing  # I_X
    G = N / p - K @ (p - mean)
    left = (unit - spread @ np.diag(p)) / Z[:, None]  # I - I_X P, over Z
    np.testing.assert_allclose(-problem.gradient(z).ravel() / grid.cell, left @ G, rtol=1e-9, atol=1e-9)
    multiplier = spread @ (p * G)
    middle = left @ (-K - np.diag(N / p**2)) @ left.T
    rest = spread * ((G - multiplier)[:, None] + (G - multiplier)[None, :]) / np.outer(Z, Z)
    printed = middle - rest
    found = -problem.hessian(z) / grid.cell
    np.testing.assert_allclose(found, printed, rtol=1e-8, atol=1e-8)


def test_the_zero_mode_of_an_unnormalised_density_is_there_only_at_a_minimum(double):
    """By Euler's theorem H z = -G elsewhere; the text after eq. (184) claims it everywhere."""
    problem, _ = small(f.Unnormalised)
    z = np.random.default_rng(4).uniform(0.5, 1.5, problem.grid.shape)
    first = np.zeros_like(z)
    first[0] = z[0]
    along = problem.hessian(z) @ first.ravel()
    expected = np.zeros_like(z)
    expected[0] = -problem.gradient(z)[0]
    np.testing.assert_allclose(along, expected.ravel(), atol=ALGEBRA)
    assert np.max(np.abs(along)) > 0.1


def test_a_distribution_is_monotone_and_ends_at_one(double):
    for place in ("lattice", "hats"):
        link = f.Distribution(GRIDS[place])
        P = np.random.default_rng(0).uniform(0.1, 1, link.grid.shape)
        total = link.distribution(P)
        assert np.all(np.diff(total, axis=-1) > 0)
        np.testing.assert_allclose(total[..., -1], 1, atol=MACHINE)


def test_a_prior_on_the_distribution_is_one_on_the_density(double):
    """R^T K R, as the text after eq. (204) says."""
    grid = f.Grid(over=[f.Axis(0, 3, points=6)])
    K = f.Laplacian(grid) + f.Mass(grid, 0.2)
    R = np.tril(np.ones((6, 6))) * grid.spacing
    P = np.random.default_rng(1).uniform(0.1, 1, 6)
    P = P / (P.sum() * grid.spacing)
    one = f.Problem(f.DensityData([0.6]), f.Distribution(grid), f.Gaussian(K))
    two = f.Problem(f.DensityData([0.6]), f.Density(grid), f.Gaussian(f.Dense(grid, R.T @ K.matrix @ R)))
    assert one.value(P) == pytest.approx(two.value(P), rel=MACHINE)


def test_a_bounded_density_stays_below_its_bound(double):
    link = f.Bounded(GRIDS["plane"], most=-0.5)
    log_density = compiled(lambda field: link.log_density(link.project(field)))
    for seed in range(5):
        L = np.asarray(log_density(10.0 ** np.random.default_rng(seed).uniform(-3, 3, link.grid.shape)))
        assert L.max() <= -0.5
        assert link.grid.integrate(np.exp(L)).item() == pytest.approx(1, abs=ALGEBRA)


def test_logits_have_the_densities_of_shifted_fields_and_another_prior(double):
    grid = GRIDS["lattice"]
    field = np.random.default_rng(0).normal(size=grid.shape)
    np.testing.assert_allclose(f.Logits(grid).density(field), f.Shifted(grid).density(field), atol=MACHINE)
    assert np.array_equal(f.Logits(grid).argument(field), field)
    assert np.max(np.abs(np.asarray(f.Shifted(grid).argument(field)) - field)) > 0.1


class Scaled(f.LogDensity):
    """Of twice the log-density, and wrong in one place or another."""

    wrong: str = ""

    def project(self, field):
        return field if self.wrong == "norm" else 2 * self.grid.normalised(field / 2)

    def log_density(self, field):
        return field / 2

    def field(self, log_density):
        return log_density if self.wrong == "inverse" else 2 * log_density


def test_a_link_of_ones_own_is_checked(double):
    grid = GRIDS["lattice"]
    assert f.check_link(Scaled(grid)).to_array().max() < GRADIENT
    with pytest.raises(InputError, match="`project` keeps the integral"):
        f.check_link(Scaled(grid, "norm"))
    with pytest.raises(InputError, match="`log_density` inverts `field`"):
        f.check_link(Scaled(grid, "inverse"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: f.Bounded(GRIDS["plane"], most=-5.0), "`most` must be above"),
        (lambda: f.check_link(f.Direct(GRIDS["plane"])), "`link` must be that of a density"),
        (lambda: f.check_link("LogDensity"), "`link` must be a link"),
        (lambda: f.Logits(f.Grid(given=[f.Axis(0, 1, points=3)])), "normalised over at least one axis"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
