"""Gaussian regression is exact: against brute-force Gaussians."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from quenched.core.types import InputError
from quenched.fields.learner.regression import regress
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Given
from quenched.fields.model.components import ClusterData, Components
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Direct, LogDensity
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass, ThinPlate
from quenched.fields.theory.laplace import laplace
from tests import tolerances


def line(high=20):
    axis = Axis(0, high, points=21)
    return Grid(given=[axis]), axis


def problem(*, high=20, strength=0.5, mass=0.2, variance=1.0):
    grid, axis = line(high)
    prior = Gaussian(strength * Laplacian(grid) + Mass(grid, mass), mean=0.1 * axis.coordinates)
    x = np.array([2, 5, 10, 10, 17]) * axis.spacing
    return Problem(GaussianData(x, [1, -0.5, 0.7, 1.3, 2], variance), Direct(grid), prior)


NOISE = np.array([0.5, 2.0, 1.0, 0.3, 0.7])


def joint(asked):
    """Prior mean and covariance of the function, places, targets and noise: everything a Gaussian needs."""
    K, data = asked.prior.operator, asked.likelihood
    C = np.linalg.inv(asked.grid.cell * K.matrix)
    noise = np.broadcast_to(data.variance, data.targets.shape)
    return asked.prior.mean, C, data.places, data.targets, noise


def test_the_check_values():
    found = regress(problem())
    np.testing.assert_allclose(found.mean[[0, 5, 10]], [0.1900006624, -0.0670058247, 0.9942824204], atol=5e-11)
    assert found.log_evidence == pytest.approx(-7.1459134497, abs=5e-11)
    assert found.proper


@pytest.mark.parametrize("high", [20, 1])
def test_the_posterior_is_the_conditional_gaussian_and_the_evidence_its_density(high):
    asked = problem(high=high, strength=0.02, variance=NOISE)
    t, C, places, y, noise = joint(asked)
    S = C[np.ix_(places, places)] + np.diag(noise)
    gain = C[:, places] @ np.linalg.inv(S)
    for data_space in (True, False):
        found = regress(asked, data_space=data_space)
        np.testing.assert_allclose(found.mean, t + gain @ (y - t[places]), atol=1e-10)
        np.testing.assert_allclose(found.covariance, C - gain @ C[places], atol=1e-10)
        assert found.log_evidence == pytest.approx(multivariate_normal.logpdf(y, t[places], S), abs=1e-9)
        new = multivariate_normal.logpdf(0.4, found.mean[7], found.variance[7] + 0.3)
        assert found.log_density([7 * high / 20], [0.4], 0.3)[0] == pytest.approx(new, abs=tolerances.MACHINE)


@pytest.mark.parametrize("data_space", [True, False])
def test_the_mean_is_the_field_of_least_energy(data_space):
    asked = problem(variance=NOISE)
    found = regress(asked, data_space=data_space)
    start = np.zeros(asked.grid.shape)  # the energy is quadratic: one Newton step from anywhere
    least = start - np.linalg.solve(asked.hessian(start), asked.gradient(start))
    np.testing.assert_allclose(found.mean, least, atol=tolerances.MACHINE)
    assert np.max(np.abs(asked.gradient(found.mean))) < tolerances.MACHINE
    assert found.energy == pytest.approx(asked.value(found.mean), rel=tolerances.MACHINE)
    assert found.kkt < tolerances.MACHINE / asked.grid.cell
    assert asked.value(found.mean) < min(asked.value(found.mean + 1e-3 * e) for e in np.eye(21))


def test_laplace_is_exact():
    asked = problem(variance=NOISE)
    exact = regress(asked)
    found = laplace(asked, exact.mean)
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-10)
    np.testing.assert_allclose(found.covariance, exact.covariance, atol=1e-11)
    assert found.proper
    low, high = found.band(0.9)
    np.testing.assert_allclose((high - low) / 2, 1.6448536269514722 * np.sqrt(exact.variance), rtol=1e-9)


def test_a_flat_direction_is_decided_by_the_data():
    """The limit of a vanishing mass; the evidence is then relative to the flat prior."""
    singular, tiny = problem(mass=0.0, high=10), 1e-7
    proper = problem(mass=tiny, high=10)
    found, limit = regress(singular), regress(proper)
    np.testing.assert_allclose(found.mean, limit.mean, atol=1e-5)
    width = 0.5 * np.log(2 * np.pi / (tiny * singular.grid.cell))
    assert found.log_evidence == pytest.approx(limit.log_evidence + width, abs=1e-5)
    approximate = laplace(singular, found.mean)
    assert approximate.log_evidence == pytest.approx(found.log_evidence, abs=1e-9)
    assert not found.proper
    assert not approximate.proper
    with pytest.raises(InputError, match="must be False here"):
        regress(singular, data_space=True)


def test_f318_the_predictive_variance_has_the_noise_not_its_inverse():
    asked = problem(variance=0.25)
    _, C, places, _, noise = joint(asked)
    both = np.append(places, 7)
    S = C[np.ix_(both, both)] + np.diag(np.append(noise, 0.25))  # the new value at point 7 is the last
    conditional = S[-1, -1] - S[-1, :-1] @ np.linalg.solve(S[:-1, :-1], S[:-1, -1])
    function = regress(asked).variance[7]
    assert function + 0.25 == pytest.approx(conditional, abs=1e-11)
    assert function + 1 / 0.25 > conditional + 3


def test_f486_the_evidence_of_repeated_inputs_is_not_that_of_their_means():
    """K~ = K_D - K_D K^-1 K_D; and (486), the density of the means, lacks the spread about them."""
    asked = problem(variance=0.5)
    t, C, places, y, _ = joint(asked)
    where, count = np.unique(places, return_counts=True)
    means = np.array([y[places == x].mean() for x in where])
    K_D = count / 0.5
    inverse = np.linalg.inv(np.diag(1 / K_D) + C[np.ix_(where, where)])
    posterior = regress(asked).covariance[np.ix_(where, where)]
    np.testing.assert_allclose(inverse, np.diag(K_D) - K_D[:, None] * posterior * K_D, atol=1e-10)
    assert np.max(np.abs(np.diag(K_D) + K_D[:, None] * posterior * K_D - inverse)) > 0.5
    of_means = multivariate_normal.logpdf(means, t[where], np.linalg.inv(inverse))
    spread = sum(np.sum((y[places == x] - m) ** 2) for x, m in zip(where, means, strict=True)) / 0.5
    rest = -0.5 * spread - 0.5 * (len(y) - len(where)) * np.log(2 * np.pi * 0.5) - 0.5 * np.sum(np.log(count))
    evidence = regress(asked).log_evidence
    assert evidence == pytest.approx(of_means + rest, abs=1e-10)
    assert abs(evidence - of_means) > 0.3


def test_an_energy_with_many_minima_is_solved_in_modes_in_a_few_steps():
    axis = Axis(0, 1, points=9)
    grid = Grid(given=[axis, Components(2)])
    rows, sides = np.linspace(0, 1, 12), np.arange(12) % 2
    data = ClusterData(rows, np.sin(3 * rows) * (2 * sides - 1) + 0.1 * np.cos(40 * rows), 0.05)
    prior = Gaussian(0.1 * ThinPlate(grid, 2, axis))
    fit = solve(Problem(data, Direct(grid), prior), modes=(9, 2), start=Given(np.tile([-0.5, 0.5], (9, 1))))
    assert fit.converged
    assert len(fit.steps) < 12
    assert np.max(np.abs(fit.problem.expand(fit.field).slope)) < tolerances.SAME


def test_what_cannot_be_solved_is_refused():
    grid, _ = line()
    two = Grid(given=[Axis(0, 1, points=3)], over=[Axis(0, 1, points=3)])
    only = Problem(GaussianData([(0, 0)], [1.0]), Direct(two), Gaussian(Laplacian(two, two.given[0])))
    with pytest.raises(InputError, match="more than the data see"):
        regress(only)
    other = Grid(given=[Axis(0, 1, points=5)])
    fit = solve(Problem(GaussianData([0.5], [1.0], 0.1), Direct(other), Gaussian(Mass(other))), modes=True)
    with pytest.raises(InputError, match="another grid"):
        laplace(only, fit)
    over = Grid(over=line()[0].axes)
    with pytest.raises(InputError, match="must be a regression"):
        regress(Problem(DensityData([3.0]), LogDensity(over), Gaussian(Laplacian(over))))
    with pytest.raises(InputError, match="outside"):
        Problem(GaussianData([21.0], [1.0]), Direct(grid), Gaussian(Laplacian(grid)))
