r"""Where an iteration begins: uniform, at the empirical density, at a kernel estimate, or at a template.

[lemm1999, section 7.3]

$N$ counts the data on the grid. The conditional empirical density is $N/N_X$, and uniform in $y$ where nothing was seen
at $x$. A kernel is $C = (K + m^2 I)^{-1}$ with the operator of the prior, or another.
"""

from __future__ import annotations

import abc
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import QUICK, Array, InputError, Real, real
from quenched.fields.model.either import templates_of, uncertain
from quenched.fields.model.grid import Grid
from quenched.fields.model.links import Density, Direct, Link, SquareRoot
from quenched.fields.model.operators import Operator, check_operator
from quenched.fields.model.parametrisations import Unnormalised
from quenched.fields.model.priors import combined, operator_of
from quenched.fields.model.problem import Problem
from quenched.fields.model.smoothness import Mass

UNSEEN = 1e-12
"""A prior does not see a function if it pulls at it by less than this, compared with another function."""
LEAST = 1e-6
"""A kernel estimate is nowhere below this share of its largest value."""


class Start(eqx.Module):
    """Where the field begins."""

    @abc.abstractmethod
    def field(self, problem: Problem) -> Any:
        """The field, not yet projected."""


def _of_log(problem: Problem, log_density: np.ndarray) -> Any:
    """The field of a log-density, which need not be normalised."""
    return problem.link.field(problem.grid.normalised(np.asarray(log_density, float)))


def _counts(problem: Problem) -> np.ndarray:
    N = problem.likelihood.expected_counts(problem.grid)
    if N is None:
        raise InputError("Argument `start` must be Uniform() or Given(field) for data that are no points of a density, "
                         f"but the data are `{type(problem.likelihood).__name__}`.")  # fmt: skip
    return np.asarray(N)


def _kernel(problem: Problem, operator: Operator | None, mass: Real) -> Operator:
    """The inverse of $C$."""
    if operator is None and uncertain(problem.prior):
        operator = templates_of(problem.prior)[0][0].operator
    operator = operator_of(problem.prior) if operator is None else operator
    return operator + Mass(problem.grid, float(mass))


def empirical(grid: Grid, N: np.ndarray) -> np.ndarray:
    r"""$N/N_X$ per volume, uniform where there are no data. [lemm1999, eq. (237)]"""
    N_X = np.sum(N, axis=grid.dims, keepdims=True)
    even = grid.weights / grid.weights.sum()
    return np.where(N_X > 0, N / np.where(N_X > 0, N_X, 1.0), even) / grid.weights


class Uniform(Start):
    """The same density everywhere; in regression the template of the prior."""

    def field(self, problem: Problem) -> Any:
        """That of a constant log-density."""
        if isinstance(problem.link, Direct):
            if uncertain(problem.prior):
                return Template().field(problem)
            return np.zeros(problem.grid.shape) if problem.parts is None else np.asarray(combined(problem.prior).mean)
        return _of_log(problem, np.zeros(problem.grid.shape))


class Empirical(Start):
    r"""$\ln(N/n + \epsilon)$: peaks at the data.

    Attributes:
        epsilon: $\epsilon$.
    """

    epsilon: Real = eqx.field(converter=real, default=1e-10)

    def __check_init__(self):
        checks.positive("epsilon", self.epsilon)

    def field(self, problem: Problem) -> Any:
        r"""That of $\ln(N/n + \epsilon)$."""
        N = _counts(problem)
        return _of_log(problem, np.log(N / N.sum() + self.epsilon))


class Kernel(Start):
    r"""A kernel estimate, $P = C N$ or $C P_{\rm emp}$, normalised. [lemm1999, eqs. (691), (698), erratum F692]

    A kernel of higher order has negative parts: the estimate is at least `LEAST` of its largest value.

    Attributes:
        mass: $m^2$ in $C = (K + m^2 I)^{-1}$.
        operator: $K$; by default that of the prior.
        conditional: whether the kernel acts on the conditional empirical density (True) or on the counts.
    """

    mass: Real = eqx.field(converter=real, default=0.1)
    operator: Operator | None = None
    conditional: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        checks.positive("mass", self.mass)
        check_operator(self.operator)
        checks.flag("conditional", self.conditional)

    def field(self, problem: Problem) -> Any:
        r"""That of $\ln C N$."""
        N = _counts(problem)
        P = _kernel(problem, self.operator, self.mass).solve(empirical(problem.grid, N) if self.conditional else N)
        return _of_log(problem, np.log(np.maximum(P, LEAST * P.max())))


class Truncated(Start):
    r"""$L = C N$: the stationarity equation without its normalisation. [lemm1999, eq. (682)]

    Attributes:
        mass: $m^2$ in $C = (K + m^2 I)^{-1}$.
        operator: $K$; by default that of the prior.
    """

    mass: Real = eqx.field(converter=real, default=0.1)
    operator: Operator | None = None

    def __check_init__(self):
        checks.positive("mass", self.mass)
        check_operator(self.operator)

    def field(self, problem: Problem) -> Any:
        """That of the log-density $C N$."""
        return _of_log(problem, _kernel(problem, self.operator, self.mass).solve(_counts(problem) / problem.grid.cell))


class Given(Start):
    """A given field.

    Attributes:
        given: of the shape of the grid, in the meaning of the link; it is normalised.
    """

    given: Any

    def __check_init__(self):
        checks.finite("given", self.given)

    def field(self, problem: Problem) -> Any:
        """It, if it may be one."""
        field = problem.grid.check("given", self.given)
        negative = isinstance(problem.link, Density) and np.any(field < 0)
        if negative or not np.isfinite(problem.expand(field).energy):
            raise InputError("Argument `given` must be a density that is not negative and positive where data are, but "
                             "it is not.")  # fmt: skip
        return field


class Template(Start):
    """The template of an alternative of the prior, or the mean of all of them.

    Attributes:
        which: the number of the alternative, from 0; by default the mean.
    """

    which: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.which is not None:
            checks.whole("which", self.which, least=0)

    def field(self, problem: Problem) -> Any:
        """It; a density is nowhere below `LEAST` of its largest value."""
        found, shares = templates_of(problem.prior)
        if self.which is not None and self.which >= len(found):
            raise InputError(f"Argument `which` must be below the number of alternatives, {len(found)}, but "
                             f"{self.which} was given.")  # fmt: skip
        templates = np.array([one.mean for one in found])
        t = np.tensordot(shares, templates, 1) if self.which is None else templates[self.which]
        if isinstance(problem.link, Direct) or problem.link.exponential:
            return t
        if type(problem.link) in (Density, SquareRoot, Unnormalised):
            return np.maximum(t, LEAST * np.max(t))
        raise InputError(f"Argument `start` must not be a Template for the link `{type(problem.link).__name__}`, "
                         "whose prior is about something else than its field: use Uniform().")  # fmt: skip


def blind(problem: Problem) -> bool:
    """Whether a Gaussian prior does not see functions of $x$ alone."""
    if problem.parts is None:
        return False
    shape = tuple(1 if d in problem.grid.dims else size for d, size in enumerate(problem.grid.shape))
    field = np.random.default_rng(0).normal(size=problem.grid.shape)  # not zero by chance
    across = field - field.mean(axis=problem.grid.dims, keepdims=True)
    along = np.broadcast_to(np.random.default_rng(1).normal(size=shape), problem.grid.shape)
    seen, other = (float(np.max(np.abs(np.asarray(problem.operator.apply(part))))) for part in (along, across))
    return seen <= UNSEEN * other


def convex(problem: Problem) -> bool:
    r"""Whether the energy is known to have one minimum.

    That of $P$ has. That of $L = g - \ln \int e^g$ has if the prior does not see functions of $x$: then it is one of
    $g$, and $\ln \int e^g$ is convex. So has that of $g$ under a prior about $g$, and that of a regression whose
    likelihood is convex. The others need not have.
    """
    link, data = problem.link, problem.likelihood
    if problem.parts is None or not (data.convex or (data.convex_in_density and isinstance(link, Density))):
        return False
    return isinstance(link, Density) or link.linear or (link.exponential and blind(problem))


def usual(problem: Problem) -> tuple[Start, ...]:
    """Where to begin if nothing is said: several places, unless there is only one minimum."""
    if uncertain(problem.prior):
        return _alternatives(problem)
    if convex(problem) or isinstance(problem.link, Direct) or problem.likelihood.expected_counts(problem.grid) is None:
        return (Uniform(),)
    if problem.parts is None:
        return (Uniform(), Empirical())
    return (Uniform(), Kernel(), Kernel(conditional=False), Truncated())


def _alternatives(problem: Problem) -> tuple[Start, ...]:
    """The template of each alternative, their mean, and the data."""
    about_field = type(problem.link) in (Density, SquareRoot, Unnormalised, Direct) or problem.link.exponential
    count = len(templates_of(problem.prior)[0]) if about_field else 0
    starts = (*(Template(j) for j in range(count)), *((Template(),) if count > 1 else ()))
    if isinstance(problem.link, Direct) or problem.likelihood.expected_counts(problem.grid) is None:
        return starts or (Uniform(),)
    return (*starts, Uniform(), Kernel())


def begin(start: Any, problem: Problem) -> np.ndarray:
    """The field at which a start begins, projected."""
    if not isinstance(start, Start):
        raise InputError(f"Argument `start` must be a start, such as Uniform() or Kernel(mass=0.1), but {start!r} was "
                         "given.")  # fmt: skip
    field = projected(problem, np.asarray(start.field(problem), dtype=np.float64))
    problem.likelihood.check_field(field)
    return field


def projected(problem: Problem, field: Any) -> np.ndarray:
    """The field that fulfils the normalisation; compiled only where it is more than an integral."""
    link = problem.link
    found = link.project(field) if link.exponential or link.linear else _project(link, jnp.asarray(field))
    return np.asarray(found, dtype=np.float64)


@functools.partial(jax.jit, compiler_options=QUICK)
def _project(link: Link, field: Array) -> Array:
    return link.project(field)
