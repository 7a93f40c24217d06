"""Densities of several columns: modes of a plate by axes, and three columns."""

import time

import numpy as np
import pytest
from scipy import integrate, stats

from quenched import fields
from quenched.core.types import Outcome
from quenched.estimators import FieldDensity
from quenched.fields.model.expansion import ShareCurvature
from quenched.fields.model.modes import Modes, PlateModes
from quenched.fields.theory.laplace import laplace
from tests import tolerances

SHIFT, SPREAD = np.array([0.5, -1.0, 2.0]), np.array([[1.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
TRUTH = stats.multivariate_normal(SHIFT, SPREAD)
SECONDS = 20.0  # of the processor, ten times what it takes


def plate(points):
    grid = fields.Grid(over=[fields.Axis(0, 1 + i, points=n, tails=(0.02, 0.02)) for i, n in enumerate(points)])
    return grid, fields.ThinPlate(grid, 3)


@pytest.mark.parametrize("points", [(20, 24), (10, 9, 12)])
def test_modes_of_a_plate_by_axes_are_those_on_the_points(points):
    grid, operator = plate(points)
    ours = operator.modes().without_constant().first(1, 60)
    assert isinstance(ours, PlateModes)
    theirs = Modes(grid, ours.values, ours.given, ours.over)
    draw = np.random.default_rng(0)
    c, field, p = draw.normal(size=60), draw.normal(size=grid.shape), draw.random((1, grid.size))
    close = {"atol": 100 * tolerances.MACHINE}
    np.testing.assert_allclose(ours.over.T @ ours.over, np.eye(60), **close)
    np.testing.assert_allclose(ours.field(c), theirs.field(c), **close)
    np.testing.assert_allclose(ours.coefficients(field), theirs.coefficients(field), **close)
    bends = ShareCurvature(np.array([7.0]), p / p.sum())
    np.testing.assert_allclose(bends.project(ours), bends.project(theirs), **close)
    R = draw.normal(size=(5, 60))
    np.testing.assert_allclose(ours.diagonal(R), np.sum((R @ ours.over.T) ** 2, axis=0).reshape(grid.shape), **close)


def test_the_variance_from_products_is_that_from_the_points():
    grid, operator = plate((20, 24))
    rows = np.random.default_rng(0).normal([0.5, 1.0], 0.15, (80, 2))
    problem = fields.Problem(fields.DensityData(rows), fields.LogDensity(grid), fields.Gaussian(1e-4 * operator))
    posterior = laplace(problem, fields.solve(problem, modes=True))
    p = grid.weights * np.exp(posterior.field)
    roots = posterior.roots - (posterior.roots @ p.ravel() / p.sum())[:, None]
    found = posterior.log_density_variance()
    np.testing.assert_allclose(found, np.sum(roots**2, axis=0).reshape(grid.shape), rtol=1e-8)


@pytest.fixture(scope="module")
def space():
    X = TRUTH.rvs(1900, random_state=0)
    begin = time.process_time()
    model = FieldDensity().fit(X)
    return X, model, time.process_time() - begin


def test_a_density_in_space_is_normalised_and_quick(space):
    _, model, seconds = space
    assert (model.outcome_, model.density_.shape) == (Outcome.converged, (48, 48, 48))
    total = model.density_
    for axis in reversed(model.grid_):
        total = integrate.trapezoid(total, axis)
    assert 1 - 1e-3 < total < 1  # the tails hold the rest
    far = model.score_samples([[1e4, 0.0, 0.0], [0.0, 0.0, -1e4]])
    assert np.all(np.isfinite(far))
    assert seconds < SECONDS


def test_samples_and_scores_in_space(space):
    X, model, _ = space
    rows = model.sample(20_000, random_state=1)
    np.testing.assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(np.cov(rows.T), np.cov(X.T), atol=0.08)
    new = TRUTH.rvs(4000, random_state=1)
    lost = np.mean(TRUTH.logpdf(new)) - model.score(new)
    kernel = np.mean(TRUTH.logpdf(new)) - np.mean(stats.gaussian_kde(X.T).logpdf(new.T))
    assert 0 < lost < 0.3 * kernel
    assert model.pdf(new.reshape(2, -1, 3)).shape == (2, 2000)


def test_the_band_in_space_covers_as_often_as_it_says():
    at, covered = TRUTH.rvs(1000, random_state=2), []
    for seed in range(8):  # a strength at which nine numbers are learned, so that a fit takes no time
        model = FieldDensity(order=3, strength=1e4).fit(TRUTH.rvs(1000, random_state=10 + seed))
        low, high = model.credible_band(at)
        covered.append(np.mean((low < TRUTH.pdf(at)) & (TRUTH.pdf(at) < high)))
    assert 0.82 < np.mean(covered) < 0.97


def test_two_clouds_in_space_are_two():
    draw = np.random.default_rng(0)
    X = np.concatenate([draw.normal(-1.5, 0.6, (300, 3)), draw.normal(1.5, 0.6, (300, 3))])
    model = FieldDensity(order=3).fit(X)
    assert model.pdf([0.0, 0.0, 0.0]) < 0.1 * model.pdf([[1.5] * 3, [-1.5] * 3]).min()
