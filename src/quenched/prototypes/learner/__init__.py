"""The procedure: prototypes trained on a finite table of examples."""

from quenched.prototypes.learner.check import HeldOut, fit_means, hold_out
from quenched.prototypes.learner.descent import Descent, distances
from quenched.prototypes.learner.fit import Fitted, Trace, fit

__all__ = ["Descent", "Fitted", "HeldOut", "Trace", "distances", "fit", "fit_means", "hold_out"]
