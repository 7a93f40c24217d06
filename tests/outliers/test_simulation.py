"""The experiment: the learner that is shipped, one noise for all eta, starts, draws from the posterior."""

import dataclasses

import jax
import numpy as np
import pytest

import quenched
from quenched.core.types import InputError
from quenched.outliers.learner import Freedom, Learned, Rows, State, fit, learn
from quenched.outliers.learner.classes import Sums
from quenched.outliers.model import (
    CarriedStart,
    Contaminated,
    HardSelection,
    Hebb,
    Iteration,
    RandomStart,
    SoftSelection,
    TeacherStart,
)
from quenched.outliers.simulation import gibbs, measure
from quenched.outliers.simulation.measure import ACCURACY, PASSES, begin, observe, sample
from tests.tolerances import ALGEBRA, MACHINE, MINIMUM

KEY = jax.random.key(1998)
LAW = Contaminated(gamma=10.0, eta=1.0)
SMALL = {"alpha": 10.0, "size": 12, "runs": 12, "key": KEY}
ETAS = [0.0, 1.0, 2.0]


def keys_of_run(run):
    """Of the sample and of the start."""
    return jax.random.split(jax.random.fold_in(jax.random.fold_in(KEY, 0), run), 3)[:2]


@pytest.fixture(scope="module")
def soft():
    return measure(LAW, SoftSelection(), eta=ETAS, **SMALL)


@pytest.fixture(scope="module")
def hard():
    return measure(LAW, HardSelection(), eta=ETAS, **SMALL)


CASES = {
    "soft": (SoftSelection(), RandomStart(), {}),
    "wrong gamma": (SoftSelection(4.0), TeacherStart(0.5), {}),
    "hard": (HardSelection(), TeacherStart(), {}),
    "hard, random": (HardSelection(), RandomStart(), {}),
    "Hebb": (Hebb(), RandomStart(), {}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_measured_is_what_is_shipped(double, case):
    """On the samples of a measurement `fit` finds the same vectors, energies and weights."""
    rule, start, given = CASES[case]
    points = measure(LAW, rule, start=start, eta=ETAS, **SMALL | {"runs": 2}, **given)
    told = dataclasses.replace(rule, gamma=10.0 if rule.gamma is None else rule.gamma)
    for run in range(2):
        sampling, starting = keys_of_run(run)
        for k, eta in enumerate(ETAS):
            X, S, _ = dataclasses.replace(LAW, eta=eta).sample(sampling, 120, size=12)
            c = begin(starting, start, 12)
            found = fit(told, (X, S), eta=eta, midpoint=0.0, start=c, accuracy=ACCURACY, passes=PASSES)
            here = points.isel(eta=k, run=run)
            assert float(here.R_run) == pytest.approx(found.centres[1, 0], abs=MACHINE)
            assert float(here.Q_run) == pytest.approx(np.sum(found.centres[1] ** 2), abs=MACHINE)
            assert float(here.selected_run) == pytest.approx(found.selected.mean(), abs=MACHINE)
            price = eta * 10 if isinstance(rule, Hebb) else 0.0  # of which `fit` is not told
            assert float(here.free_energy_run) == pytest.approx(found.energy + price, abs=ALGEBRA)


def test_a_sample_is_what_the_law_samples(double):
    rows = sample(KEY, LAW, np.asarray(ETAS), 120, 12)
    for k, eta in enumerate(ETAS):
        xi, S, V = dataclasses.replace(LAW, eta=eta).sample(KEY, 120, size=12)
        x = rows.Z.copy()
        x[:, 0] += rows.shift[k]
        np.testing.assert_array_equal(x, S[:, None] * xi)
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
        np.testing.assert_allclose(other.R_run.sel(eta=eta), soft.R_run.sel(eta=eta), atol=MINIMUM)


def test_descent_lowers_what_em_found(hard):
    em_only = measure(LAW, HardSelection(), eta=ETAS, search=Iteration(), **SMALL)
    assert np.all(hard.free_energy_run <= em_only.free_energy_run + 1e-12)
    assert float((hard.free_energy_run < em_only.free_energy_run - 1e-6).mean()) > 0.2
    assert "TeacherStart" in hard.attrs["start"]


def student(rule, rows, eta, c):
    """The vector that is found on one sample."""
    one = np.ones(1)
    state = State(c[None, None], np.zeros((1, 1)), 10 * one, one, np.array([eta]))
    return learn(rule, rows, state, Freedom(float(len(c))), accuracy=ACCURACY, passes=PASSES, search=Iteration())


def test_a_carried_start_goes_on_from_the_last_eta(double):
    """By hand, one eta after the other, out to where a random start has lost the teacher."""
    etas, start = [0.0, 3.0, 4.0], CarriedStart(RandomStart())
    carried = measure(LAW, HardSelection(), eta=etas, start=start, search=Iteration(), **SMALL | {"runs": 1})
    sampling, starting = keys_of_run(0)
    rows = sample(sampling, LAW, np.asarray(etas), 120, 12)
    c = random = begin(starting, RandomStart(), 12)
    for k, eta in enumerate(etas):
        world = rows.take(slice(k, k + 1))
        c, anew = (student(HardSelection(), world, eta, from_).state.centres[0, 0] for from_ in (c, random))
        np.testing.assert_allclose(carried.R_run[k, 0], c[0], atol=MACHINE)
    assert c[0] > anew[0] + 0.3


def test_a_dead_centre_has_no_angle():
    zero = np.zeros(1)
    state = State(np.zeros((1, 1, 3)), *(zero for _ in range(4)))
    sums = Sums(np.zeros((1, 5)), np.zeros((1, 1)), np.zeros((1, 1, 3)), zero, zero)
    assert observe(Learned(state, sums, zero, zero, zero))["Phi"][0] == 0.5
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
    assert points.R.dims == points.outcome.dims == ("rule_gamma", "eta", "alpha")
    matched = points.sel(alpha=10.0, rule_gamma=10.0)
    assert np.all(np.abs(matched.R - soft.R) < 5 * (matched.R_stderr + soft.R_stderr))  # another point, other samples
    assert np.all(points.sel(rule_gamma=4.0).Q < points.sel(rule_gamma=10.0).Q)


def test_the_energy_of_gibbs_learning_is_that_of_soft_selection(double):
    """It is written twice, once to be differentiated."""
    rows = sample(KEY, LAW, np.array([1.0]), 6, 2)
    for c in np.random.default_rng(0).normal(size=(5, 2)):
        at = student(SoftSelection(), rows, 1.0, c)
        c = at.state.centres[0, 0]
        energy = gibbs.energy_of(c, rows.Z, rows.shift[0], 10.0, 1.0)
        assert float(energy) == pytest.approx(at.energy[0], abs=ALGEBRA)
        p = jax.nn.sigmoid(gibbs.log_odds(c, rows.Z, rows.shift[0], 10.0, 1.0))
        np.testing.assert_allclose(p, at.sums.p[0], atol=ALGEBRA)


@pytest.mark.parametrize("temperature", [1.0, 0.4])
def test_draws_have_the_moments_of_the_posterior(double, temperature):
    """In two dimensions, against a sum over a fine grid; 500 chains from the teacher and 500 from a far start."""
    chains, P = 1000, 6
    row = sample(KEY, LAW, np.array([1.0]), P, 2)
    rows = Rows(row.Z, row.omega, row.ends, np.broadcast_to(row.shift, (chains, P)))
    one = np.ones(chains)
    begin = np.where(np.arange(chains)[:, None] % 2, np.array([1.0, 0.0]), np.array([-1.0, 2.0]))
    start = State(begin[:, None], 0 * one[:, None], 10 * one, one, one)
    minimum = learn(SoftSelection(), rows, start, Freedom(2.0), accuracy=ACCURACY, passes=PASSES)
    found = gibbs.draw(KEY, rows, start, minimum, temperature, trajectories=100)
    line = np.linspace(-6, 6, 241)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    H = jax.vmap(lambda c: gibbs.energy_of(c, row.Z, row.shift[0], 10.0, 1.0))(grid)
    weight = np.asarray(jax.nn.softmax(-H / temperature))
    for value, exact in zip(_moments(found.state.centres[:, 0]), _moments(grid), strict=True):
        expected = weight @ exact
        error = np.sqrt(weight @ exact**2 - expected**2) / np.sqrt(chains)
        assert abs(value.mean() - expected) < 4 * error
        assert abs(value[::2].mean() - value[1::2].mean()) < 4 * 2 * error  # both starts are forgotten
    assert np.mean(found.outcome == 0) > 0.99


def _moments(c):
    x, y = np.asarray(c).T
    return x, y, x**2, y**2, x * y


BAD = {
    "alpha": ({"alpha": 0.0}, "`alpha` must be positive"),
    "few": ({"alpha": 0.01}, "at least 1 example"),
    "size": ({"size": 0}, "`size` must be at least 1"),
    "runs": ({"runs": 0}, "`runs` must be at least 1"),
    "start": ({"start": "teacher"}, "must be RandomStart\\(\\), TeacherStart\\(\\) or CarriedStart\\(\\)"),
    "search": ({"search": True}, "must be Flips\\(\\) or Iteration\\(\\)"),
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
