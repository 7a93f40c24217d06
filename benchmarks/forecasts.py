"""Forecasts of real estimators from real tables: `quenched.forecast` beside families fitted to the same measured curve.

From n = 100, 200 or 400 rows of a table the error of eight estimators with 4n rows is forecast. The truth is the mean error of
estimators trained on random sets of n and of 4n rows that share no row with those seen, each judged by rows that it has not
seen either. Cases in which fewer than ten of the rows seen are expected to be wrong are left out. Families (last value, pow3, pow4, mmf4, wbl4, with weights 1/se^2) are fitted to the curve that `forecast`
measured. Besides the relative error: the coverage of the 80% interval, and the regret of the rule "buy four times the
rows if the error falls by more than 5%", as what the rule loses against who knows the truth, in shares of the
error. Defaults were chosen on the `development` half of the tables; the `report` half was run once.

    python -m benchmarks.forecasts measure FILE HALF [tables] [splits]   # adds to FILE what is missing there
    python -m benchmarks.forecasts print FILE [HALF]                     # prints the tables
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

SIZES, TIMES, TRUTHS, JUDGED = (100, 200, 400), 4, 5, 2000
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
            "boosting": ensemble.GradientBoostingClassifier(n_estimators=40, random_state=0),
            "bayes": naive_bayes.GaussianNB(),
            "mlp": scaled(neural_network.MLPClassifier(hidden_layer_sizes=(32,), max_iter=80, random_state=0)),
        }  # fmt: skip
    return {
        "ridge": scaled(linear_model.Ridge()), "lasso": scaled(linear_model.LassoCV(cv=3)),
        "knn": scaled(neighbors.KNeighborsRegressor()),
        "svm": pipeline.make_pipeline(preprocessing.StandardScaler(), _Standardised(svm.SVR())),
        "tree": tree.DecisionTreeRegressor(random_state=0), "forest": ensemble.RandomForestRegressor(30, random_state=0),
        "boosting": ensemble.GradientBoostingRegressor(n_estimators=60, random_state=0),
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


def cases(one: Table, splits: int) -> Iterator[dict[str, Any]]:
    """What is forecast of a table and what comes to be, for each split and estimator."""
    X, y = one.arrays()
    task = CLASSES if CLASSES in one.tasks else VALUES
    n = max(size for size in SIZES if (TIMES + 1) * size + 500 <= len(X))
    for split in range(splits):
        rng = np.random.default_rng([one.seed, split])
        order = rng.permutation(len(X))
        seen, rest = order[:n], order[n:]
        if task == CLASSES:  # classes that a user would have to leave out
            values, counts = np.unique(y[seen], return_counts=True)
            kept = values[counts >= 10]
            if len(kept) < 2:
                continue
            seen, rest = seen[np.isin(y[seen], kept)], rest[np.isin(y[rest], kept)]
        for name, model in estimators(task).items():
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = forecast(model, X[seen], y[seen], examples=[len(seen), TIMES * len(seen)], random_state=split)
                cost = time.process_time() - began
                truth = [truths(model, X, y, rest, m * len(seen), task, np.std(y[seen]), rng) for m in (1, TIMES)]
            yield {"table": one.name, "half": one.half, "task": task, "split": split, "estimator": name, "cpu": cost,
                   "truth": truth, "grade": answer.attrs["grade"], "reasons": answer.attrs["reasons"],
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


def report(rows: list[dict[str, Any]]) -> str:
    """The tables of the page."""
    ours = np.array([abs(r["error"][1] / r["truth"][1][0] - 1) for r in rows])
    measured = [
        Curve(0, 0, np.array(r["size"]), np.array(r["curve_error"]), np.array(r["curve_stderr"]), None) for r in rows
    ]
    at = np.array([r["error"][0] for r in rows]), np.array([TIMES * round(c.n[-1] / 0.9) for c in measured])
    ahead = {name: np.array([extrapolation.fit(name, c, m) for c, m in zip(measured, at[1], strict=True)])
             for name in extrapolation.FAMILIES}  # fmt: skip
    true = np.array([r["truth"][1][0] for r in rows])
    now = {name: [extrapolation.fit(name, c, c.n[-1] / 0.9) for c in measured] for name in ahead}
    gains = {name: v / np.maximum(now[name], 1e-9) for name, v in ahead.items()}
    gains["`quenched.forecast`"] = np.array([r["gain"][1] for r in rows])
    errors = {name: np.abs(v / true - 1) for name, v in ahead.items()} | {"`quenched.forecast`": ours}
    known = np.array([r["truth"][1][0] / r["truth"][0][0] for r in rows])
    won = np.array([1 - g - AIM for g in known])
    regret = {name: np.maximum(won, 0) - np.where(1 - g > AIM, won, 0) for name, g in gains.items()}
    lines = [(name, f"{np.median(e):.3f}", f"{np.quantile(e, 0.9):.2f}", f"{np.mean(regret[name]):.4f}",
              f"{np.median(np.abs(gains[name] / known - 1)):.3f}") for name, e in errors.items()]  # fmt: skip
    best = min(extrapolation.FAMILIES, key=lambda name: np.median(errors[name]))
    names = np.array([r["table"] for r in rows])
    inside = np.mean([r["error_low"][1] <= t <= r["error_high"][1] for r, t in zip(rows, true, strict=True)])
    width = np.median([np.log(r["error_high"][1] / r["error_low"][1]) for r in rows])
    ratio, p = bootstrap(ours, errors[best], names)
    return "\n\n".join([
        f"{len(rows)} forecasts to {TIMES} times the rows, {len(set(names))} tables.",
        table(("method", "median relative error", "90th percentile", "mean regret", "median error of the gain"), lines),
        f"Median error over that of the best family, {best}: {ratio:.2f} (bootstrap over tables: p = {p:.3f} for no less "
        f"than 1). The 80% interval contains the truth in {inside:.1%}; its median width in the log is {width:.2f}.",
    ])  # fmt: skip


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
        print(report([r for r in rows if r["task"] == VALUES or _wrong(r) >= FEWEST_WRONG]))
        return
    count, splits = (int(v) for v in (*sys.argv[4:], 8, 3)[:2])
    done = {r["table"] for r in rows}
    for one in chosen(str(half), count):
        if one.name not in done:
            found = list(cases(one, splits))
            with path.open("a") as file:
                file.writelines(json.dumps(r) + "\n" for r in found)
            print(one.name, len(found), flush=True)


def _wrong(row: dict[str, Any]) -> float:
    """How many of the rows seen are expected to be wrong."""
    return row["truth"][0][0] * row["size"][-1] / 0.9


if __name__ == "__main__":
    main()
