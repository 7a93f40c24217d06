"""The fifteen densities of Marron and Wand (Annals of Statistics 20, 712, 1992), mixtures of Gaussians. Needs NumPy alone."""

from __future__ import annotations

import math

import numpy as np

Parts = tuple[tuple[float, float, float], ...]
"""Share, centre and width of each Gaussian."""

FAMILY: dict[str, Parts] = {
    "Gaussian": ((1, 0, 1),),
    "skewed": ((1 / 5, 0, 1), (1 / 5, 1 / 2, 2 / 3), (3 / 5, 13 / 12, 5 / 9)),
    "strongly skewed": tuple((1 / 8, 3 * ((2 / 3) ** k - 1), (2 / 3) ** k) for k in range(8)),
    "kurtotic": ((2 / 3, 0, 1), (1 / 3, 0, 1 / 10)),
    "outlier": ((1 / 10, 0, 1), (9 / 10, 0, 1 / 10)),
    "bimodal": ((1 / 2, -1, 2 / 3), (1 / 2, 1, 2 / 3)),
    "separated": ((1 / 2, -3 / 2, 1 / 2), (1 / 2, 3 / 2, 1 / 2)),
    "skewed bimodal": ((3 / 4, 0, 1), (1 / 4, 3 / 2, 1 / 3)),
    "trimodal": ((9 / 20, -6 / 5, 3 / 5), (9 / 20, 6 / 5, 3 / 5), (1 / 10, 0, 1 / 4)),
    "claw": ((1 / 2, 0, 1), *((1 / 10, k / 2 - 1, 1 / 10) for k in range(5))),
    "double claw": ((49 / 100, -1, 2 / 3), (49 / 100, 1, 2 / 3), *((1 / 350, (k - 3) / 2, 1 / 100) for k in range(7))),
    "asymmetric claw": ((1 / 2, 0, 1), *((2.0 ** (1 - k) / 31, k + 1 / 2, 2.0**-k / 10) for k in range(-2, 3))),
    "asymmetric double claw": (
        *((46 / 100, 2 * k - 1, 2 / 3) for k in range(2)),
        *((1 / 300, -k / 2, 1 / 100) for k in (1, 2, 3)),
        *((7 / 300, k / 2, 7 / 100) for k in (1, 2, 3)),
    ),
    "smooth comb": tuple((2.0 ** (5 - k) / 63, (65 - 96 / 2.0**k) / 21, 32 / 63 / 2.0**k) for k in range(6)),
    "discrete comb": (
        *((2 / 7, (12 * k - 15) / 7, 2 / 7) for k in range(3)),
        *((1 / 21, 2 * k / 7, 1 / 21) for k in (8, 9, 10)),
    ),
}
PLACES = np.linspace(-6.0, 6.0, 24_001)
"""Where densities are compared: the narrowest Gaussian has a width of twenty steps."""


def density(name: str, x: np.ndarray) -> np.ndarray:
    """The true density at some places."""
    w, m, s = np.array(FAMILY[name], dtype=float).T
    return np.exp(-0.5 * ((np.asarray(x)[..., None] - m) / s) ** 2) @ (w / s) / math.sqrt(2 * math.pi)


def draw(name: str, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of a density."""
    w, m, s = np.array(FAMILY[name], dtype=float).T
    at = rng.choice(len(w), rows, p=w / w.sum())
    return rng.normal(m[at], s[at])


def places(name: str, count: int = 20) -> np.ndarray:
    """Places at equal distances between the quantiles of 1% and 99%."""
    below = np.cumsum(density(name, PLACES)) * (PLACES[1] - PLACES[0])
    return np.linspace(*np.interp([0.01, 0.99], below, PLACES), count)
