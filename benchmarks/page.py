"""The page `docs/benchmarks.md`: its marked sections, tables, and where it was measured."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
MARKS = tuple(
    f"<!-- {name} -->"
    for name in ("peers", "benchmarks", "forecasts", "trust", "calibration", "columns", "templates", "images", "prototypes",
                 "mixtures", "outliers", "potentials")
)  # fmt: skip
(PEERS, BENCHMARKS, FORECASTS, TRUST, CALIBRATION, COLUMNS, TEMPLATES, IMAGES, PROTOTYPES, MIXTURES,
 OUTLIERS, POTENTIALS) = MARKS  # fmt: skip
"""Above the first mark stands what is written by hand; below them what `benchmarks.peers`, `benchmarks`,
`benchmarks.forecast_splits`, `benchmarks.trust`, `benchmarks.calibration`, `benchmarks.columns`,
`benchmarks.templates`, `benchmarks.images`, `benchmarks.lvq`,
`benchmarks.mixture_tables`, `benchmarks.outliers` and `benchmarks.potentials` write."""


def table(header: Sequence[str], lines: Sequence[Sequence]) -> str:
    """A Markdown table."""
    rows = [header, tuple("---" for _ in header), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


def machine() -> str:
    """Where it is measured."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jax", "numpy", "scikit-learn"))
    return f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, {versions}."


def section(text: str, mark: str) -> str:
    """What stands below a mark, up to the next."""
    below = text.split(mark)[1]
    for other in MARKS[MARKS.index(mark) + 1 :]:
        below = below.split(other)[0]
    return below.strip()


def replaced(text: str, mark: str, body: str) -> str:
    """The page with another section below a mark."""
    before, after = text.split(mark)
    old = section(text, mark)
    rest = after.strip().removeprefix(old).strip()
    return f"{before}{mark}\n\n{body.strip()}\n" + (f"\n{rest}\n" if rest else "")
