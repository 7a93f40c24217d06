"""Mixtures: maximum-likelihood density estimation by deterministic annealing, and its phases."""

from quenched.mixtures import theory
from quenched.mixtures.learner import Fitted, fit
from quenched.mixtures.model import (
    Annealed,
    Diagonal,
    Full,
    Law,
    MaximumLikelihood,
    RandomStart,
    Rule,
    Spherical,
    Start,
    TwoGaussians,
)
from quenched.mixtures.simulation import measure
from quenched.mixtures.theory import Phase, curve, optimum, phase_lines, transitions

__all__ = [
    "Annealed", "Diagonal", "Fitted", "Full", "Law", "MaximumLikelihood", "Phase", "RandomStart", "Rule", "Spherical", "Start",
    "TwoGaussians", "curve", "fit", "measure", "optimum", "phase_lines", "theory", "transitions",
]  # fmt: skip
