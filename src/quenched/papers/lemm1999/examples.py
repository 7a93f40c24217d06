r"""The examples of the paper: its mesh, smoothness, true density, templates and fifty points."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from quenched.fields.model.grid import Axis, Ends, Free, Grid, Periodic
from quenched.fields.model.laws import TrueDensity
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import LogDensity
from quenched.fields.model.operators import Operator
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Laplacian

TWO = [(3, 3), (7, 12)]
"""The two data points of figures 13 to 17."""
SIGMA_0, SIGMA_T, MU = 1.5, 2.0, 7.5
"""Widths of the true density and of the templates, and the middle of the templates."""


def mesh(ends: Ends) -> tuple[Grid, Axis, Axis]:
    """10 x 15 points at distance 1, periodic in y."""
    x, y = Axis(1, 10, points=10, ends=ends, name="x"), Axis(1, 15, points=15, ends=Periodic(), name="y")
    return Grid(given=[x], over=[y]), x, y


def roughness(ends: Ends, lambda_2: float = 0.0, lambda_6: float = 0.0, lambda_x: float = 1.0) -> Operator:
    """The operator K of the examples. [lemm1999, eqs. (699) to (701)]"""
    grid, x, y = mesh(ends)
    Dx, Dy = Laplacian(grid, x), Laplacian(grid, y)
    return lambda_x * (lambda_2 * Dx + lambda_6 * Dx**3) + (lambda_2 * Dy + lambda_6 * Dy**3)


def _gauss(y: np.ndarray, mean: Any, sigma: float) -> np.ndarray:
    return np.exp(-((y - mean) ** 2) / (2 * sigma**2)) / (np.sqrt(2 * np.pi) * sigma)


def densities() -> dict[str, np.ndarray]:
    """The true density, both templates and the uniform one as the paper prints them. [lemm1999, eqs. (708), (719), (720)]"""
    grid, x, y = mesh(Free())
    X, Y = x.coordinates[:, None], y.coordinates[None]
    a, b = 125 / 18 + 5 / 9 * X, 145 / 18 - 5 / 9 * X
    one = np.ones_like(X)
    return {
        "truth": (_gauss(Y, a, SIGMA_0) + _gauss(Y, b, SIGMA_0)) / 2,
        "template 1": one * (_gauss(Y, MU + 25 / 9, SIGMA_T) + _gauss(Y, MU - 25 / 9, SIGMA_T)) / 2,
        "template 2": one * _gauss(Y, MU, SIGMA_T),
        "uniform": np.full(grid.shape, 1 / 15),
    }


def normalised(P: np.ndarray) -> np.ndarray:
    """With a sum over y of one."""
    return P / P.sum(axis=1, keepdims=True)


def expected_error(truth: np.ndarray, P: np.ndarray) -> float:
    """Minus the mean log-density under the truth, for uniform p(x). [lemm1999, eq. (711)]"""
    return float(-np.mean(np.sum(truth * np.log(P), axis=1)))


def sampled(key: Any, examples: int = 50) -> np.ndarray:
    """Points of the true density for uniform p(x)."""
    law = TrueDensity(mesh(Free())[0], normalised(densities()["truth"]))
    return law.sample(jax.random.key(21) if key is None else key, examples)


def fifty(key: Any) -> tuple[Problem, Operator]:
    """The problem of figures 21 and 22 and its operator without the strength."""
    K = roughness(Free(), lambda_2=1.0, lambda_x=2.0)
    return Problem(DensityData(sampled(key)), LogDensity(K.grid), Gaussian(0.5 * K)), K


def moments(P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Regression function and standard deviation at each x."""
    y = mesh(Free())[2].coordinates
    mean = P @ y
    return mean, np.sqrt(np.maximum(P @ y**2 - mean**2, 0.0))
