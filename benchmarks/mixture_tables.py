"""Mixtures on real tables: likelihood, cost and the number of clusters, beside scikit-learn.

Columns are standardised. `python -m benchmarks.mixture_tables likelihood development` compares likelihoods.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.mixture import GaussianMixture

from benchmarks.tables import tables
from quenched import mixtures

MOST_ROWS = 5000
"""Of a table; of larger ones this many are drawn."""
KINDS: dict[str, tuple[str, Any]] = {
    "full": ("full", mixtures.Full()),
    "tied": ("tied", mixtures.Full(common=True)),
    "diagonal": ("diag", mixtures.Diagonal()),
    "spherical": ("spherical", mixtures.Spherical()),
}
"""Covariances, by scikit-learn's names and ours."""
SAME = 1e-3
"""Log-likelihoods of a row that differ by less are equal."""


class Density(NamedTuple):
    """A mixture found."""

    seconds: float  # processor time
    level: float  # mean log-likelihood of the training rows
    held_out: float  # of the others
    fewest: float  # rows of the smallest component


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


def theirs(kind: str, K: int, X: np.ndarray, test: np.ndarray) -> Density:
    """The best of ten starts of scikit-learn's mixture."""
    model = GaussianMixture(K, covariance_type=KINDS[kind][0], n_init=10, random_state=0)
    seconds, _ = spend(lambda: model.fit(X))
    return Density(seconds, model.score(X), model.score(test), effective(model.predict_proba(X)))


def ours(kind: str, K: int, X: np.ndarray, test: np.ndarray) -> Density:
    """Ours at its defaults."""
    from quenched.estimators import AnnealedMixture

    model = AnnealedMixture(K, widths=KINDS[kind][1], random_state=0)
    seconds, _ = spend(lambda: model.fit(X))
    return Density(seconds, model.score(X), model.score(test), effective(model.predict_proba(X)))


def likelihoods(half: str, kinds: list[str], sizes: list[int]) -> Iterator[tuple]:
    """Every table, kind and number of components."""
    for name, X in columns_of(half):
        train, test = X[: len(X) * 3 // 4], X[len(X) * 3 // 4 :]
        for kind in kinds:
            for K in sizes:
                yield name, X.shape, kind, K, theirs(kind, K, train, test), ours(kind, K, train, test)


def main() -> None:
    """Print a line for each case, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["likelihood"])
    parser.add_argument("half", choices=["development", "report"])
    parser.add_argument("--kinds", default="full")
    parser.add_argument("--sizes", default="3,5")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for row in likelihoods(given.half, given.kinds.split(","), [int(K) for K in given.sizes.split(",")]):
        rows.append(row)
        name, shape, kind, K, a, b = row
        verdict = "" if b.level >= a.level - SAME else "BELOW"
        print(f"{name:22s}{shape!s:12s}{kind:6s}{K}  {a.level:9.4f} {b.level:9.4f} {b.level - a.level:+8.4f}  held out "
              f"{b.held_out - a.held_out:+8.4f}  {a.seconds:6.2f} {b.seconds:6.2f} s  rows {a.fewest:6.1f} "
              f"{b.fewest:6.1f} {verdict}", flush=True)  # fmt: skip
    below = sum(b.level < a.level - SAME for *_, a, b in rows)
    print(f"below: {below} of {len(rows)}; CPU {sum(a.seconds for *_, a, b in rows):.1f} / "
          f"{sum(b.seconds for *_, a, b in rows):.1f} s")  # fmt: skip


if __name__ == "__main__":
    main()
