"""The front door of the learner: read the table, select, and answer in the units of the data."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
from scipy.special import expit

from quenched.core import checks
from quenched.core.types import InputError, Key, Outcome
from quenched.outliers.learner.classes import NARROWEST, Freedom, Rows, State, burden
from quenched.outliers.learner.search import Learned, learn
from quenched.outliers.learner.shapes import Shapes, measure_shapes
from quenched.outliers.model import Covariance, HardSelection, Hebb, Rule, Shrunk, SoftSelection, Spherical

SHARE = 0.3
"""The share of outliers at which EM begins when it is to be estimated."""
TURNS, SETTLED = 30, 1e-3
"""How often covariances are measured anew at most, and the change of how much rows count, in the mean, that ends it."""


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
        shapes: the units of the classes, if they have covariances; $\gamma$ and $\rho$ are in these units.
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
    shapes: Shapes | None = None

    @property
    def outlier_fraction(self) -> float:
        r"""The share of the outliers, $1/(1 + e^{-\eta})$."""
        return float(expit(self.eta))

    def lengths(self, X: np.ndarray) -> np.ndarray:
        """Squared distances of rows from the midpoint, in the units of the outliers `[n]`."""
        Z = X - self.midpoint
        return np.einsum("ni,ni->n", Z, Z) if self.shapes is None else self.shapes.lengths(Z)

    @property
    def volume(self) -> float:
        """The logarithm of the volume of the outliers' units."""
        return 0.0 if self.shapes is None else -float(np.linalg.slogdet(self.shapes.outliers)[1])

    @property
    def length(self) -> float:
        r"""The root mean square of the lengths of the centres about the midpoint, in their units; the paper's is 1."""
        c = self.centres - self.midpoint
        if self.shapes is not None:
            c = np.stack([self.shapes.into(one, k) for k, one in enumerate(c)])
        return float(np.sqrt(self.shares @ np.square(c).sum(axis=1)))

    def state(self, origin: np.ndarray) -> State:
        """The state of the learner about an origin, of classes without covariances."""
        scales = (np.array([one]) for one in (self.gamma, self.spread, self.eta))
        return State((self.centres - origin)[None], self.unknown[None].copy(), *scales)

    def log_ratios(self, X: np.ndarray) -> np.ndarray:
        """How much denser informative rows of each class are at `X` than outliers, as a logarithm `[n, K]`."""
        Z, c, g, shapes = X - self.midpoint, self.centres - self.midpoint, self.gamma, self.shapes
        if shapes is None:
            own, squares = 0.5 * g * (np.sum(c * c, axis=1) + self.unknown), self.lengths(X)
            return Z @ (g * c).T - own - burden(squares, squares, g, self.spread, Z.shape[1])[:, None]
        lengths, found = self.lengths(X), np.empty((len(Z), len(c)))
        for k, centre in enumerate(c):
            U, v = shapes.into(Z, k), shapes.into(centre, k)
            paid = burden(np.square(U).sum(axis=1), lengths, g, self.spread, Z.shape[1]) + shapes.volumes[k]
            found[:, k] = g * U @ v - 0.5 * g * (v @ v + self.unknown[k]) - paid
        return found

    def outlier_probability(self, X: np.ndarray, y: Any = None) -> np.ndarray:
        """The probability that rows `[n, N]` with labels `y` are outliers; without `y`, whatever their label."""
        h = self.log_ratios(X) - self.eta
        if y is None:
            return expit(-np.logaddexp.reduce(h + np.log(self.shares), axis=1))
        return expit(-h[np.arange(len(X)), np.searchsorted(self.classes, y)])


def _read(data: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows that have a weight, their weights, the classes, the class of each row, and which of the rows they are."""
    if not (isinstance(data, tuple) and len(data) == 2):
        raise InputError("Argument `data` must be (X, y), rows and their labels, but it is not a pair.")
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
    return X, omega, classes, codes, present


def _vector(name: str, given: Any, N: int) -> np.ndarray:
    """A number or a vector, as a vector `[N]`."""
    checks.finite(name, given)
    if np.shape(given) not in ((), (N,)):
        raise InputError(f"Argument `{name}` must be a number or {N} numbers, but its shape is {np.shape(given)}.")
    return np.broadcast_to(np.asarray(given, dtype=np.float64), N)


def _learn(
    rule: Rule, rows: Rows, start: np.ndarray | None, prior: float | None, spread: float | None, eta: float | None,
    last: State | None = None, **how: Any,
) -> Learned:  # fmt: skip
    """From a start `[K, N]`, or else from all rows: their means, the variance about those and, for outliers, of all.

    Hard selection then begins where soft selection ends. From the state `last` it just goes on.
    """
    N, gamma, variance, hebb = rows.Z.shape[1], rule.gamma, float(rows.variance[0]), isinstance(rule, Hebb)
    tau = 1 / variance if prior is None else N / prior**2
    free = Freedom(tau, gamma is None, spread is None and not hebb, eta is None and not hebb)
    if last is not None:
        return learn(rule, rows, last, free, **how)
    mass = np.add.reduceat(rows.omega, rows.ends[:-1])
    c = np.stack([rows.omega[t] @ rows.Z[t] for t in rows.classes]) / mass[:, None]
    length = float(mass @ (c * c).sum(1)) / rows.number
    v = max(variance - length / N, NARROWEST * variance) if gamma is None else 1 / float(gamma)
    rho = 1.0 if hebb else max(variance / v, 1.0) if spread is None else float(spread)
    odds = 0.0 if hebb else float(np.log(SHARE / (1 - SHARE))) if eta is None else float(eta)
    scales = (np.array([one]) for one in (1 / v, rho, odds))
    state = State((c if start is None else start)[None], np.zeros((1, len(c))), *scales)
    if not isinstance(rule, HardSelection) or start is not None:
        return learn(rule, rows, state, free, **how)
    soft = learn(SoftSelection(gamma), rows, state, free, **how)
    left = max(how["passes"] - int(soft.passes[0]), 1)
    done = learn(rule, rows, soft.state, free, accuracy=how["accuracy"], passes=left)
    return done._replace(passes=done.passes + soft.passes, outcome=np.maximum(done.outcome, soft.outcome))


def fit(
    rule: Rule, data: Any, *, key: Key | None = None, eta: float | None = None, spread: float | None = 1.0,
    midpoint: Any = None, prior: float | None = 1.0, start: Any = None, sample_weight: Any = None,
    accuracy: float = 1e-5, passes: int = 1000,
) -> Fitted:  # fmt: skip
    r"""Learn two classes that lie opposite to each other, as the student of the paper does.

    Rows of the two classes are Gaussian about $x_0 \pm c$, outliers about $x_0$. `measure` does this with each of its
    samples, with `rule.gamma` and `eta` given and `midpoint=0`.

    Args:
        rule: `SoftSelection()`, `HardSelection()` or `Hebb()`; its `gamma`, if None, is estimated.
        data: `(X, y)`, rows `[n, N]` and labels `[n]` of two classes; the second, sorted, is at $x_0 + c$.
        key: not used: nothing here is random.
        eta: $\eta$, the logarithm of the number of outliers for each informative row; None: estimated.
        spread: $\rho$, the variance of the outliers in units of $1/\gamma$; None: estimated.
        midpoint: $x_0$, a number or `[N]`; None: half-way between the means of the classes.
        prior: the length that $c$ is believed to have (root mean square of its Gaussian prior); the paper's is 1. None:
            that of the rows about $x_0$, which weighs less than one row.
        start: $c$ at the start `[N]`; None: the mean of all rows, from which hard selection goes on to where soft
            selection ends.
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
    return fit_classes(
        rule, data, eta=eta, spread=spread, prior=prior, sample_weight=sample_weight, accuracy=accuracy, passes=passes,
        opposite=True, midpoint=midpoint, start=start,
    )  # fmt: skip


def fit_classes(
    rule: Rule, data: Any, *, eta: float | None = None, spread: float | None = None, prior: float | None = None,
    sample_weight: Any = None, accuracy: float = 1e-5, passes: int = 1000, opposite: bool = False,
    midpoint: Any = None, start: Any = None, covariance: Covariance | None = None,
) -> Fitted:  # fmt: skip
    r"""Learn any number of classes, one centre in each; the outliers lie about the mean of all rows.

    Args:
        rule: as in `fit`, as are all arguments that are not named here.
        data: `(X, y)`, rows `[n, N]` and labels `[n]`.
        covariance: `Spherical()`, the default, or `Shrunk()`, for which covariances and selection are found in turn.
        prior: how far from the mean of all rows centres are believed to lie (root mean square of their Gaussian prior);
            None: as far as the rows do, which weighs less than one row. Means of the classes would tell too little:
            wrong labels draw them together.
        start: in place of a vector, a `Fitted` from whose centres, scales and selection to begin.
        opposite: the two classes lie opposite to each other about `midpoint`, as in `fit`.
    """
    checks.kind("rule", rule, (SoftSelection, HardSelection, Hebb), "SoftSelection(), HardSelection() or Hebb()")
    covariance = Spherical() if covariance is None else covariance
    checks.kind("covariance", covariance, (Spherical, Shrunk), "Spherical() or Shrunk()")
    if prior is not None:
        checks.positive("prior", checks.number("prior", prior))
    if eta is not None:
        checks.finite("eta", checks.number("eta", eta))
    if spread is not None and not checks.number("spread", spread) >= 1:
        raise InputError(f"Argument `spread` must be at least 1, but {spread} was given.")
    checks.positive("accuracy", checks.number("accuracy", accuracy))
    passes = checks.whole("passes", passes, least=1)
    X, omega, classes, codes, present = _read(data, sample_weight)
    mass, N, x0 = np.bincount(codes, omega), X.shape[1], omega @ X / omega.sum()
    order, first = np.argsort(codes, kind="stable"), start if isinstance(start, Fitted) else None
    begin = None if start is None or first is not None else _vector("start", start, N)[None]
    if opposite:
        if len(classes) != 2:
            raise InputError(f"Argument `data` must have two classes, but it has {len(classes)}.")
        means = [omega * (codes == k) @ X / mass[k] for k in (0, 1)]
        x0 = 0.5 * (means[0] + means[1]) if midpoint is None else _vector("midpoint", midpoint, N)
        rows = Rows((X - x0) * (2.0 * codes - 1)[:, None], omega, np.array([0, len(X)]))
        order = np.arange(len(X))
    else:
        rows = Rows(X[order] - x0, omega[order], np.concatenate([[0], np.cumsum(np.bincount(codes))]))
    how, shapes = {"accuracy": accuracy, "passes": passes}, None
    if isinstance(covariance, Shrunk):
        p = None if first is None else rows.omega * (1 - first.outlier_probability(X, classes[codes]))[order]
        done, shapes = _learn_shapes(covariance, rule, rows, prior, spread, eta, p, **how)
    else:
        done = _learn(rule, rows, begin, prior, spread, eta, last=None if first is None else first.state(x0), **how)
    state, c, selected = done.state, done.state.centres[0], np.zeros(len(present))
    c = c if shapes is None else shapes.back(c)
    selected[np.flatnonzero(present)[order]] = done.sums.p[0] / rows.omega
    return Fitted(
        classes=classes,
        shares=mass / mass.sum(),
        centres=x0 + np.concatenate([-c, c]) if opposite else x0 + c,
        midpoint=x0,
        gamma=float(state.gamma[0]),
        spread=float(state.spread[0]),
        eta=-np.inf if isinstance(rule, Hebb) else float(state.eta[0]),
        unknown=np.broadcast_to(state.unknown[0], len(classes)),
        selected=selected,
        energy=float(done.energy[0]) / N,
        passes=int(done.passes[0]),
        outcome=Outcome(int(done.outcome[0])),
        shapes=shapes,
    )


def _learn_shapes(
    covariance: Shrunk, rule: Rule, rows: Rows, prior: float | None, spread: float | None, eta: float | None,
    start: np.ndarray | None, *, accuracy: float, passes: int,
) -> tuple[Learned, Shapes]:  # fmt: skip
    """Covariances of what is selected and selection in their units, in turn, until how much rows count has settled.

    It begins with all rows, or with how much each counts in `start`.
    """
    p = rows.omega if start is None else start
    mass = np.maximum(np.add.reduceat(p, rows.ends[:-1]), 1e-300)
    centres = np.stack([p[t] @ rows.Z[t] for t in rows.classes]) / mass[:, None]
    last, spent = None, 0
    for turn in itertools.count(1):
        shapes = measure_shapes(covariance, rows, p, centres)
        there = _in_units(rows, shapes)
        placed = np.stack([shapes.into(c, k) for k, c in enumerate(centres)])
        last = None if last is None else last._replace(centres=placed[None])
        begin = None if start is None or last is not None else placed
        left = max(passes - spent, 1)
        done = _learn(rule, there, begin, prior, spread, eta, last=last, accuracy=accuracy, passes=left)
        spent += int(done.passes[0])
        change = float(np.abs(done.sums.p[0] - p).sum() / rows.number)
        p, last, centres = done.sums.p[0], done.state, shapes.back(done.state.centres[0])
        if change <= SETTLED or turn == TURNS or spent >= passes:
            stalled = change > SETTLED
            outcome = np.maximum(done.outcome, Outcome.stalled.value) if stalled else done.outcome
            return done._replace(passes=np.array([spent]), outcome=outcome), shapes
    raise AssertionError


def _in_units(rows: Rows, shapes: Shapes) -> Rows:
    """The table, each class in its units."""
    Z = np.concatenate([shapes.into(rows.Z[t], k) for k, t in enumerate(rows.classes)])
    volume = np.repeat(shapes.volumes, np.diff(rows.ends))
    return Rows(Z, rows.omega, rows.ends, outer=shapes.lengths(rows.Z), volume=volume)
