"""The learning curve as an experiment."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from quenched.core import checks
from quenched.core.ensemble import Ensemble
from quenched.core.linear import next_length, padded
from quenched.core.types import InputError, Key, double
from quenched.prototypes.model import SCIENCE, Law, Rule, Start, count, numbers, start_of
from quenched.prototypes.simulation.simulators import Direct, Record, Simulator, Steps

if TYPE_CHECKING:
    import xarray as xr


def _one_run(key: Key, declared: tuple[Any, ...], *, simulator: Simulator, **options: Any) -> Record:
    n, begin, *counts = declared
    steps, size, tests = jax.tree.map(lambda x: x.astype(int), counts)
    return simulator.run(key, n, begin, steps, size=size, tests=tests, **options)


@double
def measure(
    law: Law,
    rule: Rule,
    *,
    alpha: Any,
    size: int,
    runs: int,
    key: Key,
    start: Start | None = None,
    simulator: Simulator | None = None,
    tests: int = 1000,
    batch: int | None = None,
    executor: Any = None,
    folder: Any = None,
    **sweep: Any,
) -> xr.Dataset:
    r"""The learning curve as an experiment: many training sequences.

    Args:
        law: `TwoClusters(...)`, or `Clusters(...)` for any other world.
        rule: how prototypes learn: `LVQ1(...)`, `LVQPlus(...)`, `VQ(...)`, `LVQ21(...)` or your own.
        alpha: increasing times; a time is rounded to a whole number of examples, $\alpha N$.
        size: the dimension $N$, more than there are prototypes and clusters together.
        runs: how many independent training sequences.
        key: a JAX key; the same key gives the same numbers, whatever the executor.
        start: where the prototypes begin; `NearOrigin()` by default.
        simulator: `Direct()` (default) or `Chain()`.
        tests: fresh examples on which the error of each run is counted, at each time.
        batch: runs computed side by side; by default what fits in memory.
        executor: `Local()`, `Processes(n)` or `Dask(client)`.
        folder: where finished pieces are kept, so that an interrupted measurement goes on where it stopped.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        `R`, `Q`, `error`, each with `_stderr` and `_run`, and `runs`, `failed`, `outcome`.

    Examples:
        >>> import jax
        >>> from quenched import prototypes
        >>> law, rule = prototypes.TwoClusters(prior=0.8), prototypes.LVQ1(rate=0.2)
        >>> points = prototypes.measure(law, rule, alpha=[1, 5], size=20, runs=20, key=jax.random.key(0))
    """
    size = checks.whole("size", size, least=1)
    question = SCIENCE.ask(law, rule, sweep, alpha=alpha, most=checks.MOST / size)
    K, M = count(law, rule)
    if size <= K + M:
        raise InputError(f"Argument `size` must exceed the number of vectors, {K} prototypes and {M} centres, "
                         f"but {size} was given.")  # fmt: skip
    tests = checks.whole("tests", tests, least=1)
    start, simulator = start_of(start), Direct() if simulator is None else simulator
    checks.kind("simulator", simulator, Simulator, "Direct() or Chain()")
    R, Q = begin = start.overlaps(K, M)
    if np.linalg.eigvalsh(np.block([[np.asarray(law.mixture().gram), np.transpose(R)], [R, Q]]))[0] < -1e-9:
        raise InputError("Argument `start` must be overlaps that vectors can have, but their Gram matrix has a "
                         "negative eigenvalue.")  # fmt: skip
    times = question.axes["alpha"]
    last = padded(np.rint(times * size), next_length(len(times)))
    steps = Steps(np.append(0.0, last[:-1]), last, 1.0 * (np.arange(len(last)) < len(times)))
    points = [(numbers(*pair), begin, steps, float(size), float(tests)) for pair in question.plan.pairs]
    room = next_length(size, ratio=4, most=256) if simulator.shaped else 0
    run = functools.partial(_one_run, simulator=simulator, all_move=rule.all_move, room=room)

    def cut(done: Ensemble) -> Ensemble:
        return dataclasses.replace(done, values={k: value[:, :, : len(times)] for k, value in done.values.items()})

    return question.measure(
        (run, jax.tree.map(np.asarray, points)), key=key, runs=runs, batch=batch, executor=executor, folder=folder,
        label="training", vectorized=True, finish=cut, simulator=type(simulator).__name__, size=size, tests=tests,
        start=start,
    )  # fmt: skip
