"""What `quenched outliers` reads and prints: the doubtful rows of a table, and their share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console

from quenched import io
from quenched.cli import screen, tables

SHOWN = 20
"""Rows that are printed at most."""


def read(data: Path | None, target: str | None, columns: str | None, **how: Any) -> tuple[io.Table, str, bool]:
    """The table, its name, and whether its target is a class."""
    return tables.read_with_target(data, "outliers", target, columns, **how)


def judge(table: io.Table, *, classes: bool, seed: int) -> xr.Dataset:
    """The rows with the probabilities that they are outliers, the most doubtful first."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from quenched.estimators import SelectionClassifier, SelectionRegressor

    base: Any = LogisticRegression(max_iter=1000) if classes else Ridge()
    kind = SelectionClassifier if classes else SelectionRegressor
    model = kind(make_pipeline(StandardScaler(), base), random_state=seed, check=True)
    y: Any = table.targets
    model.fit(table.inputs, y)
    order = np.argsort(-model.outlier_probability_, kind="stable")
    low, high = model.outlier_fraction_interval_
    share = {"outlier_fraction": model.outlier_fraction_, "outlier_fraction_low": low, "outlier_fraction_high": high}
    return xr.Dataset(
        {
            "outlier_probability": ("rank", model.outlier_probability_[order]),
            "row": ("rank", np.array([table.place(int(i)) for i in order])),
            "target": ("rank", np.asarray(y)[order].astype(str)),
        },
        {"rank": np.arange(1, len(order) + 1)},
        share | {
            "source": "selection", "rows": len(order), "told": int(model.told_), "used": int(model.used_),
            "sentence": model.sentence_, "model": type(base).__name__, "column": str(table.target),
        },
    )  # fmt: skip


def show(result: xr.Dataset, console: Console) -> None:
    """Print the share with its interval, and the most doubtful rows."""
    a = result.attrs
    low, high = a["outlier_fraction_low"], a["outlier_fraction_high"]
    share = f"{a['outlier_fraction']:.0%}, with a probability of 80% between {low:.0%} and {high:.0%}"
    share = share if a["told"] else f"cannot be told (between {low:.0%} and {high:.0%})"
    screen.say(console, f"{a['data']}: {int(a['rows']):,} rows, {a['column']} by {a['model']}.", "")
    screen.say(console, f"Share of outliers: {share}.", *([a["sentence"]] if a["sentence"] else []), "")
    doubtful = result.isel(rank=result.outlier_probability.values > 0.5)
    few = doubtful.isel(rank=slice(0, SHOWN))
    count = doubtful.sizes["rank"]
    end = f"; the first {SHOWN}:" if count > SHOWN else ":" if count else "."
    screen.say(console, f"{count} rows are outliers more probably than not{end}")
    if few.sizes["rank"]:
        console.print(
            screen.grid(
                ("row", [str(i) for i in few.row.values]), (a["column"], few.target.values.tolist()),
                ("probability", [f"{p:.2f}" for p in few.outlier_probability.values]),
            ),
            highlight=False,
        )  # fmt: skip
