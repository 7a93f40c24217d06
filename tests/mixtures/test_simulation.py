"""The experiment: what annealing finds, what random starts find, and what becomes of minima as the width changes."""

import jax
import numpy as np
import pytest
from scipy.special import erfc

import quenched
from quenched.core.types import InputError
from quenched.estimators import AnnealedMixture
from quenched.mixtures import fit, theory
from quenched.mixtures.model import Annealed, MaximumLikelihood, RandomStart, TwoGaussians
from quenched.mixtures.simulation import measure
from quenched.mixtures.simulation.measure import ACCURACY, PASSES, draw_sample
from quenched.papers.barkai1994.minima import follow, spectrum
from tests.tolerances import MACHINE, MINIMUM

KEY = jax.random.key(1994)
LAW, RULE = TwoGaussians(2.0), MaximumLikelihood()

LARGE = {"alpha": 1.0, "size": 500, "key": KEY}
SMALL = {"alpha": 2.0, "size": 40, "runs": 6, "key": KEY, "tests": 400}


@pytest.fixture(scope="module")
def large():
    return measure(LAW, RULE, width=[1.6, 3.0, 5.5], runs=20, start=Annealed(from_width=8.0, step=0.1), **LARGE)


def test_annealing_meets_the_replica_theory(large):
    """Where replica symmetry holds, and none above the splitting at 4.5."""
    split = large.sel(width=[1.6, 3.0])
    curve = theory.curve(LAW, RULE, alpha=1.0, width=[1.6, 3.0])
    assert quenched.agreement(curve, split, variables=["r", "q", "error", "energy"], allowance=1 / 500).passed
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


@pytest.mark.parametrize("start", [Annealed(), RandomStart()])
def test_the_measured_learner_is_the_one_that_users_get(double, start):
    """The centres behind every run are those that `fit` finds on its sample; and the estimator's."""
    points = measure(LAW, MaximumLikelihood(1.6), start=start, **SMALL)
    run = jax.random.fold_in(jax.random.fold_in(KEY, 0), 3)
    sampling, starting = jax.random.split(run)
    sample = draw_sample(sampling, LAW, 80, 40, 400)
    found = fit(MaximumLikelihood(1.6), sample.S, start=start, key=starting, accuracy=ACCURACY, passes=PASSES)
    dU = (found.centres[0] - found.centres[1]) / 2
    assert float(points.q_run[3]) == pytest.approx(dU @ dU, rel=MACHINE)
    assert float(points.r_run[3]) == pytest.approx(abs(dU @ sample.truth), rel=MACHINE)
    model = AnnealedMixture(2, widths=MaximumLikelihood(1.6), step=0.05, accuracy=ACCURACY, max_iter=PASSES).fit(
        sample.S
    )
    if isinstance(start, Annealed):
        assert np.sum(np.diff(model.means_, axis=0) ** 2) / 4 == pytest.approx(dU @ dU, abs=MINIMUM)


def test_widths_are_passed_through_by_one_annealing():
    """However widths are asked for, each run meets them in falling order on the same sample."""
    up, down = (measure(LAW, RULE, width=widths, **SMALL) for widths in ([1.2, 1.6], [1.6, 1.2]))
    np.testing.assert_array_equal(down.width, [1.6, 1.2])
    np.testing.assert_array_equal(up.r_run.sel(width=1.2), down.r_run.sel(width=1.2))
    assert quenched.plot(up, variables="r").axes[0].get_xlabel().startswith("width")
    alone = measure(LAW, MaximumLikelihood(1.2), **SMALL)
    assert alone.r.dims == ()
    np.testing.assert_allclose(alone.energy_run, up.energy_run.sel(width=1.2), atol=0.03)


def test_random_starts_find_the_annealed_minimum_where_there_is_one():
    annealed, random = (measure(LAW, RULE, width=[2.4, 2.8], start=s, **SMALL) for s in (Annealed(), RandomStart()))
    np.testing.assert_allclose(annealed.r_run, random.r_run, atol=MINIMUM)
    np.testing.assert_allclose(annealed.energy_run, random.energy_run, atol=MINIMUM)
    assert np.all(annealed.q_run > 0.1)


def test_alpha_and_separation_sweep():
    points = measure(LAW, MaximumLikelihood(1.2), separation=[1.0, 2.0], **SMALL | {"alpha": [2.0, 3.0]})
    assert points.r.dims == ("separation", "alpha")
    assert points.r_run.dims == ("separation", "alpha", "run")
    one = measure(TwoGaussians(1.0), MaximumLikelihood(1.2), **SMALL | {"alpha": 3.0})
    np.testing.assert_allclose(points.q.sel(alpha=3.0, separation=1.0), one.q, rtol=1e-6)
    assert np.all(points.r.sel(separation=2.0) > points.r.sel(separation=1.0))


def test_many_minima_appear_as_the_width_falls():
    """Onset of metastability at (1, 2): see `theory/mixtures.md`, section 5."""
    found = spectrum(LAW, width=[0.5, 1.0, 2.5], starts=32, **LARGE).isel(run=0)
    assert float(found.above.sel(width=2.5)) < 0.1
    assert float(found.above.sel(width=1.0)) > 0.5
    assert float(found.above.sel(width=0.5)) == 1
    assert int(found.minima.sel(width=2.5)) == 1
    assert int(found.minima.sel(width=0.5)) > 16
    assert found.energy.dims == ("width", "start")
    best = found.sel(width=2.5)
    np.testing.assert_allclose(best.r, best.annealed_r, atol=MINIMUM)
    np.testing.assert_allclose(best.energy, best.annealed_energy, atol=MINIMUM)


def test_minima_disappear_as_the_width_rises_and_not_as_it_falls():
    widths = np.geomspace(0.45, 2.4, 31)
    path = follow(LAW, from_width=0.6, width=widths, alpha=1.0, size=150, starts=16, key=KEY).isel(run=0)
    np.testing.assert_allclose(path.width, np.sort(np.append(widths, 0.6)))
    down, up = path.sel(width=path.width < 0.6), path.sel(width=path.width > 0.6)
    assert float(up.jump.sum()) >= 16
    assert float(down.jump.sum()) <= 1
    end, start = path.isel(width=-1), path.sel(width=0.6)
    np.testing.assert_allclose(end.energy, end.annealed_energy, atol=MINIMUM)  # all have met
    assert float(start.energy.std()) > 1e-3
    rises = up.energy.diff("width") > 0  # of one minimum, as the width does; a jump goes down from there
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
def test_bad_input_raises_one_sentence(name):
    given, message = BAD[name]
    with pytest.raises(InputError, match=message):
        measure(LAW, RULE, **SMALL | given)


def test_bad_laws_and_rules_raise_one_sentence():
    with pytest.raises(InputError, match="must be a law"):
        measure(RULE, RULE, **SMALL)
    with pytest.raises(InputError, match="must be MaximumLikelihood"):
        measure(LAW, LAW, **SMALL)
