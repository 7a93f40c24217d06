"""Prototypes: LVQ and VQ on-line learning, described exactly by differential equations for a few overlaps."""

from quenched.prototypes import theory
from quenched.prototypes.learner import Fitted, fit
from quenched.prototypes.model import (
    GLVQ,
    GMLVQ,
    LVQ1,
    LVQ21,
    RSLVQ,
    VQ,
    Clusters,
    Cost,
    Decay,
    Interpolated,
    Law,
    LVQPlus,
    NearOrigin,
    Overlaps,
    Rule,
    Schedule,
    Start,
    TwoClusters,
)  # fmt: skip
from quenched.prototypes.simulation import Chain, Direct, Simulator, measure
from quenched.prototypes.theory import asymptote, curve, escape_rate, optimum, stop_early

__all__ = [
    "GLVQ", "GMLVQ", "LVQ1", "LVQ21", "RSLVQ", "VQ", "Chain", "Clusters", "Cost", "Decay", "Direct", "Fitted",
    "Interpolated", "LVQPlus", "Law",
    "NearOrigin", "Overlaps", "Rule", "Schedule", "Simulator", "Start", "TwoClusters", "asymptote", "curve",
    "escape_rate", "fit", "measure", "optimum", "stop_early", "theory",
]  # fmt: skip
