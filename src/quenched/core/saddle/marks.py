"""Special points along finished branches: where a quantity takes a value, where two free energies are equal."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import jax
import numpy as np

from quenched.core.saddle import path
from quenched.core.saddle.branch import Branch
from quenched.core.saddle.theory import Point
from quenched.core.types import InputError, Outcome, double

NOISE = 1e-12
"""A difference of free energies that is a smaller share of them has no sign."""


@double
def locate(branch: Branch, quantity: str | Callable[[Point], float], value: float = 0.0) -> tuple[Point, ...]:
    """Where a quantity along a branch takes a value, in the order of the branch.

    Args:
        branch: from `follow`, or one of its arms.
        quantity: `"free_energy"`, the name of a reading, or a function of a `Point`; it may be infinite on one side.
        value: the wanted value.

    Returns:
        Points whose residual includes the deviation from the value; `failed` where the quantity jumps over it.

    Examples:
        >>> from quenched.core.saddle import Landscape, Setting, follow
        >>> line = follow(Landscape(equations=lambda x, p, _: x - p**3), [0.0], Setting(0.0), "control", (0.0, 2.0))
        >>> round(locate(line, lambda point: point.x[0], 1.0)[0].control, 9)
        1.0
    """

    def test(point: Point) -> float:
        return float(quantity(point) if callable(quantity) else _named(point, quantity)) - value

    knots = branch.knots
    values = [test(_point(branch, k)) for k in range(len(knots))]
    marks = []
    for (a, b), ends in zip(itertools.pairwise(knots), itertools.pairwise(values), strict=True):
        if np.isnan(ends).any() or (ends[0] >= 0) == (ends[1] >= 0):
            continue
        state, outcome = path.zero_between(branch.course, a, b, lambda s: test(s.point), ends)
        if state is None:
            y = (a.z + b.z) / 2 * branch.course.unit
            marks.append(Point(y[:-1], np.nan, (), -1, np.inf, outcome, float(y[-1])))
        else:
            point = state.point
            marks.append(point._replace(residual=max(point.residual, abs(test(point))), outcome=outcome))
    return tuple(marks)


def _named(point: Point, name: str) -> float:
    return point.free_energy if name == "free_energy" else getattr(point.readings, name)


def _point(branch: Branch, k: int) -> Point:
    """A state that is stored."""
    readings = jax.tree.map(lambda values: values[k], branch.readings)
    x, f, unstable, left = branch.x[k], float(branch.free_energy[k]), int(branch.unstable[k]), float(branch.residual[k])
    return Point(x, f, readings, unstable, left, Outcome.converged, float(branch.control[k]))


@double
def crossings(a: Branch, b: Branch) -> tuple[Point, ...]:
    """Where the free energies of two branches are equal at the same control: first-order transitions.

    A branch with folds is cut into arms; a branch given twice is compared with itself, arm by arm. States are solved
    for again at each control, so a crossing is as exact as they are.

    Args:
        a: a branch with a free energy.
        b: another, of the same theory.

    Returns:
        Points in order of the control, each with the state on either branch; none where branches do not cross.

    Raises:
        InputError: if only equations are known.

    Examples:
        >>> from quenched.core.saddle import Landscape, Setting, follow
        >>> well = Landscape(lambda x, h, _: (x[0] ** 2 - 1) ** 2 - h * x[0])
        >>> whole = follow(well, [1.2], Setting(2.0), "control", (-2.0, 2.0), upwards=False)
        >>> abs(crossings(whole, whole)[0].control) < 1e-9
        True
    """
    for name, branch in (("a", a), ("b", b)):
        if np.isnan(branch.free_energy).all():
            raise InputError(f"Argument `{name}` must be a branch of a free energy, but only its equations are known.")
    pairs = itertools.combinations(a.arms, 2) if a is b else itertools.product(a.arms, b.arms)
    marks = [mark for pair in pairs for mark in _cross(*pair)]
    return tuple(sorted(marks, key=lambda mark: mark.control))


def _cross(a: Branch, b: Branch) -> Iterator[Point]:
    """Where two arms have equal free energy."""

    def difference(c: float) -> float:
        A, B = a.find(c), b.find(c)
        return np.nan if A is None or B is None else A.free_energy - B.free_energy

    low, high = max(a.control[0], b.control[0]), min(a.control[-1], b.control[-1])
    every = np.unique(np.concatenate([a.control, b.control]))
    grid = every[(every >= low) & (every <= high)]
    delta = np.array([difference(c) for c in grid])
    scale = max(np.abs(arm.free_energy).max() for arm in (a, b))
    signed = np.abs(delta) > NOISE * scale  # not where branches meet, nor where a state was not found
    for (c0, d0), (c1, d1) in itertools.pairwise(zip(grid[signed], delta[signed], strict=True)):
        if (d0 > 0) != (d1 > 0):
            yield _equal(a, b, difference, c0, c1)


def _equal(a: Branch, b: Branch, difference: Callable[[float], float], c0: float, c1: float) -> Point:
    """The control between two others where the free energies are equal."""
    try:
        c = path.find_root(difference, c0, c1)
    except ValueError:  # a state was lost on the way
        c = (c0 + c1) / 2
    A, B = a.find(c), b.find(c)
    if A is None or B is None:
        return Point(np.full((2, a.x.shape[1]), np.nan), np.nan, (), -1, np.inf, Outcome.failed, c)
    off = max(abs(A.free_energy - B.free_energy), A.residual, B.residual)
    return Point(np.array([A.x, B.x]), A.free_energy, (A.readings, B.readings), -1, off, Outcome.converged, c)
