"""Densities of three to ten columns: the tree of fields beside scikit-learn's densities, held-out log-density, one run.

The tables are the first twenty of the report half of the registry that have a density (`benchmarks.tables`): copies of
rows are gone, columns with heavy ties are left out, rounded values are spread over their intervals, all before anybody
sees them. Of a larger table 1,000 rows are drawn. Every model sees the same five folds, in units of the standard
deviations of the training rows. Defaults of the tree were chosen on tables of the development half.

* `GaussianMixture`: one to ten components with full or diagonal covariances, by BIC.
* `KernelDensity`: the Gaussian kernel, its bandwidth by five-fold cross-validation over 15 values.
* independent columns: `FieldDensity` of every column alone.

`python -m benchmarks.trees` writes `results/trees.json` and the table of `docs/how-to/densities.md`;
`--half development` prints the tables of the other half; names of tables run only these.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KernelDensity

from benchmarks import tables
from benchmarks.tables import DENSITY, Table
from quenched.estimators import FieldDensity

FOLDS, MOST_ROWS, COUNT = 5, 1000, 20
RESULTS = Path(__file__).resolve().parent / "results" / "trees.json"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "densities.md"
MARKS = "<!-- trees -->", "<!-- end of trees -->"
Scores = Callable[[np.ndarray], np.ndarray]


def mixture(train: np.ndarray) -> Scores:
    """Gaussians, as many as the BIC says."""
    tried = []
    for kind in ("full", "diag"):
        for count in range(1, 11):
            model = GaussianMixture(count, covariance_type=kind, reg_covar=1e-6, random_state=0, n_init=1)
            tried.append(model.fit(train))
    return min(tried, key=lambda model: model.bic(train)).score_samples


def kernel(train: np.ndarray) -> Scores:
    """A kernel density, its bandwidth by cross-validation."""
    search = GridSearchCV(KernelDensity(), {"bandwidth": np.geomspace(0.05, 1.5, 15)}, cv=5)
    return search.fit(train).best_estimator_.score_samples


def independent(train: np.ndarray) -> Scores:
    """The product of the densities of the columns."""
    fitted = [FieldDensity().fit(x) for x in train.T]
    return lambda rows: np.sum([one.score_samples(x) for one, x in zip(fitted, rows.T, strict=True)], axis=0)


def tree(train: np.ndarray) -> Scores:
    """The tree of fields."""

    return FieldDensity(tree=True).fit(train).score_samples


MODELS = {"tree": tree, "mixture": mixture, "kernel": kernel, "independent": independent}


def rows_of(table: Table) -> np.ndarray:
    """The columns of a table that have a density, 1,000 rows at most."""
    rows = table.columns().to_numpy()
    draw = np.random.default_rng(table.seed).permutation(len(rows))[:MOST_ROWS]
    return rows[draw]


def judge(rows: np.ndarray, model: str) -> dict[str, Any]:
    """Held-out log-density of one model: the mean over rows, of each fold, and CPU seconds."""
    started, found = time.process_time(), []
    for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(rows):
        mean, scale = rows[train].mean(axis=0), rows[train].std(axis=0)
        scores = MODELS[model]((rows[train] - mean) / scale)((rows[test] - mean) / scale)
        found.append(float(np.mean(scores)))
    return {"folds": found, "cpu_s": time.process_time() - started}


def line(name: str, found: dict[str, Any]) -> str:
    """A row of the table, the best in bold."""
    means = {model: float(np.mean(found[model]["folds"])) for model in MODELS}
    best = max(means.values())
    cells = [f"**{value:.2f}**" if value == best else f"{value:.2f}" for value in means.values()]
    return f"| {name} | {found['rows']} | {found['columns']} | {' | '.join(cells)} |"


def listing(known: dict[str, Any]) -> str:
    """The table, as Markdown, and how often the tree is best."""
    lines = ["| table | rows | columns | tree of fields | GaussianMixture | KernelDensity | independent |"]
    lines += ["|---|---|---|---|---|---|---|", *(line(name, found) for name, found in known.items())]
    return "\n".join(lines) + f"\n\nThe tree is the best on {wins(known)} of {len(known)}."


def placed(text: str, body: str) -> str:
    """A page with another text between the marks."""
    before, rest = text.split(MARKS[0])
    return f"{before}{MARKS[0]}\n\n{body}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def wins(known: dict[str, Any]) -> int:
    """Tables on which the tree has at least the log-density of the best of the others."""
    means = [[float(np.mean(found[model]["folds"])) for model in MODELS] for found in known.values()]
    return sum(row[0] >= max(row[1:]) for row in means)


def main() -> None:
    """Run tables that are not in the results yet, and write them."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", default="report")
    parser.add_argument("--out", default=str(RESULTS))
    parser.add_argument("tables", nargs="*")
    given = parser.parse_args()
    out = Path(given.out)
    chosen = [tables.TABLES[name] for name in given.tables] or tables.tables(DENSITY, given.half)[:COUNT]
    known = json.loads(out.read_text()) if out.exists() else {}
    for table in chosen:
        if table.name in known:
            continue
        rows = rows_of(table)
        found = {"rows": len(rows), "columns": rows.shape[1]} | {model: judge(rows, model) for model in MODELS}
        known[table.name] = found
        out.write_text(json.dumps(known, indent=1) + "\n")
        print(line(table.name, found), flush=True)
    print(listing(known))
    if out == RESULTS:
        PAGE.write_text(placed(PAGE.read_text(), listing(known)))


if __name__ == "__main__":
    main()
