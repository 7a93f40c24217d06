r"""Ridge regression of a noisy linear teacher, in closed form.

Inputs $x$ have independent entries of unit variance, targets are $B \cdot x/\sqrt N + \epsilon$ with $|B|^2 = N$ and
noise of variance $n$, and $J$ minimises
$\frac12 \sum_\mu (\text{target} - J \cdot x^\mu/\sqrt N)^2 + \frac\lambda2 |J|^2$ over $\alpha N$ examples.
With $C = X^T X/N$,

$$J - B = -\lambda (C + \lambda)^{-1} B + (C + \lambda)^{-1} X^T \epsilon/\sqrt N .$$

All averages follow from the resolvent $g(\lambda) = \frac1N \mathrm{Tr}(C + \lambda)^{-1}$, which Marchenko and
Pastur's law gives as the positive root of $\lambda g^2 + (\lambda + \alpha - 1) g - 1 = 0$, and from
$h = -dg/d\lambda$:

    D.B/N  = -lambda g                                    with D = J - B
    D.D/N  = lambda^2 h + n (g - lambda h)                since C (C + lambda)^-2 has the trace g - lambda h
    energy = [lambda (1 - lambda g) + n (alpha - 1 + lambda g)]/2      per dimension
    z      = g                                            the susceptibility is the resolvent
"""

import numpy as np


def closed_form(alpha, ridge, noise):
    """Overlap and norm of $J - B$, susceptibility and energy."""
    p = ridge + alpha - 1
    g = (-p + np.sqrt(p * p + 4 * ridge)) / (2 * ridge)
    h = (g * g + g) / (2 * ridge * g + p)
    energy = 0.5 * (ridge * (1 - ridge * g) + noise * (alpha - 1 + ridge * g))
    return {"R": -ridge * g, "Q": ridge**2 * h + noise * (g - ridge * h), "z": g, "free_energy": energy}
