"""EM in several worlds on the same noise: its laws, its limits, the energies as printed, and the descent by rows."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quenched.core.types import Outcome
from quenched.outliers.learner.classes import Classes, Freedom, Rows, State
from quenched.outliers.learner.search import climb, descend, learn
from quenched.outliers.model import Flips, HardSelection, Hebb, Iteration, SoftSelection
from tests.tolerances import ALGEBRA, MACHINE, MINIMUM, SAME

P, N, W = 60, 7, 9
FINE = {"accuracy": 1e-13, "passes": 10_000}
PAPER = Freedom(float(N))
KINDS = {"soft": SoftSelection(), "hard": HardSelection()}


def draw(seed=1998, gamma=10.0, eta=0.0, scale=1.0):
    """Rows of nine contaminated worlds, and starts anywhere; `eta` is that of the first world."""
    rng, etas = np.random.default_rng(seed), eta + np.arange(W) / 4
    noise, u = rng.normal(size=(P, N)) / np.sqrt(gamma), rng.random(P)
    rows = Rows(noise, np.ones(P), np.array([0, P]), (u < 1 / (1 + np.exp(etas))[:, None]).astype(float))
    return rows, believe(scale * rng.normal(size=(W, N)) / np.sqrt(N), gamma, etas)


def believe(c, gamma, etas):
    """The paper's student at centres `[W, N]`."""
    one = np.ones(len(etas))
    return State(c[:, None], 0 * one[:, None], gamma * one, one, etas)


def examples(rows, k):
    """The rows of one world."""
    x = rows.Z.copy()
    x[:, 0] += rows.shift[k]
    return x


def soft_energy(x, gamma, eta, c):
    h = gamma * x @ c - gamma * c @ c / 2 - eta
    return N * c @ c / 2 - np.sum(np.logaddexp(0, h))


def hard_energy(x, gamma, eta, V):
    """H_h of a selection, as it is printed. [dietrich1998, eq. (10)]"""
    a, b = 1 + gamma * V.sum() / N, gamma / np.sqrt(N) * V @ x
    return -b @ b / (2 * a) + N / 2 * np.log(a) + eta * V.sum()


worlds = given(
    seed=st.integers(0, 2**31),
    gamma=st.floats(0.1, 100),
    eta=st.floats(-3, 6),
    scale=st.sampled_from([0.01, 1.0, 10.0]),
)


@worlds
@settings(max_examples=25, deadline=None)
def test_no_step_raises_the_energy(seed, gamma, eta, scale):
    """EM's law, in plain, stretched and hard steps, from anywhere."""
    rows, start = draw(seed, gamma, eta, scale)
    for selection, stretch in ((SoftSelection(), True), (SoftSelection(), False), (HardSelection(), False)):
        model = Classes(rows, PAPER, selection)
        path = [climb(model, start, accuracy=1e-13, passes=n, stretch=stretch).energy for n in range(1, 12)]
        assert np.all(np.diff(path, axis=0) <= 1e-11 * (1 + np.abs(path[0])))


def test_a_step_is_the_printed_one():
    """Equations (24), (25) and (27) to (29), what is unknown of the centre included."""
    rows, start = draw()
    start = start._replace(unknown=np.linspace(0.0, 0.3, W)[:, None])
    hard, soft = Classes(rows, PAPER, HardSelection()), Classes(rows, PAPER, SoftSelection())
    after, variance = (leaf[:, 0] for leaf in hard.maximize(hard.expect(start), start)[:2])
    plain = start._replace(unknown=np.zeros((W, 1)))
    mean = soft.maximize(soft.expect(plain), plain).centres[:, 0]
    for k in range(W):
        x, J, eta, v = examples(rows, k), np.sqrt(N) * start.centres[k, 0], start.eta[k], start.unknown[k, 0]
        p = 1 / (1 + np.exp(-(10 * x @ J / np.sqrt(N) - 10 * J @ J / (2 * N) - eta)))
        np.testing.assert_allclose(np.sqrt(N) * mean[k], np.sqrt(N) * p @ x / (p.sum() + N / 10), atol=MACHINE)
        V = 10 * x @ J / np.sqrt(N) - 5 * (J @ J / N + v) - eta > 0
        a = 1 + 10 * V.sum() / N
        np.testing.assert_allclose(np.sqrt(N) * after[k], 10 / np.sqrt(N) * V @ x / a, atol=MACHINE)
        np.testing.assert_allclose(variance[k], 1 / a, atol=MACHINE)


def test_the_energies_are_the_printed_ones():
    rows, start = draw()
    model = Classes(rows, PAPER, SoftSelection())
    soft = model.energy(model.expect(start), start)
    found = learn(HardSelection(), rows, start, PAPER, search=Iteration(), **FINE)
    for k in range(W):
        x, eta, c = examples(rows, k), start.eta[k], found.state.centres[k, 0]
        assert soft[k] == pytest.approx(soft_energy(x, 10.0, eta, start.centres[k, 0]), abs=ALGEBRA)
        V = 10 * x @ c - 5 * (c @ c + found.state.unknown[k, 0]) - eta > 0
        np.testing.assert_array_equal(found.sums.p[k], V)
        assert found.energy[k] == pytest.approx(hard_energy(x, 10.0, eta, V.astype(float)), abs=ALGEBRA)


def test_without_doubt_soft_selection_is_the_hebb_rule():
    """As eta falls every weight tends to 1; the energy too, without a constant that the rule does not see."""
    rows, start = draw(eta=-500.0)
    soft, hebb = (learn(rule, rows, start, PAPER, **FINE) for rule in (SoftSelection(), Hebb()))
    np.testing.assert_allclose(soft.state.centres, hebb.state.centres, atol=MACHINE)
    np.testing.assert_allclose(soft.energy, hebb.energy, rtol=MACHINE)
    x = examples(rows, 0)
    np.testing.assert_allclose(hebb.state.centres[0, 0], x.sum(axis=0) / N / (P / N + 1 / 10), atol=MACHINE)


@pytest.mark.parametrize("kind", KINDS)
def test_worlds_together_are_worlds_alone(kind):
    """In the table of a world its first components are as they are."""
    rows, start = draw()
    together = climb(Classes(rows, PAPER, KINDS[kind]), start, **FINE)
    assert np.all(together.outcome == Outcome.converged)
    assert len(set(together.passes.tolist())) > 2
    for k in range(0, W, 4):
        alone = dataclasses.replace(rows, Z=examples(rows, k), shift=None)
        found = climb(Classes(alone, PAPER, KINDS[kind]), State(*(leaf[k : k + 1] for leaf in start)), **FINE)
        np.testing.assert_allclose(found.state.centres[0], together.state.centres[k], atol=MACHINE)
        assert found.energy[0] == pytest.approx(together.energy[k], abs=ALGEBRA)
        assert found.passes[0] == together.passes[k]


def test_stretched_steps_end_where_plain_ones_do():
    rows, start = draw()
    model = Classes(rows, PAPER, SoftSelection())
    plain, fast = (climb(model, start, **FINE, stretch=s) for s in (False, True))
    np.testing.assert_allclose(plain.state.centres, fast.state.centres, atol=MINIMUM)
    assert fast.passes.sum() < 0.8 * plain.passes.sum()
    few = climb(model, start, accuracy=1e-13, passes=3)
    assert np.all(few.outcome == Outcome.stalled)
    assert np.all(few.passes == 3)


@worlds
@settings(max_examples=10, deadline=None)
def test_the_descent_ends_where_no_flip_lowers_the_energy(seed, gamma, eta, scale):
    """All P flips of each world tried one by one, with the printed energy; EM would not change it either."""
    rows, start = draw(seed, gamma, eta, scale)
    before = learn(HardSelection(), rows, start, PAPER, search=Iteration(), **FINE)
    after = learn(HardSelection(), rows, start, PAPER, search=Flips(), **FINE)
    assert np.all(after.outcome == Outcome.converged)
    assert np.all(after.energy <= before.energy + SAME)
    model = Classes(rows, PAPER, HardSelection())
    np.testing.assert_array_equal(model.expect(after.state).p, after.sums.p)
    for k in (0, W - 1):
        x, V = examples(rows, k), after.sums.p[k]
        least = hard_energy(x, gamma, start.eta[k], V)
        np.testing.assert_allclose(after.energy[k], least, rtol=SAME, atol=SAME)
        np.testing.assert_allclose(after.state.centres[k, 0], gamma * V @ x / (N + gamma * V.sum()), atol=SAME)
        assert min(hard_energy(x, gamma, start.eta[k], one) for one in np.abs(V - np.eye(P))) >= least - SAME


# Classes of a table ----------------------------------------------------------------------------------------------


def table(seed=0, classes=3, rows=90, size=4, omega=None, power=1):
    """Classes and broad outliers with any label, sorted by class, about their mean."""
    rng = np.random.default_rng(seed)
    y = np.sort(np.arange(rows) % classes)
    X = 3 * rng.normal(size=(classes, size))[y] + rng.normal(size=(rows, size))
    X[rng.random(rows) < 0.3] *= 4
    omega = np.ones(rows) if omega is None else omega
    Z = X**power - np.average(X**power, axis=0, weights=omega)
    return Rows(Z, omega, np.concatenate([[0], np.cumsum(np.bincount(y))]))


def anywhere(rng, classes, size, gamma=None, spread=None, eta=None):
    """A state of one world."""
    drawn = (rng.uniform(0.3, 2), 1 + rng.random(), rng.normal())
    scales = (np.array([x if y is None else y]) for x, y in zip(drawn, (gamma, spread, eta), strict=True))
    return State(rng.normal(size=(1, classes, size)), np.zeros((1, classes)), *scales)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), *[st.booleans()] * 4, st.integers(2, 4))
def test_em_never_goes_down(seed, hard, gamma, spread, eta, classes):
    rng = np.random.default_rng(seed)
    rows = table(seed, classes, rows=40, omega=rng.uniform(0.1, 3, 40), power=3)
    model = Classes(rows, Freedom(0.1, gamma, spread, eta), HardSelection() if hard else SoftSelection())
    state, levels = anywhere(rng, classes, 4, gamma=0.3), []
    for _ in range(30):
        sums = model.expect(state)
        levels.append(model.level(sums, state)[0])
        state = model.maximize(sums, state)
    assert np.all(np.diff(levels) >= -ALGEBRA * np.abs(levels[:-1]))
    assert np.all(np.isfinite(state.centres))
    assert state.spread[0] >= 1
    found = climb(model, state, accuracy=1e-12, passes=2000)  # stretched, it goes on from there
    assert model.level(found.sums, found.state)[0] >= levels[-1] - ALGEBRA * abs(levels[-1])


@pytest.mark.parametrize("kind", KINDS)
def test_the_level_is_the_log_posterior(kind):
    """From Gaussian densities; for hard selection the centres are integrated out, class by class."""
    from scipy.stats import multivariate_normal

    rows = table(rows=12, size=2)
    model = Classes(rows, Freedom(0.2, eta=True), KINDS[kind])
    codes, levels, direct = np.repeat(np.arange(3), np.diff(rows.ends)), [], []
    for seed in range(3):
        state = anywhere(np.random.default_rng(seed), 3, 2)
        g, rho, eta, c = state.gamma[0], state.spread[0], state.eta[0], state.centres[0]
        sums = model.expect(state)
        levels.append(model.level(sums, state)[0])
        pi, p = 1 / (1 + np.exp(eta)), sums.p[0]
        outside = multivariate_normal(np.zeros(2), rho / g).pdf(rows.Z) * (1 - pi)
        if kind == "hard":
            value = np.sum(np.log(outside[p == 0])) + np.log(pi) * np.sum(p)
            for z in (rows.Z[(codes == k) & (p > 0)] for k in range(3)):
                if len(z):
                    spread = np.eye(len(z)) / g + 1 / model.free.tau
                    value += sum(multivariate_normal(np.zeros(len(z)), spread).logpdf(z[:, i]) for i in range(2))
        else:
            inside = [multivariate_normal(c[k], 1 / g).pdf(z) for k, z in zip(codes, rows.Z, strict=True)]
            value = np.sum(np.log(outside + pi * np.array(inside))) - 0.5 * model.free.tau * np.sum(c**2)
        direct.append(value + np.log(pi) + np.log(1 - pi))  # one row more of each kind
    np.testing.assert_allclose(np.diff(levels), np.diff(direct), rtol=SAME)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.booleans())
def test_descent_of_weighted_rows_ends_where_none_is_worth_changing(seed, weighted):
    rng = np.random.default_rng(seed)
    rows = table(seed, rows=30, size=3, omega=rng.choice([0.5, 1.0, 2.0], 30) if weighted else None)
    model, state = Classes(rows, Freedom(0.2), HardSelection()), anywhere(rng, 3, 3, 0.4, 1.5, 0.5)

    def of(p):
        total = np.add.reduceat(p[:, None] * rows.Z, rows.ends[:-1])
        return model.add_up(p[None], total[None], np.zeros(1), state)

    def energy(p):
        return model.energy(of(p), state)[0]

    begin = of(rows.omega * (rng.random(30) < 0.5))
    end, flips = descend(model, begin, state)
    lowest, p = model.energy(end, state)[0], end.p[0]
    assert lowest <= model.energy(begin, state)[0]
    assert (flips[0] > 0) == np.any(begin.p != end.p)
    assert energy(p) == pytest.approx(lowest, abs=ALGEBRA)
    for i, omega in enumerate(rows.omega):
        other, one = p.copy(), min(omega, 1.0)
        other[i] += one if p[i] == 0 else -one
        assert energy(other) >= lowest - ALGEBRA
