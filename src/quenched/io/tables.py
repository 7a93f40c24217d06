"""Tables of numbers from files: columns are chosen, words encoded, gaps and copies left out where that is asked for."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from quenched.core import columns as cells
from quenched.core.columns import Column
from quenched.core.errors import InputError, meant, printable
from quenched.io import sources
from quenched.io.sources import SEPARATORS, Source

BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")
"""Sets that come with scikit-learn."""
MOST_LEVELS = 50
"""Different words in a column beyond which they are taken for names rather than for categories."""
MOST_CLASSES = 20
"""A target of more different whole numbers is a number rather than a class."""
HINT = "leave such rows out with `drop_missing` (--drop-missing)"
CLASSIFIERS = "take --model forest, or a classifier in quenched.forecast"
"""What forecasts classes."""


class Table(NamedTuple):
    """A table of numbers."""

    inputs: np.ndarray  # [rows, columns], float64
    targets: np.ndarray | None  # [rows], the column to be predicted; None if none was asked for
    names: tuple[str, ...]  # the columns of `inputs`
    target: str | None  # the name of the column of `targets`
    notes: tuple[str, ...] = ()  # sentences on what was left out or changed
    places: np.ndarray | None = None  # the number of each row in the file, from 1; None if none was left out

    def place(self, row: int) -> int:
        """The number of a row in the file, from 1."""
        return row + 1 if self.places is None else int(self.places[row])


def read_table(
    path: str | os.PathLike[str],
    target: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    classes: bool = False,
    categories: bool = False,
    least: int = 1,
    drop_missing: bool = False,
    drop_copies: bool = False,
    encoding: str | None = None,
) -> Table:
    """Read a CSV file.

    Percentages are read as shares, commas between thousands are left out where they can be nothing else; dates and
    decimal commas are refused as such.

    Args:
        path: a file with a line of column names; it may be compressed (`.gz`, `.bz2`, `.xz`, `.zip`). A spreadsheet
            (`.xlsx`) or a Parquet file is read if pandas can, see the extra `tables`.
        target: the column to be predicted.
        columns: the columns that predict; by default all others.
        classes: whether the target is a class, which may be a word, rather than a number.
        categories: whether to make the most of the columns that predict: one of words, or of true and false, becomes
            a column of 0 and 1 for each word (`Sex=M`, `Sex=F`), and one that never varies is left out.
        least: how many rows there must be.
        drop_missing: whether rows in which a value is missing are left out; otherwise they are refused.
        drop_copies: whether rows that are copies of earlier ones are left out.
        encoding: of the text, such as "latin-1"; UTF-8 by default.

    Returns:
        A `Table`.

    Raises:
        InputError: in one sentence, if the file is not there, too large, empty, of another form, lacks a column, or
            few rows, or values that are missing or not numbers.

    Examples:
        >>> from quenched import io
        >>> table = io.read_table("data.csv", target="y")  # doctest: +SKIP
    """
    source = sources.read(path, encoding)
    target = None if target is None else printable(target)
    wanted = _wanted(source, target, columns)
    picked = _picked(source, [*wanted, *([] if target is None else [target])])
    places, notes = np.arange(1, len(source.frame) + 1), list(source.notes)
    if drop_missing:
        picked, places = _without_gaps(source, picked, places, notes)
    if len(places) < least:
        left = " without gaps" if len(places) < len(source.frame) else ""
        raise InputError(f"{source.path} must have at least {least} rows{left}, but it has {len(places)}.")
    inputs = {name: picked[name] for name in wanted}
    targets = None if target is None else _targets(source, picked[target], classes)
    _check_cells(source, [*inputs.values(), *([] if target is None or classes else [picked[target]])], categories)
    encoded = _encoded(source, inputs, notes) if categories else {name: one.values for name, one in inputs.items()}
    notes += [column.note for column in picked.values() if column.note]
    table = Table(np.column_stack(list(encoded.values())), targets, tuple(encoded), target, tuple(notes), places)
    table = _without_copies(table) if drop_copies else table
    return table if len(table.inputs) < len(source.frame) else table._replace(places=None)


def bundled(name: str) -> Table:
    """One of the small sets that come with scikit-learn: iris, digits, diabetes, wine or breast_cancer."""
    if name not in BUNDLED:
        raise InputError(f"Argument `name` must be one of {', '.join(BUNDLED)}, but {name!r} was given.")
    from sklearn import datasets

    loaded: Any = getattr(datasets, f"load_{name}")()
    names = tuple(map(str, loaded.feature_names))
    return Table(np.asarray(loaded.data, float), np.asarray(loaded.target), names, "target")


def is_class(targets: Any) -> bool:
    """Whether a target is a word, true or false, or one of few whole numbers.

    Args:
        targets: of a table that was read with `classes=True`.
    """
    values = np.unique(targets)
    if values.dtype.kind == "i":
        return len(values) <= MOST_CLASSES
    try:
        values.astype(float)
    except ValueError:
        return True
    return values.dtype.kind == "b"


def require_spread(called: str, name: str, values: Any, purpose: str = "") -> None:
    """Check that a column varies.

    Args:
        called: the table.
        name: the column.
        values: its values.
        purpose: what it has to vary for, in words.

    Raises:
        InputError: if all its values are equal.
    """
    if np.all(values == values[0]):
        raise InputError(f"Column {name!r} of {called} must vary{purpose}, but all its values are {values[0]:g}.")


def _wanted(source: Source, target: str | None, columns: Sequence[str] | None) -> list[str]:
    """The columns that predict."""
    there = source.names
    wanted = [n for n in there if n != target] if columns is None else [printable(str(n)) for n in columns]
    for name in [*wanted, *([target] if target is not None else [])]:
        if name not in there:
            for mark, word in {**SEPARATORS, " ": "spaces"}.items():
                if name in [part.strip().strip('"') for part in ",".join(there).split(mark)]:
                    raise InputError(f"{source.path} must be separated by commas, but it seems to be separated by "
                                     f"{word}.")  # fmt: skip
            raise InputError(
                f"Column {name!r} must be in the table{meant(name, there)}, but there are only: {', '.join(there)}."
            )
    if target in wanted:
        raise InputError(f"Argument `columns` must not contain the target, but it contains {target!r}.")
    if not wanted:
        raise InputError(f"The table must have a column besides the target {target!r}, but it has none.")
    if columns is not None and (twice := [name for name, count in Counter(wanted).items() if count > 1]):
        raise InputError(f"Argument `columns` must name each column once, but it names {twice[0]!r} again.")
    return wanted


def _picked(source: Source, names: Sequence[str]) -> dict[str, Column]:
    """Columns by name, each of which must be there once."""
    twice = [name for name in dict.fromkeys(names) if source.names.count(name) > 1]
    if twice:
        where = [str(i + 1) for i, name in enumerate(source.names) if name == twice[0]]
        others = f", and so are {', '.join(map(repr, twice[1:]))}" if twice[1:] else ""
        raise InputError(f"{source.path} must give each column a name of its own, but columns {' and '.join(where)} "
                         f"are both named {twice[0]!r}{others}.")  # fmt: skip
    return {name: cells.read_column(name, source.frame.iloc[:, source.names.index(name)]) for name in names}


def _without_gaps(
    source: Source, picked: dict[str, Column], places: np.ndarray, notes: list[str]
) -> tuple[dict[str, Column], np.ndarray]:
    """The rows in which every column has a value, and a note on the others."""
    gaps = np.any([column.missing for column in picked.values()], axis=0)
    if not gaps.any():
        return picked, places
    if gaps.all():
        raise InputError(f"{source.path} must have rows without gaps in {', '.join(map(repr, picked))}, but it has "
                         "none.")  # fmt: skip
    whose = ", ".join(f"{name} ({n})" for name, column in picked.items() if (n := int(column.missing.sum())))
    notes.append(f"{int(gaps.sum())} of {len(gaps)} rows are left out, because values are missing in: {whose}.")
    return {name: column.take(~gaps) for name, column in picked.items()}, places[~gaps]


def _without_copies(table: Table) -> Table:
    """The rows that are not copies of earlier ones, and a note on the others."""
    import pandas as pd

    first = np.flatnonzero(~pd.DataFrame(table.inputs).assign(target=table.targets).duplicated())
    copies = len(table.inputs) - len(first)
    if not copies:
        return table
    note = f"{copies} of {len(table.inputs)} rows are left out, because they are copies of earlier ones."
    parts = {name: getattr(table, name) for name in ("inputs", "targets", "places")}
    kept = {name: None if part is None else part[first] for name, part in parts.items()}
    return table._replace(**kept, notes=(*table.notes, note))


def _targets(source: Source, column: Column, classes: bool) -> np.ndarray:
    """What is to be predicted: numbers, or classes, which are whole numbers or words."""
    if not classes:
        if column.is_words or column.truth:
            words = "True and False" if column.truth else f"words such as {cells.short(str(_words(column)[0]))!r}"
            raise InputError(f"Column {column.name!r} of {source.path} must be numbers to be predicted, but it holds "
                             f"{words}, and these are classes: {CLASSIFIERS}.")  # fmt: skip
        return column.values
    cells.check(str(source.path), [column._replace(wrong=np.zeros_like(column.wrong))], hint=HINT)
    if column.truth:
        return column.values.astype(bool)
    whole = not column.wrong.any() and np.all(column.values == np.rint(column.values))
    if whole and np.all(np.abs(column.values) < 2**53):
        return column.values.astype(np.int64)
    return _words(column)


def _words(column: Column) -> np.ndarray:
    """What is there, as words."""
    if column.truth:
        return np.where(column.values == 1, "True", "False")
    text = column.values if column.text is None else column.text
    return text[~column.missing].astype(str) if column.missing.any() else text.astype(str)


def _check_cells(source: Source, columns: Sequence[Column], categories: bool) -> None:
    """Check that no value is missing and all are numbers; words may be categories."""
    nowhere = np.zeros(len(columns[0].wrong), bool)
    looked = [c._replace(wrong=nowhere) if categories and c.is_words else c for c in columns]
    cells.check(str(source.path), looked, hint=HINT)


def _encoded(source: Source, columns: dict[str, Column], notes: list[str]) -> dict[str, np.ndarray]:
    """Columns as numbers, words as columns of 0 and 1; sentences on what was left out are added to the notes."""
    encoded: dict[str, np.ndarray] = {}
    owners: dict[str, str] = {}
    _check_levels(source, columns)
    for name, column in columns.items():
        words = _words(column) if column.is_words or column.truth else None
        values = column.values if words is None else words
        if np.all(values == values[0]):
            shown = printable(str(values[0])) if words is not None else f"{values[0]:g}"
            notes.append(f"Column {name!r} is left out, because all its values are {shown}.")
            continue
        if name.startswith("Unnamed:") and words is None and np.all(np.diff(column.values) == 1):
            notes.append("The first column is left out, because it has no name and only counts the rows.")
            continue
        made = {name: values} if words is None else one_hot(name, words, list(dict.fromkeys(words.tolist())))
        if twice := [label for label in made if label in owners]:
            raise InputError(f"Columns {owners[twice[0]]!r} and {name!r} of {source.path} must have names that stay "
                             f"apart when words become columns, but both give {twice[0]!r}: rename one.")  # fmt: skip
        owners |= dict.fromkeys(made, name)
        encoded |= made
    if not encoded:
        raise InputError(f"{source.path} must have a column that varies besides the target, but it has none.")
    return encoded


def _check_levels(source: Source, columns: dict[str, Column]) -> None:
    """Check that no column of words has too many for categories; one sentence names all that have."""
    every = {name: _words(column).tolist() for name, column in columns.items() if column.is_words}
    many = [
        f"{cells.short(name)!r} has {len(set(words))} different words in {len(words)} rows"
        for name, words in every.items()
        if len(set(words)) > MOST_LEVELS or len(set(words)) == len(words) > 1
    ]
    if many:
        said = "; ".join(many[: cells.SHOWN_COLUMNS])
        more = f"; {len(many) - cells.SHOWN_COLUMNS} more columns as well" if len(many) > cells.SHOWN_COLUMNS else ""
        raise InputError(f"{source.path} must have columns of numbers or categories, but {said}{more}, as a name or an "
                         "identifier has: leave it out by naming the other `columns` (--columns).")  # fmt: skip


def one_hot(name: str, words: np.ndarray, levels: Sequence[str]) -> dict[str, np.ndarray]:
    """A column of 0 and 1 for each word."""
    return {f"{name}={printable(level)}": (words == level).astype(np.float64) for level in levels}
