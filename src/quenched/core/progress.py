"""One report for everything that takes long, on standard error: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

PATIENCE = 1.0
"""Seconds of work before a bar appears."""
PAUSE = 10.0
"""Seconds between lines where nobody can watch a bar."""

_T = TypeVar("_T")
_silent = False
_shown = threading.Lock()  # one report at a time: work inside work does not draw over it


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A report of work that is long; gives what to tell of steps done."""
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    with _bar(label, total, MofNCompleteColumn(), TimeRemainingColumn()) as (bar, task):
        yield lambda steps: bar.advance(task, steps) if bar is not None else None


@contextlib.contextmanager
def estimated(label: str) -> Iterator[Callable[[float, str], None]]:
    """A report whose owner knows better how long it takes; gives what to tell: the share done, and words beside it."""
    from rich.progress import TextColumn

    with _bar(label, 1, TextColumn("{task.fields[words]}"), words="") as (bar, task):
        yield lambda share, words: bar.update(task, completed=share, words=words) if bar is not None else None


@contextlib.contextmanager
def _bar(label: str, total: int, *columns: Any, **fields: Any) -> Iterator[tuple[Any, Any]]:
    """A bar of rich or lines in its place, and its task; None inside other work that is reported."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    if _silent or not _shown.acquire(blocking=False):
        yield None, None
        return
    try:
        console = Console(stderr=True)
        if not console.is_terminal:
            with _lines(label, total) as lines:
                yield lines, None
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
    finally:
        _shown.release()


class _Lines:
    """What a bar would show, as words."""

    def __init__(self, label: str, total: int):
        self._label, self._total, self._begun = label, total, time.monotonic()
        self._done, self._words = 0.0, ""

    def advance(self, _: None, steps: int) -> None:
        """Some steps are done."""
        self._done += steps

    def update(self, _: None, *, completed: float, words: str) -> None:
        """So much is done."""
        self._done, self._words = completed, words

    def line(self) -> str:
        """Where the work stands."""
        done = self._words or f"{self._done:g} of {self._total}"
        return f"{self._label}: {done}, {time.monotonic() - self._begun:.0f} s"


@contextlib.contextmanager
def _lines(label: str, total: int) -> Iterator[_Lines]:
    """Say every few seconds where the work stands, however long a single step takes."""
    lines, over = _Lines(label, total), threading.Event()

    def speak() -> None:
        while not over.wait(PAUSE):
            _print(lines.line())

    clock = threading.Thread(target=speak, daemon=True)
    clock.start()
    try:
        yield lines
    finally:
        over.set()
        clock.join()


def _print(words: str) -> None:
    """A line on standard error, if there still is one."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(words, file=sys.stderr, flush=True)


def say(words: str) -> None:
    """Say something that cannot wait for the end of the work; not where nothing may be said."""
    if not _silent:
        _print(words)


def silence() -> None:
    """No reports in this process: it works for another one, which has its own, or nobody wants any."""
    global _silent
    _silent = True


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
    """Go through items with a report."""
    with progress(label, len(items)) as advance:
        for item in items:
            yield item
            advance(1)
