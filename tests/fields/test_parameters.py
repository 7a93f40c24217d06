"""Parameterised fields: worked examples of chapter 4, each against another route, derivatives and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.neural_network import MLPRegressor
from sklearn.tree import DecisionTreeRegressor

from quenched import fields as f
from quenched.core.types import InputError
from tests.tolerances import EXACT, GRADIENT, SAME

X, Y = f.Axis(-1, 1, points=9), f.Axis(-1, 1, points=8)
PLANE = f.Grid(given=[X, Y])
A, B = np.meshgrid(X.coordinates, Y.coordinates, indexing="ij")
EVERYWHERE = np.stack([A.ravel(), B.ravel()], axis=1)
FREE = f.Gaussian(f.Mass(PLANE, 0.0))


def regression(values, prior=FREE, variance=1.0):
    return f.Problem(f.GaussianData(EVERYWHERE, np.ravel(values), variance), f.Direct(PLANE), prior)


def noisy(values, deviation=0.1, seed=0):
    return values + deviation * np.random.default_rng(seed).normal(size=values.shape)


def test_ritz_is_the_projected_solution():
    """A linear trial space: the projected stationarity equation (374), and no less energy than all fields."""
    basis = np.stack([A**i * B**j for i in range(3) for j in range(3)])
    prior = f.Gaussian(0.3 * f.Laplacian(PLANE) + f.Mass(PLANE, 0.1), mean=0.2)
    problem = regression(noisy(np.sin(3 * A) * B), prior)
    fit = f.solve(f.Parametrised(lambda c: jnp.tensordot(c, basis, 1), problem, np.zeros(9)))
    flat, K = basis.reshape(9, -1), PLANE.cell * prior.operator.matrix
    pull = np.asarray(problem.likelihood.targets) + K @ np.full(PLANE.size, 0.2)
    c = np.linalg.solve(flat @ (np.eye(PLANE.size) + K) @ flat.T, flat @ pull)
    assert fit.converged
    np.testing.assert_allclose(fit.parameters, c, atol=SAME)
    assert fit.energy > f.solve(problem).energy


def test_an_additive_model_is_the_sum_of_the_means_of_rows_and_columns():
    """On a complete table; with an interaction, of what is left of it by least squares."""
    values = noisy(np.exp(A) - B**2 + 0.5 * A * B)
    family = f.Parametrised(
        lambda xi: xi["x"][:, None] + xi["y"], regression(values), {"x": np.zeros(9), "y": np.zeros(8)}
    )
    fit = f.solve(family)
    means = values.mean(axis=1, keepdims=True) + values.mean(axis=0) - values.mean()
    np.testing.assert_allclose(fit.field, means, atol=EXACT)
    both = f.Parametrised(
        lambda xi: xi["x"][:, None] + xi["y"] + xi["xy"] * A * B,
        regression(values),
        {"x": np.zeros(9), "y": np.zeros(8), "xy": np.zeros(())},
    )
    left = values - means
    assert f.solve(both).parameters["xy"] == pytest.approx(np.sum(left * A * B) / np.sum((A * B) ** 2), abs=EXACT)


def test_a_product_is_the_first_singular_vector():
    values = noisy(np.cos(A) * (1 + B) + 0.3 * A * B)
    family = f.Parametrised(
        lambda xi: xi["x"][:, None] * xi["y"], regression(values), {"x": np.ones(9), "y": np.ones(8)}
    )
    fit = f.solve(family, start=[family.parameters, *family.draw(2)])
    U, s, V = np.linalg.svd(values)
    np.testing.assert_allclose(fit.field, s[0] * np.outer(U[:, 0], V[0]), atol=1e-7)
    assert len(fit.minima) == 1  # the second is a saddle


def test_a_mixture_of_gaussians_has_the_likelihood_of_scikit_learn():
    """On a fine grid, with a log-density of the field."""
    random = np.random.default_rng(3)
    rows = np.concatenate([random.normal(-1.5, 0.6, 150), random.normal(1.2, 0.9, 250)])
    axis = f.Axis(-6, 6, points=400)
    grid, x = f.Grid(over=[axis]), axis.coordinates

    def field(xi):
        part = -0.5 * ((x[:, None] - xi["mean"]) * jnp.exp(-xi["log_width"])) ** 2 - xi["log_width"]
        return jax.nn.logsumexp(part + jax.nn.log_softmax(xi["logit"]), axis=1)

    problem = f.Problem(f.DensityData(rows), f.LogDensity(grid), f.Gaussian(f.Mass(grid, 0.0)))
    first = {"mean": np.array([-1.0, 1.0]), "log_width": np.zeros(2), "logit": np.zeros(2)}
    fit = f.solve(f.Parametrised(field, problem, first))
    other = GaussianMixture(2, random_state=0, tol=1e-10, max_iter=2000).fit(rows[:, None])
    assert fit.converged
    assert -fit.energy / len(rows) == pytest.approx(other.score(rows[:, None]), abs=1e-3)  # rows at nearest points
    np.testing.assert_allclose(np.sort(fit.parameters["mean"]), np.sort(other.means_.ravel()), atol=5e-3)
    assert isinstance(fit, f.FittedDensity)


def test_a_tree_splits_where_scikit_learn_does():
    """Steps that are nearly sharp, from each threshold: a point that lies on the step is between the leaves."""
    values = noisy(np.where(A > 0.4, 2.0, -1.0) + 0.2 * B)

    def stump(xi):
        right = jax.nn.sigmoid((A - xi["at"]) / 0.02)
        return xi["leaf"][0] * (1 - right) + xi["leaf"][1] * right

    family = f.Parametrised(stump, regression(values), {"at": np.zeros(()), "leaf": np.zeros(2)})
    middles = (X.coordinates[1:] + X.coordinates[:-1]) / 2
    fit = f.solve(family, start=[{"at": at, "leaf": np.array([-0.5, 0.5])} for at in middles], tolerance=1e-8)
    tree = DecisionTreeRegressor(max_depth=1).fit(EVERYWHERE, values.ravel())
    assert abs(fit.parameters["at"] - tree.tree_.threshold[0]) < X.spacing
    away = np.abs(A - tree.tree_.threshold[0]) > X.spacing
    np.testing.assert_allclose(fit.field[away], tree.predict(EVERYWHERE).reshape(PLANE.shape)[away], atol=0.02)
    left = np.sum((values.ravel() - tree.predict(EVERYWHERE)) ** 2)  # sharp steps are a limit of those here
    assert np.sum((values - fit.field) ** 2) <= left
    assert fit.starts == len(middles)


def test_projection_pursuit_finds_the_best_direction():
    """One cubic of a projection: all angles by least squares, and the best of them."""
    values = noisy(np.tanh(2 * (0.8 * A + 0.6 * B)))

    def ridge(xi):
        return jnp.polyval(xi[1:], jnp.cos(xi[0]) * A + jnp.sin(xi[0]) * B)

    family = f.Parametrised(ridge, regression(values), np.array([0.0, 0.0, 0.0, 1.0, 0.0]))
    fit = f.solve(family, start=[family.parameters, np.array([2.0, 0.0, 0.0, 1.0, 0.0])])
    left = []
    for angle in np.linspace(0, np.pi, 721):
        powers = np.vander((np.cos(angle) * A + np.sin(angle) * B).ravel(), 4)
        left.append(np.sum((values.ravel() - powers @ np.linalg.lstsq(powers, values.ravel())[0]) ** 2))
    squares = np.sum((values - fit.field) ** 2)
    assert 0.9995 * min(left) < squares <= min(left)
    assert fit.parameters[0] % np.pi == pytest.approx(np.linspace(0, np.pi, 721)[np.argmin(left)], abs=0.005)


def network(xi):
    """Two inputs, three hidden units."""
    hidden = jnp.tanh(jnp.stack([A, B], axis=-1) @ xi["inner"] + xi["bias"])
    return hidden @ xi["outer"] + xi["level"]


def weights(xi):
    return 0.5 * 0.1 * (jnp.sum(xi["inner"] ** 2) + jnp.sum(xi["outer"] ** 2))


def test_a_network_ends_no_higher_than_scikit_learn():
    """From where MLPRegressor ends, whose loss is our energy over the number of rows; and from elsewhere."""
    values = noisy(np.sin(2 * A) * B)
    peer = MLPRegressor(
        hidden_layer_sizes=(3,), activation="tanh", solver="lbfgs", alpha=0.1, random_state=0, max_iter=5000, tol=1e-9
    )
    peer.fit(EVERYWHERE, values.ravel())
    first = {"inner": peer.coefs_[0], "bias": peer.intercepts_[0], "outer": peer.coefs_[1][:, 0],
             "level": peer.intercepts_[1][0]}  # fmt: skip
    family = f.Parametrised(network, regression(values), first, prior=weights)
    constant = 0.5 * PLANE.size * np.log(2 * np.pi)
    with jax.enable_x64(True):
        there = float(family.energy(family.parameters)) - constant
    assert there == pytest.approx(peer.loss_ * PLANE.size, rel=1e-6)
    fit = f.solve(family, start=[first, *family.draw(3)])
    assert fit.converged
    assert fit.energy - constant <= there
    assert fit.curvatures[0] > 0
    assert fit.minima == tuple(sorted(fit.minima))


def test_derivatives_agree_with_finite_differences():
    """Of a network with a prior about its weights and one about the field, that is not Gaussian."""
    from quenched.fields.learner.parameters import _Land

    prior = f.Potential(f.Gradient(PLANE), f.Cup(0.5, 0.4)) & f.Gaussian(f.Mass(PLANE, 0.1), mean=1.0)
    first = {"inner": np.ones((2, 3)), "bias": np.zeros(3), "outer": np.ones(3), "level": 0.0}
    family = f.Parametrised(network, regression(noisy(A * B), prior), first, prior=weights)
    with jax.enable_x64(True):
        land, random = _Land(family), np.random.default_rng(0)
        x, step = random.normal(size=land.size), 1e-5 * random.normal(size=land.size)
        energy, _, slope, at = land.look(x)
        above, below = land.look(x + step), land.look(x - step)
        assert energy == pytest.approx(float(family.energy(land.back(jnp.asarray(x)))), rel=SAME)
        assert (above[0] - below[0]) / 2 == pytest.approx(slope @ step, rel=GRADIENT)
        np.testing.assert_allclose((above[2] - below[2]) / 2, land.hessian(x, at) @ step, rtol=1e-5, atol=1e-9)


def test_priors_about_parameters_and_field_hold_together():
    """Both as Gaussians: one linear system (366)."""
    basis = np.stack([np.ones_like(A), A, B, A * B])
    about = f.Grid(given=[f.Axis(0, 3, points=4)])
    ridge = f.Gaussian(f.Mass(about, 2.0), mean=0.5)
    smooth = f.Gaussian(0.7 * f.Laplacian(PLANE))
    values = noisy(A - B)
    fit = f.solve(f.Parametrised(lambda c: jnp.tensordot(c, basis, 1), regression(values, smooth), np.zeros(4), ridge))
    flat, K = basis.reshape(4, -1), PLANE.cell * smooth.operator.matrix
    c = np.linalg.solve(flat @ (np.eye(72) + K) @ flat.T + 2 * np.eye(4), flat @ values.ravel() + 1.0)
    np.testing.assert_allclose(fit.parameters, c, atol=SAME)


def test_many_parameters_are_solved_without_their_curvature():
    """500 coefficients of a random basis, with a ridge: the same field as by linear algebra."""
    basis = np.random.default_rng(1).normal(size=(500, PLANE.size)) / 20
    values = noisy(np.sin(3 * A) + B)
    family = f.Parametrised(
        lambda c: (c @ basis).reshape(PLANE.shape), regression(values), np.zeros(500), lambda c: 0.5 * jnp.sum(c**2)
    )
    fit = f.solve(family, tolerance=1e-7)
    assert fit.converged
    C = basis.T @ basis
    np.testing.assert_allclose(fit.field.ravel(), C @ np.linalg.solve(C + np.eye(72), values.ravel()), atol=1e-6)


def bad_input():
    problem = regression(A)
    line = f.Parametrised(lambda xi: xi[0] * A, problem, np.zeros(1))
    about = f.Gaussian(f.Mass(f.Grid(given=[f.Axis(0, 3, points=4)])))
    return {
        "must be a function": lambda: f.Parametrised(3.0, problem, np.zeros(1)),
        "return fields of the shape": lambda: f.Parametrised(lambda xi: xi, problem, np.zeros(1)),
        "take the parameters": lambda: f.Parametrised(lambda xi: xi["w"] * A, problem, np.zeros(1)),
        "must be finite": lambda: f.Parametrised(lambda xi: xi[0] * A, problem, np.array([np.nan])),
        "tree of arrays": lambda: f.Parametrised(lambda xi: A, problem, None),
        "must have the shape": lambda: f.solve(line, start=np.zeros(2)),
        "shape of the parameters": lambda: f.Parametrised(lambda xi: xi[0] * A, problem, np.zeros(1), about),
        "must be Newton": lambda: f.solve(line, modes=3),
        "a finite energy": lambda: f.solve(
            f.Parametrised(lambda xi: jnp.log(xi[0]) * A, problem, np.ones(1)), start=np.array([-1.0])
        ),
    }


@pytest.mark.parametrize("sentence", bad_input())
def test_bad_input_is_refused_in_a_sentence(sentence):
    with pytest.raises(InputError, match=sentence):
        bad_input()[sentence]()
