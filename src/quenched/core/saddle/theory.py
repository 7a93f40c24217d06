r"""A theory: one smooth kernel $(x, \theta)$ -> equations, free energy, readings; and its evaluation on the host.

The unknowns $x$ are a few order parameters, the parameters $\theta$ a pytree of numbers, so that other values need no
other program. Where panels, gaps or brackets of an integral lie is a matter of landmarks: they are computed before the
kernel, by a function that is never differentiated.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import QUICK, Array, InputError


class Kernel(NamedTuple):
    """What a theory gives at one point."""

    equations: Array  # [d]: they vanish at a state
    free_energy: Array  # NaN where there is none
    readings: Any = ()  # a NamedTuple of further numbers, such as a stability


class Theory(abc.ABC):
    r"""Equations of state for a few unknowns, to be subclassed.

    An instance is a static argument of compiled programs: hashable, without arrays. Declare one for each kind of
    theory (a constant of the module, or a frozen dataclass of functions) and put every number into $\theta$.
    """

    furthest = 1.0
    """The longest step of a search in any unknown."""

    @abc.abstractmethod
    def kernel(self, x: Array, theta: Any, marks: Any) -> Kernel:
        """Equations, free energy and readings: smooth in `x` and `theta`, without loops.

        Its values and derivatives must not depend on `marks` beyond rounding. A landmark that moves with `x`, such as
        the edge of a gap, is inserted again by two Newton steps, which have its first three derivatives.
        """

    def landmarks(self, x: Any, theta: Any) -> Any:
        """Nodes, panels, edges and brackets at a point, any pytree of fixed shapes; never differentiated.

        On the host it is called with NumPy arrays, inside `state` with JAX arrays: write it for both with `namespace`
        (then the host has nothing to compile), or decorate it with `jax.jit`.
        """
        return ()

    def relax(self, x: Array, equations: Array) -> Array:
        """A step of plain iteration, with which a search far from a state begins."""
        return -equations


class Point(NamedTuple):
    """A state, or a special point of a branch, as NumPy."""

    x: np.ndarray  # [d]; at a crossing [2, d], the state on either branch
    free_energy: float
    readings: Any  # as the kernel has them; at a crossing a pair
    unstable: int  # number of unstable directions: 0 at a minimum of a free energy; -1 where it is not known
    residual: float  # largest violation of the equations, and of the condition that defines a special point
    outcome: Any  # an `Outcome`
    control: float = np.nan


class Evaluation(NamedTuple):
    """A kernel and its derivatives at one point, as NumPy."""

    equations: np.ndarray  # [d]
    free_energy: float
    readings: Any
    slopes: np.ndarray  # [d, d] of the equations by the unknowns; [d, d + 1] where there is a control, the last column
    relaxed: np.ndarray  # [d], a step of plain iteration


def evaluate(theory: Theory, x: np.ndarray, theta: Any, along: str = "", control: float = np.nan) -> Evaluation:
    """The kernel with its derivatives by the unknowns `x` and by a control, if one is given: see `move`.

    One program is compiled for each theory and control.
    """
    if along:
        theta = move(theta, along, np.float64(control))
    with np.errstate(all="ignore"):  # a trial may lie far from any state
        marks = theory.landmarks(x, theta)
    kernel, slopes, relaxed = _sloped(theory, along, x, theta, marks)
    G, f, readings = jax.tree.map(np.asarray, kernel)
    return Evaluation(G, float(f), readings, np.asarray(slopes), np.asarray(relaxed))


def iterate(step: Callable[[Any], Any], start: Any, going: Callable[[Any, Any], Any], *, most: int) -> Any:
    """Repeat a step while `going(new, old)`, in NumPy or in JAX as `start` is: for landmarks."""
    if not isinstance(start, jax.Array):
        for _ in range(most):
            start, old = step(start), start
            if not going(start, old):
                break
        return start

    def body(state: tuple[Any, Any, Array]) -> tuple[Any, Any, Array]:
        return step(state[0]), state[0], state[2] + 1

    begin = body((start, start, jnp.asarray(0)))
    return jax.lax.while_loop(lambda state: going(state[0], state[1]) & (state[2] < most), body, begin)[0]


def move(theta: Any, along: str, value: Any) -> Any:
    """Parameters with another value of a control.

    A control is the name of a field of `theta`; with dots, of a field inside a field. Several separated by commas move
    together, such as `"gamma,gt"`.
    """
    paths = along.split(",")
    if "." not in along and hasattr(theta, "_replace"):
        return theta._replace(**dict.fromkeys(paths, value))
    for path in paths:
        theta = eqx.tree_at(functools.partial(_get, path), theta, value)
    return theta


def control_of(theta: Any, along: str) -> float:
    """The value of a control."""
    return float(_get(along.split(",")[0], theta))


def _get(path: str, theta: Any) -> Any:
    return functools.reduce(getattr, path.split("."), theta)


@functools.partial(jax.jit, static_argnums=(0, 1), compiler_options=QUICK)
def _sloped(theory: Theory, along: str, x: Array, theta: Any, marks: Any) -> tuple[Kernel, Array, Array]:
    """The kernel, its derivatives and a step of plain iteration; the kernel is traced once."""
    d = x.size

    def equations(y: Array) -> tuple[Array, Kernel]:
        at = move(theta, along, y[d]) if along else theta
        found = Kernel(*theory.kernel(y[:d], at, marks))
        if jnp.shape(found.equations) != x.shape:
            raise InputError(f"Argument `equations` must return one value for each of the {d} order "
                             f"parameters, but it returns shape {jnp.shape(found.equations)}.")  # fmt: skip
        return found.equations, found

    y = jnp.append(x, _get(along.split(",")[0], theta)) if along else x
    slopes, found = jax.jacfwd(equations, has_aux=True)(y)
    return found, slopes, theory.relax(x, found.equations)


class Setting(NamedTuple):
    """The parameters of a `Landscape`."""

    control: Any = 0.0
    args: Any = None


@dataclasses.dataclass(frozen=True)
class Landscape(Theory):
    r"""A free energy $f(x, c, \theta)$ whose stationary points $G = \partial f/\partial x = 0$ are wanted.

    Both functions are JAX functions of the order parameters `x` `[d]`, the scalar `control` that is varied, and `args`,
    any pytree of what is held fixed. Equations may be given instead of a free energy, or beside it where they are known
    in a better form than its gradient; a zero of the equations is then a state. Its parameters are
    `Setting(control, args)`.

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

    def kernel(self, x: Array, theta: Setting, marks: Any) -> Kernel:
        """The equations, or the gradient of the free energy."""

        def energy(x: Array) -> Array:
            f = jnp.full((), jnp.nan) if self.free_energy is None else jnp.asarray(self.free_energy(x, *theta))
            if f.shape != ():
                raise InputError(f"Argument `free_energy` must return one number, but it returns shape {f.shape}.")
            return f

        if self.equations is not None:
            return Kernel(jnp.asarray(self.equations(x, *theta)), energy(x))
        f, G = jax.value_and_grad(energy)(x)
        return Kernel(G, f)
