"""Calibration of class probabilities on seven tables: `FieldClassifier` beside scikit-learn's classifiers, one run.

The calibration error is the mean over rows of the distance between the probability of the predicted class and how
often it is right, in ten bins of that probability; probabilities are those of rows held out in five folds, repeated
with other folds. The tables are those of the registry.

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

FOLDS, REPEATS, BINS = 5, 2, 10
MODELS = {
    "FieldClassifier": FieldClassifier,
    "LogisticRegression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "GaussianProcessClassifier": lambda: make_pipeline(StandardScaler(), GaussianProcessClassifier(1.0 * RBF(1.0))),
}


TABLES = ("iris", "wine", "breast cancer", "pima", "haberman", "new thyroid", "bupa")
"""Of the registry `benchmarks.tables`."""


def calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """The mean distance of confidence and accuracy over bins of the confidence."""
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    at = np.minimum((confidence * BINS).astype(int), BINS - 1)
    return float(np.sum(np.abs(np.bincount(at, confidence - right, BINS))) / len(labels))


def judge(name: str, X: np.ndarray, labels: np.ndarray) -> tuple[float, float, float, float]:
    """Calibration error, log-loss, accuracy and CPU seconds of one model on one table."""
    started, found = time.process_time(), []
    for repeat in range(REPEATS):
        P = np.zeros((len(labels), labels.max() + 1))
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=repeat).split(X, labels):
            P[test] = MODELS[name]().fit(X[train], labels[train]).predict_proba(X[test])
        right = np.maximum(P[np.arange(len(labels)), labels], 1e-300)
        found.append([calibration_error(P, labels), -np.log(right).mean(), np.mean(P.argmax(axis=1) == labels)])
    error, loss, accuracy = np.mean(found, axis=0)
    return float(error), float(loss), float(accuracy), time.process_time() - started


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| table | rows | columns | classes | model | calibration error | log-loss | accuracy | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for table in sys.argv[1:] or TABLES:
        X, labels = tables.TABLES[table].arrays()
        for model in MODELS:
            error, loss, accuracy, seconds = judge(model, X, labels)
            print(
                f"| {table} | {len(X)} | {X.shape[1]} | {labels.max() + 1} | {model} | {error:.4f} | {loss:.4f} | "
                f"{accuracy:.4f} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
