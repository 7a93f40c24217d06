r"""The learners as scikit-learn estimators: `fit`, `predict`, pipelines, searches, weights.

A class here checks its input, calls the learner of its science and keeps the result in attributes; it trains
nothing by itself. Choices are objects: `LVQClassifier(rule=LVQ21(0.05), window=0.1)`. Where a learner did not come
to an end the estimator warns, and `outcome_` says what happened; the attributes are finite all the same.
"""

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
