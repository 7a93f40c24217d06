"""Selection around a model as an experiment: the learner of the estimators on random samples, with a known share."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import log_expit

from quenched.core import checks
from quenched.core.ensemble import OnHost
from quenched.core.types import Key, Outcome
from quenched.outliers import model
from quenched.outliers.learner import Labels, Selected, Values, iterate, whole
from quenched.outliers.learner.around import Predict

PASSES, ACCURACY, TOLERANCE = 500, 1e-7, 1e-9
"""Of the iteration, and of scikit-learn's logistic regression."""
READINGS = ("R", "Q", "Delta", "Phi", "free_energy", "stalled")


def select_labels(
    rule: model.SelectedLogistic, X: np.ndarray, S: np.ndarray, *, start: np.ndarray | None = None
) -> tuple[np.ndarray, Selected, float]:
    """J from rows over the square root of N, what selection found, and the energy; from all rows or weights `start`."""
    codes, place, kept = (S > 0).astype(int), np.arange(len(S)), {}

    def fit(rows: np.ndarray, weights: np.ndarray) -> Predict:
        kept["J"] = J = _logistic(X[rows], S[rows], weights, float(rule.ridge))
        return lambda judged: log_expit(np.multiply.outer(X[judged] @ J, [-1.0, 1.0]))

    f = float(rule.outlier_fraction)
    selection = rule.selection if f > 0 else model.Hebb()
    judge = Labels(selection, codes, 2, np.ones(len(S)), f)
    found = iterate(
        selection, fit, judge.judge, whole(len(S)), np.ones(len(S)), start=start, passes=PASSES, accuracy=ACCURACY
    )
    h = -found.predicted[place, codes] if isinstance(selection, model.Hebb) else found.verdict.h
    return kept["J"], found, _energy(rule, selection, kept["J"], h)


def _logistic(X: np.ndarray, S: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
    """The most probable J; rows of one label only are turned round by half, which changes nothing."""
    from sklearn.linear_model import LogisticRegression

    rows = X * S[:, None]
    turned = np.where(np.arange(len(S)) % 2 == 0, 1.0, -1.0)
    if len(S) < 2:
        rows, turned, weights = np.vstack([rows, rows]), np.array([1.0, -1.0]), np.repeat(weights / 2, 2)
    learner = LogisticRegression(C=1 / ridge, fit_intercept=False, tol=TOLERANCE, max_iter=2000)
    return learner.fit(rows * turned[:, None], turned, sample_weight=weights).coef_[0]


def select_values(rule: model.SelectedSquares, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Selected, float]:
    """The same for targets."""
    from sklearn.linear_model import Ridge

    s, c, kept = float(rule.noise), float(rule.cut), {}

    def fit(rows: np.ndarray, weights: np.ndarray) -> Predict:
        learner = Ridge(alpha=float(rule.ridge) * s * s, fit_intercept=False)
        kept["J"] = J = learner.fit(X[rows], y[rows], sample_weight=weights).coef_
        return lambda judged: X[judged] @ J

    ones = np.ones(len(y))
    judge = Values(y, ones, known=(s, 0.5 * (c / s) ** 2))
    found = iterate(rule.selection, fit, judge.judge, whole(len(y)), ones, passes=PASSES, accuracy=ACCURACY)
    plain = isinstance(rule.selection, model.Hebb)
    h = 0.5 * ((y - found.predicted) / s) ** 2 if plain else found.verdict.h
    return kept["J"], found, _energy(rule, rule.selection, kept["J"], h)


def _energy(rule: Any, selection: model.Rule, J: np.ndarray, h: np.ndarray) -> float:
    """As it stands in the rule's docstring; without selection `h` is the loss."""
    ridge = 0.5 * float(rule.ridge) * float(J @ J)
    if isinstance(selection, model.Hebb):
        return ridge + float(h.sum())
    gain = np.maximum(h, 0) if isinstance(selection, model.HardSelection) else np.logaddexp(0, h)
    return ridge - float(gain.sum())


def run_once(key: Key, point: Any, *, P: int, size: int) -> dict[str, np.ndarray]:
    """Order parameters of one sample."""
    law, rule = point
    X, y, _ = law.sample(key, P, size=size)
    select: Any = select_labels if isinstance(rule, model.SelectedLogistic) else select_values
    J, found, energy = select(rule, X / np.sqrt(size), y)
    R, Q = J[0] / np.sqrt(size), float(J @ J) / size
    cosine = R / np.sqrt(Q) if Q > 0 else 0.0
    Phi = np.arccos(np.clip(cosine, -1, 1)) / np.pi
    stalled = float(found.outcome != Outcome.converged)
    values = (R, Q, Q - 2 * R + 1, Phi, energy / size, stalled)
    return {name: np.asarray(float(value)) for name, value in zip(READINGS, values, strict=True)}


def measure(
    law: model.ModelLaw, rule: model.ModelRule, *, alpha: Any, size: int, runs: int, key: Key, sweep: dict[str, Any],
    **how: Any,
) -> xr.Dataset:  # fmt: skip
    """The verb `measure` for selection around a model."""
    question = model.MODELS.ask(law, rule, sweep, alpha=alpha)
    work = []
    for one in question.axes["alpha"]:
        P = checks.examples(one, size, least=2)
        run = functools.partial(run_once, P=P, size=size)
        work.append((OnHost(run, dict.fromkeys(READINGS, ()), bytes=8 * P * (2 * size + 8)), question.plan.pairs))
    return question.measure(work, key=key, runs=runs, label="samples", size=size, **how)
