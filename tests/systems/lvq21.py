r"""LVQ2.1 without a window is linear, so its overlaps with the centres are known at all times.

$\dot R_{lm} = \eta l (\lambda m p_m - \gamma R_{lm})$ with $\gamma = p_+ - p_-$ integrates to
$R_{lm} = r_m + (R_{lm}(0) - r_m) e^{-l\eta\gamma\alpha}$, $r_m = \lambda m p_m/\gamma$; for $\gamma = 0$ it is a
straight line.
"""

import numpy as np


def R(prior, separation, rate, alpha, start):
    p, sign = np.array([prior, 1 - prior]), np.array([1.0, -1.0])
    gamma = 2 * prior - 1
    l, m = sign[:, None], sign[None, :]
    if gamma == 0:
        return start + rate * l * m * separation * alpha / 2
    rest = separation * m * p[None, :] / gamma
    return rest + (start - rest) * np.exp(-l * rate * gamma * alpha)


def Q_plus_plus_limit(prior, separation, rate, mean_variance):
    """The prototype of the larger class (here +1) comes to rest."""
    gamma = 2 * prior - 1
    return separation**2 * (prior**2 + (1 - prior) ** 2) / gamma**2 + rate * mean_variance / (2 * gamma)
