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
from quenched.mixtures.practice import FittedClusters, find_clusters
from quenched.mixtures.simulation import measure
from quenched.mixtures.theory import Phase, curve, optimum, phase_lines, rows_needed, transitions

__all__ = [
    "Annealed", "Diagonal", "Fitted", "FittedClusters", "Full", "Law", "MaximumLikelihood", "Phase", "RandomStart",
    "Rule", "Spherical", "Start", "TwoGaussians", "curve", "find_clusters", "fit", "measure", "optimum", "phase_lines",
    "rows_needed", "theory", "transitions",
]  # fmt: skip
