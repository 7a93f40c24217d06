"""Quantum systems: levels against closed forms, derivatives against finite differences and another route."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from quenched import fields
from quenched.core.types import InputError
from quenched.fields.model.evolution import Motion
from quenched.fields.model.hamiltonian import Particle
from tests.tolerances import EXACT, GRADIENT

STEPS = 1e-6
"""What steps in time leave: they are halved until the state changes by less than this."""

STATES = {
    "ground": fields.Ground(),
    "excited": fields.Stationary(2),
    "weighted": fields.Weighted([0.2, 0.5, 0.3]),
    "canonical": fields.Canonical(0.8),
    "hot": fields.Canonical(50.0),
    "mixed": fields.Mixed([0.3, 0.7], [fields.Stationary(1), fields.Canonical(0.5)]),
}
RANDOM = np.random.default_rng(0)
PLACES = RANDOM.normal(size=30)
ROUGH, ALONG = RANDOM.normal(size=(2, 40))


def line(points=40, ends=None, reach=5.0):
    return fields.Grid(given=[fields.Axis(-reach, reach, points=points, ends=ends or fields.Free())])


def well(grid, rough=0.1):
    y = grid.axes[0].coordinates
    return y**2 / 2 + 0.3 * np.sin(y) + rough * ROUGH[: grid.size]


def measured(grid, state):
    return fields.PositionData(PLACES, state).prepared(grid)


TIMES = np.repeat([0.0, 0.4], 15)
PACKET = fields.Packet(-1.0, width=0.7, momentum=0.3)


def moving(grid):
    """A mixture of two pure states, one of them given by its values."""
    other = fields.Evolving(np.exp(-(grid.axes[0].coordinates ** 2)) * (1 + 0.5j), TIMES)
    return fields.Mixed([0.4, 0.6], [fields.Evolving(PACKET, TIMES), other])


def repel(distance):
    return 0.8 * np.exp(-(distance**2))


TWO = fields.Hartree(repel)


DATA = {name: (lambda grid, state=state: measured(grid, state)) for name, state in STATES.items()} | {
    "momenta": lambda grid: fields.MomentumData(PLACES, fields.Stationary(1)).prepared(grid),
    "warm momenta": lambda grid: fields.MomentumData(PLACES, fields.Canonical(0.8)).prepared(grid),
    "combined": lambda grid: fields.CombinedData(
        [fields.PositionData(PLACES), fields.MomentumData(PLACES), fields.LevelData([0.5])]
    ).prepared(grid),
    "moving": lambda grid: fields.PositionData(PLACES, moving(grid)).prepared(grid),
    "moving momenta": lambda grid: fields.MomentumData(PLACES, fields.Evolving(PACKET, TIMES)).prepared(grid),
    "two particles": lambda grid: fields.PositionData(PLACES, TWO).prepared(grid),
    "three warm particles": lambda grid: fields.MomentumData(
        PLACES, fields.Hartree(repel, 3, fields.Canonical(0.8))
    ).prepared(grid),
    "levels": lambda grid: fields.LevelData([0.5, 1.5, 2.4], 0.1).prepared(grid),
    "some levels": lambda grid: fields.LevelData([0.5, 2.4], [0.1, 0.2], levels=[0, 2]).prepared(grid),
}


def differences(look, V, along, step=1e-4):
    """Derivatives of energy and slope along a direction, of fourth order."""
    found = [look(V + n * step * along)[:2] for n in (1, -1, 2, -2)]
    return [(8 * (a - b) - (c - d)) / (12 * step) for a, b, c, d in zip(*found, strict=True)]


def check_derivatives(look, V, along):
    """Slope and curvature against differences."""
    _, slope, curvature = look(V)
    by_energy, by_slope = differences(look, V, along)
    assert float(np.sum(slope * along)) == pytest.approx(by_energy, rel=GRADIENT)
    bent = curvature.apply(along.ravel()).reshape(along.shape)
    np.testing.assert_allclose(by_slope, bent, atol=GRADIENT * np.abs(bent).max())
    return curvature, bent


@pytest.mark.parametrize("ends", [fields.Free(), fields.Periodic()], ids=["box", "ring"])
@pytest.mark.parametrize("kind", DATA)
def test_derivatives_are_finite_differences(kind, ends):
    grid = line(ends=ends)
    data, link = DATA[kind](grid), fields.Direct(grid)
    curvature, bent = check_derivatives(lambda V: data.expand(link, V), well(grid), ALONG)
    np.testing.assert_allclose(curvature.matrix() @ ALONG, bent, atol=EXACT * np.abs(bent).max())


@pytest.mark.parametrize("kind", ["excited", "canonical", "mixed", "warm momenta", "moving", "levels"])
def test_perturbation_theory_is_the_derivative_of_a_diagonalisation(kind):
    grid = line()
    data, V, link = DATA[kind](grid), well(grid), fields.Direct(grid)
    energy, slope, _ = data.expand(link, V)
    with jax.enable_x64(True):
        value, gradient = jax.value_and_grad(lambda phi: data.energy(link, phi))(jnp.asarray(V))
    close = STEPS if kind == "moving" else EXACT
    assert energy == pytest.approx(float(value), rel=close)
    np.testing.assert_allclose(slope, np.asarray(gradient), atol=close * np.abs(slope).max())


def test_f336_states_move_away_from_where_the_potential_rises():
    grid, step = line(), 1e-5
    V, hamiltonian = well(grid), fields.Hamiltonian()
    H = hamiltonian.kinetic(grid).matrix + np.diag(V)
    (E, *_), (state, *_) = (part[:1] for part in hamiltonian.levels(grid, V))
    up, down = (hamiltonian.levels(grid, V + sign * step * ALONG)[1][0] for sign in (1, -1))
    up, down = (one * np.sign(one @ state) for one in (up, down))
    left = (H @ (up - down) - E * (up - down)) / (2 * step)
    right = (state @ (ALONG * state) * grid.cell - ALONG) * state  # [lemm1999, eq. (336), erratum F336]
    np.testing.assert_allclose(left, right, atol=GRADIENT * np.abs(right).max())


PLANE = fields.Grid(given=[fields.Axis(-4, 4, points=20), fields.Axis(-3, 3, points=18, ends=fields.Periodic())])
BOWL = np.add.outer(PLANE.axes[0].coordinates ** 2, 2 - 2 * np.cos(np.pi / 3 * PLANE.axes[1].coordinates))
SPOTS = RANDOM.normal(size=(30, 2))


@pytest.mark.parametrize("state", [fields.Ground(), fields.Stationary(2), fields.Canonical(0.15)])
@pytest.mark.parametrize("data", [fields.PositionData, fields.MomentumData])
def test_derivatives_on_a_plane_need_no_matrix(state, data, monkeypatch):
    monkeypatch.setattr(fields.Operator, "matrix", property(lambda _: pytest.fail("a matrix was made")))
    link, V = fields.Direct(PLANE), BOWL + 0.1 * RANDOM.normal(size=PLANE.shape)
    found = data(SPOTS, state).prepared(PLANE)
    check_derivatives(lambda V: found.expand(link, V), V, RANDOM.normal(size=PLANE.shape))


def test_states_on_a_plane_are_products_where_the_potential_is_a_sum():
    x, y = PLANE.axes
    parts = [
        fields.Hamiltonian().levels(fields.Grid(given=[axis]), V, 8)[0]
        for axis, V in ((x, BOWL[:, 0] - BOWL[0, 0] + x.coordinates[0] ** 2), (y, BOWL[0] - x.coordinates[0] ** 2))
    ]
    exact = np.sort(np.add.outer(*parts), axis=None)[:8]
    np.testing.assert_allclose(fields.Hamiltonian().levels(PLANE, BOWL, 8)[0], exact, rtol=EXACT)


def test_a_moving_packet_is_that_of_classical_mechanics_in_an_oscillator():
    hamiltonian, times, omega = fields.Hamiltonian(mass=2.0, hbar=0.5), np.array([0.4, 1.1]), 1.3
    start, off = fields.Packet(-1.0, width=0.3, momentum=1.0), []
    for points in (101, 201):
        grid = line(points, reach=4.0)
        y = grid.axes[0].coordinates
        V = fields.Harmonic(omega).values(grid, hamiltonian)
        density = fields.Evolving(start, times).density(grid, V, hamiltonian)
        t = times[:, None]
        mean = -np.cos(omega * t) + np.sin(omega * t) / (2.0 * omega)
        v = (0.3 * np.cos(omega * t)) ** 2 + (0.5 * np.sin(omega * t) / (2 * 0.3 * 2.0 * omega)) ** 2
        off.append(np.max(np.abs(density - np.exp(-((y - mean) ** 2) / (2 * v)) / np.sqrt(2 * np.pi * v))))
    assert off[0] / off[1] == pytest.approx(4.0, rel=0.05)
    flat = fields.Evolving(start, [0.0]).density(grid, 0 * y, hamiltonian)[0]
    np.testing.assert_allclose(flat, np.exp(-((y + 1) ** 2) / 0.18) / np.sqrt(0.18 * np.pi), atol=EXACT)


def test_the_mean_field_of_two_particles_is_exact_to_second_order_in_their_interaction():
    axis, hamiltonian = fields.Axis(-4, 4, points=24), fields.Hamiltonian()
    grid, y = fields.Grid(given=[axis]), axis.coordinates
    V = y**2 / 2 + 0.2 * y**3 / 6
    distance = np.abs(y[:, None] - y)
    alone, off = fields.Ground().density(grid, V), []
    for strength in (0.1, 0.2):
        w = strength * np.exp(-(distance**2))
        both = fields.Grid(given=[axis, fields.Axis(-4, 4, points=24, name="other")])  # both together, on a plane
        _, (state,) = hamiltonian.levels(both, V[:, None] + V + w, 1)
        exact = np.sum(state**2, axis=1) * axis.spacing
        mean_field = fields.Hartree(w).density(grid, V)
        assert np.max(np.abs(mean_field - exact)) < 0.1 * np.max(np.abs(alone - exact))
        off.append(np.max(np.abs(mean_field - exact)))
    assert off[1] / off[0] == pytest.approx(4.0, rel=0.1)


def test_steps_in_time_are_of_fourth_order():
    grid = line()
    particle, times = Particle(fields.Hamiltonian(hbar=0.7), grid, well(grid, 0.0)), np.array([2.0])
    psi = PACKET.on(grid, 0.7) / np.linalg.norm(PACKET.on(grid, 0.7))
    E, U = np.linalg.eigh(particle.matrix)
    exact = (U * np.exp(-1j * E * times / 0.7)) @ (U.T @ psi)
    off = [np.linalg.norm(Motion(particle, times, np.array([n])).forward(psi)[0][0] - exact) for n in (8, 16)]
    assert off[0] / off[1] == pytest.approx(16.0, rel=0.1)
    assert off[0] < 1e-5


def test_momenta_of_the_oscillator_are_gaussian():
    hamiltonian, grid = fields.Hamiltonian(mass=2.0, hbar=0.5), line(401, reach=3.0)
    V = fields.Harmonic(1.5).values(grid, hamiltonian)
    for state, factor in ((fields.Ground(), 1.0), (fields.Canonical(0.6), 1 / np.tanh(0.75 / 1.2))):
        v = 2.0 * 0.5 * 1.5 / 2 * factor
        for p in (0.0, 1.0):
            energy = fields.MomentumData([p], state, hamiltonian).prepared(grid).expand(fields.Direct(grid), V)[0]
            assert energy == pytest.approx(p**2 / (2 * v) + 0.5 * np.log(2 * np.pi * v), abs=1e-3)


@pytest.mark.parametrize(("shape", "exact"), [
    (fields.Harmonic(1.5, centre=0.2), 1.5 * (np.arange(3) + 0.5)),
    (fields.Morse(8.0, width=1.0), (16 - (4 - np.arange(3) - 0.5) ** 2) / 2),
])  # fmt: skip
def test_named_potentials_have_their_levels(shape, exact):
    grid = fields.Grid(given=[fields.Axis(-4, 12, points=801)])
    np.testing.assert_allclose(fields.Hamiltonian().levels(grid, shape.values(grid), 3)[0], exact, rtol=1e-3)


def test_positions_do_not_see_the_constant_and_levels_do():
    grid = line()
    link, V = fields.Direct(grid), well(grid)
    for state in [*STATES.values(), moving(grid), TWO]:
        data = measured(grid, state)
        energy, slope, _ = data.expand(link, V)
        assert data.expand(link, V + 3.0)[0] == pytest.approx(energy, rel=EXACT)
        assert abs(slope.sum()) < EXACT * np.abs(slope).max()
    levels = DATA["levels"](grid)
    assert levels.expand(link, V + 3.0)[0] > levels.expand(link, V)[0] + 100


def test_the_constant_is_left_to_the_prior_or_undetermined():
    grid = line()
    V0 = well(grid, 0.0)
    smooth = 0.03 * fields.Laplacian(grid)
    rows = fields.PositionData(PLACES)
    free, tied = (
        fields.Problem(rows, fields.Direct(grid), fields.Gaussian(operator, V0))
        for operator in (smooth, smooth + 1e-7 * fields.Mass(grid))
    )
    assert len(free.undetermined) == 1
    assert len(tied.undetermined) == 0
    fits = [fields.solve(problem) for problem in (free, tied)]
    assert all(fit.converged for fit in fits)
    assert fits[0].field.mean() == pytest.approx(V0.mean(), rel=EXACT)  # nothing has moved it
    density = rows.prepared(grid).density(fits[0].field)
    bands = [fields.laplace(fit.problem, fit).band(about=density) for fit in fits]
    np.testing.assert_allclose(bands[0], bands[1], atol=1e-3)  # as small as the mass
    assert np.all(fields.laplace(tied, fits[1]).variance > 1000)
    assert np.mean(fields.laplace(free, fits[0]).variance) < 100


def test_the_paper_example_has_its_levels():
    y = fields.Axis(-8, 8, points=81)
    V = y.coordinates**2 / 8 + 2 * np.exp(-((y.coordinates - 1) ** 2) / 0.98)
    E, states = fields.Hamiltonian().levels(fields.Grid(given=[y]), V, 2)
    np.testing.assert_allclose(E, [0.60395760, 1.39755555], atol=EXACT)
    np.testing.assert_allclose(states @ states.T * y.spacing, np.eye(2), atol=EXACT)


def test_levels_and_densities_of_the_oscillator_converge_with_the_square_of_the_spacing():
    mass, hbar, omega = 2.0, 0.5, 1.5
    hamiltonian, errors, spacings = fields.Hamiltonian(mass, hbar), [], []
    for points in (101, 201, 401):
        axis = fields.Axis(-4, 4, points=points)
        grid, y = fields.Grid(given=[axis]), axis.coordinates
        V = mass * omega**2 * y**2 / 2
        E, _ = hamiltonian.levels(grid, V, 4)
        exact = {  # a Gaussian, the wider the warmer
            fields.Ground(): hbar / (2 * mass * omega),
            fields.Canonical(0.6): hbar / (2 * mass * omega) / np.tanh(hbar * omega / 1.2),
        }
        off = [np.max(np.abs(E / (hbar * omega * (np.arange(4) + 0.5)) - 1))]
        for state, v in exact.items():
            density = state.density(grid, V, hamiltonian)
            off.append(np.max(np.abs(density - np.exp(-(y**2) / (2 * v)) / np.sqrt(2 * np.pi * v))))
        errors.append(off)
        spacings.append(axis.spacing)
    orders = np.polyfit(np.log(spacings), np.log(errors), 1)[0]
    np.testing.assert_allclose(orders, 2.0, atol=0.05)


def test_degenerate_states_are_refused_and_canonical_ones_are_not():
    ring = line(ends=fields.Periodic())
    link = fields.Direct(ring)
    smooth = fields.Gaussian(fields.Laplacian(ring))
    with pytest.raises(InputError, match="levels 1 and 2 are degenerate"):
        fields.solve(fields.Problem(fields.PositionData(PLACES, fields.Stationary(1)), link, smooth))
    data = measured(ring, fields.Canonical(0.5))
    check_derivatives(lambda V: data.expand(link, V), np.zeros(40), ALONG)


@pytest.mark.parametrize("call", [
    (lambda: fields.Canonical(0.0), "Argument `temperature` must be positive"),
    (lambda: fields.Canonical(-1.0), "Argument `temperature` must be positive"),
    (lambda: fields.Weighted([0.5, 0.6]), "sum to 1"),
    (lambda: fields.Hamiltonian(mass=0.0), "Argument `mass` must be positive"),
    (lambda: measured(line(reach=1.0), fields.Ground()), "must lie on the grid"),
    (lambda: measured(line(points=2), fields.Stationary(1)), "Argument `level` must be below"),
    (lambda: fields.PositionData([]), "at least one measurement"),
    (lambda: fields.MomentumData([30.0]).prepared(line()), "what the grid resolves"),
    (lambda: fields.PositionData([0.1], fields.Evolving(PACKET, [1.0, 2.0])), "must be one for each"),
    (lambda: fields.TruePotential(line(), np.zeros(40)), "must be bound"),
    (lambda: fields.TruePotential(line(), fields.Harmonic(), fields.Canonical(20.0)), "must be bound"),
])  # fmt: skip
def test_bad_input_is_refused_in_a_sentence(call):
    function, words = call
    with pytest.raises(InputError, match=words):
        function()
