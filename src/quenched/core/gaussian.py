r"""Gaussian averages: closed forms where they exist, quadrature where they do not.

* one variable: `average` (Gauss-Hermite, smooth functions), `average_split` (Gauss-Legendre pieces between kinks);
* several correlated variables: `average_correlated` (Gauss-Hermite products through a square root);
* probabilities: `bivariate_cdf` (Owen's T, with its exact derivatives) and `orthant`, $P(y > 0)$ for
  $y \sim \mathcal N(m, C)$, by closed forms up to two dimensions and nested quadrature above.

Everything is pure JAX, differentiable, and meant for double precision.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from quenched.core.types import Array, Real

TAIL = 9.0
"""Standard deviations after which a Gaussian is cut: the mass beyond is 2e-19."""

NODES = 48
"""Gauss-Legendre nodes of one nested integral of `orthant`."""


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


def average_split(
    function: Callable[[Array], Array], kinks: Array, mean: Real = 0.0, variance: Real = 1.0, *, nodes: int = 64
) -> Array:
    r"""$\langle f(x) \rangle$ for an $f$ that is smooth between `kinks` (jumps included).

    Args:
        function: of one number.
        kinks: where it is not smooth, shape `[n]`, in increasing order; those in the far tails do no harm.
        mean: of the Gaussian.
        variance: of the Gaussian.
        nodes: Gauss-Legendre nodes on each of the `n + 1` pieces.
    """
    sd = jnp.sqrt(variance)
    cuts = jnp.clip((jnp.asarray(kinks) - mean) / sd, -TAIL, TAIL)
    edges = jnp.concatenate([jnp.array([-TAIL]), cuts, jnp.array([TAIL])])
    x, w = legendre(nodes)
    z = edges[:-1, None] + jnp.diff(edges)[:, None] * x  # [pieces, nodes]
    weights = jnp.diff(edges)[:, None] * w * pdf(z)
    values = jax.vmap(jax.vmap(function))(jnp.asarray(mean + sd * z))
    return jnp.tensordot(weights, values, axes=2)


def average_correlated(function: Callable[[Array], Array], mean: Array, cov: Array, *, nodes: int = 32) -> Array:
    r"""$\langle f(x) \rangle$ for $x \sim \mathcal N(\text{mean}, \text{cov})$ in a few dimensions and a smooth $f$.

    `cov` must be positive definite. The cost is `nodes` to the power of the dimension.
    """
    x, w = hermite(nodes)
    d = mean.shape[0]
    grid = jnp.stack(jnp.meshgrid(*[jnp.asarray(x)] * d, indexing="ij"), axis=-1).reshape(-1, d)
    weights = functools.reduce(np.multiply.outer, [w] * d).reshape(-1)
    return jnp.tensordot(weights, jax.vmap(function)(mean + grid @ jnp.linalg.cholesky(cov).T), axes=1)


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


def orthant(mean: Array, cov: Array) -> Array:
    r"""$P(y_1 > 0, \dots, y_d > 0)$ for $y \sim \mathcal N(\text{mean}, \text{cov})$.

    $d = 1, 2$ are closed; above, one variable is integrated by `NODES` Gauss-Legendre nodes and the others are
    conditioned on it, so the cost is `NODES` to the power $d - 2$. Meant for $d \le 4$.
    """
    d = mean.shape[0]
    if d == 0:
        return jnp.ones(())
    sd = jnp.sqrt(jnp.diagonal(cov))
    if d == 1:
        return cdf(mean[0] / sd[0])
    if d == 2:
        return bivariate_cdf(mean[0] / sd[0], mean[1] / sd[1], cov[0, 1] / (sd[0] * sd[1]))
    low = jnp.clip(-mean[0] / sd[0], -TAIL, TAIL)
    x, w = legendre(NODES)
    z = low + (TAIL - low) * x
    slope = cov[1:, 0] / sd[0]
    rest = cov[1:, 1:] - jnp.outer(slope, slope)
    inner = jax.vmap(lambda z: orthant(mean[1:] + slope * z, rest))(z)
    return (TAIL - low) * jnp.sum(w * pdf(z) * inner)
