"""Prototypes on tables: ours beside prosemble and sklvq, the same model with as many prototypes, fold by fold.

Accuracy is that of five folds, dealt out twice, standardised on each training part. Processor seconds are those of all
fits of a table and a deal, compilation included, since each fit is what a user waits for; imports are not. The tables are
the first ten of the report half of the registry with at most 1,000 rows and 60 columns. What the sides answered is kept
in `.benchmarks/lvq`, where a run that was interrupted goes on.

Run `python -m benchmarks.lvq`, with `--page` to write its section of docs/benchmarks.md from the results.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from benchmarks import tables, tasks
from benchmarks.environments import FOLDER, python_of
from benchmarks.worker import Worker

MOST_ROWS, MOST_COLUMNS, TABLES, DEALS = 1000, 60, 10, 2
"""Of a table; how many tables; and how often rows are dealt out in five folds."""
KINDS, COUNTS = ("GLVQ", "GMLVQ", "RSLVQ"), (1, 3)
"""Models, and prototypes for each class."""
OURS, MEANS, DEFAULT = "ours", "nearest class mean", "LVQClassifier"


def model_of(side: str, kind: str, count: int) -> str:
    """What a side calls a model."""
    words = f"{kind}, {count} per class"
    return {OURS: f"LVQClassifier, {words}", "sklvq": f"{words}, by default"}.get(side, words)


def asked() -> list[tuple[str, str]]:
    """Sides and models."""
    has = {OURS: KINDS, "prosemble": KINDS, "sklvq": ("GLVQ", "GMLVQ")}
    every = [(side, model_of(side, kind, count)) for side in has for kind in has[side] for count in COUNTS]
    return [
        *every,
        (OURS, "LVQClassifier, LVQ1, default rate, 1 per class"),
        (OURS, "LVQClassifier, LVQ21, 1 per class"),
        (OURS, MEANS),
    ]


def chosen(half: str = "report") -> list[tables.Table]:
    """The tables, in the order of the registry."""
    found: list[tables.Table] = []
    for table in tables.tables(tables.CLASSES, half):
        X, _ = table.arrays()
        if len(X) <= MOST_ROWS and X.shape[1] <= MOST_COLUMNS:
            found.append(table)
        if len(found) == TABLES:
            break
    return found


def case_of(table: tables.Table) -> dict[str, Any]:
    """A table as a file that every side can read."""
    place = FOLDER / "lvq" / f"{table.name.replace(' ', '_')}.npz"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        X, y = table.arrays()
        np.savez(place, X=X, y=y)
    return {"file": str(place)}


def answers(sides: list[str], half: str = "report") -> list[dict[str, Any]]:
    """Accuracy in each fold and processor seconds, for every table, deal, side and model."""
    kept = FOLDER / "lvq" / f"{half}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    known = {(row["table"], row["deal"], row["side"], row["model"]) for row in rows}
    workers = {side: Worker(python_of(side), side) for side in sides}
    for table in chosen(half):
        case = case_of(table)
        for deal in range(DEALS):
            for side, model in asked():
                if side not in sides or (table.name, deal, side, model) in known:
                    continue
                row = {"table": table.name, "deal": deal, "side": side, "model": model}
                row |= _judged(workers[side](task="prototypes", case=case, seed=deal, model=model), case, deal)
                print(json.dumps(row), file=sys.stderr, flush=True)
                rows.append(row)
                with kept.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    for worker in workers.values():
        worker.close()
    return rows


def _judged(reply: dict[str, Any], case: dict[str, Any], deal: int) -> dict[str, Any]:
    if "failed" in reply:
        return {"failed": reply["failed"]}
    data = tasks.made("prototypes", case, deal)
    assert np.isclose(reply["checksum"], tasks.checksum(data), rtol=1e-12), "the sides had different data"
    return {
        "right": tasks.share_right(reply["answer"], data, None),
        "cpu_s": reply["cpu_s"],
        "version": reply["version"],
    }
