r"""The energy of a problem without any matrix, in JAX: its slope and products with its Hessian for every link.

The prior acts on a function $a(\phi)$ of the field. Its energy $\tfrac12 (a - t, K(a - t))$ has the slope
$a'^T v K (a - t)$, in which $K$ is applied once, and so is it in the product of a vector with the derivative of the
slope: derivatives of the energy itself, taken without looking, would apply it several times. The data are
differentiated automatically.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import LIGHT, QUICK, Array
from quenched.fields.model.problem import Problem

_P = ParamSpec("_P")
_T = TypeVar("_T")


SMALL = 20_000
"""Points up to which compiling takes longer than computing."""


def by_size(function: Callable[_P, _T], static: tuple[int, ...] = ()) -> Callable[_P, _T]:
    """Compile a function of a problem and more: in little time on small grids, for speed on large ones."""
    quick, fast = (jax.jit(function, static_argnums=static, compiler_options=one) for one in (QUICK, LIGHT))

    @functools.wraps(function)
    def compiled(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        problem: Any = args[0]
        return (quick if problem.grid.size <= SMALL else fast)(*args, **kwargs)

    return compiled


def on_device(problem: Problem) -> Problem:
    """The same problem with its arrays where JAX computes."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, problem)


def data_slope(problem: Problem, field: Array) -> Array:
    """The derivative of the energy of the data alone."""
    return jax.grad(lambda phi: problem.energies(phi)[1])(field)


def look(problem: Problem, field: Array) -> tuple[tuple[Array, Array], Array]:
    """The energy, the part of the data in it, and its slope."""
    if problem.parts is None:
        return jax.value_and_grad(problem.energies, has_aux=True)(field)
    link = problem.link

    def data(phi: Array) -> Array:
        return problem.likelihood.energy(link, link.project(phi))

    loss, slope = jax.value_and_grad(data)(field)
    about, pull = jax.vjp(lambda phi: link.argument(link.project(phi)), field)
    energy, push = loss, jnp.zeros_like(field)
    for part in problem.parts:
        off = about - part.mean
        force = problem.grid.cell * part.operator.apply(off)
        energy, push = energy + 0.5 * jnp.vdot(off, force), push + force
    return (energy, loss), slope + pull(push)[0]


def hessian_product(problem: Problem, field: Array) -> Callable[[Array], Array]:
    """A function that multiplies fields by the Hessian at a field."""
    return jax.linearize(lambda phi: look(problem, phi)[1], field)[1]


def data_diagonal(problem: Problem, field: Array, probes: int = 1) -> Array:
    r"""The diagonal of the Hessian of the data, by products with random signs $z$: the mean of $z \circ H z$.

    It is exact where the Hessian is diagonal, and within a share of about $\sqrt{\sum p^2}$ for the covariance of
    counts with the shares $p$. It is what preconditioners need: nowhere negative.
    """
    product = jax.linearize(lambda phi: data_slope(problem, phi), field)[1]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(probes, *problem.grid.shape))
    return jnp.maximum(sum(z * product(z) for z in signs) / probes, 0.0)
