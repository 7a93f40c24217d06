"""The learning curve in theory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from quenched.core import system
from quenched.core.progress import track
from quenched.core.types import double
from quenched.prototypes.model import SCIENCE, Law, Rule, Start, count, numbers, online, start_of
from quenched.prototypes.theory import winners
from quenched.prototypes.theory.state import State, follow

if TYPE_CHECKING:
    import xarray as xr

COPIES = 4
"""Times that a learning curve stands in memory while it is computed."""


@double
def curve(law: Law, rule: Rule, *, alpha: Any, start: Start | None = None, **sweep: Any) -> xr.Dataset:
    """The learning curve in theory.

    Args:
        law: the world.
        rule: the student.
        alpha: increasing times (examples per dimension), or one.
        start: where the prototypes begin; `NearOrigin()` by default.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        A dataset with `R[prototype, cluster]`, `Q[prototype, prototype2]`, `error` and `outcome` over the controls.
        Its attribute `averages` is the way in which averages over an example were computed: "closed" (two prototypes),
        "quadrature" (up to five) or "sampled" (approximately, six or more); `accuracy` is that of these averages.

    Raises:
        InputError: if the result would not fit in memory.

    Examples:
        >>> import numpy as np
        >>> from quenched import prototypes
        >>> law, rule = prototypes.TwoClusters(prior=0.8), prototypes.LVQ1(rate=0.2)
        >>> curve = prototypes.curve(law, rule, alpha=np.linspace(0, 50, 501))
    """
    question = SCIENCE.ask(law, online(rule), sweep, alpha=alpha)
    start, (K, M), times = start_of(start), count(law, rule), question.axes["alpha"]
    system.require_memory(
        "The learning curve", len(question.plan.laws) * 8.0 * COPIES * len(times) * (K * M + K * K + 2)
    )
    begin = start.overlaps(K, M)
    found = [follow(numbers(*pair), begin, times, rule.all_move) for pair in track(question.plan.pairs, "theory")]
    values = {name: np.stack([getattr(one, name) for one in found]) for name in State._fields}
    way = winners.way(K)
    return question.answer(values, start=start, averages=way, accuracy=winners.ACCURACY[way])
