r"""The procedure: prototypes trained on a finite table of examples.

Setting: rows $x$ with labels $\sigma$ (or none). To a rule that learns from one example at a time they are presented
as given or shuffled, in some passes: the winner, the nearest prototype, moves by
$w_S \leftarrow w_S + \eta\, g(S, \sigma)\, (x - w_S)$. The rule is the model's; only the step differs: on real
data $\eta$ is the step itself, not divided by $N$. A rule that is an energy of all rows is minimised (`descent`).

Prototypes start inside their own class, spread by k-means++ and one step of Lloyd's. Where one runs away
(LVQ2.1 may) training stops and the outcome says so. Any number of classes and prototypes.
Not covered: missing values, and a stopping rule for training on-line (all passes are made).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import InputError, Key, Outcome, double
from quenched.prototypes.learner.descent import Descent, Rows, descend, first_metric
from quenched.prototypes.learner.steps import World, pad, present
from quenched.prototypes.learner.table import Table, begin, read
from quenched.prototypes.model import LVQ21, Cost, Rule, rate_at, window_of

PASSES = 30
"""How often the whole table is presented by default; an energy says itself how often it is summed."""
RUNAWAY = 1e6  # prototypes this many times further out than the data have no use and no way back


class Trace(NamedTuple):
    """What happened in each pass. Rows are judged as they come, before they move anything."""

    rate: np.ndarray  # [passes] the step
    error: np.ndarray  # [passes] weighted share of rows whose winner had another label
    quantisation: np.ndarray  # [passes] weighted mean of the squared distance between row and winner
    wins: np.ndarray  # [passes, K] total weight of the rows that each prototype won


class Course(NamedTuple):
    """How a learner is trained: arguments of `fit`."""

    prototypes_per_class: int | Mapping[int, int]
    passes: int
    shuffle: bool
    window: float | None


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    r"""Trained prototypes.

    Attributes:
        prototypes: $w_S$, shape `[K, N]`, always finite.
        labels: the label of each, shape `[K]`; zeros for data without labels.
        passes: passes made so far, those of the start included: the time of a `Schedule`.
        trace: rate, errors and wins in each pass of this call, or the energy after each step of a descent.
        outcome: `converged` when every pass was made, or the minimum of an energy was reached; `stalled` when the steps
            ran out before that; `diverged` when a prototype ran away (it stands where it last had a finite place);
            `failed` when rate or strength of a step was not a number.
        metric: $\Omega$, shape `[rank, N]`, if the rule learned one: distances are $|\Omega(x - w_S)|$.
    """

    prototypes: np.ndarray
    labels: np.ndarray
    passes: int
    trace: Trace | Descent
    outcome: Outcome
    metric: np.ndarray | None = None


def _read_window(rule: Rule, window: float | None, labels: np.ndarray) -> float | None:
    """The window of LVQ2.1, where there is one."""
    window = window_of(rule) if window is None else window
    if window is None:
        if isinstance(rule, LVQ21) and len(labels) != 2:
            raise InputError(f"Argument `window` must be given for LVQ21 with more than two prototypes, "
                             f"but it is None and there are {len(labels)}.")  # fmt: skip
        return None
    if not rule.all_move or len(np.unique(labels)) < 2:
        raise InputError("Argument `window` must be None unless the rule is LVQ21 with two classes or more, "
                         f"but it is {window} for {type(rule).__name__}.")  # fmt: skip
    if not 0 < checks.number("window", window) <= 1:
        raise InputError(f"Argument `window` must lie above 0 and not above 1, but {window} was given.")
    return float(window)


def _world(w: np.ndarray, labels: np.ndarray, table: Table, rule: Rule, window: float | None) -> World:
    """The data and the rule in numbers, at rate 1."""
    own = labels[:, None] == table.classes[None, :]
    gains = np.broadcast_to(np.asarray(rule.g(labels[:, None], table.classes[None, :]), dtype=float), own.shape)
    bound = w.shape[1] * (RUNAWAY * max(np.abs(table.X).max(), np.abs(w).max())) ** 2
    X, codes, weights = pad(table.X), pad(table.codes), pad(table.weights)
    decay = float(rule.weight_decay)
    if decay > 0 and np.any(table.weights != np.rint(table.weights)):
        raise InputError("Argument `sample_weight` must be whole numbers for a rule with weight decay, but it is not.")
    if decay >= 1:
        raise InputError(f"Argument `weight_decay` must be below 1 on a table, but it is {decay:g}.")
    world = World(X, codes, weights, gains, own, window, decay if decay > 0 else None, bound)
    return jax.tree.map(jnp.asarray, world)._replace(gains=gains)


def _train(w: np.ndarray, world: World, rates: np.ndarray, orders: Iterable[np.ndarray], all_move: bool):
    """Make the passes, up to the first that fails. Returns the prototypes, the trace and the outcome."""
    own, outcome, seen = np.asarray(world.own), Outcome.converged, []
    for rate, order in zip(rates, orders, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            now = world._replace(gains=rate * world.gains)
        full = np.append(order, np.zeros(len(world.X) - len(order), order.dtype))
        new, inside, wins, squared = present(w, now, full, len(order), all_move=all_move)
        wins, total = np.asarray(wins), float(np.sum(wins))
        seen.append((rate, np.sum(wins[~own]) / total, float(squared) / total, wins.sum(axis=1)))
        finite = np.all(np.isfinite(new))
        w = np.asarray(new) if finite else w
        if not (inside and finite and np.all(np.isfinite(now.gains))):
            outcome = Outcome.diverged if np.all(np.isfinite(now.gains)) else Outcome.failed
            break
    return w, Trace(*(np.array(column) for column in zip(*seen, strict=True))), outcome


def _minimise(rule: Cost, table: Table, w: np.ndarray, labels: np.ndarray, start: Any, steps: int) -> Fitted:
    """Follow the energy of all rows to a minimum."""
    total = float(table.weights.sum())
    own = table.classes[table.codes][:, None] == labels[None, :]
    rows = Rows(table.X, own, table.weights / total, total)
    metric = start.metric if isinstance(start, Fitted) else None
    found = descend(rule, rows, w, first_metric(rule, rows, w) if metric is None else metric, steps)
    before = start.passes if isinstance(start, Fitted) else 0
    made = max(len(found.trace.energy), 1)
    return Fitted(found.prototypes, labels, before + made, found.trace, found.outcome, found.metric)


def _present_all(
    rule: Rule, table: Table, rows: np.ndarray, rng: np.random.Generator, course: Course, begun: tuple[Any, ...]
) -> Fitted:
    """Present some rows of the table again and again."""
    w, labels, before = begun
    window = _read_window(rule, course.window, labels)
    rates = np.array([float(rate_at(rule.rate, float(t))) for t in range(before, before + course.passes)])
    orders = (rng.permutation(rows) if course.shuffle else rows for _ in rates)
    w, trace, outcome = _train(w, _world(w, labels, table, rule, window), rates, orders, rule.all_move)
    return Fitted(w, labels, before + len(trace.rate), trace, outcome)


def learn(
    rule: Rule | Cost, table: Table, rows: np.ndarray, rng: np.random.Generator, course: Course, start: Any = None
) -> Fitted:
    """Train on some rows of a table, by a program that serves them all."""
    chosen = table.take(rows)
    begun = begin(rule, chosen, course.prototypes_per_class, start, rng)
    if isinstance(rule, Rule):
        return _present_all(rule, table, rows, rng, course, begun)
    if course.window is not None:
        raise InputError(f"Argument `window` must be None for {type(rule).__name__}, but it is {course.window}.")
    return _minimise(rule, chosen, *begun[:2], start, course.passes)


def passes_of(rule: Rule | Cost, passes: int | None) -> int:
    """How often the whole table is used."""
    return checks.whole(
        "passes", (PASSES if isinstance(rule, Rule) else rule.steps) if passes is None else passes, least=1
    )


@double
def fit(
    rule: Rule | Cost,
    data: Any,
    *,
    key: Key,
    prototypes_per_class: int | Mapping[int, int] = 1,
    passes: int | None = None,
    start: Fitted | np.ndarray | None = None,
    shuffle: bool = True,
    sample_weight: Any = None,
    window: float | None = None,
) -> Fitted:
    r"""Train prototypes: on-line, or by minimising the energy of all rows.

    $$w_S \leftarrow w_S + \eta\, g(S, \sigma)\, (x - w_S)$$

    for the nearest prototype $S$ (all of them, if `rule.all_move`), one row at a time; or L-BFGS on the mean energy of
    the rows for a rule that is a `Cost`.

    Args:
        rule: `LVQ1`, `LVQPlus`, `VQ`, `LVQ21` or your own, where `rule.rate` is the step $\eta$ itself; a
            `Schedule` is read once a pass, at the number of passes already made (0, 1, 2, ...). Or `GLVQ`, `GMLVQ`,
            `RSLVQ` or your own `Cost`.
        data: `(X, y)`, rows `[n, N]` and whole-number labels `[n]`; or `X` for a rule that sees no labels.
        key: a JAX key, for the start and the order of presentation.
        prototypes_per_class: how many, or `{label: how many}`; without labels how many in all. `rule.labels`
            goes before it.
        passes: how often the whole table is presented, default 30; or steps of the descent, at most, by default as
            many as the rule says (100; 30 of `GMLVQ`).
        start: prototypes `[K, N]` to start from, or an earlier result to go on with, in its time too.
        shuffle: present the rows in a new random order in each pass, not as given.
        sample_weight: weight $\omega$ means $\omega$ presentations in succession; for an attracted winner that
            is $w \leftarrow x + (1-\eta)^\omega (w - x)$, whole number or not. In an energy it is the row's weight.
        window: for `LVQ21` with any number of prototypes, Kohonen's LVQ2.1: the nearest prototype of the
            row's class and the nearest of any other move if the ratio of their distances, smaller to
            larger, is at least $(1 - \mathrm{window})/(1 + \mathrm{window})$. Usual is 0.1 to 0.3; 1 is none. By
            default that of the rule, here not divided by $N$.

    Returns:
        The prototypes with their labels, the trace over passes and the outcome.

    Raises:
        InputError: for data that cannot be learned from, in one sentence.

    Examples:
        >>> import jax, numpy as np
        >>> from quenched.prototypes.learner import fit
        >>> from quenched.prototypes.model import LVQ1
        >>> X, y = np.array([[0.0], [1.0], [4.0], [5.0]]), np.array([1, 1, 2, 2])
        >>> fitted = fit(LVQ1(rate=0.1), (X, y), key=jax.random.key(0))
        >>> fitted.labels.tolist(), float(fitted.trace.error[-1])
        ([1, 2], 0.0)
    """
    checks.kind("rule", rule, (Rule, Cost), "a rule such as LVQ1(0.1)")
    passes = passes_of(rule, passes)
    table = read(rule, data, sample_weight)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(checks.key(key))).tolist())
    course = Course(prototypes_per_class, passes, checks.flag("shuffle", shuffle), window)
    return learn(rule, table, np.arange(len(table.X)), rng, course, start)
