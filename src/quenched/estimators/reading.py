"""What every estimator reads in the same way: seeds, and rows it is asked about."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from quenched.core.types import Key


def key_of(random_state: Any) -> Key:
    """A JAX key from scikit-learn's `random_state`."""
    return jax.random.key(int(check_random_state(random_state).randint(2**31 - 1)))


def rows_of(estimator: BaseEstimator, X: Any) -> np.ndarray:
    """The rows of a table that a fitted estimator is asked about."""
    check_is_fitted(estimator, "_fitted")
    rows: Any = validate_data(estimator, X, dtype=np.float64, reset=False)
    return rows
