"""The tasks on which quenched and its peers are compared: data of a case and a seed, and how an answer is judged.

Every side makes its data here, in its own process, so this needs NumPy alone, and scikit-learn where the data come from
there. A case is a dictionary of numbers and words.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

Case = dict[str, Any]
PLACES = np.linspace(-8.0, 9.0, 1001)
"""Where densities are compared. They are smooth on 0.5, so steps of 0.017 integrate them exactly."""
SIZES = (25, 50, 100, 200, 300)
"""Rows of the learning curve."""


def contaminated(case: Case, seed: int) -> tuple[np.ndarray, ...]:
    """Rows, labels and the true centre: half of the rows are outliers, |B| = 1, noise of variance 1/10."""
    rng, N, P = np.random.default_rng(seed), case["N"], case["P"]
    B = rng.normal(size=N)
    B /= np.linalg.norm(B)
    y, V = rng.choice([-1, 1], P), rng.random(P) < 0.5
    return (y * V)[:, None] * B + rng.normal(scale=0.1**0.5, size=(P, N)), y, B


def two_clouds(case: Case, seed: int) -> tuple[np.ndarray, ...]:
    """Rows around +B and -B with unit noise, and B, whose length is the case's."""
    rng, N, P = np.random.default_rng(seed), case["N"], case["P"]
    B = rng.normal(size=N)
    B *= case["length"] / np.linalg.norm(B)
    return rng.choice([-1.0, 1.0], P)[:, None] * B + rng.normal(size=(P, N)), B


def folds(case: Case, seed: int) -> tuple[np.ndarray, ...]:
    """Five folds, standardised on each training part: rows, classes, unseen rows and their classes of each in turn."""
    from sklearn import datasets
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import StandardScaler

    if "file" in case:  # rows of the registry, which other environments cannot read
        with np.load(case["file"]) as kept:
            X, y = kept["X"], kept["y"]
    else:
        X, y = getattr(datasets, f"load_{case['table']}")(return_X_y=True)
    parts: list[np.ndarray] = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
        scale = StandardScaler().fit(X[train])
        parts += [scale.transform(X[train]), y[train], scale.transform(X[test]), y[test]]
    return tuple(parts)


def diabetes(case: Case, seed: int) -> tuple[np.ndarray, ...]:
    """All rows, standardised, and a seed for those who draw."""
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std(), np.array(seed)


def smooth_table(case: Case, seed: int) -> tuple[np.ndarray, ...]:
    """Rows of five normal columns, and a smooth target with noise: for costs, not for accuracy."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(case["rows"], 5))
    return X, np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=case["rows"]), np.array(seed)


def many_classes(case: Case, seed: int) -> tuple[np.ndarray, ...]:
    """Rows of ten classes in twenty dimensions: for costs, not for accuracy."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 10, case["rows"])
    return rng.normal(size=(10, 20))[y] + rng.normal(size=(case["rows"], 20)), y, np.zeros((1, 20)), np.zeros(1, int)


def column(case: Case, seed: int) -> tuple[np.ndarray, ...]:
    """Rows of .6 N(-1.2, .6) + .4 N(1.5, .9)."""
    draw, n = np.random.default_rng(seed), case["rows"]
    return (np.where(draw.random(n) < 0.6, draw.normal(-1.2, 0.6, n), draw.normal(1.5, 0.9, n)),)


def centre_error(answer: np.ndarray, data: tuple[np.ndarray, ...], truth: Any) -> list[float]:
    """Q - 2R + 1 = |c - B|^2."""
    return [float(np.sum((answer - data[2]) ** 2))]


def overlap(answer: np.ndarray, data: tuple[np.ndarray, ...], truth: Any) -> list[float]:
    """Cosine between the difference of the two centres and the true one."""
    difference = answer[0] - answer[1]
    return [float(abs(difference @ data[1]) / np.linalg.norm(difference) / np.linalg.norm(data[1]))]


def share_right(answer: list, data: tuple[np.ndarray, ...], truth: Any) -> list[float]:
    """Share of unseen rows whose class is found, fold by fold."""
    return [float(np.mean(np.array(found) == right)) for found, right in zip(answer, data[3::4], strict=True)]


def deviation(answer: np.ndarray, data: tuple[np.ndarray, ...], truth: Any) -> list[float]:
    """Relative deviation from a long run, the mean over what was asked."""
    return [float(np.mean(np.abs(np.asarray(answer) / np.asarray(truth) - 1)))]


def squared_error(answer: np.ndarray, data: tuple[np.ndarray, ...], truth: Any) -> list[float]:
    """Integrated squared difference from the true density."""

    def bell(a: float, s: float) -> np.ndarray:
        return np.exp(-(((PLACES - a) / s) ** 2) / 2) / s / np.sqrt(2 * np.pi)

    return [float(np.sum((answer - 0.6 * bell(-1.2, 0.6) - 0.4 * bell(1.5, 0.9)) ** 2) * (PLACES[1] - PLACES[0]))]


@dataclasses.dataclass(frozen=True)
class Task:
    """What is asked, and how an answer is judged: `judge(answer, data, truth)` gives one or several numbers."""

    data: Callable[[Case, int], tuple[np.ndarray, ...]]
    judge: Callable[[Any, tuple[np.ndarray, ...], Any], list[float]]
    measure: str
    higher_is_better: bool = False


TASKS = {
    "outliers": Task(contaminated, centre_error, "error Q - 2R + 1"),
    "mixtures": Task(two_clouds, overlap, "overlap", higher_is_better=True),
    "prototypes": Task(folds, share_right, "share right", higher_is_better=True),
    "processes": Task(diabetes, deviation, "deviation from a long run"),
    "fields": Task(column, squared_error, "integrated squared error"),
    "classes": Task(many_classes, share_right, "", higher_is_better=True),
    "table": Task(smooth_table, deviation, ""),
}


def made(task: str, case: Case, seed: int) -> tuple[np.ndarray, ...]:
    """The data of a case and a seed; the last are kept, since each model of a side asks for them in turn."""
    return _made(task, json.dumps(case, sort_keys=True), seed)


@functools.lru_cache(maxsize=1)
def _made(task: str, case: str, seed: int) -> tuple[np.ndarray, ...]:
    return TASKS[task].data(json.loads(case), seed)


def checksum(data: tuple[np.ndarray, ...]) -> float:
    """A number that tells whether two sides have the same data."""
    return float(sum(np.sum(np.abs(part), dtype=float) for part in data))
