"""The printed equations and numbers, to the letter, against all samples of three rows or a count."""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
import xarray as xr

from quenched import processes
from quenched.core.claims import Claim, below, near
from quenched.papers.malzahn2002 import sets
from quenched.papers.malzahn2002.figures import abalone_law, boston_law, boston_rule
from quenched.processes.kernels import numbers_of
from quenched.processes.theory.closures import Closure

MOST = 10
"""Multiplicities of a row that are enumerated, from 0; more have a probability of 1e-8 at mu = 0.8."""
CLOSE, FAR = 0.1, 0.15
"""Predictions of standardised rows that are called equal, or different."""


class Averages(NamedTuple):
    """Averages over all Poisson samples, at each row."""

    variance: np.ndarray
    prediction: np.ndarray
    error: np.ndarray


K = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.4], [0.2, 0.4, 1.0]])
Y, NOISE, MU = np.array([1.0, -0.5, 2.0]), 0.5, 0.8


def enumerated(y: np.ndarray) -> Averages:
    """Averages over all samples of three rows, each as often as a Poisson number of mean 0.8."""
    total, inverse = np.zeros((3, 3)), np.linalg.inv(K)
    for s in itertools.product(range(MOST), repeat=3):
        p = math.prod(math.exp(-MU) * MU**k / math.factorial(k) for k in s)
        G = np.linalg.inv(inverse + np.diag(s) / NOISE)
        f = G @ (np.array(s) * y / NOISE)
        total += p * np.array([np.diagonal(G), f, (f - y) ** 2])
    return Averages(*total)


def theory(y: np.ndarray, closure: Closure) -> xr.Dataset:
    """The theory on the same three rows."""
    law = processes.Empirical(np.arange(3.0)[:, None], y, 0.0, 1.0)
    return processes.theory.curve(law, processes.GaussianProcess(K, NOISE), examples=3 * MU, closure=closure)


def literal_variance(error: np.ndarray) -> np.ndarray:
    """The posterior variance by eqs. (6) and (8) to the letter, with the diagonal parameter in place of twice it."""
    g = np.diagonal(K)
    for _ in range(200):
        S = NOISE + g
        u = MU * (1 / (2 * S) + error / (2 * S**2))
        g = np.diagonal(np.linalg.inv(np.linalg.inv(K) + np.diag(u)))
    return g


def _largest(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.max(np.abs(np.asarray(one) - np.asarray(other))))


def equations() -> list[Claim]:
    """Equations that cannot stand as they are printed."""
    true, doubled = enumerated(Y), enumerated(2 * Y)
    found = theory(Y, processes.Cavity())
    literal = _largest(literal_variance(doubled.error) / literal_variance(true.error), np.ones(3))
    used = [theory(y, processes.Variational()).point_variance.values for y in (Y, 2 * Y)]
    R = found["mean"].values
    u = np.linalg.solve(K, R) / (Y - R)  # R = G u y with G = (K⁻¹ + u)⁻¹
    held = np.linalg.solve(np.linalg.inv(K) + 2 * np.diag(u), u * Y)  # R = G u (y - R)
    by_units = _units()
    three = "all samples of three rows"
    return [
        Claim("eqs. (6), (8), (12), (14)", "H₀ with the sum over a ≤ b", "a ≤ b",
              f"to the letter, labels twice as large change the posterior variance by up to {literal:.0%}; half the sum over "
              "all a, b gives (14)", f"{three} (erratum M1)",
              below(literal, 1e-9, what="change of the posterior variance with the labels, to the letter"),
              below(_largest(*used), 1e-12, what="as used") & below(_largest(used[0], true.variance), CLOSE, what=f"off {three}")),
        Claim("eq. (8), first equation", "d⟨H⟩/dR, all else being held", "d⟨H⟩/dR",
              f"with the covariance held the mean prediction is off by {_largest(held, true.prediction):.2f}, with the raw "
              f"moments by {_largest(R, true.prediction):.2f}", f"{three} (erratum M2)",
              below(_largest(held, true.prediction), CLOSE, what="with the covariance held"),
              below(_largest(R, true.prediction), CLOSE, what="with raw moments held")),
        Claim("section V", "R is the local bias", "local bias",
              f"R is off the mean prediction by {_largest(R, true.prediction):.2f}, off the bias by "
              f"{_largest(R, true.prediction - Y):.2f}", f"{three} (erratum M4)",
              below(_largest(R, true.prediction - Y), CLOSE, what="R - bias"),
              below(_largest(R, true.prediction), CLOSE, what="R - mean prediction")),
        Claim("after eq. (9)", "the test input is independent of the training inputs", "independent",
              f"eq. (17) gives {float(found.error):.3f}, the average over all samples is {true.error.mean():.3f}; a row that is "
              f"in no sample has {float(found.oob_error):.3f}", f"{three} (erratum M5)",
              near(float(found.oob_error) / true.error.mean(), 1, within=FAR, what="error of an unseen row / average"),
              near(float(found.error) / true.error.mean(), 1, within=0.05, what="eq. (17) / average")),
        Claim("section VI", "a characteristic correlation length l²v, with v the square root of the variance on Boston", "l²v",
              f"tax in other units changes the kernel by up to {by_units[0.5]:.2f}; with v the variance, by {by_units[1.0]:.1g}",
              "l²v is a squared length (erratum M6)",
              below(by_units[0.5], 1e-9, what="change of the kernel, v = √variance"),
              below(by_units[1.0], 1e-9, what="v = variance")),
    ]  # fmt: skip


def _units() -> dict[float, float]:
    """How much the kernel of Boston changes when a column, the tax, is given in other units."""
    inputs = sets.boston().inputs
    tenfold = inputs * np.where(np.arange(13) == 9, 10.0, 1.0)

    def kernel(x: np.ndarray, power: float) -> np.ndarray:
        z = x / np.sqrt(147.1 * x.var(axis=0) ** power)
        squares = np.sum(z**2, axis=1)
        return np.exp(-np.maximum(squares[:, None] + squares - 2 * z @ z.T, 0.0))

    return {power: _largest(kernel(inputs, power), kernel(tenfold, power)) for power in (0.5, 1.0)}


@functools.lru_cache(maxsize=4)
def plain_iterations(m: float, tolerance: float) -> int:
    """How many plain iterations of eq. (19) with (14) the largest relative change takes to fall below a tolerance."""
    n, _ = numbers_of(boston_law(), boston_rule())
    K, s2, mu = np.asarray(n.K), float(n.s2), m / n.y.shape[0]
    lam, phi = np.linalg.eigh(K)
    g = np.diagonal(K)
    for _ in range(100):  # the start of the paper, eq. (20)
        g = np.sum(phi**2 / (1 / np.maximum(lam, 1e-12) + (mu / (s2 + g))[:, None]), axis=1)
    for count in range(1, 200):
        r = np.sqrt(mu / (s2 + g))
        inverse = np.linalg.inv(np.eye(len(K)) + r[:, None] * K * r)
        new = (1 - np.diagonal(inverse)) / r**2
        if np.max(np.abs(new - g) / new) < tolerance:
            return count
        g = new
    return 200


def distinct(rows: int, draws: int = 20_000) -> tuple[float, float]:
    """The mean number of distinct rows among as many as there are, and its standard error."""
    samples = np.sort(np.random.default_rng(0).integers(rows, size=(draws, rows)), axis=1)
    counts = 1 + np.count_nonzero(np.diff(samples, axis=1), axis=1)
    return float(counts.mean()), float(counts.std() / math.sqrt(draws))


def arithmetic() -> list[Claim]:
    """Numbers that can be counted."""
    few, many = plain_iterations(1600, 1e-3), plain_iterations(506, 1e-3)
    exact, poisson = (
        {n: f(n) for n in (5, 506)} for f in (lambda n: n * (1 - (1 - 1 / n) ** n), lambda n: n * (1 - 1 / math.e))
    )
    mean, stderr = distinct(5)
    counted = "distinct of 5 rows, counted, -"
    shares = [rows / abalone_law().rows for rows in (1000, 2000)]
    return [
        Claim("appendix", "for large m very few iterations of eq. (19) are needed", "very few",
              f"{few} plain iterations to a relative change of 1e-3 at m = 1600, {many} at m = N = 506",
              "from eq. (20); Newton's method with the Jacobian M takes 4 to 7 at every m",
              below(few, 5, what="iterations at m = 1600")),
        Claim("section V", "a sample has N(1 - exp(-m/N)) distinct points", f"{poisson[506]:.2f} at m = N = 506",
              f"{exact[506]:.2f} for exactly m rows; the printed value is that of a Poisson number of rows",
              f"a count of 20000 samples of 5 rows of 5: {mean:.3f} ± {stderr:.3f} (erratum M7)",
              near(mean - poisson[5], 0, within=0.03, stderr=stderr, what=f"{counted} printed"),
              near(mean - exact[5], 0, within=0.03, stderr=stderr, what=f"{counted} N(1 - (1 - 1/N)^m)")),
        Claim("section VI", "N = N₀/4 and N₀/2", "1/4, 1/2", f"{shares[0]:.3f} and {shares[1]:.3f}",
              "1000 and 2000 of 4177 (erratum M8)",
              near(shares[0], 1 / 4, within=0.005, what="1000 / N₀") & near(shares[1], 1 / 2, within=0.005, what="2000 / N₀"),
              near(shares[0], 0.239, within=0.0005, what="1000 / N₀") & near(shares[1], 0.479, within=0.0005, what="2000 / N₀")),
    ]  # fmt: skip
