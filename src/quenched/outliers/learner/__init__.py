"""The procedure: EM with soft or hard selection, on real data and on simulated samples.

Files: `classes` is the model with its E-step and M-step, `search` is EM and the descent by single rows, `fit` is the
front door for real data. `measure` runs the same `learn` on its samples.
"""

from quenched.outliers.learner.classes import Freedom, Rows, State
from quenched.outliers.learner.fit import Fitted, fit, fit_classes
from quenched.outliers.learner.search import Learned, learn

__all__ = ["Fitted", "Freedom", "Learned", "Rows", "State", "fit", "fit_classes", "learn"]
