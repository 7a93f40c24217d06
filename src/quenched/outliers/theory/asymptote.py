r"""Unlimited examples: the vector is $J = R B$ with the $R$ that is best for the whole population.

With $J = R B + O(\alpha^{-1/2})$ the field of an example is
$h = \tilde\gamma R (V + x/\sqrt\gamma) - \tilde\gamma R^2/2 - \eta$, and $R$ makes $\langle G(h) \rangle$ largest:
$G = \ln(1 + e^h)$ for soft selection and Gibbs learning, $G = (h)_+$ for hard selection, $G = h$ for the Hebb rule.
What is left of the noise of the examples is, with $p = G'$,

$$\alpha (Q - R^2) \to c = \frac{R^2 \langle p^2 \rangle}{\gamma (w_1 \langle p \rangle_1)^2}
  + \frac{T R}{\tilde\gamma w_1 \langle p \rangle_1}, \qquad \Phi \simeq \frac{1}{\pi R} \sqrt{\frac c\alpha} ,$$

the second term for Gibbs learning only. For soft selection with $\tilde\gamma = \gamma$, $R = 1$ and
$c = 1/\gamma\langle p^2 \rangle$ for every $\eta$. The energy of an example is $-\langle G \rangle$; for hard
selection it is negative, while selecting nothing costs nothing: there is no critical share of outliers.

[dietrich1998, eq. (30), erratum E7]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from quenched.core.gaussian import TAIL, legendre
from quenched.core.types import Outcome
from quenched.outliers.model import SCIENCE, Contaminated, Gibbs, HardSelection, Hebb, Rule, gamma_of

PANELS, NODES = 64, 16
"""Gauss-Legendre panels over a Gaussian, and nodes on each."""
LARGEST, POINTS = 100.0, 200
"""The largest overlap that may be the best one, and how many are tried at any scale and near 1."""


class Population(NamedTuple):
    """Averages over all examples at a given R."""

    G: np.ndarray
    slope: np.ndarray  # of <G> by R, over the student's gamma
    p: np.ndarray
    p2: np.ndarray
    informed: np.ndarray  # w1 <p>_1


def _given(m: np.ndarray, s: np.ndarray, rule: Rule) -> tuple[np.ndarray, ...]:
    r"""$\langle G \rangle$, $\langle p \rangle$, $\langle p^2 \rangle$ and $\langle x p \rangle$ for $h = m + s x$."""
    from scipy.special import expit, ndtr

    if isinstance(rule, Hebb):
        return m, np.ones_like(m), np.ones_like(m), np.zeros_like(m)
    if isinstance(rule, HardSelection):
        P, n = ndtr(m / s), np.exp(-np.square(m / s) / 2) / np.sqrt(2 * np.pi)
        return m * P + s * n, P, P, n
    t, w = legendre(NODES)
    x = TAIL * (2 * (np.arange(PANELS)[:, None] + t).ravel() / PANELS - 1)
    weight = np.tile(w, PANELS) * 2 * TAIL / PANELS * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    h = m[..., None] + s[..., None] * x
    p = expit(h)
    return np.logaddexp(0, h) @ weight, p @ weight, np.square(p) @ weight, p @ (x * weight)


def average(law: Contaminated, rule: Rule, R: Any) -> Population:
    r"""Averages over all examples for $J = R B$, for one or many $R$."""
    gamma, gt, R = float(law.gamma), float(gamma_of(law, rule)), np.asarray(R, dtype=float)
    w = np.array([1 - float(law.informative), float(law.informative)])
    m = gt * R[..., None] * np.array([0.0, 1.0]) - gt * np.square(R[..., None]) / 2 - float(law.eta)
    s = np.broadcast_to(gt * R[..., None] / np.sqrt(gamma), m.shape)
    G, p, p2, xp = _given(m, s, rule)
    slope = w[1] * p[..., 1] + xp @ w / np.sqrt(gamma) - R * (p @ w)
    return Population(G @ w, slope, p @ w, p2 @ w, w[1] * p[..., 1])


def asymptote(law: Contaminated, rule: Rule, **sweep: Any) -> xr.Dataset:
    r"""What is learned from unlimited examples, and how fast the error goes to zero.

    Args:
        law: the world.
        rule: the student.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        `R` and `Q` $= R^2$; `c`, the limit of $\alpha (Q - R^2)$; `Phi_amplitude`, the limit of
        $\sqrt\alpha\,\Phi$; `example_energy`, the energy over the number of examples; `selected`; `outcome`.

    Examples:
        >>> from quenched import outliers
        >>> found = outliers.asymptote(outliers.Contaminated(10.0), outliers.SoftSelection(), eta=[0.0, 4.0])
        >>> found.R.values.round(9), found.c.values.round(4)
        (array([1., 1.]), array([0.2184, 9.1311]))
    """
    question = SCIENCE.ask(law, rule, sweep)
    return question.answer(question.map(_limit), source="asymptote").assign_coords(alpha=np.inf)


def _limit(law: Contaminated, rule: Rule) -> dict[str, float]:
    """One row of the result."""
    from scipy.optimize import brentq

    # one that selects nearly nothing may be best for a student who believes in too much noise
    tried = np.union1d(np.geomspace(float(law.informative) / 10, LARGEST, POINTS), np.geomspace(0.01, LARGEST, POINTS))
    k = int(np.clip(np.argmax(average(law, rule, tried).G), 1, len(tried) - 2))
    low, high = tried[[k - 1, k + 1]]
    ends, R = average(law, rule, tried[[k - 1, k + 1]]).slope, np.nan
    if isinstance(rule, Hebb):
        R = float(law.informative)
    elif ends[0] * ends[1] < 0:  # otherwise the best overlap is smaller or larger than all that are tried
        R = float(brentq(lambda R: float(average(law, rule, R).slope), low, high, xtol=1e-15 * low))  # pyright: ignore
    with np.errstate(invalid="ignore"):  # where no best overlap was found
        every = average(law, rule, R)
    gt = float(gamma_of(law, rule))
    T = float(rule.temperature) if isinstance(rule, Gibbs) else 0.0
    c = float(R**2 * every.p2 / every.informed**2 / law.gamma + T * R / (gt * every.informed))
    return {
        "R": R, "Q": R * R, "c": c, "Phi_amplitude": np.sqrt(c) / (np.pi * R),
        "example_energy": -float(every.G), "selected": float(every.p),
        "outcome": Outcome.converged if np.isfinite(c) else Outcome.failed,
    }  # fmt: skip
