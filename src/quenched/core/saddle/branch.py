r"""A branch of states: pseudo-arclength continuation in the control, through folds and past bifurcations.

From a state with unit tangent $t$ the next is predicted at $z + t\,\Delta s$ and corrected in the plane normal to $t$.
The step shrinks where the curve turns. Between two states a change of sign of $t_c$ (its component along the control)
marks a fold, one of $\det[M; t]$ a bifurcation; both are then located on the curve itself. `locate` and `crossings`
find other special points of finished branches.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from quenched.core import checks
from quenched.core.saddle import path
from quenched.core.saddle.path import Course, State
from quenched.core.saddle.theory import Point, Theory, control_of
from quenched.core.types import InputError, Outcome, double

SWERVE, STRAIGHT = 0.15, 0.03
"""Distance of a state from its prediction, in steps: above the first the step is halved, below the second it grows."""
SHORTEST = 1e-6
"""The curve is lost when a step must be shorter than this share of the longest."""
EDGE = 1e-9
"""What is nearer to a bound, in units of box and range, is on it."""
LEAP = 1e-3
"""A step shorter than this share of the longest is no leap to another branch."""
NEIGHBOUR = 1e-3
"""How far from a bifurcation, in those units, the states are that locate it: the error is the fourth power of it."""
ROUGH = 1e-3
"""How exact, as a share of a step, the place of a bifurcation is before those states are taken."""
NOISE = 1e-12
"""A difference of free energies that is a smaller share of them has no sign."""
SAME = 1e-5
"""Two points of the curve that are nearer, in those units, are one: a closed loop, the tip of a pitchfork."""


class End(enum.Enum):
    """Why a branch ends."""

    range = "the control reached the end of its range"
    box = "an order parameter reached the edge of the box"
    closed = "the branch returned to its start"
    steps = "the allowed number of points was reached"
    lost = "no next state was found"


@dataclasses.dataclass(frozen=True, eq=False)
class Branch:
    """States along a curve, in order. Located folds are among them."""

    control: np.ndarray  # [n]
    x: np.ndarray  # [n, d]
    free_energy: np.ndarray  # [n]; NaN where only equations are known
    readings: Any  # those of the kernel, each [n]
    unstable: np.ndarray  # [n] number of unstable directions
    residual: np.ndarray  # [n] largest absolute component of the equations
    states: list[State]  # the same, with their tangents
    folds: tuple[Point, ...]  # where the control turns back: spinodals
    bifurcations: tuple[Point, ...]  # where another branch passes through
    end: End
    outcome: Outcome  # converged: to its end; stalled: too many points; failed: lost, or no state at the start
    course: Course

    @functools.cached_property
    def arms(self) -> tuple[Branch, ...]:
        """The pieces between folds in the order of the branch, each turned so that its control grows."""
        moves = np.flatnonzero(np.diff(self.control))  # where the control is flat to rounding it has no direction
        grows = np.diff(self.control)[moves] > 0
        turns = np.flatnonzero(grows[1:] != grows[:-1]) + 1
        cuts = [0, *moves[turns], len(self.control) - 1]
        sides = np.where(grows[[0, *turns]], 1, -1) if moves.size else []
        return tuple(self._cut(a, b, side) for (a, b), side in zip(itertools.pairwise(cuts), sides, strict=False))

    def _cut(self, a: int, b: int, side: int) -> Branch:
        states = self.states[a : b + 1]
        if side < 0:
            states = [dataclasses.replace(state, along=-state.tangent) for state in states[::-1]]
        folds = [fold for fold in self.folds if fold.control in self.control[[a, b]]]
        return _branch(self.course, states, folds, list(self.bifurcations), self.end)

    @double
    def find(self, control: float) -> Point | None:
        """The state of an arm at a control, solved for again; None where there is none.

        Raises:
            InputError: if the branch has folds: take one of its `arms`.
        """
        c = self.control
        if not np.all(np.diff(c) >= 0):
            raise InputError("`find` must be asked of an arm, but the control of this branch does not only grow.")
        if not c[0] <= control <= c[-1] or len(c) < 2:
            return None
        k = int(np.clip(np.searchsorted(c, control) - 1, 0, len(c) - 2))
        a, b = self.states[k : k + 2]
        wanted = np.clip(control / self.course.unit[-1], a.z[-1], b.z[-1])
        s = path.find_root(lambda s: path.between(a, b, s)[-1] - wanted, 0.0, 1.0)
        guess = path.between(a, b, s)
        state = path.correct(self.course, guess, np.eye(guess.size)[-1])
        return None if state is None else state.point._replace(control=float(control))


@double
def follow(
    theory: Theory,
    start: Any,
    theta: Any,
    along: str,
    limits: tuple[float, float],
    *,
    upwards: bool = True,
    low: Any = -np.inf,
    high: Any = np.inf,
    step: float = 0.02,
    max_points: int = 2000,
) -> Branch:
    """Follow a state in the control, through folds, until the branch ends.

    Two folds within one step are not seen: a cusp asks for a shorter `step`.

    Args:
        theory: what is solved.
        start: near a state at `theta`, `[d]`; not at a bifurcation, where the direction is not known.
        theta: parameters, with the control where it begins.
        along: the control: the name of a field of `theta`, see `move`.
        limits: lowest and highest control.
        upwards: whether the control first grows.
        low: lower edges of the box of order parameters.
        high: upper edges. A box also sets the units in which an order parameter is long or short.
        step: the longest step, as a share of box and range.
        max_points: at most.

    Raises:
        InputError: if the range or the box is empty, or the start is outside.

    Examples:
        >>> from quenched.core.saddle import Landscape, Setting, follow
        >>> fold = Landscape(equations=lambda x, p, _: x**2 + p)
        >>> branch = follow(fold, [1.0], Setting(-1.0), "control", (-1.0, 1.0))
        >>> branch.end.name, len(branch.folds), abs(branch.folds[0].control) < 1e-12
        ('range', 1, True)
    """
    x = np.atleast_1d(np.asarray(start, dtype=np.float64))
    control, (least, most) = control_of(theta, along), (float(limit) for limit in limits)
    checks.finite("limits", (least, most))
    checks.finite("start", x)
    if not least < most:
        raise InputError(f"Argument `limits` must be a low and a high control, but {limits} was given.")
    if not least <= control <= most:
        raise InputError(f"Argument `control` must lie between {least:g} and {most:g}, but {control} was given.")
    low, high = (np.broadcast_to(np.asarray(edge, dtype=np.float64), x.shape) for edge in (low, high))
    if not np.all(low < high):
        raise InputError(f"Argument `low` must lie below `high`, but {low} and {high} were given.")
    if not np.all((low <= x) & (x <= high)):
        raise InputError(f"Argument `start` must lie in the box, but {x} was given.")
    checks.inside("step", step, 0, 1)
    max_points = checks.whole("max_points", max_points, least=2)
    bounds = np.append(low, least), np.append(high, most)
    course = Course(theory, theta, along, *bounds, np.zeros(x.size), float(step), max_points)
    up = np.eye(x.size + 1)[-1] * (1 if upwards else -1)
    guess = np.append(x, control) / course.unit
    begin = course.evaluate(guess, up)
    course = course.rescale(begin)
    first = path.correct(course, guess, up)
    if first is None:  # kept and marked
        return _branch(course, [begin], [], [], End.lost)
    return _trace(course, first)


@np.errstate(over="ignore", invalid="ignore")  # a step too far is taken back
def _trace(course: Course, home: State) -> Branch:
    """Walk along the curve from its first state to its end."""
    folds: list[Point] = []
    bifurcations: list[Point] = []
    states, ds, end = [home], course.step / 4, End.steps
    while len(states) < course.max_points:
        here = states[-1]
        state, ds = _next(course, here, ds)
        if state is None:
            end = End.lost
            break
        state, ended = _ended(course, home, here, state, far=len(states) > 2)
        if state is not here:
            fold, bifurcation = _marks(course, here, state)
            walked = float(np.linalg.norm(state.z - here.z))
            if bifurcation is not None and bifurcation[0].outcome is Outcome.failed and walked > LEAP * course.step:
                ds = walked / 4  # no branch point between states of two sides: a leap to another branch
                continue
            if bifurcation is not None:
                bifurcations.append(bifurcation[0])
            if fold is not None:
                folds.append(fold[0])
                states += [fold[1]] if fold[1] is not None else []
            states.append(state)
            course = course.rescale(state)
        if ended is not None:
            end = ended
            break
    return _branch(course, states, folds, bifurcations, end)


def _next(course: Course, here: State, ds: float) -> tuple[State | None, float]:
    """One step: the next state, and the step to try after it."""
    while ds > SHORTEST * course.step:
        guess = here.z + ds * here.tangent
        state = path.correct(course, guess, here.tangent)
        swerve = np.inf if state is None else np.linalg.norm(state.z - guess) / ds
        if state is not None and swerve < SWERVE:
            return state, min(1.5 * ds, course.step) if swerve < STRAIGHT else ds
        ds /= 2
    return None, ds


def _ended(course: Course, home: State, here: State, state: State, *, far: bool) -> tuple[State, End | None]:
    """Cut the last step off where it came back to the start or passed the first bound, if it did."""
    passed = float(home.tangent @ (here.z - home.z)), float(home.tangent @ (state.z - home.z))
    if far and passed[0] < 0 <= passed[1] and np.linalg.norm(state.z - home.z) < 2 * course.step:
        back, _ = path.zero_between(course, here, state, lambda s: float(home.tangent @ (s.z - home.z)), passed)
        if back is not None and np.linalg.norm(back.z - home.z) < SAME:
            return back, End.closed
    before, after = course.margins(here.z), course.margins(state.z)
    outside = np.flatnonzero(after < -EDGE)
    if outside.size == 0:
        return state, None
    share = before[outside] / (before[outside] - after[outside])
    k = outside[share.argmin()]  # the bound that is passed first
    why = End.range if k == len(after) - 1 else End.box
    if before[k] <= EDGE:
        return here, why
    ends = float(before[k]), float(after[k])
    edge, _ = path.zero_between(course, here, state, lambda s: float(course.margins(s.z)[k]), ends)
    return (here, End.lost) if edge is None else (edge, why)


_Found = tuple[Point, State | None]


def _marks(course: Course, here: State, state: State) -> tuple[_Found | None, _Found | None]:
    """The fold and the bifurcation between two states, each with its own state, where there is one."""
    fold = bifurcation = None
    turns = here.tangent[-1], state.tangent[-1]
    if (turns[0] >= 0) != (turns[1] >= 0):
        fold = _mark(course, here, state, lambda s: s.tangent[-1], turns, columns=-1)
    branches = here.bordered, state.bordered
    if (branches[0] >= 0) != (branches[1] >= 0):
        bifurcation = _branch_point(course, here, state, branches)
    states = [found[1] for found in (fold, bifurcation) if found is not None and found[1] is not None]
    if len(states) == 2 and np.linalg.norm(states[0].z - states[1].z) < SAME:
        fold = None  # the tip of a pitchfork: the control turns where another branch passes
    return fold, bifurcation


def _branch_point(course: Course, here: State, state: State, ends: tuple[float, float]) -> _Found:
    """The bifurcation between two states; singular, it lies where its neighbours put it, so these are taken near."""
    rough, _ = path.zero_between(course, here, state, lambda s: s.bordered, ends, ROUGH)
    if rough is not None:
        t = rough.tangent
        a, b = (path.correct(course, rough.z + side * NEIGHBOUR * t, t) for side in (-1, 1))
        if a is not None and b is not None and (a.bordered >= 0) != (b.bordered >= 0):
            here, state, ends = a, b, (a.bordered, b.bordered)
    return _mark(course, here, state, lambda s: s.bordered, ends, columns=None)


def _mark(
    course: Course, here: State, state: State, test: Callable[[State], float], ends: tuple[float, float],
    columns: int | None,
) -> _Found:  # fmt: skip
    """A fold (where the first columns of the derivatives are singular) or a bifurcation (where all are)."""
    found, outcome = path.zero_between(course, here, state, test, ends)
    if found is None:
        middle = path.State((here.z + state.z) / 2, here.at, here.unit, here.M, here.along).point
        return middle._replace(free_energy=np.nan, residual=np.inf, outcome=outcome), None
    point, singular = found.point, np.linalg.svd(found.at.slopes[:, :columns], compute_uv=False)[-1]
    return point._replace(residual=max(point.residual, float(singular)), outcome=outcome), found


def _branch(
    course: Course, states: list[State], folds: list[Point], bifurcations: list[Point], end: End
) -> Branch:  # fmt: skip
    """Put the states together, in their own units."""
    points = jax.tree.map(lambda *values: np.stack(values), *(state.point for state in states))
    outcome = {End.steps: Outcome.stalled, End.lost: Outcome.failed}.get(end, Outcome.converged)
    return Branch(
        control=points.control, x=points.x, free_energy=points.free_energy, readings=points.readings,
        unstable=points.unstable, residual=points.residual, states=states,
        folds=tuple(folds), bifurcations=tuple(bifurcations), end=end, outcome=outcome, course=course,
    )  # fmt: skip


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
        if callable(quantity):
            return float(quantity(point)) - value
        return float(point.free_energy if quantity == "free_energy" else getattr(point.readings, quantity)) - value

    marks, values = [], [test(state.point) for state in branch.states]
    for (a, b), ends in zip(itertools.pairwise(branch.states), itertools.pairwise(values), strict=True):
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
