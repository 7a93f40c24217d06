"""The machine that runs the program: free memory, and folders that can be written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from quenched.core.types import InputError


def require_memory(what: str, size: float) -> None:
    """Check that `size` bytes are free.

    Raises:
        InputError: if they are not.
    """
    room = available_memory()
    if size > room:
        raise InputError(f"{what} must fit in memory, but that takes {size / 1e9:.3g} GB, and {room / 1e9:.3g} GB are "
                         "free.")  # fmt: skip


def available_memory() -> float:
    """Bytes that this process can still allocate."""
    room = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError, IndexError):  # Linux: free memory, and what caches would give back
        text = Path("/proc/meminfo").read_text()
        room = 1024.0 * int(text.split("MemAvailable:")[1].split()[0])
    with contextlib.suppress(OSError, ValueError):  # the limit of a container, unless it is "max"
        room = min(room, float(int(Path("/sys/fs/cgroup/memory.max").read_text())))
    return room


def require_folder(folder: Path) -> None:
    """Create a folder, if it does not exist, and check that it can be written.

    Raises:
        OSError: if it cannot.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as trial:
        trial.write(b"x")
