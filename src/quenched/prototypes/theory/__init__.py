"""The answer as the dimension goes to infinity: flows, learning curves, rest states."""

from quenched.prototypes.theory.asymptotics import asymptote, escape_rate, optimum
from quenched.prototypes.theory.dynamics import State, curve, error, field, state
from quenched.prototypes.theory.rest_states import axis_states, unspecialised_overlaps

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
