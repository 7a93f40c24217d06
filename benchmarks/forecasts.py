"""Forecasts of real estimators from real tables: `quenched.forecast` beside families fitted to the same measured curve.

From n = 100, 200, 400 or 1,000 rows of a table, in turn from split to split as far as it has enough for the truth, the
error of eight estimators with 4n rows is forecast. The truth is the mean error of
estimators trained on random sets of n and of 4n rows that share no row with those seen, each judged by rows that it has not
seen either. Cases in which fewer than ten of the rows seen are expected to be wrong are left out. Families (last value, pow3, pow4, mmf4, wbl4, with weights 1/se^2) are fitted to the curve that `forecast`
measured. Besides the relative error: the coverage of the 80% interval, and the regret of the rule "buy four times the
rows if the error falls by more than 5%", as what the rule loses against who knows the truth, in shares of the
error. Defaults were chosen on the `development` half of the tables; the `report` half was run once.

    python -m benchmarks.forecasts measure FILE HALF [tables] [splits]   # adds to FILE what is missing there
    python -m benchmarks.forecasts print FILE [HALF]                     # prints the tables

All tables are measured once before any is measured a second time, and each split of a table is written when it is
done: the run can be stopped and continued at any time, and what is there can be printed.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import ensemble, linear_model, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree
from sklearn.base import BaseEstimator, clone

from benchmarks import extrapolation
from benchmarks.curves import Curve
from benchmarks.page import table
from benchmarks.tables import CLASSES, VALUES, Table, tables
from quenched.forecasting import forecast

SIZES, TIMES, TRUTHS, JUDGED = (100, 200, 400, 1000), 4, 5, 2000
"""Rows seen, how many times as many are forecast, training sets behind a truth, and rows that judge each."""
FEWEST_WRONG = 10
"""Rows seen that are expected to be wrong: with fewer, an error rate is hardly known, and the forecast is "rough"."""
AIM = 0.05
"""Relative gain that four times the rows are bought for."""


def estimators(task: str) -> dict[str, BaseEstimator]:
    """Eight of them, with standardised inputs where that is usual."""
    scaled = lambda last: pipeline.make_pipeline(preprocessing.StandardScaler(), last)  # noqa: E731
    if task == CLASSES:
        return {
            "logistic": scaled(linear_model.LogisticRegression(max_iter=300)), "knn": scaled(neighbors.KNeighborsClassifier()),
            "svm": scaled(svm.SVC()), "tree": tree.DecisionTreeClassifier(random_state=0),
            "forest": ensemble.RandomForestClassifier(30, random_state=0),
            "boosting": ensemble.GradientBoostingClassifier(n_estimators=40, max_features="sqrt", random_state=0),
            "bayes": naive_bayes.GaussianNB(),
            "mlp": scaled(neural_network.MLPClassifier(hidden_layer_sizes=(32,), max_iter=80, random_state=0)),
        }  # fmt: skip
    return {
        "ridge": scaled(linear_model.Ridge()), "lasso": scaled(linear_model.LassoCV(cv=3)),
        "knn": scaled(neighbors.KNeighborsRegressor()),
        "svm": pipeline.make_pipeline(preprocessing.StandardScaler(), _Standardised(svm.SVR())),
        "tree": tree.DecisionTreeRegressor(random_state=0), "forest": ensemble.RandomForestRegressor(30, random_state=0),
        "boosting": ensemble.GradientBoostingRegressor(n_estimators=60, max_features="sqrt", random_state=0),
        "mlp": pipeline.make_pipeline(preprocessing.StandardScaler(), _Standardised(neural_network.MLPRegressor(hidden_layer_sizes=(32,), max_iter=80, random_state=0))),
    }  # fmt: skip


class _Standardised(BaseEstimator):
    """A regressor of the standardised target."""

    _estimator_type = "regressor"

    def __init__(self, inner: Any = None):
        self.inner = inner

    def fit(self, X: Any, y: Any) -> _Standardised:
        self.centre_, self.scale_ = np.mean(y), np.std(y) or 1.0
        self.inner_ = clone(self.inner).fit(X, (y - self.centre_) / self.scale_)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.centre_ + self.scale_ * self.inner_.predict(X)


def chosen(half: str, count: int) -> list[Table]:
    """Tables that are large enough, as many of each task."""
    found = []
    for task in (CLASSES, VALUES):
        large = [t for t in tables(task, half) if _fits(*t.arrays(), task)]
        found += sorted(large, key=lambda t: t.seed)[: count // 2]
    return found


def _fits(X: np.ndarray, y: np.ndarray, task: str) -> bool:
    """Whether there are rows enough for a truth, and no more than ten classes: boosting grows trees for each."""
    return len(X) >= (TIMES + 1) * SIZES[0] + 500 and (task == VALUES or len(np.unique(y)) <= 10)


def rows_seen(one: Table, rows: int, split: int) -> int:
    """Rows that are seen of a table in a split: the sizes that leave enough for the truth, in turn."""
    sizes = [size for size in SIZES if (TIMES + 1) * size + 500 <= rows]
    return sizes[(one.seed + split) % len(sizes)]


def draw(one: Table, y: np.ndarray, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are seen and the rest, without classes that a user would have to leave out; none where one is left."""
    order = np.random.default_rng([one.seed, split]).permutation(len(y))
    n = rows_seen(one, len(y), split)
    seen, rest = order[:n], order[n:]
    if CLASSES in one.tasks:
        values, counts = np.unique(y[seen], return_counts=True)
        kept = values[counts >= 10] if np.sum(counts >= 10) > 1 else values[:0]
        seen, rest = seen[np.isin(y[seen], kept)], rest[np.isin(y[rest], kept)]
    return seen, rest


def cases(one: Table, X: np.ndarray, y: np.ndarray, split: int) -> Iterator[dict[str, Any]]:
    """What is forecast of a table in a split and what comes to be, for each estimator."""
    task = CLASSES if CLASSES in one.tasks else VALUES
    (seen, rest), rng = draw(one, y, split), np.random.default_rng([one.seed, split, 1])
    if not len(seen):
        return
    for name, model in estimators(task).items():
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = forecast(model, X[seen], y[seen], examples=[len(seen), TIMES * len(seen)], random_state=split)
            cost = time.process_time() - began
            truth = [truths(model, X, y, rest, m * len(seen), task, np.std(y[seen]), rng) for m in (1, TIMES)]
        yield {"table": one.name, "half": one.half, "task": task, "split": split, "rows": len(seen), "estimator": name,
               "cpu": cost, "cpu_truth": time.process_time() - began - cost, "truth": truth,
               "grade": answer.attrs["grade"], "reasons": answer.attrs["reasons"],
               **{k: answer[k].values.tolist() for k in ("error", "error_low", "error_high", "gain", "size",
                  "curve_error", "curve_stderr", "curve_training")}}  # fmt: skip


def truths(
    model: Any, X: np.ndarray, y: np.ndarray, rest: np.ndarray, m: int, task: str, scale: float, rng: np.random.Generator
) -> tuple[float, float]:  # fmt: skip
    """The mean error with m rows over training sets, and its standard error."""
    found = []
    for _ in range(TRUTHS):
        order = rng.permutation(rest)
        fitted = clone(model).fit(X[order[:m]], y[order[:m]])
        test = order[m : m + JUDGED]
        off = (
            fitted.predict(X[test]) != y[test]
            if task == CLASSES
            else ((fitted.predict(X[test]) - y[test]) / scale) ** 2
        )
        found.append(np.mean(off))
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(TRUTHS))


OURS = "`quenched.forecast`"


def judge(rows: list[dict[str, Any]]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of each method the errors that it forecasts, and by which factor the error changes."""
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name in extrapolation.FAMILIES:
        ends = []
        for r in rows:
            size, error, stderr = (np.array(r[k]) for k in ("size", "curve_error", "curve_stderr"))
            seen = Curve(0, 0, size, error, stderr, None)
            ends.append([extrapolation.fit(name, seen, times * r["rows"]) for times in (1, TIMES)])
        now, ahead = np.array(ends).T
        found[name] = ahead, ahead / np.maximum(now, 1e-9)
    ours = np.array([r["error"] for r in rows])
    gain = truth_of(rows, TIMES) / truth_of(rows, 1)
    found[OURS] = ours[:, 1], np.array([r["gain"][1] for r in rows])
    return found | {"the same, had the gain been known": (ours[:, 0] * gain, gain)}


def truth_of(rows: list[dict[str, Any]], times: int) -> np.ndarray:
    """What came to be with so many times the rows."""
    return np.array([r["truth"][(1, TIMES).index(times)][0] for r in rows])


def regret_of(gain: np.ndarray, known: np.ndarray) -> np.ndarray:
    """What the rule to buy loses against who knows the truth, in shares of the error."""
    won = 1 - known - AIM
    return np.maximum(won, 0) - np.where(1 - gain > AIM, won, 0)


def report(rows: list[dict[str, Any]]) -> str:
    """The tables of the page."""
    asked, rows = len(rows), [r for r in rows if np.isfinite(r["error"][1])]
    true, found = truth_of(rows, TIMES), judge(rows)
    known = true / truth_of(rows, 1)
    errors = {name: np.abs(ahead / true - 1) for name, (ahead, _) in found.items()}
    lines = [(name, f"{np.median(e):.3f}", f"{np.quantile(e, 0.9):.2f}",
              f"{np.mean(regret_of(found[name][1], known)):.4f}",
              f"{np.median(np.abs(found[name][1] / known - 1)):.3f}") for name, e in errors.items()]  # fmt: skip
    best = min(extrapolation.FAMILIES, key=lambda name: np.median(errors[name]))
    names, sizes = (np.array([r[k] for r in rows]) for k in ("table", "rows"))
    inside = np.mean([r["error_low"][1] <= t <= r["error_high"][1] for r, t in zip(rows, true, strict=True)])
    width = np.median([np.log(r["error_high"][1] / r["error_low"][1]) for r in rows])
    ratio, p = bootstrap(errors[OURS], errors[best], names)
    parts = [(f"up to {n}", str(int(c.sum())), f"{np.median(errors[best][c]):.3f}", f"{np.median(errors[OURS][c]):.3f}")
             for c, n in ((_between(sizes, k), SIZES[k]) for k in range(len(SIZES))) if c.any()]  # fmt: skip
    return "\n\n".join([
        f"{len(rows)} forecasts to {TIMES} times the rows, {len(set(names))} tables; {asked - len(rows)} more refused.",
        table(("method", "median relative error", "90th percentile", "mean regret", "median error of the gain"), lines),
        f"Median error over that of the best family, {best}: {ratio:.2f} (bootstrap over tables: p = {p:.3f} for no less "
        f"than 1). The 80% interval contains the truth in {inside:.1%}; its median width in the log is {width:.2f}.",
        table(("rows", "forecasts", f"median error of {best}", f"of {OURS}"), parts),
    ])  # fmt: skip


def _between(sizes: np.ndarray, k: int) -> np.ndarray:
    """Which numbers of rows lie above one size and up to the next; rows of small classes were left out."""
    return (sizes <= SIZES[k]) & (sizes > (SIZES[k - 1] if k else 0))


def bootstrap(ours: np.ndarray, theirs: np.ndarray, names: np.ndarray) -> tuple[float, float]:
    """The ratio of medians, and how often it is at least 1 over tables drawn again."""
    rng, places = np.random.default_rng(0), [np.flatnonzero(names == name) for name in np.unique(names)]
    ratios = []
    for _ in range(2000):
        i = np.concatenate([places[k] for k in rng.integers(len(places), size=len(places))])
        ratios.append(np.median(ours[i]) / np.median(theirs[i]))
    return float(np.median(ours) / np.median(theirs)), float(np.mean(np.array(ratios) >= 1))


def main() -> None:
    """Measure, or print."""
    what, path = sys.argv[1], Path(sys.argv[2])
    half = sys.argv[3] if len(sys.argv) > 3 else None
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if what == "print":
        rows = [r for r in rows if half in (None, r["half"])]
        print(report([r for r in rows if is_judged(r)]))
        return
    count, splits = (int(v) for v in (*sys.argv[4:], 8, 3)[:2])
    done = {(r["table"], r["split"]) for r in rows}
    large = [(one, *one.arrays()) for one in chosen(str(half), count)]
    for split in range(splits):
        for one, X, y in large:
            if (one.name, split) not in done:
                found = list(cases(one, X, y, split))
                with path.open("a") as file:
                    file.writelines(json.dumps(r) + "\n" for r in found)
                print(one.name, split, len(found), f"{time.process_time():.0f} s", flush=True)


def is_judged(row: dict[str, Any]) -> bool:
    """Whether so many of the rows seen are expected to be wrong that the error can be measured at all."""
    return row["task"] == VALUES or row["truth"][0][0] * row["rows"] >= FEWEST_WRONG


if __name__ == "__main__":
    main()
