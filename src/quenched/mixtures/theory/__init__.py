"""The answer as $N \\to \\infty$: states by replica theory, the lines between phases, and the Bayes-optimal error."""

from quenched.mixtures.theory.curve import curve
from quenched.mixtures.theory.optimum import optimum
from quenched.mixtures.theory.rows import rows_needed
from quenched.mixtures.theory.state import Phase, State, error, splitting, state
from quenched.mixtures.theory.transitions import phase_lines, transitions

__all__ = [
    "Phase", "State", "curve", "error", "optimum", "phase_lines", "rows_needed", "splitting", "state", "transitions",
]  # fmt: skip
