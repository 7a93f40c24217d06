"""Check values, identities, exact limits and gradients of the flow of the overlaps."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quenched import prototypes
from quenched.core import flow
from quenched.core.types import InputError
from quenched.prototypes import theory
from quenched.prototypes.theory import winners
from tests import programs, tolerances
from tests.prototypes.cases import ALPHA, BROKEN, THREE, A, B
from tests.systems import lvq21


def on_host(function):
    """A pure function, compiled, that returns NumPy arrays: no program for each operation on what it returns."""
    call = programs.compiled(function)
    return lambda *given: jax.tree.map(np.asarray, call(*given))


averages, sampled, few, project, field = map(
    on_host, (winners.average, winners.average_many, winners.average_few, winners.project, theory.field)
)


@on_host
def states(law, rule, rtol, atol):
    """The state at all times, with a step of any accuracy."""
    return theory.state(law, rule, ALPHA, BROKEN, rtol=rtol, atol=atol)


GRAM = [[1.0, 0.3, -0.2], [0.3, 1.0, 0.1], [-0.2, 0.1, 1.0]]
GENERAL = prototypes.Clusters([0.2, 0.3, 0.5], (0, 1, 1), [1.0, 1.2, 0.7], [1.0, 0.5, 2.0], GRAM)
FAR = np.append(np.arange(500.0), 1000.0)
FALLING = prototypes.LVQ1(prototypes.Decay(0.4, 10.0))


def overlaps(seed, K, gram=((1.0, 0.0), (0.0, 1.0)), scale=0.5):
    """Overlaps that vectors can have."""
    rng = np.random.default_rng(seed)
    R = scale * rng.standard_normal((K, len(gram)))
    extra = rng.standard_normal((K, K)) * 0.4
    return R, R @ np.linalg.solve(gram, R.T) + extra @ extra.T + 0.05 * np.eye(K)


def test_check_values_of_lvq1():
    at = prototypes.curve(A, prototypes.LVQ1(0.2), alpha=ALPHA)
    last = at.sel(alpha=10)
    assert float(at.error.sel(alpha=1)) == pytest.approx(0.31393, abs=tolerances.DIGITS)
    assert float(last.error) == pytest.approx(0.29015, abs=tolerances.DIGITS)
    np.testing.assert_allclose(last.R, [[0.91942, -0.13762], [-0.15852, 0.19562]], atol=tolerances.DIGITS)
    np.testing.assert_allclose(last.Q, [[1.0120, -0.15811], [-0.15811, 0.17972]], atol=5e-5)


def test_check_values_of_lvq_plus_and_lvq21():
    plus = prototypes.curve(A, prototypes.LVQPlus(0.2), alpha=ALPHA).error.sel(alpha=10)
    assert float(plus) == pytest.approx(0.30538, abs=6e-6)
    both = prototypes.curve(A, prototypes.LVQ21(0.2), alpha=FAR).error.sel(alpha=[5, 10])
    np.testing.assert_allclose(both, [0.20726, 0.18128], atol=tolerances.DIGITS)


def test_values_do_not_change_when_tolerances_are_tightened(double):
    loose, tight = prototypes.curve(A, FALLING, alpha=ALPHA, start=BROKEN), states(A, FALLING, 1e-11, 1e-13)
    for name in ("R", "Q", "error"):
        np.testing.assert_allclose(loose[name], getattr(tight, name), atol=tolerances.FLOW)


@given(seed=st.integers(0, 10_000), prior=st.floats(0.05, 0.95), v=st.floats(0.1, 3.0))
@settings(max_examples=25, deadline=None)
def test_orthants_equal_the_closed_form_at_two_prototypes(seed, prior, v):
    with jax.enable_x64(True):
        priors = [prior, 0.6 * (1 - prior), 0.4 * (1 - prior)]
        mix = prototypes.Clusters(priors, (1, -1, -1), [1.3, 1.0, 0.7], [v, 1.0, 0.5], GRAM).mixture()
        R, Q = overlaps(seed, 2, GRAM)
        for one, two in zip(averages(mix, R, Q), few(mix, R, Q), strict=True):
            np.testing.assert_allclose(one, two, atol=tolerances.MACHINE)


def test_check_values_of_three_prototypes(double):
    R = np.array([[0.5, 0.1], [0.2, 0.4], [-0.3, 0.6]])
    Q = R @ R.T + 0.1 * np.eye(3)
    win = averages(GENERAL.mixture(), np.pad(R, ((0, 0), (0, 1))), Q).win  # the first cluster is that of TwoClusters()
    np.testing.assert_allclose(win[:, 0], [0.631319, 0.243135, 0.125546], atol=1e-6)


@pytest.mark.parametrize("K", [2, 3, 4, 5])
def test_somebody_wins_and_what_is_won_adds_up(double, K):
    mix, (R, Q) = GENERAL.mixture(), overlaps(K, K, GRAM)
    average = averages(mix, R, Q)
    mean_h, mean_b = project(mix, R)
    np.testing.assert_allclose(average.win.sum(axis=0), 1.0, atol=tolerances.QUADRATURE)
    np.testing.assert_allclose(average.h.sum(axis=0), mean_h, atol=tolerances.QUADRATURE)
    np.testing.assert_allclose(average.b.sum(axis=0), mean_b, atol=tolerances.QUADRATURE)


@pytest.mark.parametrize("K", [3, 5])
def test_averages_equal_brute_force(double, K):
    """A million drawn projections, no formula."""
    R, Q = overlaps(7, K, GRAM)
    average = averages(GENERAL.mixture(), R, Q)
    cov = np.block([[np.asarray(GRAM), R.T], [R, Q]])
    rng = np.random.default_rng(0)
    for k, (lam, v) in enumerate(((1.0, 1.0), (1.2, 0.5), (0.7, 2.0))):
        centre = lam * np.concatenate([GRAM[k], R[:, k]])
        x = rng.multivariate_normal(centre, v * cov, size=1_000_000)
        winner = np.argmax(2 * x[:, 3:] - np.diagonal(Q), axis=1)
        for S in range(K):
            won = winner == S
            assert float(average.win[S, k]) == pytest.approx(won.mean(), abs=0.002)
            np.testing.assert_allclose(average.b[S, :, k], (x[:, :3] * won[:, None]).mean(axis=0), atol=0.006)
            np.testing.assert_allclose(average.h[S, :, k], (x[:, 3:] * won[:, None]).mean(axis=0), atol=0.006)


def close_pair(K, gap):
    """Overlaps of prototypes of which the first two are `gap` apart."""
    rng = np.random.default_rng(K)
    w = 0.6 * rng.standard_normal((K, 8))
    w[1] = w[0] + gap * 0.6 * rng.standard_normal(8)
    return w[:, :3] @ np.linalg.cholesky(GRAM).T, w @ w.T


@pytest.mark.parametrize("K", [3, 4])
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 0.0])
def test_prototypes_close_to_each_other_still_share_everything(double, K, gap):
    mix, (R, Q) = GENERAL.mixture(), close_pair(K, gap)
    average = averages(mix, R, Q)
    mean_h, _ = project(mix, R)
    np.testing.assert_allclose(average.win.sum(axis=0), 1.0, rtol=0, atol=2e-9)
    np.testing.assert_allclose(average.h.sum(axis=0), mean_h, rtol=0, atol=5e-9)
    if gap == 0:  # at one place: half each
        np.testing.assert_allclose(average.win[0], average.win[1], atol=1e-6)


def test_three_prototypes_close_together_are_counted_right(double):
    rng = np.random.default_rng(1)
    w = 0.6 * rng.standard_normal((4, 6))
    w[1:3] = w[0] + 1e-3 * rng.standard_normal((2, 6))
    B = np.linalg.cholesky(GRAM)
    R, Q = w[:, :3] @ B.T, w @ w.T
    win = averages(GENERAL.mixture(), R, Q).win[:, 0]
    x = rng.standard_normal((400_000, 6)) + np.append(B[0], np.zeros(3))
    winner = np.argmin(np.sum(w**2, axis=1) - 2 * x @ w.T, axis=1)
    np.testing.assert_allclose(win, np.bincount(winner, minlength=4) / len(x), atol=0.004)
    assert float(win.sum()) == pytest.approx(1.0, abs=5e-9)


def test_the_result_says_how_accurate_its_averages_are(double):
    two = prototypes.curve(A, prototypes.LVQ1(0.2), alpha=ALPHA)
    assert (two.averages, two.accuracy) == ("closed", winners.ACCURACY["closed"])
    state = theory.State(np.zeros((6, 2)), np.eye(6), np.zeros(()), np.zeros(()))
    assert state.accuracy == winners.ACCURACY["sampled"] > 1e-4


def test_the_unit_of_length_does_not_matter():
    small = prototypes.TwoClusters(0.8, 1e-3, (1e-6, 1e-6))
    start = prototypes.NearOrigin(1e-10)
    found = prototypes.curve(small, prototypes.LVQ1(0.2), alpha=ALPHA, start=start)
    usual = prototypes.curve(A, prototypes.LVQ1(0.2), alpha=ALPHA)
    np.testing.assert_allclose(found.error, usual.error, atol=1e-12)


def compiled(name, work):
    """How many programs of a name are compiled by some work."""
    seen = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage().startswith(f"Compiling jit({name})"))
    log = logging.getLogger("jax._src.interpreters.pxla")
    log.addHandler(handler)
    try:
        with jax.log_compiles():
            work()
    finally:
        log.removeHandler(handler)
    return sum(seen)


@pytest.mark.filterwarnings("ignore")
def test_a_second_curve_compiles_nothing_whatever_its_times_its_rule_and_its_sweep():
    def curves():
        for count in (2, 40):
            found = prototypes.curve(A, prototypes.LVQPlus(0.3), alpha=np.linspace(0, 5, count + 1)[1:])
            assert found.sizes["alpha"] == count
        assert prototypes.curve(B, prototypes.VQ(0.1), alpha=1.0, prior=[0.3, 0.4, 0.5]).sizes["prior"] == 3

    prototypes.curve(A, prototypes.LVQ1(0.2), alpha=1.0)
    assert compiled("_kernel", curves) == 0


def test_the_curve_is_the_state_at_its_times(double):
    """Two drivers of one flow: scipy's on the host, diffrax in a compiled program."""
    curve, state = prototypes.curve(B, FALLING, alpha=ALPHA, start=BROKEN), states(B, FALLING, flow.RTOL, flow.ATOL)
    for name in ("R", "Q", "error"):
        np.testing.assert_allclose(curve[name], getattr(state, name), atol=tolerances.MACHINE)


def test_a_curve_that_does_not_fit_in_memory_is_refused_before_it_is_made():
    many = np.broadcast_to(1.0, 10**10)  # no memory of its own
    with pytest.raises(InputError, match="must fit in memory"):
        prototypes.curve(A, prototypes.LVQ1(0.2), alpha=many)


@pytest.mark.parametrize("K", [3, 5])
def test_sampled_averages_are_as_accurate_as_they_say(double, K):
    mix = GENERAL.mixture()
    for seed in (3, 4, 5):
        R, Q = overlaps(seed, K, GRAM)
        for one, two in zip(averages(mix, R, Q), sampled(mix, R, Q), strict=True):
            np.testing.assert_allclose(one, two, atol=winners.ACCURACY["sampled"] / 4)


def test_identical_prototypes_of_a_class_reduce_to_one(double):
    # a third prototype far away never wins: the flow of the other two is the closed one
    R2, Q2 = overlaps(1, 2)
    R, Q = np.vstack([R2, np.zeros((1, 2))]), np.diag([0.0, 0.0, 1e6])
    Q[:2, :2] = Q2
    three = prototypes.LVQ1(0.2, labels=(1, -1, 1))
    dR, dQ = field(A, three, R, Q)
    dR2, dQ2 = field(A, prototypes.LVQ1(0.2), R2, Q2)
    np.testing.assert_allclose(dR[:2], dR2, atol=tolerances.MACHINE)
    np.testing.assert_allclose(dQ[:2, :2], dQ2, atol=tolerances.MACHINE)


def test_three_prototypes_in_a_common_dimension_match_a_general_gram():
    """Antipodal centres: the world of `Clusters` with B_2 = -B_1 is that of one axis."""
    law = prototypes.Clusters([0.5, 0.5], (1, -1), gram=[[1.0, -1.0], [-1.0, 1.0]])
    start = prototypes.Overlaps(R=[[0.3, -0.3], [-0.3, 0.3]], Q=[[0.2, 0.0], [0.0, 0.2]])
    R = prototypes.curve(law, prototypes.LVQ1(0.2), alpha=ALPHA, start=start).R.values
    np.testing.assert_allclose(R[:, :, 0], -R[:, :, 1], atol=1e-10)
    np.testing.assert_allclose(R[:, 0], -R[:, 1], atol=1e-10)  # the world is symmetric


@pytest.mark.parametrize("prior", [0.8, 0.5])
def test_lvq21_is_linear(prior):
    law, rate = prototypes.TwoClusters(prior=prior), 0.2
    found = prototypes.curve(law, prototypes.LVQ21(rate), alpha=FAR)
    for alpha in (1.0, 10.0, 30.0):
        exact = lvq21.R(prior, 1.0, rate, alpha, np.zeros((2, 2)))
        np.testing.assert_allclose(found.R.sel(alpha=alpha), exact, rtol=1e-6, atol=1e-7)


def test_a_schedule_is_a_change_of_time():
    """The overlaps R of LVQ2.1 depend on the rate only through its integral."""
    found = prototypes.curve(A, prototypes.LVQ21(prototypes.Decay(0.4, 10.0)), alpha=[5.0, 30.0])
    for alpha in (5.0, 30.0):
        time = 0.4 * 10.0 * np.log(1 + alpha / 10.0)
        np.testing.assert_allclose(found.R.sel(alpha=alpha), lvq21.R(0.8, 1.0, 1.0, time, np.zeros((2, 2))), rtol=1e-6)


def test_lvq21_winner_comes_to_rest_and_the_loser_diverges_as_an_outcome():
    far = prototypes.curve(A, prototypes.LVQ21(0.2), alpha=FAR).sel(alpha=[100, 1000])
    limit = lvq21.Q_plus_plus_limit(0.8, 1.0, 0.2, 1.0)
    assert float(far.Q[0].sel(prototype=1, prototype2=1)) == pytest.approx(limit, rel=1e-4)
    assert far.outcome.values.tolist() == ["converged", "diverged"]
    assert float(prototypes.asymptote(A, prototypes.LVQ21(0.2)).error) == pytest.approx(0.2)
    assert str(prototypes.asymptote(A, prototypes.LVQ21(0.2)).outcome.values) == "diverged"


PARAMETERS = {"prior": 0.7, "separation": 1.1, "v+": 0.8, "v-": 0.25, "rate": 0.3, "time": 5.0}


@pytest.fixture(scope="module")
def slopes():
    """Gradients of the error at the end of a flow, automatic and by five-point differences."""

    def end(x):
        prior, separation, v_plus, v_minus, rate, time = x
        law = prototypes.TwoClusters(prior, separation, (v_plus, v_minus))
        return theory.state(
            law, prototypes.LVQ1(prototypes.Decay(rate, time)), 5.0, BROKEN, rtol=1e-11, atol=1e-13
        ).error

    with jax.enable_x64(True):
        at = np.array(list(PARAMETERS.values()))
        step = 1e-3 * np.diag(at)
        value_and_slope = on_host(jax.value_and_grad(end))  # one program for both
        f = np.array([[value_and_slope(at + k * row)[0] for row in step] for k in (1, -1, 2, -2)])
        differences = (8 * (f[0] - f[1]) - (f[2] - f[3])) / (12 * np.diagonal(step))
        automatic = value_and_slope(at)[1]
    return {name: (float(a), float(b)) for name, a, b in zip(PARAMETERS, automatic, differences, strict=True)}


@pytest.mark.parametrize("name", PARAMETERS)
def test_gradients_of_the_flow_agree_with_finite_differences(slopes, name):
    automatic, differences = slopes[name]
    assert automatic == pytest.approx(differences, rel=tolerances.GRADIENT)


def test_gradient_of_three_prototypes(double):
    rule = prototypes.LVQ1(0.2, labels=(1, -1, -1))
    value = lambda lam: theory.error(  # noqa: E731
        prototypes.TwoClusters(separation=lam), rule, *(jnp.asarray(x) for x in THREE.overlaps(3, 2))
    )
    value_and_slope = on_host(jax.value_and_grad(value))
    (up, _), (down, _), (_, slope) = (value_and_slope(1.0 + step) for step in (1e-5, -1e-5, 0.0))
    assert float(slope) == pytest.approx(float(up - down) / 2e-5, rel=tolerances.GRADIENT)


def test_a_sweep_equals_a_loop():
    rule = prototypes.LVQ1(0.2)
    one = prototypes.curve(prototypes.TwoClusters(prior=0.3), prototypes.LVQ1(0.1), alpha=ALPHA).sel(alpha=5)
    sweep = prototypes.curve(A, rule, alpha=5.0, prior=[0.3, 0.5, 0.8], rate=[0.1, 0.2, 0.4])
    assert sweep.error.dims == ("prior", "rate")
    np.testing.assert_allclose(sweep.error.sel(prior=0.3, rate=0.1), one.error, atol=tolerances.FLOW)
    one = prototypes.curve(prototypes.TwoClusters(0.3, variances=(0.5, 2.0)), rule, alpha=ALPHA).sel(alpha=5)
    rows = prototypes.curve(A, rule, alpha=5.0, prior=[0.3, 0.5, 0.8], variances=[[1.0, 1.0], [0.5, 2.0], [2.0, 0.5]])
    assert rows.error.dims == ("prior", "variances")
    np.testing.assert_allclose(rows.error[0, 1], one.error, atol=tolerances.FLOW)


def test_exchanging_the_classes_exchanges_the_prototypes():
    at = prototypes.curve(A, prototypes.LVQ1(0.2), alpha=ALPHA)
    mirrored = prototypes.curve(prototypes.TwoClusters(prior=0.2), prototypes.LVQ1(0.2), alpha=ALPHA)
    np.testing.assert_allclose(at.R.values[:, ::-1, ::-1], mirrored.R, atol=tolerances.FLOW)
    np.testing.assert_allclose(at.error, mirrored.error, atol=tolerances.FLOW)


def test_vq_from_an_unspecialised_start_never_specialises():
    still = prototypes.curve(A, prototypes.VQ(0.2), alpha=ALPHA)
    np.testing.assert_allclose(still.error, 0.5, atol=1e-9)  # erratum P21


def test_a_flow_that_has_come_to_rest_needs_no_more_steps():
    for rule, error in ((prototypes.LVQ1(0.2), float(prototypes.asymptote(A, prototypes.LVQ1(0.2)).error)),
                        (prototypes.VQ(0.2), 0.5)):  # fmt: skip
        found = prototypes.curve(A, rule, alpha=[1e4, 1e6, 1e9])
        assert np.all(found.outcome == "converged")
        np.testing.assert_allclose(found.error, error, atol=tolerances.FLOW)


def test_many_prototypes():
    rng = np.random.default_rng(0)
    start = prototypes.Overlaps(R=0.1 * rng.standard_normal((6, 2)), Q=0.2 * np.eye(6))
    rule = prototypes.LVQ1(0.2, labels=(1, 1, 1, -1, -1, -1))
    found = prototypes.curve(B, rule, alpha=[1.0, 5.0], start=start)
    assert np.all(found.outcome == "converged")
    assert (found.averages, found.accuracy) == ("sampled", winners.ACCURACY["sampled"])
    assert found.prototype_label.values.tolist() == [1, 1, 1, -1, -1, -1]
    assert float(found.error[1]) < float(found.error[0])


def test_a_user_adds_a_rule_in_a_few_lines():
    class Cautious(prototypes.Rule):
        def g(self, S, sigma):
            return jnp.where(S == sigma, 1.0, -0.5)

    at = [float(prototypes.curve(A, rule, alpha=ALPHA).error.sel(alpha=10)) for rule in
          (prototypes.LVQPlus(0.2), Cautious(0.2), prototypes.LVQ1(0.2))]  # fmt: skip
    assert at[0] > at[1] > at[2]  # half of LVQ1's repulsion lies in between


def test_single_precision_gets_a_sentence():
    with pytest.raises(InputError, match="double precision"):
        theory.state(A, prototypes.LVQ1(0.2), 1.0)


@pytest.mark.parametrize(
    ("controls", "sentence"),
    [
        ({"alpha": [1.0, 1.0]}, "`alpha` must increase"),
        ({"alpha": [2.0, 1.0]}, "`alpha` must increase"),
        ({"alpha": [-1.0]}, "`alpha` must increase from 0"),
        ({"alpha": []}, "non-empty"),
        ({"alpha": "soon"}, "must be real numbers"),
        ({"alpha": 1.0, "prior": 1.5}, "`prior`"),
        ({"alpha": 1.0, "colour": 3}, "must be a field"),
        ({"alpha": 1.0, "start": prototypes.Overlaps([[0.0]], [[1.0]])}, "`start` must have R of shape"),
    ],
)
def test_bad_controls_get_a_sentence(controls, sentence):
    with pytest.raises(InputError, match=sentence):
        prototypes.curve(A, prototypes.LVQ1(0.2), **controls)
