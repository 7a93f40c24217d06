"""Rest states: check values, closed forms, and the flow itself."""

import numpy as np
import pytest
from scipy.special import ndtr

from quenched import prototypes
from quenched.core.types import InputError
from quenched.prototypes import model, theory
from quenched.prototypes.theory import rest_states
from quenched.prototypes.theory.state import linear
from tests import programs, tolerances
from tests.prototypes.cases import BROKEN, A, B
from tests.systems import lvq21, vq


def at_12(prior):
    return prototypes.TwoClusters(prior=prior, separation=1.2)


def test_check_values_of_the_small_rate_limit():
    law = at_12(0.7)
    assert float(prototypes.optimum(law).error) == pytest.approx(0.17124, abs=tolerances.DIGITS)
    for rule, value in ((prototypes.LVQ1(), 0.17718), (prototypes.LVQPlus(), 0.19807), (prototypes.VQ(), 0.22868)):
        found = prototypes.asymptote(law, rule, small_rate=True).sel(state="axis")
        assert float(found.error) == pytest.approx(value, abs=tolerances.DIGITS)
        assert float(found.growth) < 0


def test_all_rest_states_and_their_stability():
    vq_states = prototypes.asymptote(at_12(0.7), prototypes.VQ(), small_rate=True)
    errors, rates = vq_states.error.values, vq_states.growth.values
    assert errors[1] == pytest.approx(1 - errors[0], abs=1e-10)  # labels swapped
    assert errors[2] == pytest.approx(0.5, abs=1e-12)
    assert (rates < 0).tolist() == [True, True, False]
    assert rates[2] == pytest.approx(1.2**2 * 0.7 * 0.3, abs=1e-9)  # lambda^2 p+ p- as eta -> 0
    lvq1 = prototypes.asymptote(at_12(0.7), prototypes.LVQ1(), small_rate=True)
    assert lvq1.state.values.tolist() == ["axis", "other", "unspecialised", "reversed", "reversed_2"]
    assert (lvq1.growth.values < 0).tolist() == [True, False, False, False, False]
    assert float(lvq1.error.sel(state="other")) > 0.5
    for law, rule in ((at_12(0.7), prototypes.LVQPlus()), (at_12(0.5), prototypes.LVQ1())):
        found = prototypes.asymptote(law, rule, small_rate=True)
        assert found.outcome.values.tolist() == ["converged", "absent", "absent", "converged"]
        assert found.state.values.tolist()[3] == "reversed"
        assert float(found.growth.sel(state="reversed")) > 0


def boundary(R):
    """Where the boundary lies on the line through the centres, from their mid-point."""
    return float(np.sum(R[:, 0] - R[:, 1])) / (2 * np.sqrt(2))


def test_three_states_on_the_axis_with_unequal_variances():
    found = prototypes.asymptote(B, prototypes.LVQ1(), small_rate=True)
    thetas = {name: boundary(found.R.sel(state=name).values) for name in ("axis", "other", "other_2")}
    assert thetas["axis"] == pytest.approx(0.07701, abs=tolerances.DIGITS)
    assert sorted([thetas["other"], thetas["other_2"]]) == pytest.approx([-2.35388, 3.76658], abs=tolerances.DIGITS)
    assert (found.growth.sel(state=["axis", "other", "other_2"]).values < 0).tolist() == [True, False, False]


def test_listed_states_are_at_rest_and_grow_as_they_say(double):
    for law, rule in (
        (B, prototypes.LVQ1()),
        (B, prototypes.VQ()),
        (B, prototypes.LVQPlus()),
        (at_12(0.3), prototypes.LVQ1()),
    ):
        n = model.numbers(law, rule)._replace(rate=np.zeros(()))
        found = prototypes.asymptote(law, rule, small_rate=True)
        for name in found.state.values[found.outcome.values == "converged"]:
            R, Q = found.R.sel(state=name).values, found.Q.sel(state=name).values
            drift, jacobian = linear(n, np.concatenate([R.ravel(), Q[np.triu_indices(2)]]))
            np.testing.assert_allclose(drift, 0.0, atol=1e-9)
            growth = np.linalg.eigvals(np.asarray(jacobian)).real.max()
            assert float(found.growth.sel(state=name)) == pytest.approx(growth, abs=1e-6), (rule, name)


def dense_search(p, g, m, v):
    """Boundaries half-way between both prototypes, by a scan of the plain formula; not those in the far tails."""
    sd, prior = np.sqrt(v), np.array([p, 1 - p])
    reach = np.abs(m).max() + 12 * sd.max()
    theta = np.concatenate(
        [np.linspace(-reach, reach, 40_001), *(m[:, None] + sd[:, None] * np.linspace(-12, 12, 20_001))]
    )
    theta = np.unique(theta) + 1.2345e-9
    x, bottom = [], []
    for i, S in enumerate((1, -1)):
        t = S * (m - theta[:, None]) / sd
        bottom.append(np.sum(prior * g[i] * ndtr(t), axis=1))
        top = np.sum(prior * g[i] * (m * ndtr(t) + S * sd * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)), axis=1)
        with np.errstate(all="ignore"):
            x.append(top / bottom[-1])
    with np.errstate(all="ignore"):
        f = theta - (x[0] + x[1]) / 2
        crossed = (np.sign(f[1:]) * np.sign(f[:-1]) < 0) & (x[0][1:] > x[1][1:])
        for b in bottom:
            crossed &= (b[1:] * b[:-1] > 0) & (np.abs(b[1:]) > 1e-9)
    return theta[:-1][crossed], np.diff(theta)[crossed]


def test_no_state_on_the_axis_is_missed_whatever_the_parameters():
    rng, count = np.random.default_rng(5), 0
    tables = [np.array([[1.0, -1.0], [-1.0, 1.0]]), np.eye(2), np.ones((2, 2)), np.array([[1.0, -0.5], [-0.3, 0.7]])]
    for i in range(32):
        p, lam, v = rng.uniform(0.02, 0.98), 10 ** rng.uniform(-1.5, 1.2), 10 ** rng.uniform(-2, 2, 2)
        v[1] = v[0] if i % 3 == 0 else v[1]
        g, m = tables[i % 4], (-1) ** (i // 4) * np.array([1.0, -1.0]) * lam / np.sqrt(2)
        ours = np.array([theta for theta, _ in rest_states.boundaries(np.array([p, 1 - p]), g, m, v)])
        for theta, step in zip(*dense_search(p, g, m, v), strict=True):
            count += 1
            assert np.min(np.abs(ours - theta)) < 2 * step + 1e-9, (p, lam, v, g, m)
    assert count > 40


RUNAWAY = {
    "a third class": (prototypes.Clusters([0.4, 0.35, 0.25], (1, 2, 3)), (1, 2), None, 0.6),
    "equal classes of three clusters": (prototypes.Clusters([0.5, 0.45, 0.05], (1, -1, -1)), None, None, None),
    "the same, more even": (prototypes.Clusters([0.5, 0.3, 0.2], (1, -1, -1)), None, None, None),
    "unequal variances": (prototypes.TwoClusters(0.5, 1.0, (0.81, 0.25)), None, None, None),
    "equal priors, another start": (prototypes.TwoClusters(0.5, 1.0, (0.5, 2.0)), None, BROKEN, None),
    "both run away alike": (
        prototypes.Clusters([0.4, 0.4, 0.2], (1, 2, 3), [1.0, 1.3, 2.0], [0.5, 1.0, 2.0]), (1, 2), None, None),
    "no signal": (prototypes.TwoClusters(0.5, 0.0), None, None, 0.5),
    "unequal priors": (A, None, None, 0.2),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNAWAY)
def test_lvq21_tends_to_what_its_own_curve_says(name):
    law, labels, start, exact = RUNAWAY[name]
    rule = prototypes.LVQ21(0.2, labels=labels)
    end = prototypes.asymptote(law, rule, start=start)
    curve = prototypes.curve(law, rule, alpha=np.geomspace(1, 1e6, 100), start=start)
    last = curve.isel(alpha=np.flatnonzero(curve.outcome.values == "converged")[-1])
    assert float(end.error) == pytest.approx(float(last.error), abs=1e-5)
    assert exact is None or float(end.error) == pytest.approx(exact, abs=1e-12)
    assert str(end.outcome.values) == "diverged"


def test_the_prototype_that_does_not_run_away_comes_to_rest():
    end = prototypes.asymptote(A, prototypes.LVQ21(0.2))
    assert float(end.Q[0, 0]) == pytest.approx(lvq21.Q_plus_plus_limit(0.8, 1.0, 0.2, 1.0), rel=1e-9)
    np.testing.assert_allclose(end.R[0], [0.8 / 0.6, -0.2 / 0.6], rtol=1e-9)
    assert not np.any(np.isfinite(end.R[1]))
    assert float(end.growth) == pytest.approx(0.2 * 0.6)


@pytest.mark.parametrize(
    ("law", "rate"),
    [
        (prototypes.TwoClusters(0.2, 1000.0, (0.3, 100.0)), 1.0),
        (prototypes.TwoClusters(0.01, 1.0, (4.0, 1e6)), 1e-6),
        (prototypes.TwoClusters(0.7, 1e-3, (1e-6, 1e-6)), 1e-6),
    ],
)
def test_worlds_of_any_size_come_to_rest(law, rate):
    start = prototypes.NearOrigin(1e-4 * max(law.variances))
    found = prototypes.asymptote(law, prototypes.LVQPlus(rate), start=start)
    assert str(found.outcome.values) == "converged"
    small = prototypes.asymptote(law, prototypes.LVQPlus(), small_rate=True).sel(state="axis")
    if rate < 1e-3:
        assert float(found.error) == pytest.approx(float(small.error), abs=1e-4)
    else:
        last = prototypes.curve(law, prototypes.LVQPlus(rate), alpha=np.geomspace(1, 1e4, 100), start=start).error[-1]
        assert float(found.error) == pytest.approx(float(last), abs=1e-6)


def test_lvq_plus_is_closed():
    found = prototypes.asymptote(at_12(0.8), prototypes.LVQPlus(), small_rate=True).sel(state="axis")
    u = 1.2 / np.sqrt(2)
    from scipy.stats import norm

    assert float(found.error) == pytest.approx(norm.cdf(-u), abs=1e-12)
    x = u + norm.pdf(u) / norm.cdf(u)
    np.testing.assert_allclose(found.R, 0.6 + x / np.sqrt(2) * np.array([[1, -1], [-1, 1]]), atol=1e-9)
    np.testing.assert_allclose(found.R.sum("cluster"), 1.2, atol=1e-9)  # erratum P17: about lambda (B+ + B-)/2


def test_lvq_plus_does_not_see_the_prior_only_for_equal_variances():
    equal = prototypes.asymptote(at_12(0.5), prototypes.LVQPlus(), small_rate=True, prior=[0.2, 0.5, 0.9])
    assert float(np.ptp(equal.error.sel(state="axis").values)) < 1e-12
    unequal = prototypes.asymptote(B, prototypes.LVQPlus(), small_rate=True, prior=[0.2, 0.9]).sel(state="axis")
    np.testing.assert_allclose(unequal.R[0], unequal.R[1], atol=1e-9)  # erratum P18: the prototypes do not see it
    assert float(np.ptp(unequal.error.values)) > 0.01  # but the error does
    finite = prototypes.asymptote(at_12(0.5), prototypes.LVQPlus(0.2), prior=[0.3, 0.8])
    np.testing.assert_allclose(finite.R[0], finite.R[1], atol=1e-9)


def test_check_values_at_finite_rate():
    found = prototypes.asymptote(A, prototypes.LVQ1(0.2))
    assert float(found.error) == pytest.approx(0.16734, abs=tolerances.DIGITS)
    assert float(found.growth) == pytest.approx(-0.0093, abs=5e-5)
    half = at_12(0.5)
    assert float(prototypes.asymptote(half, prototypes.LVQ1(0.2)).error) == pytest.approx(0.20283, abs=6e-6)
    assert float(prototypes.asymptote(half, prototypes.LVQPlus(0.2)).error) == pytest.approx(0.20373, abs=6e-6)
    assert float(prototypes.asymptote(half, prototypes.VQ(0.2), start=BROKEN).error) == pytest.approx(0.20894, abs=6e-6)


def test_finite_rates_extrapolate_to_the_small_rate_limit():
    rates = np.array([0.04, 0.02, 0.01])
    errors = prototypes.asymptote(at_12(0.7), prototypes.LVQ1(), rate=rates).error.values
    limit = np.polyfit(rates, errors, 2)[-1]
    small = prototypes.asymptote(at_12(0.7), prototypes.LVQ1(), small_rate=True).sel(state="axis")
    assert limit == pytest.approx(float(small.error), abs=2e-5)


def test_unspecialised_state_of_vq_is_closed(double):
    R, Q = theory.unspecialised_overlaps(A, 0.2)
    np.testing.assert_allclose(R, [[0.8, 0.2]] * 2)
    assert np.sqrt(Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]) == pytest.approx(vq.distance(0.2), abs=1e-12)
    field = programs.compiled(theory.field)
    for law, rate in ((A, 0.2), (B, 0.3)):
        drift = field(law, prototypes.VQ(rate), *theory.unspecialised_overlaps(law, rate))
        for part in drift:
            np.testing.assert_allclose(part, 0.0, atol=1e-14)


@pytest.mark.parametrize(("prior", "separation", "rate"), [(0.8, 1.0, 0.2), (0.02, 1.2, 0.2), (0.5, 2.0, 1.0)])
def test_escape_rate_of_vq_is_closed(prior, separation, rate):
    ours = prototypes.escape_rate(prototypes.TwoClusters(prior, separation), prototypes.VQ(rate))
    assert ours == pytest.approx(vq.escape_rate(prior, separation, rate), abs=1e-12)


def test_check_values_of_the_escape_rate():
    assert prototypes.escape_rate(A, prototypes.VQ(0.2)) == pytest.approx(0.022998, abs=1e-6)
    never = prototypes.escape_rate(prototypes.TwoClusters(0.02, 1.2), prototypes.VQ(0.2))
    assert never == pytest.approx(-0.001559, abs=1e-6)
    assert prototypes.escape_rate(B, prototypes.VQ(0.2)) == pytest.approx(0.097, abs=0.001)


def test_vq_leaves_the_unspecialised_state_at_the_escape_rate():
    R, Q = theory.unspecialised_overlaps(A, 0.2)
    start = prototypes.Overlaps(R + 1e-7 * np.array([[1.0, -1.0], [-1.0, 1.0]]), Q)
    path = prototypes.curve(A, prototypes.VQ(0.2), alpha=np.linspace(0, 80, 501), start=start).sel(alpha=[60, 80])
    apart = path.R.isel(prototype=0, cluster=0) - path.R.isel(prototype=1, cluster=0)
    grown = float(np.log(apart[1] / apart[0])) / 20
    assert grown == pytest.approx(vq.escape_rate(0.8, 1.0, 0.2), rel=0.01)


def test_the_optimum_is_the_best_flat_boundary():
    from scipy.stats import norm

    for law in (A, B, prototypes.TwoClusters(0.95, 0.3, (0.2, 2.0))):
        theta = np.linspace(-20, 20, 400_001)
        m, sd = law.separation / np.sqrt(2), np.sqrt(law.variances)
        errors = law.prior * norm.cdf((theta - m) / sd[0]) + (1 - law.prior) * norm.cdf((-m - theta) / sd[1])
        assert float(prototypes.optimum(law).error) == pytest.approx(errors.min(), abs=1e-8)


def test_general_worlds_settle_too():
    law = prototypes.Clusters([0.5, 0.3, 0.2], (0, 1, 1))
    start = prototypes.Overlaps(R=0.3 * np.eye(2, 3), Q=0.2 * np.eye(2))
    found = prototypes.asymptote(law, prototypes.LVQ1(0.1), start=start)
    assert str(found.outcome.values) == "converged"
    assert float(found.growth) < 0


def test_bad_input_gets_a_sentence():
    with pytest.raises(InputError, match="must be constant"):
        prototypes.asymptote(A, prototypes.LVQ1(prototypes.Decay(0.1, 1.0)))
    with pytest.raises(InputError, match="escape rate"):
        prototypes.escape_rate(A, prototypes.LVQ1(0.2))
