"""Costs of mixtures: the phase diagram, and many random starts against one.

Processor seconds of all threads, after compilation. Run `python -m benchmarks.mixtures`; on a machine with an
accelerator `python -m benchmarks.mixtures throughput [size] [starts]` measures the batched iteration against the ceilings
of the device, in wall seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import cpu
from quenched.mixtures.learner import relax
from quenched.mixtures.model import MaximumLikelihood, TwoGaussians
from quenched.mixtures.simulation import spectrum
from quenched.mixtures.theory import phase_lines

KEY = jax.random.key(0)
N = 500


def starts() -> Iterator[tuple]:
    """Many random starts on one sample: the whole verb, and the iteration alone."""
    law, rule = TwoGaussians(2.0), MaximumLikelihood()
    for width in (2.5, 1.0, 0.5):

        def ask(count: int, width: float = width) -> Any:
            return spectrum(law, rule, width=width, alpha=1.0, size=N, starts=count, key=KEY)

        many, found = cpu(lambda: ask(400))
        one, _ = cpu(lambda: ask(1))
        alone, together = iteration(width)
        yield (
            f"400 random starts over one, N = P = {N}, width {width:g} (`spectrum`: sample, annealing and starts)",
            f"{many:.2f} s / {one:.2f} s", f"{many / one:.1f}", "at most 20",
            f"{int(found.minima[0])} minima; iteration alone {together:.2f} s / {alone * 1e3:.0f} ms = {together / alone:.0f}",
        )  # fmt: skip


def iteration(width: float) -> tuple[float, float]:
    """Processor seconds of the minimisation alone: of one start (mean of 20), and of 400."""
    with jax.enable_x64(True):
        S = jnp.asarray(TwoGaussians(2.0).sample(KEY, N, size=N)[0])
        X, v = S - S.mean(axis=0), jax.random.normal(KEY, (400, N))
        v = v / jnp.linalg.norm(v, axis=1, keepdims=True)
        jax.block_until_ready(relax(X, v[:1], width))
        one, _ = cpu(lambda: [jax.block_until_ready(relax(X, v[i : i + 1], width)) for i in range(20)])
        many, _ = cpu(lambda: jax.block_until_ready(relax(X, v, width)))
    return one / 20, many


def diagram() -> Iterator[tuple]:
    """All lines of the phase diagram, in wall seconds after compilation."""
    law, alphas = TwoGaussians(1.0), np.geomspace(0.5, 20, 200)
    phase_lines(law, alpha=alphas[:2])
    begin = time.perf_counter()
    found = phase_lines(law, alpha=alphas)
    seconds = time.perf_counter() - begin
    off = float(np.nanmax(np.abs(found.splitting_ordered - 1.5 * (1 + 2 / alphas))))
    yield (
        "phase diagram, separation 1, 200 sample sizes, wall seconds after compilation", f"{seconds:.1f} s",
        f"{seconds:.1f}", "below 10", f"splitting line within {off:.0e} of its closed form",
    )  # fmt: skip


def rows() -> Iterator[tuple]:
    """Every ratio: work, times, value, promise, accuracy."""
    yield from diagram()
    yield from starts()


def wall(work: Callable[[], Any]) -> float:
    """Wall seconds of the fastest of three calls, after one that compiles."""
    seconds = []
    for _ in range(4):
        begin = time.perf_counter()
        jax.block_until_ready(work())
        seconds.append(time.perf_counter() - begin)
    return min(seconds[1:])


def throughput(size: int = 2000, starts: int = 4096, steps: int = 64) -> Iterator[tuple]:
    """Steps of many starts against the matrix ceiling, of one start against the memory ceiling; alpha = 1, double precision."""
    with jax.enable_x64(True):
        X = jnp.asarray(np.random.default_rng(0).normal(size=(size, size)))
        v = jnp.asarray(np.random.default_rng(1).normal(size=(starts, size)))
        multiply = jax.jit(lambda v, X: jax.lax.fori_loop(0, steps, lambda _, v: (v @ X.T) @ X / size**2, v))
        stream = jax.jit(lambda a: jax.lax.fori_loop(0, 16, lambda i, a: a + i, a))
        long = jnp.zeros(2**27 if jax.default_backend() != "cpu" else 2**24)
        matrix = 4 * size**2 * starts * steps / wall(lambda: multiply(v, X))
        memory = 16 * 2 * long.nbytes / wall(lambda: stream(long))
        # An accuracy of zero is never reached: every start makes all the steps.
        given = {"accuracy": 0.0, "max_steps": steps, "slots": starts}
        many = wall(lambda: relax(X, v, 1.0, **given))
        one = wall(lambda: relax(X, v[:1], 1.0, **given))
    device = jax.devices()[0].device_kind
    rate, stream_rate = 4 * size**2 * starts * steps / many, 2 * X.nbytes * steps / one
    yield device, f"matrix ceiling {matrix / 1e9:.0f} GFLOP/s", f"memory ceiling {memory / 1e9:.0f} GB/s"
    yield f"{starts} starts", f"{rate / 1e9:.0f} GFLOP/s", f"{rate / matrix:.0%} of the matrix ceiling", f"{many:.3f} s"
    yield (
        "one start",
        f"{stream_rate / 1e9:.0f} GB/s",
        f"{stream_rate / memory:.0%} of the memory ceiling",
        f"{one:.4f} s",
    )
    yield f"{starts} starts over one", f"{many / one:.1f}"


if __name__ == "__main__":
    for row in throughput(*map(int, sys.argv[2:])) if sys.argv[1:2] == ["throughput"] else rows():
        print(row, flush=True)
