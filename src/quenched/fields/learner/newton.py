r"""The iteration $\phi \leftarrow \phi + \eta A^{-1} G$, on the host. [lemm1999, section 7]

It goes over the points of the grid, $\phi$ itself, or over the coefficients of the smoothest modes of the prior,
$\phi = U c$, in which the prior is diagonal and the condition number of the Hessian is that of its diagonal, which is
scaled away: also an infinite strength, the maximum-likelihood exponential of a polynomial, is safe. $G$ is minus the
derivative of the energy along the constraint. A step is Newton's, or that of another learning matrix.

The length $\eta$ of Newton's step is 1, halved until the energy falls, where the energy is convex; otherwise it is that
up to which the energy falls. Of a density that must not become negative, components at zero do not move while $G$
pushes them down (active set). The iteration has arrived when the stationarity (KKT) residual vanishes: the largest
$|G|$ among components that may move, and of $G > 0$ among those at zero; in modes, when a step would gain nothing but
rounding.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy import optimize

from quenched.core.types import Outcome
from quenched.fields.learner import positive
from quenched.fields.learner.matrices import LearningMatrix, Newton, curvature, factor, solve_factored
from quenched.fields.learner.starts import projected
from quenched.fields.model.expansion import Curvature, Expansion
from quenched.fields.model.links import Density
from quenched.fields.model.modes import Modes
from quenched.fields.model.problem import Problem

SHARP, CLOSE, FALLS = 1e-22, 1e-6, 4.0
"""In modes steps end with one that would lower the energy by less than the first, in nats; below the second they are
taken whole, as long as the gain falls by the third from step to step: after that only rounding is left."""
ROUNDING = 1e-14
"""Noise of the energy, for each row."""
SHORTEST, LONGEST, SAME, TINY = 2.0**-30, 2.0**30, 1e-9, 1e-300
"""Lengths of a step that are tried; how well the best of them is known; and a slope that is none."""
FLAT, SIDE = 1e-9, 20
"""A curvature is negative if it is below minus this share of the largest; and how often the step that leaves a saddle
is halved."""
SOFT, WEAKER, RANGE, SHORT = 1e-6, 10.0, 30, 2.0**-5
"""Curvature that is tried first for directions that have none, such as those of rows on the straight sides of a loss,
as a share of the largest; the factor between one that is tried and the next, and how many are; and the length of a step
of Newton below which damped ones are tried, too."""
WEAK = 1e-12
"""Inverse variance of free modes of unit mean square: with all rows at one point their density would become ever
narrower."""


class OnPoints:
    """The energy over the points of the grid."""

    def __init__(self, problem: Problem):
        self.problem = problem

    def look(self, c: np.ndarray) -> Expansion:
        """Energy and derivatives."""
        field = c.reshape(self.problem.grid.shape)
        return dataclasses.replace(self.problem.expand(field), hessian=lambda: curvature(self.problem, field))


class InModes:
    r"""The energy over coefficients of modes: $E(U c) + \tfrac12 \sum_m k_m c_m^2$ about the template."""

    def __init__(self, problem: Problem, modes: Modes, known: np.ndarray | None = None):
        grid, link = modes.grid, problem.link
        self.problem, self.modes, self.known = problem, modes, known
        self.expand, self.quadratic = problem.expand_data, problem.likelihood.quadratic
        cell, weak = grid.cell, WEAK / grid.size if link.exponential else 0.0
        self.used = np.maximum(cell * modes.values.ravel(), weak)
        self.push, self.rest = np.zeros(self.used.shape), 0.0
        for part in problem.parts or []:
            t = np.asarray(part.mean)
            if t.any():
                Kt = cell * np.asarray(part.operator.apply(t))
                self.push, self.rest = self.push + modes.coefficients(Kt), self.rest + 0.5 * float(np.sum(t * Kt))

    def look(self, c: np.ndarray) -> Expansion:
        """Energy and derivatives."""
        loss, slope, bends = self.expand(self.modes.field(c))
        k = self.used * c
        energy = loss + 0.5 * float(k @ c) - float(self.push @ c) + self.rest
        return Expansion(energy, loss, self.modes.coefficients(slope) + k - self.push, lambda: self.hessian(bends))

    def hessian(self, bends: Curvature) -> np.ndarray:
        """That of the data in modes, and the prior on the diagonal."""
        H = self.data_hessian(bends)
        H = H.copy() if H is self.known else H
        H.flat[:: len(H) + 1] += self.used
        return H

    def data_hessian(self, bends: Curvature) -> np.ndarray:
        """That of the data, which for a parabola is always the same."""
        if self.quadratic:
            self.known = bends.project(self.modes) if self.known is None else self.known
            return self.known
        return bends.project(self.modes)


@dataclasses.dataclass
class Descent:
    """Where an iteration ended, and how it went there."""

    c: np.ndarray
    point: Expansion
    factor: tuple[np.ndarray, np.ndarray] | None
    hessian: np.ndarray | None
    trace: list[tuple[float, float, float, float]]
    outcome: Outcome


def descend(
    land: OnPoints | InModes,
    method: LearningMatrix,
    c: np.ndarray,
    *,
    enough: float,
    max_steps: int,
    convex: bool,
    sharp: float = SHARP,
) -> Descent:
    """Where the iteration arrives from some coordinates.

    Args:
        land: the energy.
        method: how slopes become steps; in modes Newton's.
        c: where it begins.
        enough: the stationarity residual at which it has arrived, on points.
        max_steps: steps at most.
        convex: whether the energy is known to be convex.
        sharp: the gain of the last step, in modes; a larger one is still taken, with the Hessian from before it.
    """
    problem, grid, on_points = land.problem, land.problem.grid, isinstance(land, OnPoints)
    bounded, noise = isinstance(problem.link, Density), ROUNDING * problem.likelihood.total
    newton, whole, shape = isinstance(method, Newton), problem.likelihood.quadratic, grid.shape
    H: Any = None
    at, last, trace, found, arrived = land.look(c), np.inf, [], None, False
    for iteration in range(max_steps + 1):
        G = -at.slope / grid.cell
        free = positive.free(c, G) if bounded else None
        kkt = float(np.max(np.abs(G if free is None else G[free]), initial=0.0))
        arrived, most, length, there = on_points and kkt <= enough, np.inf, 0.0, None
        trace.append((at.energy, at.loss, 0.0, kkt))
        if not np.isfinite(at.energy + kkt):  # a start with no density where data are
            break
        if arrived:
            if convex or bounded or iteration == max_steps:
                break
            moved, length = _leave(problem, c.reshape(shape))
            if moved is None:
                break
            moved = moved.ravel()
        else:
            if free is not None:
                field, pull, may = (part.reshape(shape) for part in (c, G, free))
                step, most = positive.step(problem, method, field, pull, may, iteration)
                step = step.ravel()
            elif whole and found is not None:  # the Hessian of a parabola is always the same
                step = solve_factored(found, -at.slope)
            elif isinstance(method, Newton):
                H = at.hessian()
                step, found = Newton.invert(method, H, -at.slope)
            else:
                step = method.step(problem, c.reshape(shape), G.reshape(shape), iteration).ravel()
            gain = -float(at.slope @ step)
            steep = newton and convex and not (bounded or whole)
            if steep and np.all(np.isfinite(H)) and (found is None or not gain > 0):  # its gain says nothing then
                leap = _leap(land, c, at, H)
                if leap is None or iteration == max_steps:
                    arrived = not on_points and leap is None
                    break
                trace[-1] = (*trace[-1][:2], 1.0, kkt)
                last, (c, at) = np.inf, leap
                continue
            if SHARP <= gain < sharp and convex and newton and not bounded:
                c, arrived = c + step, True
                at = land.look(c)
                break
            positive_definite = convex or (found is not None and not on_points)
            last_step = gain < SHARP or (gain < CLOSE and not gain < last / FALLS) or iteration == max_steps
            if newton and positive_definite and not bounded and last_step:
                arrived = arrived or (not on_points and gain < CLOSE)
                break
            descends = convex or (found is not None and problem.likelihood.on_host)  # each look is dear: no line search
            if descends and newton and not bounded:
                length, there = _halved(land, c, at.energy, step, np.inf if whole else gain, noise)
                if steep and length < SHORT:
                    leap = _leap(land, c, at, H)
                    if leap is not None and not (length and there.energy <= leap[1].energy):
                        length, step, there = 1.0, leap[0] - c, leap[1]
            elif iteration < max_steps:
                length = _furthest(land, c, at.energy, step, most)
            last, moved = gain, c + length * step
            if length == 0.0 or np.array_equal(moved, c):
                break
            if (on_points and not convex) or bounded:
                moved = projected(problem, moved.reshape(shape)).ravel()
                moved = positive.landed(moved, c, step, length, most) if bounded else moved
        trace[-1] = (*trace[-1][:2], float(length), kkt)
        c, at = moved, there or land.look(moved)
    return Descent(c, at, found, H, trace, Outcome.converged if arrived else Outcome.stalled)


def _leap(land: OnPoints | InModes, c: np.ndarray, at: Expansion, H: np.ndarray) -> tuple[np.ndarray, Expansion] | None:
    """Where the energy is least among damped steps of Newton, and what it is there; None if none lowers it.

    The weaker the damping, the further a step goes along directions without curvature; others it hardly changes.
    """
    first, unit, best = SOFT * (float(np.max(np.diag(H))) or 1.0), np.eye(len(H)), None
    lowest = at.energy - 10 * ROUNDING * (1 + abs(at.energy))
    for damping, change in ((first, 1 / WEAKER), (first * WEAKER, WEAKER)):
        for _ in range(RANGE):
            found = factor(H + damping * unit)
            if found is None:
                break
            moved = c + solve_factored(found, -at.slope)
            there = land.look(moved)
            if there.energy < lowest:
                best, lowest = (moved, there), there.energy
            elif best is not None or (change < 1 and there.energy > at.energy):  # too long, not just too short
                break
            damping *= change
        if best is not None:
            break
    return best


def _halved(
    land: OnPoints | InModes, c: np.ndarray, energy: float, step: np.ndarray, gain: float, noise: float
) -> tuple[float, Expansion]:
    """A length at which the energy has fallen by enough, from 1 down, and where that leads; 0 if there is none."""
    t = 1.0
    while True:
        there = land.look(c + t * step)
        if not CLOSE < gain < np.inf or there.energy <= energy - 1e-4 * t * gain + noise:
            return t, there
        t /= 2
        if t < SHORTEST:
            return 0.0, there


def _furthest(land: OnPoints | InModes, c: np.ndarray, energy: float, step: np.ndarray, most: float) -> float:
    """The length of a step, at most `most`, up to which the energy falls; 0 if it does not.

    By the sign of the slope, which is known to more digits than the energy.
    """
    limit = energy + 10 * ROUNDING * (1 + abs(energy))

    def slope(t: float) -> float:
        point = land.look(c + t * step)
        along = float(point.slope @ step)
        return along if along < 0 and point.energy <= limit else max(abs(along), TINY) if np.isfinite(along) else 1.0

    below, above = 0.0, min(1.0, most)
    if slope(above) < 0:
        while above < min(LONGEST, most):
            below, above = above, min(2 * above, most)
            if slope(above) > 0:
                break
        else:
            return above
    else:
        while slope(above / 2) > 0:
            above /= 2
            if above < SHORTEST:
                return 0.0
        below = above / 2
    return float(optimize.brentq(slope, below, above, xtol=SAME * below, rtol=SAME))  # pyright: ignore[reportArgumentType]


def _leave(problem: Problem, field: np.ndarray) -> tuple[np.ndarray | None, float]:
    """A field of less energy to the side of a saddle and the length of the step; none at a minimum."""
    values, vectors = np.linalg.eigh(curvature(problem, field))
    if values[0] >= -FLAT * values[-1]:
        return None, 0.0
    step = vectors[:, 0].reshape(field.shape) / vectors[np.argmax(np.abs(vectors[:, 0])), 0]
    here = problem.expand(field).energy
    noise = 10 * ROUNDING * (1 + abs(here))
    for length in 2.0 ** -np.arange(SIDE):
        tried = [projected(problem, field + side * length * step) for side in (1, -1)]
        energies = [problem.expand(one).energy for one in tried]
        if min(energies) < here - noise:
            return tried[int(energies[1] < energies[0] - noise)], float(length)
    return None, 0.0
