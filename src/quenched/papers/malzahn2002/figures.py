"""The figures of Malzahn and Opper, on Boston housing and Abalone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
import xarray as xr

from quenched import processes
from quenched.core.figures import Figure, Kind, Panel, Series
from quenched.core.proof import agreement
from quenched.papers.malzahn2002 import sets

COMPARED = ["posterior_variance", "error", "oob_error"]
ALLOWANCE = 0.015
"""Relative deviation granted to the cavity closure where it trusts itself."""
EXAMPLES = "training examples, m"
VARIANCE = "posterior variance"
ERROR = "squared error (share of the target's variance)"
BOSTON_PARTS = {"all 506 rows": slice(None), "first half": slice(0, 253), "second half": slice(253, 506)}
CLOSURES = {"the paper's closure": processes.Variational(), "cavity closure": processes.Cavity()}


def boston_law(part: slice = slice(None)) -> processes.Empirical:
    """Boston, or a half of it, in the units of the whole set."""
    table = sets.boston()
    y = np.asarray(table.targets)
    return processes.Empirical(table.inputs[part], y[part], float(y.mean()), float(y.std()))


def boston_rule(length: float = 147.1, power: float = 0.5) -> processes.GaussianProcess:
    r"""$K = \exp(-\sum_i (x_i - x'_i)^2/(\ell v_i))$, $v_i$ the variance of a raw column to a power, noise 0.01."""
    return _squared_exponential(length * sets.boston().inputs.var(axis=0) ** power, noise=0.01)


def abalone_law(rows: np.ndarray | None = None) -> processes.Empirical:
    """Abalone, or some rows of it, in the units of the whole set."""
    table = sets.abalone()
    y = np.asarray(table.targets, float)
    rows = np.arange(len(y)) if rows is None else rows
    return processes.Empirical(table.inputs[rows], y[rows], float(y.mean()), float(y.std()))


def abalone_rule() -> processes.GaussianProcess:
    """The same form with the variances themselves, squared length 10, noise 0.1."""
    return _squared_exponential(10 * sets.abalone().inputs.var(axis=0), noise=0.1)


def _squared_exponential(squared_lengths: np.ndarray, noise: float) -> processes.GaussianProcess:
    from tinygp import kernels, transforms

    return processes.GaussianProcess(transforms.Linear(np.sqrt(2 / squared_lengths), kernels.ExpSquared()), noise)  # pyright: ignore[reportArgumentType]


def figure_1(*, quick: bool = False, key: Any = None) -> Figure:
    """Boston: posterior variance and error over the number of examples, all rows and both halves."""
    key, rule = jax.random.key(1) if key is None else key, boston_rule()
    sizes = (
        np.array([50, 200, 506, 1200, 4000.0]) if quick else np.array([50, 100, 200, 400, 506, 800, 1600, 2400, 4000.0])
    )
    line = np.unique(np.append(np.geomspace(50, 4000, 9 if quick else 25).round(), sizes))
    data: dict[str, xr.Dataset] = {}
    for i, (part, rows) in enumerate(BOSTON_PARTS.items()):
        law = boston_law(rows)
        data[f"{part}, simulation"] = processes.measure(
            law, rule, examples=sizes, runs=12 if quick else 32, key=jax.random.fold_in(key, i),
            simulator=processes.LatinHypercube(draws=4 if quick else 16),
        )  # fmt: skip
        for name, closure in CLOSURES.items():
            data[f"{part}, {name}"] = processes.theory.curve(law, rule, examples=line, closure=closure)
    panels = tuple(
        Panel(EXAMPLES, label, _series(data, BOSTON_PARTS, name, variable), f"{name}", log="xy")
        for name in CLOSURES
        for variable, label in (("posterior_variance", VARIANCE), ("error", ERROR))
    )
    proof = {
        f"{part}, cavity closure, trusted sizes": agreement(
            data[f"{part}, cavity closure"], _trusted(data, part), variables=COMPARED, relative_allowance=ALLOWANCE
        )
        for part in BOSTON_PARTS
    }  # fmt: skip
    caption = ("Boston housing, squared-exponential kernel of the paper, σ² = 0.01. Lines: theory without training, in the upper "
               "row with the paper's closure, in the lower with the cavity closure, dashed where it does not trust itself. Points: Gaussian processes trained on samples "
               "with repeats and tested on all rows (mean over data sets, bars one standard error). The error of oversampling, "
               "m > N, falls because the tested rows are in the sample. Targets are standardised over the whole set, halves keep "
               "its units.")  # fmt: skip
    return Figure("malzahn2002/figure_1", "Boston housing", caption, panels, data, proof)


def _trusted(data: dict[str, xr.Dataset], part: str) -> xr.Dataset:
    """The simulation at the sizes at which the cavity closure passes its self-check."""
    points = data[f"{part}, simulation"]
    return points.sel(examples=data[f"{part}, cavity closure"].trusted.sel(examples=points.examples).values)


def _series(data: dict[str, xr.Dataset], parts: Iterable[str], theory: str, variable: str) -> tuple[Series, ...]:
    """Line and points of each part."""
    out = []
    for part in parts:
        curve, points = data[f"{part}, {theory}"], data[f"{part}, simulation"]
        doubtful = {"unstable": ~curve.trusted.values, "dashes": "self-check failed"}
        out.append(Series(part, Kind.theory, curve.examples.values, curve[variable].values, **doubtful))
        bars = points[f"{variable}_stderr"].values
        out.append(Series(part, Kind.simulation, points.examples.values, points[variable].values, bars))
    return tuple(out)


def figure_2(*, quick: bool = False, key: Any = None) -> Figure:
    """Abalone: theory on random subsets against a simulation on the whole set."""
    key, rule = jax.random.key(2) if key is None else key, abalone_rule()
    sizes = np.array([400, 1600, 4000.0]) if quick else np.array([100, 200, 400, 800, 1600, 2400, 3200, 4000.0])
    whole = processes.measure(
        abalone_law(),
        rule,
        examples=sizes,
        runs=4 if quick else 24,
        key=key,
        simulator=processes.Plain(),
    )
    data: dict[str, xr.Dataset] = {"whole set, simulation": whole}
    series: dict[str, list[Series]] = {"posterior_variance": [], "error": []}
    for name, points in series.items():
        bars = whole[f"{name}_stderr"].values
        points.append(Series("whole set", Kind.simulation, sizes, whole[name].values, bars))
    line = np.unique(np.append(np.geomspace(400 if quick else 100, 4000, 3 if quick else 12).round(), sizes))
    for rows, mark in ((1000, 4000.0), (2000, 3800.0)):
        label = f"{rows} random rows"
        subsets = _subsets(rule, rows, line, mark, quick)
        data[label] = subsets
        for name, points in series.items():
            every = subsets[name].sel(examples=mark).values
            points.append(Series(label, Kind.theory, line, subsets[name].sel(examples=line).isel(subset=0).values))
            points.append(Series(label, Kind.cloud, np.full(every.shape, mark), every))
    panels = tuple(
        Panel(EXAMPLES, label, tuple(series[name]), log="xy")
        for name, label in (("posterior_variance", VARIANCE), ("error", ERROR))
    )
    caption = (f"Abalone, squared-exponential kernel of the paper, σ² = 0.1. Points with bars: samples of the whole set, "
               f"{int(whole.runs)} data sets at each size. Lines: theory (cavity closure) on one random subset of 1000 or 2000 rows; "
               f"single points at m = 4000 and 3800: {int(data['1000 random rows'].sizes['subset'])} subsets each, the range that the "
               f"paper draws as a bar. In the posterior variance of m near 4000 the subsets are too low by far more than their "
               f"range: their rows are repeated, those of the whole set are not.")  # fmt: skip
    return Figure("malzahn2002/figure_2", "Abalone", caption, panels, data)


def _subsets(rule: processes.GaussianProcess, rows: int, line: np.ndarray, mark: float, quick: bool) -> xr.Dataset:
    """The theory on random subsets: one of them at all sizes, the others at one."""
    rank = 512 if quick and rows > 1000 else None
    draw = np.random.default_rng(rows)
    names = ["posterior_variance", "error", "oob_error"]
    sizes = np.unique(np.append(line, mark))
    out = []
    for i in range(4 if quick else 20):
        chosen = np.sort(draw.permutation(4177)[:rows])
        law = abalone_law(chosen)
        curve = processes.theory.curve(law, rule, examples=sizes if i == 0 else [mark], rank=rank)
        out.append(curve[names].reindex(examples=sizes))
    return xr.concat(out, "subset").assign_attrs(science="processes", source="theory", rows=rows, format=1)


FIGURES = {"figure_1": figure_1, "figure_2": figure_2}
