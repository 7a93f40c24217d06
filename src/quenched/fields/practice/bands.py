r"""Draws behind the bands of estimators: from the mixture of posteriors that an estimator has weighed.

Each part, of one order and strength, is drawn from by `NUTS` in the modes of its own Laplace Gaussian. Directions that
the data decide by less than `DECIDED` are drawn from that Gaussian itself: there it is the prior. The share of a part
is its Laplace evidence times $Z/Z_{\text{Laplace}}$, the integral of its posterior over that of its Gaussian, by bridge
sampling between draws from both. [meng1996] Parts that are no fields, such as mixtures of few Gaussians, stay as they
are.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg, special

from quenched.core.linear import next_length
from quenched.core.random import normals, split
from quenched.core.types import QUICK, Array, Key, Outcome, double
from quenched.fields.model.problem import Problem
from quenched.fields.practice.sampling import NUTS, diagnose, verdict_of
from quenched.fields.practice.settings import Setting, pick
from quenched.fields.practice.target import Gaussians, Quadratics, Target, Term, Whitened, WholeTerm, term_of

DRAWS = 1000
"""Fields behind a band: its ends at 90% are known to a tenth of its half width."""
DECIDED = 1e-3
"""Share of what is known of a direction that the data must have, or it is drawn from Laplace's Gaussian."""
PARTS = 0.95
"""The most probable parts that have so much of the posterior together are drawn from."""
SAMPLER = NUTS(acceptance=0.9)
"""Of every part; with shorter steps than usual, because log-densities fall steeply where rows are few."""
FEW = 4
"""Strengths, and noises that go with them, from which draws are made where all of them would take too long."""
ROUNDS = 50
"""Of the bridge's iteration."""


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn:
    """Fields behind a band.

    Attributes:
        fields: `[draws, *grid]`, as they are reported.
        outcome: whether they can be trusted.
        verdict: why, as a sentence.
    """

    fields: np.ndarray
    outcome: Outcome
    verdict: str

    @property
    def trusted(self) -> bool:
        """Whether a band may be made of them."""
        return self.outcome is Outcome.converged


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    r"""A posterior $e^{-E_D(\phi) - \frac12 \sum_a \lambda_a c_a^2}$ of the coefficients $c$ of some modes.

    Attributes:
        problem: which says what a field means.
        mean: coefficients of least energy `[a]`.
        factor: lower triangle $L$ and scale $D$: Laplace's covariance is $D^{-1} L^{-T} L^{-1} D^{-1}$.
        values: $\lambda_a$.
        directions: modes as columns of flattened fields `[points, a]`.
        term: the energy of the data of a mean field and roots, both flattened.
        share: its Laplace probability.
    """

    problem: Problem
    mean: np.ndarray
    factor: tuple[np.ndarray, np.ndarray]
    values: np.ndarray
    directions: np.ndarray
    term: Callable[[np.ndarray, np.ndarray], Term]
    share: float = 1.0

    @classmethod
    def of(cls, problem: Problem, mean: np.ndarray, factor: Any, values: np.ndarray, directions: np.ndarray) -> Part:
        """With the data of a problem."""
        return cls(problem, mean, factor, values, directions, functools.partial(_data_term, problem))

    @functools.cached_property
    def _turned(self) -> tuple[np.ndarray, np.ndarray]:
        """Roots as coefficients `[m, a]`, those that the data decide most first, and the share of the prior in each."""
        values, vectors = np.linalg.eigh((self._halves * self.values) @ self._halves.T)
        return vectors.T @ self._halves, values

    @functools.cached_property
    def _halves(self) -> np.ndarray:
        """Roots of Laplace's covariance as coefficients `[a, a]`."""
        lower, scale = self.factor
        return linalg.solve_triangular(lower, np.diag(1 / scale), lower=True, check_finite=False)

    @property
    def decided(self) -> int:
        """How many directions the data decide."""
        return int(np.sum(self._turned[1] < 1 - DECIDED))

    def whitened(self) -> Whitened:
        """In the coordinates that the data decide, padded, so that few numbers of them have a program of their own."""
        roots, prior = self._turned
        m = max(self.decided, 1)
        length = next_length(m, first=8, ratio=2)
        C = np.zeros((length, len(self.mean)))
        C[:m] = roots[:m]
        P = np.eye(length)
        P[:m, :m] = np.diag(prior[:m])
        pushed = C @ (self.values * self.mean)
        mean, rows = self.directions @ self.mean, C @ self.directions.T
        field = mean.reshape(1, -1)
        gaussians = Gaussians([Setting(self.problem, 1.0, None)], np.ones(1), field, [rows], Outcome.converged)
        quadratics = Quadratics(np.zeros(1), P[None], pushed[None], np.zeros(1))
        return Whitened(gaussians, mean, rows, Target(self.term(mean, rows), quadratics))

    def gaussian(self, key: Key, count: int) -> np.ndarray:
        """Fields from Laplace's Gaussian, flattened `[count, points]`; the signs of modes change none."""
        white = normals(key, count, len(self.directions)) @ self.directions
        return (self.mean + white @ self._halves) @ self.directions.T

    @property
    def roots(self) -> np.ndarray:
        """Rows whose products summed up are the covariance of Laplace's Gaussian, flattened fields."""
        return self._turned[0] @ self.directions.T

    def rest(self, key: Key, count: int) -> np.ndarray:
        """What the other directions add to fields, flattened `[count, points]`."""
        roots = self._turned[0][max(self.decided, 1) :]
        return (normals(key, count, len(roots)) @ roots) @ self.directions.T


@dataclasses.dataclass(frozen=True, eq=False)
class Fixed:
    """A Gaussian part that is drawn from as it is: flattened mean, rows of roots, and its share."""

    problem: Problem
    mean: np.ndarray
    roots: np.ndarray
    share: float = 1.0


@double
def draw(parts: Sequence[Part | Fixed], key: Key, count: int = DRAWS) -> Drawn:
    """Fields from a mixture of posteriors.

    Args:
        parts: with their Laplace shares.
        key: of all draws.
        count: of fields, raw ones as the modes give them: log-densities are not normalised.
    """
    likely = sorted(parts, key=lambda part: -part.share)
    before = np.cumsum([0.0, *(part.share for part in likely[:-1])])
    kept = [part for part, so_far in zip(likely, before, strict=True) if so_far < PARTS]
    logs, pools, worst, verdict = [], [], Outcome.converged, ""
    for i, part in enumerate(kept):
        moves, bridge, rest = split(jax.random.fold_in(key, i), 3)
        if isinstance(part, Fixed):
            logs.append(np.log(part.share))
            pools.append(part.mean + normals(moves, count, len(part.roots)) @ part.roots)
            continue
        posterior = part.whitened()
        fields, _, outcome, run = SAMPLER.draw_from(posterior, moves, count, energy=False)
        gain = log_ratio(posterior, run.z, bridge) if len(kept) > 1 else 0.0
        logs.append(np.log(part.share) + gain)
        pools.append(fields.reshape(count, -1) + part.rest(rest, count))
        if not verdict or outcome > worst:
            worst = max(worst, outcome)
            verdict = verdict_of(diagnose(posterior, run, energy=False), outcome, run.z.shape[1])
    at = pick(special.softmax(logs), (np.arange(count) + 0.5) / count)  # shares in even steps
    shape = kept[0].problem.grid.shape
    found = np.array([pools[j][i] for i, j in enumerate(at)]).reshape(count, *shape)
    if not np.all(np.isfinite(found)):
        worst = Outcome.failed
    return Drawn(found, worst, verdict or "the draws are exact")


def thin(shares: np.ndarray, count: int = FEW) -> dict[int, float]:
    """A few of many parts, in even steps of their shares, so that each stands for its neighbours: their new shares."""
    chosen, times = np.unique(pick(shares, (np.arange(count) + 0.5) / count), return_counts=True)
    return dict(zip(chosen.tolist(), (times / count).tolist(), strict=True))


def part_of(trial: Any, share: float) -> Part:
    """The part of a trial that was solved in modes."""
    return part_of_fit(trial.fit, trial.posterior.factor, share)


def part_of_fit(fit: Any, factor: Any, share: float) -> Part:
    """The part of a fit in modes."""
    values = fit.problem.grid.cell * np.ravel(fit.modes.values)
    mean = fit.modes.coefficients(fit.field)
    part = Part.of(fit.problem, mean, factor, values, fit.modes.matrix)
    return dataclasses.replace(part, share=share)


def _data_term(problem: Problem, mean: np.ndarray, roots: np.ndarray) -> Term:
    found = term_of(problem, mean, roots)
    if found is not None:
        return found
    shape = problem.grid.shape
    return WholeTerm(problem, mean.reshape(shape), roots.reshape(-1, *shape), alone=False)


def log_ratio(posterior: Whitened, z: np.ndarray, key: Key) -> float:
    r"""$\ln Z/Z_{\text{Laplace}}$ by bridge sampling from draws of the posterior and as many from the Gaussian.

    Args:
        posterior: in coordinates in which the Gaussian is a standard one.
        z: draws of the posterior `[chains, draws, m]`.
        key: of those from the Gaussian.
    """
    mine = z.reshape(-1, z.shape[-1])
    theirs = normals(key, *mine.shape)
    each = np.concatenate([mine, theirs, np.zeros((1, z.shape[-1]))])
    energy = np.asarray(_energies(posterior.target, jnp.asarray(each)))
    excess = 0.5 * np.sum(each**2, axis=1) - (energy - energy[-1])  # ln of posterior over Gaussian, equal at the mean
    above, below, r = excess[: len(mine)], excess[len(mine) : -1], 0.0
    for _ in range(ROUNDS):  # [meng1996, eq. (4.1)], in logarithms
        top: Any = special.logsumexp(below - np.logaddexp(below, r))
        bottom: Any = special.logsumexp(-np.logaddexp(above, r))
        r, last = float(top - bottom), r
        if abs(r - last) < 1e-6:
            break
    return r


@functools.partial(jax.jit, compiler_options=QUICK)
def _energies(target: Target, z: Array) -> Array:
    return jax.vmap(target.energy)(z)
