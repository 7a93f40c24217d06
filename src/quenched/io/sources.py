"""Files as frames: CSV, packed or not, and spreadsheets and Parquet where pandas can read them."""

from __future__ import annotations

import codecs
import contextlib
import importlib
import io
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from quenched.core.errors import InputError, printable, reason
from quenched.core.system import available_memory
from quenched.io.files import check_file

GROWTH = 10
"""Bytes of memory for each byte of a table while it is read: a digit and a comma become a float64, twice."""
PEEK = 2**16
"""Bytes at the beginning of a file that tell its form."""

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
"""Endings of compressed files, and the modules that open them; `.zip` besides."""
SHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
BINARY = (".parquet", ".feather")

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""What people write instead of commas."""
BROKEN = (OSError, EOFError, RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""What is raised for packed files that are damaged, encrypted or packed in an unknown way."""


class Source(NamedTuple):
    """A file as it was read."""

    path: Path
    names: list[str]  # of its columns, as they may be shown
    frame: Any  # its columns, by place
    notes: tuple[str, ...] = ()  # sentences on what was chosen


def read(path: str | os.PathLike[str], encoding: str | None = None) -> Source:
    """Read a file, by default as UTF-8."""
    source, codec = _there(path), _codec(encoding)
    if source.suffix.lower() in (*SHEETS, *BINARY):
        return _read_other(source)
    names = _read_names(source, codec)
    try:
        frame = _parse(source, codec, low_memory=False)
    except OverflowError:  # some versions of pandas stop at a whole number that no double holds: read it as text
        frame = _parse(source, codec, low_memory=False, dtype=str)
    _check_form(source, names, frame)
    return Source(source, names, frame)


def column_names(path: str | os.PathLike[str], encoding: str | None = None) -> list[str]:
    """The names of the columns of a file.

    Raises:
        InputError: as `read_table`.
    """
    source, codec = _there(path), _codec(encoding)
    return _read_other(source).names if source.suffix.lower() in (*SHEETS, *BINARY) else _read_names(source, codec)


def _there(path: str | os.PathLike[str]) -> Path:
    """A path that is a file of a kind that is opened, and fits in memory."""
    source = check_file(path)
    room = available_memory()
    size = _unpacked_size(source, most=int(room / GROWTH) + 1)
    if size * GROWTH > room:
        packed = size > source.stat().st_size
        raise InputError(f"{source} must fit in memory, but it has {'at least ' if packed else ''}{size / 1e9:.3g} GB "
                         f"{'unpacked ' if packed else ''}and would need about {size * GROWTH / 1e9:.3g} GB, of which "
                         f"{room / 1e9:.3g} GB are free.")  # fmt: skip
    return source


def _codec(encoding: str | None) -> str:
    """The name of an encoding of text."""
    if encoding is None:
        return "utf-8-sig"
    try:
        found = codecs.lookup(encoding)
        b"a".decode(encoding, "ignore")
    except (LookupError, ValueError, TypeError):
        raise InputError("Argument `encoding` must be an encoding of text, such as latin-1 or utf-16, but "
                         f"{encoding!r} was given.") from None  # fmt: skip
    return "utf-8-sig" if found.name == "utf-8" else found.name


def _unpacked_size(source: Path, most: int) -> int:
    """Bytes of a file; of a compressed one those that come out, which are counted, up to `most`, and thrown away."""
    kind = source.suffix.lower()
    if kind in (".xlsx", ".xlsm", ".ods"):
        with contextlib.suppress(*BROKEN), zipfile.ZipFile(source) as packed:
            return sum(member.file_size for member in packed.infolist())
    if kind not in COMPRESSED and kind != ".zip":
        return source.stat().st_size
    size = 0
    with _opened(source) as stream:
        while size < most and (block := stream.read(2**20)):
            size += len(block)
    return size


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked; an `InputError` where they cannot be, while they are read, too."""
    kind = source.suffix.lower()
    try:
        if kind == ".zip":
            with zipfile.ZipFile(source) as packed, packed.open(_member(source, packed)) as stream:
                yield stream  # pyright: ignore[reportReturnType]
        else:
            module = importlib.import_module(COMPRESSED[kind]) if kind in COMPRESSED else io
            with module.open(source, "rb") as stream:
                yield stream
    except BROKEN as error:
        if kind not in COMPRESSED and kind != ".zip":
            raise InputError(f"{source} must be readable, but it is not ({reason(error)}).") from None
        raise InputError(f"{source} must be a whole compressed file, but it cannot be unpacked "
                         f"({reason(error)}).") from None  # fmt: skip


def _member(source: Path, packed: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The one file in a zip file."""
    members = [m for m in packed.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise InputError(f"{source} must hold one file, but it holds {len(members)}: unpack it first.")
    if members[0].flag_bits & 1:
        raise InputError(f"{source} must be readable, but it is encrypted: unpack it first.")
    return members[0]


def _read_names(source: Path, codec: str) -> list[str]:
    """The names in the first line of a file, each as it stands there."""
    with _opened(source) as stream:
        start = stream.read(PEEK)
    _check_start(source, start, codec)
    found = _parse(source, codec, header=None, nrows=1, dtype=str, keep_default_na=False)
    return [_name(cell, i) for i, cell in enumerate(found.iloc[0])]


def _name(cell: Any, place: int) -> str:
    """The name of a column; one without any is numbered, as pandas does."""
    text = "" if cell is None or cell != cell else printable(str(cell))
    return text or f"Unnamed: {place}"


def _check_start(source: Path, start: bytes, codec: str) -> None:
    """Check that a file is text, separated by commas."""
    if start.startswith(b"PK\x03\x04"):
        raise InputError(f"{source} must be text, but it is a spreadsheet or a packed file: name it .xlsx or .zip.")
    if len(start) > 262 and start[257:262] == b"ustar":
        raise InputError(f"{source} must be text, but it is a tar archive: unpack it first.")
    lines = re.split(r"\r\n|\n|\r", start.decode(codec, "ignore"))
    mark = next((mark for mark in SEPARATORS if mark in lines[0] and "," not in lines[0]), "")
    if mark:
        cells = [cell.strip() for line in lines[1:20] for cell in line.split(mark)]
        commas = any(re.fullmatch(r"[+-]?[\d.]*,\d+([eE][+-]?\d+)?", cell) for cell in cells)
        also = " and to write decimals with commas" if commas else ""
        raise InputError(f"{source} must be separated by commas{' and write decimals with points' if commas else ''}, "
                         f"but it seems to be separated by {SEPARATORS[mark]}{also}.")  # fmt: skip


def _parse(source: Path, codec: str, **options: Any) -> Any:
    """A file as pandas reads it."""
    import pandas as pd

    try:
        with _opened(source) as stream:
            return pd.read_csv(stream, skipinitialspace=True, encoding=codec, **options)
    except InputError:
        raise
    except pd.errors.EmptyDataError:
        raise InputError(f"{source} must have columns and rows, but it is empty.") from None
    except UnicodeError:
        spoken = "UTF-8" if codec == "utf-8-sig" else codec
        raise InputError(f"{source} must be text in {spoken}, but it is not: give its encoding, such as latin-1, as "
                         "`encoding` (--encoding).") from None  # fmt: skip
    except (pd.errors.ParserError, ValueError) as error:
        why = " ".join(str(error).replace("Error tokenizing data. C error:", "").split())
        raise InputError(f"{source} must be a table with equally many values in each row, but: {why}.") from None
    except (ImportError, tarfile.TarError) as error:
        raise InputError(f"{source} must be readable, but it is not ({reason(error)}).") from None


def _check_form(source: Path, names: list[str], frame: Any) -> None:
    """Check that a file is a table with a line of names."""
    if type(frame.index).__name__ != "RangeIndex":  # pandas takes surplus values for the names of rows
        raise InputError(f"{source} must have a name for every column, but its rows are longer than its first line.")
    if frame.empty:
        raise InputError(f"{source} must have rows below the column names, but it is empty.")
    if all(_is_number(name) for name in names):
        raise InputError(f"{source} must begin with the names of its columns, but it begins with {names[0]}.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_other(source: Path) -> Source:
    """A Parquet or Feather file, or the first sheet of a spreadsheet, whose first row has the names."""
    import pandas as pd

    kind, notes = source.suffix.lower(), ()
    what = "spreadsheet" if kind in SHEETS else f"{kind[1:]} file"
    try:
        if kind in SHEETS:
            with pd.ExcelFile(source) as book:
                sheets: Any = book.sheet_names
                frame: Any = pd.read_excel(book, header=None, dtype=object)
        else:
            frame, sheets = (pd.read_parquet if kind == ".parquet" else pd.read_feather)(source), ()
    except ImportError as error:
        package = re.search(r"[Mm]issing optional dependency '([\w-]+)'", str(error))
        needed = f"the package {package[1]}" if package else "pyarrow or fastparquet"
        raise InputError(f"{source} must be a CSV file unless {needed} is installed, but it is a {what}: save it as "
                         "CSV, or pip install 'quenched[tables]'.") from None  # fmt: skip
    except Exception as error:  # these readers raise many kinds for a damaged file
        raise InputError(f"{source} must be a complete {what}, but it cannot be read: it is damaged or of another "
                         f"kind ({type(error).__name__}).") from None  # fmt: skip
    if frame.empty or (sheets and len(frame) < 2):
        raise InputError(f"{source} must have rows below the column names, but it is empty.")
    if len(sheets) > 1:
        notes = (f"Only the first of {len(sheets)} sheets is read, {printable(str(sheets[0]))!r}.",)
    names = [_name(name, i) for i, name in enumerate(frame.iloc[0] if sheets else frame.columns)]
    frame = (frame.iloc[1:] if sheets else frame).reset_index(drop=True)
    if sheets:
        _check_form(source, names, frame)
    return Source(source, names, frame, notes)
