"""Places to write: tried before anything is computed, and replaced by others where they fail."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from quenched.core import system
from quenched.core.results import OutputError

_T = TypeVar("_T")


def writable_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, if it is not there, and make sure that it can be written.

    Raises:
        OutputError: if it cannot.
    """
    folder = Path(path)
    try:
        system.require_folder(folder)
    except OSError as error:
        raise OutputError(f"The folder {folder} must be writable, but it is not ({reason(error)}).") from None
    return folder


def write_into(path: str | os.PathLike[str], write: Callable[[Path], _T]) -> _T:
    """Write a result into a folder, or into a temporary one if that fails, so that it is not lost.

    Args:
        path: the wanted folder.
        write: what writes into a given folder.

    Returns:
        What `write` returns.

    Raises:
        OutputError: if the wanted folder could not be written; the sentence says where the result was put instead.
    """
    try:
        return write(writable_folder(path))
    except OSError as error:
        refuge = Path(tempfile.mkdtemp(prefix="quenched-"))
        write(refuge)
        raise OutputError(f"{path} could not be written ({reason(error)}); the result was put in {refuge}.") from None


def reason(error: Exception) -> str:
    """Why a file failed, without the path, which the sentence has already."""
    return getattr(error, "strerror", None) or str(error)
