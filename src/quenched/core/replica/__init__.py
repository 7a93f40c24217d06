"""Zero-temperature replica theory of any single-vector energy: declare a `Problem`, ask for its `curve`."""

from quenched.core.replica.problem import Classes, Problem, check
from quenched.core.replica.solution import State, averages, curve, equations, free_energy, stability, state

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
]
