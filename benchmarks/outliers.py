"""Selection around models beside cleanlab and robust regressions: tables of the registry with corrupted training rows.

30% of the training rows are corrupted, test rows (30%) are clean. Classes: labels flipped to another class, features
replaced by values of their columns, half of both, a clump (three standard deviations off, a tenth wide, one label), or
none. Numbers: targets replaced by those of other rows, shifted by five standard deviations, leverage points (features
five times as wide, targets of other rows), a clump, or none. Of a larger table some rows are drawn. Columns are
standardised with the corrupted training rows. Every side has the same model, `LogisticRegression` or `Ridge`.

`python -m benchmarks.outliers` runs the report half and writes `results/outliers.json` and the section of
`docs/benchmarks.md`; `--half development` prints the other half, on which defaults were chosen. `--seconds` is the time
after which no new work begins; splits are done one after the other, so that all tables have about as many, and the
next run goes on from there (remove the results to measure anew).
`--cache FILE.npz` keeps the tables, to run where their packages are not installed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import HuberRegressor, LogisticRegression, RANSACRegressor, Ridge, TheilSenRegressor
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.page import OUTLIERS, PAGE, replaced
from quenched.estimators import SelectionClassifier, SelectionRegressor

SHARE, TEST = 0.3, 0.3
HARM = 0.015
"""Accuracy lost against the plain model that is named on the page."""
LABELS = ("clean", "flipped", "replaced", "mixed", "clump")
NUMBERS = ("clean", "replaced", "shifted", "leverage", "clump")
CLASSES, VALUES = "classification", "regression"
RESULTS = Path(__file__).resolve().parent / "results" / "outliers.json"
Arrays = tuple[np.ndarray, np.ndarray]


def corrupt(
    X: np.ndarray, y: np.ndarray, world: str, task: str, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The training rows with some of them corrupted, and which."""
    generator, X, y, bad = np.random.default_rng(seed), X.copy(), y.copy(), np.zeros(len(y), bool)
    if world == "clean":
        return X, y, bad
    rows = generator.permutation(len(y))[: round(SHARE * len(y))]
    bad[rows], deviation, half = True, X.std(axis=0), rows[::2]
    if world == "clump":
        place = X.mean(axis=0) + 3 * deviation * generator.choice([-1, 1], X.shape[1])
        X[rows] = place + 0.1 * deviation * generator.standard_normal((len(rows), X.shape[1]))
        if task == CLASSES:
            y[rows] = generator.integers(y.max() + 1)
        else:
            noise = 0.1 * generator.standard_normal(len(rows))
            y[rows] = y.mean() + y.std() * (3 * generator.choice([-1, 1]) + noise)
    elif task == CLASSES:
        flipped = {"flipped": rows, "mixed": half, "replaced": rows[:0]}[world]
        K = y.max() + 1
        y[flipped] = (y[flipped] + generator.integers(1, K, len(flipped))) % K
        others = np.setdiff1d(rows, flipped)
        X[others] = np.column_stack([generator.choice(column, len(others)) for column in X.T])
    elif world == "shifted":
        y[rows] += 5 * y.std() * (1 + 0.1 * generator.standard_normal(len(rows)))
    else:
        if world == "leverage":
            X[rows] = X.mean(axis=0) + 5 * deviation * generator.standard_normal((len(rows), X.shape[1]))
        y[rows] = generator.choice(y, len(rows))
    return X, y, bad


def area(bad: np.ndarray, score: np.ndarray) -> float | None:
    """Under the curve of the ranking of corrupted rows."""
    return float(roc_auc_score(bad, score)) if bad.any() else None


def ours(model: Any, bad: np.ndarray) -> dict[str, Any]:
    """What selection says about the training rows."""
    low, high = model.outlier_fraction_interval_
    covers = bool(low - 0.005 <= bad.mean() <= high + 0.005)
    return {
        "area": area(bad, model.outlier_probability_), "share": model.outlier_fraction_, "covers": covers,
        "told": model.told_, "used": model.used_, "warned": bool(model.clump_.any()),
        "rival": model.alternative_ is not None,
    }  # fmt: skip


def classes(train: Arrays, test: Arrays, bad: np.ndarray, seed: int) -> dict[str, Any]:
    """Accuracy of every side on one split."""
    from cleanlab.classification import CleanLearning  # pyright: ignore[reportMissingImports]

    base = LogisticRegression(max_iter=500)
    begun = time.process_time()
    model = SelectionClassifier(base, random_state=seed).fit(*train)
    spent = time.process_time() - begun
    plain, peer = base.fit(*train).score(*test), CleanLearning(LogisticRegression(max_iter=500), seed=seed)
    begun = time.process_time()
    try:
        score = peer.fit(*train).score(*test)
    except ValueError:  # it has left out a class
        score = plain
        peer.find_label_issues(*train)
    peer_s, found = time.process_time() - begun, peer.get_label_issues()
    return {
        "quenched": model.score(*test), "plain": plain, "cleanlab": score,
        "cleanlab area": area(bad, -found["label_quality"].to_numpy()), "cpu": spent, "cleanlab cpu": peer_s,
    } | ours(model, bad)  # fmt: skip


def values(train: Arrays, test: Arrays, bad: np.ndarray, seed: int) -> dict[str, Any]:
    """Root mean square error of every side on one split, in standard deviations of the test targets."""
    begun = time.process_time()
    model = SelectionRegressor(Ridge(), random_state=seed).fit(*train)
    spent = time.process_time() - begun
    peers = {
        "plain": Ridge(), "Huber": HuberRegressor(max_iter=1000), "RANSAC": RANSACRegressor(random_state=seed),
        "Theil-Sen": TheilSenRegressor(random_state=seed, max_subpopulation=300),
    }  # fmt: skip
    fitted = {"quenched": model} | {name: peer.fit(*train) for name, peer in peers.items()}
    error = {name: float(np.sqrt(np.mean((one.predict(test[0]) - test[1]) ** 2)) / test[1].std())
             for name, one in fitted.items()}  # fmt: skip
    return error | {"cpu": spent} | ours(model, bad)


def case(task: str, name: str, X: np.ndarray, y: np.ndarray, world: str, seed: int) -> dict[str, Any]:
    """One table, one corruption, one split."""
    warnings.simplefilter("ignore")
    parts = train_test_split(X, y, test_size=TEST, random_state=seed, stratify=y if task == CLASSES else None)
    rows, target, bad = corrupt(parts[0], parts[2], world, task, seed)
    scaler = StandardScaler().fit(rows)
    sides = classes if task == CLASSES else values
    found = sides((scaler.transform(rows), target), (scaler.transform(parts[1]), parts[3]), bad, seed)
    return {"task": task, "table": name, "world": world, "split": seed} | found


def load(half: str, most: int, cache: Path | None) -> dict[str, dict[str, Arrays]]:
    """The tables of a half by task, `most` rows of each at most, and no class of fewer than ten."""
    if cache is not None and cache.exists():
        kept = np.load(cache)
        names = [name.split("|") for name in kept.files if name.endswith("|X")]
        every = {(task, at, name): (kept[f"{task}|{at}|{name}|X"], kept[f"{task}|{at}|{name}|y"])
                 for task, at, name, _ in names}  # fmt: skip
    else:
        from benchmarks.tables import tables

        every = {(task, t.half, t.name): t.arrays() for task in (CLASSES, VALUES) for t in tables(task)}
        if cache is not None:
            both = {f"{'|'.join(k)}|{w}": v[i] for k, v in every.items() for i, w in enumerate("Xy")}
            np.savez_compressed(cache, **both)
    chosen: dict[str, dict[str, Arrays]] = {CLASSES: {}, VALUES: {}}
    for (task, at, name), (X, y) in every.items():
        if at == half:
            draw = np.random.default_rng(len(X)).permutation(len(X))[:most]
            X, y = X[draw], y[draw]
            if task == CLASSES:
                large = np.bincount(y)[y] >= 10
                X, y = X[large], np.unique(y[large], return_inverse=True)[1]
            chosen[task][name] = X[:, X.std(axis=0) > 0], y
    return chosen


def run(
    half: str, most: int, splits: int, seconds: float, jobs: int, cache: Path | None, out: Path
) -> list[dict[str, Any]]:  # fmt: skip
    """All cases, split by split; what is known is kept in `out`, and from there a run goes on that was interrupted."""
    tables = load(half, most, cache)
    found: list[dict[str, Any]] = json.loads(out.read_text()) if out.exists() else []
    known = {tuple(one[name] for name in ("task", "table", "world", "split")) for one in found}
    work = [(task, name, X, y, world, seed) for seed in range(splits) for task, worlds in ((CLASSES, LABELS), (VALUES, NUMBERS))
            for name, (X, y) in tables[task].items() for world in worlds if (task, name, world, seed) not in known]  # fmt: skip
    begun, step = time.time(), 5 * jobs
    with Parallel(n_jobs=jobs) as parallel:
        for first in range(0, len(work), step):
            if time.time() - begun > seconds:
                break
            found += parallel(delayed(case)(*one) for one in work[first : first + step])
            out.write_text(json.dumps(found) + "\n")
    return found


def mean(found: list[dict[str, Any]], name: str) -> float:
    """Over cases."""
    return float(np.mean([one[name] for one in found if one.get(name) is not None] or [np.nan]))


def worst(found: list[dict[str, Any]], change: Callable[[dict[str, Any]], float]) -> tuple[float, str]:
    """The table on which we lose most against the plain model, by the mean over splits."""
    names = sorted({one["table"] for one in found})
    return min((float(np.mean([change(one) for one in found if one["table"] == name])), name) for name in names)


def harmed(found: list[dict[str, Any]]) -> str:
    """The tables and corruptions where we lose more than `HARM` against the plain model, the mean of the splits."""
    every: dict[tuple[str, str], list[float]] = {}
    for one in found:
        every.setdefault((one["table"], one["world"]), []).append(one["quenched"] - one["plain"])
    means = {which: round(float(np.mean(changes)), 9) for which, changes in every.items()}
    lost = sorted((change, *which) for which, change in means.items() if change < -HARM)
    cases = ", ".join(f"`{table}` {world} ({change:+.3f})" for change, table, world in lost)
    return f"On {len(lost)} of {len(every)} tables and corruptions more than {HARM} is lost against the plain model" + (
        f": {cases}." if cases else "."
    )


def ranked(found: list[dict[str, Any]]) -> str:
    """Where we are better than the best of the robust regressions, and what clean rows cost."""
    said = []
    for world in NUMBERS:
        some = [one for one in found if one["world"] == world]
        others = ("plain",) if world == "clean" else ("Huber", "RANSAC", "Theil-Sen")
        best = min(others, key=lambda side: mean(some, side))
        change, name = mean(some, "quenched") / mean(some, best) - 1, "`Ridge`" if best == "plain" else best
        said.append(f"{world} {abs(change):.1%} {'above' if change > 0 else 'below'} {name}")
    return f"The error of quenched beside that of plain ridge regression on clean rows, of the best robust one elsewhere: {', '.join(said)}."


def section(found: list[dict[str, Any]], about: str) -> str:
    """The section of the page."""
    lines = [about, "", "### Classes: accuracy on clean rows", ""]
    lines += [
        "| 30% of training rows | plain | cleanlab | quenched | worst table against plain | ranking, cleanlab | ranking, quenched | share | interval holds | warned of a clump |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|---|"]
    for world in LABELS:
        some = [one for one in found if one["task"] == CLASSES and one["world"] == world]
        low, name = worst(some, lambda one: one["quenched"] - one["plain"])
        a, b, c = (mean(some, side) for side in ("plain", "cleanlab", "quenched"))
        lines.append(
            f"| {world} | {a:.4f} | {b:.4f} | {c:.4f} | {low:+.3f} ({name}) | {mean(some, 'cleanlab area'):.3f} | "
            f"{mean(some, 'area'):.3f} | {mean(some, 'share'):.2f} | {mean(some, 'covers'):.0%} | {mean(some, 'warned'):.0%} |"
        )
    clean = [one for one in found if one["task"] == CLASSES and one["world"] == "clean"]
    small = float(np.mean([one["share"] < 0.05 for one in clean]))
    cost, peer = mean([one for one in found if one["task"] == CLASSES], "cpu"), mean(found, "cleanlab cpu")
    every = [one for one in found if one["task"] == CLASSES]
    lines += [
        "",
        f"On clean tables the share is below 0.05 in {small:.0%}; its 80% interval holds in {mean(every, 'covers'):.0%} of all "
        f"cases. {harmed(every)} A fit takes {cost:.2f} s of processor time, cleanlab's {peer:.2f} s.",
    ]
    lines += ["", "### Numbers: root mean square error on clean rows, in standard deviations", ""]
    sides = ("plain", "Huber", "RANSAC", "Theil-Sen", "quenched")
    lines += [
        f"| 30% of training rows | {' | '.join(sides)} | selection used | share | interval holds | warned of a clump |",
        "|---" * 10 + "|",
    ]
    for world in NUMBERS:
        some = [one for one in found if one["task"] == VALUES and one["world"] == world]
        errors = " | ".join(f"{mean(some, side):.4f}" for side in sides)
        lines.append(
            f"| {world} | {errors} | {mean(some, 'used'):.0%} | {mean(some, 'share'):.2f} | {mean(some, 'covers'):.0%} | "
            f"{mean(some, 'warned'):.0%} |"
        )
    every = [one for one in found if one["task"] == VALUES]
    lines += ["", f"The interval holds in {mean(every, 'covers'):.0%} of all cases. {ranked(every)}"]
    return "\n".join(lines).replace("nan", "")


def prepare() -> None:
    """Make cleanlab importable: pure Python from an environment of its own, on our NumPy and scikit-learn."""
    try:
        import cleanlab  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        from benchmarks.environments import python_of

        asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
        done = subprocess.run([python_of("cleanlab"), "-c", asked], capture_output=True, text=True, check=True)
        sys.path.append(done.stdout.strip())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", default="report")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, help="results that were measured elsewhere, to be written to the page")
    given = parser.parse_args()
    if given.page is None:
        prepare()
        found = run(given.half, given.rows, given.splits, given.seconds, given.jobs, given.cache, given.out)
    else:
        found = json.loads(given.page.read_text())
    tables = {task: len({one["table"] for one in found if one["task"] == task}) for task in (CLASSES, VALUES)}
    splits = 1 + max(one["split"] for one in found)
    about = (
        f"`python -m benchmarks.outliers`: the {given.half} half, {tables[CLASSES]} tables of classes and {tables[VALUES]} of "
        f"numbers, {given.rows} rows of each at most, {splits} splits ({len(found)} cases)."
    )
    body = section(found, about)
    print(body)
    if given.half == "report":
        PAGE.write_text(replaced(PAGE.read_text(), OUTLIERS, "## Selection around models\n\n" + body))


if __name__ == "__main__":
    main()
