"""The answer as $N \\to \\infty$: states by replica theory, their branches, and the transitions between them."""

from quenched.outliers.theory import printed
from quenched.outliers.theory.asymptotics import asymptote
from quenched.outliers.theory.curves import curve
from quenched.outliers.theory.lines import transitions
from quenched.outliers.theory.soft import problem
from quenched.outliers.theory.states import BRANCHES, Branch, State, state

__all__ = ["BRANCHES", "Branch", "State", "asymptote", "curve", "printed", "problem", "state", "transitions"]
