"""Classes as fields, and energies that are no likelihoods, solved: beside another library, and by their equations."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from quenched import fields as f

VARIANCE, LENGTH = 4.0, 0.5


def classes(n=40, seed=0):
    """Two classes at points of a lattice."""
    rng = np.random.default_rng(seed)
    axis = f.Axis(-2, 2, points=21)
    x = rng.choice(axis.coordinates, n)
    return axis, x, (rng.uniform(size=n) < expit(2 * np.sin(2 * x))).astype(int)


def test_probabilities_are_those_of_a_gaussian_process_classifier():
    """Log-odds of a Gaussian process are differences of two fields, each with half of its variance."""
    axis, x, k = classes()
    grid = f.Grid(given=[axis], over=[f.Components(2)])
    y = axis.coordinates
    kernel = VARIANCE / 2 * np.exp(-0.5 * ((y[:, None] - y) / LENGTH) ** 2) + 1e-3 * np.eye(21)
    inverse = np.linalg.inv(kernel) / grid.cell
    K = f.Dense(grid, np.kron((inverse + inverse.T) / 2, np.eye(2)))
    problem = f.Problem(f.ClassData(x, k), f.Logits(grid), f.Gaussian(K))
    fit = f.solve(problem)
    assert fit.converged
    found = f.laplace(problem, fit)
    odds = fit.field[:, 1] - fit.field[:, 0]
    unlike = np.kron(np.eye(21), [[-1.0, 1.0]])
    spread = np.sqrt(np.diag(unlike @ found.covariance @ unlike.T))
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    ours = expit(odds[:, None] + spread[:, None] * points) @ weights / weights.sum()
    process = GaussianProcessClassifier(ConstantKernel(VARIANCE) * RBF(LENGTH), optimizer=None).fit(x[:, None], k)
    np.testing.assert_allclose(ours, process.predict_proba(y[:, None])[:, 1], atol=0.02)


def softplus(side, value):
    return jnp.logaddexp(0.0, 1 - side * value)


@pytest.mark.parametrize("loss", ["risk", "huber"])
def test_f296_the_solution_is_made_of_the_slopes_at_the_rows(loss):
    """K (h - t) = a with a = -g'(h) at the rows, and nothing elsewhere; printed without the minus."""
    axis, x, k = classes()
    grid, side = f.Grid(given=[axis]), 2.0 * k - 1
    data = f.RiskData(x, side, softplus) if loss == "risk" else f.NoisyData(x, side, f.HuberNoise(0.3))
    prior = f.Gaussian(0.5 * f.Difference(grid, axis, 2), mean=0.3 * axis.coordinates)
    problem = f.Problem(data, f.Direct(grid), prior)
    fit = f.solve(problem)
    assert fit.converged
    _, slope, _ = problem.likelihood.expand(problem.link, fit.field)
    pulled = grid.cell * np.asarray(prior.operator.apply(fit.field - prior.mean))
    np.testing.assert_allclose(pulled, -slope, atol=1e-7)
    assert np.max(np.abs(slope)) > 0.1
    null = prior.operator.null_space()
    inverse = prior.operator.solve(-slope / grid.cell)
    rest = fit.field - prior.mean - inverse  # a straight line
    np.testing.assert_allclose(rest - null.T @ (null @ rest), 0, atol=1e-6)


@pytest.mark.parametrize("away", [0.0, 1.0, 10.0])
def test_rows_on_the_straight_sides_of_a_loss_are_solved(away):
    """There the data have no curvature, and straight lines none in the prior: the Hessian is singular at the start."""
    rng, axis = np.random.default_rng(0), f.Axis(-2, 2, points=9)
    x, y = rng.choice(axis.coordinates, 9), np.sign(rng.normal(size=9)) + away
    grid = f.Grid(given=[axis])
    prior = f.Gaussian(0.5 * f.Difference(grid, axis, 2), mean=0.3 * axis.coordinates)
    problem = f.Problem(f.NoisyData(x, y, f.HuberNoise(0.3)), f.Direct(grid), prior)
    fit = f.solve(problem)
    assert fit.converged
    assert np.max(np.abs(problem.expand(fit.field).slope)) < 1e-6
