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
from quenched.prototypes.model import SCIENCE, Cost, Law, Numbers, Rule, Start, check_drift, count, numbers, start_of
from quenched.prototypes.simulation import batches
from quenched.prototypes.simulation.simulators import Direct, Record, Simulator, Steps

if TYPE_CHECKING:
    import xarray as xr


def _numbers(pairs: list[tuple[Law, Rule]], size: int) -> list[Numbers]:
    """Laws and rules as arrays, without drift and decay if none has them: their steps cost as much as learning does."""
    every = [numbers(*pair) for pair in pairs]
    for one in every:
        check_drift(one.drift, size)
        check_drift(one.decay, size, "weight_decay")
    idle = {name: None for name in ("drift", "decay") if not any(np.any(getattr(one, name)) for one in every)}
    return [one._replace(**idle) for one in every]


def _one_run(key: Key, declared: tuple[Any, ...], *, simulator: Simulator, room: int) -> Record:
    n, begin, *counts = declared
    steps, size, tests, all_move = jax.tree.map(lambda x: x.astype(int), counts)
    return simulator.run(key, n, begin, steps, size=size, room=room, tests=tests, all_move=all_move > 0)


@double
def measure(
    law: Law,
    rule: Rule | Cost,
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
        rule: how prototypes learn: `LVQ1(...)`, `LVQPlus(...)`, `VQ(...)`, `LVQ21(...)` or your own; or `GLVQ()`,
            `GMLVQ()`, `RSLVQ()` or your own energy, which is minimised for the first $\alpha N$ examples of each
            sequence.
        alpha: increasing times; a time is rounded to a whole number of examples, $\alpha N$.
        size: the dimension $N$, more than there are prototypes and clusters together.
        runs: how many independent training sequences.
        key: a JAX key; the same key gives the same numbers, whatever the executor.
        start: where the prototypes begin; `NearOrigin()` by default, and the means of classes for an energy.
        simulator: `Direct()` (default) or `Chain()`; none for an energy.
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
    if isinstance(rule, Cost):
        if simulator is not None:
            raise InputError(f"Argument `simulator` must be None for {type(rule).__name__}, which takes all rows, "
                             "but one was given.")  # fmt: skip
        options = {"batch": batch, "executor": executor, "folder": folder}
        return batches.measure(law, rule, alpha, size, runs, key, start, tests, options, sweep)
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
    counts = (steps, float(size), float(tests), float(rule.all_move))
    points = [(one, begin, *counts) for one in _numbers(question.plan.pairs, size)]
    room = next_length(size, ratio=4, most=256) if simulator.shaped else 0
    run = functools.partial(_one_run, simulator=simulator, room=room)

    def cut(done: Ensemble) -> Ensemble:
        return dataclasses.replace(done, values={k: value[:, :, : len(times)] for k, value in done.values.items()})

    return question.measure(
        (run, jax.tree.map(np.asarray, points)), key=key, runs=runs, batch=batch, executor=executor, folder=folder,
        label="training", vectorized=True, finish=cut, simulator=type(simulator).__name__, size=size, tests=tests,
        start=start,
    )  # fmt: skip
