"""Binary hyperfields: jumps summed over exactly, annealed and by mean field, against brute force."""

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from quenched.core.types import InputError, Outcome
from quenched.fields.learner.regression import regress
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.hyperpriors import Choice, LogFlat
from quenched.fields.model.likelihoods import DensityData, GaussianData
from quenched.fields.model.links import Direct, LogDensity
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass
from quenched.fields.model.switches import Jumps, Patches, Switches
from quenched.fields.practice.locating import Alternation, Annealing, Exact, _push, locate
from tests import tolerances

SHORT = Grid(given=[Axis(0, 1.2, points=7)])
LINE = Grid(given=[Axis(0, 1, points=60)])
X = LINE.axes[0].coordinates
TRUTH = np.where(X > 0.55, 1.0, 0.0) + 0.3 * np.sin(3 * X)
EDGE = 32
"""The link that the step crosses."""


def step(seed, variance=0.0625, prior=None):
    y = TRUTH + np.sqrt(variance) * np.random.default_rng(seed).normal(size=60)
    return Problem(GaussianData(X, y, variance), Direct(LINE), prior or Jumps(LINE, 1.0, 1.0))


def short(prior):
    draw = np.random.default_rng(3)
    at = SHORT.axes[0].coordinates[[0, 1, 1, 3, 4, 6]]
    return Problem(GaussianData(at, draw.normal(size=6), draw.uniform(0.1, 0.5, 6)), Direct(SHORT), prior)


def brute(asked):
    """All switches, their probabilities, and means and variances of the field; the evidence."""
    prior, data = asked.prior, asked.likelihood
    S, noise = data.design.toarray(), np.diag(data.variance)
    every = np.array(list(itertools.product([0, 1], repeat=len(prior.first))))
    alone, logs, means, variances = [], [], [], []
    for b in every:
        held = prior.hold(b)
        fit = regress(Problem(data, asked.link, held))
        C = np.linalg.inv(asked.grid.cell * held.operator.matrix)
        t = np.broadcast_to(held.mean, asked.grid.shape).ravel()
        alone.append(-prior.price_of(b))
        logs.append(alone[-1] + multivariate_normal.logpdf(data.targets, S @ t, S @ C @ S.T + noise))
        means.append(fit.mean.ravel())
        variances.append(fit.variance.ravel())
    total = np.logaddexp.reduce(logs)
    p, means = np.exp(np.array(logs) - total), np.array(means)
    mean = p @ means
    return every, p, mean, p @ (np.array(variances) + (means - mean) ** 2), total - np.logaddexp.reduce(alone)


@pytest.mark.parametrize("coupling", [0.0, 0.6])
def test_sums_over_all_jumps_are_those_of_brute_force(coupling):
    asked = short(Jumps(SHORT, 0.4, 0.7, expected=1.5, coupling=coupling, mean=0.2))
    every, p, mean, variance, evidence = brute(asked)
    found = locate(asked)
    assert found.log_evidence == pytest.approx(evidence, abs=tolerances.SAME)
    np.testing.assert_allclose(found.probability, p @ every, atol=tolerances.ALGEBRA)
    np.testing.assert_allclose(found.field, mean, atol=tolerances.ALGEBRA)
    np.testing.assert_allclose(found.variance, variance, atol=tolerances.ALGEBRA)
    np.testing.assert_array_equal(found.switches, every[np.argmax(p)])
    counts = [p[every.sum(axis=1) == k].sum() for k in range(7)]
    np.testing.assert_allclose(found.counts[:7], counts, atol=tolerances.ALGEBRA)


def test_an_annealed_posterior_is_that_of_brute_force_for_jumps_and_templates():
    x = SHORT.axes[0].coordinates
    patches = Patches(0.3 * Laplacian(SHORT), np.sin(4 * x), 0.5 * x, mass=5.0)
    for prior in (Jumps(SHORT, 0.4, 0.7, expected=1.5), patches):
        asked = short(prior)
        every, p, mean, _, _ = brute(asked)
        found = locate(asked, Annealing(sweeps=5, samples=400))
        np.testing.assert_array_equal(found.switches, every[np.argmax(p)])
        np.testing.assert_allclose(found.probability, p @ every, atol=0.1)  # 400 sweeps, correlated
        np.testing.assert_allclose(found.field, mean, atol=0.06)


def test_a_noisy_step_is_found_and_not_blurred():
    ours, theirs, near = [], [], 0
    numbers = {"strength": LogFlat(0.01, 1e3), "mass": LogFlat(0.01, 100.0)}
    for seed in range(4):
        asked = step(seed, prior=Jumps(LINE, **numbers))
        found = locate(asked, noise=LogFlat(0.1, 10.0))
        near += abs(int(np.argmax(found.probability)) - EDGE) <= 1
        ours.append(np.mean((found.field - TRUTH) ** 2))
        fields = [regress(Problem(asked.likelihood, asked.link, Gaussian(strength * Laplacian(LINE)))).mean
                  for strength in np.geomspace(0.01, 3, 25)]  # fmt: skip
        theirs.append(min(np.mean((field - TRUTH) ** 2) for field in fields))  # the best in hindsight
        assert set(found.theta) == {"strength", "mass", "noise"}
    assert near == 4
    assert np.mean(ours) < 0.6 * np.mean(theirs)


def test_annealing_and_mean_field_find_the_step_too():
    asked = step(0)
    exact = locate(asked, Exact())
    assert np.flatnonzero(exact.switches).tolist() == [EDGE]
    annealed, mean_field = locate(asked, Annealing()), locate(asked, Alternation())
    np.testing.assert_array_equal(annealed.switches, exact.switches)
    np.testing.assert_allclose(annealed.probability, exact.probability, atol=0.05)
    np.testing.assert_allclose(annealed.field, exact.field, atol=0.05)
    np.testing.assert_array_equal(mean_field.switches, exact.switches)
    assert mean_field.outcome is Outcome.converged
    low, high = exact.band(0.9)
    assert np.mean((low < TRUTH) & (high > TRUTH)) > 0.8


def test_mean_field_follows_the_exact_derivative_of_the_evidence():
    x = SHORT.axes[0].coordinates
    for prior in (Jumps(SHORT, 0.4, 0.7, mean=0.2), Patches(0.3 * Laplacian(SHORT), np.sin(4 * x), 0.5 * x, mass=5.0)):
        asked, b = short(prior), np.linspace(0.2, 0.7, len(prior.first))

        def evidence(b, asked=asked):
            return regress(Problem(asked.likelihood, asked.link, asked.prior.hold(b))).log_evidence

        steps = 1e-4 * np.eye(len(b))
        slope = np.array([(evidence(b + e) - evidence(b - e)) / 2e-4 for e in steps])
        np.testing.assert_allclose(_push(asked, prior, b, None)[0], -slope, rtol=1e-5, atol=tolerances.GRADIENT)


def test_without_a_step_none_is_found():
    smooth = 0.3 * np.sin(3 * X) + 0.25 * np.random.default_rng(1).normal(size=60)
    asked = Problem(GaussianData(X, smooth, 0.0625), Direct(LINE), Jumps(LINE, 30.0, 1.0))
    found = locate(asked)
    assert not found.switches.any()
    assert found.counts[0] > 0.7
    assert float(np.sum(found.counts)) == pytest.approx(1.0)


def test_templates_are_switched_where_they_change():
    first, second = np.sin(6 * X), np.cos(5 * X)
    truth = np.where(X < 0.5, first, second)
    y = truth + 0.3 * np.random.default_rng(2).normal(size=60)
    asked = Problem(GaussianData(X, y, 0.09), Direct(LINE), Patches(1e-3 * Laplacian(LINE), first, second, mass=3000.0))
    for method in (Annealing(sweeps=10, samples=5), Alternation()):
        found = locate(asked, method)
        assert abs(int(np.argmax(found.switches)) - 30) <= 2
        assert np.count_nonzero(np.diff(found.switches.astype(int))) == 1


def test_a_density_can_jump():
    grid = Grid(over=[Axis(0, 1, points=20)])
    draw = np.random.default_rng(0)
    rows = np.concatenate([draw.uniform(0, 0.5, 60), draw.uniform(0.5, 1, 400)])
    asked = Problem(DensityData(rows), LogDensity(grid), Jumps(grid, 3.0, 0.1))
    found = locate(asked, Alternation(temperatures=4))
    assert abs(int(np.argmax(found.probability)) - 9) <= 1
    assert found.switches.sum() == 1


def test_edges_of_an_image_are_lines():
    axes = [Axis(0, 1, points=8, name=name) for name in "xy"]
    grid = Grid(given=axes)
    x, y = np.meshgrid(*(axis.coordinates for axis in axes), indexing="ij")
    image = np.where(x > 0.5, 1.0, 0.0)
    noisy = image + 0.15 * np.random.default_rng(0).normal(size=image.shape)
    data = GaussianData(np.stack([x.ravel(), y.ravel()], axis=1), noisy.ravel(), 0.0225)
    prior = Jumps(grid, 30.0, 1.0, expected=8, coupling=0.5)
    assert len(prior.pairs) == 2 * 7 * 7  # side by side
    found = locate(Problem(data, Direct(grid), prior), Annealing(sweeps=6, samples=4))
    cut = np.flatnonzero(found.switches)
    assert cut.tolist() == list(range(24, 32))  # the links between the fourth row and the fifth
    assert np.mean((found.field - image) ** 2) < 0.005


def test_what_cannot_be_located_is_refused():
    with pytest.raises(InputError, match="with switches"):
        locate(Problem(step(0).likelihood, Direct(LINE), Gaussian(Mass(LINE))))
    with pytest.raises(InputError, match="proper"):
        Switches(Gaussian(Laplacian(LINE)), np.eye(60), np.zeros((60, 60)))
    with pytest.raises(InputError, match="Exact"):
        locate(step(0, prior=Patches(Laplacian(LINE), 0.0, 1.0)), Exact())
    with pytest.raises(InputError, match="numbers here"):
        locate(step(0, prior=Jumps(LINE, LogFlat(), 1.0)), Annealing())
    with pytest.raises(InputError, match="choice"):
        locate(step(0), noise=Choice([1.0, 2.0]))
    with pytest.raises(InputError, match="expected"):
        Jumps(LINE, expected=100)
    with pytest.raises(InputError, match="numbers from 0 to 1"):
        Jumps(LINE).hold(np.full(59, 2.0))
