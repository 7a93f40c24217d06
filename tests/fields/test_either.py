"""Alternatives: energies, normalisation, exact posteriors, minima and temperatures."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from scipy import stats

from quenched.core.types import InputError
from quenched.fields.learner.annealing import Annealed
from quenched.fields.learner.regression import regress
from quenched.fields.learner.solving import solve
from quenched.fields.learner.starts import Template, Uniform
from quenched.fields.model.either import Either, either, resolve, temper
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Density, Direct, LogDensity, Shifted
from quenched.fields.model.locally import locally
from quenched.fields.model.operators import Filter
from quenched.fields.model.parametrisations import Logits
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Difference, Laplacian, Mass
from quenched.fields.practice import alternatives
from quenched.fields.practice.alternatives import weigh
from quenched.fields.theory.laplace import laplace
from quenched.fields.theory.mean_field import find_bifurcations, mean_field
from quenched.papers.lemm1999.mixtures import fifty_rows, two_templates
from tests.fields.test_priors import differences
from tests.tolerances import ALGEBRA, EXACT, GRADIENT, MACHINE, SAME

LINE = Grid(given=[Axis(0, 2, points=5)])
X = np.linspace(0, 2, 5)
SMOOTH = Laplacian(LINE) + Mass(LINE, 0.3)
ROUGH = 2.0 * Laplacian(LINE) ** 2 + Mass(LINE, 1.5)
UP, DOWN = Gaussian(SMOOTH, mean=X), Gaussian(ROUGH, mean=-1.0)
NEAR = Gaussian(Mass(LINE, 0.7), mean=X**2 - 1)
DATA = GaussianData([0.0, 1.0, 1.0, 2.0], [0.3, -0.2, 0.6, 1.0], 0.4)


def normal(prior):
    """The same density by another library."""
    return stats.multivariate_normal(np.ravel(prior.mean), np.linalg.inv(LINE.cell * prior.operator.matrix))


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0, 4.0, np.inf])
def test_closed_forms_are_the_derivatives_of_the_energy(beta):
    prior = either(UP, DOWN, NEAR, weights=[0.2, 0.5, 0.3], beta=beta) & Gaussian(Mass(LINE, 0.1), mean=0.2)
    field = np.random.default_rng(0).normal(size=5)
    energy, slope, matrix = prior.expand(field)
    with jax.enable_x64(True):
        assert energy == pytest.approx(float(prior.energy(field)), abs=MACHINE)
    np.testing.assert_allclose(slope, differences(lambda f: prior.expand(f)[0], field), atol=GRADIENT)
    np.testing.assert_allclose(matrix(), differences(lambda f: prior.expand(f)[1], field), atol=GRADIENT)


@pytest.mark.parametrize("link", [LogDensity, Shifted, Logits])
def test_densities_have_closed_forms_too(link):
    grid = Grid(over=[Axis(0, 2, points=5)])
    one, two = (Gaussian(K, mean=t) for K, t in ((Laplacian(grid) + Mass(grid), X), (Mass(grid, 3.0), -X)))
    problem, field = Problem(DensityData([0.0, 0.5, 0.5]), link(grid), one | two), np.cos(X)
    about = problem.expand(field)
    np.testing.assert_allclose(about.slope, differences(lambda f: problem.expand(f).energy, field), atol=GRADIENT)
    np.testing.assert_allclose(about.hessian(), differences(lambda f: problem.expand(f).slope, field), atol=GRADIENT)


def test_the_prior_hessian_of_equal_covariances_is_that_of_the_paper():
    """lam K - lam^2 K Cov_a(t) K."""
    t, field = np.array([X, -X, 0.5 * X**2]), np.sin(X)
    prior = either(*(Gaussian(SMOOTH, mean=one) for one in t), weights=[0.2, 0.5, 0.3])
    a, K = prior.responsibilities(field), LINE.cell * SMOOTH.matrix
    cov = (t * a[:, None]).T @ t - np.outer(a @ t, a @ t)
    np.testing.assert_allclose(prior.expand(field)[2](), K - K @ cov @ K, atol=ALGEBRA)


def test_determinants_are_those_of_dense_algebra():
    prior, p = either(UP, DOWN, weights=[0.3, 0.7]), np.array([0.3, 0.7])
    fields = np.random.default_rng(1).normal(size=(6, 5))
    each = p * np.array([[normal(one).pdf(field) for one in (UP, DOWN)] for field in fields])
    off = np.array([-prior.expand(field)[0] for field in fields]) - np.log(each.sum(axis=1))
    np.testing.assert_allclose(off, off[0], atol=ALGEBRA)  # a constant
    for field, shares in zip(fields, each / each.sum(axis=1, keepdims=True), strict=True):
        np.testing.assert_allclose(prior.responsibilities(field), shares, atol=ALGEBRA)
    d, log_norm = LINE.size, resolve(prior).log_norm()
    assert off[0] == pytest.approx(log_norm + d / 2 * np.log(2 * np.pi / LINE.cell), abs=ALGEBRA)


def test_alternatives_of_alternatives_are_equal_ones():
    three = UP | DOWN | NEAR
    assert isinstance(three, Either)
    np.testing.assert_allclose(three.weights, 1 / 3)
    np.testing.assert_allclose((UP | (DOWN | NEAR)).weights, 1 / 3)
    nested = either(UP, DOWN, weights=[0.9, 0.1]) | NEAR
    np.testing.assert_allclose(nested.weights, [0.45, 0.05, 0.5])
    alone = either(UP)
    assert alone.expand(np.cos(X))[0] == pytest.approx(UP.expand(np.cos(X))[0], abs=MACHINE)


def test_or_is_distributed_over_and_with_the_right_weights():
    """p_j e^(-E_c) integrated over all fields, by dense algebra."""
    prior = either(UP, DOWN, weights=[0.3, 0.7]) & NEAR
    found = resolve(prior)
    for field in np.random.default_rng(2).normal(size=(4, 5)):
        terms = found.log_weights - [one.expand(field)[0] for one in found.gaussians]
        assert prior.expand(field)[0] == pytest.approx(-np.log(np.sum(np.exp(terms))), abs=ALGEBRA)
    C, t = (np.linalg.inv(LINE.cell * NEAR.operator.matrix), NEAR.mean)
    overlaps = [
        p * stats.multivariate_normal(one.mean, np.linalg.inv(LINE.cell * one.operator.matrix) + C).pdf(t)
        for p, one in ((0.3, UP), (0.7, DOWN))
    ]
    np.testing.assert_allclose(found.weights, overlaps / np.sum(overlaps), atol=ALGEBRA)
    again = either(prior, NEAR)
    np.testing.assert_allclose(again.weights, [*(0.5 * found.weights), 0.5], atol=ALGEBRA)
    four = resolve((UP | DOWN) & (NEAR | UP))
    assert len(four.gaussians) == 4


def test_the_exact_posterior_is_the_mixture():
    """Against densities of the data, and of one more row, by another library."""
    problem = Problem(DATA, Direct(LINE), either(UP, DOWN, weights=[0.3, 0.7]))
    found, S = regress(problem), problem.likelihood.design.toarray()

    def evidence(S, y, noise):
        return [p * stats.multivariate_normal(S @ np.ravel(one.mean), S @ normal(one).cov @ S.T + noise).pdf(y)
                for p, one in ((0.3, UP), (0.7, DOWN))]  # fmt: skip

    each = np.array(evidence(S, DATA.targets, 0.4 * np.eye(4)))
    assert found.log_evidence == pytest.approx(np.log(each.sum()), abs=SAME)
    np.testing.assert_allclose(found.probabilities, each / each.sum(), atol=SAME)
    more = evidence(np.vstack([S, np.eye(5)[3]]), [*DATA.targets, 0.9], np.diag([0.4] * 4 + [0.2]))
    assert found.log_density([1.5], [0.9], 0.2)[0] == pytest.approx(np.log(sum(more) / each.sum()), abs=SAME)
    parts = [regress(Problem(DATA, Direct(LINE), one)) for one in (UP, DOWN)]
    b, m = found.probabilities, np.array([part.mean for part in parts])
    np.testing.assert_allclose(found.mean, b @ m, atol=ALGEBRA)
    second = b @ [part.variance + part.mean**2 for part in parts]
    np.testing.assert_allclose(found.variance, second - found.mean**2, atol=ALGEBRA)


PAIR = Grid(given=[Axis(0, 1, points=2)])


def zero_dimensional(beta=1.0, weights=None):
    """t = +-1, t_D = 0.1, K_D = K_0 = 1."""
    up, down = (Gaussian(Mass(PAIR), mean=[t, 0.0]) for t in (1.0, -1.0))
    return Problem(GaussianData([0.0], [0.1]), Direct(PAIR), either(up, down, weights=weights, beta=beta))


def test_the_mean_field_equation_of_the_paper():
    """Figures 7, 8 and 11, with the energies of erratum F11: one solution at beta = 2, three at 4."""
    betas = np.array([1e-6, 2.0, 2.6, 4.0])
    found = mean_field(zero_dimensional(), betas)
    assert found.solutions.values.tolist() == [1, 1, 1, 3]
    assert float(found.responsibility[1, 0, 0]) == pytest.approx(0.8059057774, abs=ALGEBRA)
    assert found.stable.values[3].tolist() == [True, True, False]
    np.testing.assert_allclose(found.probability[:, 0], 1 / (1 + np.exp(-0.1 * betas)), atol=MACHINE)
    for i, beta in enumerate(betas):
        exact = regress(zero_dimensional(beta))
        np.testing.assert_allclose(exact.probabilities, found.probability[i], atol=SAME)
        for k in range(int(found.solutions[i])):
            a = float(found.responsibility[i, k, 0])
            assert a == pytest.approx(0.5 * (np.tanh(beta / 2 * (2 * a - 1) + 0.05 * beta) + 1), abs=ALGEBRA)
    critical = find_bifurcations(zero_dimensional())
    assert critical.solutions.values.tolist() == [3]
    beta = float(critical.beta[0])
    assert [int(mean_field(zero_dimensional(), beta * s).solutions[0]) for s in (0.999, 1.001)] == [1, 3]
    assert 2.6 < beta < 2.75  # the paper: near the bifurcation at 2.75


def test_equal_alternatives_split_at_four_over_b():
    up, down = (Gaussian(Mass(PAIR), mean=[t, 0.0]) for t in (1.0, -1.0))
    even = Problem(GaussianData([0.0], [0.0]), Direct(PAIR), up | down)
    found = find_bifurcations(even)
    np.testing.assert_allclose(found.beta, [2.0], rtol=EXACT)


def test_minima_are_the_stable_solutions():
    problem = Problem(
        DATA, Direct(LINE), either(*(Gaussian(3.0 * SMOOTH, mean=s * 3 * X) for s in (-1, 0.2, 1)), beta=1.5)
    )
    theory = mean_field(problem)
    starts = [Template(j) for j in range(3)]
    fit = solve(problem, start=starts)
    stable = theory.energy.values[0][theory.stable.values[0]]
    np.testing.assert_allclose(fit.minima, stable, atol=SAME)
    a = problem.prior.responsibilities(fit.field)
    np.testing.assert_allclose(a, theory.responsibility.values[0, 0], atol=EXACT)


def test_both_limits_of_the_temperature():
    """Averaged templates, and the best one; erratum F550."""

    def at(beta, solver):
        return solver(Problem(DATA, Direct(LINE), either(UP, Gaussian(SMOOTH, mean=-X), weights=[0.3, 0.7], beta=beta)))

    alone = [regress(Problem(DATA, Direct(LINE), Gaussian(SMOOTH, mean=s * X))) for s in (1, -1)]
    mean = 0.3 * alone[0].mean + 0.7 * alone[1].mean
    for beta in (0.0, 1e-7):
        np.testing.assert_allclose(at(beta, solve).field, mean, atol=1e-5)
    np.testing.assert_allclose(at(1e-7, regress).mean, mean, atol=1e-5)
    best = alone[int(np.argmin([one.energy for one in alone]))]
    for beta in (np.inf, 1e4):
        np.testing.assert_allclose(at(beta, solve).field, best.mean, atol=EXACT)
    np.testing.assert_allclose(at(1e4, regress).mean, best.mean, atol=EXACT)


def test_annealing_follows_the_average_to_the_best_alternative():
    for beta in (1.0, 8.0, np.inf):
        fit = solve(zero_dimensional(beta), start=Annealed(first=0.1, steps=6))
        assert fit.field[0] > 0
        assert fit.energy == pytest.approx(solve(zero_dimensional(beta)).energy, abs=SAME)
    with pytest.raises(InputError, match="no alternatives"):
        solve(Problem(DATA, Direct(LINE), UP), start=Annealed())
    assert temper(UP & (UP | DOWN), 2.0).parts[1].beta == 2


def test_evidence_does_not_depend_on_how_a_prior_is_written():
    """The parts of `a & b` have different templates: their least energy is no evidence against the data."""
    problem = Problem(DATA, Direct(LINE), UP & NEAR & DOWN)
    exact = regress(problem)
    assert laplace(problem, exact).log_evidence == pytest.approx(exact.log_evidence, abs=SAME)
    waves = Problem(DATA, Direct(LINE), UP & NEAR)
    assert laplace(waves, solve(waves, modes=True)).log_evidence == pytest.approx(regress(waves).log_evidence, abs=SAME)


def test_shares_of_minima_and_alternatives(monkeypatch):
    far = either(*(Gaussian(40.0 * SMOOTH, mean=s * X) for s in (1, -1)), weights=[0.4, 0.6])
    problem = Problem(DATA, Direct(LINE), far)
    found, exact = weigh(problem), regress(problem)
    np.testing.assert_allclose(found.probabilities, exact.probabilities, atol=SAME)
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=SAME)
    np.testing.assert_allclose(found.mean, exact.mean, atol=SAME)
    minima = found.minima
    assert minima.sizes["minimum"] == 2
    assert float(minima.share.sum()) == pytest.approx(1)
    first = minima.responsibility.values.argmax(axis=1)  # far apart, minima are alternatives
    np.testing.assert_allclose(minima.share, exact.probabilities[first], atol=0.01)
    monkeypatch.setattr(
        alternatives, "solve", lambda *args, **options: dataclasses.replace(solve(*args, **options), met=())
    )
    assert float(weigh(problem).minima.energy[0]) == pytest.approx(float(minima.energy[0]))  # nothing arrived
    low, high = found.band(0.5)
    assert np.all(low < high)
    below = sum(b * stats.norm.cdf(high[2], part.mean[2], part.variance[2] ** 0.5)
                for b, part in zip(exact.probabilities, exact.components, strict=True))  # fmt: skip
    assert below == pytest.approx(0.75, abs=SAME)


def test_the_probability_of_a_shape_is_its_share_of_all_densities():
    """Three points, so that the evidence is an integral over two directions."""
    grid = Grid(over=[Axis(0, 2, points=3)])
    priors = [Gaussian(6.0 * Mass(grid), mean=np.array(t)) for t in ([-1.0, -1.0, -1.0], [-2.0, -0.5, -1.5])]
    problem = Problem(DensityData([0.0, 1.0, 1.0, 2.0]), LogDensity(grid), priors[0] | priors[1])

    g = np.stack([*np.meshgrid(*2 * [np.linspace(-9, 9, 241)]), np.zeros((241, 241))], axis=-1)
    L = g - np.log(np.sum(np.exp(g), axis=-1, keepdims=True))
    rows = L @ np.array([1.0, 2.0, 1.0])

    def integral(one):
        prior = np.exp(-3.0 * np.sum((L - one.mean) ** 2, axis=-1))
        return np.sum(np.exp(rows) * prior) / np.sum(prior)

    each = np.array([integral(one) for one in priors])
    found = weigh(problem)
    np.testing.assert_allclose(found.probabilities, each / each.sum(), atol=0.01)
    assert found.log_evidence == pytest.approx(np.log(each.mean()), abs=0.05)
    for shift in (-2.0, 3.0):  # how high a template lies is no information under a prior about g
        other = [Gaussian(one.operator, mean=one.mean + shift) for one in priors]
        moved = weigh(Problem(problem.likelihood, Logits(grid), priors[0] | other[1]))
        same = weigh(Problem(problem.likelihood, Logits(grid), priors[0] | priors[1]))
        np.testing.assert_allclose(moved.probabilities, same.probabilities, atol=SAME)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_two_templates_of_the_paper(seed):
    """One minimum at lambda = 0.1, two at lambda = 2. [lemm1999, section 7.4.2]"""
    rows = fifty_rows(seed)
    for strength, count in ((0.1, 1), (2.0, 2)):
        fit = solve(two_templates(rows, strength))
        assert fit.converged
        assert len(fit.minima) == count
        assert len(fit.met) == count
        assert fit.met[0].energy == fit.energy


def test_densities_that_are_not_negative_have_alternatives_too():
    grid = Grid(over=[Axis(0, 1, points=6)])
    x = np.linspace(0, 1, 6)
    one, two = (Gaussian(3.0 * Mass(grid), mean=t) for t in (2 * x, 2 - 2 * x))
    problem = Problem(DensityData([0.8, 0.6, 1.0]), Density(grid), one | two)
    fit = solve(problem)
    assert fit.converged
    assert problem.prior.responsibilities(fit.field)[0] > 0.5
    alone = solve(Problem(DensityData([0.8, 0.6, 1.0]), Density(grid), one))
    assert np.max(np.abs(fit.field - alone.field)) < 0.3


def test_local_alternatives_are_all_combinations():
    """A sum over all choices of a template for each region. [lemm1999, eq. (585)]"""
    W = np.diff(np.eye(5), axis=0)
    for K, rows, regions in ((Mass(LINE, 2.0), 5, [0, 0, 1, 2, 2]), (Filter(LINE, W), 4, None)):
        one, two = Gaussian(K, mean=X**2), Gaussian(K, mean=-X)
        prior = locally(one, two, weights=[0.3, 0.7], regions=regions)
        field, groups = np.cos(3 * X), np.arange(rows) if regions is None else np.array(regions)
        root = np.sqrt(2.0) * np.eye(5) if regions else W
        total = 0.0
        for choice in itertools.product((0, 1), repeat=groups.max() + 1):
            t = np.where(np.array(choice)[groups] == 0, root @ (field - X**2), root @ (field + X))
            total += np.prod(np.array([0.3, 0.7])[list(choice)]) * np.exp(-0.5 * LINE.cell * np.sum(t**2))
        energy, slope, matrix = prior.expand(field)
        assert energy == pytest.approx(-np.log(total), abs=ALGEBRA)
        with jax.enable_x64(True):
            assert energy == pytest.approx(float(prior.energy(field)), abs=ALGEBRA)
        np.testing.assert_allclose(slope, differences(lambda f, prior=prior: prior.expand(f)[0], field), atol=GRADIENT)
        np.testing.assert_allclose(
            matrix(), differences(lambda f, prior=prior: prior.expand(f)[1], field), atol=GRADIENT
        )
        np.testing.assert_allclose(prior.responsibilities(field).sum(axis=0), 1)


def test_a_function_that_changes_its_template():
    grid = Grid(given=[Axis(0, 1, points=20)])
    x = np.linspace(0, 1, 20)
    true = np.where(x < 0.5, 1.0, -1.0)
    prior = locally(*(Gaussian(Mass(grid, 300.0), mean=t) for t in (1.0, -1.0)))
    data = GaussianData(x[::2], true[::2], 0.05)
    fit = solve(Problem(data, Direct(grid), prior & Gaussian(0.01 * Laplacian(grid))), start=Uniform())
    assert fit.converged
    np.testing.assert_array_equal(np.sign(fit.field[1:-1]), true[1:-1])


def test_weights_are_normalised_and_it_is_said():
    with pytest.warns(UserWarning, match="sum to 4"):
        prior = either(UP, DOWN, weights=[1.0, 3.0])
    np.testing.assert_allclose(prior.weights, [0.25, 0.75])


OVER = Grid(over=[Axis(0, 2, points=5)])
BAD = {
    "none": lambda: either(),
    "empty": lambda: Either([]),
    "negative": lambda: either(UP, DOWN, weights=[1.5, -0.5]),
    "zero": lambda: either(UP, DOWN, weights=[0.0, 0.0]),
    "count": lambda: either(UP, DOWN, weights=[1.0]),
    "beta": lambda: either(UP, DOWN, beta=-1.0),
    "nan": lambda: either(UP, DOWN, beta=np.nan),
    "type": lambda: UP | 3,
    "grid": lambda: UP | Gaussian(Mass(OVER)),
    "null": lambda: UP | Gaussian(Laplacian(LINE)),
    "null order": lambda: Gaussian(Difference(LINE, LINE.axes[0], 1)) | Gaussian(Difference(LINE, LINE.axes[0], 2)),
    "range": lambda: Problem(DensityData([1.0]), Density(OVER), Gaussian(Mass(OVER), mean=-1.0) | Gaussian(Mass(OVER))),
    "nested": lambda: either(UP, DOWN, beta=2.0) | NEAR,
    "laplace": lambda: laplace(zero_dimensional(2.0), np.zeros(2)),
    "exact": lambda: regress(zero_dimensional(0.0)),
    "weigh": lambda: weigh(zero_dimensional(2.0)),
    "mean field": lambda: mean_field(Problem(DATA, Direct(LINE), UP)),
    "operators": lambda: mean_field(Problem(DATA, Direct(LINE), UP | DOWN)),
    "cold": lambda: mean_field(zero_dimensional(), -1.0),
    "same": lambda: find_bifurcations(Problem(DATA, Direct(LINE), UP | UP)),
    "which": lambda: solve(zero_dimensional(), start=Template(7)),
    "locally": lambda: locally(),
    "local operator": lambda: locally(UP, Gaussian(SMOOTH)),
    "local means": lambda: locally(Gaussian(Mass(LINE)), Gaussian(Mass(LINE, 2.0))),
    "regions": lambda: locally(Gaussian(Mass(LINE)), Gaussian(Mass(LINE), mean=1.0), regions=[0, 1]),
    "rows": lambda: locally(Gaussian(Filter(LINE, np.ones((2, 5))))),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_one_sentence(name):
    with pytest.raises(InputError, match=r"must|can only") as error:
        BAD[name]()
    assert "\n" not in str(error.value)
