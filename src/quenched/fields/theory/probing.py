r"""Laplace's approximation on large grids, without any matrix: by products of the Hessian with random vectors.

With the preconditioner $M = T^{-T} T^{-1}$, whose determinant is known,
$$\ln\det H = \ln\det M + \operatorname{tr} \ln \tilde H, \qquad \tilde H = T^T H T \approx 1 ,$$
and the trace is the mean of $z^T \ln \tilde H\, z$ over random signs $z$. Each is a Gauss quadrature whose nodes are
the eigenvalues of the tridiagonal matrix of some steps of Lanczos from $z$. Its error is that of the mean, and what the
last quarter of the steps still changes.

A draw from the posterior is $H^{-1} y$ with $y \sim \mathcal N(0, H)$, the sum of one from the prior's part and one
from the data's, by conjugate gradients.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import lineax
import numpy as np
from scipy import linalg

from quenched.core import checks
from quenched.core.types import Array, InputError, double
from quenched.fields.model.expansion import DesignCurvature, ShareCurvature
from quenched.fields.model.links import Direct
from quenched.fields.model.modes import require_matrix
from quenched.fields.model.operators import Sum, Waves
from quenched.fields.model.preconditioner import Ground, Preconditioner, ground_of, precondition
from quenched.fields.model.problem import Problem
from quenched.fields.model.products import compiled, hessian_product, look, on_device
from quenched.fields.theory.laplace import Laplace

FIRST, MOST = 40, 320
"""Steps of Lanczos at first, doubled at most up to the second until they change little."""
LITTLE = 0.3
"""The quadrature is good enough if its change is below this share of the error of the mean."""
ENDED = 1e-10
"""An off-diagonal below this share of the largest eigenvalue ends the steps: there are no further directions."""
SOLVED = 1e-5
"""Residual of a draw, as a share of its right side."""
FEW = 16
"""Free directions of the prior that are looked at one by one."""


@dataclasses.dataclass(frozen=True, eq=False)
class ProbedLaplace(Laplace):
    """A Gaussian posterior known through products with its Hessian.

    Variances, and bands with them, are those of random draws; `draws` says how many. The standard error of a variance
    is the share $\\sqrt{2/\\mathrm{draws}}$ of it.

    Attributes:
        log_evidence_error: the standard error of the log-evidence, with that of the quadrature in it.
        steps: of Lanczos that the evidence took.
        draws: of the posterior, for variances and bands.
        seed: of all that is random.
    """

    log_evidence_error: float = np.nan
    steps: int = 0
    draws: int = 100
    seed: int = 0

    @functools.cached_property
    def roots(self) -> np.ndarray:
        """Draws divided by the root of their number: the sum of their squares is the variance, but for their error."""
        return self.sample(self.draws, self.seed).reshape(self.draws, -1) / np.sqrt(self.draws)

    @property
    def covariance(self) -> np.ndarray:
        """Of flattened fields `[points, points]`, as far as the draws know it."""
        require_matrix(self.field.size, "the variance needs none")
        return self.roots.T @ self.roots

    @property
    def variance_error(self) -> np.ndarray:
        """The standard error of the variance at each point."""
        return np.sqrt(2 / self.draws) * self.variance

    @double
    def sample(self, count: int, seed: int = 0) -> np.ndarray:
        """Differences from the mean of fields drawn from the posterior.

        Args:
            count: how many.
            seed: of their random numbers.

        Returns:
            Fields `[count, ...]`.
        """
        count, seed = checks.whole("count", count, least=1), checks.whole("seed", seed, least=0)
        random, draw = np.random.default_rng(seed), _forces(self.problem, self.field)
        problem, M, field = _prepare(self.problem, self.field)
        return np.stack([_solve(problem, M, field, jnp.asarray(draw(random))) for _ in range(count)])


def probe(problem: Problem, field: np.ndarray, probes: int, seed: int, least: float) -> ProbedLaplace:
    """The posterior about a field of least energy, with its evidence from random vectors.

    Args:
        problem: of a log-density or a regression, with a Gaussian prior whose determinant is known.
        field: where the energy is least.
        probes: how many vectors, at least two: their scatter is the error.
        seed: of their random signs.
        least: the energy of the prior where it is least.
    """
    link, grid = problem.link, problem.grid
    closed = isinstance(link, Direct) or (link.exponential and not link.linear)
    if not closed or problem.parts is None:
        raise InputError("Argument `probes` must be None here, because only log-densities (LogDensity, Shifted) and "
                         "regressions (Direct) with Gaussian priors have an evidence from products.")  # fmt: skip
    device, M, phi = _prepare(problem, field)
    random = np.random.default_rng(seed)
    signs = [jnp.asarray(random.choice([-1.0, 1.0], size=grid.shape)) for _ in range(probes)]
    energy, log_det_M = float(_energy(device, phi)), float(M.logdet())
    log_shift = float(_shift_of(device, M)[1])
    steps = min(FIRST, grid.size)
    while True:
        lines = [_lanczos_from(device, M, phi, z, steps) for z in signs]
        pairs = np.array([_logarithms(np.asarray(a), np.asarray(b), grid.size) for a, b in lines])
        error = float(np.std(pairs[:, 0], ddof=1) / np.sqrt(probes))
        change = float(abs(np.mean(pairs[:, 0] - pairs[:, 1])))
        if change <= LITTLE * error or 2 * steps > MOST or steps >= grid.size:
            break
        steps *= 2
    taken = 0 if isinstance(link, Direct) else grid.blocks[0]
    log_det_H = log_det_M + float(np.mean(pairs[:, 0])) - log_shift
    zeros, proper = _free(problem, device, phi, taken)
    d_H, d_K = grid.size - taken, grid.size - zeros
    log_det_K = problem.operator.logdet() + d_K * np.log(grid.cell)
    evidence = least - energy + 0.5 * (log_det_K - log_det_H) + 0.5 * (d_H - d_K) * np.log(2 * np.pi)
    nothing: Any = (np.zeros((0, 0)), np.zeros(0))
    return ProbedLaplace(np.asarray(field), evidence, proper, problem, nothing, None,
                         log_evidence_error=0.5 * float(np.hypot(error, change)), steps=steps, seed=seed)  # fmt: skip


def _free(problem: Problem, device: Problem, field: Array, taken: int) -> tuple[int, bool]:
    """How many directions the prior leaves free, and whether none of them is one of the density or function."""
    K = problem.operator
    if not isinstance(K, Waves):
        null = K.null_space()
        zeros = len(null)
    else:
        zeros = int(np.count_nonzero(np.broadcast_to(np.asarray(K.values), K.grid.shape) == 0))
        null = K.null_space() if zeros <= FEW else None
    if null is None:
        return zeros, zeros == taken
    product, rough = hessian_product(device, field), np.random.default_rng(0).normal(size=K.grid.shape)
    scale = float(jnp.linalg.norm(product(jnp.asarray(rough)))) / np.linalg.norm(rough)
    return zeros, all(float(jnp.linalg.norm(product(jnp.asarray(one)))) <= 1e-9 * scale for one in null)


def _prepare(problem: Problem, field: np.ndarray) -> tuple[Problem, Preconditioner, Array]:
    """Problem, preconditioner and field where JAX computes."""
    device, phi = on_device(problem), jnp.asarray(field)
    return device, _preconditioner(device, ground_of(device), phi), phi


@compiled
def _preconditioner(problem: Problem, ground: Ground, field: Array) -> Preconditioner:
    return precondition(problem, ground, field)


@compiled
def _energy(problem: Problem, field: Array) -> Array:
    return look(problem, field)[0][0]


def _shift_of(problem: Problem, M: Preconditioner) -> tuple[Callable[[Array], Array], Array]:
    r"""What is added to $\tilde H$ along what normalisation takes away, and what this adds to its $\ln\det$.

    A density has one such direction $g$, and with $w = T^{-1} g$ the addition $w w^T/w^2$ makes $\tilde H$ nearly the
    identity there, too: $\det(H + a a^T) = (g \cdot a)^2 \det' H$ for $H g = 0$, with $a = M g/|w|$. If there is one
    for each x, each gets the curvature of the constant in the preconditioner.
    """
    if isinstance(problem.link, Direct):
        return jnp.zeros_like, jnp.array(0.0)
    if problem.grid.blocks[0] == 1:
        w = M.coordinates(jnp.full(problem.grid.shape, problem.grid.size**-0.5))
        return lambda c: jnp.vdot(w, c) / jnp.vdot(w, w) * w, jnp.log(jnp.vdot(w, w))
    level = jnp.min(M.stiffness)
    return lambda c: level * M.gather(_shift(problem, M.spread(c))), problem.grid.blocks[0] * jnp.log(level)


def _shift(problem: Problem, field: Array) -> Array:
    """The part of a field that depends on x alone."""
    return jnp.broadcast_to(jnp.mean(field, axis=problem.grid.dims, keepdims=True), field.shape)


@compiled
def _lanczos_from(problem: Problem, M: Preconditioner, field: Array, z: Array, steps: Any) -> tuple[Array, Array]:
    r"""Diagonal and off-diagonal of the tridiagonal matrix of $\tilde H$."""
    product, (add, _) = hessian_product(problem, field), _shift_of(problem, M)

    def step(i: Any, state: Any) -> Any:
        before, c, b, diagonal, beside = state
        w = M.gather(product(M.spread(c))) + add(c) - b * before
        a = jnp.vdot(c, w)
        w = w - a * c
        b = jnp.linalg.norm(w)
        return c, w / jnp.where(b > 0, b, 1.0), b, diagonal.at[i].set(a), beside.at[i].set(b)

    none = jnp.zeros(MOST)
    start = (jnp.zeros_like(z), z / jnp.linalg.norm(z), jnp.array(0.0), none, none)
    return jax.lax.fori_loop(0, steps, step, start)[3:]


def _spectrum(diagonal: np.ndarray, beside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, not below rounding, and eigenvectors of the tridiagonal matrix, up to where it falls apart."""
    used = int(np.count_nonzero(diagonal))
    ended = np.flatnonzero(beside[:used] <= ENDED * np.max(np.abs(diagonal)))
    used = int(ended[0]) + 1 if len(ended) else used
    values, vectors = linalg.eigh_tridiagonal(diagonal[:used], beside[: used - 1])
    if values[0] <= 0:
        raise InputError("Argument `fit` must be a minimum of the energy, but there a curvature is not positive.")
    return values, vectors


def _logarithms(diagonal: np.ndarray, beside: np.ndarray, size: int) -> tuple[float, float]:
    """The quadrature of the logarithm, with all steps and with three quarters of them."""
    found = []
    for share in (1.0, 0.75):
        kept = diagonal.copy()
        kept[int(np.ceil(share * np.count_nonzero(diagonal))) :] = 0.0
        values, vectors = _spectrum(kept, beside)
        found.append(size * float(vectors[0] ** 2 @ np.log(values)))
    return found[0], found[1]


def _forces(problem: Problem, field: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """A function that draws fields whose covariance is the Hessian."""
    grid, K = problem.grid, problem.operator
    data = problem.expand_data(field)[2]
    terms = K.terms if isinstance(K, Sum) else ((1.0, K),)
    if not all(isinstance(term, Waves) for _, term in terms) or not isinstance(data, (ShareCurvature, DesignCurvature)):
        raise InputError("Draws must be of a problem with DensityData or GaussianData and priors made of Laplacian, "
                         "Difference and Mass, but this is another one.")  # fmt: skip
    roots = []
    for factor, term in terms:
        orders = tuple(order or 0 for order in term.orders)  # pyright: ignore[reportAttributeAccessIssue]
        values = np.asarray(term.values)  # pyright: ignore[reportAttributeAccessIssue]
        roots.append((np.sqrt(grid.cell * factor * values), Waves(grid, values, orders)))
    if isinstance(data, DesignCurvature):
        S, spread = data.design, np.sqrt(data.weights)

        def push(random: np.random.Generator) -> np.ndarray:
            return _prior_force(roots, random) + (S.T @ (spread * random.normal(size=len(spread)))).reshape(grid.shape)

        return push
    p, about = data.shares, field - problem.log_integral(field)
    pull = sum(grid.cell * np.asarray(one.operator.apply(about - np.asarray(one.mean))) for one in problem.parts or [])
    level = data.level - np.reshape(pull, p.shape).sum(axis=1)  # the prior bends the normalisation, too
    if np.any(level <= 0):
        raise InputError("Draws must be of a problem with more rows at each x than the prior pulls at the norm there, "
                         f"but at some x they are {float(level.min()):.3g} fewer.")  # fmt: skip

    def draw(random: np.random.Generator) -> np.ndarray:
        seen = np.sqrt(level[:, None] * p) * random.normal(size=p.shape)
        total = _prior_force(roots, random).reshape(p.shape) + seen
        return (total - p * total.sum(axis=1, keepdims=True)).reshape(grid.shape)

    return draw


def _prior_force(roots: list[tuple[np.ndarray, Waves]], random: np.random.Generator) -> np.ndarray:
    """A field whose covariance is the operator of the prior."""
    total = np.zeros(roots[0][1].grid.shape)
    for root, waves in roots:
        total = total + waves.from_modes(root * random.normal(size=total.shape))
    return total


@compiled
def _solve(problem: Problem, M: Preconditioner, field: Array, right: Array) -> Array:
    """The Hessian's inverse times a field, without what normalisation takes away."""
    product, shape = hessian_product(problem, field), jax.ShapeDtypeStruct(field.shape, field.dtype)
    tag = lineax.positive_semidefinite_tag
    found = lineax.linear_solve(
        lineax.FunctionLinearOperator(product, shape, tag),
        right,
        lineax.CG(rtol=SOLVED, atol=0.0, norm=jnp.linalg.norm, max_steps=MOST),
        options={"preconditioner": lineax.FunctionLinearOperator(M.solve, shape, tag)},
        throw=False,
    ).value
    return found if isinstance(problem.link, Direct) else found - _shift(problem, found)
