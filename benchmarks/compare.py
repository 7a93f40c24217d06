"""One comparison: the sides are asked in turn, seed by seed, on the same data, and every answer is judged in one place.

The first data set is asked twice. What the first call takes more is the compilation (or caches, or late imports); it is
left out of the time. The time is the median over the seeds, and sides change their order from seed to seed.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import tasks

Ask = Callable[..., dict[str, Any]]
"""`ask(side, task=, case=, seed=, model=)` gives what `benchmarks.worker` answers."""
OURS = "ours"


@dataclasses.dataclass(frozen=True)
class Entry:
    """A row of the table.

    Attributes:
        side: a module of `benchmarks.sides`.
        model: a name in its `MODELS`.
        against: which of our models it is compared with, for a peer.
        seeds: how many of the comparison's seeds it is given, if not all.
        compiles: if it does not, the first data set is not asked twice.
    """

    side: str
    model: str
    against: str | None = None
    seeds: int | None = None
    compiles: bool = True


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The same work for several models.

    Attributes:
        topic: a key of `benchmarks.tasks.TASKS`.
        title: the case in words.
        case: the same in numbers.
        seeds: how many data sets.
        entries: the rows.
        truth: the peer's long run that answers are compared with, where there is no known truth.
    """

    topic: str
    title: str
    case: dict[str, Any]
    seeds: int
    entries: tuple[Entry, ...]
    truth: Entry | None = None


def measured(comparison: Comparison, ask: Ask) -> list[dict[str, Any]]:
    """The rows of a comparison: values and seconds of every seed; a side that failed has a sentence instead."""
    truth = None
    if comparison.truth is not None:
        long_run = _asked(comparison, comparison.truth, 0, ask)
        if "failed" in long_run:
            return [_row(comparison, entry, [long_run], None) for entry in comparison.entries]
        truth = long_run["answer"]
    first = {e: _asked(comparison, e, 0, ask) for e in comparison.entries if e.compiles}
    found: dict[Entry, list[dict]] = {entry: [] for entry in comparison.entries}
    for seed in range(comparison.seeds):
        for entry in comparison.entries[:: 1 if seed % 2 == 0 else -1]:
            if entry.seeds is None or seed < entry.seeds:
                found[entry].append(_judged(comparison, _asked(comparison, entry, seed, ask), seed, truth))
    return [_row(comparison, entry, each, first.get(entry)) for entry, each in found.items()]


def _asked(comparison: Comparison, entry: Entry, seed: int, ask: Ask) -> dict[str, Any]:
    return ask(entry.side, task=comparison.topic, case=comparison.case, seed=seed, model=entry.model)


def _judged(comparison: Comparison, reply: dict[str, Any], seed: int, truth: Any) -> dict[str, Any]:
    """The reply with `values`, what the judge says of its answer."""
    if "failed" in reply:
        return reply
    data, task = tasks.made(comparison.topic, comparison.case, seed), tasks.TASKS[comparison.topic]
    if not np.isclose(reply["checksum"], tasks.checksum(data), rtol=1e-12):
        return {"failed": "its data were not those of the other sides"}
    lists = task.judge is tasks.share_right  # folds may differ in length
    values = task.judge(reply["answer"] if lists else np.array(reply["answer"]), data, truth)
    return {**reply, "values": values} if np.all(np.isfinite(values)) else {"failed": "its answer was not finite"}


def _row(comparison: Comparison, entry: Entry, each: list[dict], first: dict | None) -> dict[str, Any]:
    task, good = tasks.TASKS[comparison.topic], [reply for reply in each if "failed" not in reply]
    row = {
        "topic": comparison.topic, "case": comparison.title, "side": entry.side, "model": entry.model,
        "against": entry.against, "measure": task.measure, "higher_is_better": task.higher_is_better,
    }  # fmt: skip
    if not good or "values" not in good[0]:
        return {**row, "failed": each[0].get("failed", "it was not asked")}
    compiling = first["cpu_s"] - each[0]["cpu_s"] if first and "cpu_s" in first and "cpu_s" in each[0] else 0.0
    return {
        **row,
        "version": good[0]["version"],
        "values": [reply.get("values") for reply in each],  # None where a seed failed
        "cpu_s": [reply.get("cpu_s") for reply in each],
        "compile_s": max(compiling, 0.0) if entry.compiles else None,
    }


@dataclasses.dataclass(frozen=True)
class Growth:
    """How our cost grows along one number of a case.

    Attributes:
        work: in words.
        task: a key of `benchmarks.tasks.TASKS`.
        model: of ours.
        case: what stays.
        along: the number that grows.
        sizes: its values.
        promised: the exponent, in words.
    """

    work: str
    task: str
    model: str
    case: dict[str, Any]
    along: str
    sizes: tuple[int, ...]
    promised: str


def grown(growth: Growth, ask: Ask, repeats: int = 3) -> dict[str, Any]:
    """Median seconds at every size, after a first call that compiles; a fit of the exponent is left to the table."""
    row: dict[str, Any] = {"work": growth.work, "along": growth.along, "promised": growth.promised}
    seconds = []
    for size in growth.sizes:
        question = {"task": growth.task, "case": {**growth.case, growth.along: size}, "model": growth.model}
        replies = [ask(OURS, seed=0, **question) for _ in range(repeats + 1)][1:]
        if any("failed" in reply for reply in replies):
            return {**row, "failed": next(reply["failed"] for reply in replies if "failed" in reply)}
        seconds.append(statistics.median(reply["cpu_s"] for reply in replies))
    return {**row, "sizes": list(growth.sizes), "cpu_s": seconds}
