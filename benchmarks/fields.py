"""Error and cost of one-dimensional densities: ours beside suftware and KDEpy, in one run, on the same rows.

The task: rows of .6 N(-1.2, .6) + .4 N(1.5, .9), 50 seeds each of 1,000 and 100,000 rows. The error is the integrated
squared difference from the truth on 8,001 points, its mean over the seeds; seconds are the processor time of one
estimate and its values at these points, the mean over the seeds. The first estimate also makes the modes of its grid
(ours) or imports and caches (peers); what it costs more has its own column. All sides run in a process of their own
with one linear-algebra thread.

The peers live in an environment of their own under `.benchmarks/density`, made with pip at the first run. suftware has
400 points (its default of 100 is much worse at 100,000 rows) and no posterior samples; KDEpy the bandwidth of
Botev (ISJ), by Fourier transform on 4,096 points. suftware ends the process where it fails: a seed is then left out on
all sides, and said.

Run `python -m benchmarks.fields`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

HOME = Path(__file__).resolve().parents[1]
PEER_HOME = HOME / ".benchmarks" / "density"
PEER_NEEDS = ["suftware", "KDEpy"]
SIZES, SEEDS = (1_000, 100_000), 50

TASK = f"""
import json, time, warnings
import numpy as np

warnings.simplefilter("ignore")
x = np.linspace(-8, 9, 8001)

def bell(x, a, s):
    return np.exp(-((x - a) / s) ** 2 / 2) / s / np.sqrt(2 * np.pi)

truth = 0.6 * bell(x, -1.2, 0.6) + 0.4 * bell(x, 1.5, 0.9)

def rows(n, seed):
    draw = np.random.default_rng(seed)
    return np.where(draw.random(n) < 0.6, draw.normal(-1.2, 0.6, n), draw.normal(1.5, 0.9, n))

def measure(side, density):
    for n in {SIZES}:
        errors, costs = [], []
        for seed in [0, *range({SEEDS})]:
            X = rows(n, seed)
            begin = time.process_time()
            try:
                p = density(X)
            except (Exception, SystemExit):
                p = np.full(len(x), np.nan)
            costs.append(time.process_time() - begin)
            errors.append(float(np.sum((p - truth) ** 2) * (x[1] - x[0])))
        print(json.dumps(dict(side=side, n=n, errors=errors[1:], cpu_s=float(np.mean(costs[1:])),
                              first_s=max(costs[0] - costs[1], 0.0))), flush=True)
"""

OURS = """
from quenched.estimators import FieldDensity

measure("quenched", lambda X: FieldDensity().fit(X).pdf(x))
"""

SUFTWARE = """
import matplotlib
matplotlib.use("Agg")
import suftware

measure("suftware", lambda X: suftware.DensityEstimator(X, num_grid_points=400, num_posterior_samples=0).evaluate(x))
"""

KDEPY = """
import KDEpy

def estimate(X):
    grid, p = KDEpy.FFTKDE(bw="ISJ").fit(X).evaluate(4096)
    return np.interp(x, grid, p, left=0.0, right=0.0)

measure("KDEpy", estimate)
"""


def run(python: str | Path, script: str) -> list[dict]:
    """The rows that a script prints, one thread each for linear algebra."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [python, "-c", TASK + script], capture_output=True, text=True, cwd=HOME, env={**os.environ, **single}
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def peer_python() -> Path:
    """The interpreter of the peers' environment, made where there is none."""
    python = PEER_HOME / "bin" / "python"
    if (
        python.exists()
        and subprocess.run([python, "-c", "import suftware, KDEpy"], capture_output=True).returncode == 0
    ):
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", PEER_HOME], check=True, capture_output=True)
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER_NEEDS], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["pip failed"])[-1])
    return python


def measured() -> tuple[list[dict], list[str]]:
    """What the sides measured, and a sentence for each that could not be."""
    found, missing = run(sys.executable, OURS), []
    try:
        python = peer_python()
    except (RuntimeError, subprocess.CalledProcessError, OSError) as error:
        return found, [f"The peers could not be installed: {error}"]
    for side, script in (("suftware", SUFTWARE), ("KDEpy", KDEPY)):
        try:
            found += run(python, script)
        except RuntimeError as error:
            missing.append(f"{side} could not be run: {error}")
    return found, missing


def rows() -> list[tuple]:
    """Side, rows, error, ours over theirs, seconds, first estimate; a sentence where there is nothing to say."""
    found, missing = measured()
    lines = []
    for n in SIZES:
        sides = {row["side"]: row for row in found if row["n"] == n}
        every = np.all(np.isfinite([row["errors"] for row in sides.values()]), axis=0)
        ours = np.array(sides["quenched"]["errors"])[every]
        for side, row in sides.items():
            errors = np.array(row["errors"])[every]
            # Paired: of the ratio of means, to first order.
            spread = np.std(ours - ours.mean() / errors.mean() * errors, ddof=1) / np.sqrt(len(ours)) / errors.mean()
            ratio = "" if side == "quenched" else f"{ours.mean() / errors.mean():.3f} ± {spread:.3f}"
            lost = int(np.sum(~np.isfinite(row["errors"])))
            name = side + (f" (failed on {lost} of {SEEDS} seeds)" if lost else "")
            lines.append((name, n, f"{errors.mean():.3e}", ratio, f"{row['cpu_s']:.4f} s", f"{row['first_s']:.3f} s"))
    return lines + [(sentence, "", "", "", "", "") for sentence in missing]


HEADER = (
    "side",
    "rows",
    "mean integrated squared error",
    "ours over theirs",
    "processor time",
    "first estimate, more by",
)


if __name__ == "__main__":
    for line in (HEADER, *rows()):
        print(" | ".join(str(cell) for cell in line))
