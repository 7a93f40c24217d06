"""All benchmarks in one run; the tables go to `docs/benchmarks.md`, no number is copied by hand."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

from benchmarks import lvq_digits, prototypes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
MARK = "<!-- benchmarks -->"


def table(header: tuple[str, ...], lines: list[tuple]) -> str:
    """A Markdown table."""
    rows = [header, tuple("---" for _ in header), *lines]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)


def machine() -> str:
    """Where it was measured."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jax", "numpy", "scikit-learn"))
    return f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, {versions}."


def dynamics() -> str:
    """Simulators and theory sweeps."""
    measured = prototypes.rows()
    costs = [(r["work"], f"{r['cpu_s']:.3g} s", r["each"], f"{r['compile_s']:.1f} s") for r in measured if "work" in r]
    ratios = [(r["ratio"], f"{r['value']:.2f}", r["promise"]) for r in measured if "ratio" in r]
    return "\n\n".join(
        [
            "## Dynamics of prototypes",
            table(("work", "processor time", "for each", "compilation"), costs),
            table(("ratio", "measured", "promised"), ratios),
        ]
    )


def digits() -> str:
    """LVQ against its peer."""
    lines = []
    for row in lvq_digits.rows():
        numbers = [row.get("accuracy"), row.get("cpu_s"), row.get("compile_s")]
        shown = [f"{x:.3f}" if i == 0 else f"{x:.2f} s" for i, x in enumerate(numbers) if x is not None]
        lines.append((row["side"], row["model"], row.get("prototypes_per_class", ""), *(shown or ["", "", ""])))
    header = ("side", "model", "prototypes per class", "accuracy", "processor time", "compilation")
    return "\n\n".join(["## LVQ on scikit-learn's digits, five folds, standardised", table(header, lines)])


def main() -> None:
    """Measure everything and write the page."""
    head = PAGE.read_text().split(MARK)[0].rstrip()  # what stands above the mark is written by hand
    body = "\n\n".join([dynamics(), digits()])
    PAGE.write_text(f"{head}\n\n{MARK}\n\nMeasured on {machine()}\n\n{body}\n")
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
