"""The command line: dispatch only, no science.

Files: `entry` is the way in and out, `app` has the commands, `options` turns words into laws, rules and controls,
`delivering` prints, saves and draws results, `screen` puts them in words and `digits` in numbers, `reading` has the
options of tables, `forecasting` reads the table of a forecast and says what came of it, `density` is a command
of its own and `describing` what it reads and says.
"""

from quenched.cli.entry import main

__all__ = ["main"]
