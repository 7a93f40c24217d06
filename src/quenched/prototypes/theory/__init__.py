"""The answer as the dimension goes to infinity: flows, learning curves, rest states."""

from quenched.prototypes.theory.asymptotics import (
    asymptote,
    axis_states,
    escape_rate,
    optimum,
    unspecialised_overlaps,
)
from quenched.prototypes.theory.dynamics import State, curve, error, field, state

__all__ = [
    "State",
    "asymptote",
    "axis_states",
    "curve",
    "error",
    "escape_rate",
    "field",
    "optimum",
    "state",
    "unspecialised_overlaps",
]
