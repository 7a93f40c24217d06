"""What outlier selection buys on real data: scikit-learn's own tables, with 30% of the training rows corrupted.

Five kinds of corruption, one of which selection cannot see through and one of which is none at all; the test rows are
always clean. Beside the two selections: the nearest class mean (the Hebb rule of many classes), logistic regression and
linear discriminant analysis after a robust scaling. The last two columns say how well `outlier_probability_` tells
corrupted training rows from the others (area under the curve; 0.5 is guessing), and which share of outliers soft
selection found.

Run `python examples/outliers_real_data.py [splits]`; it prints a table.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler

from quenched.estimators import HardSelectionClassifier, SoftSelectionClassifier

SHARE = 0.3  # of the training rows
TABLES = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
MODELS = ("soft", "hard", "nearest mean", "logistic", "robust LDA")


# --8<-- [start:corrupt]
def corrupt(X: np.ndarray, y: np.ndarray, kind: str, rng: np.random.Generator):
    """The table with some of its rows corrupted, and which rows differ from what they were."""
    new, labels, classes = X.copy(), y.copy(), np.unique(y)
    bad, deviation = rng.permutation(len(y))[: round(SHARE * len(y))], X.std(axis=0)
    if kind == "random labels":
        labels[bad] = rng.choice(classes, len(bad))
    elif kind == "next label":  # always the same mistake
        labels[bad] = classes[(np.searchsorted(classes, y[bad]) + 1) % len(classes)]
    elif kind == "noisy rows":  # the label is right, the features are broad noise
        new[bad] = rng.normal(X.mean(axis=0), 3 * deviation, X[bad].shape)
    elif kind == "stuck rows":  # outliers that agree: every feature at its maximum, all labelled the same
        new[bad], labels[bad] = rng.normal(X.max(axis=0), 0.1 * deviation, X[bad].shape), classes[0]
    return new, labels, np.any(new != X, axis=1) | (labels != y)


# --8<-- [end:corrupt]


class Row(NamedTuple):
    """One line of the table; means and standard errors over the splits."""

    table: str
    kind: str
    accuracy: np.ndarray  # [models]
    stderr: np.ndarray  # [models]
    gain: tuple[float, float]  # soft selection minus nearest mean, paired
    found: float  # area under the curve of `outlier_probability_`
    share: float  # estimated


def models() -> list:
    """What is compared, in the order of `MODELS`."""
    plain = [SoftSelectionClassifier(), HardSelectionClassifier(), NearestCentroid(), LogisticRegression(max_iter=500)]
    scaled = [make_pipeline(StandardScaler(), model) for model in plain]
    return [*scaled, make_pipeline(RobustScaler(), LinearDiscriminantAnalysis())]


def one(X: np.ndarray, y: np.ndarray, kind: str, seed: int) -> tuple[list[float], float, float]:
    """Accuracies, area and share of one split."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    X, y, bad = corrupt(X, y, kind, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # digits have constant features, of which NearestCentroid warns
        fitted = [model.fit(X, y) for model in models()]
    soft = fitted[0][-1]
    area = roc_auc_score(bad, soft.outlier_probability_) if bad.any() else np.nan
    return [model.score(X_test, y_test) for model in fitted], float(area), soft.outlier_fraction_


def run(splits: int = 20) -> Iterator[Row]:
    """All tables and kinds of corruption."""
    for name, load in TABLES.items():
        X, y = load(return_X_y=True)
        for kind in ("none", "random labels", "next label", "noisy rows", "stuck rows"):
            each, areas, shares = zip(*(one(X, y, kind, seed) for seed in range(splits)), strict=True)
            each = np.array(each)
            gain = each[:, 0] - each[:, 2]
            stderr = each.std(axis=0, ddof=1) / np.sqrt(splits)
            pair = float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(splits))
            yield Row(name, kind, each.mean(axis=0), stderr, pair, float(np.mean(areas)), float(np.mean(shares)))


def main(splits: int = 20) -> None:
    """Print the table."""
    print(f"accuracy on clean test rows, mean and standard error of {splits} splits")
    print(f"{'table':14}{'corruption':15}", *(f"{name:>13}" for name in MODELS), f"{'soft - mean':>15}  area  share")
    for r in run(splits):
        cells = [f"{a:.3f}±{s:.3f}".rjust(13) for a, s in zip(r.accuracy, r.stderr, strict=True)]
        cells += [f"{r.gain[0]:+.3f}±{r.gain[1]:.3f}".rjust(15), f"{r.found:5.2f}  {r.share:5.2f}"]
        print(f"{r.table:14}{r.kind:15}", *cells)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
