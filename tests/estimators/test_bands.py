"""Bands of field estimators: those of draws agree with what is exact, and are given up where they cannot be trusted."""

import pickle
import types

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import quenched
from quenched.core.types import InputError
from quenched.estimators import ClusterRegressor, FieldClassifier, FieldConditional, FieldDensity, FieldRegressor
from quenched.fields.practice import bands, sampling
from quenched.fields.practice.target import Quadratics, Target, Term

RNG = np.random.default_rng(0)
X = np.linspace(0, 1, 60)[:, None]
WAVE = np.sin(5 * X[:, 0])
AT = np.array([[0.1], [0.5], [0.9]])
ENDS = 0.25
"""Error of the ends of a 90% band of a thousand draws, in deviations, four times the standard one."""
EXACT = FieldRegressor(points=30, order=2, strength=0.01, noise=0.04)

LEARNED = {
    "density": (FieldDensity(points=40, order=3, strength=0.01, bounds=(-4, 4)), (RNG.normal(size=200),), (AT,)),
    "huber": (FieldRegressor(points=30, order=2, strength=0.01, noise=0.04, loss="huber"),
              (X, WAVE + 0.2 * RNG.normal(size=60)), (AT,)),
    "classes": (FieldClassifier(strength=(0.3, 0.01)),
                (X, (RNG.uniform(size=60) < 0.5 + 0.4 * WAVE).astype(int)), (AT,)),
    "branches": (ClusterRegressor(2, points=30, strength=0.01, n_init=2),
                 (X, RNG.choice([-1, 1], 60) * (1 + X[:, 0]) + 0.1 * RNG.normal(size=60)), (AT,)),
    "conditional": (FieldConditional(points=(12, 20), order=1, strength=(1.0, 1.0)),
                    (X, WAVE + 0.2 * RNG.normal(size=60)), (AT[:2], [0.4, 0.7])),
}  # fmt: skip


@pytest.mark.parametrize("name", LEARNED)
def test_bands_of_draws_are_near_those_of_laplace_where_rows_are_many(name):
    model, table, at = LEARNED[name]
    model = clone(model).set_params(random_state=0)
    low, high = model.fit(*table).credible_band(*at)
    assert model.band_ == "laplace"
    model.set_params(band="sampled").fit(*table)
    assert model.band_ == "sampled", model.band_verdict_
    sampled = pickle.loads(pickle.dumps(model)).credible_band(*at)
    ratio = (sampled[1] - sampled[0]) / (high - low)
    assert np.all((ratio > 0.5) & (ratio < 1.6))
    assert np.all((sampled[0] < high) & (sampled[1] > low))
    narrow = model.credible_band(*at, level=0.5)
    assert np.all((sampled[0] < narrow[0]) & (narrow[1] < sampled[1]))


def test_the_band_of_a_gaussian_problem_is_the_exact_one():
    y = WAVE + 0.2 * RNG.normal(size=60)
    exact = clone(EXACT).fit(X, y)
    drawn = clone(EXACT).set_params(band="sampled", random_state=0).fit(X, y)
    deviation = exact.predict(AT, return_std=True)[1]
    for mine, theirs in zip(drawn.credible_band(AT), exact.credible_band(AT), strict=True):
        assert np.all(np.abs(mine - theirs) < ENDS * deviation)


def test_draws_that_cannot_be_trusted_are_given_up_with_a_warning(monkeypatch):
    monkeypatch.setattr(sampling, "RHAT", 1.0)  # which no draws reach
    monkeypatch.setattr(sampling, "LONGER", 0)
    model, table, at = LEARNED["classes"]
    model = clone(model).set_params(band="sampled", random_state=0)
    with pytest.warns(ConvergenceWarning, match="Laplace's method instead of draws: the draws are NOT to be trusted"):
        model.fit(*table)
    assert model.band_ == "laplace"
    np.testing.assert_array_equal(model.credible_band(*at)[0], clone(model).set_params(band="laplace").fit(*table)
                                  .credible_band(*at)[0])  # fmt: skip


class _Nothing(Term):
    def energy(self, z):
        return jnp.zeros(())


@pytest.mark.parametrize("a", [0.7, 1.0, 1.5])
def test_the_bridge_finds_the_integral_of_a_gaussian(a):
    m = 6
    target = Target(_Nothing(), Quadratics(np.zeros(1), a * np.eye(m)[None], np.zeros((1, m)), np.zeros(1)))
    z = RNG.normal(size=(4, 500, m)) / np.sqrt(a)
    with jax.enable_x64(True):
        found = bands.log_ratio(types.SimpleNamespace(target=target), z, jax.random.key(0))
    assert abs(found + m / 2 * np.log(a)) < 0.06


def test_directions_that_the_data_do_not_decide_keep_laplace():
    model, table, _ = LEARNED["classes"]
    part = clone(model).fit(*table)._fitted.parts()[0]
    assert 0 < part.decided < len(part.mean)
    with jax.enable_x64(True):
        fields = part.gaussian(jax.random.key(0), 4000)
        split = part.rest(jax.random.key(1), 4000)
    roots = part.roots[part.decided :]
    np.testing.assert_allclose(np.cov(split.T), roots.T @ roots, atol=0.1 * np.max(np.sum(roots**2, axis=0)))
    np.testing.assert_allclose(fields.var(axis=0), np.sum(part.roots**2, axis=0), rtol=0.12)


def test_bands_of_estimators_are_calibrated_and_wrong_ones_are_found(monkeypatch):
    p = [float(quenched.calibrate(EXACT, key=jax.random.key(0), runs=60, rows=40).p_value)]
    right = FieldRegressor.predict

    def narrow(self, X, return_std=False):
        mean, deviation = right(self, X, return_std=True)
        return (mean, deviation / 2) if return_std else mean

    monkeypatch.setattr(FieldRegressor, "predict", narrow)
    p.append(float(quenched.calibrate(EXACT, key=jax.random.key(0), runs=60, rows=40).p_value))
    assert p[0] > 1e-3 > p[1]


@pytest.mark.parametrize("name", LEARNED)
def test_every_estimator_has_a_world(name):
    model = LEARNED[name][0]
    model = clone(model).set_params(bounds=(0, 1)) if name == "density" else model
    result = quenched.calibrate(model, key=jax.random.key(1), runs=4, draws=19, rows=40)
    assert result.sizes["quantity"] >= 4
    assert int(result.failed) == 0


@pytest.mark.parametrize(
    ("model", "options", "sentence"),
    [
        (FieldDensity(bounds=(0, None)), {}, "two bounds"),
        (ClusterRegressor(3), {}, "two functions"),
        (EXACT, {"rows": 3}, "`rows` must"),
        (EXACT, {"method": quenched.fields.NUTS()}, "`method` must be None"),
        (FieldRegressor, {}, "`subject` must"),
    ],
)
def test_bad_input_of_a_calibration_is_said_in_a_sentence(model, options, sentence):
    with pytest.raises(InputError, match=sentence):
        quenched.calibrate(model, **{"key": jax.random.key(0), "runs": 4, "rows": 20} | options)


@pytest.mark.parametrize("name", LEARNED)
def test_an_unknown_band_is_refused(name):
    model, table, _ = LEARNED[name]
    with pytest.raises(InputError, match="`band` must"):
        clone(model).set_params(band="bootstrap").fit(*table)


def test_a_tree_has_no_band_of_draws():
    table = pd.DataFrame({"a": RNG.normal(size=30), "b": ["x", "y", "z"] * 10})
    with pytest.raises(InputError, match="`band` must"):
        FieldDensity(band="sampled").fit(table)
