"""The order parameters as an experiment."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched.core import checks, results
from quenched.core.ensemble import ensemble
from quenched.core.types import Array, Key, Outcome, double
from quenched.mixtures.learner.two_centres import Relaxed
from quenched.mixtures.model import ORDER_PARAMETERS, Annealed, Law, MaximumLikelihood, Start
from quenched.mixtures.simulation.runs import anneal, ask, observe, scatter, world


def _one_run(key: Key, point: Any, *, P: int, size: int, tests: int) -> dict[str, Array]:
    """Order parameters at falling widths on one sample; a pure function for `ensemble`."""

    # Side by side (vmap) every run would wait for the slowest at every width: one after the other is cheaper.
    @jax.custom_batching.sequential_vmap
    def run(key: Key, point: Any) -> dict[str, Array]:
        law, start, widths = point
        sampling, starting = jax.random.split(key)
        sample = world(sampling, law, P, size, tests)
        if isinstance(start, Annealed):
            found = anneal(starting, sample.X, start, widths)
        else:
            found = Relaxed(*(leaf[:, 0] for leaf in scatter(starting, sample.X, start, widths, 1)))
        return observe(sample, found) | {"stalled": (found.outcome != Outcome.converged).astype(float)}

    return run(key, point)


@double
def measure(
    law: Law,
    rule: MaximumLikelihood,
    *,
    alpha: Any,
    size: int,
    runs: int,
    key: Key,
    start: Start | None = None,
    tests: int = 1000,
    batch: int | None = None,
    executor: Any = None,
    folder: Any = None,
    **sweep: Any,
) -> xr.Dataset:
    r"""The order parameters as an experiment.

    Args:
        law: the world.
        rule: the student.
        alpha: examples per dimension; $P = \alpha N$ is rounded to a whole number.
        size: the dimension $N$.
        runs: how many independent samples.
        key: a JAX key; the same key gives the same numbers, whatever the executor.
        start: `Annealed()` (default): each run anneals its sample once, through all widths; or `RandomStart()`, anew
            at each width.
        tests: fresh examples on which the error of each run is counted.
        batch: runs computed side by side; by default what fits in memory.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        `r`, `q`, `error`, `free_energy`, each with `_stderr` and `_run`, and `runs`, `failed`, `outcome`.

    Examples:
        >>> import jax
        >>> from quenched.mixtures.model import MaximumLikelihood, TwoGaussians
        >>> from quenched.mixtures.simulation import measure
        >>> given = {"alpha": 5.0, "size": 20, "runs": 4, "key": jax.random.key(0)}
        >>> points = measure(TwoGaussians(2.0), MaximumLikelihood(), width=[1.0, 2.0], **given)
        >>> bool(points.q[0] > points.q[1])
        True
    """
    start = Annealed() if start is None else start
    size, tests = checks.whole("size", size, least=2), checks.whole("tests", tests, least=1)
    swept, alphas = np.ndim(sweep.get("width", 0)) > 0, checks.increasing("alpha", alpha)
    asked = ask(law, rule, start, sweep)
    parts = []
    for one in alphas:  # the shape of the data changes with alpha: each is a program of its own
        run = functools.partial(_one_run, P=checks.examples(one, size, least=2), size=size, tests=tests)
        done = ensemble(
            run, key, asked.points, runs=runs, batch=batch, executor=executor, folder=folder, label="samples"
        )
        parts.append(
            results.assemble_runs(
                done.ordered(asked.order), asked.plan, {"width": asked.widths[asked.order]}, ORDER_PARAMETERS, {},
                size=size, tests=tests, seed=results.seed(key), start=results.describe(start), science="mixtures",
                source="simulation",
            )
        )  # fmt: skip
    result = results.stack(parts, "alpha", alpha)
    if not swept:
        return result.isel(width=0, drop=True)
    return result.assign_attrs(sweep=" ".join([*asked.plan.dims, "width"]))
