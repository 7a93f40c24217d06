r"""The procedure: prototypes trained on-line on a finite table of examples.

Setting: rows $x$ with labels $\sigma$ (or none) are presented one at a time, as given or shuffled, in some
passes. The winner, the nearest prototype, moves by $w_S \leftarrow w_S + \eta\, g(S, \sigma)\, (x - w_S)$.
The rule is the model's; only the step differs: on real data $\eta$ is the step itself, not divided by $N$.

Prototypes start inside their own class, spread by k-means++ and one step of Lloyd's. Where one runs away
(LVQ2.1 may) training stops and the outcome says so. Any number of classes and prototypes; Euclidean distance.
Not covered: learned metrics, missing values, and a stopping rule (all passes are made).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.types import InputError, Key, Outcome, double
from quenched.prototypes.learner.steps import World, nearest, pad, present
from quenched.prototypes.model import LVQ21, Rule, rate_at

RUNAWAY = 1e6  # prototypes this many times further out than the data have no use and no way back


class Trace(NamedTuple):
    """What happened in each pass. Rows are judged as they come, before they move anything."""

    rate: np.ndarray  # [passes] the step
    error: np.ndarray  # [passes] weighted share of rows whose winner had another label
    quantisation: np.ndarray  # [passes] weighted mean of the squared distance between row and winner
    wins: np.ndarray  # [passes, K] total weight of the rows that each prototype won


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """Trained prototypes.

    Attributes:
        prototypes: $w_S$, shape `[K, N]`, always finite.
        labels: the label of each, shape `[K]`; zeros for data without labels.
        passes: passes made so far, those of the start included: the time of a `Schedule`.
        trace: rate, errors and wins in each pass of this call.
        outcome: `converged` when every pass was made; `diverged` when a prototype ran away (it stands where
            it last had a finite place); `failed` when rate or strength of a step was not a number.
    """

    prototypes: np.ndarray
    labels: np.ndarray
    passes: int
    trace: Trace
    outcome: Outcome


class _Table(NamedTuple):
    """The data as the learner reads it: rows without weight are gone."""

    X: np.ndarray  # [n, N]
    classes: np.ndarray  # [C] distinct labels, sorted
    codes: np.ndarray  # [n] index of each row's class
    weights: np.ndarray  # [n] positive


def _seeds(X: np.ndarray, weights: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Spread `count` prototypes over rows: greedy k-means++, then each goes to the mean of the rows it wins."""
    trials = 2 + int(np.log(count))
    chosen = np.empty((count, X.shape[1]))
    squared, chance = np.full(len(X), np.inf), np.ones(len(X))  # at first every row counts by its weight alone
    for k in range(count):
        mass = np.cumsum(weights * chance)  # so that weights and repeated rows choose the same places
        picks = np.minimum(np.searchsorted(mass, rng.random(trials) * mass[-1], side="right"), len(X) - 1)
        options = [np.minimum(squared, ((X - X[pick]) ** 2).sum(axis=1)) for pick in picks]
        best = int(np.argmin([weights @ option for option in options]))
        chosen[k], squared = X[picks[best]], options[best]
        chance = squared if squared.any() else np.ones(len(X))
    index, _ = nearest(chosen, X)
    total = np.bincount(index, weights, count)
    sums = np.zeros_like(chosen)
    np.add.at(sums, index, weights[:, None] * X)
    return np.where(total[:, None] > 0, sums / np.maximum(total, np.finfo(float).tiny)[:, None], chosen)


def _labels(rule: Rule, classes: np.ndarray, prototypes_per_class: int | Mapping[int, int]) -> np.ndarray:
    """The label of each prototype, every class having one at least."""
    name, known, counts = "prototypes_per_class", classes.tolist(), prototypes_per_class
    if rule.labels is not None:
        if set(rule.labels) != set(known):
            raise InputError(f"Argument `rule` must have prototypes for the classes {known}, "
                             f"but its labels are {rule.labels}.")  # fmt: skip
        return np.asarray(rule.labels)
    counts = counts if isinstance(counts, Mapping) else dict.fromkeys(known, counts)
    if set(counts) != set(known):
        raise InputError(f"Argument `{name}` must name the classes {known}, but it names {list(counts)}.")
    return np.repeat(classes, [checks.whole(name, counts[c], least=1) for c in known])


def _spread(table: _Table, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Prototypes in their own class."""
    w = np.empty((len(labels), table.X.shape[1]))
    for code, label in enumerate(table.classes):
        mine, rows = labels == label, table.codes == code
        if mine.sum() > rows.sum():
            raise InputError(f"Argument `prototypes_per_class` must not exceed the rows of a class, but it is "
                             f"{mine.sum()} for class {label}, which has {rows.sum()}.")  # fmt: skip
        w[mine] = _seeds(table.X[rows], table.weights[rows], int(mine.sum()), rng)
    return w


def _begin(rule: Rule, table: _Table, prototypes_per_class, start: Fitted | np.ndarray | None, rng):
    """Prototypes, labels and passes made before the first example of this call."""
    if isinstance(start, Fitted):
        w, labels, passes = start.prototypes, start.labels, start.passes
        unknown = sorted(set(table.classes.tolist()) - set(labels.tolist()))
        if unknown:
            raise InputError(f"Argument `start` must have prototypes of all classes, but not of {unknown}.")
    else:
        labels, passes = _labels(rule, table.classes, prototypes_per_class), 0
        w = _spread(table, labels, rng) if start is None else checks.numbers("start", start)
    if w.shape != (len(labels), table.X.shape[1]):
        raise InputError(f"Argument `start` must have shape [{len(labels)}, {table.X.shape[1]}], "
                         f"but it has {list(w.shape)}.")  # fmt: skip
    if not np.all(np.abs(w) < checks.LARGEST):
        raise InputError(f"Argument `start` must be finite and below {checks.LARGEST:g} in size, but it is not.")
    return w, labels, passes


def _read(rule: Rule, data: Any, sample_weight: Any) -> _Table:
    """Check the data; drop rows of weight zero. Without labels, all are zero, if the rule does not look at them."""
    X, y = data if isinstance(data, tuple) and len(data) == 2 else (data, None)
    X, weights = checks.table(X, sample_weight)
    if y is None:
        S = np.arange(2)
        if rule.all_move or np.ptp(np.broadcast_to(rule.g(S[:, None], S[None, :]), (2, 2))) != 0:
            raise InputError(f"Argument `data` must be (X, y) for {type(rule).__name__}, but it has no y.")
    labels = np.zeros(len(X), dtype=int) if y is None else np.asarray(y)
    if labels.shape != (len(X),):
        raise InputError(f"Argument `data` must have one label for each of the {len(X)} rows, "
                         f"but the shape of y is {labels.shape}.")  # fmt: skip
    if labels.dtype.kind not in "iub":
        raise InputError(f"Argument `data` must have whole numbers as labels, but y holds {labels.dtype}.")
    kept = weights > 0
    classes, codes = np.unique(labels[kept].astype(int), return_inverse=True)
    return _Table(X[kept], classes, codes, weights[kept])


def _read_window(rule: Rule, window: float | None, labels: np.ndarray) -> float | None:
    """The window of LVQ2.1, where there is one."""
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


def _world(w: np.ndarray, labels: np.ndarray, table: _Table, rule: Rule, window: float | None) -> World:
    """The data and the rule in numbers, at rate 1."""
    g = rule.g(jnp.asarray(labels)[:, None], jnp.asarray(table.classes)[None, :])
    own = labels[:, None] == table.classes[None, :]
    gains = jnp.broadcast_to(jnp.asarray(g, dtype=float), own.shape)
    bound = w.shape[1] * (RUNAWAY * max(np.abs(table.X).max(), np.abs(w).max())) ** 2
    X, codes, weights = pad(table.X), pad(table.codes), pad(table.weights)
    return jax.tree.map(jnp.asarray, World(X, codes, weights, gains, own, window, bound))


def _train(w: np.ndarray, world: World, rates: np.ndarray, orders: Iterable[np.ndarray], all_move: bool):
    """Make the passes, up to the first that fails. Returns the prototypes, the trace and the outcome."""
    own, outcome, seen = np.asarray(world.own), Outcome.converged, []
    for rate, order in zip(rates, orders, strict=True):
        now = world._replace(gains=rate * world.gains)
        new, inside, wins, squared = present(w, now, pad(order), len(order), all_move=all_move)
        wins, total = np.asarray(wins), float(np.sum(wins))
        seen.append((rate, np.sum(wins[~own]) / total, float(squared) / total, wins.sum(axis=1)))
        finite = np.all(np.isfinite(new))
        w = np.asarray(new) if finite else w
        if not (inside and finite and np.all(np.isfinite(now.gains))):
            outcome = Outcome.diverged if np.all(np.isfinite(now.gains)) else Outcome.failed
            break
    return w, Trace(*(np.array(column) for column in zip(*seen, strict=True))), outcome


@double
def fit(
    rule: Rule,
    data: Any,
    *,
    key: Key,
    prototypes_per_class: int | Mapping[int, int] = 1,
    passes: int = 30,
    start: Fitted | np.ndarray | None = None,
    shuffle: bool = True,
    sample_weight: Any = None,
    window: float | None = None,
) -> Fitted:
    r"""Train prototypes on-line.

    $$w_S \leftarrow w_S + \eta\, g(S, \sigma)\, (x - w_S)$$

    for the nearest prototype $S$ (all of them, if `rule.all_move`), one row at a time.

    Args:
        rule: `LVQ1`, `LVQPlus`, `VQ`, `LVQ21` or your own. `rule.rate` is the step $\eta$ itself; a
            `Schedule` is read once a pass, at the number of passes already made (0, 1, 2, ...).
        data: `(X, y)`, rows `[n, N]` and whole-number labels `[n]`; or `X` for a rule that sees no labels.
        key: a JAX key, for the start and the order of presentation.
        prototypes_per_class: how many, or `{label: how many}`; without labels how many in all. `rule.labels`
            goes before it.
        passes: how often the whole table is presented.
        start: prototypes `[K, N]` to start from, or an earlier result to go on with, in its time too.
        shuffle: present the rows in a new random order in each pass, not as given.
        sample_weight: weight $\omega$ means $\omega$ presentations in succession; for an attracted winner that
            is $w \leftarrow x + (1-\eta)^\omega (w - x)$, whole number or not.
        window: for `LVQ21` with any number of prototypes, Kohonen's LVQ2.1: the nearest prototype of the
            row's class and the nearest of any other move if the ratio of their distances, smaller to
            larger, is at least $(1 - \mathrm{window})/(1 + \mathrm{window})$. Usual is 0.1 to 0.3; 1 is none.

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
    if not isinstance(rule, Rule):
        raise InputError(f"Argument `rule` must be a rule such as LVQ1(0.1), but {rule!r} was given.")
    passes = checks.whole("passes", passes, least=1)
    table = _read(rule, data, sample_weight)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(checks.key(key))).tolist())
    shuffle = checks.flag("shuffle", shuffle)
    w, labels, before = _begin(rule, table, prototypes_per_class, start, rng)
    window = _read_window(rule, window, labels)
    rates = np.asarray(jax.vmap(functools.partial(rate_at, rule.rate))(before + jnp.arange(float(passes))))
    rows = np.arange(len(table.X))
    orders = (rng.permutation(rows) if shuffle else rows for _ in rates)
    w, trace, outcome = _train(w, _world(w, labels, table, rule, window), rates, orders, rule.all_move)
    return Fitted(w, labels, before + len(trace.rate), trace, outcome)
