"""What was measured against peers, as the section of a page: who is better where, one table, and growth exponents."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.page import table

Row = dict[str, Any]
SURE = 2.0
"""Standard errors of the paired difference from which one side is called more accurate."""
FASTER = 1.1
"""Ratio of times from which one side is called faster."""
HEADER = (
    "topic", "case", "side", "accuracy", "CPU s", "compile s", "CPU, ours over theirs", "quenched against it",
)  # fmt: skip
GROWTH = ("work", "along", "from", "to", "CPU s", "exponent", "promised")

REASONS = {
    ("outliers", "pomegranate"): "It fits a variance for each feature besides.",
    ("outliers", "scikit-learn"): "It fits a background and variances besides.",
    (
        "mixtures",
        "scikit-learn",
    ): "With many rows both climb the same maximum of the likelihood, and ours stops earlier.",
    (
        "prototypes",
        "sklvq",
    ): "Its search by L-BFGS ends after few steps, where ours goes on to a better cost; there is [a section "
    "of its own](#prototypes-on-tables) on more tables.",
    ("processes", "scikit-learn"): "Its fits see at most 300 rows, where the theory solves for all 442 at every size.",
    ("fields", "suftware"): "It knows one order of smoothness, where ours weighs three.",
    ("fields", "KDEpy"): "It bins the rows and makes one Fourier transform, with one bandwidth and no band.",
    (
        "fields",
        "SciPy",
    ): "It sums one kernel for each row, with a bandwidth by rule of thumb: little work for few rows.",
    ("fields", "NIFTy"): "It infers the spectrum of the field, too, and gives samples of the posterior.",
}
"""In what a peer differs, by topic and package; said only where it is better."""


def package(row: Row) -> str:
    """The name of the package without its version."""
    return row["version"].rsplit(" ", 1)[0] if "version" in row else row["side"]


class Pair(NamedTuple):
    """Ours beside a peer, on the data sets that both have."""

    ratio: float  # of times
    gain: float  # mean, in accuracy
    error: float  # standard error of the gain, NaN if there is one run
    shown: float  # the gain, or ours over theirs where the measure is an error
    spread: float  # standard error of what is shown
    higher_is_better: bool

    def verdict(self) -> int:
        """1 if ours is surely more accurate, -1 if less, otherwise 0."""
        return int(np.sign(self.gain)) if abs(self.gain) > SURE * self.error else 0

    def accuracy(self) -> str:
        """In words, with the difference, or the ratio of errors."""
        known = np.isfinite(self.spread) and self.spread > 0
        digits = 1 - int(np.floor(np.log10(self.spread))) if known else 2  # two of the standard error
        words = f"{self.shown:{'+' if self.higher_is_better else ''}.{max(digits, 0)}f}"
        words += f" ± {self.spread:.{max(digits, 0)}f}" if known else ""
        what = "difference" if self.higher_is_better else "ratio of errors"
        if not np.isfinite(self.error):
            return f"accuracy undecided by one run ({what} {words})"
        return f"{('less accurate', 'as accurate', 'more accurate')[self.verdict() + 1]} ({what} {words})"


def paired(row: Row, ours: Row | None) -> Pair | None:
    """Compare on the data sets that both have, if there are any."""
    if ours is None or "failed" in row or "failed" in ours:
        return None
    both = [i for i, (a, b) in enumerate(zip(ours["values"], row["values"], strict=False)) if a and b]
    if not both:
        return None
    a, b = (np.concatenate([np.ravel(side["values"][i]) for i in both]) for side in (ours, row))
    higher = row["higher_is_better"]
    gain, quotient = (a - b) * (1 if higher else -1), float(a.mean() / b.mean())
    shown, spread = (gain.mean(), _standard_error(gain)) if higher else (
        quotient, _standard_error(a - quotient * b) / b.mean()  # to first order
    )  # fmt: skip
    ratio = statistics.median(ours["cpu_s"][i] for i in both) / statistics.median(row["cpu_s"][i] for i in both)
    return Pair(float(ratio), float(gain.mean()), _standard_error(gain), float(shown), float(spread), higher)


def _standard_error(x: np.ndarray) -> float:
    return float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else np.nan


def time_words(ratio: float) -> str:
    """Whether ours is faster, from the ratio of times."""
    if ratio <= 1 / FASTER:
        return f"{_times(1 / ratio)} faster"
    return f"{_times(ratio)} slower" if ratio >= FASTER else "as fast"


def _times(x: float) -> str:
    return f"{x:.1f} times" if x < 10 else f"{x:.0f} times"


def number(x: float) -> str:
    """Three digits, and no exponent where none is needed."""
    return f"{x:.3g}" if x == 0 or abs(x) >= 1e-3 else f"{x:.2e}"


def line(row: Row, ours: dict[str, Row]) -> tuple[str, ...]:
    """A row of the table. `ours` are our rows of the same case by model."""
    begin = (row["topic"], row["case"])
    if "failed" in row:
        return (*begin, f"{row['side']}: {row['model']}", f"not measured: {row['failed']}", "", "", "", "")
    good = [value for value in row["values"] if value]
    lost = len(row["values"]) - len(good)
    mean = number(float(np.mean([x for value in good for x in value])))
    sets = f"{len(good)} runs" if len(good) > 1 else "1 run"
    accuracy = f"{row['measure']} {mean} ({sets}{f', failed on {lost}' if lost else ''})"
    spent = statistics.median(x for x in row["cpu_s"] if x is not None)
    compiling = "not measured" if row["compile_s"] is None else f"{row['compile_s']:.2f}"
    side = (f"{row['version']}: {row['model']}", accuracy, number(spent), compiling)
    pair = paired(row, ours.get(row["against"]))
    if pair is None:
        return (*begin, *side, "", "")
    which = f"{row['against']}: " if len(ours) > 1 else ""
    return (*begin, *side, number(pair.ratio), f"{which}{time_words(pair.ratio)}, {pair.accuracy()}")


def cases(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Rows by topic and case, in their order."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["topic"], row["case"]), []).append(row)
    return found


def lines(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """All rows of the table."""
    return [
        line(row, {r["model"]: r for r in group if r["against"] is None})
        for group in cases(rows).values()
        for row in group
    ]


def better(rows: Iterable[Row]) -> list[str]:
    """A sentence for each peer and topic where it is faster or more accurate."""
    found: dict[tuple[str, str], list[str]] = {}
    for (topic, case), group in cases(rows).items():
        ours = {r["model"]: r for r in group if r["against"] is None}
        for row in group:
            pair = paired(row, ours.get(row["against"]))
            if pair is not None and (pair.ratio >= FASTER or pair.verdict() < 0):
                words = f"{row['model']} ({case}): ours is {time_words(pair.ratio)}, {pair.accuracy()}"
                found.setdefault((topic, package(row)), []).append(words)
    return [
        f"* **{topic}, {name}.** {'; '.join(words)}. {REASONS.get((topic, name), '')}".rstrip()
        for (topic, name), words in found.items()
    ]


def growth_line(row: Row) -> tuple[str, ...]:
    """A row of the growth table: the slope of log seconds over log size."""
    if "failed" in row:
        return row["work"], row["along"], "", "", f"not measured: {row['failed']}", "", row["promised"]
    x, y = np.log(row["sizes"]), np.log(row["cpu_s"])
    slope, at = np.polyfit(x, y, 1)
    left = y - slope * x - at
    error = np.sqrt(left @ left / max(len(x) - 2, 1) / np.sum((x - x.mean()) ** 2))
    ends = f"{number(row['cpu_s'][0])} to {number(row['cpu_s'][-1])}"
    sizes = f"{row['sizes'][0]:,}", f"{row['sizes'][-1]:,}"
    return row["work"], row["along"], *sizes, ends, f"{slope:.2f} ± {error:.2f}", row["promised"]


def page_section(found: dict[str, Any]) -> str:
    """The section of the page, all of it from what was measured."""
    list_of_better = better(found["rows"]) or ["* Nowhere in this run."]
    return "\n\n".join(
        [
            "## Against peers",
            f"`make bench-peers` measured this in one run on {found['machine']}",
            "* Every side runs in a process of its own, with one thread for linear algebra and one for XLA, on the same data "
            "(compared by checksum). Sides are asked in turn.\n"
            "* CPU is the processor time of all threads of the process: the median over the runs (data sets, or draws from one "
            "table), second calls. What the first call on the first data set took more is compilation (ours) or caches.\n"
            "* Accuracy is the mean over the runs. Ours is called more or less accurate where the paired difference is "
            f"more than {SURE:g} standard errors (folds count as runs), faster or slower from a ratio of {FASTER:g}. "
            "A ratio of errors is ours over theirs.",
            "### Where a peer is better",
            "\n".join(list_of_better),
            "### All five topics",
            table(HEADER, lines(found["rows"])),
            "### How our costs grow",
            "Second calls; the exponent is the slope of log seconds over log size.",
            table(GROWTH, [growth_line(row) for row in found["growth"]]),
        ]
    )
