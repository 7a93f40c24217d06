r"""The learners as scikit-learn estimators: `fit`, `predict`, pipelines, searches, weights.

A class here checks its input, calls the learner of its science and keeps the result in attributes; it trains
nothing by itself. Choices are objects: `LVQClassifier(rule=LVQ21(0.05), window=0.1)`. Where a learner did not come
to an end the estimator warns, and `outcome_` says what happened; the attributes are finite all the same.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quenched.estimators.cluster_finder import ClusterFinder
    from quenched.estimators.cluster_regressor import ClusterRegressor
    from quenched.estimators.field_classifier import FieldClassifier
    from quenched.estimators.field_conditional import FieldConditional
    from quenched.estimators.field_density import FieldDensity
    from quenched.estimators.field_given import FieldRegressor
    from quenched.estimators.inverse_potential import InversePotential
    from quenched.estimators.lvq import LVQClassifier
    from quenched.estimators.mixtures import AnnealedMixture
    from quenched.estimators.outliers import HardSelectionClassifier, SoftSelectionClassifier
    from quenched.estimators.prototypes import VQClusterer
    from quenched.estimators.selection import SelectionClassifier, SelectionRegressor

# Loaded when first used: start-up is part of a user's wait.
_HOME = {
    "AnnealedMixture": "quenched.estimators.mixtures",
    "ClusterFinder": "quenched.estimators.cluster_finder",
    "ClusterRegressor": "quenched.estimators.cluster_regressor",
    "FieldClassifier": "quenched.estimators.field_classifier",
    "FieldConditional": "quenched.estimators.field_conditional",
    "FieldDensity": "quenched.estimators.field_density",
    "FieldRegressor": "quenched.estimators.field_given",
    "HardSelectionClassifier": "quenched.estimators.outliers",
    "InversePotential": "quenched.estimators.inverse_potential",
    "LVQClassifier": "quenched.estimators.lvq",
    "SelectionClassifier": "quenched.estimators.selection",
    "SelectionRegressor": "quenched.estimators.selection",
    "SoftSelectionClassifier": "quenched.estimators.outliers",
    "VQClusterer": "quenched.estimators.prototypes",
}

__all__ = [
    "AnnealedMixture",
    "ClusterFinder",
    "ClusterRegressor",
    "FieldClassifier",
    "FieldConditional",
    "FieldDensity",
    "FieldRegressor",
    "HardSelectionClassifier",
    "InversePotential",
    "LVQClassifier",
    "SelectionClassifier",
    "SelectionRegressor",
    "SoftSelectionClassifier",
    "VQClusterer",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'quenched.estimators' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
