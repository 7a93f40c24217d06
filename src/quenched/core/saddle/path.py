r"""The curve of states in the space of order parameters and control, and how to stand on it.

With $z = (x, c)$, each component in units of its box or range, the states $G(z) = 0$ are a curve. Its tangent $t$ spans
the null space of $M = [\partial G/\partial x\,|\,\partial G/\partial c]$. A point of the curve is found by Newton's
method on $G(z) = 0$, $n \cdot z = b$, which is regular at folds for $n = t$.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from quenched.core.saddle.landscape import Landscape, evaluate, index
from quenched.core.types import Outcome

EXACT, NEAR = 1e-13, 1e-7
"""Newton's method ends with a step below the first, or with one below the second that rounding keeps from shrinking."""
NEWTON = 12
"""Steps of Newton's method at most."""
NULL = 1e-8
"""A singular value below this is zero: rounding errors of equations would be magnified beyond use."""
JUMP = 1e-3
"""A test function whose value at its zero is more than this share of its values beside it has none: it jumps."""

Vector = np.ndarray


class Knot(NamedTuple):
    """A point of the curve with the unit tangent there."""

    z: Vector  # [d + 1], in units of the course
    tangent: Vector


@dataclasses.dataclass(frozen=True, eq=False)
class State:
    """All that is known at one point of the curve; it serves as a knot."""

    z: Vector
    free_energy: float
    G: Vector  # [d]
    slopes: np.ndarray  # [d, d + 1], derivatives of G by order parameters and control
    M: np.ndarray  # [d, d + 1], the same in units of the course
    along: Vector  # the way the tangent points

    @functools.cached_property
    def tangent(self) -> Vector:
        """The unit tangent; at a branch point, the one nearest to the way it shall point."""
        if not np.isfinite(self.M).all():
            return self.along
        _, s, right = np.linalg.svd(self.M)
        null = right[np.append(s < NULL, True)]
        t = null.T @ (null @ self.along)
        size = np.linalg.norm(t)
        return t / size if size > NULL else right[-1]

    @property
    def bordered(self) -> float:
        """The determinant of `[M; tangent]`: it vanishes at branch points only, not at folds."""
        return float(np.linalg.det(np.vstack([self.M, self.tangent])))

    @property
    def residual(self) -> float:
        """How far the equations are from being fulfilled."""
        return float(np.abs(self.G).max())

    @property
    def unstable(self) -> int:
        """The number of unstable directions."""
        return index(self.slopes[:, :-1])


@dataclasses.dataclass(frozen=True, eq=False)
class Course:
    """What is followed, within which bounds, and in which units."""

    landscape: Landscape
    args: Any
    low: Vector  # [d + 1], box and lower limit of the control
    high: Vector
    steepest: Vector  # [d], the largest slope of each equation seen so far
    step: float
    max_points: int

    @functools.cached_property
    def unit(self) -> Vector:
        """The unit of each component: the width of its box, 1 where it has none."""
        width = self.high - self.low
        return np.where(np.isfinite(width), width, 1.0)

    @functools.cached_property
    def rows(self) -> Vector:
        """The unit of each equation."""
        return np.where(self.steepest > 0, self.steepest, 1.0)

    def at(self, z: Vector, along: Vector) -> State:
        """Free energy, equations and derivatives at a point."""
        f, G, M = evaluate(self.landscape, z * self.unit, self.args)
        return State(z, float(f), G, M, M * self.unit / self.rows[:, None], along)

    def measured(self, state: State) -> Course:
        """The course with the units of its equations grown to the slopes at a state."""
        size = np.linalg.norm(state.slopes * self.unit, axis=1)
        return dataclasses.replace(self, steepest=np.fmax(self.steepest, np.where(size < np.inf, size, 0.0)))

    def margins(self, z: Vector) -> Vector:
        """Distance of each component to its nearer bound: negative outside."""
        return np.minimum(z - self.low / self.unit, self.high / self.unit - z)


def correct(course: Course, guess: Vector, normal: Vector) -> State | None:
    """The state next to `guess` in the plane through it with the given normal; None if there is none."""
    z, target, before = guess, normal @ guess, np.inf
    for _ in range(NEWTON):
        state = course.at(z, normal)
        if not (np.isfinite(state.G).all() and np.isfinite(state.M).all()):
            return None
        A, b = np.vstack([state.M, normal]), np.append(state.G / course.rows, normal @ z - target)
        move = np.linalg.lstsq(A, b, rcond=NULL)[0]
        if np.linalg.norm(A @ move - b) > max(1e-3 * np.linalg.norm(b), 1e-11):
            return None  # a singular system away from the curve
        size = np.linalg.norm(move)
        if size < EXACT or (size < NEAR and size > before / 2):
            return state
        z, before = z - move, size
    return None


def between(a: Knot | State, b: Knot | State, s: float) -> Vector:
    """The cubic through two knots with their tangents, at the share `s` of the way."""
    L = np.linalg.norm(b.z - a.z)
    value = (1 - s) ** 2 * ((1 + 2 * s) * a.z + s * L * a.tangent)
    return value + s**2 * ((3 - 2 * s) * b.z - (1 - s) * L * b.tangent)


def zero_between(
    course: Course,
    a: Knot | State,
    b: Knot | State,
    test: Callable[[State], float],
    ends: tuple[float, float],
) -> tuple[State | None, Outcome]:
    """The state between two knots where a test function changes sign.

    Args:
        course: what is followed.
        a: one knot.
        b: the next.
        test: the function; it may be infinite on one side.
        ends: its values at the knots.

    Returns:
        The state, and `converged`; `failed` where the function jumps over zero or the curve is lost.
    """
    from scipy.optimize import brentq

    chord = (b.z - a.z) / np.linalg.norm(b.z - a.z)

    def state(s: float) -> State:
        found = correct(course, between(a, b, s), chord)
        if found is None:
            raise ArithmeticError
        return found

    def value(s: float) -> float:
        known = {0.0: ends[0], 1.0: ends[1]}.get(s)
        return test(state(s)) if known is None else known

    try:
        found = state(float(brentq(value, 0.0, 1.0, xtol=1e-15, rtol=1e-14)))  # pyright: ignore[reportArgumentType]
        left = abs(test(found))
    except (ArithmeticError, ValueError):  # the curve was lost, or the test has no number
        return None, Outcome.failed
    return found, Outcome.converged if left <= max(JUMP * min(abs(ends[0]), abs(ends[1])), 1e-9) else Outcome.failed
