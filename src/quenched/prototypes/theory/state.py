r"""The flow of the overlaps as $N \to \infty$, and the state it leads to.

$$\dot R_{Sm} = \eta \sum_k p_k g_{Sk} \big(\langle b_m\Theta_S\rangle_k - \langle\Theta_S\rangle_k R_{Sm}\big)$$
$$\dot Q_{ST} = \eta \sum_k p_k \big\{ g_{Sk} (\langle h_T\Theta_S\rangle_k - \langle\Theta_S\rangle_k Q_{ST})
  + (S \leftrightarrow T) \big\}
  + \eta^2 \sum_k p_k v_k\, g_{Sk}\, g_{Tk} \langle\Theta_S\Theta_T\rangle_k$$

with $\langle\Theta_S\Theta_T\rangle = \delta_{ST}\langle\Theta_S\rangle$ when the winner takes all, 1 when all
move (LVQ2.1), and the share of examples in the window if there is one. [biehl2006, eqs. (17), (29), errata P5 to P15]

Weight decay, $w_S \leftarrow (1 - \gamma/N)\, w_S$ before each example, and a drift that turns the axes $e$ of the
centres by $e \cdot e' = 1 - \delta/N$ add $\dot R_{Sm} = -(\gamma + \delta) R_{Sm}$ and
$\dot Q_{ST} = -2\gamma Q_{ST}$: the part of an axis that is new has no overlap with the prototypes on average, its
fluctuations are $O(N^{-1/2})$ and add up to $O(N^{-1/2})$ over $O(N)$ steps; and the angles among the axes stay.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import flow
from quenched.core.types import QUICK, Array, Outcome, Real, require_double
from quenched.prototypes.model import (
    SCIENCE,
    Law,
    Numbers,
    Rule,
    Schedule,
    Start,
    count,
    numbers,
    online,
    rate_at,
    start_of,
)
from quenched.prototypes.theory import winners

BATCH = 1024
"""Times at which errors are computed side by side."""
STEPS: dict[str, dict[str, Any]] = {"closed": {}, "quadrature": {}, "sampled": {"rtol": 1e-4, "atol": 1e-5}}
"""Accuracy of a step, if not the usual one, by the way in which averages over an example are computed."""
PATIENCE, AT_REST = 1024, 1e-7
"""Steps after which a flow is asked whether it is at rest, and how near to the rest state it must be, as a share of the
overlaps: steps of the usual accuracy keep it within half of that."""


class State(NamedTuple):
    """Order parameters and the error they imply."""

    R: Any  # [..., K, M]
    Q: Any  # [..., K, K]
    error: Any  # [...]
    outcome: Any  # [...] `Outcome` codes

    @property
    def accuracy(self) -> float:
        """To which the averages over an example are known; large from six prototypes on, where they are sampled."""
        return winners.ACCURACY[winners.way(self.R.shape[-2])]


def drift(n: Numbers, noise: Real, R: Array, Q: Array, *, all_move: bool) -> tuple[Array, Array]:
    r"""$(dR, dQ)/d(\eta\alpha)$ at given overlaps; `noise` is $\eta$, or 0 in the small-rate limit."""
    K, M = n.g.shape
    if all_move and n.window is None:
        h, b = (jnp.tile(x, (K, 1, 1)) for x in winners.project(n, R))
        win, pair = jnp.ones((K, M)), jnp.ones((K, K, M))
    elif all_move:
        win, h, b = winners.average_window(n, R, Q, n.window)
        pair = jnp.tile(win[0], (K, K, 1))
    else:
        win, h, b = winners.average(n, R, Q)
        pair = jnp.eye(K)[:, :, None] * win[:, None, :]  # <Theta_S Theta_T>_k
    pg = n.p * n.g  # [K, M]
    dR = jnp.einsum("sk,smk->sm", pg, b) - jnp.sum(pg * win, axis=1)[:, None] * R
    half = jnp.einsum("sk,stk->st", pg, h) - jnp.sum(pg * win, axis=1)[:, None] * Q
    return dR, half + half.T + noise * jnp.einsum("k,sk,tk,stk->st", n.p * n.v, n.g, n.g, pair)


def forget(n: Numbers, R: Array, Q: Array) -> tuple[Array, Array]:
    r"""What weight decay and drift add to $(\dot R, \dot Q)$."""
    return -(n.decay + n.drift) * R, -2 * n.decay * Q


def in_units(n: Numbers, R: Any, Q: Any, unit: Real) -> tuple[Numbers, Any, Any]:
    """The same world and the same overlaps with lengths in another unit: nothing depends on it but rounding."""
    return n._replace(lam=n.lam / unit, v=n.v / unit**2), R / unit, Q / unit**2


def field(law: Law, rule: Rule, R: Array, Q: Array, alpha: Real = 0.0) -> tuple[Array, Array]:
    r"""$(\dot R, \dot Q)$ of a law and a rule at given overlaps (and time, if the rate depends on it)."""
    return _move(numbers(law, rule), alpha, (R, Q), rule.all_move)


def _move(n: Numbers, t: Real, y: tuple[Array, Array], all_move: bool) -> tuple[Array, Array]:
    r"""$(\dot R, \dot Q)$ at time $\alpha$."""
    rate = rate_at(n.rate, t)
    (dR, dQ), (lost_R, lost_Q) = drift(n, rate, *y, all_move=all_move), forget(n, *y)
    return rate * dR + lost_R, rate * dQ + lost_Q


def error(law: Law, rule: Rule, R: Array, Q: Array) -> Array:
    r"""The probability that a new example is won by a prototype of another class, at any $N$.

    $$\epsilon_g = \sum_k p_k \sum_{S:\, \text{label}(S) \ne \text{label}(k)} \langle\Theta_S\rangle_k$$

    [biehl2006, eq. (30); eq. (8) with erratum P1]
    """
    return error_of(numbers(law, rule), R, Q)


def error_of(n: Numbers, R: Array, Q: Array) -> Array:
    """The error, from law and rule in numbers."""
    return jnp.sum(n.p * n.wrong * winners.average(n, R, Q).win)


def state(
    law: Law, rule: Rule, alpha: Real, start: Start | None = None, *, rtol: float | None = None,
    atol: float | None = None,
) -> State:  # fmt: skip
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
    SCIENCE.check_pair(law, online(rule))
    n, begin, times = numbers(law, rule), start_of(start).overlaps(*count(law, rule)), jnp.asarray(alpha, float)
    K = n.g.shape[0]
    steps: dict[str, Any] = STEPS[winners.way(K)] | {k: v for k, v in (("rtol", rtol), ("atol", atol)) if v is not None}
    unit = jnp.sqrt(jnp.max(n.v))  # accuracy is meant relative to the width of the clusters
    n, R, Q = in_units(n, *begin, unit)
    begin = jnp.asarray(R), jnp.asarray(Q)
    path = flow.integrate(lambda t, y, n: _move(n, t, y, rule.all_move), begin, jnp.atleast_1d(times), n, **steps)
    R, Q = path.states
    # with four or five prototypes one at a time: side by side each would be computed in the hardest way
    one_by_one = K > 3 and winners.way(K) == "quadrature"
    error = jax.lax.map(lambda y: error_of(n, *y), (R, Q), batch_size=None if one_by_one else BATCH)
    every = State(unit * R, unit**2 * Q, error, path.outcome)
    return every if times.ndim else State(*(x[0] for x in every))


# On the host, overlaps are one vector: R, and then Q, row by row. `fold` leaves out the lower triangle of Q.


def join(R: Any, Q: Any) -> np.ndarray:
    """Overlaps as one vector."""
    return np.concatenate([np.ravel(R), np.ravel(Q)])


def split(y: Any, K: int, M: int) -> tuple[Any, Any]:
    """$R$ and $Q$ of vectors of overlaps."""
    return y[..., : K * M].reshape(*y.shape[:-1], K, M), y[..., K * M :].reshape(*y.shape[:-1], K, K)


def fold(K: int, M: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of the independent overlaps in the vector of all, and of all in the vector of the independent ones."""
    upper = np.triu_indices(K)
    place = np.zeros((K, K), dtype=int)
    place[upper] = np.arange(len(upper[0]))
    R, (row, column) = np.arange(K * M), upper
    return join(R, K * M + K * row + column), join(R, K * M + np.maximum(place, place.T))


@functools.partial(jax.jit, static_argnames="all_move", compiler_options=QUICK)
def _kernel(n: Numbers, t: Array, y: Array, known: Array, span: Array, pace: Array, all_move: bool) -> Array:
    r"""The flow at stages of a step, `[7, size of y + 1]`, with the error in the last column.

    `span` is the first stage to compute, the one after the last, and the length of the step; `known` are the stages
    before; `pace` is 1 for $\dot y$, 0 for $dy/d(\eta\alpha)$.
    """
    rows = jnp.asarray(flow.ROWS)

    def stage(s: Array, known: Array) -> Array:
        R, Q = split(y + span[2] * (rows[s, :7] @ known[:, :-1]), *n.g.shape)
        rate = jnp.asarray(rate_at(n.rate, t + rows[s, 7] * span[2]), float)
        learned, lost = (
            jnp.concatenate([dR.ravel(), dQ.ravel()])
            for dR, dQ in (drift(n, rate, R, Q, all_move=all_move), forget(n, R, Q))
        )
        moved = jnp.where(pace > 0, rate * learned + lost, learned + _per(rate) * lost)
        return known.at[s].set(jnp.append(moved, error_of(n, R, Q)))

    return jax.lax.fori_loop(span[0].astype(int), span[1].astype(int), stage, known)


def _per(rate: Array) -> Array:
    r"""What a unit of $\alpha$ is in units of $\eta\alpha$; 0 where the rate is."""
    return jnp.where(rate > 0, 1 / jnp.where(rate > 0, rate, 1.0), 0.0)


class Flow:
    r"""The flow of a law and a rule on the host: one compiled program for all worlds of one shape.

    With `to_rest` time is $\eta\alpha$ at a constant rate, which may be 0, and the overlaps are the independent ones.
    """

    def __init__(self, n: Numbers, all_move: bool, *, to_rest: bool = False):
        self._n, self._all_move, self._pace = jax.device_put(n), all_move, float(not to_rest)
        self._few, self._all = fold(*n.g.shape) if to_rest else (slice(None), slice(None))

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        """The derivative of the overlaps by time."""
        return self._read(t, y)[0, :-1][self._few]

    def error(self, y: np.ndarray) -> float:
        """The error."""
        return float(self._read(0.0, y)[0, -1])

    def stages(self, t: float, y: np.ndarray, f: np.ndarray, h: float) -> np.ndarray:
        """The field at the stages of a step."""
        return self._read(t, y, f[self._all], (1.0, 7.0, h))[:, :-1][:, self._few]

    def _read(self, t: float, y: np.ndarray, f: Any = 0.0, span: tuple[float, ...] = (0.0, 1.0, 0.0)) -> np.ndarray:
        y = y[self._all]
        known = np.zeros((7, y.size + 1))
        known[0, :-1] = f
        return np.asarray(_kernel(self._n, t, y, known, np.array(span), self._pace, self._all_move))


@functools.partial(jax.jit, static_argnames="all_move", compiler_options=QUICK)
def linear(n: Numbers, y: Array, all_move: bool = False) -> tuple[Array, Array]:
    r"""$dy/d(\eta\alpha)$ and its Jacobian for the independent overlaps, at a constant rate."""
    few, every = fold(*n.g.shape)

    def force(y: Array) -> tuple[Array, Array]:
        at = split(y[every], *n.g.shape)
        (dR, dQ), lost = drift(n, n.rate, *at, all_move=all_move), forget(n, *at)
        dR, dQ = dR + _per(n.rate) * lost[0], dQ + _per(n.rate) * lost[1]
        f = jnp.concatenate([dR.ravel(), dQ.ravel()])[few]
        return f, f

    jacobian, f = jax.jacfwd(force, has_aux=True)(y)
    return f, jacobian


def follow(n: Numbers, begin: tuple[np.ndarray, np.ndarray], times: np.ndarray, all_move: bool) -> State:
    """The states at increasing times, on the host."""
    (K, M), unit = n.g.shape, np.sqrt(np.max(n.v))
    n, R, Q = in_units(n, *begin, unit)
    moving, steps = Flow(n, all_move), itertools.count(1)

    def rests(y: np.ndarray, _: np.ndarray) -> bool:
        if next(steps) % PATIENCE or all_move or isinstance(n.rate, Schedule):
            return False
        y = y[fold(K, M)[0]]
        force, jacobian = (np.asarray(x) for x in linear(n, y))
        away = np.linalg.lstsq(jacobian, force)[0]
        return bool(np.max(np.abs(away)) < AT_REST * np.max(np.abs(y))) and flow.is_attracted(away, jacobian)

    path = flow.follow(moving, join(R, Q), times, until=rests, stages=moving.stages, **STEPS[winners.way(K)])
    reached = path.outcome == Outcome.converged
    error = [moving.error(y) if there else np.nan for y, there in zip(path.states, reached, strict=True)]
    R, Q = split(path.states, K, M)
    return State(unit * R, unit**2 * Q, np.array(error), path.outcome)
