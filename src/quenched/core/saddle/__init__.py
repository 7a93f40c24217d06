"""Theories of a few order parameters: their states, branches, folds and crossings.

A `Theory` is one smooth kernel (unknowns, parameters) -> equations, free energy, readings; a `Landscape` is one made of
a plain free energy. `state` is a state as a pure JAX function with first and second derivatives: its search is
compiled. Everything else is driven from the host and compiles the kernel alone: `solve` finds the state near a start,
`follow` continues one in a control through folds; `crossings` finds where two branches have equal free energy and
`locate` where a quantity along a branch takes a value.

Nothing raises in the middle of a sweep: each value has a residual and an `Outcome` beside it. What is compiled is
compiled once for a theory, so declare it once, outside loops. Not covered: more than about ten order parameters,
states that are not isolated, and bifurcations where two eigenvalues vanish at once.
"""

from quenched.core.linear import namespace
from quenched.core.saddle.branch import Branch, End, crossings, follow, locate
from quenched.core.saddle.path import find_root
from quenched.core.saddle.state import Found, solve, state
from quenched.core.saddle.theory import Kernel, Landscape, Point, Setting, Theory, control_of, evaluate, iterate, move

__all__ = [
    "Branch",
    "End",
    "Found",
    "Kernel",
    "Landscape",
    "Point",
    "Setting",
    "Theory",
    "control_of",
    "crossings",
    "evaluate",
    "find_root",
    "follow",
    "iterate",
    "locate",
    "move",
    "namespace",
    "solve",
    "state",
]
