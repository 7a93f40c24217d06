"""Tables and settings of every estimator: good ones, and every kind of bad one that a user may bring."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse

from quenched import estimators, mixtures, outliers, prototypes
from tests.properties.arguments import usual

ROWS = 24


def lumps(seed: int, columns: int, rows: int = ROWS) -> np.ndarray:
    """Random rows in two lumps, one after the other."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)) + 3.0 * (np.arange(rows) % 2)[:, None]


def _put(X: np.ndarray, value: Any, kind: Any = float) -> np.ndarray:
    """The same with one other entry."""
    other = X.astype(kind)
    other[len(X) // 2, 0] = value
    return other


TABLES: dict[str, Callable[[np.ndarray], Any]] = {
    "plain": lambda X: X,
    "list": lambda X: X.tolist(),
    "frame": lambda X: pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]),
    "integers": lambda X: (10 * X).astype(int),
    "booleans": lambda X: X > 1,
    "single": lambda X: X.astype(np.float32),
    "objects": lambda X: X.astype(object),
    "duplicates": lambda X: np.repeat(X[:4], 6, axis=0)[: len(X)],
    "constant column": lambda X: np.column_stack([X[:, :-1], np.ones(len(X))]),
    "constant": np.ones_like,
    "zero": np.zeros_like,
    "two rows": lambda X: X[:2],
    "one row": lambda X: X[:1],
    "wide": lambda X: np.tile(X[:5], (1, 8)),
    "far": lambda X: 1e8 + 1e-3 * X,
    "very far": lambda X: 1e16 + X,
    "outlier": lambda X: _put(X, 1e12),
    "small": lambda X: 1e-150 * X,
    "smallest": lambda X: 1e-300 * X,
    "large": lambda X: 1e130 * X,
    "largest": lambda X: 1e300 * X,
    "scales": lambda X: X * np.geomspace(1e-150, 1e120, X.shape[1]),
    "mixed": lambda X: X * np.geomspace(1e-300, 1e300, len(X))[:, None],
    "vanishing squares": lambda X: 1e-160 * X,
    "masked": lambda X: np.ma.masked_greater(X, 2.0),
    "nan": lambda X: _put(X, np.nan),
    "infinite": lambda X: _put(X, np.inf),
    "word": lambda X: _put(X, "word", object),
    "none": lambda X: _put(X, None, object),
    "words": lambda X: X.astype(str),
    "complex": lambda X: X + 1j,
    "sparse": sparse.csr_matrix,
    "empty": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "vector": lambda X: X[:, 0],
    "cube": lambda X: X[:, :, None],
    "number": lambda X: 3.0,
    "nothing": lambda X: None,
    "text": lambda X: "text",
}

CLASSES: dict[str, Callable[[int], Any]] = {
    "two": lambda n: np.arange(n) % 2,
    "three": lambda n: np.arange(n) % 3,
    "words": lambda n: np.array(["yes", "no"])[np.arange(n) % 2],
    "floats": lambda n: np.arange(n) % 2 + 0.0,
    "rare": lambda n: (np.arange(n) == 0).astype(int),
    "one": lambda n: np.zeros(n, int),
    "each": np.arange,
    "numbers": lambda n: np.linspace(0, 1, n),
    "objects": lambda n: np.array([1, "a", None] * n, dtype=object)[:n],
    "nan": lambda n: np.where(np.arange(n) == 0, np.nan, 1.0),
    "short": lambda n: np.zeros(max(n - 1, 0), int),
    "column": lambda n: (np.arange(n) % 2)[:, None],
    "nothing": lambda n: None,
}
VALUES: dict[str, Callable[[int], Any]] = {
    "sine": lambda n: np.sin(np.arange(n)),
    "integers": lambda n: np.arange(n) % 7,
    "constant": np.ones,
    "zero": np.zeros,
    "small": lambda n: 1e-150 * np.sin(np.arange(n)),
    "smallest": lambda n: 1e-300 * np.sin(np.arange(n)),
    "large": lambda n: 1e120 * np.sin(np.arange(n)),
    "largest": lambda n: 1e300 * np.sin(np.arange(n)),
    "far": lambda n: 1e10 + np.sin(np.arange(n)),
    "outlier": lambda n: np.where(np.arange(n) == 1, 1e12, np.sin(np.arange(n))),
    "nan": CLASSES["nan"],
    "words": CLASSES["words"],
    "short": CLASSES["short"],
    "nothing": CLASSES["nothing"],
}
WEIGHTS: dict[str, Callable[[int], Any]] = {
    "nothing": lambda n: None,
    "number": lambda n: 2.0,
    "zeros": np.zeros,
    "one": lambda n: (np.arange(n) == 0).astype(float),
    "half": lambda n: (np.arange(n) % 2).astype(float),
    "negative": lambda n: np.where(np.arange(n) == 0, -1.0, 1.0),
    "nan": lambda n: np.full(n, np.nan),
    "infinite": lambda n: np.full(n, np.inf),
    "small": lambda n: np.full(n, 1e-300),
    "large": lambda n: np.full(n, 1e300),
    "unequal": lambda n: np.geomspace(1e-12, 1e3, n) if n else np.zeros(0),
    "short": lambda n: np.ones(max(n - 1, 0)),
    "words": lambda n: np.full(n, "a"),
}


@dataclasses.dataclass(frozen=True)
class Estimator:
    """A class, strategies of its settings, what it learns from, and settings with which it learns fast."""

    cls: type
    settings: dict[str, st.SearchStrategy[Any]]
    columns: int = 2
    targets: dict[str, Callable[[int], Any]] | None = None
    fast: dict[str, Any] = dataclasses.field(default_factory=dict)


selection = {
    "outlier_fraction": st.none() | st.floats(0.01, 0.99),
    "gamma": st.none() | usual,
    "outlier_spread": st.none() | st.floats(1, 50),
    "prior": st.none() | usual,
    "covariance": st.sampled_from([None, outliers.Shrunk(), outliers.Shrunk(common=False)]),
    "standardize": st.booleans(),
    "accuracy": st.floats(1e-6, 1e-2),
    "max_iter": st.integers(1, 50),
}
AROUND = {
    "selection": st.sampled_from([None, outliers.SoftSelection(), outliers.HardSelection()]),
    "folds": st.integers(2, 4),
    "check": st.booleans(),
    "max_iter": st.integers(1, 3),
    "random_state": st.none() | st.integers(0, 9),
}
ESTIMATORS = {
    "AnnealedMixture": Estimator(
        estimators.AnnealedMixture,
        {
            "n_components": st.integers(1, 3),
            "n_init": st.integers(1, 2),
            "step": st.floats(0.1, 0.9),
            "noise": st.floats(0, 0.1),
            "accuracy": st.floats(1e-5, 1e-2),
            "max_iter": st.integers(1, 50),
            "warm_start": st.booleans(),
            "random_state": st.none() | st.integers(0, 9),
            "widths": st.sampled_from(
                [None, mixtures.Spherical(), mixtures.Diagonal(), mixtures.MaximumLikelihood(0.5)]
            ),
        },
    ),
    "ClusterFinder": Estimator(
        estimators.ClusterFinder,
        {
            "level": st.floats(0.001, 0.5),
            "components": st.integers(1, 3),
            "draws": st.integers(0, 1),
            "random_state": st.none() | st.integers(0, 9),
        },
        fast={"components": 2, "random_state": 0},
    ),
    "ClusterRegressor": Estimator(
        estimators.ClusterRegressor,
        {
            "n_functions": st.integers(2, 3),
            "points": st.sampled_from([12, 20]),
            "strength": st.none() | usual,
            "n_init": st.integers(1, 3),
            "random_state": st.none() | st.integers(0, 9),
        },
        columns=1,
        targets=VALUES,
        fast={"points": 12, "strength": 1.0, "n_init": 2, "random_state": 0},
    ),
    "FieldClassifier": Estimator(
        estimators.FieldClassifier,
        {
            "points": st.sampled_from([8, 11]),
            "together": st.none() | st.booleans(),
            "strength": st.none() | st.tuples(usual, usual),
        },
        targets=CLASSES,
        fast={"points": 8, "together": False, "strength": (1.0, 1.0)},
    ),
    "FieldConditional": Estimator(
        estimators.FieldConditional,
        {
            "points": st.sampled_from([(12, 20), (13, 30)]),
            "order": st.integers(1, 2),
            "strength": st.tuples(usual, usual),
        },
        columns=1,
        targets=VALUES,
        fast={"points": (12, 20), "order": 1, "strength": (1.0, 1.0)},
    ),
    "FieldDensity": Estimator(
        estimators.FieldDensity,
        {
            "bounds": st.sampled_from([None, (None, None), (-20.0, None)]),
            "points": st.just(30),
            "order": st.integers(1, 3),
            "extend": st.booleans(),
        },
        columns=1,
        fast={"points": 30},
    ),
    "FieldRegressor": Estimator(
        estimators.FieldRegressor,
        {"points": st.sampled_from([12, 20]), "order": st.integers(1, 3), "noise": st.none() | usual},
        columns=1,
        targets=VALUES,
        fast={"points": 12},
    ),
    "HardSelectionClassifier": Estimator(estimators.HardSelectionClassifier, selection, targets=CLASSES),
    "InversePotential": Estimator(
        estimators.InversePotential,
        {
            "state": st.sampled_from(["ground", 0, 1]),
            "mass": usual,
            "bounds": st.sampled_from([None, (None, None)]),
            "symmetric": st.booleans(),
            "order": st.none() | st.just(4),
            "strength": st.none() | usual,
        },
        columns=1,
        fast={"points": 40, "strength": 1e-3},
    ),
    "LVQClassifier": Estimator(
        estimators.LVQClassifier,
        {
            "rule": st.sampled_from(
                [None, prototypes.GMLVQ(), prototypes.RSLVQ(), prototypes.LVQ1(0.1), prototypes.LVQ21(0.05)]
            ),
            "prototypes_per_class": st.integers(1, 2),
            "passes": st.integers(1, 3),
            "window": st.none() | st.floats(0.1, 1.0),
            "fallback": st.booleans(),
            "standardize": st.booleans(),
            "shuffle": st.booleans(),
            "random_state": st.none() | st.integers(0, 9),
        },
        targets=CLASSES,
    ),
    "SelectionClassifier": Estimator(
        estimators.SelectionClassifier,
        AROUND,
        targets=CLASSES,
        fast={"folds": 2, "max_iter": 1, "check": False},
    ),
    "SelectionRegressor": Estimator(
        estimators.SelectionRegressor,
        AROUND,
        targets=VALUES,
        fast={"folds": 2, "max_iter": 1},
    ),
    "SoftSelectionClassifier": Estimator(estimators.SoftSelectionClassifier, selection, targets=CLASSES),
    "VQClusterer": Estimator(
        estimators.VQClusterer,
        {
            "n_clusters": st.integers(1, 3),
            "rule": st.sampled_from([None, prototypes.VQ(0.1)]),
            "passes": st.integers(1, 3),
            "shuffle": st.booleans(),
            "random_state": st.none() | st.integers(0, 9),
        },
    ),
}

ASKED = (
    "predict",
    "predict_proba",
    "decision_function",
    "transform",
    "score_samples",
    "score",
    "outlier_probability",
    "bic",
    "aic",
    "pdf",
    "credible_band",
    "density_band",
    "reject",
    "predict_branch",
    "predict_density",
    "predict_functions",
    "predict_interval",
    "predict_quantile",
)
"""Methods that take rows."""
ALONE = ("sample", "describe")
"""Methods that take nothing."""
