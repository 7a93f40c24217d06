"""The tables that readers have dropped on the page: a few, bounded, under names that nobody can guess."""

from __future__ import annotations

import collections
import contextlib
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

from quenched import io
from quenched.core.errors import InputError, printable

MOST_BYTES = 20 * 2**20
"""Bytes of a table."""
MOST_TABLES = 12
"""Tables that are kept; of more the one that was not asked about for longest is dropped."""
BUNDLED = ("iris", "diabetes", "wine", "breast_cancer")
"""Tables that are there without being dropped."""


class Placed(NamedTuple):
    """Where a table is: a file, or None for one that comes with scikit-learn, and its name."""

    path: Path | None
    name: str


class Shelf:
    """A folder for tables and for the runs of simulations, removed at the end."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="quenched-explorer-"))
        self._tables: collections.OrderedDict[str, Path] = collections.OrderedDict()
        self._lock = threading.Lock()

    @property
    def runs(self) -> Path:
        """The folder for runs of simulations."""
        return self._folder / "runs"

    def add(self, name: str, body: bytes) -> str:
        """Keep a table, and return the word by which it is found again."""
        plain = printable(PureWindowsPath(PurePosixPath(name).name).name)
        if not plain.lower().endswith(".csv") or plain.startswith("."):
            raise InputError(f"A table must be a file that ends in .csv, but {plain or 'nothing'!r} was dropped.")
        word = secrets.token_urlsafe(9)
        folder = self._folder / "tables" / word
        folder.mkdir(parents=True)
        path = folder / plain[-80:]
        path.write_bytes(body)
        with self._lock:
            self._tables[word] = path
            while len(self._tables) > MOST_TABLES:
                _, old = self._tables.popitem(last=False)
                shutil.rmtree(old.parent, ignore_errors=True)
        return word

    def find(self, word: str) -> Placed:
        """A table."""
        if word in BUNDLED:
            return Placed(None, word)
        with self._lock:
            if word not in self._tables:
                raise InputError("The table must be dropped again: it is no longer kept here.")
            self._tables.move_to_end(word)
            return Placed(self._tables[word], self._tables[word].name)

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def as_dropped(place: Placed) -> Iterator[None]:
    """Sentences name a file as it was dropped, not where it lies here."""
    try:
        yield
    except InputError as error:
        if place.path is None:
            raise
        raise InputError(str(error).replace(str(place.path), place.name)) from None


def read(place: Placed, target: str | None, columns: list[str] | None, **how: Any) -> io.Table:
    """A table, read as the command line reads it."""
    with as_dropped(place):
        if place.path is not None:
            return io.read_table(str(place.path), target, columns, **how)
    table = io.bundled(place.name)
    names = [*table.names, str(table.target)]
    for name in [*(columns or []), *([] if target is None else [target])]:
        if name not in names:
            raise InputError(f"Column {name!r} must be in the table, but there are only: {', '.join(names)}.")
    if target in (None, table.target) and columns is None:
        return table
    raise InputError(f"The target of {place.name} must be its column 'target', but {target!r} was given.")
