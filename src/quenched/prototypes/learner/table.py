"""A table as the learner reads it, and where its prototypes begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError
from quenched.prototypes.learner.steps import nearest
from quenched.prototypes.model import Cost, Rule


class Table(NamedTuple):
    """The data as the learner reads it: rows without weight are gone."""

    X: np.ndarray  # [n, N]
    classes: np.ndarray  # [C] distinct labels, sorted
    codes: np.ndarray  # [n] index of each row's class
    weights: np.ndarray  # [n] positive

    def take(self, rows: np.ndarray) -> Table:
        """The table of some rows."""
        return (
            self
            if len(rows) == len(self.X)
            else self._replace(X=self.X[rows], codes=self.codes[rows], weights=self.weights[rows])
        )


def seeds(X: np.ndarray, weights: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Spread `count` prototypes over rows: greedy k-means++, then each goes to the mean of the rows it wins."""
    trials = 2 + int(np.log(count))
    chosen = np.empty((count, X.shape[1]))
    squared, chance = np.full(len(X), np.inf), np.ones(len(X))  # at first every row counts by its weight alone
    for k in range(count):
        mass = np.cumsum(weights * chance)  # so that weights and repeated rows choose the same places
        picks = np.minimum(np.searchsorted(mass, rng.random(trials) * mass[-1], side="right"), len(X) - 1)
        options = [np.minimum(squared, ((X - X[pick]) ** 2).sum(axis=1)) for pick in picks]
        best = int(np.argmin([weights @ option for option in options]))
        chosen[k], squared = X[picks[best]], options[best]
        chance = squared if squared.any() else np.ones(len(X))
    index, _ = nearest(chosen, X)
    total = np.bincount(index, weights, count)
    sums = np.zeros_like(chosen)
    np.add.at(sums, index, weights[:, None] * X)
    return np.where(total[:, None] > 0, sums / np.maximum(total, np.finfo(float).tiny)[:, None], chosen)


def label(rule: Rule | Cost, classes: np.ndarray, prototypes_per_class: int | Mapping[int, int]) -> np.ndarray:
    """The label of each prototype, every class having one at least."""
    name, known, counts = "prototypes_per_class", classes.tolist(), prototypes_per_class
    if rule.labels is not None:
        if set(rule.labels) != set(known):
            raise InputError(f"Argument `rule` must have prototypes for the classes {known}, "
                             f"but its labels are {rule.labels}.")  # fmt: skip
        return np.asarray(rule.labels)
    counts = counts if isinstance(counts, Mapping) else dict.fromkeys(known, counts)
    if set(counts) != set(known):
        raise InputError(f"Argument `{name}` must name the classes {known}, but it names {list(counts)}.")
    return np.repeat(classes, [checks.whole(name, counts[c], least=1) for c in known])


def spread(table: Table, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Prototypes in their own class."""
    w = np.empty((len(labels), table.X.shape[1]))
    for code, label in enumerate(table.classes):
        mine, rows = labels == label, table.codes == code
        if mine.sum() > rows.sum():
            raise InputError(f"Argument `prototypes_per_class` must not exceed the rows of a class, but it is "
                             f"{mine.sum()} for class {label}, which has {rows.sum()}.")  # fmt: skip
        w[mine] = seeds(table.X[rows], table.weights[rows], int(mine.sum()), rng)
    return w


def begin(rule: Rule | Cost, table: Table, prototypes_per_class, start: Any, rng):
    """Prototypes, labels and passes made before the first example of this call."""
    if hasattr(start, "prototypes"):  # an earlier result
        w, labels, passes = start.prototypes, start.labels, start.passes
        unknown = sorted(set(table.classes.tolist()) - set(labels.tolist()))
        if unknown:
            raise InputError(f"Argument `start` must have prototypes of all classes, but not of {unknown}.")
    else:
        labels, passes = label(rule, table.classes, prototypes_per_class), 0
        w = spread(table, labels, rng) if start is None else checks.numbers("start", start)
    if w.shape != (len(labels), table.X.shape[1]):
        raise InputError(f"Argument `start` must have shape [{len(labels)}, {table.X.shape[1]}], "
                         f"but it has {list(w.shape)}.")  # fmt: skip
    if not np.all(np.abs(w) < checks.LARGEST):
        raise InputError(f"Argument `start` must be finite and below {checks.LARGEST:g} in size, but it is not.")
    return w, labels, passes


def read(rule: Rule | Cost, data: Any, sample_weight: Any) -> Table:
    """Check the data; drop rows of weight zero. Without labels, all are zero, if the rule does not look at them."""
    X, y = data if isinstance(data, tuple) and len(data) == 2 else (data, None)
    X, weights = checks.table(X, sample_weight)
    if y is None:
        S = np.arange(2)
        if (
            isinstance(rule, Cost)
            or rule.all_move
            or np.ptp(np.broadcast_to(rule.g(S[:, None], S[None, :]), (2, 2))) != 0
        ):
            raise InputError(f"Argument `data` must be (X, y) for {type(rule).__name__}, but it has no y.")
    labels = np.zeros(len(X), dtype=int) if y is None else np.asarray(y)
    if labels.shape != (len(X),):
        raise InputError(f"Argument `data` must have one label for each of the {len(X)} rows, "
                         f"but the shape of y is {labels.shape}.")  # fmt: skip
    if labels.dtype.kind not in "iub":
        raise InputError(f"Argument `data` must have whole numbers as labels, but y holds {labels.dtype}.")
    kept = weights > 0
    classes, codes = np.unique(labels[kept].astype(int), return_inverse=True)
    return Table(X[kept], classes, codes, weights[kept])
