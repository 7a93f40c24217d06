"""What `quenched forecast --model` reads, computes and prints: estimators of scikit-learn, also of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr
from rich.console import Console

import quenched
from quenched import forecasting, io, processes
from quenched.cli import screen, tables
from quenched.cli.digits import count, number
from quenched.cli.forecast import GRADES, headline
from quenched.core.types import InputError

GP = "gp"
NAMES = (GP, "ridge", "logistic", "knn", "svm", "forest", "boosting", "mlp")
"""Models, as the command line names them."""
FAR = (4, 10)
"""Times the rows at which several models are compared."""


def check(models: Sequence[str]) -> list[str]:
    """The models that were asked for, each once."""
    names = [name.strip() for text in models for name in text.split(",") if name.strip()]
    for name in names:
        if name not in NAMES:
            raise InputError(f"Option --model must be one of {', '.join(NAMES)}, but {name} was given.")
    return list(dict.fromkeys(names)) or [GP]


def read(
    data: Path | None, target: str | None, columns: str | None, models: Sequence[str], **how: Any
) -> tuple[io.Table, str, bool]:
    """The table, its name, and whether its target is a class."""
    if not tables.is_given(data, "forecast", "--target", target, "the column to be predicted", columns=columns, **how):
        table = io.bundled("diabetes")._replace(target="disease progression")
        called, classes = "scikit-learn's diabetes data, because no file was given", False
    else:
        names = None if columns is None else [name.strip() for name in columns.split(",")]
        table, called = tables.read(data, target, names, categories=True, classes=True, **how)
        whole = np.asarray(table.targets).dtype.kind == "i"
        classes = io.is_class(table.targets) or ("logistic" in models and whole)
        if not classes:
            table, called = tables.read(data, target, names, categories=True, **how)
            io.require_spread(called, str(target), table.targets, " to be predicted")
    unfit = [name for name in models if name == (GP if classes else "logistic")]
    if unfit:
        raise InputError(f"Option --model {unfit[0]} must have {'numbers' if classes else 'classes'} to predict, but "
                         f"{table.target} {'is a class' if classes else 'is a number'}.")  # fmt: skip
    return table, called, classes


def build(name: str, classes: bool, seed: int) -> Any:
    """An estimator with the defaults of scikit-learn, inputs standardised where that matters."""
    from sklearn import compose, ensemble, linear_model, neighbors, neural_network, pipeline, preprocessing, svm

    made: dict[str, Callable[[], Any]] = {
        "ridge": linear_model.RidgeClassifierCV if classes else linear_model.RidgeCV,
        "logistic": lambda: linear_model.LogisticRegression(max_iter=1000),
        "knn": neighbors.KNeighborsClassifier if classes else neighbors.KNeighborsRegressor,
        "svm": svm.SVC if classes else svm.SVR,
        "forest": lambda: (ensemble.RandomForestClassifier if classes
                           else ensemble.RandomForestRegressor)(random_state=seed),
        "boosting": lambda: (ensemble.HistGradientBoostingClassifier if classes
                             else ensemble.HistGradientBoostingRegressor)(random_state=seed),
        "mlp": lambda: (neural_network.MLPClassifier if classes else neural_network.MLPRegressor)(random_state=seed),
    }  # fmt: skip
    model = made[name]()
    if name in ("forest", "boosting"):
        return model
    if name in ("svm", "mlp") and not classes:  # their scales are those of a standardised target
        model = compose.TransformedTargetRegressor(model, transformer=preprocessing.StandardScaler())
    return pipeline.make_pipeline(preprocessing.StandardScaler(), model)


def run(
    table: io.Table, classes: bool, models: Sequence[str], sizes: Sequence[int], seed: int
) -> tuple[xr.Dataset, dict[str, xr.Dataset]]:
    """The forecast, or several joined, and all by name."""
    found = {}
    for name in models:
        if name == GP:
            found[name] = processes.forecast(table.inputs, table.targets, examples=sizes, key=jax.random.key(seed),
                                             names=table.names)  # fmt: skip
        else:
            estimator = build(name, classes, seed)
            found[name] = quenched.forecast(estimator, table.inputs, table.targets, examples=sizes, random_state=seed)
    named = {name: one.assign_attrs(model=name, target=str(table.target)) for name, one in found.items()}
    return (next(iter(named.values())) if len(named) == 1 else forecasting.compare(named)), named


def show(
    result: xr.Dataset, console: Console, *, table: io.Table, called: str, found: dict[str, xr.Dataset],
    shown: Sequence[int],
) -> None:  # fmt: skip
    """Print one forecast, or several beside each other."""
    rows, columns = int(result.attrs["rows"]), len(table.names)
    screen.say(console, f"{called}: {rows:,} rows, {columns} column{'s' * (columns > 1)} to predict {table.target}")
    if len(found) == 1:
        screen.say(console, *_refusals(result, shown))
        if _known(result).any():
            screen.say(console, headline(result, str(table.target)), style="bold")
            title = f"Forecast for {result.attrs['model']}: {result.attrs['measure']} on new rows"
            screen.titled(console, title, _ahead(result, sorted({*shown, rows})))
    else:
        title = f"Forecasts: {result.attrs.get('measure', 'error')} on new rows, and its 80% interval"
        screen.titled(console, title, _side_by_side(found, rows))
        screen.say(console, *(line for m in FAR if (line := winner(result, m * rows, m))), style="bold")
    for name, one in found.items():
        grade, reasons = str(one.attrs["grade"]), str(one.attrs["reasons"]).splitlines()
        label = f"{name}: " if len(found) > 1 else ""
        screen.say(console, f"{label}{GRADES.get(grade, grade)}", *(f"  {line}" for line in reasons if line.strip()))


def _known(result: xr.Dataset) -> np.ndarray:
    return result["refused"].values.astype(str) == ""


def _refusals(result: xr.Dataset, shown: Sequence[int]) -> list[str]:
    """Sentences for the sizes that have no forecast."""
    lost = {m: str(result["refused"].sel(examples=m).values) for m in shown}
    return [f"No forecast for {', '.join(count(m) for m in lost if lost[m] == why)} examples: {why}"
            for why in dict.fromkeys(lost.values()) if why]  # fmt: skip


def _interval(one: xr.Dataset, name: str, write: Callable[[float], str] = number) -> tuple[str, str]:
    """A number and its interval, in words; empty where there is none."""
    value, low, high = (float(one[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return (write(value), f"{write(low)} to {write(high)}") if np.isfinite(value) else ("", "")


def _ahead(result: xr.Dataset, sizes: Sequence[int]) -> Any:
    """A line for each size."""
    rows = result.attrs["rows"]
    there = [result.sel(examples=m) for m in sizes]
    there = [one for one in there if str(one["refused"].values) == ""]
    errors = [_interval(one, "error") for one in there]
    changes = [
        _interval(one, "gain", lambda x: f"{x - 1:+.1%}") if one["examples"] != rows else ("", "") for one in there
    ]
    names = [f"{count(one['examples'])}{' (now)' if one['examples'] == rows else ''}" for one in there]
    return screen.grid(("examples", names), ("error", [e for e, _ in errors]), ("80% interval", [w for _, w in errors]),
                       ("change", [c for c, _ in changes]), ("80% interval", [w for _, w in changes]))  # fmt: skip


def _side_by_side(found: dict[str, xr.Dataset], rows: int) -> Any:
    """A line for each model: now and further on."""
    cells: list[tuple[str, list[str]]] = [("model", list(found))]
    for m in (1, *FAR):
        some = [_interval(one.sel(examples=m * rows), "error") for one in found.values()]
        cells += [("now" if m == 1 else f"{m} times", [e for e, _ in some]), ("80% interval", [w for _, w in some])]
    return screen.grid(*cells)


def winner(result: xr.Dataset, size: float, times: int) -> str:
    """Which model wins with so many rows, and whether that is open; empty where there is no forecast."""
    there = result.sel(examples=size)
    known = np.isfinite(there["error"].values)
    if known.sum() < 2:
        return ""
    names = there["model"].values.astype(str)
    best = int(np.nanargmin(there["error"].values))
    near = [names[k] for k in np.flatnonzero(known) if k != best
            and float(there["error_low"][k]) < float(there["error_high"][best])]  # fmt: skip
    rest = (
        f"; by the intervals {', '.join(near)} may still win"
        if near
        else ", and no interval of another reaches its own"
    )
    return (
        f"With {times} times the rows {names[best]} has the lowest error, {number(float(there['error'][best]))}{rest}."
    )
