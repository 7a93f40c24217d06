"""The tree of fields behind `FieldDensity`, for many columns and for columns of words: reading, asking and telling."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

from quenched.core import checks, results
from quenched.core.types import InputError
from quenched.fields.practice import tree
from quenched.fields.practice.density import Bounds, check_range
from quenched.fields.practice.nodes import Number, Split, Varied

MOST_WORDS = 50
"""Categories of a column at most: more are names."""


def has_words(X: Any) -> bool:
    """Whether a table is a data frame in which some column holds no numbers."""
    return hasattr(X, "columns") and any(_is_words(np.asarray(X[name])) for name in X.columns)


def _is_words(column: np.ndarray) -> bool:
    if column.dtype.kind in "iuf":
        return False
    if column.dtype.kind in "bUST":
        return True
    return any(isinstance(cell, (str, bool, np.bool_)) for cell in column)


@dataclasses.dataclass(frozen=True)
class Reading:
    """How the columns of a table become numbers.

    Attributes:
        names: of the columns.
        categories: of each column, None where it holds numbers.
    """

    names: list[str]
    categories: list[np.ndarray | None]

    @classmethod
    def of(cls, X: Any) -> Reading:
        """A data frame."""
        names, categories = [str(name) for name in X.columns], []
        for name in X.columns:
            cells = np.asarray(X[name])
            found = np.unique([str(cell) for cell in cells]) if _is_words(cells) else None
            if found is not None and not 2 <= len(found) <= MOST_WORDS:
                raise InputError(f"Argument `X` must have 2 to {MOST_WORDS} different words in a column, but column "
                                 f"`{name}` has {len(found)}.")  # fmt: skip
            categories.append(found)
        return cls(names, categories)

    @property
    def levels(self) -> list[int]:
        """Categories of each column, 0 for numbers."""
        return [0 if found is None else len(found) for found in self.categories]

    def into(self, X: Any) -> np.ndarray:
        """Rows of numbers, categories as codes."""
        if not hasattr(X, "columns") or [str(name) for name in X.columns] != self.names:
            raise InputError(f"Argument `X` must be a data frame with the columns {self.names}, but it is not.")
        columns = []
        for name, found in zip(X.columns, self.categories, strict=True):
            cells = np.asarray(X[name])
            if found is None:
                column = checks.numbers("X", cells)
                checks.finite("X", column)
            else:
                if any(cell is None or cell != cell for cell in cells):
                    raise InputError(f"Argument `X` must have a value everywhere, but column `{name}` has not.")
                words = np.array([str(cell) for cell in cells])
                column = np.minimum(np.searchsorted(found, words), len(found) - 1).astype(float)
                new = found[column.astype(int)] != words
                if np.any(new):
                    raise InputError(f"Argument `X` must have words of the training in column `{name}`, but "
                                     f"{str(words[new][0])!r} is new.")  # fmt: skip
            columns.append(column)
        return np.column_stack(columns)

    def back(self, rows: np.ndarray) -> Any:
        """A table as it was given: a data frame, if it has words."""
        import pandas as pd

        columns = {}
        for name, x, found in zip(self.names, rows.T, self.categories, strict=True):
            columns[name] = x if found is None else found[x.astype(int)]
        return pd.DataFrame(columns)


def learn(rows: np.ndarray, weights: np.ndarray, levels: list[int], bounds: list[Bounds]) -> tree.Trees:
    """The most probable tree or mixture of trees of a table."""
    for i, (x, k, pair) in enumerate(zip(rows.T, levels, bounds, strict=True)):
        if k:
            continue
        low, high = check_range("X", i, x)
        for end, bound, sign in ((low, pair[0], -1), (high, pair[1], 1)):
            if bound is not None and sign * (end - bound) > 0:
                raise InputError(f"Argument `X` must lie inside `bounds`, but column {i} holds {end:g}, beyond "
                                 f"{bound:g}: widen the bounds.")  # fmt: skip
    with threadpool_limits(1, user_api="blas"):
        return tree.learn(rows, weights, levels, bounds=bounds)


def edges(found: tree.Trees) -> np.ndarray:
    """A row for each column of each cluster."""
    rows = []
    for c, forest in enumerate(found.forests):
        for node in forest.nodes:
            parent = -1 if node.parent is None else node.parent
            shared = 0.0 if node.parent is None else forest.information[node.column, node.parent]
            rows.append((c, node.column, parent, shared, node.gain))
    kinds = [("cluster", int), ("column", int), ("parent", int), ("information", float), ("gain", float)]
    return np.array(rows, dtype=kinds)


def describe(found: tree.Trees, names: list[str], rows: int) -> xr.Dataset:
    """The tree in numbers, and in words as the attribute `summary`."""
    d, k = len(names), len(found.forests)
    parents, gains = np.full((k, d), "", dtype=object), np.zeros((k, d))
    kinds = np.full((k, d), "alone", dtype=object)
    for c, forest in enumerate(found.forests):
        for node in forest.nodes:
            gains[c, node.column] = node.gain
            if node.parent is not None:
                parents[c, node.column] = names[node.parent]
                bends = not isinstance(node, Number) or isinstance(node.rest, (Varied, Split))
                kinds[c, node.column] = "field" if bends else "linear"
    over = ("cluster", "column")
    data = {
        "parent": (over, parents.astype(str)),
        "kind": (over, kinds.astype(str)),
        "gain": (over, gains),
        "share": ("cluster", found.shares),
        "information": (("cluster", "column", "other"), np.stack([forest.information for forest in found.forests])),
    }
    about = results.provenance("fields", source="tree of fields", rows=rows, log_evidence=found.log_evidence)
    about["summary"] = "\n".join(_words(found, names))
    return xr.Dataset(data, {"column": names, "other": names}, about)


def _words(found: tree.Trees, names: list[str]) -> list[str]:
    """A line for each cluster and each edge."""
    lines = []
    for share, forest in zip(found.shares, found.forests, strict=True):
        if len(found.forests) > 1:
            lines.append(f"A cluster of {share:.0%} of the rows:")
        total = sum(max(node.gain, 0.0) for node in forest.nodes) or 1.0
        for node in forest.nodes:
            if node.parent is None:
                lines.append(f"{names[node.column]} stands alone")
                continue
            bits = forest.information[node.column, node.parent] / np.log(2)
            how = "by a field" if not isinstance(node, Number) or isinstance(node.rest, (Varied, Split)) else "linearly"
            lines.append(f"{names[node.column]} given {names[node.parent]} {how}: {bits:.2f} bits, "
                         f"{node.gain / total:.0%} of what dependence gains")  # fmt: skip
    return lines
