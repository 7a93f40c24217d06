"""The entry point: any error is one line on standard error and an exit code, never a traceback."""

from __future__ import annotations

import _thread
import contextlib
import os
import platform
import shutil
import signal
import sys
import tempfile
import textwrap
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import FrameType

from quenched.cli.app import app
from quenched.cli.delivery import Stop
from quenched.core.errors import ClusterError, InputError, OutputError, printable

MOST_COMPILED = 2**30
"""Bytes of compiled programs that are kept between calls."""
AGAIN = 0.05
"""Seconds after which an interrupt that came at a bad time comes again."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: the words after `quenched`; by default those of the process.

    Returns:
        0, or 2 for bad input, a place that cannot be written or a cluster that is lost, 3 if no answer can be given,
        130 for an interrupt, 1 for a fault of ours.
    """
    _cache_compilations()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # alarms of the compiler say nothing about the answer
    with _keep_interrupts(), warnings.catch_warnings():
        warnings.filterwarnings("default", category=UserWarning)  # warnings are printed whatever Python's own filters
        warnings.showwarning = lambda message, *_: _say(f"warning: {message}")
        try:
            code = app(args=arguments, prog_name="quenched", standalone_mode=False)
        except Exception as error:
            line, code = _explain(error)
            _say("quenched: " + " ".join(line.split()))
            return code
    if code == 130:  # an interrupt outside the work itself
        _say("quenched: Interrupted.")
    return code if isinstance(code, int) else 0


@contextlib.contextmanager
def _keep_interrupts() -> Iterator[None]:
    """Let an interrupt wait while compiled code loads, and come again where it was lost.

    Compiled modules make other errors of one while they load, and callbacks of the garbage collector drop it.
    """
    usual, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    if usual is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield  # who calls decides
        return

    def again() -> None:
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        else:  # Windows; it does not end a wait of the system
            _thread.interrupt_main()

    def repeat() -> None:
        timer = threading.Timer(AGAIN, again)
        timer.daemon = True
        timer.start()

    def interrupt(_: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code is not main.__code__:
            if isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
                return repeat()
            frame = frame.f_back
        raise KeyboardInterrupt

    def notice(lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            repeat()
        else:
            hook(lost)

    signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = notice
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        sys.unraisablehook = hook


def _say(line: str) -> None:
    """Print a line on standard error, without characters that control the terminal."""
    line = printable(line.replace("\n", " "))
    if sys.stderr.isatty():  # between words, as far as there are any
        line = textwrap.fill(line, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    print(line, file=sys.stderr)


def _explain(error: Exception) -> tuple[str, int]:
    """The line and the exit code of an exception; with QUENCHED_TRACEBACK set, unexpected ones are raised again."""
    if isinstance(error, Stop):
        return str(error), error.code
    if isinstance(error, (InputError, OutputError, ClusterError)):
        return str(error), 2
    if isinstance(words := getattr(error, "format_message", None), Callable):  # typer's own errors of usage
        return str(words()), 2
    if os.environ.get("QUENCHED_TRACEBACK"):
        raise error
    return f"{type(error).__name__}: {error} (set QUENCHED_TRACEBACK=1 to see where)", 1


def _cache_compilations() -> None:
    """Let JAX keep compiled programs between calls; compiling is most of a short command's time.

    Through the environment, so that it costs no import and worker processes share it; what the user has set stays.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "quenched" / f"jax-{_processor()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        _trim(folder.parent)
    except (OSError, RuntimeError):  # no home, or not ours: go without
        return
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")


def _trim(folder: Path) -> None:
    """Remove the least recently used compiled programs beyond `MOST_COMPILED` bytes."""
    with contextlib.suppress(FileNotFoundError):  # another command does so now
        every = [(path, path.stat()) for path in folder.glob("jax-*/*")]
        size = 0
        for path, about in sorted(every, key=lambda one: -max(one[1].st_atime, one[1].st_mtime)):
            size += about.st_size
            if size > MOST_COMPILED:
                path.unlink()


def _processor() -> str:
    """The kind of processor: programs compiled for one may not run on another that shares the home folder."""
    kind = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return kind
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{kind}-{zlib.crc32(flags.encode()):08x}"
