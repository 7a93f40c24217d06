r"""Where learning ends: the rest state that a start leads to, all of them in the small-rate limit, and yardsticks.

At finite rate the flow is followed to rest (`asymptote`); what LVQ2.1 tends to is known in closed form (`runaway`). As
$\eta \to 0$ with $\eta\alpha \to \infty$ all rest states of two prototypes in two clusters are listed
(`rest_states`): *axis* states, both prototypes on the line through the centres; and the *unspecialised* state,
prototypes that differ only in directions without signal. Stability comes from the eigenvalues of the flow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.special import ndtr

from quenched.core import checks, flow, verbs
from quenched.core.types import Array, InputError, Outcome, double
from quenched.prototypes.model import (
    SCIENCE,
    VQ,
    Law,
    Numbers,
    Rule,
    Schedule,
    Start,
    TwoClusters,
    count,
    numbers,
    start_of,
)
from quenched.prototypes.theory import dynamics, rest_states, runaway


def _pack(R: Array, Q: Array) -> tuple[Array, Array]:
    """Independent components: R, and the upper triangle of Q."""
    return R, Q[jnp.triu_indices(Q.shape[0])]


def _unpack(y: tuple[Array, Array]) -> tuple[Array, Array]:
    """The overlaps from their independent components."""
    R, upper = y
    K = R.shape[0]
    Q = jnp.zeros((K, K)).at[jnp.triu_indices(K)].set(upper)
    return R, Q + Q.T - jnp.diag(jnp.diagonal(Q))


def _finite_rate(t: Array, y: Any, n: Numbers) -> Any:
    r"""The flow in time $\eta\alpha$, so that it has the same pace at any rate."""
    return jax.tree.map(lambda d: d / n.rate, _pack(*dynamics.drift(n, n.rate, *_unpack(y), all_move=False)))


def _small_rate(t: Array, y: Any, n: Numbers) -> Any:
    return _pack(*dynamics.drift(n, 1.0, *_unpack(y), all_move=False, noise=False))


_settle_finite = jax.jit(lambda n, y: flow.settle(_finite_rate, y, n))
_settle_small = jax.jit(lambda n, y: flow.settle(_small_rate, y, n))
_error = jax.jit(dynamics.error_of)


@double
def asymptote(
    law: Law, rule: Rule, *, small_rate: bool = False, start: Start | None = None, **sweep: Any
) -> xr.Dataset:
    r"""What is learned from unlimited examples.

    Args:
        law: the world.
        rule: the student, with a constant rate.
        small_rate: False: the state in which the flow at the rule's rate comes to rest. True: all rest states for
            $\eta \to 0$, $\eta\alpha \to \infty$ (two prototypes in `TwoClusters`), or the one that is reached from
            `start`.
        start: where the prototypes begin; `NearOrigin()` by default. With `small_rate` it is only for other worlds
            and for `LVQ21`.
        **sweep: any field of the law or the rule; a sequence becomes a dimension of the result.

    Returns:
        `R`, `Q`, `error`, `outcome`, and `growth` (the largest real part of the flow's eigenvalues: negative is
        stable), for each unit of $\alpha$, or of $\eta\alpha$ with `small_rate`.

        With `small_rate` in `TwoClusters` a dimension `state` lists `axis` (on the line through the centres, the most
        stable one), `other` (VQ: labels swapped; LVQ1: a second one on the line), `unspecialised`, and then
        what else there is on the line, up to a million standard deviations away: `other_2`, ..., and `reversed`,
        `reversed_2`, ..., where each prototype lies on the side of the other class. One that does not exist has the
        outcome `absent`. Off the line, rules other than VQ, LVQ1 and LVQ+ may have more.

        Of `LVQ21` prototypes run away: the outcome is `diverged`, `error` is its limit all the same, `R` and `Q` are
        NaN where they have none, and `growth` is the rate at which the faster prototype leaves.
    """
    question = SCIENCE.ask(law, rule, sweep)
    start, small_rate = start_of(start), checks.flag("small_rate", small_rate)
    if isinstance(rule.rate, Schedule):
        raise InputError("Argument `rate` must be constant for an asymptote, but a schedule was given.")
    listed = small_rate and isinstance(law, TwoClusters) and len(rule.prototypes(law)) == 2 and not rule.all_move
    found: list[dict[str, Resting]] = []
    for one_law, one_rule in question.plan.pairs:
        reached = {} if listed else {"reached": _follow(one_law, one_rule, start, small_rate)}
        found.append(_all_small_rate(one_law, one_rule) if listed else reached)
    names = sorted({name for states in found for name in states}, key=_place)
    nothing = _absent(law, rule)
    values = {
        name: np.stack([np.stack([getattr(states.get(state, nothing), name) for state in names]) for states in found])
        for name in Resting._fields
    }
    result = question.answer(values, axes={"state": names}, small_rate=int(small_rate))
    return result if listed else result.isel(state=0, drop=True)


def _place(state: str) -> tuple[int, int]:
    """The place of a state in the list."""
    name, _, number = state.partition("_")
    first = ("reached", "axis", "other", "unspecialised", "reversed").index(name)
    return (first, 1) if not number else (3 if name == "other" else 4, int(number))


class Resting(NamedTuple):
    """One rest state in numbers."""

    R: np.ndarray
    Q: np.ndarray
    error: np.ndarray
    growth: np.ndarray
    outcome: np.ndarray


def _absent(law: Law, rule: Rule) -> Resting:
    """A state that does not exist."""
    K, M = count(law, rule)
    nan = np.asarray(np.nan)
    return Resting(np.full((K, M), np.nan), np.full((K, K), np.nan), nan, nan, np.asarray(int(Outcome.absent)))


def _follow(law: Law, rule: Rule, start: Start, small_rate: bool) -> Resting:
    """The rest state that a start leads to."""
    n, begin = numbers(law, rule), start.overlaps(*count(law, rule))
    pace = 1.0 if small_rate else float(rule.rate)
    if rule.all_move:
        R, Q = (np.asarray(x) for x in begin)
        end = runaway.end(jax.tree.map(np.asarray, n), R, Q, 0.0 if small_rate else pace)
        outcome = Outcome.converged if end.rests else Outcome.diverged
        return Resting(end.R, end.Q, np.asarray(end.error), np.asarray(pace * end.growth), np.asarray(int(outcome)))
    unit = float(max(np.max(n.lam), np.sqrt(np.max(n.v))))  # accuracy is meant relative to the size of the world
    n, R, Q = dynamics.in_units(n, *begin, unit)
    rest = (_settle_small if small_rate else _settle_finite)(n, _pack(R, Q))
    R, Q = _unpack(rest.state)
    error, growth = np.asarray(_error(n, R, Q)), np.asarray(pace * rest.growth)
    return Resting(unit * np.asarray(R), unit**2 * np.asarray(Q), error, growth, np.asarray(rest.outcome))


def _all_small_rate(law: TwoClusters, rule: Rule) -> dict[str, Resting]:
    """All rest states by their names."""
    forward, backward = [], []
    for state in rest_states.axis_states(law, rule):
        (backward if state.reversed else forward).append(state)
    if isinstance(rule, VQ):  # labels do not matter: the reversed state is the same with labels swapped
        forward, backward = [*forward, *backward], []
    named = dict(zip(("axis", "other"), forward, strict=False))
    named |= {f"other_{i}": state for i, state in enumerate(forward[2:], 2)}
    named |= {f"reversed_{i}" if i > 1 else "reversed": state for i, state in enumerate(backward, 1)}
    unspecialised = rest_states.unspecialised_state(law, rule)
    if unspecialised is not None:
        named["unspecialised"] = unspecialised
    absent, converged = _absent(law, rule), np.asarray(int(Outcome.converged))
    found: dict[str, Resting] = {name: absent for name in ("axis", "other", "unspecialised")}  # noqa: C420
    for name, s in named.items():
        found[name] = Resting(s.R, s.Q, np.asarray(s.error), np.asarray(s.growth), converged)
    return found


@double
def escape_rate(law: TwoClusters, rule: Rule) -> float:
    r"""How fast VQ leaves the unspecialised state: small differences grow as $e^{\kappa\alpha}$.

    For $v_\pm = 1$ it is $\kappa = \eta\,[2\varphi_0(1 + 2\lambda^2 p_+p_-)/\sqrt D - \tfrac12]$ with
    $\varphi_0 = 1/\sqrt{2\pi}$, per unit of $\alpha$; in general the largest eigenvalue of the flow there among
    perturbations that are odd under the exchange of the prototypes. Negative: VQ never specialises from a small
    perturbation.
    """
    if not isinstance(law, TwoClusters) or not isinstance(rule, VQ) or isinstance(rule.rate, Schedule):
        raise InputError("The escape rate must be asked for `TwoClusters` and `VQ` with a constant rate, "
                         f"but {type(law).__name__} and {type(rule).__name__} were given.")  # fmt: skip
    R, Q = rest_states.unspecialised_overlaps(law, float(rule.rate))
    n, sign = numbers(law, rule), np.array([1.0, -1.0])

    def odd(y: Array) -> Array:
        """Move the prototypes apart by y = (difference of R, difference of norms), return the drift of the same."""
        apart = jnp.asarray(R) + sign[:, None] * y[:2] / 2, jnp.asarray(Q) + jnp.diag(sign * y[2] / 2)
        dR, dQ = dynamics.drift(n, n.rate, *apart, all_move=False)
        return jnp.append(dR[0] - dR[1], dQ[0, 0] - dQ[1, 1])

    return float(np.max(np.linalg.eigvals(np.asarray(jax.jacfwd(odd)(jnp.zeros(3)))).real))


@double
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
        [0.2398, 0.1595]
    """
    checks.kind("law", law, TwoClusters, "a TwoClusters law")
    question = SCIENCE.ask(law, verbs.Bayes(), sweep)
    return question.answer(question.map(lambda law, _: {"error": _best_error(law), "outcome": Outcome.converged}))


def _best_error(law: TwoClusters) -> float:
    """The error of the best flat boundary."""
    p = np.array([float(law.prior), 1 - float(law.prior)])
    v = np.asarray(law.variances, float)
    m = np.array([1.0, -1.0]) * float(law.separation) / np.sqrt(2)
    # the densities p_s N(theta; m_s, v_s) are equal where this quadratic vanishes
    square = (1 / v[1] - 1 / v[0]) / 2
    linear = m[0] / v[0] - m[1] / v[1]
    constant = (m[1] ** 2 / v[1] - m[0] ** 2 / v[0]) / 2 + np.log(p[0] / p[1]) - np.log(v[0] / v[1]) / 2
    roots = np.roots([square, linear, constant]) if square else np.array([-constant / linear] if linear else [])
    theta = np.append(np.real(roots), [-np.inf, np.inf])  # any boundary will do: the best of these is taken
    sd = np.sqrt(v)
    errors = p[0] * ndtr((theta - m[0]) / sd[0]) + p[1] * ndtr((m[1] - theta) / sd[1])
    return float(np.min(errors))
