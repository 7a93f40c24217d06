"""The machine that runs the program: free memory, folders that can be written, packages that are installed."""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
from pathlib import Path
from types import ModuleType

from quenched.core.errors import InputError


def require_memory(what: str, size: float) -> None:
    """Check that `size` bytes are free."""
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
    """Create a folder, if it does not exist; raise an `OSError` if it cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as trial:
        trial.write(b"x")


def load_extra(name: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a package that an extra of quenched installs; `purpose` is the subject of the error."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise
        raise InputError(f"{purpose} needs the package {name}, which is not installed: "
                         f"pip install 'quenched[{extra}]'.") from None  # fmt: skip
