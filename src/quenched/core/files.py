"""Files that are whole or not there: written beside their place, forced to disk, and moved there in one step."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # no Unix: there only age tells that a file was left behind
    fcntl = None

PART = ".quenched.part"
"""How the name of a file ends that is being written."""
ABANDONED = 86400.0
"""Seconds after which a file that is being written was left behind, where locks cannot tell."""


def write(target: Path, content: bytes | str) -> None:
    """Write a whole file: readers see all of it or none of it, also after the power was lost.

    Raises:
        OSError: if the place cannot be written.
    """
    handle, name = tempfile.mkstemp(prefix=f".{target.stem[:40]}-", suffix=PART, dir=target.parent)
    try:
        with open(handle, "wb") as part:
            _lock(part.fileno())  # as long as it is held, the writer lives
            part.write(content.encode() if isinstance(content, str) else content)
            part.flush()
            os.fsync(part.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)  # a temporary file is private, a result is not
            os.replace(name, target)
        _settle(target.parent)
    finally:
        Path(name).unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what processes that were killed while they wrote left in a folder."""
    with contextlib.suppress(OSError):  # a folder that cannot be read or written has nothing to sweep
        for part in folder.glob(f".*{PART}"):
            if _is_abandoned(part):
                part.unlink(missing_ok=True)


def _is_abandoned(part: Path) -> bool:
    """Whether nobody writes a file any more. In its first second its writer may not have locked it."""
    age = time.time() - part.stat().st_mtime
    if age < 1:
        return False
    with open(part, "rb") as file:
        locked = _lock(file.fileno())
    return age > ABANDONED if locked is None else locked


def _lock(handle: int) -> bool | None:
    """Lock a file for as long as it is open; whether that worked, or None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # held by another process
        return False
    except OSError:
        return None
    return True


def _settle(folder: Path) -> None:
    """Force the names in a folder to disk, where that can be done."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
