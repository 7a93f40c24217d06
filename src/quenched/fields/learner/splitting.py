r"""Fields of least energy under convex potentials with a cusp, such as total variation, by alternating directions.

The filtered differences get a variable $z = W(\phi - t)$ of their own, and multipliers $p$ keep the two together. The
field is the solution of a sparse linear system, $z$ shrinks at every place, and every $p$ is one of a dual problem. For
all fields that differ from this one nowhere by more than its range $R$ the energy is above the least one by at most

$$\int [\psi(\omega) + \psi^*(p) - p\,\omega] + R \int \big|\nabla f(\phi) + W^T p\big| ,$$

with $f$ the energy of data and Gaussians: the duality gap, whatever led to $\phi$ and $p$.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from scipy import sparse

from quenched.core import checks
from quenched.core.types import InputError, Outcome, Real, real
from quenched.fields.learner.fitted import Fitted, FittedDensity
from quenched.fields.learner.reweighting import is_convex, relaxed
from quenched.fields.learner.sparse import Factor, Solver, SparseEnergy, factor
from quenched.fields.learner.starts import projected
from quenched.fields.model.links import Direct
from quenched.fields.model.potentials import Potential
from quenched.fields.model.problem import Problem

SWEEPS, RELAX = 10, 1.7
"""Sweeps in one step, and over-relaxation."""
BALANCE, FASTER, PATIENCE = 5.0, 2.0, 12
"""The stiffness between field and differences is changed by the second factor if the residuals differ by more than the
first, in the first so many steps."""
NEWTON = 3
"""Newton steps in one sweep, where the data are not a parabola."""


class Splitting(Solver):
    """Alternating directions, for convex potentials: total variation.

    Attributes:
        accuracy: the duality gap at which it has arrived, as a share of the energy.
    """

    accuracy: Real = eqx.field(converter=real, default=1e-6)

    def __check_init__(self):
        checks.positive("accuracy", self.accuracy)

    def descend(self, problem: Problem, starts: list[np.ndarray] | None, tolerance: float, max_steps: int) -> list[Any]:
        """From each start, by default one: the energy is convex."""
        energy = SparseEnergy(problem)
        if not is_convex(energy):
            raise InputError("Argument `method` must be Reweighting() or Newton() here, because the energy is not "
                             "known to be convex.")  # fmt: skip
        fields = starts or [relaxed(energy, 1.0)]
        return [_Split(energy, np.ravel(field)).descend(float(self.accuracy), max_steps) for field in fields]


class _Split:
    """The field, the differences on their own, and the multipliers."""

    def __init__(self, energy: SparseEnergy, c: np.ndarray):
        self.energy, self.c, self.parts = energy, c, energy.potentials
        self.shape, self.cell = energy.problem.grid.shape, energy.cell
        self.whole = energy.problem.likelihood.quadratic
        self.W: Any = sparse.csr_array(sparse.vstack([part.filter.matrix for part in self.parts]))
        self.WtW = self.W.T @ self.W
        self.shift = self.W @ np.zeros(c.size) if not self.parts else np.concatenate(
            [part.filter.matrix @ np.ravel(part.mean) for part in self.parts]
        )  # fmt: skip
        self.cuts = np.cumsum([part.filter.entire for part in self.parts])[:-1]
        self.z = self.W @ c - self.shift
        self.u = np.zeros(self.z.size)
        pull = np.mean([abs(part.psi.slope(np.array([1e300**0.5]))[0]) for part in self.parts])
        self.rho = self.cell * float(pull) / max(float(np.std(self.z)), 1e-9)
        self.held: Factor | None = None

    def descend(self, accuracy: float, max_steps: int) -> Fitted:
        """Sweeps until the gap closes."""
        trace, arrived, value, gap, kkt, away, moved = [], False, np.nan, np.nan, np.nan, 1.0, 1.0
        for step in range(max_steps + 1):
            value, gap, loss, kkt = self.look()
            trace.append((value, loss, self.rho, kkt))
            arrived = gap <= accuracy * (1 + abs(value))
            if arrived or step == max_steps or not np.isfinite(value):
                break
            for _ in range(SWEEPS):
                away, moved = self.sweep()
            if step < PATIENCE and max(away, moved) > BALANCE * min(away, moved):
                faster = FASTER if away > moved else 1 / FASTER
                self.rho, self.u, self.held = self.rho * faster, self.u / faster, None
        problem, outcome = self.energy.problem, Outcome.converged if arrived else Outcome.stalled
        field = projected(problem, self.c.reshape(self.shape))
        kind = Fitted if isinstance(problem.link, Direct) else FittedDensity
        return kind(field, outcome, problem, value, kkt, steps=tuple(trace), gap=gap)

    def sweep(self) -> tuple[float, float]:
        """Field, differences, multipliers once; how far field and differences are apart, and how far they moved."""
        for _ in range(1 if self.whole else NEWTON):
            slope = self.energy.base(self.c)[1] + self.rho * (
                self.W.T @ (self.W @ self.c - self.shift - self.z + self.u)
            )
            if self.held is None or not self.whole:
                self.held = factor(self.energy.curvature(self.c) + self.rho * self.WtW)
            if self.held is None:
                raise InputError("Argument `prior` must determine the field together with the data, but some points "
                                 "are seen by neither.")  # fmt: skip
            self.c = self.c - self.held.solve(slope)
        omega, before = self.W @ self.c - self.shift, self.z
        v = RELAX * omega + (1 - RELAX) * self.z + self.u
        self.z = np.concatenate([_shrink(p, a, self.cell / self.rho) for p, a in self._each(v)])
        self.u = v - self.z
        return float(np.linalg.norm(omega - self.z)), float(np.linalg.norm(self.z - before))

    def _each(self, v: np.ndarray) -> list[tuple[Potential, np.ndarray]]:
        """Differences of each potential `[components, places]`."""
        pairs = zip(self.parts, np.split(v, self.cuts), strict=True)
        return [(part, values.reshape(part.filter.shape)) for part, values in pairs]

    def look(self) -> tuple[float, float, float, float]:
        """Energy, duality gap, energy of the data, and the stationarity residual."""
        value, slope, loss = self.energy.base(self.c)
        omega, p = self.W @ self.c - self.shift, self.rho * self.u
        left, gap = slope + self.W.T @ p, 0.0
        for (part, o), (_, q) in zip(self._each(omega), self._each(p), strict=True):
            length = part.lengths(o)
            psi = self.cell * float(np.sum(part.psi.value(length)))
            dual = self.cell * float(np.sum(part.psi.dual(part.lengths(q / self.cell))))
            value, gap = value + psi, gap + psi + dual - float(np.sum(o * q))
        away = float(np.ptp(self.c)) * float(np.sum(np.abs(left)))
        return value, max(gap, 0.0) + away, loss, float(np.max(np.abs(left))) / self.cell


def _shrink(part: Potential, v: np.ndarray, step: float) -> np.ndarray:
    """The differences that are nearest to some and cost least."""
    length = part.lengths(v)
    if not part.together:
        return part.psi.shrink(v, step).ravel()
    return (v * part.psi.shrink(length, step) / np.where(length > 0, length, 1.0)).ravel()
