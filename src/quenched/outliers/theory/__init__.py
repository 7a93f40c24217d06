"""The answer as $N \\to \\infty$: states by replica theory, their branches, and the transitions between them."""

from quenched.outliers.theory.asymptote import asymptote
from quenched.outliers.theory.curve import curve
from quenched.outliers.theory.state import BRANCHES, Branch, State, state
from quenched.outliers.theory.transitions import transitions

__all__ = ["BRANCHES", "Branch", "State", "asymptote", "curve", "state", "transitions"]
