"""Does theory help a forecast? The curve of a kernel surrogate on the same rows as another input.

A Gaussian process is tuned on the rows that `benchmarks.forecasts` showed to eight estimators, and its spectrum gives the
factor by which four times the rows change its error (`processes.forecast`; of classes the most frequent one is told from
the others). The forecast of each estimator's factor is moved towards that one, in the log, by a share that is best on the
other tables: if theory knew something that the measured curve does not show, the share would pay.

    python -m benchmarks.surrogate measure FORECASTS FILE [seconds]   # adds to FILE what is missing there
    python -m benchmarks.surrogate print FORECASTS FILE

`FORECASTS` is what `benchmarks.forecasts measure` wrote.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import forecasts
from benchmarks.page import table
from benchmarks.tables import CLASSES, tables
from quenched import processes

SHARES = np.linspace(-0.5, 1.0, 31)
"""Of the way from the forecast to the theory."""


def gain_of(X: np.ndarray, y: np.ndarray, task: str) -> float:
    """The factor by which the surrogate's error changes with four times the rows; NaN where that is refused."""
    if task == CLASSES:
        values, counts = np.unique(y, return_counts=True)
        y = (y == values[counts.argmax()]).astype(float)
    varies = np.ptp(X, axis=0) > 0
    answer = processes.forecast(X[:, varies], y, examples=[len(y), forecasts.TIMES * len(y)])
    return float(answer["gain"].values[1])


def measure(rows: list[dict[str, Any]], path: Path, seconds: float) -> None:
    """Add the surrogate's factor for each split of each table."""
    done, began = {(r["table"], r["split"]) for r in read(path)}, time.monotonic()
    wanted = dict.fromkeys((r["table"], r["split"]) for r in rows)
    known = {one.name: one for task in ("classification", "regression") for one in tables(task)}
    for name, split in wanted:
        if (name, split) in done or time.monotonic() - began > seconds:
            continue
        one = known[name]
        X, y = one.arrays()
        seen, _ = forecasts.draw(one, y, split)
        task = CLASSES if CLASSES in one.tasks else "regression"
        with path.open("a") as file:
            file.write(json.dumps({"table": name, "split": split, "gain": gain_of(X[seen], y[seen], task)}) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """What is in a file, one answer a line."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ablate(rows: list[dict[str, Any]], theory: list[dict[str, Any]]) -> str:
    """Errors of the factor with and without theory, shares from the other tables."""
    by_split = {(r["table"], r["split"]): r["gain"] for r in theory if np.isfinite(r["gain"])}
    rows = [r for r in rows if (r["table"], r["split"]) in by_split and np.isfinite(r["gain"][1])]
    names = np.array([r["table"] for r in rows])
    ours, said = (np.log(v) for v in ([r["gain"][1] for r in rows], [by_split[r["table"], r["split"]] for r in rows]))
    known = np.log(forecasts.truth_of(rows, forecasts.TIMES) / forecasts.truth_of(rows, 1))
    off = np.abs(np.expm1(ours + SHARES[:, None] * (said - ours) - known))  # [shares, forecasts]
    with_theory, taken = np.empty(len(rows)), {}
    for name in np.unique(names):
        best = int(np.argmin(np.median(off[:, names != name], axis=1)))
        with_theory[names == name], taken[name] = off[best, names == name], SHARES[best]
    without = off[int(np.argmin(np.abs(SHARES)))]
    ratio, p = forecasts.bootstrap(with_theory, without, names)
    lines = [(what, f"{np.median(e):.3f}", f"{np.quantile(e, 0.9):.2f}") for what, e in (
        ("the forecast", without), ("theory alone", np.abs(np.expm1(said - known))),
        ("the forecast, moved towards theory", with_theory))]  # fmt: skip
    return "\n\n".join([
        f"{len(rows)} forecasts, {len(set(names))} tables, {len(theory) - len(by_split)} of {len(theory)} refused by theory.",
        table(("factor by", "median relative error", "90th percentile"), lines),
        f"Shares of the way: {min(taken.values()):.2f} to {max(taken.values()):.2f}. Ratio of medians: {ratio:.2f} "
        f"(bootstrap over tables: p = {p:.3f} for no less than 1).",
    ])  # fmt: skip


def main() -> None:
    """Measure, or print."""
    what, source, path = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    rows = [r for r in read(source) if forecasts.is_judged(r)]
    if what == "print":
        print(ablate(rows, read(path)))
    else:
        measure(rows, path, float(sys.argv[4]) if len(sys.argv) > 4 else np.inf)


if __name__ == "__main__":
    main()
