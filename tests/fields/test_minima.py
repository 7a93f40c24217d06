"""`solve` finds the minimum for every link and likelihood, beside an optimiser that knows the energy alone."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from quenched import fields as f
from quenched.core.types import InputError, Outcome
from quenched.fields.learner.solving import solve_in_modes
from quenched.fields.learner.starts import Given
from tests.tolerances import EXACT, GRADIENT, MACHINE

Y = f.Axis(0, 3, points=7)
LINE, FUNCTION, PAIR = f.Grid(over=[Y]), f.Grid(given=[Y]), f.Grid(given=[Y, f.Components(2)])
RNG = np.random.default_rng(0)
POINTS, VALUES = RNG.choice(Y.coordinates, 12), np.clip(RNG.normal(1.2, 0.6, 6), 0, 3)
MOST = 0.5  # the bound of the log-density
SIDES, CURVE = np.sign(POINTS - 1.4), np.stack([np.sin(POINTS), np.cos(POINTS)], 1)
DATA = {
    "points": f.DensityData(POINTS),
    "blurred": f.BlurredData(VALUES, width=0.3),
    "binned": f.BinnedData(VALUES - 0.5, VALUES + 0.7),
    "kernel": f.KernelData(RNG.uniform(size=(6, 7))),
}
LINKS = {
    "log": f.LogDensity(LINE),
    "logits": f.Logits(LINE),
    "density": f.Density(LINE),
    "root": f.SquareRoot(LINE),
    "unnormalised": f.Unnormalised(LINE),
    "distribution": f.Distribution(LINE),
    "bounded": f.Bounded(LINE, most=MOST),
}
PAIRS = [
    *((link, data) for link in ("unnormalised", "distribution") for data in ("points", "blurred", "binned")),
    *(("density", data) for data in ("blurred", "binned", "kernel")),
    *(("bounded", data) for data in ("blurred", "binned")),
    ("log", "blurred"), ("logits", "binned"), ("root", "kernel"),
]  # fmt: skip


def hinge(side, value):
    return jnp.logaddexp(0.0, 1 - side * value)


def prior(grid, strength=1.0):
    return f.Gaussian(strength * (f.Mass(grid, 0.3) + 0.1 * f.Laplacian(grid)))


def quadratic(link, operator):
    return f.Problem(f.QuadraticData(POINTS, operator), link(LINE), prior(LINE, 0.1))


OTHERS = {
    "quadratic, cumulative": lambda: quadratic(f.Density, f.Cumulative(LINE)),
    "quadratic, mass": lambda: quadratic(f.Density, f.Mass(LINE)),
    "quadratic, free": lambda: quadratic(f.Direct, f.Cumulative(LINE)),
    "quadratic, at its bound": lambda: f.Problem(
        f.QuadraticData(POINTS, f.Mass(LINE)), f.Density(LINE), f.Gaussian(f.Mass(LINE), mean=1 - Y.coordinates)
    ),
    "prior on the cumulative": lambda: f.Problem(DATA["points"], LINKS["density"], f.Gaussian(f.Cumulative(LINE))),
    "risk": lambda: f.Problem(
        f.RiskData(points=POINTS, targets=SIDES, loss=hinge), f.Direct(FUNCTION), prior(FUNCTION)
    ),
    "vector": lambda: f.Problem(
        f.VectorData(points=POINTS, targets=CURVE, precision=[[2.0, 0.5], [0.5, 1.0]]),
        f.Direct(PAIR), prior(PAIR),
    ),
}  # fmt: skip


def least(problem):
    """The least energy that an optimiser finds by finite differences, from three starts."""
    positive = isinstance(problem.link, f.Density)
    found = []
    for seed in range(3):
        start = np.random.default_rng(seed).uniform(0.5, 1.5, problem.grid.size)
        found.append(
            optimize.minimize(
                lambda v: problem.value(v.reshape(problem.grid.shape)), start, method="L-BFGS-B",
                bounds=[(0, None)] * len(start) if positive else None,
                options={"ftol": 1e-14, "gtol": 1e-9, "maxfun": 20_000},
            ).fun
        )  # fmt: skip
    return min(found)


def check(problem):
    fit = f.solve(problem)
    assert fit.converged
    best = least(problem)
    assert fit.energy <= best + EXACT * (1 + abs(best))  # the other one may stop early
    assert fit.energy == pytest.approx(best, rel=GRADIENT, abs=GRADIENT)
    slope = problem.gradient(fit.field)
    if isinstance(problem.link, f.Density):
        assert fit.field.min() >= 0
        assert np.all(slope[fit.field == 0] > -EXACT)  # pushed against the bound
        slope = slope[fit.field > 0]
    np.testing.assert_allclose(slope, 0, atol=EXACT)
    return fit


@pytest.mark.parametrize(("link", "data"), PAIRS)
def test_densities_are_solved_for_every_link_and_measurement(link, data):
    fit = check(f.Problem(DATA[data], LINKS[link], prior(LINE)))
    np.testing.assert_allclose(fit.density.sum() * LINE.spacing, 1, atol=MACHINE)
    if link == "bounded":
        assert np.log(fit.density.max()) <= MOST + MACHINE
        assert fit.field.min() > 0 or fit.field.max() < 0  # its sign means nothing, and does not change
    if link == "distribution":
        whole = LINKS[link].distribution(fit.field)
        assert np.all(np.diff(whole) >= 0)
        assert whole[-1] == pytest.approx(1, abs=MACHINE)


def test_a_density_behind_a_blur_reaches_its_bound():
    assert np.any(f.solve(f.Problem(DATA["blurred"], LINKS["density"], prior(LINE))).field == 0)


@pytest.mark.parametrize("name", OTHERS)
def test_energies_that_are_no_log_densities_are_solved(name):
    fit = check(OTHERS[name]())
    assert (name == "quadratic, at its bound") == bool(np.any(fit.field == 0))


def test_a_start_at_the_data_begins_where_a_measurement_says_they_came_from():
    """Without blur it is the start of points; data that are no points of a density have none."""
    sharp = f.Problem(f.BlurredData(POINTS, width=0.0), LINKS["log"], prior(LINE))
    exact = f.Problem(DATA["points"], LINKS["log"], prior(LINE))
    np.testing.assert_allclose(*(f.solve(p, start=f.Kernel(), max_steps=1).trace.energy[0] for p in (sharp, exact)))
    with pytest.raises(InputError, match=r"Uniform\(\) or Given\(field\) .* `RiskData`"):
        f.solve(OTHERS["risk"](), start=f.Kernel())


@pytest.mark.parametrize(("order", "scale"), [(2, 0.65), (3, 2.7)])
def test_rows_on_the_straight_sides_of_a_loss_do_not_stop_newton(order, scale):
    # Far off no row bends the loss: the Hessian is that of the prior, which pulls at no straight line.
    grid = f.Grid(given=[f.Axis(-0.5, 1.5, points=200)])
    data = f.NoisyData(
        points=np.array([0.0] * 5 + [1.0]), targets=np.array([-3.0, -1.0, 0.0, 1.0, 4.0, 20.0]),
        noise=f.LaplaceNoise(scale, rounding=0.3 * scale),
    ).prepared(grid)  # fmt: skip
    rough = 1e4 * f.ThinPlate(grid, order)
    problem = f.Problem(data, f.Direct(grid), f.Gaussian(rough))
    fits = [
        solve_in_modes(problem, rough.modes(60), Given(np.full(200, at)), max_steps=100) for at in (0.0, 15.0, 90.0)
    ]
    assert all(fit.outcome is Outcome.converged for fit in fits)
    np.testing.assert_allclose([fit.energy for fit in fits], fits[0].energy, atol=1e-9)
