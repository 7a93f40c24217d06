r"""Maximum likelihood of two Gaussians by plain quadrature, in NumPy and SciPy alone.

With $y_0 = u_0 r + \sqrt q\, z$ an example ends at the $\eta$ of the sign of $y_0$ with
$\eta = y_0 + (x/\sigma)\tanh(\eta/\sigma)$, and with $t = \tanh(\eta/\sigma)$, $\chi = \alpha x/\sigma$ the states are
$2r = u_0\chi\langle t\rangle$, $q - 2r^2 = (\chi^2/\alpha)\langle t^2\rangle$ and
$\chi(1 - \langle zt\rangle/\sqrt q) = 1$. $t$ jumps or is steep at $y_0 = 0$: the panels of the Gaussian's quadrature
shrink towards it.

Limits. Centres far apart: every example is told apart, $t = \pm1$ by its own class, so that $\chi = 1$, $r = u_0/2$ and
$q = u_0^2/2 + 1/\alpha$. Width 0, two-means clustering: $t$ is the sign of $y_0$, with
$c/\sqrt{1-c^2} = u_0\sqrt{\alpha/2}\,\mathrm{erf}(u_0c/2)$ and
$\sqrt q = 1/\sqrt{\alpha(1-c^2)} + \sqrt{2/\pi}\,e^{-u_0^2c^2/4}$.

The least error of any estimate: with $l = u_0^2/2$, $T(B) = \langle\tanh^2(B + \sqrt B z)\rangle$ (which is
$\langle\tanh\rangle$, too) $c^2 = \alpha l T(lc^2)(1 - c^2)$. $T(B)/B$ falls from 1, so that there is one $c^2 > 0$ if
$\alpha l^2 > 1$ and none otherwise.
"""

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, root
from scipy.special import erf, ndtr

from tests.systems.selection import nodes


def trained(y0, pull, width):
    """$t$ by Newton's method on $w = |y_0|/\\sigma + (x/\\sigma^2)\\tanh w$ from above, where it is monotone."""
    a, b = np.abs(y0) / width, pull / width**2
    w = a + b
    for _ in range(200):
        t = np.tanh(w)
        new = w - (w - a - b * t) / np.maximum(1 - b * (1 - t * t), 1e-9)
        if not np.any(new < w * (1 - 1e-15)):
            break
        w = np.minimum(w, new)
    return np.sign(y0) * np.tanh(w)


def residual(r, q, pull, separation, alpha, width):
    """What the three equations leave over, relative."""
    x, weight = nodes(-separation * r / np.sqrt(q), finest=1e-12)
    t = trained(separation * r + np.sqrt(q) * x, pull, width)
    chi = alpha * pull / width
    return np.array([
        1 - separation * chi * (weight @ t) / (2 * r),
        1 - (2 * r * r + chi**2 / alpha * (weight @ t**2)) / q,
        1 - chi * (1 - weight @ (x * t) / np.sqrt(q)),
    ])  # fmt: skip


def solve(start, separation, alpha, width):
    """The ordered state near `(r, q, chi)`: order parameters, and what is left over."""
    start = np.array([start[0], start[1] - 2 * start[0] ** 2, start[2]])

    def equations(x):
        r, excess, chi = np.exp(x)
        return residual(r, excess + 2 * r * r, chi * width / alpha, separation, alpha, width)

    found = root(equations, np.log(start), tol=1e-13)
    r, excess, chi = np.exp(found.x)
    return (r, excess + 2 * r * r, chi), np.max(np.abs(found.fun))


def far_apart(separation, alpha):
    """r, q and chi of centres far apart."""
    return separation / 2, separation**2 / 2 + 1 / alpha, 1.0


def two_means(separation, alpha):
    """r, q and chi at width 0, in the ordered phase."""
    c = brentq(
        lambda c: c / np.sqrt(1 - c * c) - separation * np.sqrt(alpha / 2) * erf(separation * c / 2), 0.05, 1 - 1e-14
    )
    field = np.sqrt(2 / np.pi) * np.exp(-(separation**2) * c * c / 4)
    length = field + 1 / np.sqrt(alpha * (1 - c * c))
    return c * length / np.sqrt(2), length**2, 1 / (1 - field / length)


def error(separation, r, q):
    """The probability of a wrong assignment."""
    return ndtr(-separation * r / np.sqrt(q))


def least_error(separation, alpha):
    """The least error of any estimate."""
    l = separation**2 / 2
    if alpha * l * l <= 1:
        return 0.5

    def gain(c2):
        B = l * c2
        T = quad(
            lambda z: np.tanh(B + np.sqrt(B) * z) ** 2 * np.exp(-z * z / 2), -12, 12, epsabs=0, epsrel=1e-12, limit=400
        )[0]
        return alpha * l * l * T / np.sqrt(2 * np.pi) / B * (1 - c2) - 1

    return float(ndtr(-np.sqrt(l * brentq(gain, 1e-12, 1 - 1e-12, xtol=1e-15))))
