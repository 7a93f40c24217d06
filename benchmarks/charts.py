"""Charts of the benchmarks, from `benchmarks/results`; `python -m benchmarks.charts` writes them into `docs/images`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]
RESULTS, IMAGES = ROOT / "benchmarks" / "results", ROOT / "docs" / "images"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKS = "osD^vPX"
CASES = {  # what the axis says of a case of `peers.json`, by its topic and the beginning of its name
    "outliers": "outliers", "mixtures": "mixture", "prototypes": "LVQ", "processes": "process", "fields": "density",
}  # fmt: skip


def read(name: str) -> Any:
    """The stored results of a benchmark."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    return Figure(figsize=(width, height), dpi=110, layout="constrained")


def quality(row: dict[str, Any]) -> float:
    """What a side has reached on average over data sets, as a loss."""
    mean = float(np.mean([np.mean(values) for values in row["values"]]))
    return 1 - mean if row["higher_is_better"] else mean


def package(row: dict[str, Any]) -> str:
    """The package that a row is of, by its name."""
    return row["version"].split()[0]


def peers() -> Figure:
    """Loss and processor time of each peer, in units of our best model of the same case."""
    cases: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in read("peers")["rows"]:
        cases.setdefault((row["topic"], row["case"]), []).append(row)
    drawn = figure(9.6, 0.42 * len(cases) + 1.3)
    left, right = drawn.subplots(1, 2, sharey=True)
    every = [row for rows in cases.values() for row in rows]
    sides = list(dict.fromkeys(package(row) for row in every if row["side"] != "ours"))
    for place, rows in enumerate(cases.values()):
        ours = [row for row in rows if row["side"] == "ours"]
        best = min(ours, key=quality)
        for row in rows:
            if row["side"] == "ours":
                continue
            style = {"color": COLOURS[sides.index(package(row))], "marker": MARKS[sides.index(package(row))]}
            left.plot(quality(row) / quality(best), place, linestyle="", alpha=0.85, **style)
            right.plot(np.mean(row["cpu_s"]) / np.mean(best["cpu_s"]), place, linestyle="", alpha=0.85, **style)
    for axes, label in ((left, "loss of the peer / our loss"), (right, "processor time of the peer / ours")):
        axes.axvline(1, color="0.4", lw=1)
        axes.set_xscale("log")
        axes.set_xlabel(f"{label}\n(right of the line: ours is better)")
        axes.grid(axis="x", alpha=0.3)
    left.set_xticks([0.5, 1, 2, 5], ["0.5", "1", "2", "5"], minor=False)
    left.xaxis.set_minor_formatter("")
    left.set_yticks(range(len(cases)), [f"{CASES.get(topic, topic)}: {case}" for topic, case in cases], fontsize=8)
    left.invert_yaxis()
    for side, colour, mark in zip(sides, COLOURS, MARKS, strict=False):
        right.plot([], [], linestyle="", color=colour, marker=mark, label=side)
    right.legend(loc="upper right", fontsize=8)
    return drawn


def coverage() -> Figure:
    """How often the 90% band of a density holds it, density by density."""
    cells = [cell for cell in read("calibration")["cells"] if "covered" in cell and cell["model"] == "FieldDensity"]
    names, sizes = (list(dict.fromkeys(cell[key] for cell in cells)) for key in ("density", "rows"))
    drawn = figure(8.4, 0.3 * len(names) + 1.2)
    axes = drawn.subplots()
    for cell in cells:
        i = sizes.index(cell["rows"])
        axes.plot(cell["covered"], names.index(cell["density"]) + 0.22 * (i - 1), MARKS[i], color=COLOURS[i], ms=5)
    for i, rows in enumerate(sizes):
        axes.plot([], [], MARKS[i], color=COLOURS[i], label=f"{rows:,} rows")
    axes.axvline(0.9, color="0.4", lw=1)
    axes.set(xlabel="share of the density that the 90% band holds", xlim=(0.68, 1.0))
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower left", fontsize=8)
    return drawn


def trees() -> Figure:
    """Held-out log-density of tables by a tree of fields, and by peers."""
    found = {name: one for name, one in read("trees").items() if "tree" in one}
    models = {
        "tree": "tree of fields",
        "mixture": "Gaussian mixture",
        "kernel": "kernel density",
        "independent": "independent columns",
    }
    drawn = figure(8.4, 0.3 * len(found) + 1.2)
    axes = drawn.subplots()
    for i, (key, label) in enumerate(models.items()):
        gaps = [
            np.mean(one[key]["folds"]) - np.mean(one["tree"]["folds"]) if key in one else np.nan
            for one in found.values()
        ]
        axes.plot(gaps, range(len(found)), MARKS[i], color=COLOURS[i], label=label, linestyle="")
    axes.set_xscale("symlog", linthresh=1)
    axes.set(xlabel="held-out log-density less that of the tree, per row (left of 0: the tree is better)")
    axes.set_yticks(
        range(len(found)), [f"{name} ({one['rows']} × {one['columns']})" for name, one in found.items()], fontsize=8
    )
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower left", fontsize=8)
    return drawn


def scale() -> Figure:
    """Time of a density in two columns against the size of its grid."""
    stored = read("scale_cpu")
    points = np.array([one["points"] for one in stored["grids"]])
    drawn = figure(6.4, 3.8)
    axes = drawn.subplots()
    for i, (key, label) in enumerate((("wall_s", "first call, with compilation"), ("warm_wall_s", "later calls"))):
        axes.plot(points**2, [one[key] for one in stored["grids"]], MARKS[i] + "-", color=COLOURS[i], label=label)
    axes.set(xscale="log", yscale="log", xlabel=f"points of the grid ({stored['rows']:,} rows)", ylabel="seconds")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
    return drawn


CHARTS = {
    "benchmarks_peers": peers,
    "benchmarks_coverage": coverage,
    "benchmarks_trees": trees,
    "benchmarks_scale": scale,
}


def main(folder: Path = IMAGES) -> None:
    for name, chart in CHARTS.items():
        chart().savefig(folder / f"{name}.png")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
