"""Stationarity equations and Hessians, Laplace's approximation, decisions and information."""

import jax
import numpy as np
import pytest

from quenched.core.types import InputError
from quenched.fields.learner.solving import solve
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Density, Direct, LogDensity, Shifted, SquareRoot
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Difference, Mass
from quenched.fields.theory import decisions
from quenched.fields.theory.laplace import laplace
from quenched.papers.lemm1999 import information
from quenched.papers.lemm1999.stationarity import curvature, descent, hessian, multiplier, over, over_matrix
from tests.fields.meshes import LINE, LINKS, small, two_points

STEP = 2e-4
"""Of differences of fourth order: their error is about 1e-9 of entries up to 100."""


def differences(function, field):
    """Derivatives of a function of a field by its components, which come last."""
    columns = []
    for e in np.eye(field.size).reshape(-1, *field.shape):
        near, far = (function(field + k * STEP * e) - function(field - k * STEP * e) for k in (1, 2))
        columns.append((8 * near - far) / (12 * STEP))
    return np.stack([np.asarray(c) for c in columns], axis=-1)


@pytest.mark.parametrize("link", LINKS)
def test_the_written_descent_field_is_the_derivative_of_the_energy(link):
    """Of the energy along the constraint, by finite differences and by automatic ones."""
    problem, field = small(link)
    slow = differences(problem.value, field).reshape(field.shape)
    np.testing.assert_allclose(problem.gradient(field), slow, atol=1e-8)
    np.testing.assert_allclose(-problem.grid.cell * descent(problem, field), problem.gradient(field), atol=1e-11)


@pytest.mark.parametrize("link", LINKS)
def test_hessians_are_the_derivatives_of_gradients(link):
    problem, field = small(link)
    H = problem.hessian(field)
    slow = differences(lambda f: problem.gradient(f).ravel(), field)
    np.testing.assert_allclose(H, slow, atol=1e-7)
    if link in (LogDensity, Shifted):
        np.testing.assert_allclose(hessian(problem, field), H / problem.grid.cell, atol=1e-10)


def fixed(link, problem, field):
    """The descent field of an unconstrained field at the multiplier of a given one."""
    N, prior = problem.likelihood.counts / problem.grid.cell, problem.prior
    Lambda = multiplier(problem, field)

    def G(phi):
        push = prior.operator.apply(phi - prior.mean)
        if link is Density:
            return (N / phi - push - Lambda).ravel()
        if link is SquareRoot:
            return (2 * N / phi - push - 2 * phi * Lambda).ravel()
        return (N - push - np.exp(phi) * Lambda).ravel()

    return G


@pytest.mark.parametrize("link", [LogDensity, Density, SquareRoot])
def test_curvatures_are_derivatives_at_a_fixed_multiplier(link):
    problem, field = small(link)
    np.testing.assert_allclose(curvature(problem, field), -differences(fixed(link, problem, field), field), atol=1e-7)


def test_shifts_of_g_are_exact_zero_modes():
    problem, field = small(Shifted)
    H = hessian(problem, field)
    shifts = np.kron(np.eye(3), np.ones(5))
    np.testing.assert_allclose(H @ shifts.T, 0, atol=1e-12)
    np.testing.assert_allclose(over_matrix(problem.grid) @ field.ravel(), np.repeat(over(problem.grid, field), 5))


def test_f170_the_printed_sign_is_not_the_derivative():
    """T_P has + I_X P K P; also in (620) and (705)."""
    problem, P = small(Density)
    slow = -differences(problem.value, P).reshape(P.shape) / problem.grid.cell
    N, grid = problem.likelihood.counts / problem.grid.cell, problem.grid
    push = problem.prior.operator.apply(P - problem.prior.mean)
    right = N / P - over(grid, N) + over(grid, P * push) - push
    printed = N / P - over(grid, N) - over(grid, P * push) - push
    np.testing.assert_allclose(right, slow, atol=1e-7)
    assert np.max(np.abs(printed - slow)) > 0.1


def test_f198_the_multiplier_goes_with_the_square():
    """K phi = -2 phi Lambda, eq. (199), follows from (Lambda, phi^2) and not from (Lambda, phi)."""
    problem, phi = small(SquareRoot)
    slow = -differences(problem.value, phi).reshape(phi.shape) / problem.grid.cell
    N, Lambda = problem.likelihood.counts / problem.grid.cell, multiplier(problem, phi)
    push = problem.prior.operator.apply(phi - problem.prior.mean)
    np.testing.assert_allclose(2 * N / phi - push - 2 * phi * Lambda, slow, atol=1e-7)
    assert np.max(np.abs(2 * N / phi - push - Lambda - slow)) > 0.1


def test_f106_the_energy_has_one_half_once():
    """With another 1/2 in the scalar product the derivative would be K L / 2."""
    problem, L = small(LogDensity)
    with jax.enable_x64(True):
        slow = differences(lambda f: float(problem.prior.energy(f)), L).reshape(L.shape) / problem.grid.cell
    np.testing.assert_allclose(problem.prior.operator.apply(L - problem.prior.mean), slow, atol=1e-7)


def test_stationarity_is_for_densities_only():
    grid = Grid(given=[Axis(0, 1, points=3)])
    regression = Problem(GaussianData([0.5], [1.0]), Direct(grid), Gaussian(Mass(grid)))
    with pytest.raises(InputError, match="it is a regression"):
        descent(regression, np.zeros(3))
    with pytest.raises(InputError, match="LogDensity or Shifted"):
        hessian(small(Density)[0], small(Density)[1])


def test_laplace_of_many_data_is_the_multinomial():
    """Without a prior to speak of, the logarithm of a frequency p has the variance (1 - p)/(n p)."""
    grid = LINE
    counts = 1e4 * np.array([4, 1, 3, 2, 1, 1, 5, 3, 2, 1, 1, 2])
    data = DensityData(grid.axes[0].coordinates, weights=counts)
    problem = Problem(data, LogDensity(grid), Gaussian(Mass(grid, 1e-9)))
    fit = solve(problem)
    p = counts / counts.sum()
    np.testing.assert_allclose(fit.density * grid.spacing, p, atol=1e-9)
    found = laplace(problem, fit.field)
    np.testing.assert_allclose(found.log_density_variance(), (1 - p) / counts, rtol=1e-6)
    low, high = found.band()
    np.testing.assert_allclose(np.log(high / low), 2 * 1.6448536269514722 * np.sqrt((1 - p) / counts), rtol=1e-6)


def test_laplace_does_not_depend_on_the_name_of_the_field():
    """L and g are the same model; a prior is proper if the data decide nothing it leaves open."""
    found = []
    for link in (LogDensity, Shifted):
        problem, _ = small(link)
        found.append(laplace(problem, solve(problem).field))
    assert found[0].log_evidence == pytest.approx(found[1].log_evidence, abs=1e-8)
    np.testing.assert_allclose(found[0].log_density_variance(), found[1].log_density_variance(), rtol=1e-7)
    assert found[0].proper
    bent = Problem(DensityData([0.2, 0.5, 0.6]), LogDensity(LINE), Gaussian(0.1 * Difference(LINE, LINE.over[0], 3)))
    assert not laplace(bent, solve(bent).field).proper


def test_laplace_refuses_what_is_no_minimum():
    problem = two_points(LogDensity, 0.01, 3)
    with pytest.raises(InputError, match="must be a minimum"):
        laplace(problem, 5 * np.random.default_rng(0).normal(size=problem.grid.shape))
    bounded = two_points(Density, 1.0)
    with pytest.raises(InputError, match="use LogDensity"):
        laplace(bounded, np.full(bounded.grid.shape, 1 / 15))


def predictive():
    axis = Axis(0, 6, points=25)
    grid = Grid(given=[Axis(0, 1, points=3)], over=[axis])
    P = np.random.default_rng(5).gamma(1.0, size=grid.shape)
    return grid, P / (P.sum(axis=1, keepdims=True) * grid.spacing)


@pytest.mark.parametrize("loss", [decisions.SquaredLoss(), decisions.AbsoluteLoss(), decisions.ZeroOneLoss()])
def test_no_other_action_has_less_risk(loss):
    grid, P = predictive()
    best = loss.action(grid, P)
    least = loss.risk(grid, P, best)
    for other in np.linspace(0, 6, 97):
        assert np.all(loss.risk(grid, P, np.full(3, other)) >= least - 1e-12)


def test_the_density_itself_has_the_least_log_loss():
    grid, P = predictive()
    loss, rng = decisions.LogLoss(), np.random.default_rng(6)
    least = loss.risk(grid, P, loss.action(grid, P))
    for _ in range(20):
        other = P * np.exp(0.3 * rng.normal(size=P.shape))
        other = other / (other.sum(axis=1, keepdims=True) * grid.spacing)
        assert np.all(loss.risk(grid, P, other) > least)
    with pytest.raises(InputError, match="normalised"):
        loss.risk(grid, P, 2 * P)  # a larger one would seem better
    with pytest.raises(InputError, match="one axis that is normalised over"):
        loss.action(Grid(given=[grid.over[0]]), P[0])


def test_f48_the_risk_is_the_distance_from_the_truth_with_the_logarithm():
    grid, P = predictive()
    other = np.full_like(P, 1 / (25 * grid.spacing))
    distance = np.sum(P * np.log(P / other), axis=1) * grid.spacing
    cross = decisions.LogLoss().risk(grid, P, other)
    np.testing.assert_allclose(cross + np.sum(P * np.log(P), axis=1) * grid.spacing, distance)
    assert np.max(np.abs(cross + np.sum(P * P, axis=1) * grid.spacing - distance)) > 0.1


def test_f63_with_the_printed_sign_the_mode_is_the_worst():
    grid, P = predictive()
    risks = np.array([decisions.ZeroOneLoss().risk(grid, P, np.full(3, a)) for a in grid.over[0].coordinates])
    mode = np.argmax(P, axis=1)
    np.testing.assert_array_equal(np.argmin(risks, axis=0), mode)
    np.testing.assert_array_equal(np.argmax(-risks, axis=0), mode)  # -risk is what (63) prints


def distance_from_independence(p, sigma, reach=12.0, points=601):
    """The mutual information by its definition, eq. (32), in plain sums."""
    y = np.linspace(-reach, reach, points)
    one = np.exp(-((y - np.array(information.FOUR)[..., None]) ** 2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)
    joint = np.einsum("l,la,lb->ab", p, one[:, 0], one[:, 1])
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0)) * (y[1] - y[0]) ** 2
    return np.sum(joint * np.log(joint / apart)) * (y[1] - y[0]) ** 2, joint, y[1] - y[0]


def test_f29_f33_entropies_give_the_mutual_information():
    p = np.array([0.5, 0, 0, 0.5])
    found = information.mutual_information(p)
    assert found == pytest.approx(0.17358950, abs=5e-9)
    direct, joint, cell = distance_from_independence(p, 1.0)
    assert found == pytest.approx(direct, abs=1e-10)
    alone = joint.sum(axis=1) * cell
    H, H_1 = -np.sum(joint * np.log(joint)) * cell**2, -np.sum(alone * np.log(alone)) * cell
    assert found == pytest.approx(2 * H_1 - H, abs=1e-10)  # the sum of both, not an integral over y
    with np.errstate(invalid="ignore"):
        assert not np.isclose(-np.log(-H), H)  # as (29) prints it: the logarithm of a negative sum


def test_information_is_zero_for_factorial_states_and_decays():
    factorial = np.outer([0.3, 0.7], [0.8, 0.2]).ravel()
    assert information.mutual_information(factorial) == pytest.approx(0, abs=1e-12)
    assert information.mutual_information([0, 1, 0, 0]) == pytest.approx(0, abs=1e-12)
    decay = information.learning_decay([0.5, 0, 0, 0.5], 0, examples=30, key=jax.random.key(0))
    assert float(decay.information[0]) == pytest.approx(0.17358950, abs=5e-9)
    assert float(decay.information[-1]) < 1e-6
    np.testing.assert_allclose(decay.probability.sum("state"), 1)
    stays = information.learning_decay([0.25] * 4, 0, examples=10, key=jax.random.key(0))
    assert np.max(np.abs(stays.information)) < 1e-12


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0.5, 0.5], {}), "row of two numbers"),
        (([0.5, 0.1, 0.1, 0.1], {}), "sum to 1"),
        (([0.25] * 4, {"sigma": 0.0}), "positive"),
        (([0.25] * 4, {"sigma": 1e-4}), "at least 1/200"),
        (([0.25] * 4, {"means": np.full((4, 2), np.nan)}), "finite"),
    ],
)
def test_states_that_are_none_are_refused(arguments, sentence):
    given, options = arguments
    with pytest.raises(InputError, match=sentence):
        information.mutual_information(given, **options)


def test_a_truth_that_is_no_state_is_refused():
    with pytest.raises(InputError, match="one of the 4 states"):
        information.learning_decay([0.25] * 4, 4, examples=3, key=jax.random.key(0))
