"""Outliers: EM learning that selects informative examples, softly or hard, and its replica theory."""

from quenched.outliers import theory
from quenched.outliers.learner import Fitted, fit
from quenched.outliers.model import (
    CarriedStart,
    Contaminated,
    Gibbs,
    HardSelection,
    Hebb,
    Law,
    RandomStart,
    Rule,
    SoftSelection,
    Start,
    TeacherStart,
)
from quenched.outliers.simulation import measure
from quenched.outliers.theory import Branch, asymptote, curve, transitions

__all__ = [
    "Branch",
    "CarriedStart",
    "Contaminated",
    "Fitted",
    "Gibbs",
    "HardSelection",
    "Hebb",
    "Law",
    "RandomStart",
    "Rule",
    "SoftSelection",
    "Start",
    "TeacherStart",
    "asymptote",
    "curve",
    "fit",
    "measure",
    "theory",
    "transitions",
]
