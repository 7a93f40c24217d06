r"""Draws from posteriors with several maxima: populations of fields, taken there by degrees.

Fields are drawn from a mixture of Gaussians $q$ and moved to the posterior $p$ along
$q^{1-\beta} p^\beta$: at every step of $\beta$ they are drawn again in proportion to their weights, and move by
Hamiltonian trajectories (tempered sequential Monte Carlo, by blackjax). A population needs no path from one maximum to
another: fields that represent a maximum multiply or die out, until their number is its share. [delmoral2006]

$q$ is Laplace's mixture, a Gaussian for each alternative, where the likelihood is convex, so that every maximum has its
alternative; otherwise it is the prior itself, and $\beta$ is the weight of the data. Several populations that know
nothing of each other show by R-hat whether shares can be trusted. In each, the effective sample size is at most that of
the families: $1/\sum_e s_e^2$ of the shares $s_e$ of fields that descend from one at the beginning. [lee2018]
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg, optimize, special

from quenched.core import checks
from quenched.core.linear import next_length
from quenched.core.random import normals, split, uniforms
from quenched.core.types import QUICK, Array, InputError, Key
from quenched.fields.practice.sampling import Run, Sampler, require_sampler
from quenched.fields.practice.settings import pick, require_proper
from quenched.fields.practice.target import Quadratics, Target, Whitened

KEPT = 0.8
"""The effective share of a population that the next step leaves: smaller ones lose families, larger ones need more
steps."""
STAGES = 200
"""Steps at most; a population that has not arrived is not finite."""
LENGTH, ACCEPTED = 1.5, 0.8
"""Length of a trajectory, a quarter of the period in whitened coordinates; and the acceptance to which its step is
set."""
PARTICLES = 256
"""Populations have this number of fields times a power of two, so that few programs are compiled."""


@dataclasses.dataclass(frozen=True)
class Tempered(Sampler):
    """Populations of fields that are taken to the posterior by degrees: for alternatives that leave several maxima.

    Attributes:
        moves: trajectories of every field at every step.
        from_prior: whether populations begin at the prior; by default where the likelihood is not convex, and at
            Laplace's mixture of Gaussians otherwise.

    Examples:
        >>> from quenched import fields
        >>> method = fields.Tempered(from_prior=True)
    """

    moves: int = 5
    from_prior: bool | None = None

    pooled = False

    def __post_init__(self):
        checks.whole("moves", self.moves, least=1)
        if self.from_prior is not None:
            checks.flag("from_prior", self.from_prior)

    def run(self, posterior: Whitened, key: Key, draws: int, chains: int) -> Run:
        """See `Sampler`."""
        require_sampler()
        before, moves = split(key, 2)
        problem = posterior.gaussians.problem
        prior = not problem.likelihood.convex if self.from_prior is None else self.from_prior
        count = next_length(draws, first=PARTICLES, ratio=2)
        base, z = _beginning(posterior, prior, before, (chains, count))
        flow = _Flow(posterior.target, base, jnp.asarray(z), self.moves, moves)
        while flow.beta < 1 and flow.stage < STAGES:
            flow.advance(_next(flow.ratios(), flow.beta))
        energy, divergences = flow.settle()
        z = np.asarray(flow.z)[:, :draws]
        arrived = flow.beta == 1
        facts = {"beta": ("stage", np.array(flow.betas)), "acceptance": flow.accepted, "step": flow.step}
        if not arrived:
            energy = np.full_like(energy, np.nan)
        return Run(z, energy[:, :draws], divergences, flow.families() * draws / count, facts)


def _next(ratios: np.ndarray, beta: float) -> float:
    """The next $\beta$, up to which the least population keeps its effective share."""

    def left(step: float) -> float:
        logs = step * ratios
        total: Any = special.logsumexp(logs, axis=1, keepdims=True)
        w = np.exp(logs - total)
        return float(np.min(1 / np.sum(w**2, axis=1))) / ratios.shape[1] - KEPT

    if not np.all(np.isfinite(ratios)) or left(1 - beta) >= 0:
        return 1.0
    return beta + float(optimize.brentq(left, 0.0, 1 - beta, xtol=1e-12))  # pyright: ignore[reportArgumentType]


def _beginning(posterior: Whitened, prior: bool, key: Key, shape: tuple[int, int]) -> tuple[Quadratics, np.ndarray]:
    """The mixture of Gaussians at the beginning, in whitened coordinates, and draws from it `[*shape, m]`."""
    gaussians = posterior.gaussians
    if prior:
        if posterior.target.prior is None:
            raise InputError("Argument `from_prior` must be False for this problem, because fields cannot be drawn "
                             "from its prior.")  # fmt: skip
        for one in gaussians.settings:
            require_proper(one.problem)
        given = posterior.target.prior
        matrices = np.asarray(given.matrices)
        centres = np.array([-np.linalg.solve(P, b) for P, b in zip(matrices, np.asarray(given.slopes), strict=True)])
        shares = np.array([one.weight for one in gaussians.settings])
    else:
        shares = gaussians.shares
        inverse = np.linalg.pinv(posterior.roots, rcond=1e-13)
        lower = [np.linalg.inv(roots @ inverse) for roots in gaussians.roots]
        matrices = np.array([R @ R.T for R in lower])
        centres = posterior.coordinates(gaussians.fields)
    roots = [linalg.solve_triangular(np.linalg.cholesky(A), np.eye(len(A)), lower=True) for A in matrices]
    kept = shares > 0
    which, what = split(key, 2)
    at = pick(shares, uniforms(which, *shape).ravel())
    noise = normals(what, *shape, matrices.shape[1]).reshape(len(at), -1)
    z = centres[at] + np.array([e @ roots[j] for e, j in zip(noise, at, strict=True)])
    half = np.array([0.5 * np.linalg.slogdet(A)[1] for A in matrices])
    pushed = np.einsum("jab,jb->ja", matrices, centres)
    weights = np.where(kept, np.log(np.where(kept, shares, 1.0)), -np.inf) + half
    base = Quadratics(weights, matrices, -pushed, 0.5 * np.sum(centres * pushed, axis=1))
    return base, z.reshape(*shape, -1)


class _Flow:
    """Populations on their way."""

    def __init__(self, target: Target, base: Quadratics, z: Array, moves: int, key: Key):
        chains, count, m = z.shape
        self.target, self.base, self.moves, self.key = target, base, moves, key
        self.z, self.weights = z, jnp.full((chains, count), 1 / count)
        self.eve = np.tile(np.arange(count), (chains, 1))
        self.beta, self.betas, self.stage, self.step, self.accepted = 0.0, [0.0], 0, 0.9 * m**-0.25, 0.0

    def ratios(self) -> np.ndarray:
        """Logarithms of posterior over beginning, of each field."""
        return np.asarray(_ratios(self.target, self.base, self.z))

    def advance(self, beta: float) -> tuple[Array, int]:
        """Draw again, move, and weigh for the next temperature."""
        key = jax.random.fold_in(self.key, self.stage)
        leaps = int(np.clip(np.ceil(LENGTH / self.step), 1, 64))
        out = _advance(self.target, self.base, self.z, self.weights, self.beta, beta, key, self.step, leaps, self.moves)
        self.z, self.weights, ancestors, rate, divergent, energy = out
        self.eve = np.take_along_axis(self.eve, np.asarray(ancestors), axis=1)
        self.accepted = float(rate)
        self.step = float(np.clip(self.step * np.exp(1.5 * (self.accepted - ACCEPTED)), 1e-3, 2.0))
        self.beta, self.stage = beta, self.stage + 1
        self.betas.append(beta)
        return energy, int(divergent)

    def settle(self) -> tuple[np.ndarray, int]:
        """Draw again at the end, and move: energies, and trajectories that diverged."""
        self.advance(self.beta)
        energy, divergences = self.advance(self.beta)
        self.betas = self.betas[:-2]
        return np.asarray(energy), divergences

    def families(self) -> np.ndarray:
        """The effective number of families in each population."""
        count = self.eve.shape[1]
        return np.array([1 / np.sum((np.bincount(one, minlength=count) / count) ** 2) for one in self.eve])


@functools.partial(jax.jit, compiler_options=QUICK)
def _ratios(target: Target, base: Quadratics, z: Array) -> Array:
    return jax.vmap(jax.vmap(lambda x: base.energy(x) - target.energy(x)))(z)


@functools.partial(jax.jit, static_argnames=("moves",), compiler_options=QUICK)
def _advance(
    target: Target, base: Quadratics, z: Array, weights: Array, beta: Any, after: Any, key: Key, step: Any, leaps: Any,
    moves: int,
) -> tuple[Array, ...]:  # fmt: skip
    """One step of blackjax's tempered populations: fields, weights, ancestors, acceptance, divergences, energies."""
    from blackjax.mcmc import hmc
    from blackjax.smc import resampling, tempered

    chains, count, m = z.shape
    kernel: Any = hmc.build_kernel()

    def move(key: Key, state: Any, log: Any, step: Array) -> Any:
        return kernel(key, state, log, step, jnp.ones(m), leaps)

    def ratio(x: Array) -> Array:
        return base.energy(x) - target.energy(x)

    advance = tempered.build_kernel(lambda x: -base.energy(x), ratio, move, hmc.init, resampling.systematic)

    def one(key: Key, particles: Array, w: Array) -> tuple[Array, ...]:
        jitter, rest = jax.random.split(key)
        steps = step * jax.random.uniform(jitter, (count,), minval=0.7, maxval=1.0)  # no field is always at one phase
        state, info = advance(rest, tempered.TemperedSMCState(particles, w, beta), moves, after, {"step": steps})
        moved = info.update_info
        return (state.particles, state.weights, info.ancestors, jnp.mean(jnp.nan_to_num(moved.acceptance_rate)),
                jnp.sum(moved.is_divergent), jax.vmap(target.energy)(state.particles))  # fmt: skip

    x, w, ancestors, rate, divergent, energy = jax.vmap(one)(jax.random.split(key, chains), z, weights)
    return x, w, ancestors, jnp.mean(rate), jnp.sum(divergent), energy
