"""The answer as the dimension goes to infinity: flows, learning curves, rest states."""

from quenched.prototypes.theory.asymptote import asymptote, escape_rate
from quenched.prototypes.theory.curve import curve
from quenched.prototypes.theory.optimum import optimum
from quenched.prototypes.theory.rest_states import axis_states, unspecialised_overlaps
from quenched.prototypes.theory.state import State, error, field, state
from quenched.prototypes.theory.stopping import stop_early

__all__ = [
    "State", "asymptote", "axis_states", "curve", "error", "escape_rate", "field", "optimum", "state", "stop_early",
    "unspecialised_overlaps",
]  # fmt: skip
