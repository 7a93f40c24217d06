"""Columns of numbers from whatever holds them: arrays, data frames, the text of files. The one reader of cells.

A cell is a number, missing, or something else, which is named: a word, a date, a decimal comma, a complex number.
Percentages are shares (12% is 0.12), and unambiguous commas between thousands are removed. All columns are read before
an error is raised, so that one sentence lists every fault.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from quenched.core.types import InputError, printable

SHOWN_ROWS, SHOWN_COLUMNS = 3, 4
"""Rows of a column, and columns, that a sentence names."""
LONGEST = 24
"""Letters of a cell, and of a column's name in a list, that a sentence repeats."""

MISSING = frozenset({"", "#N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"})
"""Words for a value that is not there, as pandas has them."""

FEWEST = 5
"""Rows that a table must have."""
WORDS, DATES = "words", "dates"
DECIMAL_COMMAS = "decimal commas"
ANY_COMMAS = "commas that may stand for thousands or for decimals"
INFINITE, COMPLEX = "infinite or too large numbers", "complex numbers"
PERCENT = "percent signs beside plain numbers"
GAP = "missing"

ADVICE = {
    DECIMAL_COMMAS: "write decimals with points",
    ANY_COMMAS: "write numbers without commas",
    DATES: "leave dates out, or count days",
    PERCENT: "write all with a percent sign, or none",
}
"""What helps."""

_MONTH = "(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}((?:,\d{3})+)(\.\d*)?")
_FORMS = {
    PERCENT: re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)) ?%"),
    ANY_COMMAS: _GROUPED,
    DECIMAL_COMMAS: re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][+-]?\d+)?"),
    DATES: re.compile(
        r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
        rf"|\d{{1,2}}[ .-]+{_MONTH}[ .,-]+\d{{2,4}}|{_MONTH}[ .]+\d{{1,2}},?[ ]+\d{{4}})([ T]+\d{{1,2}}:\d{{2}}.*)?"
        r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?",
        re.IGNORECASE,
    ),
}
"""Kinds of text that is not a plain number."""


class Column(NamedTuple):
    """A column as it was read, of `N` cells."""

    name: str  # as it may be shown
    values: np.ndarray  # [N] float64, NaN where there is no number
    missing: np.ndarray  # [N] where nothing stands
    wrong: np.ndarray  # [N] where something else than a number stands
    kind: str = ""  # what stands there, in the plural
    text: np.ndarray | None = None  # [N] cells that were looked at one by one, as text; None in a column of numbers
    truth: bool = False  # whether everything that is there is true or false
    note: str = ""  # a sentence on how it was read, where that is not plain

    @property
    def is_words(self) -> bool:
        """Whether everything that is there is a word, as in a column of categories."""
        return self.kind == WORDS and bool(np.all(self.wrong | self.missing))

    def take(self, rows: np.ndarray) -> Column:
        """Some of its rows."""
        text = None if self.text is None else self.text[rows]
        return self._replace(values=self.values[rows], missing=self.missing[rows], wrong=self.wrong[rows], text=text)


def read_column(name: str, cells: Any) -> Column:
    """Read a column of any kind: a sequence, array, masked array or series."""
    name, mask = printable(str(name)), np.ma.getmaskarray(cells) if isinstance(cells, np.ma.MaskedArray) else None
    array = np.asarray(cells)
    one_by_one = array.dtype.kind in "OUST"
    column = _read_cells(name, array.astype(object)) if one_by_one else _read_array(name, array)
    if mask is None or not mask.any():
        return column
    return column._replace(
        values=np.where(mask, np.nan, column.values), missing=column.missing | mask, wrong=column.wrong & ~mask
    )


def _read_array(name: str, array: np.ndarray) -> Column:
    """A column of one type, other than text and objects."""
    if array.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # long doubles
            values = array.astype(np.float64)
        truth = array.dtype.kind == "b"
        return Column(name, values, np.isnan(values), np.isinf(values), INFINITE, truth=truth)
    missing = np.isnat(array) if array.dtype.kind in "mM" else np.zeros(array.shape, bool)
    kind = {"c": COMPLEX, "M": DATES, "m": "lengths of time"}.get(array.dtype.kind, "values of another kind")
    text = np.array([str(cell) for cell in array.tolist()], dtype=object)
    return Column(name, np.full(array.shape, np.nan), missing, ~missing, kind, text)


def _read_cells(name: str, cells: np.ndarray) -> Column:
    """A column of text or of objects, cell by cell; what is read with the whole column in view gets a note."""
    text = np.array([_text(cell) for cell in cells], dtype=object)
    read = [_number(*pair) for pair in zip(cells, text, strict=True)]
    values, kinds = np.array([value for value, _ in read], float), np.array([kind for _, kind in read], dtype=object)
    missing = kinds == GAP
    wrong = (kinds != "") & ~missing
    found = set(kinds[wrong])
    kind = found.pop() if len(found) == 1 else DECIMAL_COMMAS if found == {DECIMAL_COMMAS, ANY_COMMAS} else WORDS
    truth = not missing.all() and all(isinstance(cell, (bool, np.bool_)) for cell in cells[~missing])
    percent = kind == PERCENT and np.all(wrong | missing)
    if percent or (kind == ANY_COMMAS and _are_thousands(text[wrong], text[~wrong & ~missing])):
        i = int(np.flatnonzero(wrong)[0])
        note = f"Column {name!r} is read as numbers: {text[i]} is {values[i]:.15g}."
        return Column(name, values, missing, np.zeros_like(wrong), "", text, truth, note)
    return Column(name, np.where(wrong, np.nan, values), missing, wrong, kind, text, truth)


def _are_thousands(grouped: np.ndarray, plain: np.ndarray) -> bool:
    """Whether commas stand between thousands: one cell has two of them, or a point beside one, or a point alone."""
    parts = [_GROUPED.fullmatch(text) for text in grouped]
    return any(part and (len(part[1]) > 4 or part[2]) for part in parts) or any("." in text for text in plain)


def _text(cell: Any) -> str:
    try:
        return (cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)).strip()
    except ValueError:  # Python does not spell whole numbers of more than 4300 digits
        return "a number of many digits"


def _number(cell: Any, text: str) -> tuple[float, str]:
    """The number in a cell and nothing, or what stands there instead."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return math.nan, GAP
    if isinstance(cell, (complex, np.complexfloating)):
        return math.nan, COMPLEX
    if hasattr(cell, "isoformat") or isinstance(cell, np.datetime64):
        return math.nan, DATES
    if isinstance(cell, (str, bytes)):
        if text in MISSING:
            return math.nan, GAP
        if "_" in text:  # Python reads 1_000, people do not write it
            return math.nan, WORDS
    try:
        value = float(text if isinstance(cell, (str, bytes)) else cell)
    except OverflowError:
        return math.nan, INFINITE
    except (TypeError, ValueError):
        kind = next((kind for kind, form in _FORMS.items() if form.fullmatch(text)), WORDS)
        share = float(text.rstrip("% ")) / 100 if kind == PERCENT else math.nan
        return float(text.replace(",", "")) if kind == ANY_COMMAS else share, kind
    if math.isnan(value):
        return value, GAP
    return (value, "") if math.isfinite(value) else (math.nan, INFINITE)


def check(where: str, columns: Sequence[Column], *, first: int = 1, hint: str = "") -> None:
    """Check that no cell is missing or not a number; one sentence lists all faults, with counts and rows.

    It begins with `where`, such as "data.csv" or "Argument `X`", counts rows from `first` and, where cells are missing,
    ends with a `hint`.
    """
    faults = [(column, clause) for column in columns if (clause := _clause(column, first))]
    if not faults:
        return
    clauses = [clause for _, clause in faults[:SHOWN_COLUMNS]]
    if (more := len(faults) - SHOWN_COLUMNS) > 0:
        clauses.append(f"{more} more column{'s' if more > 1 else ''}")
    gaps, bad = ([c for c, _ in faults if getattr(c, name).any()] for name in ("missing", "wrong"))
    hints = ["NA, None and the like count as missing"] if any(c.text is not None for c in gaps) else []
    hints += [hint] if hint and gaps else []
    hints += [advice for kind, advice in ADVICE.items() if any(c.kind == kind for c in bad)]
    what = "a finite number" if bad else "a value"
    advice = f": {'; '.join(hints)}" if hints else ""
    raise InputError(f"{where} must have {what} in every row, but {'; '.join(clauses)}{advice}.")


def _clause(column: Column, first: int) -> str:
    """What is wrong with a column, or nothing."""
    said, whose = [], f"column {short(column.name)!r}" if column.name else "it"
    if gaps := int(column.missing.sum()):
        said.append(f"lacks {gaps} of {len(column.missing)} values ({_rows(column.missing, first)})")
    if bad := int(column.wrong.sum()):
        i = int(np.flatnonzero(column.wrong)[0])
        such = "" if column.text is None else f", such as {short(column.text[i])!r}"
        said.append(f"has {column.kind} in {bad} of {len(column.wrong)}{such} ({_rows(column.wrong, first)})")
    return f"{whose} {' and '.join(said)}" if said else ""


def _rows(chosen: np.ndarray, first: int) -> str:
    """The first of some rows."""
    places = np.flatnonzero(chosen)
    shown = ", ".join(str(place + first) for place in places[:SHOWN_ROWS])
    return f"row{'s' if len(places) > 1 else ''} {shown}{', ...' if len(places) > SHOWN_ROWS else ''}"


def short(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def power_of_two(values: Any) -> float:
    """The power of two just above the largest of finite numbers in size, by which division is exact; 1 for none."""
    largest = np.max(np.abs(values), initial=0.0)
    return float(np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1021, 1023))) if largest > 0 else 1.0
