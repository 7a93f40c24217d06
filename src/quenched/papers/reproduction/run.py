"""Computing steps, in this process or in several, and keeping each as soon as it is done.

`costs.json` holds the processor seconds of every step, quick and full, as `python -m benchmarks.reproduction` reads
them from the steps of a finished reproduction. With as many processes as cores a step takes about as long.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from quenched.core.claims import Claim
from quenched.core.ensemble import ClusterError, Executor, place
from quenched.core.ensemble.executors import pool
from quenched.core.figures import Figure
from quenched.core.store import Store
from quenched.core.types import InputError
from quenched.papers.reproduction.steps import CLAIMS, Step, paper, read, write

TICK = 0.5
"""Seconds between two looks at the workers."""
COSTS = Path(__file__).with_name("costs.json")
LEAST_LEFT = 0.1
"""Share of its time that a running step is expected to take at least, however long it has been running."""


@dataclasses.dataclass(frozen=True)
class Done:
    """The result of a step.

    Attributes:
        value: a figure, or claims; None if it could not be computed.
        sentence: why not.
        fault: whether that is a fault of this package rather than something missing here.
        seconds: how long it took.
        processor: processor seconds, all cores together.
    """

    value: Figure | tuple[Claim, ...] | None
    sentence: str = ""
    fault: bool = False
    seconds: float = 0.0
    processor: float = 0.0


@functools.lru_cache(maxsize=2)
def costs(*, quick: bool) -> Mapping[str, float]:
    """Processor seconds of each step that was measured."""
    return json.loads(COSTS.read_text())["quick" if quick else "full"]


@dataclasses.dataclass
class State:
    """The state of a reproduction.

    Attributes:
        every: all steps.
        quick: whether it is the quick form.
        workers: how many steps are computed at a time.
        finished: steps that are done, and the seconds that each took now (0 if it was kept from before).
        running: steps being computed, and when each began.
    """

    every: Sequence[Step]
    quick: bool
    workers: int
    finished: dict[Step, float] = dataclasses.field(default_factory=dict)
    running: dict[Step, float] = dataclasses.field(default_factory=dict)

    def expected(self, step: Step) -> float:
        """Seconds that a step takes on this machine, judged by those that are done; 0 if it was never measured."""
        known = costs(quick=self.quick)
        pairs = [(seconds, known[str(s)]) for s, seconds in self.finished.items() if seconds > 0 and str(s) in known]
        speed = sum(seconds for seconds, _ in pairs) / sum(cost for _, cost in pairs) if pairs else 1.0
        return speed * known.get(str(step), 0.0)

    def unknown(self) -> list[Step]:
        """Steps that are left and were never measured."""
        return [s for s in self.every if s not in self.finished and str(s) not in costs(quick=self.quick)]

    def share(self) -> float:
        """The share of the work that is done."""
        total = sum(map(self.expected, self.every)) or 1.0
        return 1.0 - sum(self._left().values()) / total

    def seconds_left(self) -> float:
        """When the last step will be done: all work on all workers, but claims wait for the figures of their paper."""
        left, chains = self._left(), {}
        for step, seconds in left.items():
            figure, claims = chains.get(step.paper, (0.0, 0.0))
            chains[step.paper] = (figure, seconds) if step.name == CLAIMS else (max(figure, seconds), claims)
        return max([sum(left.values()) / self.workers, *map(sum, chains.values())])

    def _left(self) -> dict[Step, float]:
        """Seconds that each unfinished step still takes."""
        now = time.monotonic()
        spent = {step: now - begun for step, begun in self.running.items()}
        expected = {step: self.expected(step) for step in self.every if step not in self.finished}
        return {
            step: max(all_of_it - spent.get(step, 0.0), LEAST_LEFT * all_of_it) for step, all_of_it in expected.items()
        }


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
        watch: called at every change, and now and then.

    Returns:
        The result of each step, in the order of `steps`. A step that cannot be computed does not stop the others.
    """
    work = _Work(steps, quick, folder, workers, executor, watch)
    left = work.load()
    if work.state.workers == 1 or len(left) == 1:
        for step in left:
            work.finish(step, compute(work.begin(step)))
    elif left:
        work.share(left)
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
        self.store = Store.open(folder / "steps" / ("quick" if quick else "full"))
        self.done: dict[Step, Done] = {}

    def load(self) -> list[Step]:
        """Take what is in the folder; return the steps that are not, in the order in which they should begin.

        The longest begin first; a figure keeps the claims of its paper waiting, so their cost is added to its own.
        """
        for step in self.state.every:
            if (value := read(self.store, step, quick=self.state.quick)) is not None:
                self.done[step] = Done(value["value"])
                self.state.finished[step] = 0.0
        self.watch(self.state)
        left = [step for step in self.state.every if step not in self.done]
        known = {step: self.state.expected(step) for step in left}
        after = {step.paper: known[step] for step in left if step.name == CLAIMS}
        waits = {step: known[step] + (after.get(step.paper, 0.0) if step.name != CLAIMS else 0.0) for step in left}
        return sorted(left, key=lambda step: (-waits[step], step.name == CLAIMS))

    def share(self, left: list[Step]) -> None:
        """Compute several steps at a time, each in a process of its own; claims wait for the figures of their paper."""
        workers = self.state.workers
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # threads of several processes wait for each other
            os.environ.setdefault(name, str(max(1, (os.cpu_count() or 1) // workers)))
        with pool(workers) as ready:
            waiting: dict[futures.Future[Done], Step] = {}
            while left or waiting:
                figures = {step.paper for step in [*left, *waiting.values()] if step.name != CLAIMS}
                free = [step for step in left if step.name != CLAIMS or step.paper not in figures]
                for step in free[: workers - len(waiting)]:
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
        """Keep a step that is done; one that cannot be kept is still in the report."""
        if result.value is not None:
            kept = {"value": result.value, "processor": result.processor}
            if failure := write(self.store, step, kept, quick=self.state.quick):
                warnings.warn(f"{step} is in the report, but it could not be kept in {self.store.folder} ({failure}): "
                              "another call computes it again.", RuntimeWarning, stacklevel=2)  # fmt: skip
        self.done[step], self.state.finished[step] = result, result.seconds
        self.state.running.pop(step, None)
        self.watch(self.state)


def _result(future: futures.Future[Done]) -> Done:
    try:
        return future.result()
    except BrokenProcessPool:
        return Done(None, "Its process died: it may have run out of memory.", fault=True)


def compute(task: _Task) -> Done:
    """Compute a step; what goes wrong becomes a sentence."""
    begun, worked = time.monotonic(), time.process_time()
    try:
        module = paper(task.step.paper)
        function = module.claims if task.step.name == CLAIMS else module.FIGURES[task.step.name]
        offered: Mapping[str, Any] = {"quick": task.quick, "figures": task.figures}
        have = inspect.signature(function).parameters
        with place(task.executor, task.pieces):
            value = function(**{name: given for name, given in offered.items() if name in have})
    except (InputError, ClusterError) as error:
        return Done(None, str(error))
    except Exception as error:  # one step must not stop the others
        if os.environ.get("QUENCHED_TRACEBACK"):
            raise
        return Done(None, f"{type(error).__name__}: {' '.join(str(error).split())}", fault=True)
    return Done(value, seconds=time.monotonic() - begun, processor=time.process_time() - worked)
