"""The verb `curve`: states on the host, each solved from a guess by the compiled equations alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtr

from quenched.core import checks, saddle
from quenched.core.types import Outcome, double
from quenched.mixtures.model import SCIENCE, MaximumLikelihood, TwoGaussians
from quenched.mixtures.theory.equations import MIXTURE, ORDERED, RANDOM, Setting, guess_ordered, guess_random
from quenched.mixtures.theory.state import DIRECTION, Phase, State, edge, splitting, unsplit_stability


def solve(law: TwoGaussians, rule: MaximumLikelihood, alpha: float) -> State:
    """The state, as `state` has it, by host code."""
    alpha, width, separation = (np.float64(x) for x in (alpha, rule.width, law.separation))
    if width >= splitting(law, alpha):
        stability = unsplit_stability(rule, alpha)
        return State(0.0, 0.0, 0.5, 0.0, 0.0, stability, Phase.unsplit, Outcome.converged, 0.0)  # pyright: ignore
    log_l = np.log(separation**2 / 2)
    setting = Setting(log_l, np.log(alpha), np.log(width), np.array(RANDOM))
    found = None
    if width < edge(alpha):
        found = saddle.solve(MIXTURE, setting, guess_random(alpha, width))
    if found is None or found.readings.gain > 0:
        ordered = setting._replace(conditions=np.array(ORDERED))
        found = saddle.solve(MIXTURE, ordered, guess_ordered(log_l, alpha, width))
    r, q, energy, stability = (float(x) for x in found.readings[:4])
    phase = Phase.ordered if r > DIRECTION * np.sqrt(q / 2) else Phase.random
    error = ndtr(-separation * r / np.sqrt(q))
    return State(r, q, error, energy, alpha * energy, stability, phase, found.outcome, found.residual)  # pyright: ignore


@double
def curve(law: TwoGaussians, rule: MaximumLikelihood, *, alpha: Any, **sweep: Any) -> xr.Dataset:
    """Order parameters and error of maximum likelihood in theory.

    Args:
        law: the world.
        rule: the student.
        alpha: increasing sample sizes (examples per dimension), or one.
        **sweep: any field of the law or the rule, above all `width`; a sequence becomes a dimension of the result.

    Returns:
        A dataset with `r`, `q`, `error`, `energy` (of an example), `free_energy` (over $N$), `stability` (below 1
        replica symmetry holds), `phase`, `outcome` and `residual` over the controls.

    Examples:
        >>> from quenched import mixtures
        >>> law, rule = mixtures.TwoGaussians(separation=1.0), mixtures.MaximumLikelihood()
        >>> curve = mixtures.curve(law, rule, alpha=5.0, width=[0.5, 1.5, 3.0])
        >>> [str(phase) for phase in curve.phase.values]
        ['random', 'ordered', 'unsplit']
    """
    checks.kind("law", law, TwoGaussians, "a TwoGaussians law")
    question = SCIENCE.ask(law, rule, sweep, alpha=alpha)
    checks.positive("alpha", question.axes["alpha"])
    values = question.map(solve)
    return question.answer(values | {"phase": np.array([p.name for p in Phase])[values["phase"]]})
