r"""Fields of least energy under potentials that are not quadratic, by iterated reweighting.

At the filtered differences $\omega$ of the present field every potential is replaced by a parabola that touches it and
lies above it, $\tfrac12 w\, s^2 + \ldots$ with $w = \psi'(\omega)/\omega$ for cups: a Gaussian problem, solved by
factoring a sparse matrix. The energy falls with every step. Newton's step is taken instead where its matrix is positive
and the energy falls by it, too. A potential with a cusp is smoothed, $|s| \to \sqrt{s^2 + \epsilon^2}$, with $\epsilon$
lowered step by step to `smoothing`: the fit is one of that smoothed potential.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from scipy import sparse

from quenched.core import checks
from quenched.core.types import InputError, Outcome, Real, real
from quenched.fields.learner.fitted import Fitted, FittedDensity
from quenched.fields.learner.sparse import Solver, SparseEnergy, factor, lowest
from quenched.fields.learner.starts import projected
from quenched.fields.model.links import Direct
from quenched.fields.model.potentials import Potential, Quadratic, Smoothed
from quenched.fields.model.priors import Gaussian
from quenched.fields.model.problem import Problem

STIFFNESS = (1.0, 0.05, 20.0)
"""Starts: the minimum with parabolas of the curvature of the potentials, and with softer and stiffer ones."""
STAGES, ROUGH = 9, 1e-3
"""How many smoothings there are, and how well all but the last are solved."""
SHARES, CHANGE, EVERY = (1e-3, 64.0), 4.0, 4
"""Of a convex energy, curvatures are at least a share of those of parabolas: within these limits, lowered by a factor
after a step by which the energy fell, raised by its square after another. At the lower limit Newton's step is tried
first; where the energy is not convex, after some steps."""
ARMIJO, SHORTEST, ROUNDING = 1e-4, 2.0**-30, 1e-13
"""A step must gain this share of what its slope promises; the shortest that is tried; noise of an energy."""
FLAT = 1e-9
"""A curvature is negative if it is below minus this share of the largest."""


class Reweighting(Solver):
    r"""Iterated reweighting, for any potentials.

    Attributes:
        smoothing: $\epsilon$ of potentials with a cusp in the end, in units of the largest filtered difference
            under parabolas instead of potentials.
    """

    smoothing: Real = eqx.field(converter=real, default=1e-4)

    def __check_init__(self):
        checks.positive("smoothing", self.smoothing)

    def descend(self, problem: Problem, starts: list[np.ndarray] | None, tolerance: float, max_steps: int) -> list[Any]:
        """From each start, by default several unless the energy is convex."""
        energy = SparseEnergy(problem)
        check_bounded(energy)
        check_seen(energy)
        convex = is_convex(energy)
        stages = [energy.potentials]
        if not all(part.psi.smooth for part in energy.potentials):
            usual = energy.look(relaxed(energy, 1.0), energy.potentials)
            widths = np.geomspace(1.0, float(self.smoothing), STAGES) * max(
                1e-12, *(float(np.max(np.abs(omega))) for omega in usual.omegas)
            )
            stages = [_smoothed(energy.potentials, width) for width in widths]
        fields = starts or [relaxed(energy, stiff) for stiff in (STIFFNESS[:1] if convex else STIFFNESS)]
        return [self._from(energy, stages, np.ravel(field), tolerance, max_steps) for field in fields]

    def _from(
        self, energy: SparseEnergy, stages: list[list[Potential]], c: np.ndarray, tolerance: float, max_steps: int
    ) -> Fitted:
        """Where it arrives from one field."""
        enough, convex = residual(energy, c, tolerance), is_convex(energy)
        trace: list[tuple[float, float, float, float]] = []
        arrived = False
        for i, potentials in enumerate(stages):
            last = i == len(stages) - 1
            left = max_steps - len(trace) if last else min(10, max_steps - len(trace))
            c, steps, arrived = descend(energy, potentials, c, enough if last else ROUGH, max(left, 0), convex)
            trace += steps
        return fitted(energy, c, stages[-1], trace, arrived)


def _smoothed(potentials: list[Potential], width: float) -> list[Potential]:
    """Without cusps."""
    return [
        part
        if part.psi.smooth
        else Potential(part.filter, Smoothed(part.psi, width), part.mean, together=part.together)
        for part in potentials
    ]


def residual(energy: SparseEnergy, c: np.ndarray, tolerance: float) -> float:
    """The stationarity residual at which an iteration has arrived."""
    return tolerance * max(1.0, float(np.max(np.abs(energy.data(c)[1]))) / energy.cell)


def is_convex(energy: SparseEnergy) -> bool:
    """Whether the energy is known to have one minimum."""
    return energy.problem.likelihood.convex and all(part.psi.convex for part in energy.potentials)


def check_bounded(energy: SparseEnergy) -> None:
    """Check that what inverted cups push away is held by something else."""
    if any(getattr(part.psi, "inverted", False) for part in energy.potentials):
        c = np.zeros(energy.problem.grid.size)
        held = factor(energy.curvature(c) + _parabolas(energy, [p for p in energy.potentials if p.psi.convex], c, 1.0))
        if held is None or not held.positive:
            raise InputError("Argument `prior` must have a minimum, but an inverted cup pushes away what neither the "
                             "data nor another part of the prior holds: add `& Gaussian(Mass(grid))`.")  # fmt: skip


def check_seen(energy: SparseEnergy) -> None:
    """Check that data and prior determine every point."""
    c = np.zeros(energy.problem.grid.size)
    if factor(energy.curvature(c) + _parabolas(energy, energy.potentials, c, 1.0)) is None:
        raise InputError("Argument `prior` must determine the field together with the data, but some points are "
                         "seen by neither.")  # fmt: skip


def _parabolas(energy: SparseEnergy, potentials: list[Potential], c: np.ndarray, stiff: float) -> Any:
    """The curvature of potentials, each replaced by one parabola."""
    total: Any = sparse.csr_array((c.size, c.size))
    for part in potentials:
        width = float(getattr(part.psi, "width", 1.0))
        a = float(np.max(np.abs(part.psi.parabola(np.array([width])))))
        total = total + stiff * Potential(part.filter, Quadratic(max(a, 1e-12))).curve(part.differences(0 * c))
    return total


def relaxed(energy: SparseEnergy, stiff: float) -> np.ndarray:
    """The minimum with parabolas instead of potentials, of this stiffness; one step of Newton's method towards it."""
    c = np.zeros(energy.problem.grid.size)
    P = _parabolas(energy, energy.potentials, c, stiff)
    H = energy.curvature(c) + P
    ridge = 1e-9 * float(np.max(H.diagonal()))
    held = factor(H) or factor(H + ridge * sparse.eye_array(c.size))
    slope = energy.base(c)[1]
    for part in energy.potentials:
        slope = slope - _parabolas(energy, [part], c, stiff) @ np.ravel(part.mean)
    return np.zeros(c.size) if held is None else -held.solve(slope)


def descend(
    energy: SparseEnergy, potentials: list[Potential], c: np.ndarray, enough: float, max_steps: int, convex: bool
) -> tuple[np.ndarray, list[tuple[float, float, float, float]], bool]:
    """Where the iteration arrives from some coordinates, its steps, and whether it has arrived."""
    at, trace, share, wait = energy.look(c, potentials), [], 1.0, EVERY
    for iteration in range(max_steps + 1):
        kkt = float(np.max(np.abs(at.slope))) / energy.cell
        trace.append((at.energy, at.loss, 0.0, kkt))
        if not np.isfinite(at.energy + kkt) or iteration == max_steps:
            return c, trace, kkt <= enough
        if kkt <= enough:
            moved = None if convex else _leave(energy, potentials, c, at)
            if moved is None:
                return c, trace, True
        else:
            moved = _step(energy, potentials, c, at, 0.0) if (share <= SHARES[0] if convex else wait == 0) else None
            wait = 0 if moved is not None else EVERY if wait == 0 else wait - 1
            while moved is None:
                moved = _step(energy, potentials, c, at, share)
                share = max(share / CHANGE, SHARES[0]) if moved is not None else share * CHANGE**2
                if moved is None and share > SHARES[1]:
                    return c, trace, False
            share = min(share, 1.0) if convex else 1.0
        trace[-1] = (at.energy, at.loss, moved[2], kkt)
        c, at = moved[:2]
    return c, trace, False


def _step(energy: SparseEnergy, potentials: list[Potential], c: np.ndarray, at: Any, share: float) -> Any:
    """A step by which the energy falls: where it leads, the energy there, and its length; None if there is none."""
    A: Any = energy.curvature(c)
    for part, omega in zip(potentials, at.omegas, strict=True):
        A = A + part.curve(omega, min(share, 1.0))
    found = factor(A)
    if share > 0 and (found is None or not found.positive):
        found = factor(A + 1e-10 * sparse.diags_array(np.maximum(A.diagonal(), 1e-10 * np.max(A.diagonal()))))
    if found is None or not found.positive:
        return None
    step = -found.solve(at.slope)
    gain, noise = float(at.slope @ step), ROUNDING * (1 + abs(at.energy))
    length, shortest = 1.0, 0.2 if share < 1 else SHORTEST
    while gain < 0 and length >= shortest:
        there = energy.look(c + length * step, potentials)
        falls = there.energy <= at.energy + ARMIJO * length * gain
        nearer = there.energy <= at.energy + noise and np.max(np.abs(there.slope)) < 0.5 * np.max(np.abs(at.slope))
        if falls or nearer:
            return c + length * step, there, length
        length /= 2
    return None


def _leave(energy: SparseEnergy, potentials: list[Potential], c: np.ndarray, at: Any) -> Any:
    """From a saddle to the side; None at a minimum."""
    H: Any = energy.curvature(c)
    for part, omega in zip(potentials, at.omegas, strict=True):
        H = H + part.curve(omega)
    found = factor(H)
    if found is not None and found.positive:
        return None
    value, vector = lowest(H)
    if value >= -FLAT * float(np.max(np.abs(H.diagonal()))):
        return None
    size = max(float(np.ptp(c)), 1e-6)
    for length in size * 2.0 ** -np.arange(20):
        for side in (1, -1):
            tried = c + side * length * vector / np.max(np.abs(vector))
            there = energy.look(tried, potentials)
            if there.energy < at.energy - ROUNDING * (1 + abs(at.energy)):
                return tried, there, float(length)
    return None


def fitted(energy: SparseEnergy, c: np.ndarray, potentials: list[Potential], trace: list[Any], arrived: bool) -> Fitted:
    """The fit, with a bound of its energy where it is convex."""
    problem, at = energy.problem, energy.look(c, potentials)
    field = projected(problem, c.reshape(problem.grid.shape))
    gap = float(np.ptp(c) * np.sum(np.abs(at.slope))) if is_convex(energy) else None
    outcome = Outcome.converged if arrived else Outcome.stalled
    kind = Fitted if isinstance(problem.link, Direct) else FittedDensity
    kkt = float(np.max(np.abs(at.slope))) / energy.cell
    return kind(field, outcome, problem, at.energy, kkt, steps=tuple(trace), gap=gap)


def splits(problem: Problem) -> bool:
    """Whether a prior is convex with a cusp, so that splitting solves it exactly."""
    parts = getattr(problem.prior, "parts", (problem.prior,))
    psis = [part.psi for part in parts if isinstance(part, Potential)]
    known = all(type(psi).shrink is not Smoothed.shrink for psi in psis)
    return problem.likelihood.convex and known and any(not psi.smooth for psi in psis)


def has_potentials(problem: Problem) -> bool:
    """Whether the prior has parts that are potentials, and no others than Gaussians besides."""
    parts = getattr(problem.prior, "parts", (problem.prior,))
    known = all(isinstance(part, (Gaussian, Potential)) for part in parts)
    return known and any(isinstance(part, Potential) for part in parts)
