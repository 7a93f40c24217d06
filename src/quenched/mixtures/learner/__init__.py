"""The procedure: EM for two centres of a given width, and deterministic annealing of any number on real data.

Files: `two_centres` is the paper's student as an iteration in one vector, many starts at once; `expectation` is EM for
spherical and diagonal widths, `annealing` lowers the width from split to split, `tree` writes the splits down, and
`fitting` is the front door.
"""

from quenched.mixtures.learner.fitting import Fitted, fit
from quenched.mixtures.learner.two_centres import Relaxed, energy, relax, spread, step

__all__ = ["Fitted", "Relaxed", "energy", "fit", "relax", "spread", "step"]
