"""Special points along finished branches: where a function takes a value, where two free energies are equal."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.core.saddle import path
from quenched.core.saddle.branch import Branch, Mark
from quenched.core.saddle.path import Course, Knot, State
from quenched.core.types import Array, InputError, Outcome, double

NOISE = 1e-12
"""A difference of free energies that is a smaller share of them has no sign."""


def first(marks: tuple[Mark, ...]) -> Mark:
    """The first of some marks; where there is none, a mark whose outcome is `absent`."""
    return marks[0] if marks else Mark(np.nan, np.full(0, np.nan), np.nan, np.nan, Outcome.absent)


@double
def locate(function: Callable[[Array, Array, Any], Array], branch: Branch, value: float = 0.0) -> tuple[Mark, ...]:
    """Where a function along a branch takes a value, in the order of the branch.

    Args:
        function: a JAX function of order parameters, control and args, like a free energy; it may be infinite on one
            side. It is compiled, so declare it once.
        branch: from `follow` or `switch`.
        value: the wanted value.

    Returns:
        Marks whose residual includes the deviation from the value; `failed` where the function jumps over it.

    Examples:
        >>> from quenched.core.saddle import Landscape, follow
        >>> line = follow(Landscape(equations=lambda x, p, _: x - p**3), [0.0], 0.0, (0.0, 2.0))
        >>> round(locate(lambda x, p, _: x[0], line, 1.0)[0].control, 9)
        1.0
    """
    course = branch.course

    def test(z: np.ndarray) -> float:
        y = z * course.unit
        return float(_scalar(function, y[:-1], y[-1], course.args)) - value

    knots = branch.knots
    values = [test(knot.z) for knot in knots]
    marks = []
    for (a, b), ends in zip(itertools.pairwise(knots), itertools.pairwise(values), strict=True):
        if np.isnan(ends).any() or (ends[0] >= 0) == (ends[1] >= 0):
            continue
        state, outcome = path.zero_between(course, a, b, lambda s: test(s.z), ends)
        z = (a.z + b.z) / 2 if state is None else state.z
        y = z * course.unit
        f, off = (np.nan, np.inf) if state is None else (state.free_energy, max(state.residual, abs(test(z))))
        marks.append(Mark(float(y[-1]), y[:-1], f, off, outcome))
    return tuple(marks)


@double
def crossings(a: Branch, b: Branch) -> tuple[Mark, ...]:
    """Where the free energies of two branches are equal at the same control: first-order transitions.

    A branch with folds is cut into arms; a branch given twice is compared with itself, arm by arm. States are solved
    for again at each control, so a crossing is as exact as they are.

    Args:
        a: a branch with a free energy.
        b: another, of the same landscape.

    Returns:
        Marks in order of the control, each with the state on either branch; none where branches do not cross.

    Raises:
        InputError: if only equations are known.

    Examples:
        >>> from quenched.core.saddle import Landscape, follow
        >>> well = Landscape(lambda x, h, _: (x[0] ** 2 - 1) ** 2 - h * x[0])
        >>> whole = follow(well, [1.2], 2.0, (-2.0, 2.0), upwards=False)
        >>> abs(crossings(whole, whole)[0].control) < 1e-9
        True
    """
    for name, branch in (("a", a), ("b", b)):
        if branch.course.landscape.free_energy is None:
            raise InputError(f"Argument `{name}` must be a branch of a free energy, but only its equations are known.")
    arms_a, arms_b = list(_arms(a)), list(_arms(b))
    pairs = itertools.combinations(arms_a, 2) if a is b else itertools.product(arms_a, arms_b)
    marks = [mark for pair in pairs for mark in _cross(*pair)]
    return tuple(sorted(marks, key=lambda mark: mark.control))


def at(branch: Branch, control: float) -> np.ndarray | None:
    """The state `[d]` of a branch without folds at a control, solved for again; None where it is lost.

    Args:
        branch: a piece along which the control grows or falls.
        control: between its ends.
    """
    (arm,) = _arms(branch)
    state = arm.at(control)
    return None if state is None else state.z[:-1] * arm.course.unit[:-1]


@functools.partial(jax.jit, static_argnums=0)
def _scalar(function: Callable[[Array, Array, Any], Array], x: Array, control: Array, args: Any) -> Array:
    """A function of a state, compiled."""
    return function(x, control, args)


class _Arm(NamedTuple):
    """A piece of a branch along which the control grows."""

    course: Course
    control: np.ndarray  # [n], increasing
    knots: list[Knot]
    scale: float  # of the free energy

    def at(self, c: float) -> State | None:
        """The state at a control, solved for again."""
        from scipy.optimize import brentq

        k = int(np.clip(np.searchsorted(self.control, c) - 1, 0, len(self.control) - 2))
        a, b = self.knots[k : k + 2]
        wanted = np.clip(c / self.course.unit[-1], a.z[-1], b.z[-1])
        s = brentq(lambda s: path.between(a, b, s)[-1] - wanted, 0.0, 1.0)
        guess = path.between(a, b, s)  # pyright: ignore[reportArgumentType]
        return path.correct(self.course, guess, np.eye(guess.size)[-1])


def _arms(branch: Branch) -> Iterator[_Arm]:
    """The pieces of a branch between folds."""
    knots, c, scale = branch.knots, branch.control, float(np.abs(branch.free_energy).max())
    grows = np.diff(c) > 0
    cuts = [0, *(np.flatnonzero(grows[1:] != grows[:-1]) + 1), len(c) - 1]
    for start, stop in itertools.pairwise(cuts):
        piece, control = knots[start : stop + 1], c[start : stop + 1]
        if control[-1] < control[0]:
            piece, control = [Knot(knot.z, -knot.tangent) for knot in reversed(piece)], control[::-1]
        if stop > start:
            yield _Arm(branch.course, control, piece, scale)


def _cross(a: _Arm, b: _Arm) -> Iterator[Mark]:
    """Where two arms have equal free energy."""

    def difference(c: float) -> float:
        A, B = a.at(c), b.at(c)
        return np.nan if A is None or B is None else A.free_energy - B.free_energy

    low, high = max(a.control[0], b.control[0]), min(a.control[-1], b.control[-1])
    every = np.unique(np.concatenate([a.control, b.control]))
    grid = every[(every >= low) & (every <= high)]
    delta = np.array([difference(c) for c in grid])
    signed = np.abs(delta) > NOISE * max(a.scale, b.scale)  # not where branches meet, nor where a state was not found
    for (c0, d0), (c1, d1) in itertools.pairwise(zip(grid[signed], delta[signed], strict=True)):
        if (d0 > 0) != (d1 > 0):
            yield _equal(a, b, difference, c0, c1)


def _equal(a: _Arm, b: _Arm, difference: Callable[[float], float], c0: float, c1: float) -> Mark:
    """The control between two others where the free energies are equal."""
    from scipy.optimize import brentq

    try:
        c = float(brentq(difference, c0, c1, xtol=1e-15, rtol=1e-14))  # pyright: ignore[reportArgumentType]
    except ValueError:  # a state was lost on the way
        c = (c0 + c1) / 2
    A, B = a.at(c), b.at(c)
    if A is None or B is None:
        return Mark(c, np.full((2, a.course.unit.size - 1), np.nan), np.nan, np.inf, Outcome.failed)
    x = np.array([A.z[:-1] * a.course.unit[:-1], B.z[:-1] * b.course.unit[:-1]])
    off = max(abs(A.free_energy - B.free_energy), A.residual, B.residual)
    return Mark(c, x, A.free_energy, off, Outcome.converged)
