"""All benchmarks in one run; the tables go to `docs/benchmarks.md`, no number is copied by hand."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

from benchmarks import fields, lvq_digits, mixtures, outliers_fit, processes, prototypes

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
MARK, LONG = "<!-- benchmarks -->", "<!-- forecasts -->"
"""What stands above the first mark is written by hand, below the second by `python -m benchmarks.forecast_splits`."""


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


def curves() -> str:
    """Gaussian-process learning curves against their peers, and tuning."""
    ratios = table(("ratio", "times", "measured", "promised", "accuracy"), list(processes.rows()))
    header = (
        "data",
        "tuned for",
        "predicted out-of-bag error",
        "measured",
        "held-out third",
        "noise",
        "processor time",
    )
    return "\n\n".join(
        [
            "## Learning curves of Gaussian processes",
            "Linear algebra has one thread on both sides; an accelerator is measured by `python -m benchmarks.accelerator`.",
            ratios,
            "### Hyperparameters by evidence and by the predicted out-of-bag error",
            "On two thirds of the rows, 60 steps; errors are shares of the target's variance.",
            table(header, processes.tuning()),
        ]
    )


def annealing() -> str:
    """Annealed mixtures against their peer, and many starts against one."""
    header = ("ratio", "times", "measured", "promised", "quality")
    return "\n\n".join(["## Mixtures", table(header, list(mixtures.rows()))])


def selection() -> str:
    """Soft selection against its peer."""
    header = ("ratio", "times", "measured", "promised", "quality")
    return "\n\n".join(
        [
            "## Outliers",
            "Linear algebra has one thread on both sides; a pass on an accelerator is measured by `python -m benchmarks.outliers`.",
            table(header, list(outliers_fit.rows())),
        ]
    )


def densities() -> str:
    """One-dimensional densities against their peers."""
    return "\n\n".join(["## Densities of one column, 50 seeds", table(fields.HEADER, fields.rows())])


def main() -> None:
    """Measure everything and write the page."""
    head, rest = PAGE.read_text().split(MARK)
    body = "\n\n".join([dynamics(), digits(), curves(), annealing(), selection(), densities()])
    text = f"{head.rstrip()}\n\n{MARK}\n\nMeasured on {machine()}\n\n{body}\n\n{LONG}{rest.split(LONG)[1]}"
    PAGE.write_text(text)
    print(PAGE.read_text())


if __name__ == "__main__":
    main()
