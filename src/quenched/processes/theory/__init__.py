"""The answer without training: averages over data sets, their self-check, and what lies beyond the data."""

from quenched.processes.theory.closures import Cavity, Closure, Variational
from quenched.processes.theory.curve import curve
from quenched.processes.theory.state import State, state

__all__ = ["Cavity", "Closure", "State", "Variational", "curve", "state"]
