r"""Parameterised fields: $\phi = \phi(\xi)$ by any function of JAX, in front of a problem. [lemm1999, chapter 4]

$$E(\xi) = -\ln p\big(D\,|\,\phi(\xi)\big) + E_0\big(\phi(\xi)\big) + E_\xi(\xi) ,$$

with a prior about the field, that of the problem, and one about the parameters; both may hold. Linear trial spaces
(Ritz), additive models, products, mixtures, trees, projection pursuit and neural networks are functions $\phi(\xi)$.
[eqs. (342), (361) to (366)]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from quenched.core import checks
from quenched.core.types import Array, InputError, double
from quenched.fields.model.priors import Prior
from quenched.fields.model.problem import Problem


class Parametrised(eqx.Module):
    r"""Fields of a problem that a function of parameters gives.

    Attributes:
        function: $\phi(\xi)$, in JAX: from parameters to a field of the shape of the grid.
        problem: likelihood, link and the prior about the field.
        parameters: a first guess of $\xi$, an array or a tree of arrays: it says of which shape they are.
        prior: the prior about $\xi$: None, a function in JAX that returns an energy, or a `Prior` on a grid of the
            shape of $\xi$.

    Examples:
        >>> import numpy as np
        >>> from quenched import fields
        >>> axis = fields.Axis(0, 1, points=5)
        >>> grid = fields.Grid(given=[axis])
        >>> data = fields.GaussianData([0.0, 0.5, 1.0], [1.0, 2.0, 3.0])
        >>> free = fields.Problem(data, fields.Direct(grid), fields.Gaussian(fields.Mass(grid, 0.0)))
        >>> line = fields.Parametrised(lambda xi: xi[0] + xi[1] * axis.coordinates, free, np.zeros(2))
        >>> fields.solve(line).parameters.round(6).tolist()
        [1.0, 2.0]
    """

    function: Callable[[Any], Any] = eqx.field(static=True)
    problem: Problem
    parameters: Any
    prior: Any = None

    def __init__(self, function: Callable[[Any], Any], problem: Problem, parameters: Any, prior: Any = None):
        checks.kind("problem", problem, Problem, "a Problem")
        if not callable(function):
            raise InputError(f"Argument `function` must be a function of parameters, but {function!r} was given.")
        if prior is not None and not callable(prior) and not isinstance(prior, Prior):
            raise InputError(f"Argument `prior` must be a function, a Prior or None, but {prior!r} was given.")
        self.function, self.problem, self.prior = function, problem, prior
        self.parameters = _numbers("parameters", parameters)
        if isinstance(prior, Prior) and np.shape(self.parameters) != prior.grid.shape:
            raise InputError(f"Argument `prior` must live on a grid of the shape of the parameters, but that is "
                             f"{prior.grid.shape}.")  # fmt: skip
        try:
            with jax.enable_x64(True):
                made = np.shape(jax.eval_shape(function, self.parameters))
        except (TypeError, ValueError, IndexError, KeyError) as error:
            raise InputError(f"Argument `function` must take the parameters, but it raises {type(error).__name__}: "
                             f"{str(error).splitlines()[0]}.") from None  # fmt: skip
        if made != problem.grid.shape:
            raise InputError(f"Argument `function` must return fields of the shape {problem.grid.shape} of the grid, "
                             f"but it returns {made}.")  # fmt: skip

    def energy(self, parameters: Any) -> Array:
        """Minus the log-posterior of parameters, up to a constant."""
        return self.problem.energy(self.function(parameters)) + self.parameter_energy(parameters)

    def parameter_energy(self, parameters: Any) -> Array:
        """That of the prior about the parameters."""
        if self.prior is None:
            return jnp.zeros(())
        return self.prior.energy(parameters) if isinstance(self.prior, Prior) else jnp.asarray(self.prior(parameters))

    @double
    def check(self, name: str, parameters: Any) -> np.ndarray:
        """Parameters of the right shape, flat."""
        given = _numbers(name, parameters)
        wanted, found = ([np.shape(leaf) for leaf in jax.tree.leaves(tree)] for tree in (self.parameters, given))
        if jax.tree.structure(given) != jax.tree.structure(self.parameters) or wanted != found:
            raise InputError(f"Argument `{name}` must have the shape {wanted} of the parameters, but it has {found}.")
        return np.asarray(ravel_pytree(given)[0], dtype=np.float64)

    @double
    def draw(self, count: int, *, spread: float = 1.0, seed: int = 0) -> list[Any]:
        """Random starts about the first guess.

        Args:
            count: how many.
            spread: standard deviation of every parameter.
            seed: of the random numbers.
        """
        flat, back = ravel_pytree(jax.tree.map(np.asarray, self.parameters))
        random = np.random.default_rng(checks.whole("seed", seed, least=0))
        checks.positive("spread", checks.number("spread", spread))
        noise = random.normal(size=(checks.whole("count", count, least=1), flat.size))
        return [jax.tree.map(np.asarray, back(flat + spread * one)) for one in noise]


def _numbers(name: str, parameters: Any) -> Any:
    """A tree of finite arrays."""
    if parameters is None or not jax.tree.leaves(parameters):
        raise InputError(f"Argument `{name}` must be an array or a tree of arrays, but {parameters!r} was given.")
    if isinstance(parameters, list):
        parameters = checks.numbers(name, parameters)
    found = jax.tree.map(lambda leaf: checks.numbers(name, leaf), parameters)
    if not all(np.all(np.isfinite(leaf)) and leaf.size for leaf in jax.tree.leaves(found)):
        raise InputError(f"Argument `{name}` must be finite and not empty, but it is not.")
    return found
