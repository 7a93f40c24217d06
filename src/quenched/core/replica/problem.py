r"""The declaration: an energy of one field, the law of that field, and a term of the norm.

A vector $J$ has the overlap $R = J \cdot B/N$ with a teacher, $B \cdot B/N = \rho^2$, and the norm $Q = J \cdot J/N$.
An example belongs to class $V$ with probability $w_V$; its field is then $u \sim \mathcal N(m_V R,\, v_V Q + n_V)$. The
vector is trained to the least total energy $N\,\text{norm}(R, Q) + \sum_\mu \ell(u_\mu, Q)$ of $\alpha N$ examples.
Nothing is solved here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, Real, double, is_traced, real, real_tuple, reals

NEAR, FAR = 30.0, 1e6
"""Fields at which an energy must be finite, and up to which its growth is looked at."""


class Plain(eqx.Module):
    """A function without parameters of its own, made a part of a declaration that JAX can carry."""

    function: Callable[..., Any] = eqx.field(static=True)

    def __call__(self, *args: Any) -> Any:
        """The function's value."""
        return self.function(*args)


def _callable(value: Any) -> Any:
    """Converter of a function: one that carries parameters (an `eqx.Module`) stays as it is."""
    if not callable(value):
        raise InputError(f"An energy must be a function, but {value!r} was given.")
    return value if isinstance(value, eqx.Module) else Plain(value)


def zero(R: Array, Q: Array) -> Array:
    """No term of the norm."""
    return jnp.zeros_like(Q)


class Classes(eqx.Module):
    r"""The law of the field: $u \sim \mathcal N(m_V R,\, v_V Q + n_V)$ with probability $w_V$.

    Attributes:
        weights: $w_V$, which sum to 1.
        means: $m_V$.
        variances: $v_V$, positive.
        noise: $n_V$: what the field has besides the vector, such as the noise of a label.

    Examples:
        >>> from quenched.core import replica
        >>> replica.Classes(weights=[0.3, 0.7], means=[0.0, 1.0], variances=0.1).count
        2
    """

    weights: Any = eqx.field(converter=reals, default=1.0)
    means: Any = eqx.field(converter=reals, default=0.0)
    variances: Any = eqx.field(converter=reals, default=1.0)
    noise: Any = eqx.field(converter=reals, default=0.0)

    def __check_init__(self):
        shapes = {np.shape(value) for value in self._fields()}
        if len(shapes - {()}) > 1 or any(len(shape) > 1 for shape in shapes):
            raise InputError("Arguments `weights`, `means`, `variances` and `noise` must be numbers or lists of one "
                             f"length, but their shapes are {sorted(shapes)}.")  # fmt: skip
        checks.not_negative("weights", self.weights)
        checks.finite("means", self.means)
        checks.positive("variances", self.variances)
        checks.not_negative("noise", self.noise)
        if not is_traced(self.weights):
            total = float(np.sum(np.broadcast_to(self.weights, self.count)))
            if abs(total - 1) > 1e-9:
                raise InputError(f"Argument `weights` must sum to 1, but it sums to {total:g}.")

    def _fields(self) -> tuple[Any, Any, Any, Any]:
        return self.weights, self.means, self.variances, self.noise

    @property
    def count(self) -> int:
        """How many classes there are."""
        return max((np.shape(value)[0] for value in self._fields() if np.ndim(value)), default=1)

    def table(self) -> tuple[Array, Array, Array, Array]:
        r"""$w_V, m_V, v_V, n_V$, each of shape `[count]`."""
        w, m, v, n = (jnp.broadcast_to(jnp.asarray(value, float), (self.count,)) for value in self._fields())
        return w, m, v, n


class Problem(eqx.Module):
    r"""What is trained, on what.

    Attributes:
        energy: $\ell(y, Q)$ of one field, a number from two numbers. A function, or an `eqx.Module` whose fields are
            parameters: every result is differentiable with respect to these.
        classes: the law of the field.
        norm: $\text{norm}(R, Q)$, the part of the energy that is not a sum over examples, over $N$.
        rho2: $\rho^2 = B \cdot B/N$.
        kinks: the fields $y$ at which $\ell$ has a kink.

    Examples:
        Hinge loss with a ridge, for two clusters of unit variance at $\pm B/\sqrt N$:

        >>> import jax.numpy as jnp
        >>> from quenched.core import replica
        >>> problem = replica.Problem(
        ...     energy=lambda y, Q: jnp.maximum(0, 1 - y),
        ...     classes=replica.Classes(means=1.0),
        ...     norm=lambda R, Q: 0.5 * Q,
        ...     kinks=(1.0,),
        ... )
    """

    energy: Any = eqx.field(converter=_callable)
    classes: Classes = eqx.field(default_factory=Classes)
    norm: Any = eqx.field(converter=_callable, default=zero)
    rho2: Real = eqx.field(converter=real, default=1.0)
    kinks: tuple[Any, ...] = eqx.field(converter=real_tuple, default=())

    def __check_init__(self):
        if not isinstance(self.classes, Classes):
            raise InputError(f"Argument `classes` must be a `Classes`, but {self.classes!r} was given.")
        checks.positive("rho2", self.rho2)
        checks.finite("kinks", self.kinks)


@double
def check(problem: Problem) -> None:
    """Check that an energy is one number for one field, finite at ordinary fields, and falls no faster than a parabola.

    Raises:
        InputError: if it is not; one that falls faster has no minimum.
    """
    checks.kind("problem", problem, Problem, "a replica.Problem")
    one = jax.ShapeDtypeStruct((), jnp.float64)
    for name, function in (("energy", problem.energy), ("norm", problem.norm)):
        shape = getattr(jax.eval_shape(function, one, one), "shape", None)
        if shape != ():
            raise InputError(f"Argument `{name}` must return one number from two, but it returns shape {shape}.")
    y, far = np.linspace(-NEAR, NEAR, 241) + 1e-3, np.geomspace(NEAR, FAR, 60)
    every = jnp.concatenate([y, far, -far])
    value, *sides = np.split(np.asarray(jax.vmap(lambda y: problem.energy(y, jnp.asarray(1.0)))(every)), [241, 301])
    if not np.all(np.isfinite(value)):
        bad = y[~np.isfinite(value)][0]
        raise InputError(f"Argument `energy` must be finite, but at y = {bad:.3g}, Q = 1 it is not.")
    for side in sides:
        known = np.isfinite(side)  # a plain exponential overflows far out, where no field ever is
        depth = (-side / np.square(far))[known]
        if depth.size > 1 and depth[-1] > 1 and depth[-1] > 2 * np.abs(depth[0]):
            raise InputError("Argument `energy` must have a minimum beside every parabola, but it falls faster than "
                             "any: it is unbounded below.")  # fmt: skip
