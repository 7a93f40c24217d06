"""Stationary points of a free energy of a few order parameters: all of them, their branches, folds and crossings.

A `Landscape` is a free energy (or its equations of state) as a function of the order parameters `x`, one scalar
`control` and further arguments. `stationary_points` finds every state in a box at a fixed control; `follow` continues
one of them in the control through folds; `switch` turns off at a bifurcation; `crossings` finds where two branches
have equal free energy and `locate` where any function along a branch takes a value. `solve` is the same equations as a
pure JAX function with implicit derivatives.

Nothing raises in the middle of a sweep: each value has a residual and an `Outcome` beside it. What is compiled is
compiled once for a landscape and a number of order parameters, so declare the functions once, outside loops. Not
covered: more than about ten order parameters, states that are not isolated, and bifurcations where two eigenvalues
vanish at once.
"""

from quenched.core.saddle.branch import Branch, End, Mark, follow, switch
from quenched.core.saddle.landscape import Landscape, solve
from quenched.core.saddle.marks import at, crossings, first, locate
from quenched.core.saddle.points import Point, Points, stationary_points

__all__ = [
    "Branch",
    "End",
    "Landscape",
    "Mark",
    "Point",
    "Points",
    "at",
    "crossings",
    "first",
    "follow",
    "locate",
    "solve",
    "stationary_points",
    "switch",
]
