"""What `quenched clusters` reads, prints and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr
from rich.console import Console

from quenched import io
from quenched.cli import digits, screen, tables
from quenched.core import store
from quenched.mixtures import FittedClusters, find_clusters


def read(data: Path | None, columns: str | None, **how: Any) -> tuple[io.Table, str]:
    """The table, and its name."""
    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    if data is None:
        tables.is_given(data, "clusters", "--columns", columns, "the columns", **how)
        return io.bundled("wine"), "scikit-learn's wine data, because no file was given"
    return tables.read(data, None, chosen, **how)


def find(table: io.Table, level: float, seed: int) -> FittedClusters:
    """The clusters of a table."""
    return find_clusters(table.inputs, level=level, key=jax.random.key(seed))


def show(result: xr.Dataset, console: Console, *, found: FittedClusters, table: io.Table) -> None:
    """Print how many clusters there are, what each is like, and every split that was tried."""
    X, seen = table.inputs, result["seen"].values
    words = "one cluster" if found.count == 1 else f"{found.count} clusters"
    screen.say(
        console, f"{result.attrs['data']}: {len(X):,} rows, {X.shape[1]} column{'s' * (X.shape[1] > 1)}, {words}", ""
    )
    mean, unit = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    about = []
    for k in range(found.count):
        mine = X[found.labels == k]
        off = (mine.mean(axis=0) - mean) / unit if len(mine) else np.zeros(X.shape[1])
        about.append(screen.most_different(off, table.names))
    sizes = np.bincount(found.labels, minlength=found.count)
    columns: list[tuple[str, Any]] = [("cluster", map(str, range(found.count))), ("rows", map(str, sizes))]
    if found.count > 1:
        columns.append((screen.DIFFERENT, about))
    console.print(screen.grid(*columns), highlight=False)
    if not result.sizes["split"]:
        return screen.say(console, "", "One Gaussian describes the rows: there is no split to test.")
    needed = [digits.count(n) if np.isfinite(n) else "never" for n in result["rows_needed"].values]
    screen.titled(
        console, "splits, each a valley between two groups", screen.grid(
            ("real", ("yes" if one else "no" for one in seen)),
            ("p", (digits.chance(p) for p in result["p"].values)),
            ("shares", (" + ".join(f"{s:.0%}" for s in result["share"].values[k]) for k in result["into"].values)),
            ("distance", (f"{x:.1f}" for x in result["separation"].values)),
            ("rows needed", needed),
        ),
    )  # fmt: skip
    return screen.say(console, "", "Rows needed: to see two Gaussian clusters at this distance in half of all samples.")


def write(path: Path, table: io.Table, found: FittedClusters) -> None:
    """Write the rows with their clusters."""
    import pandas as pd

    frame = pd.DataFrame(table.inputs, columns=list(table.names)).assign(cluster=found.labels)
    store.write(path, frame.to_csv(index=False))
