"""Tables in, results and folders out: everything that a file can do wrong is said in one sentence.

A table is a CSV file with a line of column names, numbers without gaps, and optionally a column to be predicted;
columns of words become numbers where that is asked for. Scikit-learn's own small sets come by name. Folders for output
are tried before anything is computed.
Files: `sources` opens files, `tables` makes tables of them, `sets` has known ones, `folders` tries places to write and
`exports` writes results for other programs.
"""

from quenched.io.exports import as_json, write_csv, write_json
from quenched.io.folders import writable_folder, write_into
from quenched.io.sets import BUNDLED, bundled
from quenched.io.tables import Table, column_names, read_table

__all__ = [
    "BUNDLED",
    "Table",
    "as_json",
    "bundled",
    "column_names",
    "read_table",
    "writable_folder",
    "write_csv",
    "write_into",
    "write_json",
]
