"""Mixtures on real tables: likelihood, cost and the number of clusters, beside scikit-learn.

Columns are standardised. `python -m benchmarks.mixture_tables likelihood development` compares likelihoods with the
best of ten starts of scikit-learn; `clusters development` the number of clusters in tables without any and in tables
with a known number, with the information criterion and with HDBSCAN; `classes development` that number in tables with
classes; `splits development` three tests of a split; `rows development` the rows that theory says it takes to see one
with samples of that size.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from sklearn.cluster import HDBSCAN
from sklearn.mixture import GaussianMixture

from benchmarks.tables import tables
from quenched import mixtures
from quenched.mixtures.learner.gains import judge_gain
from quenched.mixtures.learner.noise import judge_spread

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


def ours(kind: str, K: int, X: np.ndarray, test: np.ndarray, *, fewest: float | None = None) -> Density:
    """Ours at its defaults; with `fewest` 0 the likelihood alone decides, as in scikit-learn."""
    from quenched.estimators import AnnealedMixture

    rule = dataclasses.replace(KINDS[kind][1], fewest=fewest)
    model = AnnealedMixture(K, widths=rule, random_state=0)
    seconds, _ = spend(lambda: model.fit(X))
    return Density(seconds, model.score(X), model.score(test), effective(model.predict_proba(X)))


def likelihoods(half: str, kinds: list[str], sizes: list[int]) -> Iterator[tuple]:
    """Every table, kind and number of components."""
    for name, X in columns_of(half):
        train, test = X[: len(X) * 3 // 4], X[len(X) * 3 // 4 :]
        for kind in kinds:
            for K in sizes:
                both = ours(kind, K, train, test), ours(kind, K, train, test, fewest=0.0)
                yield name, X.shape, kind, K, theirs(kind, K, train, test), *both


def one_cluster(case: int, seed: int) -> np.ndarray:
    """A table without clusters: correlated, skewed, heavy-tailed or curved columns."""
    rng = np.random.default_rng([seed, case])
    N, n = (2, 5, 10)[case % 3], (150, 400, 1000)[case // 3 % 3]
    A = rng.normal(size=(N, N))
    C = A @ A.T + 0.3 * np.eye(N)
    d = np.sqrt(np.diag(C))
    plain = rng.normal(size=(n, N))
    joint = plain @ np.linalg.cholesky(C / np.outer(d, d)).T
    kinds: list[Callable[[], np.ndarray]] = [
        lambda: plain,
        lambda: joint,
        lambda: np.exp(0.5 * joint),
        lambda: np.exp(joint),
        lambda: stats.expon.ppf(stats.norm.cdf(joint)),
        lambda: joint / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3),
        lambda: rng.uniform(size=(n, N)),
        lambda: stats.gamma(2).ppf(stats.norm.cdf(plain)),
        lambda: np.where(np.arange(N) % 2, np.exp(0.8 * joint), joint),
        lambda: np.column_stack([joint[:, 0], joint[:, 1] + 0.4 * joint[:, 0] ** 2, *joint[:, 2:].T]),
    ]
    return kinds[case % len(kinds)]()


def discrete(case: int, seed: int) -> np.ndarray:
    """A table without clusters whose columns are counts or rounded."""
    rng = np.random.default_rng([seed, 2, case])
    joint = rng.normal(size=((150, 400, 1000)[case % 3], 4)) @ rng.normal(size=(4, 4))
    joint /= joint.std(axis=0)
    return stats.poisson(3).ppf(stats.norm.cdf(joint)) if case % 2 else np.round(1.5 * joint)


def like_table(X: np.ndarray, seed: int) -> np.ndarray:
    """One Gaussian with the covariance of a table, and at most 1,000 rows."""
    rng = np.random.default_rng([seed, 3, *X.shape])
    return rng.multivariate_normal(np.zeros(X.shape[1]), np.atleast_2d(np.cov(X.T)), size=min(len(X), 1000))


FAR, NEAR = (4.5, 6.0), (2.0, 4.0)
"""Standard deviations between the closest clusters."""


def known_number(case: int, seed: int, apart: tuple[float, float] = FAR) -> tuple[np.ndarray, int]:
    """A table of two to five clusters, the closest at a distance between these standard deviations, and their number."""
    rng = np.random.default_rng([seed, 1, case])
    N, n, kind = (2, 5, 10)[case % 3], (200, 500, 1000)[case // 3 % 3], case % 5
    K = 2 + case % 4 if N > 2 else 2 + case % 3
    w = np.array([0.1] + [0.9 / (K - 1)] * (K - 1)) if kind == 3 else np.full(K, 1 / K)
    c, least = np.zeros((K, N)), 0.0
    while not apart[0] < least < apart[1]:
        c = 3.0 * apart[1] / FAR[1] * rng.normal(size=(K, N))
        least = np.min(np.sqrt(((c[:, None] - c) ** 2).sum(axis=-1)) + 1e9 * np.eye(K))
    z, noise = rng.choice(K, size=n, p=w), rng.normal(size=(n, N))
    if kind == 1:
        noise = noise * rng.uniform(0.5, 1.0, size=(K, N))[z]
    elif kind == 2:
        s = stats.lognorm(0.5)
        noise = (np.exp(0.5 * noise) - s.mean()) / s.std()
    elif kind == 4:
        noise = noise / np.sqrt(rng.chisquare(5, size=(n, 1)) / 3)
    X = c[z] + noise
    return (X @ (0.5 * rng.normal(size=(N, N)) + np.eye(N)) if case % 2 else X), K


def close_pair(seed: int, K: int, N: int, separation: float, shares: np.ndarray, n: int) -> np.ndarray:
    """Gaussian clusters with a common covariance: two at a given distance, the others far away."""
    rng = np.random.default_rng([seed, K, N, n])
    c = np.zeros((K, N))
    v = rng.normal(size=N)
    c[1] = separation * v / np.linalg.norm(v)
    for k in range(2, K):
        while True:
            c[k] = 8.0 * rng.normal(size=N)
            if np.min(np.linalg.norm(c[k] - c[:k], axis=1)) > 9:
                break
    X = c[rng.choice(K, size=n, p=shares)] + rng.normal(size=(n, N))
    return X @ (0.5 * rng.normal(size=(N, N)) + np.eye(N))


def by_criterion(X: np.ndarray) -> int:
    """The number of Gaussians with the least information criterion."""
    models = [GaussianMixture(K, n_init=3, random_state=0).fit(X) for K in range(1, 11)]
    return int(np.argmin([model.bic(X) for model in models])) + 1


COUNTERS: dict[str, Callable[[np.ndarray], int]] = {
    "find_clusters": lambda X: mixtures.find_clusters(X).count,
    "GaussianMixture + BIC": by_criterion,
    "HDBSCAN": lambda X: max(1, int(HDBSCAN().fit_predict(X).max()) + 1),
    "HDBSCAN, at least n/20": lambda X: max(1, int(HDBSCAN(len(X) // 20).fit_predict(X).max()) + 1),
}
"""Ways to the number of clusters."""


def numbers(half: str) -> None:
    """Print how often each finds clusters where there are none, and how often the right number."""
    seed = 0 if half == "development" else 1000
    singles = {
        "false": [one_cluster(case, seed) for case in range(30)],
        "false, discrete": [discrete(case, seed) for case in range(10)],
        "false, Gaussian like a table": [like_table(X, seed) for _, X in columns_of(half)][:30],
    }
    known = {f"right, {apart} apart": [known_number(case, seed, apart) for case in range(30)] for apart in (FAR, NEAR)}
    for name, find in COUNTERS.items():
        begin, said = time.process_time(), []
        for what, alone in singles.items():
            said.append(f"{what} {sum(find(_standard(X)) > 1 for X in alone)}/{len(alone)}")
        for what, some in known.items():
            found = [(find(_standard(X)), K) for X, K in some]
            said.append(f"{what} {sum(a == K for a, K in found)}/{len(some)}, too many {sum(a > K for a, K in found)}")
        print(f"{name:24s} {'; '.join(said)}; {time.process_time() - begin:.0f} s", flush=True)


def classes(half: str) -> None:
    """Print the number of clusters that each finds in tables with classes."""
    for table in tables("classification", half):
        X, y = table.arrays()
        if len(X) <= 1000 and X.shape[1] <= 20:
            print(f"{table.name:24s} classes {y.max() + 1}:", {name: find(_standard(X)) for name, find in COUNTERS.items()},
                  flush=True)  # fmt: skip


DRAWS = 39
"""Of one Gaussian, for the p-value of a split by its gain in likelihood."""


def verdicts(X: np.ndarray) -> dict[str, bool]:
    """Whether each test says that a table is not one cluster, or not noise."""
    Z, (n, N) = _standard(X), X.shape
    values = np.linalg.eigvalsh(np.cov(Z.T, bias=True).reshape(N, N))
    return {
        "valley": mixtures.find_clusters(X).count > 1,
        "largest eigenvalue": judge_spread(values[-1], values.sum(), n, N) < LEVEL,
        "gain of two Gaussians": judge_gain(Z, DRAWS) < LEVEL,
    }


LEVEL = 0.05
"""Of the p-values."""
KINDS_OF_NOISE = ("isotropic", "correlated", "skewed", "very skewed", "exponential", "heavy tails", "uniform", "gamma",
                  "mixed columns", "curved")  # fmt: skip
"""Of `one_cluster`, in their order."""


def splits(half: str, tables_of_a_kind: int = 6) -> None:
    """Print how often each test of a split says that there is one, by the kind of the table."""
    seed = 0 if half == "development" else 1000
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
        print(
            f"{kind:40s}",
            ", ".join(f"{name} {sum(one[name] for one in said)}/{len(said)}" for name in said[0]),
            flush=True,
        )


def _standard(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)


PAIRS = ((2, 2, 4.0, 0.5), (2, 5, 3.5, 0.5), (3, 5, 4.0, 0.5), (4, 5, 3.5, 0.5), (5, 10, 4.0, 0.5), (2, 5, 4.0, 0.25),
         (5, 3, 5.0, 0.5), (2, 2, 3.5, 0.25), (3, 5, 4.0, 0.25), (4, 3, 4.5, 0.2), (5, 10, 4.5, 0.25),
         (2, 10, 4.0, 0.15))  # fmt: skip
"""Clusters, columns, separation of the close pair, and the share of its first cluster in it."""
FACTOR = 1.5
"""Of the rows needed, up and down."""


def rows_wanted(half: str, runs: int = 16) -> None:
    """Print the rows needed in theory, and how often the split is seen in fewer and in more rows: the number is right to
    the factor if that is less than half of the time and at least half of the time."""
    first, right = 0 if half == "development" else 1000, 0
    for K, N, separation, share in PAIRS:
        shares = np.array([2 * share / K, 2 * (1 - share) / K] + [1 / K] * (K - 2))
        wanted = mixtures.rows_needed(separation, columns=N, shares=(shares[0], shares[1]))
        fewer, more = (
            float(np.mean([mixtures.find_clusters(close_pair(first + run, K, N, separation, shares, round(n))).count == K
                           for run in range(runs)]))
            for n in (wanted / FACTOR, wanted * FACTOR)
        )  # fmt: skip
        right += fewer < 0.5 <= more
        print(f"K {K}, {N} columns, {separation} apart, share {share}: {wanted:.0f} rows; seen in {fewer:.2f} with "
              f"1/{FACTOR} of them, {more:.2f} with {FACTOR} times as many", flush=True)  # fmt: skip
    print(f"right to a factor {FACTOR}: {right} of {len(PAIRS)}")


def main() -> None:
    """Print a line for each case, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["likelihood", "clusters", "classes", "splits", "rows"])
    parser.add_argument("half", choices=["development", "report"])
    parser.add_argument("--kinds", default="full")
    parser.add_argument("--sizes", default="3,5")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what != "likelihood":
        {"clusters": numbers, "classes": classes, "splits": splits, "rows": rows_wanted}[given.what](given.half)
        return
    rows = []
    for row in likelihoods(given.half, given.kinds.split(","), [int(K) for K in given.sizes.split(",")]):
        rows.append(row)
        name, shape, kind, K, a, *both = row
        print(f"{name:22s}{shape!s:12s}{kind:10s}{K}  {a.level:9.4f} held out {a.held_out:9.4f} rows {a.fewest:6.1f} "
              f"{a.seconds:5.2f} s", end="", flush=True)  # fmt: skip
        for b in both:
            verdict = "" if b.level >= a.level - SAME else " BELOW"
            print(f" |{b.level - a.level:+8.4f}{verdict} held out {b.held_out - a.held_out:+8.4f} rows {b.fewest:6.1f} "
                  f"{b.seconds:5.2f} s", end="", flush=True)  # fmt: skip
        print()
    for name, place in (("theirs", 4), ("ours", 5), ("ours, fewest=0", 6)):
        those = [row[place] for row in rows]
        below = sum(b.level < row[4].level - SAME for b, row in zip(those, rows, strict=True))
        worse = sum(b.held_out < row[4].held_out - SAME for b, row in zip(those, rows, strict=True))
        print(
            f"{name}: below {below} of {len(rows)}, on rows held out {worse}; CPU {sum(b.seconds for b in those):.1f} s"
        )


if __name__ == "__main__":
    main()
