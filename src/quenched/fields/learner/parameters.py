r"""Parameters of least energy: Newton's method with a trust region, on the host.

With the derivatives $\Phi'$ of the field by the parameters, and slope $s$ and Hessian $H$ of the energy by the field,
the derivatives by the parameters are $\Phi'^T s$ and $\Phi'^T H \Phi' + \sum_i s_i\, \partial^2\phi_i$. Only the
function $\phi(\xi)$ is compiled. Where there are many parameters, their curvature is estimated from steps (L-BFGS).
[lemm1999, eqs. (344) to (346), (367)]
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy import optimize

from quenched.core.types import QUICK, InputError, Outcome
from quenched.fields.learner.fitted import Fitted, FittedDensity
from quenched.fields.learner.starts import projected
from quenched.fields.model.links import Direct
from quenched.fields.model.parameters import Parametrised

MANY = 400
"""With more parameters curvature is estimated."""
FIRST, EASIER, HARDER, SOFTEST, HARDEST = 1e-3, 5.0, 4.0, 1e-13, 1e8
"""What is added to the curvatures at first, as a share of the largest, by which factors it changes after good and bad
steps, and its limits."""
FLAT, SIDE, ROUNDING = 1e-9, 12, 1e-13
"""A curvature is none below this share of the largest; how often a step that leaves a saddle is halved; and noise."""


@dataclasses.dataclass(frozen=True, eq=False)
class FittedParameters(Fitted):
    """A parameterised field of least energy.

    Attributes:
        parameters: those of least energy, as the family has them.
        curvatures: eigenvalues of the Hessian by the parameters, ascending; None where they were not computed.
    """

    parameters: Any = None
    curvatures: np.ndarray | None = None


class FittedParametricDensity(FittedParameters, FittedDensity):
    """A parameterised density of least energy."""


class _Land:
    """The energy over flat parameters."""

    def __init__(self, family: Parametrised):
        self.family, self.problem = family, family.problem
        first, self.back = ravel_pytree(jax.tree.map(jnp.asarray, family.parameters))
        self.size, back = first.size, self.back

        def field(x: Any) -> Any:
            return jnp.reshape(family.function(back(x)), -1)

        def energy(x: Any) -> Any:
            return family.parameter_energy(back(x))

        quick = functools.partial(jax.jit, compiler_options=QUICK)
        self.field = quick(field)
        self.pull = quick(lambda x, s: (jax.vjp(field, x)[1](s)[0], *jax.value_and_grad(energy)(x)))
        self.bend = quick(lambda x, s: (
            jax.jacfwd(field)(x), jax.hessian(lambda v: jnp.vdot(s, field(v)) + energy(v))(x)
        ))  # fmt: skip

    def look(self, x: np.ndarray) -> tuple[float, float, np.ndarray, Any]:
        """Energy, energy of the data, slope, and the expansion by the field."""
        phi = np.asarray(self.field(x), dtype=np.float64)
        if not np.all(np.isfinite(phi)):
            return np.inf, np.inf, np.zeros(self.size), None
        at = self.problem.expand(phi.reshape(self.problem.grid.shape))
        along, value, slope = (np.asarray(part, dtype=np.float64) for part in self.pull(x, at.slope))
        return at.energy + float(value), at.loss, along + slope, at

    def hessian(self, x: np.ndarray, at: Any) -> np.ndarray:
        """The matrix of second derivatives."""
        J, rest = (np.asarray(part, dtype=np.float64) for part in self.bend(x, at.slope))
        H = J.T @ at.hessian() @ J + rest
        return (H + H.T) / 2


def solve_parameters(family: Parametrised, start: Any, tolerance: float, max_steps: int) -> FittedParameters:
    """The parameters of least energy among those that some starts lead to."""
    several = (
        isinstance(start, (list, tuple))
        and len(start) > 0
        and not any(isinstance(one, (int, float, np.number)) for one in start)
    )
    starts = list(start) if several else [family.parameters if start is None else start]
    land = _Land(family)
    fits = [_descend(land, family.check("start", one), tolerance, max_steps) for one in starts]
    if not any(np.isfinite(fit.energy) for fit in fits):
        raise InputError("Argument `start` must have a finite energy, but it has none: the field is not finite or no "
                         "density is where data are.")  # fmt: skip
    found = [fit for fit in fits if fit.converged] or fits
    best = min(found, key=lambda fit: fit.energy)
    return _gather(best, fits)


def _gather(best: FittedParameters, fits: list[FittedParameters]) -> FittedParameters:
    """The best fit, with all minima whose fields are different."""
    met: list[FittedParameters] = []
    for fit in sorted((fit for fit in fits if fit.converged), key=lambda fit: fit.energy):
        near = 1e-5 * max(float(np.max(np.abs(fit.field))), 1e-300)
        if all(np.max(np.abs(fit.field - other.field)) > near for other in met):
            met.append(fit)
    return dataclasses.replace(best, minima=tuple(fit.energy for fit in met), met=tuple(met), starts=len(fits))


def _descend(land: _Land, x: np.ndarray, tolerance: float, max_steps: int) -> FittedParameters:
    """Where it arrives from one start."""
    energy, loss, slope, at = land.look(x)
    trace: list[tuple[float, float, float, float]] = []
    values: np.ndarray | None = None
    if land.size > MANY and at is not None:
        x, trace = _limited(land, x, tolerance, max_steps)
        energy, loss, slope, at = land.look(x)
    enough = tolerance * max(1.0, float(np.max(np.abs(slope))))
    mass, arrived = FIRST, False
    for iteration in range(max_steps + 1 if land.size <= MANY else 1):
        kkt = float(np.max(np.abs(slope)))
        trace.append((energy, loss, 0.0, kkt))
        arrived = kkt <= enough
        if not np.isfinite(energy) or at is None or land.size > MANY or iteration == max_steps:
            break
        values, vectors = np.linalg.eigh(land.hessian(x, at))
        top = max(float(np.max(np.abs(values))), 1e-300)
        if arrived:
            moved = _leave(land, x, energy, values, vectors, top)
            if moved is None:
                break
        else:
            moved, mass = _step(land, x, energy, slope, values, vectors, top, mass)
            if moved is None:
                break
        trace[-1] = (energy, loss, float(np.linalg.norm(moved[0] - x)), kkt)
        x, (energy, loss, slope, at) = moved
    return _fit(land, x, energy, trace, values, arrived)


def _step(
    land: _Land, x: np.ndarray, energy: float, slope: np.ndarray, values: Any, vectors: Any, top: float, mass: float
) -> tuple[Any, float]:
    """A step by which the energy falls, and what was added to the curvatures."""
    along, noise = vectors.T @ slope, ROUNDING * (1 + abs(energy))
    bends = np.abs(values)
    while mass <= HARDEST:
        step = -vectors @ (along / np.maximum(bends + (mass if mass > SOFTEST else 0.0) * top, 1e-12 * top))
        there = land.look(x + step)
        hope = float(slope @ step)
        lower = np.isfinite(there[0]) and there[0] <= energy + 1e-4 * hope
        nearer = there[0] <= energy + noise and np.max(np.abs(there[2])) < 0.5 * np.max(np.abs(slope))
        if lower or nearer:
            return (x + step, there), max(mass / EASIER, SOFTEST)
        mass *= HARDER
    return None, mass


def _leave(land: _Land, x: np.ndarray, energy: float, values: Any, vectors: Any, top: float) -> Any:
    """From a saddle to the side; None at a minimum."""
    if values[0] >= -FLAT * top:
        return None
    for length in 2.0 ** -np.arange(SIDE):
        for side in (1, -1):
            tried = x + side * length * vectors[:, 0]
            there = land.look(tried)
            if there[0] < energy - ROUNDING * (1 + abs(energy)):
                return tried, there
    return None


def _limited(land: _Land, x: np.ndarray, tolerance: float, max_steps: int) -> tuple[np.ndarray, list[Any]]:
    """L-BFGS of SciPy."""
    trace: list[tuple[float, float, float, float]] = []

    def look(v: np.ndarray) -> tuple[float, np.ndarray]:
        energy, loss, slope, _ = land.look(v)
        trace.append((energy, loss, 0.0, float(np.max(np.abs(slope)))))
        return energy, slope

    options = {"maxiter": max_steps, "maxfun": 20 * max_steps, "gtol": tolerance, "ftol": 0.0, "maxcor": 30}
    return optimize.minimize(look, x, jac=True, method="L-BFGS-B", options=options).x, trace


def _fit(land: _Land, x: np.ndarray, energy: float, trace: list[Any], values: Any, arrived: bool) -> FittedParameters:
    problem = land.problem
    field = np.asarray(land.field(x), dtype=np.float64).reshape(problem.grid.shape)
    if np.all(np.isfinite(field)):
        field = projected(problem, field)
    kind = FittedParameters if isinstance(problem.link, Direct) else FittedParametricDensity
    parameters = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), land.back(jnp.asarray(x)))
    outcome = Outcome.converged if arrived else Outcome.stalled
    return kind(field, outcome, problem, energy, trace[-1][3], steps=tuple(trace), parameters=parameters,
                curvatures=values)  # fmt: skip
