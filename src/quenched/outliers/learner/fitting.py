"""The front door of the learner: read the table, select, and answer in the units of the data."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, NamedTuple

import numpy as np

from quenched.core import checks
from quenched.core.types import InputError, Key, Outcome
from quenched.outliers.learner.selection import (
    NARROWEST,
    Climbed,
    Freedom,
    Rows,
    State,
    Sums,
    centred,
    climb,
    descend,
    energy,
    ratios,
    scaled,
)
from quenched.outliers.model import HardSelection, Hebb, Rule, SoftSelection

SHARE = 0.3
"""The share of outliers at which EM begins when it is to be estimated."""


def _sigmoid(h: Any) -> np.ndarray:
    """$1/(1 + e^{-h})$, also of infinite $h$."""
    return np.exp(-np.logaddexp(0.0, -h))


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    r"""Class centres, and which rows they rest on.

    Attributes:
        classes: the labels, sorted, `[K]`.
        shares: the share of the rows that has each label `[K]`.
        centres: in the units of the data `[K, N]`.
        midpoint: the centre of the outliers `[N]`.
        gamma: $\gamma$, the inverse variance of informative rows in each direction.
        spread: $\rho$, the variance of the outliers in units of $1/\gamma$.
        eta: $\eta$, the logarithm of the number of outliers for each informative row; minus infinity for `Hebb`.
        unknown: $s_k$, the posterior variance of each centre, all directions together, `[K]`; zero but for hard
            selection.
        selected: how much each training row counts `[n]`: the probability that it is informative, 0 or 1 for hard
            selection, 1 for `Hebb`; 0 for rows without weight.
        energy: $\mathcal H/N$ as it stands in the rule's docstring; for `Hebb` that of soft selection with $h$ in place
            of $\ln(1 + e^h)$ and $\eta = 0$. What depends on the data and the scales alone is left out.
        passes: how often the table was read.
        outcome: `converged`, or `stalled` when the passes ran out.
    """

    classes: np.ndarray
    shares: np.ndarray
    centres: np.ndarray
    midpoint: np.ndarray
    gamma: float
    spread: float
    eta: float
    unknown: np.ndarray
    selected: np.ndarray
    energy: float
    passes: int
    outcome: Outcome

    @property
    def outlier_fraction(self) -> float:
        r"""The share of the outliers, $1/(1 + e^{-\eta})$."""
        return float(_sigmoid(self.eta))

    def log_ratios(self, X: np.ndarray) -> np.ndarray:
        """How much denser informative rows of each class are at `X` than outliers, as a logarithm `[n, K]`."""
        Z = X - self.midpoint
        state = State(self.centres - self.midpoint, self.unknown, self.gamma, self.spread, self.eta)
        return ratios(Z, np.einsum("ni,ni->n", Z, Z), state)

    def informative(self, X: np.ndarray, y: Any = None) -> np.ndarray:
        """The probability that rows `[n, N]` with labels `y` are informative; without `y`, whatever their label."""
        h = self.log_ratios(X) - self.eta
        if y is None:
            return _sigmoid(np.logaddexp.reduce(h + np.log(self.shares), axis=1))
        return _sigmoid(h[np.arange(len(X)), np.searchsorted(self.classes, y)])


class _Table(NamedTuple):
    """Rows that have a weight, and where they stand among those given."""

    X: np.ndarray  # [n, N]
    omega: np.ndarray  # [n]
    classes: np.ndarray  # [K]
    codes: np.ndarray  # [n]
    present: np.ndarray  # [rows given]


def _read(data: Any, sample_weight: Any) -> _Table:
    """Check the data; drop rows of weight zero."""
    if not (isinstance(data, tuple) and len(data) == 2):
        raise InputError("Argument `data` must be (X, y), rows and their labels, but it is no pair.")
    X, omega = checks.table(data[0], sample_weight)
    y = np.asarray(data[1])
    if y.shape != X.shape[:1]:
        raise InputError(f"Argument `data` must have one label for each of the {len(X)} rows, "
                         f"but the shape of y is {y.shape}.")  # fmt: skip
    present = omega > 0
    if not present.all():
        X, y, omega = X[present], y[present], omega[present]
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"Argument `data` must have two classes or more, but it has one class, {classes[0]}.")
    few = (counts < 2) & (np.bincount(codes, omega) < 2)  # one row of weight 2 is two rows
    if np.any(few):
        raise InputError("Argument `data` must have two rows or more of each class, "
                         f"but class {classes[few][0]} has one.")  # fmt: skip
    if np.array_equal(X[0], X[-1]) and np.all(X == X[0]):
        raise InputError("Argument `data` must have features that vary, but all of them are constant.")
    return _Table(X, omega, classes, codes, present)


def _rows(Z: np.ndarray, omega: np.ndarray, counts: np.ndarray) -> Rows:
    """Rows about the centre of the outliers, the first `counts[0]` of the first class and so on."""
    return Rows(Z, omega, np.einsum("ni,ni->n", Z, Z), np.concatenate([[0], np.cumsum(counts)]))


class _Settings(NamedTuple):
    """How to learn."""

    rule: Rule
    prior: float | None
    spread: float | None
    eta: float | None
    accuracy: float
    passes: int


def _settings(rule: Any, prior: Any, spread: Any, eta: Any, accuracy: Any, passes: Any) -> _Settings:
    """Check them."""
    if not isinstance(rule, (SoftSelection, HardSelection, Hebb)):
        raise InputError(f"Argument `rule` must be SoftSelection(), HardSelection() or Hebb(), but {rule!r} was given.")
    if prior is not None:
        checks.positive("prior", checks.number("prior", prior))
    if eta is not None:
        checks.finite("eta", checks.number("eta", eta))
    if spread is not None:
        checks.finite("spread", checks.number("spread", spread))
        if spread < 1:
            raise InputError(f"Argument `spread` must be at least 1, but {spread} was given.")
    checks.positive("accuracy", checks.number("accuracy", accuracy))
    return _Settings(rule, prior, spread, eta, accuracy, checks.whole("passes", passes, least=1))


def _start(rows: Rows, how: _Settings) -> tuple[State, Sums, Freedom]:
    """All rows count: their means, the variance about those and, for the outliers, that of all rows."""
    N, gamma, ends = rows.Z.shape[1], how.rule.gamma, rows.ends
    mass = np.add.reduceat(rows.omega, ends[:-1])
    total = np.stack([rows.omega[a:b] @ rows.Z[a:b] for a, b in itertools.pairwise(ends)])
    c = total / mass[:, None]
    length = float(np.sum(mass * np.sum(c * c, axis=1)) / mass.sum())
    v = max(rows.variance - length / N, NARROWEST * rows.variance) if gamma is None else 1 / float(gamma)
    rho = max(rows.variance / v, 1.0) if how.spread is None else how.spread
    eta = float(np.log(SHARE / (1 - SHARE))) if how.eta is None else how.eta
    prior = N * rows.variance if how.prior is None else how.prior**2
    free = Freedom(N / prior, gamma=gamma is None, spread=how.spread is None, eta=how.eta is None)
    every = Sums(rows.omega, mass, total, float(rows.omega @ rows.squares), 0.0)
    return State(c, np.zeros(len(c)), 1 / v, rho, eta), every, free


def _learn(rows: Rows, how: _Settings) -> tuple[Climbed, float]:
    """Selection, centres and scales, and the energy."""
    state, sums, free = _start(rows, how)
    if isinstance(how.rule, Hebb):
        return _hebb(rows, state, sums, free._replace(spread=False, eta=False))
    done = climb(rows, state, free, accuracy=how.accuracy, passes=how.passes)
    if isinstance(how.rule, HardSelection):
        free = free._replace(hard=True)
        done = _harden(rows, done, free, how)
    return done, energy(rows, done.sums, done.state, free)


def _hebb(rows: Rows, state: State, sums: Sums, free: Freedom) -> tuple[Climbed, float]:
    """Every row counts; the prior depends on the noise, and the noise on how far the prior moves the centres."""
    state = centred(sums, state._replace(spread=1.0, eta=-np.inf), free)
    for _ in range(100 if free.gamma else 0):
        last, state = state, scaled(rows, sums, state, free)
        state = centred(sums, state, free)
        if abs(state.gamma - last.gamma) <= 1e-12 * state.gamma:
            break
    a = free.tau + state.gamma * sums.mass
    return Climbed(state, sums, 0.0, 1, True), -0.5 * float(a @ np.sum(state.centres**2, axis=1))


def _harden(rows: Rows, done: Climbed, free: Freedom, how: _Settings) -> Climbed:
    """Hard EM from the soft solution, then single rows, until neither finds anything to change."""
    while True:
        last, done = done, climb(rows, done.state, free, accuracy=how.accuracy, passes=max(how.passes - done.passes, 1))
        done = done._replace(passes=last.passes + done.passes, converged=last.converged and done.converged)
        sums, flips = descend(rows, done.sums, done.state, free)
        state = centred(sums, done.state, free)
        done = done._replace(sums=sums, state=state)
        if not flips or not done.converged:
            return done
        done = done._replace(state=scaled(rows, sums, state, free))


def _midpoint(table: _Table) -> np.ndarray:
    """Half-way between the means of two classes."""
    shares = np.stack([table.omega * (table.codes == k) for k in (0, 1)])
    return 0.5 * np.sum(shares @ table.X / shares.sum(axis=1, keepdims=True), axis=0)


def _given(midpoint: Any, N: int) -> np.ndarray:
    """A given midpoint `[N]`."""
    checks.finite("midpoint", midpoint)
    if np.shape(midpoint) not in ((), (N,)):
        raise InputError(f"Argument `midpoint` must be a number or {N} numbers, but its shape is {np.shape(midpoint)}.")
    return np.broadcast_to(np.asarray(midpoint, dtype=np.float64), N)


def _fitted(table: _Table, done: Climbed, H: float, centres: np.ndarray, midpoint: np.ndarray, order: Any) -> Fitted:
    """The answer in the units and the order of the data."""
    state, (K, N) = done.state, centres.shape
    counts, mine = np.zeros(len(table.present)), np.empty(len(table.X))
    mine[order] = done.sums.p
    counts[table.present] = mine / table.omega
    mass = np.bincount(table.codes, table.omega)
    return Fitted(
        classes=table.classes,
        shares=mass / mass.sum(),
        centres=centres,
        midpoint=midpoint,
        gamma=state.gamma,
        spread=state.spread,
        eta=state.eta,
        unknown=np.broadcast_to(state.unknown, K),
        selected=counts,
        energy=H / N,
        passes=done.passes,
        outcome=Outcome.converged if done.converged else Outcome.stalled,
    )


def fit(
    rule: Rule,
    data: Any,
    *,
    key: Key | None = None,
    eta: float | None = None,
    spread: float | None = 1.0,
    midpoint: Any = None,
    prior: float | None = 1.0,
    sample_weight: Any = None,
    accuracy: float = 1e-5,
    passes: int = 1000,
) -> Fitted:
    r"""Learn two classes that lie opposite to each other, as the student of the paper does.

    Rows of the two classes are Gaussian about $x_0 \pm c$, outliers about $x_0$.

    Args:
        rule: `SoftSelection()`, `HardSelection()` or `Hebb()`; its `gamma`, if None, is estimated.
        data: `(X, y)`, rows `[n, N]` and labels `[n]` of two classes; the second, sorted, is at $x_0 + c$.
        key: not used: nothing here is random.
        eta: $\eta$, the logarithm of the number of outliers for each informative row; None: estimated.
        spread: $\rho$, the variance of the outliers in units of $1/\gamma$; None: estimated.
        midpoint: $x_0$, a number or `[N]`; None: half-way between the means of the classes.
        prior: the length that $c$ is believed to have (root mean square of its Gaussian prior); the paper's is 1. None:
            that of the rows about $x_0$, which weighs less than one row.
        sample_weight: weight $\omega$ acts as $\omega$ equal rows.
        accuracy: what may be left to gain in the log-probability of a row when EM stops.
        passes: EM steps at most.

    Returns:
        Centres, noise, share of outliers, and how much each row counts.

    Raises:
        InputError: for data that cannot be learned from, in one sentence.

    Examples:
        >>> import jax
        >>> from quenched.outliers.learner import fit
        >>> from quenched.outliers.model import Contaminated, SoftSelection
        >>> X, y, V = Contaminated(gamma=10.0, eta=0.0).sample(jax.random.key(0), 500, size=50)
        >>> fitted = fit(SoftSelection(), (X, y))
        >>> bool(abs(fitted.gamma - 10) < 0.5), bool((fitted.selected[V] > 0.5).mean() > 0.9)
        (True, True)
    """
    how = _settings(rule, prior, spread, eta, accuracy, passes)
    table = _read(data, sample_weight)
    if len(table.classes) != 2:
        raise InputError(f"Argument `data` must have two classes, but it has {len(table.classes)}.")
    x0 = _midpoint(table) if midpoint is None else _given(midpoint, table.X.shape[1])
    Z = table.X - x0
    Z *= (2.0 * table.codes - 1)[:, None]
    done, H = _learn(_rows(Z, table.omega, np.array([len(Z)])), how)
    c = done.state.centres[0]
    return _fitted(table, done, H, np.stack([x0 - c, x0 + c]), x0, slice(None))


def fit_classes(
    rule: Rule,
    data: Any,
    *,
    eta: float | None = None,
    spread: float | None = None,
    prior: float | None = None,
    sample_weight: Any = None,
    accuracy: float = 1e-5,
    passes: int = 1000,
) -> Fitted:
    r"""Learn any number of classes, one centre in each.

    Informative rows of class $k$ are Gaussian about $c_k$ with variance $1/\gamma$ in each direction; outliers are so
    about the mean of all rows, whatever their label, with variance $\rho/\gamma$.

    Args:
        rule: `SoftSelection()`, `HardSelection()` or `Hebb()`; its `gamma`, if None, is estimated.
        data: `(X, y)`, rows `[n, N]` and labels `[n]`.
        eta: $\eta$, the logarithm of the number of outliers for each informative row; None: estimated.
        spread: $\rho \ge 1$; None: estimated.
        prior: how far from the mean of all rows centres are believed to lie (root mean square of their Gaussian prior);
            None: as far as the rows do, which weighs less than one row. Means of the classes would tell too little:
            wrong labels draw them together.
        sample_weight: weight $\omega$ acts as $\omega$ equal rows.
        accuracy: what may be left to gain in the log-probability of a row when EM stops.
        passes: EM steps at most.

    Returns:
        As `fit`.

    Raises:
        InputError: for data that cannot be learned from, in one sentence.
    """
    how = _settings(rule, prior, spread, eta, accuracy, passes)
    table = _read(data, sample_weight)
    x0 = table.omega @ table.X / table.omega.sum()
    order = np.argsort(table.codes, kind="stable")
    rows = _rows(table.X[order] - x0, table.omega[order], np.bincount(table.codes))
    done, H = _learn(rows, how)
    return _fitted(table, done, H, x0 + done.state.centres, x0, order)
