"""Files that are complete or absent, and known to be unchanged: the one way in which results are kept on disk.

`write` writes a file beside its place, forces it to disk and moves it there in one step; `write_into` finds another
place for what cannot be written. `seal` appends a checksum to the content of a file and `unseal` verifies it before
anything in the file is used. A `Store` is a folder of sealed files that are written as work proceeds, such as the
pieces of a sweep: what cannot be written there stops nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from quenched.core import checks
from quenched.core.errors import OutputError as OutputError
from quenched.core.errors import reason as reason
from quenched.core.system import require_folder, require_memory
from quenched.core.types import InputError

_T = TypeVar("_T")

PART = ".quenched.part"
"""Suffix of a file that is being written."""
ABANDONED = 86400.0
"""Seconds after which a file that is being written counts as abandoned."""
SEAL = b"\nquenched: sha256 of all before this line: "
"""The bytes in front of the checksum of a file."""


class Damaged(Exception):
    """A file that exists but is not as it was written."""


def writable_folder(path: str | os.PathLike[str]) -> Path:
    """Create a folder, if it does not exist; raise an `OutputError` if it cannot be written."""
    folder = Path(path)
    try:
        require_folder(folder)
    except OSError as error:
        raise OutputError(f"The folder {folder} must be writable, but it is not ({reason(error)}).") from None
    return folder


def write_into(path: str | os.PathLike[str], write: Callable[[Path], _T], what: object = None) -> _T:
    """Write a result into a folder or, so that it is not lost, into a temporary or the present one if that fails.

    The function `write` writes into a given folder, and may return the path of its file, which is returned. `what` is
    the name of the result in the message, by default the folder.

    Raises:
        OutputError: if the wanted folder could not be written; the message tells where the result was put instead.
    """
    folder = Path(path)
    try:
        require_folder(folder)
        return write(folder)
    except OSError as error:
        message, tried = f"{what or path} could not be written ({reason(error)});", []
    for place in (tempfile.gettempdir(), Path.cwd()):
        try:
            refuge = Path(tempfile.mkdtemp(prefix="quenched-", dir=place))
            file = write(refuge)
        except OSError as error:
            tried.append(f"{place} ({reason(error)})")
        else:
            raise OutputError(f"{message} the result was put in {file if isinstance(file, Path) else refuge}.")
    raise OutputError(f"{message} nor could {' or '.join(tried)}: the result is in memory only.")


def write(target: Path, content: bytes | str) -> None:
    """Write a file: readers see all of it or nothing, even after a loss of power."""
    handle, name = tempfile.mkstemp(prefix=f".{target.stem[:40]}-", suffix=PART, dir=target.parent)
    try:
        with open(handle, "wb") as part:
            part.write(content.encode() if isinstance(content, str) else content)
            part.flush()
            os.fsync(part.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)  # temporary files are private, results are not
            os.replace(name, target)
        with contextlib.suppress(OSError):  # some systems cannot force the names in a folder to disk
            handle = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    finally:
        Path(name).unlink(missing_ok=True)


def remove_parts(folder: Path) -> None:
    """Remove the unfinished files of processes that were killed while they wrote into a folder, a day ago or more."""
    with contextlib.suppress(OSError):  # a folder that cannot be read or written
        for part in folder.glob(f".*{PART}"):
            if time.time() - part.stat().st_mtime > ABANDONED:
                part.unlink(missing_ok=True)


def seal(body: bytes, identity: str = "") -> bytes:
    """The content of a file with a checksum of its identity and its body at the end."""
    return body + SEAL + hashlib.sha256(identity.encode() + body).hexdigest().encode()


def unseal(content: bytes, identity: str = "") -> bytes:
    """The body of a sealed file; raises `Damaged` if the checksum is missing or differs."""
    body, mark = content[: -64 - len(SEAL)], content[-64 - len(SEAL) : -64]
    if mark != SEAL:
        raise Damaged("the checksum at its end is missing")
    if seal(body, identity) != content:
        raise Damaged("the checksum at its end differs")
    return body


def read(path: Path, identity: str = "") -> bytes:
    """The body of a sealed file on disk; raises `Damaged`, or an error if it cannot be read."""
    require_memory(f"{path}", 3.0 * path.stat().st_size)
    return unseal(path.read_bytes(), identity)


@dataclasses.dataclass
class Store:
    """A folder of sealed files."""

    folder: Path
    barred: str = ""  # why nothing can be written there, if so; what is there can still be read
    unsaved: list[str] = dataclasses.field(default_factory=list)  # why each file that could not be written was not

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Store:
        """A folder that can be written, or at least read; raises an `InputError` if it is neither."""
        path = checks.path("folder", folder)
        try:
            if not os.fspath(folder):
                raise ValueError("it has no name")  # which would stand for the present folder
            require_folder(path)
            remove_parts(path)
        except (OSError, ValueError) as error:
            barred = cls(path, reason(error))
            if not path.is_dir() or not os.access(path, os.R_OK | os.X_OK):
                raise barred.refusal() from error
            return barred
        return cls(path)

    def refusal(self) -> InputError:
        """The error for a folder that has to be written and cannot be."""
        return InputError(f"Argument `folder` must be a folder that can be written, but {self.folder!s} is not: "
                          f"{self.barred}.")  # fmt: skip

    def has(self, name: str) -> bool:
        """Whether a file exists."""
        return (self.folder / name).exists()

    def read(self, name: str, identity: str) -> bytes | None:
        """The body of a file, or None if there is none; raises `Damaged` if it is not as it was written."""
        if not self.has(name):
            return None
        try:
            return read(self.folder / name, identity)
        except (Damaged, InputError, OSError) as error:
            raise Damaged(f"{name} cannot be used ({reason(error)})") from error

    def write(self, name: str, body: bytes, identity: str) -> str:
        """Write a file; if that fails, record and return why."""
        if self.barred:
            return self.barred
        try:
            write(self.folder / name, seal(body, identity))
        except OSError as error:
            self.unsaved.append(reason(error))
            return self.unsaved[-1]
        return ""


@functools.cache
def code_digest(module: str) -> str:
    """A digest of the source files of a module's package: it tells one version of the code from another."""
    top = sys.modules[module.partition(".")[0]]
    roots = [Path(root) for root in getattr(top, "__path__", ())]
    files = [path for root in roots for path in sorted(root.rglob("*.py"))]
    total = hashlib.sha256()
    for path in files or [Path(getattr(top, "__file__", None) or "")]:
        total.update(path.read_bytes() if path.is_file() else b"")
    return total.hexdigest()
