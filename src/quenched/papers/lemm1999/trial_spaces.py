"""Statements of chapter 4, parameterised fields, and of section 6.5, potentials that are not quadratic."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy import optimize, special

from quenched.core.claims import Claim, above, below
from quenched.fields.learner.solving import solve
from quenched.fields.model.filters import Derivative
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.parametrisations import Logits
from quenched.fields.model.potentials import Cup, Potential
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian, Mass

CUPS = {"(a)": (5.0, 10.0, 0.7), "(b)": (1.0, 3.0, 2.0), "(c)": (-4.8, 15.0, 2.0)}
"""Height, width and power of figure 12."""
ROWS = (0.1, 0.2, 0.25, 0.3, 0.8)


def declared() -> Problem:
    """Five points of a density on a line, with a smooth field."""
    grid = Grid(over=[Axis(0, 1, points=21)])
    return Problem(DensityData(list(ROWS)), Logits(grid), Gaussian(0.02 * Laplacian(grid) + Mass(grid, 0.1)))


def ritz(problem: Problem, count: int) -> tuple[float, np.ndarray]:
    """The least energy among sums of the first cosines, and the slope by the field there."""
    x = np.linspace(0, 1, problem.grid.size)
    basis = np.cos(np.pi * np.outer(np.arange(count), x))

    def look(c: np.ndarray) -> tuple[float, np.ndarray]:
        at = problem.expand(c @ basis)
        return at.energy, basis @ at.slope

    found: Any = optimize.minimize(look, np.zeros(count), jac=True, method="BFGS", options={"gtol": 1e-9})
    return float(found.fun), basis @ problem.expand(found.x @ basis).slope


def slope_error() -> float:
    """Eq. (345) for a tanh of a straight line: derivatives of the field times those of the energy by the field."""
    problem, x = declared(), np.linspace(0, 1, 21)

    def field(xi: np.ndarray) -> np.ndarray:
        return xi[0] * np.tanh(xi[1] * x + xi[2])

    xi, step = np.array([1.3, 2.0, -0.4]), 1e-6
    flat = 1 - np.tanh(xi[1] * x + xi[2]) ** 2
    turned = np.stack([np.tanh(xi[1] * x + xi[2]), xi[0] * x * flat, xi[0] * flat])
    slope = turned @ problem.expand(field(xi)).slope
    sides = [[problem.expand(field(xi + side * step * unit)).energy for side in (1, -1)] for unit in np.eye(3)]
    return float(np.max(np.abs(slope - [(a - b) / (2 * step) for a, b in sides])))


def products() -> tuple[float, float]:
    """By how much eqs. (395) and (396) are off for random functions and operators."""
    random = np.random.default_rng(0)
    u, v = random.normal(size=5), random.normal(size=4)
    A, B = (M @ M.T for M in (random.normal(size=(5, 5)), random.normal(size=(4, 4))))
    whole, one, other = np.kron(u, v), np.eye(5), np.eye(4)
    added = whole @ (np.kron(A, other) + np.kron(one, B)) @ whole
    multiplied = whole @ np.kron(A, B) @ whole
    return (
        float(abs(added - (u @ A @ u) * (v @ v) - (v @ B @ v) * (u @ u))),
        float(abs(multiplied - (u @ A @ u) * (v @ B @ v))),
    )


def cup_slopes() -> tuple[float, dict[str, float]]:
    """Eqs. (591) and (593) against finite differences, and the largest change of energy along eq. (594)."""
    axis = Axis(0, 29, points=30)
    grid, random, worst, rises = Grid(given=[axis]), np.random.default_rng(1), 0.0, {}
    field = 20 * random.normal(size=30)
    for name, (a, b, gamma) in CUPS.items():
        prior = Potential(Derivative(grid, axis), Cup(a, b, gamma)) & Potential(
            Derivative(grid, axis, 2), Cup(a, b, 2.0)
        )
        expand = type(prior).expand
        step = 1e-5 * random.normal(size=30)
        ends: Any = [expand(prior, field + side * step) for side in (1, -1)]
        here: Any = expand(prior, field)
        worst = max(worst, abs((ends[0][0] - ends[1][0]) / 2 - here[1] @ step) / np.linalg.norm(step))
        at, energies = field, []
        for _ in range(200):
            now: Any = expand(prior, at)
            energies.append(now[0])
            at = at - 0.05 * now[1]
        rises[name] = float(np.max(np.diff(energies)))
    return worst, rises


def histograms() -> float:
    """Eq. (598) for three points with three values each: all 27 fields are counted."""
    fields = np.array(list(itertools.product(range(3), repeat=3)))
    places = np.diff(fields, axis=1) + 2  # filtered differences from -2 to 2
    counts = np.array([np.bincount(row, minlength=5) for row in places])
    psi = np.random.default_rng(2).normal(size=5)

    def log_density(psi: np.ndarray) -> np.ndarray:
        energies = counts @ psi
        return -energies - np.log(np.sum(np.exp(-energies)))

    mean = np.exp(log_density(psi)) @ counts
    slopes = np.stack([(log_density(psi + e) - log_density(psi - e)) / 2e-6 for e in 1e-6 * np.eye(5)], axis=1)
    return float(np.max(np.abs(-slopes - (counts - mean))))


def trial_space_claims() -> list[Claim]:
    """Of chapter 4 and section 6.5."""
    problem = declared()
    least = solve(problem).energy
    found = [ritz(problem, count) for count in (2, 4, 6, 8)]
    above_least = [energy - least for energy, _ in found]
    left = max(float(np.max(np.abs(slope))) for _, slope in found)
    sums, factors = products()
    off, rises = cup_slopes()
    x = np.array([-1.0, -0.2, -0.05, 0.05, 0.3, 2.0])
    steps = {beta: float(np.max(np.abs(special.expit(2 * beta * x) - (x > 0)))) for beta in (1.0, 10.0, 1000.0)}
    return [
        Claim("section 4.1", "minimal values within a trial space can only be larger or equal", "larger or equal", "by " + ", ".join(f"{one:.3g}" for one in above_least) + " with 2, 4, 6 and 8 cosines", "density of five points, against all fields", above(min(above_least), -1e-9, what="least") & above(float(np.min(-np.diff(above_least))), -1e-9, what="fall from one to the next")),
        Claim("equation (345)", "derivatives by parameters are Φ' times those by the field", "equal", f"within {slope_error():.0e}", "finite differences of the energy of a tanh", below(slope_error(), 1e-6, what="largest difference")),
        Claim("equation (374)", "Ritz's method solves the projected stationarity equation", "projected", f"within {left:.0e}", "slope of the energy along every cosine", below(left, 1e-6, what="largest slope")),
        Claim("equation (395)", "for additive K the prior term of a product factorises", "equal", f"within {sums:.0e}", "random functions and operators", below(sums, 1e-9)),
        Claim("equation (396)", "so it does for a product of operators", "equal", f"within {factors:.0e}", "the same", below(factors, 1e-9)),
        Claim("section 4.7", "decision trees are neural networks at zero temperature", "sigmoids become steps", f"largest difference {steps[1.0]:.2g}, {steps[10.0]:.2g} and {steps[1000.0]:.0e} at β = 1, 10 and 1000", "at six places beside the threshold", below(steps[1000.0], 1e-9)),
        Claim("equations (591), (593)", "the derivative of a potential is Wᵀψ', and adds up over a filter bank", "equal", f"within {off:.0e}", "finite differences, two filters, the three potentials of figure 12", below(off, 1e-6)),
        Claim("equations (594), (595)", "gradient steps lower the energy, of cups and of inverted cups", "minimise", f"the energy of (b) falls by at least {-rises['(b)']:.2g} in each of 200 steps, that of (c) by {-rises['(c)']:.2g}", "the same, η = 0.05; the two without a cusp", below(max(rises["(b)"], rises["(c)"]), 0.0, what="largest change")),
        Claim("section 6.5", "the cusp requires special treatment", "special treatment", f"the energy of (a) rises by up to {rises['(a)']:.2g} in a step", "the same steps", above(rises["(a)"], 0.0, what="largest change")),
        Claim("equation (598)", "-δ ln p/δψ(s) is the histogram less its mean", "n(s) - ⟨n(s)⟩", f"within {histograms():.0e}", "all 27 fields of three points with three values", below(histograms(), 1e-6)),
    ]  # fmt: skip
