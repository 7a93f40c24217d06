"""The search: EM with stretched steps, and the descent by single rows.

In each world the E-step and the M-step of a model are repeated. Where a step has become small it is stretched, by the
factor of Barzilai and Borwein from the last two, and taken back for a plain one if the log-posterior would fall.
`learn` is what `fit` does with a table and `measure` with each sample.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import numpy as np

from quenched.core.types import Outcome
from quenched.outliers.learner.classes import Classes, Freedom, Rows, State, Sums
from quenched.outliers.model import Flips, HardSelection, Hebb, Rule, Search

NEAR = 0.03
"""A step, as a share of the centres, below which steps are stretched: so near, the basin is decided."""

ROUNDING = 1e-14
"""Differences of log-posteriors, relative to them, that are rounding errors."""

WORTH = 1e-12
"""What the change of a row must gain at least, relative to what it consists of."""


class Learned(NamedTuple):
    """Where the search ended in each world."""

    state: State
    sums: Sums
    energy: np.ndarray  # [W]
    passes: np.ndarray  # [W]
    outcome: np.ndarray  # [W] codes


def learn(
    rule: Rule, rows: Rows, state: State, free: Freedom, *, accuracy: float, passes: int, search: Search | None = None
) -> Learned:
    """Selection, centres and scales, from a state in each world; `search` is that of hard selection, or `Flips()`."""
    model = Classes(rows, free, rule)
    if isinstance(rule, Hebb):
        return _average(model, state)
    done = climb(model, state, accuracy=accuracy, passes=passes)
    if isinstance(rule, HardSelection) and isinstance(search, (Flips, type(None))):
        return _flip(model, done, accuracy=accuracy, passes=passes)
    return done


def _average(model: Classes, state: State) -> Learned:
    """Every row counts; the prior depends on the noise, and the noise on how far the prior moves the centres."""
    sums, worlds = model.expect(state), np.ones(len(state.eta), int)
    state = model.centre(sums, state)
    for _ in range(100 if model.free.gamma else 0):
        last, state = state, model.centre(sums, model.rescale(sums, state))
        if np.all(np.abs(state.gamma - last.gamma) <= 1e-12 * state.gamma):
            break
    length = (model.precision(sums, state) * (state.centres**2).sum(2)).sum(1)
    energy = state.eta * sums.mass.sum(1) - 0.5 * length  # that of soft selection as eta falls
    return Learned(state, sums, energy, worlds, worlds * Outcome.converged.value)


def _flip(model: Classes, done: Learned, *, accuracy: float, passes: int) -> Learned:
    """Single rows after EM, then EM again if there are scales, until neither finds anything to change."""
    while True:
        sums, flips = descend(model, done.sums, done.state)
        state = model.centre(sums, done.state)
        done = done._replace(state=state, sums=sums, energy=model.energy(sums, state))
        if not any(model.free[1:]) or not flips.any() or np.any(done.outcome != Outcome.converged):
            return done  # at fixed scales EM keeps what no flip improves
        again = climb(model, model.rescale(sums, state), accuracy=accuracy, passes=max(passes - done.passes.max(), 1))
        done = again._replace(passes=done.passes + again.passes)


class _Last(NamedTuple):
    """The last accepted point of each world, and the steps to it and from it."""

    vector: np.ndarray  # [W, M]
    step: np.ndarray  # [W, M] of plain EM from there
    level: np.ndarray  # [W]
    gain: np.ndarray  # [W]
    slow: np.ndarray  # [W] how much longer the steps could lately have been
    plain: np.ndarray  # [W] whether what is tried next is a step of EM, which needs no test


def climb(model: Classes, state: State, *, accuracy: float, passes: int, stretch: bool = True) -> Learned:
    r"""EM in each world until there is little left to gain; with `stretch`, if selection is soft, in stretched steps.

    A step $g$ of EM gains about $\tfrac12 \langle g, g \rangle$ in the metric of the model, and along a direction in
    which steps could be $\lambda$ times as long there is about $\lambda$ times that left to gain. It stops when this is
    below `accuracy`, in units of the logarithm of a row's probability.
    """
    little, stretch = accuracy * model.rows.number, stretch and not model.hard
    alive, places, ended = np.arange(len(state.eta)), [], []
    tried, one = model.vector(state), np.ones(len(alive))
    last = _Last(tried, np.zeros_like(tried), -np.inf * one, -np.inf * one, one, one > 0)
    for t in itertools.count(1):
        sums = model.expect(state)
        level, image, metric = model.level(sums, state), model.maximize(sums, state), model.metric(sums, state)
        step = model.vector(image) - tried
        gain, factor = 0.5 * (metric * step**2).sum(1), _factor(metric, tried - last.vector, last.step - step)
        fallen = ~last.plain & ~(level >= last.level - ROUNDING * np.abs(last.level))
        slow = np.maximum(factor, last.slow / 2)
        found = ~fallen & (gain <= last.gain) & (gain * slow <= little)
        done = found | ~(np.isfinite(gain) | fallen) | (t == passes)
        if done.any():
            if np.any(fallen & done):  # out of passes: back to the last accepted point
                state = model.state(np.where(fallen[:, None], last.vector, tried), state)
                sums = model.expect(state)
            stopped = np.where(np.isfinite(gain), Outcome.stalled, Outcome.failed)
            outcome = np.where(found, Outcome.converged, stopped)
            places.append(alive[done])
            ended.append(_take(done, Learned(state, sums, model.energy(sums, state), np.full(len(done), t), outcome)))
            if done.all():
                joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *ended)
                return _take(np.argsort(np.concatenate(places)), joined)
        near = gain < 0.5 * NEAR**2 * (metric * tried**2)[:, :-3].sum(1)
        factor = np.where(near & stretch, factor, 1.0)
        now = _Last(tried, step, level, gain, slow, factor == 1), tried + factor[:, None] * step
        if fallen.any():
            now = _choose(fallen, (last._replace(plain=fallen), last.vector + last.step), now)
        if done.any():
            alive, model, now, image = alive[~done], model.take(~done), _take(~done, now), _take(~done, image)
        last, tried = now
        state = model.state(tried, image)
    raise AssertionError


def _take(worlds: np.ndarray, values: Any) -> Any:
    """Some worlds of nested tuples of arrays."""
    return jax.tree.map(lambda leaf: leaf[worlds], values)


def _choose(first: np.ndarray, one: Any, other: Any) -> Any:
    """Arrays from `one` in the worlds marked, from `other` elsewhere."""
    return jax.tree.map(lambda a, b: np.where(first.reshape(-1, *[1] * (a.ndim - 1)), a, b), one, other)


def _factor(metric: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Barzilai and Borwein's factor from the last accepted step, at least that of plain EM."""
    my = metric * y
    bend, size = (my * s).sum(1), (my * y).sum(1)
    good = (bend > size) & (size > 0)
    return np.where(good, bend / np.where(good, size, 1.0), 1.0)


def descend(model: Classes, sums: Sums, state: State) -> tuple[Sums, np.ndarray]:
    r"""Change single rows of a hard selection, the best first, while that lowers its energy. [dietrich1998, eq. (10)]

    As a function of how many of some equal rows are selected the energy is concave, so what is worth while for one of
    them is for all: a row of weight $\omega$ changes as a whole if it would pay for one of $\omega$ equal rows. Returns
    the selection, in which no single row is left to change, and how many rows were changed in each world.
    """
    rows, p, total, flips = model.rows, sums.p.copy(), sums.total.copy(), np.zeros(len(sums.p), int)
    price, squares = model.price(state), np.broadcast_to(rows.squares, p.shape)
    for w, (k, t) in itertools.product(range(len(p)), enumerate(rows.classes)):
        Z = rows.table(w, t)
        given = (rows.omega[t], squares[w, t], price[w, t], p[w, t], state.gamma[w], model.free.tau)
        if changed := _descend(Z, *given):
            total[w, k], flips[w] = p[w, t] @ Z, flips[w] + changed
    return model.add_up(p, total, sums.gain, state), flips


def _descend(
    Z: np.ndarray, omega: np.ndarray, squares: np.ndarray, price: np.ndarray, p: np.ndarray, gamma: float, tau: float
) -> int:
    """Do it in one class, the best row first, changing `p` in place.

    Here n = a/gamma is the number of selected rows, the prior counted as rows, m = b/gamma their sum and u = m.z.
    """
    n, m = tau / gamma + float(p.sum()), p @ Z
    u = Z @ m
    for flips in itertools.count():
        t, mm = np.where(p > 0, -1.0, 1.0) * np.minimum(omega, 1.0), float(m @ m)
        pull = mm / n - (mm + 2 * t * u + t**2 * squares) / (n + t)
        change = 0.5 * gamma * pull + 0.5 * len(m) * np.log1p(t / n) + t * price
        change += WORTH * (1 + np.abs(price) + gamma * mm / n)
        i = int(np.argmin(change))
        if change[i] >= 0:
            return flips
        whole = -omega[i] if p[i] > 0 else omega[i]
        n, m, p[i], u = n + whole, m + whole * Z[i], max(whole, 0.0), u + whole * (Z @ Z[i])
    raise AssertionError
