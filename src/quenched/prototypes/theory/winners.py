r"""Who wins: averages over one new example, given the overlaps.

For prototype $S$ and an example of cluster $k$ the projections $h_T = w_T\cdot\xi$ and $b_m = B_m\cdot\xi$ are
Gaussian with means $\lambda_k R_{Tk}$, $\lambda_k B_m\cdot B_k$ and covariances $v_k Q$, $v_k R$. $S$ wins if its
score $2 h_S - Q_{SS}$ is the largest. Needed are

* `win[S, k]` $= \langle\Theta_S\rangle_k$, the probability that $S$ wins,
* `h[S, T, k]` $= \langle h_T \Theta_S\rangle_k$ and `b[S, m, k]` $= \langle b_m \Theta_S\rangle_k$,
  the mean projections of what it wins.

Three ways, chosen by the number of prototypes: `two` (closed form), `orthants` (3 to 5; multivariate normal
probabilities), `lines` (any number; a fixed set of normal vectors, integrated exactly along a line through each).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from quenched.core.gaussian import cdf, orthant, pdf
from quenched.core.types import Array
from quenched.prototypes.model import Mixture, Numbers

LINES = 1024
"""Parallel lines of `lines` along each of K directions; at K = 5 the averages are then good to about 0.002."""


class Averages(NamedTuple):
    """Averages over one example of each cluster."""

    win: Array  # [K, M]
    h: Array  # [K, K, M]
    b: Array  # [K, M, M]


def averages(mix: Mixture | Numbers, R: Array, Q: Array) -> Averages:
    """The averages by the best way for this number of prototypes."""
    K = Q.shape[0]
    return two(mix, R, Q) if K == 2 else orthants(mix, R, Q) if is_exact(K) else lines(mix, R, Q)


def is_exact(prototypes: int) -> bool:
    """Whether the averages are exact to quadrature accuracy, rather than over a fixed set of lines."""
    return prototypes <= 5


def means(mix: Mixture | Numbers, R: Array) -> tuple[Array, Array]:
    """Mean projections `<h_T>_k` [K, M] and `<b_m>_k` [M, M], without competition."""
    return mix.lam * R, mix.lam * mix.gram


def two(mix: Mixture | Numbers, R: Array, Q: Array) -> Averages:
    r"""Two prototypes, in closed form. [biehl2006, eqs. (24)-(27), errata P3, P4, P9, P10]

    $$u_{lk} = \frac{2\lambda_k (R_{lk} - R_{-l,k}) - (Q_{ll} - Q_{-l,-l})}{2\sqrt{v_k D}},\quad
    \langle x\,\Theta_l\rangle_k = \sqrt{v_k/D}\;(x\text{-overlap of } w_l - w_{-l})\,\varphi(u_{lk})
    + \langle x\rangle_k \Phi(u_{lk})$$

    where $D = |w_+ - w_-|^2$.
    """
    D = Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]
    lead = R - R[::-1]  # R_lm - R_{-l,m}
    norms = jnp.diagonal(Q)
    u = (2 * mix.lam * lead - (norms - norms[::-1])[:, None]) / (2 * jnp.sqrt(mix.v * D))
    win, edge = cdf(u), jnp.sqrt(mix.v / D) * pdf(u)
    mean_h, mean_b = means(mix, R)
    h = edge[:, None, :] * (Q - Q[::-1])[:, :, None] + win[:, None, :] * mean_h
    b = edge[:, None, :] * lead[:, :, None] + win[:, None, :] * mean_b
    return Averages(win, h, b)


def orthants(mix: Mixture | Numbers, R: Array, Q: Array) -> Averages:
    r"""Any few prototypes, by multivariate normal probabilities.

    With $y_T = 2(h_S - h_T) - (Q_{SS} - Q_{TT})$, $S$ wins if all $y_T > 0$, and

    $$\langle x\,\Theta_S\rangle = \langle x\rangle P(y > 0) + \sum_{T\ne S} \mathrm{Cov}(x, y_T)\, f_T(0)\,
    P(y_U > 0,\ U \ne S, T \mid y_T = 0).$$
    """
    K = Q.shape[0]
    index = np.arange(K)
    rivals = jnp.asarray([np.delete(index, S) for S in index])  # [K, K-1]
    others = jnp.asarray([np.delete(np.arange(K - 1), T) for T in range(K - 1)])  # [K-1, K-2]
    mean_h, mean_b = means(mix, R)
    norms = jnp.diagonal(Q)

    def one(S: Array, T: Array, k: Array) -> tuple[Array, Array]:
        """P(S wins | k), and the boundary terms towards each rival [K-1]."""
        mean = 2 * (mean_h[S, k] - mean_h[T, k]) - (norms[S] - norms[T])
        step = Q[S] - Q[T]  # [K-1, K]
        cov = 4 * mix.v[k] * (step[:, S][:, None] - step[:, T])

        def boundary(t: Array, rest: Array) -> Array:
            slope = cov[rest, t] / cov[t, t]
            conditional = cov[jnp.ix_(rest, rest)] - jnp.outer(slope, cov[t, rest])
            density = pdf(mean[t] / jnp.sqrt(cov[t, t])) / jnp.sqrt(cov[t, t])
            return density * orthant(mean[rest] - slope * mean[t], conditional)

        return orthant(mean, cov), jax.vmap(boundary)(jnp.arange(K - 1), others)

    over_clusters = jax.vmap(one, in_axes=(None, None, 0))
    win, edges = jax.vmap(over_clusters, in_axes=(0, 0, None))(
        jnp.asarray(index), rivals, jnp.arange(mix.p.shape[0])
    )  # [K, M], [K, M, K-1]
    edges = 2 * mix.v[:, None] * edges
    h = jnp.einsum("skt,stn->snk", edges, Q[:, None, :] - Q[rivals]) + win[:, None, :] * mean_h
    b = jnp.einsum("skt,stm->smk", edges, R[:, None, :] - R[rivals]) + win[:, None, :] * mean_b
    return Averages(win, h, b)


@functools.lru_cache(maxsize=8)
def _lines(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """A fixed set of lines in standard normal space: their nearest points to the origin and their directions.

    The directions are orthonormal but in general position: along a coordinate axis two scores may be parallel, and
    the averages would jump where they cross.
    """
    across = ndtri(np.clip(qmc.Sobol(dimension - 1, rng=1).random(LINES), 1e-12, 1 - 1e-12))
    points = np.concatenate([np.insert(across, j, 0.0, axis=1) for j in range(dimension)])
    axes = np.repeat(np.eye(dimension), LINES, axis=0)
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((dimension, dimension)))[0]
    return points @ rotation, axes @ rotation


def lines(mix: Mixture | Numbers, R: Array, Q: Array) -> Averages:
    r"""Any number of prototypes: an average over a fixed set of normals, exact along one line through each.

    $h = \langle h\rangle + \sqrt{v}\, L (z_\perp + r n)$ with $Q = LL^T$ and $r \sim \mathcal N(0, 1)$: along $r$
    every score is a straight line, so $S$ wins on one interval, whose Gaussian mass and mean are closed. The set does
    not change, so the result is a continuous function of the overlaps, as an integrator needs.
    """
    L = jnp.linalg.cholesky(Q)
    rest, direction = (jnp.asarray(a) for a in _lines(Q.shape[0]))
    mean_h, mean_b = means(mix, R)
    norms = jnp.diagonal(Q)
    K = Q.shape[0]

    def one_cluster(k: Array) -> tuple[Array, Array]:
        scale = jnp.sqrt(mix.v[k])
        c = 2 * (mean_h[:, k] + scale * rest @ L.T) - norms  # [n, K]
        a = 2 * scale * direction @ L.T
        rise = a[:, :, None] - a[:, None, :]  # [n, S, T]
        steep = jnp.abs(rise) > 0
        cross = (c[:, None, :] - c[:, :, None]) / jnp.where(steep, rise, 1.0)
        never = ~steep & (c[:, None, :] > c[:, :, None])  # parallel and below: no point of the line is won
        low = jnp.max(jnp.where(steep & (rise > 0), cross, jnp.where(never, 40.0, -40.0)), axis=-1)
        high = jnp.min(jnp.where(steep & (rise < 0), cross, 40.0), axis=-1)
        high = jnp.maximum(high, low)
        mass, pull = cdf(high) - cdf(low), pdf(low) - pdf(high)  # [n, K]
        z = mass.T @ rest + pull.T @ direction  # sums of z Theta_S, [K, K]
        return jnp.mean(mass, axis=0), scale * z / len(rest)

    win, z = jax.lax.map(one_cluster, jnp.arange(mix.p.shape[0]))  # [M, K], [M, S, K]
    h = jnp.einsum("tj,ksj->stk", L, z) + win.T[:, None, :] * mean_h
    projection = jax.scipy.linalg.solve_triangular(L, jnp.eye(K), lower=True) @ R  # L^-1 R
    b = jnp.einsum("jm,ksj->smk", projection, z) + win.T[:, None, :] * mean_b
    return Averages(win.T, h, b)
