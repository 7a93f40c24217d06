"""A world with a known teacher and forecasts on it, shared by the tests of what they say and when they are refused."""

import functools

import numpy as np
from tinygp import kernels

from quenched.processes.model import GaussianProcess
from quenched.processes.practice import forecast

N = 60
RULE = GaussianProcess(kernels.ExpSquared(1.0), 0.4)
VALUES = [f"{name}{end}" for name in ("error", "gain", "rmse") for end in ("", "_low", "_high")]


def world(rows, seed, noise=0.4):
    """A known teacher with two inputs that have unit variance."""
    draw = np.random.default_rng(seed)
    X = draw.uniform(-np.sqrt(3), np.sqrt(3), size=(rows, 2))
    return X, np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + noise * draw.normal(size=rows)


def fixed(X, y, **arguments):
    """A forecast without tuning, which is quick."""
    return forecast(X, y, **{"rule": RULE, "tune": False, "examples": [len(y)]} | arguments)


@functools.cache
def answer():
    return fixed(*world(N, 0), examples=[15, N, 2 * N, 600, 601], check=8)
