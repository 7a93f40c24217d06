"""Whatever units a table has: powers of two change no bit of an answer, and no size of the numbers is too much."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from quenched import mixtures, outliers, prototypes
from quenched.core.types import InputError
from quenched.estimators import (
    AnnealedMixture,
    ClusterFinder,
    FieldConditional,
    FieldDensity,
    FieldRegressor,
    HardSelectionClassifier,
    LVQClassifier,
    SoftSelectionClassifier,
    VQClusterer,
)
from tests.properties import common as properties
from tests.properties.estimators import lumps

MODELS = {
    "soft": SoftSelectionClassifier(),
    "soft, standardised": SoftSelectionClassifier(standardize=True),
    "hard": HardSelectionClassifier(),
    "mixture": AnnealedMixture(random_state=0),
    "spherical mixture": AnnealedMixture(widths=mixtures.Spherical(), random_state=0),
    "diagonal mixture": AnnealedMixture(widths=mixtures.Diagonal(), random_state=0),
    "clusters": ClusterFinder(components=3, random_state=0),
    "LVQ": LVQClassifier(random_state=0, passes=2),
    "LVQ, standardised": LVQClassifier(random_state=0, passes=2, standardize=True),
    "VQ": VQClusterer(n_clusters=2, random_state=0, passes=2),
}
FREE = ("predict", "predict_proba", "outlier_probability")
"""What has no unit."""
LENGTHS = {"centres_": 1, "gamma_": -2, "means_": 1, "covariances_": 2, "prototypes_": 1, "temperature_": 2,
           "cluster_centers_": 1, "inertia_": 2, "transform": 1, "decision_function": 2}  # fmt: skip
"""What is a length to some power, of tables that are not standardised."""
NEAR = 1e-9
"""Rounding, in units that are no power of two."""


def fitted(name, scale):
    X = scale * lumps(0, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return type(MODELS[name])(**MODELS[name].get_params()).fit(X, np.arange(len(X)) % 2), X


def answers(model, X, names):
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    return {name: value(X) if callable(value) else value for name, value in found.items()}


@pytest.mark.parametrize("name", MODELS)
@properties.property_settings(5)
@given(power=st.integers(-1000, 1000))
def test_powers_of_two_change_no_bit(name, power):
    (plain, X), (other, Z) = fitted(name, 1.0), fitted(name, 2.0**power)
    expected = answers(plain, X, FREE)
    for key, value in answers(other, Z, FREE).items():
        np.testing.assert_array_equal(value, expected[key])
    if "standardised" in name or abs(power) > 400:  # beyond, squares are no numbers
        return
    expected = answers(plain, X, LENGTHS)
    for key, value in answers(other, Z, LENGTHS).items():
        if not (key == "decision_function" and hasattr(plain, "centres_")):  # a logarithm there
            np.testing.assert_array_equal(value, np.ldexp(expected[key], power * LENGTHS[key]))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("name", MODELS)
def test_no_size_is_too_small_or_too_large(name, scale):
    (plain, X), (other, Z) = fitted(name, 1.0), fitted(name, scale)
    expected = answers(plain, X, FREE)
    for key, value in answers(other, Z, FREE).items():
        np.testing.assert_allclose(value, expected[key], rtol=NEAR, atol=NEAR)
    for key, value in answers(other, Z, LENGTHS).items():
        assert np.all(np.isfinite(value)), key
        value = np.einsum("kii->ki", value) if key == "covariances_" and np.ndim(value) == 3 else value
        assert key not in ("gamma_", "covariances_", "temperature_", "inertia_") or np.all(np.asarray(value) > 0)


def test_a_density_of_a_mixture_has_the_units_of_the_data():
    (plain, X), (other, Z) = fitted("mixture", 1.0), fitted("mixture", 1e-160)
    shift = -2 * np.log(1e-160)
    np.testing.assert_allclose(other.score_samples(Z), plain.score_samples(X) + shift, rtol=NEAR)
    assert other.lower_bound_ == pytest.approx(plain.lower_bound_ + shift)
    assert other.score(Z) == pytest.approx(other.lower_bound_)
    np.testing.assert_allclose(other.sample(20)[0] / 1e-160, plain.sample(20)[0], rtol=NEAR)
    one, two = (fitted("spherical mixture", scale)[0].splits_.width for scale in (1.0, 2.0**9))
    np.testing.assert_array_equal(two, one * 2.0**18)


def test_given_lengths_are_in_the_units_of_the_data():
    X, y = lumps(0, 2), np.arange(24) % 2
    for scale in (2.0**60, 2.0**-60):
        plain = SoftSelectionClassifier(gamma=2.0, prior=3.0).fit(X, y)
        other = SoftSelectionClassifier(gamma=2.0 / scale**2, prior=3.0 * scale).fit(scale * X, y)
        np.testing.assert_array_equal(plain.predict_proba(X), other.predict_proba(scale * X))
        assert other.gamma_ == 2.0 / scale**2
        one, two = (
            AnnealedMixture(widths=mixtures.MaximumLikelihood(0.5 * s**2), random_state=0).fit(s * X)
            for s in (1, scale)
        )
        np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(scale * X))
    with pytest.raises(InputError, match="`gamma` must be of a size that suits the data"):
        SoftSelectionClassifier(gamma=1.0).fit(1e200 * X, y)
    with pytest.raises(InputError, match="`width` must be of a size that suits the data"):
        AnnealedMixture(widths=mixtures.MaximumLikelihood(1.0)).fit(1e-200 * X)


def test_batches_and_warm_starts_keep_the_first_units():
    X, y = lumps(0, 2), np.arange(24) % 2
    for scale in (1.0, 1e-200, 1e200):
        for model in (LVQClassifier(random_state=0), VQClusterer(2, random_state=0)):
            first = model.partial_fit(scale * X, y)
            second = first.partial_fit(0.25 * scale * X, y)
            assert second.n_iter_ == 2
            assert np.all(np.isfinite(second.predict(scale * X)))
        mixture = AnnealedMixture(warm_start=True, random_state=0).fit(scale * X).fit(2 * scale * X)
        np.testing.assert_allclose(mixture.means_ / scale, AnnealedMixture(random_state=0).fit(2 * X).means_, rtol=0.05)


@pytest.mark.parametrize("name", [*MODELS, "density", "function", "conditional"])
def test_masked_values_are_not_overlooked(name):
    more = {"density": FieldDensity(), "function": FieldRegressor(), "conditional": FieldConditional()}
    model = {**MODELS, **more}[name]
    X = np.ma.masked_greater(lumps(0, 1 if name in more else 2), 2.0)
    with pytest.raises(InputError, match=r"`X` must have a value everywhere, but \d+ are masked"):
        type(model)(**model.get_params()).fit(X, np.arange(len(X)) % 2)
    if name == "density":
        with pytest.raises(InputError, match="masked"):
            FieldDensity().fit(X[:, 0])


def test_values_too_small_for_their_squares_are_refused():
    x, y = lumps(0, 1), np.sin(np.arange(24))
    for model in (FieldRegressor(points=12), FieldConditional(points=(12, 20), order=1, strength=(1.0, 1.0))):
        with pytest.raises(InputError, match="`y` must reach 1e-150"):
            model.fit(x, 1e-200 * y)
    X, labels = 1e-200 * lumps(0, 2), np.arange(24) % 2
    for call in (
        lambda: outliers.fit(outliers.SoftSelection(), (X, labels)),
        lambda: mixtures.fit(mixtures.Spherical(), X),
        lambda: prototypes.fit(prototypes.LVQ1(0.1), (X, labels), key=properties.KEY),
    ):
        with pytest.raises(InputError, match="`data` must reach 1e-150"):
            call()
