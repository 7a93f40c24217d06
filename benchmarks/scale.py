"""A million unknowns: a density on a periodic square, a biharmonic prior on its logarithm, its strength by evidence.

`python -m benchmarks.scale` chooses the strength on 256 x 256 points by evidence from random probes, and solves on 128 x 128
to 1024 x 1024 points, each in a process of its own: time, iterations, memory and the relative gradient. It writes
`benchmarks/results/scale_PLATFORM.json`. `--platform cuda` runs it on an accelerator, `--sizes 128 256` fewer grids. It needs
numpy, scipy, jax, equinox, lineax, optimistix, xarray, scikit-learn and nothing else.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pickle
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

if importlib.util.find_spec("cloudpickle") is None:  # only other processes need it, and there are none
    sys.modules["cloudpickle"] = pickle

RESULTS = Path(__file__).resolve().parent / "results"
SIZES, ROWS, PROBES = (128, 256, 512, 1024), 100_000, 8
TOLERANCE = 1e-6


def rows(count: int) -> np.ndarray:
    """Two Gaussian clouds in the unit square."""
    random = np.random.default_rng(0)
    first = random.normal([0.35, 0.4], [0.05, 0.08], (count // 2, 2))
    return np.concatenate([first, random.normal([0.65, 0.6], [0.1, 0.04], (count - count // 2, 2))]) % 1.0


def problem_of(points: int, strength: float, data: np.ndarray) -> Any:
    """The density on a grid, its logarithm with a biharmonic prior, periodic."""
    from quenched import fields

    axis = fields.Axis(0, 1 - 1 / points, points=points, ends=fields.Periodic())
    grid = fields.Grid(over=[axis, axis])
    prior = fields.Gaussian(strength * fields.Laplacian(grid) ** 2)
    return fields.Problem(fields.DensityData(data), fields.LogDensity(grid), prior)


def clock(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a function returns, seconds on the clock and of all processors."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = function()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def choose_strength(points: int, data: np.ndarray) -> dict[str, Any]:
    """The strength of most evidence: by decades, then by a parabola through the three best."""
    from quenched import fields

    found: dict[float, tuple[float, float]] = {}
    fit = None

    def ask(log_strength: float) -> float:
        nonlocal fit
        if log_strength not in found:
            problem = problem_of(points, 10.0**log_strength, data)
            fit = fields.solve(problem, fields.NewtonCG(), start=fit, tolerance=1e-5)
            about: Any = fields.laplace(problem, fit, probes=PROBES)
            found[log_strength] = about.log_evidence, about.log_evidence_error
            print(f"  strength {10.0**log_strength:.3g}: log evidence {found[log_strength][0]:.1f} "
                  f"+- {found[log_strength][1]:.1f}", flush=True)  # fmt: skip
        return found[log_strength][0]

    best = -4.0
    while True:
        around = {best + side: ask(best + side) for side in (0.0, 1.0, -1.0)}
        top = max(around, key=lambda at: around[at])
        if top == best:
            break
        best = top
    low, mid, high = ask(best - 1), ask(best), ask(best + 1)
    best += 0.5 * (low - high) / (low - 2 * mid + high)
    ask(best)
    table = [{"strength": 10.0**at, "log_evidence": e, "error": s} for at, (e, s) in sorted(found.items())]
    return {"strength": 10.0**best, "points": points, "probes": PROBES, "evidence": table}


def resident() -> float:
    """Bytes of memory that this process holds now."""
    return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(points: int, strength: float, count: int) -> dict[str, Any]:
    """One grid: solved once with compilation and once without; memory above that of a small problem."""
    import jax

    from quenched import fields

    data = rows(count)
    fields.solve(problem_of(40, strength, data), fields.NewtonCG())  # libraries are loaded and threads started
    before = resident()
    problem = problem_of(points, strength, data)
    fit, cold, cold_cpu = clock(lambda: fields.solve(problem, fields.NewtonCG(), tolerance=TOLERANCE))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
    _, warm, warm_cpu = clock(lambda: fields.solve(problem, fields.NewtonCG(), tolerance=TOLERANCE))
    half = fields.solve(problem_of(points // 2, strength, data), fields.NewtonCG(), tolerance=TOLERANCE)
    last, last_wall, last_cpu = clock(lambda: fields.solve(problem, fields.NewtonCG(), start=half, tolerance=TOLERANCE))
    slope = np.linalg.norm(problem.gradient(fit.field))  # by differentiating the energy, not by the solver
    even = fields.Problem(problem.likelihood, problem.link, fields.Gaussian(0.0 * problem.operator))
    scale = np.linalg.norm(even.gradient(np.zeros(problem.grid.shape)))
    device = jax.devices()[0]
    stats = (device.memory_stats() or {}) if device.platform != "cpu" else {}
    return {
        "points": points, "outcome": fit.outcome.name, "relative_gradient": float(slope / scale), "energy": fit.energy,
        "wall_s": cold, "cpu_s": cold_cpu, "warm_wall_s": warm, "warm_cpu_s": warm_cpu,
        "iteration_wall_s": last_wall / last.levels[-1].products, "iteration_cpu_s": last_cpu / last.levels[-1].products,
        "levels": [[one.shape[0], one.steps, one.products, one.gradient] for one in fit.levels],
        "iterations": fit.levels[-1].products, "iterations_all_grids": sum(one.products for one in fit.levels),
        "arrays_and_programs": (peak - before) / (8.0 * points**2), "peak_bytes": peak,
        "device": f"{device.platform}: {device.device_kind}", "device_peak_bytes": stats.get("peak_bytes_in_use"),
    }  # fmt: skip


def growth(found: list[dict[str, Any]], key: str) -> float:
    """The exponent with which something grows with the number of points of the grid."""
    size, value = np.log([one["points"] ** 2 for one in found]), np.log([one[key] for one in found])
    return float(np.polyfit(size, value, 1)[0])


def added(found: list[dict[str, Any]]) -> float:
    """Arrays of the grid by which the peak of memory grows between the two largest grids: programs take no part."""
    less, more = found[-2:]
    return (more["peak_bytes"] - less["peak_bytes"]) / (8.0 * (more["points"] ** 2 - less["points"] ** 2))


def ask(arguments: list[str], name: str | None) -> Any:
    """The answer of a process of its own."""
    environment = {"MALLOC_MMAP_THRESHOLD_": "1000000", **os.environ}  # arrays that are freed go back to the system
    environment |= {"JAX_PLATFORMS": name} if name else {}
    command = [sys.executable, "-m", "benchmarks.scale", *arguments]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        last = ""
        for line in child.stdout or ():
            last = line
            if not line.startswith("{"):
                print(line, end="", flush=True)
    if child.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed.")
    return json.loads(last)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", help="cpu, cuda, ...; by default what JAX finds")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--strength", type=float, help="instead of the evidence's choice")
    parser.add_argument("--evidence", type=int, help="the number of points for the evidence", default=256)
    parser.add_argument("--part", nargs=2, help="what runs in a process of its own")
    chosen = parser.parse_args()
    if chosen.part:
        what, value = chosen.part
        if what == "strength":
            answer, wall, cpu = clock(lambda: choose_strength(int(value), rows(chosen.rows)))
            print(json.dumps({**answer, "wall_s": wall, "cpu_s": cpu}))
        else:
            print(json.dumps(measure(int(value), chosen.strength, chosen.rows)))
        return
    shared = ["--rows", str(chosen.rows)]
    choice = {"strength": chosen.strength}
    if chosen.strength is None:
        print(f"strength by evidence on {chosen.evidence} x {chosen.evidence} points", flush=True)
        choice = ask([*shared, "--part", "strength", str(chosen.evidence)], chosen.platform)
    print(json.dumps(choice), flush=True)
    found = []
    for points in chosen.sizes:
        one = ask([*shared, "--strength", repr(choice["strength"]), "--part", "solve", str(points)], chosen.platform)
        print(json.dumps(one), flush=True)
        found.append(one)
    result = {
        "rows": chosen.rows, "tolerance": TOLERANCE, "choice": choice, "grids": found,
        "exponent_cpu": growth(found, "iteration_cpu_s") if len(found) > 1 else None,
        "exponent_wall": growth(found, "iteration_wall_s") if len(found) > 1 else None,
        "arrays": added(found) if len(found) > 1 else None,
        "iterations_ratio": found[-1]["iterations"] / found[0]["iterations"],
        "load": os.getloadavg()[0], "cores": os.cpu_count(), "machine": platform.machine(),
    }  # fmt: skip
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"scale_{found[-1]['device'].split(':')[0]}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({key: value for key, value in result.items() if key not in ("grids", "choice")}))


if __name__ == "__main__":
    main()
