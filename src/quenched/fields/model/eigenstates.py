"""Lowest eigenvectors and linear equations of a symmetric operator that is known by its products alone, on the host."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from quenched.core.types import InputError

ACCURACY = 1e-10
"""Norm of residuals of eigenvectors, as a share of their energy above the bottom."""
SOLVED, ROUGHLY, MOST = 1e-11, 1e-8, 2000
"""Residual of linear equations, as a share of the right side; what is accepted after so many products."""
ROUNDS, ROOM = 400, 4
"""Expansions of the basis at most; and how many blocks the basis has before it is thinned out."""
ROUNDING = 1e-13
"""Noise of a residual, as a share of the largest eigenvalue in the basis."""


class UnresolvedError(InputError):
    """States that cannot be told apart from others."""


Product = Callable[[np.ndarray], np.ndarray]


def davidson(
    product: Product,
    precondition: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    count: int,
    bottom: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest eigenvectors, by a basis that is expanded by preconditioned residuals.

    When the basis is full, the lowest vectors and those of the step before are kept: then it is as good as one that was
    never thinned out.

    Args:
        product: the operator times rows.
        precondition: an approximate inverse times rows, given their energies.
        start: rows, more of them than are wanted: the others guard against vectors that were missed.
        count: how many are wanted.
        bottom: a lower bound of the spectrum.

    Returns:
        Energies `[count]`, ascending, and unit vectors as rows.

    Raises:
        UnresolvedError: if the iteration does not converge.
    """
    block = len(start)
    V = _orthonormal(start, np.zeros((0, start.shape[1])))
    AV, before = product(V), np.zeros((0, start.shape[1]))
    for _ in range(ROUNDS):
        S = V @ AV.T
        E, U = np.linalg.eigh((S + S.T) / 2)
        X, AX = U[:, :block].T @ V, U[:, :block].T @ AV
        R = AX - E[:block, None] * X
        size = np.linalg.norm(R, axis=1)
        enough = ACCURACY * (E[:block] - bottom) + ROUNDING * abs(E[-1])
        open_ones = np.flatnonzero(size[:count] > enough[:count])
        if len(open_ones) == 0:
            return E[:count], X[:count]
        if len(V) + block > ROOM * block + 8:
            kept = _orthonormal(before, X)
            V = np.concatenate([X, kept])
            AV = np.concatenate([AX, product(kept)]) if len(kept) else AX
        late = size[:block] > enough[:block]
        new = _orthonormal(precondition(R[late], E[:block][late]), V)
        if len(new) == 0:
            return E[:count], X[:count]
        before, V, AV = X, np.concatenate([V, new]), np.concatenate([AV, product(new)])
    raise UnresolvedError(f"The lowest {count} states must be apart from those above, but {ROUNDS} steps did not find "
                          "them.")  # fmt: skip


def _orthonormal(rows: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what rows add to other orthonormal rows."""
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
    for _ in range(2):
        rows = rows - (rows @ beside.T) @ beside
        values, turn = np.linalg.eigh(rows @ rows.T)
        kept = values > 1e-14 * max(1.0, values[-1] if len(values) else 1.0)
        rows = (turn[:, kept] / np.sqrt(values[kept])).T @ rows
    return rows


def conjugate_gradients(product: Product, precondition: Product, right: np.ndarray) -> np.ndarray:
    """Solutions of positive definite equations, all rows `[..., points]` side by side."""
    x = np.zeros_like(right)
    r = right.copy()
    enough = SOLVED * np.linalg.norm(right, axis=-1, keepdims=True)
    z = precondition(r)
    p, rz = z, np.sum(r * z, axis=-1, keepdims=True)
    for _ in range(MOST):
        late = np.linalg.norm(r, axis=-1, keepdims=True) > enough
        if not np.any(late):
            return x
        Ap = product(p)
        bend = np.sum(p * Ap, axis=-1, keepdims=True)
        length = np.where(late & (bend > 0), rz / np.where(bend > 0, bend, 1.0), 0.0)
        x, r = x + length * p, r - length * Ap
        z = precondition(r)
        new = np.sum(r * z, axis=-1, keepdims=True)
        p, rz = z + np.where(rz > 0, new / np.where(rz > 0, rz, 1.0), 0.0) * p, new
    if np.all(np.linalg.norm(r, axis=-1, keepdims=True) <= ROUGHLY / SOLVED * enough):
        return x
    raise UnresolvedError("The state must be apart from those above, but they are too close for its derivatives.")
