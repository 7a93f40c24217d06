"""The bands of field estimators: by Laplace's method, or between quantiles of draws from the posterior."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from quenched.core import checks
from quenched.core.types import InputError, Key
from quenched.estimators.reading import key_of
from quenched.fields.practice.bands import Drawn

BANDS = ("laplace", "sampled")
"""What a band is made of."""


def check_band(band: Any) -> bool:
    """Whether a band is that of draws."""
    if not isinstance(band, str) or band not in BANDS:
        raise InputError(f'Argument `band` must be "laplace" or "sampled", but {band!r} was given.')
    return band == "sampled"


class Banded:
    """An estimator whose band may be made of draws."""

    draws_: np.ndarray | None
    band_: str
    band_verdict_: str


def fill(estimator: Any, draw: Callable[[Key], Drawn]) -> None:
    """Keep the draws behind a band, if they are asked for and can be trusted; otherwise warn and use Laplace's."""
    estimator.draws_, estimator.band_, estimator.band_verdict_ = None, "laplace", "by Laplace's method"
    if not check_band(estimator.band):
        return
    drawn = draw(key_of(estimator.random_state))
    estimator.band_verdict_ = drawn.verdict
    if drawn.trusted:
        estimator.draws_, estimator.band_ = drawn.fields, "sampled"
    else:
        warnings.warn(f"The band is that of Laplace's method instead of draws: {drawn.verdict}.",
                      ConvergenceWarning, stacklevel=3)  # fmt: skip


def between(draws: np.ndarray, level: Any) -> tuple[np.ndarray, np.ndarray]:
    """The interval at each place that draws `[draws, ...]` are in with some probability."""
    checks.inside("level", checks.number("level", level), 0.0, 1.0)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.asarray(low), np.asarray(high)
