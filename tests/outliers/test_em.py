"""EM for many worlds on the same noise: its laws, its limits, and the two ways of a pass."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quenched.core.types import InputError, Outcome
from quenched.outliers.learner import em
from tests.tolerances import MACHINE

P, N, K = 60, 7, 9  # nine worlds: the last one goes on alone
KEY = jax.random.key(1998)
SAME = 1e-5  # the same minimum by two ways, each to a residual of 1e-7 at a rate of at most 0.99
STEPS = 12


@functools.partial(jax.jit, static_argnames=("worlds",))
def draw(key, gamma, eta, scale, worlds=K):
    """Rows of a contaminated world, and starts anywhere; `eta` is that of the first world."""
    noise, hidden, start = jax.random.split(key, 3)
    etas = eta + jnp.arange(worlds) / 4
    V = jax.random.uniform(hidden, (P,)) < jax.nn.sigmoid(-etas)[:, None]
    rows = em.Rows(jax.random.normal(noise, (P, N)) / jnp.sqrt(gamma), V.astype(float))
    return rows, em.Belief(jnp.asarray(gamma), etas), scale * jax.random.normal(start, (worlds, N)) / jnp.sqrt(N)


def examples(rows, k):
    """The rows of one world."""
    x = np.array(rows.common)
    x[:, 0] += np.asarray(rows.shift)[k]
    return x


def soft_energy(x, gamma, eta, c):
    h = gamma * x @ c - gamma * c @ c / 2 - eta
    return c @ c / 2 - np.sum(np.logaddexp(0, h)) / N


def hard_energy(x, gamma, eta, V):
    """H_h / N of a selection, as it is printed."""
    a, b = 1 + gamma * V.sum() / N, gamma / np.sqrt(N) * V @ x
    return (-b @ b / (2 * a) + N / 2 * np.log(a) + eta * V.sum()) / N


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
    with jax.enable_x64(True):
        rows, belief, start = draw(jax.random.key(seed), gamma, eta, scale)
        for kind in ({}, {"accelerate": False}, {"hard": True}):
            path = [np.asarray(em.relax(rows, belief, start, max_steps=n, **kind).energy) for n in range(1, STEPS)]
            assert np.all(np.diff(path, axis=0) <= 1e-11 * (1 + np.abs(path[0])))


def test_a_step_is_the_printed_one(double):
    rows, belief, c = draw(KEY, 10.0, 0.0, 1.0)
    variance = jnp.linspace(0.0, 0.3, K)
    soft, _ = em.step(rows, belief, c, jnp.zeros(K))
    hard, after = em.step(rows, belief, c, variance, hard=True)
    for k in range(K):
        x, J, eta = examples(rows, k), np.sqrt(N) * np.asarray(c[k]), float(belief.eta[k])
        p = 1 / (1 + np.exp(-(10 * x @ J / np.sqrt(N) - 10 * J @ J / (2 * N) - eta)))
        np.testing.assert_allclose(np.sqrt(N) * soft[k], np.sqrt(N) * p @ x / (p.sum() + N / 10), atol=MACHINE)
        V = 10 * x @ J / np.sqrt(N) - 5 * (J @ J / N + float(variance[k])) - eta > 0
        a = 1 + 10 * V.sum() / N
        np.testing.assert_allclose(np.sqrt(N) * hard[k], 10 / np.sqrt(N) * V @ x / a, atol=MACHINE)
        np.testing.assert_allclose(after[k], 1 / a, atol=MACHINE)


def test_the_energies_are_the_printed_ones(double):
    rows, belief, start = draw(KEY, 10.0, 0.0, 1.0)
    soft = em.energy(rows, belief, start)
    found = em.relax(rows, belief, start, hard=True)
    for k in range(K):
        x, eta = examples(rows, k), float(belief.eta[k])
        np.testing.assert_allclose(soft[k], soft_energy(x, 10.0, eta, np.asarray(start[k])), atol=MACHINE)
        c = np.asarray(found.c[k])
        V = 10 * x @ c - 5 * (c @ c + float(found.variance[k])) - eta > 0
        np.testing.assert_allclose(found.energy[k], hard_energy(x, 10.0, eta, V.astype(float)), atol=MACHINE)
        np.testing.assert_allclose(found.selected[k], V.mean(), atol=MACHINE)


@pytest.mark.parametrize("hard", [False, True])
def test_the_kernel_reads_once_what_two_products_read_twice(double, hard):
    """Rows and columns that fill neither the last tile nor a power of two."""
    rows, belief, c = draw(KEY, 10.0, 0.0, 1.0)
    rows = em.Rows(rows.common[:53], rows.shift[:3, :53])
    plain = em.two_products(rows, 10 * c[:3], belief.eta[:3], hard=hard)
    kernel = em.stream(rows, 10 * c[:3], belief.eta[:3], hard=hard, tile=4, programs=5, interpret=True)
    for one, other in zip(plain, kernel, strict=True):
        np.testing.assert_allclose(one, other, atol=MACHINE)


def test_without_doubt_soft_selection_is_the_hebb_rule(double):
    """As eta falls every weight tends to 1; the energy too, without a constant that the rule does not see."""
    rows, belief, start = draw(KEY, 10.0, -500.0, 1.0)
    soft, hebb = em.relax(rows, belief, start), em.hebb(rows, belief)
    np.testing.assert_allclose(soft.c, hebb.c, atol=MACHINE)
    np.testing.assert_allclose(soft.energy, hebb.energy, rtol=MACHINE)
    x = examples(rows, 0)
    np.testing.assert_allclose(hebb.c[0], x.sum(axis=0) / N / (P / N + 1 / 10), atol=MACHINE)


@pytest.mark.parametrize("hard", [False, True])
def test_worlds_together_are_worlds_alone(double, hard):
    rows, belief, start = draw(KEY, 10.0, 0.0, 1.0)
    together = em.relax(rows, belief, start, hard=hard)
    assert np.all(np.asarray(together.outcome) == Outcome.converged)
    assert len(set(np.asarray(together.steps).tolist())) > 2
    for k in range(0, K, 4):
        one = em.Rows(rows.common, rows.shift[k : k + 1]), em.Belief(belief.gamma, belief.eta[k : k + 1])
        alone = em.relax(*one, start[k : k + 1], hard=hard)
        np.testing.assert_allclose(alone.c[0], together.c[k], atol=SAME)
        np.testing.assert_allclose(alone.energy[0], together.energy[k], atol=MACHINE)
        assert int(alone.steps[0]) == int(together.steps[k])


def test_stretched_steps_end_where_plain_ones_do(double):
    rows, belief, start = draw(KEY, 10.0, 0.0, 1.0)
    plain, fast = (em.relax(rows, belief, start, accelerate=a) for a in (False, True))
    np.testing.assert_allclose(plain.c, fast.c, atol=SAME)
    assert int(fast.steps.sum()) < 0.8 * int(plain.steps.sum())
    few = em.relax(rows, belief, start, max_steps=3)
    assert np.all(np.asarray(few.outcome) == Outcome.stalled)
    assert np.all(np.asarray(few.steps) == 3)


@worlds
@settings(max_examples=10, deadline=None)
def test_the_descent_ends_where_no_flip_lowers_the_energy(seed, gamma, eta, scale):
    """All P flips of each world tried one by one, with the printed energy."""
    with jax.enable_x64(True):
        rows, belief, start = draw(jax.random.key(seed), gamma, eta, scale)
        before = em.relax(rows, belief, start, hard=True)
        after, selections = em.descend(rows, belief, before.c, before.variance)
        assert np.all(np.asarray(after.outcome) == Outcome.converged)
        assert np.all(np.asarray(after.energy) <= np.asarray(before.energy) + 1e-11)
        for k in (0, K - 1):
            x, now, V = examples(rows, k), float(belief.eta[k]), np.asarray(selections[k])
            least = hard_energy(x, gamma, now, V)
            np.testing.assert_allclose(after.energy[k], least, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(after.c[k], gamma * V @ x / (N + gamma * V.sum()), rtol=1e-9, atol=1e-9)
            flips = np.abs(V - np.eye(P))
            assert min(hard_energy(x, gamma, now, one) for one in flips) >= least - 1e-9


def test_single_precision_is_refused():
    rows = em.Rows(np.zeros((2, 2)), np.zeros((1, 2)))
    with pytest.raises(InputError, match="must run in double precision"):
        em.step(rows, em.Belief(np.ones(()), np.zeros(1)), np.zeros((1, 2)), np.zeros(1))
