r"""A free energy $f(x, c, \theta)$ or its equations of state, and the one compiled kernel everything else calls."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import fixed_point
from quenched.core.types import Array, InputError, require_double


@dataclasses.dataclass(frozen=True)
class Landscape:
    r"""A free energy $f(x, c, \theta)$ whose stationary points $G = \partial f/\partial x = 0$ are wanted.

    Both functions are JAX functions of the order parameters `x` `[d]`, the scalar `control` that is varied, and `args`,
    any pytree of what is held fixed. Equations may be given instead of a free energy, or beside it where they are known
    in a better form than its gradient; a zero of the equations is then a state.

    Args:
        free_energy: returns a scalar.
        equations: returns `[d]`.

    Raises:
        InputError: if neither is given.

    Examples:
        >>> import jax.numpy as jnp
        >>> magnet = Landscape(lambda m, h, T: jnp.sum(m**2 / 2 - T * jnp.log(2 * jnp.cosh((m + h) / T))))
    """

    free_energy: Callable[[Array, Array, Any], Array] | None = None
    equations: Callable[[Array, Array, Any], Array] | None = None

    def __post_init__(self) -> None:
        if self.free_energy is None and self.equations is None:
            raise InputError("Argument `free_energy` must be a function, but neither it nor `equations` was given.")

    def gradient(self, x: Array, control: Array, args: Any) -> Array:
        """The equations of state at `x`, of the shape of `x`."""
        if self.equations is not None:
            G = jnp.asarray(self.equations(x, control, args))
            if G.shape != x.shape:
                raise InputError(f"Argument `equations` must return one value for each of the {x.size} order "
                                 f"parameters, but it returns shape {G.shape}.")  # fmt: skip
            return G
        return jax.grad(self.energy)(x, control, args)

    def energy(self, x: Array, control: Array, args: Any) -> Array:
        """The free energy at `x`; NaN where only equations were given."""
        if self.free_energy is None:
            return jnp.full((), jnp.nan)
        f = jnp.asarray(self.free_energy(x, control, args))
        if f.shape != ():
            raise InputError(f"Argument `free_energy` must return one number, but it returns shape {f.shape}.")
        return f


def solve(
    landscape: Landscape,
    start: Array,
    control: Any = 0.0,
    args: Any = None,
    *,
    tolerance: float = 1e-12,
    max_steps: int = 200,
) -> fixed_point.Solution:
    r"""The state near `start`, as a pure JAX function: differentiable in `control` and `args`.

    At a state $G(x, \theta) = 0$ the implicit derivative is $dx/d\theta = -(\partial G/\partial x)^{-1}
    \partial G/\partial\theta$.

    Args:
        landscape: free energy or equations.
        start: `[d]`, near the wanted state.
        control: its value.
        args: passed on.
        tolerance: relative and absolute accuracy of the state.
        max_steps: at most.

    Raises:
        InputError: in single precision.
    """
    require_double("saddle.solve")

    def equations(x: Array, fixed: Any) -> Array:
        return landscape.gradient(x, *fixed)

    fixed = (jnp.asarray(control, dtype=float), args)
    return fixed_point.root(equations, start, fixed, tolerance=tolerance, max_steps=max_steps)


def _kernel(landscape: Landscape, y: Array, args: Any) -> tuple[Array, Array, Array]:
    r"""$f$, $G$ and $[\partial G/\partial x\,|\,\partial G/\partial c]$ at $y = (x, c)$."""

    def equations(y: Array) -> tuple[Array, tuple[Array, Array]]:
        x, c = y[:-1], y[-1]
        G = landscape.gradient(x, c, args)
        return G, (landscape.energy(x, c, args), G)

    M, (f, G) = jax.jacfwd(equations, has_aux=True)(y)
    return f, G, M


_one = functools.partial(jax.jit, static_argnums=0)(_kernel)
_many = functools.partial(jax.jit, static_argnums=0)(jax.vmap(_kernel, in_axes=(None, 0, None)))


def evaluate(landscape: Landscape, y: np.ndarray, args: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The kernel at one `y` `[d + 1]` or many `[n, d + 1]`, as NumPy: free energy, equations, their derivatives."""
    f, G, M = (_one if y.ndim == 1 else _many)(landscape, y, args)
    return np.asarray(f), np.asarray(G), np.asarray(M)


def index(J: np.ndarray) -> int:
    """The number of directions in which a state is unstable: eigenvalues with a negative real part."""
    return int(np.sum(np.linalg.eigvals(J).real < 0)) if np.all(np.isfinite(J)) else -1
