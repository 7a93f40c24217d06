"""The procedure: deterministic annealing of a mixture of Gaussians, of any number and on any table.

Files: `em` is EM for spherical and diagonal widths, many mixtures side by side; `annealing` lowers the width from split
to split, `fit` is the verb.
"""

from quenched.mixtures.learner.em import Climbed, Freedom, Gaussians, climb, rows_of
from quenched.mixtures.learner.fit import Fitted, fit, fit_path

__all__ = ["Climbed", "Fitted", "Freedom", "Gaussians", "climb", "fit", "fit_path", "rows_of"]
