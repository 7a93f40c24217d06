"""Tables and kernels that several tests share."""

import functools

import numpy as np
from tinygp import kernels, transforms

from quenched import io
from quenched.processes import Empirical, GaussianProcess


@functools.cache
def boston():
    """The paper's Boston: all 506 rows, lengths from the standard deviations of the raw columns, noise 0.01."""
    table = io.boston()
    scale = np.sqrt(2 / (147.1 * table.inputs.std(axis=0)))
    law = Empirical(table.inputs, table.targets)
    return law, GaussianProcess(transforms.Linear(scale, kernels.ExpSquared()), noise=0.01)


@functools.cache
def abalone(rows, seed=0):
    """The paper's Abalone on a random subset of rows, units of the whole set, noise 0.1."""
    table = io.abalone()
    chosen = np.random.default_rng(seed).permutation(4177)[:rows]
    scale = np.sqrt(2 / (10 * table.inputs.var(axis=0)))
    law = Empirical(table.inputs[chosen], table.targets[chosen], table.targets.mean(), table.targets.std())
    return law, GaussianProcess(transforms.Linear(scale, kernels.ExpSquared()), noise=0.1)


@functools.cache
def diabetes(rows=442, noise=0.469):
    """Diabetes with standardised columns, the kernel of scikit-learn's users."""
    table = io.bundled("diabetes")
    X = (table.inputs - table.inputs.mean(axis=0)) / table.inputs.std(axis=0)
    chosen = np.sort(np.random.default_rng(0).permutation(442)[:rows])
    law = Empirical(X[chosen], np.asarray(table.targets, float)[chosen])
    return law, GaussianProcess(1.12**2 * kernels.ExpSquared(6.23), noise=noise)


def five():
    """Five rows on a line, by hand."""
    x = np.array([0.0, 0.4, 1.0, 1.3, 2.5])
    return Empirical(x, np.array([0.3, -1.0, 0.8, 1.2, -0.7])), GaussianProcess(kernels.ExpSquared(0.8), noise=0.2)
