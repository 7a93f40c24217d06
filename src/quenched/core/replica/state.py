"""The state and its averages as pure JAX functions: `jit`, `vmap` and `grad` work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import saddle
from quenched.core.replica.landmarks import landmarks
from quenched.core.replica.problem import Problem
from quenched.core.replica.theory import REPLICA, Nodes, Readings, Setting, differentiate, nodes, order_parameters
from quenched.core.types import QUICK, Array, Real, is_traced, require_double

STARTS = np.array([(c, np.log(Q), 0.0) for c in (0.2, 0.9) for Q in (0.1, 1.0, 10.0)])
"""Where the search begins by default: cosine, $\\ln Q/\\rho^2$, $\\ln z$."""
RELAXED = 20
"""Steps of plain iteration with which it then begins."""


class State(NamedTuple):
    """A stationary point of the free energy."""

    R: Any
    Q: Any
    z: Any
    free_energy: Any
    example_energy: Any  # mean energy of an example after training
    stability: Any  # replica symmetry is stable below 1
    outcome: Any
    residual: Any  # of the saddle equations, free of units


def state(problem: Problem, alpha: Real, start: Any = None) -> State:
    r"""The stationary point of the free energy, as a pure JAX function: `jit`, `vmap` and `grad` work.

    Args:
        problem: what is trained.
        alpha: examples per dimension.
        start: $(R, Q, z)$ near the wanted point. By default several starts are tried and the point of lowest free
            energy is taken.

    Returns:
        A `State`. Nothing is raised on failure: see its `outcome` and `residual`.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from quenched.core import replica
        >>> squares = replica.Problem(lambda y, Q: 0.5 * y**2, replica.Classes(noise=1.0), lambda R, Q: Q / 2 + R)
        >>> with jax.enable_x64(True):
        ...     found = replica.state(squares, 1.0, start=(-0.5, 0.5, 0.5))
        >>> round(float(found.z), 4)  # of Marchenko and Pastur: z + z^2 = 1
        0.618
    """
    require_double("state")
    given = (np.nan,) * 3 if start is None else start
    return _state(problem, *_numbers(alpha, *given), start is None)


def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled function; compiled quickly where it is called from the host."""
    inside, outside = jax.jit(function), jax.jit(function, compiler_options=QUICK)

    def call(*args: Any) -> Any:
        return (inside if any(map(is_traced, jax.tree.leaves(args))) else outside)(*args)

    return call


@_compile
def _state(problem: Problem, alpha: Array, R: Array, Q: Array, z: Array, several: Array) -> State:
    """The state from a start, or the best of several starts: one program for both."""
    only = jnp.stack([R / jnp.sqrt(problem.rho2 * Q), jnp.log(Q), jnp.log(z)])
    every = STARTS + jnp.stack([0.0, jnp.log(problem.rho2), 0.0])
    x = jnp.where(several, every, jnp.where(np.arange(len(STARTS))[:, None] == 0, only, jnp.nan))  # NaN: no search
    found = saddle.state(REPLICA, Setting(problem, alpha), x, relaxations=jnp.where(several, RELAXED, 0))
    R, Q, z = order_parameters(problem, found.x)
    energy, stability = found.readings
    return State(R, Q, z, found.free_energy, energy, stability, found.outcome, found.residual)


@_compile
def _values(problem: Problem, alpha: Array, R: Array, Q: Array, z: Array) -> tuple[Array, Any, Readings, Nodes]:
    """All that is known at order parameters: one program for the functions below."""
    at = nodes(problem, R, Q, z, landmarks(*jax.lax.stop_gradient((problem, R, Q, z))))
    return *differentiate(problem, alpha, R, Q, z, at), at


def _numbers(*values: Real) -> tuple[Array, ...]:
    return tuple(jnp.asarray(value, float) for value in values)


def free_energy(problem: Problem, alpha: Real, R: Real, Q: Real, z: Real) -> Array:
    """The free energy at overlap R, norm Q and susceptibility z, for `alpha` examples per dimension."""
    require_double("free_energy")
    return _values(problem, *_numbers(alpha, R, Q, z))[0]


def equations(problem: Problem, alpha: Real, R: Real, Q: Real, z: Real) -> tuple[Array, Array, Array]:
    r"""$\partial f/\partial R$, $\partial f/\partial Q$ and $\partial f/\partial z$ as averages."""
    require_double("equations")
    return _values(problem, *_numbers(alpha, R, Q, z))[1]


def stability(problem: Problem, alpha: Real, R: Real, Q: Real, z: Real) -> Array:
    r"""$\alpha \sum_V w_V \langle (dy/du - 1)^2 \rangle$: stable below 1, infinite where $y(u)$ jumps."""
    require_double("stability")
    return _values(problem, *_numbers(alpha, R, Q, z))[2].stability


def averages(problem: Problem, R: Real, Q: Real, z: Real, function: Callable[[Array, Array, Array], Any]) -> Any:
    r"""$\sum_V w_V \langle F(y, u, dy/du) \rangle_u$ over examples before ($u$) and after ($y$) training.

    Args:
        problem: what is trained.
        R: overlap with the teacher.
        Q: norm.
        z: susceptibility.
        function: of three arrays of one shape, number by number; it may return several.
    """
    require_double("averages")
    at = _values(problem, *_numbers(0.0, R, Q, z))[3]
    return jax.tree.map(lambda value: jnp.sum(at.weight * value), function(at.y, at.u, at.slope))
