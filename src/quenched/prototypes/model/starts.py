"""Starts: where prototypes stand before the first example."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import numpy as np

from quenched.core import checks
from quenched.core.types import InputError, Real, reals


class Start(checks.Declared):
    """Where the prototypes stand before the first example."""

    @abc.abstractmethod
    def overlaps(self, prototypes: int, clusters: int) -> tuple[Any, Any]:
        """`R` of shape `[K, M]` and `Q` of shape `[K, K]`."""


class NearOrigin(Start):
    """Orthogonal to each other and to the centres, of squared length `norm`: no prior knowledge.

    Attributes:
        norm: $Q_{SS}$, not zero (prototypes that coincide have no winner).
    """

    norm: Real = checks.declare(1e-4)

    def overlaps(self, prototypes: int, clusters: int) -> tuple[Any, Any]:
        """`R` = 0, `Q` = `norm` times the identity."""
        return np.zeros((prototypes, clusters)), self.norm * np.eye(prototypes)


class Overlaps(Start):
    """Given overlaps.

    Attributes:
        R: $w_S . B_m$, shape `[K, M]`.
        Q: $w_S . w_T$, shape `[K, K]`, symmetric.
    """

    R: Any = eqx.field(converter=reals)
    Q: Any = eqx.field(converter=reals)

    def __check_init__(self):
        checks.finite("R", self.R)
        checks.finite("Q", self.Q)
        K = np.shape(self.R)[0] if np.ndim(self.R) == 2 else -1
        if np.shape(self.Q) != (K, K):
            raise InputError(f"Arguments `R` and `Q` must have shapes [K, M] and [K, K], "
                             f"but they are {np.shape(self.R)} and {np.shape(self.Q)}.")  # fmt: skip

    def overlaps(self, prototypes: int, clusters: int) -> tuple[Any, Any]:
        """`R` and `Q` as given, if they have the asked shape."""
        if np.shape(self.R) != (prototypes, clusters):
            raise InputError(f"Argument `start` must have R of shape {(prototypes, clusters)}, "
                             f"but it has {np.shape(self.R)}.")  # fmt: skip
        return self.R, self.Q


def start_of(start: Any) -> Start:
    """The start that was asked for, by default `NearOrigin()`."""
    start = NearOrigin() if start is None else start
    checks.kind("start", start, Start, "a start such as NearOrigin()")
    return start
