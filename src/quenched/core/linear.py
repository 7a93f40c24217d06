"""Equations that are written once: NumPy and LAPACK for NumPy arrays, XLA for JAX arrays.

On the host nothing is compiled; JAX arrays are for derivatives and for an accelerator. `namespace` gives the module
whose functions belong to an array; most others are those that NumPy and JAX do not have under one name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import is_traced

_T = TypeVar("_T")


def namespace(x: Any) -> Any:
    """`jax.numpy` for JAX arrays, traced or not, and NumPy for all others."""
    return jnp if isinstance(x, jax.Array) else np


def special(x: Any) -> Any:
    """The special functions for an array: `jax.scipy.special` or `scipy.special`."""
    if isinstance(x, jax.Array):
        import jax.scipy.special as functions
    else:
        import scipy.special as functions
    return functions


def repeat_while(going: Callable[[_T], Any], body: Callable[[_T], _T], state: _T) -> _T:
    """`jax.lax.while_loop` where a value of the state is traced, and otherwise the same loop in Python."""
    if any(is_traced(leaf) for leaf in jax.tree.leaves(state)):
        return jax.lax.while_loop(going, body, state)
    while going(state):
        state = body(state)
    return state


def choose(condition: Any, yes: Callable[..., Any], no: Callable[..., Any], *arguments: Any) -> Any:
    """Call one of two functions, by `jax.lax.cond` where the condition is traced."""
    if is_traced(condition):
        return jax.lax.cond(condition, yes, no, *arguments)
    return yes(*arguments) if condition else no(*arguments)


def cholesky(A: Any) -> Any:
    """The lower factor of a symmetric matrix; NaN where it is not positive definite."""
    if isinstance(A, jax.Array):
        return jnp.linalg.cholesky(A, symmetrize_input=False)
    from scipy.linalg.lapack import dpotrf  # pyright: ignore[reportAttributeAccessIssue]

    L, failed = dpotrf(A.T, lower=1)  # the transpose of a symmetric matrix is in Fortran's order
    return np.full(A.shape, np.nan) if failed else L


def solve_factored(L: Any, b: Any) -> Any:
    """Solve $L L^T x = b$."""
    if isinstance(L, jax.Array):
        return jax.scipy.linalg.cho_solve((L, True), b)
    from scipy.linalg.lapack import dpotrs  # pyright: ignore[reportAttributeAccessIssue]

    return dpotrs(L, b, lower=1)[0] if len(L) else np.zeros_like(b)


def solve_lower(L: Any, b: Any) -> Any:
    """Solve $L x = b$."""
    if isinstance(L, jax.Array):
        return jax.scipy.linalg.solve_triangular(L, b, lower=True)
    from scipy.linalg import solve_triangular

    return solve_triangular(L, b, lower=True, check_finite=False)


def invert_factored(L: Any) -> Any:
    """The inverse of $L L^T$."""
    if isinstance(L, jax.Array):
        return jax.scipy.linalg.cho_solve((L, True), jnp.eye(L.shape[0]))
    from scipy.linalg.lapack import dpotri  # pyright: ignore[reportAttributeAccessIssue]

    lower = np.tril(dpotri(L, lower=1)[0])
    return lower + np.tril(lower, -1).T


def invert_lower(L: np.ndarray) -> np.ndarray:
    """The inverse of a lower triangular matrix."""
    from scipy.linalg.lapack import dtrtri  # pyright: ignore[reportAttributeAccessIssue]

    return dtrtri(L, lower=1)[0] if len(L) else L


def next_length(count: int, *, first: int = 16, ratio: int = 8, most: int = 2**16) -> int:
    """The length to which `count` entries are padded, so that few programs are compiled: one for each length.

    It is `first` times a power of `ratio`, or above `most` a multiple of `most`.
    """
    length = first
    while length < min(count, most):
        length *= ratio
    return length if count <= length else -(-count // most) * most


def padded(values: np.ndarray, length: int) -> np.ndarray:
    """An array with its last entry repeated up to a length."""
    return np.concatenate([values, np.repeat(values[-1:], length - len(values), axis=0)])
