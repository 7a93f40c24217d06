r"""When to stop: the time at which the error along a learning curve is lowest.

LVQ2.1 repels the prototype of the other class at every example, in its window or everywhere, so that its error first
falls and later rises. The error is a smooth function of time. It is scanned on a grid, and the grid is refined around
the lowest point until the time is known to a part in $10^4$ of the span, or better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core import checks
from quenched.core.types import Outcome, double
from quenched.prototypes.model import SCIENCE, Law, Rule, Start, count, numbers, online, start_of
from quenched.prototypes.theory.state import State, follow

if TYPE_CHECKING:
    import xarray as xr

SCANNED, REFINED = 401, 21
"""Times of the first grid, and of those around its lowest point."""
ROUNDS = 2
"""Refinements: each makes the step ten times smaller."""


@double
def stop_early(law: Law, rule: Rule, *, until: float = 100.0, start: Start | None = None, **sweep: Any) -> xr.Dataset:
    r"""Find the time at which the error is lowest, and what it is then.

    $$\alpha^* = \arg\min_{0 < \alpha \le \text{until}} \epsilon_g(\alpha)$$

    where $\epsilon_g(\alpha)$ is the learning curve of `curve`.

    Args:
        law: the world.
        rule: the student.
        until: the last time that is considered.
        start: where the prototypes begin; `NearOrigin()` by default.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        `stop`, the time $\alpha^*$; `R`, `Q` and `error` then; and `outcome`: `absent` if the error still falls at the
        last time, which is then `stop`.

    Examples:
        >>> from quenched import prototypes
        >>> law, rule = prototypes.TwoClusters(prior=0.8), prototypes.LVQ21(0.2)
        >>> best = prototypes.stop_early(law, rule, until=50.0)
        >>> 5 < float(best.stop) < 20
        True
    """
    question = SCIENCE.ask(law, online(rule), sweep)
    checks.positive("until", checks.number("until", until))
    start = start_of(start)
    return question.answer(question.map(lambda law, rule: _find(law, rule, start, float(until))), start=start)


def _find(law: Law, rule: Rule, start: Start, until: float) -> dict[str, Any]:
    """The lowest point of one learning curve."""
    n, begin = numbers(law, rule), start.overlaps(*count(law, rule))

    def scan(times: np.ndarray) -> tuple[State, int]:
        states = follow(n, begin, times, rule.all_move)
        return states, int(np.argmin(np.where(np.isfinite(states.error), states.error, np.inf)))

    times = np.linspace(0.0, until, SCANNED)
    states, best = scan(times)
    reached = int(np.sum(np.isfinite(states.error)))
    falls = best == reached - 1
    for _ in range(0 if falls else ROUNDS):
        times = np.linspace(times[max(best - 1, 0)], times[min(best + 1, len(times) - 1)], REFINED)
        states, best = scan(times)
    outcome = Outcome(int(states.outcome[best])) if not falls else Outcome.absent
    return {
        "stop": times[best],
        "R": states.R[best],
        "Q": states.Q[best],
        "error": states.error[best],
        "outcome": outcome,
    }
