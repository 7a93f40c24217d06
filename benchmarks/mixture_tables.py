"""Mixtures on tables: likelihood, cost, the number of clusters and the rows needed, beside scikit-learn.

Columns are standardised. `python -m benchmarks.mixture_tables likelihood development` compares likelihoods with the
best of ten starts of scikit-learn; `clusters development` the number of clusters in tables without any and in tables
with a known number, with the information criterion and with HDBSCAN; `rows development` the rows that theory says it
takes to see a split with samples of that size; `splits development` three tests of a split; `classes development` the
number of clusters in tables with classes.

The first three, run on the report half, are kept in `benchmarks/results/mixture_tables.json` and written to
docs/benchmarks.md; `page` writes the page again from the results.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.mixture import GaussianMixture

from benchmarks import page
from benchmarks.cluster_worlds import (
    FAR,
    KINDS_OF_NOISE,
    NEAR,
    close_pair,
    discrete,
    known_number,
    like_table,
    one_cluster,
)
from benchmarks.mixture_page import FACTOR, OURS, PEER, counted, words_of
from benchmarks.peers import rounded
from benchmarks.tables import tables
from quenched import mixtures
from quenched.mixtures.learner.gains import judge_gain
from quenched.mixtures.learner.noise import judge_spread

RESULTS = Path(__file__).resolve().parent / "results" / "mixture_tables.json"
MOST_ROWS = 5000
"""Of a table; of larger ones this many are drawn."""
KINDS: dict[str, tuple[str, Any]] = {
    "full": ("full", mixtures.Full()),
    "tied": ("tied", mixtures.Full(common=True)),
    "diagonal": ("diag", mixtures.Diagonal()),
    "spherical": ("spherical", mixtures.Spherical()),
}
"""Covariances, by scikit-learn's names and ours."""
SIZES = (3, 5)
"""Numbers of Gaussians."""
Row = dict[str, Any]


def seed_of(half: str) -> int:
    """The seed of tables that are drawn."""
    return 0 if half == "development" else 1000


def columns_of(half: str, most: int = MOST_ROWS) -> Iterator[tuple[str, np.ndarray]]:
    """Standardised tables."""
    for table in tables("density", half):
        X = table.columns().to_numpy()
        rng = np.random.default_rng(table.seed)
        X = X[rng.permutation(len(X))[:most]]
        yield table.name, (X - X.mean(axis=0)) / X.std(axis=0)


def effective(r: np.ndarray) -> float:
    """Rows of the smallest component, from the probabilities of the components `[n, K]`."""
    return float((r.sum(axis=0) ** 2 / np.maximum((r * r).sum(axis=0), 1e-300)).min())


def spend(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, and what was found."""
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def theirs(kind: str, K: int) -> Any:
    """The best of ten starts of scikit-learn's mixture."""
    return GaussianMixture(K, covariance_type=KINDS[kind][0], n_init=10, random_state=0)


def ours(kind: str, K: int, *, fewest: float | None = None) -> Any:
    """Ours at its defaults; with `fewest` 0 the likelihood alone decides, as in scikit-learn."""
    from quenched.estimators import AnnealedMixture

    return AnnealedMixture(K, widths=dataclasses.replace(KINDS[kind][1], fewest=fewest), random_state=0)


def judged(model: Any, train: np.ndarray, test: np.ndarray) -> Row:
    """A mixture found: processor time, mean log-likelihood of both parts, and rows of the smallest component."""
    seconds, _ = spend(lambda: model.fit(train))
    fewest = effective(model.predict_proba(train))
    return {"cpu_s": seconds, "level": model.score(train), "held_out": model.score(test), "fewest": fewest}


def likelihoods(half: str) -> Iterator[Row]:
    """Every table, kind and number of components."""
    for name, X in columns_of(half):
        train, test = X[: len(X) * 3 // 4], X[len(X) * 3 // 4 :]
        for kind in KINDS:
            for K in SIZES:
                sides = {PEER: theirs(kind, K), OURS: ours(kind, K), f"{OURS}, fewest=0": ours(kind, K, fewest=0.0)}
                found = {side: judged(model, train, test) for side, model in sides.items()}
                yield {"table": name, "kind": kind, "components": K, "sides": found}


def by_criterion(X: np.ndarray) -> int:
    """The number of Gaussians with the least information criterion."""
    models = [GaussianMixture(K, n_init=3, random_state=0).fit(X) for K in range(1, 11)]
    return int(np.argmin([model.bic(X) for model in models])) + 1


COUNTERS: dict[str, Callable[[np.ndarray], int]] = {
    "find_clusters": lambda X: mixtures.find_clusters(X).count,
    "GaussianMixture + BIC": by_criterion,
    "HDBSCAN": lambda X: max(1, int(HDBSCAN().fit_predict(X).max()) + 1),
    "HDBSCAN, at least n/20 rows": lambda X: max(1, int(HDBSCAN(len(X) // 20).fit_predict(X).max()) + 1),
}
"""Ways to the number of clusters."""


def numbers(half: str) -> Iterator[Row]:
    """What each finds in tables with one cluster and with a known number."""
    seed = seed_of(half)
    worlds: dict[str, list[tuple[np.ndarray, int]]] = {
        "one": [(one_cluster(case, seed), 1) for case in range(30)],
        "one, discrete": [(discrete(case, seed), 1) for case in range(10)],
        "one, Gaussian like a table": [(like_table(X, seed), 1) for _, X in columns_of(half)][:30],
        **{f"several, {low} to {high} apart": [known_number(case, seed, (low, high)) for case in range(30)]
           for low, high in (FAR, NEAR)},
    }  # fmt: skip
    for name, find in COUNTERS.items():
        for world, some in worlds.items():
            seconds, found = spend(lambda some=some, find=find: [find(_standard(X)) for X, _ in some])
            yield {"side": name, "world": world, "found": found, "right": [K for _, K in some], "cpu_s": seconds}


def classes(half: str) -> Iterator[Row]:
    """The number of clusters that each finds in tables with classes."""
    for table in tables("classification", half):
        X, y = table.arrays()
        if len(X) <= 1000 and X.shape[1] <= 20:
            found = {name: find(_standard(X)) for name, find in COUNTERS.items()}
            yield {"table": table.name, "classes": int(y.max()) + 1, "found": found}


DRAWS = 39
"""Of one Gaussian, for the p-value of a split by its gain in likelihood."""
LEVEL = 0.05
"""Of the p-values."""


def verdicts(X: np.ndarray) -> dict[str, bool]:
    """Whether each test says that a table is not one cluster, or not noise."""
    Z, (n, N) = _standard(X), X.shape
    values = np.linalg.eigvalsh(np.cov(Z.T, bias=True).reshape(N, N))
    return {
        "valley": mixtures.find_clusters(X).count > 1,
        "largest eigenvalue": bool(judge_spread(values[-1], values.sum(), n, N) < LEVEL),
        "gain of two Gaussians": bool(judge_gain(Z, DRAWS) < LEVEL),
    }


def splits(half: str, tables_of_a_kind: int = 6) -> Iterator[Row]:
    """How often each test of a split says that there is one, by the kind of the table."""
    seed = seed_of(half)
    cases = {
        kind: [one_cluster(k + 10 * i, seed) for i in range(tables_of_a_kind)] for k, kind in enumerate(KINDS_OF_NOISE)
    }
    cases["discrete"] = [discrete(case, seed) for case in range(tables_of_a_kind)]
    cases["Gaussian like a table"] = [like_table(X, seed) for _, X in columns_of(half)][:30]
    for separation in (2.0, 2.5, 3.0, 3.5, 4.0):
        for share in (0.5, 0.2):
            cases[f"two Gaussians, {separation} apart, share {share}"] = [
                close_pair(seed + i, 2, 5, separation, np.array([share, 1 - share]), 400)
                for i in range(2 * tables_of_a_kind)
            ]
    for kind, some in cases.items():
        said = [verdicts(X) for X in some]
        yield {"kind": kind, "tables": len(said), **{name: sum(one[name] for one in said) for name in said[0]}}


def _standard(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)


PAIRS = ((2, 2, 4.0, 0.5), (2, 5, 3.5, 0.5), (3, 5, 4.0, 0.5), (4, 5, 3.5, 0.5), (5, 10, 4.0, 0.5), (2, 5, 4.0, 0.25),
         (5, 3, 5.0, 0.5), (2, 2, 3.5, 0.25), (3, 5, 4.0, 0.25), (4, 3, 4.5, 0.2), (5, 10, 4.5, 0.25),
         (2, 10, 4.0, 0.15))  # fmt: skip
"""Clusters, columns, separation of the close pair, and the share of its first cluster in it."""
RUNS = 16
"""Samples at each number of rows."""


def rows_wanted(half: str) -> Iterator[Row]:
    """The rows needed in theory, and how often the split is seen in fewer and in more rows."""
    for K, N, separation, share in PAIRS:
        shares = np.array([2 * share / K, 2 * (1 - share) / K] + [1 / K] * (K - 2))
        wanted = mixtures.rows_needed(separation, columns=N, shares=(shares[0], shares[1]))
        samples = {n: [close_pair(seed_of(half) + run, K, N, separation, shares, round(n)) for run in range(RUNS)]
                   for n in (wanted / FACTOR, wanted * FACTOR)}  # fmt: skip
        fewer, more = (
            float(np.mean([mixtures.find_clusters(X).count == K for X in some])) for some in samples.values()
        )
        yield {"clusters": K, "columns": N, "separation": separation, "share": share, "wanted": wanted, "fewer": fewer,
               "more": more}  # fmt: skip


MEASURES = {
    "likelihood": likelihoods,
    "clusters": numbers,
    "rows": rows_wanted,
    "splits": splits,
    "classes": classes,
}
KEPT = ("likelihood", "clusters", "rows")
"""What the page has."""


def main(words: list[str] | None = None) -> None:
    """Print a line for each case; keep what is on the page, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*MEASURES, "page"])
    parser.add_argument("half", choices=["development", "report"], nargs="?", default="development")
    given = parser.parse_args(words)
    rows: list[Row] = []
    if given.what != "page":
        warnings.simplefilter("ignore")
        for row in MEASURES[given.what](given.half):
            rows.append(row)
            print(json.dumps(rounded(row)), flush=True)
        if given.what in KEPT:
            print(counted(given.what, rows))
        if given.half == "development" or given.what not in KEPT:
            return
    found: Row = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if rows:
        found |= {given.what: rounded(rows), "machine": page.machine()}
        RESULTS.write_text(json.dumps(found) + "\n")
    if all(name in found for name in KEPT):
        page.PAGE.write_text(page.replaced(page.PAGE.read_text(), page.MIXTURES, words_of(found)))


if __name__ == "__main__":
    main()
