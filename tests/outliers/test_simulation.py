"""The experiment: one noise for all eta, starts and what they lead to, draws from the posterior."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenched
from quenched.core.types import InputError
from quenched.outliers.learner import em
from quenched.outliers.model import (
    CarriedStart,
    Contaminated,
    HardSelection,
    Hebb,
    RandomStart,
    SoftSelection,
)
from quenched.outliers.simulation import gibbs, measure, runs

KEY = jax.random.key(1998)
LAW = Contaminated(gamma=10.0, eta=1.0)
SMALL = {"alpha": 10.0, "size": 12, "runs": 12, "key": KEY}
ETAS = [0.0, 1.0, 2.0]
WORLD = jax.jit(runs.world, static_argnums=(3, 4))
SAME = 1e-5  # the same minimum from two starts, each to a residual of 1e-7 at a rate of at most 0.99


@pytest.fixture(scope="module")
def soft():
    return measure(LAW, SoftSelection(), eta=ETAS, **SMALL)


@pytest.fixture(scope="module")
def hard():
    return measure(LAW, HardSelection(), eta=ETAS, **SMALL)


def test_a_world_is_what_the_law_samples(double):
    rows = WORLD(KEY, LAW, jnp.asarray(ETAS), 120, 12)
    for k, eta in enumerate(ETAS):
        xi, S, V = dataclasses.replace(LAW, eta=eta).sample(KEY, 120, size=12)
        x = np.array(rows.common)
        x[:, 0] += np.asarray(rows.shift)[k]
        np.testing.assert_allclose(x, S[:, None] * xi, atol=1e-14)
        np.testing.assert_array_equal(rows.shift[k], V)


def test_the_answer_has_error_bars_and_says_where_it_comes_from(soft):
    assert soft.R.dims == ("eta",)
    assert soft.R_run.dims == ("eta", "run")
    np.testing.assert_allclose(soft.Q_stderr, soft.Q_run.std("run", ddof=1) / np.sqrt(12))
    np.testing.assert_allclose(soft.Delta_run, soft.Q_run - 2 * soft.R_run + 1)
    np.testing.assert_allclose(soft.Phi_run, np.arccos(soft.R_run / np.sqrt(soft.Q_run)) / np.pi)
    assert int(soft.failed) == 0
    assert np.all(soft.outcome == "converged")
    assert "RandomStart" in soft.attrs["start"]
    assert soft.attrs["size"] == 12
    assert np.all(np.diff(soft.Delta) > 0)


def test_the_other_eta_of_a_sweep_do_not_matter(soft):
    """However they are asked for, every eta meets the same noise and start."""
    other = measure(LAW, SoftSelection(), eta=[2.0, 1.0, 0.5], **SMALL)
    np.testing.assert_array_equal(other.eta, [2.0, 1.0, 0.5])
    for eta in (1.0, 2.0):
        np.testing.assert_allclose(other.R_run.sel(eta=eta), soft.R_run.sel(eta=eta), atol=SAME)


def test_descent_lowers_what_em_found(hard):
    em_only = measure(LAW, HardSelection(), eta=ETAS, descend=False, **SMALL)
    assert np.all(hard.free_energy_run <= em_only.free_energy_run + 1e-12)
    assert float((hard.free_energy_run < em_only.free_energy_run - 1e-6).mean()) > 0.2
    assert "TeacherStart" in hard.attrs["start"]


def test_a_carried_start_goes_on_from_the_last_eta():
    """By hand, one eta after the other, out to where a random start has lost the teacher."""
    etas, start = [0.0, 3.0, 4.0], CarriedStart(RandomStart())
    carried = measure(LAW, HardSelection(), eta=etas, start=start, descend=False, **SMALL | {"runs": 1})
    with jax.enable_x64(True):
        sampling, starting, _ = jax.random.split(jax.random.fold_in(jax.random.fold_in(KEY, 0), 0), 3)  # the first run
        rows = WORLD(sampling, LAW, jnp.asarray(etas), 120, 12)
        c = random = runs.begin(starting, RandomStart(), (1, 12))
        for k, eta in enumerate(etas):
            world = em.Rows(rows.common, rows.shift[k : k + 1]), em.Belief(jnp.asarray(10.0), jnp.asarray([eta]))
            c, anew = em.relax(*world, c, hard=True).c, em.relax(*world, random, hard=True).c
            np.testing.assert_allclose(carried.R_run[k, 0], c[0, 0], atol=1e-12)
        assert float(c[0, 0]) > float(anew[0, 0]) + 0.3


def test_a_dead_centre_has_no_angle(double):
    nothing = em.Found(jnp.zeros((1, 3)), *(jnp.zeros(1) for _ in range(6)))
    assert float(runs.observe(nothing)["Phi"][0]) == 0.5
    dead = measure(LAW, HardSelection(), eta=[12.0, 13.0, 14.0], **SMALL)
    assert np.all(dead.Q_run == 0)
    assert np.all(dead.free_energy_run == 0)
    assert np.all(dead.Phi == 0.5)


def test_the_hebb_rule_has_its_closed_form():
    points = measure(LAW, Hebb(), eta=ETAS, **SMALL | {"runs": 200})
    w, a, g, N = 1 / (1 + np.exp(np.array(ETAS))), 10.0, 10.0, 12
    R = a * w / (a + 1 / g)
    Q = R**2 + a * w * (1 - w) / N / (a + 1 / g) ** 2 + a / g / (a + 1 / g) ** 2  # of finite N
    theory = points[["R", "Q"]].assign(R=("eta", R), Q=("eta", Q))
    assert quenched.agreement(theory, points, variables=["R", "Q"]).passed


def test_a_student_may_believe_in_another_gamma_and_alpha_sweeps(soft):
    given = SMALL | {"alpha": [10.0]}
    points = measure(LAW, SoftSelection(), rule_gamma=[4.0, 10.0], eta=ETAS, **given)
    assert points.R.dims == ("alpha", "rule_gamma", "eta")
    assert points.outcome.dims == ("alpha", "rule_gamma", "eta")
    matched = points.sel(alpha=10.0, rule_gamma=10.0)
    assert np.all(np.abs(matched.R - soft.R) < 5 * (matched.R_stderr + soft.R_stderr))  # another point, other samples
    assert np.all(points.sel(rule_gamma=4.0).Q < points.sel(rule_gamma=10.0).Q)


def test_the_slope_of_the_log_weight_is_that_of_the_energy(double):
    """A wrong one would still draw from the right distribution, only ever more slowly."""
    rows, belief = WORLD(KEY, LAW, jnp.asarray([1.0]), 6, 2), em.Belief(jnp.asarray(10.0), jnp.ones(1))
    c = jnp.asarray([0.3, -0.8])
    plain = jax.grad(lambda c: -2 * em.energy(rows, belief, c[None])[0] / 0.4)(c)
    np.testing.assert_allclose(jax.grad(gibbs._log_weight(rows, belief, 0.4))(c), plain, rtol=1e-10)


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_draws_have_the_moments_of_the_posterior(double, temperature):
    """In two dimensions, against a sum over a fine grid; 500 chains from the teacher and 500 from a far start."""
    chains, P = 1000, 6
    row = WORLD(KEY, LAW, jnp.asarray([1.0]), P, 2)
    rows = em.Rows(row.common, jnp.broadcast_to(row.shift, (chains, P)))
    belief = em.Belief(jnp.asarray(10.0), jnp.ones(chains))
    start = jnp.where(jnp.arange(chains)[:, None] % 2, jnp.asarray([1.0, 0.0]), jnp.asarray([-1.0, 2.0]))
    found = gibbs.draw(KEY, rows, belief, start, jnp.asarray(temperature), trajectories=100)
    line = jnp.linspace(-6, 6, 241)
    grid = jnp.stack(jnp.meshgrid(line, line), axis=-1).reshape(-1, 2)
    H = 2 * em.energy(em.Rows(row.common, jnp.broadcast_to(row.shift, (len(grid), P))),
                      em.Belief(belief.gamma, jnp.ones(len(grid))), grid)  # fmt: skip
    weight = np.asarray(jax.nn.softmax(-H / temperature))
    for value, exact in zip(_moments(found.c), _moments(grid), strict=True):
        expected = weight @ exact
        error = np.sqrt(weight @ exact**2 - expected**2) / np.sqrt(chains)
        assert abs(value.mean() - expected) < 4 * error
        assert abs(value[::2].mean() - value[1::2].mean()) < 4 * 2 * error  # both starts are forgotten
    assert np.mean(np.asarray(found.outcome) == 0) > 0.99


def _moments(c):
    x, y = np.asarray(c).T
    return x, y, x**2, y**2, x * y


BAD = {
    "alpha": ({"alpha": 0.0}, "`alpha` must be positive"),
    "few": ({"alpha": 0.01}, "at least 1 example"),
    "size": ({"size": 0}, "`size` must be at least 1"),
    "runs": ({"runs": 0}, "`runs` must be at least 1"),
    "start": ({"start": "teacher"}, "must be RandomStart\\(\\), TeacherStart\\(\\) or CarriedStart\\(\\)"),
    "eta": ({"eta": [0.0, np.inf]}, "`eta` must be finite"),
    "gamma": ({"gamma": 5.0}, "give `law_gamma` or `rule_gamma`"),
    "control": ({"width": 1.0}, "must be a field of the law or the rule"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    given, message = BAD[name]
    with pytest.raises(InputError, match=message):
        measure(LAW, SoftSelection(), **SMALL | given)


def test_bad_law_and_rule_are_refused():
    with pytest.raises(InputError, match="must be Contaminated"):
        measure(SoftSelection(), SoftSelection(), **SMALL)
    with pytest.raises(InputError, match="must be SoftSelection"):
        measure(LAW, LAW, **SMALL)
