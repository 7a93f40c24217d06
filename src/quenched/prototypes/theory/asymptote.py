r"""Where learning ends: the rest state that a start leads to, all of them in the small-rate limit, and yardsticks.

At finite rate the flow is followed to rest (`asymptote`); what LVQ2.1 tends to is known in closed form (`runaway`). As
$\eta \to 0$ with $\eta\alpha \to \infty$ all rest states of two prototypes in two clusters are listed
(`rest_states`): *axis* states, both prototypes on the line through the centres; and the *unspecialised* state,
prototypes that differ only in directions without signal. Stability comes from the eigenvalues of the flow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from quenched.core import checks, flow
from quenched.core.types import InputError, Outcome, double
from quenched.prototypes.model import (
    SCIENCE,
    VQ,
    Law,
    Rule,
    Schedule,
    Start,
    TwoClusters,
    count,
    forgets,
    numbers,
    online,
    start_of,
)
from quenched.prototypes.theory import rest_states, runaway
from quenched.prototypes.theory.rest_states import RestState
from quenched.prototypes.theory.state import Flow, fold, in_units, join, linear, split

if TYPE_CHECKING:
    import xarray as xr


REPORTED = ("R", "Q", "error", "growth", "outcome")


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

        Of `LVQ21` without a window prototypes run away: the outcome is `diverged`, `error` is its limit all the same,
        `R` and `Q` are NaN where they have none, and `growth` is the rate at which the faster prototype leaves. With a
        window they part ever more slowly; the outcome is then mostly `stalled`.
    """
    question = SCIENCE.ask(law, online(rule), sweep)
    start, small_rate = start_of(start), checks.flag("small_rate", small_rate)
    if isinstance(rule.rate, Schedule):
        raise InputError("Argument `rate` must be constant for an asymptote, but a schedule was given.")
    if small_rate and any(forgets(*pair) for pair in question.plan.pairs):
        raise InputError("Argument `small_rate` must be False with a drift or a weight decay, but it is True: "
                         "what is learned at a vanishing rate is forgotten at once.")  # fmt: skip
    listed = small_rate and isinstance(law, TwoClusters) and len(rule.prototypes(law)) == 2 and not rule.all_move
    if not listed:
        states = question.map(lambda law, rule: _follow(law, rule, start, small_rate))
        return question.answer({name: states[name] for name in REPORTED}, small_rate=int(small_rate))
    found = [_list_states(*pair) for pair in question.plan.pairs]
    names = sorted({"axis", "other", "unspecialised"}.union(*found), key=_place)
    absent = RestState(np.full((2, 2), np.nan), np.full((2, 2), np.nan), np.nan, np.nan, Outcome.absent)
    values = {
        name: np.array([[getattr(states.get(state, absent), name) for state in names] for states in found])
        for name in REPORTED
    }
    return question.answer(values, axes={"state": names}, small_rate=int(small_rate))


def _place(state: str) -> tuple[int, int]:
    """The place of a state in the list."""
    name, _, number = state.partition("_")
    first = ("reached", "axis", "other", "unspecialised", "reversed").index(name)
    return (first, 1) if not number else (3 if name == "other" else 4, int(number))


def _follow(law: Law, rule: Rule, start: Start, small_rate: bool) -> RestState:
    """The rest state that a start leads to."""
    (K, M), n = count(law, rule), numbers(law, rule)
    R, Q = (np.asarray(x) for x in start.overlaps(K, M))
    pace, noise = (1.0, 0.0) if small_rate else (float(rule.rate), float(rule.rate))
    if rule.all_move and n.window is None and not forgets(law, rule):
        end = runaway.end(n, R, Q, noise)
        return end._replace(growth=pace * end.growth)
    unit = float(max(np.max(n.lam), np.sqrt(np.max(n.v))))  # accuracy is meant relative to the size of the world
    n, R, Q = in_units(n._replace(rate=np.asarray(noise)), R, Q, unit)
    moving, (few, every) = Flow(n, rule.all_move, to_rest=True), fold(K, M)
    rest = flow.settle(
        lambda y: moving(0.0, y), lambda y: jax.tree.map(np.asarray, linear(n, y, rule.all_move)), join(R, Q)[few],
        stages=moving.stages,
    )  # fmt: skip
    R, Q = split(rest.state[every], K, M)
    error = moving.error(rest.state) if np.all(np.isfinite(rest.state)) else np.nan
    return RestState(unit * R, unit**2 * Q, error, pace * rest.growth, rest.outcome)


def _list_states(law: TwoClusters, rule: Rule) -> dict[str, RestState]:
    """All rest states in the small-rate limit by their names."""
    every = rest_states.axis_states(law, rule)
    swapped = isinstance(rule, VQ)  # labels do not matter: the reversed state is the same with labels swapped
    forward = [state for state in every if swapped or not state.reversed]
    backward = [state for state in every if state.reversed and not swapped]
    named = dict(zip(["axis", "other", *(f"other_{i}" for i in range(2, len(forward)))], forward, strict=False))
    named |= {f"reversed_{i}" if i > 1 else "reversed": state for i, state in enumerate(backward, 1)}
    unspecialised = rest_states.unspecialised_state(law, rule)
    return named if unspecialised is None else named | {"unspecialised": unspecialised}


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
    if forgets(law, rule):
        raise InputError("The escape rate must be asked for without drift and weight decay, "
                         "but one of them is positive.")  # fmt: skip
    y = join(*rest_states.unspecialised_overlaps(law, float(rule.rate)))[fold(2, 2)[0]]
    _, jacobian = linear(numbers(law, rule), y)
    apart = np.zeros((7, 3))  # R_+ - R_- in both directions, and Q_++ - Q_--
    apart[[0, 1, 4], [0, 1, 2]], apart[[2, 3, 6], [0, 1, 2]] = 1.0, -1.0
    return float(rule.rate) * float(np.max(np.linalg.eigvals(apart.T @ np.asarray(jacobian) @ apart / 2).real))
