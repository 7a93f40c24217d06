"""The experiment, and its agreement with the theory: the proof of this science."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import quenched
from quenched import prototypes
from quenched.core.types import InputError
from tests import tolerances
from tests.prototypes.cases import BROKEN, THREE, TIMES, A, B

KEY = jax.random.key(2006)

CASES = {
    "LVQ1": (A, prototypes.LVQ1(0.2), None),
    "LVQ+": (A, prototypes.LVQPlus(0.2), None),
    "VQ": (A, prototypes.VQ(0.2), BROKEN),
    "unequal variances": (B, prototypes.LVQ1(0.2), None),
    "three prototypes": (A, prototypes.LVQ1(0.2, labels=(1, -1, -1)), THREE),
    "LVQ2.1": (A, prototypes.LVQ21(0.2), None),
    "three clusters, schedule": (
        prototypes.Clusters([0.5, 0.3, 0.2], (1, -1, -1), [1.5, 1.0, 1.0], [1.0, 0.5, 0.8],
                            [[1.0, 0.2, 0.0], [0.2, 1.0, -0.3], [0.0, -0.3, 1.0]]),
        prototypes.LVQ1(prototypes.Decay(0.4, 10.0)), None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_theory_and_both_simulators_agree(name):
    law, rule, start = CASES[name]
    given = {"alpha": TIMES, "size": 200, "runs": 100, "start": start, "tests": 100}
    curve = prototypes.curve(law, rule, alpha=TIMES, start=start)
    direct = prototypes.measure(law, rule, key=KEY, **given)
    chain = prototypes.measure(law, rule, key=jax.random.key(7), simulator=prototypes.Chain(), **given)
    assert int(direct.failed) == 0
    assert int(chain.failed) == 0
    granted = {"allowance": tolerances.FINITE_SIZE, "relative_allowance": tolerances.FINITE_SIZE * rule.all_move}
    for points in (direct, chain):
        proof = quenched.agreement(curve, points, **granted)
        assert proof.passed, str(proof)
    proof = quenched.agreement(direct, chain)  # the same law at the same N: no allowance
    assert proof.passed, str(proof)
    spread = [np.asarray(points.R_run.std("run")) for points in (direct, chain)]
    np.testing.assert_allclose(spread[0], spread[1], rtol=0.5)  # 100 runs know each spread to 7%: 5 sigma of the ratio


def test_the_chain_is_exact_in_very_few_dimensions():
    """Six dimensions, of which two are the rest of the example: its length must have the right distribution."""
    given = {"alpha": [0.5, 2.0], "size": 6, "runs": 4000, "batch": 2000, "tests": 1}
    direct = prototypes.measure(A, prototypes.LVQ1(1.0), key=KEY, **given)
    chain = prototypes.measure(A, prototypes.LVQ1(1.0), key=jax.random.key(8), simulator=prototypes.Chain(), **given)
    proof = quenched.agreement(direct, chain, variables=["R", "Q"])
    assert proof.passed, str(proof)


def test_the_spread_falls_as_one_over_root_n():
    sizes, spread = np.array([100, 400, 1600]), []
    for size in sizes:
        points = prototypes.measure(
            A, prototypes.LVQ1(0.2), alpha=1.5, size=int(size), runs=2000, key=jax.random.key(5), batch=500, tests=1,
            simulator=prototypes.Chain(),
        )  # fmt: skip
        spread.append(float(points.R_run.sel(prototype=1, cluster=1).std("run", ddof=1)))
    slope = np.polyfit(np.log(sizes), np.log(spread), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.03)


def test_the_bias_falls_as_one_over_n():
    """At N = 20 the theory is off; the 1/N extrapolation from N = 20 and 40 has no bias left. No allowance."""
    curve = prototypes.curve(A, prototypes.LVQ1(1.0), alpha=1.0)
    small, large = (
        prototypes.measure(A, prototypes.LVQ1(1.0), alpha=1.0, size=size, runs=16_000, key=jax.random.key(size),
                           batch=2000, tests=1, simulator=prototypes.Chain())
        for size in (20, 40)
    )  # fmt: skip
    assert not quenched.agreement(curve, small, variables=["R", "Q"]).passed
    extrapolated = small.copy()
    for name in ("R", "Q"):
        extrapolated[f"{name}_run"] = 2 * large[f"{name}_run"] - small[f"{name}_run"]
    proof = quenched.agreement(curve, extrapolated, variables=["R", "Q"])
    assert proof.passed, str(proof)


def test_the_start_has_exactly_the_asked_overlaps():
    for simulator in (prototypes.Direct(), prototypes.Chain()):
        points = prototypes.measure(
            A,
            prototypes.LVQ1(0.2),
            alpha=[0.0, 1.0],
            size=12,
            runs=3,
            key=KEY,
            start=BROKEN,
            simulator=simulator,
            tests=5,
        )
        np.testing.assert_allclose(points.R.sel(alpha=0), BROKEN.R, atol=1e-14)
        np.testing.assert_allclose(points.Q.sel(alpha=0), BROKEN.Q, atol=1e-14)


def test_the_same_key_gives_the_same_numbers_and_a_sweep_is_its_points():
    given = {"alpha": [1.0], "size": 12, "runs": 5, "key": KEY, "tests": 5, "simulator": prototypes.Chain()}
    one = prototypes.measure(A, prototypes.LVQ1(0.2), **given)
    two = prototypes.measure(A, prototypes.LVQ1(0.2), **given)
    assert one.identical(two)
    sweep = prototypes.measure(A, prototypes.LVQ1(0.2), prior=[0.8, 0.5], **given)
    np.testing.assert_array_equal(sweep.R_run.sel(prior=0.8), one.R_run)
    assert sweep.runs.values.tolist() == [5, 5]


def test_a_users_rule_is_simulated_as_it_is_solved():
    class Cautious(prototypes.Rule):
        def g(self, S, sigma):
            return jnp.where(S == sigma, 1.0, -0.5)

    curve = prototypes.curve(A, Cautious(0.2), alpha=[2.0, 5.0])
    points = prototypes.measure(
        A, Cautious(0.2), alpha=[2.0, 5.0], size=200, runs=60, key=KEY, simulator=prototypes.Chain(), tests=200
    )
    assert quenched.agreement(curve, points, allowance=tolerances.FINITE_SIZE).passed


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"size": 4}, "`size` must exceed the number of vectors, 2 prototypes and 2 centres"),
        ({"size": 0}, "`size` must be at least 1"),
        ({"size": 10.5}, "`size` must be a whole number"),
        ({"runs": 0}, "`runs`"),
        ({"alpha": [2.0, 1.0]}, "`alpha` must increase"),
        ({"tests": 0}, "`tests` must be at least 1"),
        ({"start": prototypes.Overlaps(np.eye(2), 0.1 * np.eye(2))}, "overlaps that vectors can have"),
        ({"rule": prototypes.LVQ1(0.1, labels=(1, 1, -1)), "size": 5}, "3 prototypes"),
    ],
)
def test_bad_input_gets_a_sentence(given, sentence):
    every = {"rule": prototypes.LVQ1(0.2), "alpha": [1.0], "size": 10, "runs": 4, "key": KEY, **given}
    with pytest.raises(InputError, match=sentence):
        prototypes.measure(A, **every)
