r"""The learning curve of an estimator inside the rows at hand.

The rows are cut into folds. For each, the estimator is trained on nested parts of the other rows, the largest being all
of them, and judged by the rows of the fold: so every size is judged by the same rows, each of which takes part
once, and what the sizes differ by is known better than their level. Rows of a group and copies of one another stay on
one side; of classes every part has their shares.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

from quenched.core.ensemble import Executor, Local
from quenched.core.ensemble.program import Piece
from quenched.core.progress import progress
from quenched.core.types import InputError
from quenched.forecasting.errors import Error

FOLDS, SIZES, STEP = 10, 7, 2 ** (-2 / 3)
"""Folds, sizes of the parts, and the ratio of one size to the next: four octaves at less than three times the cost of
scikit-learn's `learning_curve` with five sizes and five splits."""
FEWEST_FOLDS, MOST_PASSES = 3, 10
"""Folds that a budget leaves at least, and passes over other folds that it pays for at most."""
SMALLEST, OF_EACH_CLASS = 5, 2
"""Rows of the smallest part, and rows for each class in it on average."""
SURE = 0.25
"""Parts above this share of the rows must be learned; below, an estimator may fail."""


class Rows(NamedTuple):
    """A table to learn from."""

    X: Any
    y: np.ndarray
    together: np.ndarray | None  # [N] a number for each row; rows with one number stay together
    stratified: bool


class Measured(NamedTuple):
    """A learning curve, and the rows one by one at its end."""

    examples: np.ndarray  # [S]
    error: np.ndarray
    stderr: np.ndarray
    training: np.ndarray
    residual: np.ndarray  # [N], NaN where a row was not tested
    passes: float  # over all rows
    remarks: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Folds:
    """A program for an executor: run r trains on the parts of split r."""

    estimator: Any
    rows: Rows
    error: Error
    splits: Sequence[tuple[np.ndarray, np.ndarray]]  # rows to learn, in order, and to test
    sizes: np.ndarray

    def run(self, piece: Piece) -> list[np.ndarray]:
        """Errors on test and training rows for each size, and the residuals of the rows, of consecutive splits."""
        return [np.stack([self._one(*self.splits[r]) for r in range(piece.start, piece.start + piece.count)])]

    def _one(self, learn: np.ndarray, test: np.ndarray) -> np.ndarray:
        found, residual = np.full((len(self.sizes), 2), np.nan), np.full(len(self.rows.y), np.nan)
        for i, share in enumerate(self.sizes):
            part = learn[: max(round(share * len(learn)), 1)]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fresh: Any = clone(self.estimator)
                    fitted = fresh.fit(take(self.rows.X, part), self.rows.y[part])
                    found[i] = [self.error(fitted, take(self.rows.X, some), self.rows.y[some]) for some in (test, part)]
                    if i == 0:
                        residual[test] = self.error.residual(fitted, take(self.rows.X, test), self.rows.y[test])
            except Exception:  # whatever an estimator raises that has too few rows or too few classes
                if share > SURE:
                    raise
        return np.concatenate([found.ravel(), residual])


def take(X: Any, rows: np.ndarray) -> Any:
    """Rows of an array, a sparse matrix or a data frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def measure(
    estimator: Any, rows: Rows, error: Error, budget: float | None, executor: Executor | None, draw: np.random.Generator
) -> Measured:
    """Measure the learning curve of an estimator, with as many splits as a budget of seconds allows."""
    shares, splits = _shares(rows), split(rows, draw)
    began = time.process_time() if executor is None else time.perf_counter()
    with progress("forecast", len(splits)) as advance:
        found = _run(Folds(estimator, rows, error, splits[:1], shares), None, advance)
        spent = (time.process_time() if executor is None else time.perf_counter()) - began
        count = FOLDS if budget is None else int(np.clip(budget / max(spent, 1e-9), FEWEST_FOLDS, MOST_PASSES * FOLDS))
        count = count if count < FOLDS else count // FOLDS * FOLDS
        for _ in range(1, -(-count // FOLDS)):
            splits += split(rows, draw)
        rest = Folds(estimator, rows, error, splits[1:count], shares)
        found = np.concatenate([found, _run(rest, executor, advance)])
    return _summary(found, shares, splits[:count], len(rows.y))


def _run(program: Folds, executor: Executor | None, advance: Any) -> np.ndarray:
    """The outputs of each split, in order."""
    none = np.zeros(0, np.uint32)
    pieces = [Piece(0, r, 1, none, ()) for r in range(len(program.splits))]
    found: list[Any] = [None] * len(pieces)
    for position, result in (executor or Local()).run(program, pieces):  # pyright: ignore[reportArgumentType]
        if isinstance(result, str):
            if result.startswith(known := f"{InputError.__name__}: "):
                raise InputError(result.removeprefix(known))
            raise InputError(f"Argument `estimator` must learn these rows, but it does not: {result}.")
        found[position] = result[0]
        advance(1)
    return np.array(found)


def _summary(found: np.ndarray, shares: np.ndarray, splits: Sequence[Any], N: int) -> Measured:
    """Means over the splits, weighted by their test rows."""
    S = len(shares)
    errors = found[:, : 2 * S].reshape(-1, S, 2)
    w = np.array([len(test) for _, test in splits], float)
    learned = np.mean([len(learn) for learn, _ in splits])
    good = np.all(np.isfinite(errors), axis=(0, 2))
    lost = int(np.sum(~good))
    remarks = (f"The estimator failed on the {lost} smallest parts of the rows.",) if lost else ()
    errors, w = errors[:, good], w / w.sum()
    mean = np.tensordot(w, errors, 1)  # [S, 2]
    # Passes over other folds test the same rows again: they do not make the level surer.
    K = min(len(splits), FOLDS)
    stderr = np.sqrt(np.tensordot(w, (errors[..., 0] - mean[:, 0]) ** 2, 1) / (K - 1))
    residual = np.full(N, np.nan)
    tested = found[:, 2 * S :]
    some = np.isfinite(tested).any(axis=0)
    residual[some] = np.nanmean(tested[:, some], axis=0)
    examples = np.array([max(round(share * learned), 1) for share in shares[good]], float)
    back = slice(None, None, -1)
    return Measured(examples[back], mean[back, 0], stderr[back], mean[back, 1], residual, len(splits) / FOLDS, remarks)


def _shares(rows: Rows) -> np.ndarray:
    """Sizes of the parts, as shares of the rows to learn from, decreasing."""
    learn = len(rows.y) * (1 - 1 / FOLDS)
    classes = len(np.unique(rows.y)) if rows.stratified else 1
    shares = STEP ** np.arange(SIZES)
    return shares[shares * learn >= max(SMALLEST, OF_EACH_CLASS * classes)]


def split(rows: Rows, draw: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds of the rows: those to learn, in an order of which every beginning is a fair part, and those to test."""
    seed, N = int(draw.integers(2**31)), len(rows.y)
    if rows.together is None:
        folds = StratifiedKFold if rows.stratified else KFold
        cut = folds(FOLDS, shuffle=True, random_state=seed).split(np.zeros(N), rows.y)
    elif rows.stratified:
        cut = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed).split(np.zeros(N), rows.y, rows.together)
    else:
        order = draw.permutation(int(rows.together.max()) + 1)
        cut = GroupKFold(FOLDS).split(np.zeros(N), rows.y, order[rows.together])
    return [(_order(rows, learn, draw), test) for learn, test in cut]


def _order(rows: Rows, learn: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """An order in which groups stay together and classes come in their shares."""
    if rows.together is not None:
        place = draw.permutation(int(rows.together.max()) + 1)
        return learn[np.argsort(place[rows.together[learn]], kind="stable")]
    learn = draw.permutation(learn)
    if not rows.stratified:
        return learn
    rank = np.empty(len(learn))
    for value in np.unique(rows.y[learn]):
        mine = np.flatnonzero(rows.y[learn] == value)
        rank[mine] = (np.arange(len(mine)) + draw.random()) / len(mine)
    return learn[np.argsort(rank, kind="stable")]
