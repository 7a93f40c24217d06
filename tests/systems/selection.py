r"""States of soft selection and of Gibbs learning by plain quadrature, in NumPy and SciPy alone.

With $a = -\tilde\gamma Q/2 - \eta + V\tilde\gamma R + \tilde\gamma\sqrt{q/\gamma}\,x$ and $b = \tilde\gamma^2 z/\gamma$
an example that is free to move by $t$ has the energy $t^2/2b - \ln(1 + e^{a+t})$. Soft selection takes its least
value, Gibbs learning weights every $t$ by $e^{-\text{energy}/T}$ ($Q = q + Tz$; soft selection is $T = 0$). With the
mean weight $p = \langle \sigma(a + t) \rangle$ of an example both have the states

$$R = z\alpha\tilde\gamma w_1\langle p\rangle_1, \qquad
  q = R^2 + z^2\alpha\tfrac{\tilde\gamma^2}{\gamma}\langle p^2\rangle, \qquad
  \tfrac1z = 1 + \alpha\tilde\gamma\langle p\rangle - \alpha\sqrt{\tilde\gamma^2/\gamma q}\,\langle xp\rangle .$$

The map $a \mapsto p$ is odd about $a = -b/2$ and steep, or jumps, there: panels of the Gaussian's quadrature shrink
towards it. Sums over $t$ have a step of an eighth of the narrowest Gaussian in it, where the trapezoidal rule is exact
to rounding. Everything here is `gamma = gt`.
"""

import numpy as np
from scipy.optimize import root
from scipy.special import expit, logsumexp

TAIL = 9.0
"""Standard deviations at which a Gaussian is cut."""


def nodes(at, finest=1e-7, count=20):
    """Gauss-Legendre nodes over the Gaussian, on panels that shrink by halves towards `at`, and their weights."""
    steps = np.concatenate([[0.0], finest * 2.0 ** np.arange(int(np.log2(1.0 / finest)))])
    edges = np.concatenate([at - steps[::-1], at + steps[1:], np.arange(-TAIL, TAIL + 0.1, 0.5)])
    edges = np.unique(np.clip(edges, -TAIL, TAIL))
    edges = edges[np.concatenate([[True], np.diff(edges) > 1e-12])]
    t, w = np.polynomial.legendre.leggauss(count)
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half + half * t).ravel()
    return x, (half * w).ravel() * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def coldest(a, b):
    """Weight of an example and its energy at the least one: the better of the two ends of a fixed-point iteration."""
    best = None
    for t in (np.zeros_like(a), np.full_like(a, b)):
        for _ in range(400):  # t <- b sigma(a + t) is monotone from either end
            before, t = t, b * expit(a + t)
            if np.max(np.abs(t - before)) < 1e-3:
                break
        for _ in range(60):
            p = expit(a + t)
            new = np.clip(t - (t - b * p) / np.maximum(1 - b * p * (1 - p), 1e-3), 0, b)
            if np.max(np.abs(new - t)) < 1e-15 * b:
                break
            t = new
        energy = t**2 / (2 * b) - np.logaddexp(0, a + t)
        if best is None:
            best = energy, t
        else:
            best = np.where(energy < best[0], energy, best[0]), np.where(energy < best[0], t, best[1])
    return expit(a + best[1]), best[0]


def drawn(a, b, T):
    """The same at a temperature: the mean weight, and minus `T` times the logarithm of the sum of all weights."""
    narrow = min(np.sqrt(T * b), 1.0)
    reach = 9 * np.sqrt(T * b)
    t = np.arange(-reach, b + reach, narrow / 8)
    log = (np.logaddexp(0, a[:, None] + t) - t**2 / (2 * b)) / T
    total = logsumexp(log, axis=1)
    p = np.sum(np.exp(log - total[:, None]) * expit(a[:, None] + t), axis=1)
    return p, -T * (total + np.log((t[1] - t[0]) / np.sqrt(2 * np.pi * T * b)))


def averages(R, q, z, gamma, alpha, eta, T=0.0):
    """Averages of the weight and of the energy of an example, for outliers and for informative ones."""
    b, Q, s = gamma * z, q + T * z, np.sqrt(gamma * q)
    found = []
    for V in (0, 1):
        mean = -gamma * Q / 2 - eta + V * gamma * R
        x, weight = nodes((-b / 2 - mean) / s)
        p, energy = coldest(mean + s * x, b) if T == 0 else drawn(mean + s * x, b, T)
        found.append([weight @ p, weight @ p**2, weight @ (x * p), weight @ energy])
    return np.array([expit(eta), expit(-eta)]) * np.array(found).T  # [average, class], with the shares of the classes


def residual(R, q, z, gamma, alpha, eta, T=0.0):
    """What the three equations leave over, each relative to its own left side."""
    p, p2, xp, _ = averages(R, q, z, gamma, alpha, eta, T)
    return np.array([
        1 - z * alpha * gamma * p[1] / R,
        1 - (R**2 + z**2 * alpha * gamma * p2.sum()) / q,
        1 - z * (1 + alpha * gamma * p.sum() - alpha * np.sqrt(gamma / q) * xp.sum()),
    ])  # fmt: skip


def free_energy(R, q, z, gamma, alpha, eta, T=0.0):
    r"""$-\frac{T}{N} \ln \int dJ\, e^{-\mathcal H/T}$; at $T = 0$ the least energy."""
    energy = averages(R, q, z, gamma, alpha, eta, T)[3].sum()
    Q = q + T * z
    entropy = np.log(2 * np.pi * T * z) if T else 0.0
    return (R**2 - Q) / (2 * z) - T * entropy / 2 + Q / 2 + alpha * energy


def solve(start, gamma, alpha, eta, T=0.0):
    """The state near `(R, q, z)`, and what its equations leave over; logarithms of all three are the unknowns."""
    found = root(lambda x: residual(*np.exp(x), gamma, alpha, eta, T), np.log(start), tol=1e-12)
    return np.exp(found.x), np.max(np.abs(found.fun))
