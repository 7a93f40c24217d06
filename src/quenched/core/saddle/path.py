r"""The curve of states in the space of order parameters and control, and how to stand on it.

With $z = (x, c)$, each component in units of its box or range, the states $G(z) = 0$ are a curve. Its tangent $t$ spans
the null space of $M = [\partial G/\partial x\,|\,\partial G/\partial c]$. A point of the curve is found by Newton's
method on $G(z) = 0$, $n \cdot z = b$, which is regular at folds for $n = t$.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from quenched.core.saddle.theory import Evaluation, Point, Theory, evaluate
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


@dataclasses.dataclass(frozen=True, eq=False)
class State:
    """All that is known at one point of the curve."""

    z: Vector  # [d + 1], in units of the course
    at: Evaluation
    unit: Vector  # [d + 1]
    M: np.ndarray  # [d, d + 1], the derivatives of the equations in units of the course
    along: Vector  # the direction that the tangent should have

    @functools.cached_property
    def tangent(self) -> Vector:
        """The unit tangent; at a branch point, the one nearest to the direction it should have."""
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

    @functools.cached_property
    def point(self) -> Point:
        """The state in its own units."""
        y, left = self.z * self.unit, float(np.abs(self.at.equations).max())
        unstable = count_unstable(self.at.slopes[:, :-1])
        return Point(y[:-1], self.at.free_energy, self.at.readings, unstable, left, Outcome.converged, float(y[-1]))


def count_unstable(J: np.ndarray) -> int:
    """The number of directions in which a state is unstable: eigenvalues with a negative real part."""
    return int(np.sum(np.linalg.eigvals(J).real < 0)) if np.all(np.isfinite(J)) else -1


@dataclasses.dataclass(frozen=True, eq=False)
class Course:
    """What is followed, within which bounds, and in which units."""

    theory: Theory
    theta: Any
    along: str
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

    def evaluate(self, z: Vector, along: Vector) -> State:
        """Free energy, equations and derivatives at a point."""
        y = z * self.unit
        found = evaluate(self.theory, y[:-1], self.theta, self.along, float(y[-1]))
        return State(z, found, self.unit, found.slopes * self.unit / self.rows[:, None], along)

    @np.errstate(over="ignore")  # where squares of slopes are no numbers, the units stay as they are
    def rescale(self, state: State) -> Course:
        """The course with the units of its equations grown to the slopes at a state."""
        size = np.linalg.norm(state.at.slopes * self.unit, axis=1)
        return dataclasses.replace(self, steepest=np.fmax(self.steepest, np.where(size < np.inf, size, 0.0)))

    def margins(self, z: Vector) -> Vector:
        """Distance of each component to its nearer bound: negative outside."""
        return np.minimum(z - self.low / self.unit, self.high / self.unit - z)


@np.errstate(over="ignore", invalid="ignore")  # a step too far is taken back
def correct(course: Course, guess: Vector, normal: Vector) -> State | None:
    """The state next to `guess` in the plane through it with the given normal; None if there is none."""
    z, target, before = guess, normal @ guess, np.inf
    for _ in range(NEWTON):
        state = course.evaluate(z, normal)
        if not (np.isfinite(state.at.equations).all() and np.isfinite(state.M).all()):
            return None
        A, b = np.vstack([state.M, normal]), np.append(state.at.equations / course.rows, normal @ z - target)
        move = np.linalg.lstsq(A, b, rcond=NULL)[0]
        if np.linalg.norm(A @ move - b) > max(1e-3 * np.linalg.norm(b), 1e-11):
            return None  # a singular system away from the curve
        size = np.linalg.norm(move)
        if size < EXACT or (size < NEAR and size > before / 2):
            return state
        z, before = z - move, size
    return None


def between(a: State, b: State, s: float) -> Vector:
    """The cubic through two states with their tangents, at the share `s` of the way."""
    L = np.linalg.norm(b.z - a.z)
    value = (1 - s) ** 2 * ((1 + 2 * s) * a.z + s * L * a.tangent)
    return value + s**2 * ((3 - 2 * s) * b.z - (1 - s) * L * b.tangent)


def find_root(function: Callable[[float], float], low: float, high: float, width: float = 1e-15) -> float:
    """The zero of a function between two places where its signs differ (else a `ValueError`), by Brent's method."""
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=width, rtol=1e-14))  # pyright: ignore[reportArgumentType]


def zero_between(
    course: Course, a: State, b: State, test: Callable[[State], float], ends: tuple[float, float], width: float = 1e-15
) -> tuple[State | None, Outcome]:
    """The state between two others where a test function, with values `ends` there, changes sign.

    The function may be infinite on one side. The outcome is `failed` where it jumps over zero or the curve is lost.
    """
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
        found = state(find_root(value, 0.0, 1.0, width))
        left = abs(test(found))
    except (ArithmeticError, ValueError):  # the curve was lost, or the test has no number
        return None, Outcome.failed
    return found, Outcome.converged if left <= max(JUMP * min(abs(ends[0]), abs(ends[1])), 1e-9) else Outcome.failed
