"""Costs of the prototypes: the chain at any size, the direct simulation, and sweeps of the theory.

Processor seconds of all threads, after compilation; each row is the median of three repetitions in one process.

Run `python -m benchmarks.prototypes`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import jax
import numpy as np

from quenched import prototypes

LAW, RULE = prototypes.TwoClusters(prior=0.8), prototypes.LVQ1(rate=0.2)


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Median processor seconds of three repetitions, and the first call's extra (tracing and compilation)."""

    def once() -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    first = once()
    warm = statistics.median(once() for _ in range(3))
    return warm, max(first - warm, 0.0)


def simulate(simulator: prototypes.Direct | prototypes.Chain, size: int, examples: int, runs: int) -> dict:
    """Cost of one example of one run."""
    spent, compiling = seconds(
        lambda: prototypes.measure(
            LAW, RULE, alpha=[examples / size], size=size, runs=runs, batch=runs, key=jax.random.key(0), tests=1,
            simulator=simulator,
        )
    )  # fmt: skip
    name = f"{type(simulator).__name__}, N = {size:,}"
    return {"work": name, "each": "example", "cpu_s": spent / (examples * runs), "compile_s": compiling}


def sweep(points: int) -> dict:
    """Cost of one theory curve to alpha = 50, in a sweep of the prior."""
    prior = np.linspace(0.1, 0.9, points)
    spent, compiling = seconds(lambda: prototypes.curve(LAW, RULE, alpha=[10.0, 50.0], prior=prior))
    return {"work": f"theory, {points:,} parameter sets", "each": "sweep", "cpu_s": spent, "compile_s": compiling}


def rows() -> list[dict]:
    """Measured rows, and the ratios that are promised."""
    small, large = (simulate(prototypes.Chain(), size, 2000, 64) for size in (200, 1_000_000))
    chain, direct = simulate(prototypes.Chain(), 10_000, 2000, 64), simulate(prototypes.Direct(), 10_000, 200, 16)
    one, many = sweep(1), sweep(1000)
    ratios = [
        ("Chain at N = 1,000,000 over Chain at N = 200, per example", large["cpu_s"] / small["cpu_s"], "at most 1.5"),
        ("Direct over Chain at N = 10,000, per example", direct["cpu_s"] / chain["cpu_s"], "at least 50"),
        ("theory: 1,000 parameter sets over one", many["cpu_s"] / one["cpu_s"], "at most 150"),
    ]
    promised = [{"ratio": name, "value": value, "promise": promise} for name, value, promise in ratios]
    return [small, large, chain, direct, one, many, *promised]


if __name__ == "__main__":
    for row in rows():
        print(row)
