"""The learner against a plain loop, and the laws that on-line training obeys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quenched.core.types import InputError, Outcome
from quenched.prototypes.learner.fit import fit
from quenched.prototypes.learner.steps import nearest, repeated
from quenched.prototypes.model import LVQ1, LVQ21, VQ, Decay, Interpolated, LVQPlus, Rule, Schedule
from tests import tolerances

KEY = jax.random.key(7)


class Cautious(Rule):
    """A user's own rule: wrong winners are pushed half as hard."""

    def g(self, S, sigma):
        return jnp.where(sigma == S, 1.0, -0.5)


class Everyone(Rule):
    """A user's own rule that moves all prototypes, however many."""

    all_move = True

    def g(self, S, sigma):
        return jnp.where(sigma == S, 1.0, -0.01)


def table(rows=40, columns=3, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    return rng.normal(size=(rows, columns)) + 1.5 * rng.normal(size=(classes, columns))[y], y


def plain(w, labels, X, y, g, rates, *, times=None, all_move=False, window=None):
    """The rule as one would write it on paper: loops, one presentation after the other."""
    w = np.array(w, dtype=float)
    errors, squares, wins = [], [], []
    for rate in rates:
        wrong = square = 0.0
        won = np.zeros(len(w))
        for i, (x, sigma) in enumerate(zip(X, y, strict=True)):
            for presentation in range(1 if times is None else times[i]):
                d = np.array([np.sum((x - v) ** 2) for v in w])
                s = int(np.argmin(d))
                if presentation == 0:
                    weight = 1 if times is None else times[i]
                    wrong, square, won[s] = (
                        wrong + weight * (labels[s] != sigma),
                        square + weight * d[s],
                        won[s] + weight,
                    )
                movers = [s]
                if all_move:
                    movers = list(range(len(w)))
                if window is not None:
                    right = min((S for S in movers if labels[S] == sigma), key=lambda S: d[S])
                    other = min((S for S in movers if labels[S] != sigma), key=lambda S: d[S])
                    ratio = np.sqrt(min(d[right], d[other]) / max(d[right], d[other]))
                    movers = [right, other] if ratio >= (1 - window) / (1 + window) else []
                for S in movers:
                    w[S] = w[S] + rate * g(labels[S], sigma) * (x - w[S])
        total = len(X) if times is None else sum(times)
        errors, squares, wins = [*errors, wrong / total], [*squares, square / total], [*wins, won]
    return w, np.array(errors), np.array(squares), np.array(wins)


SIGNED = lambda S, sigma: 1.0 if sigma == S else -1.0  # noqa: E731
RULES = {
    "LVQ1": (LVQ1(0.1), SIGNED, {}),
    "LVQ+": (LVQPlus(0.1), lambda S, sigma: float(sigma == S), {}),
    "VQ": (VQ(0.1), lambda S, sigma: 1.0, {}),
    "own": (Cautious(0.1), lambda S, sigma: 1.0 if sigma == S else -0.5, {}),
    "all": (Everyone(0.1), lambda S, sigma: 1.0 if sigma == S else -0.01, {}),
    "LVQ2.1": (LVQ21(0.02), SIGNED, {"window": 0.3}),
    "LVQ2.1, no window": (LVQ21(0.02), SIGNED, {"window": 1.0}),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_equals_the_plain_loop(name, weighted):
    rule, g, options = RULES[name]
    X, y = table()
    labels = np.repeat([0, 1, 2], 2)
    start = X[:6] + 0.1
    times = np.random.default_rng(1).integers(0, 4, len(X)) if weighted else None
    kept = slice(None) if times is None else times > 0
    fitted = fit(
        rule,
        (X, y),
        key=KEY,
        prototypes_per_class=2,
        passes=3,
        start=start,
        shuffle=False,
        sample_weight=times,
        **options,
    )
    w, errors, squares, wins = plain(
        start, labels, X[kept], y[kept], g, 3 * [rule.rate],
        times=None if times is None else times[kept], all_move=rule.all_move, **options,
    )  # fmt: skip
    assert not np.allclose(w, start, atol=1e-2)
    np.testing.assert_allclose(fitted.prototypes, w, rtol=0, atol=tolerances.MACHINE)
    np.testing.assert_allclose(fitted.trace.error, errors, rtol=0, atol=tolerances.MACHINE)
    np.testing.assert_allclose(fitted.trace.quantisation, squares, rtol=tolerances.MACHINE)
    np.testing.assert_allclose(fitted.trace.wins, wins, rtol=0, atol=tolerances.MACHINE)
    assert fitted.labels.tolist() == labels.tolist()
    assert fitted.outcome == Outcome.converged


def test_lvq21_with_two_prototypes_moves_both():
    X, y = table(classes=2)
    fitted = fit(LVQ21(0.01), (X, y), key=KEY, passes=2, start=X[:2], shuffle=False)
    w, *_ = plain(X[:2], [0, 1], X, y, SIGNED, [0.01, 0.01], all_move=True)
    np.testing.assert_allclose(fitted.prototypes, w, rtol=0, atol=tolerances.MACHINE)


@pytest.mark.parametrize("schedule", [Decay(0.2, 2.0), Interpolated((0.2, 0.05, 0.01), until=4.0)])
def test_a_schedule_is_read_once_a_pass(schedule):
    X, y = table()
    with jax.enable_x64(True):
        rates = [float(schedule(t)) for t in range(5)]
    fitted = fit(LVQ1(schedule), (X, y), key=KEY, passes=5, start=X[:3], shuffle=False)
    w, *_ = plain(X[:3], [0, 1, 2], X, y, SIGNED, rates)
    np.testing.assert_allclose(fitted.trace.rate, rates, rtol=tolerances.MACHINE)
    np.testing.assert_allclose(fitted.prototypes, w, rtol=0, atol=tolerances.MACHINE)


def test_going_on_is_the_same_as_not_stopping():
    X, y = table()
    rule, options = LVQ1(Decay(0.2, 2.0)), {"key": KEY, "prototypes_per_class": 2, "shuffle": False}
    whole = fit(rule, (X, y), passes=5, **options)
    first = fit(rule, (X, y), passes=2, **options)
    second = fit(rule, (X, y), passes=3, start=first, **options)
    np.testing.assert_array_equal(second.prototypes, whole.prototypes)
    np.testing.assert_array_equal(np.r_[first.trace.error, second.trace.error], whole.trace.error)
    assert (first.passes, second.passes, whole.passes) == (2, 5, 5)


def test_shuffling_presents_each_row_once_a_pass():
    X, y = table()
    options = {"prototypes_per_class": 2, "passes": 4}
    one, two = (fit(LVQ1(0.1), (X, y), key=jax.random.key(1), **options) for _ in range(2))
    other = fit(LVQ1(0.1), (X, y), key=jax.random.key(2), **options)
    np.testing.assert_array_equal(one.prototypes, two.prototypes)
    assert not np.allclose(one.prototypes, other.prototypes)
    np.testing.assert_allclose(one.trace.wins.sum(axis=1), len(X))
    # One prototype, step 1: it stands on the last row presented, so four passes end on different rows.
    last = [fit(VQ(1.0), X, key=KEY, passes=p).prototypes[0] for p in range(1, 5)]
    assert all(np.any(np.all(np.isclose(X, w, rtol=0, atol=tolerances.MACHINE), axis=1)) for w in last)
    assert len(np.unique(np.round(last, 6), axis=0)) > 1


# Weights ---------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    times=st.lists(st.integers(0, 5), min_size=12, max_size=12).filter(lambda t: min(t[:6]) > 0),
    seed=st.integers(0, 10**6),
    rate=st.floats(0.01, 0.9),
    rule=st.sampled_from([LVQ1, LVQPlus, VQ, Cautious]),
)
def test_a_weight_is_a_repetition(times, seed, rate, rule):
    X, y = table(rows=12, columns=2, seed=seed)
    options = {"key": KEY, "prototypes_per_class": 2, "passes": 2, "shuffle": False}
    weighted = fit(rule(rate), (X, y), sample_weight=times, **options)
    repeated_rows = fit(rule(rate), (np.repeat(X, times, axis=0), np.repeat(y, times)), **options)
    kept = np.asarray(times) > 0
    removed = fit(rule(rate), (X[kept], y[kept]), sample_weight=np.asarray(times)[kept], **options)
    size = np.abs(weighted.prototypes).max()
    np.testing.assert_allclose(weighted.prototypes, repeated_rows.prototypes, rtol=0, atol=1e-9 * size)
    np.testing.assert_array_equal(weighted.prototypes, removed.prototypes)


def test_a_pushed_winner_can_lose_to_the_next():
    # Prototype 0 (wrong class) at distance 1 is pushed to 1.5, beyond prototype 1 at 1.2, which then comes nearer.
    X, y = np.array([[0.0], [9.0]]), np.array([1, 0])
    fitted = fit(
        LVQ1(0.5), (X, y), key=KEY, passes=1, start=[[1.0], [-1.2]], shuffle=False, sample_weight=[3.0, 1e-300]
    )
    np.testing.assert_allclose(fitted.prototypes, [[1.5], [-0.3]], atol=tolerances.MACHINE)
    # A huge weight moves it no further, although (1 + rate)^weight overflows.
    fitted = fit(
        LVQ1(0.5), (X, y), key=KEY, passes=1, start=[[1.0], [-1.2]], shuffle=False, sample_weight=[1e6, 1e-300]
    )
    np.testing.assert_allclose(fitted.prototypes, [[1.5], [0.0]], atol=tolerances.MACHINE)
    assert fitted.outcome == Outcome.converged


def test_part_of_a_presentation_is_a_power():
    fitted = fit(VQ(0.3), np.array([[1.0]]), key=KEY, passes=1, start=[[3.0]], sample_weight=[2.5])
    np.testing.assert_allclose(fitted.prototypes, [[1 + 2 * 0.7**2.5]], rtol=tolerances.MACHINE)
    # Half a presentation, twice, is one: also for a pushed winner and for a step beyond the example.
    with jax.enable_x64(True):
        for gain in (0.3, -0.3):
            half = float(repeated(jnp.asarray(gain), 0.5))
            assert 1 - (1 - half) ** 2 == pytest.approx(gain, abs=tolerances.MACHINE)
        assert float(repeated(jnp.asarray(1.5), 0.5)) == 0.75


def test_the_start_is_the_weighted_mean_of_each_class():
    X, y = table()
    weights = np.random.default_rng(2).random(len(X))
    fitted = fit(LVQ1(1e-15), (X, y), key=KEY, passes=1, sample_weight=weights)
    means = [np.average(X[y == c], axis=0, weights=weights[y == c]) for c in range(3)]
    np.testing.assert_allclose(fitted.prototypes, means, atol=tolerances.MACHINE)


def test_several_start_apart_and_inside_their_class():
    rng = np.random.default_rng(0)
    corners = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X = np.concatenate([c + rng.normal(size=(30, 2)) for c in corners] + [rng.normal(size=(10, 2)) - 20])
    y = np.repeat([5, 7], [90, 10])
    for seed in range(5):
        fitted = fit(LVQ1(1e-15), (X, y), key=jax.random.key(seed), prototypes_per_class={5: 3, 7: 1}, passes=1)
        assert fitted.labels.tolist() == [5, 5, 5, 7]
        index, squared = nearest(fitted.prototypes[:3], corners)
        assert sorted(index) == [0, 1, 2]
        assert squared.max() < 1


# Theorems --------------------------------------------------------------------------------------------------------


def test_the_quantisation_error_falls():
    X, _ = table(rows=400)
    start = X.mean(axis=0) + 0.01 * X[:8]  # all in one place, so that there is much to gain
    fitted = fit(VQ(Decay(0.02, 5.0)), X, key=KEY, prototypes_per_class=8, passes=40, start=start)
    error = fitted.trace.quantisation.reshape(8, 5).mean(axis=1)
    assert np.all(np.diff(error) < 1e-3 * error[0])
    assert error[-1] < 0.75 * error[0]


@pytest.mark.parametrize("name", RULES)
def test_rotated_shifted_scaled_data_give_rotated_shifted_scaled_prototypes(name):
    rule, _, options = RULES[name]
    X, y = table(columns=4)
    turn, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(4, 4)))
    shift = np.array([100.0, -50.0, 3.0, 0.0])
    options = {**options, "key": KEY, "prototypes_per_class": 2, "passes": 5}
    plain_fit, turned = fit(rule, (X, y), **options), fit(rule, (2 * X @ turn + shift, y), **options)
    np.testing.assert_allclose(turned.prototypes, 2 * plain_fit.prototypes @ turn + shift, atol=1e-9)
    np.testing.assert_allclose(turned.trace.quantisation, 4 * plain_fit.trace.quantisation, rtol=1e-9)


def test_names_of_classes_do_not_matter():
    X, y = table()
    names = np.array([40, -3, 7])
    start = X[:3]
    one = fit(LVQ1(0.1, labels=(0, 1, 2)), (X, y), key=KEY, start=start)
    two = fit(LVQ1(0.1, labels=tuple(names)), (X, names[y]), key=KEY, start=start)
    np.testing.assert_array_equal(one.prototypes, two.prototypes)
    np.testing.assert_array_equal(one.trace.error, two.trace.error)
    assert two.labels.tolist() == names.tolist()


def test_with_one_class_all_rules_are_vq():
    X, _ = table()
    options = {"key": KEY, "prototypes_per_class": 3}
    expected = fit(VQ(0.1), X, **options).prototypes
    for rule in (LVQ1(0.1), LVQPlus(0.1), Cautious(0.1)):
        np.testing.assert_array_equal(fit(rule, (X, np.ones(len(X), int)), **options).prototypes, expected)


def test_learns_what_there_is_to_learn():
    X, y = table(rows=300, columns=5)
    fitted = fit(LVQ1(Interpolated((0.1, 0.001), until=30)), (X, y), key=KEY, prototypes_per_class=2)
    index, _ = nearest(fitted.prototypes, X)
    assert np.mean(fitted.labels[index] != y) < 0.1


# Running away ----------------------------------------------------------------------------------------------------


class Broken(Schedule):
    """A rate that is not a number from the third pass on."""

    def __call__(self, alpha):
        return jnp.where(alpha < 2, 0.1, jnp.nan)


@pytest.mark.parametrize("weight", [None, 1e4])
@pytest.mark.parametrize("rule", [LVQ21(0.1), VQ(3.0), Everyone(2.5)])
def test_divergence_is_an_outcome(rule, weight):
    X, y = table(rows=60, classes=4)
    y = np.minimum(y, 1)  # the rarer class is pushed away more often than it is drawn
    weights = None if weight is None else np.full(len(X), weight)
    fitted = fit(rule, (X, y), key=KEY, passes=200, sample_weight=weights)
    assert fitted.outcome == Outcome.diverged
    assert np.all(np.isfinite(fitted.prototypes))
    assert all(np.all(np.isfinite(column)) for column in fitted.trace)
    assert fitted.passes == len(fitted.trace.rate) < 200


def test_a_last_step_that_overflows_is_seen():
    X, y = table(rows=20, classes=2)
    weights = np.r_[np.ones(19), 1e5]
    fitted = fit(LVQ21(0.1), (X, y), key=KEY, passes=1, shuffle=False, sample_weight=weights)
    assert fitted.outcome == Outcome.diverged
    assert np.all(np.isfinite(fitted.prototypes))


def test_a_step_that_is_no_number_fails():
    X, y = table()
    fitted = fit(LVQ1(Broken()), (X, y), key=KEY, passes=10)
    assert fitted.outcome == Outcome.failed
    assert fitted.passes == 3
    np.testing.assert_array_equal(fitted.prototypes, fit(LVQ1(0.1), (X, y), key=KEY, passes=2).prototypes)


def test_rows_that_are_all_the_same_do_no_harm():
    X, y = np.full((10, 2), 0.1), np.arange(10) % 2
    fitted = fit(LVQ1(0.1), (X, y), key=KEY, prototypes_per_class=3)
    assert fitted.outcome == Outcome.converged
    np.testing.assert_allclose(fitted.prototypes, 0.1)


# Bad input -------------------------------------------------------------------------------------------------------

TABLE = table()
BAD = {
    "rule": ({"rule": LVQ1}, "Argument `rule` must be a rule"),
    "labels missing": ({"data": TABLE[0]}, "must be \\(X, y\\) for LVQ1"),
    "labels too short": ({"data": (TABLE[0], TABLE[1][:-1])}, "one label for each of the 40 rows"),
    "labels no whole numbers": ({"data": (TABLE[0], TABLE[1] + 0.5)}, "whole numbers as labels"),
    "nan": ({"data": (np.where(TABLE[0] > 2, np.nan, TABLE[0]), TABLE[1])}, "must be finite"),
    "infinite": ({"data": (np.where(TABLE[0] > 2, np.inf, TABLE[0]), TABLE[1])}, "must be finite"),
    "words": ({"data": ([["a"]], [1])}, "must be a table of numbers"),
    "empty": ({"data": (np.zeros((0, 2)), np.zeros(0, int))}, "must have rows and columns"),
    "flat": ({"data": (np.zeros(3), np.zeros(3, int))}, "must have rows and columns"),
    "no prototype": ({"prototypes_per_class": 0}, "`prototypes_per_class` must be at least 1"),
    "half a prototype": ({"prototypes_per_class": 1.5}, "`prototypes_per_class` must be a whole number"),
    "too many": ({"prototypes_per_class": 14}, "must not exceed the rows of a class"),
    "class not named": ({"prototypes_per_class": {0: 1, 1: 1}}, "must name the classes \\[0, 1, 2\\]"),
    "rule without a class": ({"rule": LVQ1(0.1, labels=(0, 1))}, "prototypes for the classes \\[0, 1, 2\\]"),
    "no pass": ({"passes": 0}, "`passes` must be at least 1"),
    "start's shape": ({"start": np.zeros((3, 2))}, "`start` must have shape \\[3, 3\\]"),
    "start infinite": ({"start": np.full((3, 3), np.inf)}, "`start` must be finite"),
    "weights too short": ({"sample_weight": [1.0]}, "one number for each of the 40 rows"),
    "negative weight": ({"sample_weight": np.linspace(-1, 1, 40)}, "finite, not negative and positive for some row"),
    "no weight": ({"sample_weight": np.zeros(40)}, "finite, not negative and positive for some row"),
    "class of no weight": (
        {"prototypes_per_class": {0: 1, 1: 1, 2: 1}, "sample_weight": TABLE[1] < 2},
        "must name the classes \\[0, 1\\]",
    ),
    "no window": ({"rule": LVQ21(0.1)}, "`window` must be given for LVQ21"),
    "window of LVQ1": ({"window": 0.2}, "`window` must be None unless"),
    "window too wide": ({"rule": LVQ21(0.1), "window": 1.5}, "`window` must lie above 0"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_one_sentence(name):
    change, message = BAD[name]
    arguments = {"rule": LVQ1(0.1), "data": TABLE, **change}
    with pytest.raises(InputError, match=message) as caught:
        fit(arguments.pop("rule"), arguments.pop("data"), key=KEY, **arguments)
    assert "\n" not in str(caught.value)


def test_going_on_with_an_unknown_class_is_refused():
    X, y = table()
    first = fit(LVQ1(0.1), (X, y), key=KEY)
    with pytest.raises(InputError, match="prototypes of all classes, but not of \\[3\\]"):
        fit(LVQ1(0.1), (X, y + 1), key=KEY, start=first)
