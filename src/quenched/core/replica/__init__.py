"""Zero-temperature replica theory of any single-vector energy: declare a `Problem`, ask for its `curve`."""

from quenched.core.replica.curve import curve
from quenched.core.replica.problem import Classes, Problem, check
from quenched.core.replica.state import State, averages, equations, free_energy, stability, state
from quenched.core.replica.transitions import transitions

__all__ = [
    "Classes",
    "Problem",
    "State",
    "averages",
    "check",
    "curve",
    "equations",
    "free_energy",
    "stability",
    "state",
    "transitions",
]
