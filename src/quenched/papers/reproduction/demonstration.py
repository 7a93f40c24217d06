"""The two figures of `quenched demo` that belong to no paper: answers on data that come with scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable

import jax
import numpy as np
import xarray as xr

from quenched import io, processes
from quenched.core.figures import Figure
from quenched.estimators import FieldDensity
from quenched.processes.learner.evidence import default_rule
from quenched.processes.practice.trials import SHARP

TITLE = "On your own data"
REFERENCE = "scikit-learn's diabetes and iris data stand for a table of yours"
LEVEL = 0.9
REPEATS = 4
"""Choices of more training rows, at each size."""


def forecast() -> Figure:
    """How much data does a regression need?"""
    table = io.bundled("diabetes")
    assert table.targets is not None
    rows, ahead = 150, (75, 150, 225, 300, 375, 600)
    answer = processes.forecast(
        table.inputs[:rows], table.targets[:rows].astype(float), examples=np.asarray(ahead, float),
        key=jax.random.key(0), names=table.names,
    )  # fmt: skip
    answer = answer.assign_attrs(data=f"the first {rows} rows of scikit-learn's diabetes data", target="progression")
    truth = _train_on_unseen(
        table.inputs, table.targets.astype(float), rows, ahead, float(answer.attrs["target_scale"])
    )
    answer = answer.merge(truth, join="left")
    at = {m: answer.sel(examples=m) for m in ahead}
    said = "; ".join(
        f"{m} rows: {float(one.error):.2f}, 80% between {float(one.error_low):.2f} and {float(one.error_high):.2f}"
        + (f", in truth {float(one.unseen_error):.2f} ± {float(one.unseen_error_stderr):.2f}" if one.unseen_error > 0 else "")
        for m, one in at.items() if m > rows
    )  # fmt: skip
    caption = (f"`quenched forecast`: the error of a regression on {rows} rows, and with more rows than it was given "
               f"({said}), without training on any resampled table. {len(table.targets)} rows exist: the truth is the error "
               f"of the same regression trained on {rows} rows and some of those that the forecast did not see, on the "
               f"rest of them. Its bars are one standard error over {len(table.targets) - rows} rows.")  # fmt: skip
    return Figure("demo/forecast", "How much data do I need?", caption, (), {"forecast": answer})


def _train_on_unseen(X: np.ndarray, y: np.ndarray, rows: int, sizes: Iterable[int], scale: float) -> xr.Dataset:
    """The error of regressions trained on more rows than a forecast saw, on the rest of those that it did not see."""
    draw, errors, bars = np.random.default_rng(0), {}, {}
    for m in (m for m in sizes if rows <= m < len(y)):
        misses = np.full((REPEATS, len(y)), np.nan)
        for i in range(REPEATS if m > rows else 1):
            order = np.append(np.arange(rows), rows + draw.permutation(len(y) - rows))
            law = processes.Empirical(X[order[:m]], y[order[:m]])
            rule = processes.most_likely(law, default_rule(law), tolerance=SHARP)
            mean, _ = processes.fit(rule, law).predict(X[order[m:]])
            misses[i, order[m:]] = ((y[order[m:]] - mean) / scale) ** 2
        seen = np.nanmean(misses[:, np.isfinite(misses).any(axis=0)], axis=0)
        errors[m], bars[m] = float(seen.mean()), float(seen.std(ddof=1) / np.sqrt(len(seen)))
    columns = {"unseen_error": list(errors.values()), "unseen_error_stderr": list(bars.values())}
    return xr.Dataset({name: ("examples", values) for name, values in columns.items()}, {"examples": list(errors)})


def density() -> Figure:
    """What is the density of a column, and how sure is it?"""
    values = io.bundled("iris").inputs[:, 2]
    answer = FieldDensity().fit(values).describe(LEVEL).assign_attrs(column="petal length (cm)")
    caption = ("`quenched density`: the petal lengths of irises, smooth with a smoothness that the data choose by "
               f"evidence; the band holds {LEVEL:.0%} of the posterior probability at each place.")  # fmt: skip
    return Figure(
        "demo/density", "What is the density of this column, and how sure am I?", caption, (), {"density": answer}
    )


FIGURES = {"forecast": forecast, "density": density}
