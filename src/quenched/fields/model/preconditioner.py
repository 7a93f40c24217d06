r"""A preconditioner of the Hessian $H = v K + D$ of data and prior, whose root and determinant are known.

In the modes of $K$ it is $v k + c$ with a constant $c$ in place of the data's curvature $D$, but for the smoothest
modes, a box of about a thousand: their block $U^T D U + v k$ is exact and dense. A constant alone is not enough: where
no rows are $D$ is nearly zero, and the smoothest modes live there. Along the rough ones the prior outweighs the data.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from quenched.core.types import Array
from quenched.fields.model.grid import Grid, Periodic
from quenched.fields.model.operators import Operator, Sum, Waves
from quenched.fields.model.problem import Problem
from quenched.fields.model.products import data_diagonal, on_device
from quenched.fields.model.smoothness import Mass, Plate

EXACT = 1000
"""Modes of which the block is dense: so many that it takes as long as some tens of products with the Hessian."""
RIDGE = 1e-12
"""What is added to the block's diagonal, as a share of its mean."""


class Preconditioner(eqx.Module):
    r"""$M \approx H$ in the modes of waves: constant but for a dense block of the smoothest.

    Attributes:
        waves: the operator of the prior, or a similar one, with modes along all axes.
        stiffness: the eigenvalues of $M$ outside the block, of the shape of the grid.
        root: $R$ with $R R^T = B^{-1}$ of the block $B$.
        box: how many modes of each axis are in the block.
    """

    waves: Waves
    stiffness: Array
    root: Array
    box: tuple[int, ...] = eqx.field(static=True)

    @property
    def _inside(self) -> tuple[slice, ...]:
        return tuple(slice(m) for m in self.box)

    def solve(self, right: Array) -> Array:
        r"""$M^{-1}$ of a field."""
        a = self.waves.to_modes(right)
        low = self.root @ (self.root.T @ a[self._inside].ravel())
        return self.waves.from_modes((a / self.stiffness).at[self._inside].set(low.reshape(self.box)))

    def spread(self, c: Array) -> Array:
        r"""The field $T c$ of coordinates in which $M$ is the identity: $T T^T = M^{-1}$."""
        low = self.root @ c[self._inside].ravel()
        a = (c / jnp.sqrt(self.stiffness)).at[self._inside].set(low.reshape(self.box))
        return self.waves.from_modes(a)

    def gather(self, field: Array) -> Array:
        r"""$T^T \phi$, the slope in these coordinates."""
        a = self.waves.to_modes(field)
        low = self.root.T @ a[self._inside].ravel()
        return (a / jnp.sqrt(self.stiffness)).at[self._inside].set(low.reshape(self.box))

    def coordinates(self, field: Array) -> Array:
        r"""$c = T^{-1} \phi$."""
        a = self.waves.to_modes(field)
        low = solve_triangular(self.root, a[self._inside].ravel(), lower=False)
        return (a * jnp.sqrt(self.stiffness)).at[self._inside].set(low.reshape(self.box))

    def logdet(self) -> Array:
        r"""$\ln \det M$."""
        logs = jnp.log(self.stiffness)
        return jnp.sum(logs) - jnp.sum(logs[self._inside]) - 2 * jnp.sum(jnp.log(jnp.abs(jnp.diagonal(self.root))))


class Ground(eqx.Module):
    """What the preconditioners of a problem have in common. Programs get it as an argument, not as a constant.

    Attributes:
        waves: the operator of the prior, or a similar one, with modes along all axes.
        bases: the smoothest modes of each axis.
        signs: random signs of the shape of the grid.
    """

    waves: Waves
    bases: tuple[Any, ...]
    signs: Any


def ground_of(problem: Problem) -> Ground:
    """That of a problem where JAX computes; arrays of the problem are not copied."""
    grid = problem.grid
    waves = resembling(Mass(grid, 0.0) if problem.parts is None else problem.operator)
    bases = tuple(waves.basis(i, m) for i, m in enumerate(box_of(grid)))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=grid.shape)
    return on_device(Ground(waves, bases, signs))


def precondition(problem: Problem, ground: Ground, field: Array) -> Preconditioner:
    """That of a problem at a field; in JAX."""
    grid, waves = problem.grid, ground.waves
    diagonal = data_diagonal(problem, field, ground.signs)
    box = tuple(int(U.shape[1]) for U in ground.bases)
    level = jnp.sum(diagonal**2) / jnp.maximum(jnp.sum(diagonal), np.finfo(float).tiny)
    prior = jnp.broadcast_to(grid.cell * waves.values, grid.shape)
    stiffness = prior + jnp.maximum(level, RIDGE * jnp.mean(prior) + np.finfo(float).tiny)
    block: Any = diagonal
    for U in ground.bases:  # a dimension of the points becomes one of pairs of modes, and moves to the end
        block = jnp.tensordot(block, (U[:, :, None] * U[:, None, :]).reshape(len(U), -1), axes=(0, 0))
    block = block.reshape([m for m in box for _ in range(2)])
    order = [2 * i for i in range(len(box))] + [2 * i + 1 for i in range(len(box))]
    block = block.transpose(order).reshape(math.prod(box), -1)
    low = prior[tuple(slice(m) for m in box)].ravel() + RIDGE * jnp.trace(block) / len(block)
    block = block + jnp.diag(low)
    lower = jnp.linalg.cholesky(block)
    root = solve_triangular(lower, jnp.eye(len(block)), lower=True).T
    return Preconditioner(waves, stiffness, root, box)


def box_of(grid: Grid, total: int = EXACT) -> tuple[int, ...]:
    """How many modes of each axis are in the dense block, which has a given size at most."""
    box, left = [0] * len(grid.axes), float(total)
    for rank, i in enumerate(sorted(range(len(box)), key=lambda i: grid.shape[i])):
        axis = grid.axes[i]
        m = min(axis.points, max(1, int(left ** (1 / (len(box) - rank)) + 1e-9)))
        if isinstance(axis.ends, Periodic) and m < axis.points:
            m -= 1 - m % 2  # cosine and sine of each wave
        box[i] = m
        left /= m
    return tuple(box)


def resembling(operator: Operator) -> Waves:
    """An operator in waves, with modes along all axes, that is a given one or is like it."""
    grid = operator.grid
    if isinstance(operator, Waves):
        orders = [0 if order is None else order for order in operator.orders]
        if all(order == 0 or axis.points <= 512 for order, axis in zip(orders, grid.axes, strict=True)):
            return Waves(grid, operator.values, tuple(orders))
        return _in_cosines(operator)
    if isinstance(operator, Plate):
        total: Any = Mass(grid, 0.0)
        for i, axis in enumerate(grid.axes):
            values = axis.eigenvalues * (axis.spacing * (axis.points - 1)) ** 2
            shape = [-1 if j == i else 1 for j in range(len(grid.axes))]
            total = total + Waves(grid, values.reshape(shape), tuple(0 if j == i else None for j in range(len(shape))))
        return resembling(operator.factor * total**operator.order)
    if isinstance(operator, Sum):
        parts = [factor * resembling(part) for factor, part in operator.terms]
        if len({part.orders for part in parts if isinstance(part, Waves)}) > 1:
            parts = [_in_cosines(part) for part in parts if isinstance(part, Waves)]
        first, *rest = parts
        for part in rest:
            first = first + part
        return resembling(first)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=grid.shape)
    return resembling(Mass(grid, float(max(np.mean(signs * np.asarray(operator.apply(signs))), 0.0))))


def _in_cosines(operator: Waves) -> Waves:
    """The same eigenvalues with the modes of the Laplacian in place of those of differences."""
    return dataclasses.replace(operator, orders=(0,) * len(operator.orders))
