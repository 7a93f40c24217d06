"""Costs of mixtures: the phase diagram, and many random starts against one.

Processor seconds of all threads, after compilation. Run `python -m benchmarks.mixtures`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from benchmarks.timing import cpu
from quenched.mixtures.model import TwoGaussians
from quenched.mixtures.simulation.measure import draw_sample
from quenched.mixtures.theory import phase_lines
from quenched.papers.barkai1994.minima import Descent, spectrum

KEY = jax.random.key(0)
N = 500


def starts() -> Iterator[tuple]:
    """Many random starts on one sample: the whole verb, and the iteration alone."""
    law = TwoGaussians(2.0)
    for width in (2.5, 1.0, 0.5):

        def ask(count: int, width: float = width) -> Any:
            return spectrum(law, width=width, alpha=1.0, size=N, starts=count, key=KEY)

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
        descent = Descent(draw_sample(KEY, TwoGaussians(2.0), N, N, 1))
    centres = descent.begin(KEY, 400)
    one, _ = cpu(lambda: [descent.settle(centres[i : i + 1], width) for i in range(20)])
    many, _ = cpu(lambda: descent.settle(centres, width))
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


if __name__ == "__main__":
    for row in rows():
        print(row, flush=True)
