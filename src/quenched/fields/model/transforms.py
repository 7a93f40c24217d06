r"""Amplitudes of the modes of $-\Delta$ along one dimension by fast transforms, on the host and under JAX.

Periodic modes are cosine and sine of each wave (a real Fourier transform), those of free ends cosines (DCT-II), those
of Dirichlet ends sines (DST-I): the orthonormal columns of `Axis.modes`, in the same order, without a matrix.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft

from quenched.fields.model.grid import Ends, Free, Periodic


def to_modes(field: Any, ends: Ends, dim: int) -> Any:
    """Amplitudes of the modes along one dimension of an array."""
    host = isinstance(field, np.ndarray)
    if isinstance(ends, Periodic):
        return _waves(field, dim, np if host else jnp)
    if isinstance(ends, Free):
        return scipy.fft.dct(field, norm="ortho", axis=dim) if host else _cosines(field, dim)
    return scipy.fft.dst(field, type=1, norm="ortho", axis=dim) if host else _sines(field, dim)


def from_modes(amplitudes: Any, ends: Ends, dim: int) -> Any:
    """The array with these amplitudes along one dimension."""
    host = isinstance(amplitudes, np.ndarray)
    if isinstance(ends, Periodic):
        return _of_waves(amplitudes, dim, np if host else jnp)
    if isinstance(ends, Free):
        return scipy.fft.idct(amplitudes, norm="ortho", axis=dim) if host else _of_cosines(amplitudes, dim)
    return scipy.fft.dst(amplitudes, type=1, norm="ortho", axis=dim) if host else _sines(amplitudes, dim)


def _norms(n: int) -> np.ndarray:
    """Factors from real and imaginary parts of the Fourier transform to amplitudes of cosines and sines."""
    norms = np.full(n, np.sqrt(2 / n))
    norms[2::2] *= -1  # the transform has minus the sine
    norms[0] = np.sqrt(1 / n)
    if n % 2 == 0:
        norms[-1] = np.sqrt(1 / n)
    return norms


def _waves(field: Any, dim: int, xp: Any) -> Any:
    n = field.shape[dim]
    X = xp.moveaxis((scipy.fft if xp is np else jnp.fft).rfft(field, axis=dim), dim, -1)
    parts = xp.stack([X.real, X.imag], axis=-1).reshape(*X.shape[:-1], -1)
    return xp.moveaxis(xp.concatenate([parts[..., :1], parts[..., 2 : n + 1]], axis=-1) * _norms(n), -1, dim)


def _of_waves(amplitudes: Any, dim: int, xp: Any) -> Any:
    n = amplitudes.shape[dim]
    norms = _norms(n) * np.where(np.arange(n) == 0, n, n / 2)
    if n % 2 == 0:
        norms[-1] *= 2
    parts = xp.moveaxis(amplitudes, dim, -1) * norms
    none = xp.zeros_like(parts[..., :1])
    parts = xp.concatenate([parts[..., :1], none, parts[..., 1:], *([none] if n % 2 == 0 else [])], axis=-1)
    parts = parts.reshape(*parts.shape[:-1], parts.shape[-1] // 2, 2)  # -1 fails where there are no fields
    X = parts[..., 0] + 1j * parts[..., 1] if xp is np else jax.lax.complex(parts[..., 0], parts[..., 1])
    return xp.moveaxis((scipy.fft if xp is np else jnp.fft).irfft(X, n=n, axis=-1), -1, dim)


def _turn(n: int) -> np.ndarray:
    r"""$e^{-i\pi k/2n}$ for the lower half of the waves, with the norms of the modes."""
    turn = np.sqrt(2 / n) * np.exp(-0.5j * np.pi * np.arange(n // 2 + 1) / n)
    turn[0] = np.sqrt(1 / n)
    return turn


def _cosines(field: Any, dim: int) -> Any:
    """The cosine transform by a real Fourier transform of points in the order 0, 2, 4, ..., 5, 3, 1."""
    x = jnp.moveaxis(field, dim, -1)
    n = x.shape[-1]
    X = jnp.fft.rfft(jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], axis=-1), axis=-1) * _turn(n)
    upper = -X.imag[..., 1 : (n + 1) // 2][..., ::-1]  # mode n - k is in the imaginary part of mode k
    return jnp.moveaxis(jnp.concatenate([X.real, upper], axis=-1), -1, dim)


def _of_cosines(amplitudes: Any, dim: int) -> Any:
    """Back again."""
    a = jnp.moveaxis(amplitudes, dim, -1)
    n = a.shape[-1]
    none = jnp.zeros_like(a[..., :1])
    imaginary = jnp.concatenate([none, -a[..., (n + 1) // 2 :][..., ::-1]], axis=-1)[..., : n // 2 + 1]
    X = jax.lax.complex(a[..., : n // 2 + 1], imaginary) / _turn(n)
    y = jnp.fft.irfft(X, n=n, axis=-1)
    half = (n + 1) // 2
    even, odd = y[..., :half], y[..., half:][..., ::-1]
    odd = jnp.concatenate([odd, none], axis=-1) if n % 2 else odd
    x = jnp.stack([even, odd], axis=-1).reshape(*y.shape[:-1], -1)[..., :n]
    return jnp.moveaxis(x, -1, dim)


def _sines(field: Any, dim: int) -> Any:
    """The sine transform by a real Fourier transform of the odd continuation; its own inverse."""
    x = jnp.moveaxis(field, dim, -1)
    n, none = x.shape[-1], jnp.zeros_like(x[..., :1])
    X = jnp.fft.rfft(jnp.concatenate([none, x, none, -x[..., ::-1]], axis=-1), axis=-1)
    return jnp.moveaxis(-X.imag[..., 1 : n + 1] * np.sqrt(0.5 / (n + 1)), -1, dim)
