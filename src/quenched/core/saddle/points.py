r"""States at fixed parameters: near a start by Levenberg-Marquardt, or all of them in a box.

`stationary_points` begins at many starts on a lattice. In every second round the points found so far are divided out:
with $r_k$ the distance to point $k$ in units of `REACH` boxes, $\tilde G = G \prod_k (1 + r_k^{-2})$ has all zeros but
those. The search ends when one round of each kind finds nothing new. It is a search, not a proof: a point whose
surroundings are small against the lattice of starts can be missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from quenched.core import checks
from quenched.core.saddle.path import index
from quenched.core.saddle.state import ACCURACY, FURTHEST, STEPS, TOLERANCE
from quenched.core.saddle.theory import Evaluation, Point, Theory, control_of, evaluate
from quenched.core.types import InputError, Outcome, double

FOUND, MERGED = 1e-6, 1e-5
"""In units of the box: a point is found when Newton's step is shorter; two points closer than this are one."""
ITERATIONS, ROUNDS, IDLE = 60, 30, 2
"""Steps of Levenberg-Marquardt and rounds of deflation at most; rounds without a new point that end the search."""
REACH = 0.3
"""How far, in boxes, a found point drives the search away: less and its own basin catches it again."""

_Slopes = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@double
def solve(theory: Theory, theta: Any, start: Any, *, relaxations: int = 0, along: str = "") -> Point:
    """The state near a start, on the host: the search of `state`, driven from NumPy, without its compilation.

    Args:
        theory: what is solved.
        theta: parameters.
        start: unknowns `[d]` to begin with.
        relaxations: steps of `theory.relax` that come first.
        along: a control in which the state will be followed: both then use one compiled program.

    Returns:
        The state; where none was found, the best point that was reached: see its `outcome` and `residual`.
    """
    x = np.atleast_1d(np.asarray(start, dtype=np.float64))
    best: tuple[np.ndarray, Evaluation] | None = None
    damping, left, control = 0.01, np.inf, control_of(theta, along) if along else np.nan
    for count in range(STEPS):
        trial = evaluate(theory, x, theta, along, control)
        with np.errstate(all="ignore"):
            better = (np.linalg.norm(trial.equations) < left or count < relaxations) and np.isfinite(trial.slopes).all()
        if better or best is None:
            best, left = (x, trial), np.linalg.norm(trial.equations) if better else np.inf
        damping = 0.01 if count <= relaxations else damping / 6 if better else damping * 4
        x, G, J = best[0], best[1].equations, best[1].slopes[:, : x.size]
        if not np.isfinite(J).all() or np.abs(G).max() <= TOLERANCE or damping > 1e8:
            break
        step = best[1].relaxed if count < relaxations else _damped(J, G, damping)
        x = x + step * min(1.0, FURTHEST / max(np.abs(step).max(), 1e-300))
    x, found = best  # pyright: ignore[reportGeneralTypeIssues]
    residual = float(np.abs(found.equations).max())
    outcome = Outcome.converged if residual < ACCURACY else Outcome.failed if count < STEPS - 1 else Outcome.stalled
    unstable = index(found.slopes[:, : x.size])
    return Point(x, found.free_energy, found.readings, unstable, residual, outcome, control)


def _damped(J: np.ndarray, G: np.ndarray, damping: float) -> np.ndarray:
    """Newton's step where it is short, else that of Levenberg and Marquardt."""
    normal = J.T @ J
    newton = -np.linalg.lstsq(J, G, rcond=None)[0]
    if np.all(np.abs(newton) * max(damping, 1.0) < 0.5):
        return newton
    return -np.linalg.solve(normal + damping * np.diag(np.diagonal(normal) + 1e-12), J.T @ G)


@double
def stationary_points(theory: Theory, theta: Any, low: Any, high: Any, *, starts: int = 64) -> tuple[Point, ...]:
    """Find all stationary points in a box.

    Args:
        theory: what is solved.
        theta: parameters.
        low: lower corner of the box `[d]`.
        high: upper corner `[d]`.
        starts: how many, spread evenly over the box.

    Returns:
        Points in order of free energy (of the first order parameter where only equations are known). Where the last
        round still found new ones their outcome is `stalled`.

    Raises:
        InputError: if the box is empty.

    Examples:
        >>> from quenched.core.saddle import Landscape, Setting, stationary_points
        >>> well = Landscape(lambda x, h, _: (x[0] ** 2 - 1) ** 2 - h * x[0])
        >>> found = stationary_points(well, Setting(0.1), [-2.0], [2.0])
        >>> [(round(float(p.x[0]), 3), p.index) for p in found]
        [(1.012, 0), (-0.987, 0), (-0.025, 1)]
    """
    low, high = _box(low, high)
    starts = checks.whole("starts", starts, least=1)
    width = high - low

    def slopes(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = evaluate(theory, low + u * width, theta)
        return found.equations, found.slopes * width

    known, outcome = _search(slopes, starts, low.size)
    points = []
    for u in known:
        if np.all((u >= -MERGED) & (u <= 1 + MERGED)):
            x = np.clip(low + u * width, low, high)
            at = evaluate(theory, x, theta)
            residual = float(np.abs(at.equations).max())
            points.append(Point(x, at.free_energy, at.readings, index(at.slopes), residual, outcome))
    return tuple(sorted(points, key=lambda point: (np.nan_to_num(point.free_energy), point.x[0])))


def _box(low: Any, high: Any) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a finite box as arrays `[d]`."""
    low, high = (np.atleast_1d(np.asarray(edge, dtype=np.float64)) for edge in (low, high))
    if low.ndim != 1 or low.shape != high.shape or low.size == 0:
        raise InputError(f"Argument `low` must be a list as long as `high`, but their shapes are {low.shape} "
                         f"and {high.shape}.")  # fmt: skip
    checks.finite("low", low)
    checks.finite("high", high)
    if not np.all(low < high):
        raise InputError(f"Argument `low` must lie below `high`, but {low} and {high} were given.")
    return low, high


def _lattice(n: int, d: int, skip: int) -> np.ndarray:
    r"""`n` points spread evenly over the unit cube: $k (g^{-1}, \dots, g^{-d})$ modulo 1, $g^{d+1} = g + 1$."""
    g = 2.0
    for _ in range(50):
        g = (1 + g) ** (1 / (d + 1))
    return (0.5 + np.arange(skip + 1, skip + n + 1)[:, None] * g ** -np.arange(1.0, d + 1)) % 1


def _search(slopes: _Slopes, n: int, d: int) -> tuple[np.ndarray, Outcome]:
    """All zeros found, in units of the box `[k, d]`, and whether the search came to its end."""
    known, idle = np.empty((0, d)), 0
    for turn in range(ROUNDS):
        before = len(known)
        for start in _lattice(n, d, skip=turn * n):
            divided = _deflated(slopes, known) if turn % 2 else slopes
            u = _descend(slopes, _descend(divided, start), iterations=10)  # to the accuracy of the equations themselves
            with np.errstate(all="ignore"):
                size = np.linalg.norm(_step(*slopes(u), 0.0))
            if size < FOUND and np.all(np.linalg.norm(known - u, axis=1) > MERGED):
                known = np.vstack([known, u])
        idle = idle + 1 if len(known) == before else 0
        if idle == IDLE:
            return known, Outcome.converged
    return known, Outcome.stalled


def _deflated(slopes: _Slopes, known: np.ndarray) -> _Slopes:
    """The equations with the known zeros divided out."""

    def deflated(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        G, J = slopes(u)
        apart = u - known  # [k, d]
        r2 = np.sum(apart**2, axis=1) / REACH**2
        with np.errstate(all="ignore"):  # at a known zero itself values are NaN and the search ends
            m = np.prod(1 + 1 / r2)
            slope = np.sum(-2 / REACH**2 * apart / (r2 * (r2 + 1))[:, None], axis=0)  # of ln m
            G = m * G
            return G, m * J + G[:, None] * slope

    return deflated


def _descend(slopes: _Slopes, u: np.ndarray, iterations: int = ITERATIONS) -> np.ndarray:
    """Levenberg-Marquardt; a start that gets nowhere stays where it stopped."""
    G, J = slopes(u)
    damping = 1e-2
    for _ in range(iterations):
        if not (np.isfinite(G).all() and np.isfinite(J).all()):
            break
        move = _step(G, J, damping)
        length = np.linalg.norm(move)
        move *= min(1, 0.25 / max(length, 1e-300))  # no further than a quarter of the box
        new_G, new_J = slopes(u + move)
        if np.isfinite(new_J).all() and np.sum(new_G**2) < np.sum(G**2):
            u, G, J, damping = u + move, new_G, new_J, damping / 10
        else:
            damping *= 5
        if damping > 1e6 or length < 1e-15 or np.abs(u - 0.5).max() > 5:  # the last: on the way to infinity
            break
    return u


def _step(G: np.ndarray, J: np.ndarray, damping: float) -> np.ndarray:
    r"""The damped Newton step $-(J^T J + \lambda s_1^2)^{-1} J^T G$, $s_1$ the largest singular value."""
    if not (np.isfinite(G).all() and np.isfinite(J).all()):
        return np.full_like(G, np.inf)
    left, s, right = np.linalg.svd(J)
    s = np.maximum(s, 1e-100)  # where J is singular the undamped step is endless
    return -right.T @ (left.T @ G * s / (s**2 + damping * s[0] ** 2))
