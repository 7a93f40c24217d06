"""What every estimator reads in the same way: seeds, and rows it is asked about."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from quenched.core import checks
from quenched.core.types import InputError, Key


def key_of(random_state: Any) -> Key:
    """A JAX key from scikit-learn's `random_state`."""
    return jax.random.key(int(generator_of(random_state).randint(2**31 - 1)))


def generator_of(random_state: Any) -> np.random.RandomState:
    """A generator from scikit-learn's `random_state`."""
    try:
        return check_random_state(random_state)
    except (TypeError, ValueError):
        raise InputError("Argument `random_state` must be None, a whole number from 0 to 2**32 - 1 or a RandomState, "
                         f"but {random_state!r} was given.") from None  # fmt: skip


def rows_of(estimator: BaseEstimator, X: Any) -> np.ndarray:
    """The rows of a table that a fitted estimator is asked about."""
    check_is_fitted(estimator, "_fitted")
    rows: Any = validate_data(estimator, X, dtype=np.float64, reset=False)
    return bounded(rows)


def bounded(rows: np.ndarray) -> np.ndarray:
    """Rows whose squares are numbers.

    Raises:
        InputError: for others.
    """
    if not np.all(np.abs(rows) < checks.LARGEST):
        raise InputError(f"Argument `X` must be below {checks.LARGEST:g} in size, but it is not.")
    return rows


def weights_of(sample_weight: Any, rows: Any) -> np.ndarray:
    """A weight for each row, by default 1.

    Raises:
        ValueError: if there are not as many, or some are negative or no numbers.
        InputError: if they are all zero, or so large that sums of squares overflow.
    """
    weights: Any = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    checks.weights_of_rows(weights)
    return weights
