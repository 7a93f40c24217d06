"""The procedure: EM with soft or hard selection, on real data and on simulated samples."""

from quenched.outliers.learner.classes import Freedom, Rows, State
from quenched.outliers.learner.fit import Fitted, fit, fit_classes
from quenched.outliers.learner.search import Learned, learn

__all__ = ["Fitted", "Freedom", "Learned", "Rows", "State", "fit", "fit_classes", "learn"]
