"""Random tables and kernels for attacks on the theory of Gaussian processes, and honest draws in plain NumPy.

Nothing here uses the package: kernels are matrices, data sets are drawn, and processes are trained, by NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

ROWS = (60, 90, 140, 220, 300)
"""Sizes of tables; few, since each is compiled for."""
BLOCK = 16
"""Data sets whose counts are stratified together; their mean is the unit of the standard error."""
MEASURES: tuple[str, ...] = ("oob_error", "error", "posterior_variance", "oob_variance")
"""What honest draws are asked for."""


class World(NamedTuple):
    """A table and a process, as arrays."""

    name: str
    K: np.ndarray  # [N, N]
    y: np.ndarray  # [N], mean 0 and variance 1
    noise: float


# ---- tables: inputs and targets


def _wave(X: np.ndarray) -> np.ndarray:
    return np.sin(2 * X[:, 0]) + 0.5 * X[:, -1] ** 2


def _gaussian(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = draw.normal(size=(rows, 3))
    return X, _wave(X) + 0.3 * draw.normal(size=rows)


def _uniform(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = draw.uniform(-2, 2, size=(rows, 2))
    return X, _wave(X) + 0.1 * draw.normal(size=rows)


def _clusters(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = 3 * draw.normal(size=(6, 4))[draw.integers(0, 6, rows)] + 0.4 * draw.normal(size=(rows, 4))
    return X, np.tanh(X[:, 0]) + X[:, 1] * X[:, 2] / 9 + 0.2 * draw.normal(size=rows)


def _near_copies(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = draw.normal(size=(rows // 3 + 1, 3))[np.arange(rows) // 3] + 0.02 * draw.normal(size=(rows, 3))
    return X, _wave(X) + 0.1 * draw.normal(size=rows)


def _friedman(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_friedman1

    return make_friedman1(rows, noise=0.5, random_state=int(draw.integers(2**31)))  # pyright: ignore[reportReturnType]


def _s_curve(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_s_curve

    return make_s_curve(rows, random_state=int(draw.integers(2**31)))  # pyright: ignore[reportReturnType]


def _swiss_roll(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import make_swiss_roll

    return make_swiss_roll(rows, noise=0.3, random_state=int(draw.integers(2**31)))  # pyright: ignore[reportReturnType]


def _bundled(name: str, target: int | None) -> Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]:
    """Rows of a table that comes with scikit-learn; its own target, or one of its columns."""

    def rows_of(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        if target is not None:
            X, y = np.delete(X, target, axis=1), X[:, target]
        chosen = draw.permutation(len(y))[:rows]
        return X[chosen], np.asarray(y, float)[chosen]

    return rows_of


def _digits(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    chosen = draw.permutation(len(y))[:rows]
    X = X[chosen] - X[chosen].mean(axis=0)
    U, size, _ = np.linalg.svd(X, full_matrices=False)
    return U[:, :8] * size[:8], np.asarray(y[chosen] % 2, float)


def _linear(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = draw.normal(size=(rows, 40))
    return X, X @ draw.normal(size=40)


def _few_columns(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = draw.normal(size=(rows, 8))
    return X, X @ draw.normal(size=8) + draw.normal(size=rows)


def _quadratic(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = draw.uniform(-1, 1, size=(rows, 4))
    return X, np.sum(X**2, axis=1) + X[:, 0] * X[:, 1] + 0.05 * draw.normal(size=rows)


def _step(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = draw.uniform(-1, 1, size=(rows, 2))
    return X, np.sign(X[:, 0]) + 0.2 * draw.normal(size=rows)


def _heavy_tails(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = draw.standard_t(2, size=(rows, 3))
    return X, X[:, 0] + np.sin(X[:, 1]) + 0.3 * draw.standard_t(2, size=rows)


def _line(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.sort(draw.uniform(-2, 2, size=(rows, 1)), axis=0)
    return X, np.sin(4 * X[:, 0]) + 0.1 * draw.normal(size=rows)


def _nothing(draw: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    return draw.normal(size=(rows, 5)), draw.normal(size=rows)


TABLES = {
    "Gaussian": _gaussian, "uniform": _uniform, "clusters": _clusters, "near copies": _near_copies,
    "Friedman": _friedman, "S-curve": _s_curve, "Swiss roll": _swiss_roll, "diabetes": _bundled("diabetes", None),
    "iris": _bundled("iris", 3), "wine": _bundled("wine", 0), "breast cancer": _bundled("breast_cancer", 0),
    "digits": _digits, "40 columns": _linear, "8 columns": _few_columns, "quadratic": _quadratic, "step": _step,
    "heavy tails": _heavy_tails, "line": _line,
}  # fmt: skip
"""18 kinds of tables, each a function of a generator and a number of rows (fewer where there are not so many)."""


# ---- kernels


def _squared(X: np.ndarray) -> np.ndarray:
    return np.maximum(np.sum((X[:, None] - X) ** 2, axis=2), 0.0)


def _matern(order: int) -> Callable[[np.ndarray, float], np.ndarray]:
    def kernel(X: np.ndarray, length: float) -> np.ndarray:
        r = np.sqrt(order * _squared(X)) / length
        return {1: 1.0, 3: 1 + r, 5: 1 + r + r**2 / 3}[order] * np.exp(-r)

    return kernel


def _additive(X: np.ndarray, length: float) -> np.ndarray:
    unit = length / np.sqrt(X.shape[1])
    return np.mean(np.exp(-((X[:, None] - X) ** 2) / (2 * unit**2)), axis=2)


def _periodic(X: np.ndarray, length: float) -> np.ndarray:
    return np.exp(-np.mean(np.sin((X[:, None] - X) / 2) ** 2, axis=2) * 2 * X.shape[1] / length**2)


KERNELS = {
    "squared exponential": lambda X, length: np.exp(-_squared(X) / (2 * length**2)),
    "Matern 1/2": _matern(1),
    "Matern 3/2": _matern(3),
    "Matern 5/2": _matern(5),
    "rational quadratic": lambda X, length: 1 / (1 + _squared(X) / (2 * length**2)),
    "linear": lambda X, length: X @ X.T / length**2 + 0.1,
    "polynomial": lambda X, length: (X @ X.T / length**2 + 0.5) ** 2,
    "additive": _additive,
    "periodic": _periodic,
}
"""9 kinds of kernels, each a function of standardised inputs and a length."""


def world(table: str, kernel: str, draw: np.random.Generator) -> World:
    """A table and a kernel with random rows, length, amplitude and noise."""
    X, y = TABLES[table](draw, int(draw.choice(ROWS)))
    rows = max(size for size in ROWS if size <= len(y))
    X, y = X[:rows], y[:rows]
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    length = float(np.sqrt(X.shape[1]) * 10 ** draw.uniform(-0.5, 0.7))
    amplitude, noise = float(10 ** draw.uniform(-0.5, 0.5)), float(10 ** draw.uniform(-5, 0.3))
    K = amplitude * KERNELS[kernel](X, length)
    K = K + 1e-10 * np.mean(np.diagonal(K)) * np.eye(rows)
    name = f"{table}, {kernel}, N = {rows}, length {length:.2g}, amplitude {amplitude:.2g}, noise {noise:.2g}"
    return World(name, K, (y - y.mean()) / y.std(), noise)


# ---- honest draws


def trained(given: World, counts: np.ndarray) -> np.ndarray:
    """Train on data sets with the counts `[draws, N]`: the `MEASURES` of each, `[draws, 4]`.

    A row that came s times is one measurement with noise variance `noise / s`. With all its copies taken out the
    residual of a row in the bag is `alpha / d`, the identity of leave-one-out.
    """
    K, y, s2 = given.K, given.y, given.noise
    bag = np.argsort(counts == 0, axis=1, kind="stable")[:, : max(int((counts > 0).sum(axis=1).max()), 1)]
    s = np.take_along_axis(counts, bag, axis=1).astype(float)
    r = np.sqrt(s / s2)  # 0 for rows that only fill up
    B = np.eye(bag.shape[1]) + r[:, :, None] * K[bag[:, :, None], bag[:, None, :]] * r[:, None, :]
    inverse = r[:, :, None] * np.linalg.inv(B) * r[:, None, :]
    alpha, d = np.einsum("bij,bj->bi", inverse, y[bag]), np.einsum("bii->bi", inverse)
    cross = K[bag]
    residual = y - np.einsum("bpn,bp->bn", cross, alpha)
    variance = np.diagonal(K) - np.einsum("bpn,bpn->bn", cross, inverse @ cross)
    oob_residual, oob_variance = residual.copy(), variance.copy()
    inside = s > 0
    at = np.nonzero(inside)[0], bag[inside]
    c, alpha, d = s2 / s[inside], alpha[inside], d[inside]
    residual[at], oob_residual[at] = c * alpha, alpha / d
    variance[at], oob_variance[at] = c - c**2 * d, 1 / d - c
    values = (oob_residual**2, residual**2, variance, oob_variance)
    return np.stack([np.mean(value, axis=1) for value in values], axis=1)


def poisson_counts(given: World, m: float, blocks: int, draw: np.random.Generator) -> np.ndarray:
    """Poisson counts `[blocks * BLOCK, N]`, each row's stratified over the data sets of a block."""
    from scipy import stats

    shape = (blocks, BLOCK, len(given.y))
    strata = draw.permuted(np.broadcast_to(np.arange(BLOCK)[None, :, None], shape), axis=1)
    u = (strata + draw.random(shape)) / BLOCK
    mu = m / len(given.y)
    table = stats.poisson.cdf(np.arange(int(mu + 12 * np.sqrt(mu) + 25)), mu)
    return np.searchsorted(table, u, side="right").reshape(-1, len(given.y))


class Truth(NamedTuple):
    """Means of the `MEASURES` over data sets and their standard errors, each `[4]`."""

    mean: np.ndarray
    stderr: np.ndarray
    draws: int


def truth(given: World, m: float, draw: np.random.Generator, accuracy: float, work: float) -> Truth:
    """Honest draws until the relative standard errors of the errors are as asked, or the work is done.

    Args:
        given: the world.
        m: mean number of rows in a data set.
        draw: random numbers.
        accuracy: relative standard error asked for; that of variances may be twice as large.
        work: operations at most, but at least 32 blocks.
    """
    N = len(given.y)
    distinct = -N * np.expm1(-m / N)
    cost = 4 * distinct**3 + 2 * distinct**2 * N + 100 * distinct * N + 3e4
    most = max(32, int(work / cost / BLOCK))
    at_once = int(np.clip(4e6 / (BLOCK * (distinct + 5) * N), 1, 32))  # a few tens of megabytes
    blocks: list[np.ndarray] = []
    while True:
        values = trained(given, poisson_counts(given, m, at_once, draw))
        blocks.extend(values.reshape(at_once, BLOCK, -1).mean(axis=1))
        if len(blocks) < 32:
            continue
        mean, stderr = np.mean(blocks, axis=0), np.std(blocks, axis=0, ddof=1) / np.sqrt(len(blocks))
        asked = accuracy * mean * np.array([1, 1, 2, 2])
        if np.all(stderr <= asked) or len(blocks) >= most:
            return Truth(mean, stderr, len(blocks) * BLOCK)
