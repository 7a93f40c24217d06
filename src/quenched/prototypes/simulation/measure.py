"""The learning curve as an experiment."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.ensemble import Ensemble
from quenched.core.lengths import next_length, padded
from quenched.core.types import Array, InputError, Key, double
from quenched.prototypes.model import SCIENCE, Law, Numbers, Rule, Start, count, numbers, start_of
from quenched.prototypes.simulation.simulators import Direct, Record, Simulator, Steps

if TYPE_CHECKING:
    import xarray as xr


def _one_run(
    key: Key, declared: tuple[Numbers, Any, Array, Array, Array, Array], *, simulator: Simulator, all_move: bool,
    room: int,
) -> Record:  # fmt: skip
    n, begin, last, count, dimension, tests = declared
    last, size, tests = last.astype(int), dimension.astype(int), tests.astype(int)
    first = jnp.concatenate([jnp.zeros(1, last.dtype), last[:-1]])
    steps = Steps(first, last, jnp.arange(last.shape[0]) < count)
    return simulator.run(key, n, begin, steps, size=size, room=room, tests=tests, all_move=all_move)


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
    r"""The learning curve as an experiment.

    Args:
        law: the world.
        rule: the student.
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
    _check_start(law, rule, start)
    times = question.axes["alpha"]
    steps = padded(np.rint(times * size), next_length(len(times)))
    begin, every = start.overlaps(K, M), [numbers(*pair) for pair in question.plan.pairs]
    points = [(point, begin, steps, float(len(times)), float(size), float(tests)) for point in every]
    room = next_length(size, ratio=4, most=256) if simulator.shaped else 0
    run = functools.partial(_one_run, simulator=simulator, all_move=rule.all_move, room=room)

    def cut(done: Ensemble) -> Ensemble:
        values = {name: value[:, :, : len(times)] for name, value in done.values.items()}
        return dataclasses.replace(done, values=values)

    return question.measure(
        (run, jax.tree.map(np.asarray, points)), key=key, runs=runs, batch=batch, executor=executor, folder=folder,
        label="training", vectorized=True, finish=cut, simulator=type(simulator).__name__, size=size, tests=tests,
        start=start,
    )  # fmt: skip


def _check_start(law: Law, rule: Rule, start: Start) -> None:
    """Check that vectors can have these overlaps."""
    mix = law.mixture()
    R, Q = (np.asarray(x) for x in start.overlaps(*count(law, rule)))
    gram = np.block([[np.asarray(mix.gram), R.T], [R, Q]])
    if np.linalg.eigvalsh(gram)[0] < -1e-9:
        raise InputError("Argument `start` must be overlaps that vectors can have, but their Gram matrix has a "
                         "negative eigenvalue.")  # fmt: skip
