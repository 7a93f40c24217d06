"""One bar for everything that takes long: on standard error, on a terminal only, after a second of patience."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

PATIENCE = 1.0
"""Seconds of work before a bar appears."""

_T = TypeVar("_T")
_shown = threading.Lock()  # one bar at a time: work inside work does not draw over it


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar, if standard error is a terminal and the work is long; gives what to tell of steps done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal or not _shown.acquire(blocking=False):
        yield lambda steps: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(label, total=total)
    clock = threading.Timer(PATIENCE, bar.start)
    clock.daemon = True
    clock.start()
    try:
        yield lambda steps: bar.advance(task, steps)
    finally:
        clock.cancel()
        clock.join()  # or the bar might start after it was stopped
        bar.stop()
        _shown.release()


def track(items: Sequence[_T], label: str) -> Iterator[_T]:
    """Go through items with a bar."""
    with progress(label, len(items)) as advance:
        for item in items:
            yield item
            advance(1)
