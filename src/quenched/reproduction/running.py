"""Computing steps, in this process or in several, and keeping each as soon as it is done."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from quenched.core import files
from quenched.core.claims import Claim
from quenched.core.ensemble import ClusterError, Executor, placed
from quenched.core.ensemble.executors import pool
from quenched.core.figures import Figure
from quenched.core.types import InputError
from quenched.reproduction import keeping, schedule
from quenched.reproduction.schedule import State
from quenched.reproduction.steps import CLAIMS, Step, paper

TICK = 0.5
"""Seconds between two looks at the workers."""


@dataclasses.dataclass(frozen=True)
class Done:
    """What came of a step.

    Attributes:
        value: a figure, or claims; None if it could not be computed.
        sentence: why not.
        fault: whether that is a fault of this package rather than something missing here.
        seconds: how long it took.
        processor: the processor's seconds, all its cores together.
        kept: whether it was found in the folder.
    """

    value: Figure | tuple[Claim, ...] | None
    sentence: str = ""
    fault: bool = False
    seconds: float = 0.0
    processor: float = 0.0
    kept: bool = False


@dataclasses.dataclass(frozen=True)
class _Task:
    """All that a worker needs to compute a step."""

    step: Step
    quick: bool
    pieces: Path | None
    executor: Executor | None
    figures: tuple[Figure, ...] = ()


def run(
    steps: Sequence[Step],
    *,
    quick: bool,
    folder: Path,
    workers: int = 1,
    executor: Executor | None = None,
    watch: Callable[[State], None] = lambda state: None,
) -> dict[Step, Done]:
    """Compute steps; those that are in the folder are not computed again.

    Args:
        steps: what to compute.
        quick: fewer runs, or the papers' own.
        folder: where steps are kept; the pieces of long simulations go to `pieces` in it.
        workers: processes; 1 is this one.
        executor: where simulations run, such as `Dask(...)`; by default where their step does.
        watch: told of every change, and now and then.

    Returns:
        What came of each step, in the order of `steps`. A step that cannot be computed does not keep others from it.
    """
    work = _Work(steps, quick, folder, workers, executor, watch)
    left = work.load()
    if work.state.workers == 1 or len(left) == 1:
        work.here(left)
    elif left:
        work.there(left)
    return {step: work.done[step] for step in steps}


class _Work:
    """Steps as they are done."""

    def __init__(
        self,
        steps: Sequence[Step],
        quick: bool,
        folder: Path,
        workers: int,
        executor: Executor | None,
        watch: Callable[[State], None],
    ):
        self.state = State(steps, quick, max(1, min(workers, len(steps))))
        self.folder, self.executor, self.watch = folder, executor, watch
        self.done: dict[Step, Done] = {}

    def load(self) -> list[Step]:
        """Take what is in the folder; return the steps that are not, in the order in which they should begin."""
        for place in {self._place(step)[0].parent for step in self.state.every}:
            files.sweep(place)
        for step in self.state.every:
            with contextlib.suppress(keeping.Unknown):
                self.done[step] = Done(keeping.read(*self._place(step)), kept=True)
                self.state.finished[step] = 0.0
        self.watch(self.state)
        return schedule.in_order([step for step in self.state.every if step not in self.done], quick=self.state.quick)

    def here(self, left: list[Step]) -> None:
        """One step after the other, in this process."""
        for step in left:
            self.finish(step, compute(self.begin(step)))

    def there(self, left: list[Step]) -> None:
        """Several steps at a time, each in a process of its own; claims wait for the figures of their paper."""
        workers = self.state.workers
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # threads of several processes wait for each other
            os.environ.setdefault(name, str(max(1, (os.cpu_count() or 1) // workers)))
        with pool(workers) as ready:
            waiting: dict[futures.Future[Done], Step] = {}
            while left or waiting:
                for step in _ready(left, list(waiting.values()), workers - len(waiting)):
                    left.remove(step)
                    waiting[ready.submit(compute, self.begin(step))] = step
                for future in futures.wait(waiting, TICK, futures.FIRST_COMPLETED).done:
                    self.finish(waiting.pop(future), _result(future))
                self.watch(self.state)

    def begin(self, step: Step) -> _Task:
        """What a worker needs for a step that begins now."""
        self.state.running[step] = time.monotonic()
        self.watch(self.state)
        own = [self.done[s].value for s in self.state.every if s.paper == step.paper and s in self.done]
        figures = tuple(value for value in own if isinstance(value, Figure)) if step.name == CLAIMS else ()
        pieces = None if self.state.quick else self.folder / "pieces"
        return _Task(step, self.state.quick, pieces, self.executor, figures)

    def finish(self, step: Step, result: Done) -> None:
        """Keep a step that is done; what cannot be kept is still in the report."""
        path, identity = self._place(step)
        if result.value is not None:
            try:
                keeping.write(path, result.value, identity, processor=result.processor)
            except OSError as error:
                warnings.warn(f"{step} is in the report, but it could not be kept in {path.parent} "
                              f"({error.strerror or error}): another call computes it again.",
                              RuntimeWarning, stacklevel=2)  # fmt: skip
        self.done[step], self.state.finished[step] = result, result.seconds
        self.state.running.pop(step, None)
        self.watch(self.state)

    def _place(self, step: Step) -> tuple[Path, str]:
        """The file of a step, and the code it must come from."""
        quick = self.state.quick
        path = self.folder / "steps" / ("quick" if quick else "full") / f"{step.paper}-{step.name}.json"
        return path, keeping.code(paper(step.paper), quick=quick)


def _ready(left: Sequence[Step], running: Sequence[Step], room: int) -> list[Step]:
    """Steps that can begin now."""
    figures = {step.paper for step in [*left, *running] if step.name != CLAIMS}
    return [step for step in left if step.name != CLAIMS or step.paper not in figures][:room]


def _result(future: futures.Future[Done]) -> Done:
    try:
        return future.result()
    except BrokenProcessPool:
        return Done(None, "Its process died: it may have run out of memory.", fault=True)


def compute(task: _Task) -> Done:
    """Compute a step; what goes wrong is a sentence."""
    begun, worked = time.monotonic(), time.process_time()
    try:
        module = paper(task.step.paper)
        function = module.claims if task.step.name == CLAIMS else module.FIGURES[task.step.name]
        offered: Mapping[str, Any] = {"quick": task.quick, "figures": task.figures}
        have = inspect.signature(function).parameters
        with placed(task.executor, task.pieces):
            value = function(**{name: given for name, given in offered.items() if name in have})
    except (InputError, ClusterError) as error:
        return Done(None, str(error))
    except Exception as error:  # one step must not take the others with it
        if os.environ.get("QUENCHED_TRACEBACK"):
            raise
        return Done(None, f"{type(error).__name__}: {' '.join(str(error).split())}", fault=True)
    return Done(value, seconds=time.monotonic() - begun, processor=time.process_time() - worked)
