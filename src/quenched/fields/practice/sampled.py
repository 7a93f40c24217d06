r"""Draws behind the bands of densities, functions, classes and branches, from what their estimators have found.

Densities are drawn from every order and strength; functions under noise of long tails, classes and branches at the
order, strengths and noise of most evidence, by a sampler (see `quenched.fields.practice.bands`). A regression with
Gaussian noise needs none: orders, strengths and noises are drawn from their posterior on the grid of the search, and
functions from the Gaussian of each, so that the draws are exact and independent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from quenched.core.random import normals, split, uniforms
from quenched.core.types import InputError, Key, Outcome, double
from quenched.fields.model.grid import Grid
from quenched.fields.practice import regression
from quenched.fields.practice.bands import DRAWS, Drawn, Fixed, draw, part_of
from quenched.fields.practice.clusters import Branches
from quenched.fields.practice.density import Estimate, Parametric
from quenched.fields.practice.evidence import Mixture
from quenched.fields.practice.regression import Function
from quenched.fields.practice.settings import pick

MOST = 20_000
"""Points of a grid up to which a density is drawn."""


def density(found: Estimate, key: Key, count: int = DRAWS) -> Drawn:
    """Log-densities from the posterior that a density was estimated from, normalised."""
    grid = found.grid
    if grid.size > MOST:
        raise InputError(f'Argument `band` must be "laplace" for a grid of more than {MOST} points, but this one has '
                         f"{grid.size}.")  # fmt: skip
    return _normalised(grid, draw(_parts(found.mixture, grid), key, count))


def _parts(mixture: Mixture, grid: Grid) -> list[Any]:
    """The parts of a mixture over orders and strengths."""
    solved = next(trial for trial in mixture.trials if not isinstance(trial, Parametric))
    parts: list[Any] = []
    for trial, share in zip(mixture.trials, mixture.shares, strict=True):
        if isinstance(trial, Parametric):
            values, vectors = trial.template.directions
            roots = (trial.template.slopes @ (vectors / np.sqrt(values * trial.rows))).T
            parts.append(Fixed(solved.fit.problem, trial.field.ravel(), roots, float(share)))
        elif share > 0:
            parts.append(part_of(trial, float(share)))
    return parts


def _normalised(grid: Grid, drawn: Drawn) -> Drawn:
    """The same as log-densities."""
    g = drawn.fields.reshape(-1, *grid.blocks)
    log_weights = np.log(np.broadcast_to(grid.weights, grid.shape).reshape(grid.blocks)[:1])
    logs: Any = special.logsumexp(g + log_weights, axis=2, keepdims=True)
    return Drawn((g - logs).reshape(drawn.fields.shape), drawn.outcome, drawn.verdict)


def conditional(mixture: Mixture, grid: Grid, key: Key, count: int = DRAWS) -> Drawn:
    r"""Logarithms of conditional densities $p(r|x)$ of the remainder."""
    return _normalised(grid, draw(_parts(mixture, grid), key, count))


@double
def function(
    grid: Grid,
    rows: np.ndarray,
    values: np.ndarray,
    weights: np.ndarray,
    key: Key,
    *,
    order: int | None = None,
    strength: float | None = None,
    noise: float | None = None,
    count: int = DRAWS,
) -> Drawn:
    r"""Functions from the posterior of a regression with Gaussian noise.

    Every order, $\gamma = \lambda\sigma^2$ and $\sigma^2$ on the grid of the search has the weight of its evidence;
    free polynomials have no prior, as in `quenched.fields.practice.regression`.
    """
    centre, scale, searches = regression.standardise(grid, rows, values, weights, order)
    lam = None if strength is None else strength * scale**2
    v = None if noise is None else noise / scale**2
    weighed = [one for search in searches for one in search.weigh(lam, v)]
    found = [one for one, _ in weighed]
    logs = np.concatenate([one.logs + log for one, log in weighed])
    owner = np.repeat(np.arange(len(found)), [len(one.logs) for one in found])
    noises = np.concatenate([one.noises for one in found])
    which, what = split(key, 2)
    at = pick(special.softmax(logs), uniforms(which, count))
    z, fields = normals(what, count, grid.size), np.empty((count, grid.size))
    for j in np.unique(owner[at]):
        trial, mine = found[j].trial, owner[at] == j
        roots = trial.posterior.roots
        off = z[mine][:, : len(roots)] @ roots
        fields[mine] = trial.fit.field.ravel() + np.sqrt(noises[at][mine])[:, None] * off
    drawn = (centre + scale * fields).reshape(count, *grid.shape)
    return Drawn(drawn, Outcome.converged, "the draws are independent and exact")


def noisy(found: Function, key: Key, count: int = DRAWS) -> Drawn:
    """Functions from the posterior of a regression with noise of long tails, at a few orders, strengths and scales."""
    parts, centre, size = found.parts
    drawn = draw(parts, key, count)
    return Drawn(centre + size * drawn.fields, drawn.outcome, drawn.verdict)


def branches(found: Branches, key: Key, count: int = DRAWS) -> Drawn:
    """Functions of a cluster regression `[draws, points, m]`, at its portions, noise and strength."""
    part, centre, size, order = found.part
    drawn = draw([part], key, count)
    return Drawn(centre + size * drawn.fields[:, :, order], drawn.outcome, drawn.verdict)
