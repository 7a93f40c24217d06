"""A random attack on the learning curves of Gaussian processes: may what is marked as trusted be believed?

Tables of 18 kinds, kernels of 9 kinds, random lengths, amplitudes, noise from 1e-5 to 2 and sizes from 6 to N. Whatever
`processes.theory.curve` trusts is compared with honest draws by NumPy alone (`benchmarks.worlds`), and no value may be
off by more than is promised beyond three standard errors of the draws. Run `python -m benchmarks.trust`; the table goes
to `docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import itertools
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks import worlds
from benchmarks.page import PAGE, TRUST, replaced, table
from quenched import processes
from quenched.core.progress import track

PROMISE = {"oob_error": 0.015, "error": 0.015, "posterior_variance": 0.03}
"""Largest relative deviation of a trusted value, beyond three standard errors of the draws."""
SIZES = 6
"""Sizes of data sets in each world."""
ACCURACY, WORK = (0.003, 0.02), (6e9, 2e8)
"""Relative standard error of the draws and operations spent on them, for sizes that are trusted and for the others."""
SEED = 3
"""Another seed than those of the sizes on which the limits of the self-check were chosen, 1 and 2."""


class Point(NamedTuple):
    """One size of one world."""

    world: str
    kernel: str
    m: float
    noise: float
    trusted: bool
    off: np.ndarray  # [3] relative deviation of the theory from the draws
    stderr: np.ndarray  # [3] of it

    @property
    def beyond(self) -> np.ndarray:
        """What is left of the deviations when three standard errors are granted."""
        return np.abs(self.off) - 3 * self.stderr

    @property
    def broken(self) -> bool:
        """Whether the promise is broken."""
        return bool(self.trusted and np.any(self.beyond > list(PROMISE.values())))


def attack(count: int, seed: int) -> Iterator[Point]:
    """So many worlds, or all 162 pairs of table and kernel, in random order."""
    pairs = list(itertools.product(worlds.TABLES, worlds.KERNELS))
    np.random.default_rng(seed).shuffle(pairs)
    for name, kernel in track(pairs[:count], "worlds"):
        draw = np.random.default_rng([seed, zlib.crc32(f"{name}/{kernel}".encode())])
        world = worlds.world(name, kernel, draw)
        N = len(world.y)
        sizes = np.unique(np.round(np.exp(draw.uniform(np.log(6), np.log(N), SIZES)), 1))
        yield from judged(world, kernel, sizes, draw)


def judged(world: worlds.World, kernel: str, sizes: np.ndarray, draw: np.random.Generator) -> Iterator[Point]:
    """Theory against honest draws at some sizes."""
    law = processes.Empirical(np.zeros(len(world.y)), world.y, 0.0, 1.0)
    curve = processes.theory.curve(law, processes.GaussianProcess(world.K, world.noise), examples=sizes)
    for i, m in enumerate(sizes):
        trusted = bool(curve.trusted[i])
        known = worlds.truth(world, float(m), draw, ACCURACY[not trusted], WORK[not trusted])
        mean, stderr = (dict(zip(worlds.MEASURES, value, strict=True)) for value in (known.mean, known.stderr))
        off = np.array([float(curve[name][i]) / mean[name] - 1 for name in PROMISE])
        share = np.array([stderr[name] / mean[name] for name in PROMISE])
        yield Point(world.name, kernel, float(m), world.noise, trusted, off, share)


def row(label: str, points: Sequence[Point]) -> tuple[str, ...]:
    """A line of the table."""
    good = [point for point in points if point.trusted]
    start = (label, f"{len(points)}", f"{len(good)}")
    if not good:
        return (*start, *["" for _ in range(2 * len(PROMISE))], "0")
    off, stderr = np.array([p.off for p in good]), np.array([p.stderr for p in good])
    rms = np.sqrt(np.maximum(np.mean(off**2 - stderr**2, axis=0), 0.0))
    worst = np.maximum(np.max([p.beyond for p in good], axis=0), 0.0)
    cells = [f"{100 * x:.2f}" for pair in zip(rms, worst, strict=True) for x in pair]
    return (*start, *cells, f"{sum(p.broken for p in good)}")


def report(points: Sequence[Point], seed: int) -> str:
    """The section of the page."""
    header = ("sizes with", "sizes", "trusted", *(
        f"{name.replace('_', ' ')}: {what}, %" for name in PROMISE for what in ("rms", "worst beyond 3 s.e.")
    ), "promises broken")  # fmt: skip
    groups = {"everything": list(points)}
    groups |= {kernel: [p for p in points if p.kernel == kernel] for kernel in worlds.KERNELS}
    groups |= {f"noise {a:g} to {b:g}": [p for p in points if a <= p.noise < b]
               for a, b in ((1e-5, 1e-3), (1e-3, 0.1), (0.1, 2))}  # fmt: skip
    groups |= {f"{a} to {b} examples": [p for p in points if a <= p.m < b] for a, b in ((6, 20), (20, 60), (60, 300))}
    return "\n\n".join([
        "## May a trusted learning curve be believed?",
        f"A random attack by `python -m benchmarks.trust` (seed {seed}): {len(worlds.TABLES)} kinds of tables of 60 to 300 "
        f"rows, {len(worlds.KERNELS)} kinds of kernels with random lengths and amplitudes, noise from 1e-5 to 2 of the "
        "target's variance, sizes from 6 to N. Where `theory.curve` trusts itself it is compared with honest draws, by NumPy "
        "alone, of a Poisson number of examples, until their standard error is 0.3% (at most some thousand draws). The "
        "promise is that no trusted error is off by more than 1.5%, no trusted posterior variance by more than 3%, beyond "
        "three standard errors of the draws. Most of these worlds are hostile on purpose: very little noise, or fewer "
        "examples than the kernel has dimensions; there `curve` makes draws.",
        table(header, [row(label, some) for label, some in groups.items()]),
    ])  # fmt: skip


def main() -> None:
    """Attack, print and write the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--worlds", type=int, default=len(worlds.TABLES) * len(worlds.KERNELS), help="of 6 sizes each")
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument("--page", action="store_true", help="write the table to docs/benchmarks.md")
    given = options.parse_args()
    points = list(attack(given.worlds, given.seed))
    body = report(points, given.seed)
    if given.page:
        PAGE.write_text(replaced(PAGE.read_text(), TRUST, body))
    print(body)
    for point in points:
        if point.broken:
            print("BROKEN", point.world, f"m = {point.m:g}", point.off, point.stderr)


if __name__ == "__main__":
    main()
