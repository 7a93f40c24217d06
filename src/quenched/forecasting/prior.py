r"""What other learning curves teach: small networks that read the features of a curve and predict its quantiles.

A network has two hidden layers of $z\,\sigma(z)$ ($\sigma$ is the logistic function). It returns, for the log of the
error at the horizon over the forecast of the recency-weighted power law, nine quantiles and point forecasts; several
networks that differ in their random numbers are averaged. Intervals are widened by factors for each horizon that make
them cover tables that were held out (conformal calibration).

The numbers in `prior.npz` were learned by `benchmarks/learn_prior.py` from the Learning Curve Database 1.1 (Yan, Mohr
and Viering, 2025; CC BY 4.0), error rates of 27 learners on 162 tables; see `prior.md` beside it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from quenched.forecasting import features

QUANTILES = np.array([0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975])
"""Probabilities of the quantiles that a network returns; its point forecasts come after them."""
POINT = 3
"""The point forecast that is used: it minimises the mean of log(1 + |relative error| / 0.07)."""
CLIPPED = 5.0
"""Features are cut off at this many standard deviations."""
FILE = Path(__file__).with_name("prior.npz")
CALIBRATED = (1.0, 2.0, 3.0, 4.0)
"""Horizons, in octaves, at which intervals were calibrated."""


class Prior(NamedTuple):
    """Networks and what their inputs are scaled by."""

    mean: np.ndarray  # [d]
    scale: np.ndarray  # [d]
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]  # weights [networks, in, out] and offsets [networks, out]
    widening: np.ndarray  # [4], of the interval at the calibrated horizons

    def evaluate(self, rows: np.ndarray) -> np.ndarray:
        """The mean over the networks of all outputs for each row of features, `[m, 9 + points]`."""
        x = np.clip((rows - self.mean) / self.scale, -CLIPPED, CLIPPED).astype(np.float32)[None]
        for weights, offsets in self.layers[:-1]:
            z = x @ weights + offsets[:, None, :]
            x = z / (1 + np.exp(-np.clip(z, -60, 60)))
        weights, offsets = self.layers[-1]
        return (x @ weights + offsets[:, None, :]).astype(np.float64).mean(axis=0)


class Quantiles(NamedTuple):
    """A forecast of the log of the error over the level of the curve."""

    point: np.ndarray  # [m]
    low: np.ndarray
    high: np.ndarray


@cache
def shipped() -> Prior:
    """The prior of the package."""
    return load(FILE)


def load(path: Path) -> Prior:
    """Read a prior."""
    with np.load(path, allow_pickle=False) as data:
        layers = tuple((data[f"W{i}"].astype(np.float32), data[f"c{i}"].astype(np.float32)) for i in range(3))
        return Prior(data["mean"], data["scale"], layers, data["widening"])


def save(path: Path, prior: Prior) -> None:
    """Write a prior, its weights in half precision."""
    arrays = {f"{name}{i}": v.astype(np.float16) for i, layer in enumerate(prior.layers)
              for name, v in zip(("W", "c"), layer, strict=True)}  # fmt: skip
    mean, scale = prior.mean.astype(np.float32), prior.scale.astype(np.float32)
    np.savez_compressed(path, mean=mean, scale=scale, widening=prior.widening, **arrays)  # pyright: ignore[reportArgumentType]


def read_outputs(outputs: np.ndarray, rows: np.ndarray, widening: np.ndarray, level: float) -> Quantiles:
    """The forecast in a network's outputs: its point, and the interval that contains `level` of the probability."""
    point, base = outputs[:, len(QUANTILES) + POINT], features.baseline(rows)
    ordered = np.sort(outputs[:, : len(QUANTILES)], axis=1)
    tail = (1 - level) / 2
    low, high = (np.array([np.interp(q, QUANTILES, row) for row in ordered]) for q in (tail, 1 - tail))
    octaves = rows[:, -2]
    factor = np.interp(octaves, CALIBRATED, widening)
    below, above = factor * np.maximum(point - low, 1e-3), factor * np.maximum(high - point, 1e-3)
    return Quantiles(base + point, base + point - below, base + point + above)
