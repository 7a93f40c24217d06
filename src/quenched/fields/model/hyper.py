r"""Priors with hyperparameters: template and operator are functions of $\theta$. [lemm1999, chapter 5]

$$p(\phi, \theta) = \frac{1}{Z(\theta)}\, e^{-\frac12 (\phi - t(\theta),\, K(\theta) (\phi - t(\theta)))}\; p(\theta) ,
\qquad \ln Z(\theta) = \tfrac d2 \ln 2\pi - \tfrac12 \ln\det v K(\theta) ,$$
with the volume $v$ of a cell, $d$ the rank of $K$, and $\det$ over what is not its null space, which must not depend on
$\theta$. The normalisation is kept wherever $\theta$ is compared, so that $p(\theta)$ is what it says; its derivative
is $-\tfrac12 \mathrm{Tr}(K^{-1} \partial K)$. [eqs. (411) to (418), (446) to (450), errata F425, F449]

Derivatives by $\theta$ come from JAX where it can trace the user's function, and from differences of fourth order where
it cannot. Nothing is solved here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core.types import InputError, double, is_traced
from quenched.fields.model.hyperpriors import Choice, Flat, Hyperprior
from quenched.fields.model.likelihoods import GaussianData
from quenched.fields.model.operators import Operator, Waves
from quenched.fields.model.priors import And, Gaussian, Prior, combined
from quenched.fields.model.problem import Problem

ALONE = "theta"
"""The name of hyperparameters that were not named."""
NOISE = "noise"
"""The name of the factor of all noise variances."""
STEP = 2e-3
"""Step of differences of fourth order, in the coordinates of the search."""
STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
"""Places and weights of a first derivative of fourth order."""


@dataclasses.dataclass(frozen=True, eq=False)
class Family:
    """A function of hyperparameters, where these begin, and what is known of them."""

    make: Callable[[Any], Prior]
    start: dict[str, Any]
    hyperprior: dict[str, Any]
    named: bool


class Hyper(Gaussian):
    r"""A Gaussian prior with hyperparameters, $t(\theta)$ and $K(\theta)$.

    `solve` takes the hyperparameters at their start; `adapt` finds them. `a & b` combines it with other priors.

    Attributes:
        make: a function of the hyperparameters that returns a Gaussian prior. They come as a dictionary if they were
            named, otherwise as they were given. With `jax.numpy` inside derivatives are exact.
        start: where they begin: a dictionary by name, or a number or array; by default the middle of each hyperprior.
        hyperprior: what is known of them beforehand, by name or for all: `LogFlat(1e-3, 1e3)`, `Choice([1, 2, 3])`; for
            an array also any Prior on a grid of its shape. By default `Flat()`.

    Examples:
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(0, 1, points=20)])
        >>> prior = fields.Hyper(lambda s: fields.Gaussian(s * fields.Laplacian(grid)), hyperprior=fields.LogFlat())
        >>> round(prior.log_partition(2.0) - prior.log_partition(1.0), 6)  # -19/2 ln 2
        -6.584898
    """

    family: Family = eqx.field(static=True, default=None)  # pyright: ignore[reportAssignmentType]

    def __init__(self, make: Callable[[Any], Prior], start: Any = None, hyperprior: Any = None):
        if not callable(make):
            raise InputError(f"Argument `make` must be a function of the hyperparameters, but {make!r} was given.")
        named = isinstance(start, Mapping) or isinstance(hyperprior, Mapping)
        for name, given in (("start", start), ("hyperprior", hyperprior)):
            if named and not (given is None or isinstance(given, Mapping)):
                raise InputError(f"Argument `{name}` must have names, because the other one has, but {given!r} was "
                                 "given.")  # fmt: skip
        starts = dict(start or {}) if named else {} if start is None else {ALONE: start}
        known = dict(hyperprior or {}) if named else {ALONE: Flat() if hyperprior is None else hyperprior}
        if not starts and hyperprior is None:
            raise InputError("Argument `start` or `hyperprior` must be given, but neither was.")
        for name in {**starts, **known}:
            if not isinstance(name, str) or name == NOISE:
                raise InputError(f"Hyperparameters must have names, and not `{NOISE}`, but {name!r} was given.")
            known.setdefault(name, Flat())
            if not isinstance(known[name], (Hyperprior, Prior)):
                raise InputError("Argument `hyperprior` must be hyperpriors, such as LogFlat(0.01, 100), but "
                                 f"{known[name]!r} was given.")  # fmt: skip
            starts[name] = _check_start(name, starts.get(name), known[name])
        self.family = Family(make, starts, known, named)
        first = self.prior(starts)
        self.operator, self.mean = first.operator, first.mean

    @property
    def start(self) -> dict[str, Any]:
        """Where the hyperparameters begin, by name."""
        return self.family.start

    @property
    def hyperprior(self) -> dict[str, Any]:
        """What is known of them, by name."""
        return self.family.hyperprior

    @double
    def prior(self, theta: Any) -> Gaussian:
        """The prior at given hyperparameters.

        Args:
            theta: as `start`.
        """
        if isinstance(theta, Mapping) and not self.family.named:
            theta = theta[ALONE]
        made = self.family.make(theta)
        if not isinstance(made, Prior):
            raise InputError(f"Argument `make` must return a prior, but it returned {made!r}.")
        return jax.tree.map(_on_host, combined(made))

    def log_partition(self, theta: Any) -> float:
        r"""$\ln Z(\theta)$, see the module.

        Args:
            theta: as `start`.
        """
        K = self.prior(theta).operator
        rank = K.grid.size - len(K.null_space())
        return float(0.5 * (rank * np.log(2 * np.pi / K.grid.cell) - K.logdet()))


def _check_start(name: str, start: Any, hyperprior: Any) -> Any:
    """A start as a float, an array or an alternative."""
    if isinstance(hyperprior, Choice):
        if start is not None and start not in hyperprior.values:
            raise InputError(f"Argument `start` must be an alternative of `{name}`, but {start!r} was given.")
        return hyperprior.values[0] if start is None else start
    if start is None:
        start = np.zeros(hyperprior.grid.shape) if isinstance(hyperprior, Prior) else hyperprior.middle
    try:
        array = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"Argument `start` must be numbers, but {start!r} was given.") from None
    if not np.all(np.isfinite(array)):
        raise InputError(f"Argument `start` must be finite, but {start!r} was given.")
    if isinstance(hyperprior, Prior):
        return hyperprior.grid.check("start", array)
    ends = [hyperprior.bounds(float(value)) for value in array.ravel()]
    if not all(low <= value <= high for (low, high), value in zip(ends, array.ravel(), strict=True)):
        raise InputError(f"Argument `start` must lie where the hyperprior of `{name}` is, but {start!r} was given.")
    return float(array) if array.ndim == 0 else array


@dataclasses.dataclass(frozen=True, eq=False)
class Slopes:
    r"""Derivatives of a prior by the coordinates of the search.

    Attributes:
        waves: whether operators are given by eigenvalues of the grid's shape, otherwise as matrices.
        operator: $\partial K$ `[coordinates, ...]`.
        push: $\partial (K t)$ `[coordinates, points]`.
    """

    waves: bool
    operator: np.ndarray
    push: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Space:
    """The hyperparameters of a problem: names and coordinates. Alternatives are held, numbers are searched.

    Attributes:
        problem: what is asked, with `Hyper` among the parts of its prior.
        start: where they begin, by name.
        hyperprior: what is known of each, by name.
    """

    problem: Problem
    start: dict[str, Any]
    hyperprior: dict[str, Any]

    @property
    def choices(self) -> list[str]:
        """The names of those that are chosen among alternatives."""
        return [name for name, known in self.hyperprior.items() if isinstance(known, Choice)]

    @property
    def numbers(self) -> list[str]:
        """The names of those that are searched."""
        return [name for name, known in self.hyperprior.items() if not isinstance(known, Choice)]

    def logarithmic(self, name: str) -> bool:
        """Whether a hyperparameter is searched in its logarithm."""
        known = self.hyperprior[name]
        return isinstance(known, Hyperprior) and known.logarithmic

    def hold(self, theta: Mapping[str, Any]) -> Problem:
        """The problem at given hyperparameters, with one Gaussian prior whose normalisation is that of its operator."""
        prior, likelihood = combined(_joined(self.parts(theta))), self.problem.likelihood
        if NOISE in self.hyperprior:
            factor = theta[NOISE]
            likelihood = dataclasses.replace(likelihood, variance=factor * np.asarray(likelihood.variance))  # pyright: ignore[reportAttributeAccessIssue]
        return Problem(likelihood, self.problem.link, prior)

    def parts(self, theta: Mapping[str, Any]) -> list[Gaussian]:
        """The parts of the prior at given hyperparameters."""
        parts = self.problem.prior.parts if isinstance(self.problem.prior, And) else (self.problem.prior,)
        return [part.prior({name: theta[name] for name in part.start}) if isinstance(part, Hyper) else part
                for part in parts]  # fmt: skip  # pyright: ignore[reportReturnType]

    def pack(self, theta: Mapping[str, Any]) -> np.ndarray:
        """The coordinates of the search: logarithms of positive numbers."""
        every = [np.log(theta[name]) if self.logarithmic(name) else theta[name] for name in self.numbers]
        return np.concatenate([np.ravel(value) for value in every]) if every else np.zeros(0)

    def unpack(self, u: Any, choices: Mapping[str, Any]) -> dict[str, Any]:
        """The hyperparameters at some coordinates, which may be traced."""
        theta, first = dict(choices), 0
        for name in self.numbers:
            shape = np.shape(self.start[name])
            value = u[first : first + int(np.prod(shape))].reshape(shape)
            first += int(np.prod(shape))
            if self.logarithmic(name):
                value = np.exp(value) if isinstance(u, np.ndarray) else jnp.exp(value)
            theta[name] = float(value) if shape == () and isinstance(u, np.ndarray) else value
        return theta

    def bounds(self) -> np.ndarray:
        """Between what the coordinates are searched `[coordinates, 2]`."""
        rows: list[Any] = []
        for name in self.numbers:
            known = self.hyperprior[name]
            for start in np.ravel(self.start[name]):
                ends = (-np.inf, np.inf) if isinstance(known, Prior) else known.bounds(float(start))
                rows.append(np.log(ends) if self.logarithmic(name) else ends)
        return np.asarray(rows, dtype=np.float64).reshape(-1, 2)

    def open(self) -> np.ndarray:
        """Whether the range of a coordinate has no lower and no upper end `[coordinates, 2]`."""
        every = [(self.hyperprior[name], np.size(self.start[name])) for name in self.numbers]
        rows = [getattr(known, "open", (True, True)) for known, count in every for _ in range(count)]
        return np.asarray(rows, dtype=bool).reshape(-1, 2)

    def labels(self) -> list[str]:
        """A name for each coordinate."""
        every = [(name, np.size(self.start[name])) for name in self.numbers]
        return [name if count == 1 else f"{name}[{i}]" for name, count in every for i in range(count)]

    def energy(self, theta: Mapping[str, Any]) -> float:
        """Minus the log-density of the hyperparameters beforehand."""
        return float(sum(_energy(known, theta[name]) for name, known in self.hyperprior.items()))

    def log_volume(self, theta: Mapping[str, Any]) -> float:
        """What an integral over the coordinates has beside the density."""
        known = [(name, self.hyperprior[name]) for name in self.numbers]
        return float(sum(np.sum(one.log_volume(theta[name])) for name, one in known if isinstance(one, Hyperprior)))

    def slope(self, theta: Mapping[str, Any]) -> np.ndarray:
        """The derivative of `energy` by the coordinates."""
        rows = []
        for name in self.numbers:
            known, value = self.hyperprior[name], np.asarray(theta[name])
            if isinstance(known, Hyperprior):
                by = np.asarray(known.slope(value)) * (value if self.logarithmic(name) else 1.0)
            else:
                by = np.asarray(_expanded(known, value)[1])
            rows.append(np.ravel(by))
        return np.concatenate(rows) if rows else np.zeros(0)

    @double
    def differentiate(self, u: np.ndarray, choices: Mapping[str, Any]) -> Slopes:
        """Derivatives of the prior's operator and of what it makes of its template."""
        waves = isinstance(self.operator(u, choices), Waves)

        def described(v: Any) -> tuple[Any, Any]:
            parts = self.parts(self.unpack(v, choices))
            push = sum(part.operator.apply(part.mean) for part in parts)
            return _described(_added(parts), waves), push.reshape(-1) + 0.0  # pyright: ignore[reportAttributeAccessIssue]

        try:
            K, push = (np.asarray(part) for part in jax.jacfwd(described)(jnp.asarray(u)))
            return Slopes(waves, np.moveaxis(K, -1, 0), np.moveaxis(push, -1, 0))
        except (TypeError, ValueError, jax.errors.JAXTypeError):  # a function that JAX cannot trace
            pass
        found = []
        for unit in np.eye(len(u)):
            every = [(weight / STEP, described(u + place * STEP * unit)) for place, weight in STENCIL]
            found.append([sum(w * np.asarray(part[i]) for w, part in every) for i in (0, 1)])
        return Slopes(waves, np.array([K for K, _ in found]), np.array([push for _, push in found]))

    def operator(self, u: np.ndarray, choices: Mapping[str, Any]) -> Operator:
        """That of the prior at some coordinates."""
        return _added(self.parts(self.unpack(u, choices)))


def space_of(problem: Problem, noise: Hyperprior | None = None) -> Space:
    """The hyperparameters of a problem.

    Raises:
        InputError: if its prior has none, has parts that are not Gaussian, or two of one name.
    """
    parts = problem.prior.parts if isinstance(problem.prior, And) else (problem.prior,)
    if not all(isinstance(part, Gaussian) for part in parts):
        raise InputError("Argument `prior` must be Gaussian in all its parts here, but one of them is not.")
    start: dict[str, Any] = {}
    hyperprior: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, Hyper):
            if start.keys() & part.start.keys():
                raise InputError(f"Hyperparameters must have different names, but two are called {list(part.start)}.")
            start.update(part.start)
            hyperprior.update(part.hyperprior)
    if noise is not None:
        if not isinstance(noise, Hyperprior) or not isinstance(problem.likelihood, GaussianData):
            raise InputError("Argument `noise` must be a hyperprior, such as LogFlat(0.01, 100), of a problem with "
                             f"GaussianData, but {noise!r} was given.")  # fmt: skip
        start[NOISE], hyperprior[NOISE] = _check_start(NOISE, None, noise), noise
    if not start:
        raise InputError("Argument `problem` must have hyperparameters, but its prior has none: use Hyper.")
    return Space(problem, start, hyperprior)


def _on_host(leaf: Any) -> Any:
    """An array that JAX has computed as one of NumPy; what is traced stays as it is."""
    return np.asarray(leaf) if isinstance(leaf, jax.Array) and not is_traced(leaf) else leaf


def _joined(parts: list[Gaussian]) -> Prior:
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _added(parts: list[Gaussian]) -> Operator:
    total = parts[0].operator
    for part in parts[1:]:
        total = total + part.operator
    return total


def _described(K: Operator, waves: bool) -> Any:
    """Eigenvalues of the grid's shape, or a matrix."""
    if waves and isinstance(K, Waves):
        return K.values + jnp.zeros(K.grid.shape)
    unit = jnp.eye(K.grid.size).reshape(-1, *K.grid.shape)
    return K.apply(unit).reshape(K.grid.size, -1)


def _energy(known: Any, value: Any) -> float:
    return float(known.energy(value)) if isinstance(known, Hyperprior) else float(_expanded(known, value)[0])


@double
def _expanded(known: Prior, value: np.ndarray) -> tuple[float, np.ndarray]:
    """Energy and slope of a prior about a hyperfield."""
    found = type(known).expand(known, np.asarray(value))
    if found is not None:
        return found[0], found[1]
    energy, slope = jax.value_and_grad(known.energy)(jnp.asarray(value))
    return float(energy), np.asarray(slope)
