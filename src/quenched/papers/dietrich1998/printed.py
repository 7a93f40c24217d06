r"""The theory as it was printed, with its errors; only to show the difference.

* Soft selection (A2): the maximum over $t$ is replaced by one Newton step from $t = 0$ (erratum E1).
* Hard selection (B3), (B4): half the noise of the selected examples (erratum E5).
* The critical share of outliers at unlimited examples (B5): its roots have $R < 0$ (erratum E7).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks, saddle
from quenched.core.gaussian import cdf, pdf
from quenched.core.saddle import Kernel
from quenched.core.types import Array, Outcome, double
from quenched.outliers.model import Contaminated, HardSelection, SoftSelection
from quenched.outliers.theory.branches import follow
from quenched.outliers.theory.setting import (
    Readings,
    Setting,
    Student,
    free_of_units,
    numbers,
    order_parameters,
    unknowns,
)
from quenched.outliers.theory.state import RELAXATIONS, State, guess, read

POINTS = 241
"""Points of the trapezoidal rule over 9 standard deviations to either side."""
SINGULAR = 4.0
"""The $b$ from which on (A2) divides by zero at some field, so that its average does not exist."""
FINE = 20_000
"""Values of eta between which roots of (B5) are looked for."""


def soft_free_energy(R: Array, Q: Array, z: Array, theta: Setting) -> Array:
    r"""$f = (R^2 - Q)/2z + Q/2 - \alpha \langle \ln(1 + e^a) + \frac b2 \sigma^2/(1 - b\,\sigma(1 - \sigma)) \rangle$.

    [dietrich1998, eq. (A2)]
    """
    gamma, gt, eta, alpha, _ = theta
    x = np.linspace(-9, 9, POINTS)
    a = -gt * Q / 2 - eta + np.array([[0.0], [1.0]]) * gt * R + gt * jnp.sqrt(Q / gamma) * x
    b, sigma = gt * gt * z / gamma, jax.nn.sigmoid(a)
    M = jax.nn.softplus(a) + b / 2 * jnp.square(sigma) / (1 - b * sigma * (1 - sigma))
    return (R * R - Q) / (2 * z) + Q / 2 - alpha * theta.weights @ M @ (pdf(x) * (x[1] - x[0]))


class Soft(Student):
    """(A2); its stability is not known."""

    def kernel(self, x: Array, theta: Setting, marks: Any) -> Kernel:
        """The gradient of the printed free energy."""
        R, Q, z = order_parameters(x)
        f, slopes = jax.value_and_grad(soft_free_energy, argnums=(0, 1, 2))(R, Q, z, theta)
        return Kernel(free_of_units(slopes, Q, z), f, Readings(jnp.full((), jnp.nan), jnp.full((), jnp.nan), f))


class Hard(Student):
    r"""(B3) and (B4): $\hat Q/2$ for $\hat Q$ in $Q$, and with it $b/4$ for $b/2$ in the field. [erratum E5]"""

    def kernel(self, x: Array, theta: Setting, marks: Any) -> Kernel:
        """The printed equations."""
        R, Q, z = order_parameters(x)
        gamma, gt, eta, alpha, _ = theta
        Qh = 2 * gamma * (Q - R * R) / jnp.square(gt * z)  # Q = R^2 + z^2 (gt^2/gamma) Qh/2
        s, b, c = gt * jnp.sqrt(Q / gamma), gt * gt * z / gamma, gt / (2 * (1 + gt * Qh))
        m = -gt * Q / 2 - eta - c + b / 4 + jnp.array([0.0, 1.0]) * gt * R
        P, w = cdf(m / s), theta.weights
        zh = -alpha * w @ pdf(m / s) / s
        selected = alpha * w @ P
        r = jnp.stack([
            (R - z * gt * alpha * w[1] * P[1]) / jnp.sqrt(Q),
            z * (1 + gt * selected + gt * gt / gamma * zh) - 1,
            (Qh - selected) * jnp.square(gt * z) / (2 * gamma * Q),
        ])  # fmt: skip
        f = eta * Qh + jnp.log1p(gt * Qh) / 2 - (1 + gt * Qh) * Q / 2
        return Kernel(r, f, Readings(jnp.full((), jnp.nan), Qh / alpha, f))


SOFT, HARD = Soft(), Hard()
Start = tuple[float, float, float]


def _solve(theory: Student, theta: Setting, start: Start | None) -> State:
    begin = guess(theta, "informed") if start is None else unknowns(*np.array(start))
    found = saddle.solve(theory, theta, begin, relaxations=RELAXATIONS if start is None else 0)
    return read(theory, found, theta)


def soft_state(law: Contaminated, rule: SoftSelection, alpha: float, *, start: Start | None = None) -> State:
    """The informed state of the printed soft theory; arguments as of `theory.state`. Its stability is not known.

    Where (A2) divides by zero there is none: its outcome is `absent`.
    """
    theta = numbers(law, rule, alpha)
    found = _solve(SOFT, theta, start)
    exists = theta.gt**2 * found.z / theta.gamma < SINGULAR  # sums over points step over the pole
    return found if exists or found.outcome is not Outcome.converged else found._replace(outcome=Outcome.absent)


def hard_state(law: Contaminated, rule: HardSelection, alpha: float, *, start: Start | None = None) -> State:
    """The informed state of the printed hard theory; arguments as of `theory.state`. Its stability is not known."""
    return _solve(HARD, numbers(law, rule, alpha), start)


@double
def hard_transition(law: Contaminated, rule: HardSelection, alpha: float) -> float:
    r"""The printed $\eta_c$, where the informed state of (B3) has no energy any more: figure 5 of the paper.

    Args:
        law: the world; its `eta` is not used.
        rule: the student.
        alpha: examples per dimension.
    """
    theta = numbers(law, rule, alpha)
    gt, high = float(theta.gt), 15.0 + float(theta.gt + theta.gt**2 / theta.gamma)
    return saddle.locate(follow(HARD, theta, (-gt / 2 - 5.0, high)), "free_energy")[0].control


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
        >>> from quenched.papers.dietrich1998 import printed
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
