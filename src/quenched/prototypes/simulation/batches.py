"""The experiment with rules that minimise an energy: the learner behind `fit` on the first rows of many sequences."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from quenched.core import checks
from quenched.core.ensemble import OnHost
from quenched.core.types import InputError, Key
from quenched.prototypes.learner import distances, fit
from quenched.prototypes.model import SCIENCE, Cost, Law, count, frame

if TYPE_CHECKING:
    import xarray as xr


def _one_run(key: Key, point: Any, *, rows: list[int], size: int, tests: int) -> dict[str, np.ndarray]:
    """Order parameters of what is learned from more and more rows of one sequence; NaN where a class has too few."""
    law, rule = point
    training, testing, starting = jax.random.split(key, 3)
    (X, y), (unseen, truth) = law.sample(training, rows[-1], size=size), law.sample(testing, tests, size=size)
    labels = np.asarray(rule.prototypes(law))
    B = np.zeros((len(law.mixture().labels), size))
    B[:, : len(B)] = np.asarray(frame(jnp.asarray(law.mixture().gram)))
    found: dict[str, list[np.ndarray]] = {"R": [], "Q": [], "error": []}
    for n in rows:
        known, needed = np.unique(y[:n], return_counts=True), np.unique(labels, return_counts=True)
        if known[0].tolist() == needed[0].tolist() and np.all(known[1] >= needed[1]):
            fitted = fit(rule, (X[:n], y[:n]), key=starting)
            order = np.argsort(np.argsort(labels, kind="stable"), kind="stable")  # prototypes as the law names them
            w, metric = fitted.prototypes[np.argsort(fitted.labels, kind="stable")][order], fitted.metric
            wrong = labels[np.argmin(distances(unseen, w, metric), axis=1)] != truth
            values = {"R": w @ B.T, "Q": w @ w.T, "error": np.mean(wrong)}
        else:
            K = len(labels)
            values = {"R": np.full((K, len(B)), np.nan), "Q": np.full((K, K), np.nan), "error": np.nan}
        for name, value in values.items():
            found[name].append(np.asarray(value))
    return {name: np.stack(each) for name, each in found.items()}


def measure(
    law: Law, rule: Cost, alpha: Any, size: int, runs: int, key: Key, start: Any, tests: int, options: dict[str, Any],
    sweep: dict[str, Any],
) -> xr.Dataset:  # fmt: skip
    """The learning curve of a rule that minimises an energy; see `quenched.prototypes.measure`."""
    if start is not None:
        raise InputError(f"Argument `start` must be None for {type(rule).__name__}, which starts at the class means, "
                         "but one was given.")  # fmt: skip
    question = SCIENCE.ask(law, rule, sweep, alpha=alpha, most=checks.MOST / size)
    if any(np.any(np.asarray(one.mixture().drift) > 0) for one in question.plan.laws):
        raise InputError(f"Argument `drift` must be zero for {type(rule).__name__}, whose rows all count alike, "
                         "but it is positive.")  # fmt: skip
    times = question.axes["alpha"]
    rows, (K, M) = [max(1, round(a * size)) for a in times], count(law, rule)
    T = len(times)
    outputs = {"R": (T, K, M), "Q": (T, K, K), "error": (T,)}
    run = functools.partial(_one_run, rows=rows, size=size, tests=checks.whole("tests", tests, least=1))
    return question.measure(
        (OnHost(run, outputs), question.plan.pairs),
        key=key,
        runs=runs,
        label="training",
        size=size,
        tests=tests,
        **options,
    )
