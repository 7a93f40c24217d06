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
`crossings` adds to the closure, in its leading order; where that is not small the next order is not either, and the
answer is not to be trusted; nor where clusters and `crossings`, two accounts of what is missing, contradict each other.

Promised are errors within 1.5% and variances within 3%, beyond three standard errors of honest draws. On the 786 random
sizes on which the limits were chosen 222 are trusted, with at most 0.4% and 1.4%; `python -m benchmarks.trust` attacks
with other worlds.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from quenched.core.linear import namespace
from quenched.core.types import Array
from quenched.processes.theory.closures import Counts
from quenched.processes.theory.crossings import Shift
from quenched.processes.theory.responses import Covariance
from quenched.processes.theory.state import Solution

NEIGHBOURS = 8
DRAWS = 32
BATCH = 64
"""Rows that are checked at a time."""
CHECKED_ROWS = 2048
"""Rows that are checked; of a larger table, this many evenly spaced ones."""
OOB_TOLERANCE = 0.01
VARIANCE_TOLERANCE = 0.03
"""The closure is trusted where the cluster averages agree within these."""
SHIFT_TOLERANCES = 0.015, 0.03
TOTAL_TOLERANCES = 0.01, 0.005
"""And where no more than this is added to error and variance; or, where that is not computed, would be by the total."""


def is_trusted(check: Shift, shift: Shift, corrected: bool) -> bool:
    """Whether the answer may be believed, where `shift` has been added to the closure (`corrected`) or would be."""
    near = abs(check.oob_error) <= OOB_TOLERANCE and abs(check.oob_variance) <= VARIANCE_TOLERANCE
    agree = abs(check.oob_error - shift.oob_error) <= OOB_TOLERANCE
    return bool(near and is_small(shift, corrected) and (agree or not corrected))


def is_small(shift: Shift, corrected: bool) -> bool:
    """Whether so little is added to the closure that the next order does not matter; arguments as of `is_trusted`."""
    error, variance = SHIFT_TOLERANCES if corrected else TOTAL_TOLERANCES
    return bool(abs(shift.oob_error) <= error and abs(shift.oob_variance) <= variance)


def check_clusters(found: Solution, response: Covariance, y: Array, s2: Array, counts: Counts) -> Shift:
    """By how much clusters of drawn multiplicities change the closure at one size, over the rows that are checked."""
    rows = y.shape[0]
    xp = namespace(y)
    chosen = np.rint(np.linspace(0, rows - 1, min(rows, CHECKED_ROWS))).astype(int)
    uniforms = _latin(len(chosen), min(NEIGHBOURS, rows - 1) + 1)
    places = np.minimum(np.searchsorted(np.cumsum(np.asarray(counts.p)), uniforms), len(counts.s) - 1)
    drawn, weighed = xp.asarray(np.asarray(counts.s)[places]), response.weigh(found.kappa)
    parts = [slice(first, first + BATCH) for first in range(0, len(chosen), BATCH)]
    some = [_average_clusters(xp.asarray(chosen[p]), drawn[p], found, response, weighed, y, s2) for p in parts]
    errors, variances = (xp.concatenate(values).mean() for values in zip(*some, strict=True))
    return Shift(errors / found.oob_error[chosen].mean() - 1, variances / found.oob_variance[chosen].mean() - 1)


def _average_clusters(
    rows: Array, counts: Array, found: Solution, response: Covariance, weighed: Any, y: Array, s2: Array
) -> tuple[Array, Array]:
    """Error and variance out of bag at some rows `[n]`, averaged over counts `[n, draws, k + 1]`, their own first."""
    xp = namespace(y)
    C = _neighbours(rows, response.rows(rows) ** 2 / xp.where(found.g > 0, found.g, np.inf), counts.shape[2])
    G, V = response.blocks(C, weighed)
    outer, b, u = V - (G * found.kappa[C][:, None]) @ G, (found.mean - y)[C], found.u[C]
    drawn = counts * (xp.arange(counts.shape[2]) > 0)  # the row itself is out of bag
    d = xp.moveaxis(drawn / s2 - u[:, None], 2, 0)  # [k + 1, n, draws]: many at a time come last
    Gamma = xp.broadcast_to(xp.moveaxis(G, 0, 2)[..., None], (*G.shape[1:], *d.shape[1:]))
    for j in range(d.shape[0]):  # one row of the clusters after the other: no matrix to factorise
        row = Gamma[j]
        Gamma = Gamma - row[:, None] * (row * (d[j] / (1 + d[j] * row[j])))
    a = (xp.arange(d.shape[0]) == 0)[:, None, None] - d * Gamma[0]
    bias = xp.einsum("knd,nk->nd", a, b)
    errors = bias**2 + xp.einsum("knd,nkd->nd", a, xp.einsum("nkl,lnd->nkd", outer, a))
    return errors.mean(axis=1), Gamma[0, 0].mean(axis=1)


def _neighbours(rows: Array, closeness: Array, count: int) -> Array:
    """The places of the rows themselves and of the closest to each, `[n, count]`, the closest first."""
    xp, places = namespace(closeness), [rows]
    for _ in range(count - 1):  # one after the other is much faster than sorting for so few
        closeness = xp.where(xp.arange(closeness.shape[1]) == places[-1][:, None], -np.inf, closeness)
        places.append(xp.argmax(closeness, axis=1))
    return xp.stack(places, axis=1)


@functools.cache
def _latin(clusters: int, members: int) -> np.ndarray:
    """Uniform numbers `[clusters, draws, members]`, stratified over the draws; always the same ones."""
    generator = np.random.default_rng(0)
    strata = np.broadcast_to(np.arange(DRAWS)[None, :, None], (clusters, DRAWS, members))
    strata = generator.permuted(strata, axis=1)
    return (strata + generator.random(strata.shape)) / DRAWS
