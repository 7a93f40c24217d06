"""The procedure: EM with soft or hard selection on real data, and on many simulated samples at once.

Files: `em` is the student of the paper, many samples at once on a device; `selection` is EM and the descent by single
rows for any number of classes, on the host; `fitting` is the front door for real data.
"""

from quenched.outliers.learner.fitting import Fitted, fit, fit_classes

__all__ = ["Fitted", "fit", "fit_classes"]
