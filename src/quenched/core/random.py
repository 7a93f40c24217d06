"""Random numbers for algorithms on the host: those of `jax.random`, by programs that serve many shapes.

A generator takes a fifth of a second to compile, for each shape anew, and much less to run. The numbers of a key do not
depend on how many are drawn; so more are drawn than are asked for: up to the next power of two, or multiple of 2^20.
"""

from __future__ import annotations

import functools
import math

import jax
import numpy as np

from quenched.core.linear import next_length
from quenched.core.types import QUICK, Array, Key

FIRST, MOST = 2**10, 2**20
"""Fewest numbers that are drawn at once, and the number above which only multiples of it are drawn."""


def normals(key: Key, *shape: int) -> np.ndarray:
    """Standard normal numbers: `jax.random.normal(key, shape)` in double precision."""
    count = math.prod(shape)
    return np.asarray(_normals(key, _length(count)))[:count].reshape(shape)


def uniforms(key: Key, *shape: int) -> np.ndarray:
    """Numbers between 0 and 1: `jax.random.uniform(key, shape)` in double precision."""
    count = math.prod(shape)
    return np.asarray(_uniforms(key, _length(count)))[:count].reshape(shape)


def signs(key: Key, *shape: int) -> np.ndarray:
    """Numbers +1 or -1: `jax.random.rademacher(key, shape)`."""
    return np.where(uniforms(key, *shape) < 0.5, 1.0, -1.0)


@functools.partial(jax.jit, static_argnums=1, compiler_options=QUICK)
def split(key: Key, count: int = 2) -> tuple[Key, ...]:
    """The keys of `jax.random.split`, one by one."""
    return tuple(jax.random.split(key, count))


def _length(count: int) -> int:
    return next_length(count, first=FIRST, ratio=2, most=MOST)


@functools.partial(jax.jit, static_argnums=1, compiler_options=QUICK)
def _normals(key: Key, count: int) -> Array:
    return jax.random.normal(key, (count,), float)


@functools.partial(jax.jit, static_argnums=1, compiler_options=QUICK)
def _uniforms(key: Key, count: int) -> Array:
    return jax.random.uniform(key, (count,), float)
