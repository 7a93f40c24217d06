"""Tables and kernels that several tests share."""

import functools

import numpy as np
from tinygp import kernels, transforms

from quenched import io
from quenched.papers.malzahn2002 import sets
from quenched.processes import Empirical, GaussianProcess


@functools.cache
def boston():
    """The paper's Boston: all 506 rows, lengths from the standard deviations of the raw columns, noise 0.01."""
    table = sets.boston()
    scale = np.sqrt(2 / (147.1 * table.inputs.std(axis=0)))
    law = Empirical(table.inputs, table.targets)
    return law, GaussianProcess(transforms.Linear(scale, kernels.ExpSquared()), noise=0.01)


@functools.cache
def abalone(rows, seed=0):
    """The paper's Abalone on a random subset of rows, units of the whole set, noise 0.1."""
    table = sets.abalone()
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


def _standard(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@functools.cache
def bent():
    """Worlds whose learning curves bend where few dimensions are learned: kernel matrix, targets and noise of each.

    What is hard about them is the number of examples, which no few neighbours of a row see.
    """
    from sklearn import datasets

    draw = np.random.default_rng(0)
    X = draw.normal(size=(250, 40))
    worlds = {"40 columns": (X @ X.T / 40 + 0.1, X @ draw.normal(size=40), 0.003)}
    X, y = datasets.load_diabetes(return_X_y=True)
    worlds["diabetes"] = (_standard(X[:120]) @ _standard(X[:120]).T + 1.0, y[:120], 0.1)
    X, y = datasets.make_friedman1(120, random_state=0)
    worlds["Friedman"] = (_standard(X) @ _standard(X).T + 1.0, y, 0.05)
    X, y = datasets.make_s_curve(120, random_state=0)
    r = np.sqrt(5) * np.linalg.norm(X[:, None] - X, axis=2)
    worlds["S-curve"] = ((1 + r + r**2 / 3) * np.exp(-r), y, 0.92)
    jitter = {name: 1e-12 * np.eye(len(y)) for name, (_, y, _) in worlds.items()}
    return {name: (K + jitter[name], _standard(y), noise) for name, (K, y, noise) in worlds.items()}


def five():
    """Five rows on a line, by hand."""
    x = np.array([0.0, 0.4, 1.0, 1.3, 2.5])
    return Empirical(x, np.array([0.3, -1.0, 0.8, 1.2, -0.7])), GaussianProcess(kernels.ExpSquared(0.8), noise=0.2)
