"""One bar for everything that takes long: on standard error, on a terminal only, after a second of patience."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

PATIENCE = 1.0
"""Seconds of work before a bar appears."""

_T = TypeVar("_T")
_shown = threading.Lock()  # one bar at a time: work inside work does not draw over it


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar, if standard error is a terminal and the work is long; gives what to tell of steps done."""
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    with _bar(label, total, MofNCompleteColumn(), TimeRemainingColumn()) as (bar, task):
        yield lambda steps: bar.advance(task, steps) if bar is not None else None


@contextlib.contextmanager
def estimated(label: str) -> Iterator[Callable[[float, str], None]]:
    """A bar whose owner knows better how long it takes; gives what to tell: the share done, and words beside it."""
    from rich.progress import TextColumn

    with _bar(label, 1, TextColumn("{task.fields[words]}"), words="") as (bar, task):
        yield lambda share, words: bar.update(task, completed=share, words=words) if bar is not None else None


@contextlib.contextmanager
def _bar(label: str, total: int, *columns: Any, **fields: Any) -> Iterator[tuple[Any, Any]]:
    """A bar of rich and its task, or None where nobody is watching."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal or not _shown.acquire(blocking=False):
        yield None, None
        return
    bar = Progress(TextColumn("{task.description}"), BarColumn(), *columns, console=console, transient=True)
    task = bar.add_task(label, total=total, **fields)
    clock = threading.Timer(PATIENCE, bar.start)
    clock.daemon = True
    clock.start()
    try:
        yield bar, task
    finally:
        clock.cancel()
        clock.join()  # or the bar might start after it was stopped
        bar.stop()
        _shown.release()


def silence() -> None:
    """No bars in this process: it works for another one, which has its own."""
    _shown.acquire(blocking=False)


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """No bars inside this block: nobody wants to see them."""
    held = _shown.acquire(blocking=False)
    try:
        yield
    finally:
        if held:
            _shown.release()


def track(items: Sequence[_T], label: str) -> Iterator[_T]:
    """Go through items with a bar."""
    with progress(label, len(items)) as advance:
        for item in items:
            yield item
            advance(1)
