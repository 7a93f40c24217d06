r"""The theory as it was printed, with its errors; only to show the difference.

* Soft selection (A2): the maximum over $t$ is replaced by one Newton step from $t = 0$ (erratum E1).
* Hard selection (B3), (B4): half the noise of the selected examples (erratum E5).
* The critical share of outliers at unlimited examples (B5): its roots have $R < 0$ (erratum E7).
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks, saddle
from quenched.core.gaussian import cdf, pdf
from quenched.core.types import Array, Outcome, Real, double, require_double
from quenched.outliers.model import Contaminated, HardSelection, SoftSelection
from quenched.outliers.theory import branches, scaled
from quenched.outliers.theory.scaled import Readings, Setting, free_of_units, order_parameters
from quenched.outliers.theory.states import State, guess, measures

POINTS = 241
"""Points of the trapezoidal rule over 9 standard deviations to either side."""
SINGULAR = 4.0
"""The $b$ from which on (A2) divides by zero at some field, so that its average does not exist."""
FINE = 20_000
"""Values of eta between which roots of (B5) are looked for."""


def soft_free_energy(R: Array, Q: Array, z: Array, at: Setting) -> Array:
    r"""$f = (R^2 - Q)/2z + Q/2 - \alpha \langle \ln(1 + e^a) + \frac b2 \sigma^2/(1 - b\,\sigma(1 - \sigma)) \rangle$.

    [dietrich1998, eq. (A2)]
    """
    gamma, gt, eta, alpha = at
    x = np.linspace(-9, 9, POINTS)
    a = -gt * Q / 2 - eta + np.array([[0.0], [1.0]]) * gt * R + gt * jnp.sqrt(Q / gamma) * x
    b, sigma = gt * gt * z / gamma, jax.nn.sigmoid(a)
    M = jax.nn.softplus(a) + b / 2 * jnp.square(sigma) / (1 - b * sigma * (1 - sigma))
    return (R * R - Q) / (2 * z) + Q / 2 - alpha * at.weights @ M @ (pdf(x) * (x[1] - x[0]))


def _soft_equations(x: Array, at: Setting) -> tuple[Array, Readings]:
    R, Q, z = order_parameters(x)
    f, slopes = jax.value_and_grad(soft_free_energy, argnums=(0, 1, 2))(R, Q, z, at)
    return free_of_units(slopes, Q, z), Readings(f, jnp.full((), jnp.nan), jnp.full((), jnp.nan))


def hard_equations(x: Array, at: Setting) -> tuple[Array, Readings]:
    r"""The printed equations: $\hat Q/2$ for $\hat Q$ in $Q$, and with it $b/4$ for $b/2$ in the field.

    [dietrich1998, eqs. (B3), (B4), erratum E5]
    """
    R, Q, z = order_parameters(x)
    gamma, gt, eta, alpha = at
    Qh = 2 * gamma * (Q - R * R) / jnp.square(gt * z)  # Q = R^2 + z^2 (gt^2/gamma) Qh/2
    s, b, c = gt * jnp.sqrt(Q / gamma), gt * gt * z / gamma, gt / (2 * (1 + gt * Qh))
    m = -gt * Q / 2 - eta - c + b / 4 + jnp.array([0.0, 1.0]) * gt * R
    P, w = cdf(m / s), at.weights
    zh = -alpha * w @ pdf(m / s) / s
    selected = alpha * w @ P
    r = jnp.stack([
        (R - z * gt * alpha * w[1] * P[1]) / jnp.sqrt(Q),
        z * (1 + gt * selected + gt * gt / gamma * zh) - 1,
        (Qh - selected) * jnp.square(gt * z) / (2 * gamma * Q),
    ])  # fmt: skip
    f = eta * Qh + jnp.log1p(gt * Qh) / 2 - (1 + gt * Qh) * Q / 2
    return r, Readings(f, jnp.full((), jnp.nan), Qh / alpha)


@functools.partial(jax.jit, static_argnums=0)
def _state(equations: scaled.Equations, at: Setting, start: tuple[Real, Real, Real] | None) -> State:
    begin = guess(at, "informed") if start is None else scaled.unknowns(*start)
    found = scaled.search(equations, begin, at, plain_steps=scaled.RELAXED if start is None else 0)
    x, readings = scaled.differentiable(equations, found, at)
    R, Q, z = order_parameters(x)
    return State(R, Q, Q, z, *measures(R, Q), *readings, scaled.outcome(found), found.residual)


def soft_state(
    law: Contaminated, rule: SoftSelection, alpha: Real, *, start: tuple[Real, Real, Real] | None = None
) -> State:
    """The informed state of the printed soft theory; arguments as of `theory.state`. Its stability is not known.

    Where (A2) divides by zero there is none: its outcome is `absent`.
    """
    require_double("printed.soft_state")
    at = scaled.setting(law, rule, alpha)
    found = _state(_soft_equations, at, start)
    exists = jnp.square(at.gt) * found.z / at.gamma < SINGULAR  # sums over points step over the pole
    nowhere = ~exists & (found.outcome == Outcome.converged)
    return found._replace(outcome=jnp.where(nowhere, Outcome.absent, found.outcome))


def hard_state(
    law: Contaminated, rule: HardSelection, alpha: Real, *, start: tuple[Real, Real, Real] | None = None
) -> State:
    """The informed state of the printed hard theory; arguments as of `theory.state`. Its stability is not known."""
    require_double("printed.hard_state")
    return _state(hard_equations, scaled.setting(law, rule, alpha), start)


_HARD = branches.form(hard_equations)


@double
def hard_transition(law: Contaminated, rule: HardSelection, alpha: float) -> float:
    r"""The printed $\eta_c$, where the informed state of (B3) has no energy any more: figure 5 of the paper.

    Args:
        law: the world; its `eta` is not used.
        rule: the student.
        alpha: examples per dimension.
    """
    at = branches.numbers(law, rule, alpha)
    gt, high = float(at.gt), 15.0 + float(at.gt + at.gt**2 / at.gamma)
    curve = branches.follow(_HARD, at, (-gt / 2 - 5.0, high))
    return saddle.first(saddle.locate(_HARD.landscape.free_energy, curve)).control  # pyright: ignore[reportArgumentType]


class Critical(NamedTuple):
    """A root of (B5)."""

    eta: float  # 0 where there is none
    bracket: float  # the braces of (B5) over exp(gamma/2 + eta): R has the opposite sign, so it should be negative


def _square_root(eta: Any, gamma: float) -> tuple[Any, Any]:
    """The braces of (B5) and what they should equal in size, both over exp(gamma/2 + eta)."""
    from scipy.special import ndtr

    k, d = np.sqrt(2 * eta), np.sqrt(gamma) - np.sqrt(2 * eta)
    bracket = np.exp(-d * d / 2) + 1 - np.sqrt(4 * np.pi * eta) * (ndtr(d) + np.exp(eta) * ndtr(-k))
    return bracket, np.sqrt(2 * np.pi * gamma) * ndtr(d)


def critical_fraction(gamma: float) -> Critical:
    r"""The largest root $\eta_c$ of (B5), where learning was said to end even with unlimited examples.

    (B5) is the square of $R = \sqrt{2\eta/\gamma}$. At each of its roots the bracket is positive, which means $R < 0$
    and $z < 0$: no state of the theory. With a negative bracket there is no root. [dietrich1998, eq. (B5), erratum E7]

    Args:
        gamma: that of law and student.

    Examples:
        >>> from quenched.outliers.theory import printed
        >>> critical = printed.critical_fraction(1.0)
        >>> round(critical.eta, 3), critical.bracket > 0
        (4.623, True)
        >>> printed.critical_fraction(0.27).eta
        0.0
    """
    from scipy.optimize import brentq

    checks.positive("gamma", gamma)
    gamma = float(gamma)
    tried = np.geomspace(1e-6, 50.0 + 5 * gamma, FINE)
    size = np.abs(_square_root(tried, gamma)[0]) - _square_root(tried, gamma)[1]
    roots = np.flatnonzero(np.diff(np.sign(size)))
    if roots.size == 0:
        return Critical(0.0, np.nan)
    low, high = tried[roots[-1] : roots[-1] + 2]
    eta = brentq(lambda e: float(abs(_square_root(e, gamma)[0]) - _square_root(e, gamma)[1]), low, high)
    return Critical(float(eta), float(_square_root(eta, gamma)[0]))  # pyright: ignore[reportArgumentType]
