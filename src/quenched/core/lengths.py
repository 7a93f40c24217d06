"""Lengths for which programs are compiled: an array is padded to the next of a few, and its result cut again.

A program of JAX is compiled for the shapes of its arguments. Without padding every other number of times, or of
dimensions, would cost a compilation of seconds.
"""

from __future__ import annotations

import numpy as np


def next_length(count: int, *, first: int = 16, ratio: int = 8, most: int = 2**16) -> int:
    """The length for `count` entries: `first` times a power of `ratio`, or above `most` a multiple of `most`."""
    length = first
    while length < min(count, most):
        length *= ratio
    return length if count <= length else -(-count // most) * most


def padded(values: np.ndarray, length: int) -> np.ndarray:
    """An array with its last entry repeated up to a length."""
    return np.concatenate([values, np.repeat(values[-1:], length - len(values), axis=0)])
