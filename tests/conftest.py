"""Set-up common to all tests."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import hypothesis
import jax
import pytest
import scipy.linalg.cython_lapack  # noqa: F401  the BLAS that JAX uses: loaded, it can be held to one thread
import threadpoolctl

# Both workers of a test run compile the same programs, large and small: the second one to ask finds them on disk.
CACHE = Path(os.environ.get("QUENCHED_TEST_CACHE", Path(__file__).parents[1] / ".pytest_cache" / "jax"))
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)

UNREADABLE = "Error reading persistent compilation cache entry:UserWarning"

# The same examples in every run, and on a loaded machine they may take as long as they need.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tests")

# Two workers on two cores: BLAS threads of their own would only wait for each other, at ten times the cost.
threadpoolctl.threadpool_limits(1, user_api="blas")


def pytest_configure(config):
    """A program that the other worker is just writing cannot be read: it is compiled again, and that is no failure."""
    config.addinivalue_line("filterwarnings", f"ignore:{UNREADABLE}")


@pytest.fixture
def double():
    """Double precision for tests of pure JAX functions."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Commands set the place of compiled programs in the environment; here it ends with the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(CACHE))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")


@pytest.fixture
def run(capsys, monkeypatch):
    """A command: its exit code, and what it told on either stream."""
    from quenched import cli
    from quenched.core import progress

    monkeypatch.setattr(progress, "PAUSE", 3600.0)  # what is told does not depend on how busy the machine is

    def call(*words):
        code = cli.main([str(word) for word in words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


@pytest.fixture
def launch():
    """Start Python in a process group of its own, where Ctrl-C is heard; the whole group ends with the test.

    A parent that ignores interrupts, as a shell lets its background jobs do, hands that down to its children.
    """
    begun: list[subprocess.Popen] = []

    def start(*words, **options) -> subprocess.Popen:
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            begun.append(subprocess.Popen([sys.executable, *map(str, words)], start_new_session=True, **options))
        finally:
            signal.signal(signal.SIGINT, before or signal.SIG_DFL)
        return begun[-1]

    yield start
    for process in begun:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with process:  # waits for it, and closes its pipes
            pass
