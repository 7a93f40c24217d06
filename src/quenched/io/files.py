"""Whether there is a file to read: said before anything heavy is imported."""

from __future__ import annotations

import os
from pathlib import Path

from quenched.core.errors import InputError, meant, reason

ARCHIVES = (".tar", ".tgz", ".tbz", ".tbz2", ".txz", ".7z", ".rar", ".zst", ".lz4", ".z")
"""Endings of files that are not opened."""


def check_file(path: str | os.PathLike[str]) -> Path:
    """Check that a path is a file of a kind that is opened, can be read and is not empty."""
    source = Path(path)
    try:
        there, folder = source.is_file(), source.is_dir()
    except OSError as error:
        raise InputError(f"{source} must be readable, but it is not ({reason(error)}).") from None
    if not there:
        state = "a folder" if folder else f"not there{_near(source)}"
        raise InputError(f"Argument `path` must be a CSV file, but {source} is {state}.")
    ending = "".join(source.suffixes[-2:]).lower()
    if source.suffix.lower() in ARCHIVES or ending.startswith(".tar."):
        raise InputError(f"{source} must be a CSV file, plain or packed as .gz, .bz2, .xz or .zip, but it is an "
                         f"archive of another kind ({ending}): unpack it first.")  # fmt: skip
    try:
        with source.open("rb") as stream:
            begun = stream.read(1)
    except OSError as error:
        raise InputError(f"{source} must be readable, but it is not ({reason(error)}).") from None
    if not begun:
        raise InputError(f"{source} must have columns and rows, but it is empty.")
    return source


def _near(source: Path) -> str:
    """The file beside it whose name is closest, if one is close."""
    try:
        return meant(source.name, (one.name for one in source.parent.iterdir() if one.is_file()), like=0.75)
    except OSError:
        return ""
