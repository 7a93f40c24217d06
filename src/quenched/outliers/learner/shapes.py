r"""Covariances of classes: the units in which each class, and the outliers, are spherical.

The common covariance of the informative rows about their centres is shrunk towards a sphere; that of a class, in units
in which the common one is a sphere, is shrunk towards that sphere in turn. How far is estimated from the rows (oracle
approximating shrinkage: Chen, Wiesel, Eldar, Hero, IEEE Trans. Signal Process. 58:5016, 2010), so that few rows get a
sphere and many rows their own covariance.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from quenched.outliers.model import Shrunk


@dataclasses.dataclass(frozen=True, eq=False)
class Shapes:
    """The units of each class and of the outliers: in them all are spheres."""

    classes: np.ndarray  # [K, N, N] rows are multiplied by these, one for each class
    outliers: np.ndarray  # [N, N] the same for outliers
    volumes: np.ndarray  # [K] logarithm of the volume of a class's unit, in those of the outliers

    @functools.cached_property
    def inverses(self) -> np.ndarray:
        """What leads from the units of each class, and last from those of the outliers, back `[K + 1, N, N]`."""
        return np.linalg.inv(np.concatenate([self.classes, self.outliers[None]]))

    def into(self, Z: np.ndarray, k: int) -> np.ndarray:
        """Rows in the units of a class."""
        return Z @ self.classes[k]

    def back(self, centres: np.ndarray) -> np.ndarray:
        """Centres `[K, N]`, each in the units of its class, in those of the table."""
        return np.stack([np.linalg.solve(A.T, c) for A, c in zip(self.classes, centres, strict=True)])

    def lengths(self, Z: np.ndarray) -> np.ndarray:
        """Squares of rows in the units of the outliers."""
        return np.square(Z @ self.outliers).sum(axis=1)


def shrink(Z: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """The covariance of rows about 0, shrunk towards a sphere; one row more lies on that sphere.

    Args:
        Z: rows `[n, N]`.
        omega: their weights `[n]`.
    """
    n, N = float(omega.sum()), Z.shape[1]
    S = (Z * omega[:, None]).T @ Z / max(n, 1e-300)
    variance = max(float(np.trace(S)) / N, 1e-12)
    square, even = float(np.mean(S**2)), variance**2
    apart = (n + 1) * (square - even / N)
    share = 1.0 if apart <= 0 else min(1.0, (square + even) / apart)
    share = 1 - (1 - share) * n / (n + 1)
    return (1 - share) * S + share * variance * np.eye(N)


def measure_shapes(covariance: Shrunk, rows: Any, p: np.ndarray, centres: np.ndarray) -> Shapes:
    """The units in which selected rows are spherical about the centres.

    Args:
        covariance: whether all classes have the same.
        rows: the table, a `Rows`.
        p: how much each row counts, weights included `[n]`.
        centres: of the classes `[K, N]`.
    """
    Z, N = np.concatenate([rows.Z[t] - c for t, c in zip(rows.classes, centres, strict=True)]), rows.Z.shape[1]
    common = shrink(Z, p)
    common *= N / np.trace(common)
    values, vectors = np.linalg.eigh(common)
    A = vectors / np.sqrt(np.maximum(values, 1e-9))  # Z @ A is spherical
    if covariance.common:
        return Shapes(np.broadcast_to(A, (len(centres), N, N)), A, np.zeros(len(centres)))
    E = Z @ A
    variance = max(float(p @ np.square(E).sum(axis=1)) / (N * max(p.sum(), 1e-300)), 1e-12)
    found, volumes = [], []
    for t in rows.classes:
        n = float(p[t].sum())
        S = (n * shrink(E[t], p[t]) / variance + np.eye(N)) / (n + 1)
        own, turn = np.linalg.eigh(S)
        found.append(A @ (turn / np.sqrt(own)))
        volumes.append(0.5 * float(np.log(own).sum()))
    return Shapes(np.stack(found), A, np.array(volumes))
