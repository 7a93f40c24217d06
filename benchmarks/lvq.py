"""Prototypes on tables: ours beside prosemble and sklvq, the same model with as many prototypes, fold by fold.

Accuracy is that of five folds, dealt out twice, standardised on each training part. Processor seconds are those of all
fits of a table and a deal, compilation included, since each fit is what a user waits for; imports are not. The tables are
the first ten of the report half of the registry with at most 1,000 rows and 60 columns. What the sides answered is kept
in `.benchmarks/lvq`, where a run that was interrupted goes on.

Run `python -m benchmarks.lvq`: it writes `benchmarks/results/prototypes.json` and, from it alone, its section of
docs/benchmarks.md; `python -m benchmarks.lvq page` writes the page again from the results.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import page, tables, tasks
from benchmarks.environments import FOLDER, python_of
from benchmarks.peers import rounded
from benchmarks.worker import Worker

RESULTS = Path(__file__).resolve().parent / "results" / "prototypes.json"
MOST_ROWS, MOST_COLUMNS, TABLES, DEALS = 1000, 60, 10, 2
"""Of a table; how many tables; and how often rows are dealt out in five folds."""
KINDS, COUNTS = ("GLVQ", "GMLVQ", "RSLVQ"), (1, 3)
"""Models, and prototypes for each class."""
OURS, MEANS = "ours", "nearest class mean"
RATED = "LVQClassifier, LVQ1, default rate, 1 per class", "LVQClassifier, LVQ21, 1 per class"


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
        *((OURS, model) for model in RATED),
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
    for deal, table in itertools.product(range(DEALS), chosen(half)):
        case = case_of(table)
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
    return [row for row in rows if row["deal"] < DEALS]


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


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The results: for every side and model the accuracy on each table, and processor seconds of all of them."""
    names = list(dict.fromkeys(row["table"] for row in rows))
    found: dict[str, Any] = {"machine": page.machine(), "tables": names, "deals": DEALS, "rows": []}
    for side, model in asked():
        mine = [row for row in rows if (row["side"], row["model"]) == (side, model)]
        if lost := [row for row in mine if "failed" in row]:
            found["rows"].append({"side": side, "model": model, "failed": lost[0]["failed"]})
            continue
        right = [float(np.mean([row["right"] for row in mine if row["table"] == name])) for name in names]
        cpu_s, version = sum(row["cpu_s"] for row in mine), mine[0]["version"]
        found["rows"].append({"side": side, "model": model, "version": version, "right": right, "cpu_s": cpu_s})
    means = found["rows"][-1]["right"]
    for row in found["rows"]:
        if row["side"] == OURS and "right" in row:
            below = [name for name, x, y in zip(names, row["right"], means, strict=True) if x < y - 1e-9]
            row["below"] = {name: warned(row["model"], name) for name in below}
    return found


def words_of(found: dict[str, Any]) -> str:
    """The section of the page, from the results."""
    rows = {(row["side"], row["model"]): row for row in found["rows"]}
    names, deals, means = found["tables"], found["deals"], np.array(rows[OURS, MEANS]["right"])
    lines = [_line(kind, count, rows) for kind in KINDS for count in COUNTS]
    header = ("model", "ours", "CPU s", "prosemble", "ours less prosemble", "its CPU over ours", "sklvq", "ours less sklvq",
              "its CPU over ours")  # fmt: skip
    below = [
        f"{model.removeprefix('LVQClassifier, ')} on {name} ({row['right'][names.index(name)]:.3f} against "
        f"{means[names.index(name)]:.3f}, {count} of {5 * deals} fits with a warning)"
        for (_, model), row in rows.items() for name, count in row.get("below", {}).items()
    ]  # fmt: skip
    peers = sorted({row["version"] for (side, _), row in rows.items() if side != OURS and "version" in row})
    again = "" if deals == 1 else f", dealt out {deals} times"
    rated = [f"{np.mean(rows[OURS, model]['right']):.4f}" for model in RATED]
    return "\n".join([
        "## Prototypes on tables", "",
        f"`python -m benchmarks.lvq`, beside {', '.join(peers)}, on {found['machine']}",
        f"The tables are {', '.join(names)}: the first ten of the report half of the registry with at most {MOST_ROWS:,} rows "
        f"and {MOST_COLUMNS} columns. Five folds{again}, standardised on each training part; everything by "
        "default. Accuracy is the mean over the tables, differences are paired by table (± 1 standard error). CPU is that of "
        "all fits and predictions, compilation and our comparison on held-out rows included.", "",
        page.table(header, lines), "",
        f"On-line rules with one prototype per class at their default rates: LVQ1 {rated[0]}, LVQ2.1 {rated[1]}; the nearest "
        f"class mean has {means.mean():.4f}. Below the nearest class mean: {'; '.join(below) or 'none'}.",
    ])  # fmt: skip


def _line(kind: str, count: int, rows: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    """A model beside its peers."""
    mine = rows[OURS, model_of(OURS, kind, count)]
    right = np.array(mine["right"])
    line = [f"{kind}, {count} per class", f"{right.mean():.4f}", f"{mine['cpu_s']:.1f}"]
    for side in ("prosemble", "sklvq"):
        peer = rows.get((side, model_of(side, kind, count)), {"failed": ""})
        if "failed" in peer:
            line += [f"not measured: {peer['failed']}" if peer["failed"] else "", "", ""]
            continue
        gap = right - peer["right"]
        error = np.std(gap, ddof=1) / np.sqrt(len(gap))
        line += [
            f"{np.mean(peer['right']):.4f}", f"{gap.mean():+.4f} ± {error:.4f}", f"{peer['cpu_s'] / mine['cpu_s']:.1f}"
        ]  # fmt: skip
    return line


def warned(model: str, name: str) -> int:
    """How many of the fits to a table ended with a warning that class means were kept."""
    from benchmarks.sides import ours

    _, work = ours.MODELS[model]()
    case, count = case_of(tables.TABLES[name]), 0
    for deal in range(DEALS):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            work(tasks.made("prototypes", case, deal), case)
        count += sum("class means are kept" in str(one.message) for one in caught)
    return count


def main(words: list[str]) -> None:
    """Measure, and write the results and the page; or only the page."""
    if words != ["page"]:
        found = summed(answers([OURS, "prosemble", "sklvq"]))
        RESULTS.write_text(json.dumps(rounded(found)) + "\n")
    text = words_of(json.loads(RESULTS.read_text()))
    print(text)
    page.PAGE.write_text(page.replaced(page.PAGE.read_text(), page.PROTOTYPES, text))


if __name__ == "__main__":
    main(sys.argv[1:])
