"""The splitting sequence of an annealing, as a tree: node 0 is all rows, a split makes two new nodes."""

from __future__ import annotations

import numpy as np
import xarray as xr


class Tree:
    """Splits as they happen."""

    def __init__(self):
        self.nodes, self.last = 1, np.inf  # the width of the last split
        self._splits: list[tuple[int, float, np.ndarray]] = []

    def split(self, node: int, width: float, direction: np.ndarray) -> None:
        """A node splits into the next two numbers.

        Args:
            node: which.
            width: at which width.
            direction: unit vector `[N]` from the second half to the first.
        """
        self._splits.append((node, width, direction))
        self.nodes, self.last = self.nodes + 2, width

    def table(self, weights: np.ndarray, leaves: np.ndarray, unit: np.ndarray, *, relative: bool) -> xr.Dataset:
        """The sequence as a dataset.

        Args:
            weights: share of each component `[K]`.
            leaves: the node each component is `[K]`.
            unit: scale of the features `[N]`; directions are given in the units of the data.
            relative: whether widths are shares of the features' variances.
        """
        parents, widths, directions = zip(*self._splits, strict=True) if self._splits else ((), (), ())
        first = 1 + 2 * np.arange(len(parents))
        share = np.bincount(leaves, weights, self.nodes)
        for node, half in reversed(list(zip(parents, first, strict=True))):
            share[node] = share[half] + share[half + 1]
        along = np.reshape(directions, (len(parents), len(unit))) * unit
        along = along / np.linalg.norm(along, axis=1, keepdims=True)
        return xr.Dataset(
            {
                "width": ("split", np.array(widths, float)),
                "cluster": ("split", np.array(parents, int)),
                "into": (("split", "half"), np.stack([first, first + 1], axis=1)),
                "direction": (("split", "feature"), along),
                "share": ("node", share),
                "leaf": ("component", np.asarray(leaves, int)),
            },
            attrs={"science": "mixtures", "source": "annealing", "relative": int(relative)},
        )
