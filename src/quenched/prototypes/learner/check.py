"""What is learned beside the nearest class mean, on rows that were held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.core import checks
from quenched.core.types import Key, Outcome, double
from quenched.prototypes.learner.descent import Descent, distances
from quenched.prototypes.learner.fit import Course, Fitted, learn, passes_of
from quenched.prototypes.learner.steps import nearest
from quenched.prototypes.learner.table import Table, read
from quenched.prototypes.model import LVQ1, Cost, Rule

FOLDS, ENOUGH, MOST = 5, 200, 5000
"""Parts of the table that are held out in turn; rows after which no further one is; and rows that take part."""


class HeldOut(NamedTuple):
    """The share of held-out rows, by weight, whose class was found; NaN if none could be held out."""

    learned: float
    class_means: float
    rows: int
    error: float  # standard error of the difference of the two


def _means(table: Table) -> np.ndarray:
    """The mean of each class `[C, N]`."""
    weights = np.where(table.codes[:, None] == np.arange(len(table.classes)), table.weights[:, None], 0.0)
    return (weights / weights.sum(axis=0)).T @ table.X


def fit_means(data: Any, *, sample_weight: Any = None) -> Fitted:
    """The mean of each class as its prototype; no rule is needed."""
    table = read(LVQ1(), data, sample_weight)
    return Fitted(_means(table), table.classes, 1, Descent(np.zeros(0)), Outcome.converged)


def deal(table: Table, needed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The part of each row, from 0: classes are spread evenly. -1 for the rows that every part needs to train on."""
    part = np.full(len(table.X), -1)
    share = min(1.0, MOST / len(table.X))
    for code, least in enumerate(needed):
        rows = rng.permutation(np.flatnonzero(table.codes == code))
        rows = rows[: max(int(np.ceil(share * len(rows))), least + 1)]
        part[rows] = np.arange(len(rows)) % FOLDS if len(rows) - np.ceil(len(rows) / FOLDS) >= least else -1
        part[np.setdiff1d(np.flatnonzero(table.codes == code), rows)] = -2
    return part


@double
def hold_out(
    rule: Rule | Cost,
    data: Any,
    *,
    key: Key,
    prototypes_per_class: int | Mapping[int, int] = 1,
    passes: int | None = None,
    shuffle: bool = True,
    sample_weight: Any = None,
    window: float | None = None,
) -> HeldOut:
    """Compare what `fit` would learn with the nearest class mean, on rows that neither has seen.

    A fifth of the rows of each class is held out in turn, until 200 rows were judged. Of a large table 5,000 rows
    take part. The arguments are those of `fit`.
    """
    table = read(rule, data, sample_weight)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(checks.key(key))).tolist())
    course = Course(prototypes_per_class, passes_of(rule, passes), checks.flag("shuffle", shuffle), window)
    per_class = (
        [prototypes_per_class[c] for c in table.classes.tolist()]
        if isinstance(prototypes_per_class, Mapping)
        else np.full(len(table.classes), prototypes_per_class)
    )
    if rule.labels is not None:
        per_class = [rule.labels.count(c) for c in table.classes.tolist()]
    part = deal(table, np.asarray(per_class, dtype=int), rng)
    table, part = table.take(np.flatnonzero(part > -2)), part[part > -2]
    right, judged, rows, squares = np.zeros(2), 0.0, 0, 0.0
    for fold in range(FOLDS):
        out = part == fold
        if not out.any() or rows >= ENOUGH:
            continue
        kept, unseen = np.flatnonzero(~out), table.take(np.flatnonzero(out))
        found = learn(rule, table, kept, rng, course)
        truth = table.classes[unseen.codes]
        learned = found.labels[np.argmin(distances(unseen.X, found.prototypes, found.metric), axis=1)] == truth
        plain = table.classes[nearest(_means(table.take(kept)), unseen.X)[0]] == truth
        right += [unseen.weights @ learned, unseen.weights @ plain]
        squares += float(np.sum(unseen.weights[learned != plain] ** 2))
        judged, rows = judged + float(unseen.weights.sum()), rows + int(out.sum())
    learned, plain, error = [*right / judged, np.sqrt(squares) / judged] if judged else [np.nan] * 3
    return HeldOut(float(learned), float(plain), rows, float(error))
