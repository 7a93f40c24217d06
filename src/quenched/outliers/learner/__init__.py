"""The procedure: EM with soft or hard selection, on data and on simulated samples, in classes or around models."""

from quenched.outliers.learner.around import Selected, iterate, threshold, whole
from quenched.outliers.learner.classes import Freedom, Rows, State
from quenched.outliers.learner.evidence import Evidence, weigh_evidence
from quenched.outliers.learner.fit import Fitted, fit, fit_classes
from quenched.outliers.learner.labels import Labels
from quenched.outliers.learner.search import Learned, learn
from quenched.outliers.learner.select import WIDEST, Selection, select_labels, select_values
from quenched.outliers.learner.values import Values

__all__ = [
    "WIDEST",
    "Evidence",
    "Fitted",
    "Freedom",
    "Labels",
    "Learned",
    "Rows",
    "Selected",
    "Selection",
    "State",
    "Values",
    "fit",
    "fit_classes",
    "iterate",
    "learn",
    "select_labels",
    "select_values",
    "threshold",
    "weigh_evidence",
    "whole",
]
