"""Reading the reference values."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
"""Number of the format of the file."""
NUMBERS = ("value", "other", "stderr", "allowance", "runs", "size")
VALUES, SCHEMA = (Path(__file__).with_name(name) for name in ("values.json", "schema.json"))


def load_reference() -> pd.DataFrame:
    """Values of the theories that a closed form, another quadrature, a simulation or a printed number certifies.

    Returns:
        A row for each value. Its columns: `science` and `quantity`; `verb`, `law`, `rule`, `controls` and `at`, which
        say what was asked and of which component the value is, as plain dictionaries; `value`; `route`, how it is
        certified, and `other`, what that route gives; `stderr`, the standard error of `other` (NaN if it has none),
        with `runs` and `size` of the simulation (NaN without one); `allowance`, how far `value` and `other` may be
        apart besides; and `source`, the claim, comparison or test. `attrs` hold the version of the package that made
        the values and the number of the format.

    Examples:
        >>> import quenched
        >>> table = quenched.load_reference()
        >>> rows = table[(table.science == "prototypes") & (table.quantity == "escape_rate")]
        >>> rows.iloc[0].law["separation"], round(float(rows.iloc[0].value), 6)
        (0.5, 0.002593)
    """
    import pandas as pd

    stored = json.loads(VALUES.read_text(encoding="utf-8"))
    table = pd.DataFrame(stored["values"], dtype=object).astype(dict.fromkeys(NUMBERS, float))
    table.attrs = {"version": stored["version"], "format": stored["format"]}
    return table


def parameters(science: str, declared: Mapping[str, Any]) -> Any:
    """A law, a rule or a start from its name and fields, as `law` and `rule` of a row hold them.

    Examples:
        >>> parameters("prototypes", {"name": "LVQ1", "rate": 0.2}).rate
        0.2
    """
    home = importlib.import_module("quenched.core.replica" if science == "replica" else f"quenched.{science}")
    fields = {
        name: tuple(value) if isinstance(value, list) and not isinstance(value[0], list) else value
        for name, value in declared.items()
        if name != "name"
    }
    return getattr(home, declared["name"])(**fields)
