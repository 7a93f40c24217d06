"""The verb `optimum`: the least error that any estimate can have."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import expit, ndtr

from quenched.core import checks, gaussian, verbs
from quenched.core.types import Outcome
from quenched.mixtures.model import SCIENCE, TwoGaussians

SMALLEST = -40.0
"""The least logarithm of $c^2/(1 - c^2)$ of the best estimate."""
POINTS = 801
"""Points of the trapezoidal rule over a Gaussian: for smooth functions it converges exponentially."""
ACCURACY = 1e-9
"""What the equation of the best estimate may leave over, relative."""
Z = np.linspace(-gaussian.TAIL, gaussian.TAIL, POINTS)
DENSITY = np.exp(-(Z**2) / 2) / np.sqrt(2 * np.pi) * (Z[1] - Z[0])


def _solve(law: TwoGaussians, _: verbs.Bayes, alpha: float) -> dict[str, Any]:
    r"""The best estimate at one sample size.

    Divided by $c^2$ the equation reads $\alpha l^2\, (T(B)/B)\, (1 - c^2) = 1$. The left side falls from
    $\alpha l^2$ to 0: one solution above $\alpha_c = l^{-2}$, sought in $\ln c^2/(1 - c^2)$, none below.
    """
    from scipy.optimize import brentq

    l = float(law.separation) ** 2 / 2

    def excess(x: float) -> float:
        B = l * expit(x)
        T = np.tanh(B + np.sqrt(B) * Z) ** 2 @ DENSITY  # <tanh> = <tanh^2>, which loses no digits where B is small
        return float(np.log(alpha * l * l * T / B) - np.logaddexp(0.0, x))

    high = np.log(alpha * l + 1) + 1  # c^2/(1 - c^2) = alpha l T < alpha l
    if not alpha * l * l > 1 or not excess(SMALLEST) > 0:
        return {"error": 0.5, "cosine": 0.0, "outcome": Outcome.converged, "residual": 0.0}
    x: Any = brentq(excess, SMALLEST, high, xtol=1e-15, rtol=np.float64(1e-15))
    left = abs(excess(x))
    outcome = Outcome.converged if left < ACCURACY else Outcome.failed
    return {"error": ndtr(-np.sqrt(l * expit(x))), "cosine": np.sqrt(expit(x)), "outcome": outcome, "residual": left}


def optimum(law: TwoGaussians, *, alpha: Any, **sweep: Any) -> xr.Dataset:
    r"""The least error that any estimate from unlabelled examples can have on average (Bayes).

    $$c^2 = \frac{\alpha l T}{1 + \alpha l T}, \qquad T = \langle \tanh(B + \sqrt B z) \rangle, \quad B = l c^2$$

    with $l = u_0^2/2$. Up to $\alpha_c = l^{-2}$ only $c = 0$ solves it: nothing can be learned, and the error is 1/2.

    Args:
        law: the world.
        alpha: increasing sample sizes (examples per dimension), or one.
        **sweep: any field of the law; a sequence becomes a dimension of the result.

    Returns:
        `error`, `cosine` (of the angle between the best estimate and the truth), `outcome` and `residual` over `alpha`.

    Examples:
        >>> from quenched import mixtures
        >>> best = mixtures.optimum(mixtures.TwoGaussians(separation=1.0), alpha=[4.0, 5.0])
        >>> best.error.values.round(4).tolist()
        [0.5, 0.394]
    """
    checks.kind("law", law, TwoGaussians, "a TwoGaussians law")
    question = SCIENCE.ask(law, verbs.Bayes(), sweep, alpha=alpha)
    checks.positive("alpha", question.axes["alpha"])
    return question.answer(question.map(_solve))
