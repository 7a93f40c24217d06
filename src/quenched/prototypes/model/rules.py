"""Rules that learn from one example at a time, and the rates at which they do."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import Array, InputError, Real, label_tuple, real, reals


class Schedule(checks.Declared):
    r"""A learning rate that changes with time: $\eta(\alpha)$."""

    @abc.abstractmethod
    def __call__(self, alpha: Real) -> Array:
        r"""The rate at time $\alpha$."""


class Decay(Schedule):
    r"""$\eta(\alpha) = \eta_0 / (1 + \alpha/\tau)$.

    Attributes:
        initial: $\eta_0$.
        time: $\tau$.
    """

    initial: Real = checks.declare(dataclasses.MISSING)
    time: Real = checks.declare(dataclasses.MISSING)

    def __call__(self, alpha: Real) -> Array:
        r"""The rate at time $\alpha$."""
        return jnp.asarray(self.initial / (1 + alpha / self.time))


class Interpolated(Schedule):
    r"""Rates at equally spaced times from 0 to `until`, joined by straight lines, constant afterwards.

    Attributes:
        rates: the values.
        until: the last time.
    """

    rates: Any = eqx.field(converter=reals)
    until: Real = checks.declare(dataclasses.MISSING)

    def __check_init__(self):
        checks.positive("rates", self.rates)
        if np.ndim(self.rates) != 1 or np.shape(self.rates)[0] < 2:
            raise InputError(f"Argument `rates` must be two numbers or more, but {self.rates} was given.")

    def __call__(self, alpha: Real) -> Array:
        r"""The rate at time $\alpha$."""
        rates = jnp.asarray(self.rates)
        return jnp.interp(jnp.asarray(alpha), jnp.linspace(0.0, self.until, rates.shape[0]), rates)


class Rule(checks.Declared):
    r"""How prototypes learn. To add a rule, subclass and say `g`:

        class Cautious(prototypes.Rule):
            def g(self, S, sigma):
                return jnp.where(S == sigma, 1.0, -0.5)

    Attributes:
        rate: $\eta$, a number or a `Schedule`.
        labels: the label of each prototype; default one for each class of the law.
        weight_decay: $\gamma$; before each example all prototypes shrink by the factor $1 - \gamma/N$ towards the
            origin ($1 - \gamma$ on tables), and so forget where centres once were.
    """

    rate: Any = eqx.field(converter=real, default=0.1)
    labels: tuple[int, ...] | None = eqx.field(converter=label_tuple, static=True, default=None)
    weight_decay: Real = checks.declare(0.0, checks.not_negative)
    all_move: ClassVar[bool] = False

    def __check_init__(self):
        if not isinstance(self.rate, Schedule):
            checks.positive("rate", self.rate)
        if self.labels is not None and len(self.labels) < 2:
            raise InputError(f"Argument `labels` must name at least two prototypes, but {self.labels} was given.")

    @abc.abstractmethod
    def g(self, S: Any, sigma: Any) -> Any:
        """The sign and strength with which a prototype of label `S` moves towards an example of label `sigma`."""

    def prototypes(self, law: Any) -> tuple[int, ...]:
        """The labels of the prototypes in this world."""
        return tuple(dict.fromkeys(law.mixture().labels)) if self.labels is None else self.labels


class LVQ1(Rule):
    r"""Kohonen's rule: the winner moves towards its own class and away from others, $g = S\sigma$."""

    def g(self, S: Any, sigma: Any) -> Any:
        """+1 for the own class, -1 otherwise."""
        return 2.0 * (S == sigma) - 1.0


class LVQPlus(Rule):
    r"""The winner learns from its own class only, $g = \Theta(S\sigma)$."""

    def g(self, S: Any, sigma: Any) -> Any:
        """1 for the own class, 0 otherwise."""
        return 1.0 * (S == sigma)


class VQ(Rule):
    r"""Unsupervised vector quantisation: the winner moves towards every example, $g = 1$."""

    def g(self, S: Any, sigma: Any) -> Any:
        """1 whatever the labels."""
        return np.ones(np.broadcast_shapes(np.shape(S), np.shape(sigma)))


class LVQ21(Rule):
    r"""LVQ2.1: the prototype of the example's class is attracted, the other repelled: $g = S\sigma$.

    Both move if the example lies in a window around their boundary: if the ratio of its distances from them, smaller to
    larger, is at least $(1 - \omega)/(1 + \omega)$. Theory and simulation have two prototypes. There the window is
    $\omega/N$, as the rate is $\eta/N$: of squared distances near $v_k N$ all lie within a fixed ratio, while
    their difference stays of order 1, and the condition becomes $|d_+^2 - d_-^2| \le 4\omega v_k$ as
    $N \to \infty$, for an example of cluster $k$. In a simulation $N$ must be large beside $\lambda_k^2/v_k$ and
    $\omega$, too.

    Attributes:
        window: $\omega$; by default there is none and both prototypes move at every example.
    """

    window: Real | None = checks.declare(None)
    all_move: ClassVar[bool] = True

    def __check_init__(self):
        if self.labels is not None and len(self.labels) != 2:
            raise InputError(f"Argument `labels` of LVQ21 must name two prototypes, but {self.labels} was given.")

    def g(self, S: Any, sigma: Any) -> Any:
        """+1 for the own class, -1 otherwise."""
        return 2.0 * (S == sigma) - 1.0


def rate_at(rate: Any, alpha: Real) -> Array:
    r"""The learning rate at time $\alpha$."""
    return rate(alpha) if isinstance(rate, Schedule) else jnp.asarray(rate)
