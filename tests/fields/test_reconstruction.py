"""Potentials from measurements: what is gained, whether bands hold the truth, priors, many particles, and the cost."""

import runpy
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from quenched import fields
from quenched.core.types import InputError
from quenched.fields.model.hamiltonian import Particle
from tests.tolerances import SAME

AXIS = fields.Axis(-6, 6, points=81)
GRID, Y = fields.Grid(given=[AXIS]), AXIS.coordinates
DIRECT, STATES = fields.Direct(GRID), {"ground": fields.Ground(), "canonical": fields.Canonical(0.5)}
SMOOTH = 0.5 * fields.Laplacian(GRID) + 0.05 * fields.Mass(GRID)

LINE = fields.Grid(over=[AXIS])
DENSITY = fields.MaximumPosterior(fields.LogDensity(LINE), fields.Gaussian(fields.Laplacian(LINE)))


def problem_of(law, positions, prior):
    return fields.Problem(law.observe(positions), fields.Direct(law.grid), prior)


def error_of(law, potential):
    density = law.state.density(law.grid, potential, law.hamiltonian)
    return float(np.sum(np.abs(density - law.density)) * law.grid.cell / 2)  # at all times together


@pytest.mark.parametrize("state", STATES)
def test_two_hundred_positions_halve_the_error_of_the_reference_at_least(state):
    law = fields.TruePotential(GRID, fields.TwoWells(), STATES[state])
    reference = fields.Harmonic(0.5).values(GRID)
    prior = fields.Gaussian(0.3 * fields.Laplacian(GRID) + 0.001 * fields.Mass(GRID), reference)
    for seed in range(5):
        fit = fields.solve(problem_of(law, law.sample(jax.random.key(seed), 200), prior))
        assert fit.converged
        assert error_of(law, fit.field) < 0.5 * error_of(law, reference)


def held(seed):
    """The share of a potential, drawn from the prior, that lies in the band, up to the constant."""
    draw = np.linalg.cholesky(np.linalg.inv(GRID.cell * SMOOTH.matrix)) @ np.random.default_rng(seed).normal(size=81)
    reference = Y**2 / 4
    law = fields.TruePotential(GRID, reference + draw)
    problem = problem_of(law, law.sample(jax.random.key(seed), 200), fields.Gaussian(SMOOTH, reference))
    fit = fields.solve(problem)
    density = problem.likelihood.density(fit.field)
    low, high = fields.laplace(problem, fit).band(0.9, about=density)
    truth = law.potential - np.average(law.potential, weights=density)
    return np.mean((low <= truth) & (truth <= high))


def test_bands_hold_the_potential_up_to_its_constant_as_often_as_they_say():
    assert 0.85 < np.mean([held(seed) for seed in range(50)]) < 0.95


def test_newton_with_and_without_matrices_find_one_potential():
    law = fields.TruePotential(GRID, fields.TwoWells(), fields.Canonical(0.3))
    problem = problem_of(law, law.sample(jax.random.key(0), 100), fields.Gaussian(SMOOTH, Y**2 / 8))
    fits = [fields.solve(problem, method) for method in (fields.Newton(), fields.NewtonCG(coarsest=None))]
    assert all(fit.converged for fit in fits)
    np.testing.assert_allclose(fits[1].field, fits[0].field, atol=1e-4)  # the tolerance is one of the slope
    assert fits[1].energy == pytest.approx(fits[0].energy, rel=SAME)
    with pytest.raises(InputError, match=r"must be NewtonCG\(\) or Newton\(\)"):
        fields.solve(problem, fields.LBFGS())


def test_levels_fix_the_constant():
    law = fields.TruePotential(GRID, fields.Harmonic())
    free = fields.Gaussian(0.5 * fields.Laplacian(GRID), Y**2 / 2)
    rows = law.observe(law.sample(jax.random.key(0), 50))
    both = fields.CombinedData([rows, fields.LevelData([10.5], errors=0.01)])
    problems = [fields.Problem(data, DIRECT, free) for data in (rows, both)]
    alone, fixed = (fields.solve(problem) for problem in problems)
    assert [len(problem.undetermined) for problem in problems] == [1, 0]
    assert fields.Hamiltonian().levels(GRID, fixed.field)[0][0] == pytest.approx(10.5, abs=1e-3)
    shift = np.mean(fixed.field - alone.field)
    np.testing.assert_allclose(fixed.field - alone.field, shift, atol=1e-5)


def test_symmetric_and_periodic_potentials():
    ring = fields.Grid(given=[fields.Axis(0, 2, points=40, ends=fields.Periodic())])
    law = fields.TruePotential(ring, fields.Cosine(20.0, period=2.0), fields.Canonical(2.0))
    rows = law.sample(jax.random.key(0), 100)
    smooth = fields.Gaussian(0.1 * fields.Laplacian(ring))
    mirror = fields.Invariance(fields.Mirror(ring, ring.axes[0]))
    plain = fields.solve(problem_of(law, rows, smooth)).field
    even = fields.solve(problem_of(law, rows, smooth & fields.Gaussian(1e4 * mirror))).field
    turned = mirror.map
    off = [float(np.max(np.abs(V - np.asarray(turned.apply(V))))) for V in (plain, even)]
    assert off[1] < 1e-2 < 1 < off[0]
    assert error_of(law, even) < error_of(law, plain)


def test_alternatives_are_told_apart():
    shapes = [fields.Harmonic(0.8), fields.DoubleWell(2.0, 3.0)]
    either = fields.either(*(fields.Gaussian(SMOOTH, shape.values(GRID)) for shape in shapes))
    for true, shape in enumerate(shapes):
        law = fields.TruePotential(GRID, shape)
        fit = fields.solve(problem_of(law, law.sample(jax.random.key(1), 200), either))
        assert fit.converged
        assert either.responsibilities(fit.field)[true] > 0.9


def test_the_average_error_falls_with_the_number_of_positions():
    grid = fields.Grid(given=[fields.Axis(-5, 5, points=41)])
    prior = fields.Gaussian(0.3 * fields.Laplacian(grid) + 0.001 * fields.Mass(grid), grid.axes[0].coordinates ** 2 / 8)
    law, key = fields.TruePotential(grid, fields.TwoWells()), jax.random.key(0)
    rule = fields.MaximumPosterior(fields.Direct(grid), prior)
    points = fields.measure(law, rule, examples=[30, 300], strength=[1.0, 10.0], runs=4, key=key)
    assert points.density_error.dims == ("strength", "examples")
    assert np.all(points.outcome == "converged")
    for name in ("test_error", "density_error"):
        few, noise = points[name][0], points[f"{name}_stderr"][0]
        assert float(few[1] - few[0]) < -float(np.hypot(*noise)), name
    assert np.all(
        points.potential_error[1] < points.potential_error[0]
    )  # two derivatives of the density: stronger is better
    with pytest.raises(InputError, match="must have the link `Direct`"):
        fields.measure(fields.TruePotential(LINE, fields.Harmonic()), DENSITY, examples=9, runs=1, key=key)


def test_a_packet_that_moves_shows_where_it_has_been():
    grid = fields.Grid(given=[fields.Axis(-5, 5, points=41)])
    law = fields.TruePotential(grid, fields.TwoWells(), fields.Evolving(fields.Packet(-1.0, 0.7), [0.5, 1.0]))
    reference = fields.Harmonic(0.5).values(grid)
    prior = fields.Gaussian(0.1 * fields.Laplacian(grid) + 0.001 * fields.Mass(grid), reference)
    fit = fields.solve(problem_of(law, law.sample(jax.random.key(0), 400), prior), fields.NewtonCG())
    assert fit.converged
    assert error_of(law, fit.field) < 0.5 * error_of(law, reference)


def test_the_potential_of_two_particles_is_found_when_their_interaction_is_known():
    found = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "two_particles.py"))
    known, ignored = found["errors"].values()
    assert known < 0.5 * ignored


def test_products_with_the_hamiltonian_do_not_grow_with_the_grid(monkeypatch):
    counted, apply = [], Particle.apply

    def count(self, states):
        counted.append(states.size / self.grid.size)
        return apply(self, states)

    monkeypatch.setattr(Particle, "apply", count)
    spent = []
    for points in (24, 48, 96):
        axes = [fields.Axis(-5, 5, points=points, name=name) for name in "xy"]
        grid = fields.Grid(given=axes)
        x, y = np.meshgrid(*(axis.coordinates for axis in axes), indexing="ij")
        data = fields.PositionData(np.random.default_rng(0).normal(size=(50, 2))).prepared(grid)
        counted.clear()
        data.expand(fields.Direct(grid), x**2 / 2 + y**2 + np.exp(-((x - 0.5) ** 2) - y**2))
        spent.append(sum(counted))
    assert spent[2] < 1.3 * spent[1]
    assert spent[2] < 300


def test_a_thousand_points_take_seconds():
    axis = fields.Axis(-8, 8, points=1000)
    grid = fields.Grid(given=[axis])
    law = fields.TruePotential(grid, fields.TwoWells(), fields.Canonical(0.5))
    prior = fields.Gaussian(0.3 * fields.Laplacian(grid) + 0.001 * fields.Mass(grid), axis.coordinates**2 / 8)
    rows, start = law.sample(jax.random.key(0), 200), time.process_time()
    fit = fields.solve(problem_of(law, rows, prior))
    assert fit.converged
    assert time.process_time() - start < 10
