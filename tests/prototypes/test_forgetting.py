"""Windows, drift and weight decay: exact cases, and theory against both simulators."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

import quenched
from quenched import prototypes
from quenched.core.types import InputError
from quenched.prototypes.theory import winners
from tests.systems import lvq21

KEY = jax.random.key(2018)
ALLOWED = {"allowance": 0.004, "relative_allowance": 0.01}
"""Deviation of a system of 200 dimensions from infinitely many: 1/N times numbers of order 1."""
RUNS = {
    "chain": (prototypes.Chain(), {"runs": 200, "tests": 100}),
    "direct": (prototypes.Direct(), {"runs": 60, "tests": 100}),
}
TIMES = [1.0, 2.0, 5.0, 10.0]
CASES = {
    "window": (prototypes.TwoClusters(0.8), prototypes.LVQ21(0.2, window=0.5)),
    "drift and decay": (
        prototypes.TwoClusters(0.6, 1.5, (1.0, 0.5), drift=0.1),
        prototypes.LVQ1(0.5, weight_decay=0.05),
    ),
}


@pytest.mark.parametrize("simulator", RUNS)
@pytest.mark.parametrize("name", CASES)
def test_theory_and_simulation_agree(name, simulator):
    (law, rule), (way, counts) = CASES[name], RUNS[simulator]
    curve = prototypes.curve(law, rule, alpha=TIMES)
    points = prototypes.measure(law, rule, alpha=TIMES, size=200, key=KEY, simulator=way, **counts)
    proof = quenched.agreement(curve, points, **ALLOWED)
    assert proof.passed, str(proof)
    if simulator == "chain":  # the comparison tells effects of this size
        plain = prototypes.curve(*plainer(law, rule), alpha=TIMES)
        assert not quenched.agreement(plain, points, **ALLOWED).passed


def plainer(law, rule):
    if isinstance(rule, prototypes.LVQ21):
        return law, prototypes.LVQ21(0.2, window=0.4)
    return prototypes.TwoClusters(0.6, 1.5, (1.0, 0.5), drift=0.085), rule


def test_a_wide_window_is_none():
    law, alpha = prototypes.TwoClusters(0.7, 1.2, (1.0, 0.6)), [1.0, 5.0, 10.0]
    wide = prototypes.curve(law, prototypes.LVQ21(0.2, window=1e6), alpha=alpha)
    none = prototypes.curve(law, prototypes.LVQ21(0.2), alpha=alpha)
    for name in ("R", "Q", "error"):
        np.testing.assert_allclose(wide[name], none[name], rtol=1e-7, atol=1e-9)


def test_averages_over_the_window_are_those_of_drawn_examples(double):
    law = prototypes.TwoClusters(0.7, 1.2, (1.0, 0.6))
    R, window = np.array([[0.8, -0.1], [0.1, 0.5]]), 0.3
    rest = np.array([[0.3, 0.0], [-0.2, 0.4]])
    w = np.hstack([R, rest])
    found = winners.average_window(law.mixture(), R, w @ w.T, window)
    rng, n = np.random.default_rng(0), 400_000
    for k, v in enumerate(law.variances):
        xi = np.sqrt(v) * rng.normal(size=(n, 4))
        xi[:, k] += law.separation
        h = xi @ w.T
        inside = np.abs(2 * (h[:, 0] - h[:, 1]) - (w[0] @ w[0] - w[1] @ w[1])) <= 4 * window * v
        drawn = [inside.mean(), *(inside @ h / n), *(inside @ xi[:, :2] / n)]
        theory = [found.win[0, k], *found.h[0, :, k], *found.b[0, :, k]]
        np.testing.assert_allclose(theory, drawn, atol=5 * 1.5 / np.sqrt(n))


def test_without_examples_that_teach_all_is_forgotten_at_the_rates_declared():
    # LVQ+ with prototypes so far away that the other wins everything: the loser only decays.
    law = prototypes.TwoClusters(0.5, 1.0, drift=0.3)
    start = prototypes.Overlaps([[0.5, 0.5], [40.0, -20.0]], [[0.5, 0.0], [0.0, 2500.0]])
    curve = prototypes.curve(law, prototypes.LVQ1(0.1, weight_decay=0.02), alpha=[0.0, 2.0], start=start)
    loser = curve.isel(prototype=1, prototype2=1)
    np.testing.assert_allclose(loser.R[1], loser.R[0] * np.exp(-0.32 * 2), rtol=1e-6)
    np.testing.assert_allclose(loser.Q[1], 2500.0 * np.exp(-0.04 * 2), rtol=1e-6)


def test_centres_turn_as_declared():
    law = prototypes.TwoClusters(0.5, 3.0, (1e-6, 1e-6), drift=0.5)
    X, y = law.sample(jax.random.key(1), 4000, size=400)
    up = X[y == 1] / 3.0
    np.testing.assert_allclose(np.linalg.norm(up, axis=1), 1.0, atol=0.02)
    assert abs(np.mean(up[-50:] @ X[y == -1][-50:].T)) < 0.02
    overlap = up @ np.eye(400)[0]  # from 1 to exp(-5)
    times = np.flatnonzero(y == 1) / 400
    assert np.mean(np.abs(overlap - np.exp(-0.5 * times))) < 0.1
    with pytest.raises(InputError, match="`drift` must not exceed a tenth of the dimension"):
        prototypes.TwoClusters(drift=3.0).sample(KEY, 5, size=20)


def test_a_rest_state_is_where_the_curve_ends():
    law, rule = prototypes.TwoClusters(0.6, drift=0.05), prototypes.LVQ1(0.5, weight_decay=0.02)
    rest, late = prototypes.asymptote(law, rule), prototypes.curve(law, rule, alpha=150.0)
    np.testing.assert_allclose(rest.R, late.R, atol=1e-6)
    np.testing.assert_allclose(rest.error, late.error, atol=1e-6)
    still, free = (float(prototypes.asymptote(prototypes.TwoClusters(0.6, drift=d), rule).error) for d in (0.0, 0.05))
    assert still < free
    with pytest.raises(InputError, match="`small_rate` must be False with a drift or a weight decay"):
        prototypes.asymptote(law, rule, small_rate=True)
    with pytest.raises(InputError, match="without drift and weight decay"):
        prototypes.escape_rate(law, prototypes.VQ(0.1))


def test_a_rest_state_is_one_that_vectors_can_have():
    # Far apart clusters leave the window empty: all states there are at rest, and Newton's steps lead anywhere.
    law = prototypes.TwoClusters(0.99, 10.0)
    rest = prototypes.asymptote(law, prototypes.LVQ21(3.0, window=0.01))
    R, Q = rest.R.values, rest.Q.values
    assert rest.outcome == "stalled"
    assert np.linalg.eigvalsh(Q - R @ R.T)[0] > -1e-6
    late = prototypes.curve(law, prototypes.LVQ21(3.0, window=0.01), alpha=3000.0)
    np.testing.assert_allclose(R, late.R, atol=0.01)


def test_decay_in_one_step_is_little():
    law, rule = prototypes.TwoClusters(), prototypes.LVQ1(0.1, weight_decay=3.0)
    with pytest.raises(InputError, match="`weight_decay` must not exceed a tenth of the dimension, but it is 3 and"):
        prototypes.measure(law, rule, alpha=1.0, size=20, runs=2, key=KEY)


def test_with_a_window_the_boundary_comes_ever_nearer_to_the_best_flat_one():
    law, rule = prototypes.TwoClusters(0.8), prototypes.LVQ21(0.2, window=1.0)
    error = prototypes.curve(law, rule, alpha=[10.0, 100.0, 1000.0, 10_000.0]).error.values
    best = float(prototypes.optimum(law).error)
    assert np.all(np.diff(error) < 0)
    assert best < error[-1] < best + 0.002
    without = prototypes.asymptote(law, prototypes.LVQ21(0.2))
    assert float(without.error) == pytest.approx(0.2)  # the larger class always wins


def test_the_time_to_stop_is_that_of_the_exact_solution():
    p, rate, q = 0.8, 0.2, 1e-4

    def error(alpha):
        # In closed form: R from `systems.lvq21`; Q obeys linear equations, too, with w = path + noise of variance V.
        R = lvq21.R(p, 1.0, rate, alpha, np.zeros((2, 2)))
        gamma, t = rate * (2 * p - 1), alpha
        kept = np.exp(-gamma * t), np.exp(gamma * t)
        noise = rate**2
        V = [
            noise * (1 - np.exp(-2 * gamma * t)) / (2 * gamma),
            -noise * t,
            noise * (np.exp(2 * gamma * t) - 1) / (2 * gamma),
        ]
        Q = R @ R.T + np.array([[V[0] + q * kept[0] ** 2, V[1]], [V[1], V[2] + q * kept[1] ** 2]])
        D = Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]
        ahead = [2 * (R[S, S] - R[1 - S, S]) - (Q[S, S] - Q[1 - S, 1 - S]) for S in (0, 1)]
        return p * ndtr(-ahead[0] / (2 * np.sqrt(D))) + (1 - p) * ndtr(-ahead[1] / (2 * np.sqrt(D)))

    exact = minimize_scalar(error, bounds=(2.0, 30.0), method="bounded", options={"xatol": 1e-8})
    found = prototypes.stop_early(prototypes.TwoClusters(p), prototypes.LVQ21(rate), until=50.0)
    assert float(found.stop) == pytest.approx(exact.x, abs=0.02)
    assert float(found.error) == pytest.approx(exact.fun, abs=1e-6)
    assert found.outcome == "converged"
    early = prototypes.stop_early(prototypes.TwoClusters(p), prototypes.LVQ21(rate), until=5.0)
    assert early.outcome == "absent"
    assert float(early.stop) == 5.0


def test_stopping_early_pays_in_the_experiment():
    law, rule = prototypes.TwoClusters(0.8), prototypes.LVQ21(0.2)
    best = prototypes.stop_early(law, rule, until=50.0)
    times = [float(best.stop) / 4, float(best.stop), 4 * float(best.stop)]
    points = prototypes.measure(
        law, rule, alpha=times, size=200, key=KEY, simulator=prototypes.Chain(), runs=200, tests=100
    )
    before, at, after = points.error.values
    assert at == pytest.approx(float(best.error), abs=0.004 + 4 * float(points.error_stderr[1]))
    assert at < before - 0.02
    assert at < after - 0.005
