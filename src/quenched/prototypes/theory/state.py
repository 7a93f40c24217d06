r"""The flow of the overlaps as $N \to \infty$, and the state it leads to.

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

from quenched.core import flow
from quenched.core.types import QUICK, Array, Outcome, Real, require_double
from quenched.prototypes.model import SCIENCE, Law, Numbers, Rule, Start, count, numbers, rate_at, start_of
from quenched.prototypes.theory import winners

BATCH = 1024
"""Times at which errors are computed side by side."""
STEPS: dict[str, dict[str, Any]] = {"closed": {}, "quadrature": {}, "sampled": {"rtol": 1e-4, "atol": 1e-5}}
"""Accuracy of a step, if not the usual one, by the way in which averages over an example are computed."""


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


def _averages(n: Numbers, R: Array, Q: Array, all_move: bool) -> tuple[winners.Averages, Array]:
    """Averages over one example, and the pair probability <Theta_S Theta_T>_k [K, K, M]."""
    K, M = n.g.shape
    if all_move:
        h, b = winners.project(n, R)
        every = winners.Averages(jnp.ones((K, M)), jnp.tile(h, (K, 1, 1)), jnp.tile(b, (K, 1, 1)))
        return every, jnp.ones((K, K, M))
    average = winners.average(n, R, Q)
    return average, jnp.eye(K)[:, :, None] * average.win[:, None, :]


def drift(n: Numbers, noise: Real, R: Array, Q: Array, *, all_move: bool) -> tuple[Array, Array]:
    r"""$(dR, dQ)/d(\eta\alpha)$ at given overlaps.

    Args:
        n: law and rule in numbers.
        noise: $\eta$, the factor of the noise; 0 in the small-rate limit.
        R: overlaps with the centres.
        Q: overlaps among prototypes.
        all_move: whether all prototypes move, rather than the winner.
    """
    (win, h, b), pair = _averages(n, R, Q, all_move)
    pg = n.p * n.g  # [K, M]
    dR = jnp.einsum("sk,smk->sm", pg, b) - jnp.sum(pg * win, axis=1)[:, None] * R
    half = jnp.einsum("sk,stk->st", pg, h) - jnp.sum(pg * win, axis=1)[:, None] * Q
    return dR, half + half.T + noise * jnp.einsum("k,sk,tk,stk->st", n.p * n.v, n.g, n.g, pair)


def in_units(n: Numbers, R: Any, Q: Any, unit: Real) -> tuple[Numbers, Any, Any]:
    """The same world and the same overlaps with lengths in another unit: nothing depends on it but rounding."""
    return n._replace(lam=n.lam / unit, v=n.v / unit**2), R / unit, Q / unit**2


def field(law: Law, rule: Rule, R: Array, Q: Array, alpha: Real = 0.0) -> tuple[Array, Array]:
    r"""$(\dot R, \dot Q)$ of a law and a rule at given overlaps (and time, if the rate depends on it)."""
    n = numbers(law, rule)
    return _move(n, alpha, R, Q, rule.all_move)


def _move(n: Numbers, t: Real, R: Array, Q: Array, all_move: bool) -> tuple[Array, Array]:
    r"""$(\dot R, \dot Q)$ at time $\alpha$."""
    rate = rate_at(n.rate, t)
    dR, dQ = drift(n, rate, R, Q, all_move=all_move)
    return rate * dR, rate * dQ


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
    SCIENCE.check_pair(law, rule)
    n, begin, times = numbers(law, rule), start_of(start).overlaps(*count(law, rule)), jnp.asarray(alpha, float)
    K = n.g.shape[0]
    steps: dict[str, Any] = STEPS[winners.way(K)] | {k: v for k, v in (("rtol", rtol), ("atol", atol)) if v is not None}

    def moving(t: Array, y: tuple[Array, Array], n: Numbers) -> tuple[Array, Array]:
        return _move(n, t, *y, rule.all_move)

    unit = jnp.sqrt(jnp.max(n.v))  # accuracy is meant relative to the width of the clusters
    n, R, Q = in_units(n, *begin, unit)
    path = flow.integrate(moving, (jnp.asarray(R), jnp.asarray(Q)), jnp.atleast_1d(times), n, **steps)
    R, Q = path.states
    # with four or five prototypes one at a time: side by side each would be computed in the hardest way
    one_by_one = K > 3 and winners.way(K) == "quadrature"
    error = jax.lax.map(lambda y: error_of(n, *y), (R, Q), batch_size=None if one_by_one else BATCH)
    every = State(unit * R, unit**2 * Q, error, path.outcome)
    return every if times.ndim else State(*(x[0] for x in every))


@functools.partial(jax.jit, static_argnames="all_move", compiler_options=QUICK)
def _kernel(n: Numbers, t: Array, y: Array, K: Array, span: Array, pace: Array, all_move: bool) -> Array:
    r"""The flow at stages of a step, `[7, size of y + 1]`, with the error in the last column.

    Args:
        n: law and rule in numbers.
        t: time at the beginning of the step.
        y: overlaps $(R, Q)$ there, one after the other.
        K: stages that are known.
        span: the first stage to compute and the one after the last, and the length of the step.
        pace: 1 for $\dot y$, 0 for $dy/d(\eta\alpha)$.
        all_move: whether all prototypes move, rather than the winner.
    """
    rows, (k, m) = jnp.asarray(flow.ROWS), n.g.shape

    def stage(s: Array, K: Array) -> Array:
        x = y + span[2] * (rows[s, :7] @ K[:, :-1])
        R, Q = x[: k * m].reshape(k, m), x[k * m :].reshape(k, k)
        rate = jnp.asarray(rate_at(n.rate, t + rows[s, 7] * span[2]), float)
        dR, dQ = drift(n, rate, R, Q, all_move=all_move)
        moved = jnp.where(pace > 0, rate, 1.0) * jnp.concatenate([dR.ravel(), dQ.ravel()])
        return K.at[s].set(jnp.append(moved, error_of(n, R, Q)))

    return jax.lax.fori_loop(span[0].astype(int), span[1].astype(int), stage, K)


class Flow:
    r"""The flow of a law and a rule on the host: one compiled program for all worlds of one shape.

    Overlaps are one vector, $R$ and then $Q$, row by row. Time is $\alpha$ or, without `pace`, $\eta\alpha$ at a
    constant rate, which may be 0.
    """

    def __init__(self, n: Numbers, all_move: bool, *, pace: bool = True):
        k, m = np.shape(n.g)
        self._n, self._all_move, self._pace = jax.device_put(n), all_move, float(pace)
        self._empty = np.zeros((7, k * m + k * k + 1))

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        """The derivative of the overlaps by time."""
        return self._read(t, y, self._empty, 0, 1, 0.0)[0, :-1]

    def error(self, y: np.ndarray) -> float:
        """The error."""
        return float(self._read(0.0, y, self._empty, 0, 1, 0.0)[0, -1])

    def stages(self, t: float, y: np.ndarray, f: np.ndarray, h: float) -> np.ndarray:
        """The field at the stages of a step."""
        known = self._empty.copy()
        known[0, :-1] = f
        return self._read(t, y, known, 1, 7, h)[:, :-1]

    def _read(self, t: float, y: np.ndarray, known: np.ndarray, first: int, last: int, h: float) -> np.ndarray:
        span = np.array([first, last, h], dtype=float)
        return np.asarray(_kernel(self._n, t, y, known, span, self._pace, self._all_move))


def follow(n: Numbers, begin: tuple[np.ndarray, np.ndarray], times: np.ndarray, all_move: bool) -> State:
    """The states at increasing times, on the host."""
    K, M = n.g.shape
    unit = np.sqrt(np.max(n.v))
    n, R, Q = in_units(n, *begin, unit)
    moving = Flow(n, all_move)
    path = flow.follow(
        moving, np.concatenate([np.ravel(R), np.ravel(Q)]), times, stages=moving.stages, **STEPS[winners.way(K)]
    )
    reached = path.outcome == Outcome.converged
    error = [moving.error(y) if there else np.nan for y, there in zip(path.states, reached, strict=True)]
    R, Q = path.states[:, : K * M].reshape(-1, K, M), path.states[:, K * M :].reshape(-1, K, K)
    return State(unit * R, unit**2 * Q, np.array(error), path.outcome)
