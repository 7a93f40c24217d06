r"""The cluster self-check: where the closure may be believed.

The closure averages the multiplicity of each row by itself. The check draws the multiplicities of a row's nearest
neighbours at random, exactly, and keeps the average response for all others: for row $i$ let $C$ be $i$ and the $k$
rows with the largest $G_{ij}^2/g_j$. With counts $s$ drawn for $C$, $s_i = 0$, and $d = s/\sigma^2 - u$,

$$\Gamma = (G_{CC}^{-1} + \mathrm{diag}\,d)^{-1}, \qquad a = e_i - d \circ \Gamma_{\cdot i}, \qquad
  g_i(s) = \Gamma_{ii}, \qquad \varepsilon_i(s) = (a \cdot b_C)^2 + a^T V_{out}\, a$$
$$V_{out} = V_{CC} - G_{CC}\,\mathrm{diag}(\kappa_C)\, G_{CC}, \qquad V = G\,\mathrm{diag}(\kappa)\,G$$

$k = 0$ is the closure itself and $k = N - 1$ exact resampling. Where the average over $s$ differs from the closure,
neighbours matter one by one and the closure is not to be trusted.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import Array
from quenched.processes.theory.algebra import Response
from quenched.processes.theory.closures import poisson
from quenched.processes.theory.solution import Solution

NEIGHBOURS = 8
DRAWS = 32
CHECKED_ROWS = 2048
"""Rows that are checked; of a larger table, so many evenly spaced ones."""
OOB_TOLERANCE = 0.01
VARIANCE_TOLERANCE = 0.03
"""The closure is trusted where the cluster averages agree within these: worst error seen among the trusted, 1.2%."""


class Check(NamedTuple):
    """The cluster averages relative to the closure, minus 1, over the rows that were checked."""

    oob_error: Array
    oob_variance: Array


def is_trusted(check: Check) -> Array:
    """Whether the closure may be believed."""
    return (jnp.abs(check.oob_error) <= OOB_TOLERANCE) & (jnp.abs(check.oob_variance) <= VARIANCE_TOLERANCE)


def cluster_check(
    found: Solution, response: Response, y: Array, s2: Array, mu: Array, *, terms: int, rows: int
) -> Check:
    """Compare the closure with clusters of drawn multiplicities.

    Args:
        found: the solution at this size.
        response: its response.
        y: standardised targets.
        s2: noise variance.
        mu: mean multiplicity.
        terms: multiplicities that may be drawn.
        rows: true rows of the table (a low-rank factor may be filled up with zeros).
    """
    chosen = np.rint(np.linspace(0, rows - 1, min(rows, CHECKED_ROWS))).astype(int)
    uniforms = _latin(len(chosen), min(NEIGHBOURS, rows - 1) + 1)
    return _compare(found, response, y, s2, mu, chosen, uniforms, terms=terms)


@functools.partial(jax.jit, static_argnames="terms")
def _compare(
    found: Solution, response: Response, y: Array, s2: Array, mu: Array, chosen: Array, uniforms: Array, *, terms: int
) -> Check:
    """The check on chosen rows, with uniform numbers `[rows, draws, members]` for the counts."""
    cdf = jnp.cumsum(poisson(mu, terms)[1])
    weighed = response.weigh(found.kappa)

    def one(arguments: tuple[Array, Array]) -> tuple[Array, Array]:
        i, uniform = arguments
        counts = jnp.searchsorted(cdf, uniform).astype(float)
        return _cluster(i, counts, found, response, weighed, y, s2)

    oob_error, oob_variance = jax.lax.map(one, (chosen, uniforms), batch_size=128)
    return Check(
        jnp.mean(oob_error) / jnp.mean(found.oob_error[chosen]) - 1,
        jnp.mean(oob_variance) / jnp.mean(found.oob_variance[chosen]) - 1,
    )


def _cluster(
    i: Array, counts: Array, found: Solution, response: Response, weighed: Array, y: Array, s2: Array
) -> tuple[Array, Array]:
    """Error and variance at row `i` out of bag, averaged over draws of its neighbours' counts `[draws, k + 1]`."""
    row = response.row(i)
    closeness = jnp.square(row) / jnp.where(found.g > 0, found.g, jnp.inf)
    C = jax.lax.top_k(closeness.at[i].set(jnp.inf), counts.shape[1])[1]  # i itself comes first
    G, V = response.block(C, weighed)
    outer = V - (G * found.kappa[C]) @ G
    b = found.mean[C] - y[C]
    d = counts.at[:, 0].set(0.0) / s2 - found.u[C]

    def respond(d: Array) -> tuple[Array, Array]:
        def see(j: Array, Gamma: Array) -> Array:  # one row after the other: no matrix to factorise
            return Gamma - jnp.outer(Gamma[:, j], Gamma[j]) * (d[j] / (1 + d[j] * Gamma[j, j]))

        Gamma = jax.lax.fori_loop(0, d.shape[0], see, G)
        a = -d * Gamma[:, 0] + jnp.eye(d.shape[0])[0]
        return jnp.square(a @ b) + a @ outer @ a, Gamma[0, 0]

    errors, variances = jax.vmap(respond)(d)
    return jnp.mean(errors), jnp.mean(variances)


@functools.cache
def _latin(clusters: int, members: int) -> np.ndarray:
    """Uniform numbers `[clusters, draws, members]`, stratified over the draws; always the same ones."""
    generator = np.random.default_rng(0)
    strata = np.broadcast_to(np.arange(DRAWS)[None, :, None], (clusters, DRAWS, members))
    strata = generator.permuted(strata, axis=1)
    return (strata + generator.random(strata.shape)) / DRAWS
