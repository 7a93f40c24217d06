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
import warnings
from typing import Any

import numpy as np

from benchmarks import page, tables, tasks
from benchmarks.environments import FOLDER, python_of
from benchmarks.worker import Worker

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


def words_of(rows: list[dict[str, Any]]) -> str:
    """The section of the page."""
    each = {
        (r["side"], r["model"]): {t: [x for x in rows if (x["side"], x["model"], x["table"]) == (r["side"], r["model"], t)]
                                  for t in dict.fromkeys(x["table"] for x in rows)} for r in rows
    }  # fmt: skip
    right = {who: np.array([np.mean([x["right"] for x in given if "right" in x]) for given in by.values()])
             for who, by in each.items()}  # fmt: skip
    cpu = {who: sum(x.get("cpu_s", np.nan) for given in by.values() for x in given) for who, by in each.items()}
    names = list(dict.fromkeys(r["table"] for r in rows))
    lines = []
    for kind in KINDS:
        for count in COUNTS:
            mine = OURS, model_of(OURS, kind, count)
            line: list[str] = [f"{kind}, {count} per class", f"{right[mine].mean():.4f}", f"{cpu[mine]:.1f}"]
            for side in ("prosemble", "sklvq"):
                peer = side, model_of(side, kind, count)
                if peer not in right:
                    line += ["", "", ""]
                    continue
                gap = right[mine] - right[peer]
                error = np.std(gap, ddof=1) / np.sqrt(len(gap))
                line += [
                    f"{right[peer].mean():.4f}",
                    f"{gap.mean():+.4f} ± {error:.4f}",
                    f"{cpu[peer] / cpu[mine]:.1f}",
                ]
            lines.append(line)
    header = ("model", "ours", "CPU s", "prosemble", "ours less prosemble", "its CPU over ours", "sklvq", "ours less sklvq",
              "its CPU over ours")  # fmt: skip
    means, below = right[OURS, MEANS], []
    for (side, model), shares in right.items():
        for i, name in enumerate(names):
            if side == OURS and shares[i] < means[i] - 1e-9:
                below.append(f"{model.removeprefix('LVQClassifier, ')} on {name} ({shares[i]:.3f} against {means[i]:.3f}, "
                             f"{warned(model, name)} of {5 * DEALS} fits with a warning)")  # fmt: skip
    versions = ", ".join(
        sorted({r["version"] for r in rows if "version" in r and not r["version"].startswith("quenched")})
    )
    said = "; ".join(below) or "none"
    return "\n".join([
        "## Prototypes on tables", "",
        f"`python -m benchmarks.lvq`, beside {versions}, on {page.machine()}",
        f"The tables are {', '.join(names)}: the first ten of the report half of the registry with at most {MOST_ROWS:,} rows "
        f"and {MOST_COLUMNS} columns. Five folds, dealt out {DEALS} times, standardised on each training part; everything by "
        "default. Accuracy is the mean over the tables, differences are paired by table (± 1 standard error). CPU is that of "
        "all fits and predictions, compilation and our comparison on held-out rows included.", "",
        page.table(header, lines), "",
        f"On-line rules with one prototype per class at their default rates: LVQ1 {right[OURS, RATED[0]].mean():.4f}, LVQ2.1 "
        f"{right[OURS, RATED[1]].mean():.4f}; the nearest class mean has {means.mean():.4f}. Below the nearest class mean: {said}.",
    ])  # fmt: skip


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
    """Measure, print, and write the page if asked."""
    text = words_of(answers([OURS, "prosemble", "sklvq"]))
    print(text)
    if "--page" in words:
        page.PAGE.write_text(page.replaced(page.PAGE.read_text(), page.PROTOTYPES, text))


if __name__ == "__main__":
    main(sys.argv[1:])
