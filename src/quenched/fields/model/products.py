r"""The energy of a problem without any matrix, in JAX: its slope and products with its Hessian for every link.

The prior acts on a function $a(\phi)$ of the field. Its energy $\tfrac12 (a - t, K(a - t))$ has the slope
$a'^T v K (a - t)$, in which $K$ is applied once, and so is it in the product of a vector with the derivative of the
slope: derivatives of the energy itself, taken without looking, would apply it several times. The data are
differentiated automatically.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import QUICK, Array
from quenched.fields.model.problem import Problem

_P = ParamSpec("_P")
_T = TypeVar("_T")


def compiled(function: Callable[_P, _T], static: tuple[int, ...] = ()) -> Callable[_P, _T]:
    """Compile a function in little time and memory, which costs no speed here: most of the time is in transforms."""
    return jax.jit(function, static_argnums=static, compiler_options=QUICK)


def on_device(problem: _T) -> _T:
    """The same problem, or part of one, with its arrays where JAX computes."""
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


def data_diagonal(problem: Problem, field: Array, signs: Array) -> Array:
    r"""The diagonal of the Hessian of the data, by a product with random signs $z$: $z \circ H z$.

    It is exact where the Hessian is diagonal, and within a share of about $\sqrt{\sum p^2}$ for the covariance of
    counts with the shares $p$. It is what preconditioners need: nowhere negative.
    """
    product = jax.linearize(lambda phi: data_slope(problem, phi), field)[1]
    return jnp.maximum(signs * product(signs), 0.0)
