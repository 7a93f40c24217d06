"""How long it will take: what each step cost when it was measured, and how fast this machine is beside that.

`costs.json` holds the processor seconds of every step, quick and full, as `python -m benchmarks.reproduction` reads
them from the steps of a finished reproduction. With as many processes as cores a step takes about as long.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from quenched.reproduction.steps import CLAIMS, Step

COSTS = Path(__file__).with_name("costs.json")
SLOWER = 1.1
"""What a running step is granted beyond its estimate before it is called late."""


@functools.lru_cache(maxsize=2)
def costs(*, quick: bool) -> Mapping[str, float]:
    """Processor seconds of each step that was measured."""
    return json.loads(COSTS.read_text())["quick" if quick else "full"]


def cost(step: Step, *, quick: bool) -> float | None:
    """Processor seconds of a step; None if it was never measured."""
    return costs(quick=quick).get(str(step))


@dataclasses.dataclass
class State:
    """Where a reproduction stands.

    Attributes:
        every: all steps.
        quick: whether it is the quick form.
        workers: how many steps are computed at a time.
        finished: steps that are done, and the seconds each took now (none, if it was kept from before).
        running: steps being computed, and when each began.
    """

    every: Sequence[Step]
    quick: bool
    workers: int
    finished: dict[Step, float] = dataclasses.field(default_factory=dict)
    running: dict[Step, float] = dataclasses.field(default_factory=dict)

    def speed(self) -> float:
        """Seconds here for each processor second when it was measured, from the steps computed now."""
        pairs = [(s, cost(step, quick=self.quick)) for step, s in self.finished.items() if s > 0]
        known = [(s, c) for s, c in pairs if c]
        return sum(s for s, _ in known) / sum(c for _, c in known) if known else 1.0

    def expected(self, step: Step) -> float:
        """Seconds that a step will take; 0 if nobody knows."""
        return self.speed() * (cost(step, quick=self.quick) or 0.0)

    def unknown(self) -> list[Step]:
        """Steps that are left and of which nobody knows how long they take."""
        return [s for s in self.every if s not in self.finished and cost(s, quick=self.quick) is None]

    def share(self) -> float:
        """The share of the work that is done."""
        total = sum(map(self.expected, self.every)) or 1.0
        now = time.monotonic()
        begun = sum(min(now - t, 0.95 * self.expected(s)) for s, t in self.running.items())
        return (sum(map(self.expected, self.finished)) + begun) / total


def seconds_left(state: State) -> float:
    """When the last step will be done, if each takes as long as expected and claims wait for their figures."""
    now = time.monotonic()
    ends: dict[Step, float] = {}
    for step, begun in state.running.items():
        ends[step] = max(state.expected(step) - (now - begun), (SLOWER - 1) * state.expected(step))
    free = [0.0] * (state.workers - len(ends)) + list(ends.values())
    heapq.heapify(free)
    left = [s for s in state.every if s not in state.finished and s not in state.running]
    figures = [s for s in left if s.name != CLAIMS]
    for step in [*in_order(figures, quick=state.quick), *(s for s in left if s.name == CLAIMS)]:
        before = [end for other, end in ends.items() if other.paper == step.paper] if step.name == CLAIMS else []
        ends[step] = max([heapq.heappop(free), *before]) + state.expected(step)
        heapq.heappush(free, ends[step])
    return max(ends.values(), default=0.0)


def in_order(steps: Sequence[Step], *, quick: bool) -> list[Step]:
    """Steps in the order in which they should begin: first those that keep the longest work waiting.

    A figure keeps the claims of its paper waiting, so their cost is added to its own.
    """
    known = {step: cost(step, quick=quick) or 0.0 for step in steps}
    after = {step.paper: known[step] for step in steps if step.name == CLAIMS}
    waits = {step: known[step] + (after.get(step.paper, 0.0) if step.name != CLAIMS else 0.0) for step in steps}
    return sorted(steps, key=lambda step: (-waits[step], step.name == CLAIMS))
