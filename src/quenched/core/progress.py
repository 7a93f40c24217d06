"""One report for everything that takes long, on standard error: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

PATIENCE = 1.0
"""Seconds of work before a bar appears."""
PAUSE = 10.0
"""Seconds between lines where there is no terminal."""
REFRESH = 0.1
"""Seconds between two states of a bar."""

_T = TypeVar("_T")
_silent = False
_shown = threading.Lock()  # one report at a time: work inside other work has none of its own


class _Report:
    """The state of some work."""

    def __init__(self, label: str, total: float):
        self.label, self.total, self.done, self.words, self.begun = label, total, 0.0, "", time.monotonic()

    def state(self) -> str:
        """The state in words."""
        return self.words or f"{self.done:g} of {self.total}"

    def show(self, over: threading.Event) -> None:
        """Show the state until the work is over, however long a single step takes."""
        if over.wait(min(PATIENCE, PAUSE)):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        if not console.is_terminal:
            pause = max(0.0, PAUSE - PATIENCE)
            while not over.wait(pause):
                _print(f"{self.label}: {self.state()}, {time.monotonic() - self.begun:.0f} s")
                pause = PAUSE
            return
        columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}")]
        remaining = [] if self.words else [TimeRemainingColumn()]
        with Progress(*columns, *remaining, console=console, transient=True) as bar:
            task = bar.add_task(self.label, total=self.total, state=self.state())
            while not over.wait(REFRESH):
                bar.update(task, completed=self.done, state=self.state())


@contextlib.contextmanager
def _report(label: str, total: float) -> Iterator[_Report]:
    """A report that is shown by a thread of its own, unless other work is being reported."""
    report, over = _Report(label, total), threading.Event()
    if _silent or not _shown.acquire(blocking=False):
        yield report
        return
    thread = threading.Thread(target=report.show, args=(over,), daemon=True)
    thread.start()
    try:
        yield report
    finally:
        over.set()
        thread.join()
        _shown.release()


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Report the progress of long work. Yields a callback `advance(steps)`."""

    def advance(steps: int) -> None:
        report.done += steps

    with _report(label, total) as report:
        yield advance


@contextlib.contextmanager
def estimated(label: str) -> Iterator[Callable[[float, str], None]]:
    """Report work whose duration its caller estimates. Yields a callback `update(share_done, words)`."""

    def update(share: float, words: str) -> None:
        report.done, report.words = share, words

    with _report(label, 1) as report:
        yield update


def track(items: Sequence[_T], label: str) -> Iterator[_T]:
    """Iterate over items with a report."""
    with progress(label, len(items)) as advance:
        for item in items:
            yield item
            advance(1)


def say(words: str) -> None:
    """Print a line that cannot wait for the end of the work, unless reports are switched off."""
    if not _silent:
        _print(words)


def _print(words: str) -> None:
    """Print a line on standard error, if it still exists."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(words, file=sys.stderr, flush=True)


def silence() -> None:
    """Switch off reports in this process, which works for another one."""
    global _silent
    _silent = True


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """Switch off reports inside a block."""
    global _silent
    before, _silent = _silent, True
    try:
        yield
    finally:
        _silent = before
