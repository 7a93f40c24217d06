"""Tables in, results out: everything that can be wrong with a file is reported in one sentence.

A table is a CSV file with a line of column names, numbers without gaps, and optionally a column to be predicted;
columns of words become numbers where that is asked for. Scikit-learn's own small sets come by name.
Files: `sources` opens files, `tables` makes tables of them, `exports` writes results for other programs.
"""

from quenched.io.exports import as_json, write_csv, write_json
from quenched.io.sources import column_names
from quenched.io.tables import BUNDLED, Table, bundled, is_class, read_table, require_spread

__all__ = [
    "BUNDLED", "Table", "as_json", "bundled", "column_names", "is_class", "read_table", "require_spread", "write_csv",
    "write_json",
]  # fmt: skip
