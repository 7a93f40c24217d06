"""The answer as $N \\to \\infty$: states by replica theory, the lines between phases, and the Bayes-optimal error."""

from quenched.mixtures.theory.lines import phase_lines
from quenched.mixtures.theory.states import Phase, State, curve, error, optimum, splitting, state

__all__ = ["Phase", "State", "curve", "error", "optimum", "phase_lines", "splitting", "state"]
