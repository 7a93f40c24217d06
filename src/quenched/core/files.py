"""Files that are whole or not there: written beside their place and moved there in one step."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A file beside the target that takes its place when the block ends well: readers never see half of it.

    Raises:
        OSError: if the place cannot be written.
    """
    handle, name = tempfile.mkstemp(prefix=f".{target.stem[:40]}-", suffix=".part", dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)  # a temporary file is private, a result is not
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)


def write(target: Path, content: bytes | str) -> None:
    """Write a whole file.

    Raises:
        OSError: if the place cannot be written.
    """
    with whole(target) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
