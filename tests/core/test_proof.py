import numpy as np
import pytest
import xarray as xr

from quenched.core.proof import agreement
from quenched.core.types import InputError


def theory(bias=0.0, times=20):
    t = np.linspace(0, 1, times)
    return xr.Dataset({"R": ("alpha", np.sin(t) + bias)}, {"alpha": t})


def experiment(seed, runs=60, times=20, correlation=0.9):
    """Runs whose noise is correlated in time, with the theory as their mean."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, times)
    noise = correlation * rng.standard_normal((1, runs)) + np.sqrt(1 - correlation**2) * rng.standard_normal(
        (times, runs)
    )
    each = np.sin(t)[:, None] + 0.1 * noise
    mean, stderr = each.mean(axis=1), each.std(axis=1, ddof=1) / np.sqrt(runs)
    return xr.Dataset(
        {"R": ("alpha", mean), "R_stderr": ("alpha", stderr), "R_run": (("alpha", "run"), each)}, {"alpha": t}
    )


@pytest.mark.parametrize("correlation", [0.0, 0.95])
def test_p_values_of_a_true_theory_are_uniform(correlation):
    p = np.array([agreement(theory(), experiment(seed, correlation=correlation)).p for seed in range(60)])
    # 60 uniform numbers: the share below 0.25 has standard deviation 0.056, below 0.05 it has 0.028
    assert abs(np.mean(p < 0.25) - 0.25) < 0.2
    assert abs(np.mean(p < 0.05) - 0.05) < 0.1
    assert np.min(p) > 1e-4


def test_a_wrong_theory_is_rejected_and_the_allowance_is_named():
    points = experiment(3)
    wrong = agreement(theory(bias=0.1), points)
    assert not wrong.passed
    assert wrong.p < 1e-8
    assert "DISAGREE" in str(wrong)
    granted = agreement(theory(bias=0.1), points, allowance=0.1)
    assert granted.passed
    assert "allowance 0.1" in str(granted)


def test_more_points_than_runs():
    points = experiment(4, runs=12, times=200)
    assert agreement(theory(times=200), points).passed
    assert not agreement(theory(times=200, bias=0.3), points).passed


def test_z_is_in_standard_errors():
    points = experiment(5)
    z = agreement(theory(), points).z
    np.testing.assert_allclose(z.R, (points.R - theory().R) / points.R_stderr)


def test_points_without_spread_must_agree_exactly():
    points = experiment(6)
    points["R_run"][0, :] = 0.0  # the common start
    points["R"][0] = 0.0
    assert agreement(theory(), points).passed
    off = theory()
    off["R"][0] = 1e-3
    assert agreement(off, points).p == 0.0


def test_two_simulations_are_compared_with_both_errors():
    one, two = experiment(7), experiment(8)
    assert agreement(one, two).passed
    two["R_run"] = two["R_run"] + 0.08
    assert not agreement(one, two).passed


def test_bad_input_gets_a_sentence():
    points = experiment(9)
    with pytest.raises(InputError, match="no alpha = "):
        agreement(theory(times=7), points)
    with pytest.raises(InputError, match="share"):
        agreement(theory(), points, variables=["Q"])
    with pytest.raises(InputError, match="at least 10 good runs"):
        agreement(theory(), points.isel(run=slice(0, 5)))
    broken = theory()
    broken["R"][3] = np.nan
    with pytest.raises(InputError, match="finite"):
        agreement(broken, points)


def test_a_mean_over_runs_is_no_theory():
    """A simulation without its runs, or a curve with points that were drawn, has errors that the test would miss."""
    points, other = experiment(9), experiment(10).drop_vars("R_run")
    with pytest.raises(InputError, match="`curve` must be a theory, or a simulation with its runs, but R has"):
        agreement(other, points)
    other["R_stderr"][:] = 0.0  # as where a curve by theory and draws is theory
    other["R"] = theory()["R"]
    assert agreement(other, points).passed


def test_each_variable_may_have_its_own_allowance():
    """What one variable is granted does not excuse another."""
    points = experiment(3)
    both = points.assign({name.replace("R", "Q"): points[name] for name in ("R", "R_stderr", "R_run")})
    wrong = theory(bias=0.1).assign(Q=theory().R)
    assert agreement(wrong, both, allowance=0.1).passed
    found = agreement(wrong, both, allowance={"R": 0.1, "Q": 0.0})
    assert found.passed
    assert "allowance 0.1 in R, 0 in Q" in str(found)
    assert not agreement(wrong, both, allowance={"R": 0.0, "Q": 0.1}).passed
    with pytest.raises(InputError, match="`allowance` must be one number, or one for each of R, Q, but it is for R"):
        agreement(wrong, both, variables=["R", "Q"], allowance={"R": 0.1})


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_an_error_of_the_size_said_to_be_caught_is_caught_in_half_of_all_simulations(correlation):
    """Half of 40: 20, with a standard deviation of 3.2."""
    found = []
    for seed in range(40):
        points = experiment(seed, correlation=correlation, runs=200)
        right = agreement(theory(), points, allowance=0.01)
        place = int(np.argmin(np.abs(points.alpha.values - float(right.caught_where.partition("= ")[2].rstrip(")")))))
        wrong = theory()
        wrong["R"][place] += right.caught * abs(float(wrong.R[place])) * (-1) ** seed
        found.append(not agreement(wrong, points, allowance=0.01).passed)
    assert 8 <= sum(found) <= 32


def test_a_p_value_of_one_is_never_shown_and_the_deviation_is_that_without_allowance():
    points = experiment(5)
    granted = agreement(theory(), points, allowance=1.0)
    assert granted.p == 1.0
    assert granted.chance == "> 0.99"
    assert "p > 0.99;" in str(granted)
    plain = agreement(theory(), points)
    assert plain.chance == f"= {plain.p:.2g}"
    assert granted.deviation == plain.deviation == float(np.abs(plain.z.R).max())
    xr.testing.assert_allclose(granted.means.R.drop_vars("run", errors="ignore"), points.R)
