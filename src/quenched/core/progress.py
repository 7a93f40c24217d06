"""One report for everything that takes long, on standard error: a bar on a terminal, elsewhere a line now and then.

While a command imports, compiles or reads, `waiting` turns a spinner on a terminal; reports of work take its place.
"""

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
_spinner: _Spinner | None = None  # of the command that runs, until it answers


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
        if not console.is_terminal or console.is_dumb_terminal:
            pause = max(0.0, PAUSE - PATIENCE)
            while not over.wait(pause):
                _print(f"{self.label}: {self.state()}, {time.monotonic() - self.begun:.0f} s")
                pause = PAUSE
            return
        columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}")]
        remaining = [] if self.words else [TimeRemainingColumn()]
        with Progress(*columns, *remaining, console=console, transient=True, redirect_stdout=False) as bar:
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
    if spinner := _spinner:
        spinner.stop()
    thread.start()
    try:
        yield report
    finally:
        over.set()
        thread.join()
        if spinner and spinner is _spinner:
            spinner.start()
        _shown.release()


class _Spinner:
    """A line on a terminal that moves."""

    def __init__(self, words: str):
        self.words, self.begun = words, time.monotonic()
        self.over, self.thread = threading.Event(), None

    def start(self) -> None:
        """Turn, in a thread of its own."""
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._turn, args=(self.over,), daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Wipe the line."""
        self.over.set()
        if self.thread is not None:
            self.thread.join()
            self.thread = None

    def _turn(self, over: threading.Event) -> None:
        if over.wait(PATIENCE):
            return
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        console = Console(stderr=True)
        if console.is_dumb_terminal:
            return
        turning = Spinner("dots")
        with Live(turning, console=console, transient=True, redirect_stdout=False):
            while not over.wait(REFRESH):
                turning.update(text=f"{self.words} ({time.monotonic() - self.begun:.0f} s)")


@contextlib.contextmanager
def waiting(words: str) -> Iterator[None]:
    """Turn a spinner on a terminal until the block ends or `settle` is called; reports of work take its place."""
    global _spinner
    if _silent or _spinner is not None or not sys.stderr.isatty():
        yield
        return
    _spinner = _Spinner(words)
    _spinner.start()
    try:
        yield
    finally:
        settle()


def wait_for(words: str) -> None:
    """Say beside the spinner what is being done."""
    if _spinner is not None:
        _spinner.words = words


def settle() -> None:
    """Stop the spinner before an answer is printed."""
    global _spinner
    spinner, _spinner = _spinner, None
    if spinner is not None:
        spinner.stop()


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
