"""Calibration of class probabilities: `FieldClassifier` beside scikit-learn's classifiers, one run.

The calibration error is the mean over rows of the distance between the probability of the predicted class and how
often it is right, in ten bins of that probability; probabilities are those of rows held out in five folds, repeated
with other folds. Probabilities that are right have an error, too, because rows are few: the column "by chance" is the
mean error if classes were drawn from the probabilities themselves, and "p" the share of such draws with at least the
error that was found.

The tables are those of the report half of the registry with at most 700 rows and 20 columns.

Run `python -m benchmarks.class_calibration [TABLE ...]`; it takes a few minutes.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import tables
from quenched.estimators import FieldClassifier

FOLDS, REPEATS, BINS, DRAWS = 5, 2, 10, 200
"""Folds, how often rows are dealt out anew, bins of the confidence, and draws of classes."""
MOST_ROWS, MOST_COLUMNS = 700, 20
"""Of a table."""
MODELS = {
    "FieldClassifier": FieldClassifier,
    "LogisticRegression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "GaussianProcessClassifier": lambda: make_pipeline(StandardScaler(), GaussianProcessClassifier(1.0 * RBF(1.0))),
}


def chosen() -> list[str]:
    """Tables of the report half, by size."""
    sizes = {table.name: table.arrays()[0].shape for table in tables.tables(tables.CLASSES, "report")}
    return [name for name, (rows, columns) in sizes.items() if rows <= MOST_ROWS and columns <= MOST_COLUMNS]


def calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """The mean distance of confidence and accuracy over bins of the confidence."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    at = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return float(np.sum(np.abs(np.bincount(at, confidence - right, BINS))) / len(labels))


def by_chance(P: np.ndarray) -> np.ndarray:
    """Errors of calibrated probabilities: classes are drawn from them."""
    rng, edges = np.random.default_rng(0), np.cumsum(P, axis=1)[:, :-1]
    return np.array([calibration_error(P, np.sum(rng.uniform(size=(len(P), 1)) > edges, axis=1)) for _ in range(DRAWS)])


def judge(name: str, X: np.ndarray, labels: np.ndarray) -> tuple[float, ...]:
    """Calibration error, that by chance, its p-value, log-loss, accuracy and CPU seconds of one model on one table."""
    started, found = time.process_time(), []
    for repeat in range(REPEATS):
        P = np.zeros((len(labels), labels.max() + 1))
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=repeat).split(X, labels):
            P[test] = MODELS[name]().fit(X[train], labels[train]).predict_proba(X[test])
        right, error, drawn = (
            np.maximum(P[np.arange(len(labels)), labels], 1e-300),
            calibration_error(P, labels),
            by_chance(P),
        )
        found.append(
            [error, drawn.mean(), np.mean(drawn >= error), -np.log(right).mean(), np.mean(P.argmax(axis=1) == labels)]
        )
    return (*np.mean(found, axis=0), time.process_time() - started)


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(
        "| table | rows | columns | classes | model | calibration error | by chance | p | log-loss | accuracy | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for table in sys.argv[1:] or chosen():
        X, labels = tables.TABLES[table].arrays()
        for model in MODELS:
            error, chance, p, loss, accuracy, seconds = judge(model, X, labels)
            print(
                f"| {table} | {len(X)} | {X.shape[1]} | {labels.max() + 1} | {model} | {error:.4f} | {chance:.4f} | "
                f"{p:.2f} | {loss:.4f} | {accuracy:.4f} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
