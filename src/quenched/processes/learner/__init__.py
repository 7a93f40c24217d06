"""The procedure: Gaussian-process regression on a table, and its hyperparameters by the evidence."""

from quenched.processes.learner.evidence import default_rule, most_likely
from quenched.processes.learner.fit import Fitted, fit

__all__ = ["Fitted", "default_rule", "fit", "most_likely"]
