r"""How much a row counts, as a function of the log-odds $h$ that it is informative."""

from __future__ import annotations

import abc
from typing import ClassVar

import numpy as np


class Selection(abc.ABC):
    """Rows are informative or outliers.

    Attributes:
        unknown: whether the centres are averaged over, so that their variance counts.
    """

    unknown: ClassVar[bool] = False

    @abc.abstractmethod
    def weigh(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How much each row counts, and the gain in log-probability over its being an outlier."""


class Soft(Selection):
    r"""The most probable centres: $p = 1/(1 + e^{-h})$, gain $\ln(1 + e^h)$."""

    def weigh(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See above."""
        e = np.exp(-np.abs(h))
        return np.where(h > 0, 1.0, e) / (1 + e), np.maximum(h, 0) + np.log1p(e)


class Hard(Selection):
    r"""The most probable set of rows, whatever the centres: $p = \Theta(h)$, gain $\max(h, 0)$."""

    unknown = True

    def weigh(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See above."""
        return (h > 0).astype(float), np.maximum(h, 0)
