"""The estimators written out: a problem, `solve` and `laplace` give the same numbers."""

import numpy as np
import pytest

from quenched import fields as f
from quenched.estimators import FieldConditional, FieldDensity, FieldRegressor
from quenched.fields.practice.density import NEGLIGIBLE, TAIL
from tests.estimators.rows import growing, waves

SAME = 1e-8  # one minimum of a convex energy, from two starts


@pytest.mark.parametrize(("columns", "order"), [(1, 2), (1, 3), (2, 3)])
def test_a_density(columns, order):
    rows = np.random.default_rng(0).gamma(4.0, size=(300, columns))
    model = FieldDensity(order=order, points=24 if columns == 2 else None).fit(rows)
    ends = [axis[[0, -1]] for axis in np.atleast_2d(model.grid_)]
    axes = [f.Axis(a, b, points=model.density_.shape[0], tails=(TAIL * (b - a),) * 2) for a, b in ends]
    grid, fits, evidence = f.Grid(over=axes), [], []
    for strength in model.path_["strength"].tolist():
        problem = f.Problem(f.DensityData(rows), f.LogDensity(grid), f.Gaussian(strength * f.ThinPlate(grid, order)))
        fits.append(f.solve(problem, modes=True))
        evidence.append(f.laplace(problem, fits[-1], unit_information=True).log_evidence)
    np.testing.assert_allclose(evidence, model.path_["log_evidence"], atol=1e-6)
    share = np.exp(np.subtract(evidence, max(evidence)))
    share = np.where(share > NEGLIGIBLE * share.sum(), share, 0.0)
    L = np.tensordot(share / share.sum(), [fit.field for fit in fits], axes=1)
    np.testing.assert_allclose(L - np.log(np.sum(grid.weights * np.exp(L))), model.log_density_, atol=1e-7)


def test_a_function():
    x, y = waves(80)
    found = FieldRegressor().fit(x, y)
    model = FieldRegressor(order=found.order_, strength=found.strength_, noise=found.noise_).fit(x, y)
    grid = f.Grid(given=[f.Axis(*model.grid_[[0, -1]], points=200, tails=(0, 0))])
    prior = f.Gaussian(model.strength_ * f.ThinPlate(grid, model.order_))
    problem = f.Problem(f.GaussianData(x, y, model.noise_), f.Direct(grid), prior)
    fit = f.solve(problem, modes=True)
    posterior = f.laplace(problem, fit, unit_information=True)
    np.testing.assert_allclose(fit.field, model.mean_, atol=SAME)
    np.testing.assert_allclose(posterior.variance, model.variance_, rtol=1e-6)


def test_a_conditional_density():
    x, y = growing(200)
    model = FieldConditional(points=(12, 60), order=1).fit(x, y)
    centre, width, there = model._fitted.centre, model._fitted.width, model._fitted.grid
    left = (y - centre.at(x)) / np.sqrt(1 - centre.variance_at(x) / centre.noise)
    a, r = (f.Axis(axis.low, axis.high, points=axis.points, tails=axis.tails) for axis in there.axes)
    grid = f.Grid(given=[a], over=[r])
    data = f.DensityData(np.column_stack([x[:, 0], left / np.exp(width.at(x))]))
    P = 0.0
    for along, across, share in model.path_[["strength_x", "strength_y", "share"]].tolist():
        prior = f.Gaussian(along * f.ThinPlate(grid, 1, a) + across * f.ThinPlate(grid, 3, r))
        problem = f.Problem(data, f.Logits(grid), prior)
        P = P + share * f.solve(problem, modes=(12, 33)).density
    np.testing.assert_allclose(P, model._fitted.density, rtol=1e-6, atol=1e-9)
