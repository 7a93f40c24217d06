"""`InversePotential`: what it finds, what does not change it, and what it refuses."""

import numpy as np
import pandas as pd
import pytest

import quenched
from quenched import fields
from quenched.core.types import InputError
from quenched.estimators import InversePotential

AXIS = fields.Axis(-5, 5, points=401)
GRID = fields.Grid(given=[AXIS])
WELLS = 0.22 * (AXIS.coordinates**2 - 2.25) ** 2
UNITS = 1e-6
"""Of what depends on units by rounding alone, amplified by Newton's last step."""


def measured(V, state, seed, n=200):
    """Positions, and their density."""
    p = state.density(GRID, V)
    random = np.random.default_rng(seed)
    rows = random.choice(AXIS.coordinates, n, p=p / p.sum())
    return rows + AXIS.spacing * (random.uniform(size=n) - 0.5), p


ROWS, TRUE = measured(WELLS, fields.Ground(), 0)


@pytest.fixture(scope="module")
def model():
    return InversePotential().fit(ROWS)


def distance(model, truth):
    """The root of the integrated squared error of the density."""
    off = np.exp(model.score_samples(AXIS.coordinates)) - truth
    return np.sqrt(np.sum(off**2) * AXIS.spacing)


def oscillator(rows):
    """The density of the oscillator as wide as the rows."""
    return np.exp(-0.5 * (AXIS.coordinates - rows.mean()) ** 2 / rows.var()) / np.sqrt(2 * np.pi * rows.var())


@pytest.mark.parametrize("temperature", [None, 0.3], ids=["ground", "canonical"])
def test_200_positions_halve_the_error_of_the_oscillator_on_five_seeds(temperature):
    state = fields.Ground() if temperature is None else fields.Canonical(temperature)
    for seed in range(5):
        rows, truth = measured(2 * WELLS, state, seed)
        found = InversePotential(temperature=temperature, points=80).fit(rows)
        reference = np.sqrt(np.sum((oscillator(rows) - truth) ** 2) * AXIS.spacing)
        assert distance(found, truth) < reference / 2, seed


def test_both_wells_their_levels_and_the_truth_lie_within_the_bands(model):
    V = np.interp(model.grid_, AXIS.coordinates, WELLS, left=np.nan, right=np.nan)
    p = model.density_ / model.density_.sum()
    where = np.isfinite(V)
    V = V - p[where] @ V[where] / p[where].sum()
    low, high = model.credible_band()
    assert p[where] @ ((low < V) & (high > V))[where] > 0.7
    assert abs(p @ model.potential_) < 1e-9 * np.ptp(model.potential_)
    E, _ = fields.Hamiltonian().levels(GRID, WELLS, 2)
    gap, deviation = np.diff(model.energies_[:2])[0], model.energy_deviations_[1]
    assert abs(gap - np.diff(E)[0]) < 3 * deviation
    energies, _ = fields.Hamiltonian().levels(model._found.setting.grid, model._found.potential, 5)
    np.testing.assert_allclose(model.energies_, energies * model._scales[2], rtol=1e-9)
    low, high = model.density_band()
    truth = np.interp(model.grid_, AXIS.coordinates, TRUE, left=0, right=0)
    assert p @ ((low < truth) & (truth < high)) > 0.7


def test_units_move_and_stretch_with_the_data(model):
    length, mass = 1e-9, 3.0
    other = InversePotential(mass=mass).fit(7e-9 + length * ROWS)
    np.testing.assert_allclose(other.grid_, 7e-9 + length * model.grid_, rtol=UNITS)
    scale = 1 / (mass * length**2)
    np.testing.assert_allclose(
        other.potential_, scale * model.potential_, atol=UNITS * scale * np.ptp(model.potential_)
    )
    np.testing.assert_allclose(other.energies_, scale * model.energies_, rtol=UNITS)
    np.testing.assert_allclose(other.density_ * length, model.density_, atol=UNITS)


def test_a_hot_ensemble_is_a_boltzmann_density():
    rows, _ = measured(10 * WELLS, fields.Canonical(6.0), 1, n=400)
    found = InversePotential(temperature=6.0, points=60).fit(rows)
    seen = (found.grid_ > rows.min()) & (found.grid_ < rows.max())
    classical = -6.0 * np.log(found.density_[seen])
    off = found.potential_[seen] - classical
    assert np.std(off) < 0.1 * np.ptp(classical)


def test_symmetric_potentials_are_even_and_rings_close():
    found = InversePotential(symmetric=True).fit(ROWS)
    np.testing.assert_allclose(found.potential_, found.potential_[::-1], atol=1e-9 * np.ptp(found.potential_))
    assert np.isclose((found.grid_[0] + found.grid_[-1]) / 2, ROWS.mean())
    angle = np.random.default_rng(0).vonmises(0.0, 1.0, size=300)
    ring = InversePotential(bounds=(-np.pi, np.pi), periodic=True).fit(angle)
    step = ring.grid_[1] - ring.grid_[0]
    assert np.isclose(step * len(ring.grid_), 2 * np.pi)
    assert np.abs(np.diff(np.append(ring.potential_, ring.potential_[0]))).max() < 0.2 * np.ptp(ring.potential_)
    assert abs(ring.grid_[ring.potential_.argmin()]) < 0.5
    assert ring.credible_band([np.pi])[0] == pytest.approx(ring.credible_band([-np.pi])[0])


def test_a_reference_is_where_nothing_was_measured():
    def reference(y):
        return y**2 / 2

    found = InversePotential(reference=reference, points=80).fit(ROWS)
    ends = found.grid_[[0, 5]]
    np.testing.assert_allclose(np.diff(found.potential_[[0, 5]]), np.diff(reference(ends)), rtol=0.2)


def test_hard_walls_hold_a_particle_that_is_free_between_them():
    random = np.random.default_rng(0)
    y = np.linspace(0, 1, 2001)
    rows = random.choice(y, 2000, p=np.sin(np.pi * y) ** 2 / np.sum(np.sin(np.pi * y) ** 2))
    found = InversePotential(bounds=(0.0, 1.0), walls=True, order=1).fit(rows)
    middle = (found.grid_ > 0.1) & (found.grid_ < 0.9)
    assert np.ptp(found.potential_[middle]) < np.pi**2 / 2  # less than the energy of the level
    assert found.energies_[1] - found.energies_[0] == pytest.approx(3 * np.pi**2 / 2, rel=0.1)


def test_weights_are_copies():
    weights = np.tile([1, 2], 100)
    heavy = InversePotential(strength=1e-4).fit(ROWS, sample_weight=weights)
    copied = InversePotential(strength=1e-4).fit(np.repeat(ROWS, weights))
    np.testing.assert_allclose(heavy.potential_, copied.potential_, atol=UNITS * np.ptp(copied.potential_))


def test_draws_have_the_density(model):
    drawn = model.sample(20_000, random_state=0)[:, 0]
    x, p = model.grid_, model.density_ / model.density_.sum()
    mean, deviation = p @ x, np.sqrt(p @ (x - p @ x) ** 2)
    assert abs(drawn.mean() - mean) < 4 * deviation / np.sqrt(20_000)
    assert drawn.std() == pytest.approx(deviation, rel=0.02)
    assert np.sum(np.exp(model.score_samples(np.linspace(-9, 9, 4001)))) * 18 / 4000 == pytest.approx(1, abs=1e-3)


def test_the_description_is_drawn(model):
    table = pd.DataFrame({"place": ROWS})
    said = InversePotential(strength=1e-3, points=40).fit(table).describe()
    assert said.attrs["column"] == "place"
    over, below = quenched.plot(said).axes
    assert (over.get_xlabel(), over.get_ylabel()) == ("place", "potential, less its mean")
    assert below.get_ylabel() == "probability density"
    assert len(model.plot().axes) == 2


@pytest.mark.parametrize(("settings", "rows", "words"), [
    ({"temperature": -1.0}, ROWS, "Argument `temperature` must be positive"),
    ({"state": "excited"}, ROWS, "Argument `state` must be 'ground'"),
    ({"state": 1, "temperature": 1.0}, ROWS, "`temperature` must be None beside a `state`"),
    ({"state": fields.Evolving(fields.Packet(0.0, 1.0), [1.0])}, ROWS, "does not move"),
    ({"bounds": (-1.0, 1.0)}, ROWS, "must lie inside `bounds`"),
    ({"bounds": (3.0, -3.0)}, ROWS, "`bounds` must rise"),
    ({"bounds": (ROWS.min(), ROWS.max())}, ROWS, "must be bound inside the grid"),
    ({"state": 60}, ROWS, "positions that the state may have"),
    ({}, np.append(ROWS, 1e3), "positions that the state may have"),
    ({"periodic": True}, ROWS, "`bounds` must be two numbers with `periodic`"),
    ({"order": 2}, ROWS, "`order` must be at least 3 without a `reference`"),
    ({"reference": 3}, ROWS, "`reference` must be a function"),
    ({"mass": 0.0}, ROWS, "`mass` must be positive"),
    ({}, np.ones(9), "at least two different positions"),
    ({}, ROWS.reshape(-1, 2), "must have one column"),
])  # fmt: skip
def test_bad_input_is_refused_in_a_sentence(settings, rows, words):
    with pytest.raises(InputError, match=words):
        InversePotential(**settings).fit(rows)


def test_places_beyond_the_grid_are_refused(model):
    with pytest.raises(InputError, match="must lie on the grid"):
        model.credible_band([99.0])
    assert model.score_samples([99.0])[0] == -np.inf


def test_bands_of_draws_are_near_those_of_laplace_where_rows_are_many():
    y = np.random.default_rng(0).normal(scale=np.sqrt(0.5), size=400)
    given = {"points": 40, "strength": 0.01}
    drawn = InversePotential(band="sampled", random_state=0, **given).fit(y)
    usual = InversePotential(**given).fit(y)
    assert (drawn.band_, usual.band_) == ("sampled", "laplace")
    assert "agree" in drawn.band_verdict_
    np.testing.assert_array_equal(drawn.potential_, usual.potential_)
    x = np.linspace(-1.0, 1.0, 9)
    for method in ("credible_band", "density_band"):
        (low, high), (below, above) = (getattr(model, method)(x) for model in (drawn, usual))
        np.testing.assert_allclose(high - low, above - below, rtol=0.15)
        assert np.all(np.abs(low + high - below - above) < 0.5 * (above - below))


def test_an_unknown_band_is_refused():
    with pytest.raises(InputError, match="Argument `band` must"):
        InversePotential(band="exact").fit(np.linspace(-1, 1, 20))
