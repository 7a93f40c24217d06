r"""What is known of hyperparameters beforehand: densities of numbers, and choices among some.

Positive numbers are searched in their logarithm. `LogFlat` and `LogNormal` are densities of $\ln\theta$, all others
are densities of $\theta$: a maximum of the posterior depends on which, an integral does not.
"""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from scipy import special

from quenched.core import checks
from quenched.core.types import InputError, Real, is_traced, real

REACH = 20.0
"""How far from the start a hyperparameter without bounds is searched, or its logarithm."""
FAR = 8.0
"""How many standard deviations of a hyperprior are searched."""
RARE = 1e-12
"""A gamma density is searched between its quantiles of this probability."""


class Hyperprior(eqx.Module):
    """What is known of a hyperparameter beforehand; each entry of an array is independent."""

    logarithmic: ClassVar[bool] = False  # whether it is searched in its logarithm

    @abc.abstractmethod
    def energy(self, theta: Any) -> Any:
        """Minus the log-density, summed over all entries."""

    def slope(self, theta: Any) -> Any:
        """The derivative of the energy by each entry."""
        return np.zeros(np.shape(theta))

    @abc.abstractmethod
    def bounds(self, start: float) -> tuple[float, float]:
        """Between what a hyperparameter is searched that begins at `start`."""

    @property
    def open(self) -> tuple[bool, bool]:
        """Whether there is no lower end and no upper end, but for that of the search."""
        return False, False

    @property
    @abc.abstractmethod
    def middle(self) -> Any:
        """Where the search begins if no start is given."""

    def log_volume(self, theta: Any) -> Any:
        r"""$\ln dm/du$ of the measure $m$ of the density by the coordinate $u$ of the search."""
        return 0.0 * theta


class Flat(Hyperprior):
    r"""The same density everywhere between two numbers.

    Attributes:
        low: lower end, if there is one.
        high: upper end, if there is one. Without both the density is not normalised, and the search goes `REACH` from
            the start.

    Examples:
        >>> from quenched import fields
        >>> fields.Flat(0.0, 4.0).middle
        2.0
    """

    low: Real | None = eqx.field(converter=real, default=None)
    high: Real | None = eqx.field(converter=real, default=None)

    def __check_init__(self):
        for name, end in (("low", self.low), ("high", self.high)):
            checks.finite(name, 0.0 if end is None else end)
        if not self.open[0] and not self.open[1]:
            _check_ends(self.low, self.high)

    def energy(self, theta: Any) -> Any:
        """The logarithm of the length, or nothing if an end is missing."""
        log_length = 0.0 if any(self.open) else np.log(float(self.high) - float(self.low))  # pyright: ignore[reportArgumentType]
        return np.size(theta) * log_length + 0.0 * _total(theta)

    def bounds(self, start: float) -> tuple[float, float]:
        """The ends, or `REACH` from the start."""
        low = start - REACH if self.low is None else float(self.low)
        return low, start + REACH if self.high is None else float(self.high)

    @property
    def open(self) -> tuple[bool, bool]:
        """Where an end is missing."""
        return self.low is None, self.high is None

    @property
    def middle(self) -> float:
        """Half-way, if there are two ends; or zero."""
        ends = [float(end) for end in (self.low, self.high) if end is not None]
        return sum(ends) / len(ends) if ends else 0.0


class LogFlat(Hyperprior):
    r"""The logarithm has the same density everywhere between two positive numbers: no order of magnitude is preferred.

    Attributes:
        low: lower end.
        high: upper end.
    """

    logarithmic = True

    low: Real = eqx.field(converter=real, default=1e-4)
    high: Real = eqx.field(converter=real, default=1e4)

    def __check_init__(self):
        checks.positive("low", self.low)
        checks.positive("high", self.high)
        _check_ends(self.low, self.high)

    def energy(self, theta: Any) -> Any:
        r"""$\ln \ln$ of the ratio of the ends: the density is one of $\ln\theta$."""
        return np.size(theta) * np.log(np.log(float(self.high) / float(self.low))) + 0.0 * _total(theta)

    def bounds(self, start: float) -> tuple[float, float]:
        """The ends."""
        del start
        return float(self.low), float(self.high)

    @property
    def middle(self) -> float:
        """The geometric mean of the ends."""
        return float(np.sqrt(float(self.low) * float(self.high)))


class Normal(Hyperprior):
    """A Gaussian.

    Attributes:
        mean: of the hyperparameter.
        deviation: its standard deviation.
    """

    mean: Real = eqx.field(converter=real, default=0.0)
    deviation: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.finite("mean", self.mean)
        checks.positive("deviation", self.deviation)

    def energy(self, theta: Any) -> Any:
        """A parabola."""
        return _parabola(theta - self.mean, self.deviation)

    def slope(self, theta: Any) -> Any:
        r"""$(\theta - m)/s^2$."""
        return (theta - self.mean) / self.deviation**2

    def bounds(self, start: float) -> tuple[float, float]:
        """`FAR` standard deviations, and the start."""
        far = FAR * float(self.deviation)
        return min(start, float(self.mean) - far), max(start, float(self.mean) + far)

    @property
    def middle(self) -> float:
        """The mean."""
        return float(self.mean)


class LogNormal(Hyperprior):
    """The logarithm is Gaussian.

    Attributes:
        median: of the hyperparameter, which is positive.
        deviation: standard deviation of its logarithm.
    """

    logarithmic = True

    median: Real = eqx.field(converter=real, default=1.0)
    deviation: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("median", self.median)
        checks.positive("deviation", self.deviation)

    def energy(self, theta: Any) -> Any:
        r"""A parabola of $\ln\theta$, of which it is the density."""
        return _parabola(_log(theta / self.median), self.deviation)

    def slope(self, theta: Any) -> Any:
        r"""$\ln(\theta/m)/s^2\theta$."""
        return _log(theta / self.median) / self.deviation**2 / theta

    def bounds(self, start: float) -> tuple[float, float]:
        """`FAR` standard deviations, and the start."""
        factor = np.exp(min(FAR * float(self.deviation), 2 * REACH))
        return min(start, float(self.median) / factor), max(start, float(self.median) * factor)

    @property
    def middle(self) -> float:
        """The median."""
        return float(self.median)


class Gamma(Hyperprior):
    r"""A gamma density, $p(\theta) \propto \theta^{a - 1} e^{-b\theta}$.

    Attributes:
        shape: $a$.
        rate: $b$.
    """

    logarithmic = True

    shape: Real = eqx.field(converter=real, default=1.0)
    rate: Real = eqx.field(converter=real, default=1.0)

    def __check_init__(self):
        checks.positive("shape", self.shape)
        checks.positive("rate", self.rate)

    def energy(self, theta: Any) -> Any:
        r"""$b\theta - (a - 1)\ln\theta$ and the constant."""
        constant = special.gammaln(float(self.shape)) - float(self.shape) * np.log(float(self.rate))
        return _total(self.rate * theta - (self.shape - 1) * _log(theta) + constant)

    def slope(self, theta: Any) -> Any:
        r"""$b - (a - 1)/\theta$."""
        return self.rate - (self.shape - 1) / theta

    def bounds(self, start: float) -> tuple[float, float]:
        """Between rare quantiles, and the start."""
        a, b = float(self.shape), float(self.rate)
        low = max(special.gammaincinv(a, RARE), np.exp(-2 * REACH)) / b
        return min(start, low), max(start, special.gammainccinv(a, RARE) / b)

    @property
    def middle(self) -> float:
        """The mean."""
        return float(self.shape) / float(self.rate)

    def log_volume(self, theta: Any) -> Any:
        r"""$d\theta/d\ln\theta = \theta$."""
        return _log(theta)


class Power(Hyperprior):
    r"""A power of a positive number, $p(\theta) \propto \theta^k$, which cannot be normalised.

    With $k = -d/2$ it compensates the normalisation of a strength, [lemm1999, eq. (417)]; with $k = 0$ all strengths
    have the same density. Joint maxima lie at the ends then: `adapt` says so.

    Attributes:
        exponent: $k$.
    """

    logarithmic = True

    exponent: Real = eqx.field(converter=real, default=0.0)

    def __check_init__(self):
        checks.finite("exponent", self.exponent)

    def energy(self, theta: Any) -> Any:
        r"""$-k \ln\theta$."""
        return -self.exponent * _total(_log(theta))

    def slope(self, theta: Any) -> Any:
        r"""$-k/\theta$."""
        return -self.exponent / theta

    def bounds(self, start: float) -> tuple[float, float]:
        """`REACH` of the logarithm from the start."""
        return start * np.exp(-REACH), start * np.exp(REACH)

    @property
    def open(self) -> tuple[bool, bool]:
        """There are no ends."""
        return True, True

    @property
    def middle(self) -> float:
        """One."""
        return 1.0

    def log_volume(self, theta: Any) -> Any:
        r"""$d\theta/d\ln\theta = \theta$."""
        return _log(theta)


class Choice(Hyperprior):
    """One of some alternatives: an order, a number, a template's index.

    Attributes:
        values: the alternatives, numbers or anything else.
        weights: how probable each is beforehand; by default all are alike.

    Examples:
        >>> from quenched import fields
        >>> fields.Choice([1, 2, 3]).probabilities.round(3).tolist()
        [0.333, 0.333, 0.333]
    """

    values: tuple[Any, ...] = eqx.field(static=True)
    weights: tuple[float, ...] = eqx.field(static=True, default=())

    def __init__(self, values: Any, weights: Any = ()):
        try:
            self.values = tuple(values)
        except TypeError:
            raise InputError(f"Argument `values` must be several alternatives, but {values!r} was given.") from None
        if not self.values:
            raise InputError("Argument `values` must have at least one alternative, but it is empty.")
        given = np.ones(len(self.values)) if np.size(weights) == 0 else checks.numbers("weights", weights)
        if given.shape != (len(self.values),):
            raise InputError(f"Argument `weights` must have one number for each of the {len(self.values)} values, but "
                             f"its shape is {given.shape}.")  # fmt: skip
        checks.positive("weights", given)
        self.weights = tuple((given / given.sum()).tolist())

    @property
    def probabilities(self) -> np.ndarray:
        """Those of the alternatives, whose sum is 1."""
        return np.asarray(self.weights)

    def energy(self, theta: Any) -> Any:
        """Minus the logarithm of the probability of an alternative."""
        return -float(np.log(self.weights[self.values.index(theta)]))

    def bounds(self, start: float) -> tuple[float, float]:
        """None: it is enumerated."""
        raise InputError("A choice has no bounds: its alternatives are enumerated.")

    @property
    def middle(self) -> Any:
        """The first alternative."""
        return self.values[0]


def _parabola(off: Any, deviation: Real) -> Any:
    return _total(0.5 * (off / deviation) ** 2 + np.log(float(deviation)) + 0.5 * np.log(2 * np.pi))


def _log(value: Any) -> Any:
    return jnp.log(value) if is_traced(value) else np.log(value)


def _total(values: Any) -> Any:
    return jnp.sum(values) if is_traced(values) else float(np.sum(values))


def _check_ends(low: Any, high: Any) -> None:
    if not float(low) < float(high):
        raise InputError(f"Argument `low` must lie below `high`, but {float(low):g} and {float(high):g} were given.")
