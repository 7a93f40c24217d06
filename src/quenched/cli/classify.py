"""What `quenched classify` reads and prints: prototypes of a table, how often they are right, and what they look at."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console

from quenched import io
from quenched.cli import options, screen, tables
from quenched.core.types import InputError

FOLDS = 5
"""Parts of the table that are held out in turn."""
SHOWN = 12
"""Columns and prototypes that are printed at most."""
MEANS, MAJORITY = "nearest class mean", "largest class"
"""What the rule is compared with."""


def rule_of(name: str, *, drawn: bool) -> Any:
    """A rule by its name, on-line ones with a falling rate; one with a picture if the result is to be drawn."""
    from quenched.estimators.prototypes import falling
    from quenched.prototypes.learner.fit import PASSES
    from quenched.prototypes.model import Rule

    kind: Any = options.pick("--rule", options.find_science("prototypes").rules, name)
    if drawn and not getattr(kind, "learns_metric", False):
        raise InputError("Option --plot must come with a rule that learns a metric, as gmlvq does, "
                         f"but --rule {name} was given.")  # fmt: skip
    return falling(kind, PASSES) if issubclass(kind, Rule) else kind()


def read(data: Path | None, target: str | None, columns: str | None, count: int, **how: Any) -> tuple[io.Table, str]:
    """The table, and its name."""
    table, called, classes = tables.read_with_target(data, "classify", target, columns, **how)
    names, sizes = np.unique(np.asarray(table.targets), return_counts=True)
    if not classes:
        raise InputError(f"Column {target!r} must hold classes, but it has {len(names)} different numbers: "
                         "`quenched forecast` predicts numbers.")  # fmt: skip
    if len(names) < 2:
        raise InputError(f"Column {target!r} must hold two classes or more, "
                         f"but all its values are {str(names[0])!r}.")  # fmt: skip
    if sizes.max() < FOLDS or np.sort(sizes)[-2] < 2:
        raise InputError(f"Column {target!r} must hold {FOLDS} rows of one class and 2 of another, "
                         f"but the largest have {np.sort(sizes)[-1]} and {np.sort(sizes)[-2]}.")  # fmt: skip
    if count < 1:
        raise InputError(f"Option --prototypes must be at least 1, but {count} was given.")
    least, smallest = int(sizes.min()), str(names[np.argmin(sizes)])
    if count > 1 and least - -(-least // FOLDS) < count:
        raise InputError(f"Option --prototypes must not exceed {FOLDS - 1} of {FOLDS} parts of the rows of a class, "
                         f"but {count} was given and class {smallest!r} has {least} rows.")  # fmt: skip
    return table, called


def judge(table: io.Table, rule: Any, count: int, seed: int) -> xr.Dataset:
    """Train on the table, and on four fifths of it in turn, to see how many classes of the others are found."""
    from quenched.estimators import LVQClassifier
    from quenched.estimators.reading import Units

    values, codes = np.unique(np.asarray(table.targets), return_inverse=True)
    X, classes = table.inputs, values.astype(str)
    y = classes[codes]
    learner = LVQClassifier(rule, prototypes_per_class=count, standardize=True, fallback=False, random_state=seed)
    part, predicted, probability = _predict_unseen(learner, X, y, seed)
    learner.fit(X, y)
    place = np.argsort([classes.tolist().index(one) for one in learner.prototype_labels_], kind="stable")
    prototypes, labels = learner.prototypes_[place], learner.prototype_labels_[place]

    def shares(groups: np.ndarray, count: int) -> np.ndarray:
        return np.stack([np.mean(predicted[:, groups == one] == y[groups == one], axis=1) for one in range(count)], 1)

    result = xr.Dataset(
        {
            "probability": ("row", probability), "class_given": ("row", y), "class_found": ("row", predicted[0]),
            "accuracy": (("model", "fold"), shares(part, FOLDS)),
            "found": (("model", "class"), shares(codes, len(classes))),
            "prototype": (("place", "column"), prototypes),
            "prototype_scaled": (
                ("place", "column"), Units.of(X, np.ones(len(X)), standardize=True).into(prototypes)
            ),
            "prototype_class": ("place", labels),
        },
        {
            "row": [table.place(i) for i in range(len(y))], "model": [type(rule).__name__, MEANS, MAJORITY],
            "class": classes, "column": list(table.names),
        },
        {"source": "prototypes", "rule": type(rule).__name__, "column_of_classes": str(table.target)},
    )  # fmt: skip
    if learner.metric_ is None:
        return result
    found = learner.metric()
    names = {"column": list(table.names), "column2": list(table.names)}
    return result.merge(found.assign_coords(names)).assign_attrs(source="metric")


def _predict_unseen(learner: Any, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """The part of each row, its class by three models of the other parts, and how sure the first is of it."""
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold

    from quenched.estimators.reading import Units
    from quenched.prototypes.learner import fit_means
    from quenched.prototypes.learner.steps import nearest

    part, probability, predicted = np.empty(len(y), dtype=int), np.empty(len(y)), np.empty((3, len(y)), y.dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)  # the fit to all rows repeats it
        for k, (train, unseen) in enumerate(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y)):
            fresh: Any = clone(learner)
            fitted = fresh.fit(X[train], y[train])
            units = Units.of(X[train], np.ones(len(train)), standardize=True)
            classes, codes = np.unique(y[train], return_inverse=True)
            means = fit_means((units.into(X[train]), codes)).prototypes
            part[unseen], probability[unseen] = k, fitted.predict_proba(X[unseen]).max(axis=1)
            predicted[0, unseen] = fitted.predict(X[unseen])
            predicted[1, unseen] = classes[nearest(means, units.into(X[unseen]))[0]]
            predicted[2, unseen] = classes[np.argmax(np.bincount(codes))]
    return part, predicted, probability


def show(result: xr.Dataset, console: Console) -> None:
    """Print how often each is right, which classes are found, and what decides."""
    a, every = result.attrs, result["accuracy"].values
    target, place = a["column_of_classes"], result.sizes["place"]
    columns = f"{result.sizes['column']} column{'s' * (result.sizes['column'] > 1)}"
    screen.say(console, f"{a['data']}: {result.sizes['row']:,} rows, {columns}, "
                        f"{result.sizes['class']} classes of {target}, {place} prototypes by {a['rule']}.")  # fmt: skip
    error = every.std(axis=1, ddof=1) / np.sqrt(FOLDS)
    screen.titled(
        console, f"right in {FOLDS} folds", screen.grid(
            ("", result["model"].values.tolist()), ("accuracy", [f"{x:.3f}" for x in every.mean(axis=1)]),
            ("±", [f"{x:.3f}" for x in error]),
        ),
    )  # fmt: skip
    gain = every.mean(axis=1)[0] - every.mean(axis=1)[1:]
    if gain.min() < 0:
        screen.say(console, "", f"The {result['model'].values[1 + int(np.argmin(gain))]} is right more often: these "
                                "prototypes are of no use here. Another rule or other columns may help.")  # fmt: skip
    classes, given = result["class"].values, result["class_given"].values
    cells = [(str(name), [f"{x:.2f}" for x in share]) for name, share in
             zip(result["model"].values[:2], result["found"].values[:2], strict=True)]  # fmt: skip
    screen.titled(
        console, "share of each class that is found", screen.grid(
            (target, classes.tolist()), ("rows", [str(np.sum(given == one)) for one in classes]), *cells,
        ),
    )  # fmt: skip
    names = [str(name) for name in result["column"].values]
    about = [screen.most_different(off, names) for off in result["prototype_scaled"].values[:SHOWN]]
    screen.titled(console, _first("prototypes", place), screen.grid(
        ("class", result["prototype_class"].values[:SHOWN].tolist()), (screen.DIFFERENT, about),
    ))  # fmt: skip
    if "relevance" in result:
        _show_metric(result, names, console)


def _first(words: str, count: int) -> str:
    return words if count <= SHOWN else f"{words}, the first {SHOWN} of {count}"


def _show_metric(result: xr.Dataset, names: list[str], console: Console) -> None:
    share = result["relevance"].values
    order = np.argsort(-share, kind="stable")[:SHOWN]
    screen.titled(console, _first("weights of columns in the learned metric", len(share)), screen.grid(
        ("column", [names[i] for i in order]), ("weight", [f"{share[i]:.1%}" for i in order]),
    ))  # fmt: skip
