"""Tables that are known by name: those that come with scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from quenched.core.types import InputError
from quenched.io.tables import Table

BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")
"""Sets that come with scikit-learn."""


def bundled(name: str) -> Table:
    """One of the small sets that come with scikit-learn: iris, digits, diabetes, wine or breast_cancer.

    Raises:
        InputError: for another name.
    """
    if name not in BUNDLED:
        raise InputError(f"Argument `name` must be one of {', '.join(BUNDLED)}, but {name!r} was given.")
    from sklearn import datasets

    loaded: Any = getattr(datasets, f"load_{name}")()
    return Table(
        np.asarray(loaded.data, float), np.asarray(loaded.target), tuple(map(str, loaded.feature_names)), "target"
    )
