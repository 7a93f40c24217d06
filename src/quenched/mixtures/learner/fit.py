"""The verb `fit`: read the table, anneal, keep the best, and return it in the units of the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.types import InputError, Key, Outcome
from quenched.mixtures.learner.annealing import Annealing
from quenched.mixtures.learner.em import Climbed, Gaussians, Rows, log_densities, pack, rows_of, unpack
from quenched.mixtures.learner.starts import widen
from quenched.mixtures.model import Annealed, Diagonal, Full, MaximumLikelihood, RandomStart, Spherical

STEP = 0.2
"""By which share the width falls at once, where no schedule is given: for tables of data that is fine enough."""
CONSTANT = 1e-12
"""A feature that varies by less than this share of its mean does not vary: that is rounding."""


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """A mixture of Gaussians.

    Attributes:
        centres: $c_k$, shape `[K, N]`.
        widths: variances, shape `[K]`; of each feature `[K, N]` for `Diagonal`; covariances `[K, N, N]` for `Full`.
        weights: $w_k$, shape `[K]`.
        log_likelihood: weighted mean over the rows.
        splits: the splitting sequence, a dataset (see `fit`).
        passes: EM steps made, those of the annealing included.
        outcome: `converged`; `stalled` when the passes ran out; or `failed` when a component describes one or two rows
            only, or no more than its covariance matrix has columns, in every start: then the likelihood says nothing.
    """

    centres: np.ndarray
    widths: np.ndarray
    weights: np.ndarray
    log_likelihood: float
    splits: xr.Dataset
    passes: int
    outcome: Outcome

    def covariances(self) -> np.ndarray:
        """The covariance matrix of each Gaussian `[K, N, N]`, of whatever kind."""
        if self.widths.ndim == 3:
            return self.widths
        return np.reshape(self.widths, (len(self.widths), -1))[:, :, None] * np.eye(self.centres.shape[1])

    def log_densities(self, X: np.ndarray) -> np.ndarray:
        r"""$\log w_k p_k(x)$ of rows `[n, K]`, in the units of the data."""
        widths = pack(self.widths) if self.widths.ndim == 3 else np.reshape(self.widths, (len(self.widths), -1))
        centre = self.weights @ self.centres  # near the data squares lose no digits
        unit = self._unit()
        scale = np.outer(unit, unit) if self.widths.ndim == 3 else unit
        g = Gaussians((self.centres - centre) / unit, widths / (pack(scale) if scale.ndim == 2 else 1.0), self.weights)
        rows = rows_of((X - centre) / unit, np.ones(len(X)), features=widths.shape[1])
        with np.errstate(divide="ignore"):
            return log_densities(rows, g).T - np.sum(np.log(unit))

    def _unit(self) -> np.ndarray:
        """Of covariance matrices the deviation of each feature, so that features of different sizes lose no digits."""
        if self.widths.ndim < 3:
            return np.ones(self.centres.shape[1])
        offset = self.centres - self.weights @ self.centres
        spread = np.einsum("kii->ki", self.widths) + offset**2
        return np.sqrt(np.maximum(self.weights @ spread, np.finfo(float).tiny))


def _read(data: Any, sample_weight: Any, rule: Any, components: int) -> Rows:
    """Rows that have a weight, about their mean; for `Diagonal` and `Full` in units of each feature's deviation."""
    X, omega = checks.table(data, sample_weight)
    present = omega > 0
    if present.sum() < components:
        raise InputError(f"Argument `data` must have at least as many rows as there are components, {components}, "
                         f"but it has {present.sum()}.")  # fmt: skip
    if not present.all():
        X, omega = X[present], omega[present]
    total, omega, relative = max(float(omega.sum()), len(X)), omega / omega.sum(), isinstance(rule, (Diagonal, Full))
    mean = omega @ X
    Z = X - mean
    deviation = np.sqrt(omega @ (Z * Z))
    constant = deviation <= CONSTANT * np.abs(mean)
    Z[:, constant] = 0.0
    unit = np.where(constant, 1.0, deviation) if relative else np.ones(len(mean))
    if not isinstance(rule, MaximumLikelihood):
        Z, omega = _merge(Z, omega)
    N = len(mean)
    features = N * (N + 1) // 2 if isinstance(rule, Full) else N if relative else 1
    return rows_of(Z / unit if relative else Z, omega, features=features, mean=mean, unit=unit, total=total)


def _merge(Z: np.ndarray, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Different rows in an order of their own, equal ones taken together: so a weight is the same as repetitions."""
    order = np.lexsort(Z.T)
    Z, omega = Z[order], omega[order]
    first = np.flatnonzero(np.append(True, np.any(Z[1:] != Z[:-1], axis=1)))
    return Z[first], np.add.reduceat(omega, first)


def _begin(start: Any, rows: Rows, rule: Any, K: int, rng: np.random.Generator) -> Annealed | Gaussians:
    """A schedule; or Gaussians in the units of the rows: random, given, or with the widths around given centres."""
    if isinstance(start, Annealed):
        return start
    N, features = rows.Z.shape[1], rows.squares.shape[1]
    if isinstance(start, RandomStart):
        v = rng.normal(size=(K, N))
        v = v - v.mean(axis=0) if K > 1 else v
        centres = float(start.scale) * v / np.linalg.norm(v, axis=1, keepdims=True)
    else:
        given = checks.numbers("start", start.centres if isinstance(start, Fitted) else start)
        if given.shape != (K, N) or not np.all(np.isfinite(given)):
            raise InputError(f"Argument `start` must be Annealed(), RandomStart() or finite centres of shape "
                             f"[{K}, {N}], but its shape is {given.shape}.")  # fmt: skip
        centres = (given - rows.mean) / rows.unit
    equal = Gaussians(centres, np.ones((K, 1)), np.full(K, 1 / K))
    if isinstance(rule, MaximumLikelihood):
        return equal
    scale: Any = np.outer(rows.unit, rows.unit) if isinstance(rule, Full) else rows.unit**2
    scale = scale if isinstance(rule, (Diagonal, Full)) else np.ones(())
    if isinstance(start, Fitted) and start.widths.shape == (K, *scale.shape):
        widths = start.widths / scale
        widths = pack(widths) if isinstance(rule, Full) else np.reshape(widths, (K, features))
        return Gaussians(centres, widths, equal.weights if rule.equal_weights else start.weights)
    lengths = rows_of(rows.Z, rows.omega, features=1)
    nearest = -2 * np.max(log_densities(lengths, equal) + np.log(K) + 0.5 * N * np.log(2 * np.pi), axis=0)
    width = max(float(rows.omega @ nearest) / N, float(rule.least))
    return widen(equal._replace(widths=np.full((K, 1), width)), features)


def _generator(key: Key | None) -> np.random.Generator:
    return np.random.default_rng([0] if key is None else np.asarray(jax.random.key_data(checks.key(key))).tolist())


def fit_path(
    rule: MaximumLikelihood, data: Any, widths: Iterable[float], *, key: Key, start: Annealed | RandomStart,
    accuracy: float, passes: int,
) -> list[Climbed]:  # fmt: skip
    """The two Gaussians, about the mean of the rows, that `fit` finds at falling widths: one annealing passes through
    all of them, or random starts begin anew at each. `passes` are EM steps at each width."""
    rows, rng, state, found = _read(data, None, rule, 2), _generator(key), None, []
    for width in widths:
        if state is None or isinstance(start, RandomStart):
            begin = _begin(start, rows, rule, 2, rng)
            state = Annealing(rows, rule, 2, begin, rng, accuracy=accuracy, most=passes)
        state.passes = 0
        found.append(state.finish(width))
    return found


def fit(
    rule: MaximumLikelihood | Spherical | Diagonal | Full, data: Any, *, key: Key | None = None, components: int = 2,
    start: Annealed | RandomStart | Fitted | np.ndarray | None = None, sample_weight: Any = None, n_init: int = 1,
    rivals: int = 40, moves: int = 3, accuracy: float = 1e-4, passes: int = 1000,
) -> Fitted:  # fmt: skip
    r"""Fit a mixture of Gaussians: by deterministic annealing, and from random starts if one of these is likelier.

    $$P(x) = \sum_k w_k\, \mathcal N(x;\, c_k, \Sigma_k)$$

    Args:
        rule: `Spherical()`, `Diagonal()` or `Full()`, whose widths are of maximum likelihood at the end of the
            annealing; or `MaximumLikelihood(width)`, the student of the paper: equal weights and one given width, at
            which it ends.
        data: rows `[n, N]`.
        key: a JAX key, for the noise; `jax.random.key(0)` by default.
        components: how many Gaussians.
        start: the schedule of the annealing, by default `Annealed(step=0.2)`; or where EM begins without annealing:
            `RandomStart()`, centres `[K, N]` or an earlier result.
        sample_weight: weight $\omega$ acts as $\omega$ equal rows.
        n_init: how often to begin, each time with other noise; the most likely result is kept.
        rivals: how many random starts compete with each annealing where widths are free. Most are given up after a few
            steps of EM.
        moves: how often, at most, the likeliest of these is tried with one Gaussian left out and another one in two
            halves; without `rivals` the annealed mixture is not. Gaussians that have closed in on a few rows, or have
            none, are always left out and others tried in halves, once at least.
        accuracy: what may be left to gain in the log-likelihood of a row when EM stops (ten times as much while the
            width falls), estimated from the last two gains as those of a geometric series. In many dimensions with few
            rows a much smaller one follows the noise of the sample: the likelihood still rises, the centres get worse.
        passes: EM steps at most.

    Returns:
        Centres, widths, weights, log-likelihood and `splits`: `width` at which each `split` happened, `p`, how likely
        isotropic noise (for `Diagonal` and `Full` independent columns) splits at as large a width, the `cluster`
        (a node of the tree; 0 is all rows) that split `into` two others, the `direction` (unit vector) from the second
        to the first; the `share` of the rows that each `node` has in the end, its parts taken together; and the `leaf`
        that each component is. Where a random start was likelier, its components stand for the leaves whose rows they
        share. Widths of `Diagonal` and `Full` are in units of the features' variances.

    Raises:
        InputError: for data from which no mixture can be learned, in one sentence.

    Examples:
        >>> import numpy as np
        >>> from quenched import mixtures
        >>> fitted = mixtures.fit(mixtures.Spherical(), np.array([[0.0], [1.0], [10.0], [11.0]]))
        >>> np.sort(fitted.centres[:, 0]).round(6).tolist(), float(fitted.splits.width[0])
        ([0.5, 10.5], 25.25)
    """
    checks.kind("rule", rule, (Spherical, Diagonal, Full, MaximumLikelihood),
                "Spherical(), Diagonal(), Full() or MaximumLikelihood(width)")  # fmt: skip
    components, tries = checks.whole("components", components, least=1), checks.whole("n_init", n_init, least=1)
    checks.positive("accuracy", checks.number("accuracy", accuracy))
    rivals, moves = checks.whole("rivals", rivals, least=0), checks.whole("moves", moves, least=0)
    passes, rows = checks.whole("passes", passes, least=1), _read(data, sample_weight, rule, components)
    width = float(rule.width) if isinstance(rule, MaximumLikelihood) else None
    if components == 1 and width is None and not np.any(rows.Z):  # several components fail when they split
        raise InputError("Argument `data` must hold different rows, or no width can be learned, but all are the same: "
                         f"n_samples={len(rows.Z)}.")  # fmt: skip
    start, rng, found = Annealed(step=STEP) if start is None else start, _generator(key), []
    for _ in range(tries if isinstance(start, (Annealed, RandomStart)) else 1):
        begin = _begin(start, rows, rule, components, rng)
        compete = {"rivals": rivals, "moves": moves} if isinstance(begin, Annealed) else {}
        state = Annealing(rows, rule, components, begin, rng, accuracy=accuracy, most=passes, **compete)
        found.append((state.finish(width), state))
    done, state = max(found, key=lambda one: (one[1].sound, one[0].log_likelihood))
    g = done.gaussians
    if isinstance(rule, Full):
        widths: Any = unpack(g.widths, len(rows.mean)) * np.outer(rows.unit, rows.unit)
    else:
        widths = g.widths * rows.unit**2 if isinstance(rule, Diagonal) else g.widths[:, 0]
    return Fitted(
        centres=rows.mean + g.centres * rows.unit,
        widths=widths,
        weights=g.weights,
        log_likelihood=float(done.log_likelihood) - float(np.sum(np.log(rows.unit))),
        splits=state.tabulate(g.weights),
        passes=state.passes,
        outcome=Outcome.stalled if not done.converged else Outcome.converged if state.sound else Outcome.failed,
    )
