r"""All stationary points in a box: many starts on a lattice, Levenberg-Marquardt from each, then deflation.

Every round runs $G(x) = 0$ from new starts. In every second round the points found so far are divided out: with $r_k$
the distance to point $k$ in units of `REACH` boxes, $\tilde G = G \prod_k (1 + r_k^{-2})$ has all zeros but those.
The search ends when one round of each kind brings nothing new. It is a search, not a proof: a point whose
surroundings are small against the lattice of starts can be missed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from quenched.core import checks
from quenched.core.saddle.landscape import Landscape, evaluate, index
from quenched.core.types import InputError, Outcome, double

FOUND, MERGED = 1e-6, 1e-5
"""In units of the box: a point is found when Newton's step is shorter; two points closer than this are one."""
ITERATIONS, ROUNDS, IDLE = 60, 30, 2
"""Steps of Levenberg-Marquardt and rounds of deflation at most; rounds without a new point that end the search."""
REACH = 0.3
"""How far, in boxes, a found point drives the search away: less and its own basin catches it again."""

_Field = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclasses.dataclass(frozen=True, eq=False)
class Point:
    """One stationary point."""

    x: np.ndarray  # [d]
    free_energy: float
    index: int  # unstable directions: 0 at a minimum, d at a maximum
    residual: float  # largest absolute component of the equations
    outcome: Outcome


@dataclasses.dataclass(frozen=True, eq=False)
class Points:
    """All stationary points that were found in a box, lowest free energy first; a sequence of `Point`s."""

    x: np.ndarray  # [n, d]
    free_energy: np.ndarray  # [n]
    index: np.ndarray  # [n]
    residual: np.ndarray  # [n]
    outside: int  # how many more were found outside the box
    outcome: Outcome  # absent: none; stalled: the last round still found new ones; failed: equations have no number

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, k: int) -> Point:
        f, residual = float(self.free_energy[k]), float(self.residual[k])
        return Point(self.x[k], f, int(self.index[k]), residual, Outcome.converged)

    def __iter__(self) -> Iterator[Point]:
        return (self[k] for k in range(len(self)))


@double
def stationary_points(
    landscape: Landscape, low: Any, high: Any, control: float = 0.0, args: Any = None, *, starts: int = 64
) -> Points:
    """Find all stationary points in a box.

    Args:
        landscape: free energy or equations.
        low: lower corner of the box `[d]`.
        high: upper corner `[d]`.
        control: its value.
        args: passed on.
        starts: how many, spread evenly over the box.

    Returns:
        Points in order of free energy (of the first order parameter where only equations are known).

    Raises:
        InputError: if the box is not a box.

    Examples:
        >>> well = Landscape(lambda x, h, _: (x[0] ** 2 - 1) ** 2 - h * x[0])
        >>> found = stationary_points(well, [-2.0], [2.0], control=0.1)
        >>> [(round(float(p.x[0]), 3), p.index) for p in found]
        [(1.012, 0), (-0.987, 0), (-0.025, 1)]
    """
    low, high = box(low, high)
    checks.finite("control", control)
    starts = checks.whole("starts", starts, least=1)
    width = high - low

    def field(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = np.column_stack([low + u * width, np.full(len(u), float(control))])
        _, G, M = evaluate(landscape, y, args)
        return G, M[..., :-1] * width

    known, outcome = _search(field, starts, low.size)
    inside = np.all((known >= -MERGED) & (known <= 1 + MERGED), axis=1)
    x = np.clip(low + known[inside] * width, low, high)
    y = np.column_stack([x, np.full(len(x), float(control))])
    each = [evaluate(landscape, row, args) for row in y]
    f = np.array([float(e[0]) for e in each])
    order = np.lexsort((x[:, 0], f))
    return Points(
        x[order],
        f[order],
        np.array([index(e[2][:, :-1]) for e in each], dtype=int)[order],
        np.array([np.abs(e[1]).max() for e in each])[order],
        int(np.sum(~inside)),
        Outcome.absent if outcome is Outcome.converged and len(x) == 0 else outcome,
    )


def box(low: Any, high: Any) -> tuple[np.ndarray, np.ndarray]:
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


def lattice(n: int, d: int, skip: int = 0) -> np.ndarray:
    r"""`n` points spread evenly over the unit cube: $k (g^{-1}, \dots, g^{-d})$ modulo 1, $g^{d+1} = g + 1$."""
    g = 2.0
    for _ in range(50):
        g = (1 + g) ** (1 / (d + 1))
    return (0.5 + np.arange(skip + 1, skip + n + 1)[:, None] * g ** -np.arange(1.0, d + 1)) % 1


def _search(field: _Field, n: int, d: int) -> tuple[np.ndarray, Outcome]:
    """All zeros found, in units of the box `[k, d]`, and whether the search came to its end."""
    known, idle = np.empty((0, d)), 0
    for turn in range(ROUNDS):
        equations = _deflated(field, known) if turn % 2 else field
        end = _descend(equations, lattice(n, d, skip=turn * n))
        end = _descend(field, end, iterations=10)  # to the accuracy of the equations themselves
        G, J = field(end)
        finite = np.isfinite(G).all(axis=1) & np.isfinite(J).all(axis=(1, 2))
        if not finite.any():
            return known, Outcome.failed
        size = np.full(n, np.inf)
        size[finite] = np.linalg.norm(_newton(G[finite], J[finite], 0.0), axis=1)
        before = len(known)
        for k in np.argsort(size):  # the most accurate first
            if size[k] < FOUND and np.all(np.linalg.norm(known - end[k], axis=1) > MERGED):
                known = np.vstack([known, end[k]])
        idle = idle + 1 if len(known) == before else 0
        if idle == IDLE:
            return known, Outcome.converged
    return known, Outcome.stalled


def _deflated(field: _Field, known: np.ndarray) -> _Field:
    """The equations with the known zeros divided out."""

    def deflated(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        G, J = field(u)
        apart = u[:, None] - known  # [n, k, d]
        r2 = np.sum(apart**2, axis=2) / REACH**2  # [n, k]
        with np.errstate(all="ignore"):  # a start on a known zero has no number and goes nowhere
            m = np.prod(1 + 1 / r2, axis=1)
            slope = np.sum(-2 / REACH**2 * apart / (r2 * (r2 + 1))[..., None], axis=1)  # of ln m
            G = m[:, None] * G
            return G, m[:, None, None] * J + G[:, :, None] * slope[:, None, :]

    return deflated


def _descend(field: _Field, u: np.ndarray, iterations: int = ITERATIONS) -> np.ndarray:
    """Levenberg-Marquardt from many starts at once; a start that gets nowhere stays where it stopped."""
    G, J = field(u)
    moving = np.isfinite(G).all(axis=1) & np.isfinite(J).all(axis=(1, 2))
    damping = np.full(len(u), 1e-2)
    for _ in range(iterations):
        if not moving.any():
            break
        move = np.zeros_like(u)
        move[moving] = _newton(G[moving], J[moving], damping[moving])
        length = np.linalg.norm(move, axis=1, keepdims=True)
        move *= np.minimum(1, 0.25 / np.maximum(length, 1e-300))  # no further than a quarter of the box
        trial_G, trial_J = field(u + move)
        with np.errstate(all="ignore"):
            better = moving & np.isfinite(trial_J).all(axis=(1, 2)) & _shorter(trial_G, G)
        u = np.where(better[:, None], u + move, u)
        G = np.where(better[:, None], trial_G, G)
        J = np.where(better[:, None, None], trial_J, J)
        damping = np.where(better, damping / 10, damping * 5)
        near = np.abs(u - 0.5).max(axis=1) < 5  # who runs further is on the way to infinity
        moving &= near & (damping < 1e6) & (length[:, 0] > 1e-15)
    return u


def _shorter(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Whether the equations are better fulfilled; not where the new ones have no number."""
    return np.sum(new**2, axis=1) < np.sum(old**2, axis=1)


def _newton(G: np.ndarray, J: np.ndarray, damping: Any) -> np.ndarray:
    r"""The damped Newton step $-(J^T J + \lambda s_1^2)^{-1} J^T G$ of each start, $s_1$ the largest singular value."""
    left, s, right = np.linalg.svd(J)
    s = np.maximum(s, 1e-100)  # where J is singular the undamped step is endless, as it should be
    along = np.einsum("nij,ni->nj", left, G) * s / (s**2 + np.reshape(damping, (-1, 1)) * s[:, :1] ** 2)
    return -np.einsum("nji,nj->ni", right, along)
