r"""Selection around any model: the E-step judges rows, the M-step fits the model to the rows that count.

A model is a function `fit(rows, weights)` that returns `predict(rows)`: log-probabilities of the classes `[n, K]`, or
values `[n]`. Rows are judged by

$$h = \ln \frac{P(\text{the row is informative} \mid \text{model})}{P(\text{it is an outlier})}, \qquad
w = \frac{1}{1 + e^{-h}} \ \text{(soft)} \quad \text{or} \quad [h > 0] \ \text{(hard)},$$

the E-step of the paper [dietrich1998, eqs. (24), (29)] with another likelihood. In one fold that holds all rows this
is EM for the energy $-\sum_\mu \ln(1 + e^{h_\mu})$ or $-\sum_\mu \max(h_\mu, 0)$ and the fit's own penalty, which
theory and simulation share. In several folds each row is judged by a model that was not fitted to it, so that a
flexible model cannot vouch for the rows it has learned by heart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from quenched.core.types import Outcome
from quenched.outliers.learner.classes import weigh
from quenched.outliers.model import HardSelection, Rule

Predict = Callable[[np.ndarray], np.ndarray]
Fit = Callable[[np.ndarray, np.ndarray], Predict]
Fold = tuple[np.ndarray, np.ndarray]
"""Rows to fit to, and rows to judge."""


class Verdict(NamedTuple):
    """What the rows look like to a model."""

    h: np.ndarray  # [n] log-odds that a row is informative, as selection uses them
    outlier: np.ndarray  # [n] the probability that a row is an outlier
    share: float  # of outliers
    level: float  # mean log-likelihood of a row
    about: Any = None  # what else was estimated


Judge = Callable[[np.ndarray], Verdict]
"""From predictions to a verdict."""


class Selected(NamedTuple):
    """Where the iteration ended."""

    weights: np.ndarray  # [n]
    predicted: np.ndarray  # [n, ...] by the models of the last M-step, for rows they were not fitted to
    verdict: Verdict
    passes: int
    outcome: Outcome


def whole(n: int) -> list[Fold]:
    """One fold in which all rows are fitted and judged."""
    return [(np.arange(n), np.arange(n))]


def predict(fit: Fit, folds: Sequence[Fold], weights: np.ndarray) -> np.ndarray:
    """Each row predicted by the model of its fold."""
    found: Any = None
    for rows, judged in folds:
        kept = rows[weights[rows] > 0]
        part = fit(kept, weights[kept])(judged)
        found = np.empty((len(weights), *part.shape[1:])) if found is None else found
        found[judged] = part
    return found


def iterate(
    rule: Rule, fit: Fit, judge: Judge, folds: Sequence[Fold], omega: np.ndarray, *, start: np.ndarray | None = None,
    passes: int, accuracy: float = 1e-9, keep: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Selected:  # fmt: skip
    """E-steps and M-steps in turn, from all rows or from the weights `start`, until no weight changes by `accuracy`.

    Args:
        rule: `SoftSelection()`, `HardSelection()` or `Hebb()`.
        fit: the model.
        judge: the E-step.
        folds: who judges whom.
        omega: weights of the rows in the table; selection multiplies them.
        start: weights between 0 and 1 at the start.
        passes: M-steps at most.
        accuracy: change of a weight at which it stops.
        keep: what is made of new weights, such as some rows of each class kept.
    """
    last = w = np.ones(len(omega)) if start is None else start
    predicted: Any = None
    verdict: Any = None
    for t in range(1, passes + 1):
        predicted = predict(fit, folds, omega * w)
        verdict = judge(predicted)
        new, _ = weigh(rule, verdict.h)
        new = new if keep is None else keep(new)
        if np.max(np.abs(new - w)) <= accuracy:
            return Selected(w, predicted, verdict, t, Outcome.converged)
        last, w = w, new
    return Selected(last, predicted, verdict, passes, Outcome.stalled)


def threshold(rule: Rule, f: Any, K: int) -> Any:
    r"""The probability $\tau$ of the given label at which a row counts half: $h = \ln p - \ln \tau$.

    An outlier's label is wrong with probability $f$, any of the others alike. To a soft E-step that is a coin toss
    with probability $g = fK/(K-1)$, $\tau = (g/K)/(1 - g)$; a hard one drops rows that are more probably wrong than
    right, $\tau = f/((K-1)(1-f) + f)$.
    """
    if isinstance(rule, HardSelection):
        return f / ((K - 1) * (1 - f) + f)
    g = np.minimum(f * K / (K - 1), 1 - 1e-9)
    return g / K / (1 - g)
