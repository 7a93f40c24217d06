"""The section on mixtures of docs/benchmarks.md, from the results of `benchmarks.mixture_tables`."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import page

Rows = list[dict[str, Any]]
OURS, PEER = "quenched", "scikit-learn"
SAME = 1e-3
"""Log-likelihoods of a row that differ by less are equal."""
FEW = 3.0
"""Rows of a Gaussian."""
FACTOR = 1.5
"""Of the rows needed, up and down."""
WORLDS = {
    "one": "one cluster", "one, discrete": "one, counts or rounded", "one, Gaussian like a table": "one Gaussian like a table",
    "several, 4.5 to 6.0 apart": "several, 4.5 to 6 apart", "several, 2.0 to 4.0 apart": "several, 2 to 4 apart",
}  # fmt: skip
"""Tables of `clusters`, as the page calls them."""


def below(rows: Rows, side: str, what: str = "level") -> int:
    """In how many cases the log-likelihood is lower than scikit-learn's."""
    return sum(row["sides"][side][what] < row["sides"][PEER][what] - SAME for row in rows)


def seconds(rows: Rows, side: str) -> float:
    """Processor seconds of all cases."""
    return sum(row["sides"][side]["cpu_s"] for row in rows)


def count_likelihoods(rows: Rows) -> list[list[str]]:
    """Lines of the table of likelihoods: one for each kind of covariances."""
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == kind]
        higher = sum(row["sides"][OURS]["level"] > row["sides"][PEER]["level"] + SAME for row in mine)
        gap = [row["sides"][OURS]["held_out"] - row["sides"][PEER]["held_out"] for row in mine]
        lost = [row for row in mine if row["sides"][OURS]["level"] < row["sides"][PEER]["level"] - SAME]
        few = sum(row["sides"][PEER]["fewest"] < FEW for row in lost)
        lines.append([
            kind, str(len(mine)), str(higher), str(len(lost)), str(few), str(below(mine, f"{OURS}, fewest=0")), f"{np.median(gap):+.4f}, higher in {sum(one > SAME for one in gap)}",
            f"{seconds(mine, OURS):.1f}", f"{seconds(mine, PEER):.1f}",
        ])  # fmt: skip
    return lines


def count_clusters(rows: Rows) -> list[list[str]]:
    """Lines of the table of clusters: one for each way to their number."""
    lines = []
    for side in dict.fromkeys(row["side"] for row in rows):
        mine = {row["world"]: row for row in rows if row["side"] == side}
        line = [side]
        for world in WORLDS:
            found, right = np.array(mine[world]["found"]), np.array(mine[world]["right"])
            wrong = world.startswith("one")
            line.append(f"{int(np.sum(found > 1 if wrong else found == right))} of {len(found)}")
            if not wrong:
                line[-1] += f", too many in {int(np.sum(found > right))}"
        lines.append([*line, f"{sum(row['cpu_s'] for row in mine.values()):.0f}"])
    return lines


def count_rows(rows: Rows) -> list[list[str]]:
    """Lines of the table of rows needed: one for each design."""
    return [[str(row["clusters"]), str(row["columns"]), f"{row['separation']:.1f}", f"{row['share']:.2f}",
             f"{row['wanted']:.0f}", f"{row['fewer']:.2f}", f"{row['more']:.2f}"] for row in rows]  # fmt: skip


def right_rows(rows: Rows) -> int:
    """In how many designs the rows needed are right to the factor."""
    return sum(row["fewer"] < 0.5 <= row["more"] for row in rows)


def counted(what: str, rows: Rows) -> str:
    """What a measure comes to, for the screen."""
    if what == "rows":
        return f"right to a factor {FACTOR}: {right_rows(rows)} of {len(rows)}"
    return "\n".join(" | ".join(line) for line in (count_likelihoods if what == "likelihood" else count_clusters)(rows))


def words_of(found: dict[str, Any]) -> str:
    """The section, from the results."""
    rows, names = found["rows"], {row["table"] for row in found["likelihood"]}
    return "\n".join([
        "## Mixtures on tables", "",
        "`python -m benchmarks.mixture_tables likelihood report`, and the same with `clusters` and `rows`, on "
        f"{found['machine']} How to read it is said in [a guide](how-to/mixtures.md).", "",
        f"**Likelihood.** `AnnealedMixture` at its defaults beside the best of ten starts of scikit-learn's "
        f"`GaussianMixture`, with 3 and 5 Gaussians on the {len(names)} tables of the report half that have a density, three "
        "quarters of the rows for training: in how many cases the likelihood of the training rows is higher or lower by more "
        "than 0.001 per row, and on rows held out the median difference.", "",
        page.table(("covariances", "cases", "higher", "lower", "there few rows", "lower with `fewest=0`", "held out", "CPU s, ours", "CPU s, theirs"),
                   count_likelihoods(found["likelihood"])), "",
        f"Few rows: in how many of these a Gaussian of scikit-learn's describes fewer than {FEW:.0f} rows, whose likelihood says "
        "little. By default ours must have more; `fewest=0` lets them close in on single rows, too.", "",
        "**How many clusters.** How often clusters are found where there is one (correlated, skewed, heavy-tailed, uniform "
        "and curved columns), and how often the right number where there are two to five, by the distance of the closest "
        "in standard deviations.", "",
        page.table(("", *WORLDS.values(), "CPU s"), count_clusters(found["clusters"])), "",
        "**Rows needed.** Two clusters at a distance, others far away; the share is that of the smaller one in the two. "
        f"`rows_needed` beside how often the split is seen in 16 samples with 1/{FACTOR} and with {FACTOR} times as many rows: "
        f"less than half and at least half of the time in {right_rows(rows)} of {len(rows)} designs.", "",
        page.table(("clusters", "columns", "distance", "share", "rows needed", f"seen in 1/{FACTOR} of them",
                    f"in {FACTOR} times"), count_rows(rows)),
    ])  # fmt: skip
