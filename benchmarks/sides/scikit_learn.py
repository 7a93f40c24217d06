"""scikit-learn's side: mixtures of two Gaussians, and resampling of Gaussian processes."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.tasks import SIZES

Ready = tuple[str, Callable[[tuple, dict], Any]]
KERNEL = (1.12, 6.23, 0.469)


def _ready(work: Callable[[tuple, dict], Any]) -> Ready:
    return f"scikit-learn {version('scikit-learn')}", work


def two_gaussians(kind: str, whole_start: bool) -> Ready:
    """Rows times labels, started at 0 and twice the mean; the rest of the start by k-means, or given, which spares time."""
    from sklearn.mixture import GaussianMixture

    def work(data: tuple, case: dict) -> np.ndarray:
        x = data[0] * data[1][:, None]
        given: dict[str, Any] = {"means_init": np.stack([np.zeros(x.shape[1]), 2 * x.mean(axis=0)])}
        if whole_start:
            precision = 1 / x.var(axis=0)
            both = np.full(2, precision.mean()) if kind == "spherical" else np.stack([precision, precision])
            given |= {"weights_init": np.array([0.5, 0.5]), "precisions_init": both}
        return GaussianMixture(2, covariance_type=kind, random_state=0, **given).fit(x).means_[1]  # pyright: ignore

    return _ready(work)


def mixture() -> Ready:
    """Two spherical Gaussians, all else by default."""
    from sklearn.mixture import GaussianMixture

    work = lambda data, case: GaussianMixture(2, covariance_type="spherical", random_state=0).fit(data[0]).means_  # noqa: E731
    return _ready(work)


def _process() -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    amplitude, length, noise = KERNEL
    kernel = ConstantKernel(amplitude**2) * RBF(length) + WhiteKernel(noise)
    return GaussianProcessRegressor(kernel, optimizer=None)


def loop(draws: int) -> Ready:
    """Draw rows with replacement, fit, predict the others: their mean squared error, or that of their mean prediction."""

    def work(data: tuple, case: dict) -> np.ndarray:
        return _looped(draws, int(data[2]), data)[int(case["wanted"] == "out-of-bag error of the average")]

    return _ready(work)


def long_run() -> Ready:
    """A loop so long that it is taken for the truth; both errors come from one."""
    kept: list[np.ndarray] = []

    def work(data: tuple, case: dict) -> np.ndarray:
        if not kept:
            kept.extend(_looped(2000, 0, data))
        return kept[int(case["wanted"] == "out-of-bag error of the average")]

    return _ready(work)


def _looped(draws: int, seed: int, data: tuple) -> list[np.ndarray]:
    X, y, _ = data
    draw, N = np.random.default_rng([seed, draws]), len(y)
    count, total, squared = np.zeros(N), np.zeros(N), np.zeros(N)
    for _ in range(draws):
        row = draw.integers(0, N, N)
        out = np.setdiff1d(np.arange(N), row)
        found = _process().fit(X[row], y[row]).predict(X[out])
        count[out] += 1
        total[out] += found
        squared[out] += (found - y[out]) ** 2
    return [np.array([squared.sum() / count.sum()]), np.array([np.mean((total / count - y) ** 2)])]


def bagging() -> Ready:
    """BaggingRegressor of 50 processes, and the error of its out-of-bag prediction."""
    from sklearn.ensemble import BaggingRegressor

    def work(data: tuple, case: dict) -> np.ndarray:
        X, y, seed = data
        model = BaggingRegressor(_process(), 50, oob_score=True, random_state=int(seed)).fit(X, y)
        return np.array([np.mean((model.oob_prediction_ - y) ** 2)])

    return _ready(work)


def splits(count: int) -> Ready:
    """learning_curve over random splits."""
    from sklearn.model_selection import ShuffleSplit, learning_curve

    def work(data: tuple, case: dict) -> np.ndarray:
        X, y, seed = data
        cut = ShuffleSplit(count, train_size=max(SIZES), random_state=int(seed) + count)
        sizes = np.array(SIZES)
        return -learning_curve(_process(), X, y, train_sizes=sizes, cv=cut, scoring="neg_mean_squared_error")[2].mean(
            axis=1
        )

    return _ready(work)


MODELS: dict[str, Callable[[], Ready]] = {
    "GaussianMixture(2), diag, same start": lambda: two_gaussians("diag", False),
    "GaussianMixture(2), diag, all of the start given": lambda: two_gaussians("diag", True),
    "GaussianMixture(2), spherical, all of the start given": lambda: two_gaussians("spherical", True),
    "GaussianMixture(2), spherical": mixture,
    "loop of 50 draws": lambda: loop(50),
    "BaggingRegressor, 50 draws": bagging,
    "learning_curve, 20 splits": lambda: splits(20),
    "loop of 2000 draws": long_run,
    "learning_curve, 600 splits": lambda: splits(600),
}
