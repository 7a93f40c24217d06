r"""Who wins: averages over one new example, given the overlaps.

For prototype $S$ and an example of cluster $k$ the projections $h_T = w_T\cdot\xi$ and $b_m = B_m\cdot\xi$ are
Gaussian with means $\lambda_k R_{Tk}$, $\lambda_k B_m\cdot B_k$ and covariances $v_k Q$, $v_k R$. $S$ wins if its
score $2 h_S - Q_{SS}$ is the largest. Needed are

* `win[S, k]` $= \langle\Theta_S\rangle_k$, the probability that $S$ wins,
* `h[S, T, k]` $= \langle h_T \Theta_S\rangle_k$ and `b[S, m, k]` $= \langle b_m \Theta_S\rangle_k$,
  the mean projections of what it wins.

Three ways, chosen by the number of prototypes: `average_two` (closed form), `average_few` (3 to 5; multivariate normal
probabilities by quadrature), `average_many` (any number; the same probabilities over a fixed set of points, to about
1e-4).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.gaussian import DEPENDENT, at_least, cdf, orthant, orthant_sampled, pdf
from quenched.core.types import Array, Real
from quenched.prototypes.model import Mixture, Numbers

ACCURACY = {"closed": 1e-12, "quadrature": 1e-6, "sampled": 2e-3}
"""Largest error of a probability or a mean projection that was seen, by the way it was computed, rounded up: sampled
ones 0.0004 with six prototypes, 0.0013 with eight."""

SHARED = 32 * float(np.finfo(np.float64).eps)
"""Squared distance, relative to the longest prototype, below which overlaps cannot tell two prototypes apart."""

MISS = 1e-9
"""Where probabilities miss 1 by more, or boundaries differ by more, `average_few` computes them again with care."""

World = Mixture | Numbers


class Averages(NamedTuple):
    """Averages over one example of each cluster."""

    win: Array  # [K, M]
    h: Array  # [K, K, M]
    b: Array  # [K, M, M]


def average(mix: World, R: Array, Q: Array) -> Averages:
    """The averages by the best way for this number of prototypes."""
    ways = {"closed": average_two, "quadrature": average_few, "sampled": average_many}
    return ways[way(Q.shape[0])](mix, R, separate(mix, Q))


def way(prototypes: int) -> str:
    """How the averages are computed for this number of prototypes: "closed", "quadrature" or "sampled"."""
    return "closed" if prototypes == 2 else "quadrature" if prototypes <= 5 else "sampled"


def separate(mix: World, Q: Array) -> Array:
    """The overlaps with a tiny part added to each prototype in a direction of its own, as the first examples do.

    Prototypes at the same place then share what they win.
    """
    size = jnp.max(jnp.diagonal(Q)) + 1e-30 * jnp.max(mix.v)
    return Q + SHARED * size * jnp.eye(Q.shape[0])


def project(mix: World, R: Array) -> tuple[Array, Array]:
    """Mean projections `<h_T>_k` [K, M] and `<b_m>_k` [M, M], without competition."""
    return mix.lam * R, mix.lam * mix.gram


def average_two(mix: World, R: Array, Q: Array) -> Averages:
    r"""Two prototypes, in closed form. [biehl2006, eqs. (24)-(27), errata P3, P4, P9, P10]

    $$u_{lk} = \frac{2\lambda_k (R_{lk} - R_{-l,k}) - (Q_{ll} - Q_{-l,-l})}{2\sqrt{v_k D}},\quad
    \langle x\,\Theta_l\rangle_k = \sqrt{v_k/D}\;(x\text{-overlap of } w_l - w_{-l})\,\varphi(u_{lk})
    + \langle x\rangle_k \Phi(u_{lk})$$

    where $D = |w_+ - w_-|^2$.
    """
    D = Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]
    D = jnp.maximum(D, SHARED * jnp.max(jnp.diagonal(Q)))
    lead = R - R[::-1]  # R_lm - R_{-l,m}
    norms = jnp.diagonal(Q)
    u = (2 * mix.lam * lead - (norms - norms[::-1])[:, None]) / (2 * jnp.sqrt(mix.v * D))
    win, edge = cdf(u), jnp.sqrt(mix.v / D) * pdf(u)
    mean_h, mean_b = project(mix, R)
    h = edge[:, None, :] * (Q - Q[::-1])[:, :, None] + win[:, None, :] * mean_h
    b = edge[:, None, :] * lead[:, :, None] + win[:, None, :] * mean_b
    return Averages(win, h, b)


def average_window(mix: World, R: Array, Q: Array, window: Real) -> Averages:
    r"""Two prototypes that both learn from what lies in the window of LVQ2.1: averages over it in place of a win.

    The squared distances of an example of cluster $k$ differ by $y = |\xi - w_-|^2 - |\xi - w_+|^2
    = 2(h_+ - h_-) - (Q_{++} - Q_{--})$, which is Gaussian with mean $m_k = 2\lambda_k(R_{+k} - R_{-k})
    - (Q_{++} - Q_{--})$ and variance $s_k^2 = 4 v_k D$. Their size is $v_k N$, so a ratio of distances of
    $(1 - \omega/N)/(1 + \omega/N)$ or more, which is $1 - 4\omega/N$ of the squares, means
    $|y| \le \delta_k = 4\omega v_k$ as $N \to \infty$. With $z^\pm_k = (\pm\delta_k - m_k)/s_k$

    $$\langle\Theta\rangle_k = \Phi(z^+_k) - \Phi(z^-_k),\quad
    \langle x\,\Theta\rangle_k = \langle x\rangle_k \langle\Theta\rangle_k
    - \frac{\mathrm{Cov}_k(x, y)}{s_k}\, [\varphi(z^+_k) - \varphi(z^-_k)]$$

    with $\mathrm{Cov}_k(h_T, y) = 2 v_k (Q_{T+} - Q_{T-})$ and $\mathrm{Cov}_k(b_m, y) = 2 v_k (R_{+m} - R_{-m})$: a
    Gaussian $x$ is $\langle x\rangle + \mathrm{Cov}(x, y)(y - m)/s^2$ on average at given $y$.
    """
    D = Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]
    s = 2 * jnp.sqrt(mix.v * jnp.maximum(D, SHARED * jnp.max(jnp.diagonal(Q))))
    m = 2 * mix.lam * (R[0] - R[1]) - (Q[0, 0] - Q[1, 1])
    edge = 4 * window * mix.v
    low, high = (-edge - m) / s, (edge - m) / s
    inside = jnp.where(m > 0, cdf(high) - cdf(low), cdf(-low) - cdf(-high))  # of the two tails the smaller one
    lean = 2 * mix.v * (pdf(low) - pdf(high)) / s
    mean_h, mean_b = project(mix, R)
    h = mean_h * inside + (Q[:, 0] - Q[:, 1])[:, None] * lean
    b = mean_b * inside + (R[0] - R[1])[:, None] * lean
    return Averages(*(jnp.stack([x, x]) for x in (inside, h, b)))


def average_few(mix: World, R: Array, Q: Array) -> Averages:
    r"""Any few prototypes, by multivariate normal probabilities.

    With $y_T = 2(h_S - h_T) - (Q_{SS} - Q_{TT})$, $S$ wins if all $y_T > 0$, and

    $$\langle x\,\Theta_S\rangle = \langle x\rangle P(y > 0) + \sum_{T\ne S} \mathrm{Cov}(x, y_T)\, f_T(0)\,
    P(y_U > 0,\ U \ne S, T \mid y_T = 0).$$

    Prototypes close to each other, as the others see them, or in one plane make the integrands steep. Whether that did
    harm is seen: somebody must win, and the boundary of two is the same from both sides. Only then it is done again,
    with care.
    """
    win, edges = _integrate(mix, R, Q, orthant)
    if Q.shape[0] > 3:
        miss = jnp.maximum(jnp.max(jnp.abs(win.sum(axis=0) - 1)), jnp.max(jnp.abs(edges - edges.transpose(1, 0, 2))))
        careful = functools.partial(orthant, careful=True)
        win, edges = jax.lax.cond(miss < MISS, lambda: (win, edges), lambda: _integrate(mix, R, Q, careful))
    return _combine(mix, R, Q, win, edges)


def average_many(mix: World, R: Array, Q: Array) -> Averages:
    """Any number of prototypes: as `average_few`, with probabilities over fixed points that are made to sum to 1."""
    win, edges = _integrate(mix, R, Q, orthant_sampled)
    return _combine(mix, R, Q, win / win.sum(axis=0), edges)


def _combine(mix: World, R: Array, Q: Array, win: Array, edges: Array) -> Averages:
    """The averages from the probabilities to win and the densities on the boundaries."""
    edges = mix.v * (edges + edges.transpose(1, 0, 2))  # rounding differs between the two sides of a boundary
    mean_h, mean_b = project(mix, R)
    h = jnp.einsum("stk,stn->snk", edges, Q[:, None, :] - Q) + win[:, None, :] * mean_h
    b = jnp.einsum("stk,stm->smk", edges, R[:, None, :] - R) + win[:, None, :] * mean_b
    return Averages(win, h, b)


def _integrate(mix: World, R: Array, Q: Array, positive: Callable[[Array, Array], Array]) -> tuple[Array, Array]:
    """P(S wins | k) [K, M], and the density of examples on the boundary of S and T that no other wins [K, K, M]."""
    K = Q.shape[0]
    index = np.arange(K)
    rivals = jnp.asarray([np.delete(index, S) for S in index])  # [K, K-1]
    others = jnp.asarray([np.delete(np.arange(K - 1), T) for T in range(K - 1)])  # [K-1, K-2]
    mean_h, _ = project(mix, R)
    norms, v = jnp.diagonal(Q), jnp.asarray(mix.v)

    def one(S: Array, T: Array, k: Array) -> tuple[Array, Array]:
        mean = 2 * (mean_h[S, k] - mean_h[T, k]) - (norms[S] - norms[T])
        step = Q[S] - Q[T]  # [K-1, K]
        cov = 4 * v[k] * (step[:, S][:, None] - step[:, T])
        cov = at_least(cov, 4 * v[k] * SHARED * jnp.max(norms))

        def boundary(t: Array, rest: Array) -> Array:
            slope = cov[rest, t] / cov[t, t]
            conditional = cov[jnp.ix_(rest, rest)] - jnp.outer(slope, cov[t, rest])
            conditional = at_least(conditional, DEPENDENT * jnp.diagonal(cov)[rest])
            density = pdf(mean[t] / jnp.sqrt(cov[t, t])) / jnp.sqrt(cov[t, t])
            return density * positive(mean[rest] - slope * mean[t], conditional)

        return positive(mean, cov), jax.vmap(boundary)(jnp.arange(K - 1), others)

    over_clusters = jax.vmap(one, in_axes=(None, None, 0))
    clusters = jnp.arange(mix.p.shape[0])
    win, edges = jax.vmap(over_clusters, in_axes=(0, 0, None))(jnp.asarray(index), rivals, clusters)  # .., [K, M, K-1]
    return win, jnp.zeros((K, K, len(clusters))).at[index[:, None], rivals].set(edges.transpose(0, 2, 1))
