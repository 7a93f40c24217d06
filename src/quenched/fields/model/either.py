r"""Alternatives: priors of which one holds, it is not known which, `a | b`. [lemm1999, sections 6.1 to 6.4]

A mixture of Gaussian priors with the probabilities $p_j$ has, at the inverse temperature $\beta$, the energy
$$E(\phi) = -\frac1\beta \ln \sum_j w_j\, e^{-\beta E_j(\phi)}, \qquad w_j \propto p_j\, (\det K_j)^{1/2} ,
\qquad \sum_j w_j = 1 ,$$
$E_j = \tfrac12 (\phi - t_j, K_j (\phi - t_j))$. The determinants are those of the normalisation of each alternative,
on the complement of the null space that all have in common. At $\beta = 1$ this is minus the log-density of the
mixture, up to a constant; $\beta$ times the energy of a regression is that of eq. (538), in which likelihood and prior
have the temperature $1/\beta$. When $\beta \to 0$ the energy becomes $\sum_j w_j E_j$, which is convex, and when
$\beta \to \infty$ the least of the $E_j$. With the responsibilities $a_j \propto w_j e^{-\beta E_j}$ its derivatives
are $\sum_j a_j E_j'$ and $\sum_j a_j E_j'' - \beta\, \mathrm{cov}_a(E_j')$. [eqs. (530), (538), (546), (713)]
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError
from quenched.fields.model.grid import Grid
from quenched.fields.model.operators import Operator, Waves
from quenched.fields.model.priors import And, Gaussian, Prior, PriorExpansion, combined, gaussians

ONE = 1e-9
"""Weights sum to one if they do so up to this."""
PARALLEL = 1e-6
"""Null spaces are the same if the cosines between them differ from one by no more than this."""


def log_sum(terms: np.ndarray, axis: int = 0) -> np.ndarray:
    r"""$\ln \sum e^x$ along an axis, which is kept."""
    top = np.max(terms, axis=axis, keepdims=True)
    return top + np.log(np.sum(np.exp(terms - top), axis=axis, keepdims=True))


class Either(Prior):
    """One of several Gaussian priors holds; made by `a | b` or by `either`.

    Attributes:
        priors: the alternatives.
        weights: the probability of each.
        beta: the inverse temperature.
        log_weights: logarithms of the probabilities times the roots of the determinants, normalised.
        even: whether no weights were given, so that one alternative more makes all equal again.
    """

    priors: tuple[Gaussian, ...]
    weights: Any
    beta: Any
    log_weights: Any
    even: bool = eqx.field(static=True)
    limit: int = eqx.field(static=True)  # -1 for a beta of 0, 1 for an infinite one

    def __init__(self, priors: Any, weights: Any = None, beta: float = 1.0):
        priors = check_alternatives(priors)
        self.priors, self.even = priors, weights is None
        self.weights = check_weights(weights, len(priors))
        self.beta = np.asarray(_inverse_temperature(beta))
        self.limit = int(self.beta == np.inf) - int(self.beta == 0)
        with np.errstate(divide="ignore"):
            found = np.log(self.weights) + 0.5 * _determinants([prior.operator for prior in priors])
        self.log_weights = found - log_sum(found)

    @property
    def grid(self) -> Grid:
        """That of the alternatives."""
        return self.priors[0].grid

    def energy(self, field: Array) -> Array:
        r"""$-\tfrac1\beta \ln \sum_j w_j e^{-\beta E_j}$."""
        energies = jnp.stack([prior.energy(field) for prior in self.priors])
        if self.limit < 0:
            return jnp.sum(jnp.exp(self.log_weights) * energies)
        if self.limit > 0:
            return jnp.min(jnp.where(self.log_weights > -jnp.inf, energies, jnp.inf))
        return -jax.nn.logsumexp(self.log_weights - self.beta * energies) / self.beta

    def expand(self, field: np.ndarray) -> PriorExpansion:
        """By the responsibilities, see the module."""
        energies, slopes, matrices = zip(*(Gaussian.expand(prior, field) for prior in self.priors), strict=True)
        E, s = np.array(energies), np.reshape(slopes, (len(slopes), -1))
        energy, a = self._share(E)

        def matrix() -> np.ndarray:
            total = sum(share * one() for share, one in zip(a, matrices, strict=True) if share > 0)
            if self.limit:
                return np.asarray(total)
            off = np.sqrt(float(self.beta) * a)[:, None] * (s - a @ s)
            return total - off.T @ off

        return energy, (a @ s).reshape(field.shape), matrix

    def _share(self, energies: np.ndarray) -> tuple[float, np.ndarray]:
        """The energy, and the responsibilities."""
        lw, beta = np.asarray(self.log_weights), float(self.beta)
        if self.limit < 0:
            return float(np.exp(lw) @ energies), np.exp(lw)
        if self.limit > 0:
            j = int(np.argmin(np.where(lw > -np.inf, energies, np.inf)))
            return float(energies[j]), np.eye(len(lw))[j]
        total = log_sum(lw - beta * energies).item()
        return -total / beta, np.exp(lw - beta * energies - total)

    def responsibilities(self, field: Any) -> np.ndarray:
        """The probability of each alternative for a given field.

        Args:
            field: what the prior is about (the log-density, for the link `LogDensity`), of the shape of the grid.
        """
        field = self.grid.check("field", field)
        return self._share(np.array([Gaussian.expand(prior, field)[0] for prior in self.priors]))[1]


def either(*priors: Prior, weights: Any = None, beta: float = 1.0) -> Either:
    r"""The prior of which one of several holds. `a | b` is `either(a, b)`.

    Alternatives among the alternatives are resolved: `a | b | c` has three equal ones; one with weights of its own
    shares its part among them.

    Args:
        *priors: Gaussian ones, or what `&` and `|` make of them; all leave the same fields free.
        weights: the probability of each; by default all are equal.
        beta: the inverse temperature: at 0 the priors are averaged, at infinity only the best one counts.

    Returns:
        The prior, with its `responsibilities`.

    Raises:
        InputError: for no priors, negative weights, or null spaces that differ: then probabilities would depend on
            the units of the field.

    Examples:
        >>> import numpy as np
        >>> from quenched import fields
        >>> grid = fields.Grid(given=[fields.Axis(0, 1, points=3)])
        >>> up, down = (fields.Gaussian(fields.Mass(grid), mean=t) for t in (1.0, -1.0))
        >>> prior = fields.either(up, down, weights=[0.75, 0.25])
        >>> prior.responsibilities(np.zeros(3)).round(12).tolist()
        [0.75, 0.25]
    """
    if not priors:
        raise InputError("Argument `priors` must have at least one prior, but there is none.")
    if weights is None and all(
        isinstance(one, Gaussian) or (isinstance(one, Either) and one.even and one.beta == 1) for one in priors
    ):
        return Either([part for one in priors for part in (one.priors if isinstance(one, Either) else [one])],
                      beta=beta)  # fmt: skip
    found = [resolve(one, alone=True) for one in priors]
    if weights is None and all(len(one.gaussians) == 1 for one in found):
        return Either([one.gaussians[0] for one in found], beta=beta)
    p = check_weights(weights, len(priors))
    parts = [gaussian for one in found for gaussian in one.gaussians]
    return Either(parts, np.concatenate([share * one.weights for share, one in zip(p, found, strict=True)]), beta)


def check_alternatives(priors: Any) -> tuple[Gaussian, ...]:
    """Gaussian priors on one grid that leave the same fields free."""
    if not isinstance(priors, (list, tuple)) or not priors:
        raise InputError(f"Argument `priors` must have at least one prior, but {priors!r} was given.")
    for prior in priors:
        if not isinstance(prior, Prior):
            raise InputError(f"A prior can only be combined with a prior, but {prior!r} was given.")
        if prior.grid != priors[0].grid:
            raise InputError("Priors must live on one grid, but these have different ones.")
    parts = tuple(combined(prior) for prior in priors)
    for prior in parts[1:]:
        if not _same_null_space(parts[0].operator, prior.operator):
            raise InputError(
                "Argument `priors` must leave the same fields free, because otherwise their probabilities depend on "
                "the units of the field, but these have different null spaces: add a small Mass(grid) to each."
            )
    return parts


def check_weights(weights: Any, count: int) -> np.ndarray:
    """Weights that are not negative and sum to one."""
    if weights is None:
        return np.full(count, 1 / count)
    checks.not_negative("weights", weights)
    p = np.asarray(weights, dtype=np.float64)
    if p.shape != (count,) or not np.any(p > 0):
        raise InputError(f"Argument `weights` must have one number for each of the {count} priors, some of them "
                         f"positive, but {weights!r} was given.")  # fmt: skip
    if abs(p.sum() - 1) > ONE:
        warnings.warn(f"The weights sum to {p.sum():g}: they are divided by it.", stacklevel=3)
    return p / p.sum()


def _inverse_temperature(beta: Any) -> float:
    if isinstance(beta, (float, np.floating)) and beta == np.inf:
        return np.inf
    checks.not_negative("beta", beta)
    return checks.number("beta", beta)


def same_operator(first: Operator, second: Operator) -> bool:
    """Whether two operators are the same array of numbers."""
    return first is second or bool(eqx.tree_equal(first, second))


def _determinants(operators: list[Operator]) -> np.ndarray:
    """Their logarithms up to a constant, which need not be computed for equal operators."""
    if all(same_operator(operators[0], other) for other in operators[1:]):
        return np.zeros(len(operators))
    found = np.array([operator.logdet() for operator in operators])
    return found - found[0]


def _same_null_space(first: Operator, second: Operator) -> bool:
    """Whether they take the same fields to zero."""
    if same_operator(first, second):
        return True
    if isinstance(first, Waves) and isinstance(second, Waves) and first.orders == second.orders:
        free, other = (np.broadcast_to(one.values == 0, one.grid.shape) for one in (first, second))
        return np.array_equal(free, other)
    a, b = (one.null_space().reshape(-1, one.grid.size) for one in (first, second))
    if len(a) != len(b):
        return False
    return len(a) == 0 or bool(np.linalg.svd(a @ b.T, compute_uv=False)[-1] > 1 - PARALLEL)


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    r"""What a prior of `&` and `|` is: $E = -\tfrac1\beta \ln \sum_j e^{l_j - \beta E_j}$ of normalised Gaussians.

    Attributes:
        gaussians: with the energies $E_j$.
        log_weights: $l_j$, with all constants.
        beta: $\beta$.
    """

    gaussians: tuple[Gaussian, ...]
    log_weights: np.ndarray
    beta: float

    @functools.cached_property
    def _masses(self) -> np.ndarray:
        """Logarithms of the integrals of all terms, up to what they have in common."""
        return self.log_weights - 0.5 * np.array([one.operator.logdet() for one in self.gaussians])

    @property
    def weights(self) -> np.ndarray:
        """The probability of each, once all parts of the prior are combined."""
        if len(self.gaussians) == 1:
            return np.ones(1)
        return np.exp(self._masses - log_sum(self._masses))

    def log_norm(self) -> float:
        r"""$\ln \int e^{-E}$ at $\beta = 1$, up to $\tfrac12 \ln (2\pi/v)$ for each direction that is not free."""
        return log_sum(self._masses).item()


def resolve(prior: Prior, *, alone: bool = False) -> Mixture:
    r"""A prior of `&` and `|` as one mixture: $(a | b) \& c$ is $(a \& c) | (b \& c)$, with other weights.

    Args:
        prior: of Gaussian parts.
        alone: whether it is to be an alternative itself, at the inverse temperature 1.

    Raises:
        InputError: for parts that are not Gaussian, or different temperatures.
    """
    if not isinstance(prior, Prior):
        raise InputError(f"A prior can only be combined with a prior, but {prior!r} was given.")
    parts = prior.parts if isinstance(prior, And) else (prior,)
    mixed = [part for part in parts if isinstance(part, Either)]
    betas = {float(part.beta) for part in mixed} or {1.0}
    if len(betas) > 1 or (alone and betas != {1.0}):
        raise InputError("Argument `beta` must be the same for all parts of a prior, and 1 for alternatives within "
                         f"alternatives, but there are {sorted(betas)}.")  # fmt: skip
    plain, beta = [part for part in parts if not isinstance(part, Either)], betas.pop()
    found, log_weights = [], []
    for chosen in itertools.product(*(range(len(part.priors)) for part in mixed)):
        pieces = [*plain, *(part.priors[j] for part, j in zip(mixed, chosen, strict=True))]
        whole = combined(And(tuple(pieces)) if len(pieces) > 1 else pieces[0])
        rest = sum(Gaussian.expand(one, np.asarray(whole.mean))[0] for one in gaussians(And(tuple(pieces))))
        weight = sum(float(part.log_weights[j]) for part, j in zip(mixed, chosen, strict=True))
        found.append(whole)
        log_weights.append(weight - (beta * rest if np.isfinite(beta) else rest))
    return Mixture(tuple(found), np.array(log_weights), beta)


def temper(prior: Prior, beta: float) -> Prior:
    """The same prior with all its alternatives at another inverse temperature."""
    if isinstance(prior, And):
        return And(tuple(temper(part, beta) for part in prior.parts))
    if isinstance(prior, Either):
        return Either(prior.priors, None if prior.even else prior.weights, beta)
    return prior


def uncertain(prior: Prior) -> bool:
    """Whether there are alternatives in a prior."""
    return any(isinstance(part, Either) for part in (prior.parts if isinstance(prior, And) else (prior,)))


def templates_of(prior: Prior) -> tuple[tuple[Gaussian, ...], np.ndarray]:
    """The alternatives of a prior and their probabilities; of its first part with some if others are not Gaussian."""
    parts = prior.parts if isinstance(prior, And) else (prior,)
    if all(isinstance(part, (Gaussian, Either)) for part in parts):
        found = resolve(prior)
        return found.gaussians, found.weights
    first = next((part for part in parts if isinstance(part, Either)), None)
    if first is None:
        raise InputError("Argument `prior` must have alternatives, such as a | b, but it has none.")
    return first.priors, np.asarray(first.weights)
