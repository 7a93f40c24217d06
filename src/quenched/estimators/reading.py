"""Input of estimators: tables and their units, seeds, weights, and rows to predict."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from quenched.core import checks
from quenched.core.types import InputError, Key

LARGEST, SMALLEST = float(np.finfo(np.float64).max), float(np.finfo(np.float64).smallest_subnormal)
"""The range of double precision."""


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


def validated(estimator: BaseEstimator, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """A table of numbers, and targets if given, as validated by scikit-learn; masked values raise an error."""
    for name, value in (("X", X), ("y", y)):
        if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
            masked = int(np.sum(value.mask))
            raise InputError(f"Argument `{name}` must have a value everywhere, but {masked} are masked.")
    return validate_data(estimator, X, y, dtype=np.float64, **options)


def rows_of(estimator: BaseEstimator, X: Any, units: Units | None = None) -> np.ndarray:
    """The rows to predict from a fitted estimator, in the units of its training if these are given."""
    check_is_fitted(estimator, "_fitted")
    rows: Any = validated(estimator, X, reset=False)
    return bounded(rows if units is None else units.into(rows))


def bounded(rows: np.ndarray) -> np.ndarray:
    """Check that the squares of rows do not overflow, and return the rows."""
    if not np.all(np.abs(rows) < checks.LARGEST):
        raise InputError(f"Argument `X` must be below {checks.LARGEST:g} in size, but it is not.")
    return rows


@dataclasses.dataclass(frozen=True, eq=False)
class Units:
    """Units in which rows are of size 1, so that squares do not overflow. All factors are powers of two, and exact."""

    exponent: Any  # of the power of two that is the unit of each column `[N]`, or of all
    scaler: StandardScaler | None = None  # standardises the columns after that

    @classmethod
    def of(cls, rows: np.ndarray, weights: np.ndarray, *, standardize: bool) -> Units:
        """The units of a table."""
        exponent = np.frexp(np.max(np.abs(rows), axis=0 if standardize else None))[1]
        if not standardize:
            return cls(int(exponent))
        return cls(exponent, StandardScaler().fit(np.ldexp(rows, -exponent), sample_weight=weights))

    def into(self, rows: np.ndarray) -> np.ndarray:
        """Rows in these units."""
        with np.errstate(over="ignore"):
            Z: Any = np.ldexp(rows, -self.exponent)
        return Z if self.scaler is None or not np.all(np.isfinite(Z)) else self.scaler.transform(Z)  # pyright: ignore[reportReturnType]

    def back(self, rows: np.ndarray) -> np.ndarray:
        """Rows in the units of the data."""
        Z: Any = rows if self.scaler is None else self.scaler.inverse_transform(rows)
        return np.ldexp(Z, self.exponent)

    @property
    def power(self) -> int:
        """The exponent of the power of two by which lengths are divided; 0 if columns are standardised."""
        return 0 if self.scaler is not None else self.exponent

    def measure(self, value: Any, dimension: int) -> Any:
        """A length to some power, in the units of the data, clipped to the range of double precision."""
        with np.errstate(over="ignore", under="ignore"):
            there = np.clip(np.ldexp(value, dimension * self.power), -LARGEST, LARGEST)
        return np.where((there == 0) & (np.asarray(value) > 0), SMALLEST, there)[()]

    def given(self, name: str, value: Any, dimension: int) -> float | None:
        """An argument that is a length to some power in the units of the data, in these units; None stays None."""
        if value is None:
            return None
        checks.positive(name, checks.number(name, value))
        with np.errstate(over="ignore", under="ignore"):
            there = float(np.ldexp(float(value), -dimension * self.power))
        if not 1 / checks.LARGEST <= there <= checks.LARGEST:
            raise InputError(f"Argument `{name}` must be of a size that suits the data, but {value:g} does not: they "
                             f"reach {np.ldexp(1.0, self.power):.2g}.")  # fmt: skip
        return there


def weights_of(sample_weight: Any, rows: Any) -> np.ndarray:
    """A weight for each row, by default 1."""
    weights: Any = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    checks.weights_of_rows(weights)
    return weights
