"""The procedure: prototypes trained on-line on a finite table of examples."""

from quenched.prototypes.learner.fit import Fitted, Trace, fit

__all__ = ["Fitted", "Trace", "fit"]
