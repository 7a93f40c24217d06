r"""The question: likelihood x link x prior, and its energy, minus the logarithm of the posterior.

$$E(\phi) = -\sum_i \ln p(y_i | x_i, \phi) + \sum_j \tfrac12 \big(\phi - t_j,\, K_j (\phi - t_j)\big)$$

up to what does not depend on the field. Priors are combined by `&`: both hold. Nothing is solved here.

`Problem.energy` is the one definition, in JAX. `Problem.expand` is the same with its derivatives on the host, without
compiling anything where likelihood, link and prior have closed forms: with the shares $p$ of the points at each $x$,
what the prior is about has the derivatives $J = I - 1 p^T$ for $L = g - \ln \int e^g$, so that the Hessian is
$$H = J^T M J + \sum_x (n_x - q_x)(\mathrm{diag}\, p - p p^T)$$
of the matrix $M$ of the prior, $v K$ if it is Gaussian, and its pull $q_x$ at each $x$, $\int dy\, K(L - t)$.
[lemm1999, eq. (160)]
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import QUICK, Array, InputError, double
from quenched.fields.model.either import Either
from quenched.fields.model.expansion import Curvature, DenseCurvature, Expansion, ShareCurvature
from quenched.fields.model.grid import Grid
from quenched.fields.model.likelihoods import Likelihood
from quenched.fields.model.links import Density, Direct, Link
from quenched.fields.model.modes import require_matrix
from quenched.fields.model.operators import Operator
from quenched.fields.model.priors import And, Gaussian, Prior, gaussians, operator_of

BLIND = 1e-9
"""A prior that pulls at a constant by less than this share of its pull at a rough field does not see it."""


class Problem(eqx.Module):
    """A learning problem on a grid.

    Attributes:
        likelihood: `DensityData`, `GaussianData`, `ClassData`, `NoisyData` and more.
        link: what the field means.
        prior: what is known before.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(over=[fields.Axis(0, 1, points=50)])
        >>> smooth = fields.Gaussian(0.1 * fields.Laplacian(grid))
        >>> problem = fields.Problem(fields.DensityData([0.3, 0.4]), fields.LogDensity(grid), smooth)
    """

    likelihood: Likelihood
    link: Link
    prior: Prior

    def __init__(self, likelihood: Likelihood, link: Link, prior: Prior):
        for name, value, kind in (
            ("likelihood", likelihood, Likelihood),
            ("link", link, Link),
            ("prior", prior, Prior),
        ):
            if not isinstance(value, kind):
                raise InputError(f"Argument `{name}` must be a {kind.__name__}, but {value!r} was given.")
        if prior.grid != link.grid:
            raise InputError("Prior and link must live on one grid, but they have different ones.")
        if not isinstance(link, likelihood.links) or (isinstance(link, Direct) and Direct not in likelihood.links):
            every = likelihood.links != (Link,)
            names = " or ".join(f"`{one.__name__}`" for one in likelihood.links) if every else "of a density"
            raise InputError(f"`{type(likelihood).__name__}` must go with the link {names}, but "
                             f"`{type(link).__name__}` was given.")  # fmt: skip
        for part in prior.parts if isinstance(prior, And) else (prior,):
            if isinstance(link, Density) and isinstance(part, Either):
                least = min(float(np.min(one.mean)) for one in part.priors)
                if least < 0:
                    raise InputError(f"Templates of alternatives must not be negative with the link "
                                     f"`{type(link).__name__}`, but one of them is {least:g} somewhere.")  # fmt: skip
        self.likelihood, self.link, self.prior = likelihood.prepared(link.grid), link, prior

    @property
    def grid(self) -> Grid:
        """Where the fields live."""
        return self.link.grid

    def energy(self, field: Array) -> Array:
        """Minus the log-posterior of the projected field, up to a constant."""
        return self.energies(field)[0]

    def energies(self, field: Array) -> tuple[Array, Array]:
        """The energy, and the part of the data."""
        field = self.link.project(field)
        loss = self.likelihood.energy(self.link, field)
        return loss + self.prior.energy(self.link.argument(field)), loss

    @functools.cached_property
    def parts(self) -> list[Gaussian] | None:
        """The parts of a Gaussian prior; None for another one."""
        try:
            return gaussians(self.prior)
        except InputError:
            return None

    @functools.cached_property
    def operator(self) -> Operator:
        """That of a Gaussian prior."""
        return operator_of(self.prior)

    @functools.cached_property
    def undetermined(self) -> np.ndarray:
        """Constants that change neither data nor prior, as an orthonormal row `[0 or 1, points]`."""
        size = self.grid.size
        if not self.likelihood.shifts:
            return np.zeros((0, size))
        at = np.random.default_rng(0).normal(size=self.grid.shape)
        slopes = [self._prior_slope(at + shift) for shift in (0.0, 1.0)]
        free = np.max(np.abs(slopes[1] - slopes[0])) <= BLIND * np.max(np.abs(slopes[0]))
        return np.full((int(free), size), 1 / np.sqrt(size))

    @double
    def _prior_slope(self, field: np.ndarray) -> np.ndarray:
        found = type(self.prior).expand(self.prior, field)
        return np.asarray(_prior_slope(self.prior, jnp.asarray(field))) if found is None else found[1]

    def log_integral(self, field: np.ndarray) -> np.ndarray:
        r"""$\ln \int dy\, e^g$ of a field, kept as dimensions of length 1, on the host."""
        top = field.max(axis=self.grid.dims, keepdims=True)
        return top + np.log(np.sum(self.grid.weights * np.exp(field - top), axis=self.grid.dims, keepdims=True))

    @double
    def density(self, field: np.ndarray) -> np.ndarray:
        """The density of a field, on the host; compiled only for links that are not exponential."""
        if self.link.exponential:
            return np.exp(field - self.log_integral(field))
        return np.asarray(self.link.density(jnp.asarray(field)))

    def expand(self, field: np.ndarray) -> Expansion:
        """The energy about a field with its derivatives, on the host.

        Args:
            field: of the shape of the grid.

        Returns:
            Energy, slope and Hessian: in closed form for exponential links and for regression, if likelihood and
            prior have one, as Gaussian priors do; otherwise by automatic differentiation.
        """
        closed = self.link.linear or self.link.exponential
        data = self.likelihood.expand(self.link, field) if closed else None
        if data is None:
            return self._expand_by_jax(field)
        (X, Y), about, p = self.grid.blocks, field, None
        if not self.link.linear:
            about = field - self.log_integral(field)
            p = (self.grid.weights * np.exp(about)).reshape(X, Y)
        before = type(self.prior).expand(self.prior, about)  # Equinox is slow to bind methods
        if before is None:
            return self._expand_by_jax(field)
        loss, slope, curvature = data
        energy, pull = loss + before[0], np.reshape(before[1], (X, Y))
        bends = before[2] if self.parts is None else lambda: self.grid.cell * self.operator.matrix  # kept, not added up
        if p is None:
            return Expansion(energy, loss, slope.ravel() + pull.ravel(), lambda: bends() + curvature.matrix())
        q = pull.sum(axis=1)
        whole = slope.reshape(X, Y) + pull - q[:, None] * p
        return Expansion(energy, loss, whole.ravel(), lambda: _along(bends(), curvature, p, q))

    @double
    def _expand_by_jax(self, field: np.ndarray) -> Expansion:
        phi = jnp.asarray(field, float)
        (energy, loss), slope = _derivatives(self, phi)
        return Expansion(float(energy), float(loss), np.asarray(slope).ravel(), lambda: self.hessian(field))

    @property
    def expand_data(self) -> Callable[[np.ndarray], tuple[float, np.ndarray, Curvature]]:
        """A function of a field: the energy of the data alone, its slope and its curvature, on the host."""
        data, link = self.likelihood, self.link
        closed = type(data).expand  # not that of the object: Equinox makes a new one whenever it is asked for

        def expand(field: np.ndarray) -> tuple[float, np.ndarray, Curvature]:
            found = closed(data, link, field)
            if found is not None:
                return found
            with jax.enable_x64(True):
                value, slope, H = _data_derivatives(self, jnp.asarray(field, float))
                return float(value), np.asarray(slope), DenseCurvature(np.asarray(H).reshape(field.size, -1))

        return expand

    @double
    def gradient(self, field: Any) -> np.ndarray:
        """The derivative of the energy along the constraint, by each component of the field."""
        return np.asarray(_derivatives(self, jnp.asarray(field, float))[1])

    @double
    def hessian(self, field: Any) -> np.ndarray:
        """The matrix of its second derivatives `[points, points]`, of flattened fields."""
        require_matrix(self.grid.size, "NewtonCG needs none")
        return np.asarray(_second_derivatives(self, jnp.asarray(field, float))).reshape(self.grid.size, -1)

    @double
    def value(self, field: Any) -> float:
        """The energy as a number."""
        return float(_derivatives(self, jnp.asarray(field, float))[0][0])


@functools.partial(jax.jit, compiler_options=QUICK)
def _prior_slope(prior: Prior, field: Array) -> Array:
    return jax.grad(prior.energy)(field)


def _along(M: np.ndarray, curvature: Curvature, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The closed form of the Hessian along the constraint: shares `p`, pull of the prior `q` and its matrix `M`."""
    X, Y = p.shape
    gone = np.kron(np.eye(X), np.ones((1, Y)))
    P, seen = gone * p.ravel(), gone @ M
    across = seen.T @ P
    return curvature.matrix() + M - across - across.T + P.T @ (seen @ gone.T) @ P - ShareCurvature(q, p).matrix()


@functools.partial(jax.jit, compiler_options=QUICK)
def _derivatives(problem: Problem, field: Array) -> tuple[tuple[Array, Array], Array]:
    return jax.value_and_grad(problem.energies, has_aux=True)(field)


@functools.partial(jax.jit, compiler_options=QUICK)
def _second_derivatives(problem: Problem, field: Array) -> Array:
    return jax.jacfwd(jax.grad(problem.energy))(field)


@functools.partial(jax.jit, compiler_options=QUICK)
def _data_derivatives(problem: Problem, field: Array) -> tuple[Array, Array, Array]:
    def loss(phi: Array) -> Array:
        return problem.energies(phi)[1]

    return (*jax.value_and_grad(loss)(field), jax.jacfwd(jax.grad(loss))(field))
