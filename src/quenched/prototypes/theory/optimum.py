"""A yardstick: the lowest error that a flat boundary can have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from quenched.core import checks, verbs
from quenched.core.types import Outcome
from quenched.prototypes.model import SCIENCE, TwoClusters
from quenched.prototypes.theory.rest_states import cross_densities

if TYPE_CHECKING:
    import xarray as xr


def optimum(law: TwoClusters, **sweep: Any) -> xr.Dataset:
    r"""The lowest error of any flat boundary across the line through the centres.

    For $v_+ = v_-$ it is the Bayes error, $p_+\Phi(-d/2 - L/d) + p_-\Phi(-d/2 + L/d)$ with
    $d = \sqrt2\lambda/\sqrt v$, $L = \ln(p_+/p_-)$. For unequal variances the Bayes error itself goes to 0 as
    $N \to \infty$ (the length of an example tells its class), so the best flat boundary is the yardstick.

    Args:
        law: the world.
        **sweep: any field of the law; a sequence becomes a dimension of the result.

    Returns:
        `error` and `outcome`.

    Examples:
        >>> from quenched import prototypes
        >>> best = prototypes.optimum(prototypes.TwoClusters(separation=1.0), prior=[0.5, 0.8])
        >>> best.error.values.round(4).tolist()
        [0.2398, 0.1581]
    """
    checks.kind("law", law, TwoClusters, "a TwoClusters law")
    question = SCIENCE.ask(law, verbs.Bayes(), sweep)
    return question.answer(question.map(lambda law, _: {"error": _best_error(law), "outcome": Outcome.converged}))


def _best_error(law: TwoClusters) -> float:
    """The error of the best flat boundary."""
    p = np.array([float(law.prior), 1 - float(law.prior)])
    v = np.asarray(law.variances, float)
    m = np.array([1.0, -1.0]) * float(law.separation) / np.sqrt(2)
    theta = np.append(cross_densities(p, m, v)[0], [-np.inf, np.inf])
    return float(np.min(p[0] * ndtr((theta - m[0]) / np.sqrt(v[0])) + p[1] * ndtr((m[1] - theta) / np.sqrt(v[1]))))
