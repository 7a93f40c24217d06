"""`python -m quenched` is the command `quenched`."""

import sys

from quenched.cli import main

if __name__ == "__main__":
    sys.exit(main())
