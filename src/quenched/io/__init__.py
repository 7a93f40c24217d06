"""Tables in, results out: everything that can be wrong with a file is reported in one sentence.

A table is a CSV file with a line of column names, numbers without gaps, and optionally a column to be predicted;
columns of words become numbers where that is asked for. Scikit-learn's own small sets come by name.
Files: `sources` opens files, `tables` makes tables of them, `sets` has known ones, `exports` writes results for other
programs.
"""

from quenched.io.exports import as_json, write_csv, write_json
from quenched.io.sets import BUNDLED, bundled
from quenched.io.tables import Table, column_names, read_table

__all__ = [
    "BUNDLED",
    "Table",
    "as_json",
    "bundled",
    "column_names",
    "read_table",
    "write_csv",
    "write_json",
]
