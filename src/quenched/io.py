"""Tables in, folders out: everything that a file can do wrong is said in one sentence.

A table is a CSV file with a line of column names, numbers without gaps, and optionally a column to be predicted.
Scikit-learn's own small sets come by name. Folders for output are tried before anything is computed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from quenched.core import checks
from quenched.core.results import OutputError
from quenched.core.types import InputError

_T = TypeVar("_T")

GROWTH = 10
"""Bytes of memory for each byte of a table while it is read: a digit and a comma become a float64, twice."""

BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")
"""Sets that come with scikit-learn."""


class Table(NamedTuple):
    """A table of numbers.

    Attributes:
        inputs: `[rows, columns]`, float64.
        targets: `[rows]`, the column to be predicted; None if none was asked for.
        names: the columns of `inputs`.
        target: the name of the column of `targets`.
    """

    inputs: np.ndarray
    targets: np.ndarray | None
    names: tuple[str, ...]
    target: str | None


def read_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    classes: bool = False,
) -> Table:
    """Read a CSV file.

    Args:
        path: a file with a line of column names; it may be compressed (`.gz`, `.zip`).
        target: the column to be predicted.
        columns: the columns that predict; by default all others.
        classes: whether the target is a class, which may be a word, rather than a number.

    Returns:
        A `Table`.

    Raises:
        InputError: in one sentence, if the file is not there, too large, empty, of another form, lacks a column, or
            has values that are missing or not numbers.

    Examples:
        >>> from quenched import io
        >>> table = io.read_table("data.csv", target="y")  # doctest: +SKIP
    """
    source = Path(path)
    if not source.is_file():
        raise InputError(
            f"Argument `path` must be a CSV file, but {source} is {'a folder' if source.is_dir() else 'not there'}."
        )
    _check_size(source)
    frame = _read(source)
    _check_form(source, frame)
    wanted = _wanted([str(name) for name in frame.columns], target, columns)
    inputs = np.column_stack([_numbers(source, frame, name) for name in wanted])
    if target is None:
        return Table(inputs, None, tuple(wanted), None)
    targets = _classes(source, frame, target) if classes else _numbers(source, frame, target)
    return Table(inputs, targets, tuple(wanted), target)


def bundled(name: str) -> Table:
    """One of the small sets that come with scikit-learn: iris, digits, diabetes, wine or breast_cancer.

    Raises:
        InputError: for another name.
    """
    if name not in BUNDLED:
        raise InputError(f"Argument `name` must be one of {', '.join(BUNDLED)}, but {name!r} was given.")
    from sklearn import datasets

    loaded: Any = getattr(datasets, f"load_{name}")()
    return Table(
        np.asarray(loaded.data, float), np.asarray(loaded.target), tuple(map(str, loaded.feature_names)), "target"
    )


def writable_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, if it is not there, and make sure that it can be written.

    Raises:
        OutputError: if it cannot.
    """
    folder = Path(path)
    try:
        checks.try_folder(folder)
    except OSError as error:
        raise OutputError(f"The folder {folder} must be writable, but it is not ({_reason(error)}).") from None
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
        raise OutputError(f"{path} could not be written ({_reason(error)}); the result was put in {refuge}.") from None


def _reason(error: OSError) -> str:
    """Why writing failed, without the path, which the sentence has already."""
    return error.strerror or str(error)


def _check_size(source: Path) -> None:
    """Refuse a file that would fill the memory, before a byte of it is read."""
    size, room = source.stat().st_size, available_memory()
    if size * GROWTH > room:
        raise InputError(f"{source} must fit in memory, but it has {size / 1e9:.3g} GB and would need about "
                         f"{size * GROWTH / 1e9:.3g} GB, of which {room / 1e9:.3g} GB are free.")  # fmt: skip


def available_memory() -> float:
    """Bytes that a process may still take."""
    room = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError, IndexError):  # Linux: what is free, and what caches would give back
        text = Path("/proc/meminfo").read_text()
        room = 1024.0 * int(text.split("MemAvailable:")[1].split()[0])
    with contextlib.suppress(OSError, ValueError):  # the limit of a container, unless it is "max"
        room = min(room, float(int(Path("/sys/fs/cgroup/memory.max").read_text())))
    return room


def _read(source: Path) -> Any:
    """The file as pandas reads it."""
    import pandas as pd

    try:
        return pd.read_csv(source, skipinitialspace=True, low_memory=False)
    except pd.errors.EmptyDataError:
        raise InputError(f"{source} must have columns and rows, but it is empty.") from None
    except UnicodeDecodeError:
        raise InputError(f"{source} must be text in UTF-8, but it is not.") from None
    except (pd.errors.ParserError, ValueError) as error:
        reason = " ".join(str(error).replace("Error tokenizing data. C error:", "").split())
        raise InputError(f"{source} must be a table with equally many values in each row, but: {reason}.") from None
    except OSError as error:
        raise InputError(f"{source} must be readable, but it is not ({_reason(error)}).") from None


def _check_form(source: Path, frame: Any) -> None:
    """Refuse what is no table, or has no line of names, or is separated by something else than commas."""
    header = [str(name) for name in frame.columns]
    if len(header) == 1 and (mark := next((m for m in (";", "\t", "|") if m in header[0]), "")):
        word = {";": "semicolons", "\t": "tabs", "|": "bars"}[mark]
        raise InputError(f"{source} must be separated by commas, but it seems to be separated by {word}.")
    if type(frame.index).__name__ != "RangeIndex":  # pandas takes surplus values for the names of rows
        raise InputError(f"{source} must have a name for every column, but its rows are longer than its first line.")
    if frame.empty:
        raise InputError(f"{source} must have rows below the column names, but it is empty.")
    if all(_is_number(name) for name in header):
        raise InputError(f"{source} must begin with the names of its columns, but it begins with {header[0]}.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _wanted(there: list[str], target: str | None, columns: Sequence[str] | None) -> list[str]:
    """The columns that predict."""
    wanted = [name for name in there if name != target] if columns is None else list(columns)
    for name in [*wanted, *([target] if target is not None else [])]:
        if name not in there:
            raise InputError(f"Column {name!r} must be in the table, but there are only: {', '.join(there)}.")
    if target in wanted:
        raise InputError(f"Argument `columns` must not contain the target, but it contains {target!r}.")
    if not wanted:
        raise InputError(f"The table must have a column besides the target {target!r}, but it has none.")
    return wanted


def _numbers(source: Path, frame: Any, name: str) -> np.ndarray:
    """A column of finite numbers."""
    import pandas as pd

    _check_missing(source, frame, name)
    numbers: Any = pd.to_numeric(frame[name], errors="coerce")
    if numbers.isna().any():
        first = frame[name][numbers.isna()].iloc[0]
        raise InputError(f"Column {name!r} of {source} must be numbers, but it contains {str(first)!r}.")
    values = numbers.to_numpy(dtype=np.float64)
    if not np.all(np.isfinite(values)):
        raise InputError(f"Column {name!r} of {source} must be finite, but it contains infinity.")
    return values


def _classes(source: Path, frame: Any, name: str) -> np.ndarray:
    """A column of class labels: whole numbers, or words."""
    _check_missing(source, frame, name)
    values = frame[name].to_numpy()
    return values if values.dtype.kind in "iub" else np.asarray(values, dtype=str)


def _check_missing(source: Path, frame: Any, name: str) -> None:
    count = int(frame[name].isna().sum())
    if count:
        raise InputError(f"Column {name!r} of {source} must have a value in every row, but {count} of {len(frame)} "
                         "are missing.")  # fmt: skip
