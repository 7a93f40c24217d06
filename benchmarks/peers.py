"""The comparisons with peers in one run: accuracy and processor time side by side, and growth exponents of our costs.

Writes `benchmarks/results/peers.json` and, from it alone, the section of `docs/benchmarks.md`. A peer that cannot be
installed or fails has a row that says so. Run `make bench-peers`; `python -m benchmarks.peers TOPIC ...` prints the rows of
some topics (or of `growth`) and writes nothing; `python -m benchmarks.peers keep TOPIC ...` puts them in place of those that
are stored; `python -m benchmarks.peers page` writes the page again from the results.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks import page, summary
from benchmarks.compare import OURS, Comparison, Entry, Growth, grown, measured
from benchmarks.environments import ENVIRONMENTS, FOLDER, python_of
from benchmarks.worker import Worker

RESULTS = Path(__file__).resolve().parent / "results" / "peers.json"
N = 500


def outliers() -> list[Comparison]:
    """Soft selection against mixtures with a fixed or a free background."""
    mine = "SoftSelection"
    peers = (
        Entry("pomegranate", "mixture, background frozen", mine),
        Entry("scikit_learn", "GaussianMixture(2), diag, same start", mine),
        Entry("scikit_learn", "GaussianMixture(2), diag, all of the start given", mine),
        Entry("scikit_learn", "GaussianMixture(2), spherical, all of the start given", mine),
    )
    entries = (Entry(OURS, mine), Entry(OURS, f"{mine}, gamma and eta known"), *peers)
    return [
        Comparison("outliers", f"N = {N}, P/N = {a}, half outliers", {"N": N, "P": a * N}, 10, entries) for a in (5, 10)
    ]


def mixtures() -> list[Comparison]:
    """Annealing against EM from k-means, by default."""
    mine = "AnnealedMixture"
    entries = (Entry(OURS, mine), Entry("scikit_learn", "GaussianMixture(2), spherical", mine))
    return [
        Comparison(
            "mixtures", f"N = {N}, P/N = {a}, centres at distance {2 * length:.3g}",
            {"N": N, "P": a * N, "length": length}, seeds, entries,
        )
        for a, length, seeds in ((2, 1.0, 20), (8, 1.0, 10), (32, 1.0, 5), (8, 0.5**0.5, 10))
    ]  # fmt: skip


def prototypes() -> list[Comparison]:
    """LVQ against generalised LVQ with as many prototypes; slow rows, which compile nothing, are asked once for all digits."""
    one, metric, five = (f"LVQClassifier, {which} per class" for which in ("GLVQ, 1", "GMLVQ, 1", "GLVQ, 5"))

    def entries(table: str) -> tuple[Entry, ...]:
        def slow(model: str, against: str) -> Entry:
            return Entry("sklvq", model, against, seeds=5 if table == "iris" else 1, compiles=table == "iris")

        return (
            Entry(OURS, "LVQClassifier, LVQ1, 1 per class"),
            Entry(OURS, "LVQClassifier, LVQ2.1, 1 per class"),
            *(Entry(OURS, model) for model in (one, metric, five)),
            slow("GLVQ, steepest descent, 20 runs, 1 per class", one),
            Entry("sklvq", "GLVQ, lbfgs, 1 per class", one),
            slow("GMLVQ, 1 per class", metric),
            slow("GLVQ, lbfgs, sigmoid, 5 per class", five),
        )

    return [
        Comparison("prototypes", f"{table}, 5 folds, standardised", {"table": table}, seeds, entries(table))
        for table, seeds in (("iris", 5), ("digits", 2))
    ]


def processes() -> list[Comparison]:
    """Theory without resampling against loops that resample."""
    mine = "processes.theory"
    loop, curve = Entry("scikit_learn", "loop of 2000 draws"), Entry("scikit_learn", "learning_curve, 600 splits")
    drawn = Entry("scikit_learn", "loop of 50 draws", mine)
    wanted = {
        "out-of-bag error": ((drawn,), loop),
        "out-of-bag error of the average": ((Entry("scikit_learn", "BaggingRegressor, 50 draws", mine),), loop),
        "learning curve": ((Entry("scikit_learn", "learning_curve, 20 splits", mine),), curve),
    }
    return [
        Comparison("processes", f"diabetes, {words}", {"wanted": words}, 10, (Entry(OURS, mine), *peers), truth)
        for words, (peers, truth) in wanted.items()
    ]


def fields() -> list[Comparison]:
    """A density by field theory against kernels and two other field theories."""
    mine = "FieldDensity"
    entries = (
        Entry(OURS, mine),
        Entry("density", "DensityEstimator, 400 points", mine),
        Entry("density", "FFTKDE, ISJ", mine),
        Entry("density", "gaussian_kde", mine, seeds=5),
        Entry("nifty", "re, geoVI, 256 bins, 5 iterations", mine, seeds=1),
    )
    return [
        Comparison("fields", f"two Gaussians, {rows:,} rows", {"rows": rows}, 50, entries) for rows in (1_000, 100_000)
    ]


TOPICS = {
    "outliers": outliers,
    "mixtures": mixtures,
    "prototypes": prototypes,
    "processes": processes,
    "fields": fields,
}
LINEAR = "at most 1: each step passes over the table once"
GROWTHS = (
    Growth("soft selection, N = 100", "outliers", "SoftSelection", {"N": 100}, "P", (4_000, 8_000, 16_000, 32_000, 64_000), LINEAR),
    Growth("soft selection, P = 8,000", "outliers", "SoftSelection", {"P": 8_000}, "N", (25, 50, 100, 200, 400), LINEAR),
    Growth("annealed mixture, N = 100", "mixtures", "AnnealedMixture", {"N": 100, "length": 1.0}, "P",
           (2_000, 4_000, 8_000, 16_000, 32_000), LINEAR),
    Growth("LVQ1, 10 prototypes, 30 passes", "classes", "LVQClassifier, LVQ1, 1 per class", {}, "rows",
           (2_000, 4_000, 8_000, 16_000, 32_000), LINEAR),
    Growth("learning curve of a Gaussian process, rank 128, one size", "table", "processes.theory, low rank", {"rank": 128}, "rows",
           (6_250, 12_500, 25_000, 50_000), "below 1.15"),
    Growth("field density", "fields", "FieldDensity", {}, "rows", (10_000, 100_000, 1_000_000), "at most 1: rows are counted once"),
    Growth("field density, 1,000 rows", "fields", "FieldDensity", {"rows": 1_000}, "points", (100, 200, 400, 800, 1_600),
           "at most 1, after the modes of the grid are made: those that the rows can move do not grow with the points"),
)  # fmt: skip


class Sides:
    """All sides, each started when it is first asked; one that cannot be is a sentence."""

    def __init__(self) -> None:
        self._workers: dict[str, Worker | str] = {}

    def __call__(self, side: str, **question: Any) -> dict[str, Any]:
        """Ask a side."""
        if side not in self._workers:
            self._workers[side] = self._start(side)
        worker = self._workers[side]
        if isinstance(worker, str):
            return {"failed": worker}
        return worker(**question)

    def _start(self, side: str) -> Worker | str:
        if side in ENVIRONMENTS and not (FOLDER / side).exists():
            say(f"installing {' and '.join(ENVIRONMENTS[side].needs)}, once")
        try:
            return Worker(python_of(side), side)
        except (RuntimeError, OSError) as error:
            return f"it could not be installed ({error})"

    def close(self, *sides: str) -> None:
        """End the processes of some sides, or all; they start again when they are asked."""
        for side, worker in self._workers.items():
            if isinstance(worker, Worker) and (not sides or side in sides):
                worker.close()


def say(words: str) -> None:
    """Progress, beside the result."""
    print(words, file=sys.stderr, flush=True)


def watched(sides: Sides) -> Any:
    """Ask, and say so when another model is asked."""
    last: list[str] = []

    def ask(side: str, **question: Any) -> dict[str, Any]:
        name = f"{side}: {question['model']}"
        if name not in last:
            say(f"    {name}")
            last.append(name)
        return sides(side, **question)

    return ask


def rounded(x: Any) -> Any:
    """Numbers with five digits: more is noise."""
    if isinstance(x, float):
        return float(f"{x:.5g}")
    if isinstance(x, dict):
        return {name: rounded(value) for name, value in x.items()}
    return [rounded(value) for value in x] if isinstance(x, list) else x


def run(topics: list[str]) -> dict[str, Any]:
    """Measure some topics, each with fresh processes; `growth` is one of them."""
    rows: list[dict] = []
    growth: list[dict] = []
    for topic in topics:
        sides = Sides()
        try:
            for comparison in TOPICS[topic]() if topic != "growth" else []:
                say(f"{topic}: {comparison.title}")
                rows += measured(comparison, watched(sides))
                sides.close(OURS)  # what one case compiled would be missing from the next one's compilation
            for each in GROWTHS if topic == "growth" else ():
                say(f"growth: {each.work}, along {each.along}")
                growth.append(grown(each, sides))
        finally:
            sides.close()
    return rounded({"machine": page.machine(), "rows": rows, "growth": growth})


def merge(stored: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Stored results with those of some topics, each of which stays one run, in their place."""
    new = {row["topic"] for row in found["rows"]}
    rows = [row for row in stored["rows"] if row["topic"] not in new] + found["rows"]
    rows.sort(key=lambda row: list(TOPICS).index(row["topic"]))
    return stored | {"rows": rows, "growth": found["growth"] or stored["growth"]}


def write(found: dict[str, Any]) -> None:
    """The page's section, from the results alone."""
    page.PAGE.write_text(page.replaced(page.PAGE.read_text(), page.PEERS, summary.page_section(found)))


def main(topics: list[str]) -> None:
    """Measure; write the results and the page if all topics were measured."""
    every = [*TOPICS, "growth"]
    if topics == ["page"]:
        write(json.loads(RESULTS.read_text()))
        return
    kept = topics[:1] == ["keep"]
    topics = topics[kept:]
    if unknown := set(topics) - set(every):
        sys.exit(f"Topics must be among {', '.join(every)}, but there is {', '.join(sorted(unknown))}.")
    found = run(topics or every)
    if kept:
        found = merge(json.loads(RESULTS.read_text()), found)
    if kept or not topics:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(found) + "\n")
        write(found)
    print(summary.page_section(found))


if __name__ == "__main__":
    main(sys.argv[1:])
