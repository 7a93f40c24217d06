r"""The flow of the overlaps as $N \to \infty$, and the learning curve it gives.

$$\dot R_{Sm} = \eta \sum_k p_k g_{Sk} \big(\langle b_m\Theta_S\rangle_k - \langle\Theta_S\rangle_k R_{Sm}\big)$$
$$\dot Q_{ST} = \eta \sum_k p_k \big\{ g_{Sk} (\langle h_T\Theta_S\rangle_k - \langle\Theta_S\rangle_k Q_{ST})
  + (S \leftrightarrow T) \big\}
  + \eta^2 \sum_k p_k v_k\, g_{Sk}\, g_{Tk} \langle\Theta_S\Theta_T\rangle_k$$

with $\langle\Theta_S\Theta_T\rangle = \delta_{ST}\langle\Theta_S\rangle$ when the winner takes all and 1 when all
move (LVQ2.1). [biehl2006, eqs. (17), (29), errata P5 to P15]
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from quenched.core import checks, flow
from quenched.core.lengths import next_length, padded
from quenched.core.types import Array, Real, double, require_double
from quenched.prototypes.model import (
    SCIENCE,
    Law,
    Numbers,
    Rule,
    Start,
    count,
    numbers,
    numbers_of,
    rate_at,
    start_of,
)
from quenched.prototypes.theory import winners

BATCH = 1024
"""Times at which errors are computed side by side."""
COPIES = 4
"""Times that a learning curve stands in memory while it is computed."""


class State(NamedTuple):
    """Order parameters and the error they imply."""

    R: Array  # [..., K, M]
    Q: Array  # [..., K, K]
    error: Array  # [...]
    outcome: Array  # [...] `Outcome` codes

    @property
    def accuracy(self) -> float:
        """To which the averages over an example are known; large from six prototypes on, where they are sampled."""
        return winners.ACCURACY[winners.way(self.R.shape[-2])]


def _averages(n: Numbers, R: Array, Q: Array, all_move: bool) -> tuple[winners.Averages, Array]:
    """Averages over one example, and the pair probability <Theta_S Theta_T>_k [K, K, M]."""
    K, M = n.g.shape
    if all_move:
        h, b = winners.means(n, R)
        every = winners.Averages(jnp.ones((K, M)), jnp.tile(h, (K, 1, 1)), jnp.tile(b, (K, 1, 1)))
        return every, jnp.ones((K, K, M))
    average = winners.averages(n, R, Q)
    return average, jnp.eye(K)[:, :, None] * average.win[:, None, :]


def drift(n: Numbers, rate: Real, R: Array, Q: Array, *, all_move: bool, noise: bool = True) -> tuple[Array, Array]:
    r"""$(\dot R, \dot Q)$ at given overlaps.

    Args:
        n: law and rule in numbers.
        rate: $\eta$ now.
        R: overlaps with the centres.
        Q: overlaps among prototypes.
        all_move: whether all prototypes move, rather than the winner.
        noise: whether to keep the $\eta^2$ term; without it, and with rate 1, this is the small-rate flow in time
            $\eta\alpha$.
    """
    (win, h, b), pair = _averages(n, R, Q, all_move)
    rate, pg = jnp.asarray(rate), n.p * n.g  # [K, M]
    dR = rate * (jnp.einsum("sk,smk->sm", pg, b) - jnp.sum(pg * win, axis=1)[:, None] * R)
    half = jnp.einsum("sk,stk->st", pg, h) - jnp.sum(pg * win, axis=1)[:, None] * Q
    dQ = rate * (half + half.T)
    if noise:
        dQ = dQ + jnp.square(rate) * jnp.einsum("k,sk,tk,stk->st", n.p * n.v, n.g, n.g, pair)
    return dR, dQ


def in_units(n: Numbers, R: Array, Q: Array, unit: Real) -> tuple[Numbers, Array, Array]:
    """The same world and the same overlaps with lengths in another unit: nothing depends on it but rounding."""
    return n._replace(lam=n.lam / unit, v=n.v / unit**2), R / unit, Q / unit**2


def field(law: Law, rule: Rule, R: Array, Q: Array, alpha: Real = 0.0) -> tuple[Array, Array]:
    r"""$(\dot R, \dot Q)$ of a law and a rule at given overlaps (and time, if the rate depends on it)."""
    n = numbers(law, rule)
    return drift(n, rate_at(n.rate, alpha), R, Q, all_move=rule.all_move)


def error(law: Law, rule: Rule, R: Array, Q: Array) -> Array:
    r"""The probability that a new example is won by a prototype of another class, at any $N$.

    $$\epsilon_g = \sum_k p_k \sum_{S:\, \text{label}(S) \ne \text{label}(k)} \langle\Theta_S\rangle_k$$

    [biehl2006, eq. (30); eq. (8) with erratum P1]
    """
    return error_of(numbers(law, rule), R, Q)


def error_of(n: Numbers, R: Array, Q: Array) -> Array:
    """The error, from law and rule in numbers."""
    return jnp.sum(n.p * n.wrong * winners.averages(n, R, Q).win)


def state(
    law: Law,
    rule: Rule,
    alpha: Real,
    start: Start | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> State:
    r"""Order parameters after $\alpha$ examples per dimension: a pure JAX function of law, rule, $\alpha$ and start.

    Args:
        law: the world.
        rule: the student.
        alpha: a time, or increasing times.
        start: `NearOrigin()` by default.
        rtol: relative accuracy of an integration step; by default as fine as the averages over an example are.
        atol: absolute accuracy of an integration step; likewise.

    Returns:
        The state at `alpha`, with a leading axis if `alpha` has one. Times that were not reached are NaN and marked in
        `outcome`.

    Raises:
        InputError: in single precision.

    Examples:
        >>> import jax
        >>> from quenched import prototypes
        >>> law, rule = prototypes.TwoClusters(prior=0.8), prototypes.LVQ1(0.2)
        >>> with jax.enable_x64(True):
        ...     error = jax.jit(lambda rule: prototypes.theory.state(law, rule, 10.0).error)(rule)
    """
    require_double("prototypes.theory.state")
    times = jnp.asarray(alpha, float)
    SCIENCE.check_pair(law, rule)
    begin = start_of(start).overlaps(*count(law, rule))
    every = _state(numbers(law, rule), jnp.atleast_1d(times), begin, all_move=rule.all_move, rtol=rtol, atol=atol)
    return every if times.ndim else State(*(x[0] for x in every))


def _state(
    n: Numbers,
    times: Array,
    begin: tuple[Array, Array],
    *,
    all_move: bool,
    rtol: float | None = None,
    atol: float | None = None,
) -> State:
    """The states at increasing times."""

    def moving(t: Array, y: tuple[Array, Array], n: Numbers) -> tuple[Array, Array]:
        return drift(n, rate_at(n.rate, t), *y, all_move=all_move)

    fine = winners.is_exact(n.g.shape[0])
    rtol, atol = rtol or (flow.RTOL if fine else 1e-4), atol or (flow.ATOL if fine else 1e-5)
    unit = jnp.sqrt(jnp.max(n.v))  # accuracy is meant relative to the width of the clusters
    n, R, Q = in_units(n, *begin, unit)
    path = flow.integrate(moving, (R, Q), times, n, rtol=rtol, atol=atol)
    R, Q = path.states
    # with four or five prototypes one at a time: how hard an average is decides how it is computed
    error = jax.lax.map(lambda y: error_of(n, *y), (R, Q), batch_size=None if _one_by_one(n) else BATCH)
    return State(unit * R, unit**2 * Q, error, path.outcome)


def _one_by_one(n: Numbers) -> bool:
    """Whether points are better done one after the other: side by side each would be computed in the hardest way."""
    return n.g.shape[-2] > 3 and winners.way(n.g.shape[-2]) == "quadrature"


@functools.partial(jax.jit, static_argnames="all_move")
def _states(many: Numbers, times: Array, begin: tuple[Array, Array], all_move: bool) -> State:
    def one(n: Numbers) -> State:
        return _state(n, times, begin, all_move=all_move)

    return jax.lax.map(one, many) if _one_by_one(many) else jax.vmap(one)(many)


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
        Its attribute `averages` says how averages over an example were computed: "closed" (two prototypes),
        "quadrature" (up to five) or "sampled" (approximately, six or more); `accuracy` says how accurately.

    Raises:
        InputError: if the result would not fit in memory.

    Examples:
        >>> import numpy as np
        >>> from quenched import prototypes
        >>> law, rule = prototypes.TwoClusters(prior=0.8), prototypes.LVQ1(rate=0.2)
        >>> curve = prototypes.curve(law, rule, alpha=np.linspace(0, 50, 501))
    """
    question = SCIENCE.ask(law, rule, sweep, alpha=alpha)
    start, (K, M), times = start_of(start), count(law, rule), question.axes["alpha"]
    length = next_length(len(times))
    checks.memory("The learning curve", len(question.plan.laws) * 8.0 * COPIES * length * (K * M + K * K + 2))
    found = _states(numbers_of(question.plan), padded(times, length), start.overlaps(K, M), rule.all_move)
    values = {name: np.asarray(value)[:, : times.size] for name, value in found._asdict().items()}
    way = winners.way(K)
    return question.answer(values, start=start, averages=way, accuracy=winners.ACCURACY[way])
