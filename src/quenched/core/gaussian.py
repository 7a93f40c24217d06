r"""Gaussian averages: closed forms where they exist, quadrature where they do not.

Everything is pure JAX, differentiable, and meant for double precision.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri

from quenched.core.types import Array, Real

TAIL = 9.0
"""Standard deviations after which a Gaussian is cut: the mass beyond is 2e-19."""
DEPENDENT = 1e-15
"""A variance that is smaller than this share of what it was, once another variable is given, is rounding."""
NODES = 48
"""Gauss-Legendre nodes of one nested integral of `orthant`."""
BREAKS = np.array([-TAIL, -4.0, -1.5, 1.5, 4.0, TAIL])
"""Standard deviations at which the pieces of a careful nested integral of `orthant` meet in any case."""
STEPS = np.array([-8.0, -2.5, 0.0, 2.5, 8.0])
"""The same around a place where another variable decides, in units of the width of that place."""
POINTS = 512
"""Points of `orthant_sampled`."""
ROUGH = 1e-10
"""Share of their variances that is added to the variables of `orthant_sampled`, which may depend on each other."""


def pdf(x: Real) -> Array:
    r"""Standard normal density $\varphi(x)$."""
    return jnp.exp(-0.5 * jnp.square(x)) / np.sqrt(2 * np.pi)


def cdf(x: Real) -> Array:
    r"""Standard normal distribution function $\Phi(x) = (2\pi)^{-1/2} \int_{-\infty}^x e^{-t^2/2} dt$."""
    return ndtr(jnp.asarray(x))


@functools.lru_cache(maxsize=32)
def hermite(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the average over a standard normal variable (the weights sum to 1)."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    return x, w / w.sum()


@functools.lru_cache(maxsize=32)
def legendre(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the integral over [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return (x + 1) / 2, w / 2


def average(function: Callable[[Array], Array], mean: Real = 0.0, variance: Real = 1.0, *, nodes: int = 64) -> Array:
    r"""$\langle f(x) \rangle$ for $x \sim \mathcal N(\text{mean}, \text{variance})$ and a smooth $f$."""
    x, w = hermite(nodes)
    return jnp.tensordot(w, jax.vmap(function)(jnp.asarray(mean + jnp.sqrt(variance) * x)), axes=1)


def _owen_t(h: Array, a: Array) -> Array:
    r"""Owen's $T(h, a) = \frac{1}{2\pi} \int_0^a e^{-h^2 (1 + x^2)/2} / (1 + x^2)\, dx$ for $|a| \le 1$."""
    x, w = legendre(24)
    t = 1 + jnp.square(a[..., None] * x)
    return a / (2 * np.pi) * jnp.sum(w * jnp.exp(-0.5 * jnp.square(h)[..., None] * t) / t, axis=-1)


def _owen_half(h: Array, k: Array, rho: Array, s: Array) -> Array:
    r"""$T(h, a)$ with $a = (k - \rho h)/(h s)$ of any size, without dividing by a small number.

    For $|a| > 1$: $T(h, a) = \frac12 \Phi(h) + \frac12 \Phi(ah) - \Phi(h)\Phi(ah) - T(ah, 1/a) - [a < 0]/2$, taken at
    $h \ge 0$ since $T$ is even in $h$.
    """
    g = (k - rho * h) / s  # a h, finite for every h
    sign = jnp.where(h < 0, -1.0, 1.0)
    h, g = sign * h, sign * g
    small = jnp.abs(g) <= h
    inner = _owen_t(h, jnp.where(small, g, 0.0) / jnp.where(small & (h > 0), h, 1.0))
    outer = _owen_t(g, jnp.where(small, 0.0, h) / jnp.where(small, 1.0, g))
    P, G = ndtr(h), ndtr(g)
    # T(-h, a) = T(h, a), while the flip of both signs above has kept a: nothing else to undo.
    return jnp.where(small, inner, 0.5 * P + 0.5 * G - P * G - outer - jnp.where(g < 0, 0.5, 0.0))


@jax.custom_jvp
def _bivariate(h: Array, k: Array, rho: Array) -> Array:
    s = jnp.sqrt((1 - rho) * (1 + rho))
    origin = (h == 0) & (k == 0)  # there Owen's a depends on the direction of approach: take h = k
    h, k = jnp.where(origin, 1e-150, h), jnp.where(origin, 1e-150, k)
    quadrant = jnp.sign(h) * jnp.sign(k)  # not h * k, which may underflow to 0
    beta = jnp.where((quadrant > 0) | ((quadrant == 0) & (h + k >= 0)), 0.0, 0.5)
    value = 0.5 * (ndtr(h) + ndtr(k)) - _owen_half(h, k, rho, s) - _owen_half(k, h, rho, s) - beta
    return jnp.clip(value, 0.0, 1.0)


@_bivariate.defjvp
def _bivariate_jvp(primals, tangents):
    h, k, rho = primals
    dh, dk, drho = tangents
    s = jnp.sqrt((1 - rho) * (1 + rho))
    density = jnp.exp(-0.5 * (jnp.square(h) + jnp.square((k - rho * h) / s))) / (2 * np.pi * s)
    slope = pdf(h) * ndtr((k - rho * h) / s) * dh + pdf(k) * ndtr((h - rho * k) / s) * dk + density * drho
    return _bivariate(h, k, rho), slope


def bivariate_cdf(h: Real, k: Real, rho: Real) -> Array:
    r"""$P(x < h, y < k)$ for standard normal $x, y$ with correlation $\rho$, to machine precision.

    Its derivatives are the closed ones, $\partial_h = \varphi(h)\, \Phi((k - \rho h)/\sqrt{1 - \rho^2})$ and so on.
    """
    h, k, rho = jnp.broadcast_arrays(jnp.asarray(h, float), jnp.asarray(k, float), jnp.asarray(rho, float))
    return _bivariate(h, k, jnp.clip(rho, -1 + 1e-15, 1 - 1e-15))


def orthant(mean: Array, cov: Array, *, careful: bool = False) -> Array:
    r"""$P(y_1 > 0, \dots, y_d > 0)$ for $y \sim \mathcal N(\text{mean}, \text{cov})$.

    $d = 1, 2$ are closed. Above, one variable is integrated by `NODES` Gauss-Legendre nodes and the others are
    conditioned on it; the two most correlated ones are left for the closed form. The cost is `NODES` to the power
    $d - 2$. Meant for $d \le 4$. `careful` is for variables that nearly or wholly depend on each other: where others
    decide within a narrow interval of the first, nodes are put there too, at about four times the cost.
    """
    d = mean.shape[0]
    if d == 0:
        return jnp.ones(())
    sd = jnp.sqrt(jnp.maximum(jnp.diagonal(cov), 1e-300))
    if d == 1:
        return cdf(mean[0] / sd[0])
    if d == 2:
        return bivariate_cdf(mean[0] / sd[0], mean[1] / sd[1], cov[0, 1] / (sd[0] * sd[1]))
    order = _order(jax.lax.stop_gradient(cov / jnp.outer(sd, sd)))
    mean, cov, sd = mean[order], cov[jnp.ix_(order, order)], sd[order]
    slope = cov[1:, 0] / sd[0]
    rest = at_least(cov[1:, 1:] - jnp.outer(slope, slope), DEPENDENT * jnp.diagonal(cov)[1:])
    low = jnp.clip(-mean[0] / sd[0], -TAIL, TAIL)
    edges, nodes = jnp.stack([low, jnp.asarray(TAIL)]), NODES
    if careful:
        edges = jnp.sort(jnp.clip(jax.lax.stop_gradient(_edges(mean[1:], slope, rest)), low, TAIL))
        edges = edges.at[0].set(low)  # the lower end moves with the parameters, the others are only a choice
        nodes = 8 if d == 3 else 6
    x, w = legendre(nodes)
    z = (edges[:-1, None] + jnp.diff(edges)[:, None] * x).reshape(-1)
    weights = (jnp.diff(edges)[:, None] * w).reshape(-1)
    inner = jax.vmap(lambda z: orthant(mean[1:] + slope * z, rest, careful=careful))(z)
    return jnp.sum(weights * pdf(z) * inner)


@functools.lru_cache(maxsize=32)
def _cube(dimension: int) -> np.ndarray:
    """Evenly spread points of the unit cube, always the same."""
    from scipy.stats import qmc  # scipy.stats takes longer to import than all else here

    return qmc.Sobol(dimension, rng=1).random(POINTS)


def orthant_sampled(mean: Array, cov: Array) -> Array:
    r"""`orthant` in any dimension, to about 1e-4: an average over `POINTS` fixed points.

    Variables are drawn one after the other, each given that it and those before it are positive; what is averaged is
    the product of the probabilities of that [genz1992]. It is smooth, and the points do not change, so that the result
    is a smooth function of the parameters.
    """
    d = mean.shape[0]
    if d <= 2:
        return orthant(mean, cov)
    sd = jnp.sqrt(jnp.maximum(jnp.diagonal(cov), 1e-300))
    m, L = mean / sd, jnp.linalg.cholesky(cov / jnp.outer(sd, sd) + ROUGH * jnp.eye(d))
    u, x = jnp.asarray(_cube(d - 1)), jnp.zeros((POINTS, 0))
    total = jnp.ones(POINTS)
    for i in range(d):
        chance = ndtr((m[i] + x @ L[i, :i]) / L[i, i])
        total = total * chance
        if i < d - 1:
            x = jnp.column_stack([x, -ndtri(jnp.clip(u[:, i] * chance, 1e-300, 1 - 1e-16))])
    return jnp.mean(total)


def at_least(cov: Array, least: Array) -> Array:
    """A covariance whose variances are no smaller than `least`, where rounding may have made them."""
    index = np.arange(cov.shape[0])
    return cov.at[index, index].set(jnp.maximum(jnp.diagonal(cov), least))


def _order(correlation: Array) -> Array:
    """Variables by how much they depend on another one: the two that do most, last."""
    d = correlation.shape[0]
    dependence = jnp.where(np.eye(d, dtype=bool), -1.0, jnp.abs(correlation))
    pair = jnp.stack(jnp.divmod(jnp.argmax(dependence), d))
    most = jnp.max(dependence, axis=1).at[pair].set(2.0)
    return jnp.argsort(most)


def _edges(mean: Array, slope: Array, rest: Array) -> Array:
    """Where pieces of the first variable meet, so that the others' probability is smooth on each of them."""
    sd = jnp.sqrt(jnp.diagonal(rest))
    level, rise = mean / sd, slope / sd  # the others are positive with probability Phi(level + rise z)
    if mean.shape[0] > 2:  # in four dimensions the one that changes most steeply; the others are met further inside
        steepest = jnp.argmax(jnp.abs(rise))
        crossing, width = _crossing(level[steepest], rise[steepest], 1.0)
        return jnp.concatenate([BREAKS, crossing + width * STEPS])
    single, width = _crossing(level[:, None], rise[:, None], 1.0)
    rho = rest[0, 1] / (sd[0] * sd[1])
    side = jnp.where(rho < 0, -1.0, 1.0)  # dependent ones trade places where both are equally likely
    trade = (level[1] - side * level[0], rise[1] - side * rise[0], jnp.sqrt(jnp.maximum(1 - rho**2, 0.0)))
    both, narrow = _crossing(*trade)
    return jnp.concatenate([BREAKS, (single + width * STEPS).reshape(-1), both + narrow * STEPS])


def _crossing(level: Array, rise: Array, width: Real) -> tuple[Array, Array]:
    """Where a straight line meets zero, far away if nowhere, and over which interval it grows by `width`."""
    steep = jnp.where(jnp.abs(rise) > 1e-6, rise, 1e-6)
    return -level / steep, jnp.asarray(width) / jnp.abs(steep)
