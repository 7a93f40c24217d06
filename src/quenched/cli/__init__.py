"""The command line: it parses words and prints results, and computes nothing.

Files: `entry` is the way in and out, `app` has the commands, `options` turns words into a question to a science,
`tables` reads the table of a command, `forecast`, `density`, `doubtful` (of `outliers`) and `reproduction` are what
commands do, `delivery` prints, saves and draws results, `screen` and `digits` put them in words and numbers.
"""

from quenched.cli.entry import main

__all__ = ["main"]
