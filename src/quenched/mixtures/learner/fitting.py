"""The front door of the learner: read the table, anneal, keep the best, and answer in the units of the data."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from quenched.core import checks
from quenched.core.types import InputError, Key, Outcome
from quenched.mixtures.learner.annealing import Annealing, Rule, Settings
from quenched.mixtures.learner.expectation import Gaussians, Rows, log_densities, rows_of
from quenched.mixtures.model import Diagonal, MaximumLikelihood

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
        return log_densities(rows_of(X - centre, np.ones(len(X)), diagonal=diagonal), g)


class Scale(NamedTuple):
    """How the rows were moved and stretched."""

    mean: np.ndarray  # [N]
    unit: np.ndarray  # [N]; ones unless `Diagonal`


def _mixture(rows: Rows, scale: Scale, how: Settings, rng: np.random.Generator, start: Gaussians | None) -> Fitted:
    """One annealing, or EM from a given start, in the units of the data."""
    state = Annealing(rows, how, rng)
    if start is None:
        state.descend()
    else:
        state.begin(start)
    done = state.finish()
    g = done.gaussians
    counts = [c.centres for c in state.clusters]
    g = Gaussians(*(np.repeat(leaf, counts, axis=0) for leaf in g._replace(weights=g.weights / counts)))
    diagonal = isinstance(how.rule, Diagonal)
    widths = g.widths * scale.unit**2 if diagonal else g.widths[:, 0]
    leaves = np.repeat([c.node for c in state.clusters], counts)
    splits = state.tree.table(g.weights, leaves, scale.unit, relative=diagonal)
    return Fitted(
        centres=scale.mean + g.centres * scale.unit,
        widths=widths,
        weights=g.weights,
        log_likelihood=done.log_likelihood - float(np.sum(np.log(scale.unit))),
        splits=splits,
        passes=state.passes,
        outcome=Outcome.converged if done.converged else Outcome.stalled,
    )


def _read(data: Any, sample_weight: Any, components: int) -> tuple[np.ndarray, np.ndarray]:
    """Check the data; drop rows of weight zero; make the weights add up to 1."""
    X, omega = checks.table(data, sample_weight)
    present = omega > 0
    if present.sum() < components:
        raise InputError(f"Argument `data` must have at least as many rows as there are components, {components}, "
                         f"but it has {present.sum()}.")  # fmt: skip
    return (X, omega / omega.sum()) if present.all() else (X[present], omega[present] / omega[present].sum())


def _scaled(X: np.ndarray, omega: np.ndarray, rule: Rule) -> tuple[Rows, Scale]:
    """Rows about their mean; for `Diagonal` in units of each feature's standard deviation."""
    mean = omega @ X
    Z = X - mean
    deviation = np.sqrt(omega @ (Z * Z))
    constant = deviation <= CONSTANT * np.abs(mean)
    Z[:, constant] = 0.0
    unit = np.where(constant, 1.0, deviation) if isinstance(rule, Diagonal) else np.ones(len(mean))
    Z = Z / unit if isinstance(rule, Diagonal) else Z
    return rows_of(Z, omega, diagonal=isinstance(rule, Diagonal)), Scale(mean, unit)


def _start(start: Fitted | np.ndarray, rows: Rows, scale: Scale, how: Settings) -> Gaussians:
    """Given Gaussians, or centres with the widths of the rows nearest to them, in the units of the rows."""
    K, N = how.components, rows.Z.shape[1]
    given = checks.numbers("start", start.centres if isinstance(start, Fitted) else start)
    if given.shape != (K, N) or not np.all(np.isfinite(given)):
        raise InputError(
            f"Argument `start` must be finite centres of shape [{K}, {N}], but its shape is {given.shape}."
        )
    centres = (given - scale.mean) / scale.unit
    features = rows.squares.shape[1]
    equal = Gaussians(centres, np.ones((K, features)), np.full(K, 1 / K))
    if isinstance(how.rule, MaximumLikelihood):
        return equal
    if isinstance(start, Fitted) and np.shape(start.widths) == ((K, N) if features > 1 else (K,)):
        widths = np.reshape(start.widths, (K, features)) / (scale.unit**2 if features > 1 else 1.0)
        weights = equal.weights if how.rule.equal_weights else start.weights
        return Gaussians(centres, widths, weights)
    nearest = -2 * np.max(log_densities(rows, equal) + np.log(K) + 0.5 * N * np.log(2 * np.pi), axis=1)
    width = max(float(rows.omega @ nearest) / N, float(how.rule.least))
    return equal._replace(widths=np.full((K, features), width))


def fit(
    rule: Rule,
    data: Any,
    *,
    components: int = 2,
    key: Key | None = None,
    start: Fitted | np.ndarray | None = None,
    sample_weight: Any = None,
    n_init: int = 1,
    step: float = 0.2,
    noise: float = 1e-3,
    accuracy: float = 1e-4,
    passes: int = 1000,
) -> Fitted:
    r"""Fit a mixture of Gaussians by deterministic annealing.

    $$P(x) = \sum_k w_k\, \mathcal N(x;\, c_k, \mathrm{diag}\, v_k)$$

    Args:
        rule: `Spherical()` or `Diagonal()`, whose widths are of maximum likelihood at the end of the annealing; or
            `MaximumLikelihood(width)`, the student of the paper: equal weights and one given width, at which it ends.
        data: rows `[n, N]`.
        components: how many Gaussians.
        key: a JAX key, for the noise; `jax.random.key(0)` by default.
        start: centres `[K, N]` or an earlier result from which EM goes on, without annealing.
        sample_weight: weight $\omega$ acts as $\omega$ equal rows.
        n_init: how often to anneal, each time with other noise; the most likely result is kept.
        step: the largest share by which the width falls at once.
        noise: length of a random vector that is added to the unit vector along which a cluster splits.
        accuracy: what may be left to gain in the log-likelihood of a row when EM stops (ten times as much while the
            width falls), as the last two gains continued as a geometric series tell. In many dimensions with few rows
            a much smaller one follows the noise of the sample: the likelihood still rises, the centres get worse.
        passes: EM steps at most.

    Returns:
        Centres, widths, weights, log-likelihood and `splits`: `width` at which each `split` happened, the `cluster`
        (a node of the tree; 0 is all rows) that split `into` two others, the `direction` (unit vector) from the second
        to the first; the `share` of the rows that each `node` has in the end, its parts taken together; and the `leaf`
        that each component is. Widths of `Diagonal` are in units of the features' variances.

    Raises:
        InputError: for data that cannot be learned from, in one sentence.

    Examples:
        >>> import numpy as np
        >>> from quenched.mixtures.learner import fit
        >>> from quenched.mixtures.model import Spherical
        >>> fitted = fit(Spherical(), np.array([[0.0], [1.0], [10.0], [11.0]]))
        >>> np.sort(fitted.centres[:, 0]).round(6).tolist(), float(fitted.splits.width[0])
        ([0.5, 10.5], 25.25)
    """
    if not isinstance(rule, Rule):
        raise InputError(f"Argument `rule` must be Spherical(), Diagonal() or MaximumLikelihood(width), but {rule!r} "
                         "was given.")  # fmt: skip
    components = checks.whole("components", components, least=1)
    checks.inside("step", checks.number("step", step), 0, 1)
    checks.not_negative("noise", checks.number("noise", noise))
    checks.positive("accuracy", checks.number("accuracy", accuracy))
    how = Settings(rule, components, step, noise, accuracy, checks.whole("passes", passes, least=1))
    X, omega = _read(data, sample_weight, components)
    rows, scale = _scaled(X, omega, rule)
    if (
        components == 1 and not isinstance(rule, MaximumLikelihood) and not np.any(rows.Z)
    ):  # more say so when they split
        raise InputError("Argument `data` must hold different rows, or no width can be learned, but all are the same: "
                         f"n_samples={len(X)}.")  # fmt: skip
    begin = None if start is None else _start(start, rows, scale, how)
    seed = [0] if key is None else np.asarray(jax.random.key_data(checks.key(key))).tolist()
    rng = np.random.default_rng(seed)
    tries = 1 if begin is not None else checks.whole("n_init", n_init, least=1)
    return max((_mixture(rows, scale, how, rng, begin) for _ in range(tries)), key=lambda one: one.log_likelihood)
