"""Peers for the density of a column: suftware, KDEpy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.tasks import PLACES

Ready = tuple[str, Callable[[tuple, dict], Any]]


def field_theory() -> Ready:
    """suftware on 400 points (its default of 100 is much worse with many rows), without posterior samples."""
    import suftware  # pyright: ignore[reportMissingImports]

    settings = {"num_grid_points": 400, "num_posterior_samples": 0}
    return f"suftware {version('suftware')}", lambda data, case: suftware.DensityEstimator(
        data[0], **settings
    ).evaluate(PLACES)


def kernels_by_transform() -> Ready:
    """KDEpy with the bandwidth of Botev (ISJ), by Fourier transform on 4,096 points."""
    import KDEpy  # pyright: ignore[reportMissingImports]

    def work(data: tuple, case: dict) -> np.ndarray:
        grid, p = KDEpy.FFTKDE(bw="ISJ").fit(data[0]).evaluate(4096)
        return np.interp(PLACES, grid, p, left=0.0, right=0.0)

    return f"KDEpy {version('KDEpy')}", work


def kernels() -> Ready:
    """SciPy's kernel density."""
    from scipy.stats import gaussian_kde

    return f"SciPy {version('scipy')}", lambda data, case: gaussian_kde(data[0])(PLACES)


MODELS: dict[str, Callable[[], Ready]] = {
    "DensityEstimator, 400 points": field_theory,
    "FFTKDE, ISJ": kernels_by_transform,
    "gaussian_kde": kernels,
}
