"""Processes: learning curves and bootstrap estimates of Gaussian processes on real data, without resampling."""

from quenched.processes import theory
from quenched.processes.learner import Fitted, fit, most_likely
from quenched.processes.model import Empirical, FixedTotal, GaussianProcess, Law, PoissonTotal, Rule, Total
from quenched.processes.practice import Evidence, PredictedError, curve, examples_for, forecast, tune
from quenched.processes.simulation import LatinHypercube, Plain, Simulator, measure
from quenched.processes.theory import Cavity, Variational

__all__ = [
    "Cavity",
    "Empirical",
    "Evidence",
    "Fitted",
    "FixedTotal",
    "GaussianProcess",
    "LatinHypercube",
    "Law",
    "Plain",
    "PoissonTotal",
    "PredictedError",
    "Rule",
    "Simulator",
    "Total",
    "Variational",
    "curve",
    "examples_for",
    "fit",
    "forecast",
    "measure",
    "most_likely",
    "theory",
    "tune",
]
