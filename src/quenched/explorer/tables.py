"""The views of a table: its rows, the density of a column, a forecast, doubtful rows and clusters."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr

import quenched
from quenched import io, mixtures
from quenched.core.columns import FEWEST
from quenched.core.types import InputError
from quenched.estimators import FieldDensity, SelectionClassifier, SelectionRegressor
from quenched.explorer.answers import Answer, State, choose, plain, write
from quenched.explorer.shelf import Placed, Shelf, as_dropped, read
from quenched.io import sources

LEVEL = 0.9
"""Of bands."""
SHOWN = 3000
"""Rows that are drawn; a page with more of them is slow."""
MOST_DOUBTFUL = 50
"""Doubtful rows that are listed."""
LEARNERS = ("ridge", "neighbours", "forest")
"""Models for which is forecast; ridge is logistic regression where the target is a class."""


def describe(state: State, shelf: Shelf) -> Answer:
    """The columns of a table, and its rows."""
    place = _place(state, shelf)
    if place.path is None:
        table = io.bundled(place.name)
        columns = dict(zip([*table.names, "target"], [*table.inputs.T, np.asarray(table.targets)], strict=True))
        notes: tuple[str, ...] = ()
    else:
        with as_dropped(place):
            source = sources.read(place.path)
        columns = {name: source.frame.iloc[:, k].to_numpy() for k, name in enumerate(source.names)}
        notes = source.notes
    count = len(next(iter(columns.values()))) if columns else 0
    frame = {name: plain([_cell(x) for x in values[:SHOWN]]) for name, values in columns.items()}
    numeric = [name for name, values in columns.items() if values.dtype.kind in "iuf"]
    return Answer({"name": place.name, "rows": count, "frame": frame, "numeric": numeric, "notes": list(notes),
                   "own": place.path is not None})  # fmt: skip


def _cell(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value if isinstance(value, (int, float)) else str(value)


def density(state: State, shelf: Shelf) -> Answer:
    """The density of a column, with its band."""
    place, column = _place(state, shelf), _column(state, "column")
    if place.path is None:
        table = io.bundled(place.name)
        if column not in (*table.names, "target"):
            raise InputError(f"Column {column!r} must be in the table, but there are only: "
                             f"{', '.join((*table.names, 'target'))}.")  # fmt: skip
        if column == "target":
            values, taken = np.asarray(table.targets, float), "table.targets"
        else:
            k = table.names.index(column)
            values, taken = table.inputs[:, k], f"table.inputs[:, {k}]"
        lines = f"values = io.bundled({place.name!r}){taken.removeprefix('table')}"
    else:
        values = read(place, None, [column], least=FEWEST).inputs[:, 0]
        lines = f"values = io.read_table({place.name!r}, columns=[{column!r}]).inputs[:, 0]"
    io.require_spread(place.name, column, values)
    found = FieldDensity().fit(values).describe(LEVEL)
    script = (f"from quenched import io\nfrom quenched.estimators import FieldDensity\n{lines}\n"
              f"found = FieldDensity().fit(values).describe({LEVEL})\nprint(found.density.values.max())")  # fmt: skip
    names = {"x": "value", "density": "density", "low": "density_low", "high": "density_high", "edges": "edge",
             "histogram": "histogram"}  # fmt: skip
    return Answer({key: plain(found[name].values) for key, name in names.items()}
                  | {"rows": len(values), "level": LEVEL}, script, found)  # fmt: skip


def forecast(state: State, shelf: Shelf) -> Answer:
    """The error of a model with more rows than there are; from half of the rows, with the truth of all beside it."""
    place, table, classes = _supervised(state, shelf)
    model, imports = _model(choose(state, "model", LEARNERS), classes)
    rows, hidden = len(table.inputs), state.get("half") is True
    sizes = [float(m) for m in sorted({rows // 8, rows // 4, rows // 2, rows, 2 * rows, 4 * rows, 10 * rows} - {0})]
    some = np.sort(np.random.default_rng(0).permutation(rows)[: rows // 2]) if hidden else np.arange(rows)
    if hidden:
        sizes = [m for m in sizes if m <= 4 * rows]
    targets: Any = table.targets
    found = quenched.forecast(model, table.inputs[some], targets[some], examples=sizes, random_state=0)
    truth = None
    if hidden:
        whole = quenched.forecast(model, table.inputs, targets, examples=[float(rows)], random_state=0)
        there = whole["size"].values > rows / 2
        truth = {
            "x": plain(whole["size"].values[there]), "error": plain(whole["curve_error"].values[there]),
            "stderr": plain(whole["curve_stderr"].values[there]), "all": plain(float(whole["error"].values[0])),
            "all_low": plain(float(whole["error_low"].values[0])),
            "all_high": plain(float(whole["error_high"].values[0])), "rows": rows,
        }  # fmt: skip
    lines = f"half = np.sort(np.random.default_rng(0).permutation({rows})[:{rows // 2}])\n" if hidden else ""
    chosen = "table.inputs[half], table.targets[half]" if hidden else "table.inputs, table.targets"
    script = (f"import numpy as np, quenched\n{imports}\n{_reading(place, table, classes)}\n{lines}"
              f"found = quenched.forecast({_source(model)}, {chosen}, examples={write(sizes)}, random_state=0)\n"
              "print(found.error.values)")  # fmt: skip
    numbers = {
        "x": plain(found["examples"].values), "unknown": [str(one) for one in found["refused"].values],
        "measured": {"x": plain(found["size"].values), "error": plain(found["curve_error"].values),
                     "stderr": plain(found["curve_stderr"].values)},
        **{name: plain(found[name].values) for name in ("error", "error_low", "error_high")},
    }  # fmt: skip
    about = {name: found.attrs[name] for name in ("grade", "reasons", "measure", "level", "rows")}
    return Answer(numbers | plain_attrs(about) | {"truth": truth, "classes": classes, "all": rows}, script, found)


def plain_attrs(about: dict[str, Any]) -> dict[str, Any]:
    """Attributes of a dataset for JSON."""
    return {name: plain(np.asarray(value)) if not isinstance(value, str) else value for name, value in about.items()}


def doubtful(state: State, shelf: Shelf) -> Answer:
    """The rows that are doubtful, the most doubtful first, and their share."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    place, table, classes = _supervised(state, shelf)
    base: Any = LogisticRegression(max_iter=1000) if classes else Ridge()
    kind = SelectionClassifier if classes else SelectionRegressor
    targets: Any = table.targets
    model = kind(make_pipeline(StandardScaler(), base), random_state=0, check=True).fit(table.inputs, targets)
    order = np.argsort(-model.outlier_probability_, kind="stable")[:MOST_DOUBTFUL]
    low, high = model.outlier_fraction_interval_
    script = (f"from quenched import io\nfrom quenched.estimators import {kind.__name__}\n"
              "from sklearn.linear_model import LogisticRegression, Ridge\n"
              "from sklearn.pipeline import make_pipeline; from sklearn.preprocessing import StandardScaler\n"
              f"{_reading(place, table, classes, imported=True)}\n"
              f"model = {kind.__name__}(make_pipeline(StandardScaler(), {base!r}), random_state=0, check=True)\n"
              "found = model.fit(table.inputs, table.targets)\n"
              "print(found.outlier_fraction_, found.outlier_probability_.max())")  # fmt: skip
    places = [table.place(int(i)) for i in order]
    probability = model.outlier_probability_[order]
    rows = [table.place(i) for i in range(len(table.inputs))]
    result = xr.Dataset({"outlier_probability": ("row", model.outlier_probability_)}, {"row": rows},
                        {"source": "selection"})  # fmt: skip
    return Answer({"rows": places, "probability": plain(probability), "target": [str(t) for t in targets[order]],
                   "share": plain(float(model.outlier_fraction_)), "low": plain(float(low)),
                   "high": plain(float(high)), "told": bool(model.told_), "sentence": str(model.sentence_ or ""),
                   "count": int(np.sum(model.outlier_probability_ > 0.5)), "classes": classes},
                  script, result)  # fmt: skip


def clusters(state: State, shelf: Shelf) -> Answer:
    """The clusters of a table, and the two columns in which they differ most."""
    place = _place(state, shelf)
    if place.path is None:
        table, reading = io.bundled(place.name), f"table = io.bundled({place.name!r})"
    else:
        with as_dropped(place):
            source = sources.read(place.path)
        columns = [n for k, n in enumerate(source.names) if source.frame.iloc[:, k].dtype.kind in "iuf"]
        if not columns:
            raise InputError(f"{place.name} must have columns of numbers to be clustered, but it has none.")
        table = read(place, None, columns, least=FEWEST)
        reading = f"table = io.read_table({place.name!r}, columns={columns!r})"
    found = mixtures.find_clusters(table.inputs, key=jax.random.key(0))
    script = (f"import jax\nfrom quenched import io, mixtures\n{reading}\n"
              "found = mixtures.find_clusters(table.inputs, key=jax.random.key(0))\n"
              "print(found.count, found.shares)")  # fmt: skip
    names, X = list(table.names), table.inputs
    spread = np.array([_between(X[:, k], found.labels) for k in range(X.shape[1])])
    best = [names[k] for k in np.argsort(-spread, kind="stable")[:2]]
    splits = [
        {"p": plain(float(p)), "seen": bool(seen), "needed": plain(float(rows))}
        for p, seen, rows in zip(found.splits["p"].values, found.splits["seen"].values,
                                 found.splits["rows_needed"].values, strict=True)
    ] if found.splits.sizes["split"] else []  # fmt: skip
    return Answer({"count": found.count, "shares": plain(found.shares), "labels": plain(found.labels[:SHOWN]),
                   "best": best, "splits": splits, "columns": names}, script, found.splits)  # fmt: skip


def _between(values: np.ndarray, labels: np.ndarray) -> float:
    """The share of a column's variance that lies between clusters."""
    whole = float(values.var())
    means = np.array(
        [values[labels == k].mean() if np.any(labels == k) else values.mean() for k in range(labels.max() + 1)]
    )
    return float(np.var(means[labels])) / whole if whole else 0.0


def _place(state: State, shelf: Shelf) -> Placed:
    word = state.get("table", "")
    if not isinstance(word, str) or not word:
        raise InputError("A table must be chosen or dropped first, but there is none.")
    return shelf.find(word)


def _column(state: State, name: str) -> str:
    value = state.get(name, "")
    if not isinstance(value, str) or not value:
        raise InputError(f"Choice `{name}` must name a column, but none was given.")
    return value


def _supervised(state: State, shelf: Shelf) -> tuple[Placed, io.Table, bool]:
    """A table with a column to be predicted, and whether that is a class."""
    place, target = _place(state, shelf), _column(state, "target")
    if place.path is None:
        table = read(place, target, None)
        return place, table, io.is_class(table.targets)
    how: dict[str, Any] = {"categories": True, "least": FEWEST}
    table = read(place, target, None, classes=True, **how)
    if io.is_class(table.targets):
        return place, table, True
    table = read(place, target, None, **how)
    io.require_spread(place.name, target, table.targets, " to be predicted")
    return place, table, False


def _reading(place: Placed, table: io.Table, classes: bool, *, imported: bool = False) -> str:
    """The line that reads a table."""
    first = "" if imported else "from quenched import io; "
    if place.path is None:
        return f"{first}table = io.bundled({place.name!r})"
    kind = ", classes=True" if classes else ""
    return f"{first}table = io.read_table({place.name!r}, {table.target!r}, categories=True{kind})"


def _model(name: str, classes: bool) -> tuple[Any, str]:
    """An estimator with the defaults of scikit-learn, and the line that imports its parts."""
    from sklearn import ensemble, linear_model, neighbors
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "forest":
        kind = ensemble.RandomForestClassifier if classes else ensemble.RandomForestRegressor
        return kind(random_state=0), f"from sklearn.ensemble import {kind.__name__}"
    if name == "neighbours":
        kind, home = (neighbors.KNeighborsClassifier if classes else neighbors.KNeighborsRegressor), "neighbors"
        last: Any = kind()
    else:
        home, kind = "linear_model", (linear_model.LogisticRegression if classes else linear_model.RidgeCV)
        last = linear_model.LogisticRegression(max_iter=1000) if classes else linear_model.RidgeCV()
    parts = ("from sklearn.pipeline import make_pipeline; from sklearn.preprocessing import StandardScaler; "
             f"from sklearn.{home} import {kind.__name__}")  # fmt: skip
    return make_pipeline(StandardScaler(), last), parts


def _source(model: Any) -> str:
    """An estimator as Python."""
    if hasattr(model, "steps"):
        return f"make_pipeline({', '.join(repr(part) for _, part in model.steps)})"
    return repr(model)
