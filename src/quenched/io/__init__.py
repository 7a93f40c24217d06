"""Tables in, results out: everything that can be wrong with a file is reported in one sentence.

A table is a CSV file with a line of column names, numbers without gaps, and optionally a column to be predicted;
columns of words become numbers where that is asked for. Scikit-learn's own small sets come by name.
Files: `files` checks that there is one, `sources` opens files, `tables` makes tables of them, `exports` writes results
for other programs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quenched.io.exports import as_json, write_csv, write_json
    from quenched.io.sources import column_names
    from quenched.io.tables import BUNDLED, Table, bundled, is_class, read_table, require_spread

_HOME = {"as_json": "exports", "write_csv": "exports", "write_json": "exports", "column_names": "sources",
         "BUNDLED": "tables", "Table": "tables", "bundled": "tables", "is_class": "tables", "read_table": "tables",
         "require_spread": "tables"}  # fmt: skip
"""Loaded when first used: a file that is not there is said before."""

__all__ = [
    "BUNDLED", "Table", "as_json", "bundled", "column_names", "is_class", "read_table", "require_spread", "write_csv",
    "write_json",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"quenched.io.{_HOME[name]}"), name)
    raise AttributeError(f"module 'quenched.io' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
