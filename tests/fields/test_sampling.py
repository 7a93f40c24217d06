"""sample: the target is the problem's, draws agree with what is exact, and chains that disagree are said to."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenched
from quenched import fields as f
from quenched.core.types import InputError
from quenched.fields.practice import sampling, tempering
from quenched.fields.practice.target import WholeTerm, approximate, open_settings, whiten

AXIS = f.Axis(0, 1, points=10)
LINE, OVER = f.Grid(given=[AXIS]), f.Grid(over=[AXIS])
BOTH = f.Grid(given=[f.Axis(0, 1, points=3)], over=[f.Axis(0, 1, points=4)])
TWO = f.Grid(given=[f.Axis(0, 1, points=6)], over=[f.Components(2)])
PAIR = f.Grid(given=[f.Axis(0, 1, points=6), f.Components(2)])
WELL = f.Grid(given=[f.Axis(-3, 3, points=13)])
ROWS = np.linspace(0, 1, 20)
SURE = 4.5
"""Deviations that chance exceeds in one of some tens of numbers once in ten thousand times."""


def _operator(grid, strength=1.0):
    return strength * (0.3 * f.Laplacian(grid, grid.axes[0]) + f.Mass(grid))


def _regression(prior=None, rows=ROWS, variance=0.3):
    return f.Problem(
        f.GaussianData(rows, np.sin(5 * rows), variance), f.Direct(LINE), prior or f.Gaussian(_operator(LINE))
    )


def _density(link=f.Logits, rows=ROWS[::6], prior=None):
    return f.Problem(f.DensityData(rows), link(OVER), prior or f.Gaussian(_operator(OVER, 0.04)))


def _classes():
    return f.Problem(f.ClassData(ROWS[:4], [0, 1, 0, 1]), f.Logits(TWO), f.Gaussian(_operator(TWO, 0.1)))


def _two_modes(far=1.5):
    up, down = (f.Gaussian(_operator(LINE, 6.0), mean=m) for m in (far, -far))
    data = f.GaussianData(ROWS[:6], 0 * ROWS[:6] + 0.2, 1.0)
    return f.Problem(data, f.Direct(LINE), up | down)


PROBLEMS = {
    "regression": _regression,
    "density": _density,
    "log-density with a mass": lambda: _density(f.LogDensity),
    "conditional": lambda: f.Problem(
        f.DensityData([(0.1, 0.2), (0.5, 0.7), (0.9, 0.1)]), f.Shifted(BOTH), f.Gaussian(_operator(BOTH))
    ),
    "classes": _classes,
    "noise": lambda: f.Problem(
        f.NoisyData(ROWS, np.sin(5 * ROWS), f.HuberNoise(0.2)), f.Direct(LINE), f.Gaussian(_operator(LINE))
    ),
    "clusters": lambda: f.Problem(
        f.ClusterData(ROWS, np.sign(np.sin(40 * ROWS)), 0.2), f.Direct(PAIR), f.Gaussian(_operator(PAIR))
    ),
    "vectors": lambda: f.Problem(
        f.VectorData(ROWS, np.stack([ROWS, -ROWS], axis=1), [[2.0, 0.5], [0.5, 1.0]]), f.Direct(PAIR),
        f.Gaussian(_operator(PAIR)),
    ),
    "alternatives": _two_modes,
    "positions": lambda: f.Problem(
        f.PositionData([-1.0, 0.0, 0.5], f.Canonical(1.0)), f.Direct(WELL),
        f.Gaussian(_operator(WELL), mean=WELL.axes[0].coordinates ** 2),
    ),
    "potential": lambda: f.Problem(
        f.GaussianData(ROWS, ROWS, 0.1), f.Direct(LINE),
        f.Potential(f.Gradient(LINE), f.Huber(2.0, 0.3)) & f.Gaussian(f.Mass(LINE)),
    ),
}  # fmt: skip


def _target(problem, pooled=True):
    with jax.enable_x64(True):
        return whiten(approximate(open_settings(problem)), pooled=pooled)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_target_is_the_energy_of_the_problem(name):
    problem = PROBLEMS[name]()
    posterior = _target(problem)
    with jax.enable_x64(True):
        z = np.random.default_rng(0).normal(size=(3, len(posterior.roots)))
        mine = [float(posterior.target.energy(jnp.asarray(one))) for one in z]
        fields = posterior.fields(z)
        theirs = [float(problem.energy(jnp.asarray(one))) for one in fields]
    np.testing.assert_allclose(np.diff(mine), np.diff(theirs), atol=1e-9)
    assert isinstance(posterior.target.data, WholeTerm) == (name in ("positions", "potential"))
    np.testing.assert_allclose(posterior.coordinates(fields.reshape(3, -1)), z, atol=1e-6)


@pytest.fixture(scope="module")
def drawn():
    return f.sample(_regression(), key=jax.random.key(0))


def test_laplace_and_sampling_agree_on_a_gaussian_problem(drawn):
    exact = f.laplace(_regression(), f.solve(_regression()))
    assert drawn.outcome == "converged"
    x = drawn.field.values.reshape(-1, 10) - exact.field
    size = drawn.bulk_size.values
    assert np.all(np.abs(x.mean(axis=0)) < SURE * np.sqrt(exact.variance / size))
    whitened = np.linalg.solve(exact.roots @ exact.roots.T, exact.roots @ x.T)  # roots are orthogonal
    C, least = np.cov(whitened), float(drawn.energy_bulk_size)
    assert np.all(np.abs(C - np.eye(10)) < SURE * np.sqrt((1 + np.eye(10)) / least))
    assert abs(float(drawn.energy.mean()) - exact_energy(exact)) < SURE * np.sqrt(5 / least)


def exact_energy(exact):
    """Half of the number of directions above the least energy."""
    return _sampled_least(exact) + 5.0


def _sampled_least(exact):
    posterior = _target(_regression())
    with jax.enable_x64(True):
        return float(posterior.target.energy(jnp.asarray(posterior.coordinates(exact.field[None])[0])))


def test_results_are_the_same_for_the_same_key_and_one_program_serves_all(drawn):
    before = sampling._advance._cache_size()
    again = f.sample(_regression(), key=jax.random.key(0))
    np.testing.assert_array_equal(again.field, drawn.field)
    f.sample(_regression(rows=np.linspace(0, 1, 29), variance=0.1), key=jax.random.key(1), draws=333)
    moved = f.Grid(given=[f.Axis(2, 7, points=10)])
    data = f.GaussianData([3.0, 4.0], [0.0, 1.0], 0.1)
    f.sample(f.Problem(data, f.Direct(moved), f.Gaussian(_operator(moved))), key=jax.random.key(1), draws=100)
    assert sampling._advance._cache_size() == before


@pytest.mark.parametrize("method", [f.Tempered(from_prior=True), f.Tempered()])
@pytest.mark.parametrize("far", [1.5, 3.0])
def test_tempering_gives_modes_their_exact_shares(method, far):
    problem = _two_modes(far)
    exact = f.regress(problem)
    found = f.sample(problem, key=jax.random.key(0), method=method)
    assert found.outcome == "converged", found.attrs["verdict"]
    share = float(np.mean(found.alternative == 0))
    p = exact.probabilities[0]
    assert abs(share - p) < SURE * np.sqrt(p * (1 - p) / float(found.bulk_size.min()))
    spread = np.sqrt(exact.variance / found.bulk_size.values)
    assert np.all(np.abs(found.field.values.mean(axis=(0, 1)) - exact.mean) < SURE * spread)


def test_tempering_mends_wrong_shares(monkeypatch):
    """The shares at the beginning need not be right: here they are one half each."""
    right = tempering._beginning

    def wrong(posterior, *rest):
        gaussians = dataclasses.replace(posterior.gaussians, shares=np.array([0.5, 0.5]))
        return right(dataclasses.replace(posterior, gaussians=gaussians), *rest)

    monkeypatch.setattr(tempering, "_beginning", wrong)
    problem = _two_modes()
    p = f.regress(problem).probabilities[0]
    found = f.sample(problem, key=jax.random.key(1), method=f.Tempered())
    share = float(np.mean(found.alternative == 0))
    assert abs(share - p) < SURE * np.sqrt(p * (1 - p) / float(found.bulk_size.min())) < 0.15 < abs(0.5 - p)


def test_chains_in_different_modes_are_no_success():
    found = f.sample(_two_modes(3.0), key=jax.random.key(0), draws=250)
    assert found.outcome == "stalled"
    assert "NOT to be trusted" in found.attrs["verdict"]
    assert float(found.rhat.max()) > 1.5


def test_ranks_are_uniform_where_those_of_laplace_are_not():
    for problem in (_density(), _classes()):
        p = [
            float(quenched.calibrate(problem, key=jax.random.key(3), runs=runs, method=method).p_value)
            for method, runs in ((f.LaplaceDraws(), 300), (f.NUTS(), 60))
        ]
        assert p[0] < 1e-3 < p[1], p


def test_ranks_of_a_potential_are_uniform():
    prior = f.Gaussian(_operator(WELL), mean=WELL.axes[0].coordinates ** 2)
    problem = f.Problem(f.PositionData(np.linspace(-1, 1, 20), f.Canonical(1.0)), f.Direct(WELL), prior)
    result = quenched.calibrate(problem, key=jax.random.key(0), runs=30)
    assert result.p_value > 1e-3
    assert int(result.failed) == 0


def test_hyperparameters_are_drawn_with_the_field():
    prior = f.Strength(_operator(OVER), hyperprior=f.LogFlat(0.03, 1.0))
    result = quenched.calibrate(_density(prior=prior), key=jax.random.key(1), runs=12, method=f.NUTS())
    assert result.p_value > 1e-3
    assert int(result.failed) == 0
    assert result.quantity.values[-1] == "hyperparameter"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"problem": "a word"}, "`problem` must"),
        ({"key": 3}, "`key` must"),
        ({"draws": 3}, "`draws` must"),
        ({"chains": 1}, "`chains` must"),
        ({"method": f.LaplaceDraws()}, "`method` must"),
        ({"problem": f.Problem(f.DensityData(ROWS), f.SquareRoot(OVER), f.Gaussian(f.Laplacian(OVER)))},
         "link without"),
        ({"problem": _density(f.LogDensity, prior=f.Strength(_operator(OVER), hyperprior=f.LogFlat(0.1, 1.0)))},
         "link Logits"),
        ({"problem": _regression(f.Gaussian(f.Laplacian(LINE))), "method": f.Tempered(from_prior=True)}, "add a Mass"),
    ],
)  # fmt: skip
def test_bad_input_is_said_in_a_sentence(given, sentence):
    with pytest.raises(InputError, match=sentence):
        f.sample(**{"problem": _regression(), "key": jax.random.key(0)} | given)


@pytest.mark.parametrize("wrong", [{"warmup": 0}, {"acceptance": 1.0}, {"doublings": 0.5}])
def test_options_of_the_sampler_are_checked(wrong):
    with pytest.raises(InputError, match=f"`{next(iter(wrong))}` must"):
        f.NUTS(**wrong)
