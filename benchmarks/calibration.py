"""Do bands keep their word, and whose density is closest? Fifteen densities, three numbers of rows, many seeds, one run.

For each density of `benchmarks.densities`: how often the 90% band holds the true density, at 20 places between its quantiles
of 1% and 99%; the integrated squared error; the log-density of 10,000 new rows, less that of the truth (of at least `FLOOR`,
because kernels have places without density); processor seconds. Peers have no band, or none that is asked for.

`python -m benchmarks.calibration` writes `benchmarks/results/calibration.json`, a section of `docs/benchmarks.md` and
`docs/images/calibration.png`. `python -m benchmarks.calibration page` writes page and picture again from the results;
`python -m benchmarks.calibration ask SIDE ...` is what runs in the environment of a side.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import densities
from benchmarks.worker import HOME, SINGLE

RESULTS = Path(__file__).resolve().parent / "results" / "calibration.json"
PICTURE = HOME / "docs" / "images" / "calibration.png"
ROWS = (100, 1_000, 10_000)
SEEDS = 50
LEVEL, FLOOR = 0.9, 1e-12
NEW = 10_000
Answer = tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None]


def ours(x: np.ndarray) -> Answer:
    """`FieldDensity()`, nothing set."""
    from quenched.estimators import FieldDensity

    found = FieldDensity().fit(x)
    return found.pdf, lambda at: found.credible_band(at, level=LEVEL)


def gaussian_mixture(x: np.ndarray) -> Answer:
    """scikit-learn's, of one to ten components by the Bayesian information criterion."""
    from sklearn.mixture import GaussianMixture

    table = x[:, None]
    best = min((GaussianMixture(k, random_state=0).fit(table) for k in range(1, 11)), key=lambda one: one.bic(table))
    return lambda at: np.exp(best.score_samples(at[:, None])), None


def improved_sheather_jones(x: np.ndarray) -> Answer:
    """KDEpy's, by Fourier transform on 4,096 points."""
    import KDEpy  # pyright: ignore[reportMissingImports]

    grid, p = KDEpy.FFTKDE(bw="ISJ").fit(x).evaluate(4096)
    return lambda at: np.interp(at, grid, p, left=0.0, right=0.0), None


def gaussian_kernels(x: np.ndarray) -> Answer:
    """SciPy's; at few places, and linear between them, because it is slow."""
    from scipy.stats import gaussian_kde

    p = gaussian_kde(x)(densities.PLACES[::10])
    return lambda at: np.interp(at, densities.PLACES[::10], p), None


def suftware(x: np.ndarray) -> Answer:
    """suftware on 400 points."""
    import suftware  # pyright: ignore[reportMissingImports]

    return suftware.DensityEstimator(x, num_grid_points=400, num_posterior_samples=0).evaluate, None


SIDES: dict[str, dict[str, Callable[[np.ndarray], Answer]]] = {
    "ours": {"FieldDensity": ours, "GaussianMixture + BIC": gaussian_mixture},
    "density": {
        "KDEpy, ISJ": improved_sheather_jones,
        "SciPy, gaussian_kde": gaussian_kernels,
        "suftware": suftware,
    },
}
OURS = "FieldDensity"
FEWER = {"suftware": 10, "SciPy, gaussian_kde": 10}
"""Seeds of those that are slow."""


def judge(question: tuple[str, str, str, int, int]) -> dict[str, Any]:
    """One model on one data set."""
    side, model, name, rows, seed = question
    rng = np.random.default_rng([seed, rows, list(densities.FAMILY).index(name)])
    x, new, at = densities.draw(name, rows, rng), densities.draw(name, NEW, rng), densities.places(name)
    found: dict[str, Any] = {"model": model, "density": name, "rows": rows, "seed": seed}
    warnings.simplefilter("ignore")
    try:
        begin = time.process_time()
        pdf, band = SIDES[side][model](x)
        p = pdf(densities.PLACES)
        found["cpu_s"] = time.process_time() - begin
        step = densities.PLACES[1] - densities.PLACES[0]
        found["error"] = float(np.sum((p - densities.density(name, densities.PLACES)) ** 2) * step)
        truth = np.log(densities.density(name, new))
        found["log_density"] = float(np.mean(np.log(np.maximum(pdf(new), FLOOR)) - truth))
        if band is not None:
            low, high = band(at)
            true = densities.density(name, at)
            found["covered"] = float(np.mean((low <= true) & (true <= high)))
    except (Exception, SystemExit) as error:  # suftware ends the process where it fails
        found["failed"] = f"{type(error).__name__}: {error}"[:200]
    return found


def answer(side: str, seeds: int, processes: int) -> None:
    """All questions to one side, printed as one line."""
    questions = [
        (side, model, name, rows, seed)
        for model in SIDES[side] for rows in ROWS for name in densities.FAMILY
        for seed in range(min(seeds, FEWER.get(model, seeds)))
    ]  # fmt: skip
    with ProcessPoolExecutor(processes) as pool:
        print(json.dumps(list(pool.map(judge, questions, chunksize=5))))


def run(seeds: int = SEEDS, processes: int | None = None) -> dict[str, Any]:
    """Ask all sides."""
    from benchmarks import page
    from benchmarks.environments import python_of

    found: list[dict[str, Any]] = []
    for side in SIDES:
        print(f"asking {', '.join(SIDES[side])}", file=sys.stderr, flush=True)
        command = [
            str(python_of(side)),
            "-m",
            "benchmarks.calibration",
            "ask",
            side,
            str(seeds),
            str(processes or os.cpu_count()),
        ]
        said = subprocess.run(
            command, cwd=HOME, env={**os.environ, **SINGLE}, stdout=subprocess.PIPE, text=True, check=True
        )
        found += json.loads(said.stdout.strip().splitlines()[-1])
    return {"machine": page.machine(), "seeds": seeds, "cells": gather(found)}


def gather(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the seeds of each model, density and number of rows."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for one in found:
        groups.setdefault((one["model"], one["density"], one["rows"]), []).append(one)
    cells = []
    for (model, name, rows), each in groups.items():
        good = [one for one in each if "failed" not in one]
        cell: dict[str, Any] = {
            "model": model,
            "density": name,
            "rows": rows,
            "seeds": len(each),
            "failed": len(each) - len(good),
        }
        for key in ("error", "log_density", "cpu_s", "covered"):
            values = [one[key] for one in good if key in one]
            if values:
                cell[key] = float(f"{np.mean(values):.4g}")
        cells.append(cell)
    return cells


def look_up(cells: list[dict[str, Any]], model: str, name: str, rows: int, key: str) -> float:
    """One number; NaN where a model failed."""
    found = [c for c in cells if (c["model"], c["density"], c["rows"]) == (model, name, rows)]
    return found[0].get(key, float("nan")) if found else float("nan")


def peers_of(cells: list[dict[str, Any]]) -> list[str]:
    """All models but ours."""
    return [model for model in dict.fromkeys(c["model"] for c in cells) if model != OURS]


def best_peer(cells: list[dict[str, Any]], name: str, rows: int) -> tuple[str, float]:
    """Whose error is least, and how large it is."""
    errors = {model: look_up(cells, model, name, rows, "error") for model in peers_of(cells)}
    return min(((m, e) for m, e in errors.items() if np.isfinite(e)), key=lambda pair: pair[1])


def page_section(found: dict[str, Any]) -> str:
    """The section of the page."""
    from benchmarks import page

    cells, lines, wins = found["cells"], [], dict.fromkeys(ROWS, 0)
    for name in densities.FAMILY:
        covered = [f"{look_up(cells, OURS, name, rows, 'covered'):.0%}" for rows in ROWS]
        errors = []
        for rows in ROWS:
            mine, (peer, least) = look_up(cells, OURS, name, rows, "error"), best_peer(cells, name, rows)
            wins[rows] += mine <= least
            errors.append(f"{mine:.2g} / {least:.2g} ({peer})")
        lines.append((name, *covered, *errors))
    means = [np.mean([look_up(cells, OURS, name, rows, "covered") for name in densities.FAMILY]) for rows in ROWS]
    lines.append(("**all**", *(f"**{mean:.1%}**" for mean in means), *(f"**{wins[rows]} of 15**" for rows in ROWS)))
    header = ("density", *(f"covered, n = {rows:,}" for rows in ROWS), *(f"error, n = {rows:,}" for rows in ROWS))
    models = [OURS, *peers_of(cells)]
    costs = [
        (model, *(f"{np.nanmean([look_up(cells, model, name, rows, key) for name in densities.FAMILY]):.3g}"
                  for key in ("cpu_s", "log_density") for rows in ROWS))
        for model in models
    ]  # fmt: skip
    outside = [
        f"{name} ({look_up(cells, OURS, name, rows, 'covered'):.1%} at n = {rows:,})"
        for rows in ROWS for name in densities.FAMILY
        if not 0.8 <= look_up(cells, OURS, name, rows, "covered") <= 0.98
    ]  # fmt: skip
    named = (
        f"Bands that do not: {', '.join(outside)}. The teeth of a claw cannot be seen in a hundred rows; those of the double "
        "claw hold a 350th of all rows each and are narrower than the spacing of the grid."
        if outside
        else ""
    )
    return "\n\n".join([
        "## Do the bands of densities keep their word?",
        f"Fifteen densities of Marron and Wand, {found['seeds']} data sets each (10 for the two slowest). Covered: how often the 90% "
        "band of `FieldDensity()` holds the true density, at 20 places between its quantiles of 1% and 99%; a band that keeps its "
        "word has 90%. Error: mean integrated squared error, ours / the best peer's (which); the last line counts where ours is "
        f"not above. Defaults were chosen on other densities. Measured on {found['machine']}",
        "![Coverage and error](images/calibration.png)",
        page.table(header, lines),
        f"A band should cover 80% to 98% at every density. {named}".strip(),
        page.table(("model", *(f"processor s, n = {rows:,}" for rows in ROWS),
                    *(f"log-density of new rows less the truth's, n = {rows:,}" for rows in ROWS)), costs),
    ])  # fmt: skip


def draw_picture(found: dict[str, Any]) -> None:
    """Coverage of every density, and our error beside the best peer's."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    cells, names = found["cells"], list(densities.FAMILY)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5.2), sharey=True, layout="constrained")
    at = np.arange(len(names))[::-1]
    left.axvspan(0.88, 0.92, color="0.85", zorder=0)
    left.axvline(0.9, color="0.4", linewidth=1)
    right.axvline(1.0, color="0.4", linewidth=1)
    for rows, marker, colour in zip(ROWS, "osD", ("#9ecae1", "#4292c6", "#084594"), strict=True):
        covered = [look_up(cells, OURS, name, rows, "covered") for name in names]
        ratio = [look_up(cells, OURS, name, rows, "error") / best_peer(cells, name, rows)[1] for name in names]
        left.plot(covered, at, marker, color=colour, label=f"{rows:,} rows")
        right.plot(ratio, at, marker, color=colour)
    left.set_yticks(at, names)
    left.set_xlabel("share of places whose 90% band holds the truth")
    left.set_xlim(min(0.6, left.get_xlim()[0]), 1.01)
    right.set_xscale("log")
    right.set_xticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
    right.xaxis.set_minor_formatter(NullFormatter())
    right.set_xlabel("squared error, as a multiple of the best peer's")
    left.legend(loc="lower left")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    plt.close(figure)


def write(found: dict[str, Any]) -> None:
    """Page and picture, from the results alone."""
    from benchmarks import page

    page.PAGE.write_text(page.replaced(page.PAGE.read_text(), page.CALIBRATION, page_section(found)))
    draw_picture(found)


def main(arguments: list[str]) -> None:
    """Measure and write."""
    if arguments[:1] == ["ask"]:
        answer(arguments[1], int(arguments[2]), int(arguments[3]))
        return
    if arguments != ["page"]:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(run()) + "\n")
    write(json.loads(RESULTS.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
