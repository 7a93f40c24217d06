"""Matrix products that a factorisation leaves to do, in pieces that XLA multiplies fast."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from quenched.core.types import Array

SMALL = 128
"""Triangular matrices up to this size are inverted by substitution."""
STRIPS = 4
"""Strips of rows in which a triangular matrix is multiplied with itself; four spare half of the work."""


def inverse_factor(L: Array, halvings: int = 3) -> Array:
    r"""The inverse of a lower triangular matrix, by halves; a pure JAX function.

    $$\begin{pmatrix} A & 0 \\ B & C \end{pmatrix}^{-1} =
    \begin{pmatrix} A^{-1} & 0 \\ -C^{-1} B A^{-1} & C^{-1} \end{pmatrix}$$

    Products of matrices are much faster than `solve_triangular` with as many right-hand sides, but each halving takes
    its time to compile.
    """
    N = L.shape[0]
    if N <= SMALL or halvings == 0:
        return jax.scipy.linalg.solve_triangular(L, jnp.eye(N), lower=True)
    h = -(-N // 32) * 16  # a half, in steps of 16 as processors like it
    A, C = inverse_factor(L[:h, :h], halvings - 1), inverse_factor(L[h:, h:], halvings - 1)
    return jnp.block([[A, jnp.zeros((h, N - h))], [-C @ (L[h:, :h] @ A), C]])


def gram_of_lower(W: Array) -> Array:
    r"""$W^T W$ of a lower triangular matrix; a pure JAX function."""
    N = W.shape[0]
    total = jnp.zeros((N, N))
    for k in range(STRIPS):
        first, last = N * k // STRIPS, N * (k + 1) // STRIPS
        strip = W[first:last, :last]
        total = total.at[:last, :last].add(strip.T @ strip)
    return total
