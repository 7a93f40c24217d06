"""Hyperparameters: normalisations, derivatives, what the evidence finds, and what a joint maximum gets wrong."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from quenched.core.types import InputError, Outcome
from quenched.fields.model.families import (
    LengthScale,
    MassField,
    Order,
    Period,
    Relevance,
    Smoothness,
    Spectrum,
    Strength,
    links_of,
)
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.hyper import Hyper, space_of
from quenched.fields.model.hyperpriors import Choice, Flat, Gamma, LogFlat, LogNormal, Normal, Power
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Direct, LogDensity, Shifted
from quenched.fields.model.operators import Dense
from quenched.fields.model.parametrisations import Logits
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Difference, Laplacian, Mass
from quenched.fields.practice.adapting import Integral, Joint, Pathology, adapt
from quenched.fields.practice.weighing import Weigher
from tests import tolerances

LINE = Grid(given=[Axis(0, 2, points=12)])
OVER = Grid(over=[Axis(0, 2, points=12)])
DRAW = np.random.default_rng(0)
SEEN = DRAW.choice(LINE.axes[0].coordinates, 9)
DATA = GaussianData(SEEN, np.sin(3 * SEEN) + 0.2 * DRAW.normal(size=9), 0.05)
ROWS = DensityData(np.clip(DRAW.normal(1.0, 0.4, 30), 0, 2))


def shifted(grid):
    """A template that moves, beside a strength and a mass."""
    x = grid.axes[0].coordinates

    def make(theta):
        K = theta["strength"] * Laplacian(grid) + theta["mass"] * Mass(grid)
        return Gaussian(K, mean=jnp.tanh(x - theta["middle"]))

    known = {"strength": LogNormal(0.3, 2.0), "mass": Gamma(2.0, 3.0), "middle": Normal(0.8, 0.5)}
    return Hyper(make, hyperprior=known)


def in_numpy(grid):
    """The same without JAX: derivatives by differences."""
    x = grid.axes[0].coordinates
    return Hyper(
        lambda theta: Gaussian(Mass(grid, float(theta[0])) + float(theta[0] * theta[1]) * Laplacian(grid),
                               mean=np.tanh(x - float(theta[1]))),
        np.array([0.7, 0.9]), LogFlat(),
    )  # fmt: skip


FAMILIES = {
    "strength": lambda grid: Strength(Laplacian(grid)),
    "relevance": lambda grid: Relevance(grid, mass=0.1),
    "length": LengthScale,
    "smoothness": Smoothness,
    "mass field": lambda grid: MassField(Laplacian(grid), mean=0.3),
    "spectrum": lambda grid: Spectrum(Laplacian(grid) + Mass(grid), count=2),
    "moving template": shifted,
    "not traceable": in_numpy,
    "two parts": lambda grid: shifted(grid) & Gaussian(0.2 * Laplacian(grid), mean=grid.axes[0].coordinates ** 2),
}


def weigher(prior, likelihood, link, noise=None):
    space = space_of(Problem(likelihood, link, prior), noise)
    return Weigher(space, {}), space.pack(space.start) + 0.1 * np.cos(np.arange(len(space.bounds())))


def difference(function, u, step=1e-4):
    """Of fourth order."""
    along = step * np.eye(len(u))
    weights = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
    return np.array([sum(w * function(u + k * e) for k, w in weights) / step for e in along])


@pytest.mark.parametrize("name", FAMILIES)
def test_derivatives_of_joint_density_and_evidence_are_those_of_finite_differences_in_regression(name):
    look, u = weigher(FAMILIES[name](LINE), DATA, Direct(LINE), LogFlat(0.1, 10))
    here = look.look(u)
    for slope, value in (
        (here.joint_slope, lambda v: look.look(v, slopes=False).log_joint),
        (here.slope, lambda v: look.look(v, slopes=False).log_posterior),
    ):
        np.testing.assert_allclose(slope, difference(value, u), rtol=tolerances.GRADIENT, atol=tolerances.GRADIENT)


@pytest.mark.parametrize("link", [LogDensity, Shifted, Logits])
def test_derivatives_of_joint_density_and_evidence_are_those_of_finite_differences_for_densities(link):
    look, u = weigher(shifted(OVER), ROWS, link(OVER))
    here = look.look(u)
    for slope, value in (
        (here.joint_slope, lambda v: look.look(v, slopes=False).log_joint),
        (here.slope, lambda v: look.look(v, slopes=False).log_posterior),
    ):
        there = difference(value, u, step=3e-3)
        np.testing.assert_allclose(slope, there, rtol=tolerances.GRADIENT, atol=tolerances.GRADIENT)


@pytest.mark.parametrize(
    "known", [Flat(0, 3), LogFlat(0.1, 10), Normal(1, 2), LogNormal(2, 0.7), Gamma(2, 3), Power(-0.5)]
)
def test_hyperpriors_are_normalised_and_have_their_own_derivatives(known):
    theta = np.array([0.4, 1.7])
    slope = difference(lambda v: known.energy(v), theta)
    np.testing.assert_allclose(known.slope(theta), slope, rtol=tolerances.GRADIENT, atol=1e-9)
    if not isinstance(known, Power):
        low, high = known.bounds(1.0)
        u = np.linspace(*(np.log([low, high]) if known.logarithmic else (low, high)), 2001)
        every = np.exp(u) if known.logarithmic else u
        logs = np.array([float(known.log_volume(one) - known.energy(one)) for one in every])
        assert np.trapezoid(np.exp(logs), u) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - {"two parts"}))
def test_normalisations_are_determinants_of_dense_matrices(name):
    prior = FAMILIES[name](LINE)
    theta = {key: 1.3 * value + 0.1 for key, value in prior.start.items()}
    M = LINE.cell * prior.prior(theta).operator.matrix
    values = np.linalg.eigvalsh(M)
    values = values[values > 1e-9 * values[-1]]
    ours = 0.5 * len(values) * np.log(2 * np.pi) - 0.5 * np.sum(np.log(values))
    assert prior.log_partition(theta) == pytest.approx(ours, abs=tolerances.ALGEBRA * len(M) * 10)


def test_a_determinant_that_is_kept_needs_no_normalisation():
    prior = FAMILIES["spectrum"](LINE)
    rotated = _rotated()
    for one, thetas in ((prior, ([0.0, 0.0], [1.3, -2.0])), (rotated, (0.0, 0.7))):
        partition = [one.log_partition({"theta": np.array(t)} if one is prior else t) for t in thetas]
        assert partition[0] == pytest.approx(partition[1], abs=tolerances.ALGEBRA)


def _rotated():
    """Two eigenvectors turned in their plane: K -> O K O^T. [lemm1999, eq. (465)]"""
    values, U = np.linalg.eigh((Laplacian(LINE) + Mass(LINE)).matrix)

    def make(angle):
        turn = (
            jnp.eye(12)
            .at[jnp.array([2, 2, 7, 7]), jnp.array([2, 7, 2, 7])]
            .set(jnp.array([jnp.cos(angle), -jnp.sin(angle), jnp.sin(angle), jnp.cos(angle)]))
        )
        V = U @ turn
        K = (V * values) @ V.T
        return Gaussian(Dense(LINE, (K + K.T) / 2))

    return Hyper(make, 0.2, Flat(-3.0, 3.0))


def test_a_length_scale_means_what_it_says():
    prior = LengthScale(LINE).prior({"length": 0.4, "variance": 2.5})
    covariance = np.linalg.inv(LINE.cell * prior.operator.matrix)
    assert np.mean(np.diag(covariance)) == pytest.approx(2.5, rel=tolerances.ALGEBRA)


def test_local_smoothness_finds_the_rough_half():
    x = LINE.axes[0].coordinates
    y = np.where(x < 1, np.cos(8 * np.arange(12.0)), 0.3)
    found = adapt(Problem(GaussianData(x, y, 1e-3), Direct(LINE), Smoothness(LINE)))
    theta = found.theta["theta"]
    assert theta[:4].max() < theta[7:].min() - 1
    assert found.converged


def test_the_evidence_is_the_density_of_the_data_also_with_two_priors_that_both_hold():
    look, u = weigher(FAMILIES["two parts"](LINE), DATA, Direct(LINE), LogFlat(0.1, 10))
    here = look.look(u)
    prior, data = here.problem.prior, here.problem.likelihood
    S = data.design.toarray()
    cov = S @ np.linalg.inv(LINE.cell * prior.operator.matrix) @ S.T + np.diag(np.full(9, data.variance))
    ours = multivariate_normal.logpdf(data.targets, S @ prior.mean, cov)
    assert here.log_evidence == pytest.approx(ours, abs=tolerances.SAME)


@pytest.mark.parametrize("relevant", [0, 1, 2])
def test_relevance_finds_the_one_axis_of_three_that_matters(relevant):
    axes = [Axis(0, 1, points=5, name=name) for name in "abc"]
    grid, draw = Grid(given=axes), np.random.default_rng(relevant)
    rows = draw.choice(axes[0].coordinates, size=(70, 3))
    y = np.sin(5 * rows[:, relevant]) + 0.1 * draw.normal(size=70)
    found = adapt(Problem(GaussianData(rows, y, 0.01), Direct(grid), Relevance(grid, hyperprior=LogFlat(1e-2, 1e5))))
    strengths = found.theta["relevance"]
    assert np.argmin(strengths) == relevant
    assert np.sort(strengths)[1] > 20 * strengths[relevant]
    assert found.converged


def test_the_best_evidence_is_a_maximum_and_its_curvature_that_of_differences():
    found = adapt(Problem(DATA, Direct(LINE), Strength(Laplacian(LINE) + Mass(LINE))))
    look, _ = weigher(Strength(Laplacian(LINE) + Mass(LINE)), DATA, Direct(LINE))
    u = np.log([found.theta["strength"]])
    logs = [look.look(u + step, slopes=False).log_posterior for step in (-0.05, 0.0, 0.05)]
    assert logs[1] > max(logs[0], logs[2])
    deviation = 0.05 / np.sqrt(2 * logs[1] - logs[0] - logs[2])
    assert found.deviation["strength"] == pytest.approx(deviation, rel=1e-2)
    assert found.outcome is Outcome.converged
    assert not found.edges


def test_an_integral_over_the_strength_is_a_sum_over_many():
    asked = Problem(DATA, Direct(LINE), Strength(Laplacian(LINE) + Mass(LINE), hyperprior=LogFlat(0.01, 100)))
    found = adapt(asked, Integral(25))
    look, _ = weigher(asked.prior, DATA, Direct(LINE))
    u = np.linspace(np.log(0.01), np.log(100), 400)
    logs = np.array([look.look(np.array([v]), slopes=False).log_posterior for v in u])
    assert found.log_evidence == pytest.approx(np.log(np.trapezoid(np.exp(logs), u)), abs=2e-3)
    assert float(found.alternatives.share.sum()) == pytest.approx(1.0)
    assert np.all(found.variance > 0)


# Joint maxima and what they get wrong ---------------------------------------------------------------------------------

POINT = Grid(given=[Axis(0, 1, points=2)])


def zero_dimensional(hyperprior):
    """Figure 6: one value with y = 0 and a template 1, twice."""
    prior = Strength(Mass(POINT), mean=1.0, hyperprior=hyperprior)
    return Problem(GaussianData([0.0, 1.0], [0.0, 0.0]), Direct(POINT), prior)


def test_a_joint_maximum_at_infinite_strength_is_called_frozen():
    with pytest.warns(UserWarning, match="variance goes to zero"):
        found = adapt(zero_dimensional(Power(0.0)), Joint())
    assert found.pathologies == (Pathology.frozen,)
    assert found.outcome is Outcome.diverged
    np.testing.assert_allclose(found.field, 1.0, atol=1e-6)  # the template


def test_a_compensating_hyperprior_leads_to_the_delta_catastrophe():
    with pytest.warns(UserWarning, match="delta catastrophe"):
        found = adapt(zero_dimensional(Power(-1.0)), Joint())  # -d/2 with d = 2
    assert found.pathologies == (Pathology.released,)
    assert found.outcome is Outcome.diverged
    np.testing.assert_allclose(found.field, 0.0, atol=1e-6)  # the data


def test_a_local_joint_maximum_beside_an_unbounded_density_is_no_confident_answer():
    sure = GaussianData(SEEN, DATA.targets, 1e-4)
    asked = Problem(sure, Direct(LINE), Strength(Laplacian(LINE) + Mass(LINE), hyperprior=Power(0.0)))
    with pytest.warns(UserWarning, match="without bound"):
        found = adapt(asked, Joint())
    assert found.pathologies == (Pathology.frozen,)
    assert not found.converged
    assert not found.edges  # it is local


def test_a_template_that_follows_the_field_is_found_out():
    prior = Hyper(lambda t: Gaussian(Laplacian(LINE) + Mass(LINE), mean=t), np.zeros(12), Flat(-9.0, 9.0))
    every = GaussianData(LINE.axes[0].coordinates, np.cos(np.arange(12.0)), 0.1)
    with pytest.warns(UserWarning, match="template has followed"):
        found = adapt(Problem(every, Direct(LINE), prior), Joint())
    assert found.pathologies == (Pathology.swallowed,)
    np.testing.assert_allclose(found.field, np.cos(np.arange(12.0)), atol=1e-4)


def test_a_hyperprior_that_forbids_it_makes_the_joint_maximum_an_answer():
    found = adapt(
        Problem(DATA, Direct(LINE), Strength(Laplacian(LINE) + Mass(LINE), hyperprior=Gamma(2.0, 1.0))), Joint()
    )
    assert found.pathologies == ()
    assert found.converged


# Alternatives ---------------------------------------------------------------------------------------------------------


def test_alternatives_have_their_exact_probabilities():
    templates = [np.zeros(12), np.sin(3 * LINE.axes[0].coordinates)]
    K = 3.0 * Laplacian(LINE) + Mass(LINE)
    prior = Hyper(lambda i: Gaussian(K, mean=templates[i]), hyperprior=Choice([0, 1], [3, 1]))
    found = adapt(Problem(DATA, Direct(LINE), prior))
    S = DATA.prepared(LINE).design.toarray()
    cov = S @ np.linalg.inv(LINE.cell * K.matrix) @ S.T + 0.05 * np.eye(9)
    p = [w * multivariate_normal.pdf(DATA.targets, S @ t, cov) for w, t in zip((0.75, 0.25), templates, strict=True)]
    assert found.probability() == pytest.approx({0: p[0] / sum(p), 1: p[1] / sum(p)}, abs=tolerances.SAME)
    assert found.log_evidence == pytest.approx(np.log(sum(p)), abs=tolerances.SAME)
    assert found.theta == 1
    parts = np.array([adapt(Problem(DATA, Direct(LINE), Hyper(prior.family.make, hyperprior=Choice([i])))).field
                      for i in (0, 1)])  # fmt: skip
    np.testing.assert_allclose(found.field, np.array(p) @ parts / sum(p), atol=tolerances.SAME)


def test_too_many_alternatives_are_annealed():
    x, names = LINE.axes[0].coordinates, [f"bump{i}" for i in range(13)]
    bumps = np.exp(-((x - np.linspace(0, 2, 13)[:, None]) ** 2) / 0.02)
    prior = Hyper(lambda th: Gaussian(400.0 * Mass(LINE), mean=np.array([th[n] for n in names]) @ bumps),
                  hyperprior={name: Choice([0, 1], [9, 1]) for name in names})  # fmt: skip
    truth = bumps[3] + bumps[9]
    found = adapt(Problem(GaussianData(x, truth, 0.01), Direct(LINE), prior))
    assert [name for name in names if found.theta[name]] == ["bump3", "bump9"]
    assert found.alternatives.attrs["visited"] < found.alternatives.attrs["combinations"] == 2**13


def test_order_and_period_are_found():
    line = Axis(0, 30, points=31)
    grid, x = Grid(given=[line]), line.coordinates
    draw = np.random.default_rng(1)
    straight = GaussianData(x, 0.2 * x + 0.1 * draw.normal(size=31), 0.01)
    assert adapt(Problem(straight, Direct(grid), Order(grid, orders=[1, 2]))).theta["order"] == 2
    wave = GaussianData(x, np.sin(2 * np.pi * x / 8) + 0.2 * draw.normal(size=31), 0.04)
    prior = Period(0.1 * Laplacian(grid) + Mass(grid, 0.1), range(6, 11), hyperprior=Choice([10.0]))
    found = adapt(Problem(wave, Direct(grid), prior))
    assert found.theta["period"] == 8
    assert found.probability("period")[8.0] > 0.9


@pytest.mark.parametrize(
    ("make", "start", "hyperprior", "match"),
    [
        (3, 1.0, None, "make"),
        (lambda t: t, 1.0, None, "return a prior"),
        (lambda t: Strength(Mass(LINE)), None, None, "start"),
        (lambda t: Strength(Mass(LINE)), {"a": 1.0}, Flat(), "names"),
        (lambda t: Strength(Mass(LINE)), -1.0, LogFlat(), "lie where"),
        (lambda t: Strength(Mass(LINE)), np.nan, None, "finite"),
        (lambda t: Strength(Mass(LINE)), 1.0, 7, "hyperpriors"),
    ],
)
def test_bad_hyperparameters_are_refused(make, start, hyperprior, match):
    with pytest.raises(InputError, match=match):
        Hyper(make, start, hyperprior)


def test_priors_that_cannot_be_compared_are_refused():
    axis = LINE.axes[0]
    changing = Hyper(lambda k: Gaussian(Difference(LINE, axis, k)), hyperprior=Choice([1, 2]))
    with pytest.raises(InputError, match="null space"):
        adapt(Problem(DATA, Direct(LINE), changing))
    with pytest.raises(InputError, match="has none"):
        adapt(Problem(DATA, Direct(LINE), Gaussian(Mass(LINE))))
    assert links_of(LINE).shape == (11,)
