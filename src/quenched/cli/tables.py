"""The table that a command reads: a file and the columns that options name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quenched import io
from quenched.core.columns import FEWEST
from quenched.core.types import InputError, printable


def is_given(data: Path | None, command: str, option: str, column: str | None, role: str, **others: Any) -> bool:
    """Whether there is a file to read."""
    if data is None:
        if column is not None or any(others.values()):
            raise InputError("Options that choose what to read must come with a file, but none was given: "
                             f"quenched {command} DATA.csv {option} COLUMN.")  # fmt: skip
        return False
    if column is None:
        there = ", ".join(io.column_names(data, others.get("encoding")))
        raise InputError(f"Option {option} must name {role}, but none was given; {data} has the columns: {there}.")
    return True


def read(data: Path | None, target: str | None, columns: list[str] | None, **how: Any) -> tuple[io.Table, str]:
    """The table in a file, and the name of the file as it can be shown."""
    return io.read_table(str(data), target, columns, least=FEWEST, **how), printable(str(data))


def read_with_target(
    data: Path | None, command: str, target: str | None, columns: str | None, **how: Any
) -> tuple[io.Table, str, bool]:
    """The table with a column to be predicted, its name, and whether that column is a class.

    It is one if it holds words or few different whole numbers. The columns that predict may hold words, too.
    """
    if data is None:
        raise InputError(f"Argument DATA must name a file, but none was given: quenched {command} DATA.csv --target y.")
    is_given(data, command, "--target", target, "the column to be predicted", columns=columns, **how)
    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    table, called = read(data, target, chosen, classes=True, categories=True, **how)
    if io.is_class(table.targets):
        return table, called, True
    return *read(data, target, chosen, categories=True, **how), False
