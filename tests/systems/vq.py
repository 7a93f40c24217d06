r"""VQ in the unspecialised state: prototypes that differ only in directions without signal.

By the exchange symmetry of the prototypes the winner is a fair coin, so $R_{Ss} = \lambda p_s$. Their distance obeys
$D - 4\varphi_0\sqrt D - \eta = 0$ (unit variance, $\varphi_0 = 1/\sqrt{2\pi}$), and a small difference grows as
$e^{\kappa\alpha}$.
"""

import numpy as np

PHI0 = 1 / np.sqrt(2 * np.pi)


def distance(rate):
    return 2 * PHI0 + np.sqrt(4 * PHI0**2 + rate)


def escape_rate(prior, separation, rate):
    signal = 2 * separation**2 * prior * (1 - prior)
    return rate * (2 * PHI0 * (1 + signal) / distance(rate) - 0.5)
