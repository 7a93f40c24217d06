r"""The cluster self-check: where the closure may be believed.

The closure averages the multiplicity of each row by itself. The check draws the multiplicities of a row's nearest
neighbours at random, exactly, and keeps the average response for all others: for row $i$ let $C$ be $i$ and the $k$
rows with the largest $G_{ij}^2/g_j$. With counts $s$ drawn for $C$, $s_i = 0$, and $d = s/\sigma^2 - u$,

$$\Gamma = (G_{CC}^{-1} + \mathrm{diag}\,d)^{-1}, \qquad a = e_i - d \circ \Gamma_{\cdot i}, \qquad
  g_i(s) = \Gamma_{ii}, \qquad \varepsilon_i(s) = (a \cdot b_C)^2 + a^T V_{out}\, a$$
$$V_{out} = V_{CC} - G_{CC}\,\mathrm{diag}(\kappa_C)\, G_{CC}, \qquad V = G\,\mathrm{diag}(\kappa)\,G$$

$k = 0$ is the closure itself and $k = N - 1$ exact resampling. Where the average over $s$ differs from the closure,
neighbours matter one by one and the closure is not to be trusted.

A few neighbours do not see what many rows do together: the number of examples, in all or in a part of the table, varies
from one data set to the next, and where few effective dimensions bend the curve that changes the averages. This is what
`crossing` adds to the closure, in its leading order; where that is not small the next order is not either, and the
answer is not to be trusted; nor where clusters and `crossing`, two accounts of what is missing, contradict each other.

Promised are errors within 1.5% and variances within 3%, beyond three standard errors of honest draws. On the 786 random
sizes on which the limits were chosen 222 are trusted, with at most 0.4% and 1.4%; `python -m benchmarks.trust` attacks
with other worlds.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import Array
from quenched.processes.theory.algebra import Response
from quenched.processes.theory.closures import poisson
from quenched.processes.theory.crossing import Shift
from quenched.processes.theory.solution import Solution

NEIGHBOURS = 8
DRAWS = 32
BATCH = 64
"""Rows that are checked at a time."""
CHECKED_ROWS = 2048
"""Rows that are checked; of a larger table, so many evenly spaced ones."""
OOB_TOLERANCE = 0.01
VARIANCE_TOLERANCE = 0.03
"""The closure is trusted where the cluster averages agree within these."""
SHIFT_TOLERANCES = 0.015, 0.03
TOTAL_TOLERANCES = 0.01, 0.005
"""And where no more than this is added to error and variance; or, where that is not computed, would be by the total."""


class Check(NamedTuple):
    """The cluster averages relative to the closure, minus 1, over the rows that were checked."""

    oob_error: Array
    oob_variance: Array


def is_trusted(check: Check, shift: Shift, corrected: bool) -> Array:
    """Whether the answer may be believed.

    Args:
        check: the cluster averages.
        shift: what is added to the closure, or what the total number of examples alone would add.
        corrected: whether it has been added.
    """
    near = (jnp.abs(check.oob_error) <= OOB_TOLERANCE) & (jnp.abs(check.oob_variance) <= VARIANCE_TOLERANCE)
    agree = jnp.abs(check.oob_error - shift.oob_error) <= OOB_TOLERANCE
    return near & is_small(shift, corrected) & (agree if corrected else True)


def is_small(shift: Shift, corrected: bool) -> Array:
    """Whether so little is added to the closure that the next order does not matter; arguments as of `is_trusted`."""
    error, variance = SHIFT_TOLERANCES if corrected else TOTAL_TOLERANCES
    return (jnp.abs(shift.oob_error) <= error) & (jnp.abs(shift.oob_variance) <= variance)


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

    def some(arguments: tuple[Array, Array]) -> tuple[Array, Array]:
        i, uniform = arguments
        counts = jnp.searchsorted(cdf, uniform).astype(float)
        return _clusters(i, counts, found, response, weighed, y, s2)

    rows = chosen.shape[0]
    batch = min(BATCH, rows)
    batches = -(-rows // batch)
    again = jnp.arange(batches * batch) % rows  # the first rows again, to fill up the last batch
    split = (chosen[again].reshape(batches, batch), uniforms[again].reshape(batches, batch, *uniforms.shape[1:]))
    errors, variances = (x.ravel()[:rows] for x in jax.lax.map(some, split))
    return Check(
        jnp.mean(errors) / jnp.mean(found.oob_error[chosen]) - 1,
        jnp.mean(variances) / jnp.mean(found.oob_variance[chosen]) - 1,
    )


def _clusters(
    rows: Array, counts: Array, found: Solution, response: Response, weighed: Any, y: Array, s2: Array
) -> tuple[Array, Array]:
    """Error and variance out of bag at some rows, averaged over draws of the counts around them.

    Args:
        rows: `[n]`.
        counts: `[n, draws, k + 1]`.
        found: the solution.
        response: its response.
        weighed: what the response needs to know of the weights.
        y: standardised targets.
        s2: noise variance.
    """

    def gather(i: Array) -> tuple[Array, ...]:
        closeness = jnp.square(response.row(i)) / jnp.where(found.g > 0, found.g, jnp.inf)
        C = _largest(closeness.at[i].set(jnp.inf), counts.shape[2])  # i itself comes first
        G, V = response.block(C, weighed)
        return G, V - (G * found.kappa[C]) @ G, found.mean[C] - y[C], found.u[C]

    G, outer, b, u = jax.vmap(gather)(rows)
    d = jnp.moveaxis(counts.at[:, :, 0].set(0.0) / s2 - u[:, None], 2, 0)  # [k + 1, n, draws]: many at a time come last
    start = jnp.broadcast_to(jnp.moveaxis(G, 0, 2)[..., None], (*G.shape[1:], *d.shape[1:]))

    def see(j: Array, Gamma: Array) -> Array:  # one row of the clusters after the other: no matrix to factorise
        row = Gamma[j]
        return Gamma - row[:, None] * (row * (d[j] / (1 + d[j] * row[j])))

    Gamma = jax.lax.fori_loop(0, d.shape[0], see, start)
    a = (-d * Gamma[0]).at[0].add(1.0)
    bias = jnp.einsum("knd,nk->nd", a, b)
    errors = jnp.square(bias) + jnp.einsum("knd,nkl,lnd->nd", a, outer, a)
    return jnp.mean(errors, axis=1), jnp.mean(Gamma[0, 0], axis=1)


def _largest(x: Array, count: int) -> Array:
    """The places of the largest, one after the other: much faster than sorting for so few."""

    def take(x: Array, _: None) -> tuple[Array, Array]:
        i = jnp.argmax(x)
        return x.at[i].set(-jnp.inf), i

    return jax.lax.scan(take, x, None, length=count)[1]


@functools.cache
def _latin(clusters: int, members: int) -> np.ndarray:
    """Uniform numbers `[clusters, draws, members]`, stratified over the draws; always the same ones."""
    generator = np.random.default_rng(0)
    strata = np.broadcast_to(np.arange(DRAWS)[None, :, None], (clusters, DRAWS, members))
    strata = generator.permuted(strata, axis=1)
    return (strata + generator.random(strata.shape)) / DRAWS
