"""All the minima of one sample: what random starts find, and what becomes of it as the width changes."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core import checks, results
from quenched.core.ensemble import ensemble
from quenched.core.types import Array, Key, double
from quenched.mixtures.learner.two_centres import Relaxed, relax
from quenched.mixtures.model import Annealed, Law, MaximumLikelihood, RandomStart
from quenched.mixtures.simulation.runs import Asked, anneal, ask, observe, scatter, towards, world

SAME_ENERGY, SAME_ANGLE = 1e-6, 1e-4
"""Minima whose energies differ by less, and whose squared cosine from 1 by less, are the same one."""
UNDONE = 1e-3
"""A step in width after which the way back ends further off than this (in the squared cosine) was a jump."""


def _distinct(found: Relaxed) -> Array:
    """How many different minima there are."""
    unit = found.dU / jnp.maximum(jnp.linalg.norm(found.dU, axis=1, keepdims=True), 1e-300)
    close = jnp.abs(found.energy[:, None] - found.energy) < SAME_ENERGY
    same = close & ((unit @ unit.T) ** 2 > 1 - SAME_ANGLE)
    return jnp.sum(~jnp.any(jnp.tril(same, -1), axis=1))


def _one_spectrum(key: Key, point: Any, *, P: int, size: int, starts: int) -> dict[str, Array]:
    """All minima of one sample; a pure function for `ensemble`."""

    @jax.custom_batching.sequential_vmap
    def run(key: Key, point: Any) -> dict[str, Array]:
        law, (annealed, random), widths = point
        sampling, cooling, starting = jax.random.split(key, 3)
        sample = world(sampling, law, P, size, 1)
        best = anneal(cooling, sample.X, annealed, widths)
        found = scatter(starting, sample.X, random, widths, starts)
        values = {k: v for k, v in observe(sample, found).items() if k != "error"}
        beside = {f"annealed_{k}": v for k, v in observe(sample, best).items() if k != "error"}
        above = jnp.mean(found.energy > best.energy[:, None] + SAME_ENERGY, axis=1, dtype=float)
        return values | beside | {"minima": jax.lax.map(_distinct, found), "above": above}

    return run(key, point)


def _starts(start: Any, annealed: Any) -> tuple[RandomStart, Annealed]:
    """How the minima are sought, and the annealed one beside them."""
    random, annealed = RandomStart() if start is None else start, Annealed() if annealed is None else annealed
    checks.kind("start", random, RandomStart, "RandomStart(scale)")
    checks.kind("annealed", annealed, Annealed, "Annealed()")
    return random, annealed


@double
def spectrum(
    law: Law,
    rule: MaximumLikelihood,
    *,
    alpha: float,
    size: int,
    starts: int,
    key: Key,
    runs: int = 1,
    start: RandomStart | None = None,
    annealed: Annealed | None = None,
    executor: Any = None,
    folder: Any = None,
    **sweep: Any,
) -> xr.Dataset:
    """The minima that many random starts find on one sample, beside the annealed one.

    Args:
        law: the world.
        rule: the student.
        alpha: examples per dimension.
        size: the dimension $N$.
        starts: how many random starts at each width.
        key: a JAX key.
        runs: how many samples.
        start: length of the random starts.
        annealed: how the annealed solution is found.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        `r`, `q`, `free_energy` of every `start` and, as `annealed_r` and so on, of the annealed solution; `minima`,
        the number of different ones (energies within 1e-6 and squared cosines within 1e-4 of 1 are the same); `above`,
        the share of starts that ended more than 1e-6 above the annealed energy.

    Examples:
        >>> import jax
        >>> from quenched.mixtures.model import MaximumLikelihood, TwoGaussians
        >>> from quenched.mixtures.simulation import spectrum
        >>> given = {"alpha": 1.0, "size": 20, "starts": 4, "key": jax.random.key(0)}
        >>> spectrum(TwoGaussians(2.0), MaximumLikelihood(), width=[0.5, 2.5], **given).free_energy.dims
        ('run', 'width', 'start')
    """
    size, starts = checks.whole("size", size, least=2), checks.whole("starts", starts, least=1)
    random, annealed = _starts(start, annealed)
    swept = np.ndim(sweep.get("width", 0)) > 0
    asked = ask(law, rule, random, sweep)
    points = [(one, (annealed, random), widths) for one, _, widths in asked.points]
    run = functools.partial(_one_spectrum, P=checks.examples(alpha, size, least=2), size=size, starts=starts)
    done = ensemble(run, key, points, runs=runs, executor=executor, folder=folder, label="samples")
    values = {name: value[:, :, asked.order] for name, value in done.values.items()}
    result = _listed(values, asked, asked.widths[asked.order], alpha=alpha, size=size, seed=results.seed(key),
                     start=results.describe(random))  # fmt: skip
    return result if swept else result.isel(width=0)


def _listed(values: dict[str, np.ndarray], asked: Asked, widths: np.ndarray, **attrs: Any) -> xr.Dataset:
    """Arrays `[points, runs, widths]` or `[points, runs, widths, starts]` by name."""
    axes = {"run": np.arange(next(iter(values.values())).shape[1]), "width": widths}
    dims = {name: ("start",) for name, value in values.items() if value.ndim == 4}
    return results.assemble(values, asked.plan, axes, dims, {}, science="mixtures", source="minima", **attrs)


def _one_pursuit(key: Key, point: Any, *, P: int, size: int, starts: int) -> dict[str, Array]:
    """Minima of one sample followed in width; a pure function for `ensemble`."""

    @jax.custom_batching.sequential_vmap
    def run(key: Key, point: Any) -> dict[str, Array]:
        law, (annealed, random), (middle, below, above) = point
        sampling, cooling, starting = jax.random.split(key, 3)
        sample = world(sampling, law, P, size, 1)
        X = sample.X

        def move(state: tuple[Relaxed, Array], width: Array) -> tuple[Any, tuple[Relaxed, Array]]:
            old, before = state
            new = relax(X, old.dU, width)
            # A trace of the old vector lets one that died out above its splitting grow again: that is no jump.
            back = relax(X, new.dU + UNDONE * old.dU, before).dU
            overlap = jnp.sum(back * old.dU, axis=1) ** 2
            lengths = jnp.sum(back**2, axis=1) * jnp.sum(old.dU**2, axis=1)
            return (new, width), (new, overlap < (1 - UNDONE) * lengths)

        first = relax(X, towards(starting, random, (starts, size)), middle)
        _, down = jax.lax.scan(move, (first, middle), below)
        _, up = jax.lax.scan(move, (first, middle), above)
        here = jax.tree.map(lambda leaf: leaf[None], (first, jnp.zeros(starts, bool)))
        path, jump = jax.tree.map(lambda a, b, c: jnp.concatenate([a[::-1], b, c]), down, here, up)
        best = anneal(cooling, X, annealed, jnp.concatenate([below[::-1], middle[None], above])[::-1])
        values = {k: v for k, v in observe(sample, path).items() if k != "error"}
        return values | {"jump": jump.astype(float), "annealed_free_energy": best.energy[::-1]}

    return run(key, point)


@double
def follow(
    law: Law,
    rule: MaximumLikelihood,
    *,
    from_width: float,
    width: Any,
    alpha: float,
    size: int,
    starts: int,
    key: Key,
    runs: int = 1,
    start: RandomStart | None = None,
    annealed: Annealed | None = None,
    executor: Any = None,
    folder: Any = None,
) -> xr.Dataset:
    """Individual minima followed up and down in width, each step from where the last one ended.

    Args:
        law: the world.
        rule: the student.
        from_width: the width at which random starts find the minima.
        width: increasing widths on both sides of it, close to each other: steps of a few per cent.
        alpha: examples per dimension.
        size: the dimension $N$.
        starts: how many minima.
        key: a JAX key.
        runs: how many samples.
        start: length of the random starts.
        annealed: how the annealed solution is found.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.

    Returns:
        `free_energy`, `r`, `q` over `run`, `width` (`from_width` among them) and `start`; and
        `annealed_free_energy`; `jump` (0 or 1) where the step to this width, away from `from_width`, could not be
        undone: going back in width, the minimum that it came from was not found again, so it had disappeared.

    Examples:
        >>> import jax
        >>> from quenched.mixtures.model import MaximumLikelihood, TwoGaussians
        >>> from quenched.mixtures.simulation import follow
        >>> path = follow(TwoGaussians(2.0), MaximumLikelihood(), from_width=0.5, width=[0.4, 0.45, 0.55],
        ...               alpha=1.0, size=20, starts=2, key=jax.random.key(0))
        >>> path.width.values.tolist()
        [0.4, 0.45, 0.5, 0.55]
    """
    size, starts = checks.whole("size", size, least=2), checks.whole("starts", starts, least=1)
    checks.positive("from_width", checks.number("from_width", from_width))
    widths = checks.increasing("width", width)
    checks.positive("width", widths[0])
    random, annealed = _starts(start, annealed)
    asked = ask(law, rule, random, {"width": from_width})
    below, above = widths[widths < from_width][::-1], widths[widths > from_width]
    point = (law, (annealed, random), (np.float64(from_width), below, above))
    run = functools.partial(_one_pursuit, P=checks.examples(alpha, size, least=2), size=size, starts=starts)
    done = ensemble(run, key, [point], runs=runs, executor=executor, folder=folder, label="samples")
    every = np.concatenate([below[::-1], [from_width], above])
    return _listed(done.values, asked, every, alpha=alpha, size=size, from_width=from_width, seed=results.seed(key),
                   start=results.describe(random))  # fmt: skip
