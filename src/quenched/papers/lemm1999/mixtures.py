r"""Density estimation with a mixture of two templates. [lemm1999, section 7.4.2, figures 23 to 28]

Fifty points of the true density, drawn with a seed: x uniform, y by the inverse distribution function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from quenched.fields.model.grid import Free
from quenched.fields.model.likelihoods import DensityData
from quenched.fields.model.links import LogDensity
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem
from quenched.papers.lemm1999.examples import densities, normalised, roughness


def fifty_rows(seed: int, examples: int = 50) -> np.ndarray:
    """Points of the true density for uniform p(x)."""
    rng = np.random.default_rng(seed)
    x, u = rng.integers(1, 11, examples), rng.random(examples)
    below = np.cumsum(normalised(densities()["truth"]), axis=1)
    return np.column_stack([x, 1 + np.minimum(np.sum(below[x - 1] < u[:, None], axis=1), 14)])


def two_templates(rows: Any, strength: float) -> Problem:
    """One of both templates holds, p_j = 1/2. [lemm1999, eq. (713)]"""
    K = roughness(Free(), lambda_2=1.0, lambda_x=2.0)
    first, second = (
        Gaussian(strength * K, mean=np.log(normalised(densities()[name]))) for name in ("template 1", "template 2")
    )
    return Problem(DensityData(rows), LogDensity(K.grid), first | second)
