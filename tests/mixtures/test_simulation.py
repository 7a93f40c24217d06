"""The experiment: what annealing finds, what random starts find, and what becomes of minima as the width changes."""

import jax
import numpy as np
import pytest
from scipy.special import erfc

import quenched
from quenched.core.types import InputError
from quenched.mixtures import theory
from quenched.mixtures.model import Annealed, MaximumLikelihood, RandomStart, TwoGaussians
from quenched.mixtures.simulation import follow, measure, spectrum

KEY = jax.random.key(1994)
LAW, RULE = TwoGaussians(2.0), MaximumLikelihood()
SAME = 1e-5  # the same minimum from two starts, each to a residual of 1e-6

LARGE = {"alpha": 1.0, "size": 500, "key": KEY}
SMALL = {"alpha": 2.0, "size": 40, "runs": 6, "key": KEY, "tests": 400}


@pytest.fixture(scope="module")
def large():
    return measure(LAW, RULE, width=[1.6, 3.0, 5.5], runs=20, start=Annealed(from_width=8.0, step=0.1), **LARGE)


def test_annealing_meets_the_replica_theory(large):
    """Where replica symmetry holds, and none above the splitting at 4.5."""
    split = large.sel(width=[1.6, 3.0])
    curve = theory.curve(LAW, RULE, alpha=1.0, width=[1.6, 3.0])
    assert quenched.agreement(curve, split, variables=["r", "q", "error", "free_energy"], allowance=1 / 500).passed
    assert float(large.q.sel(width=5.5)) < 1e-8
    assert int(large.failed) == 0
    assert np.all(large.outcome == "converged")


def test_the_counted_error_is_that_of_the_angle(large):
    points = large.sel(width=[1.6, 3.0])
    cos = np.sqrt(2 * points.r_run**2 / points.q_run)
    expected = 0.5 * erfc(2.0 * cos / 2)
    z = (points.error_run - expected) / np.sqrt(expected * (1 - expected) / 1000)
    assert float(np.abs(z).max()) < 4.5
    assert abs(float(z.mean())) < 4 / np.sqrt(z.size)


def test_widths_are_passed_through_by_one_annealing():
    """However widths are asked for, each run meets them in falling order on the same sample."""
    up, down = (measure(LAW, RULE, width=widths, **SMALL) for widths in ([1.2, 1.6], [1.6, 1.2]))
    np.testing.assert_array_equal(down.width, [1.6, 1.2])
    np.testing.assert_array_equal(up.r_run.sel(width=1.2), down.r_run.sel(width=1.2))
    assert quenched.plot(up, variables="r").axes[0].get_xlabel().startswith("width")
    alone = measure(LAW, MaximumLikelihood(1.2), **SMALL)
    assert alone.r.dims == ()
    np.testing.assert_allclose(alone.free_energy_run, up.free_energy_run.sel(width=1.2), atol=0.03)


def test_random_starts_find_the_annealed_minimum_where_there_is_one():
    annealed, random = (measure(LAW, RULE, width=[2.4, 2.8], start=s, **SMALL) for s in (Annealed(), RandomStart()))
    np.testing.assert_allclose(annealed.r_run, random.r_run, atol=SAME)
    np.testing.assert_allclose(annealed.free_energy_run, random.free_energy_run, atol=SAME)
    assert np.all(annealed.q_run > 0.1)


def test_alpha_and_separation_sweep():
    points = measure(LAW, MaximumLikelihood(1.2), separation=[1.0, 2.0], **SMALL | {"alpha": [2.0, 3.0]})
    assert points.r.dims == ("alpha", "separation")
    assert points.r_run.dims == ("alpha", "separation", "run")
    one = measure(TwoGaussians(1.0), MaximumLikelihood(1.2), **SMALL | {"alpha": 3.0})
    np.testing.assert_allclose(points.q.sel(alpha=3.0, separation=1.0), one.q, rtol=1e-6)
    assert np.all(points.r.sel(separation=2.0) > points.r.sel(separation=1.0))


def test_many_minima_appear_as_the_width_falls():
    """Onset of metastability at (1, 2): see `theory/mixtures.md`, section 5."""
    found = spectrum(LAW, RULE, width=[0.5, 1.0, 2.5], starts=32, **LARGE).isel(run=0)
    assert float(found.above.sel(width=2.5)) < 0.1
    assert float(found.above.sel(width=1.0)) > 0.5
    assert float(found.above.sel(width=0.5)) == 1
    assert int(found.minima.sel(width=2.5)) == 1
    assert int(found.minima.sel(width=0.5)) > 16
    assert found.free_energy.dims == ("width", "start")
    best = found.sel(width=2.5)
    np.testing.assert_allclose(best.r, best.annealed_r, atol=SAME)
    np.testing.assert_allclose(best.free_energy, best.annealed_free_energy, atol=SAME)


def test_minima_disappear_as_the_width_rises_and_not_as_it_falls():
    widths = np.geomspace(0.45, 2.4, 31)
    path = follow(LAW, RULE, from_width=0.6, width=widths, alpha=1.0, size=150, starts=16, key=KEY).isel(run=0)
    np.testing.assert_allclose(path.width, np.sort(np.append(widths, 0.6)))
    down, up = path.sel(width=path.width < 0.6), path.sel(width=path.width > 0.6)
    assert float(up.jump.sum()) >= 16
    assert float(down.jump.sum()) <= 1
    end, start = path.isel(width=-1), path.sel(width=0.6)
    np.testing.assert_allclose(end.free_energy, end.annealed_free_energy, atol=SAME)  # all have met
    assert float(start.free_energy.std()) > 1e-3
    rises = up.free_energy.diff("width") > 0  # of one minimum, as the width does; a jump goes down from there
    assert bool(np.all(rises | (up.jump.isel(width=slice(1, None)) == 1)))


BAD = {
    "width": ({"width": [1.0, 0.0]}, "`width` must be positive"),
    "alpha": ({"alpha": 0.0}, "`alpha` must be positive"),
    "size": ({"size": 1}, "`size` must be at least 2"),
    "start": ({"start": "annealed"}, "must be Annealed\\(\\) or RandomStart\\(\\)"),
    "few": ({"alpha": 0.01}, "at least 2 examples"),
    "control": ({"temperature": 1.0}, "must be a field of the law or the rule"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name):
    given, message = BAD[name]
    with pytest.raises(InputError, match=message):
        measure(LAW, RULE, **SMALL | given)


def test_bad_law_rule_and_starts_are_refused():
    with pytest.raises(InputError, match="must be a law"):
        measure(RULE, RULE, **SMALL)
    with pytest.raises(InputError, match="must be MaximumLikelihood"):
        measure(LAW, LAW, **SMALL)
    with pytest.raises(InputError, match="`starts` must be at least 1"):
        spectrum(LAW, RULE, starts=0, **LARGE)
    with pytest.raises(InputError, match="`width` must increase"):
        follow(LAW, RULE, from_width=1.0, width=[2.0, 1.0], starts=1, **LARGE)
