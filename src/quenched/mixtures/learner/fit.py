"""The verb `fit`: read the table, anneal, keep the best, and return it in the units of the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.types import InputError, Key, Outcome
from quenched.mixtures.learner.annealing import Annealing, Settings
from quenched.mixtures.learner.em import Climbed, Gaussians, Rows, log_densities, rows_of
from quenched.mixtures.model import Annealed, Diagonal, MaximumLikelihood, RandomStart, Spherical

STEP = 0.2
"""By which share the width falls at once, where no schedule is given: for tables of data that is fine enough."""
CONSTANT = 1e-12
"""A feature that varies by less than this share of its mean does not vary: that is rounding."""


@dataclasses.dataclass(frozen=True, eq=False)
class Fitted:
    """A mixture of Gaussians.

    Attributes:
        centres: $c_k$, shape `[K, N]`.
        widths: variances, shape `[K]`; of each feature `[K, N]` for `Diagonal`.
        weights: $w_k$, shape `[K]`.
        log_likelihood: weighted mean over the rows.
        splits: the splitting sequence, a dataset (see `fit`).
        passes: EM steps made, those of the annealing included.
        outcome: `converged`, or `stalled` when the passes ran out.
    """

    centres: np.ndarray
    widths: np.ndarray
    weights: np.ndarray
    log_likelihood: float
    splits: xr.Dataset
    passes: int
    outcome: Outcome

    def log_densities(self, X: np.ndarray) -> np.ndarray:
        r"""$\log w_k p_k(x)$ of rows `[n, K]`, in the units of the data."""
        diagonal = self.widths.ndim == 2
        centre = self.weights @ self.centres  # near the data squares lose no digits
        g = Gaussians(self.centres - centre, self.widths if diagonal else self.widths[:, None], self.weights)
        with np.errstate(divide="ignore"):
            return log_densities(rows_of(X - centre, np.ones(len(X)), diagonal=diagonal), g).T


class Scale(NamedTuple):
    """How the rows were moved and stretched."""

    mean: np.ndarray  # [N]
    unit: np.ndarray  # [N]; ones unless `Diagonal`


def _read(data: Any, sample_weight: Any, components: int) -> tuple[np.ndarray, np.ndarray]:
    """Check the data; drop rows of weight zero; make the weights add up to 1."""
    X, omega = checks.table(data, sample_weight)
    present = omega > 0
    if present.sum() < components:
        raise InputError(f"Argument `data` must have at least as many rows as there are components, {components}, "
                         f"but it has {present.sum()}.")  # fmt: skip
    return (X, omega / omega.sum()) if present.all() else (X[present], omega[present] / omega[present].sum())


def _scale(X: np.ndarray, omega: np.ndarray, rule: Any) -> tuple[Rows, Scale]:
    """Rows about their mean; for `Diagonal` in units of each feature's standard deviation."""
    mean = omega @ X
    Z = X - mean
    deviation = np.sqrt(omega @ (Z * Z))
    constant = deviation <= CONSTANT * np.abs(mean)
    Z[:, constant] = 0.0
    unit = np.where(constant, 1.0, deviation) if isinstance(rule, Diagonal) else np.ones(len(mean))
    Z = Z / unit if isinstance(rule, Diagonal) else Z
    return rows_of(Z, omega, diagonal=isinstance(rule, Diagonal)), Scale(mean, unit)


def _fitted(state: Annealing, done: Climbed, scale: Scale) -> Fitted:
    """The present Gaussians of an annealing in the units of the data."""
    g, diagonal = done.gaussians, isinstance(state.how.rule, Diagonal)
    counts = [c.centres for c in state.clusters]
    g = Gaussians(*(np.repeat(leaf, counts, axis=0) for leaf in g._replace(weights=g.weights / counts)))
    leaves = np.repeat([c.node for c in state.clusters], counts)
    return Fitted(
        centres=scale.mean + g.centres * scale.unit,
        widths=g.widths * scale.unit**2 if diagonal else g.widths[:, 0],
        weights=g.weights,
        log_likelihood=float(done.log_likelihood) - float(np.sum(np.log(scale.unit))),
        splits=state.tree.table(g.weights, leaves, scale.unit, relative=diagonal),
        passes=state.passes,
        outcome=Outcome.converged if done.converged else Outcome.stalled,
    )


def _begin(start: Any, rows: Rows, scale: Scale, how: Settings, rng: np.random.Generator) -> Annealed | Gaussians:
    """A schedule; or Gaussians in the units of the rows: random, given, or with the widths around given centres."""
    if isinstance(start, Annealed):
        return start
    K, N, features = how.components, rows.Z.shape[1], rows.squares.shape[1]
    if isinstance(start, RandomStart):
        v = rng.normal(size=(K, N))
        v = v - v.mean(axis=0) if K > 1 else v
        centres = float(start.scale) * v / np.linalg.norm(v, axis=1, keepdims=True)
    else:
        given = checks.numbers("start", start.centres if isinstance(start, Fitted) else start)
        if given.shape != (K, N) or not np.all(np.isfinite(given)):
            raise InputError(f"Argument `start` must be Annealed(), RandomStart() or finite centres of shape "
                             f"[{K}, {N}], but its shape is {given.shape}.")  # fmt: skip
        centres = (given - scale.mean) / scale.unit
    equal = Gaussians(centres, np.ones((K, features)), np.full(K, 1 / K))
    if isinstance(how.rule, MaximumLikelihood):
        return equal
    if isinstance(start, Fitted) and np.shape(start.widths) == ((K, N) if features > 1 else (K,)):
        widths = np.reshape(start.widths, (K, features)) / (scale.unit**2 if features > 1 else 1.0)
        return Gaussians(centres, widths, equal.weights if how.equal else start.weights)
    nearest = -2 * np.max(log_densities(rows, equal) + np.log(K) + 0.5 * N * np.log(2 * np.pi), axis=0)
    width = max(float(rows.omega @ nearest) / N, float(how.rule.least))
    return equal._replace(widths=np.full((K, features), width))


def fit_path(
    rule: MaximumLikelihood,
    data: Any,
    widths: Iterable[float],
    *,
    key: Key | None = None,
    start: Annealed | RandomStart | None = None,
    accuracy: float = 1e-4,
    passes: int = 1000,
) -> list[Fitted]:
    """The two Gaussians that `fit` finds with given widths, at several of them: one annealing passes through all.

    Args:
        rule: `MaximumLikelihood()`; its own width is not used.
        data: rows `[n, N]`.
        widths: falling.
        key: see `fit`.
        start: a schedule; or `RandomStart()`, anew at each width.
        accuracy: see `fit`.
        passes: EM steps at most, at each width.

    Returns:
        A mixture for each width.
    """
    rows, scale = _scale(*_read(data, None, 2), rule)
    return _fit(rows, scale, Settings(rule, 2, accuracy, passes), start, _generator(key), widths)


def _fit(
    rows: Rows, scale: Scale, how: Settings, start: Any, rng: np.random.Generator, widths: Iterable[float | None]
) -> list[Fitted]:
    """One annealing, or EM from a start, read at falling widths; None stands for the likeliest ones."""
    start, state, found = Annealed(step=STEP) if start is None else start, None, []
    for width in widths:
        if state is None or isinstance(start, RandomStart):
            state = Annealing(rows, how, _begin(start, rows, scale, how, rng), rng)
        state.passes = 0
        found.append(_fitted(state, state.finish(width), scale))
    return found


def _generator(key: Key | None) -> np.random.Generator:
    return np.random.default_rng([0] if key is None else np.asarray(jax.random.key_data(checks.key(key))).tolist())


def fit(
    rule: MaximumLikelihood | Spherical | Diagonal,
    data: Any,
    *,
    key: Key | None = None,
    components: int = 2,
    start: Annealed | RandomStart | Fitted | np.ndarray | None = None,
    sample_weight: Any = None,
    n_init: int = 1,
    accuracy: float = 1e-4,
    passes: int = 1000,
) -> Fitted:
    r"""Fit a mixture of Gaussians by deterministic annealing.

    $$P(x) = \sum_k w_k\, \mathcal N(x;\, c_k, \mathrm{diag}\, v_k)$$

    Args:
        rule: `Spherical()` or `Diagonal()`, whose widths are of maximum likelihood at the end of the annealing; or
            `MaximumLikelihood(width)`, the student of the paper: equal weights and one given width, at which it ends.
        data: rows `[n, N]`.
        key: a JAX key, for the noise; `jax.random.key(0)` by default.
        components: how many Gaussians.
        start: the schedule of the annealing, by default `Annealed(step=0.2)`; or where EM begins without annealing:
            `RandomStart()`, centres `[K, N]` or an earlier result.
        sample_weight: weight $\omega$ acts as $\omega$ equal rows.
        n_init: how often to begin, each time with other noise; the most likely result is kept.
        accuracy: what may be left to gain in the log-likelihood of a row when EM stops (ten times as much while the
            width falls), estimated from the last two gains as those of a geometric series. In many dimensions with few
            rows a much smaller one follows the noise of the sample: the likelihood still rises, the centres get worse.
        passes: EM steps at most.

    Returns:
        Centres, widths, weights, log-likelihood and `splits`: `width` at which each `split` happened, the `cluster`
        (a node of the tree; 0 is all rows) that split `into` two others, the `direction` (unit vector) from the second
        to the first; the `share` of the rows that each `node` has in the end, its parts taken together; and the `leaf`
        that each component is. Widths of `Diagonal` are in units of the features' variances.

    Raises:
        InputError: for data from which no mixture can be learned, in one sentence.

    Examples:
        >>> import numpy as np
        >>> from quenched import mixtures
        >>> fitted = mixtures.fit(mixtures.Spherical(), np.array([[0.0], [1.0], [10.0], [11.0]]))
        >>> np.sort(fitted.centres[:, 0]).round(6).tolist(), float(fitted.splits.width[0])
        ([0.5, 10.5], 25.25)
    """
    checks.kind("rule", rule, (Spherical, Diagonal, MaximumLikelihood),
                "Spherical(), Diagonal() or MaximumLikelihood(width)")  # fmt: skip
    components, tries = checks.whole("components", components, least=1), checks.whole("n_init", n_init, least=1)
    checks.positive("accuracy", checks.number("accuracy", accuracy))
    how = Settings(rule, components, accuracy, checks.whole("passes", passes, least=1))
    rows, scale = _scale(*_read(data, sample_weight, components), rule)
    given = isinstance(rule, MaximumLikelihood)
    if components == 1 and not given and not np.any(rows.Z):  # several components fail when they split
        raise InputError("Argument `data` must hold different rows, or no width can be learned, but all are the same: "
                         f"n_samples={len(rows.Z)}.")  # fmt: skip
    rng, widths = _generator(key), [float(rule.width) if given else None]
    random = start is None or isinstance(start, (Annealed, RandomStart))
    found = [_fit(rows, scale, how, start, rng, widths)[0] for _ in range(tries if random else 1)]
    return max(found, key=lambda one: one.log_likelihood)
