"""Pieces on disk: one file each, written at once, checked when read.

A piece is an `.npz` without pickles, named by the digest of all that determines it, so a wrong piece cannot
be found under a right name. It is written beside its place and moved there, so a killed process leaves either
a whole piece or none; a checksum of name and contents guards against what a failing disk may leave.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from quenched.core import checks, files, system
from quenched.core.types import InputError


class Damaged(Exception):
    """A piece that is there but cannot be trusted."""


@dataclasses.dataclass
class Store:
    """A folder of pieces.

    Attributes:
        folder: where.
        unsaved: why each file that could not be written was not.
        barred: why nothing can be written here, if so: what is there can still be read.
    """

    folder: Path
    unsaved: list[str] = dataclasses.field(default_factory=list)
    barred: str = ""

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Store:
        """Make sure of a folder that can be written, or at least read.

        Raises:
            InputError: if it is not one.
        """
        path = checks.path("folder", folder)
        try:
            if not os.fspath(folder):
                raise ValueError("it has no name")  # it would be the present folder
            system.require_folder(path)
            files.sweep(path)
        except (OSError, ValueError) as error:
            barred = cls(path, barred=f"{getattr(error, 'strerror', None) or error}")
            if not path.is_dir() or not os.access(path, os.R_OK | os.X_OK):
                raise barred.refusal() from error
            return barred
        return cls(path)

    def refusal(self) -> InputError:
        """What to raise where the folder has to be written and cannot be."""
        return InputError(f"Argument `folder` must be a folder that can be written, but {self.folder!s} is not: "
                          f"{self.barred}.")  # fmt: skip

    def has(self, name: str) -> bool:
        """Whether a piece is there."""
        return self._piece(name).exists()

    def read(self, name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[np.ndarray, ...] | None:
        """The leaves of a piece, or None if it is not there.

        Raises:
            Damaged: if it is there but not whole.
        """
        path = self._piece(name)
        if not self.has(name):
            return None
        try:
            content = path.read_bytes()
            # From memory: given a broken file by its path, NumPy leaves it open.
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                if sum(part.file_size for part in file.zip.infolist()) > len(content):
                    raise ValueError("it is packed, and pieces are not")
                leaves = tuple(file[f"leaf_{k}"] for k in range(len(shapes)))
                checksum = bytes(file["checksum"])
        except Exception as error:  # a broken zip file raises whatever its broken part leads to
            raise Damaged(f"{path.name} cannot be read ({type(error).__name__})") from error
        if checksum != _checksum(name, leaves) or [leaf.shape for leaf in leaves] != list(shapes):
            raise Damaged(f"{path.name} is not what was written")
        return leaves

    def write(self, name: str, leaves: Sequence[np.ndarray]) -> None:
        """Write a piece; if that fails, go on and remember why."""
        content = io.BytesIO()
        arrays = {f"leaf_{k}": leaf for k, leaf in enumerate(leaves)}
        np.savez(content, checksum=np.frombuffer(_checksum(name, leaves), np.uint8), **arrays)  # pyright: ignore[reportArgumentType]
        self._replace(self._piece(name), content.getvalue())

    def width(self, family: str, wanted: int) -> int | None:
        """The width chosen for this function before, unless it is much too small for the runs now wanted.

        Raises:
            Damaged: if there is a record that cannot be trusted.
        """
        path = self._record(family)
        if not path.exists():
            return None
        try:
            checksum, _, text = path.read_bytes().partition(b"\n")
            if hashlib.sha256(family.encode() + text).hexdigest().encode() != checksum:
                raise ValueError("another checksum")
            width, before = json.loads(text)
        except (OSError, ValueError) as error:
            raise Damaged(f"{path.name} cannot be read ({type(error).__name__})") from error
        # Kept from 8 on, where pieces are nearly as fast as wider ones, or if memory set the limit.
        return width if width >= min(8, wanted) or width < before else None

    def record_width(self, family: str, width: int, wanted: int) -> None:
        """Record the width that was chosen when `wanted` would have been best."""
        text = json.dumps([width, wanted])
        checksum = hashlib.sha256(f"{family}{text}".encode()).hexdigest()
        self._replace(self._record(family), f"{checksum}\n{text}".encode())

    def _piece(self, name: str) -> Path:
        return self.folder / f"{name}.npz"

    def _record(self, family: str) -> Path:
        return self.folder / f"width-{family}.json"

    def _replace(self, path: Path, content: bytes) -> None:
        if self.barred:  # which was said before the work began
            return
        try:
            files.write(path, content)
        except OSError as error:
            self.unsaved.append(f"{error.strerror or error}")


def _checksum(name: str, leaves: Sequence[np.ndarray]) -> bytes:
    total = hashlib.sha256(name.encode())
    for leaf in leaves:
        total.update(f"{leaf.dtype.str} {leaf.shape}".encode())
        total.update(np.ascontiguousarray(leaf).tobytes())
    return total.digest()
