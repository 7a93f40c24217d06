"""Outliers: EM learning that selects informative examples, softly or hard, and its replica theory."""

from quenched.outliers import theory
from quenched.outliers.learner import Fitted, fit
from quenched.outliers.model import (
    CarriedStart,
    Contaminated,
    Covariance,
    Flips,
    Gibbs,
    HardSelection,
    Hebb,
    Iteration,
    Law,
    ModelLaw,
    ModelRule,
    RandomStart,
    Rule,
    Search,
    SelectedLogistic,
    SelectedSquares,
    Shrunk,
    SoftSelection,
    Spherical,
    Start,
    TeacherStart,
    WrongLabels,
    WrongTargets,
)
from quenched.outliers.simulation import measure
from quenched.outliers.theory import Branch, asymptote, curve, transitions

__all__ = [
    "Branch", "CarriedStart", "Contaminated", "Covariance", "Fitted", "Flips", "Gibbs", "HardSelection", "Hebb",
    "Iteration", "Law", "ModelLaw", "ModelRule", "RandomStart", "Rule", "Search", "SelectedLogistic", "SelectedSquares",
    "Shrunk", "SoftSelection", "Spherical", "Start", "TeacherStart", "WrongLabels", "WrongTargets", "asymptote",
    "curve", "fit", "measure", "theory", "transitions",
]  # fmt: skip
