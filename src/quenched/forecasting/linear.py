r"""Exact leave-one-out for linear least squares.

A linear model of a fixed ridge $\alpha$ predicts $\hat y = H y$; left out, row $i$ has the residual
$(y_i - \hat y_i)/(1 - H_{ii})$. So the error with all rows but one costs one decomposition instead of $N$ fits.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge

from quenched.forecasting.errors import Error
from quenched.forecasting.measure import Rows

FULL = 0.999
"""Leverage beyond which a row determines its own prediction, and leaving it out has no meaning."""
SAME = 1e-6
"""Standard deviations of the target by which the estimator's own predictions may differ from the formula's."""


class LeftOut(NamedTuple):
    """The error with all rows but one."""

    residual: np.ndarray  # in standard deviations of the target
    error: float
    stderr: float
    training: float


def leave_one_out(estimator: Any, rows: Rows, error: Error) -> LeftOut | None:
    """The exact error of linear least squares, None for other estimators and where rows stay together.

    None, too, where the estimator's own fit is another: solvers may stop early, or leave columns of small scale out.
    """
    if type(estimator) not in (LinearRegression, Ridge) or error.scorer is not None or rows.together is not None:
        return None
    if hasattr(rows.X, "tocsr") or getattr(estimator, "positive", False):
        return None
    alpha = float(estimator.alpha) if isinstance(estimator, Ridge) and np.ndim(estimator.alpha) == 0 else 0.0
    if isinstance(estimator, Ridge) and np.ndim(estimator.alpha):
        return None
    X, y = np.asarray(rows.X, float), rows.y / error.scale
    free = bool(estimator.fit_intercept)
    centre, middle = (X.mean(axis=0), y.mean()) if free else (0.0, 0.0)
    U, s, _ = np.linalg.svd(X - centre, full_matrices=False)
    kept = s > s.max() * max(X.shape) * np.finfo(float).eps
    size = np.where(kept, s, 1.0)
    shrink = np.where(kept, 1 / (1 + alpha / size / size), 0.0)  # s**2 may underflow
    own = (U**2) @ shrink + free / len(y)
    if own.max() > FULL:
        return None
    off = y - middle - U @ (shrink * (U.T @ (y - middle)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh: Any = clone(estimator)
        if not np.all(np.abs(error.residual(fresh.fit(rows.X, rows.y), rows.X, rows.y) - off) < SAME):
            return None
    left = off / (1 - own)
    return LeftOut(left, float(np.mean(left**2)), float(np.std(left**2) / np.sqrt(len(y))), float(np.mean(off**2)))
