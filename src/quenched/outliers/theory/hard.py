r"""Hard selection: its own free energy, with the number of selected examples among its order parameters.

$$f = \frac{R^2 - Q}{2z} + \frac Q2 + \frac12 \ln(1 + \tilde\gamma \hat Q) - \hat c \hat Q
  - \alpha \langle (m_V + s x)_+ \rangle, \qquad
  m_V = -\frac{\tilde\gamma Q}2 - \eta - \hat c + \frac b2 + V \tilde\gamma R,$$

$s = \tilde\gamma \sqrt{Q/\gamma}$, $b = \tilde\gamma^2 z/\gamma$, stationary in $R$, $Q$, $z$, $\hat Q$ (selected
examples over $N$) and $\hat c$. The last two follow from the others: $\hat Q = \gamma (Q - R^2)/(\tilde\gamma z)^2$ and
$\hat c = \tilde\gamma/2(1 + \tilde\gamma \hat Q)$. The trivial state selects nothing: $R = Q = f = 0$. A selection
jumps at its threshold, so that replica symmetry is unstable in every other state: these are approximations.

[dietrich1998, eqs. (B3), (B4), errata E5 to E8, E11]
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from quenched.core.gaussian import cdf, pdf
from quenched.core.saddle import Kernel
from quenched.core.types import Array
from quenched.outliers.theory.setting import Readings, Setting, Student, free_of_units, order_parameters, scales


class Hard(Student):
    """The theory of hard selection."""

    def kernel(self, x: Array, theta: Setting, marks: Any) -> Kernel:
        """The saddle-point equations free of units."""
        R, Q, z = order_parameters(x)
        Qh, ch = eliminate(R, Q, z, theta)
        f, slopes = jax.value_and_grad(free_energy, argnums=(0, 1, 2))(R, Q, z, Qh, ch, theta)
        return Kernel(free_of_units(slopes, Q, z), f, Readings(jnp.full((), jnp.inf), Qh / theta.alpha, f))


HARD = Hard()


def free_energy(R: Array, Q: Array, z: Array, Qh: Array, ch: Array, theta: Setting) -> Array:
    """$f$ of all five order parameters."""
    m, s, b = scales(R, Q, Q, z, theta)
    m = m - ch + b / 2
    selected = theta.weights @ (m * cdf(m / s) + s * pdf(m / s))  # <(m + s x)_+>
    return (R * R - Q) / (2 * z) + Q / 2 + jnp.log1p(theta.gt * Qh) / 2 - ch * Qh - theta.alpha * selected


def eliminate(R: Array, Q: Array, z: Array, theta: Setting) -> tuple[Array, Array]:
    r"""$\hat Q$ and $\hat c$ at given $R$, $Q$ and $z$."""
    Qh = theta.gamma * (Q - R * R) / jnp.square(theta.gt * z)
    return Qh, theta.gt / (2 * (1 + theta.gt * Qh))


def threshold(theta: Setting) -> Any:
    r"""$\eta_0$, above which selecting nothing is a state. [dietrich1998, eq. (31), erratum E6]"""
    return -theta.gt / 2 + theta.gt**2 / (2 * theta.gamma)
