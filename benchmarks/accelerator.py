"""The full Abalone learning curve on whatever device JAX finds: 4177 rows, 20 sizes, exact, double precision.

Run `python -m benchmarks.accelerator [abalone.csv]`; without the file the table comes from the extra `papers`. Needs no
tinygp: the kernel is written out here, so that it runs on a machine that has JAX and little else.
"""

from __future__ import annotations

import csv
import sys
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from quenched.processes.model import Empirical, GaussianProcess
from quenched.processes.theory.curve import Solver

SIZES = np.unique(np.geomspace(100, 8354, 20).round())


class SquaredExponential(eqx.Module):
    """exp(-|x - x'|^2 / 2) of scaled inputs, as one matrix product."""

    scale: Any

    def __call__(self, X1: Any, X2: Any = None) -> Any:
        if X2 is None:
            return jnp.ones(X1.shape[0])
        A, B = X1 * self.scale, X2 * self.scale
        squared = jnp.sum(A**2, axis=1)[:, None] + jnp.sum(B**2, axis=1) - 2 * A @ B.T
        return jnp.exp(-jnp.maximum(squared, 0.0) / 2)


def abalone(path: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Inputs `[4177, 10]` and targets."""
    if path is None:
        from quenched.papers.malzahn2002 import sets

        table = sets.abalone()
        return table.inputs, np.asarray(table.targets, float)
    with open(path) as file:
        rows = list(csv.reader(file))[1:]
    sex = np.array([[row[0] == s for s in "MFI"] for row in rows], float)
    numbers = np.array([row[1:] for row in rows], float)
    return np.column_stack([sex, numbers[:, :-1]]), numbers[:, -1]


def curve(law: Empirical, rule: GaussianProcess, sizes: np.ndarray, rank: int | None) -> dict[str, Any]:
    """Solve all sizes twice: the first pass compiles."""
    seconds, values = [], []
    for _ in range(2):
        begin = time.perf_counter()
        solver = Solver(law, rule, rank=rank)
        found = [solver.solve(m) for m in sizes]
        values = [float(point["oob_error"]) for point in found]
        seconds.append(time.perf_counter() - begin)
    trusted = sum(bool(point["trusted"]) for point in found)
    return {"first_s": seconds[0], "again_s": seconds[1], "oob_error": values, "trusted": trusted, **solver.about}


def main() -> None:
    """Measure and print."""
    X, y = abalone(sys.argv[1] if len(sys.argv) > 1 else None)
    device = jax.devices()[0]
    print(f"{device.platform} {device.device_kind}, jax {jax.__version__}", flush=True)
    rule = GaussianProcess(SquaredExponential(np.sqrt(2 / (10 * X.var(axis=0)))), noise=0.1)
    with jax.enable_x64(True):
        for rank in (None, 512):
            found = curve(Empirical(X, y), rule, SIZES, rank)
            print("exact" if rank is None else f"rank {rank}", found, flush=True)
        draw = np.random.default_rng(0)
        for rows in (100_000, 1_000_000):
            many = draw.integers(0, len(y), rows)
            law = Empirical(X[many] + 0.05 * X.std(axis=0) * draw.normal(size=(rows, X.shape[1])), y[many])
            found = curve(law, rule, np.array([float(rows)]), 512)
            memory = (device.memory_stats() or {}).get("peak_bytes_in_use", 0) / 2**30
            print(f"{rows} rows, rank 512", found, f"peak {memory:.1f} GiB", flush=True)


if __name__ == "__main__":
    main()
